r"""Attacks on random participation: equal gradients against the reading ``inner``, and a search for worse gradients.

The client of the first attack holds L records whose gradients are all equal and of the largest norm C.  Along that
gradient the server publishes one number with the law

.. math::
    P = (1-p)\,N(0,\sigma^2) + p \sum_{k=0}^{L} \binom Lk q^k (1-q)^{L-k}\, N(kC,\sigma^2)

with the differing record, and with L - 1 in the place of L without it.  The attack says "with" above a threshold.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import binom, binomtest

from flamelib.accounting.sampling.adaptive_gradients import MAX_GRADIENT_RATIO, Draws, draws_delta, subset_draws
from flamelib.accounting.sampling.participation_round import ParticipationRound
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import check

MAX_AT_ONCE = 2**20  # rounds drawn together
FARTHEST = 1e100  # standard deviations
MAX_RATIO = 1e6  # clipping norm over noise; beyond, nothing changes
AROUND = 40.0  # standard deviations around its centre beyond which a law is nothing
SEARCH_BOXES = 2**16  # of space, for one divergence of the search


@dataclass(frozen=True)
class EqualGradients:
    """The two laws of the published number where all gradients of the client are equal, in units of the noise."""

    setting: ParticipationRound

    @property
    def ratio(self) -> float:
        """Clipping norm over the noise, at most so many that the laws of different numbers are apart."""
        return min(self.setting.clip_norm / self.setting.noise_std, MAX_RATIO)

    def weights(self, records: int) -> Reals:
        """Probability that 0, 1, ... gradients of this client are in the sum; shape (records + 1,)."""
        found = self.setting.participation_rate * binom.pmf(np.arange(records + 1), records, self.setting.record_rate)
        found[0] += 1 - self.setting.participation_rate
        return np.asarray(found)

    @cached_property
    def pair(self) -> tuple[Reals, Reals]:
        """The weights with the differing record and without it."""
        return self.weights(self.setting.n_records), self.weights(self.setting.n_records - 1)

    @cached_property
    def moved(self) -> Reals:
        """What the differing record adds to each weight, without cancellation; shape (records + 1,)."""
        others = binom.pmf(np.arange(self.setting.n_records), self.setting.n_records - 1, self.setting.record_rate)
        drawn = self.setting.participation_rate * self.setting.record_rate
        return np.asarray(-drawn * np.diff(others, prepend=0.0, append=0.0))

    def density(self, x: float, weights: Reals) -> float:
        """Sum of normal densities around 0, 1, ... gradients with these weights."""
        return float(weights @ np.exp(-((x - self.ratio * np.arange(len(weights))) ** 2) / 2)) / math.sqrt(2 * math.pi)

    def gain(self, x: float, epsilon: float) -> float:
        """Density with the record less ``exp(epsilon)`` times the one without."""
        return self.density(x, self.moved) - math.expm1(epsilon) * self.density(x, self.pair[1])

    def log_ratio(self, x: float) -> float:
        """Logarithm of the density with the record over the one without; it rises with x."""
        steps = self.ratio * np.arange(len(self.moved))
        more, sign = logsumexp(steps * (x - steps / 2), b=self.moved, return_sign=True)
        base = logsumexp(steps[:-1] * (x - steps[:-1] / 2), b=self.pair[1])
        return float(np.logaddexp(0.0, more - base) if sign > 0 else np.log1p(max(-np.exp(more - base), -1.0)))

    def threshold(self, epsilon: float) -> float:
        """Where that logarithm passes epsilon; infinite if that is farther out than any published number."""
        low, high = self.ratio / 2, max(self.ratio, 1.0)
        while high < FARTHEST and self.log_ratio(high) <= epsilon:
            high *= 2
        if high >= FARTHEST or self.log_ratio(low) >= epsilon:
            return math.inf if high >= FARTHEST else low
        return float(brentq(lambda x: self.log_ratio(x) - epsilon, low, high, xtol=1e-12))

    def exact(self, epsilon: float) -> float:
        """Divergence by adaptive quadrature above the threshold, wherever the densities are not nothing."""
        last, start = self.setting.n_records, self.threshold(epsilon)
        spans = [(k, k) for k in range(last + 1)] if self.ratio > 2 * AROUND else [(0, last)]
        parts = list[float]()
        for first, final in spans:
            low, high = max(start, self.ratio * first - AROUND), self.ratio * final + AROUND
            breaks = np.linspace(low, high, max(30, math.ceil((high - low) / 10))) if low < high else np.empty(0)
            parts += [
                quad(self.gain, a, b, args=(epsilon,), epsabs=0.0, epsrel=1e-10)[0]
                for a, b in pairwise(breaks.tolist())
            ]
        return math.fsum(parts)


@dataclass(frozen=True, slots=True)
class Attack:
    """What an attack on equal gradients has seen in one setting, beside the truth.

    Attributes
    ----------
    setting : ParticipationRound
    epsilon : float
    exact : float
        Delta of the equal gradients, by quadrature.
    threshold : float
        In units of the noise; fixed before anything is drawn.
    seen : tuple of int
        How many of ``repeats`` published numbers exceeded it, with the record and without.
    repeats : int
    """

    setting: ParticipationRound
    epsilon: float
    exact: float
    threshold: float
    seen: tuple[int, int]
    repeats: int

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Clopper-Pearson interval of the attack's delta: both shares hold together with this confidence."""
        each = (1 + confidence) / 2
        shares = [binomtest(count, self.repeats).proportion_ci(each, method="exact") for count in self.seen]
        factor = math.exp(self.epsilon)
        return float(shares[0].low - factor * shares[1].high), float(shares[0].high - factor * shares[1].low)

    @property
    def estimate(self) -> float:
        """Delta by the shares themselves."""
        return (self.seen[0] - math.exp(self.epsilon) * self.seen[1]) / self.repeats


