"""Self check-in: the printed theorems with many digits, the truth outcome by outcome, sums that drop nothing."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from oracles.checkin import (
    exact_gaussian_excess,
    gaussian_excess,
    noisy_sums,
    over_counts,
    shuffle_excess,
    three_way,
    worst_binary,
)
from scipy.special import logsumexp
from scipy.stats import binom

from flamelib.accounting.checkin import moments
from flamelib.accounting.checkin.closed_form import (
    count_tails,
    lower_renyi,
    removal_renyi,
    sharper_lower_renyi,
    split_mean,
)
from flamelib.accounting.checkin.renyi import distributed_renyi_epsilon
from flamelib.accounting.checkin.theorems import (
    binary_renyi,
    exact_excess,
    exact_renyi,
    shuffled_renyi,
    split_renyi,
    summed_renyi,
    windowed_renyi,
)
from flamelib.accounting.composition.renyi import pure_renyi
from flamelib.core.binomial import log_chance, log_tail, quantiles
from flamelib.core.vocabulary import DomainError


def value(excess, order):
    """The Rényi divergence of a moment minus 1."""
    return float(mp.log1p(excess) / (order - 1))


# --- the printed forms -----------------------------------------------------------------------------------

EPSILON0 = st.floats(0.05, 12)
SLACK = st.floats(0, 1)
STD = st.floats(0.2, 30)


@pytest.mark.parametrize(("n", "rate"), [(40, 0.1), (200, 0.5), (1000, 0.02), (300, 0.97)])
def test_tails_are_never_below_the_truth(n, rate):
    """The true tail is at most Chernoff's bound with the relative entropy, and that at most Lemma 4; quantiles hold."""
    for slack in (0.1, 0.5, 1.0):
        low, high = math.floor((1 - slack) * n * rate), math.ceil((1 + slack) * n * rate)
        printed = count_tails(n, rate, slack)
        for count, truth, bound in (
            (low, binom.cdf(low, n, rate), printed.lower_tail),
            (high, binom.sf(high - 1, n, rate), printed.upper_tail),
        ):
            assert truth <= np.exp(log_tail(np.array(float(count)), n, rate)) * (1 + 1e-9) <= bound * (1 + 2e-9)
            sharp = float(np.exp(log_chance(np.array(float(count)), n, rate, few=count == low)))
            assert truth <= sharp * (1 + 1e-12) <= truth * (1 + 1e-8)
    nobody = float(np.exp(log_chance(np.array(0.0), 10**9, 1e-8, few=True)))  # 1 - rate is no double
    assert 1 <= nobody / math.exp(10**9 * math.log1p(-1e-8)) <= 1 + 1e-8
    for chance in (1e-12, 1e-3, 0.3):
        low, high = quantiles(n, rate, chance)
        assert binom.cdf(low - 1, n, rate) <= chance
        assert binom.sf(high, n, rate) <= chance
        assert low == 0 or binom.cdf(low, n, rate) > chance * (1 - 1e-6) or low == math.floor(n * rate)


