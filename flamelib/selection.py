"""Which coordinates a user reports: the largest ones, or a uniformly random set.

Sets are rows of flags, one row a user; every row depends on that user's data and randomness alone.
"""

import numpy as np
from numpy.typing import NDArray

from flamelib.core.arrays import Reals, Wholes

Flags = NDArray[np.bool_]
ROWS_AT_ONCE = 4  # so many rows of a model's size stay in the processor's cache


def largest(updates: Reals, kept: int) -> Flags:
    """The ``kept`` coordinates of each row with the largest absolute values.

    Parameters
    ----------
    updates : ndarray of shape (rows, dimension)
        Finite numbers.
    kept : int in [1, dimension]

    Returns
    -------
    ndarray of bool, same shape
        Exactly ``kept`` flags in each row; among equals the choice is arbitrary, the same for the same row.

    Examples
    --------
    >>> largest(np.array([[0.5, -3.0, 1.0]]), 2).astype(int)
    array([[0, 1, 1]])
    """
    n_rows, dimension = updates.shape
    chosen = np.zeros(updates.shape, dtype=bool)
    for start in range(0, n_rows, ROWS_AT_ONCE):
        sizes = np.abs(updates[start : start + ROWS_AT_ONCE])
        order = sizes.argpartition(dimension - kept, axis=1)[:, dimension - kept :]
        chosen[np.arange(start, start + len(sizes))[:, None], order] = True
    return chosen


def random_subsets(sizes: Wholes, avoid: Flags, rng: np.random.Generator) -> Flags:
    r"""In each row a uniformly random set of ``sizes`` coordinates, without replacement, among those not in ``avoid``.

    Coordinates are drawn with replacement and those met before are drawn anew.  No step tells one free coordinate
    from another, so the law of a set is unchanged when free coordinates are renamed: it is uniform.

    Parameters
    ----------
    sizes : ndarray of int, shape (rows,)
        At most the number of free coordinates of the row.
    avoid : ndarray of bool, shape (rows, dimension)
        Coordinates that are not to be chosen.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of bool, shape (rows, dimension)

    Examples
    --------
    >>> free = np.zeros((2, 5), dtype=bool)
    >>> random_subsets(np.array([2, 5]), free, np.random.default_rng(0)).sum(axis=1)
    array([2, 5])
    """
    free = (~avoid).sum(axis=1)
    if 2 * sizes.sum() > free.sum():  # fewer are left out than chosen
        return ~(_drawn(free - sizes, avoid, rng) | avoid)
    return _drawn(sizes, avoid, rng)


def _drawn(sizes: Wholes, avoid: Flags, rng: np.random.Generator) -> Flags:
    n_rows, dimension = avoid.shape
    taken = avoid.copy()
    places, missing = taken.reshape(-1), sizes.astype(np.int64)
    while missing.any():
        rows = np.repeat(np.arange(n_rows), missing)
        drawn = rows * dimension + rng.integers(dimension, size=rows.size)
        drawn = np.sort(drawn[~places[drawn]])
        fresh = drawn[np.diff(drawn, prepend=-1) > 0]
        places[fresh] = True
        missing -= np.bincount(fresh // dimension, minlength=n_rows)
    return taken & ~avoid
