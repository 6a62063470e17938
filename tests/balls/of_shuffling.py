"""Balls of the statements on shuffling: closed forms, blankets summed term by term, data sets enumerated."""

import math
from collections.abc import Callable
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations, product
from typing import Any

from balls.arithmetic import binomial_law, both_ways, choose, fitted, integral, most, multiplied, normal_below, positive
from balls.judging import judges
from flint import acb, arb, ctx

# --- closed forms ----------------------------------------------------------------------------------------------------


@judges(
    "blanket:erlingsson",
    {"epsilon0": 0.4, "n_users": 5000, "delta": 1e-6},
    {"epsilon0": 0.01, "n_users": 10**9, "delta": 1e-12},
)
def erlingsson(epsilon0: float, n_users: int, delta: float) -> arb | float:
    found = 12 * fitted(epsilon0) * (-fitted(delta).log() / n_users).sqrt()
    return found if found <= fitted(epsilon0) and epsilon0 <= 0.5 else math.inf


@judges(
    "blanket:cheu",
    {"blanket_mass": 0.5, "n_users": 1000, "delta": 1e-4},
    {"blanket_mass": 0.01, "n_users": 10**6, "delta": 1e-9},
)
def cheu(blanket_mass: float, n_users: int, delta: float) -> arb | float:
    blankets = fitted(blanket_mass) * n_users
    if blankets < 14 * (4 / fitted(delta)).log():
        return math.inf
    surely = blankets - (2 * blankets * (2 / fitted(delta)).log()).sqrt()
    return (32 * (4 / fitted(delta)).log() / surely).sqrt() * (1 - surely / n_users)


@judges(
    "clones:2021-closed",
    {"epsilon0": 4.0, "n_users": 10**5, "delta": 1e-6},
    {"epsilon0": 0.1, "n_users": 10**9, "delta": 1e-300},
)
def clones_closed(epsilon0: float, n_users: int, delta: float) -> arb | float:
    if fitted(epsilon0) > (n_users / (16 * (2 / fitted(delta)).log())).log():
        return math.inf
    return clones_ball(fitted(epsilon0), n_users, fitted(delta))


def clones_ball(epsilon0: arb, n_users: int, delta: arb) -> arb:
    p = epsilon0.exp()
    inner = 8 * (p * (4 / delta).log()).sqrt() / arb(n_users).sqrt() + 8 * p / n_users
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
    return sum((least(column) for column in table_of(randomizer, epsilon0, n_buckets)), arb(0))


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
    {"randomizer": "kary", "n_buckets": 2, "epsilon0": 1.0, "n_users": 4, "epsilon": 0.9},
    {"randomizer": "kary", "n_buckets": 10, "epsilon0": 1.0, "n_users": 10**4, "epsilon": 0.2},
    {"randomizer": "laplace", "epsilon0": 0.5, "n_users": 10**5, "epsilon": 0.05},
    {"randomizer": "any", "epsilon0": 0.3, "n_users": 10**5, "delta": 1e-9},
    {"randomizer": "laplace", "epsilon0": 0.0896, "n_users": 551_994, "epsilon": 0.0037},
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
    {"randomizer": "kary", "n_buckets": 2, "epsilon0": 1.0, "n_users": 4, "epsilon": 0.9},
    {"randomizer": "kary", "n_buckets": 10, "epsilon0": 1.0, "n_users": 10**4, "epsilon": 0.2},
    {"randomizer": "laplace", "epsilon0": 0.5, "n_users": 10**5, "epsilon": 0.05},
    {"randomizer": "any", "epsilon0": 0.3, "n_users": 10**5, "delta": 1e-9},
    {"randomizer": "laplace", "epsilon0": 0.0896, "n_users": 551_994, "epsilon": 0.0037},
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


# --- randomizers as tables of messages -------------------------------------------------------------------------------

Table = list[tuple[arb, ...]]  # a column for each message, or kind of messages that all values send alike


