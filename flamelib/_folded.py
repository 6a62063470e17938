r"""The folded discrete Gaussian: the law on the whole numbers with pmf
:math:`\propto e^{-m^2 / 2 \sigma^2}`, :math:`m = |y - \frac w2| + \frac w2`.

At width :math:`w = 0` it is the discrete Gaussian; otherwise the blanket of discrete Gaussian noise on {0, ..., w}.
"""

import math

import numpy as np

from flamelib.core.arrays import Shape, Wholes
from flamelib.core.vocabulary import DomainError

LARGEST_STD = 2**40


def log_folded_sum(noise_std: float, width: int) -> float:
    r"""Logarithm of :math:`\sum_{y \in \mathbb Z} e^{-(|y - w/2| + w/2)^2 / 2 \sigma^2}`.

    The exponent takes each value :math:`m = \lceil w/2 \rceil, \lceil w/2 \rceil + 1, \dots` twice, but once at
    :math:`m = w / 2`.
    """
    _within_sampling_range(noise_std)
    first = (width + 1) // 2
    one_side = _one_sided_sum(noise_std, first)
    return math.log(2 * one_side - (width % 2 == 0)) - (first / noise_std) ** 2 / 2


def _one_sided_sum(noise_std: float, first: int) -> float:
    r""":math:`\sum_{j \ge 0} e^{-(2 m_0 j + j^2) / 2 \sigma^2}`, the terms from ``first`` on divided by the first one.

    Term by term as long as they matter (the rest is below 1e-320 of the first); where that takes over a million
    terms, Euler and Maclaurin's formula, whose next term is below :math:`(m_0 / \sigma^2)^3 / 720 < 10^{-12}`
    on a sum above a thousand.
    """
    slope = first / noise_std**2
    reach = min(39 * noise_std, 750 / slope if slope else math.inf)
    if reach <= 1e6:
        steps = np.arange(math.ceil(reach) + 1)
        return float(np.exp(-steps * slope - (steps / noise_std) ** 2 / 2).sum())
    from scipy.special import erfcx

    integral = noise_std * math.sqrt(math.pi / 2) * float(erfcx(first / noise_std / math.sqrt(2)))
    return integral + 0.5 + slope / 12


def _within_sampling_range(noise_std: float) -> None:
    if not 1 / LARGEST_STD <= noise_std <= LARGEST_STD:
        raise DomainError(f"noise_std must be in [2^-40, 2^40] for a discrete Gaussian, got {noise_std:g}")


def sample_folded(noise_std: float, width: int, shape: Shape, rng: np.random.Generator) -> Wholes:
    r"""Draws of y with pmf :math:`\propto e^{-m^2/2\sigma^2}`, :math:`m = |y - \frac w2| + \frac w2`, by rejection.

    Write :math:`m = m_0 + j`, :math:`m_0 = \lceil w/2 \rceil`.  Proposals :math:`j` are geometric of rate
    :math:`1 / t` with :math:`t = 2 \sigma^2 / (m_0 + \sqrt{m_0^2 + 4 \sigma^2})`; the ratio of the two laws is then
    :math:`e^{-(j - t)^2 / 2 \sigma^2}` up to a constant, which is the probability to accept.  A fair coin picks the
    side; where both sides are the same point (:math:`j = 0`, even :math:`w`) one of them is refused.
    Exact up to the rounding of double precision; at least two in five proposals pass but for tiny ``noise_std``
    with even ``width``, where it is three in ten.
    """
    _within_sampling_range(noise_std)
    first = (width + 1) // 2
    shift = noise_std * (2 * noise_std / (first + math.hypot(first, 2 * noise_std)))
    stop = -math.expm1(-1 / shift) if shift > 1e-3 else 1.0
    drawn = np.empty(shape, dtype=np.int64)
    flat, missing = drawn.reshape(-1), np.arange(drawn.size)
    while missing.size:
        step = rng.geometric(stop, size=missing.size) - 1
        upper = rng.integers(2, size=missing.size) == 1
        passes = rng.random(missing.size) < np.exp(-(((step - shift) / noise_std) ** 2) / 2)
        passes &= upper | (step > 0) | (width % 2 == 1)
        flat[missing[passes]] = np.where(upper, first + step, width - first - step)[passes]
        missing = missing[~passes]
    return drawn
