"""Where a sum of shares goes wrong: overflow, messages lost or sent twice, values nobody may hold.

Each with what goes right beside it.  Rounds are run side by side, as coordinates of one vector with a shuffle each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.stats import binomtest, chisquare

from flamelib.core.vocabulary import DomainError, check
from flamelib.figures.cloak_attack import CONFIDENCE, Wholes
from flamelib.mechanisms.integers.modular import add_up
from flamelib.mechanisms.integers.randomness import Simulation
from flamelib.protocols.cloak import CloakProtocol, analyze, pool, scaled, shuffler, split, total

BLOCK = 10**6

# --- overflow --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sums:
    """Whether the sum modulo N is right, by ways to add."""

    largest: bool
    n_messages: int
    modulus: int
    size: float
    right: dict[str, bool]

    def row(self) -> tuple[object, ...]:
        """For a table: which messages, how many, modulus, true sum in units of 2^63, right or not by each way."""
        kind = "all N - 1" if self.largest else "uniform"
        return kind, self.n_messages, self.modulus, self.size, *self.right.values()


def compute_sums(n_users: int, n_messages: int, modulus: int, largest: bool, seed: int) -> Sums:
    """Messages of a round, as large as they can be or uniform, added up in 64-bit words, doubles, and by blocks.

    Examples
    --------
    >>> compute_sums(10**6, 9, 2**40 - 87, True, seed=1).right
    {'int64': False, 'uint64': True, 'float64': False, 'blocks': True}
    """
    check(n_users=n_users, n_messages=n_messages, modulus=modulus, seed=seed)
    rng, count = np.random.default_rng(seed), n_users * n_messages
    if largest:
        messages = np.broadcast_to(np.int64(modulus - 1), (count,))
        exact = count * (modulus - 1)
    else:
        messages = rng.integers(0, modulus, size=count)
        exact = sum(int(messages[start : start + BLOCK].sum()) for start in range(0, count, BLOCK))
    said = {name: int(messages.sum(dtype=name)) for name in ("int64", "uint64", "float64")}
    right = {name: one % modulus == exact % modulus for name, one in said.items()}
    return Sums(
        largest,
        n_messages,
        modulus,
        exact / 2**63,
        right | {"blocks": int(add_up(messages, modulus)) == exact % modulus},
    )


# --- messages that are lost or sent twice ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Damage:
    """Rounds in which something happened to the messages: how often the sum was right, and what was refused.

    Attributes
    ----------
    uniform : float
        The p-value of a chi-squared test that the error is uniform over the residues.
    """

    what: str
    refused: bool
    right: int
    repeats: int
    uniform: float

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper-Pearson interval of the chance that the sum is right."""
        found = binomtest(self.right, self.repeats).proportion_ci(CONFIDENCE, method="exact")
        return float(found.low), float(found.high)

    def row(self) -> tuple[object, ...]:
        """For a table: what happened, whether it is refused, right of so many rounds, interval, p-value."""
        low, high = self.interval
        said = "no error" if self.right == self.repeats else self.uniform
        return self.what, self.refused, f"{self.right:,} of {self.repeats:,}", f"{low:.4f} to {high:.4f}", said


def compute_damage(protocol: CloakProtocol, repeats: int, seed: int) -> list[Damage]:
    """Rounds whose shuffled messages arrive whole, or with one lost, one twice, or one lost and another one twice.

    Examples
    --------
    >>> [(one.refused, one.right) for one in compute_damage(CloakProtocol(5, 61, 4, 4), 1000, seed=1)]
    [(False, 1000), (True, 17), (True, 17), (False, 15)]
    """
    check(repeats=repeats, seed=seed)
    rng = np.random.default_rng(seed)
    values = rng.integers(0, protocol.scale + 1, size=(protocol.n_users, repeats))
    seen = shuffler(pool(split(protocol, values, Simulation(rng))), Simulation(rng))
    cases = {
        "nothing": seen,
        "one message lost": seen[:, 1:],
        "one message twice": np.concatenate([seen, seen[:, :1]], axis=1),
        "one lost, another twice": np.concatenate([seen[:, 1:], seen[:, 1:2]], axis=1),
    }
    truth = values.sum(axis=0) % protocol.modulus
    return [_damage(protocol, what, got, truth) for what, got in cases.items()]


