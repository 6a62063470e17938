r"""Learning with random participation: every scheme with the noise that its accounting asks for at one guarantee.

How much noise comes from the privacy side, what it does to training from the mechanism side; they meet here.  All
schemes of a run share initial model, batches and directions of noise, so that differences are taken within a run.
"""

import math
from dataclasses import dataclass

import numpy as np

from flamebook.experiments.runs import Learning
from flamebook.records import Parameters
from flamelib.accounting.sampling.hidden import participation_noise
from flamelib.core.vocabulary import check
from flamelib.learning.models import Model
from flamelib.learning.participation import Scheme, train
from flamelib.learning.records import Records

UNPROTECTED, NOISELESS = "unprotected", "noiseless"
BASELINES = ("wcs", "ols")
SLOW = "slow"


@dataclass(frozen=True, slots=True)
class Setting:
    r"""Public parameters of one experiment; all records are dealt out to clients of equal size.

    Parameters
    ----------
    n_records : int
        Records of a client.
    participation_rate, record_rate : float in (0, 1]
    clip_norm : float, positive
    epsilon, delta : float
        Guarantee of one round, the paper's :math:`(\varepsilon', \delta')`.
    rounds : int
    learning_rate : float, positive
        Of every scheme.
    slow_learning_rate : float, positive, optional
        WCS and OLS are trained with this one, too.

    Examples
    --------
    >>> Setting(30, 0.0056, 0.1).as_parameters()["n_records"]
    30
    """

    n_records: int
    participation_rate: float
    record_rate: float
    clip_norm: float = 1.0
    epsilon: float = 1e-2
    delta: float = 1e-7
    rounds: int = 2000
    learning_rate: float = 2e-3
    slow_learning_rate: float | None = None

    def __post_init__(self) -> None:
        check(**self.as_parameters())
        if self.slow_learning_rate is not None:
            check(learning_rate=self.slow_learning_rate)

    def as_parameters(self) -> Parameters:
        """The public ones by name, as their check takes them and a recording keeps them."""
        names = ("n_records", "participation_rate", "record_rate", "clip_norm", "epsilon", "delta", "rounds")
        return {name: getattr(self, name) for name in (*names, "learning_rate")}

    def noise_std(self, scheme: str) -> float:
        """Noise on the sum at which the accounting of a scheme finds the guarantee of a round."""
        return float(
            participation_noise(
                scheme, self.participation_rate, self.record_rate, self.n_records, self.clip_norm,
                self.epsilon, self.delta,
            )
        )  # fmt: skip

    def schemes(self) -> dict[str, Scheme]:
        """No privacy; clipped gradients without noise; the theorem, certified and as it is read; both baselines."""
        found = {
            UNPROTECTED: Scheme(0.0, math.inf, self.learning_rate),
            NOISELESS: Scheme(0.0, self.clip_norm, self.learning_rate),
        }
        noise = {name: self.noise_std(name) for name in ("inner", "outer", *BASELINES)}
        found |= {name: Scheme(std, self.clip_norm, self.learning_rate) for name, std in noise.items()}
        if self.slow_learning_rate is not None:
            slow = self.slow_learning_rate
            found |= {f"{name}:{SLOW}": Scheme(noise[name], self.clip_norm, slow) for name in BASELINES}
        return found


def compute_learning(
    records: Records, setting: Setting, repeats: int, seed: int, *, model: Model | None = None, points: int = 10
) -> Learning:
    """Train all schemes of a setting ``repeats`` times, softmax regression unless another model is given."""
    schemes = setting.schemes()
    histories = [
        train(
            model or records.softmax, records, schemes, setting.rounds, rng, points=points,
            participation_rate=setting.participation_rate, record_rate=setting.record_rate,
            n_records=setting.n_records,
        )
        for rng in np.random.default_rng(seed).spawn(repeats)
    ]  # fmt: skip
    noise = {name: scheme.noise_std for name, scheme in schemes.items()}
    return Learning.of(histories, noise, {**setting.as_parameters(), "repeats": repeats, "seed": seed})
