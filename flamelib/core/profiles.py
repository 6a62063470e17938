r"""What accounting may know of a local randomizer: public parameters, blanket mass, two moments; standard library only.

:mod:`flamelib.mechanisms.randomizers` adds sampling to these classes, and the accounts read their numbers.  With
:math:`\omega` the blanket law, :math:`\gamma` its mass and :math:`r = \mu_x / \omega`, :math:`r' = \mu_{x'} / \omega`
for the extreme pair of inputs, a profile has

* ``epsilon0``, the local guarantee (``inf`` where there is none),
* ``mass`` :math:`= \gamma`,
* ``same`` :math:`= E_\omega[r^2]` and ``cross`` :math:`= E_\omega[r\,r']`, from which
  :math:`E[L^2] = (1 + e^{2\varepsilon})\,` ``same`` :math:`-\ 2 e^{\varepsilon}\,` ``cross``.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from flamelib.core.logspace import exp_or_inf, log1mexp, log_expm1, logaddexp
from flamelib.core.vocabulary import Checked, DomainError, keep, number

# How far the entries of a row may be from adding up to 1: rounding of printed tables.
ROW_SUM = 1e-12
# Rarer messages than this leave the range in which ratios of probabilities are computed.
RAREST_MESSAGE = 1e-150


@dataclass(frozen=True, slots=True)
class LossShape:
    r"""Parameters of L that do not depend on epsilon: with :math:`a = e^{\varepsilon} - 1`,

    .. math:: b = \mathtt{spread}\,(e^{\varepsilon} + 1), \qquad
              E[L^2] = a^2\,\mathtt{cross} + (1 + e^{2\varepsilon})\,(\mathtt{same} - \mathtt{cross}).

    ``odds`` is :math:`\gamma / (1 - \gamma)`; ``log_gap`` the logarithm of ``same - cross``, without the
    cancellation of the two moments at a small local budget.
    """

    epsilon0: float
    log_mass: float
    odds: float
    spread: float
    log_cross: float
    log_gap: float
    generic: bool

    @property
    def mass(self) -> float:
        return math.exp(self.log_mass)

    def log_high(self, epsilon: float) -> float:
        """Logarithm of the greatest value of L; ``-inf`` at the local budget, where it is 0."""
        if self.generic:
            return self.epsilon0 + log1mexp(2 * self.epsilon0 - epsilon)
        return self.log_mass + epsilon + log_expm1(self.epsilon0 - epsilon)

    def log_second_moment(self, epsilon: float, log_a: float) -> float:
        """Logarithm of the second moment, ``log_a`` being ``log_expm1(epsilon)``."""
        squares = 2 * epsilon + math.log1p(math.exp(-2 * epsilon))
        return logaddexp(2 * log_a + self.log_cross, squares + self.log_gap)


class Profile(ABC):
    """A local randomizer, as far as accounting may know it."""

    __slots__ = ()
    #: The parameter that calibrations look for, ``None`` where there is none.
    calibrated_parameter: ClassVar[str | None] = "epsilon0"
    epsilon0: float

    @property
    def total_variation(self) -> float:
        """Largest total variation between the messages of two values (upper): that of binary response attains it."""
        return math.tanh(self.epsilon0 / 2)


@dataclass(frozen=True, slots=True)
class KaryProfile(Checked, Profile):
    """k-ary randomized response: keep the bucket, or draw one uniformly with probability ``mass``."""

    kind: ClassVar[str] = "kary"
    epsilon0: float
    n_buckets: int

    @property
    def mass(self) -> float:
        return self.n_buckets / (math.expm1(self.epsilon0) + self.n_buckets)

    @property
    def kept(self) -> float:
        """Probability that a message repeats its input on purpose, ``1 - mass`` without cancellation."""
        return math.expm1(self.epsilon0) / (math.expm1(self.epsilon0) + self.n_buckets)

    @property
    def max_excess(self) -> float:
        """Largest likelihood ratio to the blanket, minus 1."""
        return self.kept * (self.n_buckets - 1)

    @property
    def excess_moments(self) -> tuple[float, float]:
        """Variance of the likelihood ratio to the blanket, and minus the covariance of those of two values."""
        return self.kept**2 * (self.n_buckets - 1), self.kept**2

    @property
    def telling(self) -> float:
        """Probability that the message of a user who holds one of two values is one of these two."""
        p = math.exp(self.epsilon0)
        return (p + 1) / (p + 1 + (self.n_buckets - 2))

    @property
    def same(self) -> float:
        return self.cross + self.kept**2 * self.n_buckets

    @property
    def cross(self) -> float:
        return self.mass * (1 + self.kept)

    @property
    def loss_shape(self) -> LossShape:
        """L in the closed forms."""
        growth = math.expm1(self.epsilon0)
        log_mass = -math.log1p(growth / self.n_buckets)
        log_kept = log_expm1(self.epsilon0) - math.log(growth + self.n_buckets)
        return LossShape(
            self.epsilon0,
            log_mass,
            odds=self.n_buckets / growth,
            spread=math.exp(log_mass) * growth,
            log_cross=log_mass + math.log1p(math.exp(log_kept)),
            log_gap=2 * log_kept + math.log(self.n_buckets),
            generic=False,
        )


class Shares(NamedTuple):
    """With which probabilities a draw from the base law supports given values.

    ``one``: a given value, whatever else it supports.  ``none``, ``alone``, ``two``: of two given values neither, the
    first but not the second, both.  ``all``: every value.  ``triples``: for each kind of three given values, none of
    them, the first alone, the first two alone, all three.
    """

    one: float
    none: float
    alone: float
    two: float
    all: float
    triples: tuple[tuple[float, float, float, float], ...]


def _independent(bit: float, n_buckets: int) -> Shares:
    """Values that are supported independently of each other."""
    off = 1 - bit
    triple = (off**3, off**2 * bit, off * bit**2, bit**3)
    return Shares(bit, off**2, off * bit, bit**2, bit**n_buckets, (triple,))


@dataclass(frozen=True, slots=True)
class SupportProfile(Checked, Profile):
    r"""Messages that support some values, and are :math:`e^{\varepsilon_0}` times as likely for these as for others.

    :math:`\mu_x(y) = G\,B(y)\,e^{\varepsilon_0 [y\text{ supports }x]}` with a base law B and
    :math:`1/G = 1 + (e^{\varepsilon_0}-1)\,` ``one``; all pairs of values are alike.  The blanket is GB, with
    :math:`e^{\varepsilon_0}` times as much at messages that support all values.
    """

    kind: ClassVar[str] = "support"
    epsilon0: float
    n_buckets: int

    @property
    @abstractmethod
    def shares(self) -> Shares:
        """With which probabilities a draw from the base law supports one, two or three given values."""

    @property
    def base(self) -> float:
        """``G`` above: the probability of a message is at least this times its probability by the base law."""
        return 1 / (1 + math.expm1(self.epsilon0) * self.shares.one)

    @property
    def lift(self) -> float:
        """The blanket's mass divided by ``base``."""
        return 1 + math.expm1(self.epsilon0) * self.shares.all

    @property
    def mass(self) -> float:
        return self.base * self.lift

    @property
    def kept(self) -> float:
        """``1 - mass`` without cancellation."""
        return math.expm1(self.epsilon0) * self.base * (self.shares.one - self.shares.all)

    @property
    def telling(self) -> float:
        """Probability that the message of a user who holds one of two values supports one of them alone."""
        return min((math.exp(self.epsilon0) + 1) * self.base * self.shares.alone, 1.0)  # 1 is rounded up at times

    @property
    def same(self) -> float:
        steep = math.expm1(self.epsilon0) * self.base
        return self.cross + steep * steep * self.lift * self.shares.alone

    @property
    def cross(self) -> float:
        _, _, alone, two, everything, _ = self.shares
        steep, base, lift = math.expm1(self.epsilon0) * self.base, self.base, self.lift
        both = (math.exp(self.epsilon0) + 1) * base * (two - everything)
        return (lift * base) ** 2 + steep * lift * (both + 2 * alone * base)

    @property
    def loss_shape(self) -> LossShape:
        """L in the closed forms."""
        shares = self.shares
        log_steep = log_expm1(self.epsilon0) + math.log(self.base)
        log_mass = math.log(self.mass)
        return LossShape(
            self.epsilon0,
            log_mass,
            odds=exp_or_inf(log_mass - log_steep - math.log(shares.one - shares.all)),
            spread=self.lift * math.exp(log_steep),
            log_cross=math.log(self.cross),
            log_gap=2 * log_steep + math.log(self.lift) + math.log(shares.alone),
            generic=False,
        )


