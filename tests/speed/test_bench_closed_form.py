"""Speed of the closed forms over 10,000 parameter points."""

import random

import pytest

from flamelib.accounting.shuffling.closed_form import bennett, hoeffding
from flamelib.core.profiles import AnyProfile, KaryProfile, LaplaceProfile

POINTS = 10_000


def draw_points(count):
    draw = random.Random(7)
    for _ in range(count):
        epsilon0 = 10 ** draw.uniform(-1, 0.5)
        families = (AnyProfile(epsilon0), LaplaceProfile(epsilon0), KaryProfile(epsilon0, draw.choice([2, 10, 1000])))
        yield (
            draw.choice(families),
            int(10 ** draw.uniform(3, 9)),
            draw.uniform(0, epsilon0),
            10 ** draw.uniform(-9, -3),
        )


POINTS_DRAWN = list(draw_points(POINTS))


@pytest.mark.parametrize("bound", [hoeffding, bennett], ids=["hoeffding", "bennett"])
def test_delta_at_ten_thousand_points(benchmark, bound):
    benchmark.pedantic(
        lambda: [bound(profile, n, epsilon=epsilon) for profile, n, epsilon, _ in POINTS_DRAWN], rounds=3
    )


@pytest.mark.parametrize("bound", [hoeffding, bennett], ids=["hoeffding", "bennett"])
def test_epsilon_at_ten_thousand_points(benchmark, bound):
    benchmark.pedantic(lambda: [bound(profile, n, delta=delta) for profile, n, _, delta in POINTS_DRAWN], rounds=3)
