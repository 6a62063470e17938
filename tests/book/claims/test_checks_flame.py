"""The checks behind FLAME's ledger rows: each against an enumeration that is written out here."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from flamebook.claims import flame as accounting
from flamelib.accounting.coordinates.paper_bounds import double_vector
from flamelib.accounting.sampling.closed_form import sampled_epsilon


def beyond(p, q, epsilon):
    return math.fsum(max(p.get(y, 0.0) - math.exp(epsilon) * q.get(y, 0.0), 0.0) for y in {*p, *q})


def bits(chances):
    """Law of the number of ones among independent bits."""
    law = {0: 1.0}
    for chance in chances:
        after = {}
        for ones, weight in law.items():
            for bit, part in ((1, chance), (0, 1 - chance)):
                after[ones + bit] = after.get(ones + bit, 0.0) + weight * part
        law = after
    return law


# --- composition ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "epsilon", "leak"), [(1, 0.3, 0.0), (3, 0.3, 0.01), (5, 0.0, 0.1), (6, 1.5, 0.0)])
def test_composed_delta_by_every_outcome(times, epsilon, leak):
    part = 0.5
    stays = 1 / (1 + math.exp(-part))
    one, other = {1: stays, 0: 1 - stays}, {1: 1 - stays, 0: stays}
    laws = []
    for law in (one, other):
        told = {"told" if law is one else "other": leak, **{y: (1 - leak) * p for y, p in law.items()}}
        laws.append({
            run: math.prod(told[y] for y in run) for run in itertools.product(told, repeat=times)
        })  # fmt: skip
    assert accounting.composed_delta(times, part, epsilon, leak) == pytest.approx(beyond(*laws, epsilon), abs=1e-13)


def test_lemma_4_is_tight_for_a_noisy_bit():
    assert accounting.sampled_over_bound(1.2, 0.6, 2, 5) == pytest.approx(1, rel=1e-12)
    assert accounting.sampled_over_bound(0.7, 0.1, 3, 4) == pytest.approx(1, rel=1e-12)


# --- Theorem 4 --------------------------------------------------------------------------------------------


def one_of_many(dimension, padded, epsilon0, epsilon):
    """Every table of bits, one row a coordinate: SS-Double with one reported coordinate, from its definition."""
    stays = 1 / (1 + math.exp(-epsilon0))
    laws = []
    for chance in (stays, 1 - stays):
        law = {}
        for place in range(dimension):
            rows = [bits([chance if j == place else 0.5, *[0.5] * (padded - 1)]) for j in range(dimension)]
            for counts in itertools.product(range(padded + 1), repeat=dimension):
                weight = math.prod(row[c] for row, c in zip(rows, counts, strict=True)) / dimension
                law[counts] = law.get(counts, 0.0) + weight
        laws.append(law)
    return max(beyond(*laws, epsilon), beyond(*laws[::-1], epsilon))


@pytest.mark.parametrize(("dimension", "padded"), [(2, 1), (8, 1), (3, 3), (5, 2)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.4])
def test_one_coordinate_among_many(dimension, padded, epsilon):
    found = accounting.one_of_many_delta(dimension, padded, 1.0, epsilon)
    assert found == pytest.approx(one_of_many(dimension, padded, 1.0, epsilon), abs=1e-14)


def test_theorem_4_fails_on_a_data_set():
    """One coordinate of eight, no delta anywhere: each keeps its sampled epsilon, the vector loses more than two."""
    dimension, epsilon0 = 8, 1.0
    each = sampled_epsilon(epsilon0, 1 / dimension)
    stays = 1 / (1 + math.exp(-epsilon0))
    shown = [(chance + (dimension - 1) / 2) / dimension for chance in (stays, 1 - stays)]
    assert math.log(shown[0] / shown[1]) <= each, "one coordinate alone keeps what Theorem 3 says of it"
    claimed = double_vector(1, each, 0.0)
    assert claimed.delta == 0
    assert one_of_many(dimension, 1, epsilon0, claimed.epsilon) > 0.01
    assert one_of_many(dimension, 1, epsilon0, dimension * each) == pytest.approx(0, abs=1e-15), "all eight are enough"
    assert accounting.beyond_theorem_4(dimension, 1, epsilon0) > 0.01


DELTA = 0.01 / 1000**1.1


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_what_counting_gives_away(epsilon):
    """Every count of few messages: one user at either end, all other messages fair."""
    up, rate = 1 - math.exp(-0.25) / 2, 0.3
    cases = {
        "simple": ({"dimension": 3, "n_users": 4}, [up] * 3 + [0.5] * 9),
        "double": ({"dimension": 3, "padded": 4, "sampling_rate": rate}, [0.5 + rate * (up - 0.5)] * 3 + [0.5] * 9),
        "disjoint": ({"kept": 2, "padded": 3}, [up] * 2 + [0.5] * 10),
    }
    for protocol_name, (inputs, chances) in cases.items():
        truth = beyond(bits(chances), bits([1 - chance for chance in chances]), epsilon)
        found = accounting.count_lower(protocol_name, epsilon0=0.5, epsilon=epsilon, **inputs)
        assert found == pytest.approx(truth, rel=1e-8)


def test_amplification_of_the_experiments():
    setting = {"dimension": 7850, "n_users": 1000, "padded": 333, "delta": DELTA}
    given = {"local": 78.5, "kept": 157, "bound": "withdrawn", **setting}
    assert accounting.amplification("simple", **given) == pytest.approx(78.5 / 0.910056, rel=1e-5)
    assert accounting.amplification("double", **given) == pytest.approx(78.5 / 0.237927, rel=1e-5)
    ratio = accounting.double_over_simple(0.01, sampling_rate=0.02, **setting)
    assert ratio == pytest.approx(0.910056 / 0.237927, rel=1e-5)


# --- definitions and parties ------------------------------------------------------------------------------


def test_a_traced_laplace_message():
    """Against the integral of the positive part on a fine grid."""
    epsilon0, epsilon = 0.5, 0.06
    points = (np.arange(-2_000_000, 2_000_000) + 0.5) * 1e-4
    left, right = (epsilon0 / 2 * np.exp(-epsilon0 * abs(points - x)) for x in (0, 1))
    truth = np.maximum(left - math.exp(epsilon) * right, 0).sum() * 1e-4
    assert accounting.told_order_delta(epsilon0, epsilon) == pytest.approx(truth, rel=1e-6)


def test_the_parties_keep_to_themselves():
    assert all(accounting.shuffler_is_blind(seed) and accounting.analyzer_ignores_order(seed) for seed in range(3))


def test_linked_messages_by_enumeration():
    """Two vectors of three coordinates: the larger count of entries above one half, every outcome."""
    kept, epsilon0, epsilon = 3, 0.8, 0.3
    up = 1 - math.exp(-epsilon0 / 2) / 2
    laws = []
    for chance in (up, 1 - up):
        law = {}
        for (a, p), (b, q) in itertools.product(bits([chance] * kept).items(), bits([0.5] * kept).items()):
            law[max(a, b)] = law.get(max(a, b), 0.0) + p * q
        laws.append(law)
    assert accounting.linked_delta(kept, 2, epsilon0, epsilon) == pytest.approx(beyond(*laws, epsilon), rel=1e-12)


# --- padding ----------------------------------------------------------------------------------------------


def test_padding_by_enumeration():
    real, padded, epsilon0, epsilon = 3, 6, 1.0, 0.2
    stays = 1 / (1 + math.exp(-epsilon0))
    worst = {True: 0.0, False: 0.0}
    for others in itertools.product((stays, 1 - stays), repeat=real - 1):
        rest = [*others, *[0.5] * (padded - real)]
        p, q, absent = (bits([chance, *rest]) for chance in (stays, 1 - stays, 0.5))
        worst[False] = max(worst[False], beyond(p, q, epsilon), beyond(q, p, epsilon))
        for law in (p, q):
            worst[True] = max(worst[True], beyond(law, absent, epsilon), beyond(absent, law, epsilon))
    ratios = {gone: accounting.padded_over_full(real, padded, epsilon0, epsilon, gone) for gone in worst}
    assert ratios[True] / ratios[False] == pytest.approx(worst[True] / worst[False], rel=1e-10)
    assert all(ratio <= 1 for ratio in ratios.values())


def test_overflow_of_random_choices():
    exact = sum(Fraction(math.comb(30, m) * 3 ** (30 - m), 4**30) for m in range(13, 31))
    assert accounting.overflow_chance(30, 0.25, 12) == pytest.approx(float(exact), rel=1e-10)
    assert accounting.overflow_exponent(1000, 0.02, 333) < -290
    assert accounting.agreeing_overflow(1000, 785, 15, 333) == 667


def test_dummy_vectors():
    assert accounting.dummies_fit(7850, 157, 1000, 333)
    assert not accounting.dummies_fit(10, 3, 10, 5)
    assert accounting.filling_completes([2, 2, 0], 2)
    assert not accounting.filling_completes([3, 1], 2)
    assert not accounting.filling_completes([1, 1, 1, 1, 2], 2), "a bad early choice leaves two for one coordinate"


# --- index privacy ----------------------------------------------------------------------------------------


def test_posteriors_and_reports():
    assert accounting.posterior(6, 2, 3) == Fraction(1, 3)
    assert accounting.posterior(7, 1, 4) == Fraction(1, 4)
    assert accounting.set_ratio(6, 2, 2) == 15 / 6
    assert accounting.report_budget(6, 2, 2) == math.inf
    assert accounting.report_budget(6, 2, 3) == 0.0
    assert not accounting.definition_3_holds(6, 2, 1, 1e9)
    assert accounting.definition_3_holds(6, 2, 3, 1)
