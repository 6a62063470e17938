r"""What counting gives away in a round of FLAME of any size, also where bags may overflow: lower bounds.

:mod:`flamelib.accounting.coordinates.counting` leaves overflowing bags out, and
:mod:`flamelib.accounting.coordinates.full_bags` counts a million messages at most.  Here a bag that is too full keeps
``padded`` of its reports at random, and where an attack would have to count too much, it leaves coordinates out.
"""

import math

import numpy as np
from scipy.stats import binom

from flamelib.accounting.coordinates import counting
from flamelib.accounting.coordinates.full_bags import MOST_MESSAGES, full_bags_lower

ROUNDING = 1 + 1e-9  # of scipy's binomial probabilities, on the safe side
AT_ONCE = 10**6


def double_lower(n_users: int, dimension: int, kept: float, padded: int, epsilon0: float, delta: float) -> float:
    r"""SS-Double with independent inclusion of coordinates (lower bound of epsilon).

    The others hold one half, so that their reports look like dummies.  The victim's report of a coordinate finds a
    place with chance :math:`E\min(1, n_p/(M+1))`, M the others' reports; by so much its rate is smaller.

    Examples
    --------
    >>> round(double_lower(1000, 7850, 157, 333, 0.5, 5.0118723e-6), 4)
    0.1435
    >>> double_lower(1000, 7850, 157, 20, 0.5, 5.0118723e-6) < counting.double_lower(7850, .02, 20, .5, delta=5e-6)
    True
    """
    dropped = _dropped(n_users, kept / dimension, padded)
    if kept == dimension and not dropped:
        return float(counting.topk_lower(kept, padded, epsilon0, delta=delta))  # the same law, surely reported
    rate = kept / dimension * (1 - dropped)
    return float(counting.double_lower(dimension, rate, padded, epsilon0, delta=delta)) if rate > 0 else 0.0


def _dropped(n_users: int, rate: float, padded: int) -> float:
    """Chance that a report finds no place among those of users who report at this rate (upper bound)."""
    if padded >= n_users:
        return 0.0
    others = binom(n_users - 1, rate)
    last = min(n_users - 1, padded + AT_ONCE)
    counts = np.arange(padded, last + 1)
    lost = float(others.pmf(counts) @ (1 - padded / (counts + 1.0))) + float(others.sf(last))
    return min(1.0, ROUNDING * lost)


def full_lower(n_users: int, dimension: int, kept: float, padded: int, epsilon0: float, delta: float) -> float:
    """SS-Topk where surplus reports are dropped at random: by bags that others fill, or without any (lower bound).

    The others need as many coordinates again as they report, outside those that are attacked.

    Examples
    --------
    >>> round(full_lower(1000, 7850, 157, 333, 0.5, 5.0118723e-6), 3)
    1.797
    >>> full_lower(10**6, 10**6, 1000, 5000, 0.5, 5e-6) > 0
    True
    """
    room = float(counting.topk_lower(kept, padded, epsilon0, delta=delta))
    seen = min(math.floor(kept), (dimension - math.floor(kept)) // 2, MOST_MESSAGES // padded)
    return max(room, float(full_bags_lower(n_users, seen, padded, epsilon0, delta=delta))) if seen > 0 else room
