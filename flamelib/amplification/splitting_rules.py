r"""Parameters of split-and-mix that hide one user's value: rule T1, its sharper relative, and Pólya noise.

Each rule answers the first number of messages that its bound allows.  Ceilings are taken of exact fractions; what is
rounded is rounded so that the budget is kept.  The sharper rules need no distinct messages: their modulus is as small
as the sum of the values permits.  Standard library only.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from flamelib.amplification.polya_noise import crowded_error, noise_decay, shared_noise
from flamelib.amplification.splitting import honest, log_failure, log_ratio, log_unsmooth
from flamelib.amplification.splitting_messages import messages_needed, modulus_bits
from flamelib.amplification.splitting_noise import thinned_error
from flamelib.amplification.splitting_pairs import log_two_user_delta
from flamelib.amplification.splitting_search import (
    KEPT,
    first_number,
    least_odd,
    positive_budget,
    smoothness_of,
    too_few,
)
from flamelib.core.logspace import MARGIN, exp_or_inf
from flamelib.core.statements import states
from flamelib.core.vocabulary import check

FOR_SHARES = 0.1


@dataclass(frozen=True, slots=True)
class NoisyRule:
    """Parameters that hide one user's value, and what noise and rounding add to the error of the sum."""

    n_messages: int
    modulus: int
    scale: int
    decay: float
    noise_rate: float
    smoothness: float
    bits: int
    noise_bound: float
    rounding_bound: float
    delta: float


@dataclass(frozen=True, slots=True)
class MixRule:
    """Parameters that hide one user's value behind noise that is exactly discrete Laplace in all."""

    n_messages: int
    modulus: int
    scale: int
    decay: float
    security_bits: float
    bits: int
    mean_error: float


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the rules for one user's value share: decay exp(-rate), and the chance that all honest users are silent."""

    n_users: int
    scale: int
    rate: float
    decay: float
    noise_rate: float
    smoothness: float
    silent: float

    def rule(self, n_messages: int, modulus: int, failure: float, delta: float) -> NoisyRule:
        """The rule at these messages; ``delta`` is what is proven anyway."""
        noise = thinned_error(modulus, self.scale, self.rate, self.decay, self.noise_rate, self.n_users)
        bits, rounding = n_messages * modulus_bits(modulus), self.n_users / self.scale
        total = min(delta, (self.silent + failure) * (1 + MARGIN))
        public = (self.scale, self.decay, self.noise_rate, self.smoothness)
        return NoisyRule(n_messages, modulus, *public, bits, noise, rounding, total)


@states("cloak", "thm-1", item="Theorem 1, by Lemma 13 with explicit constants (rule T1)", gives="upper")
def noisy_rule(epsilon: float, delta: float, n_users: int, scale: int | None = None, colluding: int = 0) -> NoisyRule:
    r"""Parameters with which one user's value is (epsilon, delta)-private, and their errors (upper).

    With :math:`h = n-|C|`: :math:`p = e^{-0.9\varepsilon/k}`, :math:`\gamma = \tanh(0.05\,\varepsilon)`,
    :math:`q = \min(1, \ln(2/\delta)/h)`; for m = 4, 5, ... N is the smallest odd whole number of at least
    :math:`3nk+1` and :math:`8m^2/\delta`; the first m with :math:`\gamma>6\sqrt m/4^m` and
    :math:`18\sqrt mN^2/(\gamma^24^m)\le\delta/4` serves.

    Parameters
    ----------
    epsilon : float in (0, 700]
    delta : float in (0, 1]
    n_users : int, at least 2
    scale : int, at least 1, optional
        Steps k of the grid; ``10 * n_users`` where left out.
    colluding : int, from 0 to n_users - 2

    Returns
    -------
    NoisyRule
        ``noise_bound`` and ``rounding_bound`` add up to a bound on the mean absolute error of the sum of values in
        [0, 1], with noise of ``decay``, the least double not below p; ``delta`` is :math:`(1-q)^h` plus the failure of
        Lemma 1, at most the one asked for.

    Raises
    ------
    DomainError
        Where ``epsilon`` or ``delta`` is 0, or ``epsilon`` above 700, or so small that no decay below 1 keeps it.

    Source: Ghazi, Pagh, Velingker 2019, Theorem 1 and Lemmas 11 and 13.

    Examples
    --------
    >>> found = noisy_rule(1.0, 1e-6, 1000)
    >>> found.n_messages, found.modulus, found.bits, round(found.noise_bound, 3)
    (54, 23328000001, 1890, 5.985)
    """
    shape = _shape(epsilon, delta, n_users, scale, colluding)
    eighth, log_quarter = Fraction(delta) / 8, math.log(delta) - math.log(4)
    n_messages, modulus = first_number(
        lambda m: least_odd(max(3 * n_users * shape.scale + 1, math.ceil(m * m / eighth))),
        lambda m, modulus: log_unsmooth(modulus, m, shape.smoothness) <= log_quarter,
        lambda least: too_few(least, shape.smoothness, log_quarter),
    )
    failure = exp_or_inf(log_failure(modulus, n_messages, shape.smoothness))
    return shape.rule(n_messages, modulus, failure, delta)


