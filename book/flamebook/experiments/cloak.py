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

import numpy as np

from flamebook.experiments import flame
from flamebook.experiments.flame import Method
from flamebook.experiments.flame_grid import Point, Sweep
from flamebook.records import Parameters
from flamebook.statements import compared, counted, either, percent
from flamebook.statements import times as ratio_words
from flamelib.accounting.coordinates.certified import account, topk_truncated
from flamelib.accounting.noise.gaussian import analytic_noise_std
from flamelib.accounting.noise.skellam import least_variance, rounded_norm
from flamelib.accounting.splitting.crowds import least_messages
from flamelib.accounting.splitting.lemmas import bits_sent, modulus_bits
from flamelib.core.arrays import Floats
from flamelib.core.search import greatest
from flamelib.core.vocabulary import DomainError, check
from flamelib.learning.cloak import CloakAverage
from flamelib.learning.federated import Users
from flamelib.mechanisms.integers.randomness import Simulation
from flamelib.protocols.averages import CentralGaussian, PlainAverage

SHARE = 0.01
FAR = 10
SEED_BITS = 128
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
        """For the card of a figure."""
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

    def security_bits(self, dimension: int, times: int) -> int:
        """How close shuffled shares must be, so that they cost a hundredth of delta."""
        both = self.epsilon + math.log1p(math.exp(-self.epsilon))
        return math.ceil(math.log2(dimension * times) + both / math.log(2) - math.log2(SHARE * self.delta))

    def cloak(self, dimension: int, times: int) -> CloakAverage:
        """Cloak aggregation that keeps the guarantee for users who take part so many times."""
        limit, bits = rounded_norm(dimension, self.scale), self.security_bits(dimension, times)
        variance = least_variance(dimension, 2 * limit, times, self.epsilon, self.delta, security_bits=bits)
        honest = self.n_users - self.colluding
        reach = self.n_users * math.floor(limit) + math.ceil(FAR * math.sqrt(variance * self.n_users / honest))
        log2_modulus = self.log2_modulus or (2 * reach).bit_length()
        n_messages = least_messages(bits, self.n_users, 2**log2_modulus, self.colluding)
        return CloakAverage(
            self.n_users, self.clip_norm, self.scale, limit, variance, 2**log2_modulus, n_messages, self.colluding
        )

    def server(self, times: int) -> CentralGaussian:
        """A trusted server with the same clip, its noise calibrated exactly."""
        moved = 2 * self.clip_norm * math.sqrt(times)
        return CentralGaussian(self.clip_norm, analytic_noise_std(moved, self.epsilon, self.delta))


@dataclass(frozen=True, slots=True)
class Round:
    """One round with every message sent, beside the plain sum of the same whole numbers.

    Attributes
    ----------
    messages : int
        Of all users.
    wrong : int
        Coordinates in which decoded and plain sum differ.
    error : float
        2-norm of the difference to the mean of the clipped updates, relative to that mean.
    """

    messages: int
    wrong: int
    error: float


def compute_round(users: Users, method: CloakAverage, seed: int) -> Round:
    """Run the protocol once without noise on the updates of the first round."""
    quiet, updates = replace(method, variance=0.0), first_updates(users, method.n_users, seed)
    summed = quiet.run(updates, np.random.default_rng(seed)).estimate
    decoded = quiet.run_messages(updates, Simulation(np.random.default_rng(seed)))
    norms = np.linalg.norm(updates, axis=1)
    plain = np.minimum(1, method.clip_norm / norms) @ updates.astype(np.float64) / len(updates)
    error = float(np.linalg.norm(decoded - plain) / np.linalg.norm(plain))
    return Round(updates.size * method.n_messages, int((decoded != summed).sum()), error)


def first_updates(users: Users, n_users: int, seed: int) -> Floats:
    """What the users of the first round would send, of shape (n_users, dimension)."""
    model, block = users.model, slice(0, n_users)
    start = model.initial(np.random.default_rng(seed))
    return model.local_updates(start, users.images[block], users.labels[block], learning_rate=0.1, epochs=10)


def plan_rows(setting: Setting, dimension: int, times: int) -> list[tuple[object, ...]]:
    """For a table: what a guarantee asks for."""
    method, server = setting.cloak(dimension, times), setting.server(times)
    return [
        ("longest rounded update, in clips", method.norm_limit / method.scale),
        ("noise on a coordinate of the sum, steps of the grid", math.sqrt(method.variance)),
        ("the same, in clips", math.sqrt(method.variance) / method.scale),
        ("a trusted server's Gaussian noise, in clips", server.noise_std / server.clip_norm),
        ("bits of a message", modulus_bits(method.modulus)),
        ("security of the shares of one coordinate, bits", setting.security_bits(dimension, times)),
        ("messages per coordinate", method.n_messages),
    ]


def scale_rows(setting: Setting, dimension: int, times: int, scales: Iterable[int]) -> list[tuple[object, ...]]:
    """For a table: the grid, the longest rounded update and noise against a trusted server's, bits, messages, kB."""
    server = setting.server(times).noise_std / setting.n_users
    rows: list[tuple[object, ...]] = []
    for scale in scales:
        method = replace(setting, scale=scale).cloak(dimension, times)
        size = (modulus_bits(method.modulus), method.n_messages, kilobytes(method, dimension))
        rows.append((scale, method.norm_limit / scale, method.noise_std / server, *size))
    return rows


