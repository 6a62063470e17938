"""Sealed rounds of FLAME with somebody on the way between users and shuffler: what is rejected, and why."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from flamelib.mechanisms import sealing
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame
from flamelib.protocols.flame import Reports

Adversary = Callable[[Reports], Reports]


def changed(reports: Reports) -> Reports:
    """One bit of the first three envelopes is turned over."""
    messages = reports.messages.astype(np.uint8)
    messages[:3, -1] ^= 1
    return replace(reports, messages=messages)


def foreign(reports: Reports) -> Reports:
    """The first three envelopes give way to some that are sealed for another key."""
    messages = reports.messages.copy()
    messages[:3] = sealing.seal(sealing.AnalyzerKey().public, sealing.new_round(), reports.places[:3], [9.0] * 3)
    return replace(reports, messages=messages)


def repeated(reports: Reports) -> Reports:
    """The first three reports come twice."""
    return Reports(*(np.concatenate([part, part[:3]]) for part in (reports.senders, reports.places, reports.messages)))


def copied(reports: Reports) -> Reports:
    """The first sender's envelope for a coordinate is sent in the name of all who report it."""
    messages = reports.messages.copy()
    same = np.flatnonzero(reports.places == reports.places[0])
    messages[same] = messages[0]
    return replace(reports, messages=messages)


ADVERSARIES: tuple[tuple[str, Adversary | None], ...] = (
    ("nobody", None),
    ("a bit turned over in 3 envelopes", changed),
    ("3 envelopes sealed for another key", foreign),
    ("3 reports sent twice", repeated),
    ("1 envelope copied to all reports of its coordinate", copied),
)


def sealed_rounds(
    n_users: int, dimension: int, kept: int, padded: int, epsilon0: float, seed: int
) -> list[list[object]]:
    """One sealed round of SS-Topk against each adversary: messages accepted, messages rejected by reason.

    Every round draws its keys anew, from the operating system; updates and noise come from the seed.
    """
    protocol = flame.TopkProtocol(n_users, dimension, 1.0, LaplaceNoise(epsilon0), kept, padded)
    updates = np.random.default_rng(seed).normal(size=(n_users, dimension))
    rows: list[list[object]] = []
    for name, adversary in ADVERSARIES:
        result = flame.run_sealed(protocol, updates, np.random.default_rng(seed), adversary)
        reasons = ", ".join(f"{count} {reason}" for reason, count in result.rejected.items() if count)
        rows.append([name, int(result.received.sum()), reasons or "none"])
    return rows
