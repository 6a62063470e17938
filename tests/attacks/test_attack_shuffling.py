"""Searches for the worst point of every branch of the shuffling numerics: none of them ends on the wrong side.

``FLAMELIB_ATTACK_TRIES=50 pytest tests/attacks/test_attack_shuffling.py`` makes each search fifty times as long (some
minutes each), and ``FLAMELIB_ATTACK_SEED=7`` makes it another one.  A miss is how far the truth lies beyond an end of
the bracket, in units of the bracket's width: at most 0 where all is well, and about -1/2 in the middle.
"""

import math
import zlib
from dataclasses import replace

import numpy as np
import pytest
from attacks.boxes import Axis, hunt
from mpmath import mp, mpf
from oracles import shuffling as slow
from oracles.steps import at_zero, of_laplace, of_values, on_a_line, positive_part

from flamelib.accounting.shuffling import bromwich, laws
from flamelib.accounting.shuffling.any_randomizer import clone_blanket
from flamelib.accounting.shuffling.brackets import of_law
from flamelib.accounting.shuffling.discrete import KaryAnalysis, kary_blanket, kary_others
from flamelib.accounting.shuffling.laplace import LaplaceLaw
from flamelib.core.profiles import KaryProfile, LaplaceProfile

ELSEWHERE = -math.inf  # another branch answers at this point
BLUR = 2e-16  # relative error of a truth in extended doubles


# --- sums of few values ------------------------------------------------------------------------------


class Ways:
    """Which way the inversion answers, while it is entered."""

    def __init__(self, negligible=bromwich.RTOL_OMITTED):
        self.names, self.negligible = [], negligible

    def told(self, name, way):
        def asked(*given):
            found = way(*given)
            if found is not None:
                self.names.append(name(found) if callable(name) else name)
            return found

        return asked

    def last(self):
        # The lattice is asked by the early stop.
        return "lattice" if "lattice" in self.names else (self.names or ["none"])[-1]

    def __enter__(self):
        line, self.kept = bromwich._Contour, [(bromwich, "RTOL_OMITTED", bromwich.RTOL_OMITTED)]
        bromwich.RTOL_OMITTED = self.negligible
        names = {"_early": "early", "_late": lambda plan: "late" if plan.noise else "fade", "_lattice": "lattice"}
        for place, ways in ((bromwich, {"_enumerated": "enumerated", "_rare_multisets": "seldom"}), (line, names)):
            for attribute, name in ways.items():
                self.kept.append((place, attribute, getattr(place, attribute)))
                setattr(place, attribute, self.told(name, getattr(place, attribute)))
        return self

    def __exit__(self, *_):
        for place, attribute, way in self.kept:
            setattr(place, attribute, way)


def missed(way, law, n_users, truth, cut=None, blur=BLUR):
    """How far outside the truth lies in widths, where this way answers; ``cut`` is the logarithm of what is negligible.

    What is left out is a billionth of the answer.  Where it may be a hundredth, its bound has to be right.
    """
    with Ways(10**cut if cut else bromwich.RTOL_OMITTED) as ways:
        bracket = bromwich.bracket(law, n_users)
    if ways.last() != way:
        return ELSEWHERE
    found = truth()
    return ELSEWHERE if found is None else beyond(found, bracket, blur)


def beyond(truth, bracket, blur=BLUR):
    """How far the truth lies outside, in widths; what the truth itself may be off does not count."""
    log_truth = mp.log(truth) if truth > 0 else mpf("-inf")
    if bracket.high == -math.inf or log_truth == -math.inf:
        return 0.0 if bracket.high == log_truth else math.inf * float(mp.sign(log_truth - bracket.high))
    over, under = float(log_truth - bracket.high), float(bracket.low - log_truth)
    return max(over - blur, under - blur) / min(max(bracket.high - bracket.low, blur), 1.0)


def of_kary(epsilon0, k, n, epsilon):
    """The blanket's law and its truth."""

    def truth():
        values, chances, mass = slow.kary_blanket_atoms(epsilon0, k, epsilon)
        kept = [i for i, chance in enumerate(chances) if chance > 0]
        return positive_part([values[i] for i in kept], [chances[i] for i in kept], n) / (mass * n)

    return kary_blanket(KaryProfile(epsilon0, k), epsilon), n, truth


