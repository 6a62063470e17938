"""What an algorithm as printed does when it is carried out: the printed alphabet, messages permuted as wholes.

Source: Liu, Cao, Chen, Guo, Yoshikawa 2021, Algorithms 1 to 3.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from flamelib.core.vocabulary import DomainError, check
from flamelib.figures.blanket_audit import bias_of_alphabet, level_table
from flamelib.mechanisms.coordinates import random_subsets
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame

# --- Algorithm 1 ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Alphabet:
    """Rounding to {0..b} with replacements from one alphabet.

    Attributes
    ----------
    zero_from_zero, zero_from_one : float
        Chance of the message 0 for the input 0 and for the input 1.
    budget : float
        Largest log-ratio of the chances of a message under two inputs; what the randomizer really keeps.
    bias : float
        Of equation (1)'s sum of ``n_users`` values.
    """

    zero_from_zero: float
    zero_from_one: float
    budget: float
    bias: float


def compute_alphabet(n_levels: int, epsilon0: float, n_users: int, printed: bool) -> Alphabet:
    """Algorithm 1 as printed (replacements from 1..b) or corrected (from 0..b), its noise set for ``epsilon0``.

    >>> [round(compute_alphabet(4, 1.0, 1000, printed).budget, 12) for printed in (True, False)]
    [inf, 1.0]
    """
    check(n_levels=n_levels, epsilon0=epsilon0, n_users=n_users)
    letters, lowest = (n_levels, 1) if printed else (n_levels + 1, 0)
    mass = letters / (math.expm1(epsilon0) + letters)
    table = level_table(n_levels, mass, lowest)
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    reach = np.where(table.max(axis=0) > 0, logs.max(axis=0) - logs.min(axis=0), 0.0)
    bias = bias_of_alphabet(n_users, n_levels, mass, lowest)
    return Alphabet(float(table[0, 0]), float(table[-1, 0]), float(reach.max()), bias)


def alphabet_rows(printed: Alphabet, corrected: Alphabet, epsilon0: float) -> list[tuple[object, ...]]:
    """For a table: what both do, and the local budget that was asked for."""
    return [
        ("chance of the message 0 from the input 0", printed.zero_from_zero, corrected.zero_from_zero),
        ("chance of the message 0 from the input 1", printed.zero_from_one, corrected.zero_from_one),
        ("local budget asked for", epsilon0, epsilon0),
        ("local budget kept", printed.budget, corrected.budget),
        ("bias of equation (1), in users", printed.bias, corrected.bias),
    ]


# --- whole messages ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Linked:
    """How often a whole message with the victim's top coordinates was found.

    Attributes
    ----------
    found, mistaken : int
        Rounds with such a message, the victim holding these coordinates and holding others.
    repeats : int
        Rounds of each kind.
    chance : float
        Probability that another user's or a dummy's message carries the set; exact where updates are symmetric.
    """

    found: int
    mistaken: int
    repeats: int
    chance: float

    def delta(self, epsilon: float) -> float:
        """What is certainly given away at a budget: the list is there surely, or by that chance."""
        return max(0.0, 1 - math.exp(epsilon) * self.chance)

    def rows(self) -> list[tuple[object, ...]]:
        """For a table."""
        return [
            ("rounds of each kind", self.repeats),
            ("list found, victim holds it", self.found),
            ("list found, victim does not", self.mistaken),
            ("chance of the latter", self.chance),
            ("delta at epsilon = 1", self.delta(1.0)),
        ]


def compute_linked(n_users: int, dimension: int, kept: int, padded: int, repeats: int, seed: int) -> Linked:
    """Run SS-Topk's users, permute their messages as wholes among dummy vectors, look for the victim's coordinates.

    The other users' updates are Gaussian, so their top coordinates are any of the sets with equal chance; a dummy
    vector has random coordinates, as in Algorithm 3.

    Examples
    --------
    >>> compute_linked(10, 12, 3, 5, repeats=20, seed=0).found
    20
    """
    given = check(n_users=n_users, dimension=dimension, kept=kept, padded=padded, repeats=repeats, seed=seed)
    if 2 * given["kept"] > dimension or kept % 1:
        raise DomainError(f"kept must be a whole number of at most half of dimension = {dimension}, got {kept!r}")
    protocol = flame.TopkProtocol(n_users, dimension, 1.0, LaplaceNoise(1.0), kept, padded)
    look = partial(_carried, protocol, rng=np.random.default_rng(seed))
    found, mistaken = (sum(look(here) for _ in range(repeats)) for here in (True, False))
    vectors = _dummy_vectors(protocol) + n_users - 1
    return Linked(found, mistaken, repeats, -math.expm1(vectors * math.log1p(-1 / math.comb(dimension, kept))))


def _dummy_vectors(protocol: flame.TopkProtocol) -> int:
    return protocol.dimension * protocol.padded // protocol.kept - protocol.n_users


def _carried(protocol: flame.TopkProtocol, here: bool, rng: np.random.Generator) -> bool:
    """Whether one of the permuted messages lists the first coordinates, which the victim holds only if ``here``."""
    kept, dimension = protocol.kept, protocol.dimension
    updates = rng.normal(size=(protocol.n_users, dimension))
    updates[0] = np.roll(np.arange(dimension) < kept, 0 if here else kept)
    lists = flame.user(protocol, updates, rng).places.reshape(-1, kept)
    count = _dummy_vectors(protocol)
    dummies = random_subsets(np.full(count, kept), np.zeros((count, dimension), dtype=bool), rng)
    lists = rng.permutation(np.concatenate([lists, np.nonzero(dummies)[1].reshape(-1, kept)]))
    return bool((lists == np.arange(kept)).all(axis=1).any())