@pytest.mark.parametrize("slack", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("divergence", [0.0, 0.5, 30.0])
def test_lemma_5(slack, divergence):
    law = binom.pmf(np.arange(401), 400, 0.3)
    truth = law[0] + law[1:] @ np.exp(divergence / np.arange(1, 401))
    assert truth <= split_mean(divergence, 400, 0.3, slack) * (1 + 1e-12)


# --- sums over the number of clients -----------------------------------------------------------------------


def every_count(order, n, rate, std, *, exact_moment):
    """The sum with every count there is, straight from the formula."""
    k, j = np.arange(1.0, n + 1), np.arange(2.0, order + 1)
    heavy = (binom.logpmf(k, n, rate) > -800) | (k < 40)
    k, leap = k[heavy], 4 / std**2
    log_mass, r, x = binom.logpmf(k, n, rate), (k / n)[:, None], (leap / k)[:, None]
    choose = moments.log_binomial(np.array(float(order)), j)
    if exact_moment:
        logs = (
            choose + j * np.log(r) + (order - j) * np.log1p(-r) + np.log(np.expm1(np.minimum(j * (j - 1) / 2 * x, 700)))
        )
    else:
        second = np.log(np.minimum(4 * np.expm1(np.minimum(x, 700)), 2 * np.exp(np.minimum(x, 700))))
        logs = choose + j * np.log(r) + np.where(j == 2, second, math.log(2) + j * (j - 1) / 2 * x)
    return float(np.logaddexp(0, logsumexp(logs + log_mass[:, None]))) / (order - 1)


@pytest.mark.parametrize(("order", "least_clients"), [(2, 1), (5, 3), (12, 9)])
def test_the_sum_from_a_count_on_against_its_definition(order, least_clients):
    n, rate, noise = 30, 0.2, 0.7
    total = mpf(0)
    for k in range(least_clients, n + 1):
        inside = mpf(k) / n
        moment = sum(
            mp.binomial(order, j) * (1 - inside) ** (order - j) * inside**j
            * mp.exp(2 * j * (j - 1) / (k * mpf(noise) ** 2))
            for j in range(order + 1)
        )  # fmt: skip
        total += mp.binomial(n, k) * mpf(rate) ** k * (1 - mpf(rate)) ** (n - k) * (moment - 1)
    assert windowed_renyi(order, n, rate, noise, least_clients) == pytest.approx(value(total, order), rel=1e-9)
    assert windowed_renyi(order, n, rate, noise, 1) == pytest.approx(exact_renyi(order, n, rate, noise), rel=1e-9)
    assert windowed_renyi(order, n, 0.0, noise, least_clients) == 0


@pytest.mark.parametrize(("n", "rate"), [(600_000, 1e-3), (200_000, 0.02)])
@pytest.mark.parametrize("order", [2, 8, 19])
def test_sums_keep_their_digits_where_not_every_count_is_taken(n, rate, order):
    """The reference is right to the 1e-9 that binomial probabilities of a table of functions are."""
    for exact_moment, found in (
        (False, summed_renyi(order, n, rate, 1.0, "exact")),
        (True, exact_renyi(order, n, rate, 1.0)),
    ):
        assert found == pytest.approx(every_count(order, n, rate, 1.0, exact_moment=exact_moment), rel=3e-9, abs=0)


# --- splits in place of sums -------------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.integers(2, 9), st.integers(2, 40), st.floats(0.01, 1), SLACK, EPSILON0, STD)
def test_splits_are_never_below_the_sum(order, n, rate, slack, epsilon0, std):
    for excess, found in (
        (lambda k, r: shuffle_excess(order, k, r, epsilon0), shuffled_renyi(order, epsilon0, n, rate, "exact", slack)),
        (lambda k, r: gaussian_excess(order, k, r, std), split_renyi(order, n, rate, std, "exact", slack)),
    ):
        summed = value(over_counts(excess, n, rate, "exact"), order)
        assert summed <= found * (1 + 1e-10)
        edges = [(1 - slack) * n * rate, (1 + slack) * n * rate]
        if all(abs(edge - round(edge)) > 1e-6 for edge in edges):
            assert found == pytest.approx(value(three_way(excess, n, rate, slack), order), rel=1e-7)


@pytest.mark.parametrize(("order", "epsilon0", "n", "rate"), [(2, 1.0, 40, 0.3), (6, 2.0, 60, 0.1), (4, 0.5, 50, 0.9)])
def test_many_pieces_are_above_the_sum_and_close_to_it(order, epsilon0, n, rate):
    pieces = moments.many_pieces(n, rate)
    j = np.arange(2.0, order + 1)
    logs = moments.bounded(moments.shuffle_terms(epsilon0), pieces, n, j)
    [found] = np.exp(moments.log_excess(np.array([float(order)]), logs))
    truth = float(over_counts(lambda k, r: shuffle_excess(order, k, r, epsilon0), n, rate, "exact"))
    assert truth * (1 - 1e-11) <= found <= 1.01 * truth


# --- against the truth ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "rate", "order"), [(2, 0.3, 2), (3, 0.7, 4), (4, 0.3, 3), (2, 1.0, 6)])
@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 3.0])
def test_shuffled_binary_response_lies_between_the_bounds(n, rate, order, epsilon0):
    """Every data set, every coin and every answer listed: lower bounds, the pair of Theorem 1, upper bounds."""
    worst = float(worst_binary(order, epsilon0, n, rate))
    equal = binary_renyi(order, epsilon0, n, rate, "exact")
    sharper = sharper_lower_renyi(order, epsilon0, n, rate)
    assert lower_renyi(order, epsilon0, n, rate) <= sharper <= equal * (1 + 1e-12) <= worst * (1 + 1e-11)
    assert worst <= shuffled_renyi(order, epsilon0, n, rate, "exact")
    assert worst <= pure_renyi(order, epsilon0)
    if order == 2:
        assert sharper == pytest.approx(equal, rel=1e-9)


