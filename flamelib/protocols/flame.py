r"""The three protocols of FLAME: a vector from each user, a padded bag of messages for each coordinate.

* SS-Simple: every user reports all ``dimension`` coordinates.
* SS-Double: every user reports ``kept`` random coordinates (or each with chance ``kept / dimension``).
* SS-Topk: every user reports its ``kept`` largest coordinates, among ``multiples`` times as many reported ones.

A party is a function whose arguments are all that it may see.  The :func:`user` sees its own update.  The
:func:`shuffler` sees who reports which coordinates, and messages that it need not be able to read.  The
:func:`analyzer` sees one bag of messages a coordinate, without senders.  The :func:`observer` sees models.

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

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib import coordinates, sealing
from flamelib._arrays import Reals, Wholes, reals
from flamelib._validate import DomainError
from flamelib._vector_protocols import DoubleProtocol, Protocol, SimpleProtocol, TopkProtocol
from flamelib.coordinates import Messages
from flamelib.randomizers import LaplaceNoise
from flamelib.selection import ROWS_AT_ONCE, Flags, largest, random_subsets
from flamelib.shuffling import fill_bags, random_ranks

__all__ = [
    "DoubleProtocol",
    "Protocol",
    "Reports",
    "RoundResult",
    "Shuffled",
    "SimpleProtocol",
    "TopkProtocol",
    "analyzer",
    "noise_std",
    "observer",
    "run",
    "run_sealed",
    "shuffler",
    "user",
    "variance",
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


@dataclass(frozen=True, slots=True)
class RoundResult:
    """One round.

    Attributes
    ----------
    estimate : ndarray of float64, shape (dimension,)
        The step of the model, in the units of the updates; all that is published.
    received : ndarray of int, shape (dimension,)
        Messages of each bag that the analyzer accepted, :math:`M_j`.
    overflow : ndarray of int, shape (dimension,)
        Messages that the shuffler dropped because the bag was full; it depends on the updates and stays secret.
    rejected : dict
        Messages that were left out because something was wrong with them, by reason.
    """

    estimate: Reals
    received: Wholes
    overflow: Wholes
    rejected: dict[str, int]


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
    >>> from flamelib.randomizers import KaryResponse
    >>> protocol = TopkProtocol(2, 3, 1.0, KaryResponse(50.0, 2), kept=1, padded=2)
    >>> user(protocol, [[0.2, -1.0, 0.4], [0.0, 0.1, 1.0]], np.random.default_rng(0))
    Reports(senders=array([0, 1]), places=array([1, 2]), messages=array([0, 1]))
    """
    return _reports(protocol, _rows(protocol, updates), rng)


def _reports(protocol: Protocol, rows: Reals, rng: np.random.Generator) -> Reports:
    true, hiding = _chosen(protocol, rows, rng)
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
    return _estimate(protocol, sums - received / 2), received


def observer(model: ArrayLike, estimate: ArrayLike) -> Reals:
    """The next model, all that an observer sees: the last one plus the estimate.

    >>> observer([1.0, 2.0], [0.5, -0.5])
    array([1.5, 1.5])
    """
    return reals("model", model) + reals("estimate", estimate)


# --- rounds -----------------------------------------------------------------------------------------------------------


def run(
    protocol: Protocol,
    updates: ArrayLike | Iterator[ArrayLike],
    rng: np.random.Generator,
    *,
    literal: bool = False,
) -> RoundResult:
    """One round in the open (nothing is sealed: a simulation), with the law of the real one.

    Parameters
    ----------
    protocol : SimpleProtocol, DoubleProtocol or TopkProtocol
    updates : array_like of shape (n_users, dimension), or an iterator of blocks of such rows
        Finite numbers; they are clipped here.
    rng : numpy.random.Generator
        Users and shuffler get generators of their own, spawned from it.
    literal : bool
        True plays every party: every dummy is drawn, every bag permuted.  False draws the sum of each bag, which has
        the same law, for a sum does not depend on the order and those of blanket messages have a closed form.

    Returns
    -------
    RoundResult

    Examples
    --------
    >>> protocol = DoubleProtocol(1000, 20, 1.0, LaplaceNoise(4.0), kept=5, padded=400)
    >>> result = run(protocol, np.full((1000, 20), 0.5), np.random.default_rng(0))
    >>> bool(abs(result.estimate.mean() - 0.5) < 0.05), int(result.received.min()), int(result.overflow.max())
    (True, 400, 0)
    """
    for_users, for_shuffler = rng.spawn(2)
    blocks = updates if isinstance(updates, Iterator) else iter([updates])
    checked = _all_rows(protocol, blocks)
    if not literal:
        return _run_by_sums(protocol, checked, for_users, for_shuffler)
    parts = ((first, _reports(protocol, rows, for_users)) for first, rows in _numbered(checked))
    shuffled = shuffler(protocol, _joined(parts), for_shuffler)
    estimate, received = analyzer(protocol, shuffled.bags)
    return RoundResult(estimate, received, shuffled.overflow, {"stray": shuffled.strays})


