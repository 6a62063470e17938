"""What the accuracy of FLAME depends on: local budget, padding, sampling, hiding indices, the size of the step.

A sweep trains at the points of a grid.  The same grids are run here at a quick size and, in full, for the recorded
results (:mod:`flamebook.recordings.flame`).  The experiments compare methods at epsilons that nobody proved; at equal
budgets every protocol stands over the certified interval of its epsilon, and the trusted server, whose epsilon is
exact, along all of them.

Source: Liu, Cao, Chen, Guo, Yoshikawa 2021, Figures 6 to 8; steps, multiples and equal budgets are this book's.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flamebook.experiments.flame import (
    Crowd,
    Method,
    Setting,
    compute_runs,
    double,
    simple,
    topk,
)
from flamebook.experiments.runs import Gap, Runs
from flamelib.accounting.coordinates.certified import account, double_revealed, topk_truncated
from flamelib.accounting.noise.gaussian import analytic_noise_std
from flamelib.core.arrays import Reals
from flamelib.core.search import greatest
from flamelib.core.vocabulary import DomainError
from flamelib.learning.federated import Users
from flamelib.protocols.averages import CentralGaussian, ClippedAverage, LocalGaussian, SparseAverage

LONGER_STEP = 4.0
DOUBLE = ("double", "double:told")  # accounted as it is, and as if the coordinates were known


@dataclass(frozen=True, slots=True)
class Point:
    """One training experiment of a sweep.

    Attributes
    ----------
    value : float
        Where it stands on the axis.
    setting : Crowd
    methods : mapping from name to method
    server_step : float
    """

    value: float
    setting: Crowd
    methods: Mapping[str, Method]
    server_step: float = 1.0

    def train(self, users: Users, repeats: int, seed: int) -> Runs:
        """All methods of the point."""
        return compute_runs(users, self.setting, self.methods, repeats, seed, server_step=self.server_step)


def setting_points(setting: Setting, dimension: int, name: str, values: Iterable[float]) -> list[Point]:
    """SS-Topk and SS-Double with ``epsilon0``, ``padded`` or ``sampling_rate`` of the setting replaced by each value.

    Where padding would fall below the expected number of reports there is no protocol, and no point.
    """
    settings = {value: _with(setting, name, value) for value in values}
    return [
        Point(value, here, {"topk": topk(here, dimension), "double": double(here, dimension)})
        for value, here in settings.items()
        if here.padded * dimension >= here.n_users * here.kept(dimension)
    ]


def _with(setting: Setting, name: str, value: float) -> Setting:
    changed: dict[str, Any] = {name: int(value) if name == "padded" else value}
    return replace(setting, **changed)


def step_points(setting: Setting, dimension: int, factors: Iterable[float]) -> list[Point]:
    r"""Steps in units of the honest mean of what is averaged: SS-Topk, the same without noise, plain clipped averages.

    SS-Topk publishes :math:`1/\beta` times the mean of the sparsified updates, so its own step is :math:`1/\beta`.
    """
    kept = setting.kept(dimension)
    plain: dict[str, Method] = {
        "sparse": SparseAverage(setting.clip_norm, kept),
        "clipped": ClippedAverage(setting.clip_norm),
    }
    points = []
    for factor in factors:
        points.append(Point(factor, setting, {"topk": topk(setting, dimension)}, factor * kept / dimension))
        points.append(Point(factor, setting, plain, factor))
    return points


def server_points(setting: Setting, dimension: int, epsilons: Iterable[float]) -> list[Point]:
    """The trusted server with exactly calibrated noise at each epsilon of a round, with its own step and a longer one.

    The step is taken after the noise, so that it costs no privacy.
    """
    clip, found = setting.clip_norm * math.sqrt(dimension), []
    for epsilon in epsilons:
        if epsilon <= 0:
            raise DomainError(f"epsilon must be above 0 on a logarithmic axis, got {epsilon}")
        server = CentralGaussian(clip, analytic_noise_std(2 * clip, epsilon, setting.delta))
        found.append(Point(epsilon, setting, {"dp": server}))
        found.append(Point(epsilon, setting, {"dp:step": server}, LONGER_STEP))
    return found


def sound_points(setting: Setting, dimension: int, epsilons: Iterable[float]) -> list[Point]:
    """Every way to publish with the least noise found whose certified epsilon of a round is at most the value.

    SS-Double reports exactly ``kept`` coordinates; ``double:told`` is the same with the noise that was needed as long
    as the coordinates had to be told to the analyzer.  SS-Topk drops what finds no room; nothing is assumed of data.
    """
    clip, found = setting.clip_norm * math.sqrt(dimension), []
    for epsilon in epsilons:
        local = {name: sound_setting(setting, dimension, name, epsilon) for name in ("topk", *DOUBLE, "simple")}
        methods: dict[str, Method] = {
            "dp": CentralGaussian(clip, analytic_noise_std(2 * clip, epsilon, setting.delta)),
            "topk": topk(local["topk"], dimension),
            **{name: double(local[name], dimension) for name in DOUBLE},
            "simple": simple(local["simple"], dimension),
            "ldp": LocalGaussian(setting.clip_norm, analytic_noise_std(math.sqrt(dimension), epsilon, setting.delta)),
        }
        found.append(Point(epsilon, setting, methods))
    return found


def sound_setting(setting: Setting, dimension: int, protocol: str, epsilon: float) -> Setting:
    """The setting with the largest local budget found whose certified epsilon of a round is at most ``epsilon``."""

    def certified(epsilon0: float) -> float:
        return certified_epsilon(replace(setting, epsilon0=epsilon0), dimension, protocol)

    return replace(setting, epsilon0=greatest(certified, epsilon, setting.epsilon0 * min(epsilon, 4.0)))


def hiding_points(setting: Setting, dimension: int, multiples: Iterable[int]) -> list[Point]:
    """SS-Topk whose true coordinates are hidden among several times as many reported ones.

    In place of more multiples than fit into the bags or into the vector stand the most that do.
    """
    kept = setting.kept(dimension)
    most = max(1, min(setting.padded * dimension // (setting.n_users * kept), -(-dimension // kept)))
    counts = sorted({min(count, most) for count in multiples})
    return [Point(count, setting, {"topk": topk(setting, dimension, count)}) for count in counts]


def points(setting: Setting, dimension: int, experiment: str, values: Iterable[float]) -> list[Point]:
    """The points of a sweep by the name of its axis."""
    if experiment == "server_step":
        return step_points(setting, dimension, values)
    if experiment == "epsilon":
        return server_points(setting, dimension, values)
    if experiment == "sound":
        return sound_points(setting, dimension, values)
    if experiment == "multiples":
        return hiding_points(setting, dimension, map(int, values))
    return setting_points(setting, dimension, experiment, values)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Final accuracy of some methods against one parameter, several runs at each value.

    Attributes
    ----------
    x_name : str
    x : array of shape (points,)
    finals : mapping from method to array of shape (repeats, points)
        Percent of the users' own test images; NaN where the method has no such point.
    full : mapping from method to array of shape (points, repeats, 2, 2)
        In the first and the last round: coordinates with more reports than padding has room for, and the most that
        did not fit.
    """

    x_name: str
    x: Reals
    finals: Mapping[str, Reals]
    full: Mapping[str, NDArray[np.int64]]

    @classmethod
    def of(cls, x_name: str, found: Sequence[tuple[float, Runs]]) -> "Sweep":
        """From the value and the runs of every point."""
        x = sorted({value for value, _ in found})
        names = list(dict.fromkeys(name for _, runs in found for name in runs.curves))
        finals, full = {}, {}
        for name in names:
            at = {value: runs for value, runs in found if name in runs.curves}
            repeats = len(next(iter(at.values())).curves[name])
            nothing = np.full(repeats, math.nan), np.zeros((repeats, 2, 2), dtype=np.int64)
            columns = [(at[v].final(name), at[v].full[name][:, [0, -1]]) if v in at else nothing for v in x]
            finals[name] = np.stack([final for final, _ in columns], axis=1)
            full[name] = np.stack([one for _, one in columns])
        return cls(x_name, np.array(x, dtype=float), finals, full)

    def mean(self, method: str) -> Reals:
        """Mean over runs."""
        return np.asarray(self.finals[method].mean(axis=0))

    def spread(self, method: str) -> Reals:
        """Standard deviation over runs."""
        return np.asarray(self.finals[method].std(axis=0, ddof=1))

    def best(self, method: str) -> float:
        """The value with the highest mean."""
        return float(self.x[np.nanargmax(self.mean(method))])

    def at(self, method: str, value: float) -> Gap:
        """Mean and spread at one value of the grid."""
        return Gap.of(self.finals[method][:, int(np.argmin(np.abs(self.x - value)))])


