r"""Privacy profile of one round of shuffled check-in.

Each of n users joins a round independently with probability :math:`\gamma`; the messages of those who joined are
shuffled, and their number is public.  Rate 1 is plain shuffling.  One user's value x is replaced by x'; its
participation has the same distribution in both data sets.  Adjacency: replace-one.

*One sum.*  Another user who joins draws its message from the blanket :math:`\omega` with probability g.  With
:math:`r=\mu_x/\omega`, :math:`r'=\mu_{x'}/\omega` and :math:`\alpha=e^\varepsilon`,

.. math:: H_\alpha(P\Vert Q) \le \frac1n E\Big[\Big(\sum_{i=1}^n L_i\Big)_+\Big],\qquad L=\begin{cases}
    1-\alpha&\text{with }1-\gamma\\ 0&\text{with }\gamma(1-g)\\ (r-\alpha r')/g&\text{with }\gamma g:\end{cases}

the sum of plain shuffling with one more atom.  For any randomizer of budget :math:`\varepsilon_0` clones take the place
of the blanket.  If all other users hold x', equality holds with the blanket :math:`\mu_{x'}` and g = 1.

*Count by count.*  For binary response the supremum :math:`\delta_m` over the data sets of m users is known
(:mod:`flamelib.accounting.shuffling.exact_binary`), and

.. math:: H_\alpha(P\Vert Q) \le \sum_m \binom nm\gamma^m(1-\gamma)^{n-m}\,\tfrac mn\,
    \delta_m\big(\log(1+\tfrac nm(\alpha-1))\big),

evaluated in blocks of m and from chords, upper bounds with a relative error of about 0.01 in epsilon.

*Monotonicity.*  By post-processing (dropping messages at random, adding users with public values) profiles are
non-decreasing in the rate and non-increasing in the number of users.

Proofs: book, chapter on check-in, section on rounds without Rényi orders, for the two sums, the clones and the blocks.

Source: Balle, Bell, Gascon, Nissim 2019, Section 5, with users who may be absent; Balle, Barthe, Gaboardi 2018
(subsampling); Feldman, McMillan, Talwar 2021.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from flamelib.accounting.composition.dominating_pair import MIN_Q_MASS, DominatingPair
from flamelib.accounting.composition.privacy_profile import Delta, PrivacyProfile
from flamelib.accounting.shuffling import bromwich, exact_binary, gaussian_branch_cut
from flamelib.accounting.shuffling.brackets import LawAt, locally, within_reach
from flamelib.accounting.shuffling.laws import AtomicLaw, LaplaceLaw, LossLaw, blanket_law
from flamelib.accounting.shuffling.tables import histogram_error, histogram_laws
from flamelib.core import binomial
from flamelib.core.arrays import Complexes, Reals
from flamelib.core.logspace import above, probability
from flamelib.core.profiles import (
    AnyProfile,
    GaussianProfile,
    KaryProfile,
    LaplaceProfile,
    SupportProfile,
    TableProfile,
)

Pure = KaryProfile | SupportProfile | LaplaceProfile | AnyProfile
Analyzed = Pure | GaussianProfile

RTOL_VALUES = 1e-5  # relative error of the values of a profile
COARSE_DELTA = 1e-15  # delta below which blocks of counts are coarse
MAX_OUTCOMES = 8_000_000  # outcomes beyond which there is no lower bound
MAX_USERS = 10**9  # users beyond which there is no lower bound


def checkin_profile(epsilon0: float, n_users: int, checkin_rate: float) -> Delta:
    """Upper bound of the profiles of all pairs of neighbours under binary response, in both directions, count by count.

    Intended for a mean of at least some hundred participants; the rate lies in (0, 1).
    """
    blocks = list(_blocks(epsilon0, n_users, checkin_rate))

    def profile(epsilon: float) -> float:
        growth = math.expm1(epsilon)
        parts = (
            sum(mass * fraction * delta(math.log1p(growth / fraction)) for fraction, mass in endpoints)
            for endpoints, delta in blocks
        )
        return min((1 + 1e-9) * sum(parts), 1.0)  # round-off of the binomial probabilities

    return profile


def _blocks(epsilon0: float, n: int, rate: float) -> Iterator[tuple[list[tuple[float, float]], Delta]]:
    """Blocks of numbers m of messages: m / n and mass of both end points, and an upper bound of the block's profiles.

    The lowest block counts as unshuffled, all others by the worst data sets of their least m.
    """
    spread = math.sqrt(n * rate * (1 - rate))
    # First counts of blocks, in standard deviations from the mean.
    firsts = [1] + [min(max(math.ceil(n * rate + end * spread), 1), n) for end in (-9.0, -4.0, -2.0, 0.0, 2.0, 9.0)]
    for i, (first, last) in enumerate(zip(firsts, [*(first - 1 for first in firsts[1:]), n], strict=True)):
        if last >= first:
            delta = _chords(epsilon0, first) if i else _unshuffled(epsilon0, 1.0)
            yield list(zip((first / n, last / n), _endpoint_masses(n, rate, first, last), strict=True)), delta


def _endpoint_masses(n: int, rate: float, first: int, last: int) -> tuple[float, float]:
    """The binomial mass of ``first..last``, moved to its two end points with the same mean."""
    mass, moment = _mass(n, rate, first, last), n * rate * _mass(n - 1, rate, first - 1, last - 1)
    if first == last:
        return mass, 0.0
    upper_mass = min(max((moment - first * mass) / (last - first), 0.0), mass)
    return mass - upper_mass, upper_mass


def _mass(n: int, rate: float, first: int, last: int) -> float:
    if first > n * rate:
        return float(binomial.sf(first - 1, n, rate) - binomial.sf(last, n, rate))
    return float(binomial.cdf(last, n, rate) - binomial.cdf(first - 1, n, rate))


def _knot_step(epsilon0: float, n_users: float) -> float:
    """Distance of the knots of chords: a fraction of the width of the profile."""
    return 2 * math.sinh(epsilon0 / 2) / math.sqrt(n_users) / 6.0  # chords in the width of a profile


def _chords(epsilon0: float, n_users: int) -> Delta:
    """Worst data sets of plain shuffling, interpolated by chords, which lie above the convex profile."""
    step = min(_knot_step(epsilon0, n_users), epsilon0)

    @functools.cache
    def knot(i: int) -> float:
        return probability(exact_binary.ceiling(epsilon0, n_users, i * step))

    def delta(epsilon: float) -> float:
        i = math.floor(epsilon / step)
        weight = math.expm1(epsilon - i * step) / math.expm1(step)
        return (1 - weight) * knot(i) + weight * knot(i + 1) if epsilon < epsilon0 else 0.0

    return delta


@dataclass(frozen=True)
class _SubsampledLaw:
    """Mixture of the distribution ``law`` of L with weight ``rate`` and an atom at ``absent`` for absent users."""

    law: LossLaw
    rate: float
    absent: float

    @property
    def mass(self) -> float:
        return 1 - self.kept

    @property
    def kept(self) -> float:
        return self.rate * self.law.kept

    @property
    def present_mass(self) -> float:
        """Conditional probability of presence, given that L is not the atom at 0."""
        return self.rate * self.law.mass / self.mass

    @property
    def absent_mass(self) -> float:
        return (1 - self.rate) / self.mass

    @property
    def reach(self) -> float:
        return self.law.reach

    @functools.cached_property
    def points(self) -> tuple[Reals, Reals]:
        values, weights = self.law.points
        return np.append(values, self.absent), np.append(self.present_mass * weights, self.absent_mass)

    def transform(self, s: Complexes) -> Complexes:
        return np.asarray(self.present_mass * self.law.transform(s) + self.absent_mass * np.expm1(s * self.absent))

    def increment(self, t: float, y: Reals) -> Complexes:
        atom = AtomicLaw(np.array([self.absent]), np.array([self.absent_mass]), 1.0, 0.0)
        return np.asarray(self.present_mass * self.law.increment(t, y) + atom.increment(t, y))

    def decay(self, t: float) -> tuple[float, float]:
        atoms, smooth = self.law.decay(t)
        return self.present_mass * atoms + self.absent_mass * math.exp(t * self.absent), self.present_mass * smooth

    def quadrature_error(self, size: float) -> float:
        return self.present_mass * self.law.quadrature_error(size)


@functools.lru_cache(maxsize=8)
def round_curve(
    randomizer: Analyzed, n_users: int, checkin_rate: float = 1.0, error: float = RTOL_VALUES
) -> PrivacyProfile:
    """Upper bound of the profiles of all pairs of neighbours, in both directions.

    Binary response is bounded by its worst data sets, k-ary response and Laplace noise by their blankets, any other
    randomizer by clones.  At most ten billion users are counted.  The relative error of the values is about ``error``.
    """
    n_users, epsilon0 = min(n_users, 10**10), randomizer.epsilon0  # by monotonicity
    if isinstance(randomizer, GaussianProfile):
        return PrivacyProfile(functools.cache(_gaussian(randomizer.noise_std, n_users, checkin_rate)), error=error)
    if not within_reach(epsilon0):
        return PrivacyProfile(_unshuffled(epsilon0, checkin_rate), at_most=epsilon0)
    if isinstance(randomizer, KaryProfile) and randomizer.n_buckets == 2:
        profile = _minimum(*_binary(randomizer, n_users, checkin_rate, error))
        if checkin_rate < 1:
            other = _blanket_or_clones(randomizer, n_users, checkin_rate, error)
            profile = _second_if_small(profile, other) if error > RTOL_VALUES else _minimum_if_small(profile, other)
    else:
        profile = _blanket_or_clones(randomizer, n_users, checkin_rate, error)
    return PrivacyProfile(profile, at_most=epsilon0, error=error)


def _binary(randomizer: KaryProfile, n_users: int, rate: float, error: float) -> Iterator[Delta]:
    """By the worst data sets, at a larger rate where few join; also by the blanket where chords are coarse."""
    epsilon0 = randomizer.epsilon0
    # Least mean number of participants for the account count by count.
    larger_rate = max(rate, min(600 / n_users, 1.0))
    if larger_rate < 1:
        yield checkin_profile(epsilon0, n_users, larger_rate)
    else:
        yield lambda epsilon: probability(exact_binary.ceiling(epsilon0, n_users, epsilon))
    # Distance of chords from which the blanket is evaluated as well.
    if larger_rate > rate or (rate < 1 and _knot_step(epsilon0, n_users * rate) > 0.02):
        yield _blanket_or_clones(randomizer, n_users, rate, error)


def _second_if_small(first: Delta, second: Delta) -> Delta:
    """The second bound where it is below ``COARSE_DELTA``, else the smaller of both."""
    return functools.cache(
        lambda epsilon: delta if (delta := second(epsilon)) < COARSE_DELTA else min(delta, first(epsilon))
    )


def _minimum_if_small(first: Delta, second: Delta) -> Delta:
    """The smaller of two bounds, the second evaluated only where the first is at most ``COARSE_DELTA``."""
    return functools.cache(
        lambda epsilon: delta if (delta := first(epsilon)) > COARSE_DELTA else min(delta, second(epsilon))
    )


def _blanket_or_clones(randomizer: Pure, n_users: int, rate: float, error: float) -> Delta:
    """By the blanket or clones; where these are too few, at a larger rate, or without shuffling."""
    epsilon0, law = randomizer.epsilon0, blanket_law(randomizer)
    mass = law(0.0).mass
    # Least number of blanket messages: for Laplace noise or large budgets, and for the others.
    enough = 10.0 if isinstance(randomizer, LaplaceProfile) or epsilon0 > 8.0 else 1e-3 * mass
    raised = max(rate, min(enough / (n_users * mass), 1.0))
    bounds = [_blanket(law, n_users, raised, error)] if raised * n_users * mass >= enough * (1 - 1e-9) else []
    return _minimum(*bounds) if raised == rate and bounds else _minimum(*bounds, _unshuffled(epsilon0, rate))


def _minimum(*profiles: Delta) -> Delta:
    """Pointwise minimum of upper bounds."""
    return functools.cache(lambda epsilon: min(profile(epsilon) for profile in profiles))


def _unshuffled(epsilon0: float, rate: float) -> Delta:
    """The profile of an unshuffled message sent with probability ``rate``."""
    return lambda epsilon: min(above(rate * math.exp(locally(epsilon0)(epsilon).high), 4), 1.0)


def law_from_below(randomizer: LaplaceProfile | GaussianProfile, value: float, rate: float) -> LawAt:
    """The distribution of L where every other user who joins holds ``value`` (1 for Gaussian noise): attained."""
    if isinstance(randomizer, GaussianProfile):
        return lambda epsilon: gaussian_branch_cut.GaussianLaw(randomizer.noise_std, epsilon, False, rate)
    return lambda epsilon: _subsampled(LaplaceLaw(randomizer.epsilon0, epsilon, value, 1.0), rate, -math.expm1(epsilon))


def _gaussian(noise_std: float, n_users: int, rate: float) -> Delta:
    """By the blanket of Gaussian noise; the error of its integrals is estimated."""

    def delta(epsilon: float) -> float:
        law = gaussian_branch_cut.GaussianLaw(noise_std, epsilon, True, rate)
        return probability(gaussian_branch_cut.bracket(law, n_users, RTOL_VALUES).high)

    return delta


def _blanket(law: Callable[[float], LossLaw], n_users: int, rate: float, error: float) -> Delta:
    """The bound *One sum* of the module; L is in units of 1 / (blanket mass)."""

    def delta(epsilon: float) -> float:
        present = law(epsilon)
        mixed = _subsampled(present, rate, -present.mass * math.expm1(epsilon))
        return probability(bromwich.bracket(mixed, n_users, error).high + math.log(mixed.mass / present.mass))

    return delta


def _subsampled(law: LossLaw, rate: float, absent: float) -> LossLaw:
    """The distribution of L of a user who is absent with probability ``1 - rate``; atomic laws stay atomic."""
    if rate == 1:
        return law
    mixed = _SubsampledLaw(law, rate, absent)
    return AtomicLaw(*mixed.points, mixed.mass, mixed.kept) if isinstance(law, AtomicLaw) else mixed


def equal_cells(
    randomizer: KaryProfile | SupportProfile, n_users: int, checkin_rate: float = 1.0
) -> DominatingPair | None:
    r"""Cells of the pair whose other users all hold the victim's other value (``None`` beyond ``MAX_OUTCOMES``).

    With a and b of n reports of the victim's two values, :math:`p=e^{\varepsilon_0}` and M their multinomial
    probability,

    .. math:: Q = M(a,b),\qquad P - Q = \frac{M(a,b)}n\Big[(p-1)\,a - (1-\tfrac1p)\,b\Big].

    Outcomes of nearly equal loss are merged and the tails omitted: post-processing, for lower bounds only.
    :func:`third_cells` has others who hold neither.
    """
    p, p_either = math.exp(randomizer.epsilon0), checkin_rate * randomizer.telling
    total = _window(n_users, p_either)
    last_window = _window(int(total[-1]), 1 / (p + 1))
    ones = np.arange(_window(int(total[0]), 1 / (p + 1))[0], last_window[-1] + 1)
    if len(ones) * len(total) > MAX_OUTCOMES or n_users > MAX_USERS:
        return None
    masses = binomial.pmf(total, n_users, p_either)[:, None] * binomial.pmf(ones, total[:, None], 1 / (p + 1))
    excess = ((p - 1) * ones - (1 - 1 / p) * (total[:, None] - ones)) / n_users
    return _binned(masses.ravel(), excess.ravel())


def third_cells(randomizer: KaryProfile, n_users: int, checkin_rate: float = 1.0) -> DominatingPair | None:
    r"""Cells of the pair whose other users all hold a third value (``None`` for two buckets).

    With a and b reports of the victim's two values, :math:`p=e^{\varepsilon_0}`, and M their multinomial probability
    if all n users hold the third value,

    .. math:: P - Q = \frac{M(a,b)}n(p-1)(a-b),\qquad
              Q = M(a,b)\Big[1 + \frac{(p-1)\,b - (1-\frac1p)\,\varrho\,(n-a-b)}n\Big],

    where a report of neither value is that of the third one with probability :math:`\varrho`; their number is ignored.
    """
    p, k = math.exp(randomizer.epsilon0), randomizer.n_buckets
    p_each = checkin_rate / (p + k - 1)
    total = _window(n_users, 2 * p_each)
    ones = np.arange(_window(int(total[0]), 0.5)[0], _window(int(total[-1]), 0.5)[-1] + 1)
    if k < 3 or len(ones) * len(total) > MAX_OUTCOMES or n_users > MAX_USERS:
        return None
    masses = binomial.pmf(total, n_users, 2 * p_each)[:, None] * binomial.pmf(ones, total[:, None], 0.5)
    rho = p_each * p / (1 - 2 * p_each)
    others = total[:, None] - ones
    q_ratio = 1 + ((p - 1) * others - (1 - 1 / p) * rho * (n_users - total[:, None])) / n_users
    valid = (others >= 0) & (q_ratio > 0)
    excess = (p - 1) * (ones - others)[valid] / n_users / q_ratio[valid]
    return _binned((masses * q_ratio)[valid], excess)


def table_cells(randomizer: TableProfile, n_users: int) -> list[DominatingPair]:
    r"""Cells of the most distinguishable pairs for a table of message distributions; none beyond a billion users.

    For few users, over all data sets of the others.  Else all others hold one value, and messages are post-processed to
    the indicator of a likelihood ratio above a threshold.  With its probabilities a, b for the victim's values, c for
    the others', and M the pmf of Bin(n, c),

    .. math:: P - Q = \frac{M(k)}n(a-b)\Big[\frac kc-\frac{n-k}{1-c}\Big],\qquad
              Q = \frac{M(k)}n\Big[\frac{bk}c+\frac{(1-b)(n-k)}{1-c}\Big].
    """
    rows = np.array(randomizer.table)
    rows = rows[:, rows[0] > 0]
    every = itertools.combinations(range(len(rows)), 2)
    pairs = sorted(every, key=lambda pair: -float(_chi_squared(rows[pair[0]], rows[pair[1]])))[:8]  # pairs
    laws = histogram_laws(rows, n_users)
    if laws is not None:
        found = []
        for laws_p, laws_q in ((laws[x], laws[y]) for x, y in pairs):
            both = (laws_p, laws_q), (laws_q, laws_p)
            # Largest squared distance, and largest losses.
            for index in {int(_chi_squared(*both[0]).argmax()), *(int(_log_third_moment(*d).argmax()) for d in both)}:
                p, q = laws_p[index], laws_q[index]
                p, q = (law[(p > MIN_Q_MASS) & (q > MIN_Q_MASS)] for law in (p, q))
                losses = np.log(p / q)
                found.append(DominatingPair(losses, losses, q, p - q, histogram_error(rows, n_users) * (p + q)))
        return found
    splits: list[Reals] = []
    for x, y in pairs if n_users <= MAX_USERS else ():
        order, laws_of = np.argsort(rows[x] / rows[y]), np.stack([rows[x], rows[y], *rows])
        for first in range(1, len(order)):
            masses = np.stack([laws_of[:, order[first:]].sum(axis=1), laws_of[:, order[:first]].sum(axis=1)])
            splits += [masses[:, [0, 1, of]] for of in range(2, len(laws_of))]
    splits.sort(key=lambda split: -((split[0, 0] - split[0, 1]) ** 2) / (split[0, 2] * split[1, 2]))
    return [_split_cells(split, n_users) for split in splits[:4]]  # splits at most


def _chi_squared(p: Reals, q: Reals) -> Reals:
    """Symmetric chi-squared distance ``sum((p - q)^2 / (p + q))``."""
    return np.asarray(((p - q) ** 2 / np.maximum(p + q, MIN_Q_MASS)).sum(axis=-1))


def _log_third_moment(p: Reals, q: Reals) -> Reals:
    """``log sum(p^4 / q^3)``, dominated by the largest losses."""
    logs = np.log(np.maximum(p, MIN_Q_MASS)), np.log(np.maximum(q, MIN_Q_MASS))
    return np.asarray(np.logaddexp.reduce(4 * logs[0] - 3 * logs[1], axis=-1))


def _split_cells(split: Reals, n_users: int) -> DominatingPair:
    """Cells of the count of the rarer of two groups of messages; columns: the victim's values, the others' value."""
    (a, b, c), (not_a, not_b, not_c) = split if split[0, 2] <= split[1, 2] else split[::-1]
    counts = _window(n_users, c)
    masses, inside, outside = binomial.pmf(counts, n_users, c) / n_users, counts / c, (n_users - counts) / not_c
    base = b * inside + not_b * outside
    return _binned(masses * base, ((a - b) * inside + (not_a - not_b) * outside) / base)


def _binned(masses: Reals, excess: Reals) -> DominatingPair:
    """Cells of outcomes with Q's masses and ``excess`` = P / Q - 1, merged in bins of the latter."""
    n_bins = 4000  # bins of losses
    lower, upper = float(excess[masses > 0].min()), float(excess[masses > 0].max())
    bins = np.clip((excess - lower) * (n_bins / max(upper - lower, 1e-300)), 0, n_bins).astype(np.int64)
    base, gain = (np.bincount(bins, part).astype(np.float64) for part in (masses, masses * excess))
    base, gain = base[base > 0], gain[base > 0]
    with np.errstate(divide="ignore"):
        losses = np.log1p(gain / base)
    return DominatingPair(losses, losses, base, gain, 1e-10 * (base + np.abs(gain)))  # relative error of masses


def _window(n: int, p: float) -> Reals:
    """Window of Bin(n, p), without negligible tails."""
    width = 7.0  # standard deviations about a binomial mean
    radius = width * math.sqrt(n * p * max(1 - p, 0.0)) + width * width / 2
    return np.arange(max(math.floor(n * p - radius), 0), min(math.ceil(n * p + radius), n) + 1, dtype=float)
