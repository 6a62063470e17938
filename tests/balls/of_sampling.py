"""Balls of the statements on random participation: normal laws and their mixtures, by where two densities cross."""

from typing import Any

from balls.arithmetic import binomial_law, fitted, gaussian_excess, most, normal_below, positive
from balls.judging import judges
from flint import arb

ROUND = {"participation_rate": 0.1, "record_rate": 0.1, "noise_std": 1.0, "clip_norm": 1.0}
RARE = {"participation_rate": 0.01, "record_rate": 0.5, "noise_std": 2.0, "clip_norm": 3.0}
ALWAYS = {"participation_rate": 1.0, "record_rate": 1.0, "noise_std": 0.8, "clip_norm": 1.0}

Parts = list[tuple[arb, arb]]  # weight and place of normal laws of variance 1


def crossing(parts: Parts) -> arb:
    """Where the weighted sum of normal laws turns from negative to positive, once, from left to right."""

    def at(x: arb) -> arb:
        return sum((weight * (place * (x - place / 2)).exp() for weight, place in parts), arb(0))

    low, high = arb(-1), arb(1)
    while not at(low) < 0:
        low *= 2
        if low < -(2**12):
            return arb("-inf")
    while not at(high) > 0:
        high *= 2
        if high > 2**12:
            return arb("inf")
    for _ in range(120):
        middle = arb(((low + high) / 2).mid())
        found = at(middle)
        if found > 0:
            high = middle
        elif found < 0:
            low = middle
        else:
            break
    return low.union(high)


def positive_part(parts: Parts) -> arb:
    """Integral of the positive part of such a sum."""
    x = crossing(parts)
    if not x.is_finite():
        return positive(sum((weight for weight, _ in parts), arb(0))) if x < 0 else arb(0)
    return sum((weight * normal_below(place - x) for weight, place in parts), arb(0))


def _weights(participation_rate: float, record_rate: float, epsilon: float) -> tuple[arb, arb, arb]:
    return fitted(participation_rate), fitted(record_rate), fitted(epsilon).exp()


def outer(
    participation_rate: float, record_rate: float, n_records: int, noise_std: float, clip_norm: float, epsilon: float
) -> arb:
    """The number of the other drawn records is told; they point in the record's direction."""
    p, q, a = _weights(participation_rate, record_rate, epsilon)
    c = fitted(clip_norm) / fitted(noise_std)
    terms = [
        weight * positive_part([(p * q, c), (-p * (a - 1 + q), arb(0)), (-(a - 1) * (1 - p), -j * c)])
        for j, weight in enumerate(binomial_law(n_records - 1, q))
    ]
    return sum(terms, arb(0))


def inner(
    participation_rate: float, record_rate: float, n_records: int, noise_std: float, clip_norm: float, epsilon: float
) -> arb:
    """One mixture in the second measure."""
    p, q, a = _weights(participation_rate, record_rate, epsilon)
    c = fitted(clip_norm) / fitted(noise_std)
    law = enumerate(binomial_law(n_records - 1, q))
    far = [(-(a - 1) * (1 - p) * weight, -j * c) for j, weight in law]
    return positive_part([(p * q, c), (-p * (a - 1 + q), arb(0)), *far])


def aligned(
    participation_rate: float, record_rate: float, n_records: int, noise_std: float, clip_norm: float, epsilon: float
) -> arb:
    """All gradients of the client alike, nothing told."""
    p, q, a = _weights(participation_rate, record_rate, epsilon)
    c = fitted(clip_norm) / fitted(noise_std)
    parts = [(-(a - 1) * (1 - p), arb(0))]
    for j, weight in enumerate(binomial_law(n_records - 1, q)):
        parts += [(p * q * weight, (j + 1) * c), (-p * (a - 1 + q) * weight, j * c)]
    return positive_part(parts)


READINGS = {"outer": outer, "inner": inner, "aligned": aligned}


