r"""The three protocols of FLAME: a vector from each user, a padded bag of messages for each coordinate.

* SS-Simple: every user reports all ``dimension`` coordinates.
* SS-Double: every user reports ``kept`` random coordinates (or each with chance ``kept / dimension``).
* SS-Topk: every user reports its ``kept`` largest coordinates, among ``multiples`` times as many reported ones.

A party is a function whose arguments are all that it may see.  The :func:`user` sees its own update.  The
:func:`shuffler` sees who reports which coordinates, and messages that it need not be able to read.  The
:func:`analyzer` sees one bag of messages a coordinate, without senders.  The :func:`observer` sees models.
:mod:`flamelib.protocols.flame_rounds` plays them all; :mod:`flamelib.protocols.flame_accuracy` tells how far an
estimate is off.

Every bag is permuted on its own: messages of one user in two bags stay unlinked, which the paper's theorems need (its
Algorithms 2 and 3, read literally, permute whole lists of coordinates).  With :math:`M_j` messages in bag :math:`j`,

.. math:: z_j = C\Big(2\,\frac{\sum y - (M_j - n\beta) / 2}{n\beta} - 1\Big), \qquad
   E\,z_j = \frac1{n\beta} \sum_{i \ni j} \mathrm{clip}(x_{ij}, -C, C), \qquad \beta = k / d

over users :math:`i` who reported coordinate :math:`j` as a true one.  That is the mean of all clipped updates for
SS-Simple and, over the choice of coordinates, for SS-Double; SS-Topk gets :math:`1/\beta` times the mean of the
sparsified updates.

A bag never holds more than ``padded`` messages.  Where more arrive, a uniformly random part of them is kept, so the
number forwarded tells nothing; how many were dropped stays with the shuffler and is reported for study.

Source: Liu, Cao, Chen, Guo, Yoshikawa 2021, Table 1, Algorithms 2 to 4.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib._vector_protocols import DoubleProtocol, Protocol, SimpleProtocol, TopkProtocol
from flamelib.core.arrays import Reals, Wholes, reals
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms import coordinates
from flamelib.mechanisms.coordinates import Flags, Messages, largest, random_subsets
from flamelib.mechanisms.shuffling import fill_bags

__all__ = [
    "DoubleProtocol",
    "Protocol",
    "Reports",
    "Shuffled",
    "SimpleProtocol",
    "TopkProtocol",
    "all_rows",
    "analyzer",
    "choose",
    "estimated",
    "observer",
    "shuffler",
    "user",
]


@dataclass(frozen=True, slots=True)
class Reports:
    """What reaches the shuffler: one entry a message.

    Attributes
    ----------
    senders, places : ndarray of int, shape (messages,)
        Who reports, in {0, ..., n_users - 1}, and which coordinate; in this order, so that nothing else shows.
    messages : ndarray of shape (messages,), or of bytes (messages, length)
        In the open, or sealed for the analyzer.
    """

    senders: Wholes
    places: Wholes
    messages: NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Shuffled:
    """What the shuffler made: ``bags`` go to the analyzer, the counts stay with the shuffler.

    Attributes
    ----------
    bags : ndarray of shape (dimension, padded) or (dimension, padded, length)
    overflow : ndarray of int, shape (dimension,)
        Messages that found no room.
    strays : int
        Reports of unknown senders or coordinates, and a second report of a coordinate by one sender; left out.
    """

    bags: NDArray[np.generic]
    overflow: Wholes
    strays: int


# --- the parties ------------------------------------------------------------------------------------------------------


def user(protocol: Protocol, updates: ArrayLike, rng: np.random.Generator) -> Reports:
    """What users report, each from its own update alone.

    Parameters
    ----------
    protocol : SimpleProtocol, DoubleProtocol or TopkProtocol
    updates : array_like of finite numbers, shape (dimension,) or (users, dimension)
        One update, or one row for each of several users; rows do not see each other.
    rng : numpy.random.Generator
        First decides which coordinates are reported, then the messages.

    Returns
    -------
    Reports
        In the open, ordered by sender and coordinate.

    Examples
    --------
    >>> from flamelib.mechanisms.randomizers import KaryResponse
    >>> protocol = TopkProtocol(2, 3, 1.0, KaryResponse(50.0, 2), kept=1, padded=2)
    >>> user(protocol, [[0.2, -1.0, 0.4], [0.0, 0.1, 1.0]], np.random.default_rng(0))
    Reports(senders=array([0, 1]), places=array([1, 2]), messages=array([0, 1]))
    """
    rows = _rows(protocol, updates)
    true, hiding = choose(protocol, rows, rng)
    reported = np.flatnonzero(true if hiding is None else true | hiding)
    mine = true.reshape(-1)[reported]
    values = coordinates.to_unit(rows.reshape(-1)[reported[mine]], protocol.clip_norm)
    sent = coordinates.sample(protocol.randomizer, values, rng)
    messages = np.empty(reported.size, dtype=sent.dtype)
    messages[mine] = sent
    messages[~mine] = coordinates.sample_blanket(protocol.randomizer, int((~mine).sum()), rng)
    senders, places = np.divmod(reported, protocol.dimension)
    return Reports(senders, places, messages)


def shuffler(
    protocol: Protocol,
    reports: Reports,
    rng: np.random.Generator,
    seal: Callable[[Wholes, Messages], NDArray[np.generic]] | None = None,
) -> Shuffled:
    """One bag of ``padded`` messages for each coordinate, permuted on its own; messages are moved, never read.

    Parameters
    ----------
    protocol : SimpleProtocol, DoubleProtocol or TopkProtocol
    reports : Reports
        Of all users.
    rng : numpy.random.Generator
    seal : callable, optional
        From coordinates and dummies to envelopes like those in the reports; left out, dummies stay open too.

    Returns
    -------
    Shuffled
        Bags with fewer messages are filled with draws from the blanket; of those with more, a uniformly random part
        is kept, and the others counted.
    """
    admitted = _admitted(protocol, reports)
    places = reports.places[admitted]

    def dummies(missing: Wholes) -> NDArray[np.generic]:
        drawn = coordinates.sample_blanket(protocol.randomizer, missing.shape, rng)
        return seal(missing, drawn) if seal else drawn

    shape = (protocol.dimension, protocol.padded)
    bags = fill_bags(places, reports.messages[admitted], shape, dummies, rng)
    overflow = np.maximum(np.bincount(places, minlength=protocol.dimension) - protocol.padded, 0)
    return Shuffled(bags, overflow, reports.places.size - places.size)


def analyzer(protocol: Protocol, bags: ArrayLike) -> tuple[Reals, Wholes]:
    """The estimate of each coordinate from its bag, and how many messages it rests on.

    Parameters
    ----------
    protocol : SimpleProtocol, DoubleProtocol or TopkProtocol
    bags : array_like of shape (dimension, any size)
        Messages in any order; NaN, infinities and what is no letter of the alphabet are left out.

    Returns
    -------
    estimate : ndarray of float64, shape (dimension,)
    received : ndarray of int, shape (dimension,)

    Examples
    --------
    >>> from flamelib.mechanisms.randomizers import LaplaceNoise
    >>> protocol = SimpleProtocol(2, 2, 1.0, LaplaceNoise(1.0))
    >>> analyzer(protocol, [[0.5, 1.0], [0.0, float("nan")]])
    (array([ 0.5, -0.5]), array([2, 1]))
    """
    decoded = coordinates.decode(protocol.randomizer, bags)
    if decoded.ndim != 2 or len(decoded) != protocol.dimension:
        raise DomainError(f"bags must have shape ({protocol.dimension}, size), a bag a coordinate, got {decoded.shape}")
    received = np.full(len(decoded), decoded.shape[1])
    sums = decoded.sum(axis=1)
    if np.isnan(sums).any():
        received -= np.count_nonzero(np.isnan(decoded), axis=1)
        sums = np.nansum(decoded, axis=1)
    return estimated(protocol, sums - received / 2), received


def observer(model: ArrayLike, estimate: ArrayLike) -> Reals:
    """The next model, all that an observer sees: the last one plus the estimate.

    >>> observer([1.0, 2.0], [0.5, -0.5])
    array([1.5, 1.5])
    """
    return reals("model", model) + reals("estimate", estimate)


# --- what they have in common -----------------------------------------------------------------------------------------


def choose(protocol: Protocol, rows: Reals, rng: np.random.Generator) -> tuple[Flags, Flags | None]:
    """Coordinates that each user reports as true ones, and those it hides them among, if any.

    Parameters
    ----------
    protocol : SimpleProtocol, DoubleProtocol or TopkProtocol
    rows : ndarray of float64, shape (users, dimension)
    rng : numpy.random.Generator

    Examples
    --------
    >>> from flamelib.mechanisms.randomizers import LaplaceNoise
    >>> true, others = choose(SimpleProtocol(2, 3, 1.0, LaplaceNoise(1.0)), np.zeros((2, 3)), np.random.default_rng(0))
    >>> true.tolist(), others
    ([[True, True, True], [True, True, True]], None)
    """
    none = np.zeros(rows.shape, dtype=bool)
    if isinstance(protocol, SimpleProtocol):
        return ~none, None
    if isinstance(protocol, DoubleProtocol):
        chance = protocol.kept / protocol.dimension
        subset = protocol.inclusion == "subset"
        sizes = np.full(len(rows), int(protocol.kept)) if subset else rng.binomial(rows.shape[1], chance, len(rows))
        return random_subsets(sizes, none, rng), None
    true = largest(rows, protocol.kept)
    others = min(protocol.kept * protocol.multiples, protocol.dimension) - protocol.kept
    return true, random_subsets(np.full(len(rows), others), true, rng) if others else None


def all_rows(protocol: Protocol, blocks: Iterator[ArrayLike]) -> Iterator[Reals]:
    """The updates, block by block; each is checked when it comes, and at the end that there was one for each user.

    >>> from flamelib.mechanisms.randomizers import LaplaceNoise
    >>> [rows.shape for rows in all_rows(SimpleProtocol(3, 2, 1.0, LaplaceNoise(1.0)), iter([np.ones((3, 2))]))]
    [(3, 2)]
    """
    shape, count = (protocol.n_users, protocol.dimension), 0
    for block in blocks:
        rows = reals("updates", block)
        count += len(rows) if rows.ndim == 2 else 0
        if rows.ndim != 2 or rows.shape[1] != protocol.dimension or count > protocol.n_users:
            raise DomainError(f"updates must have shape {shape}, one row for each user, got {rows.shape}")
        yield rows
    if count != protocol.n_users:
        raise DomainError(f"updates must have shape {shape}, one row for each user, got {count} rows")


def estimated(protocol: Protocol, sums: Reals) -> Reals:
    r"""From sums of decoded messages minus one half: :math:`2C / (n\beta)` times as much.

    >>> from flamelib.mechanisms.randomizers import LaplaceNoise
    >>> float(estimated(SimpleProtocol(2, 3, 1.0, LaplaceNoise(1.0)), np.asarray(0.5)))
    0.5
    """
    expected = protocol.n_users * protocol.kept / protocol.dimension
    return np.asarray(2 * protocol.clip_norm / expected * sums)


def _rows(protocol: Protocol, updates: ArrayLike) -> Reals:
    rows = np.atleast_2d(reals("updates", updates))
    if rows.ndim != 2 or rows.shape[1] != protocol.dimension:
        raise DomainError(f"updates must have {protocol.dimension} coordinates a user, got shape {np.shape(updates)}")
    return rows


def _admitted(protocol: Protocol, reports: Reports) -> Flags:
    """The reports of users and coordinates that exist, the first of each user for each coordinate."""
    senders, places = reports.senders, reports.places
    known = (senders >= 0) & (senders < protocol.n_users) & (places >= 0) & (places < protocol.dimension)
    pairs = senders * protocol.dimension + places
    if known.all() and (np.diff(pairs) > 0).all():
        return np.asarray(known)
    existing = np.flatnonzero(known)
    admitted = np.zeros_like(known)
    admitted[existing[np.unique(pairs[existing], return_index=True)[1]]] = True
    return admitted
