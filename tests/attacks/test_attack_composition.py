"""The worst points of sums of privacy losses: windows, tilts, grids and curves against exact sums over all outcomes."""

import math

import numpy as np
import pytest
from attacks.boxes import Axis, hunt
from flint import ctx
from oracles.loss_sums import ball, log, pair_delta, sum_delta

from flamelib.accounting.composition import privacy_loss_distribution
from flamelib.accounting.composition.dominating_pair import (
    DominatingPair,
    _truncated,
    above,
    below,
    coarser,
    composed_below,
    rounded_down,
)
from flamelib.accounting.composition.privacy_loss_distribution import ComposedLosses, PrivacyLossDistribution
from flamelib.accounting.composition.privacy_profile import PrivacyProfile, composed_delta, composed_epsilon, tabulated
from flamelib.core.logspace import UNIT

# Step, span in steps, mass of the largest and smallest losses, share of no loss, times, place of epsilon, lean of tilt.
SUMS = [Axis(1e-4, 2, log=True), Axis(2, 40, whole=True), Axis(1e-250, 0.3, log=True), Axis(1e-250, 0.5, log=True),
        Axis(0, 0.9999), Axis(2, 60, whole=True), Axis(0, 1), Axis(0, 3)]  # fmt: skip


def losses(step, span, top, bottom, bulk):
    masses = {-1: (1 - bulk) / 2, 0: bulk, 1: (1 - bulk) / 2}
    masses[-int(span)], masses[int(span)] = bottom, top
    index = np.array(sorted(masses))
    law = np.array([masses[place] for place in index])
    return PrivacyLossDistribution(step, index, law / law.sum(), 0.0, 0.0)


def ends(step, span, top, bottom, bulk, times, place, lean):
    """Truth, upper and lower end of the logarithm of delta in the window of a tilt that need not be the best."""
    loss, times = losses(step, span, top, bottom, bulk), int(times)
    law = ComposedLosses([(loss, times)])
    mean = max(law.tilt(0.0).mean, 0.0)
    epsilon = mean + place * (law.most - mean)
    tilt = law.tilt(law.tilt_to(epsilon).t * lean)
    if epsilon >= law.most or tilt.t * law.most > 5000:
        return None
    window = law.window(tilt)
    masses = dict(zip(loss.index.tolist(), loss.masses.tolist(), strict=True))
    truth = log(sum_delta(masses, times, step, 0.0, epsilon))
    return (truth, window.log_delta(epsilon), window.log_delta_below(epsilon)) if truth > -690 else None


@pytest.mark.parametrize(
    ("width", "negligible"),
    [(privacy_loss_distribution.WINDOW_WIDTH, privacy_loss_distribution.TAIL_MASS_WINDOW), (1.0, 0.5)],
)
def test_a_window_of_a_sum_is_never_on_the_wrong_side(width, negligible, monkeypatch):
    """Also where the window is so narrow that what lies outside counts."""
    monkeypatch.setattr(privacy_loss_distribution, "WINDOW_WIDTH", width)
    monkeypatch.setattr(privacy_loss_distribution, "TAIL_MASS_WINDOW", negligible)

    def miss(*place):
        found = ends(*place)
        if found is None or found[2] == -math.inf:
            return -math.inf if found is None else (found[0] - found[1]) / 1e-12
        truth, high, low = found
        return max(truth - high, low - truth) / (high - low)

    worst = hunt(miss, SUMS, seed=1, tries=36)
    assert worst.miss <= 0, worst


def test_next_to_the_largest_loss_no_digit_is_missing():
    def miss(step, span, times, ulps):
        loss = PrivacyLossDistribution(step, np.array([-1, int(span)]), np.array([0.5, 0.5]), 0.0, 0.0)
        law = ComposedLosses([(loss, int(times))])
        epsilon = law.most
        for _ in range(int(ulps)):
            epsilon = math.nextafter(epsilon, 0)
        truth = log(sum_delta({-1: 0.5, int(span): 0.5}, int(times), step, 0.0, epsilon))
        return max(truth - law.log_delta(epsilon), law.log_delta_below(epsilon) - truth)

    axes = [Axis(0.01, 1), Axis(2, 300, whole=True), Axis(2, 5, whole=True), Axis(1, 6, whole=True)]
    worst = hunt(miss, axes, seed=2, tries=24)
    assert worst.miss <= 0, worst


# Mass and two losses of the likeliest letters, mass of the next one, split of the rest, times, place of epsilon.
PAIRS = [Axis(1e-60, 0.45, log=True), Axis(0.01, 5, log=True), Axis(0.01, 5, log=True), Axis(1e-6, 0.45, log=True),
         Axis(0.05, 0.95), Axis(2, 9, whole=True), Axis(0, 1)]  # fmt: skip
UNSEEN = Axis(1e-9, 0.3, log=True)  # mass of a letter that the other law lacks
BLUR = Axis(1e-16, 0.02, log=True)  # what the difference of two masses may be wrong by, in units of their sum
SIDE = Axis(0, 1, whole=True)  # which of two ways is tried


