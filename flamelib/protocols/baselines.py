"""What the blanket protocols are measured against: the unary protocol, many one-bit messages of each user.

Its error does not grow with the number of users.

Source: Cheu, Smith, Ullman, Zeber, Zhilyaev 2019.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import one_per_user
from flamelib.core.guarantees import Adjacency, ApproxDP
from flamelib.core.search import smallest_epsilon
from flamelib.core.vocabulary import DomainError, check, keep
from flamelib.mechanisms.encoding import round_randomly
from flamelib.mechanisms.randomizers import KaryResponse

_DEVIATIONS = (4, 5, 6, 7.5, 10, 15, 25, 38)  # standard deviations by which the number of coins may fall short
_MOST_MESSAGES = 2**14  # bits of a user; for 2^53 users and epsilon 1 the best number is a quarter of it
_MARGIN = 1e-10  # added to every probability, relative: a hundred times the error of the incomplete beta function


@dataclass(frozen=True, slots=True)
class UnarySumProtocol:
    r"""Each user rounds to {0, ..., r}, writes that many ones among r bits, and answers each bit at random.

    With probability ``blanket_mass``, the paper's :math:`\lambda / n`, an answer is a fair coin, otherwise the bit
    itself.  The shuffler mixes the bits of all users, so the analyzer sees only how many are ones.
    """

    n_users: int
    n_messages: int
    blanket_mass: float

    def __post_init__(self) -> None:
        keep(self, **check(n_users=self.n_users, n_messages=self.n_messages, blanket_mass=self.blanket_mass))
        if self.blanket_mass == 1:
            raise DomainError("blanket_mass must be a number in (0, 1): at 1 no message depends on its input")
        if self.n_messages > _MOST_MESSAGES:
            raise DomainError(f"n_messages must be a whole number in [1, {_MOST_MESSAGES}], got {self.n_messages}")


def run(protocol: UnarySumProtocol, values: ArrayLike, rng: np.random.Generator) -> float:
    r"""Unbiased estimate of the sum of values in [0, 1], shape ``(n_users,)``.

    The bits are not drawn one by one: given :math:`t` ones before randomization among :math:`nr` bits, the ones
    after it are :math:`\mathrm{Bin}(t, 1 - p/2) + \mathrm{Bin}(nr - t, p/2)`, which is simulated, with the same law.
    """
    one_per_user("values", np.asarray(values), protocol.n_users)
    ones = int(round_randomly(values, protocol.n_messages, rng).sum())
    bits, flip = protocol.n_users * protocol.n_messages, protocol.blanket_mass / 2
    received = rng.binomial(ones, 1 - flip) + rng.binomial(bits - ones, flip)
    return float((received - bits * flip) / (protocol.n_messages * (1 - protocol.blanket_mass)))


def account(protocol: UnarySumProtocol, delta: float) -> ApproxDP:
    """The guarantee of the number of ones: the least certified epsilon at this delta (upper bound).

    It is the smaller of :func:`unary_log_delta`, inverted, and ``n_messages`` times the local budget of one bit.
    """
    delta = check(delta=delta)["delta"]
    local = protocol.n_messages * KaryResponse.from_blanket_mass(2, protocol.blanket_mass).epsilon0
    found = smallest_epsilon(lambda epsilon: unary_log_delta(protocol, epsilon), delta, at_most=local)
    return ApproxDP(found, delta, Adjacency.REPLACE_ONE)


def unary_log_delta(protocol: UnarySumProtocol, epsilon: float) -> float:
    r"""Logarithm of an upper bound on the hockey-stick divergence of the number of ones, replace-one adjacency.

    .. math:: \delta \le \Pr[\mathrm{Bin}((n-1)r, p) < m]
       + \max_t \big(\Pr[B \ge t - r] - e^\varepsilon \Pr[B \ge t]\big), \qquad B \sim \mathrm{Bin}(m, \tfrac12)

    for every whole :math:`m`; the best of a few is returned.  The proof is in the book
    (:doc:`/book/blanket`, *Many bits a user*).
    Rounding: both terms are raised by 1e-10 of the probabilities they are made of.
    """
    coins, mass = (protocol.n_users - 1) * protocol.n_messages, protocol.blanket_mass
    spread = math.sqrt(coins * mass * (1 - mass))
    tried = {math.floor(coins * mass - deviations * spread) for deviations in _DEVIATIONS}
    return min((_log_delta_given(coins, m, mass, protocol.n_messages, epsilon) for m in tried if m > 0), default=0.0)


def _log_delta_given(coins: int, certain: int, mass: float, shift: int, epsilon: float) -> float:
    few = _at_most(certain - 1, coins, mass)
    threshold = _threshold(certain, shift, epsilon)
    above, far_above = (_at_most(certain - t, certain, 0.5) for t in (threshold - shift, threshold))
    stick = max(above - math.exp(min(epsilon, 700)) * far_above, 0.0)
    return min(0.0, math.log(few * (1 + _MARGIN) + stick + _MARGIN * above + 1e-300))


def _at_most(k: int, n: int, rate: float) -> float:
    """``Pr[Bin(n, rate) <= k]`` by the incomplete beta function, which keeps twelve digits at n = 1e7."""
    from scipy.special import betainc

    return 0.0 if k < 0 else 1.0 if k >= n else float(betainc(n - k, k + 1, 1 - rate))


def _threshold(certain: int, shift: int, epsilon: float) -> int:
    """Least t with ``Pr[B = t - shift] > exp(epsilon) Pr[B = t]``, B binomial: bisection on a monotone ratio."""
    steps = np.arange(shift)

    def exceeds(t: int) -> bool:
        return float(np.log((float(t) - steps) / (float(certain - t + shift) - steps)).sum()) > epsilon

    return shift + bisect_left(range(shift, certain + 1), True, key=exceeds)
