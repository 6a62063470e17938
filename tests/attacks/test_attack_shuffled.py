"""The same searches for the worst data set of binary response, Gaussian noise, tables and closed forms.

See ``test_attack_shuffling.py`` for the variables that make them longer.
"""

import itertools
import math
import zlib
from fractions import Fraction

import numpy as np
import pytest
from attacks.boxes import hunt
from attacks.test_attack_shuffling import ELSEWHERE, Axis, beyond, log, many, whole
from mpmath import mp, mpf
from oracles import closed_form as printed
from oracles import shuffling as slow
from oracles import tables as worlds
from oracles.gaussian import TwoUsers

from flamelib.accounting.shuffling import exact_binary, gaussian_sums, tables
from flamelib.accounting.shuffling.brackets import locally
from flamelib.accounting.shuffling.calibration import least_blanket_mass
from flamelib.accounting.shuffling.closed_form import bennett_curve, hoeffding_curve, kary_epsilon0
from flamelib.accounting.shuffling.gaussian_sums import GaussianLaw
from flamelib.core.profiles import AnyProfile, KaryProfile, LaplaceProfile, TableProfile

ATTACKS = {}


def attack(*axes, tries):
    def kept(miss):
        ATTACKS[miss.__name__] = (miss, list(axes), tries)
        return miss

    return kept


# --- binary response: the worst data set ---------------------------------------------------------------


def of_bits(epsilon0, n, epsilon):
    """The largest divergence over all counts of ones, in doubles, and what it may be off."""
    return mpf(float(slow.binary_all(epsilon0, n, epsilon).max())), 2e-12 / min(epsilon0, 1.0)


@attack(log(1e-4, 12.0), many(2, 60), Axis(0.0, 0.98), tries=18)
def every_count(epsilon0, n, share):
    """Few users: every number of ones is tried; the truth in whole numbers."""
    ratios = worlds.power(epsilon0), worlds.power(share * epsilon0)
    truth = max(itertools.chain(*slow.binary_in_whole_numbers(*ratios, int(n))))
    with mp.workdps(40):
        return beyond(mpf(truth.numerator) / truth.denominator, exact_binary.worst(epsilon0, int(n), share * epsilon0))


@attack(log(0.05, 8.0), many(110, 400), log(1e-4, 4.0), tries=12)
def stretches(epsilon0, n, deviations):
    """More: stretches of numbers of ones are ruled out by bounds (here from sixty users on)."""
    n, kept = int(n), exact_binary.MAX_EXHAUSTIVE
    epsilon = min(deviations * epsilon0 * math.exp(epsilon0 / 2) / math.sqrt(n), 0.95 * epsilon0)
    truth, blur = of_bits(epsilon0, n, epsilon)
    exact_binary.MAX_EXHAUSTIVE = 60
    try:
        found = exact_binary.worst(epsilon0, n, epsilon)
    finally:
        exact_binary.MAX_EXHAUSTIVE = kept
    return beyond(truth, found, blur)


@attack(log(0.05, 8.0), many(110, 400), log(1e-4, 4.0), tries=12)
def dropped_users(epsilon0, n, deviations):
    """The quick ceiling: users are dropped (here in sixteenths)."""
    n, kept = int(n), exact_binary.N_COVER
    epsilon = min(deviations * epsilon0 * math.exp(epsilon0 / 2) / math.sqrt(n), 0.95 * epsilon0)
    truth, blur = of_bits(epsilon0, n, epsilon)
    exact_binary.N_COVER = 16
    try:
        high = exact_binary.ceiling(epsilon0, n, epsilon)
    finally:
        exact_binary.N_COVER = kept
    return float(mp.log(truth)) - high - blur


# --- Gaussian noise --------------------------------------------------------------------------------------


@attack(Axis(0.35, 6.0), Axis(0.01, 2.5), whole(0, 1), tries=9)
def gaussian_two_users(noise_std, deviations, blanket):
    """Sums on two lattices, against quadrature."""
    epsilon = deviations / noise_std
    with mp.workdps(20):
        truth = TwoUsers(noise_std, epsilon, bool(blanket)).delta()
    if not truth > 1e-6:
        return ELSEWHERE
    found = gaussian_sums.bracket(GaussianLaw(noise_std, epsilon, bool(blanket)), 2)
    return beyond(truth, found, 1e-14 / float(truth) + 1e-12)


@attack(log(0.08, 100.0), Axis(-1.0, 6.0), tries=100)
def gaussian_one_message(noise_std, deviations):
    """One message alone, which no number of users exceeds: in closed form."""
    epsilon, s = max(1 / (2 * noise_std**2) + deviations / noise_std, 0.0), mpf(noise_std)
    with mp.workdps(40):
        low, up = mpf(epsilon) * s - 1 / (2 * s), mpf(epsilon) * s + 1 / (2 * s)
        truth = mp.ncdf(-low) - mp.exp(mpf(epsilon)) * mp.ncdf(-up)
        return float(mp.log(truth) - gaussian_sums._unshuffled(GaussianLaw(noise_std, epsilon, True)))


# --- tables, every pair ---------------------------------------------------------------------------------