def pair(top, one, two, mid, skew, times, place, unseen=0.0):
    """Two laws on four letters, or five, the number of draws and an epsilon; ``None`` where some letter has no mass."""
    q = [top * math.exp(-one - two), mid * math.exp(-one)]
    left, right = 1 - top - mid, 1 - sum(q)
    p = np.array([top, mid, left * skew, left * (1 - skew)])
    q = np.array([*q, min(left * skew, 0.99 * right), 0.0])
    q[3] = 1 - q.sum()
    if min(p.min(), q.min()) <= 0:
        return None
    if unseen:
        p, q = np.append((1 - unseen) * p, unseen), np.append(q, 0.0)
    return p, q, int(times), place * times * (one + two)


def losses_of(p, q):
    with np.errstate(divide="ignore"):
        return np.log(p) - np.log(q)


def cells(p, q, wrong=0.0):
    """Masses whose differences are too large by this much, which is what is said of them at most."""
    loss = losses_of(p, q)
    return DominatingPair(loss, loss, q, p - q + wrong * (p + q), (4e-16 + 1.01 * abs(wrong)) * (p + q))


def curve(p, q):
    def profile(one, other):
        """From above: what the difference is rounded by is as much as its larger part is."""

        def at(epsilon):
            growth = math.exp(min(epsilon, 700))
            return sum(max(a * (1 + 1e-15) - growth * b * (1 - 1e-15), 0.0) for a, b in zip(one, other, strict=True))

        return at

    return PrivacyProfile(profile(p, q), profile(q, p), float(np.abs(losses_of(p, q)).max()) * (1 + 4e-15))


def hunted(answer, seed, tries, *more, unseen=False):
    """A climb on how far (one, other) is on the wrong side, both logarithms of delta."""
    axes = [*PAIRS, UNSEEN] if unseen else PAIRS

    def miss(*place):
        found = pair(*place[: len(axes)])
        if found is None:
            return -math.inf
        p, q, times, epsilon = found
        truth = log(pair_delta(p, q, times, epsilon))
        if truth < -600:
            return -math.inf
        # The truth's logarithm is itself rounded.
        return (answer(p, q, times, epsilon, truth, *place[len(axes) :]) - 4 * UNIT * (1 + abs(truth))) / 1e-9

    worst = hunt(miss, [*axes, *more], seed=seed, tries=tries, starts=3)
    assert worst.miss <= 0, worst


STEP = Axis(3e-3, 1.0, log=True)  # of a grid, in units of the largest loss: every step gives a bound


def test_a_pair_on_a_grid_dominates():
    """Also where the largest losses are counted as infinite, and where masses are wrong by as much as is said."""

    def over(p, q, times, epsilon, truth, share, spared, blur):
        step = share * float(np.abs(losses_of(p, q)[:4]).max())
        grid = above(_truncated(cells(p, q, -blur), spared), step)
        return truth - min(ComposedLosses([(one, times)]).log_delta(epsilon) for one in (grid, coarser(grid)))

    for unseen in (False, True):
        hunted(over, 3, 30, STEP, Axis(1e-9, 0.3, log=True), BLUR, unseen=unseen)


def test_a_coarser_view_shows_less():
    def under(p, q, times, epsilon, truth, share, blur):
        step = share * float(np.abs(np.log(p / q)).max())
        known = cells(p, q, blur)
        one_by_one, begin = rounded_down(known, step)
        views = (below(known, step), 0.0), (one_by_one, times * begin * (1 - 1e-15))
        return max(ComposedLosses([(view, times)]).log_delta_below(epsilon - at) for view, at in views) - truth

    hunted(under, 4, 80, STEP, BLUR)


def test_what_is_certain_of_a_composition_is_true():
    """In either order, masses being wrong to either side by as much as is said."""

    def under(p, q, times, epsilon, truth, blur, side):
        truth = max(truth, log(pair_delta(q, p, times, epsilon)))
        found = composed_below([(cells(p, q, (2 * side - 1) * blur), times)], epsilon=epsilon)
        return math.log(found) - truth if found else -math.inf

    hunted(under, 7, 6, BLUR, SIDE)


def test_a_curve_through_points_dominates():
    """Also where a loss is infinite."""

    def over(p, q, times, epsilon, truth):
        found = composed_delta([(curve(p, q), times)], epsilon)
        return truth - math.log(found) if found else math.inf

    hunted(over, 5, 8)
    hunted(over, 8, 6, unseen=True)


def test_a_tabulated_profile_gives_no_smaller_epsilon():
    def over(p, q, times, epsilon, truth):
        found = composed_epsilon([(tabulated(curve(p, q)), times)], math.exp(truth))
        return log(pair_delta(p, q, times, float(found))) - truth

    hunted(over, 6, 8)


def test_a_chord_is_rounded_up():
    """Where the curve is itself a chord: two losses of opposite sign."""

    def miss(largest, share):
        ctx.prec = 200
        growth = ball(largest).exp()

        def delta(epsilon):
            return (growth - ball(epsilon).exp()) / (growth + 1)

        def value(epsilon):
            near = float(delta(epsilon).mid())
            return near if ball(near) >= delta(epsilon) else math.nextafter(near, 1.0)

        epsilon = share * largest
        found = tabulated(PrivacyProfile(value, at_most=largest)).forward(epsilon)
        return float(((delta(epsilon) - ball(found)) / delta(epsilon)).mid()) / UNIT

    worst = hunt(miss, [Axis(1e-3, 20, log=True), Axis(1e-6, 0.999, log=True)], seed=9, tries=60)
    assert worst.miss <= 0, worst
