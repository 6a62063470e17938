r"""Shuffled check-in of messages that keep a local budget only up to a failure probability: Gaussian noise on vectors.

No other user's law need be near a private one for all values at once, which Gaussian noise in many dimensions is not:
for each pair of values the laws of all users are changed a little, so that the reduction to binary response holds.

Adjacency: replace-one.  Proof: book, chapter on check-in, proposition *Messages that keep a budget approximately*.
"""

import math
import sys
from collections.abc import Callable

from flamelib.accounting.checkin.shuffled import shuffled_history
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.shuffling.brackets import MAX_EPSILON0
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import MAX_EXPONENT
from flamelib.core.profiles import ClonedProfile
from flamelib.core.vocabulary import check

DELTA_FAILURES = 0.1  # share of delta that pays for failures of the randomizer; it enters through a steep tail only


def approximate_rounds(
    local_delta: Callable[[float], float], n_users: int, rounds: int, delta: float, checkin_rate: float = 1.0
) -> Certified:
    r"""Epsilon of adaptive rounds of shuffled messages, each of them approximately private (upper, every data set).

    The messages of any two values are :math:`(\varepsilon_0,\delta_0(\varepsilon_0))`-indistinguishable in both orders,
    for every :math:`\varepsilon_0`.  The answer is that of a local budget :math:`\varepsilon_0` at nine tenths of
    ``delta``; in the rest fits :math:`2T n\gamma e^{-\varepsilon_0}\delta_0(\varepsilon_0)(1+e^\varepsilon)`.  Infinite
    where the search finds no budget up to 30.  The ``uncertainty`` is that of the account of the local budget alone.

    Parameters
    ----------
    local_delta : callable
        Non-increasing: a local budget to an upper bound on its failure probability.
    delta : float in [0, 1]
        Of the whole.
    """
    rtol = 1e-3  # relative distance of an answer below the epsilon that was allowed
    n_users, rounds, delta, checkin_rate = check(
        n_users=n_users, rounds=rounds, delta=delta, checkin_rate=checkin_rate
    ).values()
    if not checkin_rate or delta == 1:
        return Certified(0.0, 0.0)
    # Relative round-off of that share.
    fails = (1 - 1e-12) * DELTA_FAILURES * delta / (2 * rounds * n_users * checkin_rate)
    allowed, before = 0.0, None
    for _ in range(40):  # iterations at most
        # What a message may fail by depends on the epsilon that comes out of it, which must not exceed the allowed one.
        budget = _least_budget(local_delta, fails / (1 + math.exp(allowed)))
        if budget > MAX_EPSILON0:
            if not before or allowed < (1 + rtol) * before[0]:
                break
            allowed = (before[0] + allowed) / 2  # a step too far
            continue
        # Not `shuffled_rounds`: its other bound, Theorem 2, is for messages that never fail.
        found = shuffled_history(
            [(ClonedProfile(budget), n_users, checkin_rate, rounds)], delta=(1 - DELTA_FAILURES) * (1 - 1e-12) * delta
        )
        if found <= allowed:
            return found
        slope = (found - before[1]) / (allowed - before[0]) if before else 0.0
        before = (allowed, found)
        allowed = (allowed + (found - allowed) / (1 - slope) if slope < 0.9 else found) * (1 + rtol)
        if allowed > MAX_EXPONENT:
            break
    return Certified(math.inf, math.inf)


def gaussian_vector_rounds(
    noise_std: float, n_users: int, rounds: int, delta: float, checkin_rate: float = 1.0
) -> Certified:
    """Epsilon of adaptive rounds of shuffled vectors with Gaussian noise on each coordinate (upper, every data set).

    ``noise_std`` is in the unit of the vectors' largest 2-norm, so that two values are up to 2 apart; the dimension
    does not matter.  By :func:`approximate_rounds`, or what the messages cost if everybody sees them, where that is
    less.

    Examples
    --------
    >>> round(gaussian_vector_rounds(4.0, n_users=60_000, rounds=100, delta=1e-5, checkin_rate=0.1), 3)
    0.303
    """
    check(noise_std=noise_std)
    shuffled = approximate_rounds(
        lambda budget: gaussian_mechanism(2.0, noise_std, epsilon=budget), n_users, rounds, delta, checkin_rate
    )
    return min(shuffled, gaussian_mechanism(2.0, noise_std / math.sqrt(rounds), delta=delta))


def _least_budget(local_delta: Callable[[float], float], fails: float) -> float:
    """A budget whose failure probability is at most ``fails`` times its exponential; above ``MAX_EPSILON0``: none."""
    low, high = 0.0, 2 * MAX_EPSILON0
    if fails < sys.float_info.min:  # below it doubles round by as much as themselves
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if local_delta(middle) <= fails * math.exp(middle) else (middle, high)
    return high
