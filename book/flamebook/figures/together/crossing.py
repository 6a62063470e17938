"""Rows of several mechanisms at one budget, and who errs least."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from flamebook.records import LOOKS, Parameters
from flamebook.statements import AtMost, Finding, compared, silent
from flamelib.uses.deployments import Refusal, row
from flamelib.uses.requests import Request, Row

Key = tuple[str, str]
# A hue for each document, so that its mechanisms are seen together.
DRAWN: dict[str, Key] = {
    "local": ("grey", "s"), "local Gaussian": ("grey", "v"), "trusted curator": ("black", "*"),
    "blanket": ("blue", "o"),
    "simple": ("purple", "^"), "double": ("purple", "D"), "topk": ("purple", "o"),
    "random participation": ("green", "P"),
    "shuffled check-in": ("ochre", "s"), "distributed check-in": ("ochre", "v"),
    "cloak, Theorem 1": ("vermillion", "D"), "cloak, Pólya noise": ("vermillion", "o"),
    "cloak, Skellam noise": ("vermillion", "s"), "cloak, no noise": ("vermillion", "x"),
}  # fmt: skip
FLAME = {name: LOOKS[name] for name in ("simple", "double", "topk")}
HEADER = ["mechanism", "certified", "claimed", "error", "messages", "bits", "who must be trusted", "neighbours"]


@dataclass(frozen=True)
class Crossing:
    """Rows of several mechanisms, and why the others have none."""

    found: tuple[Row, ...]
    refused: tuple[Refusal, ...]
    parameters: Parameters

    def best(self, name: str) -> Row | None:
        """The row of a mechanism that errs least; none where it cannot serve."""
        return min((one for one in self.found if one.mechanism == name), key=lambda one: one.error, default=None)

    def errs_less(self, *names: str, times: float = 1.0) -> Finding:
        """Whether each mechanism errs less than the next one, by more than this factor."""
        found = {name: self.best(name) for name in names}
        errors = [one.error for one in found.values() if one]
        if len(errors) < len(names):
            return silent(f"{next(name for name, one in found.items() if one is None)} does not serve this request")
        if times == 1:
            return compared(errors[:-1], "<", errors[1:])
        return compared([more / less if less else math.inf for less, more in pairwise(errors)], ">", times)

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: one row each, as in ``HEADER``."""
        return [_cells(one) for one in self.found]


def _named(mechanism: str) -> str:
    """As in a legend: the protocols of FLAME by their own names.

    >>> _named("simple"), _named("blanket")
    ('SS-Simple', 'blanket')
    """
    return FLAME[mechanism].label if mechanism in FLAME else mechanism


def _cells(one: Row) -> tuple[object, ...]:
    claimed = "none" if one.claimed is None else one.claimed
    adjacency = f"{one.adjacency} (not comparable)" if one.warning else str(one.adjacency)
    return (
        _named(one.mechanism),
        AtMost(one.epsilon),
        claimed,
        one.error,
        one.messages,
        one.bits,
        one.trusted,
        adjacency,
    )


def compute_rows(request: Request, epsilon: float, names: Iterable[str]) -> Crossing:
    """The mechanisms named, each tuned to one certified epsilon.

    Parameters
    ----------
    request : Request
    epsilon : float, positive
    names : iterable of str
        Of mechanisms.
    """
    return _crossing([row(name, request, epsilon) for name in names], request, {"epsilon": epsilon})


def _crossing(found: Sequence[Row | Refusal], request: Request, told: Parameters) -> Crossing:
    refused = {one.mechanism: one for one in found if isinstance(one, Refusal)}
    rows = tuple(one for one in found if isinstance(one, Row))
    names = ("n_users", "dimension", "rounds", "delta", "task", "sampling_rate")
    return Crossing(rows, tuple(refused.values()), {**{name: getattr(request, name) for name in names}, **told})
