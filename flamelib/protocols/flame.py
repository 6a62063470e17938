r"""The three protocols of FLAME: a vector from each user, a padded bag of messages for each coordinate.

* SS-Simple: every user reports all ``dimension`` coordinates.
* SS-Double: every user reports ``kept`` random coordinates (or each with probability ``kept / dimension``).
* SS-Topk: every user reports its ``kept`` largest coordinates, among ``multiples`` times as many reported ones.

The :func:`user` sees its own update; the :func:`shuffler` who reports which coordinates, and messages that it need not
be able to read; the :func:`analyzer` one bag of messages a coordinate, without senders.  :func:`run` and
:func:`run_sealed` play them all; :func:`noise_std` tells how far an estimate is off.

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
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.arrays import Flags, Reals, Wholes, reals
from flamelib.core.vocabulary import DomainError, check, honest, keep
from flamelib.mechanisms import coordinates, sealing
from flamelib.mechanisms.coordinates import ROWS_AT_ONCE, Messages, Randomizer, largest, random_subsets
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.mechanisms.shuffling import fill_bags, random_ranks

Inclusion = Literal["exact", "independent"]


@dataclass(frozen=True, slots=True)
class FlameSimple:
    """SS-Simple: every user reports every coordinate.

    Each is clipped to [-clip, clip], the paper's :math:`C`, and sent through the randomizer; a response on
    ``b + 1`` buckets is the paper's with :math:`b` levels.

    Parameters
    ----------
    colluding : int
        Users who may tell the analyzer all they know; the guarantee is that of the others, at least 2.
    dropout : float
        Probability of every user's whole report to be lost, in [0, 1); the analyzer may know whose.
    """

    n_users: int
    dimension: int
    clip: float
    randomizer: Randomizer
    colluding: int = 0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        _convert(self, "n_users", "dimension", "clip", "colluding", "dropout")
        honest(self.n_users, self.colluding)

    @property
    def kept(self) -> int:
        """Coordinates that a user reports: all."""
        return self.dimension

    @property
    def padded(self) -> int:
        """Messages in a bag: one for each user."""
        return self.n_users


@dataclass(frozen=True, slots=True)
class FlameDouble:
    r"""SS-Double: every user reports ``kept`` random coordinates, bags are padded to ``padded`` messages.

    Parameters
    ----------
    kept : int in [1, dimension]
        The paper's :math:`k`.
    padded : int, at least 2 and at least :math:`n\beta`
        The paper's :math:`n_p`.
    inclusion : "exact" or "independent"
        Exactly ``kept`` coordinates without replacement, as in the paper; or each on its own with probability
        ``kept / dimension`` (then ``kept`` may be any number).  Both are accounted for with the choice hidden.
    colluding, dropout : 0
        As for SS-Simple, and refused: reports of colluding users may fill bags, and with fewer users there are more
        dummies, in which no order is proven.
    """

    n_users: int
    dimension: int
    clip: float
    randomizer: Randomizer
    kept: float
    padded: int
    inclusion: Inclusion = "exact"
    colluding: int = 0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.inclusion not in ("exact", "independent"):
            raise DomainError(f"inclusion must be one of exact, independent, got {self.inclusion!r}")
        _convert(self, "n_users", "dimension", "clip", "kept", "padded", "colluding", "dropout")
        for name in ("colluding", "dropout"):
            if getattr(self, name):
                raise DomainError(f"{name} must be 0 for SS-Double, of which no account with it is proven")
        _fits(self, whole=self.inclusion == "exact")


@dataclass(frozen=True, slots=True)
class FlameTopk:
    r"""SS-Topk: every user reports its ``kept`` largest coordinates, hidden among ``multiples`` times as many.

    Parameters
    ----------
    kept : int in [1, dimension]
        The paper's :math:`k`; the largest absolute values before clipping.
    padded : int, at least 2 and at least :math:`n \beta` ``multiples``
        The paper's :math:`n_p`.
    multiples : int, at least 1, below :math:`1 / \beta + 1`
        The paper's :math:`l`: ``kept (multiples - 1)`` other coordinates, as many as there are, are reported with
        messages from the blanket.  1 hides nothing.
    colluding, dropout
        As for SS-Simple; at least 2 messages of a bag are left without the colluding users'.
    """

    n_users: int
    dimension: int
    clip: float
    randomizer: Randomizer
    kept: int
    padded: int
    multiples: int = 1
    colluding: int = 0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        _convert(self, "n_users", "dimension", "clip", "kept", "padded", "multiples", "colluding", "dropout")
        honest(min(self.n_users, self.padded), self.colluding)
        _fits(self, whole=True)
        if (self.multiples - 1) * self.kept >= self.dimension:
            raise DomainError(f"multiples must be below dimension / kept + 1, got {self.multiples}")
        if self.n_users * self.kept * self.multiples > self.padded * self.dimension:
            raise DomainError(f"multiples must be at most padded / (n_users kept / dimension), got {self.multiples}")


Protocol = FlameSimple | FlameDouble | FlameTopk


def _convert(protocol: Protocol, *names: str) -> None:
    """Replace the named public parameters by their plain numbers, checked; check the randomizer."""
    keep(protocol, **check(**{name: getattr(protocol, name) for name in names}))
    if not isinstance(protocol.randomizer, Randomizer):
        raise DomainError(f"randomizer must be LaplaceNoise or KaryResponse, got {protocol.randomizer!r}")


def _fits(protocol: FlameDouble | FlameTopk, whole: bool) -> None:
    kept, dimension = protocol.kept, protocol.dimension
    if kept > dimension or (whole and kept != int(kept)):
        kind = "whole number" if whole else "number"
        raise DomainError(f"kept must be a {kind} of at most dimension = {dimension}, got {kept}")
    if whole:
        object.__setattr__(protocol, "kept", int(kept))
    if protocol.padded * dimension < protocol.n_users * kept:
        least = protocol.n_users * kept / dimension
        raise DomainError(f"padded must be at least n_users kept / dimension = {least:g}, got {protocol.padded}")


@dataclass(frozen=True, slots=True)
class Reports:
    """What reaches the shuffler: who reports which coordinate, in this order, and the message, open or sealed."""

    senders: Wholes
    places: Wholes
    messages: NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Shuffled:
    """What the shuffler puts out: ``bags`` go to the analyzer, the counts stay with the shuffler.

    ``overflow`` counts the messages of each coordinate that found no room.  ``strays`` are reports of unknown senders
    or coordinates, and a second report of a coordinate by one sender; they are left out.
    """

    bags: NDArray[np.generic]
    overflow: Wholes
    strays: int


# --- the parties ------------------------------------------------------------------------------------


def user(protocol: Protocol, updates: ArrayLike, rng: np.random.Generator) -> Reports:
    """What users report, each from its own update alone: one update, or one row for each of several users.

    The generator first decides which coordinates are reported, then the messages.
    """
    rows = _rows(protocol, updates)
    true, hiding = _choose(protocol, rows, rng)
    reported = np.flatnonzero(true if hiding is None else true | hiding)
    mine = true.reshape(-1)[reported]
    values = coordinates.to_unit(rows.reshape(-1)[reported[mine]], protocol.clip)
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

    Bags with fewer messages are filled with draws from the blanket; of those with more, a uniformly random part is
    kept.  ``seal`` makes of coordinates and dummies envelopes like those in the reports; left out, dummies stay open
    too.
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

    Messages of a bag, a row of ``bags``, may come in any order; what is no letter of the alphabet is left out.
    """
    decoded = coordinates.decode(protocol.randomizer, bags)
    if decoded.ndim != 2 or len(decoded) != protocol.dimension:
        raise DomainError(f"bags must have shape ({protocol.dimension}, size), a bag a coordinate, got {decoded.shape}")
    received = np.full(len(decoded), decoded.shape[1])
    sums = decoded.sum(axis=1)
    if np.isnan(sums).any():
        received -= np.count_nonzero(np.isnan(decoded), axis=1)
        sums = np.nansum(decoded, axis=1)
    return _estimated(protocol, sums - received / 2), received


