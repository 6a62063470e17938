r"""Statistics of a crowd by cloak aggregation: a linear sketch of every user's item, every counter summed on its own.

A :class:`SketchRelease` is what everybody knows: the sketch, how many users, and how much noise.  Counters are whole
numbers of any sign; a residue above half the modulus is read as negative, and the modulus is large enough for that, so
the clipping rule of the scalar protocol is not used.

There are two observers and two guarantees.  Whoever sees the output of the shuffler sees one bag of messages for each
counter: bags of two crowds whose tables are equal are within total variation :math:`2^{-\sigma}`, all counters
together.  Without noise the table is published exactly, and nothing else is guaranteed.  With noise, replacing one
user's item costs epsilon, and no delta, to whoever sees the table only; whoever sees the bags pays
:math:`\delta = (1 + e^\varepsilon) 2^{-\sigma}` besides.  The budget is split over all rows and levels that an item
touches: each counter gets discrete Laplace noise of ratio :math:`e^{-\varepsilon / \Delta}`, where :math:`\Delta` is
the sketch's sensitivity, as the sum of the shares of Pólya's law of all users who do not collude.  Releases of several
sketches about the same users compose: epsilons and deltas add up.

Source: Ghazi, Pagh, Velingker 2019, Section 1 (applications); Balle, Bell, Gascon, Nissim 2020 (split-and-mix, Pólya).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from flamelib.accounting.noise.discrete_laplace import crowded_reach
from flamelib.accounting.splitting.lemmas import bits_sent
from flamelib.accounting.splitting.n_user_bounds import least_messages
from flamelib.core.arrays import Reals, Wholes, one_per_user, wholes
from flamelib.core.guarantees import Adjacency, ApproxDP
from flamelib.core.vocabulary import DomainError, check, honest, keep
from flamelib.mechanisms.integers.modular import add_up, centred
from flamelib.mechanisms.integers.noise import PolyaShare
from flamelib.mechanisms.integers.randomness import Randomness
from flamelib.mechanisms.sketches.linear import Sketch, Table, contributions
from flamelib.mechanisms.sketches.support import WeightedCounting
from flamelib.protocols.cloak import CloakProtocol, pool, prerandomize, split

_WRAP_BITS = 60  # a counter goes around the modulus with a probability of 2^-60 at most
_USERS_AT_ONCE = 1000  # whose messages are in memory together


@dataclass(frozen=True, slots=True)
class SketchRelease:
    r"""What everybody knows of a release.

    ``epsilon`` is the central budget of the whole table; left out, no noise is added.  ``security_bits`` is
    :math:`\sigma`, for all counters together.  ``colluding`` users may tell all they know: the noise is planned without
    their shares, so its shares are ``surplus`` times as many while those users add theirs too.
    """

    sketch: Sketch
    n_users: int
    epsilon: float | None = None
    security_bits: float = 40.0
    colluding: int = 0

    def __post_init__(self) -> None:
        keep(self, **check(n_users=self.n_users, security_bits=self.security_bits, colluding=self.colluding))
        if self.epsilon is not None:
            keep(self, **check(epsilon=self.epsilon))
        if self.epsilon == 0:
            raise DomainError("epsilon must be a number above 0, or left out where no noise is wanted, got 0")
        if self.residues and self.epsilon is not None:
            raise DomainError("epsilon must be left out for random weights: noise would drown which buckets are empty")
        honest(self.n_users, self.colluding)
        if self.epsilon is not None:
            _decay(self.epsilon, self.sketch.sensitivity)

    @property
    def residues(self) -> bool:
        """Whether counters are residues of the sketch's own prime, not numbers with a sign."""
        return isinstance(self.sketch, WeightedCounting)

    @property
    def counters(self) -> int:
        """How many sums are aggregated."""
        return math.prod(self.sketch.shape)

    @property
    def decay(self) -> float:
        r"""Ratio :math:`p = e^{-\varepsilon / \Delta}` of the noise on each counter, rounded up; 0 without noise."""
        return 0.0 if self.epsilon is None else _decay(self.epsilon, self.sketch.sensitivity)

    @property
    def surplus(self) -> float:
        """Variance of the noise of all users over the one that is needed; 1 where nobody is expected to collude."""
        return self.n_users / honest(self.n_users, self.colluding)

    @property
    def noise_variance(self) -> float:
        """Variance of the noise on each counter, the shares of all users together."""
        return 2 * self.decay / (1 - self.decay) ** 2 * self.surplus

    @property
    def room(self) -> int:
        """A size that no counter's noise exceeds, except with a probability of at most 2^-60."""
        if self.epsilon is None:
            return 0
        return crowded_reach(self.decay, 2.0**-_WRAP_BITS / self.counters, self.surplus)

    @property
    def modulus(self) -> int:
        """The least odd number for which every counter with its noise is read with its sign; or the sketch's prime."""
        if isinstance(self.sketch, WeightedCounting):
            return self.sketch.modulus
        return 2 * (self.n_users * self.sketch.bound + self.room) + 1

    @property
    def n_messages(self) -> int:
        """Messages of each user for each counter: the fewest that give all counters ``security_bits``."""
        bits = self.security_bits + math.log2(self.counters) + 1e-9
        return _messages(bits, self.n_users, self.modulus, self.colluding)

    @property
    def bits(self) -> int:
        """What a user sends: every counter, also where its item adds nothing."""
        return bits_sent(self.modulus, self.n_messages, self.counters)

    @property
    def protocol(self) -> CloakProtocol:
        """The protocol of each counter."""
        helpers = honest(self.n_users, self.colluding)
        noise = None if self.epsilon is None else PolyaShare(helpers, self.decay)
        return CloakProtocol(self.n_users, self.modulus, 1, self.n_messages, "grid", noise)

    @property
    def guarantee(self) -> ApproxDP:
        """What holds for the output of the shuffler, from above; its adjacency says for which two crowds."""
        if self.epsilon is None:
            return ApproxDP(0.0, min(1.0, 2.0**-self.security_bits), Adjacency.SUM_PRESERVING)
        delta = (1 + math.exp(min(self.epsilon, 700.0))) * 2.0**-self.security_bits
        return ApproxDP(self.epsilon, min(1.0, delta * (1 + 1e-12)), Adjacency.REPLACE_ONE)


