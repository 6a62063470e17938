"""FLAME's experiments: their public parameters, every method with the noise that its budget asks for, and its runs.

What a method publishes comes from the mechanism side, how much noise it needs from the privacy side; they meet here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from flamebook.experiments.runs import Runs
from flamelib.accounting.coordinates.certified import account
from flamelib.accounting.noise.gaussian import classical_noise_std
from flamelib.core.arrays import Floats
from flamelib.core.vocabulary import VOCABULARY, DomainError, check
from flamelib.learning.federated import Aggregate, Published, Users, train
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame
from flamelib.protocols.averages import CentralGaussian, LocalGaussian, LocalLaplace, OrderedTopk, PlainAverage

LEAST_CLAIM = 1e-9
LARGEST_EPSILON0 = VOCABULARY["epsilon0"].high


@dataclass(frozen=True, slots=True)
class Setting:
    """Public parameters of one experiment.

    Attributes
    ----------
    n_users : int
        Users in a round.
    epsilon0 : float
        Budget of one reported coordinate of SS-Double and SS-Topk; SS-Simple spreads ``kept`` times as much over all.
    sampling_rate : float
        Share of the coordinates that is reported.
    padded : int
        Messages of a coordinate after padding.
    clip_norm : float
        Clip of a coordinate.
    rounds : int
    """

    n_users: int = 1000
    epsilon0: float = 0.5
    sampling_rate: float = 0.02
    padded: int = 333
    clip_norm: float = 0.01
    rounds: int = 12

    def __post_init__(self) -> None:
        check(n_users=self.n_users, epsilon0=self.epsilon0, sampling_rate=self.sampling_rate, padded=self.padded)
        check(clip_norm=self.clip_norm, rounds=self.rounds)

    @property
    def delta(self) -> float:
        """The experiments' failure probability, 0.01 / n^1.1."""
        return float(0.01 / self.n_users**1.1)

    def kept(self, dimension: int) -> int:
        """Reported coordinates: the rate times the dimension, rounded down, one at least."""
        return max(1, math.floor(dimension * self.sampling_rate * (1 + 1e-12)))

    def fitted(self, users: Users) -> "Setting":
        """The same for no more users than there are, padding in proportion, with room for the mean of the reports."""
        n_users, dimension = min(self.n_users, len(users)), users.model.dimension
        room = math.ceil(n_users * self.kept(dimension) / dimension)
        padded = max(2, math.ceil(self.padded * n_users / self.n_users), room)
        return replace(self, n_users=n_users, padded=padded)


class Crowd(Protocol):
    """How many users a round has, and how many rounds there are."""

    @property
    def n_users(self) -> int: ...

    @property
    def rounds(self) -> int: ...


class Averaging(Protocol):
    """A way to publish a mean of updates."""

    def run(self, updates: Floats, rng: np.random.Generator) -> Published:
        """What a round publishes."""


Method = Averaging | flame.Protocol


def topk(setting: Setting, dimension: int, multiples: int = 1) -> flame.FlameTopk:
    """SS-Topk with Laplace noise in this setting."""
    kept, noise = setting.kept(dimension), LaplaceNoise(setting.epsilon0)
    return flame.FlameTopk(setting.n_users, dimension, setting.clip_norm, noise, kept, setting.padded, multiples)


def double(setting: Setting, dimension: int) -> flame.FlameDouble:
    """SS-Double with Laplace noise in this setting."""
    kept, noise = setting.kept(dimension), LaplaceNoise(setting.epsilon0)
    return flame.FlameDouble(setting.n_users, dimension, setting.clip_norm, noise, kept, setting.padded)


def simple(setting: Setting, dimension: int) -> flame.FlameSimple:
    """SS-Simple with the same budget for the vector, spread over all coordinates."""
    spread = LaplaceNoise(setting.epsilon0 * setting.kept(dimension) / dimension)
    return flame.FlameSimple(setting.n_users, dimension, setting.clip_norm, spread)


def dp_fl(setting: Setting, dimension: int, epsilon: float) -> CentralGaussian:
    r"""The trusted server of the experiments: 2-norm clip :math:`C\sqrt d`, noise by the classical formula."""
    clip = setting.clip_norm * math.sqrt(dimension)
    return CentralGaussian(clip, classical_noise_std(2 * clip, epsilon, setting.delta))


def ldp_fl(setting: Setting, dimension: int, epsilon: float) -> LocalGaussian:
    """Gaussian noise at every user: the budget divided by the dimension, the whole delta for every coordinate."""
    return LocalGaussian(setting.clip_norm, classical_noise_std(1.0, epsilon / dimension, setting.delta))


