r"""Claims about accuracy that no registered function states: sums, posterior means, the lower bound's lemmas.

Outcomes are enumerated; exact fractions are used where a lemma is a rational inequality.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from flamebook.claims import truth as enumeration
from flamelib.accounting.shuffling import accuracy, calibration, closed_form
from flamelib.core.divergences import shuffled_delta, shuffled_law


def _summation_rows(values: Sequence[float], n_levels: int, blanket_mass: float, lowest: int) -> list[list[float]]:
    """One row a user: round at random to 0..n_levels, then keep or redraw from ``lowest``..n_levels."""
    redraw = enumeration.replacement_table(n_levels + 1, blanket_mass, range(lowest, n_levels + 1))
    rows = []
    for value in values:
        floor = min(int(value * n_levels), n_levels - 1)
        up = value * n_levels - floor
        rows.append([(1 - up) * a + up * b for a, b in zip(redraw[floor], redraw[floor + 1], strict=True)])
    return rows


def _estimates(values: Sequence[float], n_levels: int, blanket_mass: float, lowest: int) -> list[tuple[float, float]]:
    rows = _summation_rows(values, n_levels, blanket_mass, lowest)
    noise = len(values) * blanket_mass / 2
    return [
        (weight, (sum(y * count for y, count in enumerate(counts)) / n_levels - noise) / (1 - blanket_mass))
        for counts, weight in shuffled_law(rows, range(len(values))).items()
    ]


def summation_bias(values: Sequence[float], n_levels: int, blanket_mass: float, lowest: int = 0) -> float:
    """Bias of the analyzer of Algorithm 3 by every outcome; ``lowest`` is the least replacement message."""
    estimates = _estimates(values, n_levels, blanket_mass, lowest)
    return math.fsum(weight * estimate for weight, estimate in estimates) - math.fsum(values)


def summation_mse(values: Sequence[float], n_levels: int, blanket_mass: float) -> float:
    """Mean squared error of Algorithm 3 by every outcome."""
    truth = math.fsum(values)
    return math.fsum(w * (estimate - truth) ** 2 for w, estimate in _estimates(values, n_levels, blanket_mass, 0))


def alphabet_mass(n_users: int, epsilon: float, delta: float, extra: int) -> float:
    """Blanket mass of the planned protocol over the one of Theorem 3.1 for ``n_levels + extra`` messages."""
    plan = accuracy.summation_plan(n_users, epsilon, delta)
    return plan.blanket_mass / closed_form.histogram_blanket_mass(n_users, plan.n_levels + extra, epsilon, delta)


def bound_over_plan(n_users: int, epsilon: float, delta: float) -> float:
    """Error bound of Theorem 4.1 over the exact worst-case error of the planned protocol; at least 1."""
    plan = accuracy.summation_plan(n_users, epsilon, delta)
    return plan.mse_bound / plan.mse


def error_at_equal_privacy(n_users: int, epsilon: float, delta: float) -> float:
    """Exact worst-case error of the sum by the certified divergence over that of Theorem 4.1."""
    certified = calibration.certified_summation_plan(n_users, epsilon, delta)
    return certified.mse / accuracy.summation_plan(n_users, epsilon, delta).mse


def levels_over_cube_root(n_users: int, epsilon: float, delta: float, exact: bool) -> float:
    """The best whole number of levels over ``(n / c) ** (1/3)``, ``c = 14 log(2/delta) / epsilon^2``.

    Best for the ``exact`` worst-case error, or for the bound of Theorem 4.1.
    """
    cells = math.cbrt(n_users * epsilon**2 / (14 * math.log(2 / delta)))
    if exact:
        return accuracy.summation_plan(n_users, epsilon, delta).n_levels / cells
    return min(range(1, math.ceil(3 * cells)), key=lambda k: _bound(n_users, k, epsilon, delta)) / cells


def _bound(n_users: int, n_levels: int, epsilon: float, delta: float) -> float:
    mass = closed_form.histogram_blanket_mass(n_users, n_levels + 1, epsilon, delta)
    return n_users / (1 - mass) ** 2 * (1 / (4 * n_levels**2) + mass / 2)


def formula_over_enumeration(values: Sequence[float], n_levels: int, blanket_mass: float) -> float:
    """The closed form of the mean squared error over the enumerated one."""
    return accuracy.summation_mse(values, n_levels, blanket_mass) / summation_mse(values, n_levels, blanket_mass)


def worst_input_is_interior(n_levels: int, blanket_mass: float, points: int) -> bool:
    """Whether the enumerated error over [0, 1/2] is largest inside the first cell, at the input announced."""
    grid = [i / (2 * (points - 1)) for i in range(points)]
    worst = max(grid, key=lambda x: summation_mse([x], n_levels, blanket_mass))
    announced = accuracy.worst_input(n_levels, blanket_mass)
    return 0 < worst < 1 / n_levels and abs(worst - min(announced, 1 - announced)) <= grid[1]


def bits_slope(epsilon: float, delta: float) -> float:
    """Growth of the message length, in bits per doubling of the users, from 1e8 to 1e14 users."""
    populations = [10**e for e in range(8, 15)]
    bits = [math.log2(accuracy.summation_plan(n, epsilon, delta).n_levels + 1) for n in populations]
    return float(np.polyfit(np.log2(np.array(populations, dtype=float)), bits, 1)[0])


def gap_growth(n_users: int, epsilon: float, first_delta: float, last_delta: float) -> float:
    """How much the ratio upper / lower bound grows when delta falls from the first value to the last."""
    ratios = [
        accuracy.summation_plan(n_users, epsilon, delta).mse / accuracy.summation_lower(n_users, epsilon, delta)
        for delta in (first_delta, last_delta)
    ]
    return float(ratios[1] / ratios[0])


# --- the lower bound, Section 4.2 -------------------------------------------------------------------


def _random_table(rows: int, columns: int, sharpness: float, rng: np.random.Generator) -> NDArray[np.float64]:
    weights = rng.exponential(size=(rows, columns)) ** sharpness
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)


def _midpoints(cells: int) -> list[float]:
    return [(2 * i + 1) / (2 * cells) for i in range(cells)]


def _posterior_means(table: NDArray[np.float64], inputs: Sequence[float]) -> NDArray[np.float64]:
    return np.asarray(np.array(inputs) @ table / table.sum(axis=0), dtype=np.float64)


def posterior_mean_is_best(cells: int, n_users: int, tables: int, seed: int) -> bool:
    """Whether the sum of posterior means is the conditional mean of the sum given the histogram of messages.

    The conditional mean has the least expected squared error of all analyzers, so equality proves the lemma
    on that table.  All inputs and all messages are enumerated.
    """
    rng, inputs = np.random.default_rng(seed), _midpoints(cells)
    for _ in range(tables):
        table = _random_table(cells, cells + 1, 2.0, rng)
        means = _posterior_means(table, inputs)
        for messages in product(range(cells + 1), repeat=n_users):
            weights = [
                (math.prod(table[x][y] for x, y in zip(values, messages, strict=True)), sum(inputs[x] for x in values))
                for values in product(range(cells), repeat=n_users)
            ]
            conditional = math.fsum(w * s for w, s in weights) / math.fsum(w for w, _ in weights)
            if not math.isclose(conditional, sum(means[y] for y in messages), rel_tol=1e-9):
                return False
    return True


def merging_keeps_privacy(n_users: int, tables: int, seed: int, epsilon: float) -> bool:
    """Whether relabelling messages (here: merging the last two) never raises the exact shuffled delta."""
    rng = np.random.default_rng(seed)
    for _ in range(tables):
        table = _random_table(3, 4, 1.0, rng)
        merged = np.column_stack([table[:, :2], table[:, 2:].sum(axis=1)])
        before = shuffled_delta(table.tolist(), n_users, epsilon)
        if shuffled_delta(merged.tolist(), n_users, epsilon) > before + 1e-12:
            return False
    return True


def summed_error_over_users(cells: int, n_users: int, tables: int, seed: int) -> float:
    """Least ratio of the enumerated MSE of a plain sum to ``n E[(X - R(X))^2]`` over random randomizers."""
    rng, inputs = np.random.default_rng(seed), _midpoints(cells)
    ratios = []
    for _ in range(tables):
        table, outputs = _random_table(cells, cells, 1.0, rng), rng.random(cells)
        pairs = [(p / cells, inputs[x] - outputs[y]) for x, row in enumerate(table) for y, p in enumerate(row)]
        total = math.fsum(
            math.prod(p for p, _ in users) * sum(z for _, z in users) ** 2 for users in product(pairs, repeat=n_users)
        )
        ratios.append(total / (n_users * math.fsum(p * z * z for p, z in pairs)))
    return min(ratios)


def _spread(cells: int, b: int) -> Fraction:
    """Sum over the other midpoints of (distance to midpoint b, less half a cell) squared."""
    return sum((Fraction(2 * abs(a - b) - 1, 2 * cells) ** 2 for a in range(cells) if a != b), Fraction(0))


def spread_bound_holds(largest: int) -> bool:
    """Lemma 4.3 in exact fractions, every b and every number of cells from 2 to ``largest``."""
    return all(_spread(k, b) >= Fraction(k * k - 1, 48 * k) for k in range(2, largest + 1) for b in range(k))


def spread_minimum_is_exact(largest: int) -> bool:
    """Whether the least sum is ``(k-1)(k-2)/(12k)`` for every odd number of cells up to ``largest``."""
    odd = range(3, largest + 1, 2)
    return all(min(_spread(k, b) for b in range(k)) == Fraction((k - 1) * (k - 2), 12 * k) for k in odd)


def _least_error(p: NDArray[np.float64]) -> float:
    """Least squared error of one user that these cell probabilities allow: other cells are hit at the nearest edge."""
    cells = np.arange(len(p))
    nearest = np.square(np.maximum(np.abs(cells[:, None] - cells) - 0.5, 0) / len(p))
    return float((p * nearest).sum() / len(p))


def _cell_terms(p: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The two terms of Lemma 4.4, one entry a cell: missing it, and being hit from every other."""
    k = len(p)
    leaks = [np.delete(p[:, a], a).min() * (1 - 1 / k**2) / 48 for a in range(k)]
    return (1 - p.diagonal()) / (4 * k**3), np.array(leaks)


