"""Statistics by cloak aggregation, measured against theory: sums, counts, ranks, frequent words.

Errors are measured on simulated releases (:func:`flamelib.uses.statistics.simulate`): the table of real data, with the
law of all users' noise.  A curve called ``name:theory`` is an exact standard deviation or mean, unless its function
says otherwise; where noise is added, its budget is that of the whole table.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from flamebook.figures.cloak.words import Words
from flamebook.figures.curves import name_decades
from flamebook.figures.style import Pen
from flamebook.records import LOOKS, Curves, columns_csv, words
from flamebook.statements import Finding, compared, counted, listed, percent, silent
from flamelib.core.arrays import Reals, Wholes, reals
from flamelib.mechanisms.encoding import round_randomly
from flamelib.mechanisms.integers.randomness import Simulation
from flamelib.mechanisms.sketches.counts import CountMin, CountSketch, SecondMoment
from flamelib.mechanisms.sketches.hashing import ALPHABET, LONGEST, spelled
from flamelib.mechanisms.sketches.linear import Sketch, Total, direct_table, distinct
from flamelib.mechanisms.sketches.norms import CauchyNorm, StableEntropy
from flamelib.mechanisms.sketches.support import LinearCounting, WeightedCounting
from flamelib.mechanisms.sketches.trees import DyadicQuantiles, PrefixSearch
from flamelib.uses.statistics import SketchRelease, collect, simulate

ROWS: Mapping[str, int] = {"one-row": 1, "three-rows": 3, "five-rows": 5}
MOST_DRAWN = 40  # words that a picture has room for
MOST_FOLLOWED = 10_000  # prefixes of a search
FAR = 4  # standard deviations of a measured mean, beyond which it does not come by chance


def rms(errors: ArrayLike) -> float:
    """Root mean square.

    >>> rms([3, -4, 0, 0])
    2.5
    """
    return math.sqrt(float(np.square(np.asarray(errors, dtype=float)).mean()))


def each(
    x_name: str,
    y_name: str,
    x: Sequence[float],
    at: Callable[[float], Mapping[str, float]],
    parameters: Mapping[str, float | str],
) -> Curves:
    """Curves from a function that answers all of them at one place."""
    found = [at(value) for value in x]
    curves: dict[str, Reals] = {name: np.array([one[name] for one in found]) for name in found[0]}
    return Curves(x_name, y_name, np.array(x, dtype=float), curves, parameters)


def by_protocol(release: SketchRelease, items: ArrayLike, seed: int) -> Wholes:
    """One table by the protocol itself, every user's shares included."""
    return collect(release, items, Simulation(np.random.default_rng(seed)))


def protocol_findings(items: Wholes, epsilon: float, seed: int) -> tuple[Finding, Finding]:
    """Whether a protocol's table is the direct one, and whether noise keeps to the room that the modulus has for it."""
    sketch = CountSketch(columns=32, rows=1, seed=seed)
    direct, noisy = direct_table(sketch, items), SketchRelease(sketch, len(items), epsilon)
    wrong = by_protocol(SketchRelease(sketch, len(items)), items, seed) != direct
    noise = by_protocol(noisy, items, seed) - direct
    return compared(wrong.sum(), "==", 0), compared(abs(noise).max(), "<=", noisy.room)


def weighted_finding(items: Wholes, seed: int) -> Finding:
    """Whether random weights modulo 2^61 - 1 come through the protocol."""
    weighted = WeightedCounting(columns=64, seed=seed)
    through = by_protocol(SketchRelease(weighted, len(items)), items, seed)
    return compared((through != weighted.table(items)).sum(), "==", 0)


# --- sums ------------------------------------------------------------------------------------------------------------