def table_of(randomizer: str, epsilon0: float, n_buckets: int) -> Table:
    """Chances of every message for every value, from what the randomizer does."""
    e, k = fitted(epsilon0).exp(), n_buckets
    if randomizer == "kary":
        return [tuple((e if x == y else arb(1)) / (e + (k - 1)) for x in range(k)) for y in range(k)]
    if randomizer in ("rappor", "oue"):
        low = 1 / ((fitted(epsilon0) / 2).exp() + 1) if randomizer == "rappor" else 1 / (e + 1)
        own = 1 - low if randomizer == "rappor" else arb(1) / 2
        columns = []
        for bits in product((0, 1), repeat=k):
            chances = []
            for x in range(k):
                rates = [own if x == i else low for i in range(k)]
                chances.append(times(*(rate if bit else 1 - rate for bit, rate in zip(bits, rates, strict=True))))
            columns.append(tuple(chances))
        return columns
    if randomizer == "subset":
        size = max(round(k / (math.exp(epsilon0) + 1)), 1)
        total = choose(k - 1, size - 1) * e + choose(k - 1, size)
        return [
            tuple((e if x in chosen else arb(1)) / total for x in range(k)) for chosen in combinations(range(k), size)
        ]
    if randomizer == "hadamard":
        order = 2
        while order <= k:
            order *= 2
        # Value x has the row x + 1; an entry is +1 where row and column share an even number of bits.
        even = [[((x + 1) & column).bit_count() % 2 == 0 for x in range(k)] for column in range(order)]
        return [tuple((e if plus else arb(1)) * 2 / (order * (e + 1)) for plus in column) for column in even]
    spread = max(round(math.exp(epsilon0) + 1), 2)
    # A function, each of the same chance, and a number.
    columns = []
    for values in product(range(spread), repeat=k):
        for number in range(spread):
            told = tuple((e if value == number else arb(1)) / (e + (spread - 1)) for value in values)
            columns.append(tuple(chance / spread**k for chance in told))
    return columns


def times(*factors: arb) -> arb:
    found = arb(1)
    for one in factors:
        found *= one
    return found


def least(column: tuple[arb, ...]) -> arb:
    found = column[0]
    for one in column[1:]:
        found = found.min(one)
    return found


def table_blanket(table: Table, pair: tuple[int, int], n_users: int, epsilon: float) -> arb:
    """The blanket divergence of a pair of values, by every way in which the users' messages fall into kinds."""
    grown = fitted(epsilon).exp()
    mass = sum((least(column) for column in table), arb(0))
    kinds: dict[str, list[arb]] = {}
    for column in table:
        value = mass * (column[pair[0]] - grown * column[pair[1]]) / least(column)
        merged = kinds.setdefault(value.str(25, radius=False), [value, arb(0)])
        merged[1] += least(column)
    atoms = [(value, chance) for value, chance in kinds.values()]
    powers = [[chance**i for i in range(n_users + 1)] for _, chance in atoms]
    none = [(1 - mass) ** i for i in range(n_users + 1)]

    def over(left: int, kind: int, total: arb, weight: arb) -> arb:
        if kind == len(atoms):
            return weight * none[left] * positive(total)
        found = arb(0)
        for count in range(left + 1):
            ways = choose(left, count) * powers[kind][count]
            found += over(left - count, kind + 1, total + count * atoms[kind][0], weight * ways)
        return found

    return over(n_users, 0, arb(0), arb(1)) / (mass * n_users)


SMALL = [
    {"randomizer": kind, "epsilon0": 1.2, "n_buckets": 3, "n_users": 6, "epsilon": 0.3}
    for kind in ("kary", "rappor", "oue", "subset", "hadamard", "local-hash")
]


@judges(
    "blanket:lem-reduction",
    *SMALL,
    {"randomizer": "kary", "epsilon0": 4.0, "n_buckets": 10, "n_users": 40, "epsilon": 1.0},
    {"randomizer": "kary", "epsilon0": 0.5, "n_buckets": 2, "n_users": 80, "delta": 1e-4},
    curve=True,
    close=1e-6,
    reach=lambda inputs: inputs["randomizer"] == "kary" and inputs["n_users"] <= 100,
)
def reduction(randomizer: str, epsilon0: float, n_buckets: int, n_users: int, epsilon: float) -> arb:
    if epsilon >= epsilon0:
        return arb(0)
    return table_blanket(table_of(randomizer, epsilon0, n_buckets), (0, 1), n_users, epsilon)


# --- every data set of few users -------------------------------------------------------------------------------------


def histogram_law(table: Table, held: tuple[int, ...]) -> dict[tuple[int, ...], arb]:
    """Law of the multiset of messages of users who hold these values."""
    law: dict[tuple[int, ...], arb] = {(): arb(1)}
    for value in held:
        grown: dict[tuple[int, ...], arb] = {}
        for messages, chance in law.items():
            for message, column in enumerate(table):
                key = tuple(sorted((*messages, message)))
                grown[key] = grown.get(key, arb(0)) + chance * column[value]
        law = grown
    return law


