"""Other gradients of a client: which direction of them is worst, a search for worse ones, and the lemma."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from flamebook.attacks.participation import Setting
from flamebook.records import Parameters, columns_csv
from flamebook.statements import AtLeast, AtMost
from flamelib.accounting.sampling.turned_gradients import SHARPEST, Draws, draws_delta, subset_draws
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import check

SEARCH_BOXES = 2**16


@dataclass(frozen=True, slots=True)
class Angles:
    """Divergence against the angle of the other gradients, with the readings as levels.

    Attributes
    ----------
    angles : array of shape (angles,)
        In degrees.
    curves : mapping from what tells curves apart to an array of shape (angles,)
        Lower bounds, never above the divergence and within a thousandth of it.
    levels : mapping from the same to the upper bound
    """

    angles: Reals
    curves: Mapping[str, Reals]
    levels: Mapping[str, float]
    ylabel: str
    scale: str
    parameters: Parameters

    def rows(self) -> list[tuple[str, float, float, float, float]]:
        """For each curve: at 0 degrees, the worst angle, the value there, the upper bound."""
        worst = {name: int(values.argmax()) for name, values in self.curves.items()}
        most = {name: AtMost(level) for name, level in self.levels.items()}
        return [
            (name, AtLeast(values[0]), float(self.angles[worst[name]]), AtLeast(values.max()), most[name])
            for name, values in self.curves.items()
        ]

    @property
    def below(self) -> bool:
        """Whether every value is at most its level."""
        return all(values.max() <= self.levels[name] for name, values in self.curves.items())

    def to_csv(self) -> str:
        """One row an angle."""
        return columns_csv({"angle": self.angles, **self.curves})


def compute_angles(setting: Setting, epsilon: float, sizes: Sequence[int], points: int) -> Angles:
    """Delta of the round against the angle, for clients of several sizes, with ``outer`` as levels."""
    angles = np.linspace(0, 180, points)
    sized = {f"L = {size}": replace(setting, n_records=size) for size in sizes}
    curves = {name: np.array([one.turned(a, epsilon) for a in angles]) for name, one in sized.items()}
    levels = {name: one.delta("outer", epsilon) for name, one in sized.items()}
    given = {name: value for name, value in setting.as_parameters().items() if name != "n_records"}
    return Angles(angles, curves, levels, r"$\delta'$ at least", "log", given | {"epsilon": epsilon})


def compute_terms(setting: Setting, epsilon: float, counts: Sequence[int], points: int) -> Angles:
    """The same term by term: the divergence given that ``j`` other records were drawn; it falls with the angle."""
    angles = np.linspace(0, 180, points)
    curves = {f"j = {j}": np.array([_term(setting, epsilon, j, a) for a in angles]) for j in counts}
    levels = {name: float(values[0]) * (1 + 1e-3) for name, values in curves.items()}
    label = r"$\delta'$ given that $j$ others are drawn"
    return Angles(angles, curves, levels, label, "linear", setting.as_parameters() | {"epsilon": epsilon})


def _term(setting: Setting, epsilon: float, count: int, angle: float) -> float:
    """One number of other records, surely drawn: the sum of their gradients has one place only."""
    # More noise is post-processing, and keeps the boxes small.
    ratio, turn = min(setting.clip_norm / setting.noise_std, SHARPEST), math.radians(angle)
    place = count * ratio * np.array([[math.cos(turn), math.sin(turn)]])
    draws = Draws(np.ones(1), place, np.array([ratio, 0.0]))
    return float(draws_delta(draws, setting.participation_rate, setting.record_rate, epsilon, add=False))


@dataclass(frozen=True, slots=True)
class Search:
    """Configurations of gradients that were tried, and how near the bound they came.

    Attributes
    ----------
    records, epsilon : arrays of shape (starts,)
        Size of the client and budget of each start.
    ratios : array of shape (starts, 2)
        Largest divergence found over the certified bound: remove direction, add direction.
    tried : int
        Configurations evaluated, both directions of each.
    """

    records: NDArray[np.int64]
    epsilon: Reals
    ratios: Reals
    tried: int
    parameters: Parameters

    @property
    def exceeding(self) -> int:
        """Starts whose search exceeded the bound of its direction."""
        return int(np.count_nonzero(self.ratios.max(axis=1) > 1))

    def rows(self) -> list[tuple[object, ...]]:
        """For each size: starts, the largest ratio of each direction, how many exceed."""
        found = []
        for size in np.unique(self.records):
            chosen = self.ratios[self.records == size]
            found.append((int(size), len(chosen), *chosen.max(axis=0), int((chosen.max(axis=1) > 1).sum())))
        return found

    def to_csv(self) -> str:
        """One row a start."""
        return columns_csv(
            {"n_records": self.records, "epsilon": self.epsilon, "remove": self.ratios[:, 0], "add": self.ratios[:, 1]}
        )


def compute_search(starts: int, steps: int, seed: int) -> Search:
    """Random gradients of random norms in one to three dimensions, each start improved by random moves.

    Settings are random too: both rates in (0.02, 1), noise from 0.3 to 3 clipping norms, epsilon' from 0.003 to 1,
    2 to 6 records.  Every second start has all gradients of the largest norm.

    Examples
    --------
    >>> found = compute_search(starts=2, steps=2, seed=0)
    >>> found.tried, found.exceeding
    (6, 0)
    """
    check(repeats=starts, seed=seed)
    found = [
        _climb(rng, full=at % 2 == 0, steps=steps) for at, rng in enumerate(np.random.default_rng(seed).spawn(starts))
    ]
    records, epsilon, remove, add = np.array(found).T
    return Search(
        records.astype(np.int64), epsilon, np.column_stack([remove, add]), starts * (steps + 1),
        {"starts": starts, "steps": steps, "seed": seed},
    )  # fmt: skip


def _climb(rng: np.random.Generator, full: bool, steps: int) -> tuple[float, float, float, float]:
    """Moves are kept where they bring one of the two directions nearer to its bound."""
    size, dimensions = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    joins, drawn = 10 ** rng.uniform(-1.7, 0, 2)
    setting = Setting(float(joins), float(drawn), size, float(10 ** rng.uniform(-0.5, 0.5)))
    epsilon = float(10 ** rng.uniform(-2.5, 0))
    bounds = np.array([setting.delta("outer", epsilon), setting.delta("add", epsilon)])
    place = _gradients(rng, size, dimensions, full)
    best = largest = _ratios(setting, epsilon, place, bounds)
    for _ in range(steps):
        moved = _clipped(place + 0.4 * rng.standard_normal(place.shape), full)
        found = _ratios(setting, epsilon, moved, bounds)
        largest = np.maximum(largest, found)
        if found.max() > best.max():
            place, best = moved, found
    return size, epsilon, float(largest[0]), float(largest[1])


def _gradients(rng: np.random.Generator, size: int, dimensions: int, full: bool) -> Reals:
    return _clipped(rng.standard_normal((size, dimensions)) * rng.uniform(0.2, 1.5, (size, 1)), full)


def _clipped(gradients: Reals, full: bool) -> Reals:
    """No row longer than 1; or every row of length 1."""
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return np.asarray(gradients / (norms if full else np.maximum(norms, 1.0)))


def _ratios(setting: Setting, epsilon: float, gradients: Reals, bounds: Reals) -> Reals:
    draws = subset_draws(gradients / setting.noise_std, setting.record_rate)
    rates = (setting.participation_rate, setting.record_rate, epsilon)
    found = np.array([draws_delta(draws, *rates, add, SEARCH_BOXES) for add in (False, True)])
    return np.asarray(np.divide(found, bounds, out=np.zeros(2), where=bounds > 0))


@dataclass(frozen=True, slots=True)
class GramPairs:
    """Pairs of configurations of which the second has no smaller entry in its Gram matrix, and both functionals."""

    smaller: Reals
    larger: Reals
    parameters: Parameters

    @property
    def ordered(self) -> int:
        """How many pairs are in the order that the lemma says, up to what the boxes leave out."""
        return int(np.count_nonzero(self.larger >= self.smaller * (1 - 1e-3)))

    def to_csv(self) -> str:
        """One row a pair."""
        return columns_csv({"smaller Gram matrix": self.smaller, "larger Gram matrix": self.larger})


def compute_gram_pairs(pairs: int, seed: int) -> GramPairs:
    r"""Integrals of :math:`(\varphi_0-a_1\varphi_{u_1}-a_0\varphi_{u_0})_+` before and after :math:`w w^T` is added.

    With :math:`w\ge0` no entry of the Gram matrix falls.
    """
    check(repeats=pairs, seed=seed)
    rng = np.random.default_rng(seed)
    found = [_gram_pair(rng) for _ in range(pairs)]
    smaller, larger = np.array(found).T
    return GramPairs(smaller, larger, {"pairs": pairs, "seed": seed})


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
