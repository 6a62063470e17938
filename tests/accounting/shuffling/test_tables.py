"""The worst pair of a table, of which most are passed over, against every pair by itself."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from flamelib.accounting.shuffling import tables
from flamelib.accounting.shuffling.brackets import of_law
from flamelib.core.logspace import ROUNDING_8
from flamelib.core.profiles import TableProfile


@pytest.mark.parametrize("seed", range(4))
def test_a_delta_that_messages_keep_alone_needs_no_epsilon(seed):
    """Their largest total variation, against fractions; below it the law of the shuffled messages is asked."""
    rows = np.random.default_rng(seed).dirichlet(np.full(3, 0.5), 4)
    exact = [[Fraction(chance) for chance in row] for row in rows.tolist()]
    alone = max(
        sum(max(p - q, Fraction(0)) for p, q in zip(one, other, strict=True))
        for one, other in itertools.permutations(exact, 2)
    )
    assert alone <= tables._total_variation(rows) <= alone + Fraction(1, 10**14)
    randomizer = TableProfile(rows.tolist())
    assert tables.table_divergence(randomizer, 2, delta=float(alone) + 1e-13) == 0
    assert tables.table_divergence(randomizer, 2, delta=float(alone) / 4) > 0


def test_no_pair_is_passed_over_that_loses_more():
    rows = np.random.default_rng(0).dirichlet(np.full(5, 2.0), 4) * 0.9 + 0.02
    randomizer = TableProfile((rows / rows.sum(axis=1, keepdims=True)).tolist())
    rows, most = np.array(randomizer.table), tables.local_budget(randomizer, ROUNDING_8)
    blanket = rows.min(axis=0)
    mass, kept = float(blanket.sum()), float((rows[0] - blanket).sum()) + ROUNDING_8
    laws = tables._laws(rows * mass / blanket, blanket / mass, mass, kept, ROUNDING_8)
    alone = max(of_law(law, 300, most, 0.05, None) for law in laws)
    assert tables.table_divergence(randomizer, 300, epsilon=0.05) == pytest.approx(alone, rel=2e-6)