def worst_data_set(table: Table, n_users: int, epsilon: float, pairs: list[tuple[int, int]]) -> arb:
    """The largest divergence over all that the others may hold, and these pairs of values."""
    found = []
    for others in combinations_with_replacement(range(len(table[0])), n_users - 1):
        for x, y in pairs:
            one, two = (histogram_law(table, (*others, value)) for value in (x, y))
            found.append(both_ways([one[key] for key in one], [two[key] for key in one], fitted(epsilon)))
    return most(*found)


@judges(
    "shuffle:lower",
    {"randomizer": "kary", "epsilon0": 1.2, "n_buckets": 3, "n_users": 5, "epsilon": 0.3},
    {"randomizer": "kary", "epsilon0": 2.0, "n_buckets": 2, "n_users": 8, "delta": 0.01},
    {"randomizer": "rappor", "epsilon0": 1.2, "n_buckets": 3, "n_users": 3, "epsilon": 0.3},
    {"randomizer": "subset", "epsilon0": 1.2, "n_buckets": 4, "n_users": 4, "epsilon": 0.3},
    curve=True,
    close=1e-6,
    reach=lambda inputs: inputs["n_users"] <= 8 and "n_buckets" in inputs,
)
def truth(randomizer: str, epsilon0: float, n_buckets: int, n_users: int, epsilon: float) -> arb:
    return worst_data_set(table_of(randomizer, epsilon0, n_buckets), n_users, epsilon, [(0, 1)])


COINS = ((0.75, 0.25), (0.25, 0.75))
TERNARY = ((0.5, 0.25, 0.25), (0.125, 0.75, 0.125), (0.375, 0.125, 0.5))


def columns(table: Any) -> Table:
    """The table of the statement, each row made to sum to 1."""
    rows = [[fitted(entry) for entry in row] for row in table]
    return [tuple(row[y] / sum(row, arb(0)) for row in rows) for y in range(len(rows[0]))]


@judges(
    "shuffle:table",
    {"table": COINS, "n_users": 30, "side": "upper", "epsilon": 0.2},
    {"table": TERNARY, "n_users": 10, "side": "upper", "epsilon": 0.2},
    {"table": TERNARY, "n_users": 8, "side": "upper", "delta": 0.02},
    curve=True,
    close=1e-6,
)
def table_upper(table: Any, n_users: int, side: str, epsilon: float) -> arb:
    given = columns(table)
    values = range(len(table))
    return most(*(table_blanket(given, pair, n_users, epsilon) for pair in permutations(values, 2)))


@judges(
    "shuffle:table",
    {"table": COINS, "n_users": 8, "side": "lower", "epsilon": 0.2},
    {"table": TERNARY, "n_users": 4, "side": "lower", "epsilon": 0.2},
    {"table": TERNARY, "n_users": 4, "side": "upper", "epsilon": 0.2},
    curve=True,
    close=None,
)
def table_truth(table: Any, n_users: int, side: str, epsilon: float) -> arb:
    values = range(len(table))
    return worst_data_set(columns(table), n_users, epsilon, list(combinations(values, 2)))


# --- clones ----------------------------------------------------------------------------------------------------------


def hidden(epsilon0: float, clone: arb, n_users: int, epsilon: float) -> arb:
    """Binary response among clones: counts of both values, term by term."""
    if epsilon >= epsilon0:
        return arb(0)
    if n_users > 100:
        return hidden_among_many(epsilon0, clone, n_users, epsilon)
    truth, grown = 1 / (1 + (-fitted(epsilon0)).exp()), fitted(epsilon).exp()
    crowd, total = binomial_law(n_users - 1, clone), arb(0)
    for there, weight in enumerate(crowd):
        halves = [choose(there, i) / arb(2) ** there for i in range(there + 1)]
        law = [arb(0), *halves, arb(0)]  # at i is the chance of i - 1 clones of the first value
        excess = arb(0)
        for ones in range(there + 2):
            p = truth * law[ones] + (1 - truth) * law[ones + 1]
            q = (1 - truth) * law[ones] + truth * law[ones + 1]
            excess += positive(p - grown * q)
        total += weight * excess
    return total


