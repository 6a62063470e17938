"""The exact worst case of shuffled binary response among many users, held against data sets that a climb finds.

``FLAMELIB_ATTACK_TRIES`` multiplies the number of data sets that are tried.
"""

import math
import os

import pytest
from attacks.climb import climb
from oracles.large_binary import log_divergence

from flamelib import evaluate

TRIES = float(os.environ.get("FLAMELIB_ATTACK_TRIES", "1"))


@pytest.mark.parametrize(
    ("epsilon0", "n_users", "epsilon", "tries"),
    [
        (1.0, 10**4, 0.05, 8),
        (3.0, 10**4, 0.9, 8),
        (0.3, 10**6, 0.003, 8),
        (1.0, 10**6, 0.013, 24),
        (7.55, 10**6, 0.25, 8),
        (2.0, 10**9, 0.0005, 2),
    ],
)
def test_no_data_set_is_worse_and_one_is_as_bad(epsilon0, n_users, epsilon, tries):
    answer = evaluate("shuffle:exact-binary", epsilon0=epsilon0, n_users=n_users, epsilon=epsilon)
    last = n_users - 1

    def draw(rng):
        return min(last, int(10 ** rng.uniform(0, math.log10(n_users))))

    def move(ones, rng):
        return min(max(ones + int(rng.choice([-1, 1]) * 10 ** rng.uniform(0, math.log10(n_users) - 1)), 0), last)

    def miss(ones):
        return max(log_divergence(epsilon0, n_users, epsilon, at) for at in (ones, last - ones))

    worst = climb(miss, draw, move, seed=1, tries=int(tries * TRIES), starts=min(6, tries // 2), seconds=600)
    near_the_end = [log_divergence(epsilon0, n_users, epsilon, last - few) for few in range(min(tries // 2, 6))]
    found = max(worst.miss, *near_the_end)
    assert math.log(answer.value) >= found - 1e-11
    assert math.log(answer.value - answer.uncertainty) <= found + 1e-6
