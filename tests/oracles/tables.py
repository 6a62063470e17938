"""Small shuffled worlds in whole numbers: every data set, both directions; nothing of the library, nothing rounded.

A table of doubles is taken as the rational numbers that they are; only powers of e are cut, after 50 digits.
"""

import itertools
import math
from decimal import Context, Decimal
from fractions import Fraction

SHIFT = 200  # binary digits behind the point of a power of e
KINDS = ("kary", "rappor", "oue", "subset", "hadamard", "local-hash")


def power(exponent):
    return Fraction(Decimal(exponent).exp(Context(prec=50)))


def messages(kind, epsilon0, k):
    """For each message that may be sent, how likely it is for each of the k values; in proportion."""
    p, root, values = power(epsilon0), power(epsilon0 / 2), range(k)
    if kind in ("rappor", "oue"):
        for bits in itertools.product((0, 1), repeat=k):
            right = [[bit == (x == z) for z, bit in enumerate(bits)] for x in values]
            if kind == "rappor":
                yield [root ** sum(right[x]) for x in values]
            else:  # the user's own bit is a fair coin
                yield [p ** (sum(right[x]) - right[x][x]) for x in values]
        return
    if kind == "kary":
        supports = [(y,) for y in values]
    elif kind == "subset":
        supports = itertools.combinations(values, max(round(k / (math.exp(epsilon0) + 1)), 1))
    elif kind == "hadamard":
        columns = range(1 << k.bit_length())
        supports = [[x for x in values if ((x + 1) & column).bit_count() % 2 == 0] for column in columns]
    else:
        supports = [[x for x in values if bits >> x & 1] for bits in range(2**k)]
    numbers = max(round(math.exp(epsilon0) + 1), 2) if kind == "local-hash" else 2
    for support in supports:
        ways = (numbers - 1) ** (k - len(support))  # to hash nobody else to the number reported
        yield [ways * (p if x in support else Fraction(1)) for x in values]


def family(kind, epsilon0, k):
    """Rows of a family, messages joined that tell the same of every value."""
    joined = {}
    for column in messages(kind, epsilon0, k):
        tells = tuple(chance / column[0] for chance in column)
        joined[tells] = joined.get(tells, 0) + column[0]
    return normed([[tells[x] * chance for tells, chance in joined.items()] for x in range(k)])


def normed(rows):
    return [[Fraction(entry) / sum(map(Fraction, row)) for entry in row] for row in rows]


def work(values, letters, n_users):
    """Histograms that are compared, over all pairs of neighbouring data sets."""
    others = math.comb(n_users + values - 2, values - 1)
    return others * values * (values - 1) * math.comb(n_users + letters - 1, letters - 1)


def neighbours(rows, n_users):
    """Chances of every histogram by two data sets that differ in one value, for all of these; and what they sum to."""
    whole = math.lcm(*(entry.denominator for row in rows for entry in row))
    steps = [[((n_users + 1) ** letter, int(entry * whole)) for letter, entry in enumerate(row)] for row in rows]
    laws = {(): {0: 1}}
    for size in range(1, n_users + 1):
        for held in itertools.combinations_with_replacement(range(len(rows)), size):
            laws[held] = law = {}
            for histogram, chance in laws[held[:-1]].items():
                for step, entry in steps[held[-1]]:
                    law[histogram + step] = law.get(histogram + step, 0) + chance * entry
    pairs = []
    for others in itertools.combinations_with_replacement(range(len(rows)), n_users - 1):
        for two in itertools.permutations(range(len(rows)), 2):
            first, second = (laws[tuple(sorted((*others, value)))] for value in two)
            pairs.append([(chance, second[histogram]) for histogram, chance in first.items() if chance])
    return pairs, whole**n_users


def worst(world, epsilon):
    """The largest hockey-stick divergence of any two neighbours."""
    pairs, whole = world
    growth = int(power(epsilon) * 2**SHIFT)
    gaps = ([(p << SHIFT) - growth * q for p, q in pair] for pair in pairs)
    return Fraction(max(sum(gap for gap in one if gap > 0) for one in gaps), whole << SHIFT)


def budget(rows):
    """The local budget as a double, rounded up; infinite where a message gives a value away."""
    columns = [column for column in zip(*rows, strict=True) if any(column)]
    if not all(map(all, columns)):
        return math.inf
    ratio = max(max(column) / min(column) for column in columns)
    wide = Context(prec=50)
    exact = wide.ln(wide.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    found = float(exact)
    return found if Decimal(found) >= exact else math.nextafter(found, math.inf)
