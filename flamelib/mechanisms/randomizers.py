r"""Local randomizers: public parameters, a sampler, the law of a report, and the blanket inside it.

Each law splits as :math:`\mu_x = \gamma\,\omega + (1 - \gamma)\,\nu_x`: with probability ``mass``
:math:`= \gamma` a report is drawn from the blanket :math:`\omega`, which ignores the input.  Parameters and
mass stand in :mod:`flamelib.core.profiles`.

The samplers serve simulation: they draw from a numpy generator in double precision, so they must not release private
data.  That asks for the operating system's generator and exact arithmetic (:mod:`flamelib.mechanisms.integers.noise`).

Source: Balle, Bell, Gascon, Nissim 2019, Algorithm 1 and Section 5.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import Reals, Shape, Wholes, reals, wholes
from flamelib.core.profiles import GaussianProfile, KaryProfile, LaplaceProfile
from flamelib.core.vocabulary import LARGEST_WHOLE, DomainError, check


@dataclass(frozen=True, slots=True)
class KaryResponse(KaryProfile):
    """Keep the bucket, or with probability ``mass`` draw one uniformly."""

    @classmethod
    def from_blanket_mass(cls, n_buckets: int, blanket_mass: float) -> Self:
        r"""The response whose blanket has this mass: :math:`\varepsilon_0 = \log(1 - k + k / \gamma)`.

        A mass below about ``n_buckets * 1e-304`` is refused: the local budget passes 700.
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

    def estimate(self, messages: Wholes) -> Reals:
        """Unbiased number of users in each bucket, from all users' messages."""
        counts = np.bincount(messages, minlength=self.n_buckets)
        return np.asarray((counts - messages.size * self.mass / self.n_buckets) / self.kept)

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
    """Add Laplace noise of scale ``1 / epsilon0`` to a value in [0, 1]; the blanket is the law at one half."""

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Reals:
        """One real report for each value in [0, 1], same shape."""
        inputs = reals("values", values, 0, 1)
        return inputs + rng.laplace(scale=1 / self.epsilon0, size=inputs.shape)

    def estimate(self, messages: Reals) -> float:
        """Unbiased sum of the values."""
        return float(messages.sum())

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
    r"""Add Gaussian noise to a value in [0, 1].

    The blanket is no Gaussian, but :math:`\omega(y) \propto \exp(-(|y - \frac12| + \frac12)^2 / 2 \sigma^2)`.
    """

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Reals:
        """One real report for each value in [0, 1], same shape."""
        inputs = reals("values", values, 0, 1)
        return inputs + rng.normal(scale=self.noise_std, size=inputs.shape)

    def estimate(self, messages: Reals) -> float:
        """Unbiased sum of the values."""
        return float(messages.sum())

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


def _whole_reports(report: ArrayLike) -> Wholes:
    return wholes("report", report, -LARGEST_WHOLE, LARGEST_WHOLE)