@judges(
    "participation:thm-4.1",
    *({"reading": reading, "n_records": 5, "epsilon": 0.1, **ROUND} for reading in READINGS),
    *({"reading": reading, "n_records": 30, "epsilon": 0.01, **RARE} for reading in READINGS),
    *({"reading": reading, "n_records": 4, "epsilon": 2.0, **ALWAYS} for reading in READINGS),
    *({"reading": reading, "n_records": 10, "delta": 1e-5, **ROUND} for reading in READINGS),
    curve=True,
    close=1e-6,
)
def random_participation(reading: str, **others: Any) -> arb:
    return READINGS[reading](**others)


@judges(
    "participation:thm-4.1-add",
    {"n_records": 5, "epsilon": 0.1, **ROUND},
    {"n_records": 30, "epsilon": 0.01, **RARE},
    {"n_records": 10, "delta": 1e-5, **ROUND},
    curve=True,
    close=1e-6,
)
def added(
    participation_rate: float, record_rate: float, n_records: int, noise_std: float, clip_norm: float, epsilon: float
) -> arb:
    """The smaller data set first; the other records point away from the record."""
    p, q, a = _weights(participation_rate, record_rate, epsilon)
    c = fitted(clip_norm) / fitted(noise_std)
    gain = p * (1 - a * (1 - q))
    if not gain > 0:
        return arb(0)
    terms = []
    for j, weight in enumerate(binomial_law(n_records - 1, q)):
        # Mirrored, so that the gain is on the right.
        parts = [(gain, arb(0)), (-a * p * q, -c), (-(a - 1) * (1 - p), -j * c)]
        terms.append(weight * positive_part(parts))
    return sum(terms, arb(0))


@judges(
    "participation:thm-2.4",
    {"sensitivity": 1.0, "noise_std": 1.0, "epsilon": 1.0},
    {"sensitivity": 0.01, "noise_std": 3.0, "epsilon": 0.02},
    {"sensitivity": 2.0, "noise_std": 0.5, "delta": 1e-9},
    {"sensitivity": 1.0, "noise_std": 30.0, "epsilon": 1.0},
    curve=True,
    close=1e-11,
)
def gaussian_mechanism(sensitivity: float, noise_std: float, epsilon: float) -> arb:
    return gaussian_excess(fitted(sensitivity) / fitted(noise_std), fitted(epsilon))


@judges(
    "participation:thm-2.5",
    {"epsilon": 1.0, "delta": 1e-6, "sampling_rate": 0.02},
    {"epsilon": 30.0, "delta": 0.1, "sampling_rate": 0.7},
)
def poisson(epsilon: float, delta: float, sampling_rate: float) -> dict[str, arb]:
    rate = fitted(sampling_rate)
    return {"epsilon": (rate * fitted(epsilon).expm1()).log1p(), "delta": rate * fitted(delta)}


def one_sampled(rate: arb, shift: arb, epsilon: arb) -> arb:
    """``rate`` times the Gaussian excess at the epsilon before sampling."""
    return rate * gaussian_excess(shift, (epsilon.expm1() / rate).log1p())


@judges(
    "participation:thm-5.1",
    {**ROUND, "epsilon": 0.1},
    {**RARE, "epsilon": 1.0},
    {**ROUND, "delta": 1e-6},
    curve=True,
    close=1e-9,
)
def ols(participation_rate: float, record_rate: float, noise_std: float, clip_norm: float, epsilon: float) -> arb:
    return one_sampled(fitted(record_rate), fitted(clip_norm) / fitted(noise_std), fitted(epsilon))


@judges(
    "participation:thm-5.2",
    {**ROUND, "epsilon": 0.1},
    {**RARE, "epsilon": 1.0},
    {**ROUND, "delta": 1e-6},
    curve=True,
    close=1e-9,
)
def wcs(participation_rate: float, record_rate: float, noise_std: float, clip_norm: float, epsilon: float) -> arb:
    return fitted(participation_rate) * ols(participation_rate, record_rate, noise_std, clip_norm, epsilon)


