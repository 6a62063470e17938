"""The worst points of counts and weighed sums of messages, and of padded coordinates, against exact laws in balls."""

import math
from itertools import pairwise

import pytest
from attacks.boxes import Axis, hunt
from flint import arb, arb_poly
from oracles.loss_sums import ball, log
from oracles.padded import padded_kary, sampled_kary
from reference_bounds import some_real

from flamelib.accounting.coordinates import counting, truncated
from flamelib.accounting.coordinates.counting import Count
from flamelib.accounting.coordinates.likelihood_weighted import Weighing
from flamelib.accounting.coordinates.padded import Coordinate, sampled
from flamelib.core.profiles import KaryProfile


def coins(*parts):
    """Law of the number of heads of several sorts of coins."""
    found = arb_poly([1])
    for trials, chance in parts:
        found *= arb_poly([1 - chance, chance]) ** int(trials)
    return [found[i] for i in range(int(sum(trials for trials, _ in parts)) + 1)]


@pytest.mark.parametrize("long", [counting.MAX_FAIR_WIDE, 10], ids=["short", "long"])
def test_a_count_is_never_on_the_wrong_side(long, monkeypatch):
    monkeypatch.setattr(counting, "MAX_FAIR_WIDE", long)

    def miss(fair, biased, log_other, place):
        other = math.exp(log_other) / 2
        count = Count(int(fair), int(biased), 1 - other, other)
        half = (fair + biased) / 2
        threshold = min(int(half + place * 0.75 * half) + 1, int(fair + biased))
        chance = 1 - ball(other)
        laws = coins((fair, arb(1) / 2), (biased, chance)), coins((fair, arb(1) / 2), (biased, 1 - chance))
        first, second = (sum(law[threshold:], arb(0)) for law in laws)
        more, less = count.bounds(threshold)
        over = (log(ball(more)) - log(first)) / count.rounding if more > 0 else -math.inf
        return max(over, (log(second) - math.log(less)) / count.rounding)

    axes = [Axis(1, 1500, log=True, whole=True), Axis(1, 300, log=True, whole=True), Axis(-30, 0), Axis(0, 1)]
    worst = hunt(miss, axes, seed=1, tries=24)
    assert worst.miss <= 0, worst


def test_full_bags_tell_no_more_than_is_true():
    def miss(same, full, padded, epsilon0, place):
        kept, padded = int(same + full), int(padded)
        plus, minus, rest = truncated._pmfs(int(full), kept, padded, epsilon0)
        below = 0.5 * math.exp(-epsilon0 / 2)
        moved = below + padded / (padded + 1) * (1 - 2 * below)
        q, under, moved = 1 - ball(below), ball(below), ball(moved)
        quiet = same * (padded - 1), arb(1) / 2
        one = coins(quiet, (same, q), (full * (padded - 1), under), (full, moved), (full * padded, q))
        two = coins(quiet, (same, under), (full * padded, under), (full * (padded - 1), q), (full, 1 - moved))
        epsilon = place * kept * epsilon0
        gaps = (a - ball(epsilon).exp() * b for a, b in zip(one, two, strict=True))
        truth = sum((gap for gap in gaps if gap > 0), arb(0))
        found = truncated._delta(plus, minus, rest, epsilon)
        return (math.log(found) - log(truth)) / truncated.RTOL_CONVOLUTION if found else -math.inf

    axes = [Axis(1, 20, whole=True), Axis(0, 8, whole=True), Axis(2, 40, whole=True), Axis(1e-3, 6, log=True),
            Axis(0, 1)]  # fmt: skip
    worst = hunt(miss, axes, seed=2, tries=16)
    assert worst.miss <= 0, worst


