r"""What a count gives away: lower bounds for FLAME's protocols by the simplest of attacks, exact to round-off.

The victim holds the largest value in all her coordinates, or the smallest; Laplace noise carries the message above one
half with probability :math:`q = 1-\tfrac12e^{-\varepsilon_0/2}` or :math:`1-q`.  All other messages of these
coordinates follow the law centred at one half, be they dummies or of users who hold that value, and are above it as a
fair coin falls.  The analyzer counts the messages above one half: fair and biased coins, whose count is judged by
:mod:`flamelib.amplification.coin_counts`.  What holds for the others is said at each bound: they must be able to make
all other messages of these coordinates fair, and no bag may overflow.

Where there are more than ten billion messages the analyzer looks at fewer coordinates, which can only make the bound
smaller.  Adjacency: one user's vector is replaced.
"""

import math

from flamelib.amplification.coin_counts import Count
from flamelib.core.guarantees import Certified
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check

LARGEST = 10**10


@states("flame", "topk-lower", item="SS-Topk, the same top coordinates with opposite signs, messages counted",
        gives="lower")  # fmt: skip
def topk_lower(
    kept: float, padded: int, epsilon0: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    r"""What one round of SS-Topk gives away about one user, whatever is claimed for it (lower bound).

    The victim's top coordinates are the same in both data sets, with all values at one end or at the other; their
    other messages are dummies: the others report other coordinates, of which there must be as many, or hold one half
    in these and are no more than fit into a bag.  Each coordinate is shuffled by itself, which is the reading most
    favorable to the protocol.  So :math:`k` messages are biased and :math:`m = k(n_p-1)` are fair.

    Parameters
    ----------
    kept : float, positive
        Coordinates that a user reports; of a fraction the whole part, since the attack may leave coordinates out.
    padded : int, at least 2
        Messages of each coordinate after padding.
    epsilon0 : float in (0, 700]
        Local budget of one coordinate, Laplace noise on [0, 1].
    epsilon, delta : float
        Exactly one; the answer is the other one.

    Source: this project, on Liu et al. 2021, Theorem 4 for SS-Topk.

    Examples
    --------
    >>> round(topk_lower(157, 333, 0.5, epsilon=0.2379), 5), round(topk_lower(157, 333, 0.5, delta=5.0118723e-6), 3)
    (0.04208, 1.198)
    """
    whole = _whole(kept, padded)
    return _answer(Count(whole * (padded - 1), whole, *_chances(epsilon0)), epsilon, delta)


def disjoint_lower(
    kept: float, padded: int, epsilon0: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    r"""The same for two disjoint sets of top coordinates: real against dummy (lower bound).

    All values are large on the first set in one data set, small on the second set in the other; messages are counted
    on both, so that :math:`m = k(2n_p-1)`; the others report coordinates outside of both, or hold one half in them.
    The parameters are those of :func:`topk_lower`.

    Examples
    --------
    >>> round(disjoint_lower(157, 333, 0.5, epsilon=0.2379), 5)
    0.01629
    """
    _given(epsilon, delta, kept=kept, padded=padded, epsilon0=epsilon0)
    whole = _whole(kept, 2 * padded)
    return _answer(Count(whole * (2 * padded - 1), whole, *_chances(epsilon0)), epsilon, delta)


def double_lower(
    dimension: int,
    sampling_rate: float,
    padded: int,
    epsilon0: float,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:
    r"""What a round of SS-Double gives away with independent inclusion of coordinates (lower bound).

    Every coordinate of the victim is at one end or at the other and is reported with chance :math:`\beta`, else a
    dummy stands for it: :math:`d` messages are above one half with chance :math:`\tfrac12\pm\beta(q-\tfrac12)`.  All
    others hold one half.  Bags that overflow are left out of account: the chance of one must be negligible.

    Parameters
    ----------
    dimension : int, at least 1
    sampling_rate : float in (0, 1]
    padded : int, at least 2
    epsilon0 : float in (0, 700]
    epsilon, delta : float
        Exactly one; the answer is the other one.

    Examples
    --------
    >>> round(double_lower(7850, 0.02, 333, 0.5, delta=5.0118723e-6), 5)
    0.14355
    """
    given = _given(epsilon, delta, dimension=dimension, sampling_rate=sampling_rate, padded=padded, epsilon0=epsilon0)
    whole = _whole(given["dimension"], padded)
    bias = sampling_rate * (0.5 - _chances(epsilon0)[1])
    return _answer(Count(whole * (padded - 1), whole, 0.5 + bias, 0.5 - bias), epsilon, delta)


def simple_lower(
    dimension: int, n_users: int, epsilon0: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """What a round of SS-Simple gives away while all others hold one half everywhere (lower bound).

    Parameters
    ----------
    dimension : int, at least 1
    n_users : int, at least 2
    epsilon0 : float in (0, 700]
        Local budget of one coordinate.
    epsilon, delta : float
        Exactly one; the answer is the other one.

    Examples
    --------
    >>> round(simple_lower(7850, 1000, 0.01, delta=5.0118723e-6), 4)
    0.09
    """
    given = _given(epsilon, delta, dimension=dimension, n_users=n_users, epsilon0=epsilon0)
    whole = _whole(given["dimension"], n_users)
    return _answer(Count(whole * (n_users - 1), whole, *_chances(epsilon0)), epsilon, delta)


def _given(epsilon: float | None, delta: float | None, **named: float) -> dict[str, float]:
    if (epsilon is None) == (delta is None):
        raise DomainError("exactly one of epsilon and delta must be given")
    return check(**named, **({"epsilon": epsilon} if delta is None else {"delta": delta}))


def _whole(coordinates: float, messages: int) -> int:
    """Coordinates to look at: all of them, as long as their messages can be counted."""
    return math.floor(min(coordinates, LARGEST // messages))


def _chances(epsilon0: float) -> tuple[float, float]:
    """Chances that a message of the largest value is above one half, and that it is not."""
    below = 0.5 * math.exp(-epsilon0 / 2)
    return 1 - below, below


def _answer(count: Count, epsilon: float | None, delta: float | None) -> Certified:
    if not count.biased:
        return Certified(0.0, 0.0)
    if epsilon is not None:
        return count.delta(epsilon)
    return count.epsilon(delta or 0.0)