def table_of(loud, skew, tilt, values):
    """A table that some numbers make, of so many values and three messages."""
    rng = np.random.default_rng(int(1e6 * skew))
    rows = rng.dirichlet(np.full(3, 0.3 + 3 * tilt), int(values))
    rows = (1 - loud) / 3 + loud * rows
    return TableProfile(tuple(tuple(row) for row in (rows / rows.sum(axis=1, keepdims=True)).tolist()))


@attack(Axis(0.01, 0.95), Axis(0.0, 1.0), Axis(0.0, 1.0), whole(2, 5), many(2, 8), Axis(0.0, 0.95), tries=25)
def pairs_passed_over(loud, skew, tilt, values, n, share):
    """The blanket's divergence of every ordered pair, by enumeration; those that are passed over included."""
    randomizer = table_of(loud, skew, tilt, values)
    n, epsilon = int(n), share * randomizer.epsilon0
    rows = [[mpf(entry) / mp.fsum(map(mpf, row)) for entry in row] for row in randomizer.table]
    floor = [min(column) for column in zip(*rows, strict=True)]
    mass, e, truth = mp.fsum(floor), mp.exp(mpf(epsilon)), mpf(0)
    for one, other in itertools.permutations(rows, 2):
        values_ = [mass * (p - e * q) / f for p, q, f in zip(one, other, floor, strict=True)]
        truth = max(truth, slow.positive_part([*values_, mpf(0)], [*floor, 1 - mass], n) / (mass * n))
    found = tables.table_divergence(randomizer, n, epsilon=epsilon)
    return float(truth - mpf(float(found))) / float(truth) if truth else 0.0


@attack(Axis(0.01, 0.95), Axis(0.0, 1.0), Axis(0.0, 1.0), whole(2, 3), many(2, 5), Axis(0.0, 0.95), tries=15)
def every_data_set(loud, skew, tilt, values, n, share):
    """Few users: the lower answer is that of all data sets, in whole numbers; the upper one is not below."""
    randomizer = table_of(loud, skew, tilt, values)
    n, epsilon = int(n), share * randomizer.epsilon0
    truth = worlds.worst(worlds.neighbours(worlds.normed(randomizer.table), n), epsilon)
    low, high = (way(randomizer, n, epsilon=epsilon) for way in (tables.table_lower, tables.table_divergence))
    return float(max(Fraction(low) - truth, truth - Fraction(high))) / float(truth) if truth else 0.0


# --- closed forms ------------------------------------------------------------------------------------------


def of_curve(kind, epsilon0, k, n, epsilon, curve, oracle):
    profile = {"kary": KaryProfile(epsilon0, k), "laplace": LaplaceProfile(epsilon0), "any": AnyProfile(epsilon0)}[kind]
    with mp.workdps(50):
        truth = oracle(kind, n, epsilon0, epsilon, k)
        return float(truth - mpf(curve(profile.loss_shape, n)(epsilon)))


@attack(log(1e-6, 20.0), many(2, 10**6), Axis(0.3, 12.0), log(1e-6, 0.999), whole(0, 2), tries=150)
def hoeffding(epsilon0, k, log_n, share, kind):
    """Formulas are rounded up."""
    kind, n = ("kary", "laplace", "any")[int(kind)], max(round(10**log_n), 2)
    return of_curve(kind, epsilon0, int(k), n, share * epsilon0, hoeffding_curve, printed.log_hoeffding)


@attack(log(1e-6, 20.0), many(2, 10**6), Axis(0.3, 12.0), log(1e-6, 0.999), whole(0, 2), tries=150)
def bennett(epsilon0, k, log_n, share, kind):
    """The same of Bennett's."""
    kind, n = ("kary", "laplace", "any")[int(kind)], max(round(10**log_n), 2)
    return of_curve(kind, epsilon0, int(k), n, share * epsilon0, bennett_curve, printed.log_bennett)


@attack(log(1e-12, 60.0), Axis(0.0, 1.0), tries=150)
def local_bound(epsilon0, share):
    """Where the numerics do not reach: what the local budget alone gives."""
    epsilon = share * epsilon0
    with mp.workdps(60):
        e0, e = mpf(epsilon0), mpf(epsilon)
        if e >= e0:
            return ELSEWHERE
        return float(mp.log((mp.exp(e0) - mp.exp(e)) / (mp.exp(e0) + 1)) - mpf(locally(epsilon0)(epsilon).high))


@attack(many(2, 12), whole(2, 5), log(0.05, 2.0), log(1e-4, 0.3), tries=10)
def calibrated_mass(n, k, epsilon, delta):
    """The least mass keeps the budget it was asked for: by the blanket's enumeration."""
    n, k = int(n), int(k)
    mass = least_blanket_mass(n, k, epsilon, delta)
    truth = slow.kary_blanket(kary_epsilon0(k, mass), k, n, epsilon) if mass < 1 else mpf(0)
    return float(truth / mpf(delta) - 1) - 1e-15


@pytest.mark.parametrize("name", ATTACKS)
def test_no_point_is_found_on_the_wrong_side(name):
    miss, axes, tries = ATTACKS[name]
    worst = hunt(miss, axes, zlib.crc32(name.encode()), tries)
    assert worst.miss > ELSEWHERE, "the search never came to this branch"
    assert worst.miss <= 0, worst