def log_choose(n: int, k: int) -> arb:
    return arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma()


def hidden_among_many(epsilon0: float, clone: arb, n_users: int, epsilon: float) -> arb:
    """The same for many users, from one number of clones to the next.

    Given it the best set is a tail, of which only the chance of the fair coins' tail is needed; it follows from the one
    before.  Numbers of clones far from their mean count with their chance.
    """
    if epsilon >= epsilon0:
        return arb(0)
    truth, grown = 1 / (1 + (-fitted(epsilon0)).exp()), fitted(epsilon).exp()
    lie, crowd = 1 - truth, n_users - 1
    odds = (grown * truth - lie) / (truth - grown * lie)
    mean, spread = float(clone.mid()) * crowd, math.sqrt(float(clone.mid()) * crowd)
    first, last = max(0, int(mean - 20 * spread)), min(crowd, int(mean + 20 * spread) + 100)

    def threshold(there: int) -> int:
        """The least number of ones, her own counted, at which the first value is likely enough."""
        found = (odds * (there + 1) / (1 + odds)).floor().unique_fmpz()
        assert found is not None
        return int(found) + 1

    def law_from(there: int, start: int) -> tuple[arb, arb]:
        """Chance of so many heads of so many coins, and of no fewer."""
        if start > there:
            return arb(0), arb(0)
        here = (log_choose(there, start) - there * arb(2).log()).exp()
        term, total = here, arb(0)
        for heads in range(start, there + 1):
            total += term
            term = term * (there - heads) / (heads + 1)
            if 2 * heads > there + 1 and term < total * arb(2) ** -200:
                # What is left falls at least as fast as it does here.
                return here, total + term * (heads + 2) / (2 * heads + 2 - there) * arb(0, 1)
        return here, total

    chance = (log_choose(crowd, first) + first * clone.log() + (crowd - first) * (1 - clone).log()).exp()
    at = threshold(first)
    mass, tail = law_from(first, at)
    total, seen = arb(0), arb(0)
    for there in range(first, last + 1):
        # One head fewer will do where she adds one.
        before = mass * at / (there - at + 1) if at <= there else arb(2) ** -there
        more, less = tail + before, tail
        # ``mass`` and ``tail`` are those of ``at`` heads among ``there`` coins.
        total += chance * (truth * more + lie * less - grown * (lie * more + truth * less))
        seen += chance
        chance = chance * (crowd - there) / (there + 1) * clone / (1 - clone)
        # One coin more: the tail gains half of what was just below.
        tail, mass = tail + before / 2, (mass + before) / 2
        while at < threshold(there + 1):
            tail -= mass
            mass = mass * (there + 1 - at) / (at + 1)
            at += 1
    assert last == crowd or (1 - seen) < arb(2) ** -80
    return total + most(1 - seen, arb(0)) * arb(0, 1)


CROWD = (
    {"epsilon0": 1.0, "n_users": 60, "epsilon": 0.3},
    {"epsilon0": 3.0, "n_users": 40, "epsilon": 1.0},
    {"epsilon0": 0.3, "n_users": 50, "delta": 1e-4},
)


MILLIONS = (
    {"epsilon0": 1.0, "n_users": 10_000, "epsilon": 0.05},
    {"epsilon0": 4.0, "n_users": 10**6, "epsilon": 0.05},
    {"epsilon0": 0.5, "n_users": 10**6, "delta": 1e-9},
    {"epsilon0": 4.0, "n_users": 10**8, "epsilon": 0.005},
)


@judges("clones:2021", *CROWD, *MILLIONS, curve=True, close=1e-6)
def clones_2021(epsilon0: float, n_users: int, epsilon: float) -> arb:
    with ctx.workprec(256):
        return hidden(epsilon0, (-fitted(epsilon0)).exp(), n_users, epsilon)


@judges(
    "clones:2023",
    *({"randomizer": "laplace", **one} for one in CROWD),
    *({"randomizer": "kary", "n_buckets": 5, **one} for one in (*CROWD, MILLIONS[1])),
    curve=True,
    close=1e-6,
)
@judges(
    "shuffle:any",
    *({"side": "upper", **one} for one in CROWD),
    curve=True,
    close=1e-6,
    reach=lambda inputs: inputs["side"] == "upper",
)
@judges(
    "blanket:lem-reduction",
    *({"randomizer": "kary", "n_buckets": 2, **one} for one in CROWD),
    curve=True,
    close=1e-6,
    reach=lambda inputs: inputs.get("n_buckets") == 2,
)
def clones_2023(epsilon0: float, n_users: int, epsilon: float, **_: Any) -> arb:
    """By its own blanket binary response is hidden as by clones of that chance."""
    with ctx.workprec(256):
        return hidden(epsilon0, 2 / (fitted(epsilon0).exp() + 1), n_users, epsilon)


