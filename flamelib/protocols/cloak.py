"""Cloak aggregation: every user cuts its value into random shares, which are shuffled and added up.

* A user sees its own value.  It scales it to a whole number (:func:`scaled`), may add noise (:func:`prerandomize`) and
  cuts it into :math:`m` messages that add up to it modulo :math:`N` (:func:`split`); :func:`encode` is all three.
* The shufflers see the messages of all users, put together (:func:`pool`), and hand them on in random order
  (:func:`shuffler`, :func:`relay`).
* The analyzer sees messages without senders.  It adds them up (:func:`total`) and reads the sum (:func:`analyze`,
  :func:`analyze_centred`, :func:`average`, :func:`to_signed`).

:func:`run` is a round for one number of each user, :func:`run_vector` one for a vector.  What one user sends is not
private: its messages add up to its value.  What leaves the shuffler is, by the guarantee of :func:`account`.

Source: Ghazi, Pagh, Velingker 2019, Algorithms 1 and 2, Lemma 5; US20220374542A1.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from flamelib.accounting.noise.skellam import vector_epsilon
from flamelib.accounting.noise.sums import polya_sum, thinned_sum
from flamelib.accounting.noise.whole_numbers import LARGEST_VARIANCE, shift_budget, skellam_noise
from flamelib.accounting.splitting.n_user_bounds import users_distance
from flamelib.accounting.splitting.pairwise_swaps import shares_delta
from flamelib.core.arrays import Reals, Shape, one_per_user
from flamelib.core.guarantees import Adjacency, ApproxDP
from flamelib.core.vocabulary import DomainError, check, keep
from flamelib.mechanisms.encoding import floor_of_product, grid_multiples, round_exactly
from flamelib.mechanisms.integers.modular import (
    Residues,
    add_up,
    centred,
    congruent_sum,
    reduced,
    residue_type,
    residues,
    signed,
    whole_numbers,
)
from flamelib.mechanisms.integers.noise import PolyaShare, SkellamShare, TruncatedLaplace
from flamelib.mechanisms.integers.randomness import CACHED, Randomness, Release

SEED_BYTES = 32  # of a seed: a key of ChaCha20


class Noise(Protocol):
    """A law of whole numbers that a user adds, such as those of :mod:`flamelib.mechanisms.integers.noise`."""

    def sample(self, shape: Shape, randomness: Randomness) -> Residues:
        """Independent draws."""


@dataclass(frozen=True, slots=True)
class CloakProtocol:
    """What everybody knows.

    Parameters
    ----------
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
        What a user adds before it splits.
    noise_rate : float in (0, 1]
        Probability that a user adds noise at all.
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
        keep(self, **shape, **check(rounding=self.rounding, noise_rate=self.noise_rate))
        if self.modulus <= self.full:
            raise DomainError(f"modulus must be above n_users * scale = {self.full}, got {self.modulus}")
        if self.n_messages < 2:
            raise DomainError("n_messages must be a whole number of at least 2: one message is the value itself")
        law = self.noise
        if law is not None and (isinstance(law, type) or not callable(getattr(law, "sample", None))):
            raise DomainError(f"noise must be None or a law with a method sample(shape, randomness), got {law!r}")

    @property
    def full(self) -> int:
        """The scaled sum when every value is 1."""
        return self.n_users * self.scale


# --- a user -----------------------------------------------------------------------------------------


def scaled(protocol: CloakProtocol, values: ArrayLike, randomness: Randomness) -> Residues:
    """Whole numbers in {0, ..., scale}: what becomes of :math:`x k`, :math:`x` in [0, 1], by the protocol's rounding.

    * ``floor``: the largest whole number not above the product of the double :math:`x` and :math:`k`, with no rounding
      in between.  So 0.29 times 100 is 28: the double is a little less than 29/100.
    * ``random``: that number, or one more with the fractional part as probability: unbiased, but two data sets of equal
      sum no longer have equal scaled sums.
    * ``grid``: the nearest whole number, for values known to be multiples of :math:`1 / k`; others are refused.
    """
    if protocol.rounding == "floor":
        return floor_of_product(values, protocol.scale)
    if protocol.rounding == "random":
        return round_exactly(values, protocol.scale, lambda parts: randomness.coins(parts, parts.shape))
    return grid_multiples(values, protocol.scale)


