r"""One round of shuffled check-in as a profile: what hides a message, who else is there included.

Each of n users joins a round by a coin of its own, at the rate :math:`\gamma`; messages of those who joined are
shuffled, and their number is seen.  Rate 1 is plain shuffling.  One user's value x is replaced by x'; it tosses the
same coin in both data sets.  Adjacency: replace-one.

**Blanket.**  Another user who joins draws its message from the blanket :math:`\omega` with probability g, and else from
a law of its own; the latter messages are revealed with their number j.  Let k messages be left and :math:`n_0=n-j-k`.
The victim is absent, or one of the k, so that with :math:`r=\mu_x/\omega` and the chances
:math:`M(n_0,j,k)` of n trials with the probabilities :math:`1-\gamma,\gamma(1-g),\gamma g`

.. math:: P = M(n_0,j,k)\,\omega^k(w)\,\frac1n\Big[n_0+\frac1g\sum_{i=1}^k r(w_i)\Big],

because :math:`(1-\gamma)\,M_{n-1}(n_0-1,j,k)=\frac{n_0}n M` and :math:`\gamma\,M_{n-1}(n_0,j,k-1)=\frac k{gn}M`, with
:math:`M_{n-1}` for the n - 1 others.  Hence, :math:`\alpha=e^\varepsilon`,

.. math:: H_\alpha(P\Vert Q) = \frac1n E\Big[\Big(\sum_{i=1}^n L_i\Big)_+\Big],\qquad L=\begin{cases}
    1-\alpha&\text{with }1-\gamma\\ 0&\text{with }\gamma(1-g)\\ (r-\alpha r')/g&\text{with }\gamma g:\end{cases}

the sum that plain shuffling has, with one more atom.  The convex order that makes the pair (0, 1) the worst
(:func:`flamelib.accounting.shuffling.numerical.blanket_divergence`) is kept by mixing with common atoms.

**Clones.**  Of any randomizers of budget :math:`\varepsilon_0` the round is a function of that of binary response, its
victim among clones of probability :math:`g=e^{-\varepsilon_0}` who join by the same coins: the same formula.

**Fewer messages hide less.**  Messages of a round can be dropped at random and users with known values be added, so
that no profile falls with the rate or rises with the number of users: bounds for other such numbers serve as well.

**All other users equal.**  The blanket is the law :math:`\mu_{x'}` itself and g = 1: this pair occurs.

**Binary response.**  With everybody there the supremum over all data sets is known
(:func:`flamelib.accounting.shuffling.numerical.exact_binary`); else see :mod:`flamelib.accounting.checkin.one_round`.

Source: Balle, Bell, Gascon, Nissim 2019, Section 5, with users who may be absent; Feldman, McMillan, Talwar 2021.

One round of shuffled check-in with binary response: what all data sets cost.

The number m of messages is seen, and the victim is among the m who joined with the chance m/n.  Reveal what m - 1 of
the others who joined hold.  Left is one more message: the victim's with the chance m/n, else that of one more user, who
holds the one value or the other.  Both values of the victim and both of that user give laws of the form :math:`I_s`,
response to a bit s among these m - 1 others, so that by convexity the worst such user holds a fixed value, and since
:math:`\alpha\ge1` it is x': with :math:`\beta_m=1+\frac nm(\alpha-1)`

.. math:: H_\alpha\big(\tfrac mn I_x+(1-\tfrac mn)I_{x'}\,\Vert\,I_{x'}\big) = \tfrac mn H_{\beta_m}(I_x\Vert I_{x'})
    \ \ge\ H_\alpha\big(I_x\,\Vert\,\tfrac mn I_{x'}+(1-\tfrac mn)I_x\big),

the difference of the integrands being :math:`(1-\frac mn)(\alpha-1)(I_x-I_{x'})`, and the right one positive only where
:math:`I_x>I_{x'}`.  Hence, with :math:`\delta_m` the supremum over the data sets of m users
(:mod:`flamelib.accounting.shuffling.exact_binary`),

.. math:: H_\alpha(P\Vert Q) \le \sum_m \binom nm\gamma^m(1-\gamma)^{n-m}\,\tfrac mn\,\delta_m(\log\beta_m),

with equality if for each m the worst others all held x'; they do or nearly so but far out in the tail.

*In numbers.*  :math:`\delta_m` does not rise with m (one more message hides no less: add it oneself), and as a function
of m with :math:`\delta` fixed, the summand :math:`r\,h((\alpha-1)/r)`, :math:`r=m/n`, is convex.  So the m are taken in
blocks, each with the :math:`\delta` of its least m, and by the chord between its ends; :math:`\delta` itself is convex
in :math:`e^\varepsilon`, and taken from chords between few values.  All three err upwards, together by about a
hundredth in epsilon.

Source: this project, after Balle, Barthe, Gaboardi 2018 (subsampling) and Feldman, McMillan, Talwar 2021.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from flamelib.accounting.composition.curves import Curve, Delta
from flamelib.accounting.composition.known_pairs import Cells
from flamelib.accounting.shuffling import exact_binary, inversion
from flamelib.accounting.shuffling.brackets import SMALLEST, locally, within_reach
from flamelib.accounting.shuffling.laws import AtomicLaw, LaplaceLaw, LossLaw, clone_blanket, kary_blanket
from flamelib.core import binomial
from flamelib.core.arrays import Complexes, Reals
from flamelib.core.profiles import AnyProfile, KaryProfile, LaplaceProfile

ENDS = (-9.0, -4.0, -2.0, 0.0, 2.0, 9.0)
KNOTS = 6.0
SAFE = 1 + 1e-9


def checkin_profile(epsilon0: float, n_users: int, checkin_rate: float) -> Delta:
    """Upper bound of the profiles of all pairs of neighbors, in both directions.

    Parameters
    ----------
    epsilon0 : float, positive
    n_users : int
    checkin_rate : float in (0, 1)
        At least some hundred users ought to join.
    """
    blocks = list(_blocks(epsilon0, n_users, checkin_rate))

    def profile(epsilon: float) -> float:
        return min(SAFE * sum(block.delta(math.expm1(epsilon)) for block in blocks), 1.0)

    return profile


@dataclass(frozen=True, slots=True)
class Block:
    """Numbers of messages: shares of their ends among n users, the chances given to these, a bound for all."""

    ends: tuple[float, float]
    chances: tuple[float, float]
    hidden: Delta

    def delta(self, growth: float) -> float:
        """The part of the sum, at this excess of alpha over 1."""
        return sum(
            chance * share * self.hidden(math.log1p(growth / share))
            for share, chance in zip(self.ends, self.chances, strict=True)
        )


def _blocks(epsilon0: float, n: int, rate: float) -> Iterator[Block]:
    """Very few messages as if unshuffled, all others by the worst data sets of the least number."""
    spread = math.sqrt(n * rate * (1 - rate))
    firsts = [1] + [min(max(math.ceil(n * rate + end * spread), 1), n) for end in ENDS]
    for i, (first, last) in enumerate(zip(firsts, [*(first - 1 for first in firsts[1:]), n], strict=True)):
        if last < first:
            continue
        hidden = _chords(epsilon0, first) if i else _local(epsilon0)
        yield Block((first / n, last / n), _chances(n, rate, first, last), hidden)


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


def _local(epsilon0: float) -> Delta:
    return lambda epsilon: math.exp(locally(epsilon0)(epsilon).high)


def knot_step(epsilon0: float, n_users: float) -> float:
    """Distance of the epsilons between which chords are drawn: a part of the width of the profile."""
    return 2 * math.sinh(epsilon0 / 2) / math.sqrt(n_users) / KNOTS


def _chords(epsilon0: float, n_users: int) -> Delta:
    """Worst data sets of plain shuffling: values between knots by chords, which lie above a convex curve."""
    step = min(knot_step(epsilon0, n_users), epsilon0)

    @functools.cache
    def knot(i: int) -> float:
        log_delta = exact_binary.ceiling(epsilon0, n_users, i * step)
        return max(math.exp(min(log_delta, 0.0)), SMALLEST) if log_delta > -math.inf else 0.0

    def delta(epsilon: float) -> float:
        i = math.floor(epsilon / step)
        part = math.expm1(epsilon - i * step) / math.expm1(step)
        return (1 - part) * knot(i) + part * knot(i + 1) if epsilon < epsilon0 else 0.0

    return delta


Analyzed = KaryProfile | LaplaceProfile | AnyProfile

CLOSE = 1e-5
RARE = 1e-3
ENOUGH = 10**10
MANY = 600
HARD, FEW = 8.0, 10.0
REACH = 7.0
COARSE = 0.02
ROUNDING = 1e-10
MOST_CELLS = 8_000_000
MOST_USERS = 10**9
BINS = 4000


@dataclass(frozen=True)
class PresentLaw:
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

    def turn(self, t: float, y: Reals) -> Complexes:
        gone = AtomicLaw(np.array([self.away]), np.array([self.absent]), 1.0, 0.0)
        return np.asarray(self.share * self.there.turn(t, y) + gone.turn(t, y))

    def decay(self, t: float) -> tuple[float, float]:
        atoms, smooth = self.there.decay(t)
        return self.share * atoms + self.absent * math.exp(t * self.away), self.share * smooth

    def slip(self, size: float) -> float:
        return self.share * self.there.slip(size)


@functools.lru_cache(maxsize=8)
def round_curve(randomizer: Analyzed, n_users: int, checkin_rate: float = 1.0) -> Curve:
    """Upper bound of the profiles of all pairs of neighbors, in both directions.

    Parameters
    ----------
    randomizer : KaryProfile, LaplaceProfile or AnyProfile
        Binary response is bounded by its worst data sets, k-ary response and Laplace noise by their blankets, any other
        one by clones.
    n_users : int, at least 2
        Beyond ten billion there might as well be ten billion, which hide less.
    checkin_rate : float in [0, 1]
    """
    n_users, epsilon0 = min(n_users, ENOUGH), randomizer.epsilon0
    if not within_reach(epsilon0):
        return Curve(_seen(epsilon0, checkin_rate), at_most=epsilon0)
    if isinstance(randomizer, KaryProfile) and randomizer.n_buckets == 2:
        profiles = list(_binary(randomizer, n_users, checkin_rate))
    else:
        profiles = [_others(randomizer, n_users, checkin_rate)]
    return Curve(_least(profiles), at_most=epsilon0, error=CLOSE)


def _binary(randomizer: KaryProfile, n_users: int, rate: float) -> Iterator[Delta]:
    """By its worst data sets, of a larger rate where few join; also by the blanket where the former are coarse."""
    epsilon0 = randomizer.epsilon0
    more = max(rate, min(MANY / n_users, 1.0))
    yield checkin_profile(epsilon0, n_users, more) if more < 1 else _everybody(epsilon0, n_users)
    if more > rate or (rate < 1 and knot_step(epsilon0, n_users * rate) > COARSE):
        yield _others(randomizer, n_users, rate)


def _others(randomizer: Analyzed, n_users: int, rate: float) -> Delta:
    """By the blanket or clones; where these would be too few, those of a larger rate, and messages as if unshuffled."""
    epsilon0, law = randomizer.epsilon0, _there(randomizer)
    mass = law(0.0).mass
    enough = FEW if isinstance(randomizer, LaplaceProfile) or epsilon0 > HARD else RARE * mass
    more = max(rate, min(enough / (n_users * mass), 1.0))
    hidden = [_hidden(law, n_users, more)] if more * n_users * mass >= enough * (1 - 1e-9) else []
    return _least(hidden if more == rate and hidden else [*hidden, _seen(epsilon0, rate)])


def _least(profiles: Sequence[Delta]) -> Delta:
    """The least of these bounds."""
    return functools.cache(lambda epsilon: min(profile(epsilon) for profile in profiles))


def _seen(epsilon0: float, rate: float) -> Delta:
    """The profile of a message that everybody sees, if there is one."""
    return lambda epsilon: rate * math.exp(locally(epsilon0)(epsilon).high)


def _everybody(epsilon0: float, n_users: int) -> Delta:
    return lambda epsilon: _probability(exact_binary.ceiling(epsilon0, n_users, epsilon))


def _hidden(law: Callable[[float], LossLaw], n_users: int, rate: float) -> Delta:
    """The mean above; the laws of L are in units of one over the blanket mass."""

    def delta(epsilon: float) -> float:
        there = law(epsilon)
        here = _present(there, rate, -there.mass * math.expm1(epsilon))
        return _probability(inversion.bracket(here, n_users, CLOSE).high + math.log(here.mass / there.mass))

    return delta


def _present(law: LossLaw, rate: float, away: float) -> LossLaw:
    """The law of a user who may be absent; finitely many values stay such."""
    here = PresentLaw(law, rate, away)
    if rate == 1:
        return law
    return AtomicLaw(*here.points, here.mass, here.kept) if isinstance(law, AtomicLaw) else here


def _there(randomizer: Analyzed) -> Callable[[float], LossLaw]:
    """The law of L of a user who is there: blanket, or clones."""
    match randomizer:
        case KaryProfile():
            return lambda at: kary_blanket(randomizer, at)
        case LaplaceProfile():
            return lambda at: LaplaceLaw(randomizer.epsilon0, at, 0.5, randomizer.mass)
        case AnyProfile():
            epsilon0 = randomizer.epsilon0
            return lambda at: clone_blanket(epsilon0, at, math.exp(-epsilon0), -math.expm1(-epsilon0))


def _probability(log: float) -> float:
    return max(math.exp(min(log, 0.0)), SMALLEST) if log > -math.inf else 0.0


def equal_cells(randomizer: KaryProfile, n_users: int, checkin_rate: float = 1.0) -> Cells | None:
    r"""Cells of the pair whose other users all hold the victim's other value (``None`` if there would be too many).

    With a and b users who report the one value and the other, out of n, :math:`p=e^{\varepsilon_0}` and M the chances
    of n trials,

    .. math:: Q = M(a,b),\qquad P - Q = \frac{M(a,b)}n\Big[(p-1)\,a - (1-\tfrac1p)\,b\Big].

    Outcomes of nearly the same loss are joined, and those far out left away: a coarser view, for bounds from below.
    """
    p, k = math.exp(randomizer.epsilon0), randomizer.n_buckets
    either = checkin_rate * (p + 1) / (p + 1 + (k - 2))
    total = _window(n_users, either)
    widest = _window(int(total[-1]), 1 / (p + 1))
    ones = np.arange(_window(int(total[0]), 1 / (p + 1))[0], widest[-1] + 1)
    if len(ones) * len(total) > MOST_CELLS or n_users > MOST_USERS:
        return None
    masses = binomial.pmf(total, n_users, either)[:, None] * binomial.pmf(ones, total[:, None], 1 / (p + 1))
    lift = ((p - 1) * ones - (1 - 1 / p) * (total[:, None] - ones)) / n_users
    return _joined(masses.ravel(), lift.ravel())


def _joined(masses: Reals, lift: Reals) -> Cells:
    """Outcomes by Q's masses and P's excess relative to them, where nearly the same together."""
    low, high = float(lift[masses > 0].min()), float(lift[masses > 0].max())
    place = np.clip((lift - low) * (BINS / max(high - low, 1e-300)), 0, BINS).astype(np.int64)
    base, gain = (np.bincount(place, part).astype(np.float64) for part in (masses, masses * lift))
    base, gain = base[base > 0], gain[base > 0]
    losses = np.log1p(gain / base)
    return Cells(losses, losses, base, gain, ROUNDING * (base + np.abs(gain)))


def _window(n: int, chance: float) -> Reals:
    """Whole numbers where a binomial law has all but a negligible part."""
    half = REACH * math.sqrt(n * chance * max(1 - chance, 0.0)) + REACH * REACH / 2
    return np.arange(max(math.floor(n * chance - half), 0), min(math.ceil(n * chance + half), n) + 1, dtype=float)