def compute_mean(values: ArrayLike, scale: int, epsilons: Sequence[float], repeats: int, seed: int) -> Curves:
    r"""Error of the mean of numbers in [0, 1] against epsilon; theory: :math:`\mathrm{Var} W / k^2` and rounding."""
    numbers = reals("values", values, 0, 1)
    rng, n = np.random.default_rng(seed), len(numbers)
    parts = numbers * scale - np.floor(numbers * scale)
    rounding = float((parts * (1 - parts)).sum()) / scale**2
    sketch = Total(scale)

    def at(epsilon: float) -> dict[str, float]:
        release = SketchRelease(sketch, n, epsilon)
        tables = (direct_table(sketch, round_randomly(numbers, scale, rng)) for _ in range(repeats))
        found = [sketch.estimate(simulate(release, table, rng)) / n - numbers.mean() for table in tables]
        exact = math.sqrt(release.noise_variance / scale**2 + rounding) / n
        return {"split-and-mix": rms(found), "split-and-mix:theory": exact, "local:theory": math.sqrt(2 / n) / epsilon}

    given = {"n_users": n, "scale": scale, "repeats": repeats, "seed": seed}
    return each("epsilon", "error of the mean", epsilons, at, given)


# --- counts ----------------------------------------------------------------------------------------------------------


def compute_widths(book: Words, columns: Sequence[int], rows: int, epsilon: float, repeats: int, seed: int) -> Curves:
    """Errors of all words' counts against the width of a row: mean for Count-Min, root mean square for Count-Sketch."""
    counts, n = book.counts, int(book.counts.sum())
    others = float(np.square(counts).sum()) - np.square(counts).mean()

    def errors(sketch: CountMin | CountSketch, spent: float | None, seed: int) -> Reals:
        release = SketchRelease(sketch, n, spent)
        noisy = simulate(release, direct_table(sketch, book.items, counts), np.random.default_rng(seed))
        return np.asarray(sketch.estimate(noisy, book.items) - counts)

    def at(width: float) -> dict[str, float]:
        w, seeds = int(width), range(seed, seed + repeats)
        noise = SketchRelease(CountSketch(w, 1, seed), n, epsilon).noise_variance
        return {
            "count-min": float(np.mean([errors(CountMin(w, 1, s), None, s).mean() for s in seeds])),
            "count-min:theory": float((n - counts).mean()) / w,
            "count-min-rows": float(np.mean([errors(CountMin(w, rows, s), None, s).mean() for s in seeds])),
            "count-sketch": rms([rms(errors(CountSketch(w, 1, s), None, s)) for s in seeds]),
            "count-sketch:theory": math.sqrt(others / w),
            "count-sketch-noisy": rms([rms(errors(CountSketch(w, 1, s), epsilon, s)) for s in seeds]),
            "count-sketch-noisy:theory": math.sqrt(others / w + noise),
        }

    given = {"n_users": n, "rows": rows, "epsilon": epsilon, "repeats": repeats, "seed": seed}
    return each("columns", "error of a count", columns, at, given)


def noise_added(record: Curves) -> str:
    """By how much noise in one row makes the error of a count larger, at the width where that is most."""
    ratio = record.curves["count-sketch-noisy:theory"] / record.curves["count-sketch:theory"]
    return percent(float(ratio.max()) - 1)


def excess_agrees(record: Curves, book: Words) -> Finding:
    """Whether the mean excess of Count-Min is that of the formula to one half, at every width.

    Says nothing where so few hash seeds scatter by more.  The excess of all words together is a sum over pairs that
    collide, each by the sum of its counts; its variance is that of pairs that collide independently.
    """
    counts, seeds = book.counts.astype(float), float(record.parameters["repeats"])
    pairs = (len(counts) - 1) * float(np.square(counts).sum()) + counts.sum() ** 2 - float(np.square(counts).sum())
    spread = np.sqrt(pairs / record.x / seeds) / len(counts) / record.curves["count-min:theory"]
    if FAR * spread.max() > 0.5:
        return silent(f"{counted(int(seeds), 'hash seed')} may miss the formula by {percent(FAR * spread.max())}")
    return compared(np.abs(record.curves["count-min"] / record.curves["count-min:theory"] - 1), "<", 0.5)