def attack_equal_gradients(setting: ParticipationRound, epsilon: float, repeats: int, seed: int) -> Attack:
    """The attack run ``repeats`` times on each of two data sets: equal gradients with the record and without.

    Whether the client joins, how many records it keeps and the noise are drawn for every round.

    Examples
    --------
    >>> found = attack_equal_gradients(ParticipationRound(n_records=5), 0.1, repeats=1000, seed=1)
    >>> f"{found.exact:.3e}", round(found.threshold, 3)
    ('4.229e-04', 2.849)
    """
    check(epsilon=epsilon, repeats=repeats, seed=seed)
    laws = EqualGradients(setting)
    threshold = laws.threshold(epsilon)
    worlds = np.random.default_rng(seed).spawn(2)
    seen = [
        _exceed(weights, laws.ratio, threshold, repeats, rng) for weights, rng in zip(laws.pair, worlds, strict=True)
    ]
    return Attack(setting, epsilon, laws.exact(epsilon), threshold, (seen[0], seen[1]), repeats)


def _exceed(weights: Reals, ratio: float, threshold: float, repeats: int, rng: np.random.Generator) -> int:
    """How many published numbers exceed the threshold; the order of rounds is left out, the law is not."""
    found = 0
    for drawn, count in enumerate(rng.multinomial(repeats, weights / weights.sum())):
        for start in range(0, int(count), MAX_AT_ONCE):
            noise = rng.standard_normal(min(MAX_AT_ONCE, int(count) - start))
            found += int(np.count_nonzero(noise > threshold - ratio * drawn))
    return found


# --- other gradients ----------------------------------------------------------------------------------------------


def delta_of_term(setting: ParticipationRound, epsilon: float, count: int, angle: float) -> float:
    """Delta given that ``count`` other records are drawn, at an angle in degrees to the differing one (lower).

    Within a thousandth of the divergence; the sum of the other gradients has one place only.
    """
    # More noise is post-processing, and keeps the boxes small.
    ratio, turn = min(setting.clip_norm / setting.noise_std, MAX_GRADIENT_RATIO), math.radians(angle)
    place = count * ratio * np.array([[math.cos(turn), math.sin(turn)]])
    draws = Draws(np.ones(1), place, np.array([ratio, 0.0]))
    return float(draws_delta(draws, setting.participation_rate, setting.record_rate, epsilon, add=False))


