"""Balls of the statements on cloak aggregation: whole numbers counted, small worlds enumerated, noise summed up."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import comb

from balls.arithmetic import fitted, harmonic, most, positive
from balls.judging import judges
from flint import arb, ctx, fmpq, fmpz


def ratio(numerator: int, denominator: int) -> arb:
    return arb(fmpq(numerator, denominator))


def whole(value: arb) -> int:
    """The least whole number that is not below; the ball must tell it."""
    found = value.ceil().unique_fmpz()
    assert found is not None
    return int(found)


def bits(modulus: int) -> int:
    found = 0
    while 2**found < modulus:
        found += 1
    return found


# --- worlds so small that every message is listed --------------------------------------------------------------------


@cache
def shuffled(modulus: int, n_messages: int, inputs: tuple[int, ...]) -> Mapping[tuple[int, ...], int]:
    """How often each multiset of all shares comes up, among all ways to split."""
    found: Counter[tuple[int, ...]] = Counter()
    for free in product(range(modulus), repeat=(n_messages - 1) * len(inputs)):
        shares = list(free)
        for user, value in enumerate(inputs):
            own = free[user * (n_messages - 1) : (user + 1) * (n_messages - 1)]
            shares.append((value - sum(own)) % modulus)
        found[tuple(sorted(shares))] += 1
    return found


def small_world(modulus: int, n_messages: int, inputs_a: Sequence[int], inputs_b: Sequence[int], epsilon: float) -> arb:
    one, other = (shuffled(modulus, n_messages, tuple(x % modulus for x in given)) for given in (inputs_a, inputs_b))
    ways, grown = modulus ** ((n_messages - 1) * len(inputs_a)), fitted(epsilon).exp()
    places = one.keys() | other.keys()

    def excess(first: Mapping[tuple[int, ...], int], second: Mapping[tuple[int, ...], int]) -> arb:
        return sum((positive(first.get(y, 0) - grown * second.get(y, 0)) for y in places), arb(0)) / ways

    return most(excess(one, other), excess(other, one))


@judges(
    "cloak:exact",
    {"modulus": 3, "n_messages": 3, "inputs_a": [0, 0], "inputs_b": [1, 2], "epsilon": 0},
    {"modulus": 4, "n_messages": 3, "inputs_a": [0, 1], "inputs_b": [3, 2], "epsilon": 0.3},
    {"modulus": 3, "n_messages": 2, "inputs_a": [0, 0, 0], "inputs_b": [1, 1, 1], "epsilon": 0.5},
    *(
        {"modulus": 4, "n_messages": 2, "inputs_a": one, "inputs_b": two, "epsilon": 0.3}
        for one, two in (([0, 1, 3], [2, 2, 0]), ([2, 2, 0], [0, 1, 3]))
    ),
)
def enumerated(modulus: int, n_messages: int, inputs_a: list[int], inputs_b: list[int], epsilon: float) -> arb:
    return small_world(modulus, n_messages, inputs_a, inputs_b, epsilon)


def subset_sums(messages: Sequence[int], modulus: int) -> Counter[int]:
    """How many halves of the messages add up to each residue."""
    return Counter(sum(half) % modulus for half in combinations(messages, len(messages) // 2))


@judges(
    "cloak:def-2",
    {"messages": [1, 2, 3, 0, 2, 4], "modulus": 5},
    {"messages": [1, 5, 25, 7, 3, 90, 8, 4], "modulus": 101},
)
def least_smoothness(messages: list[int], modulus: int) -> arb:
    found, ways = subset_sums(messages, modulus), comb(len(messages), len(messages) // 2)
    return most(*(abs(ratio(modulus * found[x], ways) - 1) for x in range(modulus)))


@judges(
    "cloak:lemma-2",
    {"messages": [1, 2, 5, 0, 6, 4], "modulus": 7, "inputs_a": [2, 2]},
    {"messages": [1, 2, 3, 4], "modulus": 11, "inputs_a": [3, 7]},
)
def chance_of_shares(messages: list[int], modulus: int, inputs_a: list[int]) -> arb:
    m = len(messages) // 2
    return ratio(shuffled(modulus, m, tuple(inputs_a)).get(tuple(sorted(messages)), 0), modulus ** (2 * m - 2))


# --- two users -------------------------------------------------------------------------------------------------------


@judges(
    "cloak:own-1",
    {"modulus": 3, "n_messages": 4},
    {"modulus": 2**64, "n_messages": 70},
    {"modulus": 10**9 + 7, "n_messages": 400},
    close=1e-9,
)
def two_users(modulus: int, n_messages: int) -> arb:
    shrunk = 3 * modulus if modulus % 2 else 4 * modulus
    return (ratio(shrunk, 4 * comb(2 * n_messages, n_messages))).sqrt().min(arb(1))


SHARED = (
    {"modulus": 30_000_001, "n_messages": 27, "epsilon": 0.1},
    {"modulus": 2**32, "n_messages": 40, "epsilon": 0.9},
    {"modulus": 5, "n_messages": 12, "epsilon": 3.0},
)


@judges("cloak:own-2", *SHARED, close=1e-9)
def two_users_epsilon(modulus: int, n_messages: int, epsilon: float) -> arb:
    e = fitted(epsilon).exp().min(1 + (2 + ratio(2, modulus - 1)).sqrt())
    return (2 * (modulus - 1) * (1 + e**2) + 4 * e) / (4 * (e - 1) * comb(2 * n_messages, n_messages))


@judges("cloak:own-5", *SHARED, {"modulus": 2**32, "n_messages": 40, "epsilon": 0}, close=1e-9)
def second_moment(modulus: int, n_messages: int, epsilon: float) -> arb:
    here = modulus - 2 if modulus % 2 else 2 * (modulus - 1)

    def at(a: arb) -> arb:
        spread = (here + 2 * (modulus - 1) * (1 + a) ** 2 + 4 * (1 + a)) / comb(2 * n_messages, n_messages)
        return spread / (2 * ((spread + a**2).sqrt() + a))

    # The formula falls and then rises; an epsilon beyond the least of it is answered by that.
    found = at(fitted(epsilon).expm1())
    low, high = arb(0), fitted(epsilon).expm1()
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        smaller = at(arb(left.mid())) < at(arb(right.mid()))
        low, high = (low, arb(right.mid())) if smaller else (arb(left.mid()), high)
    return found.min(at(arb(low.mid())))


# --- many users ------------------------------------------------------------------------------------------------------


class Graphs:
    """Two ways to deal nm messages out to n users: the graph's components, by generating functions.

    With :math:`F = \\sum_n\\frac{(nm)!}{(n!)^2}x^n = e^C` the connected graphs are those of C, and
    :math:`E[N^c]` is the coefficient of :math:`F^N`, over that of F.
    """

    def __init__(self, modulus: int, n_messages: int, n_users: int) -> None:
        self.modulus, self.n = modulus, n_users
        # x is scaled, so that the last coefficient is 1.
        last = (arb(fmpz.fac_ui(n_users * n_messages)) / fmpz.fac_ui(n_users) ** 2).log() / n_users
        self.f = [
            arb(fmpz.fac_ui(k * n_messages)) / fmpz.fac_ui(k) ** 2 * (-k * last).exp() for k in range(n_users + 1)
        ]
        self.connected, self.powered = [arb(0)], [arb(1)]
        for k in range(1, n_users + 1):
            inner = sum((i * self.connected[i] * self.f[k - i] for i in range(1, k)), arb(0))
            self.connected.append(self.f[k] - inner / k)
        for k in range(1, n_users + 1):
            terms = (i * self.connected[i] * self.powered[k - i] for i in range(1, k + 1))
            self.powered.append(modulus * sum(terms, arb(0)) / k)

    def colored(self) -> arb:
        """The mean of ``N^(c - 1)``."""
        return self.powered[self.n] / self.modulus / self.f[self.n]

    def apart(self) -> arb:
        """The mean of ``N^(c - 1)`` times the squared chance that two users are in different components."""
        n = self.n
        pairs = [arb(i * (i - 1)) / (n * (n - 1)) * c for i, c in enumerate(self.connected)]
        squares = [arb(i * (i - 1)) / (n * (n - 1)) * c for i, c in enumerate(pairs)]
        once = sum((pairs[i] * self.powered[n - i] for i in range(n + 1)), arb(0))
        same = sum((squares[i] * self.powered[n - i] for i in range(n + 1)), arb(0))
        two = [sum((pairs[i] * pairs[k - i] for i in range(k + 1)), arb(0)) for k in range(n + 1)]
        twice = sum((two[k] * self.powered[n - k] for k in range(n + 1)), arb(0))
        return self.colored() + (self.modulus * twice + same - 2 * once) / self.f[n]


@cache
def graphs(modulus: int, n_messages: int, n_users: int) -> tuple[arb, arb]:
    """Means of the two weights; what cancels is paid for by digits."""
    with ctx.workprec(1500):
        found = Graphs(modulus, n_messages, n_users)
        return found.colored() - 1, found.apart()


CROWDS = (
    {"modulus": 2**32, "n_messages": 12, "n_users": 60},
    {"modulus": 3001, "n_messages": 4, "n_users": 40},
    {"modulus": 17, "n_messages": 3, "n_users": 9},
)


@judges("cloak:own-3", *CROWDS, close=1e-7)
def all_users(modulus: int, n_messages: int, n_users: int) -> arb:
    excess, _ = graphs(modulus, n_messages, n_users)
    return (ratio(modulus, 2 * (modulus - 1)) * excess).sqrt().min(arb(1))


@judges(
    "cloak:own-4",
    *CROWDS,
    {"modulus": 65537, "n_messages": 6, "n_users": 140},
    close=1e-3,
    reach=lambda at: at["n_users"] <= 200,
)
def one_swap(modulus: int, n_messages: int, n_users: int) -> arb:
    _, apart = graphs(modulus, n_messages, n_users)
    return (2 * apart).sqrt().min(arb(2)) / 2


@judges("cloak:own-6", *({**crowd, "scale": 12} for crowd in CROWDS), close=0.02)
def one_value(modulus: int, n_messages: int, n_users: int, scale: int) -> arb:
    return ((harmonic(scale // 2) + harmonic(scale - scale // 2)) * one_swap(modulus, n_messages, n_users)).min(arb(1))


# --- the lemmas ------------------------------------------------------------------------------------------------------

LARGE = {"modulus": 2**61 - 1, "n_messages": 100}


def failure(modulus: int, n_messages: int, smoothness: arb) -> arb:
    unsmooth = 18 * arb(n_messages).sqrt() * arb(modulus) ** 2 / (smoothness**2 * arb(4) ** n_messages)
    return ratio(2 * n_messages**2, modulus) + unsmooth


@judges(
    "cloak:lemma-1", {**LARGE, "smoothness": 0.1}, {"modulus": 257, "n_messages": 40, "smoothness": 1e-6}, close=1e-10
)
def smooth_failure(modulus: int, n_messages: int, smoothness: float) -> arb:
    return failure(modulus, n_messages, fitted(smoothness))


@judges("cloak:cor-1", {"modulus": 2737}, {"modulus": 2**61 - 1}, {"modulus": 2**255 - 19})
def narrow(modulus: int) -> arb:
    return ratio(19 * bits(modulus) ** 2, modulus)


@judges("cloak:lemma-3", {"smoothness": 0.1}, {"smoothness": 0.999999}, {"smoothness": 1e-200})
def likelier(smoothness: float) -> arb:
    return (1 + fitted(smoothness)) / (1 - fitted(smoothness))


@judges("cloak:lemma-5", {**LARGE, "smoothness": 0.1}, close=1e-10)
def one(modulus: int, n_messages: int, smoothness: float) -> dict[str, arb]:
    return chained(modulus, n_messages, smoothness, 1)


@judges(
    "cloak:lemma-6", {**LARGE, "smoothness": 0.001, "swaps": 99}, {**LARGE, "smoothness": 0.3, "swaps": 7}, close=1e-10
)
@judges("cloak:lemma-12", {**LARGE, "smoothness": 0.001, "swaps": 50}, close=1e-10)
def chained(modulus: int, n_messages: int, smoothness: float, swaps: int) -> dict[str, arb]:
    leap = likelier(smoothness)
    total = sum((leap**i for i in range(swaps)), arb(0))
    return {"epsilon": swaps * leap.log(), "delta": failure(modulus, n_messages, fitted(smoothness)) * total}


NOISY = {**LARGE, "smoothness": 0.05, "scale": 1000, "decay": 0.999, "noise_rate": 0.2, "n_users": 1000}


@judges("cloak:lemma-11", NOISY, close=1e-10)
@judges("cloak:lemma-13", {**NOISY, "colluding": 900}, NOISY, close=1e-10)
def user_budget(
    modulus: int, n_messages: int, smoothness: float, scale: int, decay: float, noise_rate: float, n_users: int,
    colluding: int = 0,
) -> dict[str, arb]:  # fmt: skip
    epsilon = likelier(smoothness).log() - scale * fitted(decay).log()
    silent = (-fitted(noise_rate) * (n_users - colluding)).exp()
    return {"epsilon": epsilon, "delta": silent + failure(modulus, n_messages, fitted(smoothness))}


@judges("cloak:lemma-7", {"decay": 0.5, "value": -2}, {"decay": 0.9999, "value": 10**6}, close=1e-10)
def shifted(decay: float, value: int) -> arb:
    return -abs(value) * fitted(decay).log()


@judges(
    "cloak:lemma-8",
    {"modulus": 5, "decay": 0.5},
    {"modulus": 10**9 + 7, "decay": 0.999},
    {"modulus": 2001, "decay": 0.99999},
    close=1e-9,
)
def variance_bound(modulus: int, decay: float) -> arb:
    p = fitted(decay)
    return 2 * p * (1 + p) / ((1 - p) ** 2 * (1 + p - 2 * p ** ((modulus + 1) // 2)))


@judges("cloak:lemma-9", {"decay": 0.5}, {"decay": 0.9}, {"decay": 1e-9}, close=1e-11)
def square_sum(decay: float) -> arb:
    """Term by term; the rest is below a geometric series."""
    p, total, k = fitted(decay), arb(0), 0
    while True:
        k += 1
        term = k**2 * p**k
        total += term
        grown = p * ratio((k + 1) ** 2, k**2)
        if grown < 1 and term * grown / (1 - grown) < total * arb(2) ** -90:
            return total + term * grown / (1 - grown) * arb(0.5, 0.5)


@judges(
    "cloak:def-tdl",
    {"modulus": 5, "decay": 0.5, "value": 1},
    {"modulus": 2001, "decay": 0.995, "value": -17},
    {"modulus": 7, "decay": 0.9, "value": 4},
)
def truncated(modulus: int, decay: float, value: int) -> dict[str, arb]:
    p, reach = fitted(decay), modulus // 2
    masses = {j: p ** abs(j) for j in range(-reach, reach + 1)}
    total = sum(masses.values(), arb(0))
    variance = sum((j * j * mass for j, mass in masses.items()), arb(0)) / total
    return {"pmf": masses.get(value, arb(0)) / total, "variance": variance}


# --- noise of a sum --------------------------------------------------------------------------------------------------


def thinned_law(n_users: int, decay: arb, rate: arb, reach: int) -> tuple[list[arb], arb]:
    """Masses of the sum of numbers within ``reach``, from below, and how much mass is missing in all."""
    inside = (1 - decay) / (1 + decay)
    single = [rate * inside * decay ** abs(x) for x in range(-reach, reach + 1)]
    single[reach] += 1 - rate
    law = single
    for _ in range(n_users - 1):
        wide = [arb(0)] * (2 * reach + 1)
        for i, a in enumerate(law):
            for j in range(max(0, reach - i), min(2 * reach + 1, 3 * reach + 1 - i)):
                wide[i + j - reach] += a * single[j]
        law = wide
    return law, 1 - sum(law, arb(0))


@judges(
    "cloak:doubt-9",
    {"n_users": 3, "scale": 4, "decay": 0.8, "noise_rate": 0.1, "epsilon": 0.5},
    {"n_users": 5, "scale": 2, "decay": 0.73, "noise_rate": 0.5, "colluding": 1, "epsilon": 0.4},
    {"n_users": 2, "scale": 3, "decay": 0.6, "noise_rate": 1.0, "epsilon": 0.2},
    {"n_users": 3, "scale": 2, "decay": 0.7, "noise_rate": 0.9, "delta": 0.05},
    curve=True,
    close=1e-6,
    reach=lambda inputs: inputs["n_users"] < 10,
)
def released_sum(n_users: int, scale: int, decay: float, noise_rate: float, epsilon: float, colluding: int = 0) -> arb:
    reach = math.ceil(45 / -math.log(decay))
    law, missing = summed_law(n_users - colluding, decay, noise_rate, reach)
    grown = fitted(epsilon).exp()
    found = arb(0)
    for x in range(2 * reach + 1 + scale):
        here = law[x] if x <= 2 * reach else arb(0)
        moved = law[x - scale] if x - scale >= 0 else arb(0)
        found += positive(moved - grown * here)
    # Every mass is too small by what is missing, all together; both laws enter.
    return found + (1 + grown) * missing * arb(0, 1)


@cache
def summed_law(n_users: int, decay: float, noise_rate: float, reach: int) -> tuple[list[arb], arb]:
    return thinned_law(n_users, fitted(decay), fitted(noise_rate), reach)


@judges(
    "cloak:best-2", {"scale": 10_000, "epsilon": 1.0}, {"scale": 3, "epsilon": 0.7}, {"scale": 10**9, "epsilon": 2.5}
)
def shared(scale: int, epsilon: float) -> dict[str, arb]:
    p = least_decay(scale, fitted(epsilon))
    return {"decay": p, "mean_error": 2 * p / (1 - p**2) / scale, "std": (2 * p).sqrt() / (1 - p) / scale}


def least_decay(scale: int, epsilon: arb) -> arb:
    """The least double that is not below the wanted decay, told by balls."""
    wanted = (-epsilon / scale).exp()
    found = math.nextafter(float(wanted), 0.0)
    while arb(found) < wanted:
        found = math.nextafter(found, 2.0)
    assert arb(found) >= wanted
    return arb(found)


# --- rules -----------------------------------------------------------------------------------------------------------


@judges(
    "cloak:best-1",
    {"security_bits": 40, "n_users": 10_000, "log2_modulus": 32},
    {"security_bits": 123.4, "n_users": 19, "log2_modulus": 64},
)
def messages_needed(security_bits: float, n_users: int, log2_modulus: float) -> float:
    two = arb(2).log()
    needed = (2 * fitted(security_bits) + fitted(log2_modulus)) / ((arb(n_users).log() - 1) / two)
    return max(3, whole(2 + needed))


@judges(
    "cloak:bits", {"modulus": 23_328_000_001, "n_messages": 54}, {"modulus": 2**64, "n_messages": 7, "dimension": 11}
)
def bits_sent(modulus: int, n_messages: int, dimension: int = 1) -> float:
    return dimension * n_messages * bits(modulus)


@judges(
    "cloak:thm-1",
    {"epsilon": 1.0, "delta": 1e-6, "n_users": 1000},
    {"epsilon": 0.1, "delta": 1e-9, "n_users": 10_000},
    {"epsilon": 2.0, "delta": 1e-4, "n_users": 50, "scale": 77, "colluding": 20},
    close=1e-9,
)
def noisy(epsilon: float, delta: float, n_users: int, scale: int = 0, colluding: int = 0) -> dict[str, arb | float]:
    e, d, k, honest = fitted(epsilon), fitted(delta), scale or 10 * n_users, n_users - colluding
    gamma = (e / 20).tanh()
    rate = ((2 / d).log() / honest).min(arb(1))
    m, modulus = first_messages(lambda m: most(arb(3 * n_users * k + 1), 8 * m**2 / d), gamma, d / 4)
    p = (-(e * 9 / 10) / k).exp()
    variance = 2 * p * (1 + p) / ((1 - p) ** 2 * (1 + p - 2 * p ** ((modulus + 1) // 2)))
    return {
        "n_messages": m, "modulus": modulus, "scale": k, "bits": m * bits(modulus), "decay": p, "noise_rate": rate,
        "noise_bound": (rate * n_users * variance).sqrt() / k, "rounding_bound": ratio(n_users, k),
        "delta": (1 - rate) ** honest + failure(modulus, m, gamma),
    }  # fmt: skip


def first_messages(least: object, gamma: arb, allowed: arb, whole_failure: bool = False) -> tuple[int, int]:
    m = 4
    while True:
        modulus = whole(least(m)) | 1  # type: ignore[operator]
        unsmooth = failure(modulus, m, gamma) - (0 if whole_failure else ratio(2 * m * m, modulus))
        if gamma > 6 * arb(m).sqrt() / arb(4) ** m and unsmooth <= allowed:
            return m, modulus
        m += 1


@judges(
    "cloak:thm-2",
    {"epsilon": 1.0, "delta": 1e-6, "n_users": 100, "error": 0.01},
    {"epsilon": 0.1, "delta": 1e-9, "n_users": 500, "error": 0.5, "colluding": 100},
)
def exact_sum(epsilon: float, delta: float, n_users: int, error: float, colluding: int = 0) -> dict[str, arb | float]:
    e, d, swaps = fitted(epsilon), fitted(delta), n_users - colluding - 1
    gamma, together = (e / (2 * swaps)).tanh(), e.expm1() / (e / swaps).expm1()
    k = math.ceil(Fraction(n_users) / Fraction(str(error)))
    m, modulus = first_messages(
        lambda m: most(arb(n_users * k + 1), 4 * m**2 * together / d), gamma, d / together, whole_failure=True
    )
    return {"n_messages": m, "modulus": modulus, "scale": k, "bits": m * bits(modulus)}


@judges(
    "cloak:cost",
    *({"protocol": protocol, "n_users": 1000, "epsilon": 0.5, "delta": 1e-6, "dimension": 3}
      for protocol in ("cmp-bon", "cmp-central", "cmp-local", "cmp-ikos", "cmp-t1")),
    reach=lambda inputs: inputs["protocol"] in ("cmp-bon", "cmp-central", "cmp-local", "cmp-ikos", "cmp-t1"),
    close=1e-9,
)  # fmt: skip
def cost(
    protocol: str, n_users: int, epsilon: float, delta: float, dimension: int = 1, scale: int = 0, input_bits: int = 16
) -> dict[str, arb | float]:
    e, k = fitted(epsilon), scale or 10 * n_users
    if protocol == "cmp-bon":
        masked = dimension * bits(n_users * (2**input_bits - 1) + 1)
        return {"messages": 0, "bits": 2 * n_users * 256 + (5 * n_users - 4) * 256 + masked, "error": 0}
    if protocol == "cmp-ikos":
        security = ((1 + e.exp()) / fitted(delta)).log() / arb(2).log()
        modulus = 3 * n_users * k + 1
        needed = (2 * security + arb(modulus).log() / arb(2).log()) / ((arb(n_users).log() - 1) / arb(2).log())
        m = max(3, whole(2 + needed))
        return {"messages": dimension * m, "bits": dimension * m * bits(modulus), "error": 1 / (k * (e / k).sinh())}
    if protocol == "cmp-t1":
        found = noisy(epsilon, delta, n_users, scale)
        return {
            "messages": dimension * found["n_messages"],
            "bits": dimension * found["bits"],
            "error": found["noise_bound"],
        }
    error = 1 / e if protocol == "cmp-central" else arb(2 * n_users).sqrt() / e
    return {"messages": dimension, "bits": 64 * dimension, "error": error}


@judges(
    "cloak:alg-2",
    {"messages": [5, 7, 11, 2], "modulus": 101, "scale": 10, "n_users": 3},
    {"messages": [60, 39, 0], "modulus": 101, "scale": 10, "n_users": 3},
    {"messages": [40, 5, 0], "modulus": 101, "scale": 10, "n_users": 3},
)
def analyzer(messages: Iterable[int], modulus: int, scale: int, n_users: int) -> arb:
    total = sum(messages) % modulus
    if total > 2 * n_users * scale:
        return arb(0)
    return ratio(min(total, n_users * scale), scale)
