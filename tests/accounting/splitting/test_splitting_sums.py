"""Noise in a released sum: laws against convolutions, delta against every set, plans against what they promise."""

import math

import numpy as np
import pytest
from mpmath import binomial, mp, mpf
from oracles.splitting import hockey_stick
from oracles.splitting import polya_sum as polya_masses
from oracles.splitting import thinned_sum as thinned_masses
from scipy.stats import nbinom

from flamelib.accounting.noise.discrete_laplace import truncated_laplace
from flamelib.accounting.noise.sum_laws import PolyaNoise, ThinnedNoise, log_from
from flamelib.accounting.noise.sums import polya_sum, thinned_sum
from flamelib.accounting.splitting.lemmas import messages_needed
from flamelib.accounting.splitting.parameter_search import outside, recommended

SMALL = [(1, 0.4, 0.3, 60), (2, 0.5, 1.0, 70), (3, 0.4, 0.6, 60), (4, 0.3, 0.05, 45)]


# --- laws -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "p", "q", "reach"), SMALL)
def test_thinned_noise_is_a_convolution(n, p, q, reach):
    law, noise = thinned_masses(n, p, q, reach), ThinnedNoise(n, p, q)
    assert noise.log_lost == -math.inf
    assert noise.log_atom == pytest.approx(float(mp.log(law[0])), abs=noise.error(1))
    for x in (1, 2, 3, 7, 15):
        assert noise.log_mass(x) == pytest.approx(float(mp.log(law[x])), abs=noise.error(x))
        above = mp.fsum(mass for y, mass in law.items() if y >= x)
        assert noise.log_above(x) == pytest.approx(float(mp.log(above)), abs=noise.error(x))
        assert log_from(noise, -x) == pytest.approx(float(mp.log1p(-(above - law[x]))), abs=noise.error(x))
    assert math.exp(noise.log_mean) == pytest.approx(float(mp.fsum(abs(x) * mass for x, mass in law.items())))


def by_counts(n, p, q, x, most):
    """Mass at x, one number of summands after the other: their sums are finite sums of positive terms."""
    p, q, total = mpf(p), mpf(q), mpf(0)
    rho, each = p * p / (1 - p * p), (1 - p) / (1 + p)
    for j in range(1, most + 1):
        terms = (
            binomial(x, i) * binomial(j - 1, i + m) * binomial(j - 1 + m, m) * rho**m
            for i in range(j)
            for m in range(j - i)
        )
        total += binomial(n, j) * q**j * (1 - q) ** (n - j) * each**j * mp.fsum(terms)
    return total * p**x


