"""FLAME's index privacy of the reported coordinates, Definition 3, and the multiples that achieve it.

A user reports l times as many coordinates as are true.  The ratio of posterior to prior of one reported index concerns
one coordinate and a uniform prior; it is not differential privacy.  Proofs: book, chapter on FLAME, "Index privacy".
Standard library only.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check

# Relative rounding of a rate k / d to a double, tolerated by floors and ceilings of its multiples.
ROUNDING_RATE = Fraction(1, 2**52)


@dataclass(frozen=True, slots=True)
class IndexPrivacy:
    """The ratio of posterior to prior of a reported index, and the multiples of k coordinates a user reports."""

    index_privacy: float
    multiples: int


@dataclass(frozen=True, slots=True)
class MultiplesRange:
    """Multiples that Algorithm 4 admits: from ``least``, a real number, to the whole number ``most``."""

    least: float
    most: int


@states("flame", "def-3", item="Definition 3, multiples for an index privacy", gives="value",
        adjacency="none")  # fmt: skip
def least_multiples(sampling_rate: float, index_privacy: float) -> float:
    r"""Least real number of multiples at which Definition 3 holds with this ratio (value).

    A user reports l times its k true coordinates, so that a reported one is true with posterior probability :math:`1/l`
    and prior probability :math:`\beta`; the ratio :math:`\nu = 1` is the strongest, attained by reporting every
    coordinate:

    .. math:: l = \max\Big\{\frac1{\nu\beta},\ \frac{\nu}{\nu-1+\beta}\Big\}.

    Source: Liu et al. 2021, Definition 3 and Algorithm 4.

    Examples
    --------
    >>> least_multiples(0.02, 3.125), round(least_multiples(0.02, 50), 9)
    (16.0, 1.01999184)
    """
    return max(1 / (index_privacy * sampling_rate), index_privacy / (index_privacy - 1 + sampling_rate))


def multiples_range(sampling_rate: float, index_privacy: float) -> MultiplesRange:
    r"""Multiples that Algorithm 4 admits for a ratio (value): from the least to :math:`\lceil1/\beta\rceil`.

    Source: Liu et al. 2021, Algorithm 4 and Proposition 2; Figure 4 draws it.
    """
    sampling_rate, index_privacy = check(sampling_rate=sampling_rate, index_privacy=index_privacy).values()
    upper = math.ceil(1 / (Fraction(sampling_rate) * (1 + ROUNDING_RATE)))
    return MultiplesRange(least_multiples(sampling_rate, index_privacy), upper)


@states("flame", "thm-5", item="Theorem 5, strongest index privacy under padding", gives="value",
        adjacency="none")  # fmt: skip
def strongest_index_privacy(n_users: int, padded: int, sampling_rate: float) -> IndexPrivacy:
    r"""Least ratio of Definition 3, and the multiples that reach it, for which padding has room on average (value).

    .. math:: l = \Big\lfloor\frac{n_p}{n\beta}\Big\rfloor, \qquad \nu = \max\Big\{1, \frac1{l\beta}\Big\}.

    At :math:`l = 1` every reported coordinate is true and Definition 3 fails for every finite ratio: the answer is
    ``inf`` where the formula gives :math:`1/\beta`.  The padding accommodates the *mean* number of messages,
    :math:`nl\beta`; a coordinate may receive more.

    Source: Liu et al. 2021, Theorem 5.

    Examples
    --------
    >>> strongest_index_privacy(1000, 333, 0.02)
    IndexPrivacy(index_privacy=3.125, multiples=16)
    """
    rate = Fraction(sampling_rate)
    multiples = math.floor(padded / (n_users * rate * (1 - ROUNDING_RATE)))
    if multiples < 1:
        least = math.ceil(n_users * rate * (1 - ROUNDING_RATE))
        raise DomainError(f"padded must be at least {least}, n_users times sampling_rate, for Theorem 5, got {padded}")
    if multiples == 1 and rate < 1:
        return IndexPrivacy(math.inf, 1)
    return IndexPrivacy(float(max(Fraction(1), 1 / (multiples * rate))), multiples)
