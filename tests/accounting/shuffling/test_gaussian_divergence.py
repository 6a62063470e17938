"""Certified brackets of shuffled Gaussian noise around the values of oracles that know no lattice.

Two users: one message is integrated in closed form (a difference of normal tails), the other by mpmath.  Many users:
an integral around a branch cut, itself held against two users and against a trapezoid sum along a vertical line.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from oracles import gaussian_branch_cut
from oracles.gaussian import TwoUsers
from oracles.shuffling import gaussian_at_least

from flamelib.accounting.shuffling.gaussian_sums import GaussianLaw, _representable, _Split, bracket
from flamelib.accounting.shuffling.numerical import all_equal, blanket_divergence
from flamelib.core.profiles import GaussianProfile


def around_the_cut(law, n_users):
    """The oracle's bracket, whose error is estimated."""
    return gaussian_branch_cut.bracket(
        gaussian_branch_cut.GaussianLaw(law.noise_std, law.epsilon, law.blanket, law.rate), n_users
    )


@pytest.mark.parametrize(("noise_std", "epsilon"), [(0.3, 3.0), (1.0, 0.5)])
@pytest.mark.parametrize(("rate", "blanket"), [(0.01, True), (0.3, False)])
def test_two_users_who_may_be_absent(noise_std, epsilon, rate, blanket):
    with mp.workdps(20):
        there = TwoUsers(noise_std, epsilon, blanket)
        alone = there.price(-there.mass * mp.expm1(epsilon))
        truth = float(mp.log(rate**2 * there.delta() + rate * (1 - rate) * alone))
    law = GaussianLaw(noise_std, epsilon, blanket, rate)
    found = bracket(law, 2)
    assert truth - 1e-4 < found.low <= truth <= found.high < truth + 1e-4
    assert around_the_cut(law, 2).high == pytest.approx(truth, abs=5e-11)
    assert truth <= math.log(rate) + bracket(GaussianLaw(noise_std, epsilon, blanket), 1).high


@pytest.mark.parametrize(("noise_std", "epsilon"), [(1.0, 4.0), (26.111, 0.09535), (25100.0, 2.7e-4)])
@pytest.mark.parametrize("blanket", [True, False])
def test_two_users(noise_std, epsilon, blanket):
    with mp.workdps(50):
        truth = float(mp.log(TwoUsers(noise_std, epsilon, blanket).delta()))
    found = bracket(GaussianLaw(noise_std, epsilon, blanket), 2)
    assert truth - 5e-2 < found.low <= truth <= found.high < truth + 1e-2
    if noise_std < 1000:  # beyond, the error that it states is a fifth
        assert around_the_cut(GaussianLaw(noise_std, epsilon, blanket), 2).high == pytest.approx(truth, abs=1e-8)


# (noise_std, epsilon, blanket, rate, users): heavy and light tails, absence rare and common, few and very many users, a
# delta from 0.9 down to 1e-284.
SETTINGS = [
    (1.0, 0.2, True, 1.0, 1000), (1.0, 2.0, False, 1.0, 1000), (0.3144, 0.0294, False, 1.0, 1000),
    (0.25, 33.0, True, 1.0, 10**5), (0.25, 61.8, False, 1.0, 10**5), (0.1784, 0.8177, False, 1.0, 640),
    (0.5, 41.8, True, 1.0, 10**5), (0.3144, 0.00056, False, 0.1025, 2_763_994_224),
    (1.27, 0.04, False, 0.0015, 10**10),
    (0.5, 0.0607, True, 0.0267, 64_379), (4.0, 0.1, True, 0.1, 1000), (76.6, 0.00255, True, 0.00164, 730),
    (49.4, 0.0028, True, 0.109, 9100), (2.1, 1.64, False, 1.0, 18), (0.7, 4.0, True, 1.0, 20),
    (58.0, 0.01, True, 1.0, 10), (10.0, 0.06, True, 1.0, 50), (5.2, 0.0054, False, 1.0, 650_000),
    (3e4, 1e-9, True, 1.0, 10**10), (1e6, 1e-9, True, 0.5, 10**6), (164.0, 1e-4, False, 0.008, 20),
    (1.8, 3.05, True, 1.0, 3), (35.59, 0.01426, False, 1.0, 265), (13.27, 0.001169, True, 0.125, 2251),
    (5.47, 0.0137, False, 1.0, 24_871), (39_620.0, 1.362e-7, True, 0.609, 2_158_518),
    (8.327, 2.8e-5, False, 0.985, 10**9), (5.816, 1.8e-6, True, 1.0, 10**10),
    (47.17, 1.7e-7, True, 1.0, 10**12), (22.62, 1e-7, False, 0.1, 10**12),
]  # fmt: skip


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_bracket_is_around_the_branch_cut(setting):
    law, n_users = GaussianLaw(*setting[:4]), setting[4]
    truth, found = around_the_cut(law, n_users), bracket(law, n_users)
    assert truth.high - truth.low < 1e-6
    assert truth.low - 3e-2 < found.low <= truth.high + 1e-9
    assert truth.low - 1e-9 <= found.high < truth.high + 2e-2
    coarse = bracket(law, n_users, 1e-2)  # most values share a cell of its lattice
    assert coarse.low <= truth.high + 1e-9
    assert coarse.high >= truth.low - 1e-9


