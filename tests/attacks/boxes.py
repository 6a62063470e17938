"""Points of a box for a climb: numbers between two ends each, on a straight or on a logarithmic scale."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from attacks.climb import Worst, climb

MORE = float(os.environ.get("FLAMELIB_ATTACK_TRIES", "0.5"))  # share of a hunt's points, or times as many
SEED = int(os.environ.get("FLAMELIB_ATTACK_SEED", "0"))  # added to that of each climb, for another hunt

Place = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """An interval; ``log`` draws the logarithm uniformly, ``whole`` rounds to a whole number."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def at(self, share: float) -> float:
        """The number at this share of the way."""
        share = min(max(share, 0.0), 1.0)
        if self.log:
            found = math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        else:
            found = self.low + share * (self.high - self.low)
        return float(round(found)) if self.whole else min(max(found, self.low), self.high)

    def share(self, value: float) -> float:
        """The share of the way to a number."""
        if self.low == self.high:
            return 0.0
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def hunt(miss: Callable[..., float], axes: list[Axis], seed: int, tries: int, starts: int = 6) -> Worst[Place]:
    """A climb over a box; ``miss`` takes the coordinates.  One coordinate or all of them move, a little or a lot."""

    def draw(rng: np.random.Generator) -> Place:
        # An end of an axis is where a branch often begins.
        shares = [rng.choice([0.0, 1.0]) if rng.random() < 0.1 else rng.random() for _ in axes]
        return tuple(axis.at(share) for axis, share in zip(axes, shares, strict=True))

    def move(place: Place, rng: np.random.Generator) -> Place:
        size, one = 10.0 ** rng.uniform(-4, -0.5), rng.integers(len(axes))
        moved = []
        for i, (axis, value) in enumerate(zip(axes, place, strict=True)):
            step = rng.normal() * size if i == one or rng.random() < 0.3 else 0.0
            new = axis.at(axis.share(value) + step) if step else value
            if axis.whole and i == one and new == value:
                new = min(max(value + rng.choice([-1, 1]), axis.low), axis.high)
            moved.append(float(new))
        return tuple(moved)

    def measured(place: Place) -> float:
        found = float(miss(*place))
        return -math.inf if math.isnan(found) else found

    return climb(measured, draw, move, seed + SEED, max(int(tries * MORE), starts), starts, 100.0 * MORE)
