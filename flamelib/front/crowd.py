"""A shuffler that is not ideal: users who collude with the analyzer, and messages that are lost.

Adjacency: one user's value is replaced.  *Colluding* users tell the analyzer all they know and may send what they like.
Whoever knows their messages takes them out, so the others' guarantee is that of a crowd without them, exactly.

*Dropout* is the probability of every message, whatever it says, to be lost before it is shuffled; the attacker may
know which.  Further messages of others only hide (they are a post-processing).  So if fewer than m users arrive in a
round with a probability of at most s, delta(n) <= delta(m) + s.  From below, with the same value of all others, an
attacker waits until the victim's message arrives, among at most M: delta(n) >= (1 - dropout) P(at most M) delta(M).
Whatever the others hold, that of all n is at least (1 - dropout) delta(n), as fewer messages hide less.

Proof: book, chapter on the blanket, proposition *Colluding users, lost messages*.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flamelib.core import binomial
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import UNIT
from flamelib.core.vocabulary import honest

FEW_USERS = 1000  # users up to which lower bounds may be of data sets in which the others hold different values
DELTA_SHARE = 0.01  # share of delta for the event that fewer messages arrive than are counted
TAIL_PROBABILITY = 0.01  # probability that more messages arrive in a round than the lower bound assumes

Bound = Callable[[int, float | None, float | None], float]  # of so many users, at an epsilon or at a delta
LowerBound = Callable[[int, float | None, float | None, bool], float]  # the same, and whether for equal inputs


def honest_part(protocol: Any) -> Any:
    """The same protocol without colluding users; where check-ins are lost unseen, users check in more rarely."""
    if hasattr(protocol, "rate"):
        inner = protocol.protocol
        colluding = protocol.colluding + getattr(inner, "colluding", 0)
        own = {"colluding": 0} if hasattr(inner, "colluding") else {}
        inner = replace(inner, n_users=honest(inner.n_users, colluding), **own)
        return replace(protocol, protocol=inner, rate=protocol.rate * (1 - protocol.dropout), colluding=0, dropout=0.0)
    return replace(protocol, n_users=honest(protocol.n_users, protocol.colluding), colluding=0)


def guaranteed_crowd(n_users: int, dropout: float, rounds: int, delta: float) -> tuple[int, float]:
    """Users who are there in all rounds but for a part of delta, and what is left of delta; at most 0 if nobody is."""
    if not dropout:
        return n_users, delta
    others, tail = _certain_others(n_users, dropout, DELTA_SHARE * delta / rounds)
    return 1 + others, delta - rounds * tail * (1 + 8 * UNIT)


def _certain_others(n_users: int, dropout: float, tail: float) -> tuple[int, float]:
    """Others who are there, at least one, and a bound on the probability that fewer are: ``tail`` if that can be."""
    others = binomial.quantiles(n_users - 1, 1 - dropout, tail)[0]
    return (others, tail) if others else (1, dropout ** (n_users - 1) * (1 + n_users * UNIT))


def upper(
    bound: Bound,
    n_users: int,
    dropout: float,
    rounds: int,
    epsilon: float | None,
    delta: float | None,
    local_epsilon: float,
) -> Certified:
    """From an upper bound without dropout, one with it; ``local_epsilon`` is that of a message that nobody hides."""
    if delta is not None:
        counted, rest = guaranteed_crowd(n_users, dropout, rounds, delta)
        return _certified(bound(counted, None, rest) if rest > 0 or not dropout else rounds * local_epsilon)
    if not dropout or (epsilon or 0.0) >= rounds * local_epsilon:
        return _certified(bound(n_users, epsilon, None))
    expected = bound(max(int(n_users * (1 - dropout)), 2), epsilon, None)
    others, tail = _certain_others(n_users, dropout, DELTA_SHARE * expected / rounds)
    found = _certified(bound(1 + others, epsilon, None))
    return Certified((found + rounds * tail) * (1 + 8 * UNIT), found.uncertainty)


def lower(
    bound: LowerBound, n_users: int, dropout: float, rounds: int, epsilon: float | None, delta: float | None
) -> Certified:
    """From a lower bound without dropout one with it.

    Where not all users count, ``bound`` is asked for data sets in which all others hold the same value.
    """
    most = 1 + max(binomial.quantiles(n_users - 1, 1 - dropout, TAIL_PROBABILITY)[1], 1)
    found = 0.0
    for counted, tail in ((most, TAIL_PROBABILITY), *([(n_users, 0.0)] if n_users <= FEW_USERS else [])):
        probability = ((1 - dropout) * (1 - tail)) ** rounds * (1 - 8 * rounds * UNIT)
        equal = counted < n_users
        if delta is None:
            found = max(found, probability * bound(counted, epsilon, None, equal))
        elif delta < probability:
            found = max(found, bound(counted, None, delta / probability, equal))
    return Certified(found, 0.0)


def _certified(found: float) -> Certified:
    return found if isinstance(found, Certified) else Certified(found, 0.0)