@judges(
    "shuffle:any",
    {"side": "lower", "epsilon0": 1.2, "n_users": 5, "epsilon": 0.3},
    {"side": "lower", "epsilon0": 0.4, "n_users": 6, "epsilon": 0.1},
    {"side": "lower", "epsilon0": 2.5, "n_users": 5, "delta": 0.05},
    curve=True,
    close=0.05,
    ledger=False,
)
def any_lower(side: str, epsilon0: float, n_users: int, epsilon: float) -> arb:
    """Of k-ary responses, those of two to four letters."""
    return most(*(truth("kary", epsilon0, k, n_users, epsilon) for k in (2, 3, 4)))


@judges(
    "shuffle:calibrate",
    {"randomizer": "any", "n_users": 30, "epsilon": 0.5, "delta": 0.001},
    {"randomizer": "kary", "n_buckets": 4, "n_users": 12, "epsilon": 0.5, "delta": 0.01},
    close=1e-6,
    side="lower",
)
def largest_budget(randomizer: str, n_users: int, epsilon: float, delta: float, n_buckets: int = 0) -> dict[str, arb]:
    """The local budget at which delta is met; delta grows with it."""

    def at(epsilon0: float) -> arb:
        if randomizer == "any":
            return hidden(epsilon0, 2 / (fitted(epsilon0).exp() + 1), n_users, epsilon)
        return table_blanket(table_of(randomizer, epsilon0, n_buckets), (0, 1), n_users, epsilon)

    low, high = epsilon, 20.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if at(middle) <= fitted(delta) else (low, middle)
    assert at(high) > fitted(delta)
    return {"epsilon0": arb(low).union(arb(high))}


# --- binary response -------------------------------------------------------------------------------------------------


def binary_pair(epsilon0: float, n_users: int, ones: int) -> tuple[list[arb], list[arb]]:
    """Laws of the count when so many of the others hold 1, with the user's own 1 and with a 0."""
    lie = 1 / (1 + fitted(epsilon0).exp())
    others = multiplied(binomial_law(ones, 1 - lie), binomial_law(n_users - 1 - ones, lie))
    law = [arb(0), *others, arb(0)]
    one, zero = [], []
    for count in range(n_users + 1):
        one.append((1 - lie) * law[count] + lie * law[count + 1])
        zero.append(lie * law[count] + (1 - lie) * law[count + 1])
    return one, zero


def binary_at(epsilon0: float, n_users: int, ones: int, epsilon: float) -> arb:
    """Divergence when so many of the others hold 1; both directions."""
    return both_ways(*binary_pair(epsilon0, n_users, ones), fitted(epsilon))


@judges(
    "shuffle:exact-binary",
    {"epsilon0": 1.0, "n_users": 12, "epsilon": 0.3},
    {"epsilon0": 3.0, "n_users": 20, "epsilon": 0.06},
    {"epsilon0": 0.5, "n_users": 120, "epsilon": 0.1},
    {"epsilon0": 2.0, "n_users": 60, "delta": 1e-4},
    curve=True,
    close=1e-6,
    reach=lambda inputs: inputs["n_users"] <= 200,
)
def exact_binary(epsilon0: float, n_users: int, epsilon: float) -> arb:
    if epsilon >= epsilon0:
        return arb(0)
    return most(*(binary_at(epsilon0, n_users, ones, epsilon) for ones in range(n_users)))


@judges(
    "shuffle:exact-binary",
    {"epsilon0": 1.0, "n_users": 3000, "epsilon": 0.06},
    {"epsilon0": 2.0, "n_users": 2000, "epsilon": 0.3},
    curve=True,
    close=None,
    reach=lambda inputs: 200 < inputs["n_users"] <= 2000,
    side="upper",
)
def binary_alike(epsilon0: float, n_users: int, epsilon: float) -> arb:
    """Where all others hold the same: one of the data sets, so that the worst is not below."""
    return binary_at(epsilon0, n_users, 0, epsilon)