@pytest.mark.parametrize(
    ("n", "k", "q", "most"), [(1000, 10**4, 1e-3, 14), (10**6, 10**7, 1e-7, 10), (12, 100, 1.0, 12)]
)
def test_round_off_on_fine_grids_is_bounded(n, k, q, most):
    noise = ThinnedNoise(n, math.exp(-0.9 / k), q)
    for x in (1, k // 2, 3 * k):
        truth = float(mp.log(by_counts(n, noise.decay, q, x, most)))
        assert noise.log_mass(x) == pytest.approx(truth, abs=noise.error(x))
    assert noise.error(3 * k) < 1e-10


@pytest.mark.parametrize(("n", "planned", "p"), [(1, 3, 0.5), (2, 3, 0.8), (1, 50, 0.7), (99, 100, 0.8), (3, 3, 0.6)])
def test_polya_noise_is_its_series(n, planned, p):
    law, noise = polya_masses(mpf(n) / planned, p, 400), PolyaNoise(n, planned, p)
    assert noise.log_atom == pytest.approx(float(mp.log(law[0])), abs=noise.error(1))
    for x in (1, 2, 5, 40):
        assert noise.log_mass(x) == pytest.approx(float(mp.log(law[x])), abs=noise.error(x))
        above = mp.fsum(law[y] for y in range(x, 200))
        assert noise.log_above(x) == pytest.approx(float(mp.log(above)), abs=noise.error(x))


# --- delta ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "p", "q", "reach"), [*SMALL[1:], (2, 0.7, 0.5, 110)])
def test_delta_is_that_of_the_best_set(n, p, q, reach):
    """Both directions are the same, larger shifts are worse, and the answer is the last one of them."""
    law = thinned_masses(n, p, q, reach)
    for epsilon in (0.0, 0.4, 2.5):
        before = mpf(0)
        for shift in (1, 2, 6):
            one, two = hockey_stick(law, shift, epsilon)
            assert one == pytest.approx(two, abs=1e-18)
            assert one >= before - mpf("1e-18")
            before = one
            found = thinned_sum(n, shift, p, q, epsilon=epsilon) if n > 1 else None
            assert float(one) * (1 - 1e-12) - 1e-17 <= found <= float(one) * (1 + 1e-9) + 1e-12
            assert found - float(one) <= 2 * found.uncertainty + 1e-17


def test_an_outcome_whose_ratio_round_off_takes_for_epsilon_is_not_lost():
    n, p, q, shift = 6, 0.8, 0.2, 4
    with mp.workdps(40):
        law = thinned_masses(n, p, q, 100)
        ratio = mp.log(law[0] / law[shift])
        epsilon = float(ratio) if float(ratio) < ratio else math.nextafter(float(ratio), 0)
        least = law[0] - mp.exp(epsilon) * law[shift]
        assert 1e-17 < least <= thinned_sum(n, shift, p, q, epsilon=epsilon)


@pytest.mark.parametrize(("n", "planned", "p"), [(1, 3, 0.5), (2, 3, 0.8), (3, 4, 0.3), (3, 3, 0.6), (4, 3, 0.6)])
def test_delta_of_polya_shares(n, planned, p):
    half = polya_masses(mpf(min(n, planned)) / planned, p, 400)
    law = {sign * x: mass for x, mass in half.items() for sign in (1, -1)}
    for shift in (1, 6):
        for epsilon in (0.0, 0.3, 1.0, 3.0):
            truth = float(hockey_stick(law, shift, epsilon)[0])
            found = polya_sum(4, shift, p, epsilon=epsilon, colluding=4 - planned, missing=4 - n)
            assert truth * (1 - 1e-12) - 1e-15 <= found <= truth + 1e-9
        pure = float(mp.log(half[0] / half[shift]))
        found = polya_sum(4, shift, p, delta=0, colluding=4 - planned, missing=4 - n)
        assert pure <= found * (1 + 1e-12)
        assert found == pytest.approx(max(pure, -shift * math.log(p)), rel=1e-9)


def short_of_shares(shares, p, shift, epsilon):
    """Delta by brute force: negative binomial masses, their correlation, and the positive part at every place."""
    reach = math.ceil(45 / -math.log(p)) + shift
    mass = (1 - p) ** shares * np.cumprod(np.append(1.0, p * (shares + np.arange(reach - 1)) / np.arange(1, reach)))
    law = np.correlate(mass, mass, "full")
    still = np.append(np.zeros(shift), law)
    return float(np.maximum(np.append(law, np.zeros(shift)) - math.exp(epsilon) * still, 0).sum())


@pytest.mark.parametrize(
    ("planned", "left", "p", "shift"),
    [(2, 1, 0.97, 5), (1000, 500, 0.99, 100), (900, 800, 0.997, 300), (50, 1, 0.9, 2)],
)
def test_delta_short_of_shares_is_tight_near_the_largest_loss(planned, left, p, shift):
    """Where the best set is bounded: from above and from below, and the inverse likewise."""
    given_ = {"n_users": planned, "scale": shift, "decay": p, "missing": planned - left}
    least, most = -shift * math.log(p), float(polya_sum(**given_, delta=0.0))
    for epsilon in (0.9 * least, *(least + part * (most - least) for part in (0.0, 0.02, 0.5, 0.99))):
        truth, found = short_of_shares(left / planned, p, shift, epsilon), polya_sum(**given_, epsilon=epsilon)
        assert truth * (1 - 1e-9) <= found <= truth * (1 + 1e-6)
        assert found - truth <= 2 * found.uncertainty + 1e-12 * truth
        back = polya_sum(**given_, delta=truth)
        assert epsilon * (1 - 1e-9) <= back <= epsilon * (1 + 1e-6)
        assert back - epsilon <= 2 * back.uncertainty + 1e-9
    assert polya_sum(**given_, epsilon=most * (1 + 1e-9)) == 0


def test_noise_that_is_cut_off_at_the_modulus():
    """Three users, everybody with truncated noise: the law on the circle itself is enumerated."""
    modulus, p, shift = 61, 0.5, 2
    one = [truncated_laplace(modulus, p, x).pmf for x in range(-30, 31)]
    law = {0: 1.0}
    for _ in range(3):
        law = {
            x: math.fsum(law.get((x - y) % modulus, 0.0) * one[y + 30] for y in range(-30, 31)) for x in range(modulus)
        }
    for epsilon in (0.0, 0.5, 1.0):
        truth = math.fsum(max(law[(x - shift) % modulus] - math.exp(epsilon) * law[x], 0) for x in range(modulus))
        free = thinned_sum(3, shift, p, 1.0, epsilon=epsilon)
        found = thinned_sum(3, shift, p, 1.0, epsilon=epsilon, modulus=modulus)
        assert truth <= found
        assert free <= found <= free + (1 + math.exp(epsilon)) * 4 * 0.5**31 * 1.01
    assert thinned_sum(3, 2, 0.5, 1.0, delta=1e-3, modulus=61) >= thinned_sum(3, 2, 0.5, 1.0, delta=1e-3)
    assert thinned_sum(3, 2, 0.5, 1.0, delta=1e-30, modulus=61) == math.inf
    assert thinned_sum(3, 2, 0.5, 1.0, delta=0.0, modulus=61) == math.inf  # sums at one end are told apart for sure


@pytest.mark.parametrize(("p", "q", "modulus", "colluding"), [(0.9, 0.3, 101, 0), (0.6, 1.0, 21, 2), (0.1, 0.8, 7, 1)])
def test_what_cutting_off_costs(p, q, modulus, colluding):
    """Every honest user's chance of noise beyond the end, by its masses, counts once on either side."""
    rule = {"n_users": 5, "scale": 3, "decay": p, "noise_rate": q, "colluding": colluding}
    beyond = mp.fsum((1 - mpf(p)) / (1 + mpf(p)) * mpf(p) ** j for j in range((modulus + 1) // 2, 2000))
    cut = float((5 - colluding) * mpf(q) * 2 * beyond)
    for epsilon in (0.0, 0.2, 2.0, -3 * math.log(p) + 5):
        found = thinned_sum(**rule, epsilon=epsilon, modulus=modulus)
        below = np.linspace(0, epsilon, 101)
        costs = [thinned_sum(**rule, epsilon=at) + (1 + math.exp(at)) * cut for at in below]
        assert min(*costs, 1.0) * (1 - 3e-2) <= found <= min(*costs, 1.0) * (1 + 1e-12)
    epsilon = thinned_sum(**rule, delta=0.5, modulus=modulus)
    assert epsilon == math.inf or thinned_sum(**rule, epsilon=float(epsilon), modulus=modulus) <= 0.5


@pytest.mark.parametrize(("n", "planned", "missing", "p", "shift"), [(9, 2, 2, 0.3, 2), (20, 3, 1, 0.9, 10)])
def test_surplus_shares_count_in_whole_numbers(n, planned, missing, p, shift):
    surplus = (n - missing) / planned
    for epsilon in (0.0, 1.0, 2.0):
        found = polya_sum(n, shift, p, epsilon=epsilon, colluding=n - planned, missing=missing)
        less, all_there = (short_of_shares(shares, p, shift, epsilon) for shares in (math.floor(surplus), surplus))
        assert all_there * (1 - 1e-9) - 1e-13 <= found == pytest.approx(less, rel=1e-8, abs=1e-13)
    assert polya_sum(10**6, 5, 0.99, epsilon=0.01, colluding=10**6 - 2) > 0  # beyond 512 times the rest is not counted


# --- chosen noise -----------------------------------------------------------------------------------------


def test_the_recommended_plan_keeps_its_word():
    plan = recommended(1000, 1.0, 1e-9, 42.0, colluding=100)
    assert polya_sum(1000, plan.scale, plan.decay, delta=0, colluding=100, missing=100) <= 1 + 1e-12
    assert plan.modulus == 1000 * plan.scale + 2 * plan.reach + 1
    assert outside(ThinnedNoise(2, plan.decay, 1.0), plan.reach) <= 1e-9
    assert outside(ThinnedNoise(2, plan.decay, 1.0), plan.reach - 1) > 1e-9
    p = plan.decay
    alone = recommended(1000, 1.0, 1e-9, 42.0)
    assert 2 * p ** (alone.reach + 1) / (1 + p) <= 1e-9 < 2 * p**alone.reach / (1 + p)
    assert alone.reach <= math.ceil(32 * math.log(2e9))
    assert alone.bits == alone.n_messages * (alone.modulus - 1).bit_length()
    assert recommended(100, 0.05, 1e-9, 42.0).scale == 1


def test_the_recommended_plan_counts_on_honest_users_only():
    """A hundred of a thousand: more messages, and the noise of all shares, ten times those needed."""
    plan = recommended(1000, 1.0, 1e-9, 42.0, colluding=900)
    assert plan.n_messages == messages_needed(42.0, 100, math.log2(plan.modulus))
    assert plan.n_messages > messages_needed(42.0, 1000, math.log2(plan.modulus))
    mass = nbinom.pmf(np.arange(2000), 10.0, 1 - plan.decay)
    law = np.correlate(mass, mass, "full")
    error = float(np.abs(np.arange(-1999, 2000)) @ law) / plan.scale
    assert error <= plan.noise_error <= 1.05 * error
