"""The words of a book, which the crowds of the chapter on statistics hold."""

import csv
from functools import cache
from typing import NamedTuple

import numpy as np

from flamebook.places import DATA
from flamelib.core.arrays import Wholes, reals
from flamelib.mechanisms.sketches.hashing import LONGEST, numbered

WORDS = DATA / "words.csv"


class Words(NamedTuple):
    """Words as numbers (:mod:`flamelib.mechanisms.sketches.hashing`), and how often each half of a book has each."""

    spelling: tuple[str, ...]
    items: Wholes
    first: Wholes
    second: Wholes

    @property
    def counts(self) -> Wholes:
        """How often the whole book has each word."""
        return self.first + self.second

    def running(self, share: float = 1.0) -> Wholes:
        """One item for each running word, sorted; or for an even selection of this share of them."""
        every = np.repeat(self.items, self.counts)
        return every[:: round(1 / float(reals("share", share, 1e-6, 1)))]


@cache
def load_words() -> Words:
    """The words of Genesis in the translation of 1611, by frequency; ``data/README.md`` says how they were counted.

    Words are cut after their twelfth letter, which makes one of two of them.
    """
    counts: dict[str, list[int]] = {}
    with WORDS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            halves = counts.setdefault(row["word"][:LONGEST], [0, 0])
            halves[:] = halves[0] + int(row["first"]), halves[1] + int(row["second"])
    first, second = np.array(list(counts.values())).T
    return Words(tuple(counts), numbered(list(counts)), first, second)
