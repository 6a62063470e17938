r"""One round of shuffled check-in as a profile: who else takes part helps to hide a message.

Each of n users joins a round by a coin of its own, at the rate :math:`\gamma`; messages of those who joined are
shuffled, and their number is seen.  Rate 1 is plain shuffling.  One user's value x is replaced by x'; it tosses the
same coin in both data sets.  Adjacency: replace-one.

*One sum.*  Another user who joins draws its message from the blanket :math:`\omega` with probability g.  With
:math:`r=\mu_x/\omega`, :math:`r'=\mu_{x'}/\omega` and :math:`\alpha=e^\varepsilon`,

.. math:: H_\alpha(P\Vert Q) \le \frac1n E\Big[\Big(\sum_{i=1}^n L_i\Big)_+\Big],\qquad L=\begin{cases}
    1-\alpha&\text{with }1-\gamma\\ 0&\text{with }\gamma(1-g)\\ (r-\alpha r')/g&\text{with }\gamma g:\end{cases}

the sum that plain shuffling has, with one more atom.  For any randomizer of budget :math:`\varepsilon_0` clones take
the place of the blanket.  If all other users hold x', the blanket is :math:`\mu_{x'}` itself with g = 1: this occurs.

*Count by count.*  For binary response the supremum :math:`\delta_m` over the data sets of m users is known
(:mod:`flamelib.accounting.shuffling.exact_binary`), and

.. math:: H_\alpha(P\Vert Q) \le \sum_m \binom nm\gamma^m(1-\gamma)^{n-m}\,\tfrac mn\,
    \delta_m\big(\log(1+\tfrac nm(\alpha-1))\big),

which is taken in blocks of m and from chords; both err upwards, together by about a hundredth in epsilon.

*Fewer messages hide less.*  Messages of a round can be dropped at random and users with known values be added, so that
no profile falls with the rate or rises with the number of users: bounds for other such numbers serve as well.

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
COARSE_DELTA = 1e-15  # value below which blocks of counts are coarse
MAX_OUTCOMES = 8_000_000  # outcomes beyond which there is no bound from below
MAX_USERS = 10**9  # users beyond which there is no bound from below


def checkin_profile(epsilon0: float, n_users: int, checkin_rate: float) -> Delta:
    """Upper bound of the profiles of all pairs of neighbours under binary response, in both directions, count by count.

    Some hundred users at least ought to join; the rate lies in (0, 1).
    """
    blocks = list(_blocks(epsilon0, n_users, checkin_rate))

    def profile(epsilon: float) -> float:
        growth = math.expm1(epsilon)
        parts = (
            sum(chance * share * hidden(math.log1p(growth / share)) for share, chance in ends)
            for ends, hidden in blocks
        )
        return min((1 + 1e-9) * sum(parts), 1.0)  # round-off of the binomial probabilities

    return profile


def _blocks(epsilon0: float, n: int, rate: float) -> Iterator[tuple[list[tuple[float, float]], Delta]]:
    """Blocks of numbers of messages: for both ends the share of n and the chance given to it, and a bound for all.

    Very few messages count as if unshuffled, all others by the worst data sets of the least number.
    """
    spread = math.sqrt(n * rate * (1 - rate))
    # First counts of blocks, in standard deviations from the mean.
    firsts = [1] + [min(max(math.ceil(n * rate + end * spread), 1), n) for end in (-9.0, -4.0, -2.0, 0.0, 2.0, 9.0)]
    for i, (first, last) in enumerate(zip(firsts, [*(first - 1 for first in firsts[1:]), n], strict=True)):
        if last >= first:
            hidden = _chords(epsilon0, first) if i else _seen(epsilon0, 1.0)
            yield list(zip((first / n, last / n), _chances(n, rate, first, last), strict=True)), hidden


def _chances(n: int, rate: float, first: int, last: int) -> tuple[float, float]:
    """The binomial chances of a stretch, given to its ends so that mean and mass stay."""
    mass, moment = _mass(n, rate, first, last), n * rate * _mass(n - 1, rate, first - 1, last - 1)
    if first == last:
        return mass, 0.0
    right = min(max((moment - first * mass) / (last - first), 0.0), mass)
    return mass - right, right


def _mass(n: int, rate: float, first: int, last: int) -> float:
    if first > n * rate:
        return float(binomial.sf(first - 1, n, rate) - binomial.sf(last, n, rate))
    return float(binomial.cdf(last, n, rate) - binomial.cdf(first - 1, n, rate))


def _knot_step(epsilon0: float, n_users: float) -> float:
    """Distance of the epsilons between which chords are drawn: a part of the width of the profile."""
    return 2 * math.sinh(epsilon0 / 2) / math.sqrt(n_users) / 6.0  # chords in the width of a profile


def _chords(epsilon0: float, n_users: int) -> Delta:
    """Worst data sets of plain shuffling: values between knots by chords, which lie above a convex curve."""
    step = min(_knot_step(epsilon0, n_users), epsilon0)

    @functools.cache
    def knot(i: int) -> float:
        return probability(exact_binary.ceiling(epsilon0, n_users, i * step))

    def delta(epsilon: float) -> float:
        i = math.floor(epsilon / step)
        part = math.expm1(epsilon - i * step) / math.expm1(step)
        return (1 - part) * knot(i) + part * knot(i + 1) if epsilon < epsilon0 else 0.0

    return delta


@dataclass(frozen=True)
class _PresentLaw:
    """A law of L, of a user who is there at the ``rate``, with an atom for one who is not: ``away``."""

    there: LossLaw
    rate: float
    away: float

    @property
    def mass(self) -> float:
        return 1 - self.kept

    @property
    def kept(self) -> float:
        return self.rate * self.there.kept

    @property
    def share(self) -> float:
        """Of those that do not give 0, who is there."""
        return self.rate * self.there.mass / self.mass

    @property
    def absent(self) -> float:
        return (1 - self.rate) / self.mass

    @property
    def reach(self) -> float:
        return self.there.reach

    @functools.cached_property
    def points(self) -> tuple[Reals, Reals]:
        values, weights = self.there.points
        return np.append(values, self.away), np.append(self.share * weights, self.absent)

    def transform(self, s: Complexes) -> Complexes:
        return np.asarray(self.share * self.there.transform(s) + self.absent * np.expm1(s * self.away))

    def increment(self, t: float, y: Reals) -> Complexes:
        gone = AtomicLaw(np.array([self.away]), np.array([self.absent]), 1.0, 0.0)
        return np.asarray(self.share * self.there.increment(t, y) + gone.increment(t, y))

    def decay(self, t: float) -> tuple[float, float]:
        atoms, smooth = self.there.decay(t)
        return self.share * atoms + self.absent * math.exp(t * self.away), self.share * smooth

    def quadrature_error(self, size: float) -> float:
        return self.share * self.there.quadrature_error(size)


@functools.lru_cache(maxsize=8)
def round_curve(
    randomizer: Analyzed, n_users: int, checkin_rate: float = 1.0, error: float = RTOL_VALUES
) -> PrivacyProfile:
    """Upper bound of the profiles of all pairs of neighbours, in both directions.

    Binary response is bounded by its worst data sets, k-ary response and Laplace noise by their blankets, any other
    randomizer by clones.  More than ten billion users are counted as ten billion, which hide less.  The values are too
    large by about a relative ``error``; a larger one takes less time.
    """
    n_users, epsilon0 = min(n_users, 10**10), randomizer.epsilon0  # users at most: more hide no less
    if isinstance(randomizer, GaussianProfile):
        return PrivacyProfile(functools.cache(_noisy(randomizer.noise_std, n_users, checkin_rate)), error=error)
    if not within_reach(epsilon0):
        return PrivacyProfile(_seen(epsilon0, checkin_rate), at_most=epsilon0)
    if isinstance(randomizer, KaryProfile) and randomizer.n_buckets == 2:
        profile = _least(*_binary(randomizer, n_users, checkin_rate, error))
        if checkin_rate < 1:
            far = _others(randomizer, n_users, checkin_rate, error)
            profile = _far_out(profile, far) if error > RTOL_VALUES else _also_far_out(profile, far)
    else:
        profile = _others(randomizer, n_users, checkin_rate, error)
    return PrivacyProfile(profile, at_most=epsilon0, error=error)


def _binary(randomizer: KaryProfile, n_users: int, rate: float, error: float) -> Iterator[Delta]:
    """By its worst data sets, of a larger rate where few join; also by the blanket where the former are coarse."""
    epsilon0 = randomizer.epsilon0
    # Least number of joining users where binary response is accounted count by count.
    more = max(rate, min(600 / n_users, 1.0))
    if more < 1:
        yield checkin_profile(epsilon0, n_users, more)
    else:
        yield lambda epsilon: probability(exact_binary.ceiling(epsilon0, n_users, epsilon))
    # Distance of chords from which the blanket is evaluated as well.
    if more > rate or (rate < 1 and _knot_step(epsilon0, n_users * rate) > 0.02):
        yield _others(randomizer, n_users, rate, error)


def _far_out(near: Delta, far: Delta) -> Delta:
    """The lesser of two bounds, of which the second alone is asked where it is small."""
    return functools.cache(
        lambda epsilon: found if (found := far(epsilon)) < COARSE_DELTA else min(found, near(epsilon))
    )


def _also_far_out(near: Delta, far: Delta) -> Delta:
    """The lesser of two bounds, of which the second is asked only where the first is small."""
    return functools.cache(
        lambda epsilon: found if (found := near(epsilon)) > COARSE_DELTA else min(found, far(epsilon))
    )


def _others(randomizer: Pure, n_users: int, rate: float, error: float) -> Delta:
    """By the blanket or clones; where these would be too few, those of a larger rate, and messages as if unshuffled."""
    epsilon0, law = randomizer.epsilon0, blanket_law(randomizer)
    mass = law(0.0).mass
    # Least number of blanket messages: for Laplace noise or large budgets, and for the others.
    enough = 10.0 if isinstance(randomizer, LaplaceProfile) or epsilon0 > 8.0 else 1e-3 * mass
    more = max(rate, min(enough / (n_users * mass), 1.0))
    hidden = [_hidden(law, n_users, more, error)] if more * n_users * mass >= enough * (1 - 1e-9) else []
    return _least(*hidden) if more == rate and hidden else _least(*hidden, _seen(epsilon0, rate))


def _least(*profiles: Delta) -> Delta:
    """The least of these bounds."""
    return functools.cache(lambda epsilon: min(profile(epsilon) for profile in profiles))


def _seen(epsilon0: float, rate: float) -> Delta:
    """The profile of a message that everybody sees, if there is one."""
    return lambda epsilon: min(above(rate * math.exp(locally(epsilon0)(epsilon).high), 4), 1.0)


def law_from_below(randomizer: LaplaceProfile | GaussianProfile, holds: float, rate: float) -> LawAt:
    """The law of L where every other user who joins holds one value: this occurs (Gaussian noise: they hold 1)."""
    if isinstance(randomizer, GaussianProfile):
        return lambda at: gaussian_branch_cut.GaussianLaw(randomizer.noise_std, at, False, rate)
    return lambda at: _present(LaplaceLaw(randomizer.epsilon0, at, holds, 1.0), rate, -math.expm1(at))


def _noisy(noise_std: float, n_users: int, rate: float) -> Delta:
    """By the blanket of Gaussian noise; the error of its integrals is estimated."""

    def delta(epsilon: float) -> float:
        law = gaussian_branch_cut.GaussianLaw(noise_std, epsilon, True, rate)
        return probability(gaussian_branch_cut.bracket(law, n_users, RTOL_VALUES).high)

    return delta


def _hidden(law: Callable[[float], LossLaw], n_users: int, rate: float, error: float) -> Delta:
    """The mean above; the laws of L are in units of one over the blanket mass."""

    def delta(epsilon: float) -> float:
        there = law(epsilon)
        here = _present(there, rate, -there.mass * math.expm1(epsilon))
        return probability(bromwich.bracket(here, n_users, error).high + math.log(here.mass / there.mass))

    return delta


def _present(law: LossLaw, rate: float, away: float) -> LossLaw:
    """The law of a user who may be absent; finitely many values stay such."""
    if rate == 1:
        return law
    here = _PresentLaw(law, rate, away)
    return AtomicLaw(*here.points, here.mass, here.kept) if isinstance(law, AtomicLaw) else here


def equal_cells(
    randomizer: KaryProfile | SupportProfile, n_users: int, checkin_rate: float = 1.0
) -> DominatingPair | None:
    r"""Cells of the pair whose other users all hold the victim's other value (``None`` if there would be too many).

    With a and b users who report the one value and the other, out of n, :math:`p=e^{\varepsilon_0}` and M the chances
    of n trials,

    .. math:: Q = M(a,b),\qquad P - Q = \frac{M(a,b)}n\Big[(p-1)\,a - (1-\tfrac1p)\,b\Big].

    Outcomes of nearly the same loss are joined, and those far out left away: a coarser view, for bounds from below.
    :func:`third_cells` has others who hold neither.
    """
    p, either = math.exp(randomizer.epsilon0), checkin_rate * randomizer.telling
    total = _window(n_users, either)
    widest = _window(int(total[-1]), 1 / (p + 1))
    ones = np.arange(_window(int(total[0]), 1 / (p + 1))[0], widest[-1] + 1)
    if len(ones) * len(total) > MAX_OUTCOMES or n_users > MAX_USERS:
        return None
    masses = binomial.pmf(total, n_users, either)[:, None] * binomial.pmf(ones, total[:, None], 1 / (p + 1))
    lift = ((p - 1) * ones - (1 - 1 / p) * (total[:, None] - ones)) / n_users
    return _joined(masses.ravel(), lift.ravel())


def third_cells(randomizer: KaryProfile, n_users: int, checkin_rate: float = 1.0) -> DominatingPair | None:
    r"""Cells of the pair whose other users all hold one value that the victim never holds; a bucket more than two.

    With a and b users who report the victim's one value and the other, :math:`p=e^{\varepsilon_0}`, and M the chances
    of n trials that the others' law alone would have,

    .. math:: P - Q = \frac{M(a,b)}n(p-1)(a-b),\qquad
              Q = M(a,b)\Big[1 + \frac{(p-1)\,b - (1-\frac1p)\,\varrho\,(n-a-b)}n\Big],

    where a user who reports neither reports the others' own value with chance :math:`\varrho`; how many do is left out.
    """
    p, k = math.exp(randomizer.epsilon0), randomizer.n_buckets
    each = checkin_rate / (p + k - 1)
    total = _window(n_users, 2 * each)
    ones = np.arange(_window(int(total[0]), 0.5)[0], _window(int(total[-1]), 0.5)[-1] + 1)
    if k < 3 or len(ones) * len(total) > MAX_OUTCOMES or n_users > MAX_USERS:
        return None
    masses = binomial.pmf(total, n_users, 2 * each)[:, None] * binomial.pmf(ones, total[:, None], 0.5)
    own = each * p / (1 - 2 * each)
    twos = total[:, None] - ones
    kept = 1 + ((p - 1) * twos - (1 - 1 / p) * own * (n_users - total[:, None])) / n_users
    possible = (twos >= 0) & (kept > 0)
    lift = (p - 1) * (ones - twos)[possible] / n_users / kept[possible]
    return _joined((masses * kept)[possible], lift)


def table_cells(randomizer: TableProfile, n_users: int) -> list[DominatingPair]:
    r"""Cells of a few pairs for a table of laws of messages, those that tell most; none beyond a billion users.

    Where there are few users, of every data set of the others.  Else all others hold one value, and of a message it is
    seen whether it is one of those that are likelier for the one value of the victim than for the other.  With the
    chances a, b of these for the victim's values, c for the others' and M those of n trials of chance c,

    .. math:: P - Q = \frac{M(k)}n(a-b)\Big[\frac kc-\frac{n-k}{1-c}\Big],\qquad
              Q = \frac{M(k)}n\Big[\frac{bk}c+\frac{(1-b)(n-k)}{1-c}\Big].
    """
    rows = np.array(randomizer.table)
    rows = rows[:, rows[0] > 0]
    every = itertools.combinations(range(len(rows)), 2)
    pairs = sorted(every, key=lambda pair: -float(_apart(rows[pair[0]], rows[pair[1]])))[:8]  # pairs of values at most
    laws = histogram_laws(rows, n_users)
    if laws is not None:
        found = []
        for of_one, of_other in ((laws[one], laws[other]) for one, other in pairs):
            both = (of_one, of_other), (of_other, of_one)
            # Those far apart on the whole, and those with the largest losses.
            for others in {int(_apart(*both[0]).argmax()), *(int(_steep(*two).argmax()) for two in both)}:
                p, q = of_one[others], of_other[others]
                p, q = (law[(p > MIN_Q_MASS) & (q > MIN_Q_MASS)] for law in (p, q))
                losses = np.log(p / q)
                found.append(DominatingPair(losses, losses, q, p - q, histogram_error(rows, n_users) * (p + q)))
        return found
    splits: list[Reals] = []
    for one, other in pairs if n_users <= MAX_USERS else ():
        order, laws_of = np.argsort(rows[one] / rows[other]), np.stack([rows[one], rows[other], *rows])
        for first in range(1, len(order)):
            told = np.stack([laws_of[:, order[first:]].sum(axis=1), laws_of[:, order[:first]].sum(axis=1)])
            splits += [told[:, [0, 1, of]] for of in range(2, len(laws_of))]
    splits.sort(key=lambda split: -((split[0, 0] - split[0, 1]) ** 2) / (split[0, 2] * split[1, 2]))
    return [_split_cells(split, n_users) for split in splits[:4]]  # splits of messages into two groups at most


def _apart(one: Reals, other: Reals) -> Reals:
    """How far laws are apart, by the squares of differences in units of their sum."""
    return np.asarray(((one - other) ** 2 / np.maximum(one + other, MIN_Q_MASS)).sum(axis=-1))


def _steep(one: Reals, other: Reals) -> Reals:
    """Logarithm of the third moment of their ratio, of which the largest losses are most."""
    logs = np.log(np.maximum(one, MIN_Q_MASS)), np.log(np.maximum(other, MIN_Q_MASS))
    return np.asarray(np.logaddexp.reduce(4 * logs[0] - 3 * logs[1], axis=-1))


def _split_cells(split: Reals, n_users: int) -> DominatingPair:
    """Two groups of messages, one a row, for the values of the victim and that of the others: the rarer is counted."""
    (a, b, c), (not_a, not_b, not_c) = split if split[0, 2] <= split[1, 2] else split[::-1]
    counts = _window(n_users, c)
    masses, here, there = binomial.pmf(counts, n_users, c) / n_users, counts / c, (n_users - counts) / not_c
    base = b * here + not_b * there
    return _joined(masses * base, ((a - b) * here + (not_a - not_b) * there) / base)


def _joined(masses: Reals, lift: Reals) -> DominatingPair:
    """Outcomes by Q's masses and P's excess relative to them, where nearly the same together."""
    n_bins = 4000  # bins of losses
    low, high = float(lift[masses > 0].min()), float(lift[masses > 0].max())
    place = np.clip((lift - low) * (n_bins / max(high - low, 1e-300)), 0, n_bins).astype(np.int64)
    base, gain = (np.bincount(place, part).astype(np.float64) for part in (masses, masses * lift))
    base, gain = base[base > 0], gain[base > 0]
    with np.errstate(divide="ignore"):
        losses = np.log1p(gain / base)
    return DominatingPair(losses, losses, base, gain, 1e-10 * (base + np.abs(gain)))  # relative error of masses


def _window(n: int, chance: float) -> Reals:
    """Whole numbers where a binomial law has all but a negligible part."""
    width = 7.0  # standard deviations about a binomial mean
    half = width * math.sqrt(n * chance * max(1 - chance, 0.0)) + width * width / 2
    return np.arange(max(math.floor(n * chance - half), 0), min(math.ceil(n * chance + half), n) + 1, dtype=float)
