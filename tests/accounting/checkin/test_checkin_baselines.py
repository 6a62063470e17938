"""Baselines of self check-in: their readings with many digits, the truth they may not undercut, an unsound route."""

import math

import pytest
from mpmath import mp, mpf
from oracles.checkin import shuffled_answers
from oracles.participation import gaussian, halved
from scipy.stats import binom

from flamelib.accounting.checkin.baselines import baseline_distributed, baseline_shuffled, generic_route
from flamelib.accounting.shuffling.closed_form import clones_closed


def printed_kov(epsilon, times, slack):
    e, t = mpf(epsilon), mpf(times)
    b = t * e * mp.expm1(e) / (mp.exp(e) + 1)
    first = mp.sqrt(2 * t * mp.log(mp.e + mp.sqrt(t) * e / slack))
    return min(t * e, b + e * first, b + e * mp.sqrt(2 * t * mp.log(1 / mpf(slack))))


def printed_drv(epsilon, times, slack):
    e, t = mpf(epsilon), mpf(times)
    return e * mp.sqrt(2 * t * mp.log(1 / mpf(slack))) + t * e * mp.expm1(e)


@pytest.mark.parametrize(("route", "compose"), [("kov", printed_kov), ("drv", printed_drv)])
def test_the_distributed_baseline_step_by_step(route, compose):
    n, rate, std, rounds, delta = 5000, 0.05, 2.0, 40, 1e-5
    share = delta / 4 / rounds
    low, high = int(binom.ppf(share, n, rate)), int(binom.isf(share, n, rate))
    mu, target = 2 / mp.sqrt(low) / std, share * n / high
    epsilon = halved(lambda e: gaussian(mu, mp.exp(e)) - target, mpf(0), mpf(2), 80)
    each = mp.log(1 + mpf(high) / n * mp.expm1(epsilon))
    found = baseline_distributed(n, rate, std, rounds, delta, route)
    assert found == pytest.approx(float(compose(each, rounds, delta / 4)), rel=1e-9)


@pytest.mark.parametrize("rounds", [1, 100])
def test_the_distributed_baseline_is_never_below_the_truth(rounds):
    """The exact delta of 200 clients at an epsilon: 9.8445e-8 at .5 after one round, 5.54027e-3 at 1 after 100."""
    epsilon, delta = {1: (0.5, 9.8445e-8), 100: (1.0, 5.54027e-3)}[rounds]
    assert baseline_distributed(200, 0.1, 1.0, rounds, delta) > epsilon


def test_the_shuffled_baseline_step_by_step():
    n, rate, rounds, delta = 10**6, 0.05, 300, 1e-6
    share = delta / 2 / rounds
    epsilon = mpf(clones_closed(0.5, 50_000, share / rate))
    each = mp.log(1 + mpf(rate) * mp.expm1(epsilon))
    truth = printed_kov(each, rounds, delta / 2)
    assert baseline_shuffled(0.5, n, rate, rounds, delta) == pytest.approx(float(truth), rel=1e-10)
    sure = baseline_shuffled(0.5, n, rate, rounds, delta, slack_delta=delta / 2)
    low, high = (int(f(share / 2, n, rate)) for f in (binom.ppf, binom.isf))
    epsilon = mpf(clones_closed(0.5, low, share / 2 * n / high))
    each = mp.log(1 + mpf(high) / n * mp.expm1(epsilon))
    assert sure == pytest.approx(float(printed_kov(each, rounds, delta / 4)), rel=1e-9)


@pytest.mark.parametrize("rounds", [1, 1000])
def test_the_route_for_approximate_randomizers_falls_below_the_truth(rounds):
    """With less and less failure per round its answer goes to nothing; two clients in one round already refute it."""
    delta = 1e-5
    answers = [generic_route(1.0, 2, 1.0, rounds, delta, 10.0**-i) for i in (4, 8, 16, 64)]
    assert answers == sorted(answers, reverse=True)
    first, second = (shuffled_answers((0, bit), 1.0, 1.0) for bit in (0, 1))
    one_round = sum(max(0, p - mp.exp(answers[-1]) * second[x]) for x, p in first.items())
    assert one_round > 1000 * delta
    more = generic_route(1.0, 2, 1.0, rounds, delta, 1e-8, local_delta=1e-6)
    assert more > generic_route(1.0, 2, 1.0, rounds, delta, 1e-8)


@pytest.mark.parametrize("delta", [1e-109, 1e-217])
@pytest.mark.parametrize(("n", "rate", "std"), [(60, 1.0, 3.0), (60, 0.9999, 40.0)])
def test_the_distributed_baseline_is_no_less_than_a_round_loses_at_small_delta(n, rate, std, delta):
    """Count by count in many digits, for the pair of data sets that is the worst."""
    found = baseline_distributed(n, rate, std, 1, delta)
    assert found < math.inf
    with mp.workdps(250):
        chances = [mp.binomial(n, k) * mpf(rate) ** k * (1 - mpf(rate)) ** (n - k) for k in range(1, n + 1)]
        lost = mp.fsum(
            chance * mpf(k) / n * gaussian(2 / mp.sqrt(k) / std, 1 + mpf(n) / k * mp.expm1(found))
            for k, chance in enumerate(chances, 1)
            if chance
        )
    assert lost <= mpf(delta)


@pytest.mark.parametrize("checkin_rate", [1e-20, 1e-250])
def test_the_shuffled_baseline_where_nobody_comes_within_the_slack(checkin_rate):
    setting = {"epsilon0": 1.0, "n_users": 100, "checkin_rate": checkin_rate, "rounds": 2, "delta": 1e-3}
    assert baseline_shuffled(**setting, slack_delta=5e-4) == 0
