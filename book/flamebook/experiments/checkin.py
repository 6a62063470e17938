"""Learning with self check-in, as it is recorded: vector randomizers against no noise and no clip."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from flamebook.experiments.runs import Learning
from flamebook.records import Parameters
from flamelib.accounting.noise.gaussian import analytic_noise_std
from flamelib.core.vocabulary import DomainError, check
from flamelib.learning.checkin import Scheme, train
from flamelib.learning.models import Model
from flamelib.learning.records import Records
from flamelib.mechanisms.vectors import CapMessages, GaussianMessages, VectorRandomizer

UNPROTECTED, NOISELESS, CAP, SPHERE, GAUSSIAN = "unprotected", "noiseless", "privunit2", "duchi", "gaussian"
NAMES = (UNPROTECTED, NOISELESS, CAP, SPHERE, GAUSSIAN)
STEPS: Mapping[str, float] = {UNPROTECTED: 0.3, NOISELESS: 30.0, CAP: 10.0, SPHERE: 3.0, GAUSSIAN: 3.0}
LOCAL_DELTA = 1e-5
PUBLIC = ("n_users", "checkin_rate", "dropout", "epsilon0", "clip_norm", "rounds")


@dataclass(frozen=True, slots=True)
class Setting:
    r"""Public parameters of one experiment.

    Parameters
    ----------
    n_users : int
    checkin_rate : float in (0, 1]
        Chance that a user checks in.
    epsilon0 : float in (0, 700]
        Budget of one message; Gaussian noise keeps it with failure probability 1e-5.
    rounds : int
    dropout : float in [0, 1)
        Chance that a user that checked in is lost.
    clip_norm : float, positive
    steps : mapping from scheme to float
        Learning rates; what is not named is not trained.

    Examples
    --------
    >>> round(Setting(60_000, 0.125, 2.0, 5540, dropout=0.2).effective_rate, 12)
    0.1
    """

    n_users: int
    checkin_rate: float
    epsilon0: float
    rounds: int
    dropout: float = 0.0
    clip_norm: float = 0.05
    steps: Mapping[str, float] = field(default_factory=lambda: STEPS)

    def __post_init__(self) -> None:
        check(**self.as_parameters())
        if not self.steps or set(self.steps) - set(NAMES):
            raise DomainError(f"steps must name one of {', '.join(NAMES)} or more, got {', '.join(self.steps)}")

    def as_parameters(self) -> Parameters:
        """The public ones by name, as their check takes them and a recording keeps them."""
        return {name: getattr(self, name) for name in PUBLIC}

    @property
    def effective_rate(self) -> float:
        """Chance that a user's message arrives in a round."""
        return self.checkin_rate * (1 - self.dropout)

    @property
    def noise_std(self) -> float:
        """Noise that a user adds to each coordinate so that its message keeps (epsilon0, 1e-5)."""
        return analytic_noise_std(2 * self.clip_norm, self.epsilon0, LOCAL_DELTA)

    def randomizer(self, scheme: str, dimension: int) -> VectorRandomizer:
        """What a user does to its gradient."""
        if scheme == CAP:
            return CapMessages.privunit2(dimension, self.epsilon0, self.clip_norm)
        if scheme == SPHERE:
            return CapMessages.duchi(dimension, self.epsilon0, self.clip_norm)
        if scheme == GAUSSIAN:
            return GaussianMessages(dimension, self.clip_norm, self.noise_std)
        return GaussianMessages(dimension, math.inf if scheme == UNPROTECTED else self.clip_norm, 0.0)

    def schemes(self, dimension: int) -> dict[str, Scheme]:
        """All that is trained, with a step each."""
        return {name: Scheme(self.randomizer(name, dimension), step) for name, step in self.steps.items()}


def compute_learning(
    records: Records,
    setting: Setting,
    repeats: int,
    seed: int,
    *,
    model: Model | None = None,
    points: int = 20,
) -> Learning:
    """Train all schemes of a setting ``repeats`` times, softmax regression unless another model is given.

    ``noise`` of the record is the spread of one message on each coordinate: the length of a message over the root of
    the dimension, or the standard deviation of Gaussian noise.
    """
    trained = model or records.softmax
    schemes = setting.schemes(trained.dimension)
    histories = [
        train(
            trained, records, schemes, setting.rounds, rng, points=points,
            n_users=setting.n_users, checkin_rate=setting.checkin_rate, dropout=setting.dropout,
        )
        for rng in np.random.default_rng(seed).spawn(repeats)
    ]  # fmt: skip
    noise = {name: spread(scheme.randomizer) for name, scheme in schemes.items()}
    return Learning.of(histories, noise, {**setting.as_parameters(), "repeats": repeats, "seed": seed})


def spread(randomizer: VectorRandomizer) -> float:
    """Root mean square of a coordinate of a message, beside what it tells.

    >>> spread(GaussianMessages(10, 1.0, 0.5)), round(spread(CapMessages.duchi(100, 1.0, 1.0)), 3)
    (0.5, 2.705)
    """
    if isinstance(randomizer, GaussianMessages):
        return randomizer.noise_std
    return randomizer.norm / math.sqrt(randomizer.dimension)