@dataclass(frozen=True, slots=True)
class RapporProfile(SupportProfile):
    """The one-hot vector of the value, every bit flipped with probability ``1 / (exp(epsilon0 / 2) + 1)``."""

    kind: ClassVar[str] = "rappor"

    @property
    def shares(self) -> Shares:
        return _independent(1 / (math.exp(self.epsilon0 / 2) + 1), self.n_buckets)


@dataclass(frozen=True, slots=True)
class UnaryProfile(SupportProfile):
    """Optimized unary encoding: the bit of the value is 1 with probability 1/2, others with ``1/(exp(epsilon0)+1)``."""

    kind: ClassVar[str] = "oue"

    @property
    def shares(self) -> Shares:
        return _independent(1 / (math.exp(self.epsilon0) + 1), self.n_buckets)


@dataclass(frozen=True, slots=True)
class SubsetProfile(SupportProfile):
    """Subset selection: a set of ``size`` values, ``exp(epsilon0)`` times as likely if it holds the user's own."""

    kind: ClassVar[str] = "subset"

    @property
    def size(self) -> int:
        return max(round(self.n_buckets / (math.exp(self.epsilon0) + 1)), 1)

    @property
    def shares(self) -> Shares:
        k, w = self.n_buckets, self.size
        out, pairs, triples = k - w, k * (k - 1), k * (k - 1) * max(k - 2, 1)
        none, alone, two = out * (out - 1) / pairs, w * out / pairs, w * (w - 1) / pairs
        # Of three values: whole numbers of choices, so that nothing cancels.
        three = (out * (out - 1) * (out - 2), w * out * (out - 1), w * (w - 1) * out, w * (w - 1) * (w - 2))
        a, b, c, d = (ways / triples for ways in three)
        return Shares(w / k, none, alone, two, 0.0, ((a, b, c, d),))


