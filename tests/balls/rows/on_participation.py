"""Balls of the rows on random participation: equal and opposed gradients, and what readings promise."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from balls.arithmetic import binomial_law, binomial_start, fitted, most, normal_below
from balls.of_sampling import Parts, aligned, crossing, cs, inner, outer, positive_part
from balls.rows.recorded import encloses
from flint import arb

USUAL = {"participation_rate": 0.1, "record_rate": 0.1, "n_records": 30, "noise_std": 1.0, "clip_norm": 1.0}


def promised(scheme: str, epsilon: float, **setting: Any) -> arb:
    if scheme == "cs":
        return cs(epsilon=epsilon, **{name: value for name, value in setting.items() if name != "n_records"})
    return {"inner": inner, "outer": outer, "aligned": aligned}[scheme](epsilon=epsilon, **setting)


@encloses(
    "participation:thm-4.1/inner-five", "participation:thm-4.1/inner-two", "participation:thm-4.1/inner-experiment",
    "participation:fig-1/two-records",
)  # fmt: skip
def equal_over(scheme: str, epsilon: float, **setting: Any) -> arb:
    """What equal gradients lose when the record is there, over what is promised."""
    whole = USUAL | setting
    return aligned(epsilon=epsilon, **whole) / promised(scheme, epsilon, **whole)


@encloses("participation:alg-1/true-size")
def told_by_the_noise(n_records: int, epsilon: float, **setting: Any) -> arb:
    """Noise is divided by one record more or fewer: two normal laws around 0, the larger of both orders.

    Their densities cross on each side of 0 once at most.
    """
    n, grown = arb(n_records), fitted(epsilon).exp()
    found = []
    for wide, narrow in ((n - 1, n), (n, n - 1)):
        # wide exp(-(wide x)^2 / 2) = grown narrow exp(-(narrow x)^2 / 2)
        square = 2 * (grown * narrow / wide).log() / (narrow**2 - wide**2)
        x = square.sqrt() if square > 0 else arb(0)
        inside = [2 * normal_below(size * x) - 1 for size in (wide, narrow)]
        if wide < narrow:
            inside = [1 - part for part in inside]
        found.append(inside[0] - grown * inside[1])
    return most(arb(0), *found) / outer(epsilon=epsilon, **(USUAL | setting | {"n_records": n_records}))


@encloses("participation:thm-4.1-add/above-inner", side="lower")
def opposed_over(scheme: str, angle: float, epsilon: float, **setting: Any) -> arb:
    """The other gradients opposite, the data set without the record first: one mixture, whose parts cross once.

    Mirrored, so that the gain is on the right; the number of the others that are drawn is hidden.
    """
    assert angle == 180
    whole = USUAL | setting
    p, q, a = fitted(whole["participation_rate"]), fitted(whole["record_rate"]), fitted(epsilon).exp()
    c, gain = fitted(whole["clip_norm"]) / fitted(whole["noise_std"]), p * (1 - a * (1 - q))
    parts: Parts = [(-(a - 1) * (1 - p), arb(0))]
    for j, weight in enumerate(binomial_law(whole["n_records"] - 1, q)):
        parts += [(gain * weight, j * c), (-a * p * q * weight, (j - 1) * c)]
    return event_above(parts) / promised(scheme, epsilon, **whole)


def event_above(parts: Parts) -> arb:
    """What the best half-line holds of a sum of normal laws: all there is if it crosses once, else no more."""
    x = crossing(parts)
    assert x.is_finite()
    return sum((weight * normal_below(place - x) for weight, place in parts), arb(0))


@encloses("participation:cor-5.3/shuffled")
def shuffled_over(
    n_clients: int, n_records: int, participation_rate: float, record_rate: float, epsilon: float
) -> arb:  # fmt: skip
    """Equal gradients of all clients: only how many records are drawn matters, whose law is a mixture."""
    p, q = fitted(participation_rate), fitted(record_rate)

    def drawn(records: int) -> list[arb]:
        return [p * w + (1 - p) * (i == 0) for i, w in enumerate(binomial_law(records, q))]

    def together(records: int) -> list[arb]:
        law = drawn(records)
        for _ in range(n_clients - 1):
            more = drawn(n_records)
            wide = [arb(0)] * (len(law) + len(more) - 1)
            for i, one in enumerate(law):
                for j, other in enumerate(more):
                    wide[i + j] += one * other
            law = wide
        return law

    larger, smaller, grown = together(n_records), [*together(n_records - 1), arb(0)], fitted(epsilon).exp()
    parts = [(a - grown * b, arb(i)) for i, (a, b) in enumerate(zip(larger, smaller, strict=True))]
    rates = {"participation_rate": participation_rate, "record_rate": record_rate}
    return positive_part(parts) / cs(epsilon=epsilon, noise_std=1.0, clip_norm=1.0, **rates)


@encloses("participation:sec-5.5/average")
def largest_change(n_records: int, record_rate: float) -> Fraction:
    """Of j opposite ones the average is -1, or 0 of none; with one more it is (1 - j) / (j + 1)."""
    changes = [abs(Fraction(1 - j, j + 1) + (j > 0)) for j in range(n_records)]
    return max(changes) * n_records * Fraction(str(record_rate))


def noise_for(delta: float, curve: Callable[[arb], arb], guess: float, width: float) -> arb:
    """The noise at which a falling delta is met, certain at both ends."""
    low, high = arb(guess) * (1 - width), arb(guess) * (1 + width)
    assert curve(low) > fitted(delta) >= curve(high)
    for _ in range(24):
        middle = arb(((low + high) / 2).mid())
        low, high = (middle, high) if curve(middle) > fitted(delta) else (low, middle)
    return low.union(high)


@encloses("participation:calibrate/inner-noise")
def lost_at_the_noise(scheme: str, epsilon: float, delta: float, **setting: Any) -> arb:
    """At the noise that a reading asks for, what equal gradients lose over what may be lost."""
    whole = USUAL | setting

    def at(noise: arb) -> arb:
        return promised(scheme, epsilon, **(whole | {"noise_std": noise}))

    low, high = 2.0**-6, 2.0**10
    while high / low > 1.01:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if at(arb(middle)) > fitted(delta) else (low, middle)
    noise = noise_for(delta, at, (low * high) ** 0.5, 0.01)
    found = [aligned(epsilon=epsilon, **(whole | {"noise_std": arb(end)})) for end in (noise.lower(), noise.upper())]
    return found[0].union(found[1]) / fitted(delta)


@encloses("participation:thm-4.1/aligned-worst", side="upper")
def turned_over(scheme: str, angle: float, epsilon: float, n_records: int, **setting: Any) -> arb:
    """Of gradients at an angle the best half-plane, seen from a few directions: a part of what they lose."""
    whole = USUAL | setting | {"n_records": n_records}
    p, q, a = fitted(whole["participation_rate"]), fitted(whole["record_rate"]), fitted(epsilon).exp()
    found = []
    for degrees in (0, 8):
        own, other = ((arb.pi() * at / 180).cos() for at in (arb(degrees), fitted(angle) - degrees))
        parts: Parts = [(-(a - 1) * (1 - p), arb(0))]
        for j, weight in enumerate(binomial_law(n_records - 1, q)):
            parts += [(p * q * weight, j * other + own), (-p * (a - 1 + q) * weight, j * other)]
        x = arb(crossing(parts).mid())  # any place is a half-plane
        found.append(sum((weight * normal_below(place - x) for weight, place in parts), arb(0)))
    return most(*found) / promised(scheme, epsilon, **whole)


FEW = 25  # other records that are drawn at most, where about one is: beyond, 1e-26


def outer_of_few(epsilon: float, noise: arb, **setting: Any) -> arb:
    """The reading outer, over the numbers of other records that are drawn with some chance; the rest costs it."""
    p, q, a = fitted(setting["participation_rate"]), fitted(setting["record_rate"]), fitted(epsilon).exp()
    c, left, found = 1 / noise, arb(1), arb(0)
    for j, weight in enumerate(binomial_start(setting["n_records"] - 1, q, min(setting["n_records"] - 1, FEW))):
        found += weight * positive_part([(p * q, c), (-p * (a - 1 + q), arb(0)), (-(a - 1) * (1 - p), -j * c)])
        left -= weight
    return found + abs(left) * p * q * arb(0, 1)


def inner_of_few(epsilon: float, noise: arb, **setting: Any) -> arb:
    """The reading inner likewise: what is left out of its one mixture costs at most its weight."""
    p, q, a = fitted(setting["participation_rate"]), fitted(setting["record_rate"]), fitted(epsilon).exp()
    c, left = 1 / noise, arb(1)
    parts = [(p * q, c), (-p * (a - 1 + q), arb(0))]
    for j, weight in enumerate(binomial_start(setting["n_records"] - 1, q, min(setting["n_records"] - 1, FEW))):
        parts.append((-(a - 1) * (1 - p) * weight, -j * c))
        left -= weight
    return positive_part(parts) - abs(left) * (a - 1) * arb(0, 1)


@encloses("participation:calibrate/less-noise-equal")
def noise_over_noise(scheme: str, epsilon: float, delta: float, settings: list[dict[str, Any]]) -> arb:
    """The noise of the second setting over that of the first."""
    curve = {"outer": outer_of_few, "inner": inner_of_few}[scheme]
    noises = []
    for setting in settings:

        def at(noise: arb, setting: dict[str, Any] = setting) -> arb:
            return curve(epsilon, noise, **setting)

        low, high = 0.25, 64.0
        while high / low > 1.01:
            middle = (low * high) ** 0.5
            low, high = (middle, high) if at(arb(middle)) > fitted(delta) else (low, middle)
        noises.append(noise_for(delta, at, (low * high) ** 0.5, 0.01))
    return noises[1] / noises[0]
