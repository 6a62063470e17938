"""Whole rounds of FLAME: every party of :mod:`flamelib.protocols.flame` in its turn.

:func:`run` plays a round in the open, or draws its outcome with the same law in a fraction of the time;
:func:`run_sealed` puts every message into an envelope of its own, as a real round does.

Source: Liu, Cao, Chen, Guo, Yoshikawa 2021, Algorithms 2 to 4.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import Reals, Wholes
from flamelib.mechanisms import coordinates, sealing
from flamelib.mechanisms.coordinates import ROWS_AT_ONCE
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.mechanisms.shuffling import random_ranks
from flamelib.protocols.flame import (
    Protocol,
    Reports,
    SimpleProtocol,
    all_rows,
    analyzer,
    choose,
    estimated,
    shuffler,
    user,
)


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
    >>> from flamelib.protocols.flame import DoubleProtocol
    >>> protocol = DoubleProtocol(1000, 20, 1.0, LaplaceNoise(4.0), kept=5, padded=400)
    >>> result = run(protocol, np.full((1000, 20), 0.5), np.random.default_rng(0))
    >>> bool(abs(result.estimate.mean() - 0.5) < 0.05), int(result.received.min()), int(result.overflow.max())
    (True, 400, 0)
    """
    for_users, for_shuffler = rng.spawn(2)
    blocks = updates if isinstance(updates, Iterator) else iter([updates])
    checked = all_rows(protocol, blocks)
    if not literal:
        return _run_by_sums(protocol, checked, for_users, for_shuffler)
    parts = ((first, user(protocol, rows, for_users)) for first, rows in _numbered(checked))
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
    >>> from flamelib.protocols.flame import DoubleProtocol
    >>> protocol = DoubleProtocol(5, 3, 1.0, LaplaceNoise(50.0), kept=3, padded=6)
    >>> result = run_sealed(protocol, np.full((5, 3), 0.5), np.random.default_rng(0))
    >>> result.received, sum(result.rejected.values())
    (array([6, 6, 6]), 0)
    """
    [rows] = all_rows(protocol, iter([updates]))
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


# --- inside -----------------------------------------------------------------------------------------------------------


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
    return RoundResult(estimated(protocol, sums), received, overflow, {"stray": 0})


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
        true, others = choose(protocol, rows, rng)
        reported = np.flatnonzero(true)
        places.append(reported % protocol.dimension)
        values.append(coordinates.to_unit(rows.reshape(-1)[reported], protocol.clip_norm))
        if others is not None:
            hiding += np.bincount(np.flatnonzero(others) % protocol.dimension, minlength=protocol.dimension)
    return np.concatenate(places), np.concatenate(values), hiding