@pytest.mark.parametrize(
    ("data", "other"), [((-1, -1), (-1, 1)), ((1, -1), (1, 1)), ((0, -1), (0, 1)), ((-1, -1, -1), (-1, -1, 1))]
)
def test_noisy_sums_lie_below_the_exact_divergence(data, other):
    """Numbers in place of vectors, other clients wherever: the pair with all others equal is the worst, and reached."""
    rate, std, n, order = 0.4, 1.2, len(data), 3 if len(data) == 2 else 2
    worst = exact_renyi(order, n, rate, std)
    with mp.workdps(15):
        one, two = (float(noisy_sums(*pair, order, rate, std)) for pair in ((data, other), (other, data)))
    assert max(one, two) <= worst * (1 + 1e-9)
    if set(data) == {-1}:
        assert two == pytest.approx(worst, rel=1e-9)
    assert (
        worst <= summed_renyi(order, n, rate, std, "exact") <= split_renyi(order, n, rate, std, "exact") * (1 + 1e-12)
    )


@pytest.mark.parametrize(("order", "rate", "std"), [(2, 0.1, 1.0), (7, 0.5, 2.0), (4, 1.0, 0.5)])
def test_removal_is_poisson_sampling_when_the_noise_is_the_servers(order, rate, std):
    def integrand(x, one=1, two=-1):
        q, p = mp.npdf(x, 0, std), mp.npdf(x, 1, std)
        mixture = (1 - mpf(rate)) * q + mpf(rate) * p
        return mixture ** (order if one > 0 else 1 - order) * q ** (1 - order if one > 0 else order)

    ends = [-14 * std, 0, 1, order / 2, order, order + 14 * std]
    found = removal_renyi(order, rate, std)
    with mp.workdps(15):
        removed = float(mp.log(mp.quad(integrand, ends)) / (order - 1))
        added = float(mp.log(mp.quad(lambda x: integrand(x, -1), ends)) / (order - 1))
    assert found == pytest.approx(removed, rel=1e-9)
    assert added <= found * (1 + 1e-9)


@pytest.mark.parametrize(("order", "std"), [(60, 1.0), (200, 3.0)])
def test_summands_are_passed_over_only_where_they_do_not_count(order, std):
    k, n = np.array([550.0, 590.0, 640.0]), 20_000
    truth = mp.fsum(exact_gaussian_excess(order, int(i), mpf(i) / n, std) for i in k.tolist())
    found = exact_excess(order, k, np.zeros(3), n, moments.single_divergence(std))
    assert found == pytest.approx(float(mp.log(truth)), rel=1e-12, abs=1e-12)


def test_small_counts_decide_large_orders():
    """What a window about the mean would drop: a single client, of chance exp(-594), from order 20 on."""
    found = [summed_renyi(order, 600_000, 1e-3, 1.0, "paper") for order in (19, 20)]
    assert found == pytest.approx([3.65e-7, 1.51], rel=2e-3)


@pytest.mark.parametrize(("n", "rate"), [(10**5, 1e-3), (10**7, 0.1), (10**7, 0.99999995)])
def test_pieces_weigh_no_less_than_their_counts(n, rate):
    firsts, lasts, log_masses = moments.many_pieces(n, rate)
    assert np.all(firsts == np.append(1, lasts[:-1] + 1))
    assert lasts[-1] == n
    truth = binom.cdf(lasts, n, rate) - binom.cdf(firsts - 1, n, rate)
    assert np.all(truth <= np.exp(log_masses) * (1 + 1e-7) + 1e-14)


@pytest.mark.parametrize("inner", ["paper", "exact"])
@pytest.mark.parametrize(("order", "noise_std"), [(300, 1.0), (60, 0.05), (400, 1e-6)])
def test_terms_that_are_left_out_are_not_missed(monkeypatch, order, noise_std, inner):
    given = (order, 20_000, 0.3, noise_std, inner)
    whole = summed_renyi(*given)
    monkeypatch.setattr(moments, "MAX_TERMS", 3e5)
    assert summed_renyi(*given) == pytest.approx(whole, rel=1e-13)
    monkeypatch.setattr(moments, "MAX_TERMS", 0)
    with pytest.raises(DomainError, match="order must be smaller"):
        summed_renyi(*given)


def test_the_search_of_orders_goes_on_where_the_bound_of_theorem_4_falls():
    found = [float(distributed_renyi_epsilon(300, 0.7, 3.0, 8, delta, "thm-4")) for delta in (2e-4, 6e-4, 1e-3)]
    assert found == sorted(found, reverse=True)