# --- what they have in common -----------------------------------------------------------------------


def _choose(protocol: Protocol, rows: Reals, rng: np.random.Generator) -> tuple[Flags, Flags | None]:
    """Coordinates that each user reports as true ones, and those it hides them among, if any."""
    none = np.zeros(rows.shape, dtype=bool)
    if isinstance(protocol, FlameSimple):
        return ~none, None
    if isinstance(protocol, FlameDouble):
        share = protocol.kept / protocol.dimension
        subset = protocol.inclusion == "exact"
        sizes = np.full(len(rows), int(protocol.kept)) if subset else rng.binomial(rows.shape[1], share, len(rows))
        return random_subsets(sizes, none, rng), None
    true = largest(rows, protocol.kept)
    others = min(protocol.kept * protocol.multiples, protocol.dimension) - protocol.kept
    return true, random_subsets(np.full(len(rows), others), true, rng) if others else None


def _all_rows(protocol: Protocol, blocks: Iterator[ArrayLike]) -> Iterator[Reals]:
    """The updates, block by block; each is checked when it comes, and at the end that there was one for each user."""
    shape, count = (protocol.n_users, protocol.dimension), 0
    for block in blocks:
        rows = reals("updates", block)
        count += len(rows) if rows.ndim == 2 else 0
        if rows.ndim != 2 or rows.shape[1] != protocol.dimension or count > protocol.n_users:
            raise DomainError(f"updates must have shape {shape}, one row for each user, got {rows.shape}")
        yield rows
    if count != protocol.n_users:
        raise DomainError(f"updates must have shape {shape}, one row for each user, got {count} rows")


def _estimated(protocol: Protocol, sums: Reals) -> Reals:
    r"""From sums of decoded messages minus one half: :math:`2C / (n\beta)` times as much."""
    expected = protocol.n_users * protocol.kept / protocol.dimension
    return np.asarray(2 * protocol.clip / expected * sums)


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