def crowd_rows(setting: Setting, dimension: int, times: int, crowds: Iterable[int]) -> list[tuple[object, ...]]:
    """For a table: users, bits of a message, messages of a coordinate, kB of a user by cloak and by seeds."""
    rows: list[tuple[object, ...]] = []
    for n_users in crowds:
        method = setting.sized(n_users).cloak(dimension, times)
        sizes = (kilobytes(method, dimension), seeded(method, dimension))
        rows.append((n_users, modulus_bits(method.modulus), method.n_messages, *sizes))
    return rows


def cost_rows(setting: Setting, dimension: int, times: int) -> list[tuple[object, ...]]:
    """For a table: numbers that a user sends in a round, and their size in kB, way by way."""
    method, kept = setting.cloak(dimension, times), flame.Setting().kept(dimension)
    bits, place = modulus_bits(method.modulus), (dimension - 1).bit_length()
    shares = dimension * method.n_messages
    return [
        ("plain averaging, single precision", dimension, dimension * 32 / 8e3),
        ("whole numbers modulo N, nothing hidden", dimension, dimension * bits / 8e3),
        ("cloak aggregation", shares, kilobytes(method, dimension)),
        ("cloak aggregation, all shares but one as seeds", shares, seeded(method, dimension)),
        ("SS-Simple, double precision", dimension, dimension * 64 / 8e3),
        ("SS-Double and SS-Topk, each with its place", kept, kept * (64 + place) / 8e3),
    ]


def kilobytes(method: CloakAverage, dimension: int) -> float:
    """What a user sends in a round, in kB."""
    return bits_sent(method.modulus, method.n_messages, dimension) / 8e3


def seeded(method: CloakAverage, dimension: int) -> float:
    """The same where all vectors of shares but one are sent as seeds to a shuffler that is trusted to expand them."""
    return ((method.n_messages - 1) * SEED_BITS + dimension * modulus_bits(method.modulus)) / 8e3


def crowd_words(setting: Setting, users: Users) -> str:
    """How many users there are, and how many of them take part in a round."""
    colluding = f", of whom {setting.colluding:,} may collude" if setting.colluding else ""
    return f"{counted(len(users), 'user')} hold them; {setting.n_users:,} take part in a round{colluding}."


def noise_words(setting: Setting, dimension: int, times: int) -> dict[str, str]:
    """The noise beside a trusted server's, and how much longer a vector grows by rounding.

    >>> noise_words(Setting(), 7850, 2)
    {'noise_ratio': '1.09 times', 'longer': '1.7 %'}
    """
    method, server = setting.cloak(dimension, times), setting.server(times)
    ratio = math.sqrt(method.variance) / method.scale / (server.noise_std / server.clip_norm)
    return {"noise_ratio": ratio_words(ratio, 3), "longer": percent(method.norm_limit / method.scale - 1)}


def byte_words(setting: Setting, dimension: int, times: int, crowds: Iterable[int]) -> dict[str, str]:
    """What a user sends, beside SS-Topk, by seeds and in other crowds.

    >>> byte_words(Setting(), 7850, 2, [100, 1000])  # doctest: +NORMALIZE_WHITESPACE
    {'copies': '12 times', 'seed_share': '92 %', 'least_kb': '236', 'most_kb': '250', 'cost_ratio': '160 times',
     'cost_verdict': 'does not hold'}
    """
    method, rows = setting.cloak(dimension, times), cost_rows(setting, dimension, times)
    own, topk = kilobytes(method, dimension), float(str(rows[-1][-1]))
    others = [float(str(row[3])) for row in crowd_rows(setting, dimension, times, crowds)]
    return {
        "copies": ratio_words(method.n_messages),
        "seed_share": percent(1 - seeded(method, dimension) / own),
        "least_kb": f"{min(others):.3g}",
        "most_kb": f"{max(others):.3g}",
        "cost_ratio": ratio_words(own / topk),
        "cost_verdict": either(compared(own, "<=", topk), "holds", "does not hold"),
    }


def recorded_words(equal: Sweep, modulus: Sweep, crowd: Sweep) -> dict[str, str]:
    """What recorded sweeps were: runs, rounds, users; and what a smaller modulus did."""
    accuracy, wrapped = modulus.mean(CLOAK), modulus.full[CLOAK][..., 0].mean(axis=1)[:, 0]
    clean = modulus.x[wrapped < 1]
    behind = equal.mean(SERVER) - equal.mean(CLOAK)
    at = f"{float(equal.x[int(np.abs(behind).argmax())]):g}"
    return {
        "recorded_runs": counted(len(equal.finals[CLOAK]), "run"),
        "sweep_runs": counted(len(modulus.finals[CLOAK]), "run"),
        "recorded_crowd": f"{equal.parameters['n_users']:,} users a round, {equal.parameters['rounds']} rounds",
        "crowd_rounds": f"{crowd.parameters['rounds']} rounds",
        "all_users": f"{max(crowd.x):.0f} users",
        "narrowest": f"{modulus.x[0]:g}",
        "clean": f"{clean.min():g}",
        "wrapped": f"{wrapped[0]:.0f} coordinates",
        "wrapped_cost": f"{accuracy[-1] - accuracy[0]:.1f} points",
        "largest_gap": f"{abs(behind).max():.2f} points, at $\\varepsilon={at}$",
        "noise_verdict": either(compared(abs(behind[list(equal.x).index(2.0)]), "<", 0.5), "holds", "does not hold"),
    }


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
    fixed = {name: value for name, value in setting.as_parameters().items() if name != experiment}
    return Sweep.of(experiment, found, {**fixed, "repeats": repeats, "seed": seed})
