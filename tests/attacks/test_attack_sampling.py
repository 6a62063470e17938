"""The worst points of random participation: readings, boxes, rounds and turned gradients against independent sums."""

import math

import numpy as np
import pytest
from attacks.boxes import Axis, hunt
from mpmath import mp
from oracles import participation as oracle
from oracles.rounds import adaptive, summed, turned, turned_delta

from flamelib.accounting.composition.known_pairs import composed_below
from flamelib.accounting.sampling.readings import add_estimate, aligned_estimate, outer_estimate
from flamelib.accounting.sampling.rounds import aligned_cells, participation_rounds, turned_cells
from flamelib.accounting.sampling.turned_gradients import draws_delta, equal_draws

RATES = [Axis(1e-3, 0.999, log=True), Axis(1e-3, 0.999, log=True)]


@pytest.mark.parametrize("reading", ["outer", "add", "aligned"])
def test_one_round_is_never_on_the_wrong_side(reading):
    estimate = {"outer": outer_estimate, "add": add_estimate, "aligned": aligned_estimate}[reading]

    def miss(p, q, n_records, ratio, epsilon):
        with mp.workdps(35):
            truth = getattr(oracle, reading)(p, q, int(n_records), ratio, epsilon)
            log_truth = float(mp.log(truth)) if truth > 0 else -math.inf
        found = estimate(p, q, int(n_records), ratio, epsilon)
        if log_truth < -600 or found.log == -math.inf:
            return -math.inf
        gap = found.log - log_truth if reading == "aligned" else log_truth - found.high
        return gap / max(found.error, 1e-16)

    axes = [*RATES, Axis(1, 5, whole=True), Axis(0.01, 6, log=True), Axis(1e-6, 3, log=True)]
    worst = hunt(miss, axes, seed=1, tries=12, starts=2)
    assert worst.miss <= 0, worst


# Relative: what a referee's own sums may be wrong by, over rounds on a grid of points and in closed form for one round;
# deltas that are still on the grid.
GRID, EXACT, FAINT = 3e-3, 1e-9, 1e-15
ROUNDS = [Axis(0.02, 0.95, log=True), Axis(0.02, 0.95, log=True), Axis(2, 6, whole=True), Axis(0.1, 3, log=True),
          Axis(2, 12, whole=True), Axis(0, 1), Axis(0, 180)]  # fmt: skip


@pytest.mark.parametrize("back", [Axis(0, 180), Axis(1e-6, 12, log=True)], ids=["any angle", "almost opposed"])
def test_boxes_show_no_more_than_the_divergence(back):
    def miss(p, q, n_records, ratio, place, back):
        given = p, q, int(n_records), ratio, 180 - back
        epsilon = place * math.log1p(q * math.expm1(3 * ratio))
        draws = equal_draws(int(n_records), q, ratio, 180 - back)
        misses = [-math.inf]
        for add in (False, True):
            truth = turned_delta(*given, epsilon, add)
            found = draws_delta(draws, p, q, epsilon, add, boxes=2**17)
            misses += [math.log(found / truth) / EXACT - 1] if found and truth > 1e-13 else []
        return max(misses)

    worst = hunt(miss, [*ROUNDS[:4], Axis(0, 1), back], seed=2, tries=8, starts=1)
    assert worst.miss <= 0, worst


def test_explicit_rounds_lie_between_both_ends():
    """No explicit client loses more than the upper end, and none of the library's own less than it is said to."""

    def miss(p, q, n_records, ratio, rounds, place, degrees):
        n_records, rounds = int(n_records), int(rounds)
        # Multiples of 15 degrees are those that the library tries.
        degrees = 15 * round(degrees / 15)
        laws = {angle: turned(p, q, n_records, ratio, angle) for angle in {0, degrees, 180}}
        losses, masses = laws[0][0]
        spread = math.sqrt(rounds * float(masses @ losses**2))
        epsilon = place * 5 * spread
        step = max(float(np.abs(losses).max()) / 2**12, 1e-5)
        ends = {(at, way): summed([(laws[at][way], rounds)], epsilon, step) for at in laws for way in (0, 1)}
        lost = [low for low, _ in ends.values()]
        if rounds <= 4 and degrees % 180:
            mixed = [(laws[degrees][0], rounds // 2), (laws[0][0], rounds - rounds // 2)]
            lost += [summed(mixed, epsilon, step)[0]]
            fine = max(epsilon, 0.1) / 200
            lost += [adaptive([laws[at][way] for at in laws], rounds, epsilon, fine) for way in (0, 1)]
        if max(lost) < FAINT:
            return -math.inf
        high = participation_rounds("outer", p, q, n_records, 1.0, ratio, rounds, epsilon=epsilon)
        over = math.log(max(lost) / high)
        angle = degrees % 180
        cells = turned_cells(p, q, n_records, ratio, angle) if angle else aligned_cells(p, q, n_records, ratio)
        found, truth = composed_below([(cells, rounds)], epsilon=epsilon), max(ends[angle, way][1] for way in (0, 1))
        return (max(over, math.log(found / truth) if found and truth > FAINT else -math.inf) - GRID) / GRID

    worst = hunt(miss, ROUNDS, seed=3, tries=2, starts=1)
    assert worst.miss <= 0, worst