@judges(
    "shuffle:rappor-sums",
    *(
        {"side": side, **one}
        for side in ("upper", "lower")
        for one in (
            {"epsilon0": 2.0, "n_users": 7, "epsilon": 0.3},
            {"epsilon0": 6.0, "n_users": 5, "epsilon": 0.1},
            {"epsilon0": 1.0, "n_users": 9, "delta": 0.01},
        )
    ),
    curve=True,
    close=0.5,
    ledger=False,
)
def rappor_sums(epsilon0: float, n_users: int, side: str, epsilon: float) -> arb:
    """Whatever number of the others hold either of both values: two counts that are independent of each other."""
    pairs = [binary_pair(epsilon0 / 2, n_users, ones) for ones in range(n_users)]
    found = []
    for held, gone in product(range(n_users), repeat=2):
        if held + gone < n_users:
            (one, zero), (one_of_other, zero_of_other) = pairs[held], pairs[gone]
            laws = [[p * q for p in x for q in y] for x, y in ((one, zero_of_other), (zero, one_of_other))]
            found.append(both_ways(*laws, fitted(epsilon)))
    return most(*found)


# --- noise on numbers ------------------------------------------------------------------------------------------------


def laplace_sum(epsilon0: float, n_users: int, epsilon: float) -> arb:
    r"""Many users with Laplace noise: the mean of a positive part by the transform, along a line in the plane.

    :math:`E S_+ = \frac1\pi\int_0^\infty\mathrm{Re}\,M(c+it)^n(c+it)^{-2}dt`.  One variable is
    ``mass (w - a)`` or ``mass (1 - a w)`` for a ratio w of likelihoods with the density ``w^(-3/2) / 4`` on
    ``[1, e^epsilon0]`` and an atom at its end; the powers make error functions.
    """
    a, wide, mass = fitted(epsilon).exp(), fitted(epsilon0).exp(), (-fitted(epsilon0) / 2).exp()

    def power(z: acb, sign: int, sure: bool) -> acb:
        """Integral of ``exp(sign z w) w^(-3/2)``, by parts."""
        near, far = z.sqrt(analytic=sure), (z * wide).sqrt(analytic=sure)
        errors = far.erfi() - near.erfi() if sign > 0 else far.erf() - near.erf()
        ends = (sign * z).exp() - (sign * z * wide).exp() / wide.sqrt()
        return 2 * ends + sign * 2 * z * arb.pi().sqrt() / near * errors

    def atoms(s: Any) -> Any:
        return mass / 2 * ((s * mass * (wide - a)).exp() + (s * mass * (1 - a * wide)).exp())

    def transform(s: acb, sure: bool) -> acb:
        left = (-s * mass * a).exp() * power(s * mass, 1, sure)
        right = (s * mass).exp() * power(s * mass * a, -1, sure)
        return 1 - mass + mass * (atoms(s) + (left + right) / 4)

    def steepness(c: arb) -> float:
        return float((n_users * transform(acb(c), False).real.log() - 2 * c.log()).mid())

    c = min((arb(2.0 ** (i / 4)) for i in range(-24, 24)), key=steepness)

    def beyond(height: arb) -> arb:
        """What lies above this height at most: by parts, the density's transform falls."""
        left = (-c * mass * a).exp() * 3 * (c * mass * wide).exp() / mass
        right = (c * mass).exp() * 3 * (-c * mass * a).exp() / (mass * a)
        size = 1 - mass + mass * (atoms(c) + (left + right) / (4 * height))
        return size**n_users / (height * arb.pi())

    height, main = arb(4), transform(acb(c), False).real ** n_users / c
    while not beyond(height) < main * arb(2) ** -44:
        height *= 1.25

    def integrand(t: acb, sure: bool) -> acb:
        s = c + acb(0, 1) * t
        return transform(s, sure) ** n_users / s**2

    found = integral(integrand, arb(0), height, bits=42) / arb.pi()
    return (found + beyond(height) * arb(0, 1)) / (mass * n_users)