@judges(
    "participation:cor-5.3",
    {**ROUND, "epsilon": 0.1},
    {**RARE, "epsilon": 1.0},
    {**ROUND, "delta": 1e-6},
    curve=True,
    close=1e-9,
)
def cs(participation_rate: float, record_rate: float, noise_std: float, clip_norm: float, epsilon: float) -> arb:
    rate = fitted(participation_rate) * fitted(record_rate)
    return one_sampled(rate, fitted(clip_norm) / fitted(noise_std), fitted(epsilon))


def one_round(scheme: str, n_records: int, **others: Any) -> arb:
    """Delta of one round, the larger of both directions."""
    if scheme == "outer":
        return most(outer(n_records=n_records, **others), added(n_records=n_records, **others))
    if scheme in READINGS:
        return READINGS[scheme](n_records=n_records, **others)
    return {"wcs": wcs, "ols": ols, "cs": cs}[scheme](**others)


BUDGET = {
    "participation_rate": 0.1,
    "record_rate": 0.2,
    "n_records": 6,
    "clip_norm": 1.0,
    "epsilon": 0.3,
    "delta": 1e-5,
}


@judges(
    "participation:calibrate",
    *({"scheme": scheme, **BUDGET} for scheme in ("outer", "inner", "aligned", "wcs", "ols", "cs")),
    close=1e-7,
    reach=lambda inputs: inputs["n_records"] <= 100,
)
def least_noise(scheme: str, delta: float, **others: Any) -> arb:
    """The noise at which a round's delta is the one asked for; delta falls as noise grows."""
    low, high = 2.0**-6, 2.0**10
    while low < (middle := (low + high) / 2) < high:
        if one_round(scheme, noise_std=middle, **others) > fitted(delta):
            low = middle
        else:
            high = middle
    # Certain at both ends: delta is above what was asked for at the one and not at the other.
    assert one_round(scheme, noise_std=high, **others) <= fitted(delta)
    return arb(low).union(arb(high))


@judges(
    "participation:cmp-random-checkins",
    {"epsilon0": 1.0, "participation_rate": 0.1, "window": 1000, "delta": 1e-6},
    {"epsilon0": 0.1, "participation_rate": 1.0, "window": 7, "delta": 0.5},
)
def checkins(epsilon0: float, participation_rate: float, window: int, delta: float) -> arb:
    e, p = fitted(epsilon0).exp(), fitted(participation_rate)
    spread = (2 * e * (-fitted(delta).log()) / window).sqrt()
    return p * (e - 1) * spread + p**2 * e * (e - 1) ** 2 / (2 * window)


@judges(
    "participation:turned-gradients",
    {**ROUND, "n_records": 5, "angle": 0, "epsilon": 0.1},
    {**ROUND, "n_records": 5, "angle": 45, "epsilon": 0.1},
    close=None,
)
def no_gradients_are_worse(angle: float, **others: Any) -> arb:
    return one_round("outer", **others)


@judges(
    "participation:turned-gradients",
    {**ROUND, "n_records": 5, "angle": 0, "epsilon": 0.1},
    {**ROUND, "n_records": 1, "angle": 30, "epsilon": 0.3},
    close=1e-4,
    ledger=False,
)
def turned_by_nothing(angle: float, **others: Any) -> arb:
    return aligned(**others)


@judges(
    "participation:rounds",
    *(
        {"scheme": scheme, "n_records": 3, "rounds": 1, "epsilon": 0.2, **ROUND}
        for scheme in ("outer", "wcs", "ols", "cs")
    ),
    curve=True,
    close=0.02,
    reach=lambda inputs: inputs["rounds"] == 1,
)
def rounds_of(rounds: int, **others: Any) -> arb:
    return one_round(**others)