def weighed_letters(weighing, step, weights):
    """Masses of the weights for the values 1 and 0, in balls, for cells that end halfway between weights."""
    size, local = weighing.padded, ball(weighing.epsilon0)
    ones, zeros = [arb(0)], [arb(1)]
    for weight in weights[:-1].tolist():
        grown = size * ((-ball(step) * (weight + arb(1) / 2)).exp() - 1)
        grown = grown if grown > (-local).exp() - 1 else (-local).exp() - 1
        ratio = (1 + grown).log()
        ratio = local if ratio > local else ratio
        ones.append((-(local + ratio) / 2).exp() / 2)
        zeros.append((-(local - ratio) / 2).exp() / 2)
    ones, zeros = [*ones, arb(1)], [*zeros, arb(0)]
    return [b - a for a, b in pairwise(ones)], [a - b for a, b in pairwise(zeros)]


def test_weighed_messages_tell_no_more_than_is_true():
    def miss(kept, padded, epsilon0, place):
        weighing = Weighing(int(kept), int(padded), epsilon0)
        weights, *_ = weighing.alphabet
        tilt = math.exp(place) / weighing.deviation
        found = weighing.tails(tilt)
        if found.log_p == -math.inf:
            return -math.inf
        reach = max(-math.log1p(math.expm1(-epsilon0) / padded), math.log1p(math.expm1(epsilon0) / padded))
        step = reach / max(1, min(16, int(7000 / math.sqrt(kept * padded))))
        one, zero = weighed_letters(weighing, step, weights)
        grown = [(ball(tilt) * int(w)).exp() for w in weights]
        mean = sum((m * g * int(w) for m, g, w in zip(one, grown, weights, strict=True)), arb(0))
        mean /= sum((m * g for m, g in zip(one, grown, strict=True)), arb(0))
        total = int(kept * padded)
        near = float(mean.mid())
        threshold = round(total * (near - round(near))) + total * round(near)
        laws = arb_poly(one) ** total, arb_poly(one) ** (total - int(kept)) * arb_poly(zero) ** int(kept)
        start = threshold - total * int(weights[0])
        first, second = (sum((law[i] for i in range(start, law.degree() + 1)), arb(0)) for law in laws)
        return max(found.log_p - log(first), log(second) - found.log_q) / max(found.width, 1e-300)

    axes = [Axis(1, 6, whole=True), Axis(2, 12, whole=True), Axis(1e-6, 8, log=True), Axis(-3, 3.7)]
    worst = hunt(miss, axes, seed=3, tries=16)
    assert worst.miss <= 0, worst


def test_a_padded_coordinate_hides_no_more_than_is_true():
    def miss(epsilon0, share, real, sides):
        kary, padded = KaryProfile(epsilon0, 3), 3
        first, second = ((1, 1), (1, 0), (0, 1))[int(sides)]
        coordinate = Coordinate(kary, some_real(kary, padded, int(real)), first, second)
        epsilon = share * coordinate.most
        truth = float(padded_kary(epsilon0, 3, padded, int(real), epsilon, first, second))
        return (truth - coordinate.delta(epsilon, "blanket")) / 1e-12

    axes = [Axis(0.05, 6, log=True), Axis(0, 1), Axis(1, 3, whole=True), Axis(0, 2, whole=True)]
    worst = hunt(miss, axes, seed=4, tries=12, starts=2)
    assert worst.miss <= 1e-3, worst


def test_a_sampled_coordinate_hides_no_more_than_is_true():
    def miss(epsilon0, share, rate, padded, log_rest):
        kary, padded = KaryProfile(epsilon0, 2), int(padded)
        others = sampled(kary, padded, 4, rate, math.exp(log_rest))
        coordinate = Coordinate(kary, others, rate, rate)
        epsilon = share * epsilon0
        truth = float(sampled_kary(epsilon0, 2, padded, 4, rate, epsilon))
        return (truth - coordinate.delta(epsilon, "blanket")) / 1e-12

    axes = [Axis(0.05, 6, log=True), Axis(0, 1), Axis(0.01, 0.99), Axis(2, 4, whole=True), Axis(-20, -1)]
    worst = hunt(miss, axes, seed=5, tries=9, starts=2)
    assert worst.miss <= 1e-3, worst
