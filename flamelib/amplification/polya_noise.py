r"""Noise that honest users make up together: Pólya shares, whose sum is discrete Laplace, from crowds of any size.

Units are steps of the grid: a value x in [0, 1] is sent as about xk, so that errors of the sum of values are these
divided by the scale k.  Standard library only.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal

from flamelib.core.logspace import MARGIN
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check

DIGITS = Context(prec=40, traps=[])
MANY = 1000


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """Noise that honest users make up together: its decay, and what it adds to the sum of values in [0, 1]."""

    decay: float
    mean_error: float
    std: float


@states("cloak", "best-2", item="Pólya shares, as in Balle, Bell, Gascon, Nissim 2020", gives="exact")
def shared_noise(scale: int, epsilon: float) -> SharedNoise:
    r"""Noise of a sum that is discrete Laplace in all: pure epsilon for one user's value (exact).

    Each of h honest users adds :math:`X-Y` with :math:`X, Y` negative binomial of shape :math:`1/h` and decay
    :math:`p = e^{-s}`, the least double that is not below :math:`e^{-\varepsilon/k}`; the sum has
    :math:`P(j) = \frac{1-p}{1+p}p^{|j|}`, and in units of the values

    .. math:: E|W|/k = \frac1{k\sinh s}, \qquad \sqrt{\mathrm{Var}}/k = \frac1{\sqrt2\,k\sinh(s/2)}.

    Parameters
    ----------
    scale : int, at least 1
    epsilon : float, positive

    Returns
    -------
    SharedNoise
        ``decay`` is p; ``mean_error`` and ``std`` are of the noise of this decay.  As p is rounded up, they are by
        :math:`1.2\cdot10^{-16}k/\varepsilon` of themselves, at most, above what :math:`s=\varepsilon/k` would give.

    Raises
    ------
    DomainError
        Where ``epsilon`` over ``scale`` is so small that no double tells the decay from 1, or is 0.

    Source: Balle, Bell, Gascon, Nissim 2020; Goryczka, Xiong 2015.

    Examples
    --------
    >>> found = shared_noise(10_000, 1.0)
    >>> round(found.mean_error, 8), round(found.std, 8)
    (1.0, 1.41421356)
    """
    if epsilon / scale > 700:
        raise DomainError(f"epsilon must be a number in (0, {700 * scale:g}] at this scale, got {epsilon!r}")
    decay = noise_decay(scale, epsilon)
    rate = -math.log(decay)
    return SharedNoise(decay, 1 / (scale * math.sinh(rate)), 1 / (math.sqrt(2) * scale * math.sinh(rate / 2)))


def crowded_error(noise: SharedNoise, n_users: int, crowd: int) -> float:
    r"""Mean error where all n users add the shares that a crowd of h makes up alone (exact for n = h, else upper).

    With r = n/h and :math:`a` the variance of the whole, the sum W of the noise has
    :math:`E|W| = \frac1\pi\int_0^2\frac{g(x)}{x^2/2}\frac{dx}{\sqrt{1-x^2/4}}`,
    :math:`g(x) = 1-(1+\frac{ax^2}2)^{-r}`.  As g grows, and the square root adds to the integral of
    :math:`2/x^2` as much as stands beyond 2, that is at most what variance-gamma noise of the same variance has,

    .. math:: E|W| \le \sqrt{\frac{2a}\pi}\,\frac{\Gamma(r+\frac12)}{\Gamma(r)},

    and at most :math:`\lceil r\rceil` times the mean error.

    Examples
    --------
    >>> noise = shared_noise(10_000, 1.0)
    >>> [round(crowded_error(noise, 1000, crowd), 6) for crowd in (1000, 900, 500, 100)]
    [1.0, 1.066238, 1.5, 3.523941]
    """
    surplus = n_users / crowd
    if surplus == 1:
        return noise.mean_error
    wide = surplus > MANY
    ratio = math.sqrt(surplus) if wide else math.exp(math.lgamma(surplus + 0.5) - math.lgamma(surplus))
    return min(math.ceil(surplus) * noise.mean_error, math.sqrt(2 / math.pi) * noise.std * ratio * (1 + MARGIN))


def crowded_reach(decay: float, chance: float, surplus: float) -> int:
    r"""What the noise reaches with this chance at most, where all n users add the shares of a crowd (upper).

    By :func:`log_crowded_tail`; with :math:`T = \ln\frac2c` and r the surplus, the tail falls below c at

    .. math:: |W| \ln\tfrac1p = \Big(T + r\ln\big(1+\tfrac Tr\big)\Big)\sqrt{1+\tfrac rT} ,

    and where nobody is surplus at T.

    Examples
    --------
    >>> [crowded_reach(0.99, 2.0**-40, surplus) for surplus in (1.0, 1.1, 10.0)]
    [2828, 3249, 4845]
    """
    tail = math.log(2 / chance)
    if surplus > 1:
        tail = (tail + surplus * math.log1p(tail / surplus)) * math.sqrt(1 + surplus / tail)
    return math.ceil(tail / -math.log(decay) * (1 + 1e-15))


def log_crowded_tail(decay: float, size: float, surplus: float) -> float:
    r"""Logarithm of the chance of noise of at least this size, where n users add the shares of a crowd of h (upper).

    For :math:`r = n/h`, :math:`E p^{-\theta W}\le(1-\theta^2)^{-r}`, :math:`\ln\frac{\sinh x}x` being convex.  So by
    Chernoff's bound at its best :math:`\theta = \frac x{r+s}`, with :math:`s = \sqrt{r^2+x^2}`,

    .. math:: \ln P\Big(|W|\ln\tfrac1p\ge x\Big) \le \ln2 - \frac{x^2}{r+s} + r\ln\frac{r+s}{2r} .

    Examples
    --------
    >>> [round(log_crowded_tail(0.99, 3000, surplus), 6) for surplus in (1.0, 1.1, 10.0)]
    [-25.728208, -25.45826, -13.709403]
    """
    reach = size * -math.log(decay)
    whole = surplus + math.hypot(surplus, reach)
    return min(0.0, math.log(2) - reach / whole * reach + surplus * math.log(whole / (2 * surplus)))


def noise_decay(scale: int, epsilon: float) -> float:
    r"""The least double that is not below :math:`e^{-\varepsilon/k}`: noise that keeps epsilon for shifts up to k.

    Examples
    --------
    >>> round(noise_decay(10, 1.0), 9)
    0.904837418
    """
    given = check(scale=scale, epsilon=epsilon)
    wanted = DIGITS.exp(DIGITS.divide(-Decimal(given["epsilon"]), given["scale"]))
    nearest = float(wanted)
    decay = math.nextafter(nearest, 2) if Decimal(nearest) <= wanted else nearest
    if decay >= 1:
        raise DomainError(f"epsilon must be so large that a decay below 1 keeps it, above {scale * 1.2e-16:.2g}")
    return decay