def compute_sweep(
    users: Users, setting: Setting, experiment: str, values: Iterable[float], repeats: int, seed: int
) -> Sweep:
    """Train at every point of a sweep, with the same seeds at each.

    Parameters
    ----------
    users : Users
    setting : Setting
    experiment : str
        ``epsilon0``, ``padded`` or ``sampling_rate`` (SS-Topk and SS-Double), ``server_step``, ``epsilon`` (the trusted
        server), ``sound`` (all, at a certified epsilon) or ``multiples``: what the values are.
    values : iterable of numbers
    repeats, seed : int
    """
    grid = points(setting, users.model.dimension, experiment, values)
    if not grid:
        raise DomainError(f"{experiment} must have a value with room for the expected number of reports")
    found = [(one.value, one.train(users, repeats, seed)) for one in grid]
    return Sweep.of(experiment, found)


def certified_epsilon(setting: Setting, dimension: int, protocol: str) -> float:
    """Certified epsilon of one round (upper), for the protocols as they are trained here.

    SS-Double reports exactly ``kept`` coordinates (``double:told``: as if they were known), and SS-Topk's holds for all
    data; a shuffler keeps ``padded`` of too many messages at random, as ours does.
    """
    kept, padded, epsilon0, delta = setting.kept(dimension), setting.padded, setting.epsilon0, setting.delta
    if protocol == "topk":
        return float(topk_truncated(kept, padded, epsilon0, delta))
    if protocol == "double:told":
        return float(double_revealed(kept, padded, epsilon0, delta))
    given: dict[str, Any] = {"dimension": dimension, "n_users": setting.n_users, "delta": delta}
    if protocol == "simple":
        given |= {"epsilon0": epsilon0 * kept / dimension}
    else:
        given |= {"epsilon0": epsilon0, "kept": kept, "padded": padded, "inclusion": "exact", "overflow": "drop"}
    return float(account(protocol=protocol, bound="blanket", route="sound", **given))
