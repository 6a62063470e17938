"""An attack on SS-Topk that is carried out: counts of messages above one half in rounds of the protocol.

The law of the count is known (:mod:`flamelib.accounting.coordinates.counting`); here the protocol's own users and
shuffler are run.
"""

import numpy as np

from flamelib.core.arrays import Wholes
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame

AT_ONCE = 10  # rounds side by side, as coordinates of one
MESSAGES_AT_ONCE = 10**7  # in memory


def count_rounds(kept: int, padded: int, epsilon0: float, repeats: int, seed: int) -> tuple[Wholes, Wholes]:
    """Run SS-Topk ``repeats`` times with the victim at +C, as often at -C, and count in the bags after shuffling.

    Only the bags of the attacked coordinates are made.  Bags are shuffled one by one and share nothing, so that those
    of other coordinates say nothing about the victim; and another user who holds zero in an attacked coordinate sends
    what a dummy is.  So a model of just these coordinates, one other user at zero and dummies has the law of the whole
    round.  For the same reason some rounds are run at once, side by side as coordinates of one.

    Parameters
    ----------
    kept, padded, epsilon0
        Of the protocol: attacked coordinates, messages of each, local budget.
    repeats, seed : int

    Returns
    -------
    plus, minus : arrays of int, shape (repeats,)
        Messages above one half in each round, the victim at +C and at -C.

    Examples
    --------
    >>> plus, minus = count_rounds(20, 30, 1.0, repeats=50, seed=0)
    >>> len(plus), bool(plus.mean() > minus.mean())
    (50, True)
    """
    check(kept=kept, padded=padded, epsilon0=epsilon0, repeats=repeats, seed=seed)
    if kept % 1:
        raise DomainError(f"kept must be a whole number of coordinates, got {kept!r}")
    plus, minus = (
        _counts(int(kept), padded, LaplaceNoise(epsilon0), value, repeats, rng)
        for value, rng in zip((1.0, -1.0), np.random.default_rng(seed).spawn(2), strict=True)
    )
    return plus, minus


def _counts(
    kept: int, padded: int, noise: LaplaceNoise, value: float, repeats: int, rng: np.random.Generator
) -> Wholes:
    found = []
    at_once = max(1, min(AT_ONCE, MESSAGES_AT_ONCE // (kept * padded)))
    for start in range(0, repeats, at_once):
        rounds = min(at_once, repeats - start)
        dimension = kept * rounds
        protocol = flame.FlameTopk(2, dimension, 1.0, noise, kept=dimension, padded=padded)
        updates = np.outer([value, 0.0], np.ones(dimension))
        bags = np.asarray(flame.shuffler(protocol, flame.user(protocol, updates, rng), rng).bags, dtype=float)
        found.append(np.count_nonzero((bags > 0.5).reshape(rounds, -1), axis=1))
    return np.concatenate(found)
