"""Shares of two users: how far apart two pairs of inputs with equal sum are, by exact variances of subset sums.

Two users' shuffled shares tell the first input by the m-subsets that add up to it; mean and variance of their number
are known exactly (:func:`flamelib.accounting.splitting.two_users.subset_moments`), for every modulus and without
asking that shares be distinct or smooth.  Standard library only: the same source runs in a browser.

Subset sums of two users' shares, exactly: how smooth shares are, how likely, and moments of their number.

Of two users' 2m shuffled shares, the m-subsets that add up to the first input are what could have been that user's.
Everything is a whole number up to the last division.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from flamelib.accounting.splitting.small_worlds import LARGEST, WORD
from flamelib.core.logspace import added_up, log_expm1, logaddexp, probability
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check, odd

SMALL = 512


@states("cloak", "own-1", item="this project: two users, total variation", gives="upper", adjacency="sum-preserving")
def two_user_distance(modulus: int, n_messages: int) -> float:
    r"""Total variation between the shuffled shares of two pairs of inputs with equal sum (upper).

    .. math:: \sqrt{N/C_m} \text{ for every modulus}, \qquad \sqrt{3N/(4C_m)} \text{ for an odd one}, \qquad
              C_m = \binom{2m}m

    for :math:`m\ge2`, at most 1; ``inf`` for a single message, which hides nothing.

    Parameters
    ----------
    modulus : int from 2 to 2**256
    n_messages : int, at least 1

    Source: this project, by the exact variance of the number of subsets with a given sum.

    Examples
    --------
    >>> round(two_user_distance(3, 4), 5), round(two_user_distance(4, 4), 5)
    (0.17928, 0.23905)
    """
    if n_messages < 2:
        return math.inf
    shrunk = math.log(0.75) if modulus % 2 else 0.0
    return probability(added_up(math.log(modulus), shrunk, -log_central_binomial(n_messages)) / 2)


@states("cloak", "own-2", item="this project: two users, hockey-stick, every modulus", gives="upper",
        adjacency="sum-preserving")  # fmt: skip
def two_user_delta(modulus: int, n_messages: int, epsilon: float) -> float:
    r"""Delta between the shuffled shares of two pairs of inputs with equal sum (upper).

    .. math:: \frac{2(N-1)(1+e^{2\varepsilon})+4e^\varepsilon}{4(e^\varepsilon-1)\,C_m}, \qquad C_m = \binom{2m}m

    for :math:`m\ge2` and :math:`\varepsilon>0`, at most 1; else ``inf``.  No smoothness and no distinct messages are
    asked for.

    Parameters
    ----------
    modulus : int from 2 to 2**256
    n_messages : int, at least 1
    epsilon : float, at least 0

    Source: this project, by :math:`(u)_+\le(u-Eu)^2/(4|Eu|)` and exact variances.

    Examples
    --------
    >>> f"{two_user_delta(30_000_001, 27, 0.1):.4e}"
    '1.6273e-07'
    """
    found = log_two_user_delta(modulus, n_messages, epsilon)
    return probability(found) if found < math.inf else math.inf


def odd_two_user_delta(modulus: int, n_messages: int, epsilon: float) -> float:
    r"""As :func:`two_user_delta` for odd moduli only, with the smaller numerator (upper).

    .. math:: \frac{(N-2)+2(N-1)e^{2\varepsilon}+4e^\varepsilon}{4(e^\varepsilon-1)\,C_m}

    Examples
    --------
    >>> f"{odd_two_user_delta(30_000_001, 27, 0.1):.4e}"
    '1.2610e-07'
    """
    check(modulus=modulus, n_messages=n_messages, epsilon=epsilon)
    found = log_two_user_delta(modulus, n_messages, epsilon, parity=True)
    return probability(found) if found < math.inf else math.inf


def log_two_user_delta(modulus: int, n_messages: int, epsilon: float, parity: bool = False) -> float:
    """Logarithm of :func:`two_user_delta`, or of the odd form, for a modulus of any size; may exceed 0."""
    if n_messages < 2 or epsilon == 0:
        return math.inf
    terms = [
        math.log(odd(modulus) - 2 if parity else 2 * modulus - 2),
        math.log(2) + math.log(modulus - 1) + 2 * epsilon,
    ]
    numerator = logaddexp(logaddexp(*terms), math.log(4) + epsilon)
    return added_up(numerator, -math.log(4), -log_expm1(epsilon), -log_central_binomial(n_messages))


def log_central_binomial(n_messages: int) -> float:
    r"""Natural logarithm of :math:`\binom{2m}m` to some ulps, for m of any size.

    Beyond 512 by :math:`m\ln4-\frac12\ln(\pi m)-\frac1{8m}+\frac1{192m^3}`, whose remainder is below
    :math:`1/(640m^5)`.

    Examples
    --------
    >>> round(math.exp(log_central_binomial(5)), 9)
    252.0
    """
    if n_messages <= SMALL:
        return math.log(math.comb(2 * n_messages, n_messages))
    correction = (1 / 24 / n_messages**2 - 1) / (8 * n_messages)
    return math.fsum([n_messages * math.log(4), -math.log(math.pi * n_messages) / 2, correction])


MANY_MESSAGES = 500


@states("cloak", "def-2", item="Definition 2", gives="exact", adjacency="none")
def least_smoothness(messages: Sequence[int], modulus: int) -> float:
    r"""The least :math:`\gamma` for which the shares of two users are smooth (exact, rounded once).

    .. math:: \max_x\Big|\frac{N}{C_m}B_x-1\Big|, \qquad C_m = \binom{2m}m,

    where :math:`B_x` of the m-subsets add up to x.

    Parameters
    ----------
    messages : sequence of int
        The 2m shares.
    modulus : int from 2 to 2**256

    Raises
    ------
    DomainError
        Where the messages are not an even number, or too many to be counted in a second or so.

    Source: Ghazi, Pagh, Velingker 2019, Definition 2 (without its demand that messages are distinct).

    Examples
    --------
    >>> least_smoothness((0, 0, 1, 2), 3)
    0.0
    """
    counts = subset_counts(messages, modulus)
    subsets = math.comb(len(messages), len(messages) // 2)
    missed = [0] if len(counts) < modulus else []
    return float(max(abs(Fraction(modulus * count, subsets) - 1) for count in [*counts.values(), *missed]))


@states("cloak", "lemma-2", item="Lemma 2", gives="exact", adjacency="none")
def shares_probability(messages: Sequence[int], modulus: int, inputs_a: Sequence[int]) -> float:
    r"""Chance that two users' shuffled shares are these distinct ones (exact, rounded once).

    .. math:: \frac{(m!)^2B_{x_1}}{N^{2m-2}}

    where :math:`B_{x_1}` of the m-subsets add up to the first input; 0 where the sums do not agree.

    Parameters
    ----------
    messages : sequence of int
        The 2m shares, distinct modulo ``modulus``.
    modulus : int from 2 to 2**256
    inputs_a : sequence of int
        The two scaled inputs.

    Raises
    ------
    DomainError
        Where messages repeat or are not an even number, or there are not two inputs.

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
    ways = math.factorial(half) ** 2 * counts.get(inputs_a[0] % modulus, 0)
    return float(Fraction(ways, modulus ** (2 * half - 2)))


