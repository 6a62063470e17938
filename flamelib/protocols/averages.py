"""What FLAME is measured against: plain averages, a trusted server with Gaussian noise, noise at every user.

Every way takes updates of shape (n_users, dimension) and publishes one vector.  Sums and noise are in double
precision; noise that every user adds on its own is drawn as its sum, which has the same law.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.arrays import Reals, no_mask
from flamelib.core.vocabulary import Checked, DomainError, check, keep
from flamelib.mechanisms.vectors import clip_factors

Updates = NDArray[np.floating]
_ROWS_AT_ONCE = 16  # so many rows of a model's size stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Mean:
    """The vector that a round publishes."""

    estimate: Reals


@dataclass(frozen=True, slots=True)
class PlainAverage:
    """The mean of the updates as they are (NP-FL)."""

    def run(self, updates: ArrayLike, rng: np.random.Generator) -> Mean:
        """The mean; ``rng`` is not used."""
        return Mean(_rows(updates).mean(axis=0, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class ClippedAverage(Checked):
    """The mean of the updates with each coordinate clipped to [-clip_norm, clip_norm], without noise."""

    clip_norm: float

    def run(self, updates: ArrayLike, rng: np.random.Generator) -> Mean:
        """The mean; ``rng`` is not used."""
        rows = _rows(updates)
        return Mean(np.clip(rows, -self.clip_norm, self.clip_norm).mean(axis=0, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class SparseAverage:
    """The mean of the ``kept`` largest coordinates of each update, clipped, zero elsewhere; without noise."""

    clip_norm: float
    kept: int

    def __post_init__(self) -> None:
        keep(self, **check(clip_norm=self.clip_norm, kept=self.kept))
        if self.kept % 1:
            raise DomainError(f"kept must be a whole number of coordinates, got {self.kept!r}")
        keep(self, kept=int(self.kept))

    def run(self, updates: ArrayLike, rng: np.random.Generator) -> Mean:
        """The mean; ``rng`` is not used."""
        rows = _rows(updates)
        places = _largest_places(rows, self.kept)
        values = np.clip(np.take_along_axis(rows, places, axis=1), -self.clip_norm, self.clip_norm)
        total = np.bincount(places.ravel(), values.ravel().astype(np.float64), minlength=rows.shape[1])
        return Mean(total / len(rows))


@dataclass(frozen=True, slots=True)
class CentralGaussian(Checked):
    """A trusted server sums updates clipped in 2-norm and adds Gaussian noise to each coordinate (DP-FL).

    Replacing one user moves the sum by at most ``2 * clip_norm``.
    """

    clip_norm: float
    noise_std: float

    @property
    def sensitivity(self) -> float:
        """Largest distance between two sums of which one user's update differs."""
        return 2 * self.clip_norm

    def run(self, updates: ArrayLike, rng: np.random.Generator) -> Mean:
        """The noisy sum divided by the number of users."""
        rows = _rows(updates)
        total = np.asarray(rng.normal(scale=self.noise_std, size=rows.shape[1]))
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            block = rows[start : start + _ROWS_AT_ONCE].astype(np.float64)
            norms = np.sqrt(np.einsum("ij,ij->i", block, block))
            total = total + clip_factors(norms, self.clip_norm) @ block
        return Mean(total / len(rows))


@dataclass(frozen=True, slots=True)
class LocalGaussian(Checked):
    r"""Every user clips, maps :math:`[-C, C]` to :math:`[0, 1]` and adds Gaussian noise itself (LDP-FL).

    One user's vector in :math:`[0, 1]^d` moves by at most 1 in a coordinate and by :math:`\sqrt d` in all;
    ``noise_std`` is that of a coordinate there.
    """

    clip_norm: float
    noise_std: float

    def run(self, updates: ArrayLike, rng: np.random.Generator) -> Mean:
        """The mean of the users' messages, mapped back to [-C, C]."""
        mean, n_users = _unit_mean(updates, self.clip_norm)
        noise = rng.normal(scale=self.noise_std / n_users**0.5, size=mean.shape)
        return Mean(self.clip_norm * (2 * (mean + noise) - 1))


