r"""What accounting may know of a local randomizer: public parameters, blanket mass, two moments; standard library only.

:mod:`flamelib.mechanisms.randomizers` adds sampling to these classes, the accounts read their numbers.  With
:math:`\omega` the blanket law, :math:`\gamma` its mass and :math:`r = \mu_x / \omega`, :math:`r' = \mu_{x'} / \omega`
for the extreme pair of inputs, a profile has

* ``epsilon0``, the local guarantee (``inf`` where there is none),
* ``mass`` :math:`= \gamma`,
* ``same`` :math:`= E_\omega[r^2]` and ``cross`` :math:`= E_\omega[r\,r']`, from which
  :math:`E[L^2] = (1 + e^{2\varepsilon})\,` ``same`` :math:`-\ 2 e^{\varepsilon}\,` ``cross``.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from flamelib.core.vocabulary import DomainError, check

# How far the entries of a row may be from adding up to 1: rounding of printed tables.
ROW_SUM = 1e-12
# Rarer messages than this leave the range in which ratios of probabilities are computed.
RAREST_MESSAGE = 1e-150


@dataclass(frozen=True, slots=True)
class KaryProfile:
    """k-ary randomized response: keep the bucket, or draw one uniformly with probability ``mass``."""

    kind: ClassVar[str] = "kary"
    epsilon0: float
    n_buckets: int

    def __post_init__(self) -> None:
        check(epsilon0=self.epsilon0, n_buckets=self.n_buckets)

    @property
    def mass(self) -> float:
        return self.n_buckets / (math.expm1(self.epsilon0) + self.n_buckets)

    @property
    def kept(self) -> float:
        """Probability that a message repeats its input on purpose, ``1 - mass`` without cancellation."""
        return math.expm1(self.epsilon0) / (math.expm1(self.epsilon0) + self.n_buckets)

    @property
    def same(self) -> float:
        return self.cross + self.kept**2 * self.n_buckets

    @property
    def cross(self) -> float:
        return self.mass * (1 + self.kept)


@dataclass(frozen=True, slots=True)
class LaplaceProfile:
    """Laplace noise of scale ``1 / epsilon0`` on a value in [0, 1]; its blanket is the law at one half."""

    kind: ClassVar[str] = "laplace"
    epsilon0: float

    def __post_init__(self) -> None:
        check(epsilon0=self.epsilon0)

    @property
    def mass(self) -> float:
        return math.exp(-self.epsilon0 / 2)

    @property
    def kept(self) -> float:
        """Probability that a message is not of the blanket, ``1 - mass`` without cancellation."""
        return -math.expm1(-self.epsilon0 / 2)

    @property
    def same(self) -> float:
        return (2 * math.exp(self.epsilon0 / 2) + math.exp(-self.epsilon0)) / 3

    @property
    def cross(self) -> float:
        return 2 * math.exp(-self.epsilon0 / 2) - math.exp(-self.epsilon0)


@dataclass(frozen=True, slots=True)
class GaussianProfile:
    """Gaussian noise on a value in [0, 1]: no pure local guarantee, a likelihood ratio without bound."""

    kind: ClassVar[str] = "gaussian"
    epsilon0: ClassVar[float] = math.inf
    noise_std: float

    def __post_init__(self) -> None:
        check(noise_std=self.noise_std)

    @property
    def mass(self) -> float:
        return math.erfc(1 / (2 * math.sqrt(2) * self.noise_std))


@dataclass(frozen=True, slots=True)
class AnyProfile:
    """Every randomizer with local budget ``epsilon0``: the generic constants of the blanket authors."""

    kind: ClassVar[str] = "any"
    epsilon0: float

    def __post_init__(self) -> None:
        check(epsilon0=self.epsilon0)

    @property
    def mass(self) -> float:
        return math.exp(-self.epsilon0)

    @property
    def same(self) -> float:
        return math.exp(self.epsilon0)

    @property
    def cross(self) -> float:
        return math.exp(-3 * self.epsilon0)


@dataclass(frozen=True, slots=True)
class TableProfile:
    """A randomizer by its table: row x is the law of the message for the value x."""

    kind: ClassVar[str] = "table"
    table: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        try:
            rows = [[float(entry) for entry in row] for row in self.table]
        except (TypeError, ValueError):
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
        object.__setattr__(self, "table", exact)

    @property
    def epsilon0(self) -> float:
        """The local budget: largest logarithm of the ratio of two entries of a column."""
        columns = [column for column in zip(*self.table, strict=True) if column[0] > 0]
        return max(math.log(max(column) / min(column)) for column in columns)

    @property
    def mass(self) -> float:
        return math.fsum(min(column) for column in zip(*self.table, strict=True))


Profile = KaryProfile | LaplaceProfile | GaussianProfile | AnyProfile
