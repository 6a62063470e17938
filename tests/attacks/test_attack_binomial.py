"""The worst points of the binomial sums that accounts of counts are made of: their stated errors against balls."""

import math

import numpy as np
from attacks.boxes import Axis, hunt
from oracles.loss_sums import binomial_tails, log

from flamelib.core import binomial

TRIALS = Axis(2.0**14, 2.0**31, log=True, whole=True)
MEAN, DEVIATIONS = Axis(0.1, 300, log=True), Axis(-8, 8)


def placed(trials, mean, deviations):
    rate = min(mean / trials, 0.6)
    count = round(trials * rate + deviations * math.sqrt(mean) + deviations * abs(deviations) / 6)
    return int(trials), rate, int(min(max(count, 0), trials - 1))


def test_tails_are_as_right_as_they_say():
    def miss(*place):
        trials, rate, count = placed(*place)
        found = binomial.cdf(count, trials, rate), binomial.sf(count, trials, rate)
        truths = binomial_tails(trials, rate, count)
        some = [(t, f) for t, f in zip(truths, found, strict=True) if t is not None and f > 1e-280]
        return max((abs(log(t / float(f))) for t, f in some), default=0.0) / 1e-11

    worst = hunt(miss, [TRIALS, MEAN, DEVIATIONS], seed=1, tries=100)
    assert worst.miss < 1, worst


def test_upper_chances_of_tails_are_never_too_small():
    def miss(*place):
        trials, rate, count = placed(*place)
        few, many = binomial_tails(trials, rate, count)
        at = np.array([float(count)])
        pairs = [(few, binomial.log_chance(at, trials, rate, few=True)[0])]
        pairs += [(many, binomial.log_chance(at + 1, trials, rate, few=False)[0])]
        return max((log(t) - f for t, f in pairs if t is not None), default=-math.inf) / 1e-9

    worst = hunt(miss, [TRIALS, MEAN, DEVIATIONS], seed=2, tries=100)
    assert worst.miss <= 1e-7, worst  # an oracle's logarithm of about 1 is rounded