_messages = cache(least_messages)


def _decay(epsilon: float, sensitivity: int) -> float:
    """Rounded up twice, so that rounding never costs privacy; refused where it is 1 or 0 to the computer."""
    found = math.nextafter(math.nextafter(math.exp(-epsilon / sensitivity), 1), 1)
    if not 1e-300 < found < 1:
        raise DomainError(f"epsilon over the sensitivity {sensitivity} must be a number in [1e-15, 690], got {epsilon}")
    return found


def collect(release: SketchRelease, items: ArrayLike, randomness: Randomness) -> Wholes:
    """The table by the protocol itself: every user's vector, with its share of noise, split and added up modulo N.

    Users come in blocks, in constant memory.  Sums do not depend on the order of messages, so nothing is shuffled here;
    :func:`flamelib.protocols.cloak.run_vector` is the same with the shuffler.
    """
    protocol, sums = release.protocol, np.zeros(release.counters, dtype=np.int64)
    for block in _blocks(release, items):
        residues = prerandomize(protocol, contributions(release.sketch, block), randomness)
        sums = (sums + add_up(pool(split(protocol, residues, randomness)), protocol.modulus)) % protocol.modulus
    read = sums if release.residues else centred(sums, protocol.modulus)
    return np.asarray(read).reshape(release.sketch.shape)


def _blocks(release: SketchRelease, items: ArrayLike) -> Iterator[Wholes]:
    held = wholes("items", items, 0, 2**62)
    one_per_user("items", held, release.n_users)
    return (held[start : start + _USERS_AT_ONCE] for start in range(0, release.n_users, _USERS_AT_ONCE))


def simulate(release: SketchRelease, table: Table, rng: np.random.Generator) -> Wholes:
    """A table with the law of what :func:`collect` gives, without any messages: all noise is added at once.

    For experiments only: the law is that of all shares together, at the resolution of doubles, and nothing wraps.  Of
    one crowd :func:`flamelib.mechanisms.sketches.linear.direct_table` gives the table for many releases.
    """
    shape = np.shape(table)
    if release.epsilon is None:
        return np.array(table, dtype=np.int64)
    success, surplus, size = 1 - release.decay, release.surplus, (2, *shape)
    first, second = rng.negative_binomial(surplus, success, size) if surplus > 1 else rng.geometric(success, size)
    return np.asarray(table + first - second, dtype=np.int64)


def shannon(counts: ArrayLike) -> float:
    """Entropy of frequencies in nats."""
    held = wholes("counts", counts, 0, 2**53)
    shares: Reals = held[held > 0] / held.sum()
    return float(-(shares * np.log(shares)).sum())


def median_noise_std(decay: float, rows: int) -> float:
    """Standard deviation of the median of an odd number of discrete Laplace numbers: a sum over binomial tails (value).

    Examples
    --------
    >>> round(median_noise_std(0.5, 1) ** 2, 6), median_noise_std(0.5, 3) < median_noise_std(0.5, 1)
    (4.0, True)
    """
    size = np.arange(math.ceil(40 / -math.log(decay)) + 1)
    beyond = betainc(rows // 2 + 1, rows - rows // 2, decay ** (size + 1) / (1 + decay))  # of more than half of them
    return math.sqrt(float(2 * ((2 * size + 1) * beyond).sum()))
