r"""Cloak aggregation: every user cuts its value into random shares, which are shuffled and added up.

Public parameters stand in a frozen record; a party is a function whose arguments are all that it may see.

* A user sees its own value.  It scales it to a whole number (:func:`scaled`), may add noise (:func:`prerandomize`) and
  cuts it into :math:`m` messages that add up to it modulo :math:`N` (:func:`split`); :func:`encode` is all three.
* The shufflers see the messages of all users, put together (:func:`pool`), and hand them on in random order
  (:func:`shuffler`, :func:`relay`).
* The analyzer sees messages without senders.  It adds them up (:func:`total`) and reads the sum (:func:`analyze`,
  :func:`analyze_centred`, :func:`average`, :func:`to_signed`).

What one user sends is not private: its messages add up to its value.  What leaves the shuffler is, and what guarantee
it gives is asked by :func:`~flamelib.protocols.cloak_guarantees.account`; :mod:`flamelib.protocols.cloak_rounds` plays
whole rounds.

Source: Ghazi, Pagh, Velingker 2019, Algorithms 1 and 2; US20220374542A1.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from flamelib._cloak_protocol import CloakProtocol
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.encoding import floor_of_product, grid_multiples, round_exactly
from flamelib.mechanisms.integers.modular import Residues, add_up, congruent_sum, reduced, residues, signed
from flamelib.mechanisms.integers.randomness import Randomness

__all__ = [
    "CloakProtocol",
    "analyze",
    "analyze_centred",
    "average",
    "encode",
    "pool",
    "prerandomize",
    "relay",
    "scaled",
    "shuffler",
    "split",
    "to_signed",
    "total",
]


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
    >>> from flamelib.mechanisms.integers.randomness import Release
    >>> [scaled(CloakProtocol(2, 1001, 100, 4, way), [0.29, 0.5], Release()).tolist() for way in ("floor", "grid")]
    [[28, 50], [29, 50]]
    """
    if protocol.rounding == "floor":
        return floor_of_product(values, protocol.scale)
    if protocol.rounding == "random":
        return round_exactly(values, protocol.scale, lambda chances: randomness.coins(chances, chances.shape))
    return grid_multiples(values, protocol.scale)


def prerandomize(protocol: CloakProtocol, wholes: ArrayLike, randomness: Randomness) -> Residues:
    """Residues of whole numbers of any sign, with the noise of those whose coin tells them to add some.

    Parameters
    ----------
    protocol : CloakProtocol
    wholes : array_like of int, any shape
    randomness : Randomness

    Examples
    --------
    >>> from flamelib.mechanisms.integers.randomness import Release
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
    >>> from flamelib.mechanisms.integers.randomness import Release
    >>> int(split(CloakProtocol(2, 1001, 100, 4), np.array([7, 8]), Release())[1].sum()) % 1001
    8
    """
    secret = np.moveaxis(secrets, 0, -1)
    shares = randomness.uniform(protocol.modulus, (*secret.shape[:-1], protocol.n_messages, secret.shape[-1]))
    others = congruent_sum(shares[..., :-1, :], protocol.modulus, axis=-2)
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
    >>> from flamelib.mechanisms.integers.randomness import Release
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

    >>> from flamelib.mechanisms.integers.randomness import Release
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
    return add_up(reduced("messages", messages, protocol.modulus), protocol.modulus)


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
    z = reduced("total", total, protocol.modulus)
    one = np.atleast_1d(z)  # without axes, numpy makes machine words of Python's numbers
    return np.asarray(np.where(one > 2 * full, 0, np.minimum(one, full)) / protocol.scale, np.float64).reshape(z.shape)


def analyze_centred(protocol: CloakProtocol, total: ArrayLike) -> Reals:
    """The estimated sum as it is, without bias: residues nearer to N than to n_users * scale are negative.

    >>> analyze_centred(CloakProtocol(2, 31, 4, 2), [3, 9, 19, 20, 30]).tolist()
    [0.75, 2.25, 4.75, -2.75, -0.25]
    """
    z = reduced("total", total, protocol.modulus)
    return np.asarray(signed(z, (protocol.modulus + protocol.full) // 2, protocol.modulus) / protocol.scale, np.float64)


def average(protocol: CloakProtocol, estimate: ArrayLike) -> Reals:
    """The mean of the users' values from the estimated sum.

    >>> float(average(CloakProtocol(2, 31, 4, 2), 1.5))
    0.75
    """
    return np.asarray(estimate, dtype=np.float64) / protocol.n_users


def to_signed(protocol: CloakProtocol, estimate: ArrayLike, bound: float) -> Reals:
    """The sum of signed values from the estimate for :func:`~flamelib.mechanisms.encoding.from_signed`; all must have taken part.

    >>> float(to_signed(CloakProtocol(3, 1001, 100, 4), 1.25, 2.0))
    -1.0
    """
    return bound * (2 * np.asarray(estimate, dtype=np.float64) - protocol.n_users)
