"""Balls of the statements on shuffling: closed forms, blankets summed term by term, data sets enumerated."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from balls.arithmetic import (
    binomial_law,
    choose,
    fitted,
    integral,
    most,
    normal_below,
)
from balls.judging import judges
from flint import arb

# --- closed forms ----------------------------------------------------------------------------------------------------


@judges(
    "blanket:erlingsson",
    {"epsilon0": 0.4, "n_users": 5000, "delta": 1e-6},
    {"epsilon0": 0.01, "n_users": 10**9, "delta": 1e-12},
)
def erlingsson(epsilon0: float, n_users: int, delta: float) -> arb | float:
    found = 12 * fitted(epsilon0) * (-fitted(delta).log() / n_users).sqrt()
    return found if found <= fitted(epsilon0) else math.inf


@judges(
    "blanket:cheu",
    {"blanket_mass": 0.5, "n_users": 1000, "delta": 1e-4},
    {"blanket_mass": 0.01, "n_users": 10**6, "delta": 1e-9},
)
def cheu(blanket_mass: float, n_users: int, delta: float) -> arb:
    blankets = fitted(blanket_mass) * n_users
    surely = blankets - (2 * blankets * (2 / fitted(delta)).log()).sqrt()
    return (32 * (4 / fitted(delta)).log() / surely).sqrt() * (1 - surely / n_users)


@judges(
    "clones:2021-closed",
    {"epsilon0": 4.0, "n_users": 10**5, "delta": 1e-6},
    {"epsilon0": 0.1, "n_users": 10**9, "delta": 1e-300},
)
def clones_closed(epsilon0: float, n_users: int, delta: float) -> arb:
    p = fitted(epsilon0).exp()
    inner = 8 * (p * (4 / fitted(delta)).log()).sqrt() / arb(n_users).sqrt() + 8 * p / n_users
    return ((p - 1) / (p + 1) * inner).log1p()


def mass_of(randomizer: str, epsilon0: float = 0.0, n_buckets: int = 2, noise_std: float = 0.0) -> arb:
    """Blanket mass, from the messages' laws: the sum or the integral of the least of them."""
    e, k = fitted(epsilon0).exp(), n_buckets
    if randomizer == "kary":
        return k / (e + (k - 1))
    if randomizer == "laplace":
        # On either side of one half the law of the far end point is the least.
        rate = fitted(epsilon0)
        return 2 * integral(lambda y, _: rate / 2 * (-rate * y).exp(), arb(1) / 2, arb(64) / rate + 1)
    if randomizer == "gaussian":
        return 2 * normal_below(-1 / (2 * fitted(noise_std)))
    if randomizer == "any":
        return 1 / e
    return support_mass(randomizer, epsilon0, n_buckets)


def support_mass(randomizer: str, epsilon0: float, k: int) -> arb:
    """The same for messages that support values: of every message its least chance, message by message."""
    e = fitted(epsilon0).exp()
    if randomizer == "rappor":
        flipped = 1 / ((fitted(epsilon0) / 2).exp() + 1)
        bits = (flipped, 1 - flipped)  # of another's bit, of the own one
    elif randomizer == "oue":
        bits = (1 / (e + 1), arb(1) / 2)
    if randomizer in ("rappor", "oue"):
        off, own = bits
        total = arb(0)
        for ones in range(k + 1):
            chances = []
            if ones:
                chances.append(own * off ** (ones - 1) * (1 - off) ** (k - ones))
            if ones < k:
                chances.append((1 - own) * off**ones * (1 - off) ** (k - 1 - ones))
            least = chances[0] if len(chances) == 1 else chances[0].min(chances[1])
            total += choose(k, ones) * least
        return total
    if randomizer == "subset":
        size = max(round(k / (math.exp(epsilon0) + 1)), 1)
        inside, outside = choose(k - 1, size - 1), choose(k - 1, size)
        return choose(k, size) / (inside * e + outside) if size < k else arb(1)
    if randomizer == "hadamard":
        order = 2
        while order <= k:
            order *= 2
        # Every row but the first has as many +1 as -1; a column of +1 alone is there, the first.
        return ((order - 1) + e) * 2 / (order * (e + 1))
    spread = max(round(math.exp(epsilon0) + 1), 2)
    # A hash function sends all values to one number with the chance spread^(1 - k), and that number supports all.
    alike = arb(spread) ** (1 - k)
    return (spread + (e - 1) * alike) / (e + (spread - 1))


