r"""DP-SGD with random participation on real images: several schemes side by side, on the same random numbers.

Schemes that differ in noise, clip or step alone see the same initial model, the same batches and the same directions
of noise, scaled by each scheme's own standard deviation.  Differences between them then scatter far less than each of
them does.  Sampling is that of :mod:`flamelib.protocols.participation`; heavy-ball momentum on the published gradient
costs no privacy.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flamelib.core.vocabulary import check, keep
from flamelib.learning.models import Model
from flamelib.learning.records import Records
from flamelib.learning.rounds import History, Training, side_by_side
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
    n_clients: int | None = None,
    momentum: float = 0.9,
    points: int = 10,
) -> History:
    """Rounds of Algorithm 1, every scheme on the same batches and the same directions of noise.

    Every one of ``n_clients`` holds ``n_records``: records of its own, as many clients as they suffice for if the
    number is left out; where they do not suffice, records drawn at random once and for all.  Models are tested
    ``points`` times, at equal distances, the last time at the end.
    """
    given = check(rounds=rounds, points=points, momentum=momentum, n_records=n_records)
    size: int = given["n_records"]
    crowd: int = records.n_clients(size) if n_clients is None else check(n_clients=n_clients)["n_clients"]
    scale = Participation(participation_rate, record_rate, size, 1, 1).expected_records(crowd)
    for_model, for_batches, for_noise, for_records = rng.spawn(4)
    start, held = model.initial(for_model), records.held(crowd * size, for_records)

    def training(scheme: Scheme) -> Training:
        parameters, step = start.copy(), np.zeros_like(start)
        batches, directions = copy.deepcopy((for_batches, for_noise))

        def one_round(_: int) -> int:
            drawn = draw_records(participation_rate, record_rate, crowd, size, batches)
            batch = records.batch(held[drawn].astype(np.int64))
            noise = directions.standard_normal(model.dimension)
            total = model.clipped_sum(parameters, batch.images, batch.labels, scheme.clip_norm)
            np.multiply(step, given["momentum"], out=step)
            np.add(step, (total + scheme.noise_std * noise) / scale, out=step)
            np.subtract(parameters, scheme.learning_rate * step, out=parameters)
            return len(batch)

        return Training({"parameters": parameters, "step": step}, (batches, directions), one_round)

    about = (participation_rate, record_rate, size, crowd, momentum)
    return side_by_side(model, records, schemes, training, given["rounds"], given["points"], about)