@judges(
    "blanket:lem-reduction",
    {"randomizer": "laplace", "epsilon0": 0.5, "n_users": 1000, "epsilon": 0.0581},
    {"randomizer": "laplace", "epsilon0": 2.0, "n_users": 200, "epsilon": 0.5},
    curve=True,
    close=1e-6,
    reach=lambda inputs: inputs["randomizer"] == "laplace" and inputs["n_users"] == 10_000,
)
def many_laplace(randomizer: str, epsilon0: float, n_users: int, epsilon: float) -> arb:
    """To eight digits, which is less than the answer tells of itself: it may lie in the ball."""
    with ctx.workprec(96):
        return laplace_sum(epsilon0, n_users, epsilon)


# --- how accurate a sum can be ---------------------------------------------------------------------------------------


def worst_error(n_users: int, n_levels: int, mass: arb) -> arb:
    """Largest mean squared error of a sum, from the law of one message: in every cell a parabola."""

    def at(cell: int, part: arb) -> arb:
        """Variance of a user's message at ``(cell + part) / n_levels``."""
        mean = (1 - mass) * (cell + part) + mass * n_levels / 2
        uniform = sum((arb(i * i) for i in range(n_levels + 1)), arb(0)) / (n_levels + 1)
        square = (1 - mass) * ((1 - part) * cell**2 + part * (cell + 1) ** 2) + mass * uniform
        return (square - mean**2) / (n_levels * (1 - mass)) ** 2

    found = arb(0)
    for cell in range(n_levels):
        ends = at(cell, arb(0)), at(cell, arb(1) / 2), at(cell, arb(1))
        bend = 2 * (ends[0] + ends[2] - 2 * ends[1])
        lean = ends[2] - ends[0] - bend
        found = most(found, ends[0], ends[2])
        if bend < 0:
            top = -lean / (2 * bend)
            if 0 < top < 1:
                found = most(found, at(cell, top))
    return n_users * found


@judges(
    "blanket:thm-4.1",
    {"n_users": 2000, "epsilon": 1.0, "delta": 1e-6},
    {"n_users": 10**5, "epsilon": 1.0, "delta": 1e-6},
    {"n_users": 10**4, "epsilon": 0.5, "delta": 1e-4},
    close=1e-10,
)
def summation(n_users: int, epsilon: float, delta: float) -> dict[str, arb | float]:
    e = fitted(epsilon)
    grain = most(14 * (2 / fitted(delta)).log() / e**2, 27 / e) / (n_users - 1)
    found = [(k, worst_error(n_users, k, (k + 1) * grain)) for k in range(1, 25) if (k + 1) * grain < 1]
    best = [(k, error) for k, error in found if all(error < other for i, other in found if i != k)]
    assert len(best) == 1
    k, error = best[0]
    mass = (k + 1) * grain
    bound = n_users / (1 - mass) ** 2 * (arb(1) / (4 * k**2) + mass / 2)
    return {"n_levels": k, "blanket_mass": mass, "mse": error, "mse_bound": bound}


@judges(
    "blanket:thm-4.2",
    {"n_users": 1000, "epsilon": 1.0, "delta": 1e-6},
    {"n_users": 10**6, "epsilon": 0.1, "delta": 1e-9},
    {"n_users": 2, "epsilon": 5.0, "delta": 0.3},
)
def no_better(n_users: int, epsilon: float, delta: float) -> arb:
    e, room = fitted(epsilon), arb(1) / 2 - fitted(delta)
    return most(*((n_users * (-e).exp() / (8 * k**2)).min(room * (k - arb(1) / k) / 48) for k in range(2, 2000)))


@judges(
    "blanket:own-sum",
    {"n_users": 12, "epsilon": 1.0, "delta": 0.01},
    close=1e-6,
    side="upper",
    reach=lambda inputs: inputs["n_users"] <= 12,
)
def certified_summation(n_users: int, epsilon: float, delta: float) -> dict[str, arb | float]:
    """For each number of levels the least mass that keeps the budget, and the levels of the least error."""
    found = []
    for levels in (1, 2, 3):
        low, high = epsilon, 20.0
        for _ in range(50):
            middle = (low + high) / 2
            kept = table_blanket(table_of("kary", middle, levels + 1), (0, 1), n_users, epsilon) <= fitted(delta)
            low, high = (middle, high) if kept else (low, middle)
        mass = mass_of("kary", low, levels + 1).union(mass_of("kary", high, levels + 1))
        found.append((levels, mass, worst_error(n_users, levels, mass)))
    best = [one for one in found if all(one[2] < other[2] for other in found if other is not one)]
    assert len(best) == 1
    levels, mass, _ = best[0]
    return {"n_levels": levels, "blanket_mass": mass}
