r"""Subset sums of two users' shares, exactly: how smooth shares are, how likely, and moments of their number.

Of two users' 2m shuffled shares, the m-subsets that add up to the first input are what could have been that user's.
Everything is a whole number up to the last division.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from flamelib.amplification.splitting import odd
from flamelib.amplification.splitting_exact import LARGEST, WORD
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check

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