def of_clones(epsilon0, n, epsilon):
    """Two values of the same weight, and nobody's."""

    def truth():
        p, e = mp.exp(mpf(epsilon0)), mp.exp(mpf(epsilon))
        mass, half = 2 / (p + 1), (p + 1) / 2
        values, chances = [(p - e) / half, (1 - e * p) / half, mpf(0)], [mass / 2, mass / 2, 1 - mass]
        return positive_part(values, chances, n) / (mass * n)

    return clone_blanket(epsilon0, epsilon, 2 / (math.exp(epsilon0) + 1), math.tanh(epsilon0 / 2)), n, truth


def of_third(epsilon0, k, n, epsilon):
    """All others hold a third value."""

    def truth():
        p, e = mp.exp(mpf(epsilon0)), mp.exp(mpf(epsilon))
        low = 1 / (p + k - 1)
        values, chances = [p - e, 1 - e * p, 1 - e, (1 - e) / p], [low, low, (k - 3) * low, p * low]
        kept = [i for i, chance in enumerate(chances) if chance > 0]
        return positive_part([values[i] for i in kept], [chances[i] for i in kept], n) / n

    return kary_others(KaryProfile(epsilon0, k), epsilon, "third"), n, truth


def cancelling(epsilon0, n, gains, off):
    """An epsilon at which so many messages of one value, and the rest of a third one, make a sum of 0."""
    return math.log1p(min(gains, n - 1) * math.expm1(epsilon0) / n) * (1 + off * 2.0**-52)


ATTACKS = {}


def attack(*axes, tries):
    """Register a search: tries in the suite, and the box."""

    def kept(miss):
        ATTACKS[miss.__name__] = (miss, list(axes), tries)
        return miss

    return kept


CUT = Axis(-9.0, -1.5)
ON_A_LINE = 1e-10  # relative error of an inversion without noise, of which a line's revivals far out are no part


def log(low, high):
    return Axis(low, high, log=True)


def whole(low, high):
    return Axis(low, high, whole=True)


def many(low, high):
    return Axis(low, high, log=True, whole=True)


@attack(log(0.01, 6.0), Axis(0.4, 12.0), many(2, 40), whole(1, 6), whole(-4, 4), tries=60)
def enumerated(epsilon0, log_k, n, gains, off):
    """Sums over all counts; at an epsilon at which a likely combination cancels."""
    law = of_kary(epsilon0, round(10**log_k), int(n), cancelling(epsilon0, int(n), gains, off))
    return missed("enumerated", *law)


@attack(log(0.01, 6.0), Axis(-3.0, 0.3), Axis(2.0, 5.0), Axis(0.0, 0.99), whole(-4, 8), Axis(-6.0, -0.5), tries=80)
def seldom(epsilon0, log_mean, log_n, share, off, cut):
    """Sums over the counts of all values but the commonest; a few counts alone, so that what is left out matters."""
    n, kept = round(10**log_n), (bromwich.MAX_COMBINATIONS, bromwich.RTOL_OMITTED)
    k = max(round(n * (math.exp(epsilon0) + 1) / 10**log_mean), 3)
    epsilon = cancelling(epsilon0, n, round(share * 8), off) if off < 5 else share * epsilon0
    law, _, truth = of_kary(epsilon0, k, n, epsilon)
    bromwich.MAX_COMBINATIONS, bromwich.RTOL_OMITTED = 100, 10**cut
    bromwich._small_multisets.cache_clear()
    try:
        bracket = bromwich._rare_multisets(law, n)
    finally:
        bromwich.MAX_COMBINATIONS, bromwich.RTOL_OMITTED = kept
        bromwich._small_multisets.cache_clear()
    return beyond(truth(), bracket) if bracket else ELSEWHERE


