r"""Randomizers of vectors: two that send a point of a sphere, and Gaussian noise; all unbiased within the clip.

A vector x of norm at most C is first replaced by :math:`\pm C x / |x|`, with the sign whose mean is x.  Let u be the
unit vector that is left.  With probability ``mass`` the message is drawn from the whole sphere, whatever u is;
otherwise from the cap of those V with :math:`\langle V, u \rangle \ge t`.  With c the cap's share of the sphere and

.. math:: \text{mass} = \frac1{1 + (e^{\varepsilon_0} - 1)\, c}

densities inside and outside of the cap are in the ratio :math:`e^{\varepsilon_0}`, and the uniform law is the blanket.
V has the length that makes it unbiased.  The cap is half of the sphere for Duchi et al.; PrivUnit2 takes the best one:
:math:`\mathbb E \langle V, u \rangle` of a unit V is largest where it equals the threshold t itself.

A sum of many messages can be drawn without any of them, in two parts: each message's component along its own input,
exactly (:meth:`CapMessages.along`), and one Gaussian vector for all the rest (:meth:`CapMessages.rest_std`).
The samplers serve simulation only, in double precision.

Source: Duchi, Jordan, Wainwright 2018, Section 4.2.3; Erlingsson et al. 2020, Algorithm 4; Bhowmick et al. 2018,
Algorithm 1 (PrivUnit2); Asi, Feldman, Talwar 2022 (the best threshold).
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincc, betainccinv, betaln

from flamelib.core.arrays import Reals, reals
from flamelib.core.search import root
from flamelib.core.vocabulary import DomainError, check, keep, number

_HIGHEST_THRESHOLD = 1 - 2.0**-30  # so near to 1 that 1 - t^2 keeps seven digits


@dataclass(frozen=True, slots=True)
class CapMessages:
    """Messages that are points of a sphere, more likely those in the cap around the input than others.

    ``clip_norm`` is the largest 2-norm C of an input, ``threshold`` in [0, 1) the cosine at the rim of the cap.
    """

    dimension: int
    epsilon0: float
    clip_norm: float
    threshold: float

    def __post_init__(self) -> None:
        keep(self, **check(dimension=self.dimension, epsilon0=self.epsilon0, clip_norm=self.clip_norm))
        if self.dimension < 2:
            raise DomainError("dimension must be a whole number of at least 2: a line has no caps")
        threshold = number(self.threshold)
        if threshold is None or not 0 <= threshold <= _HIGHEST_THRESHOLD:
            raise DomainError(f"threshold must be a number in [0, 1 - 2^-30], got {self.threshold!r}")
        keep(self, threshold=float(threshold))

    @classmethod
    def duchi(cls, dimension: int, epsilon0: float, clip_norm: float) -> Self:
        """The cap is half of the sphere: Duchi et al. in the 2-norm, as Erlingsson et al. use it."""
        return cls(dimension, epsilon0, clip_norm, 0.0)

    @classmethod
    def privunit2(cls, dimension: int, epsilon0: float, clip_norm: float) -> Self:
        """The cap that makes messages shortest: PrivUnit2 at its best threshold."""
        return cls(dimension, epsilon0, clip_norm, best_threshold(dimension, epsilon0))

    @property
    def cap(self) -> float:
        """The cap's share of the sphere."""
        return _cap_share(self.dimension, self.threshold)

    @property
    def mass(self) -> float:
        """Probability that a message ignores its input."""
        return 1 / (1 + math.expm1(self.epsilon0) * self.cap)

    @property
    def norm(self) -> float:
        """2-norm of every message."""
        gain = math.expm1(self.epsilon0)
        return self.clip_norm / (gain * self.mass * _cap_mean(self.dimension, self.threshold))

    def sample(self, vectors: ArrayLike, rng: np.random.Generator) -> Reals:
        """One message for each row, clipped first; shape (n, dimension) for both."""
        rows = _rows(vectors, self.dimension, self.clip_norm)
        directions = _directions(rows)
        along = self.along(np.linalg.norm(rows, axis=1), rng.random((3, len(rows))))[:, None]
        around = rng.standard_normal(rows.shape)
        around -= (around * directions).sum(axis=1, keepdims=True) * directions
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        return np.asarray(along * directions + np.sqrt(np.maximum(self.norm**2 - along**2, 0)) * around)

    def along(self, norms: Reals, uniforms: Reals) -> Reals:
        """Components of messages along their own inputs, which depend on the 2-norms of the inputs alone.

        ``uniforms`` has shape (3, n): numbers in [0, 1) that decide the sign, cap or whole sphere, and the place.
        """
        positive = 2 * uniforms[0] < 1 + np.minimum(norms / self.clip_norm, 1)
        beyond = np.where(uniforms[1] < self.mass, 1.0, self.cap) * (1 - uniforms[2])
        return np.asarray(self.norm * np.where(positive, 1, -1) * _cosine(self.dimension, beyond))

    def rest_std(self, along: Reals) -> float:
        r"""Standard deviation, coordinate by coordinate, of a Gaussian for what messages hold beside ``along``.

        An approximation.  Each rest is uniform on a sphere around its own input's axis; the Gaussian has the sum of
        their variances :math:`(|V|^2 - \langle V, u\rangle^2) / (d - 1)` in *every* direction.  It adds at most one
        part in d - 1 to the mean square of the sum, all of it along the inputs, where the rests have none, and each
        coordinate lacks an excess kurtosis of about :math:`-6 / (d n)`.
        """
        squares = self.norm**2 - np.square(along)
        return math.sqrt(max(float(squares.sum()), 0.0) / (self.dimension - 1))