@judges(
    "blanket:lem-5.1",
    {"randomizer": "kary", "epsilon0": 4.0, "n_buckets": 100},
    {"randomizer": "laplace", "epsilon0": 1.0},
    {"randomizer": "gaussian", "noise_std": 0.3},
    {"randomizer": "rappor", "epsilon0": 2.0, "n_buckets": 7},
    {"randomizer": "oue", "epsilon0": 1.5, "n_buckets": 5},
    {"randomizer": "subset", "epsilon0": 1.0, "n_buckets": 20},
    {"randomizer": "hadamard", "epsilon0": 1.0, "n_buckets": 9},
    {"randomizer": "local-hash", "epsilon0": 1.0, "n_buckets": 6},
)
def blanket_mass(**randomizer: Any) -> arb:
    return mass_of(**randomizer)


@judges(
    "blanket:thm-3.1",
    {"n_users": 1000, "n_buckets": 10, "epsilon": 1.0, "delta": 0.5},
    {"n_users": 10**7, "n_buckets": 100, "epsilon": 0.1, "delta": 1e-9},
)
def needed(n_users: int, n_buckets: int, epsilon: float, delta: float) -> arb:
    e = fitted(epsilon)
    return arb(n_buckets) / (n_users - 1) * most(14 * (2 / fitted(delta)).log() / e**2, 27 / e)


# --- one variable, and its closed-form tails -------------------------------------------------------------------------


@cache
def laplace_moments(epsilon0: float) -> tuple[arb, arb]:
    """Means under the blanket of the square of one ratio, and of the product of both, in units of the mass.

    The blanket's law is ``exp(-rate |y - 1/2|) rate / 2``; the ratios are constant outside of [0, 1].
    """
    rate, half = fitted(epsilon0), arb(1) / 2
    outside = (-rate / 2).exp() / 2

    def left(power: int) -> arb:
        """Over [0, 1/2], where one ratio is ``exp(rate (1 - 2y))`` and the other 1."""
        return integral(lambda y, _: rate / 2 * (rate * (power * (1 - 2 * y) - (half - y))).exp(), arb(0), half)

    return left(2) + left(0) + outside * ((2 * rate).exp() + 1), 2 * left(1) + 2 * outside * rate.exp()


def loss_variable(randomizer: str, epsilon: float, epsilon0: float, n_buckets: int = 2) -> tuple[arb, arb, arb, arb]:
    """Blanket mass, greatest value, range and second moment of the amplification variable (for ``any`` bounds)."""
    e, a = fitted(epsilon0).exp(), fitted(epsilon).exp()
    if randomizer == "kary":
        mass, k = mass_of("kary", epsilon0, n_buckets), n_buckets
        values = [(mass * (e - a), arb(1) / k), (mass * (1 - a * e), arb(1) / k), (mass * (1 - a), arb(k - 2) / k)]
        second = sum((chance * value**2 for value, chance in values), arb(0))
        return mass, values[0][0], values[0][0] - values[1][0], second
    if randomizer == "laplace":
        rate = fitted(epsilon0)
        mass = (-rate / 2).exp()
        left, right = mass * (e - a), mass * (1 - a * e)
        squared, mixed = laplace_moments(epsilon0)
        return mass, left, left - right, mass**2 * ((1 + a**2) * squared - 2 * a * mixed)
    if randomizer == "any":
        mass, low, high = 1 / e, (1 - a * e**2) / e, e * (1 - a / e**2)
        return mass, high, high - low, e * (a**2 + 1) - 2 * a / e**3
    raise AssertionError(randomizer)


