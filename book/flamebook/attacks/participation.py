r"""The reading ``inner`` of random participation's theorem, refuted by one data set: exactly, and by an attack.

The client holds L records whose gradients are all equal and of the largest norm C.  Along that gradient the server
publishes one number with the law

.. math::
    P = (1-p)\,N(0,\sigma^2) + p \sum_{k=0}^{L} \binom Lk q^k (1-q)^{L-k}\, N(kC,\sigma^2)

with the differing record, and with L - 1 in the place of L without it.  The attack says "with" above a threshold.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import binom, binomtest

from flamebook.records import Parameters, to_csv
from flamebook.statements import AtMost, Finding, compared, silent
from flamelib.accounting.sampling import known
from flamelib.accounting.sampling.hidden import participation_noise, random_participation, random_participation_add
from flamelib.accounting.sampling.turned_gradients import MOST_RECORDS, turned_gradients
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import check

AT_ONCE = 2**20
CONFIDENCE = 0.95
SURE = 1 - 1e-6  # of an interval that an attack misses only if something is wrong
FARTHEST = 1e100  # standard deviations
LARGEST_RATIO = 1e6  # clipping norm over noise; beyond, nothing changes
SHARP_ENOUGH = 12.0  # clipping norm over noise from which on turned gradients lose hardly more
AROUND = 40.0  # standard deviations around its centre beyond which a law is nothing
TINY = 1e-300  # below, digits are lost
READINGS = ("outer", "inner", "aligned")
ANGLES = (0.0, 30.0, 60.0, 90.0)
MOST_VARIANCE = 50.0  # of the number of other records drawn, where their gradients are turned


@dataclass(frozen=True, slots=True)
class Setting:
    """Public parameters of one round and the size of the affected client.

    The document's values are not known; ours stand in for them.
    """

    participation_rate: float = 0.1
    record_rate: float = 0.1
    n_records: int = 30
    noise_std: float = 1.0
    clip_norm: float = 1.0

    def __post_init__(self) -> None:
        for name, value in check(**asdict(self)).items():
            object.__setattr__(self, name, value)

    def as_parameters(self) -> dict[str, Any]:
        """For the card of a figure."""
        return asdict(self)

    def delta(self, scheme: str, epsilon: float) -> float:
        """Delta of one round at ``epsilon``; ``add`` and ``turned`` besides the schemes."""
        if scheme == "turned":
            return max(self.turned(angle, epsilon) for angle in ANGLES)
        return self._guarantee(scheme, epsilon=epsilon)

    def turned(self, angle: float, epsilon: float) -> float:
        """Delta at least, the other gradients turned by ``angle`` degrees (lower).

        So many of them that their number varies little enough to be summed over; the rest are 0.  Less noise than is
        enough to tell numbers apart counts as that much, for more is post-processing.
        """
        few = int(MOST_VARIANCE / max(self.record_rate * (1 - self.record_rate), MOST_VARIANCE / MOST_RECORDS))
        noise = max(self.noise_std, self.clip_norm / SHARP_ENOUGH)
        given = asdict(self) | {"n_records": min(self.n_records, few), "noise_std": noise}
        return float(turned_gradients(angle=angle, epsilon=epsilon, **given))

    def epsilon(self, scheme: str, delta: float) -> float:
        """Epsilon of one round at ``delta``."""
        return self._guarantee(scheme, delta=delta)

    def noise(self, scheme: str, epsilon: float, delta: float) -> float:
        """Least noise that a scheme asks for, for this pair in each round."""
        given = {name: value for name, value in asdict(self).items() if name != "noise_std"}
        return float(participation_noise(scheme, **given, epsilon=epsilon, delta=delta))

    def _guarantee(self, scheme: str, **given: Any) -> float:
        rates: dict[str, Any] = asdict(self)
        if scheme == "add":
            return float(random_participation_add(**rates, **given))
        if scheme in READINGS:
            return float(random_participation(scheme, **rates, **given))
        del rates["n_records"]
        baselines: dict[str, Callable[..., float]] = {
            "ols": known.ols, "wcs": known.wcs, "cs": known.cs
        }  # fmt: skip
        return float(baselines[scheme](**rates, **given))


@dataclass(frozen=True)
class EqualGradients:
    """The two laws of the published number where all gradients of the client are equal, in units of the noise."""

    setting: Setting

    @property
    def ratio(self) -> float:
        """Clipping norm over the noise, at most so many that the laws of different numbers are apart."""
        return min(self.setting.clip_norm / self.setting.noise_std, LARGEST_RATIO)

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


def ratio(one: float, other: float) -> float:
    """One number over the other, which may be 0; NaN if both are too small for all their digits.

    >>> ratio(1.0, 2.0), ratio(1.0, 0.0), ratio(0.0, 5e-324)
    (0.5, inf, nan)
    """
    return math.nan if max(one, other) < TINY else one / other if other else math.inf


@dataclass(frozen=True)
class Counterexample:
    """What ``inner`` promises in one setting, what is true there, and what an attack that was run shows.

    Attributes
    ----------
    setting : Setting
    epsilon : float
    values : mapping from scheme to its delta
    exact : float
        Delta of the equal gradients, by quadrature.
    threshold : float
        In units of the noise; fixed before anything is drawn.
    seen : tuple of int
        How many of ``repeats`` published numbers exceeded it, with the record and without.
    """

    setting: Setting
    epsilon: float
    values: dict[str, float]
    exact: float
    threshold: float
    seen: tuple[int, int]
    repeats: int

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper-Pearson interval of the attack's delta: both shares hold together with ``CONFIDENCE``."""
        return self._interval(CONFIDENCE)

    def _interval(self, confidence: float) -> tuple[float, float]:
        each = (1 + confidence) / 2
        shares = [binomtest(count, self.repeats).proportion_ci(each, method="exact") for count in self.seen]
        factor = math.exp(self.epsilon)
        return float(shares[0].low - factor * shares[1].high), float(shares[0].high - factor * shares[1].low)

    @property
    def estimate(self) -> float:
        """Delta by the shares themselves."""
        return (self.seen[0] - math.exp(self.epsilon) * self.seen[1]) / self.repeats

    @property
    def refuted(self) -> Finding:
        """Whether even the lower confidence limit exceeds what ``inner`` promises; too few rounds cannot tell."""
        low, high = self.interval
        promised = self.values["inner"]
        if low <= promised <= high:
            return silent(f"inner promises {promised:.4g} and the interval is from {low:.4g} to {high:.4g}")
        return compared(low, ">", promised)

    @property
    def agrees(self) -> Finding:
        """Whether the attack may have been drawn from the laws whose divergence is ``exact``."""
        low, high = self._interval(SURE)
        return compared(low, "<=", self.exact, "<=", high)

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: what is told, and delta."""
        return [
            ("inner (the reading probably printed)", self.values["inner"]),
            ("this data set, exactly", self.exact),
            ("times what inner promises", ratio(self.exact, self.values["inner"])),
            ("rounds run of each data set", self.repeats),
            ("attack", self.estimate),
            ("its 95% interval (Clopper-Pearson), from", self.interval[0]),
            ("to", self.interval[1]),
            ("outer (certified upper bound)", AtMost(self.values["outer"])),
        ]


def compute_counterexample(setting: Setting, epsilon: float, repeats: int, seed: int) -> Counterexample:
    """The setting's readings beside its exact divergence for equal gradients, and the attack run ``repeats`` times.

    Examples
    --------
    >>> found = compute_counterexample(Setting(n_records=5), 0.1, repeats=1000, seed=1)
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
    values = {scheme: setting.delta(scheme, epsilon) for scheme in ("inner", "outer")}
    return Counterexample(setting, epsilon, values, laws.exact(epsilon), threshold, (seen[0], seen[1]), repeats)