def _damage(protocol: CloakProtocol, what: str, messages: Wholes, truth: Wholes) -> Damage:
    errors = (add_up(messages, protocol.modulus) - truth) % protocol.modulus
    counts = np.bincount(errors, minlength=protocol.modulus)
    return Damage(what, _refused(protocol, messages), int(counts[0]), len(truth), float(chisquare(counts).pvalue))


def _refused(protocol: CloakProtocol, messages: Wholes) -> bool:
    try:
        total(protocol, messages)
    except DomainError:
        return True
    return False


# --- values ----------------------------------------------------------------------------------------------------------


def lost_units(grid: int) -> tuple[int, ...]:
    """How many of the points i / grid do not become i: by a double's product, its exact value, ours on the grid.

    Examples
    --------
    >>> lost_units(100), lost_units(10**4)
    ((3, 44, 0), (573, 4994, 0))
    """
    values = np.arange(grid + 1) / grid
    wholes = range(grid + 1)
    double = sum(math.floor(x * grid) != i for x, i in zip(values.tolist(), wholes, strict=True))
    exact = sum(math.floor(Fraction(x) * grid) != i for x, i in zip(values.tolist(), wholes, strict=True))
    protocol = CloakProtocol(2, 2 * grid + 1, grid, 2, rounding="grid")
    ours = scaled(protocol, values, Simulation(np.random.default_rng(0)))
    return double, exact, int((ours != np.arange(grid + 1)).sum())


def lost_rows(grids: Sequence[int]) -> list[tuple[object, ...]]:
    """For a table: a grid, its points, and those that are lost in each way."""
    return [(f"i/{grid}", grid + 1, *lost_units(grid)) for grid in grids]


def admitted(values: list[float], scale: int) -> list[tuple[object, ...]]:
    """What a cast to 64 bits makes of values outside [0, 1], and what this library does; rows for a table.

    Examples
    --------
    >>> admitted([-0.5, 1.5], 100)
    [(-0.5, -50, 'refused'), (1.5, 150, 'refused')]
    """
    protocol = CloakProtocol(2, 2 * scale + 1, scale, 2)
    with np.errstate(invalid="ignore"):
        cast = np.floor(np.array(values) * scale).astype(np.int64)
    return [(value, int(whole), _scaled(protocol, value)) for value, whole in zip(values, cast, strict=True)]


def _scaled(protocol: CloakProtocol, value: float) -> object:
    try:
        return int(scaled(protocol, [value], Simulation(np.random.default_rng(0)))[0])
    except DomainError:
        return "refused"


def poisoned(protocol: CloakProtocol, wanted: float, seed: int) -> tuple[float, float]:
    """Estimates of a round of honest users, and of one in which the last shifts an honest guess to ``wanted``.

    Examples
    --------
    >>> honest, shifted = poisoned(CloakProtocol(1000, 2**40 - 87, 10**4, 4), 0.0, seed=1)
    >>> 400 < honest < 600, shifted < 60
    (True, True)
    """
    check(seed=seed)
    rng = np.random.default_rng(seed)
    values = rng.integers(0, protocol.scale + 1, size=protocol.n_users)
    liar = values.copy()
    liar[-1] += round(wanted * protocol.scale) - protocol.n_users * protocol.scale // 2
    found = [total(protocol, pool(split(protocol, one % protocol.modulus, Simulation(rng)))) for one in (values, liar)]
    honest, shifted = (float(analyze(protocol, one)) for one in found)
    return honest, shifted


def poisoned_rows(protocol: CloakProtocol, wanted: Sequence[float], seed: int) -> list[tuple[str, ...]]:
    """For a table: what the liar wants, and both estimates."""
    return [(f"{one:g}", *(f"{found:.1f}" for found in poisoned(protocol, one, seed))) for one in wanted]
