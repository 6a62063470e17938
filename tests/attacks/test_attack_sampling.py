"""The worst points of random participation: readings, boxes, rounds and turned gradients against independent sums."""

import math
from dataclasses import replace

import numpy as np
import pytest
from attacks.boxes import Axis, hunt
from mpmath import mp
from oracles import participation as oracle
from oracles.rounds import adaptive, summed, turned, turned_delta
from scipy.fft import irfft, rfft

from flamelib.accounting.composition.dominating_pair import composed, composed_below, tilted
from flamelib.accounting.sampling import adaptive_angles, adaptive_gradients, rounds, theorem_4_1
from flamelib.accounting.sampling.adaptive_gradients import draws_delta, equal_draws
from flamelib.accounting.sampling.rounds import aligned_cells, outer_cells, participation_rounds, turned_cells
from flamelib.accounting.sampling.theorem_4_1 import add_estimate, aligned_estimate, outer_estimate

RATES = [Axis(1e-3, 0.999, log=True), Axis(1e-3, 0.999, log=True)]


@pytest.mark.parametrize(
    ("reading", "depth", "most"), [("outer", 60, 5), ("add", 60, 5), ("aligned", 60, 5), ("aligned", 4, 6)]
)
def test_one_round_is_never_on_the_wrong_side(reading, depth, most, monkeypatch):
    """Of aligned gradients also where likely numbers of records are left out."""
    monkeypatch.setattr(theorem_4_1, "LOG_OMITTED_BELOW", depth)
    estimate = {"outer": outer_estimate, "add": add_estimate, "aligned": aligned_estimate}[reading]

    def miss(p, q, n_records, ratio, epsilon):
        theorem_4_1._counts.cache_clear()
        with mp.workdps(35 if depth > 4 else 20):
            truth = getattr(oracle, reading)(p, q, int(n_records), ratio, epsilon)
            log_truth = float(mp.log(truth)) if truth > 0 else -math.inf
        found = estimate(p, q, int(n_records), ratio, epsilon)
        if log_truth < -600 or found.log == -math.inf:
            return -math.inf
        gap = found.log - log_truth if reading == "aligned" else log_truth - found.high
        return gap / max(found.error, 1e-16)

    axes = [*RATES, Axis(1, most, whole=True), Axis(0.01, 6, log=True), Axis(1e-6, 3, log=True)]
    worst = hunt(miss, axes, seed=1, tries=8 if depth > 4 else 16, starts=2)
    theorem_4_1._counts.cache_clear()
    assert worst.miss <= 0, worst


# Relative: what a referee's own sums may be wrong by, over rounds on a grid of points and in closed form for one round;
# deltas that are still on the grid.
GRID, EXACT, FAINT = 3e-3, 1e-9, 1e-15
ROUNDS = [Axis(0.02, 0.95, log=True), Axis(0.02, 0.95, log=True), Axis(1, 6, whole=True), Axis(0.1, 3, log=True),
          Axis(2, 12, whole=True), Axis(0, 1), Axis(0, 180)]  # fmt: skip


@pytest.mark.parametrize("negligible", [adaptive_gradients.MIN_ATOM, 0.05], ids=["light", "heavy"])
@pytest.mark.parametrize("back", [Axis(0, 180), Axis(1e-6, 12, log=True)], ids=["any angle", "almost opposed"])
def test_boxes_show_no_more_than_the_divergence(back, negligible, monkeypatch):
    """Also where parts that are not light are taken off the answer."""
    monkeypatch.setattr(adaptive_gradients, "MIN_ATOM", negligible)

    def miss(p, q, n_records, ratio, place, back):
        given = p, q, int(n_records), ratio, 180 - back
        epsilon = place * math.log1p(q * math.expm1(3 * ratio))
        draws = equal_draws(int(n_records), q, ratio, 180 - back)
        misses = [-math.inf]
        for add in (False, True):
            truth = turned_delta(*given, epsilon, add)
            found = draws_delta(draws, p, q, epsilon, add, boxes=2**15)
            misses += [math.log(found / truth) / EXACT - 1] if found and truth > 1e-13 else []
        return max(misses)

    often = [Axis(0.2, 0.95), Axis(0.2, 0.95), Axis(1, 2, whole=True)] if negligible > 0.01 else ROUNDS[:3]
    worst = hunt(miss, [*often, ROUNDS[3], Axis(0, 1), back], seed=2, tries=8, starts=1)
    assert worst.miss <= 0, worst


