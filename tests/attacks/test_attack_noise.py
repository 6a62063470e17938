"""The worst points of noise in a sum: Gaussian, Skellam, discrete Gaussian, thinned and Polya, against balls."""

import math

import pytest
from attacks.boxes import Axis, hunt
from flint import arb, arb_poly, ctx
from oracles.loss_sums import ball, log
from reference_bounds import discrete_gaussian_noise

from flamelib.accounting.noise import sums
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.noise.sum_laws import PolyaNoise, ThinnedNoise
from flamelib.accounting.noise.whole_numbers import shift_budget, skellam_noise


def hockey_stick(law, shift, epsilon):
    """Of a symmetric law, given at 0, 1, 2, ..., moved by a whole number; what is not listed has no mass."""
    growth = ball(epsilon).exp()

    def at(x):
        return law[abs(x)] if abs(x) < len(law) else arb(0)

    gaps = (at(x - shift) - growth * at(x) for x in range(shift - len(law) + 1, len(law) + shift))
    return sum((gap for gap in gaps if gap > 0), arb(0))


def test_the_gaussian_mechanism_keeps_its_digits():
    def miss(ratio, place):
        ctx.prec = 200
        mu = ball(ratio)
        epsilon = (place + ratio / 2) * ratio if place + ratio / 2 > 0 else 0.0
        e = ball(epsilon)
        here, there = (((e / mu + side * mu / 2) / arb(2).sqrt()).erfc() / 2 for side in (-1, 1))
        truth = here - e.exp() * there
        if not truth > arb(1e-300):
            return -math.inf
        return (log(truth) - math.log(gaussian_mechanism(ratio, 1.0, epsilon=epsilon))) / 1e-12

    worst = hunt(miss, [Axis(1e-8, 1e3, log=True), Axis(-6, 36)], seed=1, tries=150)
    assert worst.miss <= 0, worst


def discrete_gaussian(noise_std, most):
    law = [(-((x / ball(noise_std)) ** 2) / 2).exp() for x in range(most)]
    total = law[0] + 2 * sum(law[1:], arb(0))
    return [mass / total for mass in law]


def skellam(variance, most):
    mu = ball(variance)
    return [(-mu).exp() * mu.bessel_i(arb(x)) for x in range(most)]


@pytest.mark.parametrize(("kind", "largest"), [("gaussian", 60.0), ("skellam", 150.0)])
def test_whole_noise_hides_no_more_than_it_does(kind, largest):
    def miss(scale, share, place):
        noise = discrete_gaussian_noise(scale) if kind == "gaussian" else skellam_noise(scale)
        spread = scale if kind == "gaussian" else math.sqrt(scale)
        shift = max(1, round(share * 3 * spread))
        epsilon = max((shift / spread) * (place + shift / spread / 2), 0.0)
        most = len(noise.logs) + shift
        law = discrete_gaussian(scale, most) if kind == "gaussian" else skellam(scale, most)
        truth = hockey_stick(law, shift, epsilon)
        if log(truth) < -180:
            return -math.inf
        found = shift_budget(noise, shift, epsilon=epsilon)
        return (log(truth) - math.log(found)) / noise.error(shift)

    axes = [Axis(0.05, largest, log=True), Axis(0, 1), Axis(-3, 15)]
    worst = hunt(miss, axes, seed=2, tries=9, starts=2)
    assert worst.miss <= 0, worst


def test_tails_of_whole_noise_are_as_right_as_they_say():
    """At the largest deviation, where most masses are added up; every tail of a comb."""
    noise = discrete_gaussian_noise(1e4)
    law = discrete_gaussian(1e4, len(noise.logs) + 1)
    tail, worst = arb(0), 0.0
    for x in range(len(law) - 1, 0, -1):
        tail += law[x]
        if x % 997 == 0 and x < 160_000:
            worst = max(worst, abs(log(tail) - noise.log_above(x)) / noise.error(x))
    assert worst < 1


def test_swapped_cells_of_whole_noise_hold_all_of_the_mass():
    noise = skellam_noise(3.0)
    cells = noise.cells((len(noise.logs) - 1) // 2)
    assert float(cells.base.sum()) >= 1 - 1e-14
    assert float(cells.swapped().base.sum()) >= 1 - 1e-11
    assert cells.base[cells.low == -math.inf].sum() > 0


def thinned(n_users, decay, rate, reach):
    p, q = ball(decay), ball(rate)
    one = [q * (1 - p) / (1 + p) * p ** abs(x) for x in range(-reach, reach + 1)]
    one[reach] += 1 - q
    whole = arb_poly(one) ** n_users
    return [whole[n_users * reach + x] for x in range(n_users * reach + 1)]


def test_thinned_noise_hides_no_more_than_it_does(monkeypatch):
    """Also where most users who add noise are left out; close to the largest loss all of delta may be what they add."""

    def miss(n_users, decay, rate, shift, short, rare):
        monkeypatch.setattr("flamelib.accounting.noise.sum_laws.LOG_LOST", rare)
        n_users, shift = int(n_users), int(shift)
        reach = math.ceil(80 / -math.log(decay)) + shift
        if n_users * reach > 1500:
            return -math.inf
        law = thinned(n_users, decay, rate, reach)
        noise = ThinnedNoise(n_users, decay, rate)
        epsilon = (1 - short) * -shift * math.log(decay)
        truth = log(hockey_stick(law, shift, epsilon))
        if truth < -45:
            return -math.inf
        return (truth - sums.log_delta(noise, shift, epsilon)) / noise.error(shift)

    axes = [Axis(1, 12, whole=True), Axis(0.02, 0.6), Axis(0.05, 0.999), Axis(1, 6, whole=True),
            Axis(1e-3, 0.9, log=True), Axis(0.3, 20, log=True)]  # fmt: skip
    worst = hunt(miss, axes, seed=4, tries=48, starts=2)
    assert worst.miss <= 0, worst


def test_polya_noise_short_of_shares_hides_no_more_than_it_does():
    def miss(planned, share, decay, shift, place):
        planned, shift = int(planned), int(shift)
        there = max(1, min(planned - 1, round(share * planned)))
        p, r = ball(decay), arb(there) / planned
        most = math.ceil(50 / -math.log(decay)) + shift
        if most > 400:
            return -math.inf
        mass = [(1 - p) ** r]
        for j in range(2 * most):
            mass.append(mass[-1] * p * (r + j) / (j + 1))
        law = [sum((mass[y] * mass[x + y] for y in range(2 * most - x)), arb(0)) for x in range(most)]
        noise = PolyaNoise(there, planned, decay)
        epsilon = place * sums._max_loss(noise, shift)
        truth = log(hockey_stick(law, shift, epsilon))
        return (truth - sums.log_delta(noise, shift, epsilon)) / noise.error(shift) if truth > -35 else -math.inf

    axes = [Axis(2, 300, log=True, whole=True), Axis(0, 1), Axis(0.05, 0.75), Axis(1, 8, whole=True), Axis(0, 1)]
    worst = hunt(miss, axes, seed=5, tries=10, starts=2)
    assert worst.miss <= 0, worst
