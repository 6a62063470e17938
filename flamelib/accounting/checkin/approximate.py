r"""Shuffled check-in of (epsilon0, delta0)-LDP messages: Gaussian noise on vectors.

The randomizer need not be close to an epsilon0-LDP one for all values at once, which Gaussian noise in many dimensions
is not: for each pair of values the distributions of all users are modified slightly, so that the reduction to binary
response holds.

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

DELTA_FAILURES = 0.1  # share of delta for failures of the randomizer


def approximate_rounds(
    local_delta: Callable[[float], float], n_users: int, rounds: int, delta: float, checkin_rate: float = 1.0
) -> Certified:
    r"""Epsilon of adaptive rounds of shuffled messages, each of them approximately private (upper, every data set).

    The messages of any two values are :math:`(\varepsilon_0,\delta_0(\varepsilon_0))`-indistinguishable in both orders,
    for every :math:`\varepsilon_0`.  The answer is that of a local budget :math:`\varepsilon_0` at 0.9 ``delta``, with
    :math:`2T n\gamma e^{-\varepsilon_0}\delta_0(\varepsilon_0)(1+e^\varepsilon) \le 0.1\,\delta`.  Infinite if no
    budget up to 30 satisfies this.  The ``uncertainty`` is that of the account of the local budget alone.

    Parameters
    ----------
    local_delta : callable
        Non-increasing: a local budget to an upper bound on its failure probability.
    delta : float in [0, 1]
        Of the whole.
    """
    rtol = 1e-3  # relative distance of the answer below the assumed epsilon
    n_users, rounds, delta, checkin_rate = check(
        n_users=n_users, rounds=rounds, delta=delta, checkin_rate=checkin_rate
    ).values()
    if not checkin_rate or delta == 1:
        return Certified(0.0, 0.0)
    # Relative round-off of the share of delta.
    failure_budget = (1 - 1e-12) * DELTA_FAILURES * delta / (2 * rounds * n_users * checkin_rate)
    assumed, previous = 0.0, None
    for _ in range(40):  # iterations at most
        # The failure budget of a message depends on the resulting epsilon, which must not exceed the assumed one.
        budget = _least_local_budget(local_delta, failure_budget / (1 + math.exp(assumed)))
        if budget > MAX_EPSILON0:
            if not previous or assumed < (1 + rtol) * previous[0]:
                break
            assumed = (previous[0] + assumed) / 2  # bisect back
            continue
        # Not `shuffled_rounds`: its other bound, Theorem 2, is for messages that never fail.
        result = shuffled_history(
            [(ClonedProfile(budget), n_users, checkin_rate, rounds)], delta=(1 - DELTA_FAILURES) * (1 - 1e-12) * delta
        )
        if result <= assumed:
            return result
        slope = (result - previous[1]) / (assumed - previous[0]) if previous else 0.0
        previous = (assumed, result)
        assumed = (assumed + (result - assumed) / (1 - slope) if slope < 0.9 else result) * (1 + rtol)
        if assumed > MAX_EXPONENT:
            break
    return Certified(math.inf, math.inf)


def gaussian_vector_rounds(
    noise_std: float, n_users: int, rounds: int, delta: float, checkin_rate: float = 1.0
) -> Certified:
    """Epsilon of adaptive rounds of shuffled vectors with Gaussian noise on each coordinate (upper, every data set).

    ``noise_std`` is in the unit of the vectors' largest 2-norm: the sensitivity is 2, in every dimension.  The smaller
    of :func:`approximate_rounds` and the Gaussian mechanism without shuffling.

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


def _least_local_budget(local_delta: Callable[[float], float], failure_budget: float) -> float:
    """Least x with ``local_delta(x) <= failure_budget * exp(x)``; above ``MAX_EPSILON0`` if there is none."""
    lower, upper = 0.0, 2 * MAX_EPSILON0
    if failure_budget < sys.float_info.min:  # below it doubles round by as much as themselves
        return upper
    for _ in range(40):
        middle = (lower + upper) / 2
        lower, upper = (lower, middle) if local_delta(middle) <= failure_budget * math.exp(middle) else (middle, upper)
    return upper