def search_gradients(starts: int, steps: int, seed: int) -> dict[str, Reals]:
    """Random gradients of random norms in one to three dimensions, each start improved by random moves.

    Settings are random too: both rates in (0.02, 1), noise from 0.3 to 3 clipping norms, epsilon' from 0.003 to 1,
    2 to 6 records.  Every second start has all gradients of the largest norm.  For each start the answer has the
    number of records, epsilon', and the largest divergence found over the certified bound of its direction.

    Examples
    --------
    >>> found = search_gradients(starts=2, steps=2, seed=0)
    >>> list(found), bool((found["remove"] <= 1).all())
    (['n_records', 'epsilon', 'remove', 'add'], True)
    """
    check(repeats=starts, seed=seed)
    found = [
        _climb(rng, full=at % 2 == 0, steps=steps) for at, rng in enumerate(np.random.default_rng(seed).spawn(starts))
    ]
    return dict(zip(("n_records", "epsilon", "remove", "add"), np.array(found).T, strict=True))


def _climb(rng: np.random.Generator, full: bool, steps: int) -> tuple[float, float, float, float]:
    """Moves are kept where they bring one of the two directions nearer to its bound."""
    size, dimensions = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    joins, drawn = 10 ** rng.uniform(-1.7, 0, 2)
    setting = ParticipationRound(float(joins), float(drawn), size, float(10 ** rng.uniform(-0.5, 0.5)))
    epsilon = float(10 ** rng.uniform(-2.5, 0))
    bounds = np.array([setting.delta("outer", epsilon), setting.delta("add", epsilon)])
    place = _clipped(rng.standard_normal((size, dimensions)) * rng.uniform(0.2, 1.5, (size, 1)), full)
    best = largest = _ratios(setting, epsilon, place, bounds)
    for _ in range(steps):
        moved = _clipped(place + 0.4 * rng.standard_normal(place.shape), full)
        found = _ratios(setting, epsilon, moved, bounds)
        largest = np.maximum(largest, found)
        if found.max() > best.max():
            place, best = moved, found
    return size, epsilon, float(largest[0]), float(largest[1])


def _clipped(gradients: Reals, full: bool) -> Reals:
    """No row longer than 1; or every row of length 1."""
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return np.asarray(gradients / (norms if full else np.maximum(norms, 1.0)))


def _ratios(setting: ParticipationRound, epsilon: float, gradients: Reals, bounds: Reals) -> Reals:
    draws = subset_draws(gradients / setting.noise_std, setting.record_rate)
    rates = (setting.participation_rate, setting.record_rate, epsilon)
    found = np.array([draws_delta(draws, *rates, add, SEARCH_BOXES) for add in (False, True)])
    return np.asarray(np.divide(found, bounds, out=np.zeros(2), where=bounds > 0))


def grow_gram_matrices(pairs: int, seed: int) -> tuple[Reals, Reals]:
    r"""Integrals of :math:`(\varphi_0-a_1\varphi_{u_1}-a_0\varphi_{u_0})_+` before and after :math:`w w^T` is added.

    With :math:`w\ge0` no entry of the Gram matrix falls.
    """
    check(repeats=pairs, seed=seed)
    rng = np.random.default_rng(seed)
    smaller, larger = np.array([_gram_pair(rng) for _ in range(pairs)]).T
    return smaller, larger


def _gram_pair(rng: np.random.Generator) -> tuple[float, float]:
    vectors, extra = rng.standard_normal((2, 2)), rng.uniform(0, 1.5, 2)
    joins, drawn, epsilon = rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.9), rng.uniform(0.01, 0.5)
    pair = []
    for gram in (vectors @ vectors.T, vectors @ vectors.T + np.outer(extra, extra)):
        # Seen from the law of the drawn record: the sum without it, and the silent client.
        near, far = np.linalg.cholesky(gram)
        draws = Draws(np.ones(1), (near - far)[None, :], -near)
        pair.append(float(draws_delta(draws, joins, drawn, epsilon, add=False, boxes=SEARCH_BOXES)))
    return pair[0], pair[1]
