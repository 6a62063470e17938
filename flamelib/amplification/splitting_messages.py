r"""What a user of split-and-mix sends: how many messages hide everything but the sum, and how many bits.

Standard library only: the same source runs in a browser.
"""

import math

from flamelib.core.logspace import MARGIN
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError


@states("cloak", "best-1", item="split-and-mix, after Balle, Bell, Gascon, Nissim 2020", gives="upper",
        adjacency="sum-preserving")  # fmt: skip
def messages_needed(security_bits: float, n_users: int, log2_modulus: float) -> int:
    r"""Messages per user with which data sets of equal sum are within :math:`2^{-\sigma}` (upper, never too few).

    .. math:: m = \Big\lceil2+\frac{2\sigma+\log_2N}{\log_2n-\log_2e}\Big\rceil, \qquad m\ge3,\ n\ge19

    Of several colluding users, subtract their number from ``n_users``.  The formula is theirs; wherever the two were
    compared, ``cloak:own-3``, which is proven here, needs no more messages.

    Parameters
    ----------
    security_bits : float in (0, 1e6]
        Minus the base-2 logarithm σ of the total variation distance.
    n_users : int, at least 19
    log2_modulus : float in (0, 1e6]

    Raises
    ------
    DomainError
        With fewer than 19 users: the theorem is silent.

    Source: Balle, Bell, Gascon, Nissim 2020, Private Summation in the Multi-Message Shuffle Model.

    Examples
    --------
    >>> messages_needed(40, 10_000, 32)
    12
    """
    if n_users < 19:
        raise DomainError(f"n_users must be a whole number in [19, 2^53] for this theorem, got {n_users}")
    needed = (2 * security_bits + log2_modulus) / (math.log2(n_users) - math.log2(math.e))
    return max(3, math.ceil(2 + needed * (1 + MARGIN)))


@states("cloak", "bits", item="Section 8, bits per user", gives="exact", adjacency="none")
def bits_sent(modulus: int, n_messages: int, dimension: int = 1) -> int:
    r"""Bits that a user sends, :math:`d\,m\lceil\log_2N\rceil` (exact).

    Parameters
    ----------
    modulus : int from 2 to 2**256
    n_messages : int, at least 1
    dimension : int, at least 1

    Source: Ghazi, Pagh, Velingker 2019: messages are whole numbers below the modulus.

    Examples
    --------
    >>> bits_sent(23_328_000_001, 54)
    1890
    """
    return dimension * n_messages * modulus_bits(modulus)


def modulus_bits(modulus: int) -> int:
    r"""Bits of one message, :math:`\lceil\log_2N\rceil`.

    Examples
    --------
    >>> modulus_bits(2**32), modulus_bits(2**32 + 1)
    (32, 33)
    """
    return (modulus - 1).bit_length()
