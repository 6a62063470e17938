"""The page "Speed, cost, and other software": accountants of others on the same questions, and what runs cost."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from flamebook.places import DATA, RESULTS
from flamebook.runs.recorded import provenance
from flamebook.site.measured import costs
from flamebook.site.measured.beside_peers import FROM_BELOW, OWN, WORKS, AnyWork, NoisyShuffles, Work
from flamebook.statements import at_least, at_most

PINNED, TABLE = DATA / "beside.txt", RESULTS / "beside.csv"
DIGITS = 7  # of an epsilon
HEADER = ("work", "package", "way", "epsilon", "seconds")
HEAD = """\
# Speed, cost, and other software

Other programs answer some of the questions that this book answers. Here they and this library are asked the same
questions, one after the other on one core. In the first kind of question Gaussian noise is added to a sum in every
round. Each record contributes a vector of norm at most 1, a coin decides in every round whether it takes part, and
neighbouring data sets differ by one record that is added or removed. In the second kind yes-or-no answers are shuffled
in every round, and one person's answers are replaced; in the third, numbers in [0, 1] to which each person has added
Gaussian noise.

This library certifies an upper and a lower bound on epsilon. An answer of another program that lies below the lower
bound is no guarantee, and is marked *below the truth*. Above the upper bound an answer is *looser*. Between the two
bounds it is called *tighter*, and our bounds do not decide whether it is a guarantee.

"""
TAIL = """\
## What is not in these tables

Only what `make beside` can repeat stands in the tables. In those on shuffled answers other programs compose the pair of
distributions that this library certifies for one round.

Since May 2026 a package on the index accounts for shuffling by itself: `random-allocation` (version 1.0.5), for any
local randomizer. It needs an older NumPy than the programs of the tables, and so an environment of its own.
`opake-accounting` composes privacy losses as the programs of the first tables do.
[`adaptive-shuffled-gaussian-accounting`](https://github.com/SamMausberg/adaptive-shuffled-gaussian-accounting), by
its own account, certifies rounds of shuffled Gaussian noise by directed rounding, with rational dominating pairs and
proofs in Lean. The code of several papers that account for shuffling is public as well. Of these only
the check-in authors' [`shuffgauss`](https://github.com/spliew/shuffgauss) is in the tables. It
bounds the Rényi divergence of one pair of data sets, all zeros and all zeros but one, in one direction.

## What others do and this library does not

Other programs account for batches from a shuffled order, for balls-and-bins sampling and for random allocation. In all
of these each record takes part in a fixed number of rounds, while here its coins decide in how many rounds it takes
part. This library also has no privacy filters and odometers, no f-DP and GDP curves, no local randomizers with
a delta of their own, no budgets for each person, and no metric privacy. Other programs calibrate and account for many
more mechanisms than those of the five documents, and are part of programs that train models.
"""


def pinned() -> dict[str, str]:
    """Package to version, as they are installed; of one that is on no index, its commit."""
    lines = PINNED.read_text(encoding="utf-8").splitlines()
    found = dict(line.split("==") for line in lines if "==" in line)
    return found | {line.split(" @ ")[0]: line.rpartition("@")[2][:7] for line in lines if " @ " in line}


def page(rows: Sequence[Mapping[str, str]]) -> str:
    """The page in MyST."""
    about = provenance(TABLE.name)
    peers = ", ".join(f"{one} {pinned()[one]}" for one in sorted({row["package"] for row in rows} - {OWN}))
    told = (
        f"Recorded on {about['date']} ({about['machine']}) with {peers}; `make beside` repeats it, with the "
        "versions of `data/beside.txt`. This library's upper bounds are rounded up and its lower bounds down, and the "
        "answers of others to the nearest digit. Times are processor times; short ones differ from run to run.\n"
    )
    tables = (_work(name, list(some)) for name, some in groupby(rows, itemgetter("work")))
    return "\n".join([HEAD + told, *tables, TAIL, costs.section()])


def summary(rows: Sequence[Mapping[str, str]]) -> str:
    """A fragment: one line for each question, with this library's bracket and everybody's best way that holds."""
    peers = sorted({row["package"] for row in rows} - {OWN})
    lines = [f"| question | this library | {' | '.join(peers)} |", "|---" * (2 + len(peers)) + "|"]
    for name, some in groupby(rows, itemgetter("work")):
        found = list(some)
        above, below = (float(row["epsilon"]) for row in found if row["package"] == OWN)
        told = {peer: [float(row["epsilon"]) for row in found if row["package"] == peer] for peer in peers}
        best = (min((one for one in told[peer] if below <= one < math.inf), default=None) for peer in peers)
        cells = ["" if one is None else f"{one:.4f}" for one in best]
        lines.append(f"| {name} | {at_least(below, 5)} to {at_most(above, 5)} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _work(name: str, rows: Sequence[Mapping[str, str]]) -> str:
    own = [row for row in rows if row["package"] == OWN]
    below = next(float(row["epsilon"]) for row in own if row["way"] == FROM_BELOW)
    best = next(row for row in own if row["way"] != FROM_BELOW)
    value, seconds = float(best["epsilon"]), float(best["seconds"])
    told = f"{WORKS[name]}: epsilon is at least {at_least(below, DIGITS)} and at most {at_most(value, DIGITS)}."
    lines = [f"## {_title(WORKS[name])}", "", told, ""]
    lines += [
        "| program | method | epsilon | ratio to ours | time, ratio to ours | verdict |",
        "|---|---|---|---|---|---|",
    ]
    lines.append(f"| this library | from above | {at_most(value, DIGITS)} | 1 | 1 ({1000 * seconds:.3g} ms) | holds |")
    for row in rows:
        if row["package"] != OWN:
            epsilon, took = float(row["epsilon"]), float(row["seconds"])
            cells = [row["package"], row["way"], "none", "", _times(took / seconds), "no answer"]
            if math.isfinite(epsilon):
                cells[2:4] = [f"{epsilon:.6f}", f"{epsilon / value:.4f}"]
                cells[5] = "**below the truth**" if epsilon < below else "tighter" if epsilon < value else "looser"
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _title(work: AnyWork) -> str:
    """What is asked, in words.

    >>> _title(Work(0.01, 1.0, 10_000, 1e-5))
    'Gaussian noise, rate 0.01, 10,000 rounds, delta 1e-05'
    >>> _title(NoisyShuffles(1000, 1.0, 1.0, 100, 1e-5))
    'Shuffled numbers with Gaussian noise of 1,000 people, rate 1, 100 rounds'
    """
    rounds = f"rate {work.rate:g}, {work.rounds:,} round{'s' * (work.rounds > 1)}"
    if isinstance(work, Work):
        return f"Gaussian noise, {rounds}, delta {work.delta:g}"
    if isinstance(work, NoisyShuffles):
        return f"Shuffled numbers with Gaussian noise of {work.n_users:,} people, {rounds}"
    return f"Shuffled answers of {work.n_users:,} people, {rounds}"


def _times(ratio: float) -> str:
    """How many times as long, in two digits.

    >>> _times(0.664), _times(131.2), _times(3021)
    ('0.66', '130', '3,000')
    """
    return f"{float(f'{ratio:.2g}'):,.0f}" if ratio >= 10 else f"{ratio:.2g}"
