"""Claims about learning with random participation, judged by the recorded runs (``data/results``), never by fresh ones.

Runs of two schemes share their random numbers, so an order is one of paired differences: one scheme counts as ahead of
another if the 95 % confidence interval of the mean difference is above zero.
"""

from collections.abc import Sequence
from itertools import pairwise

from flamelib.figures.participation_learning import Learning
from flamelib.figures.participation_recorded import recorded


def in_order(experiment: str, schemes: Sequence[str], model: str) -> bool:
    """Whether each scheme is ahead of the next one."""
    runs = _runs(experiment, model)
    return all(runs.ahead(one, other) for one, other in pairwise(schemes))


def gap(experiment: str, one: str, other: str, model: str) -> float:
    """Mean of the differences in final accuracy, in percentage points."""
    return _runs(experiment, model).gap(one, other).mean


def final(experiment: str, scheme: str, model: str) -> float:
    """Mean accuracy of the last models on the test images, in percent."""
    return float(_runs(experiment, model).final(scheme).mean())


def noise_ratio(scheme: str, model: str) -> float:
    """Noise that a scheme needed in Experiment 6.2 over what it needed in Experiment 6.1."""
    return _runs("exp-6.2", model).noise[scheme] / _runs("exp-6.1", model).noise[scheme]


def _runs(experiment: str, model: str) -> Learning:
    """Recorded runs of an experiment by its name in the ledger: ``exp-6.1``."""
    return recorded(experiment.removeprefix("exp-"), model)
