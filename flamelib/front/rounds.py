"""Rounds that differ: what users have been asked so far, or will be asked, and what all of it costs each of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flamelib.accounting.checkin.shuffled import shuffled_history, shuffled_history_lower
from flamelib.accounting.shuffling.randomizers import analysis
from flamelib.core.guarantees import RestsOn
from flamelib.core.vocabulary import DomainError, check
from flamelib.front import questions
from flamelib.front.checkin import Checkin
from flamelib.front.crowd import honest_part
from flamelib.front.results import Guarantee, guarantee
from flamelib.front.shuffled import Shuffled

# Each kind of round has a curve of its own, whose values take up to a second; a history of years has fewer kinds.
MOST_KINDS = 64


@dataclass(frozen=True, slots=True)
class Rounds:
    """Rounds in which the same people were asked, with randomizers, numbers of users and coins that may differ.

    Parameters
    ----------
    parts : sequence of (Shuffled or Checkin, int)
        What was run, and how often, in any order; 1 to 64 entries.  A ``Checkin`` holds a ``Shuffled``, which has no
        dropout here.

    Examples
    --------
    >>> from flamelib import Checkin, KaryResponse, LaplaceNoise, Shuffled, account
    >>> survey = Shuffled(KaryResponse(epsilon0=2.0, n_buckets=10), n_users=100_000)
    >>> mean = Checkin(Shuffled(LaplaceNoise(epsilon0=1.0), n_users=200_000), rate=0.1)
    >>> account(Rounds([(survey, 30), (mean, 100)]), delta=1e-8)
    (0.1863, 1e-08)-DP, replace-one; proven
    """

    parts: Sequence[tuple[Shuffled | Checkin, int]]

    def __post_init__(self) -> None:
        try:
            parts = tuple((protocol, rounds) for protocol, rounds in self.parts)
        except (TypeError, ValueError):
            raise DomainError(f"parts must be pairs of a protocol and its rounds, got {self.parts!r}") from None
        if not 1 <= len(parts) <= MOST_KINDS:
            raise DomainError(f"parts must be 1 to {MOST_KINDS} pairs of a protocol and its rounds, got {len(parts)}")
        for protocol, _ in parts:
            inner = protocol.protocol if isinstance(protocol, Checkin) else protocol
            if not isinstance(inner, Shuffled):
                raise DomainError(f"parts must hold Shuffled, or Checkin of Shuffled, got {protocol!r}")
            if inner.dropout:
                raise DomainError(f"dropout must be 0 in rounds that differ, but for that of Checkin, got {protocol!r}")
        checked = tuple((protocol, check(rounds=rounds)["rounds"]) for protocol, rounds in parts)
        object.__setattr__(self, "parts", checked)


def _history(protocol: Rounds, times: int) -> list[tuple[Any, int, float, int]]:
    found = []
    for part, rounds in protocol.parts:
        alone: Any = honest_part(part)
        inner, rate = (alone.protocol, alone.rate) if isinstance(part, Checkin) else (alone, 1.0)
        found.append((inner.randomizer, inner.n_users, rate, check(rounds=rounds * times)["rounds"]))
    return found


def _account(protocol: Rounds, delta: float | None, epsilon: float | None, rounds: int) -> Guarantee:
    if len(protocol.parts) == 1:
        part, times = protocol.parts[0]
        return questions.account(part, delta=delta, epsilon=epsilon, rounds=check(rounds=rounds * times)["rounds"])
    parts = [part for part in _history(protocol, rounds) if part[0].epsilon0]
    history = [(analysis(one).reduced, *setting) for one, *setting in parts]
    found = shuffled_history(history, epsilon, delta)
    return guarantee(found, RestsOn.PROVEN, epsilon, delta)


def _lower(protocol: Rounds, delta: float | None, epsilon: float | None, rounds: int) -> float:
    alone = max(
        questions.bounds(part, delta=delta, epsilon=epsilon, rounds=times * rounds).lower
        for part, times in protocol.parts
    )
    return max(alone, shuffled_history_lower(_history(protocol, rounds), epsilon, delta))


questions.answers(Rounds, account=_account, lower=_lower)