@attack(log(1e-5, 11.0), Axis(-1.0, 3.3), Axis(1.5, 4.0), CUT, tries=120)
def lattice(epsilon0, log_mean, log_n, cut):
    """Epsilon 0, where all values are equal steps: n times the probability of a step from a tenth to thousands."""
    n = round(10**log_n)
    k = max(round(2 * n / 10**log_mean - math.expm1(epsilon0)), 2)
    law = kary_blanket(KaryProfile(epsilon0, k), 0.0)
    return missed("lattice", law, n, lambda: at_zero("kary", epsilon0, k, n), cut)


@attack(log(1e-6, 0.3), many(447, 4000), CUT, tries=20)
def lattice_of_two_values(epsilon0, n, cut):
    """The same without a third value: steps of nearly every user, so that every second sum hardly occurs."""
    return missed("lattice", *of_clones(epsilon0, int(n), 0.0)[:2], lambda: at_zero("any", epsilon0, 2, int(n)), cut)


def of_early(law, n, truth, cut):
    """The first sum alone, even where it is not close enough to be the answer."""
    line = bromwich._Contour(law, n)
    plan = None if line.spacing else line._early(10**cut * line.scale)
    found = plan and truth()
    return beyond(found, line._ends(line._sums(plan)), ON_A_LINE) if found else ELSEWHERE


@attack(log(0.1, 4.0), many(2, 40), Axis(6.0, 9.0), Axis(0.2, 4.0), Axis(-9.0, -0.3), tries=60)
def early(epsilon0, k, log_n, shift, cut):
    """The central limit has done its work near the foot; noise takes care of the rest of the line."""
    n = round(10**log_n)
    epsilon = near_the_middle(KaryProfile(epsilon0, int(k)), n, shift)
    law, _, _ = of_kary(epsilon0, int(k), n, epsilon)
    values, chances, mass = slow.kary_blanket_atoms(epsilon0, int(k), epsilon)

    def truth():
        spread = math.sqrt(float(mp.fsum(c * v * v for c, v in zip(chances, values, strict=True))))
        found = on_a_line(of_values(values, chances), n, spread, float(values[0]), float(chances[3]))
        return found and found / (mass * n)

    return of_early(law, n, truth, cut)


@attack(Axis(0.5, 9.0), many(447, 20_000), log(1e-3, 0.95), CUT, tries=12)
def late(epsilon0, n, share, cut):
    """Noise alone makes the line end; its price is taken from the low end."""
    return missed("late", *of_clones(epsilon0, int(n), share * epsilon0), cut)


@attack(Axis(0.5, 9.0), many(3, 500), many(90, 700), log(1e-3, 0.95), CUT, tries=12)
def late_of_others(epsilon0, k, n, share, cut):
    """The same where all others hold a third value."""
    return missed("late", *of_third(epsilon0, int(k), int(n), share * epsilon0), cut)


def of_noise(epsilon0, n, epsilon, center=0.5):
    """Laplace noise against the blanket, or against a user elsewhere."""
    mass = math.exp(-epsilon0 / 2) if center == 0.5 else 1.0
    law = LaplaceLaw(epsilon0, epsilon, center, mass)

    def truth():
        values, weights = law.points
        spread = math.sqrt(mass * float(weights @ values**2))
        found = on_a_line(of_laplace(epsilon0, epsilon, center, mass), n, spread, float(values.max()), 1 - mass)
        return found and found / (mass * n)

    return law, n, truth


@attack(log(0.2, 4.0), Axis(6.0, 9.0), Axis(0.2, 4.0), Axis(-9.0, -0.3), tries=20)
def early_of_noise(epsilon0, log_n, shift, cut):
    """The same for Laplace noise, near the foot of the line where its points stand for the law."""
    n = round(10**log_n)
    return of_early(*of_noise(epsilon0, n, near_the_middle(LaplaceProfile(epsilon0), n, shift)), cut)


@attack(log(0.2, 5.0), many(12, 30_000), log(1e-3, 0.5), whole(0, 2), Axis(-9.0, -0.3), tries=25)
def fade(epsilon0, n, share, place, cut):
    """Laplace noise's own decay ends the line."""
    law = of_noise(epsilon0, int(n), share * epsilon0, (0.5, 1.0, 0.3)[int(place)])
    return missed("fade", *law, cut, 1e-15 * n)


