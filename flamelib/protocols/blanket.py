"""The two protocols of the privacy blanket: a private histogram and a private sum, one message a user.

The :func:`user` sees its own value and randomness, the :func:`shuffler` messages and a permutation, the
:func:`analyzer` shuffled messages.  :func:`run` plays all of them; :func:`account` computes the guarantee from the
record and sees no data.

Source: Balle, Bell, Gascon, Nissim 2019, Algorithms 1 to 3, Theorem 3.1, Section 5.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from flamelib.accounting.shuffling.accuracy import summation_plan
from flamelib.accounting.shuffling.calibration import certified_summation_plan, least_blanket_mass
from flamelib.accounting.shuffling.closed_form import histogram_blanket_mass, histogram_epsilon
from flamelib.accounting.shuffling.numerical import blanket_divergence
from flamelib.core.arrays import Reals, Wholes, one_per_user, reals, wholes
from flamelib.core.guarantees import Adjacency, ApproxDP
from flamelib.core.vocabulary import DomainError, check, keep
from flamelib.mechanisms.encoding import round_randomly
from flamelib.mechanisms.randomizers import KaryResponse
from flamelib.mechanisms.shuffling import shuffle

Accounting = Literal["theorem", "blanket"]


@dataclass(frozen=True, slots=True)
class HistogramProtocol:
    r"""Every user sends its bucket, or with probability ``blanket_mass``, the paper's :math:`\gamma`, a uniform one."""

    n_users: int
    n_buckets: int
    blanket_mass: float

    def __post_init__(self) -> None:
        keep(self, **check(n_users=self.n_users, n_buckets=self.n_buckets))
        keep(self, blanket_mass=_open_mass(self.blanket_mass))


@dataclass(frozen=True, slots=True)
class SummationProtocol:
    """Every user rounds a value in [0, 1] to {0, ..., n_levels}, and sends it as in a histogram of these."""

    n_users: int
    n_levels: int
    blanket_mass: float

    def __post_init__(self) -> None:
        keep(self, **check(n_users=self.n_users, n_levels=self.n_levels))
        keep(self, blanket_mass=_open_mass(self.blanket_mass))

    @property
    def n_buckets(self) -> int:
        """Size of the alphabet of messages, one more than the levels."""
        return self.n_levels + 1


Protocol = HistogramProtocol | SummationProtocol


def randomizer(protocol: Protocol) -> KaryResponse:
    """The local randomizer of a user: k-ary response on the alphabet of messages."""
    return KaryResponse.from_blanket_mass(protocol.n_buckets, protocol.blanket_mass)


def user(protocol: Protocol, values: ArrayLike, rng: np.random.Generator) -> Wholes:
    """The message of each user in {0, ..., n_buckets - 1}, from its own bucket or number in [0, 1] alone."""
    if isinstance(protocol, SummationProtocol):
        values = round_randomly(values, protocol.n_levels, rng)
    return randomizer(protocol).sample(values, rng)


def shuffler(messages: Wholes, rng: np.random.Generator) -> Wholes:
    """The messages in uniformly random order: their senders are forgotten."""
    return shuffle(messages, rng)


def analyzer(protocol: Protocol, messages: ArrayLike) -> Reals | float:
    r"""Unbiased estimate from the multiset of messages.

    Histogram: counts :math:`(\#\{y = j\} - n\gamma/k) / (1 - \gamma)`, shape ``(n_buckets,)``; they may be
    negative, and add up to ``n_users``.  Sum: :math:`(\sum y / k - n\gamma/2) / (1 - \gamma)`.
    """
    received = wholes("messages", messages, 0, protocol.n_buckets - 1)
    one_per_user("messages", received, protocol.n_users)
    mass, kept = protocol.blanket_mass, 1 - protocol.blanket_mass
    if isinstance(protocol, SummationProtocol):
        return (float(received.sum()) / protocol.n_levels - protocol.n_users * mass / 2) / kept
    counts = np.bincount(received, minlength=protocol.n_buckets)
    return np.asarray((counts - protocol.n_users * mass / protocol.n_buckets) / kept)


