"""The page "Speed, cost, and other software": accountants of others on the same questions, and what runs cost."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from flamebook.places import DATA, RESULTS, ROOT
from flamebook.runs.recorded import provenance
from flamebook.site.measured import beside_peers, costs
from flamebook.site.measured.beside_peers import FROM_BELOW, OWN, WORKS, AnyWork, Work
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
in every round, and one person's answers are replaced. In the third, only the local budget of the randomizer that all
people share is known, and there is one round; in the fourth, people send numbers in [0, 1] to which they have added
Gaussian noise.

This library certifies an upper and a lower bound on epsilon. An answer of another program that lies below the lower
bound is no guarantee, and is marked *below the truth*. Above the upper bound an answer is *looser*. Between the two
bounds it is called *tighter*, and our bounds do not decide whether it is a guarantee. On sampled Gaussian noise others
are tighter by a few hundredths of a percent, because the grid of this library's upper bound may change delta by 2 %.
With a finer grid it comes as close, in several times its time.

"""
BELOW = """\
## Answers below the truth

Each line is an answer that is no guarantee for what was asked, with what epsilon is at least. After `make beside` the
command prints every program's answer to the question, and both bounds of this library. A hundred rounds of noise 10
without sampling are one round of noise 1, whose epsilon has a closed form: `flamelib evaluate participation:thm-2.4
sensitivity=1 noise_std=1 delta=1e-6`. At a delta of 1e-12 the answer of `dp-accounting` depends on the processor: with
the instructions of AVX-512, NumPy rounds otherwise, and the same versions differ by 0.02 at the default step and by 0.1
at the finer one, as the two tables on this question show.

"""
TAIL = """\
## What is not in these tables

Only what `make beside` can repeat stands in the tables. In those on yes-or-no answers other programs compose the pair
of distributions that this library certifies for one round. `random-allocation` is asked through the function that its
own scheme of shuffling calls. Its bound, of 2021, also holds where the randomizer of a person depends on the messages
before it; this library's bound, with as many clones as binary response has, is proven for one randomizer that all
people share. `opake-accounting` is asked through its compiled part, for its classes cannot be imported under Python
3.11 (`import opake.accounting` raises `TypeError` in 3.11.7, and not in 3.13.0). The check-in authors'
[`shuffgauss`](https://github.com/spliew/shuffgauss) bounds the Rényi divergence of one pair of data sets, all zeros and
all zeros but one, in one direction; the orders that it chooses are 13 or less, so that none above 20 would change its
answers.

{cite:t}`mausberg2026certified` certifies epsilon by interval arithmetic, for another kind of shuffling: records are
read in a shuffled order, in batches of a fixed size, with Gaussian noise on the sum of each batch. By its own account,
which we have read and not run, bounds are rounded in a known direction at 256 bits, the dominating pair of an epoch has
rational masses and is composed in whole numbers, and parts of the proof, though not the programs, are checked in Lean.
It covers 1,000 batches an epoch at noise 1 and 2.
This library has no account of such batches; it computes in double precision, and adds bounds on the rounding error to
its answers. The code of several papers that account for shuffling is public as well.

## What others do and this library does not

Other programs account for batches from a shuffled order, for balls-and-bins sampling and for random allocation; who
accounts for such batches as if records had been drawn independently may claim several times too much privacy
{cite:p}`chua2024private,chua2024scalable,annamalai2026shuffle`. In all of these each record takes part in a fixed
number of rounds, while here its coins decide in how many rounds it takes part. This library also has no privacy filters
and odometers, no f-DP and GDP curves, no local randomizers with a delta of their own, no budgets for each person, and
no metric privacy. Other programs calibrate and account for many more mechanisms than those of the five documents, and
are part of programs that train models.
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
    return "\n".join([HEAD + told, *tables, _below(rows), TAIL, costs.section()])


def _below(rows: Sequence[Mapping[str, str]]) -> str:
    """Every answer below the certified end, and the commands that show it."""
    ends = {row["work"]: float(row["epsilon"]) for row in rows if row["way"] == FROM_BELOW}
    wrong = [row for row in rows if row["package"] != OWN and float(row["epsilon"]) < ends[row["work"]]]
    lines = ["| program | method | question | its epsilon | epsilon is at least |", "|---|---|---|---|---|"]
    for row in wrong:
        program = f"{row['package']} {pinned()[row['package']]}"
        told = at_least(ends[row["work"]], DIGITS)
        lines.append(f"| {program} | {row['way']} | {row['work']} | {float(row['epsilon']):.6f} | {told} |")
    commands = [f"$ {command(name)}" for name in dict.fromkeys(row["work"] for row in wrong)]
    return BELOW + "\n".join([*lines, "", "```console", *commands, "```", ""])


def command(name: str) -> str:
    """What prints everybody's answer to one question, at the root of a clone after ``make beside``."""
    work, script = WORKS[name], beside_peers.__file__.removeprefix(f"{ROOT}/")
    disabled = f'NPY_DISABLE_CPU_FEATURES="{work.without}" ' if isinstance(work, Work) and work.without else ""
    return f'{disabled}PYTHONPATH=. _build/beside/bin/python -W ignore {script} "{name}"'


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
    >>> _title(WORKS["any randomizer of budget 1 once, shuffled"])
    'Shuffled messages of 10,000 people, any randomizer of budget 1, rate 1, 1 round'
    """
    rounds = f"rate {work.rate:g}, {work.rounds:,} round{'s' * (work.rounds > 1)}"
    if isinstance(work, Work):
        return f"Gaussian noise, {rounds}, delta {work.delta:g}" + ", without AVX-512" * bool(work.without)
    sent = {"kary": "answers", "gaussian": "numbers with Gaussian noise", "any": "messages"}[work.kind]
    local = f", any randomizer of budget {work.randomizer.epsilon0:g}" if work.kind == "any" else ""
    return f"Shuffled {sent} of {work.n_users:,} people{local}, {rounds}"


def _times(ratio: float) -> str:
    """How many times as long, in two digits.

    >>> _times(0.664), _times(131.2), _times(3021)
    ('0.66', '130', '3,000')
    """
    return f"{float(f'{ratio:.2g}'):,.0f}" if ratio >= 10 else f"{ratio:.2g}"
