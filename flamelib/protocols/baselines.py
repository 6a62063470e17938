r"""What the blanket protocols are measured against: a trusted curator, no shuffler at all, many bits a user.

Adjacency is replace-one throughout.  The curator and the local model satisfy (epsilon, 0):

* curator: Laplace noise of scale sensitivity / epsilon on the true answer; one user moves the sum by at most 1 and
  the vector of counts by at most 2 in the 1-norm;
* local: each user's report is epsilon-private on its own (``epsilon0 = epsilon``) and is not shuffled.

The third is the unary protocol of Cheu, Smith, Ullman, Zeber, Zhilyaev 2019 (:class:`UnarySumProtocol`): many one-bit
messages, and an error that does not grow with the number of users.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import Reals, one_per_user, reals, wholes
from flamelib.core.guarantees import Adjacency, ApproxDP
from flamelib.core.search import smallest_epsilon
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms.encoding import round_randomly
from flamelib.mechanisms.randomizers import KaryResponse, LaplaceNoise

DEVIATIONS = (4, 5, 6, 7.5, 10, 15, 25, 38)  # standard deviations by which the number of coins may fall short
MOST_MESSAGES = 2**14  # bits of a user; for 2^53 users and epsilon 1 the best number is a quarter of it
MARGIN = 1e-10  # added to every probability, relative: a hundred times the error of the incomplete beta function


def curator_sum(values: ArrayLike, epsilon: float, rng: np.random.Generator) -> float:
    r"""Sum of values in [0, 1] plus Laplace noise of scale ``1 / epsilon``; squared error :math:`2/\varepsilon^2`."""
    epsilon = _positive(epsilon)
    return float(reals("values", values, 0, 1).sum() + rng.laplace(scale=1 / epsilon))


def curator_histogram(values: ArrayLike, n_buckets: int, epsilon: float, rng: np.random.Generator) -> Reals:
    r"""Counts plus Laplace noise of scale ``2 / epsilon`` each; squared error of a count :math:`8/\varepsilon^2`."""
    epsilon, n_buckets = _positive(epsilon), check(n_buckets=n_buckets)["n_buckets"]
    counts = np.bincount(wholes("values", values, 0, n_buckets - 1).reshape(-1), minlength=n_buckets)
    return counts + rng.laplace(scale=2 / epsilon, size=n_buckets)


def local_sum(values: ArrayLike, epsilon: float, rng: np.random.Generator) -> float:
    r"""Sum of reports with Laplace noise of scale ``1 / epsilon`` each; squared error :math:`2n/\varepsilon^2`."""
    return float(LaplaceNoise(_positive(epsilon)).sample(values, rng).sum())


def local_histogram(values: ArrayLike, n_buckets: int, epsilon: float, rng: np.random.Generator) -> Reals:
    r"""Unbiased counts from k-ary responses of local budget ``epsilon``: :math:`(\#\{y=j\} - n\gamma/k)/(1-\gamma)`."""
    response = KaryResponse(_positive(epsilon), n_buckets)
    reports = response.sample(values, rng).reshape(-1)
    counts = np.bincount(reports, minlength=n_buckets)
    return np.asarray((counts - reports.size * response.mass / n_buckets) / response.kept)


@dataclass(frozen=True, slots=True)
class UnarySumProtocol:
    r"""Each user rounds to {0, ..., r}, writes that many ones among r bits, and answers each bit at random.

    Bit by bit: with probability ``blanket_mass`` a fair coin, else the bit itself.  The shuffler mixes the bits of
    all users, so the analyzer sees only how many are ones.

    Parameters
    ----------
    n_users : int, at least 2
    n_messages : int, from 1 to 16384
        Bits a user sends, :math:`r`.
    blanket_mass : float in (0, 1)
        The paper's :math:`\lambda / n`, written :math:`p` here.
    """

    n_users: int
    n_messages: int
    blanket_mass: float

    def __post_init__(self) -> None:
        if check(n_users=self.n_users, n_messages=self.n_messages, blanket_mass=self.blanket_mass)["blanket_mass"] == 1:
            raise DomainError("blanket_mass must be a number in (0, 1): at 1 no message depends on its input")
        if self.n_messages > MOST_MESSAGES:
            raise DomainError(f"n_messages must be a whole number in [1, {MOST_MESSAGES}], got {self.n_messages}")


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


def squared_error(protocol: UnarySumProtocol) -> float:
    r"""Worst mean squared error over inputs: :math:`\frac{n q (1-q)}{r(1-p)^2} + \frac{n}{4r^2}`, :math:`q = p/2`.

    The second term is rounding and vanishes when every value is a multiple of :math:`1 / r`.
    """
    flip = protocol.blanket_mass / 2
    noise = flip * (1 - flip) / (protocol.n_messages * (1 - protocol.blanket_mass) ** 2)
    return protocol.n_users * (noise + 1 / (4 * protocol.n_messages**2))


def account(protocol: UnarySumProtocol, delta: float) -> ApproxDP:
    """The guarantee of the number of ones: the least certified epsilon at this delta (upper bound).

    The least of :func:`unary_log_delta` inverted and ``n_messages`` times the local budget of one bit.
    """
    delta = check(delta=delta)["delta"]
    local = protocol.n_messages * KaryResponse.from_blanket_mass(2, protocol.blanket_mass).epsilon0
    found = smallest_epsilon(lambda epsilon: unary_log_delta(protocol, epsilon), delta, at_most=local)
    return ApproxDP(found, delta, Adjacency.REPLACE_ONE)


def private_unary_sum(n_users: int, epsilon: float, delta: float, n_messages: int | None = None) -> UnarySumProtocol:
    r"""The unary protocol with the least noise that :func:`unary_log_delta` allows at (epsilon, delta).

    Parameters
    ----------
    n_users : int, at least 2
    epsilon, delta : float
        The guarantee, replace-one adjacency; epsilon above 0, delta in (0, 1).
    n_messages : int, from 1 to 16384, optional
        Bits a user; left out, the power of two up to :math:`2 \varepsilon \sqrt n` with the least worst-case error
        (at that order rounding and noise both stop growing with the number of users).

    Raises
    ------
    DomainError
        Where no mass below 1 is certified (too few users for so many bits).
    """
    given = check(n_users=n_users, epsilon=_positive(epsilon), delta=delta)
    if n_messages is not None:
        found = [_with_bits(**given, n_messages=check(n_messages=n_messages)["n_messages"])]
    else:
        most = min(max(1.0, 2 * given["epsilon"] * math.sqrt(given["n_users"])), MOST_MESSAGES)
        found = [_with_bits(**given, n_messages=2**power) for power in range(math.floor(math.log2(most)) + 1)]
    certified = [protocol for protocol in found if protocol is not None]
    if not certified:
        raise DomainError(f"n_users must be larger for this protocol at this epsilon and delta, got {n_users}")
    return min(certified, key=squared_error)


def _with_bits(n_users: int, epsilon: float, delta: float, n_messages: int) -> UnarySumProtocol | None:
    def log_delta(mass: float) -> float:
        return unary_log_delta(UnarySumProtocol(n_users, n_messages, mass), epsilon) if mass else 0.0

    most = math.nextafter(1, 0)
    mass = smallest_epsilon(log_delta, delta, at_most=most)
    return UnarySumProtocol(n_users, n_messages, mass) if 0 < mass < most else None


def unary_log_delta(protocol: UnarySumProtocol, epsilon: float) -> float:
    r"""Logarithm of an upper bound on the hockey-stick divergence of the number of ones, replace-one adjacency.

    .. math:: \delta \le \Pr[\mathrm{Bin}((n-1)r, p) < m]
       + \max_t \big(\Pr[B \ge t - r] - e^\varepsilon \Pr[B \ge t]\big), \qquad B \sim \mathrm{Bin}(m, \tfrac12)

    for every whole :math:`m`; the best of a few is returned.  Proof: reveal which bits of the other users are coins
    and subtract the rest; given at least :math:`m` coins the sum contains :math:`B`, and all else is independent of
    the others.  The user's own bits add :math:`u` ones or :math:`v` ones with :math:`|u - v| \le r`; by joint
    convexity the worst pair of shifts counts, by the symmetry of :math:`B` only their distance does, and since its
    likelihood ratio is monotone the distance :math:`r` is the worst and the best test is a threshold.
    Rounding: both terms are raised by 1e-10 of the probabilities they are made of.
    """
    coins, mass = (protocol.n_users - 1) * protocol.n_messages, protocol.blanket_mass
    spread = math.sqrt(coins * mass * (1 - mass))
    tried = {math.floor(coins * mass - deviations * spread) for deviations in DEVIATIONS}
    return min((_log_delta_given(coins, m, mass, protocol.n_messages, epsilon) for m in tried if m > 0), default=0.0)


def _log_delta_given(coins: int, certain: int, mass: float, shift: int, epsilon: float) -> float:
    few = _at_most(certain - 1, coins, mass)
    threshold = _threshold(certain, shift, epsilon)
    above, far_above = (_at_most(certain - t, certain, 0.5) for t in (threshold - shift, threshold))
    stick = max(above - math.exp(min(epsilon, 700)) * far_above, 0.0)
    return min(0.0, math.log(few * (1 + MARGIN) + stick + MARGIN * above + 1e-300))


def _at_most(k: int, n: int, rate: float) -> float:
    """``Pr[Bin(n, rate) <= k]`` by the incomplete beta function, which keeps twelve digits at n = 1e7."""
    from scipy.special import betainc

    return 0.0 if k < 0 else 1.0 if k >= n else float(betainc(n - k, k + 1, 1 - rate))


def _threshold(certain: int, shift: int, epsilon: float) -> int:
    """Least t with ``Pr[B = t - shift] > exp(epsilon) Pr[B = t]``, B binomial: bisection on a monotone ratio."""
    steps = np.arange(shift)
    low, high = shift, certain + 1
    while low < high:
        middle = (low + high) // 2
        ratio = float(np.log((float(middle) - steps) / (float(certain - middle + shift) - steps)).sum())
        low, high = (low, middle) if ratio > epsilon else (middle + 1, high)
    return low


def _positive(epsilon: float) -> float:
    if check(epsilon=epsilon)["epsilon"] == 0:
        raise DomainError("epsilon must be a number above 0, got 0")
    return float(epsilon)