def claimed_epsilon(setting: Setting, dimension: int, route: str = "paper", protocol: str = "topk") -> float:
    """What the paper says a round keeps: its route through the withdrawn bound, with or without sampling."""
    kept = setting.kept(dimension)
    answer = account(
        protocol=protocol, dimension=dimension, kept=kept, n_users=setting.n_users, padded=setting.padded,
        epsilon0=setting.epsilon0 * (kept / dimension if protocol == "simple" else 1), delta=setting.delta,
        bound="withdrawn", route=route,
    )  # fmt: skip
    return float(answer)


def dense(setting: Setting) -> Setting:
    """The setting of the last printed gap: a tenth of the coordinates, two thirds of the users as padding."""
    return replace(setting, sampling_rate=0.1, padded=max(2, int(setting.n_users / 1.5)))


def all_methods(setting: Setting, dimension: int) -> dict[str, Method]:
    """The methods of the experiments; the baselines keep the budget claimed for SS-Topk, with and without sampling.

    ``topk:dense`` is SS-Topk in the setting of :func:`dense`.  A claim of 0, which no noise keeps, is taken for
    :data:`LEAST_CLAIM`.
    """
    claims = [claimed_epsilon(setting, dimension, route) for route in ("paper", "unsampled")]
    claimed, unsampled = (max(claim, LEAST_CLAIM) for claim in claims)
    return {
        "np": PlainAverage(),
        "dp:claimed": dp_fl(setting, dimension, claimed),
        "dp:unsampled": dp_fl(setting, dimension, unsampled),
        "topk": topk(setting, dimension),
        "topk:dense": topk(dense(setting), dimension),
        "double": double(setting, dimension),
        "simple": simple(setting, dimension),
        "ldp:Gaussian": ldp_fl(setting, dimension, claimed),
        "ldp:Laplace": LocalLaplace(setting.clip_norm, min(claimed / dimension, LARGEST_EPSILON0)),
    }


def aggregate(method: Method, repeat_noise: bool = False) -> Aggregate:
    """A method as a function of updates and generator.

    A generator that every round finds in the same state makes the noise of all others the very same again; that of
    SS-Topk depends on the order in which it is drawn, which then is that of the authors' code.
    """
    if isinstance(method, flame.FlameTopk) and repeat_noise:
        noise = method.randomizer
        if not isinstance(noise, LaplaceNoise):
            raise DomainError(f"randomizer must be LaplaceNoise for noise in order, got {noise!r}")
        return OrderedTopk(method.clip, noise.epsilon0, method.kept, method.padded).run
    return partial(flame.run, method) if isinstance(method, flame.Protocol) else method.run


# Printed with the experiments: (method ahead, method behind, percentage points).
GAPS = {
    "claim-4.07": ("double", "simple", 4.07),
    "claim-55.5": ("topk", "double", 55.5),
    "claim-33.94": ("topk", "dp:claimed", 33.94),
    "claim-60.7": ("topk", "ldp:Gaussian", 60.7),
    "claim-1.48": ("np", "topk:dense", 1.48),
}


def compute_runs(
    users: Users,
    setting: Crowd,
    methods: Mapping[str, Method],
    repeats: int,
    seed: int,
    *,
    repeat_noise: bool = False,
    server_step: float = 1.0,
) -> Runs:
    """Train every method ``repeats`` times.

    Parameters
    ----------
    users : Users
    setting : Crowd
        Users a round and rounds.
    methods : mapping from name to method
    repeats, seed : int
        Run i of every method gets the same child of the seed.
    repeat_noise : bool
        Every round of a run finds the generator in the same state, as the authors' code does unawares.
    server_step : float
        Factor on what is published.
    """
    curves, official, untouched, full = {}, {}, {}, {}
    for name, method in methods.items():
        histories = [
            train(
                aggregate(method, repeat_noise), users, setting.rounds, rng,
                n_users=setting.n_users, server_step=server_step, repeat_noise=repeat_noise, observe=_overfull,
            )
            for rng in np.random.default_rng(seed).spawn(repeats)
        ]  # fmt: skip
        curves[name] = np.array([history.held_back for history in histories])
        official[name] = np.array([history.official for history in histories])
        untouched[name] = np.array([history.untouched for history in histories])
        full[name] = np.array([history.observed for history in histories])
    return Runs(curves, official, untouched, full)


def _overfull(published: Published) -> tuple[int, int]:
    overflow = getattr(published, "overflow", np.zeros(1, dtype=np.int64))
    return int((overflow > 0).sum()), int(overflow.max())