def run_sealed(
    protocol: Protocol,
    updates: ArrayLike,
    rng: np.random.Generator,
    on_the_way: Callable[[Reports], Reports] | None = None,
) -> RoundResult:
    """One round with every message in an envelope of its own: the law of :func:`run`, at the price of encryption.

    Keys, round and nonces come from the operating system; noise, dummies and permutations from ``rng``, so that a
    test can repeat them: a release must draw these from the operating system too.

    Parameters
    ----------
    protocol : SimpleProtocol, DoubleProtocol or TopkProtocol
    updates : array_like of finite numbers, shape (n_users, dimension)
    rng : numpy.random.Generator
        Every user gets a generator of its own.
    on_the_way : callable, optional
        What happens to the reports between users and shuffler: an adversary who changes, adds or repeats some.

    Returns
    -------
    RoundResult

    Examples
    --------
    >>> protocol = DoubleProtocol(5, 3, 1.0, LaplaceNoise(50.0), kept=3, padded=6)
    >>> result = run_sealed(protocol, np.full((5, 3), 0.5), np.random.default_rng(0))
    >>> result.received, sum(result.rejected.values())
    (array([6, 6, 6]), 0)
    """
    [rows] = _all_rows(protocol, iter([updates]))
    key, round_name = sealing.AnalyzerKey(), sealing.new_round()
    seal = partial(sealing.seal, key.public, round_name)
    *for_users, for_shuffler = rng.spawn(protocol.n_users + 1)
    sent = (user(protocol, row, own) for row, own in zip(rows, for_users, strict=True))
    reports = _joined(enumerate(replace(report, messages=seal(report.places, report.messages)) for report in sent))
    shuffled = shuffler(protocol, on_the_way(reports) if on_the_way else reports, for_shuffler, seal)
    opened = sealing.open_bags(key, round_name, shuffled.bags.astype(np.uint8, copy=False))
    estimate, received = analyzer(protocol, opened.values)
    strange = int(np.isfinite(opened.values).sum() - received.sum())
    rejected = {"stray": shuffled.strays, **opened.refused, "no letter": strange}
    return RoundResult(estimate, received, shuffled.overflow, rejected)


# --- what to expect ---------------------------------------------------------------------------------------------------


def noise_std(protocol: Protocol) -> float:
    r"""Standard deviation of an estimate that rests on blanket messages alone: :math:`2C\sqrt{n_p v} / (n\beta)`.

    With Laplace noise, :math:`v = 2 / \varepsilon_0^2`, it is the noise of every coordinate whoever reported it.

    Examples
    --------
    >>> round(noise_std(DoubleProtocol(1000, 7850, 0.01, LaplaceNoise(0.5), kept=157, padded=333)), 4)
    0.0516
    """
    spread = (protocol.padded * coordinates.blanket_variance(protocol.randomizer)) ** 0.5
    return float(_estimate(protocol, np.asarray(spread)))


def variance(protocol: Protocol, updates: ArrayLike) -> Reals:
    r"""Exact variance of each estimate where no bag overflows, choice of coordinates included.

    .. math:: \Big(\frac{2C}{n\beta}\Big)^2 \Big[\sum_i p_{ij} v(\tilde x_{ij}) + \big(n_p - \sum_i p_{ij}\big) v_\omega
       + \sum_i p_{ij}(1 - p_{ij})(\tilde x_{ij} - \tfrac12)^2\Big]

    with :math:`p_{ij}` the chance that user :math:`i` reports coordinate :math:`j` as a true one: 1 for SS-Simple,
    :math:`\beta` for SS-Double (users are independent, so both kinds of inclusion agree), 0 or 1 for SS-Topk.

    Parameters
    ----------
    protocol : SimpleProtocol, DoubleProtocol or TopkProtocol
    updates : array_like of finite numbers, shape (n_users, dimension)

    Returns
    -------
    ndarray of float64, shape (dimension,)
    """
    [rows] = _all_rows(protocol, iter([updates]))
    chance = largest(rows, protocol.kept) if isinstance(protocol, TopkProtocol) else protocol.kept / protocol.dimension
    unit = coordinates.to_unit(rows, protocol.clip_norm)
    own = chance * coordinates.variance(protocol.randomizer, unit) + chance * (1 - chance) * (unit - 0.5) ** 2
    dummies = protocol.padded - (chance * np.ones_like(unit)).sum(axis=0)
    total = own.sum(axis=0) + dummies * coordinates.blanket_variance(protocol.randomizer)
    return np.asarray(total * _estimate(protocol, np.asarray(1.0)) ** 2)


# --- inside -----------------------------------------------------------------------------------------------------------


