"""Exact distributions of split-and-mix for small parameters: enumerated multisets of shares, counted subset sums.

The shares of a user with value v are m residues modulo N, uniform subject to their sum v.  A multiset of shares is
encoded as an integer whose digits are the multiplicities of the nonzero residues, so that the union of multisets is the
sum of their codes.  The distribution of all users' shares is the convolution of those of single users, each represented
by the number of sequences of draws that lead to a multiset.  The arithmetic is exact up to the last division; where all
numbers are below 2^63, in machine integers.

Of two users' 2m shares, the candidates for the first user's are the m-subsets that add up to the first input.  Proofs:
book, chapter on cloak aggregation, "Two users".
"""

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import Wholes
from flamelib.core.logspace import MAX_EXPONENT, least_double
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check, odd

_Law = Mapping[int, int]
"""Number of sequences of draws of each encoded multiset."""

MAX_STEPS = 2**25  # largest number of steps: a few seconds


@states("cloak", "exact", item="this project: the shuffled shares of two data sets, enumerated", gives="exact",
        rests_on="proven", adjacency="none")  # fmt: skip
def shuffled_distance(
    modulus: int, n_messages: int, inputs_a: Sequence[int], inputs_b: Sequence[int], epsilon: float
) -> float:
    r"""Hockey-stick distance between the shuffled shares of two data sets, the larger of both directions (exact).

    .. math:: \max\Big(\sum_y\big(P_a(y)-e^\varepsilon P_b(y)\big)_+,\ \sum_y\big(P_b(y)-e^\varepsilon P_a(y)\big)_+
              \Big)

    over all multisets y of nm shares, rounded once; total variation at ``epsilon=0``.  Inputs are taken modulo N; data
    sets whose sums differ have distance 1.  Refused where the enumeration would take more than a few seconds.

    Source: this project, by convolution of the distributions of the users' shares.

    Examples
    --------
    >>> shuffled_distance(3, 2, (0, 0), (1, -1), 0) == 4 / 9
    True
    """
    if len(inputs_a) != len(inputs_b):
        raise DomainError(f"inputs_b must have as many entries as inputs_a, {len(inputs_a)}, got {len(inputs_b)}")
    left, right = (Counter(value % modulus for value in inputs) for inputs in (inputs_a, inputs_b))
    if left == right:
        return 0.0
    if n_messages == 1 or (sum(inputs_a) - sum(inputs_b)) % modulus:
        return 1.0
    base, draws = n_messages * len(inputs_a) + 1, len(inputs_a) * (n_messages - 1)
    # log2 of the largest machine integer, round-off of the estimate included.
    fits_int64 = max((modulus - 1) * math.log2(base), draws * math.log2(modulus)) < 62.9
    _require_affordable(modulus, n_messages, len(inputs_a), fits_int64)
    users, multiply = _user_multiplicities(modulus, n_messages, base), _convolve_int64 if fits_int64 else _convolve_dict
    identity: _Law = {0: 1}
    common = functools.reduce(multiply, (users[value] for value in (left & right).elements()), identity)
    differences = (left - right, right - left)
    a, b = (functools.reduce(multiply, (users[value] for value in values.elements()), common) for values in differences)
    factor = _exponential(min(epsilon, draws * math.log(modulus) + 1))
    return float(max(_excess(a, b, factor), _excess(b, a, factor)) / modulus**draws)


