r"""An attack on SS-Topk, exact and executed: its law, rounds of the protocol that are run, and what both give away.

The attack counts the messages above one half in the bags of k coordinates, where one user holds +C everywhere, or -C.
Its law is known (:mod:`flamelib.accounting.coordinates.counting`); here the protocol's own users and shuffler are run
as well.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.stats import binomtest

from flamebook.figures.style import Pen
from flamebook.records import Parameters, columns_csv, to_csv, words
from flamelib.accounting.coordinates.counting import Count, topk_lower
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame

AT_ONCE = 10
MESSAGES_AT_ONCE = 10**7
LARGEST_EPSILON = 700.0  # beyond, the exponential leaves the range of doubles
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Attack:
    """Counts of messages above one half in rounds that were run, and their law.

    Attributes
    ----------
    plus, minus : arrays of int, shape (repeats,)
        One count a round, the victim at +C and at -C.
    law : Count
        The exact law of both.
    epsilon : float
        The budget that is attacked; it fixes the threshold, before any round is run.
    """

    plus: NDArray[np.int64]
    minus: NDArray[np.int64]
    law: Count
    epsilon: float
    parameters: Parameters

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The counts that can be seen: what the victim can move, and four standard deviations beyond."""
        total, drift = self.law.fair + self.law.biased, self.law.biased * (self.law.chance - 0.5)
        middle, reach = total / 2, drift + 2 * math.sqrt(total)
        return np.arange(math.floor(middle - reach), math.ceil(middle + reach) + 1)

    @cached_property
    def laws(self) -> Reals:
        """Exact probabilities of these counts, the victim at +C and at -C; shape (2, counts)."""
        return np.array([self.law.pair(int(place), tails=False) for place in self.places]).T

    def threshold(self, epsilon: float) -> int:
        """The best test at ``epsilon``: +C is said from this count on."""
        return self.law.best_threshold(math.exp(epsilon))

    def exact(self, epsilon: float) -> float:
        """Delta that this test gives away, from the law."""
        more, less = self.law.pair(self.threshold(epsilon))
        return max(0.0, more - math.exp(epsilon) * less)

    def seen(self, epsilon: float) -> float:
        """The same from the shares of the rounds."""
        more, less = (np.mean(counts >= self.threshold(epsilon)) for counts in (self.plus, self.minus))
        return float(more - math.exp(epsilon) * less)

    def interval(self, epsilon: float) -> tuple[float, float]:
        """Clopper-Pearson interval of that delta: both shares hold together with ``CONFIDENCE``."""
        (low, high), (least, most) = self._shares(epsilon)
        return low - math.exp(epsilon) * most, high - math.exp(epsilon) * least

    def epsilon_at_least(self, delta: float) -> float:
        """Budget that the rounds alone show to be exceeded at ``delta``, with more than ``CONFIDENCE``."""
        (low, _), (_, most) = self._shares(self.epsilon)
        return math.log((low - delta) / most) if low > delta else 0.0

    def yielded(self, delta: float) -> float:
        """Budget that this count alone, by its exact law, shows to be exceeded at ``delta``: the attack's yield."""
        kept, padded, epsilon0 = (self.parameters[name] for name in ("kept", "padded", "epsilon0"))
        return float(topk_lower(float(kept), int(padded), float(epsilon0), delta=delta))

    def rows(self, delta: float, claimed: float) -> list[tuple[object, ...]]:
        """For a table: what is given away at the attacked budget beside the claimed ``delta``, and budgets at least.

        A budget ``claimed`` beyond the attacked one has a row of its own.
        """
        exact, (low, high) = self.exact(self.epsilon), self.interval(self.epsilon)
        attacked = [("epsilon attacked", self.epsilon)] if self.epsilon < claimed else []
        return [
            ("delta claimed at that epsilon", delta),
            ("delta given away, from the law", exact),
            ("times the claim", exact / delta),
            ("delta given away, in the simulated rounds", self.seen(self.epsilon)),
            ("its 95% interval (Clopper-Pearson), from", low),
            ("to", high),
            ("epsilon claimed", claimed),
            *attacked,
            ("the attack's yield: epsilon at the claimed delta, from the law", self.yielded(delta)),
            ("the same from the simulated rounds alone", self.epsilon_at_least(delta)),
        ]

    def _shares(self, epsilon: float) -> list[tuple[float, float]]:
        at, each = self.threshold(epsilon), (1 + CONFIDENCE) / 2
        tests = (binomtest(int((counts >= at).sum()), len(counts)) for counts in (self.plus, self.minus))
        found = (test.proportion_ci(each, method="exact") for test in tests)
        return [(float(one.low), float(one.high)) for one in found]

    def to_csv(self) -> str:
        """One row a possible count: both probabilities, and in how many rounds it was seen."""
        seen = [[int((counts == place).sum()) for place in self.places] for counts in (self.plus, self.minus)]
        names = ("law at +C", "law at -C", "rounds at +C", "rounds at -C")
        return columns_csv({"count": self.places} | dict(zip(names, (*self.laws, *seen), strict=True)))


