"""Discrete Laplace noise of a sum: truncated noise of some users, Pólya shares of all of them, and rounding.

Units are steps of the grid: a value x in [0, 1] is sent as about xk, so that errors of the sum of values are these
divided by the scale k.  Masses are computed with 120 decimal digits, for :math:`1-p` may be :math:`10^{-16}` and the
modulus :math:`2^{256}`.  Proofs: book, chapter on cloak aggregation, "Noise".  Standard library only.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import reduce

from flamelib.core.logspace import MARGIN, SMALLEST
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check, odd

DECIMAL_120 = Context(prec=120, traps=[])  # arithmetic for a distribution: 1 - p may be 1e-16 and the modulus 2^256
DECIMAL_40 = Context(prec=40, traps=[])  # arithmetic for a decay, which is rounded to a double


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """Mass of one value, and the variance of the distribution."""

    pmf: float
    variance: float


@states("cloak", "def-tdl", item="Definition 3, truncated discrete Laplace", gives="exact", rests_on="proven",
        adjacency="none")  # fmt: skip
def truncated_laplace(modulus: int, decay: float, value: int) -> NoiseLaw:
    r"""Mass at a value j, and the variance, of the truncated discrete Laplace distribution (exact).

    .. math:: \mathcal D_{N,p}(j) = \frac{(1-p)\,p^{|j|}}{1+p-2p^{(N+1)/2}}, \qquad |j|\le M = \tfrac{N-1}2,

    0 beyond, for an odd modulus.

    Source: Ghazi, Pagh, Velingker 2019, Definition 3.

    Examples
    --------
    >>> found = truncated_laplace(5, 0.5, 1)
    >>> round(found.pmf, 9), round(found.variance, 9)
    (0.2, 1.2)
    """
    reach, p = odd(modulus) // 2, Decimal(decay)
    inside = abs(value) <= reach
    mass = _times(DECIMAL_120.subtract(1, p), DECIMAL_120.power(p, abs(value))) if inside else Decimal(0)
    return NoiseLaw(float(DECIMAL_120.divide(mass, _norm(p, reach))), truncated_variance(modulus, decay))


def truncated_variance(modulus: int, decay: float) -> float:
    """Variance of the truncated discrete Laplace distribution, in closed form (exact)."""
    given = check(modulus=modulus, decay=decay)
    reach, p = odd(given["modulus"]) // 2, Decimal(given["decay"])
    bracket = [
        DECIMAL_120.add(1, p),
        _times(-((reach + 1) ** 2), DECIMAL_120.power(p, reach)),
        _times(2 * reach * reach + 2 * reach - 1, DECIMAL_120.power(p, reach + 1)),
        _times(-(reach**2), DECIMAL_120.power(p, reach + 2)),
    ]
    total, low = reduce(DECIMAL_120.add, bracket, Decimal(0)), DECIMAL_120.subtract(1, p)
    return float(DECIMAL_120.divide(_times(2, p, total), _times(low, low, _norm(p, reach))))


@states("cloak", "lemma-7", item="Lemma 7, log-Lipschitz", gives="upper", rests_on="proven", adjacency="none")
def shift_loss(decay: float, value: int) -> float:
    r"""Largest log ratio of masses of the truncated distribution under a shift t modulo N (upper, attained).

    .. math:: \Big|\ln\frac{\mathcal D_{N,p}(j+t)}{\mathcal D_{N,p}(j)}\Big| \le |t|\ln\tfrac1p

    Source: Ghazi, Pagh, Velingker 2019, Lemma 7.

    Examples
    --------
    >>> round(shift_loss(0.5, -2), 9)
    1.386294361
    """
    return abs(value) * -math.log(decay) * (1 + MARGIN)


@states("cloak", "lemma-8", item="Lemma 8", gives="upper", rests_on="proven", adjacency="none")
def variance_bound(modulus: int, decay: float) -> float:
    r"""Variance bound of the truncated discrete Laplace distribution (upper).

    .. math:: \frac{2p(1+p)}{(1-p)^2\big(1+p-2p^{(N+1)/2}\big)}

    Source: Ghazi, Pagh, Velingker 2019, Lemma 8.

    Examples
    --------
    >>> round(variance_bound(5, 0.5), 9), round(variance_bound(10**9 + 7, 0.5), 9)
    (4.8, 4.0)
    """
    return _variance_bound_at(-math.log(decay), odd(modulus))


def _variance_bound_at(rate: float, modulus: int) -> float:
    """As :func:`variance_bound` for ``p = exp(-rate)``, which may round to 1."""
    if rate == 0:
        return math.inf
    # A modulus of more than 1000 bits overflows and counts as infinite.
    half = float((modulus + 1) // 2) if modulus.bit_length() <= 1000 else math.inf
    norm = -2 * math.expm1(-rate * half) + math.expm1(-rate)
    p, low = math.exp(-rate), -math.expm1(-rate)
    return 2 * p * (1 + p) / low / low / norm * (1 + MARGIN) + SMALLEST


@states("cloak", "lemma-9", item="Lemma 9", gives="exact", rests_on="proven", adjacency="none")
def square_sum(decay: float) -> float:
    r"""The sum :math:`\sum_{k\ge1}k^2p^k = p(1+p)/(1-p)^3` (exact).

    Source: Ghazi, Pagh, Velingker 2019, Lemma 9.

    Examples
    --------
    >>> square_sum(0.5)
    6.0
    """
    return decay * (1 + decay) / (1 - decay) ** 3


def noise_bound(modulus: int, scale: int, decay: float, noise_rate: float, n_users: int) -> float:
    r"""Bound on the mean absolute error of the sum of values by thinned noise (upper).

    .. math:: \frac1k\sqrt{q\,n\,\frac{2p(1+p)}{(1-p)^2(1+p-2p^{(N+1)/2})}}
    """
    scale, noise_rate, n_users = check(scale=scale, noise_rate=noise_rate, n_users=n_users).values()
    return math.sqrt(noise_rate * n_users * variance_bound(modulus, decay)) / scale * (1 + MARGIN)


def thinned_error(modulus: int, scale: int, rate: float, decay: float, noise_rate: float, n_users: int) -> float:
    r"""As :func:`noise_bound` for :math:`p=e^{-s}`, and a bound for the double ``decay`` above p that is used (upper).

    Given that B users add noise of variance v, the mean of :math:`|W|` is at most :math:`\sqrt{Bv}`, and by
    :math:`\sqrt t\le1+\frac{t-1}2-\frac{(t-1)^2}8+\frac{(t-1)^3}{16}`

    .. math:: E\sqrt B \le \sqrt{qn}\Big(1-\frac{1-q}{8qn}\Big(1-\frac{1-2q}{2qn}\Big)\Big) ,

    which leaves more room than rounding the decay takes, unless :math:`k/\varepsilon` comes near :math:`10^{12}` or
    every user adds noise; the answer is the larger of the two.
    """
    adding = noise_rate * n_users
    exact, rounded = (math.sqrt(adding * _variance_bound_at(at, modulus)) / scale for at in (rate, -math.log(decay)))
    room = (1 - noise_rate) / (8 * adding) * (1 - (1 - 2 * noise_rate) / (2 * adding))
    return max(exact, rounded * min(1.0, 1 - room)) * (1 + MARGIN)


def random_rounding_std(n_users: int, scale: int) -> float:
    r"""Standard deviation of the sum when n values are rounded randomly, without bias: :math:`\sqrt n/(2k)` (upper).

    Rounding down is biased: it loses less than :math:`n/k`, and :math:`n/(2k)` where values are spread.
    """
    n_users, scale = check(n_users=n_users, scale=scale).values()
    return math.sqrt(n_users) / 2 / scale


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """Sum of the noise of all honest users: its decay, and its errors of the sum of values in [0, 1]."""

    decay: float
    mean_error: float
    std: float


@states(
    "cloak", "best-2", item="Pólya shares, as in Balle, Bell, Gascon, Nissim 2020", gives="exact", rests_on="proven"
)
def shared_noise(scale: int, epsilon: float) -> SharedNoise:
    r"""Noise of users that adds up to discrete Laplace noise: pure epsilon for one user's value (exact).

    Each of h honest users adds :math:`X-Y` with :math:`X, Y` negative binomial of shape :math:`1/h` and decay
    :math:`p = e^{-s}`, the least double that is not below :math:`e^{-\varepsilon/k}` (refused where that is 1); the sum
    has :math:`P(j) = \frac{1-p}{1+p}p^{|j|}`, and in units of the values

    .. math:: E|W|/k = \frac1{k\sinh s}, \qquad \sqrt{\mathrm{Var}}/k = \frac1{\sqrt2\,k\sinh(s/2)}.

    The errors are those of noise of this decay, relatively at most :math:`1.2\cdot10^{-16}k/\varepsilon` above what
    :math:`s=\varepsilon/k` would give.

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

    With r = n/h and :math:`a` the variance of the whole,
    :math:`E|W| = \frac1\pi\int_0^2\frac{g(x)}{x^2/2} \frac{dx}{\sqrt{1-x^2/4}}`,
    :math:`g(x) = 1-(1+\frac{ax^2}2)^{-r}`.  As g grows, and the square root adds to the integral of :math:`2/x^2` as
    much as stands beyond 2, that is at most the mean of variance-gamma noise of the same variance,
    :math:`\sqrt{2a/\pi}\,\Gamma(r+\frac12)/\Gamma(r)`, and at most :math:`\lceil r\rceil` times the mean error.
    """
    surplus = n_users / crowd
    if surplus == 1:
        return noise.mean_error
    wide = surplus > 1000  # surplus beyond which the ratio of gamma functions is its limit, the square root
    ratio = math.sqrt(surplus) if wide else math.exp(math.lgamma(surplus + 0.5) - math.lgamma(surplus))
    return min(math.ceil(surplus) * noise.mean_error, math.sqrt(2 / math.pi) * noise.std * ratio * (1 + MARGIN))


def crowded_reach(decay: float, tail_mass: float, surplus: float) -> int:
    r"""Quantile of the noise at tail mass c (``tail_mass``), where all n users add the shares of a crowd (upper).

    For :math:`r = n/h`, :math:`E p^{-\theta W}\le(1-\theta^2)^{-r}`, :math:`\ln\frac{\sinh x}x` being convex.  So by
    Chernoff's bound at its best :math:`\theta = \frac x{r+s}`, with :math:`s = \sqrt{r^2+x^2}`,

    .. math:: \ln P\Big(|W|\ln\tfrac1p\ge x\Big) \le \ln2 - \frac{x^2}{r+s} + r\ln\frac{r+s}{2r} .

    With :math:`T = \ln\frac2c` and r the surplus, the tail falls below c at

    .. math:: |W| \ln\tfrac1p = \Big(T + r\ln\big(1+\tfrac Tr\big)\Big)\sqrt{1+\tfrac rT} ,

    and at T where there are no surplus users.
    """
    tail = math.log(2 / tail_mass)
    if surplus > 1:
        tail = (tail + surplus * math.log1p(tail / surplus)) * math.sqrt(1 + surplus / tail)
    return math.ceil(tail / -math.log(decay) * (1 + 1e-15))


def noise_decay(scale: int, epsilon: float) -> float:
    r"""The least double that is not below :math:`e^{-\varepsilon/k}`: noise that keeps epsilon for shifts up to k."""
    given = check(scale=scale, epsilon=epsilon)
    wanted = DECIMAL_40.exp(DECIMAL_40.divide(-Decimal(given["epsilon"]), given["scale"]))
    nearest = float(wanted)
    decay = math.nextafter(nearest, 2) if Decimal(nearest) <= wanted else nearest
    if decay >= 1:
        raise DomainError(f"epsilon must be so large that a decay below 1 keeps it, above {scale * 1.2e-16:.2g}")
    return decay


def _times(*factors: Decimal | int) -> Decimal:
    return reduce(DECIMAL_120.multiply, factors, Decimal(1))


def _norm(p: Decimal, reach: int) -> Decimal:
    """The denominator, ``1 + p - 2 p^(M + 1)``."""
    return DECIMAL_120.subtract(DECIMAL_120.add(1, p), _times(2, DECIMAL_120.power(p, reach + 1)))