def cell_error_bound_holds(largest: int, tables: int, seed: int) -> bool:
    """Lemma 4.4 (the smaller term of every cell) against the least error, for random and sharp tables."""
    rng = np.random.default_rng(seed)
    for k in range(2, largest + 1):
        for sharpness in np.linspace(0.5, 12, tables):
            p = _random_table(k, k, float(sharpness), rng)
            if _least_error(p) < np.minimum(*_cell_terms(p)).sum() * (1 - 1e-12):
                return False
    return True


def leak_dichotomy_holds(cells: int, n_users: int, epsilon: float, tables: int, seed: int) -> bool:
    """Lemma 4.5 with the exact delta of each table, wherever that delta is below one half.

    ``False`` also when no table puts the lemma to the test.
    """
    rng, tested = np.random.default_rng(seed), 0
    for sharpness in np.linspace(0.2, 4, tables):
        p = _random_table(cells, cells, float(sharpness), rng)
        delta = shuffled_delta(p.tolist(), n_users, epsilon)
        if delta >= 0.5:
            continue
        tested += 1
        for a, b in product(range(cells), repeat=2):
            blurred = p[a, a] < 1 - math.exp(-epsilon) / 2
            if a != b and not blurred and p[b, a] < (0.5 - delta) / n_users:
                return False
    return tested > 0


