"""Claims about learning through cloak aggregation, judged by the recorded runs (``data/results``), never by fresh ones.

Runs of two methods share their random numbers, so a method counts as ahead of another if the mean of paired differences
exceeds two of their standard deviations.
"""

from collections.abc import Sequence
from itertools import pairwise

from flamelib.companion.checks_learning import DEVIATIONS
from flamelib.figures.cloak_recorded import recorded_sweep
from flamelib.figures.flame_learning import Gap


def gap(ahead: str, behind: str, epsilon: float) -> Gap:
    """Paired differences of final accuracy of two methods at one guarantee, in points."""
    sweep = recorded_sweep("epsilon")
    at = list(sweep.x).index(epsilon)
    return Gap.of(sweep.finals[ahead][:, at] - sweep.finals[behind][:, at])


def in_order(methods: Sequence[str], epsilon: float) -> bool:
    """Whether each method is ahead of the next one."""
    found = [gap(ahead, behind, epsilon) for ahead, behind in pairwise(methods)]
    return all(one.mean > DEVIATIONS * one.spread for one in found)


def is_near(method: str, other: str, epsilon: float, points: float) -> bool:
    """Whether a method is at most so many points behind another one on average."""
    return gap(other, method, epsilon).mean <= points