@dataclass(frozen=True, slots=True)
class GaussianMessages:
    """Clip, then add Gaussian noise to every coordinate; with ``noise_std`` 0, a reference without privacy.

    Replacing an input moves the mean by up to twice ``clip_norm``, which may be infinite where ``noise_std`` is 0.
    """

    dimension: int
    clip_norm: float
    noise_std: float

    def __post_init__(self) -> None:
        keep(self, **check(dimension=self.dimension))
        keep(self, **check_noise(self.noise_std, self.clip_norm))

    def sample(self, vectors: ArrayLike, rng: np.random.Generator) -> Reals:
        """One message for each row, clipped first; shape (n, dimension) for both."""
        rows = _rows(vectors, self.dimension, self.clip_norm)
        return np.asarray(rows + self.noise_std * rng.standard_normal(rows.shape))

    def along(self, norms: Reals, uniforms: Reals) -> Reals:
        """The clipped norms themselves, as for :meth:`CapMessages.along`: all noise is in the rest."""
        return np.minimum(norms, self.clip_norm)

    def rest_std(self, along: Reals) -> float:
        """Standard deviation of the sum of so many messages on each coordinate; exact."""
        return math.sqrt(len(along)) * self.noise_std


VectorRandomizer = CapMessages | GaussianMessages


def check_noise(noise_std: float, clip_norm: float) -> dict[str, float]:
    """Both, plain, or a refusal; ``noise_std`` may be 0, and then ``clip_norm`` infinite."""
    silent = number(noise_std) == 0
    given = {"noise_std": 0.0} if silent else check(noise_std=noise_std)
    unclipped = silent and number(clip_norm) == math.inf
    return given | ({"clip_norm": math.inf} if unclipped else check(clip_norm=clip_norm))


def clip_factors(norms: NDArray[np.floating], clip_norm: float) -> NDArray[np.floating]:
    """What each vector of these norms is multiplied by, at most 1; an infinite ``clip_norm`` clips nothing."""
    if clip_norm != math.inf:
        clip_norm = check(clip_norm=clip_norm)["clip_norm"]
    with np.errstate(over="ignore"):  # a vector of nothing
        factors = np.minimum(1, clip_norm / np.maximum(norms, np.finfo(norms.dtype).tiny))
    return np.asarray(factors, dtype=norms.dtype)


def clipped_sum(gradients: ArrayLike, clip_norm: float) -> Reals:
    """Sum of the rows, each scaled down to the 2-norm ``clip_norm`` if it is longer; of no rows, zeros."""
    rows = reals("gradients", gradients)
    if rows.ndim != 2:
        raise DomainError(f"gradients must have shape (n_records, dimension), got {rows.shape}")
    return np.asarray(clip_factors(np.linalg.norm(rows, axis=1), clip_norm) @ rows)


def _cap_share(dimension: int, threshold: float) -> float:
    r"""Share of the sphere with a cosine of at least ``threshold`` to a given point.

    .. math:: c = \tfrac12 I_{1 - t^2}\left(\tfrac{d - 1}2, \tfrac12\right)
    """
    return float(betaincc(0.5, (dimension - 1) / 2, threshold**2)) / 2


def best_threshold(dimension: int, epsilon0: float) -> float:
    r"""The threshold of the shortest messages: root of :math:`\mathbb E \langle V, u \rangle = t`, at most 1 - 2^-30.

    The derivative of the mean by the threshold has the sign of mean minus threshold, which falls.
    """
    given = check(dimension=dimension, epsilon0=epsilon0)
    gain = math.expm1(given["epsilon0"])

    def surplus(threshold: float) -> float:
        return _cap_mean(dimension, threshold) - threshold * (1 / gain + _cap_share(dimension, threshold))

    if given["dimension"] < 2 or surplus(_HIGHEST_THRESHOLD) >= 0:
        return _HIGHEST_THRESHOLD
    return float(root(surplus, 0, _HIGHEST_THRESHOLD, xtol=1e-15))


def _cap_mean(dimension: int, threshold: float) -> float:
    """Mean of the first coordinate of a point of the sphere, counted as 0 outside of the cap."""
    half = (dimension - 1) / 2
    return math.exp(half * math.log1p(-(threshold**2)) - betaln(0.5, half)) / (2 * half)


def _cosine(dimension: int, beyond: Reals) -> Reals:
    """The cosine that a uniform point of the sphere exceeds with probability ``beyond`` in (0, 1]."""
    size = np.sqrt(betainccinv(0.5, (dimension - 1) / 2, 2 * np.minimum(beyond, 1 - beyond)))
    return np.asarray(np.where(beyond <= 0.5, size, -size))


def _rows(vectors: ArrayLike, dimension: int, clip_norm: float) -> Reals:
    rows = reals("vectors", vectors)
    if rows.ndim != 2 or rows.shape[1] != dimension:
        raise DomainError(f"vectors must have shape (n, {dimension}), got {rows.shape}")
    return rows * clip_factors(np.linalg.norm(rows, axis=1), clip_norm)[:, None]


def _directions(rows: Reals) -> Reals:
    """Rows at length 1; for zeros, the first axis, of which the sign is a fair coin."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    axis = np.eye(1, rows.shape[1])
    return np.asarray(np.where(norms > 0, rows, axis) / np.where(norms > 0, norms, 1))