@states("cloak", "lemma-3", item="Lemma 3", gives="upper", adjacency="sum-preserving")
def smooth_ratio(smoothness: float) -> float:
    r"""How much likelier smooth shares are under one pair of inputs than under another of equal sum (upper).

    .. math:: \frac{1+\gamma}{1-\gamma}

    Parameters
    ----------
    smoothness : float in (0, 1)

    Source: Ghazi, Pagh, Velingker 2019, Lemma 3.

    Examples
    --------
    >>> round(smooth_ratio(0.5), 12)
    3.0
    """
    exact = (1 + Fraction(smoothness)) / (1 - Fraction(smoothness))
    return math.nextafter(float(exact), math.inf)


def subset_counts(messages: Sequence[int], modulus: int) -> dict[int, int]:
    """How many of the subsets of half the messages add up to each residue; residues that none reaches are left out.

    Examples
    --------
    >>> subset_counts((0, 0, 1, 2), 3)
    {0: 2, 1: 2, 2: 2}
    """
    check(messages=messages, modulus=modulus)
    half, odd_one = divmod(len(messages), 2)
    if odd_one or not half:
        raise DomainError(f"messages must be a list of 2, 4, 6 ... entries, got {len(messages)}")
    if 2 * half**2 * min(modulus, 4 ** min(half, WORD)) > LARGEST:
        raise DomainError(f"messages and modulus must be small enough to count subsets (about {LARGEST:,} steps)")
    table: list[dict[int, int]] = [{0: 1}, *({} for _ in range(half))]
    for message in messages:
        for size in range(half, 0, -1):
            for total, count in table[size - 1].items():
                reached = (total + message) % modulus
                table[size][reached] = table[size].get(reached, 0) + count
    return table[half]


class Moments(NamedTuple):
    """Mean and variance of how many subsets have a given sum; the variance is larger at half the sum of the inputs."""

    mean: float
    variance: float
    variance_at_half: float


def subset_moments(modulus: int, n_messages: int) -> Moments:
    r"""Moments of the number of m-subsets, other than the two users' own, whose shares have a given sum (exact).

    .. math:: E = \frac{C_m-2}N, \qquad \mathrm{Var} = (C_m-2)\Big(\frac1N-\frac2{N^2}\Big)
              \text{ or } 2(C_m-2)\Big(\frac1N-\frac1{N^2}\Big),

    the latter for the one residue that is half the sum of the inputs, as a subset and its complement have that sum
    together.

    Parameters
    ----------
    modulus : int, odd, from 3 to 2**256
    n_messages : int from 1 to 500

    Source: this project, on the proof of Lemma 1 of Ghazi, Pagh, Velingker 2019.

    Examples
    --------
    >>> subset_moments(3, 2)
    Moments(mean=1.3333333333333333, variance=0.4444444444444444, variance_at_half=1.7777777777777777)
    """
    check(modulus=modulus, n_messages=n_messages)
    if n_messages > MANY_MESSAGES:
        raise DomainError(f"n_messages must be a whole number in [1, {MANY_MESSAGES}] here, got {n_messages}")
    others, share = math.comb(2 * n_messages, n_messages) - 2, Fraction(1, odd(modulus))
    moments = (others * share, others * share * (1 - 2 * share), 2 * others * share * (1 - share))
    return Moments(*map(float, moments))