def run(protocol: Protocol, values: ArrayLike, rng: np.random.Generator) -> Reals | float:
    """One execution: what the analyzer publishes about these values, shape ``(n_users,)``.

    Users and shuffler get generators of their own, spawned from ``rng``.
    """
    one_per_user("values", np.asarray(values), protocol.n_users)
    for_users, for_shuffler = rng.spawn(2)
    return analyzer(protocol, shuffler(user(protocol, values, for_users), for_shuffler))


def account(protocol: Protocol, delta: float) -> ApproxDP:
    """The guarantee of what the shuffler forwards: the least certified epsilon at this delta (upper bound).

    It is the lesser of the closed form of Theorem 3.1 and of the certified blanket divergence, which is never above the
    local budget.  Rounding before the randomizer is done by each user on its own,
    so by joint convexity the bounds of the k-ary response on ``n_buckets`` letters hold for the sum too.
    """
    delta = check(delta=delta)["delta"]
    closed = histogram_epsilon(protocol.n_users, protocol.n_buckets, protocol.blanket_mass, delta)
    blanket = float(blanket_divergence(randomizer(protocol), protocol.n_users, delta=delta))
    return ApproxDP(min(closed, blanket), delta, Adjacency.REPLACE_ONE)


def private_histogram(
    n_users: int, n_buckets: int, epsilon: float, delta: float, accounting: Accounting = "theorem"
) -> HistogramProtocol:
    """The histogram protocol with the least noise that this accounting allows at (epsilon, delta), replace-one.

    "theorem" is Theorem 3.1, for ``epsilon`` in (0, 1]: it is refused where it asks for a mass of 1 or more (too few
    users).  "blanket" is the least blanket mass found whose certified blanket divergence is at most ``delta``.
    """
    mass = _calibrated_mass(n_users, n_buckets, epsilon, delta, accounting)
    return HistogramProtocol(n_users, n_buckets, mass)


def private_sum(
    n_users: int, epsilon: float, delta: float, n_levels: int | None = None, accounting: Accounting = "theorem"
) -> SummationProtocol:
    """The summation protocol with the least noise that this accounting allows at (epsilon, delta), as in
    :func:`private_histogram` for an alphabet of ``n_levels + 1``.

    Left out, ``n_levels`` is the number with the least worst-case error (with "blanket", to first order in the mass).
    """
    if n_levels is None:
        plan = summation_plan if _known(accounting) == "theorem" else certified_summation_plan
        n_levels = plan(n_users, epsilon, delta).n_levels
    levels = check(n_levels=n_levels)["n_levels"]
    return SummationProtocol(n_users, levels, _calibrated_mass(n_users, levels + 1, epsilon, delta, accounting))


def count_variance(protocol: HistogramProtocol, true_counts: ArrayLike) -> Reals:
    r"""Exact variance of each estimated count, which is its mean squared error, for the estimates are unbiased.

    .. math:: \frac{c\,p(1 - p) + (n - c)\,q(1 - q)}{(1 - \gamma)^2}, \qquad q = \frac\gamma k,\; p = 1 - \gamma + q

    with :math:`c` the ``true_counts``.
    """
    counts = reals("true_counts", true_counts, 0, protocol.n_users)
    stray = protocol.blanket_mass / protocol.n_buckets
    right = 1 - protocol.blanket_mass + stray
    variance = counts * right * (1 - right) + (protocol.n_users - counts) * stray * (1 - stray)
    return np.asarray(variance / (1 - protocol.blanket_mass) ** 2)


def _calibrated_mass(n_users: int, n_buckets: int, epsilon: float, delta: float, accounting: str) -> float:
    if _known(accounting) == "theorem":
        return float(histogram_blanket_mass(n_users, n_buckets, epsilon, delta))
    return least_blanket_mass(n_users, n_buckets, epsilon, delta)


def _known(accounting: str) -> str:
    if accounting in ("theorem", "blanket"):
        return accounting
    raise DomainError(f"accounting must be one of theorem, blanket, got {accounting!r}")


def _open_mass(blanket_mass: float) -> float:
    found: float = check(blanket_mass=blanket_mass)["blanket_mass"]
    if found == 1:
        raise DomainError("blanket_mass must be a number in (0, 1): at 1 no message depends on its input")
    return found