def compute_rows(book: Words, columns: int, epsilons: Sequence[float], repeats: int, seed: int) -> Curves:
    """Errors of Count-Sketch against epsilon for one, three and five rows, between which the budget is split.

    Theory is exact for one row; for several it is the noise alone, and collisions come on top.
    """
    counts, n = book.counts, int(book.counts.sum())
    others = (float(np.square(counts).sum()) - np.square(counts).mean()) / columns
    sketches = {name: [CountSketch(columns, d, seed + i) for i in range(repeats)] for name, d in ROWS.items()}
    tables = {name: [direct_table(one, book.items, counts) for one in some] for name, some in sketches.items()}
    rng = np.random.default_rng(seed)

    def at(epsilon: float) -> dict[str, float]:
        found: dict[str, float] = {}
        for name, some in sketches.items():
            release = SketchRelease(some[0], n, epsilon)
            pairs = zip(some, tables[name], strict=True)
            found[name] = rms([rms(s.estimate(simulate(release, t, rng), book.items) - counts) for s, t in pairs])
            noise = median_noise_std(release.decay, ROWS[name])
            found[f"{name}:theory"] = math.sqrt(noise**2 + others) if ROWS[name] == 1 else noise
        return found

    given = {"n_users": n, "columns": columns, "repeats": repeats, "seed": seed}
    return each("epsilon", "error of a count", epsilons, at, given)


def best_rows(record: Curves) -> str:
    """With how many rows the measured error is least, from epsilon to epsilon.

    >>> x, rising = np.array([0.1, 1.0, 3.0]), np.array([1.0, 3.0, 3.0])
    >>> best_rows(Curves("epsilon", "error", x, {"one-row": rising, "three-rows": 4 - rising}))
    'with one row at 0.1 and with three rows at 1 to 3'
    """
    names = [name for name in ROWS if name in record.curves]
    least = np.argmin([record.curves[name] for name in names], axis=0).tolist()
    found = []
    for best, places in groupby(zip(least, record.x, strict=True), key=itemgetter(0)):
        ends = [f"{x:g}" for _, x in places]
        found.append(f"with {names[best].replace('-', ' ')} at {' to '.join(dict.fromkeys((ends[0], ends[-1])))}")
    return listed(found)