@dataclass(frozen=True, slots=True)
class LocalLaplace(Checked):
    """As :class:`LocalGaussian` with Laplace noise of scale ``1 / epsilon0`` on each coordinate in [0, 1]."""

    clip_norm: float
    epsilon0: float

    def run(self, updates: ArrayLike, rng: np.random.Generator) -> Mean:
        """The mean of the users' messages, mapped back to [-C, C]; the noise is a difference of gamma variables."""
        mean, n_users = _unit_mean(updates, self.clip_norm)
        one, other = rng.standard_gamma(n_users, size=(2, *mean.shape))
        noise = (one - other) / (self.epsilon0 * n_users)
        return Mean(self.clip_norm * (2 * (mean + noise) - 1))


@dataclass(frozen=True, slots=True)
class OrderedTopk(Checked):
    """SS-Topk with every noise drawn in the order of the authors' code, to show what a reused seed does to it.

    First a message for each user and reported coordinate in ascending order, then the dummies, coordinate after
    coordinate.  The law is that of SS-Topk with Laplace noise while no coordinate has more than ``padded`` messages;
    if it has more, all of them are added up (the authors' code stops there).  Nothing is permuted, which does not
    change a sum.
    """

    clip_norm: float
    epsilon0: float
    kept: int
    padded: int

    def run(self, updates: ArrayLike, rng: np.random.Generator) -> Mean:
        """The padded sums, centred and divided by the expected number of reports, mapped back to [-C, C]."""
        rows = _rows(updates)
        places = np.sort(_largest_places(rows, self.kept), axis=1)
        unit = np.clip(np.take_along_axis(rows, places, axis=1).astype(np.float64) / (2 * self.clip_norm), -0.5, 0.5)
        messages = unit + rng.laplace(scale=1 / self.epsilon0, size=unit.shape)
        missing = np.maximum(self.padded - np.bincount(places.ravel(), minlength=rows.shape[1]), 0)
        dummies = np.concatenate([[0.0], np.cumsum(rng.laplace(scale=1 / self.epsilon0, size=missing.sum()))])
        ends = np.cumsum(missing)
        sums = np.bincount(places.ravel(), messages.ravel(), rows.shape[1]) + dummies[ends] - dummies[ends - missing]
        return Mean(2 * self.clip_norm * rows.shape[1] / (len(rows) * self.kept) * sums)


def _unit_mean(updates: ArrayLike, clip_norm: float) -> tuple[Reals, int]:
    rows = _rows(updates)
    mean = np.clip(rows, -clip_norm, clip_norm).mean(axis=0, dtype=np.float64)
    return np.asarray((mean + clip_norm) / (2 * clip_norm)), len(rows)


def _rows(updates: ArrayLike) -> Updates:
    """Updates of at least one user, finite, in whatever precision they come."""
    no_mask("updates", updates)
    rows = np.asarray(updates)
    if rows.ndim != 2 or not rows.size or rows.dtype.kind != "f":
        raise DomainError(f"updates must be an array of reals of shape (n_users, dimension), got {rows.shape}")
    if not np.isfinite(rows.sum()) and not np.isfinite(rows).all():
        raise DomainError("updates must be finite numbers")
    return rows


def _largest_places(rows: Updates, kept: int) -> NDArray[np.intp]:
    """The ``kept`` coordinates of each row with the largest absolute values, in any order."""
    if kept > rows.shape[1]:
        raise DomainError(f"kept must be at most the dimension {rows.shape[1]}, got {kept}")
    first = rows.shape[1] - kept
    blocks = (rows[start : start + _ROWS_AT_ONCE] for start in range(0, len(rows), _ROWS_AT_ONCE))
    return np.concatenate([np.argpartition(np.abs(block), first, axis=1)[:, first:] for block in blocks])