def on_a_line(noise_std, n_users, epsilon, blanket, rate=1.0):
    mass = math.erfc(1 / (2 * math.sqrt(2) * noise_std)) if blanket else 1.0
    y, chances = _messages(noise_std, blanket, mass)
    lift = (1 - 2 * y) / (2 * noise_std**2)
    if blanket:
        losses = mass * (np.exp(np.maximum(lift, 0)) - math.exp(epsilon) * np.exp(np.maximum(-lift, 0)))
    else:
        losses = np.exp(lift) - math.exp(epsilon)
    losses = np.append(losses, -mass * math.expm1(epsilon))
    chances = np.append(rate * chances, (1 - rate) / mass)
    spread = math.sqrt(n_users * mass * float(chances @ losses**2))

    def cost(t):
        return n_users * math.log1p(mass * float(chances @ np.expm1(t * losses))) - 2 * math.log(t)

    t = min(np.geomspace(0.1, 40, 400) / spread, key=cost)
    step = min(2 * math.pi * t / 60, 0.05 / spread)
    line = t + 1j * step * np.arange(math.ceil(14 / spread / step))
    growth = np.array([mass * (chances @ np.expm1(s * losses)) for s in line])
    terms = (np.exp(n_users * np.log1p(growth)) / line**2).real
    return (terms.sum() - terms[0] / 2) * step / math.pi / (mass * n_users)


def _messages(noise_std, blanket, mass):
    """Nodes and weights of one message, in fifteen panels on either side of one half, up to eleven deviations."""
    x, w = np.polynomial.legendre.leggauss(24)
    edges = np.linspace(0, 11 * noise_std, 16)
    half = np.diff(edges)[:, None] / 2
    away, weights = ((edges[:-1, None] + half) + half * x).ravel(), (half * w).ravel()
    y = np.concatenate([0.5 - away, 0.5 + away])
    center = np.where(y > 0.5, 0.0, 1.0) if blanket else 1.0
    density = np.exp(-(((y - center) / noise_std) ** 2) / 2) / (noise_std * math.sqrt(2 * math.pi) * mass)
    return y, np.concatenate([weights, weights]) * density


@pytest.mark.parametrize(
    ("noise_std", "n_users", "epsilon"), [(2.0, 1000, 0.1), (5.0, 100, 0.2), (3.0, 10**5, 0.01), (50.0, 10**4, 5e-4)]
)
def test_many_users(noise_std, n_users, epsilon):
    profile = GaussianProfile(noise_std)
    blanket, equal = (on_a_line(noise_std, n_users, epsilon, reference) for reference in (True, False))
    assert blanket <= blanket_divergence(profile, n_users, epsilon=epsilon) < blanket * (1 + 3e-5)
    assert equal >= all_equal(profile, n_users, epsilon=epsilon) > equal * (1 - 3e-5)


@pytest.mark.parametrize(("noise_std", "n_users", "epsilon"), [(5.0, 100, 0.2), (3.0, 10**5, 0.01)])
@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_many_users_who_may_be_absent(noise_std, n_users, epsilon, rate):
    for blanket in (True, False):
        truth = on_a_line(noise_std, n_users, epsilon * math.sqrt(rate), blanket, rate)
        law = GaussianLaw(noise_std, epsilon * math.sqrt(rate), blanket, rate)
        found = bracket(law, n_users)
        assert truth * 0.95 < math.exp(found.low) <= truth * (1 + 1e-9)
        assert truth * (1 - 1e-9) <= math.exp(found.high) < truth * 1.02
        assert math.exp(around_the_cut(law, n_users).high) == pytest.approx(truth, rel=1e-9)


FAR_OUT = [
    (noise_std, (z + 1 / (2 * noise_std)) / noise_std)
    for noise_std in (0.08, 0.0962789, 0.2, 0.5, 3.0)
    for z in (10, 15, 25, 33)
]


@pytest.mark.parametrize(("noise_std", "epsilon"), FAR_OUT)
def test_one_message_far_out_is_the_gaussian_mechanism(noise_std, epsilon):
    """Large values of tiny chance are all that counts there: lost, the bound would be far below the truth."""
    with mp.workdps(40):
        half, gap = 1 / (2 * mp.mpf(noise_std)), mp.mpf(epsilon) * noise_std
        truth = float(mp.log(mp.ncdf(half - gap) - mp.exp(epsilon) * mp.ncdf(-half - gap)))
    for blanket in (True, False):
        # Not by the bound of one message alone, which would give the same.
        law = GaussianLaw(noise_std, epsilon, blanket)
        near = _representable(law)
        low, high = (_Split(near, 1, 1e-5).log_divergence(is_upper) for is_upper in (False, True))
        assert low <= truth or near != law  # at a smaller epsilon it is a bound from above alone
        assert high >= truth
        assert high - low < 1e-2 or truth < -600 or noise_std < 0.5


@pytest.mark.parametrize(("noise_std", "epsilon"), FAR_OUT)
@pytest.mark.parametrize(("n_users", "rate"), [(2, 1.0), (198, 0.1)])
def test_far_out_the_bound_is_not_below_what_one_large_value_gives(noise_std, epsilon, n_users, rate):
    least = gaussian_at_least(noise_std, n_users, epsilon, rate)
    for blanket in (True, False):
        found = bracket(GaussianLaw(noise_std, epsilon, blanket, rate), n_users)
        assert found.high >= least - 1e-6


@pytest.mark.parametrize("noise_std", [1e7, 1e9])
def test_noise_beyond_the_digits_of_doubles_is_answered_from_above(noise_std):
    """Total variation is in proportion to the inverse of the noise; doubles have lost it from about 1e9 on."""
    start = bracket(GaussianLaw(1e4, 0.0, True, 0.1), 10**6).low - 1e-4 - math.log(noise_std / 1e4)
    found = bracket(GaussianLaw(noise_std, 0.0, True, 0.1), 10**6)
    assert found.low == -math.inf
    assert start < found.high < math.log(0.1 / math.sqrt(2 * math.pi) / noise_std) + 1e-4