def sum_form_holds(largest: int, tables: int, seed: int) -> bool:
    """The sum form of Lemma 4.4 (both terms of every cell added) for 4 cells up to ``largest``."""
    rng = np.random.default_rng(seed)
    for k in range(4, largest + 1):
        for sharpness in np.linspace(0.5, 12, tables):
            p = _random_table(k, k, float(sharpness), rng)
            misses, leaks = _cell_terms(p)
            if _least_error(p) < (misses + leaks).sum() * (1 - 1e-12):
                return False
    return True


def minimum_form_suffices(cells: int, n_users: int, epsilon: float, delta: float) -> bool:
    """Whether the minimum form of Lemma 4.4 gives Theorem 4.2's bound for the randomizer that ignores its input.

    It always answers from the first cell, so it is perfectly private and satisfies Lemma 4.5.
    """
    p = np.zeros((cells, cells))
    p[:, 0] = 1
    misses, leaks = _cell_terms(p)
    promised = cells * min(math.exp(-epsilon) / (8 * cells**3), (0.5 - delta) / n_users * (1 - 1 / cells**2) / 48)
    return bool(np.minimum(misses, leaks).sum() >= promised)


def lower_over_upper(n_users: int, epsilon: float, delta: float) -> float:
    """The lower bound of Theorem 4.2 over the exact worst-case error of the planned protocol; at most 1."""
    return accuracy.summation_lower(n_users, epsilon, delta) / accuracy.summation_plan(n_users, epsilon, delta).mse