@judges(
    "blanket:lem-hoeffding",
    {"randomizer": "kary", "n_buckets": 10, "epsilon0": 1.0, "n_users": 10**4, "epsilon": 0.2},
    {"randomizer": "laplace", "epsilon0": 0.5, "n_users": 10**5, "epsilon": 0.05},
    {"randomizer": "any", "epsilon0": 0.3, "n_users": 10**5, "delta": 1e-9},
    curve=True,
    close=1e-9,
)
def hoeffding(randomizer: str, epsilon0: float, n_users: int, epsilon: float, n_buckets: int = 2) -> arb:
    if not 0 < epsilon < epsilon0:
        return arb(epsilon == 0)
    mass, _, wide, _ = loss_variable(randomizer, epsilon, epsilon0, n_buckets)
    a = fitted(epsilon).expm1()
    mean = (1 - mass * (1 - (-2 * a**2 / wide**2).exp())) ** n_users
    return (wide**2 / (4 * a * mass * n_users) * mean).min(arb(1))


@judges(
    "blanket:lem-bennett",
    {"randomizer": "kary", "n_buckets": 10, "epsilon0": 1.0, "n_users": 10**4, "epsilon": 0.2},
    {"randomizer": "laplace", "epsilon0": 0.5, "n_users": 10**5, "epsilon": 0.05},
    {"randomizer": "any", "epsilon0": 0.3, "n_users": 10**5, "delta": 1e-9},
    curve=True,
    close=1e-9,
)
def bennett(randomizer: str, epsilon0: float, n_users: int, epsilon: float, n_buckets: int = 2) -> arb:
    if not 0 < epsilon < epsilon0:
        return arb(epsilon == 0)
    mass, front, x = _bennett(randomizer, epsilon, epsilon0, n_buckets)
    mean = (1 - mass + mass * x) ** n_users - (1 - mass) ** n_users
    return (front / (mass * n_users) * mean).min(arb(1))


def _bennett(randomizer: str, epsilon: float, epsilon0: float, n_buckets: int) -> tuple[arb, arb, arb]:
    mass, high, _, second = loss_variable(randomizer, epsilon, epsilon0, n_buckets)
    u = fitted(epsilon).expm1() * high / second
    bent = (1 + u) * u.log1p() - u
    return mass, high / u.log1p(), (-second / high**2 * bent).exp()


@judges(
    "flame:bennett-withdrawn",
    {"randomizer": "laplace", "epsilon0": 0.5, "n_users": 333, "epsilon": 0.1},
    {"randomizer": "kary", "n_buckets": 4, "epsilon0": 1.0, "n_users": 500, "delta": 1e-5},
    curve=True,
    close=1e-9,
    reach=lambda inputs: inputs["n_users"] <= 2000,
)
def withdrawn(randomizer: str, epsilon0: float, n_users: int, epsilon: float, n_buckets: int = 2) -> arb:
    if not 0 < epsilon < epsilon0:
        return arb(epsilon == 0)
    mass, front, x = _bennett(randomizer, epsilon, epsilon0, n_buckets)
    law = binomial_law(n_users, mass)
    mean = sum((law[m] * x**m / m for m in range(1, n_users + 1)), arb(0))
    return (front / (fitted(epsilon).expm1() * mass * n_users) * mean).min(arb(1))


def least_epsilon(curve: Callable[[float], arb], delta: arb, epsilon0: float) -> arb:
    """Where a bound of one coordinate meets a delta."""
    low, high = 0.0, epsilon0
    for _ in range(80):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if curve(middle) > delta else (low, middle)
    return arb(low).union(arb(high))