@dataclass(frozen=True, slots=True)
class HadamardProfile(SupportProfile):
    """Hadamard response: a column of the matrix of order ``size``, likely one where the value's row has +1."""

    kind: ClassVar[str] = "hadamard"

    @property
    def size(self) -> int:
        """The least power of two above the number of values: the row of ones stays unused."""
        return 1 << self.n_buckets.bit_length()

    @property
    def shares(self) -> Shares:
        # A third row is the product of the first two, or independent of them, for which a fourth row must be there.
        kinds = ((0.0, 0.25, 0.0, 0.25), (0.125, 0.125, 0.125, 0.125))
        return Shares(0.5, 0.25, 0.25, 0.25, 1 / self.size, kinds[: 1 + (self.n_buckets > 3)])


@dataclass(frozen=True, slots=True)
class HashingProfile(SupportProfile):
    """Local hashing: a uniform hash function to ``range`` numbers, and the number of the value by k-ary response."""

    kind: ClassVar[str] = "local-hash"

    @property
    def range(self) -> int:
        return max(round(math.exp(self.epsilon0) + 1), 2)

    @property
    def shares(self) -> Shares:
        return _independent(1 / self.range, self.n_buckets)


@dataclass(frozen=True, slots=True)
class LaplaceProfile(Checked, Profile):
    """Laplace noise of scale ``1 / epsilon0`` on a value in [0, 1]; its blanket is the law at one half."""

    kind: ClassVar[str] = "laplace"
    epsilon0: float

    @property
    def mass(self) -> float:
        return math.exp(-self.epsilon0 / 2)

    @property
    def kept(self) -> float:
        """Probability that a message is not of the blanket, ``1 - mass`` without cancellation."""
        return -math.expm1(-self.epsilon0 / 2)

    @property
    def max_excess(self) -> float:
        """Largest likelihood ratio to the blanket, minus 1."""
        return math.expm1(self.epsilon0 / 2)

    @property
    def excess_moments(self) -> tuple[float, float]:
        """Variance of the likelihood ratio to the blanket, and minus the covariance of those of the values 0 and 1."""
        return self.kept**2 * (2 * math.exp(self.epsilon0 / 2) + 1) / 3, self.kept**2

    @property
    def same(self) -> float:
        return (2 * math.exp(self.epsilon0 / 2) + math.exp(-self.epsilon0)) / 3

    @property
    def cross(self) -> float:
        return 2 * math.exp(-self.epsilon0 / 2) - math.exp(-self.epsilon0)

    @property
    def loss_shape(self) -> LossShape:
        """L in the closed forms."""
        half = self.epsilon0 / 2
        # same - cross = (2/3) exp(-2h) (exp(h) - 1)^2 (exp(h) + 2) with h = epsilon0 / 2, every factor positive.
        return LossShape(
            self.epsilon0,
            log_mass=-half,
            odds=exp_or_inf(-log_expm1(half)),
            spread=math.exp(-half) * math.expm1(self.epsilon0),
            log_cross=-half + math.log(2 - math.exp(-half)),
            log_gap=math.log(2 / 3) - 2 * half + 2 * log_expm1(half) + math.log(math.exp(half) + 2),
            generic=False,
        )


