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
(:func:`flamelib.amplification.shuffling.blanket_divergence`) is kept by mixing with common atoms.

**Clones.**  Of any randomizers of budget :math:`\varepsilon_0` the round is a function of that of binary response, its
victim among clones of probability :math:`g=e^{-\varepsilon_0}` who join by the same coins: the same formula.

**Fewer messages hide less.**  Messages of a round can be dropped at random and users with known values be added, so
that no profile falls with the rate or rises with the number of users: bounds for other such numbers serve as well.

**All other users equal.**  The blanket is the law :math:`\mu_{x'}` itself and g = 1: this pair occurs.

**Binary response.**  With everybody there the supremum over all data sets is known
(:func:`flamelib.amplification.shuffling.exact_binary`); else see :mod:`flamelib.amplification.checkin_binary`.

Source: Balle, Bell, Gascon, Nissim 2019, Section 5, with users who may be absent; Feldman, McMillan, Talwar 2021.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from flamelib.amplification import binary, excess
from flamelib.amplification.certify import SMALLEST, locally, within_reach
from flamelib.amplification.checkin_binary import checkin_profile, knot_step
from flamelib.core.profiles import AnyProfile, KaryProfile, LaplaceProfile
from flamelib.laws import AtomicLaw, Complex, LaplaceLaw, LossLaw, Real, clone_blanket, kary_blanket
from flamelib.loss_cells import Cells
from flamelib.loss_knots import Curve, Delta

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
    def points(self) -> tuple[Real, Real]:
        values, weights = self.there.points
        return np.append(values, self.away), np.append(self.share * weights, self.absent)

    def transform(self, s: Complex) -> Complex:
        return np.asarray(self.share * self.there.transform(s) + self.absent * np.expm1(s * self.away))

    def turn(self, t: float, y: Real) -> Complex:
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

    Examples
    --------
    >>> f"{round_curve(KaryProfile(1.0, 2), 12).forward(0.3):.5f}"
    '0.03909'
    >>> f"{round_curve(KaryProfile(1.0, 2), 100, 0.1).forward(0.05):.5f}"
    '0.00199'
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
    return lambda epsilon: _probability(binary.ceiling(epsilon0, n_users, epsilon))


def _hidden(law: Callable[[float], LossLaw], n_users: int, rate: float) -> Delta:
    """The mean above; the laws of L are in units of one over the blanket mass."""

    def delta(epsilon: float) -> float:
        there = law(epsilon)
        here = _present(there, rate, -there.mass * math.expm1(epsilon))
        return _probability(excess.bracket(here, n_users, CLOSE).high + math.log(here.mass / there.mass))

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

    Examples
    --------
    >>> f"{equal_cells(KaryProfile(1.0, 2), 12).delta(0.3):.5f}"
    '0.01969'
    """
    p, k = math.exp(randomizer.epsilon0), randomizer.n_buckets
    either = checkin_rate * (p + 1) / (p + 1 + (k - 2))
    total = _window(n_users, either)
    widest = _window(int(total[-1]), 1 / (p + 1))
    ones = np.arange(_window(int(total[0]), 1 / (p + 1))[0], widest[-1] + 1)
    if len(ones) * len(total) > MOST_CELLS or n_users > MOST_USERS:
        return None
    masses = binom.pmf(total, n_users, either)[:, None] * binom.pmf(ones, total[:, None], 1 / (p + 1))
    lift = ((p - 1) * ones - (1 - 1 / p) * (total[:, None] - ones)) / n_users
    return _joined(masses.ravel(), lift.ravel())


def _joined(masses: Real, lift: Real) -> Cells:
    """Outcomes by Q's masses and P's excess relative to them, where nearly the same together."""
    low, high = float(lift[masses > 0].min()), float(lift[masses > 0].max())
    place = np.clip((lift - low) * (BINS / max(high - low, 1e-300)), 0, BINS).astype(np.int64)
    base, gain = (np.bincount(place, part).astype(np.float64) for part in (masses, masses * lift))
    base, gain = base[base > 0], gain[base > 0]
    losses = np.log1p(gain / base)
    return Cells(losses, losses, base, gain, ROUNDING * (base + np.abs(gain)))


def _window(n: int, chance: float) -> Real:
    """Whole numbers where a binomial law has all but a negligible part."""
    half = REACH * math.sqrt(n * chance * max(1 - chance, 0.0)) + REACH * REACH / 2
    return np.arange(max(math.floor(n * chance - half), 0), min(math.ceil(n * chance + half), n) + 1, dtype=float)