def _require_affordable(modulus: int, n_messages: int, n_users: int, fits_int64: bool) -> None:
    """Refuse enumerations of more than ``MAX_STEPS`` steps, weighted by the length of their integers."""
    slowdown = 6  # time of a dictionary step with one-word integers, in array steps
    single = _multisets(modulus, n_messages)
    per_sum, steps = -(-single // modulus), 0
    factor = Fraction(1) if fits_int64 else slowdown * (1 + Fraction(modulus, 64))  # bits of a machine word
    for users in range(1, n_users):
        steps += 2 * per_sum * min(per_sum**users, -(-_multisets(modulus, users * n_messages) // modulus))
        if steps * factor > MAX_STEPS:
            break
    if steps * factor + slowdown * single * n_messages > MAX_STEPS:
        raise DomainError(
            "modulus, n_messages and the number of inputs must be small enough to enumerate: "
            f"{modulus}, {n_messages}, {n_users} take more than {MAX_STEPS:,} steps"
        )


def _multisets(modulus: int, size: int) -> int:
    """Number of multisets of ``size`` residues, at least up to ``MAX_STEPS * modulus``."""
    count, chosen = 1, min(size, modulus - 1)
    for i in range(1, chosen + 1):
        count = count * (size + modulus - 1 - chosen + i) // i
        if count > MAX_STEPS * modulus:
            break
    return count


def _user_multiplicities(modulus: int, n_messages: int, base: int) -> Mapping[int, _Law]:
    """The multiplicities of the multisets of a user's shares, for each value modulo N."""
    digits = [0, *(base**residue for residue in range(modulus - 1))]
    laws: Mapping[int, _Law] = {0: {0: 1}}
    for _ in range(n_messages):
        extended: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for total, law in laws.items():
            for residue, digit in enumerate(digits):
                target = extended[(total + residue) % modulus]
                for multiset, multiplicity in law.items():
                    target[multiset + digit] += multiplicity
        laws = extended
    return laws


def _convolve_dict(law: _Law, other: _Law) -> _Law:
    """Convolution of two distributions in Python integers."""
    product: dict[int, int] = defaultdict(int)
    for multiset, multiplicity in law.items():
        for added, factor in other.items():
            product[multiset + added] += multiplicity * factor
    return product


def _convolve_int64(law: _Law, other: _Law) -> _Law:
    """Convolution of two distributions in integers below 2^63, by blocks."""
    added, times = np.array([*other.items()], dtype=np.int64).T
    entries = np.array([*law.items()], dtype=np.int64)
    parts = np.array_split(entries, 1 + entries.shape[0] * added.size // 2**21)  # products of a block
    blocks = [
        _merge_equal(np.add.outer(part[:, 0], added).ravel(), np.outer(part[:, 1], times).ravel()) for part in parts
    ]
    multisets, multiplicities = _merge_equal(*map(np.concatenate, zip(*blocks, strict=True)))
    return dict(zip(multisets.tolist(), multiplicities.tolist(), strict=True))


def _merge_equal(multisets: Wholes, multiplicities: Wholes) -> tuple[Wholes, Wholes]:
    order = np.argsort(multisets)
    ordered = multisets[order]
    first = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    return ordered[first], np.add.reduceat(multiplicities[order], first)


def _exponential(epsilon: float) -> Fraction:
    """The exponential as a fraction, by powers of a double."""
    parts = 1 + int(epsilon / MAX_EXPONENT)
    return Fraction(math.exp(epsilon / parts)) ** parts


def _excess(law: _Law, other: _Law, factor: Fraction) -> Fraction:
    numerator, denominator = factor.as_integer_ratio()
    gaps = (denominator * multiplicity - numerator * other.get(multiset, 0) for multiset, multiplicity in law.items())
    return Fraction(sum(gap for gap in gaps if gap > 0), denominator)


@states("cloak", "def-2", item="Definition 2", gives="exact", rests_on="proven", adjacency="none")
def least_smoothness(messages: Sequence[int], modulus: int) -> float:
    r"""The least :math:`\gamma` for which the 2m shares of two users are smooth (exact, rounded once).

    .. math:: \max_x\Big|\frac{N}{C_m}B_x-1\Big|, \qquad C_m = \binom{2m}m,

    where :math:`B_x` of the m-subsets add up to x; refused beyond about a second of counting.

    Source: Ghazi, Pagh, Velingker 2019, Definition 2 (without its demand that messages are distinct).

    Examples
    --------
    >>> least_smoothness((0, 0, 1, 2), 3)
    0.0
    """
    counts = subset_counts(messages, modulus)
    subsets = math.comb(len(messages), len(messages) // 2)
    unreached = [0] if len(counts) < modulus else []
    return float(max(abs(Fraction(modulus * count, subsets) - 1) for count in [*counts.values(), *unreached]))


@states("cloak", "lemma-2", item="Lemma 2", gives="exact", rests_on="proven", adjacency="none")
def shares_probability(messages: Sequence[int], modulus: int, inputs_a: Sequence[int]) -> float:
    r"""Probability that two users' shuffled shares are ``messages``, 2m distinct ones (exact, rounded once).

    .. math:: \frac{(m!)^2B_{x_1}}{N^{2m-2}}

    where :math:`B_{x_1}` of the m-subsets add up to the first of the two inputs; 0 where the sums do not agree.

    Source: Ghazi, Pagh, Velingker 2019, Lemma 2.

    Examples
    --------
    >>> shares_probability((0, 1, 2, 4), 5, (1, 1)) == 8 / 25
    True
    """
    if len(inputs_a) != 2:
        raise DomainError(f"inputs_a must be a list of two inputs, got {len(inputs_a)}")
    if len({message % modulus for message in messages}) < len(messages):
        raise DomainError("messages must be distinct modulo the modulus")
    counts = subset_counts(messages, modulus)
    if (sum(messages) - sum(inputs_a)) % modulus:
        return 0.0
    half = len(messages) // 2
    favourable = math.factorial(half) ** 2 * counts.get(inputs_a[0] % modulus, 0)
    return float(Fraction(favourable, modulus ** (2 * half - 2)))


@states("cloak", "lemma-3", item="Lemma 3", gives="upper", rests_on="proven", adjacency="sum-preserving")
def smooth_ratio(smoothness: float) -> float:
    r"""Likelihood ratio of smooth shares under two pairs of inputs of equal sum (upper).

    .. math:: \frac{1+\gamma}{1-\gamma}

    Source: Ghazi, Pagh, Velingker 2019, Lemma 3.

    Examples
    --------
    >>> round(smooth_ratio(0.5), 12)
    3.0
    """
    return least_double((1 + Fraction(smoothness)) / (1 - Fraction(smoothness)))


def subset_counts(messages: Sequence[int], modulus: int) -> dict[int, int]:
    """Number of subsets of half the messages with each sum modulo N; unreached residues are omitted."""
    messages, modulus = check(messages=messages, modulus=modulus).values()
    half, remainder = divmod(len(messages), 2)
    if remainder or not half:
        raise DomainError(f"messages must be a list of 2, 4, 6 ... entries, got {len(messages)}")
    if 2 * half**2 * min(modulus, 4 ** min(half, 64)) > MAX_STEPS:
        raise DomainError(f"messages and modulus must be small enough to count subsets (about {MAX_STEPS:,} steps)")
    table: list[dict[int, int]] = [{0: 1}, *({} for _ in range(half))]
    for message in messages:
        for size in range(half, 0, -1):
            for total, count in table[size - 1].items():
                residue = (total + message) % modulus
                table[size][residue] = table[size].get(residue, 0) + count
    return table[half]


def subset_tables(messages: ArrayLike, modulus: int) -> Wholes:
    """For each row of messages the number of subsets of half of them with each sum modulo N (exact).

    Parameters
    ----------
    messages : array of int, shape (rows, 2 * half)
        At most 64 in a row.

    Returns
    -------
    array of shape (rows, modulus)

    Examples
    --------
    >>> subset_tables([[0, 1, 1, 2], [0, 0, 0, 0]], 3).tolist()
    [[2, 2, 2], [6, 0, 0]]
    """
    max_messages = 64  # largest number of messages: subsets of half of them are fewer than 2^63
    rows = 256  # lists of messages counted at a time
    modulus = check(modulus=modulus)["modulus"]
    array = np.asarray(messages, dtype=np.int64)
    if array.ndim != 2 or array.shape[1] % 2 or array.shape[1] > max_messages:
        raise DomainError(f"messages must have an even number of columns, {max_messages} at most, got {array.shape}")
    half, residues = array.shape[1] // 2, np.arange(modulus)
    tables = np.empty((len(array), modulus), dtype=np.int64)
    for start in range(0, len(array), rows):
        block = array[start : start + rows]
        table = np.zeros((len(block), half + 1, modulus), dtype=np.int64)
        table[:, 0, 0] = 1
        for message in block.T:
            shifted = (residues - message[:, None]) % modulus
            table[:, 1:] += np.take_along_axis(table[:, :-1], shifted[:, None, :], axis=2)
        tables[start : start + rows] = table[:, -1]
    return tables


class Moments(NamedTuple):
    """Mean and variance of the number of subsets with a given sum, the latter also at half the sum of the inputs."""

    mean: float
    variance: float
    variance_at_half: float


def subset_moments(modulus: int, n_messages: int) -> Moments:
    r"""Moments of the number of m-subsets, other than the two users' own, whose shares have a given sum (exact).

    .. math:: E = \frac{C_m-2}N, \qquad \mathrm{Var} = (C_m-2)\Big(\frac1N-\frac2{N^2}\Big)
              \text{ or } 2(C_m-2)\Big(\frac1N-\frac1{N^2}\Big),

    the latter for the residue that is half the sum of the inputs, where a subset and its complement have equal sums.
    For odd moduli and at most 500 messages.

    Source: this project, on the proof of Lemma 1 of Ghazi, Pagh, Velingker 2019.
    """
    max_messages = 500  # largest number of messages whose binomial coefficients are doubles
    modulus, n_messages = check(modulus=modulus, n_messages=n_messages).values()
    if n_messages > max_messages:
        raise DomainError(f"n_messages must be a whole number in [1, {max_messages}] here, got {n_messages}")
    others, density = math.comb(2 * n_messages, n_messages) - 2, Fraction(1, odd(modulus))
    moments = (others * density, others * density * (1 - 2 * density), 2 * others * density * (1 - density))
    return Moments(*map(float, moments))