def prerandomize(protocol: CloakProtocol, wholes: ArrayLike, randomness: Randomness) -> Residues:
    """Residues of whole numbers of any sign, with the noise of those whose coin tells them to add some."""
    found = residues(wholes, protocol.modulus)
    if protocol.noise is None:
        return found
    noise = np.zeros(found.shape, dtype=np.int64)
    adds = np.nonzero(randomness.coins(protocol.noise_rate, found.shape)) if protocol.noise_rate < 1 else ...
    noise[adds] = protocol.noise.sample(noise[adds].shape, randomness)
    return residues(found + residues(noise, protocol.modulus), protocol.modulus)


def split(protocol: CloakProtocol, secrets: Residues, randomness: Randomness) -> Residues:
    """Shares of every residue: any :math:`m - 1` are independent and uniform, all :math:`m` add up to it.

    From shape (users, ...) to (users, ..., n_messages): a view of memory in which the messages of a coordinate lie
    together, so that :func:`pool` copies nothing.
    """
    secret = np.moveaxis(secrets, 0, -1)
    shares = randomness.uniform(protocol.modulus, (*secret.shape[:-1], protocol.n_messages, secret.shape[-1]))
    others = congruent_sum(shares[..., :-1, :], protocol.modulus, axis=-2)
    shares[..., -1, :] = residues(secret - others, protocol.modulus)  # in place of what was drawn for it
    return np.moveaxis(shares, -1, 0)


def share_of_seed(protocol: CloakProtocol, seed: bytes, dimension: int) -> Residues:
    """The vector of shares that a seed of 32 random bytes stands for, by ChaCha20; shape (dimension,)."""
    if len(seed) != SEED_BYTES:
        raise DomainError(f"seed must be {SEED_BYTES} bytes, got {len(seed)}")
    blocks = count()
    keys = Release(lambda _: sha256(seed + next(blocks).to_bytes(8, "big")).digest())
    return keys.uniform(protocol.modulus, (dimension,))


def split_by_seeds(protocol: CloakProtocol, secret: Residues, seeds: Sequence[bytes]) -> Residues:
    """What one user sends beside :math:`m - 1` seeds: the shares of its vector that are missing; shape (dimension,).

    The shuffler expands the seeds (:func:`share_of_seed`) and shuffles each coordinate on its own; seeds that are
    shuffled themselves hide nobody.
    """
    if len(seeds) != protocol.n_messages - 1 or len(set(seeds)) < len(seeds):
        raise DomainError(f"seeds must be {protocol.n_messages - 1} different ones, one less than n_messages")
    others = np.stack([share_of_seed(protocol, seed, len(secret)) for seed in seeds])
    return residues(secret - congruent_sum(others, protocol.modulus, axis=0), protocol.modulus)


def encode(protocol: CloakProtocol, values: ArrayLike, randomness: Randomness) -> Residues:
    """The messages of every user: scaled, with noise, split; from shape (users, ...) to (users, ..., n_messages)."""
    wholes = scaled(protocol, values, randomness)
    if wholes.ndim == 0:
        raise DomainError("values must be a list with one entry for each user, got a single value")
    return split(protocol, prerandomize(protocol, wholes, randomness), randomness)


# --- between users and analyzer ---------------------------------------------------------------------


def pool(messages: Residues) -> Residues:
    """The messages of all users together, user for user, which a shuffler receives: (..., users * n_messages)."""
    together = np.moveaxis(messages, 0, -1)
    return together.reshape(*together.shape[:-2], -1)