def median_noise_std(decay: float, rows: int) -> float:
    """Standard deviation of the median of an odd number of discrete Laplace numbers: a sum over binomial tails.

    >>> round(median_noise_std(0.5, 1) ** 2, 6), median_noise_std(0.5, 3) < median_noise_std(0.5, 1)
    (4.0, True)
    """
    size = np.arange(math.ceil(40 / -math.log(decay)) + 1)
    beyond = binom.sf(rows // 2, rows, decay ** (size + 1) / (1 + decay))
    return math.sqrt(float(2 * ((2 * size + 1) * beyond).sum()))


# --- ranks -----------------------------------------------------------------------------------------------------------


def ink(images: NDArray[np.uint8]) -> tuple[Wholes, int]:
    """The sum of all pixels of each picture, and the levels of a tree that holds any such sum.

    >>> [part.tolist() for part in map(np.asarray, ink(np.full((1, 2, 2), 255, dtype=np.uint8)))]
    [[1020], 10]
    """
    return images.sum(axis=(1, 2), dtype=np.int64), (255 * images[0].size).bit_length()


def compute_ranks(values: ArrayLike, levels: int, epsilons: Sequence[float], repeats: int, seed: int) -> Curves:
    """Error of a rank against epsilon, over many thresholds, in percent of the users: a tree, and a counter a value.

    Theory counts the counters that each rank reads.
    """
    items, counts = distinct(np.asarray(values, dtype=np.int64))
    n, rng = int(counts.sum()), np.random.default_rng(seed)
    ends = np.unique(rng.integers(1, 2**levels, size=2000))
    tree, flat = DyadicQuantiles(levels), _Flat(2**levels)
    nodes, table, single = np.bitwise_count(ends), direct_table(tree, items, counts), direct_table(flat, items, counts)
    exact = tree.rank(table, ends)

    def at(epsilon: float) -> dict[str, float]:
        deep, wide = SketchRelease(tree, n, epsilon), SketchRelease(flat, n, epsilon)
        by_tree = [rms(tree.rank(simulate(deep, table, rng), ends) - exact) for _ in range(repeats)]
        by_sums = [rms(np.cumsum(simulate(wide, single, rng))[ends - 1] - exact) for _ in range(repeats)]
        return {
            "tree": 100 * rms(by_tree) / n,
            "tree:theory": 100 * math.sqrt(nodes.mean() * deep.noise_variance) / n,
            "flat": 100 * rms(by_sums) / n,
            "flat:theory": 100 * math.sqrt(ends.mean() * wide.noise_variance) / n,
        }

    given = {"n_users": n, "levels": levels, "repeats": repeats, "seed": seed}
    return each("epsilon", "error of a rank (% of users)", epsilons, at, given)


@dataclass(frozen=True, slots=True)
class _Flat:
    """A counter for every value: what the tree is compared with."""

    size: int
    bound: int = 1
    sensitivity: int = 2

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    def cells(self, items: ArrayLike) -> tuple[Wholes, Wholes]:
        places = np.ravel(np.asarray(items, dtype=np.int64))[None]
        return places, np.ones_like(places)


def quantile_rows(
    values: Wholes, levels: int, epsilon: float, shares: Iterable[float], seed: int
) -> list[list[object]]:
    """For a table: a share, the true quantile, the one that is released, and the share that lies below that one."""
    tree, n = DyadicQuantiles(levels), len(values)
    exact = direct_table(tree, values)
    noisy = simulate(SketchRelease(tree, n, epsilon), exact, np.random.default_rng(seed))
    rows: list[list[object]] = []
    for share in shares:
        found = tree.quantile(noisy, share, n)
        rows.append([share, tree.quantile(exact, share, n), found, float(np.mean(values <= found))])
    return rows


# --- all of them -----------------------------------------------------------------------------------------------------


RELEASE_HEADER = ("sketch", "counters", "sensitivity", "noise of a counter", "messages a counter", "bytes a user")


def all_sketches(speller: PrefixSearch, seed: int) -> dict[str, Sketch]:
    """A sketch of each kind, in a size of this page, beside the one that finds frequent words."""
    return {
        "mean": Total(10_000),
        "Count-Min, 5 x 1024": CountMin(1024, 5, seed),
        "Count-Sketch, 1 x 16384": CountSketch(16384, 1, seed),
        "frequent words": speller,
        "quantiles, 4096 values": DyadicQuantiles(12),
        "support": LinearCounting(8192, seed),
        "second moment, one sign": CountSketch(100, 1, seed),
        "second moment, all signs": SecondMoment(100, 1, seed),
        "entropy": StableEntropy(100, 300.0, 1000, seed),
        "distance": CauchyNorm(100, 1e6, 10, seed),
    }


def release_rows(sketches: Mapping[str, Sketch], n_users: int, epsilon: float) -> list[list[object]]:
    """For a table, as in ``RELEASE_HEADER``: what each sketch asks of a user, and its noise for the same budget."""
    rows: list[list[object]] = []
    for name, sketch in sketches.items():
        release = SketchRelease(sketch, n_users, epsilon)
        noise = math.sqrt(release.noise_variance)
        size = (release.bits + 7) // 8
        rows.append([name, release.counters, sketch.sensitivity, noise, release.n_messages, size])
    return rows


def draw_errors(ax: Axes, record: Curves, pen: Pen) -> None:
    """Measured errors as points and theory as lines, on double logarithmic axes."""
    ax.set(xscale="log", yscale="log", xlabel=words(record.x_name), ylabel=words(record.y_name))
    for name, values in record.curves.items():
        key, _, theory = name.partition(":")
        finite = np.where(np.isfinite(values), values, np.nan)
        if theory:
            alone = key not in record.curves
            ax.plot(record.x, finite, **pen.line(key, marker="", label=LOOKS[key].label if alone else "_"))
        else:
            ax.plot(record.x, finite, **pen.line(key, linestyle="none"))
    name_decades(ax)


@dataclass(frozen=True, slots=True)
class Frequent:
    """Words that occur often, how often, and what a search reported; 0 where it missed one."""

    names: tuple[str, ...]
    true: Wholes
    reported: Reals
    false: tuple[str, ...]
    followed: int
    parameters: Mapping[str, float | str]

    @property
    def recall(self) -> float:
        """Share of the frequent words that were found."""
        return float((self.reported > 0).mean()) if self.names else 1.0

    @property
    def share(self) -> float | str:
        """The recall for a table, or that there is nothing to find."""
        return self.recall if self.names else "no such word"

    @property
    def complete(self) -> Finding:
        """Whether every frequent word was found; where the search had to drop prefixes, one may be lost."""
        if not self.names:
            return silent("no word is so frequent")
        if self.recall < 1 and self.followed >= MOST_FOLLOWED:
            return silent(f"more than {MOST_FOLLOWED:,} prefixes reach the threshold, and the search follows no more")
        return compared(self.recall, "==", 1)

    @property
    def drawn(self) -> str:
        """How many of the frequent words a picture shows.

        >>> Frequent(("and", "the"), np.array([9, 8]), np.array([9.0, 0.0]), (), 1, {}).drawn
        'all 2'
        """
        if not self.names:
            return "none"
        return (
            f"all {len(self.names)}"
            if len(self.names) <= MOST_DRAWN
            else f"the first {MOST_DRAWN} of {len(self.names):,}"
        )

    @property
    def rare(self) -> int:
        """Words that were reported although they do not reach half the threshold."""
        return len(self.false)

    def to_csv(self) -> str:
        """One row a word."""
        return columns_csv({"word": self.names, "count": self.true, "reported": self.reported})


def search_sketch(levels: int, columns: int, rows: int, seed: int, signed: bool = True) -> PrefixSearch:
    """A search for words by their letters."""
    return PrefixSearch(ALPHABET, levels, columns, rows, seed, signed=signed, ended=True)


def compute_frequent(book: Words, sketch: PrefixSearch, epsilon: float | None, threshold: int, seed: int) -> Frequent:
    """One search through a noisy table for words, cut to as many letters as the tree has levels."""
    cut = ALPHABET ** (LONGEST - sketch.levels)
    release = SketchRelease(sketch, int(book.counts.sum()), epsilon)
    table = simulate(release, direct_table(sketch, book.items // cut, book.counts), np.random.default_rng(seed))
    found = sketch.search(table, threshold, MOST_FOLLOWED)
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
        len(found),
        given,
    )


def frequent_rows(
    book: Words, sketch: PrefixSearch, epsilons: Iterable[float], threshold: int, seed: int
) -> list[tuple[object, ...]]:
    """For a table: a budget, the share of frequent words that were found, and how many rare ones were reported."""
    searches = [(epsilon, compute_frequent(book, sketch, epsilon, threshold, seed)) for epsilon in epsilons]
    return [(epsilon, found.share, found.rare) for epsilon, found in searches]


def draw_frequent(ax: Axes, record: Frequent, pen: Pen) -> None:
    """Bars of true counts, points of reported ones, for the most frequent words."""
    names = record.names[:MOST_DRAWN]
    at = np.arange(len(names))
    ax.bar(at, record.true[: len(at)], color=pen.colour("kept"), alpha=0.45, label="true count")
    ax.plot(at, record.reported[: len(at)], **pen.line("estimate", linestyle="none", label="reported"))
    ax.set_xticks(at, names, rotation=60, ha="right")
    ax.set(ylabel="occurrences")