def compute_attack(kept: int, padded: int, epsilon0: float, epsilon: float, repeats: int, seed: int) -> Attack:
    """Run SS-Topk ``repeats`` times with the victim at +C, as often at -C, and count in the bags after shuffling.

    Only the bags of the attacked coordinates are made.  Bags are shuffled one by one and share nothing, so that those
    of other coordinates say nothing about the victim; and another user who holds zero in an attacked coordinate sends
    what a dummy is.  So a model of just these coordinates, one other user at zero and dummies has the law of the whole
    round.  For the same reason some rounds are run at once, side by side as coordinates of one.

    Parameters
    ----------
    kept, padded, epsilon0
        Of the protocol: attacked coordinates, messages of each, local budget.
    epsilon : float
        The budget that is attacked; at most 700.
    repeats, seed : int

    Examples
    --------
    >>> attack = compute_attack(20, 30, 1.0, 0.2, repeats=50, seed=0)
    >>> len(attack.plus), attack.threshold(0.2), bool(attack.plus.mean() > attack.minus.mean())
    (50, 304, True)
    """
    check(kept=kept, padded=padded, epsilon=epsilon, repeats=repeats, seed=seed)
    if kept % 1:
        raise DomainError(f"kept must be a whole number of coordinates, got {kept!r}")
    if epsilon > LARGEST_EPSILON:
        raise DomainError(f"epsilon must be a number in [0, {LARGEST_EPSILON:g}] to be attacked, got {epsilon!r}")
    noise, kept = LaplaceNoise(epsilon0), int(kept)
    below = noise.mass / 2
    law = Count(kept * (padded - 1), kept, 1 - below, below)
    worlds = np.random.default_rng(seed).spawn(2)
    plus, minus = (_counts(kept, padded, noise, x, repeats, rng) for x, rng in zip((1, -1), worlds, strict=True))
    parameters = {"kept": kept, "padded": padded, "epsilon0": epsilon0, "repeats": repeats, "seed": seed}
    return Attack(plus, minus, law, epsilon, parameters | {"epsilon": epsilon})


