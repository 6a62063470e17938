r"""A client's own privacy ledger: what its rounds have cost it, from public numbers and its own size alone.

The guarantee of random participation is over the coins by which a client joins and draws its records.  So every round
counts in which it was available and threw its coin, **whether it then joined or not**: a client that counts only the
rounds that it joined has conditioned on the coin, and nothing is left of the amplification.  The outcome is therefore
not even asked for, and a ledger that is lost or read by others tells nothing that the server's schedule does not.

Record a round and save *before* the coin is thrown: if something goes wrong after that, the ledger counts a round too
many, never one too few.  Rates, noise and clipping may change from round to round.  Clients of unequal sizes keep a
ledger each, and what the system guarantees to all is the largest of their answers.
"""

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from flamelib.accounting.composition.dominating_pair import MAX_MECHANISMS, Parts, composed
from flamelib.accounting.noise.gaussian import MAX_RATIO
from flamelib.accounting.sampling.rounds import SCHEMES, round_cells
from flamelib.core.guarantees import Certified
from flamelib.core.vocabulary import DomainError, check, keep

_FORMAT = {"format": "flamelib client ledger", "version": 1}


@dataclass(frozen=True, slots=True)
class Announcement:
    """What the server announces of a round; ``scheme`` is one of outer (who joins is hidden), wcs (public), ols, cs."""

    participation_rate: float
    record_rate: float
    noise_std: float
    clip_norm: float
    scheme: str = "outer"

    def __post_init__(self) -> None:
        keep(self, **check(**asdict(self)))
        if self.scheme not in SCHEMES:
            raise DomainError(f"scheme must be one of {', '.join(SCHEMES)} here, got {self.scheme!r}")
        if self.clip_norm / self.noise_std > MAX_RATIO:
            raise DomainError(f"noise_std must be a number of at least clip_norm / 1000 here, got {self.noise_std!r}")


class ClientLedger:
    """The rounds of one client, and their guarantee for each of its records.

    ``n_records`` is the most records that the client will ever hold, the one in question included.
    """

    def __init__(self, n_records: int) -> None:
        self.n_records: int = check(n_records=n_records)["n_records"]
        self._rounds: dict[Announcement, int] = {}

    @property
    def rounds(self) -> int:
        """Rounds recorded."""
        return sum(self._rounds.values())

    def charge(self, announced: Announcement, rounds: int = 1, n_records: int | None = None) -> None:
        """Charge rounds in which the client is available; refused where it holds more records than it declared."""
        given = check(rounds=rounds, n_records=self.n_records if n_records is None else n_records)
        if given["n_records"] > self.n_records:
            raise DomainError(f"n_records must be at most the {self.n_records} of the ledger, got {n_records}")
        self._rounds[announced] = self._rounds.get(announced, 0) + given["rounds"]

    def epsilon(self, delta: float) -> Certified:
        """Least epsilon for this delta of all rounds together (upper, both directions)."""
        delta = check(delta=delta)["delta"]
        return composed(self._parts(), delta=delta) if self._rounds else Certified(0.0, 0.0)

    def delta(self, epsilon: float) -> Certified:
        """Delta at this epsilon of all rounds together (upper, both directions)."""
        epsilon = check(epsilon=epsilon)["epsilon"]
        return composed(self._parts(), epsilon=epsilon) if self._rounds else Certified(0.0, 0.0)

    def remaining(self, announced: Announcement, epsilon: float, delta: float) -> int:
        """Further rounds of this kind within a budget, up to 4 million: never too many, at most 1/1000 too few."""
        epsilon, delta = check(epsilon=epsilon, delta=delta).values()
        if delta == 1:
            return MAX_MECHANISMS - self.rounds
        parts, cells = self._parts(), self._cells(announced)

        def excess(rounds: int) -> float:
            spent = composed([*parts, (cells, rounds)], epsilon=epsilon)
            return math.inf if spent > delta == 0 else math.log(spent / delta) if spent else -math.inf

        return _most_rounds(excess, MAX_MECHANISMS - self.rounds)

    def save(self, path: str | Path) -> None:
        """Write the ledger, whole or not at all."""
        path = Path(path)
        kept = _FORMAT | {"n_records": self.n_records, "rounds": [[asdict(s), n] for s, n in self._rounds.items()]}
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, delete=False) as file:
            try:
                json.dump(kept | {"digest": _digest(kept)}, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise

    @classmethod
    def load(cls, path: str | Path) -> "ClientLedger":
        """Read a ledger; anything but one that was saved, unchanged, is refused."""
        text = Path(path).read_bytes()
        try:
            kept = json.loads(text)
            if kept.pop("digest") != _digest(kept) or kept | _FORMAT != kept:
                raise DomainError("changed")
            ledger = cls(kept["n_records"])
            for announced, rounds in kept["rounds"]:
                ledger.charge(Announcement(**announced), rounds)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise DomainError(f"path must be a ledger as it was saved, version 1, got {str(path)!r}") from None
        return ledger

    def _parts(self) -> Parts:
        return [(self._cells(announced), rounds) for announced, rounds in self._rounds.items()]

    def _cells(self, announced: Announcement) -> Any:
        return round_cells(n_records=self.n_records, **asdict(announced))


def _digest(kept: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _most_rounds(excess: Callable[[int], float], limit: int) -> int:
    """About the greatest number at which the excess, which rises, is at most 0; it was evaluated there."""
    low, at_low = 1, excess(1)
    if limit < 1 or at_low > 0:
        return 0
    high, at_high = limit + 1, math.inf
    while low < limit and math.isinf(at_high):
        middle = min(64 * low, limit)
        value = excess(middle)
        low, at_low, high, at_high = (middle, value, high, at_high) if value <= 0 else (low, at_low, middle, value)
    turn = False
    while high - low > max(1, low // 1000):
        share = at_low / (at_low - at_high) if turn and math.isfinite(at_low) else 0.5
        middle = round(low * (high / low) ** min(max(share, 0.01), 0.99))
        middle, turn = min(max(middle, low + 1), high - 1), not turn
        value = excess(middle)
        low, at_low, high, at_high = (middle, value, high, at_high) if value <= 0 else (low, at_low, middle, value)
    return low
