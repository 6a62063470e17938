r"""Claims about accuracy, judged by the recorded training runs (``data/results``), never by a fresh one.

A printed gap comes from a single run.  It is compared with the mean of ours; the tolerance of its row is half the width
of the interval that would hold one more of our runs with 95 %, which a test recomputes from the same runs.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from flamelib.figures.flame_learning import GAPS, Gap
from flamelib.figures.flame_recorded import recorded_runs, recorded_sweep

DEVIATIONS = 2.0


def recorded_gap(claim: str, noise: str, dataset: str = "mnist") -> Gap:
    """A printed gap as we measured it, with ``fresh`` or with ``repeated`` noise."""
    ahead, behind, _ = GAPS[claim]
    return recorded_runs(dataset, noise).gap(ahead, behind)


def gap(claim: str, noise: str, dataset: str = "mnist") -> float:
    """Mean of the differences in final accuracy, in percentage points."""
    return recorded_gap(claim, noise, dataset).mean


def in_order(methods: Sequence[str], noise: str = "fresh", dataset: str = "mnist") -> bool:
    """Whether each method is ahead of the one before, by two standard deviations of the difference."""
    runs = recorded_runs(dataset, noise)
    gaps = [runs.gap(ahead, behind) for behind, ahead in pairwise(methods)]
    return all(one.mean > DEVIATIONS * one.spread for one in gaps)


def final(method: str, noise: str = "fresh", dataset: str = "mnist") -> float:
    """Mean accuracy of the last models on the users' own test images, in percent."""
    return float(recorded_runs(dataset, noise).final(method).mean())


def best(experiment: str, method: str) -> float:
    """The value of a recorded sweep at which a method is most accurate on average."""
    return recorded_sweep(experiment).best(method)


def rises(experiment: str, method: str, downwards: bool = False) -> bool:
    """Whether mean accuracy rises (or falls) from each value of a recorded sweep to the next."""
    steps = np.diff(recorded_sweep(experiment).mean(method))
    return bool((steps < 0).all() if downwards else (steps > 0).all())


def step_gain(method: str, over: str) -> float:
    """Accuracy of one estimate over another's, in points, both without noise and at the longest recorded step."""
    sweep = recorded_sweep("server_step")
    return float((sweep.finals[method] - sweep.finals[over])[:, -1].mean())
