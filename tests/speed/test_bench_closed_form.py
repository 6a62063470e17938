"""Speed of the closed forms over 10,000 parameter points, beside the usual scipy root search in the same run."""

import math
import random
import time

import pytest
from scipy.optimize import brentq

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
    assert benchmark.stats["min"] < 1


@pytest.mark.parametrize("bound", [hoeffding, bennett], ids=["hoeffding", "bennett"])
def test_epsilon_at_ten_thousand_points(benchmark, bound):
    benchmark.pedantic(lambda: [bound(profile, n, delta=delta) for profile, n, _, delta in POINTS_DRAWN], rounds=3)
    assert benchmark.stats["min"] < 2


def plain_hoeffding(profile, n, epsilon):
    """The formula as a reader would type it."""
    mass, a = profile.mass, math.exp(epsilon) - 1
    width = mass * (math.exp(profile.epsilon0) - 1) * (math.exp(epsilon) + 1)
    return width**2 / (4 * a * mass * n) * (1 - mass * (1 - math.exp(-2 * a**2 / width**2))) ** n


def test_inversion_is_faster_than_the_usual_root_search():
    points = [p for p in POINTS_DRAWN if p[0].kind != "any"][:2000]
    reachable = [p for p in points if hoeffding(p[0], p[1], epsilon=p[0].epsilon0 * (1 - 1e-9)) < p[3]]
    start = time.perf_counter()
    ours = [hoeffding(profile, n, delta=delta) for profile, n, _, delta in reachable]
    middle = time.perf_counter()
    theirs = [
        brentq(lambda e: plain_hoeffding(p, n, e) - delta, 1e-9, p.epsilon0, xtol=1e-13)  # noqa: B023
        for p, n, _, delta in reachable
    ]
    end = time.perf_counter()
    assert len(reachable) > 1000
    assert ours == pytest.approx(theirs, rel=1e-3)
    assert middle - start < 2 * (end - middle)
