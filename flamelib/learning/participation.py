r"""DP-SGD with random participation on real images: several schemes side by side, on the same random numbers.

Schemes that differ in noise, clip or step alone see the same initial model, the same batches and the same directions
of noise, scaled by each scheme's own standard deviation.  Differences between them then scatter far less than each of
them does.  Sampling is that of :mod:`flamelib.protocols.participation`; heavy-ball momentum on the published gradient
costs no privacy.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flamelib.core.vocabulary import check, keep
from flamelib.learning.models import Model
from flamelib.learning.records import History, Records, follow, tester
from flamelib.mechanisms.vectors import check_noise
from flamelib.protocols.participation import Participation, draw_records


@dataclass(frozen=True, slots=True)
class Scheme:
    """What distinguishes one way of training from another.

    ``noise_std`` is that of a coordinate of the sum, 0 for no noise; ``clip_norm`` the largest 2-norm of a record's
    gradient, infinite where nothing is clipped, which noise forbids.
    """

    noise_std: float
    clip_norm: float
    learning_rate: float

    def __post_init__(self) -> None:
        keep(self, **check(learning_rate=self.learning_rate), **check_noise(self.noise_std, self.clip_norm))


def train(
    model: Model,
    records: Records,
    schemes: Mapping[str, Scheme],
    rounds: int,
    rng: np.random.Generator,
    *,
    participation_rate: float,
    record_rate: float,
    n_records: int,
    momentum: float = 0.9,
    points: int = 10,
) -> History:
    """Rounds of Algorithm 1, every scheme on the same batches and the same directions of noise.

    Every client holds ``n_records``; models are tested ``points`` times, at equal distances, the last time at the end.
    """
    given = check(rounds=rounds, points=points, momentum=momentum, n_records=n_records)
    n_clients = records.n_clients(given["n_records"])
    scale = Participation(participation_rate, record_rate, n_records, 1, 1).expected_records(n_clients)
    for_model, for_batches, for_noise = rng.spawn(3)
    start = model.initial(for_model)
    parameters = {name: start.copy() for name in schemes}
    steps = {name: np.zeros_like(start) for name in schemes}

    def one_round() -> int:
        batch = records.batch(draw_records(participation_rate, record_rate, n_clients, n_records, for_batches))
        noise = for_noise.standard_normal(model.dimension)
        for name, scheme in schemes.items():
            total = model.clipped_sum(parameters[name], batch.images, batch.labels, scheme.clip_norm)
            steps[name] *= given["momentum"]
            steps[name] += (total + scheme.noise_std * noise) / scale
            parameters[name] -= scheme.learning_rate * steps[name]
        return len(batch)

    return follow(tester(model, records), parameters, one_round, given["rounds"], given["points"])
