"""The two lemmas under every composition, on small laws: curves that are profiles, and products that dominate."""

import itertools

import numpy as np
import pytest

from flamelib.core.arrays import Reals

Pair = tuple[Reals, Reals]


def profile(pair: Pair, alpha: float) -> float:
    return float(np.maximum(pair[0] - alpha * pair[1], 0).sum())


def knots(pair: Pair) -> list[float]:
    return [float(p / q) for p, q in zip(*pair, strict=True) if q > 0]


def dominating(pairs: list[Pair]) -> Pair:
    """A pair above all profiles: the largest of them at every knot, joined by chords, and level behind the last."""
    places = sorted({0.0, *itertools.chain.from_iterable(map(knots, pairs))})
    heights = [max(profile(pair, at) for pair in pairs) for at in places]
    slopes = [*((b - a) / (y - x) for (x, a), (y, b) in itertools.pairwise(zip(places, heights, strict=True))), 0.0]
    before = [-1.0, *slopes[:-1]]
    masses = np.array([after - slope for after, slope in zip(slopes, before, strict=True)])
    return np.append(masses * places, heights[-1]), np.append(masses, 0.0)


def product(one: Pair, other: Pair) -> Pair:
    return np.outer(one[0], other[0]).ravel(), np.outer(one[1], other[1]).ravel()


def laws(rng: np.random.Generator, count: int) -> list[Pair]:
    found = []
    for _ in range(count):
        p, q = rng.dirichlet(np.full(3, 0.7)), rng.dirichlet(np.full(3, 0.7))
        found.append((p, np.where(rng.random(3) < 0.2, 0.0, q)))
        found[-1] = (found[-1][0], found[-1][1] / max(found[-1][1].sum(), 1e-300))
    return [pair for pair in found if pair[1].sum() > 0.5]


@pytest.mark.parametrize("seed", range(40))
def test_the_pair_has_the_curve_and_its_product_dominates_what_adapts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, *seconds = laws(rng, 12)
    above, later = dominating([first, seconds[0]]), dominating(seconds)
    assert above[1].min() >= -1e-12
    assert np.allclose([above[0].sum(), above[1].sum()], 1)
    # The second mechanism is chosen by the outcome of the first.
    chosen = [seconds[int(i)] for i in rng.integers(len(seconds), size=3)]
    adaptive = (
        np.concatenate([first[0][y] * chosen[y][0] for y in range(3)]),
        np.concatenate([first[1][y] * chosen[y][1] for y in range(3)]),
    )
    together = product(above, later)
    for alpha in [*np.geomspace(1e-3, 1e3, 61).tolist(), *knots(adaptive)]:
        assert profile(first, alpha) <= profile(above, alpha) + 1e-12
        assert profile(adaptive, alpha) <= profile(together, alpha) + 1e-12


def test_to_dominate_from_one_on_is_not_enough() -> None:
    pair, other = (np.array([1.0, 0.0]), np.array([0.4, 0.6])), (np.array([0.8, 0.2]), np.array([0.2, 0.8]))
    assert all(profile(other, at) >= profile(pair, at) - 1e-12 for at in (1.0, *knots(pair), *knots(other)) if at >= 1)
    assert profile(product(pair, pair), 1.0) == pytest.approx(0.84)
    assert profile(product(other, other), 1.0) == pytest.approx(0.6)