@dataclass(frozen=True, slots=True)
class GaussianProfile(Checked, Profile):
    """Gaussian noise on a value in [0, 1]: no pure local guarantee, because the likelihood ratio is unbounded."""

    kind: ClassVar[str] = "gaussian"
    calibrated_parameter: ClassVar[str | None] = "noise_std"
    epsilon0: ClassVar[float] = math.inf  # type: ignore[misc]
    noise_std: float

    @property
    def total_variation(self) -> float:
        return math.erf(1 / (2 * math.sqrt(2) * self.noise_std))

    @property
    def mass(self) -> float:
        return math.erfc(1 / (2 * math.sqrt(2) * self.noise_std))


@dataclass(frozen=True, slots=True)
class AnyProfile(Checked, Profile):
    """Every randomizer with local budget ``epsilon0``: the generic constants of the blanket authors."""

    kind: ClassVar[str] = "any"
    epsilon0: float

    @property
    def mass(self) -> float:
        return math.exp(-self.epsilon0)

    @property
    def same(self) -> float:
        return math.exp(self.epsilon0)

    @property
    def cross(self) -> float:
        return math.exp(-3 * self.epsilon0)

    @property
    def loss_shape(self) -> LossShape:
        """L in the closed forms, by the generic constants."""
        return LossShape(
            self.epsilon0,
            log_mass=-self.epsilon0,
            odds=1 / math.expm1(self.epsilon0),
            spread=2 * math.sinh(self.epsilon0),
            log_cross=-3 * self.epsilon0,
            log_gap=self.epsilon0 + log1mexp(4 * self.epsilon0),
            generic=True,
        )


@dataclass(frozen=True, slots=True)
class ClonedProfile(AnyProfile):
    """The same with the clones of binary response: another user is one with probability ``2 / (exp(epsilon0) + 1)``."""


@dataclass(frozen=True, slots=True)
class TableProfile(Profile):
    """A randomizer by its table: row x is the law of the message for the value x."""

    kind: ClassVar[str] = "table"
    calibrated_parameter: ClassVar[str | None] = None
    table: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        try:
            rows = [[float(number(entry)) for entry in row] for row in self.table]
        except (TypeError, ValueError, OverflowError):
            raise DomainError(f"table must be rows of numbers, got {self.table!r}") from None
        if len(rows) < 2 or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
            raise DomainError("table must have two rows of two entries or more, all rows of one length")
        if any(not 0 <= entry <= 1 for row in rows for entry in row):
            raise DomainError("table must hold probabilities in [0, 1]")
        if any(abs(math.fsum(row) - 1) > ROW_SUM for row in rows):
            raise DomainError(f"table must have rows that sum to 1 within {ROW_SUM:g}")
        if any(0 < entry < RAREST_MESSAGE for row in rows for entry in row):
            raise DomainError(f"table must hold no positive probability below {RAREST_MESSAGE:g}")
        if any(0 < sum(entry > 0 for entry in column) < len(column) for column in zip(*rows, strict=True)):
            raise DomainError("table must not have a message that some values send and others never do")
        exact = tuple(tuple(entry / math.fsum(row) for entry in row) for row in rows)
        if len(set(exact)) == 1 and len(set(map(tuple, rows))) > 1:  # division made alike what is not
            most = max(exact[0])
            exact = (tuple(math.nextafter(most, 0) if one == most else one for one in exact[0]), *exact[1:])
        keep(self, table=exact)

    @property
    def epsilon0(self) -> float:  # type: ignore[override]
        """The local budget: the largest logarithm of a ratio of two entries of one column."""
        columns = [column for column in zip(*self.table, strict=True) if column[0] > 0]
        return max(math.log(max(column) / min(column)) for column in columns)

    @property
    def mass(self) -> float:
        return math.fsum(min(column) for column in zip(*self.table, strict=True))


#: Kinds whose messages support values, by their words.
#:
#: :meta hide-value:
SUPPORTING: dict[str, type[SupportProfile]] = {
    one.kind: one for one in (RapporProfile, UnaryProfile, SubsetProfile, HadamardProfile, HashingProfile)
}

#: The same, and k-ary response: all kinds that have an alphabet of values.
#:
#: :meta hide-value:
BUCKETED: dict[str, Any] = {"kary": KaryProfile, **SUPPORTING}