# --- whole rounds -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RoundResult:
    """One round: the published ``estimate``, in the units of the updates, and what is kept for study.

    ``received`` counts the messages of each bag that the analyzer accepted, ``rejected`` those left out by reason.
    ``overflow``, what the shuffler dropped because a bag was full, depends on the updates and stays secret.
    """

    estimate: Reals
    received: Wholes
    overflow: Wholes
    rejected: dict[str, int]


def run(protocol: Protocol, updates: ArrayLike | Iterator[ArrayLike], rng: np.random.Generator) -> RoundResult:
    """One round in the open (nothing is sealed: a simulation), with the law of the real one.

    Updates, one row for each user, may come as an iterator of blocks of rows; they are clipped here.  The sum of each
    bag is drawn: it has the law of the parties' messages, for a sum does not depend on the order and sums of blanket
    messages have a closed form.  Users and shuffler get generators of their own, spawned from ``rng``.
    """
    for_users, for_shuffler = rng.spawn(2)
    blocks = _all_rows(protocol, updates if isinstance(updates, Iterator) else iter([updates]))
    size, dimension = protocol.padded, protocol.dimension
    if isinstance(protocol, FlameSimple):
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
    return RoundResult(_estimated(protocol, sums), np.full(dimension, size), overflow, {"stray": 0})


def run_sealed(
    protocol: Protocol,
    updates: ArrayLike,
    rng: np.random.Generator,
    on_the_way: Callable[[Reports], Reports] | None = None,
) -> RoundResult:
    """One round with every message in an envelope of its own: the law of :func:`run`, at the price of encryption.

    Keys, round and nonces come from the operating system; noise, dummies and permutations from ``rng``, so that a test
    can repeat them: a release must draw these from the operating system too.  ``on_the_way`` is what happens to the
    reports between users and shuffler: an adversary who changes, adds or repeats some.
    """
    [rows] = _all_rows(protocol, iter([updates]))
    key, round_name = sealing.AnalyzerKey(), sealing.new_round()
    seal = partial(sealing.seal, key.public, round_name)
    *for_users, for_shuffler = rng.spawn(protocol.n_users + 1)
    sent = [user(protocol, row, own) for row, own in zip(rows, for_users, strict=True)]
    senders = np.repeat(np.arange(len(sent)), [one.places.size for one in sent])
    places, messages = (np.concatenate([getattr(one, part) for one in sent]) for part in ("places", "messages"))
    reports = Reports(senders, places, seal(places, messages))
    shuffled = shuffler(protocol, on_the_way(reports) if on_the_way else reports, for_shuffler, seal)
    opened = sealing.open_bags(key, round_name, shuffled.bags.astype(np.uint8, copy=False))
    estimate, received = analyzer(protocol, opened.values)
    strange = int(np.isfinite(opened.values).sum() - received.sum())
    rejected = {"stray": shuffled.strays, **opened.refused, "no letter": strange}
    return RoundResult(estimate, received, shuffled.overflow, rejected)


def _sums_of_all(protocol: FlameSimple, blocks: Iterator[Reals], rng: np.random.Generator) -> Reals:
    """Sums of decoded messages minus one half where every user reports every coordinate."""
    sums, randomizer = np.zeros(protocol.dimension), protocol.randomizer
    added = randomizer if isinstance(randomizer, LaplaceNoise) else None  # the noise of all users at once
    for rows in blocks:
        for start in range(0, len(rows), ROWS_AT_ONCE):
            values = coordinates.to_unit(rows[start : start + ROWS_AT_ONCE], protocol.clip)
            if not added:
                values = coordinates.decode(randomizer, coordinates.sample(randomizer, values, rng))
            sums += (values - 0.5).sum(axis=0)
    if added:
        sums += coordinates.laplace_sums(added, np.full(sums.shape, protocol.n_users), rng)
    return sums


def _gathered(protocol: Protocol, blocks: Iterator[Reals], rng: np.random.Generator) -> tuple[Wholes, Reals, Wholes]:
    """Coordinates and values in [0, 1] of all true reports, and how many hiding ones each coordinate gets."""
    places, values, hiding = [], [], np.zeros(protocol.dimension, dtype=np.int64)
    for rows in blocks:
        true, others = _choose(protocol, rows, rng)
        reported = np.flatnonzero(true)
        places.append(reported % protocol.dimension)
        values.append(coordinates.to_unit(rows.reshape(-1)[reported], protocol.clip))
        if others is not None:
            hiding += np.bincount(np.flatnonzero(others) % protocol.dimension, minlength=protocol.dimension)
    return np.concatenate(places), np.concatenate(values), hiding


# --- how far an estimate is off ---------------------------------------------------------------------


def noise_std(protocol: Protocol) -> float:
    r"""Standard deviation of an estimate that rests on blanket messages alone: :math:`2C\sqrt{n_p v} / (n\beta)`.

    With Laplace noise, :math:`v = 2 / \varepsilon_0^2`, it is the noise of every coordinate whoever reported it.
    """
    spread = (protocol.padded * coordinates.blanket_variance(protocol.randomizer)) ** 0.5
    return float(_estimated(protocol, np.asarray(spread)))
