"""Which coordinates are reported: the largest, exactly; or a set with the uniform law."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chisquare

from flamelib.mechanisms.coordinates import largest, random_subsets


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float64, st.tuples(st.integers(1, 40), st.integers(1, 9)), elements=st.floats(-1e300, 1e300)), st.data()
)
def test_no_coordinate_left_out_is_larger_than_one_kept(updates, data):
    kept = data.draw(st.integers(1, updates.shape[1]))
    chosen = largest(updates, kept)
    assert (chosen.sum(axis=1) == kept).all()
    for row, flags in zip(np.abs(updates), chosen, strict=True):
        assert row[flags].min() >= max(row[~flags], default=0)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("avoided", [(), (2,)])
def test_every_set_is_equally_likely(size, avoided):
    rows, free = 12_000, [j for j in range(5) if j not in avoided]
    avoid = np.zeros((rows, 5), dtype=bool)
    avoid[:, list(avoided)] = True
    chosen = random_subsets(np.full(rows, size), avoid, np.random.default_rng(size))
    assert not (chosen & avoid).any()
    counts = Counter(tuple(np.flatnonzero(row).tolist()) for row in chosen)
    sets = list(itertools.combinations(free, size))
    assert set(counts) <= set(sets)
    assert len(sets) == 1 or chisquare([counts[one] for one in sets]).pvalue > 1e-3


def test_each_row_gets_its_own_number_of_coordinates():
    rng = np.random.default_rng(0)
    for low, high in ((0, 8), (0, 3), (5, 8)):
        sizes = rng.integers(low, high + 1, size=200)
        chosen = random_subsets(sizes, np.zeros((200, 8), dtype=bool), rng)
        assert (chosen.sum(axis=1) == sizes).all()


def test_binomial_sizes_make_coordinates_independent():
    """Joint law of two coordinates, each flagged with chance 0.3 on its own."""
    rng, rows = np.random.default_rng(5), 40_000
    chosen = random_subsets(rng.binomial(4, 0.3, size=rows), np.zeros((rows, 4), dtype=bool), rng)
    both = np.bincount(2 * chosen[:, 0] + chosen[:, 3], minlength=4)
    assert chisquare(both, rows * np.array([0.49, 0.21, 0.21, 0.09])).pvalue > 1e-3
