"""What a round of cloak aggregation guarantees: the shares, the noise of honest users, and both together.

What one user sends is not private, for its messages add up to its value; what leaves the shuffler is.  Nothing here
sees a value.

Source: Ghazi, Pagh, Velingker 2019, Lemma 5; US20220374542A1.
"""

import math
from typing import NamedTuple

from flamelib.accounting.noise.skellam import vector_epsilon
from flamelib.accounting.noise.whole_numbers import LARGEST_VARIANCE, shift_budget, skellam_noise
from flamelib.accounting.splitting.crowds import users_distance
from flamelib.accounting.splitting.sums import polya_sum, thinned_sum
from flamelib.core.guarantees import Adjacency, ApproxDP
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms.integers.noise import PolyaShare, SkellamShare, TruncatedLaplace
from flamelib.protocols.cloak import CloakProtocol


class Guarantees(NamedTuple):
    """What the output of the shuffler guarantees, under two neighbour relations; ``None`` where nothing is known."""

    one_user: ApproxDP | None
    equal_sums: ApproxDP | None


def account(protocol: CloakProtocol, delta: float, colluding: int = 0) -> Guarantees:
    r"""The guarantees of a round for one number of each user (upper bounds).

    For data sets of equal scaled sums what the shuffler sends differs by the distance :math:`2^{-\sigma}` of
    :func:`~flamelib.accounting.splitting.crowds.users_distance` at most: epsilon 0, that delta; not with random
    rounding, which changes the sum.  For the change of one user's value the sum needs noise: an epsilon of which is
    known that :math:`\delta_{sum}(\varepsilon) + (1 + e^\varepsilon) 2^{-\sigma} \le \delta`.

    Parameters
    ----------
    protocol : CloakProtocol
    delta : float in [0, 1]
        Of the guarantee for one user.
    colluding : int, at most n_users - 2
        Users who tell what they know, or whose noise is missing.

    Raises
    ------
    DomainError
        Where no epsilon is known at this delta; more messages or a larger delta are needed.

    Examples
    --------
    >>> noise = PolyaShare(1000, math.exp(-1e-4))
    >>> found = account(CloakProtocol(1000, 3 * 10**7 + 1, 10**4, 12, noise=noise), delta=1e-6)
    >>> round(found.one_user.epsilon, 4), found.equal_sums.delta < 2**-40
    (1.0, True)
    """
    given = check(delta=delta, colluding=colluding)
    delta, honest = given["delta"], protocol.n_users - given["colluding"]
    if honest < 2:
        raise DomainError(f"colluding must be a whole number in [0, {protocol.n_users - 2}], got {colluding}")
    distance = float(users_distance(protocol.modulus, protocol.n_messages, honest))
    alike = ApproxDP(0.0, distance, Adjacency.SUM_PRESERVING) if protocol.rounding != "random" else None
    if protocol.noise is None:
        return Guarantees(None, alike)
    epsilon = _sum_epsilon(protocol, delta / 2, honest)
    shares = (1 + math.exp(epsilon)) * distance if epsilon < 700 else math.inf
    if shares > delta / 2:
        raise DomainError(f"delta must be larger, or n_messages: shares tell {shares:.3g} at the epsilon of half of it")
    epsilon = min(epsilon, _sum_epsilon(protocol, (delta - shares) * (1 - 1e-12), honest))
    return Guarantees(ApproxDP(epsilon, delta, Adjacency.REPLACE_ONE), alike)


def _sum_epsilon(protocol: CloakProtocol, delta: float, honest: int) -> float:
    """Epsilon of the sum alone, with the noise of the honest users only."""
    noise, n_users, scale = protocol.noise, protocol.n_users, protocol.scale
    missing = n_users - honest
    if isinstance(noise, TruncatedLaplace):
        given = (n_users, scale, noise.decay, protocol.noise_rate)
        return thinned_sum(*given, delta=delta, colluding=missing, modulus=noise.modulus)
    if protocol.noise_rate < 1 or not isinstance(noise, PolyaShare | SkellamShare):
        raise DomainError("noise must be TruncatedLaplace, or shares that every user adds, to be accounted for")
    if isinstance(noise, SkellamShare):
        variance = noise.variance * honest / noise.n_users
        if variance <= LARGEST_VARIANCE:
            return shift_budget(skellam_noise(variance), scale, delta=delta)
        return vector_epsilon(1, scale, variance, 1, delta)
    if noise.n_users > n_users:
        raise DomainError(f"noise must be shares for at most n_users = {n_users}, got {noise.n_users}")
    planned = max(noise.n_users, 2)  # a whole share each is more than two halves
    return polya_sum(n_users, scale, noise.decay, delta=delta, colluding=n_users - planned, missing=missing)
