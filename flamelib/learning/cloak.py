r"""Federated averaging through cloak aggregation: whole numbers instead of updates, noise in shares, one sum.

A user clips its update to a 2-norm, multiplies it by ``scale / clip_norm`` and rounds every coordinate up or down at
random, without bias, until the whole vector is no longer than ``norm_limit`` (conditional rounding).  It adds its
share of Skellam noise, splits every coordinate into messages modulo ``modulus``, and sends them; every coordinate is
shuffled on its own.  The analyzer adds up and reads the sum as a number of either sign.

The sum is all that the shuffled messages tell (but for the distance that accounting adds), so training draws it
without its messages (:meth:`CloakAverage.run`); :meth:`CloakAverage.run_messages` sends every one of them.  Without
noise both give the same whole numbers from the same randomness, with noise the same law.

Source: Ghazi, Pagh, Velingker 2019; Kairouz, Liu, Steinke 2021 (rounding); Agarwal, Kairouz, Liu 2021 (Skellam noise).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from flamelib.accounting.noise.skellam import least_variance, rounded_norm
from flamelib.accounting.splitting.n_user_bounds import least_messages
from flamelib.core.arrays import Reals, Wholes, reals
from flamelib.core.vocabulary import Domain, DomainError, check, keep
from flamelib.mechanisms.integers.modular import LARGEST_MACHINE
from flamelib.mechanisms.integers.noise import WIDEST, SkellamShare
from flamelib.mechanisms.integers.randomness import Randomness, Simulation
from flamelib.protocols.cloak import CloakProtocol, run_vector

_ROWS_AT_ONCE = 16  # so many rows of a model's size stay in the processor's cache
_COORDINATES_AT_ONCE = 256  # whose messages are in memory together
_TRIES = 64  # at a rounding that is short enough, before it goes towards zero
_LONGEST = 2**26  # of which many squares add up without rounding
_SHARE = 0.01  # of delta, for what the shares tell
_FAR = 10  # standard deviations of the noise for which the modulus has room


@dataclass(frozen=True, slots=True)
class CloakMean:
    """The mean update that a round publishes, and how many times each sum went around the modulus, kept for study."""

    estimate: Reals
    overflow: Wholes


@dataclass(frozen=True, slots=True)
class CloakAverage:
    """The mean of clipped updates by cloak aggregation with Skellam noise.

    Parameters
    ----------
    scale : int, at least 1
        Steps of the grid in ``clip_norm``, the largest 2-norm of an update.
    norm_limit : float, from ``scale`` to 2^26
        Largest 2-norm of a rounded update, in steps; a user rounds again until it is kept.
    variance : float, at least 0
        Of the noise of the users that do not collude, on each coordinate of the sum, in steps squared; 0 for none.
    modulus : int, above ``n_users``, at most 2^62
    colluding : int, below ``n_users``
        So many users may keep back their shares of the noise.
    """

    n_users: int
    clip_norm: float
    scale: int
    norm_limit: float
    variance: float
    modulus: int
    n_messages: int
    colluding: int = 0

    def __post_init__(self) -> None:
        keep(self, **check(n_users=self.n_users, clip_norm=self.clip_norm, scale=self.scale, modulus=self.modulus))
        keep(self, **check(n_messages=self.n_messages, colluding=self.colluding))
        keep(self, norm_limit=Domain("", low=self.scale, high=_LONGEST).accept("norm_limit", self.norm_limit))
        keep(self, variance=Domain("", low=0).accept("variance", self.variance))
        if self.colluding >= self.n_users:
            raise DomainError(f"colluding must be below n_users = {self.n_users}, got {self.colluding}")
        if self.modulus > LARGEST_MACHINE:
            raise DomainError(f"modulus must be a whole number of at most 2^62, got {self.modulus}")
        _ = self.protocol, self.total_noise  # refused here, not in the middle of training

    @classmethod
    def calibrated(
        cls,
        dimension: int,
        rounds: int,
        epsilon: float,
        delta: float,
        *,
        n_users: int,
        clip_norm: float,
        scale: int,
        colluding: int = 0,
        modulus: int | None = None,
    ) -> Self:
        """The least noise and the fewest messages that keep a budget for who takes part in so many rounds.

        Parameters
        ----------
        dimension, rounds : int
            Coordinates of an update, and rounds that a user takes part in.
        epsilon, delta : float
            Guarantee of all these rounds, for replacing everything that one user holds.
        n_users, clip_norm, scale, colluding
            As of the class.
        modulus : int, optional
            The least power of two that no sum of rounded updates can leave, ten standard deviations of noise included,
            if left out.

        Examples
        --------
        >>> found = CloakAverage.calibrated(7850, 2, 2.0, 1e-6, n_users=1000, clip_norm=0.3, scale=256)
        >>> found.n_messages, found.modulus.bit_length() - 1, round(found.norm_limit / 256, 3)
        (12, 20, 1.017)
        """
        limit, bits = rounded_norm(dimension, scale), security_bits(dimension, rounds, epsilon, delta)
        variance = least_variance(dimension, 2 * limit, rounds, epsilon, delta, security_bits=bits)
        most = n_users * math.floor(limit) + math.ceil(_FAR * math.sqrt(variance * n_users / (n_users - colluding)))
        if modulus is None:
            modulus = 2 ** (2 * most).bit_length()
        n_messages = least_messages(bits, n_users, modulus, colluding)
        return cls(n_users, clip_norm, scale, limit, variance, modulus, n_messages, colluding)

    @property
    def protocol(self) -> CloakProtocol:
        """What is run on each coordinate: signed whole numbers, each user with its share of the noise."""
        noise = SkellamShare(self.n_users - self.colluding, self.variance) if self.variance else None
        return CloakProtocol(self.n_users, self.modulus, 1, self.n_messages, "grid", noise)

    @property
    def total_noise(self) -> SkellamShare | None:
        """The law of all shares together, those of colluding users included, in as few shares as can be drawn."""
        variance = self.variance * self.n_users / (self.n_users - self.colluding)
        return SkellamShare(max(1, math.ceil(variance / WIDEST)), variance) if variance else None

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on a coordinate of the mean, in the unit of the updates."""
        variance = self.total_noise.variance if self.total_noise else 0.0
        return math.sqrt(variance) * self.clip_norm / (self.scale * self.n_users)

    def rounded(self, updates: ArrayLike, randomness: Randomness) -> Iterator[Reals]:
        """What users send the sum of: blocks of rows of whole numbers, clipped, scaled and rounded at random."""
        rows = np.asarray(updates)
        if rows.ndim != 2 or len(rows) != self.n_users:
            raise DomainError(f"updates must have shape ({self.n_users}, dimension), got {rows.shape}")
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            yield self.rounded_rows(rows[start : start + _ROWS_AT_ONCE], randomness)

    def rounded_rows(self, updates: ArrayLike, randomness: Randomness) -> Reals:
        """The same for any number of users, a row for each, at once: one that lives alone rounds its own."""
        rows = reals("updates", updates)
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        steps = self.scale / np.maximum(norms, self.clip_norm)
        return _rounded_within(rows * steps[:, None], self.norm_limit, randomness)

    def run(self, updates: ArrayLike, rng: np.random.Generator) -> CloakMean:
        """The published mean, its sum drawn without the messages: the law of :meth:`run_messages`."""
        rounding, noise = Simulation(rng).spawn(2)
        total = sum(block.sum(axis=0) for block in self.rounded(updates, rounding))
        exact = np.asarray(total, dtype=np.int64)
        if law := self.total_noise:
            exact = exact + sum(law.sample(exact.shape, noise) for _ in range(law.n_users))
        found = (exact + self.modulus // 2) % self.modulus - self.modulus // 2
        return CloakMean(self._unscaled(found), np.abs(exact - found) // self.modulus)

    def run_messages(self, updates: ArrayLike, randomness: Randomness) -> Reals:
        """The published mean with every message sent, shuffled and added up, some coordinates at a time."""
        rounding, sending = randomness.spawn(2)
        rows = np.concatenate(list(self.rounded(updates, rounding))).astype(np.int64)
        starts = range(0, rows.shape[1], _COORDINATES_AT_ONCE)
        parts = [run_vector(self.protocol, rows[:, at : at + _COORDINATES_AT_ONCE], sending) for at in starts]
        return self._unscaled(np.concatenate(parts))

    def _unscaled(self, sums: Wholes) -> Reals:
        return np.asarray(sums * (self.clip_norm / (self.scale * self.n_users)))


def security_bits(dimension: int, rounds: int, epsilon: float, delta: float) -> int:
    """How close shuffled shares of a coordinate must be, in bits, so that all of them cost a hundredth of delta.

    >>> security_bits(7850, 2, 2.0, 1e-6)
    44
    """
    both = epsilon + math.log1p(math.exp(-epsilon))
    return math.ceil(math.log2(dimension * rounds) + both / math.log(2) - math.log2(_SHARE * delta))


def _rounded_within(rows: Reals, limit: float, randomness: Randomness) -> Reals:
    """Every coordinate up or down at random, rows that came out too long again; towards zero if nothing helps."""
    below = np.floor(rows)
    above = rows - below
    found = below + randomness.coins(above, rows.shape)
    largest = math.floor(Fraction(limit) ** 2)
    for _ in range(_TRIES):
        long = np.einsum("ij,ij->i", found, found) > largest
        if not long.any():
            return found
        found[long] = below[long] + randomness.coins(above[long], above[long].shape)
    return np.where(long[:, None], np.trunc(rows), found)
