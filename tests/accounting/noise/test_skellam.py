"""Noise of whole numbers: Bessel functions of many digits, divergences term by term, and the way to epsilon."""

import math
from functools import cache
from itertools import accumulate, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import besseli, mp, mpf
from oracles.splitting import hockey_stick
from reference_bounds import discrete_gaussian_noise

from flamelib.accounting.composition.dominating_pair import composed, composed_below
from flamelib.accounting.noise import skellam
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.noise.skellam import (
    curve_epsilon,
    curve_log_delta,
    least_variance,
    rounded_norm,
    vector_epsilon,
)
from flamelib.accounting.noise.whole_numbers import shift_budget, skellam_noise
from flamelib.core.vocabulary import DomainError


def skellam_masses(variance, reach):
    mu = mpf(variance)
    half = [mp.exp(-mu) * besseli(x, mu) for x in range(reach + 1)]
    return {x: half[abs(x)] for x in range(-reach, reach + 1)}


def renyi(law, order, shift):
    """The divergence of the law moved by ``shift`` from the law, outcome by outcome."""
    places = range(shift - max(law), max(law) + 1)
    return mp.log(mp.fsum(law[x - shift] ** order * law[x] ** (1 - order) for x in places)) / (order - 1)


@pytest.mark.parametrize("variance", [100.0, 1e6])
def test_logarithms_are_as_right_as_is_said(variance):
    """The recursion with thirty digits; a plain sum of logarithms is wrong by several times as much."""
    noise = skellam_noise(variance)
    last, ratio, ratios = len(noise.logs) - 1, mpf(0), []
    with mp.workdps(30):
        for x in range(2 * last + 200, 0, -1):
            ratio = 1 / (2 * x / mpf(variance) + ratio)
            ratios.append(ratio)
        masses = list(accumulate(ratios[::-1], initial=mpf(1), func=lambda mass, step: mass * step))
        total = 2 * mp.fsum(masses) - 1
        for x in range(0, last + 1, max(1, last // 200)):
            assert abs(mp.log(masses[x] / total) - mpf(noise.log_mass(x))) <= noise.error(x)
        cells = noise.cells(1)
        for x in range(1 - last, last, max(1, last // 100)):
            here, there, place = masses[abs(x)], masses[abs(x - 1)], x - 1 + last
            assert cells.low[place] <= mp.log(there / here) <= cells.high[place]
            assert abs(cells.gain[place] - (there - here) / total) <= cells.error[place]


# --- Rényi ------------------------------------------------------------------------------------------------

LAWS = {variance: skellam_masses(variance, 60 + int(9 * variance**0.5)) for variance in (0.5, 4, 30)}


@pytest.mark.parametrize("variance", LAWS)
@pytest.mark.parametrize("order", [2, 3, 8])
def test_the_bound_is_above_the_truth_for_every_small_vector(variance, order):
    """Divergences of independent coordinates add up; the trivial bound and the Gaussian's value are on either side."""
    each = {s: float(renyi(LAWS[variance], order, s)) for s in (1, 2, 3)}
    for vector in ((1,), (2,), (3,), (1, 1), (1, 2, 0, 3), (1,) * 30):
        truth = sum(each[s] for s in vector if s)
        norm_2, norm_1 = math.sqrt(sum(s * s for s in vector)), float(sum(vector))
        bound, known = (
            skellam._curve(norm_2, variance, skellam._norm_1(norm_2, *words))(order)
            for words in ((norm_1, None), (None, len(vector)))
        )
        assert truth <= bound <= known * (1 + 1e-12)
        assert bound <= order * norm_2**2 / (2 * variance) + 1.5 * norm_1 / variance + 1e-9
        assert bound > order * norm_2**2 / (2 * variance)


@pytest.mark.parametrize(("variance", "order"), [(0.5, 1.2), (4, 1.7), (4, 2.5), (30, 5.25)])
def test_chords_hold_between_whole_orders(variance, order):
    curve = skellam._curve(2.0, variance, 4.0)
    assert float(renyi(LAWS[variance], mpf(order), 2)) <= curve(order)
    low, high = math.floor(order), math.ceil(order)
    ends = [(one - 1) * curve(one) if one > 1 else 0.0 for one in (low, high)]
    assert (order - 1) * curve(order) == pytest.approx(ends[0] + (order - low) * (ends[1] - ends[0]))


# --- epsilon ----------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.floats(1e-12, 0.1), st.floats(0.05, 8), st.integers(1, 500))
def test_conversion_is_the_minimum_over_orders(delta, ratio, rounds):
    """Dense orders find nothing better, and delta is the inverse of epsilon."""

    def curve(order):
        return order * ratio * ratio / 2

    found = curve_epsilon(curve, rounds, delta)
    orders = 1 + np.logspace(-4, 6, 40001)
    dense = rounds * curve(orders) + (np.log(1 / delta) + (orders - 1) * np.log1p(-1 / orders) - np.log(orders)) / (
        orders - 1
    )
    assert max(dense.min(), 0) * (1 - 1e-6) <= found <= max(dense.min(), 0) * (1 + 1e-9) + 1e-9
    if found > 0:
        assert curve_log_delta(curve, rounds, found) == pytest.approx(math.log(delta), abs=1e-6)
    true = gaussian_mechanism(ratio * math.sqrt(rounds), 1.0, delta=delta)
    assert found >= true * (1 - 1e-9)


@settings(max_examples=20)
@given(
    st.integers(1, 10**6), st.floats(1, 1e4), st.integers(1, 1000), st.floats(0.05, 20), st.floats(1e-12, 1e-2),
    st.floats(60, 200),
)  # fmt: skip
@example(1, 3.0, 2, 1.59375, 0.0089394461296653, 60.0)
def test_least_variance_is_enough_and_no_more(dimension, norm, rounds, epsilon, delta, bits):
    words = {"dimension": dimension, "sensitivity_2": norm, "rounds": rounds, "security_bits": bits}
    if (1 + math.exp(epsilon)) * rounds * dimension * 2.0**-bits > 0.9 * delta:
        return
    found = least_variance(**words, epsilon=epsilon, delta=delta)
    # The way back looks for the best order once more, and stops up to 3.2e-9 above it (by a search of the worst point).
    assert vector_epsilon(**words, variance=found, delta=delta) <= epsilon * (1 + 1e-8)
    assert vector_epsilon(**words, variance=found * (1 - 1e-6), delta=delta) > epsilon * (1 - 1e-9)


def test_the_shares_are_paid_for():
    words = {"dimension": 1000, "sensitivity_2": 200.0, "variance": 1e6, "rounds": 10, "delta": 1e-5}
    alone = vector_epsilon(**words)
    total = vector_epsilon(**words, security_bits=36.0)
    lost = (1 + math.exp(total)) * 10 * 1000 * 2.0**-36
    assert alone < total
    assert total == pytest.approx(vector_epsilon(**{**words, "delta": 1e-5 - lost}), rel=1e-6)
    assert vector_epsilon(**words, security_bits=30.0) == math.inf
    assert least_variance(1000, 200.0, 10, 1.0, 1e-5, security_bits=30.0) == math.inf
    assert vector_epsilon(**words, security_bits=900.0) == pytest.approx(alone, rel=1e-9)


def test_the_least_1_norm_counts_where_noise_is_small():
    """The square of the 2-norm is 9, that of four coordinates at most 6."""
    for answer in (
        lambda dimension, norm_1=None: vector_epsilon(dimension, 3.0, 40.0, 2, 1e-5, norm_1),
        lambda dimension, norm_1=None: least_variance(dimension, 3.0, 2, 5.0, 1e-5, norm_1),
    ):
        assert answer(4, 5.0) < answer(4) == answer(4, 6.0) == answer(4, 8.0) < answer(100) == answer(100, 9.0)


@pytest.mark.parametrize("epsilon", [45.0, 49.0, 50.0, 51.0])
def test_a_narrow_valley_between_noise_and_shares_is_found(epsilon):
    """Delta of the sum is near 1 up to where the shares cost much: a dense scan finds no smaller epsilon."""
    words = {"dimension": 10, "sensitivity_2": 0.5, "sensitivity_1": 0.5, "rounds": 1, "security_bits": 80.0}
    variance = least_variance(**words, epsilon=epsilon, delta=0.5)
    found = vector_epsilon(**words, variance=variance, delta=0.5)
    assert found <= epsilon * (1 + 1e-9)
    curve = skellam._curve(0.5, variance, 0.25)

    def total(at):
        return math.exp(curve_log_delta(curve, 1, at)) + (1 + math.exp(at)) * 10 * 2.0**-80

    assert total(found) <= 0.5 * (1 + 1e-9)
    assert min(total(at) for at in np.linspace(0, found * (1 - 1e-6), 200)) > 0.5


def test_rounding_by_enumeration():
    """All ways to round six numbers: no more of them are too long than the chance that is given."""
    for beta in (0.9, 0.3, 0.01):
        for row in ([0.5] * 6, [1.9, 0.2, 0.4, 2.5, 0.01, 0.75]):
            norm, chances = math.hypot(*row), [one % 1 for one in row]
            limit, beyond = rounded_norm(6, norm, beta), 0.0
            for ups in product((0, 1), repeat=6):
                length = math.hypot(*(math.floor(one) + up for one, up in zip(row, ups, strict=True)))
                weight = math.prod(chance if up else 1 - chance for chance, up in zip(chances, ups, strict=True))
                beyond += weight * (length > limit)
            assert beyond <= beta
    for dimension, norm, beta in ((6, 1.5, 0.01), (50, 40.0, 0.3), (50, 40.0, 1e-9), (50, 40.0, 0.0)):
        root, c = mp.sqrt(dimension), mpf(norm)
        ways = [c + root]
        ways += [mp.sqrt(c**2 + root**2 / 4 + mp.sqrt(-2 * mp.log(beta)) * (c + root / 2))] if beta else []
        assert min(ways) <= rounded_norm(dimension, norm, beta) <= min(ways) * (1 + 1e-11)


# --- exact ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [1e-3, 4.0, 30.0, 3e3])
def test_what_is_not_listed_is_as_rare_as_it_says(variance):
    """Masses beyond the list fall faster than the last two that are summed."""
    noise, mu = skellam_noise(variance), mpf(variance)
    first, second = (mp.exp(-mu) * besseli(len(noise.logs) + i, mu) for i in (0, 1))
    assert 2 * first / (1 - second / first) <= mp.exp(noise.log_lost)
    noise = discrete_gaussian_noise(math.sqrt(variance))
    first, second = (mp.exp(-(mpf(len(noise.logs) + i) ** 2) / (2 * mu)) for i in (0, 1))
    assert 2 * first / (1 - second / first) <= mp.exp(noise.log_lost) * max(1, math.sqrt(variance))


@pytest.mark.parametrize(("noise", "shift"), [(skellam_noise(1e-3), 67), (discrete_gaussian_noise(0.5), 2)])
def test_losses_beyond_the_largest_exponential_keep_their_mass(noise, shift):
    cells = noise.cells(shift)
    assert max(cells.high[:-1]) > 700
    assert float(cells.base.sum() + cells.gain.sum()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("variance", LAWS)
def test_what_composition_sees_outright(variance):
    """After the shift, noise beyond the list of the other law: all of it has an infinite loss."""
    noise = skellam_noise(variance)
    shift = (len(noise.logs) - 1) // 2
    first = len(noise.logs) - shift
    truth = mp.fsum(mp.exp(-mpf(variance)) * besseli(x, mpf(variance)) for x in range(first, first + 60))
    assert truth <= noise.cells(shift).gain[-1] * (1 + 1e-9) <= truth * (1 + 1e-8) + 2e-86


@pytest.mark.parametrize(("variance", "shift"), [(1.0, 200), (49.0, 400)])
def test_shifts_beyond_the_list(variance, shift):
    """Where noise is likely after the shift the other law has no listed mass: by many digits, and Gaussian ones."""

    @cache
    def bessel(x):
        return mp.log(besseli(x, mpf(variance)))

    spread = 2 * mpf(variance)
    for noise, log_mass in (
        (skellam_noise(variance), bessel),
        (discrete_gaussian_noise(math.sqrt(variance)), lambda x: -(mpf(x) ** 2) / spread),
    ):
        near = range(int(8 * variance**0.5) + 12)
        total = mp.fsum(mp.exp(log_mass(x)) * (2 if x else 1) for x in near)
        for target in (1e-6, 0.1):
            epsilon, delta = float(shift_budget(noise, shift, delta=target)), mpf(0)
            for x in near:
                for sign in (1, -1) if x else (1,):
                    ahead = mp.exp(log_mass(x)) - mp.exp(epsilon + log_mass(shift + sign * x))
                    delta += max(ahead, mpf(0)) / total
            assert 1e-9 < delta <= target * (1 + 1e-6)
    with pytest.raises(DomainError, match="variance"):
        skellam_noise(1e-310)


@pytest.mark.parametrize("variance", LAWS)
def test_delta_of_a_shift_is_exact(variance):
    for shift in (1, 2, 5):
        for epsilon in (0.0, 0.3, 2.0):
            one, two = (float(side) for side in hockey_stick(LAWS[variance], shift, epsilon))
            found = shift_budget(skellam_noise(variance), shift, epsilon=epsilon)
            assert one == pytest.approx(two, rel=1e-12)
            assert one * (1 - 1e-13) - 1e-50 <= found <= one * (1 + 1e-9) + 1e-12
        epsilon = shift_budget(skellam_noise(variance), shift, delta=1e-5)
        assert shift_budget(skellam_noise(variance), shift, epsilon=float(epsilon)) <= 1e-5
        bound = curve_epsilon(skellam._curve(float(shift), variance, float(shift)), 1, 1e-5)
        assert epsilon <= bound


@pytest.mark.parametrize("noise_std", [0.3, math.sqrt(0.3)])
def test_a_ratio_that_round_off_takes_for_epsilon_is_not_lost(noise_std):
    """The next larger one may come with next to no chance."""
    law, size = discrete_gaussian_noise(noise_std), mpf(noise_std)
    with mp.workdps(60):
        masses = [mp.exp(-((x / size) ** 2) / 2) for x in range(80)]
        total = 2 * mp.fsum(masses) - masses[0]
        for shift, x in product((1, 3, 6), range(4, 25)):
            ratio = float((2 * x - shift) * shift / size**2 / 2)
            for epsilon in (ratio, math.nextafter(ratio, 0)) if ratio < 600 else ():
                growth = mp.exp(epsilon)
                gains = (masses[abs(y - shift)] - growth * masses[abs(y)] for y in range(-40, 70))
                truth = mp.fsum(max(gain, mpf(0)) for gain in gains) / total
                assert shift_budget(law, shift, epsilon=epsilon) >= truth or truth < 1e-250


def test_composition_lies_between_its_bounds():
    """A change of 1 in each of 16 counters, published four times: exact below Rényi, close to Gaussian noise."""
    cells = skellam_noise(200.0).cells(1)
    found = composed([(cells, 64)], delta=1e-6)
    assert composed_below([(cells, 64)], delta=1e-6) <= found <= vector_epsilon(16, 4.0, 200.0, 4, 1e-6)
    assert found == pytest.approx(gaussian_mechanism(8.0, math.sqrt(200.0), delta=1e-6), rel=0.02)