def shuffler(messages: Residues, randomness: Randomness) -> Residues:
    """Pooled messages in uniformly random order, every coordinate on its own: they tell their multiset only."""
    return randomness.permuted(messages)


def relay(messages: Residues, shufflers: Sequence[Callable[[Residues], Residues]]) -> Residues:
    """Pooled messages after several shufflers in sequence; a single honest one is enough.

    What the honest one hands on depends on the multiset of messages alone, and what later ones make of that tells no
    more.  Fixed orders before and after it leave the order uniformly random.
    """
    for one in shufflers:
        messages = one(messages)
    return messages


# --- the analyzer -----------------------------------------------------------------------------------


def total(protocol: CloakProtocol, messages: ArrayLike) -> Residues:
    """The sum of pooled messages modulo N; refuses what cannot be all messages of all users, and nothing else.

    A single message that was lost, doubled or changed makes the sum uniformly random: only their number can be checked.
    """
    shape, expected = np.shape(messages), protocol.n_users * protocol.n_messages
    if shape[-1:] != (expected,):
        raise DomainError(f"messages must be {expected}, n_messages of each of n_users, got shape {shape}")
    return add_up(reduced("messages", messages, protocol.modulus), protocol.modulus)


def analyze(protocol: CloakProtocol, total: ArrayLike) -> Reals:
    """The estimated sum of values in [0, 1], clipped to [0, n_users]: 0 above 2 n k, n from n k to 2 n k.

    Noise is read correctly as long as it stays within n k, for which the modulus needs room on both sides: more than
    three times ``n_users * scale``.  Near the ends clipping makes the estimate biased (:func:`analyze_centred` does not
    clip).
    """
    full = protocol.full
    if protocol.noise is not None and protocol.modulus <= 3 * full:
        raise DomainError(f"modulus must be above 3 * n_users * scale = {3 * full} for the clipping rule with noise")
    z = reduced("total", total, protocol.modulus)
    one = np.atleast_1d(z)  # without axes, numpy makes machine words of Python's numbers
    return np.asarray(np.where(one > 2 * full, 0, np.minimum(one, full)) / protocol.scale, np.float64).reshape(z.shape)


