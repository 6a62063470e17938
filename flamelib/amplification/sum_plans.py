"""Noise of a sum chosen by exact accounting: the least thinned noise, and Pólya shares with what goes with them."""

import math
from dataclasses import dataclass

from flamelib.amplification.polya_noise import crowded_error, shared_noise
from flamelib.amplification.splitting import honest
from flamelib.amplification.splitting_laws import Noise, ThinnedNoise
from flamelib.amplification.splitting_messages import messages_needed, modulus_bits
from flamelib.amplification.splitting_noise import random_rounding_std
from flamelib.amplification.splitting_sums import counted_users, log_delta, turning_point
from flamelib.core.logspace import probability
from flamelib.core.search import smallest_epsilon
from flamelib.core.vocabulary import DomainError, check


@dataclass(frozen=True, slots=True)
class SumPlan:
    """A sum by split-and-mix with Pólya noise: parameters, chance of a wrong reading, and errors in units of values.

    The analyzer reads a residue above ``modulus - reach - 1`` as that minus ``modulus``.
    """

    scale: int
    decay: float
    reach: int
    modulus: int
    n_messages: int
    bits: int
    overflow: float
    noise_error: float
    rounding_std: float


def recommended(
    n_users: int, epsilon: float, overflow: float, security_bits: float, colluding: int = 0, scale: int | None = None
) -> SumPlan:
    r"""Parameters of a private sum: random rounding, Pólya shares, the smallest modulus, signed reading (upper).

    The grid has :math:`k=\lceil\varepsilon\sqrt n\rceil` steps, so that rounding adds less than the noise, and
    :math:`N=nk+2\tau+1` for the least :math:`\tau` that noise exceeds with a chance of at most ``overflow``, nobody
    dropping out.  The sum keeps epsilon at a delta of :math:`(1+e^\varepsilon)2^{-\sigma}`, so long as no more than
    ``colluding`` users tell their noise or drop out.

    Parameters
    ----------
    n_users : int
        Of whom at least 19 do not collude.
    epsilon : float, positive
    overflow : float in (0, 1)
    security_bits : float, positive
        The :math:`\sigma`.
    colluding : int
    scale : int, at least 1, optional

    Source: Balle, Bell, Gascon, Nissim 2020.

    Examples
    --------
    >>> plan = recommended(1000, 1.0, 1e-9, 42.0)
    >>> plan.scale, plan.reach, plan.modulus, plan.n_messages, round(plan.noise_error, 3), round(plan.rounding_std, 3)
    (32, 663, 33327, 14, 1.0, 0.494)
    """
    given = check(n_users=n_users, epsilon=epsilon, overflow=overflow, security_bits=security_bits)
    crowd = honest(n_users, colluding)
    steps = check(scale=scale or max(1, math.ceil(given["epsilon"] * math.sqrt(n_users))))["scale"]
    noise = shared_noise(steps, given["epsilon"])
    most = ThinnedNoise(-(-n_users // crowd), noise.decay, 1.0)
    reach = turning_point(lambda at: outside(most, at) <= overflow, 0)
    modulus = n_users * steps + 2 * reach + 1
    n_messages = messages_needed(security_bits, crowd, math.log2(modulus))
    bits, error = n_messages * modulus_bits(modulus), crowded_error(noise, n_users, crowd)
    rounding = random_rounding_std(n_users, steps)
    return SumPlan(steps, noise.decay, reach, modulus, n_messages, bits, outside(most, reach), error, rounding)


def outside(noise: Noise, reach: int) -> float:
    """Chance that noise is larger than ``reach`` in absolute value (upper).

    Examples
    --------
    >>> round(outside(ThinnedNoise(1, 0.5, 1.0), 2), 12)
    0.166666666667
    """
    return probability(math.log(2) + noise.log_above(reach + 1) + noise.error(reach + 1)) + math.exp(noise.log_lost)


def thinned_decay(
    n_users: int, scale: int, noise_rate: float, epsilon: float, delta: float, colluding: int = 0
) -> float:
    r"""Decay of the least noise with which a chance of ``noise_rate`` keeps the budget of the sum: never too small.

    Noise of :math:`p=e^{-1/bk}` is sought at scales b up to :math:`1/\varepsilon`, beyond which only the chance that
    nobody adds noise is left of delta.

    Parameters
    ----------
    n_users : int, at least 2
    scale : int, at least 1
    noise_rate : float in (0, 1]
    epsilon : float, positive
    delta : float in (0, 1)
    colluding : int

    Raises
    ------
    DomainError
        Where no scale keeps the budget: too few users add noise.

    Source: Ghazi, Pagh, Velingker 2019, Theorem 1; the accounting is this project's.

    Examples
    --------
    >>> decay = thinned_decay(1000, 1000, 0.01, 1.0, 5e-7)
    >>> round(-1 / (1000 * math.log(decay)), 4), round(math.exp(ThinnedNoise(1000, decay, 0.01).log_mean) / 1000, 4)
    (0.5826, 2.0247)
    """
    given = check(n_users=n_users, scale=scale, noise_rate=noise_rate, epsilon=epsilon, delta=delta)
    n_users, scale, noise_rate, epsilon, delta = given.values()
    if epsilon == 0 or not 0 < delta < 1:
        raise DomainError(f"epsilon must be above 0 and delta in (0, 1) for a least noise, got {epsilon} and {delta}")
    counted = counted_users(honest(n_users, colluding), noise_rate)

    def decay(width: float) -> float:
        return math.exp(-1 / (width * scale)) if width > 0 else 0.0

    def excess(width: float) -> float:
        p = decay(width)
        return log_delta(ThinnedNoise(counted, p, noise_rate), scale, epsilon) if 0 < p < 1 else 0.0

    found = smallest_epsilon(excess, delta, 1 / epsilon, rises=True)
    if excess(found) > math.log(delta):
        raise DomainError(f"noise_rate must be larger for delta = {delta:g} at this scale, got {noise_rate:g}")
    return decay(found)
