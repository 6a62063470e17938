"""Self check-in over many rounds by Rényi privacy: the truth by other means, and what is paid for."""

import math

import pytest
from scipy.special import log_ndtr
from scipy.stats import binom

from flamelib.accounting.checkin import renyi
from flamelib.accounting.checkin.renyi import distributed_renyi_epsilon
from flamelib.accounting.checkin.theorems import exact_renyi
from flamelib.accounting.composition.renyi import renyi_to_epsilon
from flamelib.core.binomial import quantiles


@pytest.mark.parametrize(
    ("epsilon", "delta", "rounds"), [(0.5, 9.8445e-8, 1), (1.0, 5.54027e-3, 100), (3.0, 2.03528e-9, 100)]
)
def test_epsilon_is_never_below_the_truth(epsilon, delta, rounds):
    """The exact delta of 200 clients, composed by other means, is not undercut."""
    one = {"n_users": 200, "checkin_rate": 0.1, "noise_std": 1.0, "rounds": rounds, "delta": delta}
    exact, summed, split = (distributed_renyi_epsilon(**one, route=r) for r in ("rdp-exact", "thm-4", "eq-11"))
    assert epsilon < exact
    assert min(exact, 1.001 * summed) <= summed <= split * (1 + 1e-9)


def test_cutting_counts_is_paid_for():
    """With nothing to pay, nothing is cut: the answer is that of all counts; a cut keeps to its share of delta."""
    one = (2000, 0.02, 1.0, 50, 1e-6)
    everything = renyi_to_epsilon(lambda order: 50 * exact_renyi(int(order), 2000, 0.02, 1.0), 1e-6, range(2, 200))
    assert renyi._exact_epsilon(*one, 0.0) == pytest.approx(everything, rel=1e-6)
    for share in (1 / 2, 1 / 64):
        low, high = quantiles(2000, 0.02, share * 1e-6 / 50 / 2)
        paid = 50 * (binom.cdf(low - 1, 2000, 0.02) + binom.sf(high, 2000, 0.02))
        assert paid <= share * 1e-6 * (1 + 1e-9)
        assert renyi._exact_epsilon(*one, share) < everything


@pytest.mark.parametrize("setting", [
    (6 * 10**5, 1e-3, 1.0, 10**4, 1e-8), (640, 0.3, 0.05, 1, 1e-6), (10**7, 0.01, 1.0, 10**5, 1e-7),
])  # fmt: skip
def test_counts_taken_together_are_above_and_near_the_sum_over_all(monkeypatch, setting):
    each = distributed_renyi_epsilon(*setting, route="thm-4")
    monkeypatch.setattr(renyi, "MAX_SEPARATE", 0.0)
    assert each <= distributed_renyi_epsilon(*setting, route="thm-4") <= 1.002 * each


@pytest.mark.parametrize("rate", [1.0, 0.5, 1e-3, 1e-9])
@pytest.mark.parametrize("ratio", [1e-3, 1.0, 1e4])
def test_largest_crowds_are_answered_above_the_pair(rate, ratio):
    """All who come, with the noise of a count that is hardly exceeded: the Gaussian mechanism, sampled."""
    n, delta = 9 * 10**15, 1e-10
    noise_std = 2 / math.sqrt(n * rate) / ratio
    most = n * rate + 9 * math.sqrt(n * rate)
    mu, kept = 2 / math.sqrt(most) / noise_std, 0.99 * rate
    for route in ("thm-4", "eq-11"):
        found = distributed_renyi_epsilon(n, rate, noise_std, 1, delta, route)
        if found < 600:
            inner = math.log1p(math.expm1(found) / kept)
            there = log_ndtr(mu / 2 - inner / mu)
            lost = kept * (math.exp(there) - math.exp(inner + log_ndtr(-mu / 2 - inner / mu)))
            assert lost <= delta
        else:
            assert found >= mu * mu / 2 - 8 * mu