def analyze_centred(protocol: CloakProtocol, total: ArrayLike) -> Reals:
    """The estimated sum, unclipped, so unbiased while no noise wraps: residues nearer to N than to n k are negative."""
    z = reduced("total", total, protocol.modulus)
    return np.asarray(signed(z, (protocol.modulus + protocol.full) // 2, protocol.modulus) / protocol.scale, np.float64)


def average(protocol: CloakProtocol, estimate: ArrayLike) -> Reals:
    """The mean of the users' values from the estimated sum."""
    return np.asarray(estimate, dtype=np.float64) / protocol.n_users


def to_signed(protocol: CloakProtocol, estimate: ArrayLike, bound: float) -> Reals:
    """The sum of signed values, all encoded by :func:`~flamelib.mechanisms.encoding.from_signed`, from the estimate."""
    return bound * (2 * np.asarray(estimate, dtype=np.float64) - protocol.n_users)


def noise_law(protocol: CloakProtocol) -> Reals:
    """Probability of every residue as the sum of all users' noise: the n-fold convolution of one user's (value).

    By Fourier transform; for the noise of the document, which is cut off at the modulus.

    Examples
    --------
    >>> law = noise_law(CloakProtocol(5, 31, 2, 4, noise=TruncatedLaplace(31, 0.9), noise_rate=0.5))
    >>> round(float(law.sum()), 12), bool(np.allclose(law[1:], law[:0:-1]))
    (1.0, True)
    """
    noise, modulus = protocol.noise, protocol.modulus
    if not isinstance(noise, TruncatedLaplace):
        raise DomainError("noise must be TruncatedLaplace, whose law on the residues is known")
    place = np.arange(modulus)
    one = noise.decay ** np.minimum(place, modulus - place).astype(float)
    one *= protocol.noise_rate / one.sum()
    one[0] += 1 - protocol.noise_rate
    return np.maximum(np.fft.irfft(np.fft.rfft(one) ** protocol.n_users, modulus), 0)


# --- whole rounds -----------------------------------------------------------------------------------


def run(protocol: CloakProtocol, values: ArrayLike, randomness: Randomness) -> float:
    """A round for one number in [0, 1] of each user: the estimated sum, by the clipping rule.

    Users and shuffler get sources of their own, spawned from ``randomness``.
    """
    one_per_user("values", np.asarray(values), protocol.n_users)
    users, shuffling = randomness.spawn(2)
    return float(analyze(protocol, total(protocol, shuffler(pool(encode(protocol, values, users)), shuffling))))


def run_vector(protocol: CloakProtocol, rows: ArrayLike, randomness: Randomness) -> Residues:
    """A round for a vector of whole numbers of each user, a row of ``rows``: the sums, each coordinate on its own.

    The numbers may have any sign, as :func:`scaled` or a sketch makes them; the protocol's noise is added.  The sums
    are right where, with the noise, they lie between -N/2 and N/2.  A few coordinates are dealt with at a time.
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


# --- the guarantee ----------------------------------------------------------------------------------


class Guarantees(NamedTuple):
    """What the output of the shuffler guarantees, under two neighbour relations; ``None`` where nothing is known."""

    one_user: ApproxDP | None
    equal_sums: ApproxDP | None


def account(protocol: CloakProtocol, delta: float, colluding: int = 0) -> Guarantees:
    r"""The guarantees of a round for one number of each user (upper bounds).

    For data sets of equal scaled sums, what the shuffler sends differs by at most the distance :math:`2^{-\sigma}` of
    :func:`~flamelib.accounting.splitting.n_user_bounds.users_distance`: epsilon is 0 and delta that distance.  With
    random rounding, which changes the sum, nothing is known of them.  For the change of one user's value the sum needs
    noise; the answer is an epsilon for which :math:`\delta_{sum}(\varepsilon) + (1 + e^\varepsilon) 2^{-\sigma} \le
    \delta` is known, and where Pólya shares come from exactly the users who are counted on, the second term is at most
    what ``cloak:own-6`` says.  Where no epsilon is known at this delta, the request is refused.  The attacker is taken
    to know everything of ``colluding`` users, or their noise is missing.
    """
    given = check(delta=delta, colluding=colluding)
    delta, honest = given["delta"], protocol.n_users - given["colluding"]
    if honest < 2:
        raise DomainError(f"colluding must be a whole number in [0, {protocol.n_users - 2}], got {colluding}")
    distance = float(users_distance(protocol.modulus, protocol.n_messages, honest))
    alike = ApproxDP(0.0, distance, Adjacency.SUM_PRESERVING) if protocol.rounding != "random" else None
    if protocol.noise is None:
        return Guarantees(None, alike)
    known = list(_one_user(protocol, delta, honest, distance))
    if not known:
        raise DomainError(f"delta must be larger, or n_messages: what shares tell leaves nothing of {delta:.3g}")
    epsilon = min(known)
    return Guarantees(ApproxDP(epsilon, delta, Adjacency.REPLACE_ONE), alike)


def _one_user(protocol: CloakProtocol, delta: float, honest: int, distance: float) -> Iterator[float]:
    """Every epsilon that is known for the change of one user's value; none where shares alone tell more than delta."""
    epsilon = _sum_epsilon(protocol, delta / 2, honest)
    shares = (1 + math.exp(epsilon)) * distance if epsilon < 700 else math.inf
    if shares <= delta / 2:
        yield min(epsilon, _sum_epsilon(protocol, (delta - shares) * (1 - 1e-12), honest))
    if isinstance(protocol.noise, PolyaShare) and protocol.noise.n_users == honest:
        shares = shares_delta(protocol.modulus, protocol.n_messages, honest, protocol.scale)
        if shares <= delta:
            yield _sum_epsilon(protocol, (delta - shares) * (1 - 1e-12), honest)


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
