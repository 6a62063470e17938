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
from scipy.stats import binom, binomtest

from flamebook.records import Parameters, to_csv
from flamelib.accounting.sampling import known
from flamelib.accounting.sampling.hidden import participation_noise, random_participation, random_participation_add
from flamelib.accounting.sampling.turned_gradients import MOST_RECORDS, turned_gradients
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import check

AT_ONCE = 2**20
CONFIDENCE = 0.95
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

        So many of them that their number varies little enough to be summed over; the rest are 0.
        """
        few = int(MOST_VARIANCE / max(self.record_rate * (1 - self.record_rate), MOST_VARIANCE / MOST_RECORDS))
        given = asdict(self) | {"n_records": min(self.n_records, few)}
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
        """Clipping norm over the noise."""
        return self.setting.clip_norm / self.setting.noise_std

    def weights(self, records: int) -> Reals:
        """Probability that 0, 1, ... gradients of this client are in the sum; shape (records + 1,)."""
        found = self.setting.participation_rate * binom.pmf(np.arange(records + 1), records, self.setting.record_rate)
        found[0] += 1 - self.setting.participation_rate
        return np.asarray(found)

    @cached_property
    def pair(self) -> tuple[Reals, Reals]:
        """The weights with the differing record and without it."""
        return self.weights(self.setting.n_records), self.weights(self.setting.n_records - 1)

    def density(self, x: float, record: bool) -> float:
        """Density of the published number, with the differing record or without it."""
        weights = self.pair[0 if record else 1]
        return float(weights @ np.exp(-((x - self.ratio * np.arange(len(weights))) ** 2) / 2)) / math.sqrt(2 * math.pi)

    def gain(self, x: float, epsilon: float) -> float:
        """Density with the record less ``exp(epsilon)`` times the one without."""
        return self.density(x, True) - math.exp(epsilon) * self.density(x, False)

    def threshold(self, epsilon: float) -> float:
        """Where that difference changes its sign, once: its coefficients in powers of exp(ratio x) do so once."""
        high = self.ratio
        while self.gain(high, epsilon) <= 0:
            high += 1.0
        return float(brentq(lambda x: self.gain(x, epsilon), -10.0, high, xtol=1e-12))

    def exact(self, epsilon: float) -> float:
        """Divergence by adaptive quadrature above the threshold."""
        low, high = self.threshold(epsilon), self.ratio * self.setting.n_records + 40.0
        breaks = np.linspace(low, high, 30)
        parts = (
            quad(self.gain, a, b, args=(epsilon,), epsabs=0.0, epsrel=1e-10)[0] for a, b in pairwise(breaks.tolist())
        )
        return math.fsum(parts)


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
        each = (1 + CONFIDENCE) / 2
        shares = [binomtest(count, self.repeats).proportion_ci(each, method="exact") for count in self.seen]
        factor = math.exp(self.epsilon)
        return float(shares[0].low - factor * shares[1].high), float(shares[0].high - factor * shares[1].low)

    @property
    def estimate(self) -> float:
        """Delta by the shares themselves."""
        return (self.seen[0] - math.exp(self.epsilon) * self.seen[1]) / self.repeats

    @property
    def refuted(self) -> bool:
        """Whether even the lower confidence limit exceeds what ``inner`` promises."""
        return self.interval[0] > self.values["inner"]

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: what is told, and delta."""
        return [
            ("inner (the reading probably printed)", self.values["inner"]),
            ("this data set, exactly", self.exact),
            ("times what inner promises", self.exact / self.values["inner"]),
            ("rounds run of each data set", self.repeats),
            ("attack", self.estimate),
            ("its 95% interval (Clopper-Pearson), from", self.interval[0]),
            ("to", self.interval[1]),
            ("outer (certified upper bound)", self.values["outer"]),
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
