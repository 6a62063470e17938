r"""Statistics by cloak aggregation, measured against theory: support, second moment, entropy, distance of crowds.

See :mod:`flamebook.figures.cloak.statistics` for what measured and theory mean.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from flamebook.figures.cloak.statistics import each, rms
from flamebook.figures.cloak.told import number
from flamebook.figures.cloak.words import Words
from flamebook.records import Curves
from flamebook.statements import counted, percent
from flamelib.core.arrays import Reals, Wholes
from flamelib.mechanisms.sketches.counts import CountSketch, SecondMoment
from flamelib.mechanisms.sketches.linear import direct_table, distinct, moments
from flamelib.mechanisms.sketches.norms import CauchyNorm, StableEntropy
from flamelib.mechanisms.sketches.support import LinearCounting, empty_weights
from flamelib.uses.statistics import SketchRelease, shannon, simulate

WIDE = 1e7
CUTOFF = 300.0


# --- support ---------------------------------------------------------------------------------------------------------


def compute_support(
    book: Words, columns: Sequence[int], epsilon: float, threshold: float, repeats: int, seed: int
) -> Curves:
    """Relative error of the number of different words against the number of buckets; theory to leading order."""
    n, support, rng = int(book.counts.sum()), len(book.items), np.random.default_rng(seed)

    def at(width: float) -> dict[str, float]:
        found: dict[str, list[float]] = {"support": [], "unmixed": [], "threshold": []}
        stds = []
        for i in range(repeats):
            sketch = LinearCounting(int(width), seed + i)
            release, table = SketchRelease(sketch, n, epsilon), direct_table(sketch, book.items, book.counts)
            noisy = simulate(release, table, rng)
            stds.append(unmixed_std(sketch, table, support, release.decay))
            found["support"].append(sketch.estimate(table) - support)
            found["unmixed"].append(sketch.unmixed(noisy, release.decay) - support)
            found["threshold"].append(sketch.estimate(noisy, threshold) - support)
        errors = {name: rms(off) / support for name, off in found.items()}
        std = LinearCounting(int(width), seed).std(support)
        return errors | {"support:theory": std / support, "unmixed:theory": rms(stds) / support}

    given = {"n_users": n, "support": support, "epsilon": epsilon, "threshold": threshold}
    given |= {"repeats": repeats, "seed": seed}
    return each("columns", "relative error of the support", columns, at, given)


def support_words(record: Curves) -> dict[str, str]:
    """How far the number of different words is off: without noise, at worst; by each way, with the most buckets.

    >>> plain, none = np.array([0.02, 0.01]), np.array([0.1, np.inf])
    >>> found = {"support": plain, "unmixed": none, "threshold": 40 * plain}
    >>> support_words(Curves("columns", "error", np.array([8.0, 16.0]), found))["ways"]
    '1 % without noise, without bound where noise is taken out and 40 % by a threshold'
    """
    last = {name: _share(float(record.curves[name][-1])) for name in ("support", "unmixed", "threshold")}
    return {
        "support_within": percent(float(record.curves["support"].max())),
        "threshold_off": last["threshold"],
        "ways": f"{last['support']} without noise, {last['unmixed']} where noise is taken out "
        f"and {last['threshold']} by a threshold",
    }


def _share(error: float) -> str:
    return percent(error) if math.isfinite(error) else "without bound"


def entropy_words(record: Curves) -> str:
    """The error of the noisy entropy with the most counters.

    >>> x = np.array([25.0, 400.0])
    >>> entropy_words(Curves("rows", "error", x, {"entropy-noisy": np.array([0.3, 0.08])}))
    'leaves an error of 0.08 nats with 400 counters'
    >>> entropy_words(Curves("rows", "error", x, {"entropy-noisy": np.array([0.3, np.inf])}))
    'is not enough even with 400 counters: the error is infinite'
    """
    error, most = float(record.curves["entropy-noisy"][-1]), counted(int(record.x[-1]), "counter")
    if not math.isfinite(error):
        return f"is not enough even with {most}: the error is infinite"
    return f"leaves an error of {number(float(f'{error:.2g}'))} nats with {most}"


def unmixed_std(sketch: LinearCounting, table: ArrayLike, support: int, decay: float) -> float:
    """Standard deviation of the support when noise is taken out of this table, to leading order."""
    true = np.abs(np.asarray(table, dtype=np.int64))
    chance = (1 - decay) / (1 + decay)
    weights = empty_weights(np.array([-1, 0, 1]), decay)
    second: Reals = sum(
        weight**2 * chance * decay ** np.abs(seen - true) for seen, weight in zip((-1, 0, 1), weights, strict=True)
    )
    noise = float((second - (true == 0)).sum())
    empty = sketch.columns * (1 - 1 / sketch.columns) ** support
    return math.hypot(sketch.std(support), sketch.columns / empty * math.sqrt(max(noise, 0.0)))


# --- second moment ---------------------------------------------------------------------------------------------------


def compute_second_moment(book: Words, columns: int, epsilons: Sequence[float], repeats: int, seed: int) -> Curves:
    r"""Relative error of the sum of squared counts against epsilon: one row of signs by two ways of spending them.

    Signing one counter is quick and is repeated eight times as often.

    Theory: a row of Count-Sketch varies by :math:`2 (F_2^2 - F_4) / w + 4 F_2 \sigma^2 + w (\mu_4 - \sigma^4)`, the
    mean over a row of full sign vectors by :math:`\bigl(2 (F_2^2 - F_4) + 4 F_2 \sigma^2 + \mu_4 - \sigma^4\bigr) / w`.
    """
    square, fourth = moments(book.counts)
    n, rng = int(book.counts.sum()), np.random.default_rng(seed)
    one = [CountSketch(columns, 1, seed + i) for i in range(8 * repeats)]
    every = [SecondMoment(columns, 1, seed + i) for i in range(repeats)]
    tables = [[direct_table(sketch, book.items, book.counts) for sketch in some] for some in (one, every)]

    def at(epsilon: float) -> dict[str, float]:
        few, many = SketchRelease(one[0], n, epsilon), SketchRelease(every[0], n, epsilon)
        short = [
            s.second_moment(simulate(few, t, rng), few.noise_variance) for s, t in zip(one, tables[0], strict=True)
        ]
        long = [s.estimate(simulate(many, t, rng), many.noise_variance) for s, t in zip(every, tables[1], strict=True)]
        return {
            "one-sign": rms(np.array(short) / square - 1),
            "one-sign:theory": math.sqrt(_varies(few, square, fourth, columns)) / square,
            "all-signs": rms(np.array(long) / square - 1),
            "all-signs:theory": math.sqrt(_varies(many, square, fourth, 1) / columns) / square,
        }

    given = {"n_users": n, "columns": columns, "repeats": repeats, "seed": seed}
    return each("epsilon", "relative error of the second moment", epsilons, at, given)


def _varies(release: SketchRelease, square: float, fourth: float, counters: int) -> float:
    """Variance of the sum of squares over a row of counters."""
    p, variance = release.decay, release.noise_variance
    fourth_of_noise = 2 * p * (1 + 10 * p + p * p) / (1 - p) ** 4
    collisions, mixed = 2 * (square**2 - fourth) / counters, 4 * square * variance
    return collisions + mixed + counters * (fourth_of_noise - variance**2)


# --- entropy and distance --------------------------------------------------------------------------------------------


def compute_stable(
    book: Words, labels: ArrayLike, epsilon: float, rows: Sequence[int], repeats: int, seed: int
) -> Curves:
    r"""Errors of sketches by stable laws against their number of counters.

    Entropy in nats, with the standard deviation :math:`\sqrt{3 / K}` or what noise makes of it, and the bias of the
    cutoff where there is noise; the distance of the two halves relative to itself, :math:`\pi / (2 \sqrt K)`.  Counters
    are exchangeable, so the largest sketch is made, ``repeats`` times, and cut into smaller ones.
    """
    classes, counts = distinct(np.asarray(labels, dtype=np.int64))
    change, n, crowd = book.first - book.second, int(book.counts.sum()), int(counts.sum())
    rng, norm = np.random.default_rng(seed), float(np.abs(change).sum())
    most, seeds = max(rows), range(seed, seed + repeats)
    of_words = [direct_table(StableEntropy(most, WIDE, 1000, s), book.items, book.counts) for s in seeds]
    of_labels = [direct_table(StableEntropy(most, CUTOFF, 1000, s), classes, counts) for s in seeds]
    of_change = [direct_table(_norm(most, s), book.items, change) for s in seeds]
    bias = StableEntropy(1, CUTOFF, 1000, seed).bias(counts)

    def at(value: float) -> dict[str, float]:
        k = int(value)
        plain, cut, cauchy = StableEntropy(k, WIDE, 1000, seed), StableEntropy(k, CUTOFF, 1000, seed), _norm(k, seed)
        release = SketchRelease(cut, crowd, epsilon)
        noisy = (simulate(release, table, rng) for table in _cut(of_labels, k))
        return {
            "entropy": rms([plain.estimate(table, n) - shannon(book.counts) for table in _cut(of_words, k)]),
            "entropy-noisy": rms([cut.estimate(table, crowd, release.decay) - shannon(counts) for table in noisy]),
            "norm": rms([cauchy.estimate(table) / norm - 1 for table in _cut(of_change, k)]),
            "entropy:theory": plain.std(n),
            "entropy-noisy:theory": math.hypot(cut.std(crowd, release.decay), bias),
            "norm:theory": math.pi / 2 / math.sqrt(k),
        }

    given = {"n_users": n, "n_labels": crowd, "epsilon": epsilon, "cutoff": CUTOFF}
    given |= {"repeats": repeats, "seed": seed}
    return each("rows", "error: nats, or share of the distance", rows, at, given)


def _norm(rows: int, seed: int) -> CauchyNorm:
    return CauchyNorm(rows, WIDE, 1000, seed)


def norm_failure(book: Words, accuracy: float, rows: int) -> float:
    """Chance, from above, that the distance of the two halves is off by more than a fraction of it."""
    change, sketch = np.abs(book.first - book.second), _norm(rows, seed=0)
    moved = float(book.counts.sum()) / (2 * sketch.grid * float(change.sum()))
    return sketch.failure(accuracy, int(np.count_nonzero(change)), moved)


def _cut(tables: Sequence[Wholes], rows: int) -> list[Wholes]:
    """All tables, each cut into as many of so many counters as there are."""
    return [table[i : i + rows] for table in tables for i in range(0, len(table) - rows + 1, rows)]
