r"""Local randomizers: public parameters, a sampler, the law of a report, and the blanket inside it.

Each law splits as :math:`\mu_x = \gamma\,\omega + (1 - \gamma)\,\nu_x`: with probability ``mass``
:math:`= \gamma` a report is drawn from the blanket :math:`\omega`, which ignores the input.  Parameters and
mass stand in :mod:`flamelib.core.profiles`; nothing here computes a guarantee.

The samplers serve simulation.  They are vectorised over any shape and draw from a numpy generator in double
precision, so they must not release private data: that asks for the operating system's generator and exact arithmetic.

Source: Balle, Bell, Gascon, Nissim 2019, Algorithm 1 and Section 5.

The folded discrete Gaussian: the law on the whole numbers with pmf
:math:`\propto e^{-m^2 / 2 \sigma^2}`, :math:`m = |y - \frac w2| + \frac w2`.

At width :math:`w = 0` it is the discrete Gaussian; otherwise the blanket of discrete Gaussian noise on {0, ..., w}.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import Reals, Shape, Wholes, reals, wholes
from flamelib.core.profiles import (
    DiscreteGaussianProfile,
    DiscreteLaplaceProfile,
    GaussianProfile,
    KaryProfile,
    LaplaceProfile,
)
from flamelib.core.vocabulary import LARGEST_WHOLE, DomainError, check

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


LARGEST_SCALE = 2**40


@dataclass(frozen=True, slots=True)
class KaryResponse(KaryProfile):
    """Keep the bucket, or with probability ``mass`` draw one uniformly.

    Parameters
    ----------
    epsilon0 : float in (0, 700]
    n_buckets : int, at least 2
    """

    @classmethod
    def from_blanket_mass(cls, n_buckets: int, blanket_mass: float) -> Self:
        r"""The response whose blanket has this mass: :math:`\varepsilon_0 = \log(1 - k + k / \gamma)`.

        Parameters
        ----------
        n_buckets : int, at least 2
        blanket_mass : float in (0, 1)
            Below about ``n_buckets * 1e-304`` the local budget passes 700 and is refused.
        """
        given = check(n_buckets=n_buckets, blanket_mass=blanket_mass)
        if given["blanket_mass"] == 1:
            raise DomainError("blanket_mass must be below 1: a message drawn from the blanket alone says nothing")
        odds = math.log(given["n_buckets"]) + math.log1p(-given["blanket_mass"]) - math.log(given["blanket_mass"])
        epsilon0 = math.log1p(math.exp(odds)) if odds < 700 else odds
        if epsilon0 > 700:
            raise DomainError(f"blanket_mass must leave a local budget of at most 700, got {blanket_mass!r}")
        return cls(epsilon0, given["n_buckets"])

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Wholes:
        """One report for each bucket in {0, ..., n_buckets - 1}; same shape, same alphabet."""
        buckets = wholes("values", values, 0, self.n_buckets - 1)
        hidden = rng.random(buckets.shape) < self.mass
        return np.where(hidden, self.sample_blanket(buckets.shape, rng), buckets)

    def sample_blanket(self, shape: Shape, rng: np.random.Generator) -> Wholes:
        """Draws from the blanket law: uniform buckets."""
        return rng.integers(self.n_buckets, size=shape)

    def log_pmf(self, report: ArrayLike, value: ArrayLike) -> Reals:
        """Logarithm of the probability of ``report`` given ``value``, broadcast; ``-inf`` off the alphabet."""
        value = wholes("value", value, 0, self.n_buckets - 1)
        uniform = -math.log(math.expm1(self.epsilon0) + self.n_buckets)
        message = _whole_reports(report)
        return np.where(self._in_alphabet(message), uniform + self.epsilon0 * (message == value), -np.inf)

    def blanket_log_pmf(self, report: ArrayLike) -> Reals:
        """Logarithm of the uniform probability; ``-inf`` off the alphabet."""
        return np.where(self._in_alphabet(_whole_reports(report)), -math.log(self.n_buckets), -np.inf)

    def _in_alphabet(self, report: Wholes) -> np.typing.NDArray[np.bool_]:
        return (report >= 0) & (report < self.n_buckets)


@dataclass(frozen=True, slots=True)
class LaplaceNoise(LaplaceProfile):
    """Add Laplace noise of scale ``1 / epsilon0`` to a value in [0, 1]; the blanket is the law at one half.

    Parameters
    ----------
    epsilon0 : float in (0, 700]
    """

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Reals:
        """One real report for each value in [0, 1], same shape."""
        inputs = reals("values", values, 0, 1)
        return inputs + rng.laplace(scale=1 / self.epsilon0, size=inputs.shape)

    def sample_blanket(self, shape: Shape, rng: np.random.Generator) -> Reals:
        """Draws from the blanket law."""
        return rng.laplace(0.5, 1 / self.epsilon0, size=shape)

    def log_pdf(self, report: ArrayLike, value: ArrayLike) -> Reals:
        """Logarithm of the density of ``report`` given ``value``, broadcast."""
        distance = np.abs(reals("report", report) - reals("value", value, 0, 1))
        return np.asarray(math.log(self.epsilon0 / 2) - self.epsilon0 * distance)

    def blanket_log_pdf(self, report: ArrayLike) -> Reals:
        """Logarithm of the density of the blanket law."""
        return self.log_pdf(report, 0.5)


@dataclass(frozen=True, slots=True)
class GaussianNoise(GaussianProfile):
    r"""Add Gaussian noise to a value in [0, 1]; the blanket is no Gaussian but
    :math:`\omega(y) \propto \exp(-(|y - \frac12| + \frac12)^2 / 2 \sigma^2)`.

    Parameters
    ----------
    noise_std : float, positive
        The standard deviation :math:`\sigma`.
    """

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Reals:
        """One real report for each value in [0, 1], same shape."""
        inputs = reals("values", values, 0, 1)
        return inputs + rng.normal(scale=self.noise_std, size=inputs.shape)

    def sample_blanket(self, shape: Shape, rng: np.random.Generator) -> Reals:
        """Draws from the blanket law: a Gaussian tail beyond one half, on either side, by inversion."""
        from scipy.special import ndtri_exp

        farther = -self.noise_std * ndtri_exp(self._log_tail() + np.log1p(-rng.random(shape)))
        side = 2 * rng.integers(2, size=shape) - 1
        return np.asarray(0.5 + side * (farther - 0.5))

    def log_pdf(self, report: ArrayLike, value: ArrayLike) -> Reals:
        """Logarithm of the density of ``report`` given ``value``, broadcast."""
        return self._log_density(reals("report", report) - reals("value", value, 0, 1))

    def blanket_log_pdf(self, report: ArrayLike) -> Reals:
        """Logarithm of the density of the blanket law."""
        farther = np.abs(reals("report", report) - 0.5) + 0.5
        return self._log_density(farther) - math.log(2) - self._log_tail()

    def _log_density(self, distance: Reals) -> Reals:
        with np.errstate(over="ignore"):  # a density of zero
            exponent = -((distance / self.noise_std) ** 2) / 2
        return np.asarray(exponent - math.log(self.noise_std) - math.log(2 * math.pi) / 2)

    def _log_tail(self) -> float:
        """Logarithm of half the mass, which survives where the mass itself underflows."""
        from scipy.special import log_ndtr

        return float(log_ndtr(-1 / (2 * self.noise_std)))


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise(DiscreteLaplaceProfile):
    r"""Add discrete Laplace noise, pmf :math:`\propto e^{-\varepsilon_0 |z| / w}`, to a whole value in {0, ..., w}.

    The largest of :math:`|y|` and :math:`|y - w|` is :math:`|y - \frac w2| + \frac w2`, so the blanket is the same
    law around :math:`w / 2` (on half-integers, shifted back, when ``width`` is odd).

    Parameters
    ----------
    epsilon0 : float in (0, 700]
    width : int, at least 1
        Sampling refuses ``width / epsilon0`` above 2^40.
    """

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Wholes:
        """One whole report for each value in {0, ..., width}, same shape: value plus a difference of geometrics."""
        inputs = wholes("values", values, 0, self.width)
        return inputs + self._noise(inputs.shape, rng)

    def sample_blanket(self, shape: Shape, rng: np.random.Generator) -> Wholes:
        """Draws from the blanket law."""
        if self.width % 2 == 0:
            return self.width // 2 + self._noise(shape, rng)
        above = (self.width + 1) // 2 + rng.geometric(self._stop(), size=shape) - 1
        return np.where(rng.integers(2, size=shape) == 1, above, self.width - above)

    def log_pmf(self, report: ArrayLike, value: ArrayLike) -> Reals:
        """Logarithm of the probability of ``report`` given ``value``, broadcast."""
        distance = np.abs(_whole_reports(report) - wholes("value", value, 0, self.width))
        return np.asarray(self._log_peak() - self.epsilon0 / self.width * distance)

    def blanket_log_pmf(self, report: ArrayLike) -> Reals:
        """Logarithm of the probability under the blanket law."""
        step, centred = self.epsilon0 / self.width, np.abs(_whole_reports(report) - self.width / 2)
        correction = math.log(math.cosh(step / 2)) if self.width % 2 else 0.0
        return np.asarray(self._log_peak() + correction - step * centred)

    def _noise(self, shape: Shape, rng: np.random.Generator) -> Wholes:
        return rng.geometric(self._stop(), size=shape) - rng.geometric(self._stop(), size=shape)

    def _stop(self) -> float:
        if self.width / self.epsilon0 > LARGEST_SCALE:
            raise DomainError(f"width / epsilon0 must be at most 2^40 for sampling, got {self.width}/{self.epsilon0}")
        return -math.expm1(-self.epsilon0 / self.width)

    def _log_peak(self) -> float:
        return math.log(math.tanh(self.epsilon0 / self.width / 2))


@dataclass(frozen=True, slots=True)
class DiscreteGaussianNoise(DiscreteGaussianProfile):
    r"""Add discrete Gaussian noise, pmf :math:`\propto e^{-z^2 / 2 \sigma^2}`, to a whole value in {0, ..., w}.

    With :math:`m = \max(|y|, |y - w|) = |y - \frac w2| + \frac w2` the blanket has pmf
    :math:`\propto e^{-m^2 / 2 \sigma^2}`; noise is the case :math:`w = 0`, and one sampler serves both.

    Parameters
    ----------
    noise_std : float, positive
        The parameter :math:`\sigma`; laws and samples refuse it outside [2^-40, 2^40].
    width : int, at least 1
    """

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Wholes:
        """One whole report for each value in {0, ..., width}, same shape."""
        inputs = wholes("values", values, 0, self.width)
        return inputs + sample_folded(self.noise_std, 0, inputs.shape, rng)

    def sample_blanket(self, shape: Shape, rng: np.random.Generator) -> Wholes:
        """Draws from the blanket law."""
        return sample_folded(self.noise_std, self.width, shape, rng)

    def log_pmf(self, report: ArrayLike, value: ArrayLike) -> Reals:
        """Logarithm of the probability of ``report`` given ``value``, broadcast."""
        log_sum = log_folded_sum(self.noise_std, 0)
        distance = (_whole_reports(report) - wholes("value", value, 0, self.width)) / self.noise_std
        return np.asarray(-(distance**2) / 2 - log_sum)

    def blanket_log_pmf(self, report: ArrayLike) -> Reals:
        """Logarithm of the probability under the blanket law."""
        log_sum = log_folded_sum(self.noise_std, self.width)
        distance = (np.abs(_whole_reports(report) - self.width / 2) + self.width / 2) / self.noise_std
        return np.asarray(-(distance**2) / 2 - log_sum)


def _whole_reports(report: ArrayLike) -> Wholes:
    return wholes("report", report, -LARGEST_WHOLE, LARGEST_WHOLE)
