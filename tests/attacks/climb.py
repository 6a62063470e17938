"""A search for the worst point of a bound: hill climbing on how far an answer lies on the wrong side of the truth.

Uniform draws rarely meet the place where an error that is cut off is largest; a climb from many starts walks there.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

Point = TypeVar("Point")


@dataclass(frozen=True, slots=True)
class Worst(Generic[Point]):
    """The point at which a miss is largest, the miss, and how many points were tried."""

    point: Point
    miss: float
    tried: int


def climb(
    miss: Callable[[Point], float],
    draw: Callable[[np.random.Generator], Point],
    move: Callable[[Point, np.random.Generator], Point],
    seed: int,
    tries: int,
    starts: int = 8,
    seconds: float = 60.0,
) -> Worst[Point]:
    """The worst point found among ``tries`` evaluations: draws first, then moves from the worst ``starts`` of them.

    Parameters
    ----------
    miss : callable
        Truth minus answer of an upper end (answer minus truth of a lower one), in units of what the answer states as
        its error; positive means that the answer is on the wrong side.
    draw, move : callable
        A random point of the domain; a random neighbour of a point, within the domain.
    seed, tries, starts : int
        A third of the tries are draws; each start is then climbed in turn, a move being kept if it is no better for us.
    seconds : float
        No further point is tried after so long.  The verdict at the points tried does not depend on it.
    """
    rng, end = np.random.default_rng(seed), time.monotonic() + seconds
    drawn = [draw(rng) for _ in range(max(tries // 3, starts))]
    scored = sorted(((miss(point), place) for place, point in enumerate(drawn)), reverse=True)
    climbing = [(height, drawn[place]) for height, place in scored[:starts]]
    tried = len(drawn)
    while tried < tries and time.monotonic() < end:
        for place, (height, point) in enumerate(climbing):
            moved = move(point, rng)
            found = miss(moved)
            tried += 1
            if found >= height:
                climbing[place] = (found, moved)
    height, point = max(climbing, key=lambda one: one[0])
    return Worst(point, height, tried)