def _rows(protocol: Protocol, updates: ArrayLike) -> Reals:
    rows = np.atleast_2d(reals("updates", updates))
    if rows.ndim != 2 or rows.shape[1] != protocol.dimension:
        raise DomainError(f"updates must have {protocol.dimension} coordinates a user, got shape {np.shape(updates)}")
    return rows


def _all_rows(protocol: Protocol, blocks: Iterator[ArrayLike]) -> Iterator[Reals]:
    """The blocks, checked one by one, and at the end that they made up all users."""
    shape, count = (protocol.n_users, protocol.dimension), 0
    for block in blocks:
        rows = reals("updates", block)
        count += len(rows) if rows.ndim == 2 else 0
        if rows.ndim != 2 or rows.shape[1] != protocol.dimension or count > protocol.n_users:
            raise DomainError(f"updates must have shape {shape}, one row for each user, got {rows.shape}")
        yield rows
    if count != protocol.n_users:
        raise DomainError(f"updates must have shape {shape}, one row for each user, got {count} rows")


def _chosen(protocol: Protocol, rows: Reals, rng: np.random.Generator) -> tuple[Flags, Flags | None]:
    """Coordinates that each row reports as true ones, and those it hides them among, if any."""
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


def _numbered(blocks: Iterable[Reals]) -> Iterator[tuple[int, Reals]]:
    """Each block with the number of its first user."""
    first = 0
    for rows in blocks:
        yield first, rows
        first += len(rows)


def _joined(parts: Iterable[tuple[int, Reports]]) -> Reports:
    """Reports of several blocks of users, each given with the number of its first user."""
    moved = [replace(part, senders=part.senders + first) for first, part in parts]
    return Reports(*(np.concatenate([getattr(one, name) for one in moved]) for name in Reports.__slots__))


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


def _estimate(protocol: Protocol, sums: Reals) -> Reals:
    r"""From sums of decoded messages minus one half: :math:`2C / (n\beta)` times as much."""
    expected = protocol.n_users * protocol.kept / protocol.dimension
    return np.asarray(2 * protocol.clip_norm / expected * sums)


def _run_by_sums(
    protocol: Protocol, blocks: Iterator[Reals], for_users: np.random.Generator, for_shuffler: np.random.Generator
) -> RoundResult:
    size, dimension = protocol.padded, protocol.dimension
    if isinstance(protocol, SimpleProtocol):
        overflow, sums = np.zeros(dimension, dtype=np.int64), _sums_of_all(protocol, blocks, for_users)
    else:
        places, values, hiding = _gathered(protocol, blocks, for_users)
        true = np.bincount(places, minlength=dimension)
        overflow = np.maximum(true + hiding - size, 0)
        full = overflow > 0
        true[full] = for_shuffler.hypergeometric(true[full], hiding[full], size)
        crowded = np.flatnonzero(full[places])
        dropped = crowded[random_ranks(places[crowded], dimension, for_shuffler) >= true[places[crowded]]]
        places, values = np.delete(places, dropped), np.delete(values, dropped)
        sums = coordinates.centred_sums(protocol.randomizer, places, values, dimension, for_users)
        sums += coordinates.centred_blanket_sums(protocol.randomizer, size - true, for_shuffler)
    received = np.full(dimension, size)
    return RoundResult(_estimate(protocol, sums), received, overflow, {"stray": 0})


def _sums_of_all(protocol: SimpleProtocol, blocks: Iterator[Reals], rng: np.random.Generator) -> Reals:
    """Sums of decoded messages minus one half where every user reports every coordinate."""
    sums, laplace = np.zeros(protocol.dimension), isinstance(protocol.randomizer, LaplaceNoise)
    for rows in blocks:
        for start in range(0, len(rows), ROWS_AT_ONCE):
            values = coordinates.to_unit(rows[start : start + ROWS_AT_ONCE], protocol.clip_norm)
            if not laplace:
                messages = coordinates.sample(protocol.randomizer, values, rng)
                values = coordinates.decode(protocol.randomizer, messages)
            sums += (values - 0.5).sum(axis=0)
    if isinstance(protocol.randomizer, LaplaceNoise):
        sums += coordinates.laplace_sums(protocol.randomizer, np.full(sums.shape, protocol.n_users), rng)
    return sums


def _gathered(protocol: Protocol, blocks: Iterator[Reals], rng: np.random.Generator) -> tuple[Wholes, Reals, Wholes]:
    """Coordinates and values in [0, 1] of all true reports, and how many hiding ones each coordinate gets."""
    places, values, hiding = [], [], np.zeros(protocol.dimension, dtype=np.int64)
    for rows in blocks:
        true, others = _chosen(protocol, rows, rng)
        reported = np.flatnonzero(true)
        places.append(reported % protocol.dimension)
        values.append(coordinates.to_unit(rows.reshape(-1)[reported], protocol.clip_norm))
        if others is not None:
            hiding += np.bincount(np.flatnonzero(others) % protocol.dimension, minlength=protocol.dimension)
    return np.concatenate(places), np.concatenate(values), hiding