def _exceed(weights: Reals, ratio: float, threshold: float, repeats: int, rng: np.random.Generator) -> int:
    """How many published numbers exceed the threshold; the order of rounds is left out, the law is not."""
    found = 0
    for drawn, count in enumerate(rng.multinomial(repeats, weights / weights.sum())):
        for start in range(0, int(count), AT_ONCE):
            noise = rng.standard_normal(min(AT_ONCE, int(count) - start))
            found += int(np.count_nonzero(noise > threshold - ratio * drawn))
    return found


@dataclass(frozen=True)
class InnerCurve:
    """Delta along epsilon for equal gradients: readings, the exact value, and the attacks that were run."""

    epsilon: Reals
    curves: dict[str, Reals]
    attacks: Sequence[Counterexample]
    parameters: Parameters

    @property
    def contradicted(self) -> Finding:
        """Whether the data set loses more than ``inner`` promises all along; values that are no numbers say nothing."""
        exact, inner = (np.where(np.fmax(*self._both) < TINY, np.nan, values) for values in self._both)
        return compared(inner, "<", exact)

    @property
    def _both(self) -> tuple[Reals, Reals]:
        return self.curves["exact"], self.curves["inner"]

    def to_csv(self) -> str:
        """One row a point of the curves, one an attack."""
        rows = zip(self.epsilon, *self.curves.values(), strict=True)
        runs = [(a.epsilon, *("" for _ in self.curves), a.estimate, *a.interval) for a in self.attacks]
        return to_csv(
            ["epsilon", *self.curves, "attack", "low", "high"], [*((*row, "", "", "") for row in rows), *runs]
        )


def compute_inner_curve(setting: Setting, epsilons: NDArray[np.float64], repeats: int, seed: int) -> InnerCurve:
    """All along ``epsilons``, and the attack at a few of them."""
    laws = EqualGradients(setting)
    curves = {name: np.array([setting.delta(name, e) for e in epsilons]) for name in ("outer", "inner")}
    curves["exact"] = np.array([laws.exact(e) for e in epsilons])
    marks = np.unique(epsilons[:: max(1, len(epsilons) // 4)])
    attacks = [compute_counterexample(setting, float(e), repeats, seed) for e in marks]
    return InnerCurve(epsilons, curves, attacks, setting.as_parameters() | {"repeats": repeats, "seed": seed})
