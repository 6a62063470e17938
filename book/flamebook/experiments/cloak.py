"""Federated averaging by cloak aggregation: what a guarantee costs in noise and bits, and what is learned.

How much noise, how many messages and which modulus come from the privacy side, what they do to training from the
mechanism side; they meet here.  Guarantees are for the whole training and for replacing everything that one user
holds: who takes part in :math:`T` rounds is protected by the composition of :math:`T` rounds.

FLAME stands beside it at the same certified epsilon.  That of one round is the epsilon of so many independent
coordinates (:mod:`flamelib.accounting.coordinates.certified`), and a user who takes part in :math:`T` rounds has
:math:`T` times as many; so the same statements account for the whole training.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from flamebook.experiments import flame
from flamebook.experiments.flame import Method
from flamebook.experiments.flame_grid import Point, Sweep
from flamebook.records import Parameters
from flamelib.accounting.coordinates.certified import account, topk_truncated
from flamelib.accounting.noise.gaussian import analytic_noise_std
from flamelib.core.search import greatest
from flamelib.core.vocabulary import DomainError, check
from flamelib.learning.cloak import CloakAverage
from flamelib.learning.federated import Users
from flamelib.protocols.averages import CentralGaussian, PlainAverage

PUBLIC = ("n_users", "rounds", "clip_norm", "scale", "epsilon", "delta", "colluding")


@dataclass(frozen=True, slots=True)
class Setting:
    r"""Public parameters of one experiment.

    Parameters
    ----------
    n_users : int
        Users in a round.
    rounds : int
    clip_norm : float, positive
        Largest 2-norm of an update.
    scale : int
        Steps of the grid in the clip.
    epsilon, delta : float
        Guarantee of the whole training.
    colluding : int
        Users of a round who may leave out their noise and tell their messages.
    log2_modulus : int, optional
        The modulus is this power of two; the least that the sum can never leave, if left out.

    Examples
    --------
    >>> Setting().as_parameters()["scale"]
    256
    """

    n_users: int = 1000
    rounds: int = 12
    clip_norm: float = 0.3
    scale: int = 256
    epsilon: float = 2.0
    delta: float = 1e-6
    colluding: int = 0
    log2_modulus: int | None = None

    def __post_init__(self) -> None:
        check(**self.as_parameters())
        if self.colluding >= self.n_users:
            raise DomainError(f"colluding must be below n_users = {self.n_users}, got {self.colluding}")
        if not 0 < self.delta < 1 or self.epsilon == 0:
            raise DomainError(f"delta must be a number in (0, 1) and epsilon above 0, got {self.delta}, {self.epsilon}")

    def as_parameters(self) -> Parameters:
        """The public ones by name, as their check takes them and a recording keeps them."""
        own = {name: getattr(self, name) for name in PUBLIC}
        return own if self.log2_modulus is None else {**own, "log2_modulus": self.log2_modulus}

    def fitted(self, users: Users) -> "Setting":
        """The same with all users in every round, where there are fewer than a round would have."""
        return self.sized(min(self.n_users, len(users)))

    def sized(self, n_users: int) -> "Setting":
        """The same with another number of users in a round, and as large a share of them colluding.

        >>> Setting(n_users=1000, colluding=100).sized(20).colluding
        2
        """
        return replace(self, n_users=n_users, colluding=min(self.colluding * n_users // self.n_users, n_users - 2))

    def taking_part(self, n_available: int) -> int:
        """Rounds that the first users take part in, who take part most often.

        >>> Setting(n_users=1000, rounds=12).taking_part(6000)
        2
        """
        return -(-self.rounds // max(1, n_available // self.n_users))

    def cloak(self, dimension: int, times: int) -> CloakAverage:
        """Cloak aggregation that keeps the guarantee for users who take part so many times."""
        return CloakAverage.calibrated(
            dimension, times, self.epsilon, self.delta,
            n_users=self.n_users, clip_norm=self.clip_norm, scale=self.scale, colluding=self.colluding,
            modulus=None if self.log2_modulus is None else 2**self.log2_modulus,
        )  # fmt: skip

    def server(self, times: int) -> CentralGaussian:
        """A trusted server with the same clip, its noise calibrated exactly."""
        moved = 2 * self.clip_norm * math.sqrt(times)
        return CentralGaussian(self.clip_norm, analytic_noise_std(moved, self.epsilon, self.delta))


PLAIN, SERVER, CLOAK = "unprotected", "server", "cloak"
FLAME = ("topk", "double", "simple")
EXPERIMENTS = ("epsilon", "clip_norm", "scale", "log2_modulus", "n_users")

Steps = Mapping[str, float]


def averages(setting: Setting, dimension: int, times: int) -> dict[str, Method]:
    """Without privacy, by a trusted server, by cloak aggregation: the latter two keep the setting's guarantee."""
    return {PLAIN: PlainAverage(), SERVER: setting.server(times), CLOAK: setting.cloak(dimension, times)}


def flame_epsilon(protocol: str, setting: flame.Setting, dimension: int, times: int, delta: float) -> float:
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


def flame_setting(protocol: str, setting: Setting, users: Users) -> flame.Setting:
    """FLAME's printed setting, with the largest local budget found that keeps the guarantee: never too large."""
    dimension, times = users.model.dimension, setting.taking_part(len(users))
    here = flame.Setting(n_users=setting.n_users, rounds=setting.rounds).fitted(users)

    def epsilon(epsilon0: float) -> float:
        return flame_epsilon(protocol, replace(here, epsilon0=epsilon0), dimension, times, setting.delta)

    return replace(here, epsilon0=greatest(epsilon, setting.epsilon, here.epsilon0 * min(setting.epsilon, 4.0)))


def flame_method(protocol: str, setting: flame.Setting, dimension: int) -> Method:
    """A protocol of FLAME; SS-Double includes every coordinate by itself, for the smaller account."""
    if protocol == "topk":
        return flame.topk(setting, dimension)
    if protocol == "simple":
        return flame.simple(setting, dimension)
    return replace(flame.double(setting, dimension), inclusion="independent")


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
    return Sweep.of(experiment, found)
