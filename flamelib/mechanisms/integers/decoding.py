"""The sum of the users' values from a list of messages, in whole numbers of any size; standard library only."""

from collections.abc import Sequence

from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError


@states("cloak", "alg-2", item="Algorithm 2, the analyzer", gives="exact", rests_on="proven", adjacency="none")
def estimate(messages: Sequence[int], modulus: int, scale: int, n_users: int) -> float:
    r"""Estimated sum of the users' values in [0, 1], clipped to [0, n] (exact, by the printed rule).

    With :math:`z = \sum y \bmod N`: 0 where :math:`z>2nk` (slightly negative noise), :math:`n` where
    :math:`nk<z\le2nk`, else :math:`z/k`.

    Parameters
    ----------
    messages : sequence of int, each from 0 to 2**256
        Everything that left the shuffler; an empty list is answered 0.
    modulus : int, above ``n_users * scale``
        With noise the rule reads negative sums rightly above ``3 * n_users * scale`` only.

    Raises
    ------
    DomainError
        Where the sum of the values itself may wrap around.

    Source: Ghazi, Pagh, Velingker 2019, Algorithm 2.

    Examples
    --------
    >>> estimate([7, 21, 5], 31, 4, 2)
    0.5
    """
    full = n_users * scale
    if modulus <= full:
        raise DomainError(f"modulus must be a whole number above n_users * scale = {full}, got {modulus}")
    total = sum(messages) % modulus
    return 0.0 if total > 2 * full else min(total, full) / scale
