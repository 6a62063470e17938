"""One round of random participation as a record: guarantees by each reading of the theorem and each baseline."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from flamelib.accounting.sampling import public_participation
from flamelib.accounting.sampling.adaptive_gradients import MAX_RECORDS, turned_gradients
from flamelib.accounting.sampling.secret_participation import (
    READINGS,
    participation_noise,
    random_participation,
    random_participation_add,
)
from flamelib.core.vocabulary import Checked


@dataclass(frozen=True, slots=True)
class ParticipationRound(Checked):
    """Public parameters of one round, and the number of records of the affected client.

    Schemes are ``outer`` (a certified upper bound), ``inner`` (no bound), ``aligned`` (exact for equal gradients, hence
    a lower bound), and the baselines ``ols``, ``wcs`` and ``cs``.  Adjacency: one record of the client is added or
    removed.

    Examples
    --------
    >>> one = ParticipationRound(participation_rate=0.1, record_rate=0.1, n_records=5)
    >>> f"{one.delta('outer', 0.1):.3e}", f"{one.delta('cs', 0.1):.3e}"
    ('4.865e-04', '7.290e-05')
    """

    participation_rate: float = 0.1
    record_rate: float = 0.1
    n_records: int = 30
    noise_std: float = 1.0
    clip_norm: float = 1.0

    def as_parameters(self) -> dict[str, Any]:
        """The parameters by name, as the accounts of random participation take them."""
        return asdict(self)

    def delta(self, scheme: str, epsilon: float) -> float:
        """Delta of one round at ``epsilon``; besides the schemes ``add``, the other direction of ``outer``."""
        return self._guarantee(scheme, epsilon=epsilon)

    def epsilon(self, scheme: str, delta: float) -> float:
        """Epsilon of one round at ``delta``."""
        return self._guarantee(scheme, delta=delta)

    def noise(self, scheme: str, epsilon: float, delta: float) -> float:
        """Least noise of a scheme for (epsilon, delta) in each round."""
        parameters = {name: value for name, value in asdict(self).items() if name != "noise_std"}
        return float(participation_noise(scheme, **parameters, epsilon=epsilon, delta=delta))

    def turned(self, angle: float, epsilon: float) -> float:
        """Delta where the gradients of the other records make an ``angle`` in degrees with the differing one (lower).

        The number of other records with nonzero gradients is limited so that the variance of the number drawn is at
        most 50.  Noise below a twelfth of the clipping norm counts as that much: post-processing.
        """
        max_variance = 50.0  # of the number of other records drawn
        max_records = int(max_variance / max(self.record_rate * (1 - self.record_rate), max_variance / MAX_RECORDS))
        # Ratio of clip_norm to noise_std beyond which delta is almost constant.
        noise = max(self.noise_std, self.clip_norm / 12.0)
        parameters = asdict(self) | {"n_records": min(self.n_records, max_records), "noise_std": noise}
        return float(turned_gradients(angle=angle, epsilon=epsilon, **parameters))

    def most_turned(self, epsilon: float) -> float:
        """The largest of these at 0, 30, 60 and 90 degrees (lower)."""
        return max(self.turned(angle, epsilon) for angle in (0.0, 30.0, 60.0, 90.0))  # degrees

    def _guarantee(self, scheme: str, **given: Any) -> float:
        rates: dict[str, Any] = asdict(self)
        if scheme == "add":
            return float(random_participation_add(**rates, **given))
        if scheme in READINGS:
            return float(random_participation(scheme, **rates, **given))
        del rates["n_records"]
        baselines: dict[str, Callable[..., float]] = {
            "ols": public_participation.ols,
            "wcs": public_participation.wcs,
            "cs": public_participation.cs,
        }
        return float(baselines[scheme](**rates, **given))