class Adversaries:
    """Laws of one round for gradients that are aligned, opposed or turned by an angle; both directions."""

    def __init__(self, p, q, n_records, ratio, degrees):
        self.degrees = degrees if n_records > 1 else 0
        self.laws = {at: turned(p, q, n_records, ratio, at) for at in {0, self.degrees, 180}}
        losses, self.masses = self.laws[0][0]
        self.spread = math.sqrt(float(self.masses @ losses**2))
        self.step = max(float(np.abs(losses).max()) / 2**12, 1e-5)

    def ends(self, at, way, times, epsilon):
        return summed([(self.laws[at][way], times)], epsilon, self.step)

    def most(self, times, epsilon, ways=(0, 1)):
        """What the worst of them causes at least."""
        lost = [self.ends(at, way, times, epsilon)[0] for at in self.laws for way in ways]
        if times <= 4 and self.degrees % 180:
            mixed = [(self.laws[self.degrees][0], times // 2), (self.laws[0][0], times - times // 2)]
            lost += [summed(mixed, epsilon, self.step)[0]]
            fine = max(epsilon, 0.1) / 200
            lost += [adaptive([law[way] for law in self.laws.values()], times, epsilon, fine) for way in ways]
        return max(lost)


def test_explicit_rounds_are_below_the_upper_end():
    def miss(p, q, n_records, ratio, times, place, degrees):
        n_records, times = int(n_records), int(times)
        found = Adversaries(p, q, n_records, ratio, degrees)
        epsilon = place * 5 * math.sqrt(times) * found.spread
        truth = found.most(times, epsilon)
        high = participation_rounds("outer", p, q, n_records, 1.0, ratio, times, epsilon=epsilon)
        return (math.log(truth / high) - GRID) / GRID if truth > FAINT else -math.inf

    worst = hunt(miss, ROUNDS, seed=3, tries=3, starts=1)
    assert worst.miss <= 0, worst


def test_numbers_of_records_are_rounded_up_and_large_losses_infinite(monkeypatch):
    """Three numbers of records at most are told apart, and losses beyond few deviations are not."""
    monkeypatch.setattr(rounds, "N_GROUPS", 2)

    def miss(p, q, n_records, ratio, times, place, reach):
        found = Adversaries(p, q, int(n_records), ratio, 0)
        epsilon = place * 5 * math.sqrt(times) * found.spread
        truth = found.most(int(times), epsilon)
        cells = outer_cells(p, q, int(n_records), ratio, max(reach, ratio))
        high = composed([(cells, int(times))], epsilon)
        return (math.log(truth / high) - GRID) / GRID if truth > FAINT else -math.inf

    worst = hunt(miss, [*ROUNDS[:-1], Axis(0.5, 8, log=True)], seed=4, tries=12, starts=2)
    assert worst.miss <= 0, worst


def single(transform, kind):
    """The transform in single precision, of numbers of any size."""

    def found(values, points):
        largest = float(np.abs(values).max())
        return np.float64(largest) * transform(kind(values / largest), points)

    return found


@pytest.mark.parametrize("exact", [True, False], ids=["double", "single"])
def test_a_program_over_angles_is_above_every_adversary(exact, monkeypatch):
    """On a short grid, with a tilt that is not the best one, with large losses infinite and single precision."""
    monkeypatch.setattr(adaptive_angles, "DELTA_LOSSES", 0.05 if exact else 1e-9)
    if not exact:
        monkeypatch.setattr(adaptive_angles, "UNIT", 2.0**-24)
        monkeypatch.setattr(adaptive_angles, "rfft", single(rfft, np.float32))
        monkeypatch.setattr(adaptive_angles, "irfft", single(irfft, np.complex64))

    def miss(p, q, n_records, ratio, times, place, degrees, spreads, lean, before):
        n_records, times = int(n_records), int(times)
        monkeypatch.setattr(adaptive_angles, "GRID_WIDTH", spreads)
        found = Adversaries(p, q, n_records, ratio, degrees)
        epsilon = place * 5 * math.sqrt(times) * found.spread
        tilt = tilted([(outer_cells(p, q, n_records, ratio), times)], epsilon, 1e-9)
        options = adaptive_angles.choices(p, q, n_records, ratio, 2)
        places, values = adaptive_angles.turned_profile(
            options, times, epsilon, replace(tilt, t=lean * tilt.t), 1e-3, 0.03
        )
        i = round((1 - before) * (len(places) - 1))
        truth = found.most(times, float(places[i]), ways=(0,)) if places[i] > 0 else 0.0
        over = math.log(truth / values[i]) if min(truth, values[i]) > 0 else math.inf
        return (over - GRID) / GRID if truth > FAINT else -math.inf

    # Mostly a single record, whose pair is the one that occurs, and places near the right end of the grid.
    width = Axis(0.2, 4, log=True) if exact else Axis(1, 10, log=True)
    axes = [*ROUNDS[:2], Axis(1, 1.6, whole=True), ROUNDS[3], Axis(2, 5, whole=True), *ROUNDS[5:],
            width, Axis(0 if exact else 1.5, 2.5), Axis(2e-3, 1, log=True)]  # fmt: skip
    worst = hunt(miss, axes, seed=5, tries=24 if exact else 45, starts=3)
    assert worst.miss <= 0, worst


def test_the_library_s_own_adversaries_lose_what_they_are_said_to():
    def miss(p, q, n_records, ratio, times, place, degrees):
        n_records, times = int(n_records), int(times)
        # Multiples of 15 degrees are those that the library tries.
        found = Adversaries(p, q, n_records, ratio, 15 * round(degrees / 15))
        angle = found.degrees % 180
        epsilon = place * 5 * math.sqrt(times) * found.spread
        cells = turned_cells(p, q, n_records, ratio, angle) if angle else aligned_cells(p, q, n_records, ratio)
        low, truth = composed_below([(cells, times)], epsilon=epsilon), 0.0
        if low > FAINT:
            truth = max(found.ends(angle, way, times, epsilon)[1] for way in (0, 1))
        return (math.log(low / truth) - GRID) / GRID if truth > FAINT else -math.inf

    worst = hunt(miss, ROUNDS, seed=6, tries=6, starts=1)
    assert worst.miss <= 0, worst
