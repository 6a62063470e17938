"""Claims about learning with self check-in, judged by the recorded runs (``data/results``), never by fresh ones.

Runs of two schemes share their random numbers, so an order is one of paired differences: one scheme counts as ahead of
another if the 95 % confidence interval of the mean difference is above zero.
"""

from collections.abc import Sequence
from itertools import pairwise

from flamelib.figures.checkin_recorded import recorded


def in_order(experiment: str, schemes: Sequence[str], model: str) -> bool:
    """Whether each scheme is ahead of the next one in the ``large`` or the ``small`` experiment."""
    runs = recorded(experiment, model)
    return all(runs.ahead(one, other) for one, other in pairwise(schemes))


def final(experiment: str, scheme: str, model: str) -> float:
    """Mean accuracy of the last models on the test images, in percent."""
    return float(recorded(experiment, model).final(scheme).mean())
