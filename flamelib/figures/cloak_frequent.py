"""Frequent words by cloak aggregation: one search through a simulated release, beside what really occurs often."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from flamelib.core.arrays import Reals, Wholes
from flamelib.figures.curves import to_csv
from flamelib.figures.style import Pen
from flamelib.mechanisms.sketches.hashing import ALPHABET, LONGEST, spelled
from flamelib.mechanisms.sketches.linear import direct_table
from flamelib.mechanisms.sketches.trees import PrefixSearch
from flamelib.uses.statistics import Release, Words, simulate


@dataclass(frozen=True, slots=True)
class Frequent:
    """Words that occur often, how often, and what a search reported; 0 where it missed one."""

    names: tuple[str, ...]
    true: Wholes
    reported: Reals
    false: tuple[str, ...]
    parameters: Mapping[str, float | str]

    @property
    def recall(self) -> float:
        """Share of the frequent words that were found."""
        return float((self.reported > 0).mean()) if self.names else 1.0

    @property
    def rare(self) -> int:
        """Words that were reported although they do not reach half the threshold."""
        return len(self.false)

    def to_csv(self) -> str:
        """One row a word."""
        return to_csv(["word", "count", "reported"], zip(self.names, self.true, self.reported, strict=True))


def search_sketch(levels: int, columns: int, rows: int, seed: int, signed: bool = True) -> PrefixSearch:
    """A search for words by their letters."""
    return PrefixSearch(ALPHABET, levels, columns, rows, seed, signed=signed, ended=True)


def compute_frequent(book: Words, sketch: PrefixSearch, epsilon: float | None, threshold: int, seed: int) -> Frequent:
    """One search through a noisy table for words, cut to as many letters as the tree has levels."""
    cut = ALPHABET ** (LONGEST - sketch.levels)
    release = Release(sketch, int(book.counts.sum()), epsilon)
    table = simulate(release, direct_table(sketch, book.items // cut, book.counts), np.random.default_rng(seed))
    found = sketch.search(table, threshold)
    items, where = np.unique(book.items // cut, return_inverse=True)
    true = np.bincount(where, weights=book.counts).astype(np.int64)
    often = items[np.argsort(-true, kind="stable")][: int((true >= threshold).sum())]
    known = dict(zip(items.tolist(), true.tolist(), strict=True))
    rare = [item for item in found if known.get(item, 0) < threshold / 2]
    given = {"n_users": release.n_users, "epsilon": math.inf if epsilon is None else epsilon, "threshold": threshold}
    return Frequent(
        tuple(spelled(often * cut)),
        np.array([known[item] for item in often.tolist()]),
        np.array([found.get(item, 0.0) for item in often.tolist()]),
        tuple(spelled(np.array(rare, dtype=np.int64) * cut)),
        given,
    )


def frequent_rows(
    book: Words, sketch: PrefixSearch, epsilons: Iterable[float], threshold: int, seed: int
) -> list[tuple[object, ...]]:
    """For a table: a budget, the share of frequent words that were found, and how many rare ones were reported."""
    searches = [(epsilon, compute_frequent(book, sketch, epsilon, threshold, seed)) for epsilon in epsilons]
    return [(epsilon, found.recall, found.rare) for epsilon, found in searches]


def draw_frequent(ax: Axes, record: Frequent, pen: Pen) -> None:
    """Bars of true counts, points of reported ones."""
    at = np.arange(len(record.names))
    ax.bar(at, record.true, color=pen.colour("kept"), alpha=0.45, label="true count")
    ax.plot(at, record.reported, **pen.line("estimate", linestyle="none", label="reported"))
    ax.set_xticks(at, record.names, rotation=60, ha="right")
    ax.set(ylabel="occurrences")
