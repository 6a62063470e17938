"""The worst points of random participation: readings, boxes, rounds and turned gradients against independent sums."""

import math

import numpy as np
import pytest
from attacks.boxes import Axis, hunt
from mpmath import mp
from oracles import participation as oracle
from oracles.rounds import adaptive, summed, turned

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


# Relative: what a referee's grid of points may be wrong by; its step for a single round; deltas that are still on it.
GRID, FINE, FAINT = 3e-3, 0.025, 1e-15
ROUNDS = [Axis(0.02, 0.95, log=True), Axis(0.02, 0.95, log=True), Axis(2, 6, whole=True), Axis(0.1, 3, log=True),
          Axis(2, 12, whole=True), Axis(0, 1), Axis(0, 180)]  # fmt: skip


def test_boxes_show_no_more_than_the_divergence():
    def miss(p, q, n_records, ratio, _, place, degrees):
        laws = turned(p, q, int(n_records), ratio, degrees, FINE)
        epsilon = place * float(laws[0][0].max()) / 3
        draws = equal_draws(int(n_records), q, ratio, degrees)
        misses = [-math.inf]
        for law, add in zip(laws, (False, True), strict=True):
            truth = float(law[1] @ -np.expm1(np.minimum(epsilon - law[0], 0)))
            found = draws_delta(draws, p, q, epsilon, add, boxes=2**13)
            misses += [math.log(found / truth) - GRID] if found and truth > 1e-12 else []
        return max(misses) / GRID

    worst = hunt(miss, ROUNDS, seed=2, tries=5, starts=1)
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
