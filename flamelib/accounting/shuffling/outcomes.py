"""Outcomes of a round, counted: every multiset of few users' messages, and windows and bins of the counts of many."""

import math
from collections.abc import Sequence

import numpy as np

from flamelib.accounting.composition.dominating_pair import DominatingPair
from flamelib.accounting.shuffling.brackets import BracketAt
from flamelib.accounting.shuffling.bromwich import Bracket, histograms
from flamelib.core.arrays import Reals, Wholes
from flamelib.core.logspace import ROUNDING_16

Pairs = Sequence[tuple[int, int]]

MAX_USERS = 10**9  # users beyond which outcomes are not counted


def enumerated(rows: Reals, n_users: int, pairs: Pairs) -> BracketAt | None:
    """Bracket of log delta, maximum over all data sets of the others and these ordered pairs of values.

    ``rows``, of shape (values, letters), are the distributions of the message; the others hold any of these values.
    ``None`` where there are too many data sets and multisets of messages.
    """
    laws = histogram_laws(rows, n_users)
    if laws is None:
        return None
    error = histogram_error(rows, n_users)
    underflow = 5e-324 * 2 * n_users * rows.shape[1] * laws.shape[-1]  # underflow of products

    def bracket(epsilon: float) -> Bracket:
        exp_epsilon = math.exp(epsilon)

        def end(shift: float) -> float:
            gains = (laws[x] * (1 + shift) - exp_epsilon * (1 - shift) * laws[other] for x, other in pairs)
            found = max(float(np.maximum(gain, 0).sum(axis=1).max()) for gain in gains)
            found += math.copysign(underflow * exp_epsilon, shift) if found > 0 else 0.0
            return math.log(found) + shift if found > 0 else -math.inf

        return Bracket(end(-error), end(error))

    return bracket


def histogram_error(rows: Reals, n_users: int) -> float:
    """Relative error of the probabilities of :func:`histogram_laws`, but for underflow."""
    return float(ROUNDING_16 * n_users * (rows.shape[1] + 4))


def histogram_laws(rows: Reals, n_users: int) -> Reals | None:
    """Probabilities of every multiset of messages, by the replaced value and the data set of the others.

    ``None`` where there are too many data sets and multisets of messages.
    """
    values, letters = rows.shape
    data_sets = math.comb(n_users + values - 2, values - 1)
    size = math.comb(n_users + letters - 1, letters - 1) * data_sets * values
    if size > 1_000_000 or (n_users + 1) ** letters > 2**62:
        return None
    laws, held = np.ones((1, 1)), np.zeros(1, dtype=np.int64)
    previous = np.zeros((1, letters), dtype=np.int64)
    for total in range(1, n_users + 1):
        counts = histograms(total, letters)
        steps = [_row_indices(previous, counts - step, n_users + 1) for step in np.eye(letters, dtype=np.int64)]
        padded = np.hstack([laws, np.zeros((len(laws), 1))])
        if total == n_users:
            return np.stack([sum(row[c] * padded[:, step] for c, step in enumerate(steps)) for row in rows])
        # A data set is a nondecreasing sequence: a value of at least the last one is appended.
        parents = np.repeat(np.arange(len(laws)), values - held)
        held = np.concatenate([np.arange(last, values) for last in held])
        laws = sum(rows[held, c][:, None] * padded[parents][:, step] for c, step in enumerate(steps))
        previous = counts
    raise AssertionError


def _row_indices(table: Wholes, rows: Wholes, base: int) -> Wholes:
    """Indices of rows in a sorted table; its length for rows with a negative entry."""
    digits = base ** np.arange(table.shape[1] - 1, -1, -1, dtype=np.int64)
    found = np.searchsorted(table @ digits, rows @ digits)
    return np.where(rows.min(axis=1) < 0, len(table), found)


def binned(masses: Reals, excess: Reals) -> DominatingPair:
    """Cells of outcomes with Q's masses and ``excess`` = P / Q - 1, merged in bins of the latter."""
    n_bins = 4000  # bins of losses
    lower, upper = float(excess[masses > 0].min()), float(excess[masses > 0].max())
    bins = np.clip((excess - lower) * (n_bins / max(upper - lower, 1e-300)), 0, n_bins).astype(np.int64)
    base, gain = (np.bincount(bins, part).astype(np.float64) for part in (masses, masses * excess))
    base, gain = base[base > 0], gain[base > 0]
    with np.errstate(divide="ignore"):
        losses = np.log1p(gain / base)
    return DominatingPair(losses, losses, base, gain, 1e-10 * (base + np.abs(gain)))  # relative error of masses


def window(n: int, p: float) -> Reals:
    """Window of Bin(n, p), without negligible tails."""
    width = 7.0  # standard deviations about a binomial mean
    radius = width * math.sqrt(n * p * max(1 - p, 0.0)) + width * width / 2
    return np.arange(max(math.floor(n * p - radius), 0), min(math.ceil(n * p + radius), n) + 1, dtype=float)
