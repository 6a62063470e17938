r"""What the accuracy of cloak aggregation depends on, and FLAME beside it at the same certified epsilon.

FLAME's certified epsilon of one round is that of so many independent coordinates
(:mod:`flamelib.accounting.coordinates.certified`), and a user who takes part in :math:`T` rounds has :math:`T` times as many; so
the same statements account for the whole training.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from flamelib.accounting.coordinates.certified import account, topk_truncated
from flamelib.core.search import greatest
from flamelib.core.vocabulary import DomainError
from flamelib.figures import flame_methods
from flamelib.figures.cloak_learning import Setting
from flamelib.figures.flame_methods import Method
from flamelib.figures.flame_tradeoffs import Point, Sweep
from flamelib.learning.federated import Users
from flamelib.protocols.averages import PlainAverage

PLAIN, SERVER, CLOAK = "unprotected", "server", "cloak"
FLAME = ("topk", "double", "simple")
EXPERIMENTS = ("epsilon", "clip_norm", "scale", "log2_modulus", "n_users")

Steps = Mapping[str, float]


def averages(setting: Setting, dimension: int, times: int) -> dict[str, Method]:
    """Without privacy, by a trusted server, by cloak aggregation: the latter two keep the setting's guarantee."""
    return {PLAIN: PlainAverage(), SERVER: setting.server(times), CLOAK: setting.cloak(dimension, times)}


def flame_epsilon(protocol: str, setting: flame_methods.Setting, dimension: int, times: int, delta: float) -> float:
    """Certified epsilon of users who take part so many times (upper), by the protocol's own accounting."""
    kept = setting.kept(dimension)
    if protocol == "topk":
        return float(topk_truncated(times * kept, setting.padded, setting.epsilon0, delta))
    rate = kept / dimension if protocol == "simple" else 1.0
    return float(
        account(
            protocol=protocol, dimension=times * dimension, n_users=setting.n_users, epsilon0=setting.epsilon0 * rate,
            delta=delta, bound="blanket", route="sound", kept=times * kept, padded=setting.padded,
        )
    )  # fmt: skip


def flame_setting(protocol: str, setting: Setting, users: Users) -> flame_methods.Setting:
    """FLAME's printed setting, with the largest local budget found that keeps the guarantee: never too large."""
    dimension, times = users.model.dimension, setting.taking_part(len(users))
    here = flame_methods.Setting(n_users=setting.n_users, rounds=setting.rounds).fitted(users)

    def epsilon(epsilon0: float) -> float:
        return flame_epsilon(protocol, replace(here, epsilon0=epsilon0), dimension, times, setting.delta)

    return replace(here, epsilon0=greatest(epsilon, setting.epsilon, here.epsilon0 * min(setting.epsilon, 4.0)))


def flame_method(protocol: str, setting: flame_methods.Setting, dimension: int) -> Method:
    """A protocol of FLAME; SS-Double includes every coordinate by itself, which its accounting needs."""
    if protocol == "topk":
        return flame_methods.topk(setting, dimension)
    if protocol == "simple":
        return flame_methods.simple(setting, dimension)
    return replace(flame_methods.double(setting, dimension), inclusion="bernoulli")


def points(setting: Setting, users: Users, experiment: str, values: Iterable[float], steps: Steps) -> list[Point]:
    """The points of a sweep by the name of its axis, each method with its own step.

    Where the clip is varied the step is varied against it, so that noise moves the model as far everywhere.
    """
    if experiment not in EXPERIMENTS:
        raise DomainError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {experiment!r}")
    found = []
    for value in values:
        here = _with(setting, experiment, value)
        step = setting.clip_norm / here.clip_norm
        for name, method in averages(here, users.model.dimension, here.taking_part(len(users))).items():
            if name in steps:
                found.append(Point(value, here, {name: method}, steps[name] * step))
    return found


def _with(setting: Setting, name: str, value: float) -> Setting:
    changed: dict[str, Any] = {name: value if name in ("epsilon", "clip_norm") else int(value)}
    return replace(setting, **changed)


def compute_sweep(
    users: Users, setting: Setting, experiment: str, values: Iterable[float], steps: Steps, repeats: int, seed: int
) -> Sweep:
    """Train at every point of a sweep, with the same seeds at each.

    Parameters
    ----------
    users : Users
    setting : Setting
    experiment : str
        ``epsilon``, ``clip_norm``, ``scale``, ``log2_modulus`` or ``n_users``: what the values are.
    values : iterable of numbers
    steps : mapping from method to float
        Factor on the published mean; what is not named is not trained.
    repeats, seed : int
    """
    found = [(one.value, one.train(users, repeats, seed)) for one in points(setting, users, experiment, values, steps)]
    fixed = {name: value for name, value in setting.as_parameters().items() if name != experiment}
    return Sweep.of(experiment, found, {**fixed, "repeats": repeats, "seed": seed})