def _counts(
    kept: int, padded: int, noise: LaplaceNoise, value: float, repeats: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    found = []
    at_once = max(1, min(AT_ONCE, MESSAGES_AT_ONCE // (kept * padded)))
    for start in range(0, repeats, at_once):
        rounds = min(at_once, repeats - start)
        dimension = kept * rounds
        protocol = flame.FlameTopk(2, dimension, 1.0, noise, kept=dimension, padded=padded)
        updates = np.outer([value, 0.0], np.ones(dimension))
        bags = np.asarray(flame.shuffler(protocol, flame.user(protocol, updates, rng), rng).bags, dtype=float)
        found.append(np.count_nonzero((bags > 0.5).reshape(rounds, -1), axis=1))
    return np.concatenate(found)


def draw_attack(ax: Axes, record: Attack, pen: Pen) -> None:
    """Histograms of the rounds under their exact laws, and the threshold."""
    edges = (np.unique(np.linspace(record.places[0], record.places[-1], 49).round()) - 0.5).tolist()
    for counts, law, key, name in (
        (record.plus, record.laws[0], "vermillion", "victim at +C"),
        (record.minus, record.laws[1], "blue", "victim at \N{MINUS SIGN}C"),
    ):
        weights = np.full(len(counts), 1 / len(counts) / (edges[1] - edges[0]))
        ax.hist(counts, edges, weights=weights, color=pen.colour(key), alpha=0.35, label=f"rounds, {name}")
        ax.plot(record.places, law, color=pen.colour(key), label=f"law, {name}")
    ax.axvline(
        record.threshold(record.epsilon) - 0.5, color=pen.theme.ink, linestyle=(0, (1.2, 1.6)), label="threshold"
    )
    ax.set(xlabel="messages above one half", ylabel="probability", ylim=(0, None))
    ax.locator_params(axis="x", nbins=6)


@dataclass(frozen=True, slots=True)
class AttackCurve:
    """Delta of the attack along epsilon: from the law, and from the rounds with an interval.

    Attributes
    ----------
    epsilon, exact : arrays of shape (points,)
    at, seen, low, high : arrays of shape (marks,)
    claimed : tuple of float
        The pair (epsilon, delta) that is attacked.
    """

    epsilon: Reals
    exact: Reals
    at: Reals
    seen: Reals
    low: Reals
    high: Reals
    claimed: tuple[float, float]
    parameters: Parameters

    def to_csv(self) -> str:
        """One row a point of the law, one a point of the rounds."""
        law = [("law", e, d, d, d) for e, d in zip(self.epsilon, self.exact, strict=True)]
        rounds = [("rounds", *row) for row in zip(self.at, self.seen, self.low, self.high, strict=True)]
        claim = ("claimed", self.claimed[0], *(self.claimed[1],) * 3)
        return to_csv(["source", "epsilon", "delta", "low", "high"], [*law, *rounds, claim])


def compute_attack_curve(attack: Attack, delta: float, points: int) -> AttackCurve:
    """From no budget at all to a little beyond the one that the attack refutes at ``delta``."""
    last = 1.1 * attack.yielded(delta) + 1e-3
    ends = (min(last, LARGEST_EPSILON), min(attack.epsilon * 1.25, LARGEST_EPSILON))
    grid, marks = np.linspace(0, ends[0], points), np.linspace(0, ends[1], 6)
    low, high = np.array([attack.interval(e) for e in marks]).T
    exact, seen = (np.array([at(e) for e in x]) for at, x in ((attack.exact, grid), (attack.seen, marks)))
    return AttackCurve(grid, exact, marks, seen, low, high, (attack.epsilon, delta), attack.parameters)


def draw_attack_curve(ax: Axes, record: AttackCurve, pen: Pen) -> None:
    """The law's curve, the rounds' intervals, and the claim far below both."""
    floor = record.claimed[1] / 10
    ax.plot(record.epsilon, record.exact, **pen.line("lower", label="given away, exactly"))
    reach = np.abs(np.array([record.low, record.high]) - record.seen)
    ax.errorbar(
        record.at,
        record.seen,
        reach,
        fmt="o",
        color=pen.colour("blue"),
        capsize=4,
        label="given away, in simulated rounds",
    )
    ax.axhline(record.claimed[1], color=pen.theme.ink, linewidth=1, linestyle=(0, (1.2, 1.6)))
    ax.plot(*record.claimed, "X", color=pen.colour("vermillion"), markersize=11, label="claimed")
    ax.set(xlabel=words("epsilon"), ylabel=words("delta"), yscale="log", ylim=(floor, 1))
