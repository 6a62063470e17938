r"""Cloak aggregation: every user cuts its value into random shares, which are shuffled and added up.

Public parameters stand in a frozen record; a party is a function whose arguments are all that it may see.  A user
scales its value to a whole number (:func:`scaled`), may add noise (:func:`prerandomize`) and cuts it into :math:`m`
messages that add up to it modulo :math:`N` (:func:`split`); :func:`encode` is all three.  The messages of all users
are put together (:func:`pool`) and shuffled (:func:`shuffler`, :func:`relay`).  The analyzer adds them up
(:func:`total`) and reads the sum (:func:`analyze`, :func:`analyze_centred`, :func:`average`).

What one user sends is not private: its messages add up to its value.  What leaves the shuffler is, and what guarantee
it gives is asked by :func:`account`.

Source: Ghazi, Pagh, Velingker 2019, Algorithms 1 and 2; US20220374542A1.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from flamelib._arrays import Reals, Shape, one_per_user, reals
from flamelib._validate import DomainError, check
from flamelib.amplification.skellam import vector_epsilon
from flamelib.amplification.splitting_sums import polya_sum, thinned_sum
from flamelib.amplification.splitting_users import users_distance
from flamelib.amplification.whole_noise import LARGEST_VARIANCE, shift_budget, skellam_noise
from flamelib.discrete_noise import PolyaShare, SkellamShare, TruncatedLaplace
from flamelib.encoding import clip, floor_of_product, round_exactly
from flamelib.guarantees import Adjacency, ApproxDP
from flamelib.randomness import CACHED, Randomness, Residues, residue_type, residues, whole_numbers

ROUNDINGS = ("floor", "random", "grid")
FINEST_GRID = 2**48


class Noise(Protocol):
    """A law of whole numbers that a user adds, such as those of :mod:`flamelib.discrete_noise`."""

    def sample(self, shape: Shape, randomness: Randomness) -> Residues:
        """Independent draws."""


@dataclass(frozen=True, slots=True)
class CloakProtocol:
    r"""What everybody knows.

    Parameters
    ----------
    n_users : int, at least 2
    modulus : int
        Messages live in {0, ..., modulus - 1}.  Above ``n_users * scale``, so that the sum of values from [0, 1] does
        not wrap around; with noise and the clipping rule, above three times that.
    scale : int, at least 1
        The value :math:`x` is sent as about :math:`x k`.
    n_messages : int, at least 2
        Shares :math:`m` of every value; a single one would be the value itself.
    rounding : {"floor", "random", "grid"}
        How :math:`x k` becomes whole, see :func:`scaled`.
    noise : law of whole numbers, optional
        What a user adds before it splits, by its method ``sample``.
    noise_rate : float in (0, 1]
        Chance that a user adds noise at all.

    Raises
    ------
    DomainError
        Where a parameter is out of its domain, or they do not fit together.

    Examples
    --------
    >>> CloakProtocol(n_users=1000, modulus=2**40 - 87, scale=10**4, n_messages=15).full
    10000000
    """

    n_users: int
    modulus: int
    scale: int
    n_messages: int
    rounding: str = "floor"
    noise: Noise | None = None
    noise_rate: float = 1.0

    def __post_init__(self) -> None:
        shape = check(n_users=self.n_users, modulus=self.modulus, scale=self.scale, n_messages=self.n_messages)
        for name, value in (shape | check(noise_rate=self.noise_rate)).items():
            object.__setattr__(self, name, value)
        if self.modulus <= self.full:
            raise DomainError(f"modulus must be above n_users * scale = {self.full}, got {self.modulus}")
        if self.n_messages < 2:
            raise DomainError("n_messages must be a whole number of at least 2: one message is the value itself")
        if self.rounding not in ROUNDINGS:
            raise DomainError(f"rounding must be one of {', '.join(ROUNDINGS)}, got {self.rounding!r}")
        law = self.noise
        if law is not None and (isinstance(law, type) or not callable(getattr(law, "sample", None))):
            raise DomainError(f"noise must be None or a law with a method sample(shape, randomness), got {law!r}")

    @property
    def full(self) -> int:
        """The scaled sum when every value is 1."""
        return self.n_users * self.scale


# --- before the protocol: from what users hold to [0, 1] --------------------------------------------


def normalise(raw: ArrayLike, largest: float) -> Reals:
    """Values as a share of the largest that is expected; what is below 0 or above it is moved to the nearest end.

    >>> normalise([-3.0, 5.0, 40.0], 20.0).tolist()
    [0.0, 0.25, 1.0]
    """
    return clip(reals("raw", raw) / check(clip_norm=largest)["clip_norm"])


def from_signed(values: ArrayLike, bound: float) -> Reals:
    """Values of [-bound, bound], to which others are moved, as numbers in [0, 1].

    >>> from_signed([-2.0, 0.0, 1.0], 2.0).tolist()
    [0.0, 0.5, 0.75]
    """
    return (np.clip(reals("values", values), -check(clip_norm=bound)["clip_norm"], bound) / bound + 1) / 2


def to_signed(protocol: CloakProtocol, estimate: ArrayLike, bound: float) -> Reals:
    """The sum of signed values from the estimated sum of :func:`from_signed`; all users must have taken part.

    >>> float(to_signed(CloakProtocol(3, 1001, 100, 4), 1.25, 2.0))
    -1.0
    """
    return bound * (2 * np.asarray(estimate, dtype=np.float64) - protocol.n_users)


# --- a user -----------------------------------------------------------------------------------------


def scaled(protocol: CloakProtocol, values: ArrayLike, randomness: Randomness) -> Residues:
    r"""Whole numbers in {0, ..., scale}: what becomes of :math:`x k`, by the protocol's rounding.

    * ``floor``: the largest whole number not above the product of the double :math:`x` and :math:`k`, with no rounding
      in between.  So 0.29 times 100 is 28: the double is a little less than 29/100.
    * ``random``: that, or one more with the chance of what is left: unbiased, but two data sets of one sum no longer
      have one scaled sum.
    * ``grid``: the nearest whole number, for values known to be multiples of :math:`1 / k`; others are refused.

    Parameters
    ----------
    protocol : CloakProtocol
    values : array_like of numbers in [0, 1], any shape
    randomness : Randomness
        Asked by ``random`` only.

    Raises
    ------
    DomainError
        For NaN, infinities, values outside [0, 1] and, with ``grid``, between the points of the grid.

    Examples
    --------
    >>> from flamelib.randomness import Release
    >>> [scaled(CloakProtocol(2, 1001, 100, 4, way), [0.29, 0.5], Release()).tolist() for way in ("floor", "grid")]
    [[28, 50], [29, 50]]
    """
    if protocol.rounding == "floor":
        return floor_of_product(values, protocol.scale)
    if protocol.rounding == "random":
        return round_exactly(values, protocol.scale, lambda chances: randomness.coins(chances, chances.shape))
    numbers, scale = reals("values", values, 0, 1), protocol.scale
    if scale > FINEST_GRID:
        raise DomainError(f"scale must be a whole number in [1, {FINEST_GRID}] for values on the grid, got {scale}")
    nearest = np.rint(numbers * scale)
    off = np.abs(numbers - nearest / scale) > 4 * np.finfo(np.float64).eps
    if off.any():
        raise DomainError(f"values must be multiples of 1 / {scale}, got {numbers[off].flat[0]}")
    return nearest.astype(np.int64)


def prerandomize(protocol: CloakProtocol, wholes: ArrayLike, randomness: Randomness) -> Residues:
    """Residues of whole numbers of any sign, with the noise of those whose coin tells them to add some.

    Parameters
    ----------
    protocol : CloakProtocol
    wholes : array_like of int, any shape
    randomness : Randomness

    Examples
    --------
    >>> from flamelib.randomness import Release
    >>> prerandomize(CloakProtocol(2, 1001, 100, 4), [100, -1], Release()).tolist()
    [100, 1000]
    """
    found = residues(wholes, protocol.modulus)
    if protocol.noise is None:
        return found
    noise = np.zeros(found.shape, dtype=np.int64)
    adds = np.nonzero(randomness.coins(protocol.noise_rate, found.shape)) if protocol.noise_rate < 1 else ...
    noise[adds] = protocol.noise.sample(noise[adds].shape, randomness)
    return residues(found + residues(noise, protocol.modulus), protocol.modulus)


def split(protocol: CloakProtocol, secrets: Residues, randomness: Randomness) -> Residues:
    r"""Shares of every residue: any :math:`m - 1` are independent and uniform, all :math:`m` add up to it.

    Parameters
    ----------
    protocol : CloakProtocol
    secrets : ndarray of residues, shape (users, ...)
    randomness : Randomness

    Returns
    -------
    ndarray of residues, shape (users, ..., n_messages)
        A view of memory in which the messages of a coordinate lie together, so that :func:`pool` copies nothing.

    Examples
    --------
    >>> from flamelib.randomness import Release
    >>> int(split(CloakProtocol(2, 1001, 100, 4), np.array([7, 8]), Release())[1].sum()) % 1001
    8
    """
    secret = np.moveaxis(secrets, 0, -1)
    shares = randomness.uniform(protocol.modulus, (*secret.shape[:-1], protocol.n_messages, secret.shape[-1]))
    others = _partly_reduced(shares[..., :-1, :], protocol.modulus, -2)
    shares[..., -1, :] = residues(secret - others, protocol.modulus)  # in place of what was drawn for it
    return np.moveaxis(shares, -1, 0)


def encode(protocol: CloakProtocol, values: ArrayLike, randomness: Randomness) -> Residues:
    """The messages of every user: scaled, with noise, split.

    Parameters
    ----------
    protocol : CloakProtocol
    values : array_like of numbers in [0, 1], shape (users,) or (users, dimension)
    randomness : Randomness

    Returns
    -------
    ndarray of residues, shape (users, n_messages) or (users, dimension, n_messages)

    Examples
    --------
    >>> from flamelib.randomness import Release
    >>> encode(CloakProtocol(2, 1001, 100, 4), [0.5, 0.25], Release()).shape
    (2, 4)
    """
    wholes = scaled(protocol, values, randomness)
    if wholes.ndim == 0:
        raise DomainError("values must be a list with one entry for each user, got a single value")
    return split(protocol, prerandomize(protocol, wholes, randomness), randomness)


# --- between users and analyzer ---------------------------------------------------------------------


def pool(messages: Residues) -> Residues:
    """The messages of all users together, user for user: what a shuffler receives.

    Parameters
    ----------
    messages : ndarray of shape (users, n_messages) or (users, dimension, n_messages)

    Returns
    -------
    ndarray of shape (users * n_messages,) or (dimension, users * n_messages)
    """
    together = np.moveaxis(messages, 0, -1)
    return together.reshape(*together.shape[:-2], -1)


def shuffler(messages: Residues, randomness: Randomness) -> Residues:
    """Pooled messages in uniformly random order, every coordinate on its own.

    What the output tells is the multiset of messages, and nothing else.

    >>> from flamelib.randomness import Release
    >>> sorted(shuffler(np.array([3, 1, 2]), Release()).tolist())
    [1, 2, 3]
    """
    return randomness.permuted(messages)


def relay(messages: Residues, shufflers: Sequence[Callable[[Residues], Residues]]) -> Residues:
    """Pooled messages after several shufflers in sequence; a single honest one is enough.

    What it hands on depends on the multiset of messages alone, and what later ones make of that tells no more.  Fixed
    orders before and after it leave the order uniformly random.

    >>> relay(np.array([1, 2, 3]), [np.sort, np.flip]).tolist()
    [3, 2, 1]
    """
    for one in shufflers:
        messages = one(messages)
    return messages


# --- the analyzer -----------------------------------------------------------------------------------


def add_up(messages: Residues, modulus: int, axis: int = -1) -> Residues:
    """The sum of residues modulo ``modulus`` along an axis; no sum on the way is too large for its type.

    >>> int(add_up(np.full(3, 2**62 - 1), 2**62))
    4611686018427387901
    """
    return residues(_partly_reduced(messages, modulus, axis), modulus)


def _partly_reduced(messages: Residues, modulus: int, axis: int) -> Residues:
    """A sum below 2^63 that differs by a multiple of the modulus; parts of it are reduced until it is so small."""
    at_once = max(2, (2**63 - 1) // modulus)
    while messages.dtype != object and messages.shape[axis] > at_once:
        starts = np.arange(0, messages.shape[axis], at_once)
        messages = residues(np.add.reduceat(messages, starts, axis=axis), modulus)
    return np.asarray(messages.sum(axis=axis))


def total(protocol: CloakProtocol, messages: ArrayLike) -> Residues:
    """The sum of pooled messages modulo N; refuses what cannot be all messages of all users, and nothing else.

    A single message that was lost, doubled or changed makes the sum uniformly random: only their number can be checked.

    Parameters
    ----------
    protocol : CloakProtocol
    messages : array_like of residues, shape (users * n_messages,) or (dimension, users * n_messages)

    Returns
    -------
    ndarray of residues, shape () or (dimension,)

    Raises
    ------
    DomainError
        Where there are not ``n_messages`` for each of ``n_users``, or one is not in {0, ..., modulus - 1}.

    Examples
    --------
    >>> int(total(CloakProtocol(2, 31, 4, 2), [30, 30, 5, 1]))
    4
    """
    shape, expected = np.shape(messages), protocol.n_users * protocol.n_messages
    if shape[-1:] != (expected,):
        raise DomainError(f"messages must be {expected}, n_messages of each of n_users, got shape {shape}")
    return add_up(_reduced("messages", messages, protocol.modulus), protocol.modulus)


def _reduced(name: str, values: ArrayLike, modulus: int) -> Residues:
    """Residues in their type; other whole numbers are refused."""
    domain = f"whole numbers from 0 to modulus - 1 = {modulus - 1}"
    found = whole_numbers(name, values, domain)
    if found.size and not (found.min() >= 0 and found.max() < modulus):
        raise DomainError(f"{name} must be {domain}")
    return found.astype(residue_type(modulus), copy=False)


def analyze(protocol: CloakProtocol, total: ArrayLike) -> Reals:
    """The estimated sum of values in [0, 1], moved into [0, n_users]: 0 above 2 n k, n from n k to 2 n k.

    Right under noise as long as it stays within n k; near the ends moving makes it biased (:func:`analyze_centred`).

    Parameters
    ----------
    protocol : CloakProtocol
    total : array_like of residues
        Sums modulo N, of any shape.

    Raises
    ------
    DomainError
        Where a total is not in {0, ..., modulus - 1}, or where there is noise and the modulus has no room for it on
        both sides, up to three times ``n_users * scale``.

    Examples
    --------
    >>> analyze(CloakProtocol(2, 31, 4, 2), [3, 8, 9, 16, 17, 30]).tolist()
    [0.75, 2.0, 2.0, 2.0, 0.0, 0.0]
    """
    full = protocol.full
    if protocol.noise is not None and protocol.modulus <= 3 * full:
        raise DomainError(f"modulus must be above 3 * n_users * scale = {3 * full} for the clipping rule with noise")
    z = _reduced("total", total, protocol.modulus)
    one = np.atleast_1d(z)  # without axes, numpy makes machine words of Python's numbers
    return np.asarray(np.where(one > 2 * full, 0, np.minimum(one, full)) / protocol.scale, np.float64).reshape(z.shape)


def analyze_centred(protocol: CloakProtocol, total: ArrayLike) -> Reals:
    """The estimated sum as it is, without bias: residues nearer to N than to n_users * scale are negative.

    >>> analyze_centred(CloakProtocol(2, 31, 4, 2), [3, 9, 19, 20, 30]).tolist()
    [0.75, 2.25, 4.75, -2.75, -0.25]
    """
    z = _reduced("total", total, protocol.modulus)
    return np.asarray(
        _unwrapped(z, (protocol.modulus + protocol.full) // 2, protocol.modulus) / protocol.scale, np.float64
    )


def centred(totals: ArrayLike, modulus: int) -> Residues:
    """Residues as whole numbers around 0.

    >>> centred(np.array([0, 3, 4, 6]), 7).tolist()
    [0, 3, -3, -1]
    """
    return _unwrapped(residues(totals, modulus), modulus // 2, modulus)


def _unwrapped(z: Residues, largest: int, modulus: int) -> Residues:
    """Residues above the largest that is not negative become what they are short of the modulus."""
    one = np.atleast_1d(z)
    return np.where(one > largest, one - modulus, one).reshape(z.shape)


def average(protocol: CloakProtocol, estimate: ArrayLike) -> Reals:
    """The mean of the users' values from the estimated sum.

    >>> float(average(CloakProtocol(2, 31, 4, 2), 1.5))
    0.75
    """
    return np.asarray(estimate, dtype=np.float64) / protocol.n_users


# --- whole rounds -----------------------------------------------------------------------------------


def run(protocol: CloakProtocol, values: ArrayLike, randomness: Randomness) -> float:
    """A round for one number of each user: the estimated sum, by the clipping rule.

    Parameters
    ----------
    protocol : CloakProtocol
    values : array_like of numbers in [0, 1], shape (n_users,)
    randomness : Randomness
        Users and shuffler get sources of their own, spawned from it.

    Examples
    --------
    >>> from flamelib.randomness import Release
    >>> run(CloakProtocol(3, 2**80, 100, 4), [0.5, 0.25, 1.0], Release())
    1.75
    """
    one_per_user("values", np.asarray(values), protocol.n_users)
    users, shuffling = randomness.spawn(2)
    return float(analyze(protocol, total(protocol, shuffler(pool(encode(protocol, values, users)), shuffling))))


def run_vector(protocol: CloakProtocol, rows: ArrayLike, randomness: Randomness) -> Residues:
    """A round for a vector of whole numbers of each user: the sums, each coordinate with a shuffle of its own.

    Coordinates are dealt with a few at a time, in the memory that these need.

    Parameters
    ----------
    protocol : CloakProtocol
    rows : array_like of int, shape (n_users, dimension)
        Whole numbers of any sign, as :func:`scaled` or a sketch makes them; the protocol's noise is added.
    randomness : Randomness
        Users and shuffler get sources of their own, spawned from it.

    Returns
    -------
    ndarray of int, shape (dimension,)
        The sums with the noise, right where they lie between -N/2 and N/2.

    Examples
    --------
    >>> from flamelib.randomness import Release
    >>> run_vector(CloakProtocol(3, 1001, 10, 4), [[1, -10], [2, 5], [3, 0]], Release()).tolist()
    [6, -5]
    """
    domain = f"whole numbers, a row for each of {protocol.n_users} users"
    whole = whole_numbers("rows", rows, domain)
    if whole.ndim != 2 or len(whole) != protocol.n_users:
        raise DomainError(f"rows must be {domain}, got shape {whole.shape}")
    users, shuffling = randomness.spawn(2)
    at_once = 1 + CACHED // (protocol.n_users * protocol.n_messages)
    sums: list[Residues] = [np.empty(0, dtype=residue_type(protocol.modulus))]
    for start in range(0, whole.shape[1], at_once):
        noisy = prerandomize(protocol, whole[:, start : start + at_once], users)
        sums.append(total(protocol, shuffler(pool(split(protocol, noisy, users)), shuffling)))
    return centred(np.concatenate(sums), protocol.modulus)


def stream(protocol: CloakProtocol, blocks: Iterable[ArrayLike], randomness: Randomness) -> Residues:
    """The total of values that come block by block, in the memory of one block's messages.

    It does not depend on the order of the messages: whoever simulates estimates only needs no shuffler, and here is
    none.  Privacy does need one, so this is no release of anything.

    Parameters
    ----------
    protocol : CloakProtocol
    blocks : iterable of array_like of numbers in [0, 1], shape (users of the block,)
        Some 16384 users at a time are quickest.
    randomness : Randomness

    Returns
    -------
    ndarray of one residue, shape ()
        What :func:`analyze` and :func:`analyze_centred` read.

    Raises
    ------
    DomainError
        Where the blocks do not hold ``n_users`` in all.

    Examples
    --------
    >>> from flamelib.randomness import Simulation
    >>> protocol = CloakProtocol(4, 1001, 100, 4)
    >>> float(analyze(protocol, stream(protocol, [[0.5, 0.5], [0.25, 1.0]], Simulation(np.random.default_rng(0)))))
    2.25
    """
    sums, n_seen = [], 0
    for block in blocks:
        messages = encode(protocol, block, randomness)
        sums.append(add_up(pool(messages), protocol.modulus))
        n_seen += len(messages)
    if n_seen != protocol.n_users:
        raise DomainError(f"blocks must hold one value for each of n_users = {protocol.n_users}, got {n_seen}")
    return add_up(np.stack(sums), protocol.modulus)


# --- what is guaranteed -----------------------------------------------------------------------------


class Guarantees(NamedTuple):
    """What the output of the shuffler guarantees, under two neighbour relations; ``None`` where nothing is known."""

    one_user: ApproxDP | None
    equal_sums: ApproxDP | None


def account(protocol: CloakProtocol, delta: float, colluding: int = 0) -> Guarantees:
    r"""The guarantees of a round for one number of each user (upper bounds).

    For data sets of equal scaled sums what the shuffler sends differs by the distance :math:`2^{-\sigma}` of
    :func:`~flamelib.amplification.splitting_users.users_distance` at most: epsilon 0, that delta; not with random
    rounding, which changes the sum.  For the change of one user's value the sum needs noise: an epsilon of which is
    known that :math:`\delta_{sum}(\varepsilon) + (1 + e^\varepsilon) 2^{-\sigma} \le \delta`.

    Parameters
    ----------
    protocol : CloakProtocol
    delta : float in [0, 1]
        Of the guarantee for one user.
    colluding : int, at most n_users - 2
        Users who tell what they know, or whose noise is missing.

    Raises
    ------
    DomainError
        Where no epsilon is known at this delta; more messages or a larger delta are needed.

    Examples
    --------
    >>> noise = PolyaShare(1000, math.exp(-1e-4))
    >>> found = account(CloakProtocol(1000, 3 * 10**7 + 1, 10**4, 12, noise=noise), delta=1e-6)
    >>> round(found.one_user.epsilon, 4), found.equal_sums.delta < 2**-40
    (1.0, True)
    """
    given = check(delta=delta, colluding=colluding)
    delta, honest = given["delta"], protocol.n_users - given["colluding"]
    if honest < 2:
        raise DomainError(f"colluding must be a whole number in [0, {protocol.n_users - 2}], got {colluding}")
    distance = float(users_distance(protocol.modulus, protocol.n_messages, honest))
    alike = ApproxDP(0.0, distance, Adjacency.SUM_PRESERVING) if protocol.rounding != "random" else None
    if protocol.noise is None:
        return Guarantees(None, alike)
    epsilon = _sum_epsilon(protocol, delta / 2, honest)
    shares = (1 + math.exp(epsilon)) * distance if epsilon < 700 else math.inf
    if shares > delta / 2:
        raise DomainError(f"delta must be larger, or n_messages: shares tell {shares:.3g} at the epsilon of half of it")
    epsilon = min(epsilon, _sum_epsilon(protocol, (delta - shares) * (1 - 1e-12), honest))
    return Guarantees(ApproxDP(epsilon, delta, Adjacency.REPLACE_ONE), alike)


def _sum_epsilon(protocol: CloakProtocol, delta: float, honest: int) -> float:
    """Epsilon of the sum alone, with the noise of the honest users only."""
    noise, n_users, scale = protocol.noise, protocol.n_users, protocol.scale
    missing = n_users - honest
    if isinstance(noise, TruncatedLaplace):
        given = (n_users, scale, noise.decay, protocol.noise_rate)
        return thinned_sum(*given, delta=delta, colluding=missing, modulus=noise.modulus)
    if protocol.noise_rate < 1 or not isinstance(noise, PolyaShare | SkellamShare):
        raise DomainError("noise must be TruncatedLaplace, or shares that every user adds, to be accounted for")
    if isinstance(noise, SkellamShare):
        variance = noise.variance * honest / noise.n_users
        if variance <= LARGEST_VARIANCE:
            return shift_budget(skellam_noise(variance), scale, delta=delta)
        return vector_epsilon(1, scale, variance, 1, delta)
    if noise.n_users > n_users:
        raise DomainError(f"noise must be shares for at most n_users = {n_users}, got {noise.n_users}")
    planned = max(noise.n_users, 2)  # a whole share each is more than two halves
    return polya_sum(n_users, scale, noise.decay, delta=delta, colluding=n_users - planned, missing=missing)
