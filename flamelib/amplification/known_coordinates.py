r"""FLAME's guarantee for a whole vector where the choice of coordinates hides nothing: each counts, real against real.

The sets of coordinates are published, or they follow from the data.  One coordinate is bounded by
:mod:`flamelib.amplification.padded`, all that change by privacy loss distributions.  Laplace noise on [0, 1], every
coordinate shuffled by itself.  Adjacency: one user's whole vector is replaced.
"""

import math

from flamelib.amplification.padded import Bound, Coordinate
from flamelib.amplification.padded_others import all_real
from flamelib.core.guarantees import Certified
from flamelib.core.profiles import LaplaceProfile
from flamelib.core.vocabulary import LARGEST_WHOLE, DomainError, check
from flamelib.privacy_loss import composed_epsilon


def double_revealed(kept: float, padded: int, epsilon0: float, delta: float, bound: Bound = "blanket") -> Certified:
    """Epsilon of SS-Double when every user's set of coordinates is published, and does not depend on data (upper).

    Only the at most ``kept`` coordinates of the victim's one set differ, real against real; nothing is gained from the
    choice.  Holds for every way to choose the sets and every rule for too many messages that looks at indices alone.

    Parameters
    ----------
    kept : float, positive
        Most coordinates in a set; a fraction counts as the next whole number.
    padded : int, at least 2
    epsilon0 : float in (0, 700]
    delta : float in [0, 1]
    bound : str
        ``bennett``, ``hoeffding`` or ``blanket``.

    Examples
    --------
    >>> round(double_revealed(157, 333, 0.5, 5.0118723e-6), 2)
    1.44
    """
    return _all_real(1, kept, padded, epsilon0, delta, bound)


def topk_truncated(kept: float, padded: int, epsilon0: float, delta: float, bound: Bound = "blanket") -> Certified:
    r"""Epsilon of SS-Topk when a coordinate with too many messages keeps ``padded`` of them at random (upper).

    No assumption on the data: up to 2k coordinates change, each as much as real against real at most.  A dummy is a
    message of the value one half, hence no worse than another real one.  Where her message makes one too many, the data
    sets are, with the chance that it is kept, one of her messages against one of another user; else they agree.

    Parameters
    ----------
    kept : float, positive
        A fraction counts as the next whole number.
    padded : int, at least 2
    epsilon0 : float in (0, 700]
    delta : float in [0, 1]
    bound : str
        ``bennett``, ``hoeffding`` or ``blanket``.

    Examples
    --------
    >>> round(topk_truncated(157, 333, 0.5, 5.0118723e-6), 2)
    2.12
    """
    return _all_real(2, kept, padded, epsilon0, delta, bound)


def _all_real(sets: int, kept: float, padded: int, epsilon0: float, delta: float, bound: Bound) -> Certified:
    """Epsilon where all coordinates of so many sets change, among messages that are all real in the worst case."""
    check(kept=kept, padded=padded, epsilon0=epsilon0, delta=delta)
    if kept > LARGEST_WHOLE / 2:
        raise DomainError(f"kept must be a number in (0, 2^52] here, got {kept!r}")
    if bound not in ("bennett", "hoeffding", "blanket"):
        raise DomainError(f"bound must be one of bennett, hoeffding, blanket, got {bound!r}")
    noise = LaplaceProfile(epsilon0)
    return composed_epsilon([(Coordinate(noise, all_real(noise, padded)).curve(bound), sets * math.ceil(kept))], delta)