@attack(log(0.3, 9.0), log(1e-3, 0.9), Axis(0.0, 1.0), Axis(-4.0, -1.5), tries=6)
def late_of_noise(epsilon0, share, center, cut):
    """Two users, of whom the law's own decay takes too long."""
    law, n, _ = of_noise(epsilon0, 2, share * epsilon0, center)
    return missed(
        "late", law, n, lambda: mpf(slow.laplace_two(epsilon0, share * epsilon0, center, law.mass)), cut, 1e-10
    )


@attack(log(0.2, 5.0), many(60, 3000), log(1e-3, 0.5), log(1.0, 3.0), tries=20)
def step(epsilon0, n, share, wide):
    """Steps that are too wide: copies of the sum, a period away, are no longer negligible."""
    law, n, truth = of_noise(epsilon0, int(n), share * epsilon0)
    line = bromwich._Contour(law, n)
    plan = line._late(1e-3 / line.t, 1e-9 * line.scale)
    return beyond(truth(), line._ends(line._sums(replace(plan, step=wide * plan.step))), 1e-15 * n)


@attack(log(0.2, 5.0), many(60, 3000), log(1e-3, 0.5), whole(5, 20), tries=6)
def slip(epsilon0, n, share, nodes):
    """A Gauss rule of fewer nodes, whose error is no longer negligible."""
    kept = laws.NODES, laws.WEIGHTS
    laws.NODES, laws.WEIGHTS = np.polynomial.legendre.leggauss(int(nodes))
    try:
        law, n, truth = of_noise(epsilon0, int(n), share * epsilon0)
        found = bromwich.bracket(law, n)
        exact = truth()
    finally:
        laws.NODES, laws.WEIGHTS = kept
    return ELSEWHERE if exact is None or found.low == -math.inf else beyond(exact, found, 1e-15 * n)


@attack(Axis(0.1, 9.0), many(447, 5000), log(1e-3, 0.95), log(0.05, 20.0), tries=25)
def exponential(epsilon0, n, share, off):
    """The exponential bound, at its best tilt and elsewhere."""
    law, n, truth = of_clones(epsilon0, int(n), share * epsilon0)
    bounds = bromwich.chernoff(law, n), bromwich.chernoff_at(law, n, off * bromwich.tilt(law, n))
    return float(mp.log(truth()) - min(bounds)) - BLUR


@attack(log(0.05, 5.0), many(2, 25), many(2, 12), Axis(0.02, 0.98), whole(0, 1), tries=25)
def brackets(epsilon0, k, n, share, upper):
    """Epsilon at a delta, from above and from below; and what is left of it when its uncertainty is taken off."""
    k, n, upper = int(k), int(n), bool(upper)
    delta = float(slow.kary_blanket(epsilon0, k, n, share * epsilon0))
    if not delta > 1e-12:
        return ELSEWHERE
    found = of_law(KaryAnalysis(KaryProfile(epsilon0, k)).blanket, n, epsilon0, None, delta, upper=upper)
    there, sign = slow.kary_blanket(epsilon0, k, n, float(found)), 1 if upper else -1
    miss = sign * float(there / mpf(delta) - 1)
    least = float(found) - sign * found.uncertainty
    if 0 < least < epsilon0:
        miss = max(miss, -sign * float(slow.kary_blanket(epsilon0, k, n, least) / mpf(delta) - 1))
    return miss


def near_the_middle(profile, n, shift):
    """An epsilon so many standard deviations of the sum away from its mean."""
    return math.log1p(shift * math.sqrt(2 * (profile.same - profile.cross) / (profile.mass * n)) * profile.mass)


@pytest.mark.parametrize("name", ATTACKS)
def test_no_point_is_found_on_the_wrong_side(name):
    miss, axes, tries = ATTACKS[name]
    worst = hunt(miss, axes, zlib.crc32(name.encode()), tries)
    assert worst.miss > ELSEWHERE, "the search never came to this branch"
    assert worst.miss <= 0, worst