def sharp_noisy_rule(
    epsilon: float, delta: float, n_users: int, scale: int | None = None, colluding: int = 0
) -> NoisyRule:
    r"""As :func:`noisy_rule`, with ``cloak:own-2`` at :math:`\varepsilon/10` in place of Lemma 1 (upper).

    N is the smallest odd whole number above :math:`3nk`, and shares may repeat.

    Examples
    --------
    >>> found = sharp_noisy_rule(1.0, 1e-6, 1000)
    >>> found.n_messages, found.modulus, found.bits
    (27, 30000001, 675)
    """
    shape = _shape(epsilon, delta, n_users, scale, colluding)
    leak, log_half = log_ratio(shape.smoothness), math.log(delta) - math.log(2)
    n_messages, modulus = first_number(
        lambda _: least_odd(3 * n_users * shape.scale + 1),
        lambda m, modulus: log_two_user_delta(modulus, m, leak) <= log_half,
    )
    return shape.rule(n_messages, modulus, exp_or_inf(log_two_user_delta(modulus, n_messages, leak)), delta)


def mix_rule(epsilon: float, delta: float, n_users: int, scale: int | None = None, colluding: int = 0) -> MixRule:
    r"""Split-and-mix by ``cloak:best-1`` around Pólya noise: (epsilon, delta)-private for one user's value (upper).

    The released sum keeps epsilon, and what the shares tell beside it costs :math:`(1+e^\varepsilon)2^{-\sigma}`, which
    is delta; N is :math:`3nk+1`.  The mean error is of noise with the ``decay`` returned.

    Parameters
    ----------
    epsilon : float in (0, 700]
    delta : float in (0, 1]
    n_users : int
        Of whom at least 19 do not collude.
    scale : int, at least 1, optional
        Steps k of the grid; ``10 * n_users`` where left out.
    colluding : int

    Source: Balle, Bell, Gascon, Nissim 2020; Ishai, Kushilevitz, Ostrovsky, Sahai 2006.

    Examples
    --------
    >>> found = mix_rule(1.0, 1e-6, 1000)
    >>> found.n_messages, found.bits, round(found.mean_error, 6)
    (11, 275, 1.0)
    """
    steps, crowd = default_scale(n_users, scale), honest(n_users, colluding)
    security, noise = security_needed(epsilon, delta), shared_noise(steps, epsilon)
    modulus = 3 * n_users * steps + 1
    n_messages = messages_needed(security, crowd, math.log2(modulus))
    bits, error = n_messages * modulus_bits(modulus), crowded_error(noise, n_users, crowd)
    return MixRule(n_messages, modulus, steps, noise.decay, security, bits, error)


def security_needed(epsilon: float, delta: float, dimension: int = 1) -> float:
    r"""The σ at which :math:`d(1+e^\varepsilon)2^{-\sigma} = \delta`, never too small.

    Examples
    --------
    >>> round(security_needed(0.0, 2**-39), 9)
    40.0
    """
    positive_budget(epsilon or 1.0, delta)
    weight = math.log2(1 + math.exp(check(epsilon=epsilon)["epsilon"]))
    return max(MARGIN, (weight + math.log2(dimension) - math.log2(delta)) * (1 + MARGIN))


def default_scale(n_users: int, scale: int | None) -> int:
    """The scale given, or ten steps for every user.

    Examples
    --------
    >>> default_scale(100, None), default_scale(100, 7)
    (1000, 7)
    """
    check(n_users=n_users, **({} if scale is None else {"scale": scale}))
    return 10 * n_users if scale is None else scale


def noise_shares(epsilon: float, delta: float, crowd: int) -> tuple[float, float]:
    r"""The share of epsilon that noise has, and the rate at which half of delta covers that nobody of a crowd adds any.

    Examples
    --------
    >>> [round(share, 6) for share in noise_shares(1.0, 1e-6, 1000)]
    [0.9, 0.014509]
    """
    wanted = (math.log(2) - math.log(delta)) / crowd * (1 + MARGIN / 1000)
    return (1 - FOR_SHARES) * epsilon * KEPT, min(1.0, wanted)


def _shape(epsilon: float, delta: float, n_users: int, scale: int | None, colluding: int) -> _Shape:
    positive_budget(epsilon, delta)
    steps, crowd = default_scale(n_users, scale), honest(n_users, colluding)
    for_noise, noise_rate = noise_shares(epsilon, delta, crowd)
    silent = math.exp(crowd * math.log1p(-noise_rate)) if noise_rate < 1 else 0.0
    decay, smoothness = noise_decay(steps, for_noise), smoothness_of(FOR_SHARES * epsilon)
    return _Shape(n_users, steps, for_noise / steps, decay, noise_rate, smoothness, silent)
