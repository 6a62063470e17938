"""Roots by suffix sums are answers of the bound itself: they meet it, and agree with a search that asks only it."""

import math

import numpy as np
import pytest

from flamelib.accounting.checkin.shuffled import shuffled_rounds_lower
from flamelib.accounting.composition import privacy_profile
from flamelib.accounting.composition.privacy_loss_distribution import ComposedLosses, PrivacyLossDistribution, _Window
from flamelib.core.logspace import logaddexp
from flamelib.core.profiles import AnyProfile


def normal_losses(variance: float, step: float, infinity: float = 0.0) -> PrivacyLossDistribution:
    index = np.arange(-math.ceil(9 * math.sqrt(variance) / step), math.ceil(9 * math.sqrt(variance) / step))
    masses = np.exp(-((step * index - variance / 2) ** 2) / (2 * variance))
    return PrivacyLossDistribution(step, index, masses / masses.sum(), infinity, 0.0)


@pytest.mark.parametrize("shift", [1e-6, 0.0, -1e-6])
@pytest.mark.parametrize(("variance", "times", "delta"), [(0.01, 50, 1e-3), (0.002, 1000, 1e-8), (0.3, 3, 1e-30)])
def test_a_root_is_asked_of_the_bound(
    monkeypatch: pytest.MonkeyPatch, variance: float, times: int, delta: float, shift: float
) -> None:
    law = ComposedLosses([(normal_losses(variance, 0.02, 1e-3 * delta / times), times)])
    excess = _Window._log_excess
    # A bound that is off what the sums know: an answer that trusted them would be off by as much.
    monkeypatch.setattr(_Window, "_log_excess", lambda self, epsilon, side: excess(self, epsilon, side) + shift)
    window = law.window(law.tilt_for(math.log(delta)))
    upper, lower = law.epsilon(delta, math.inf), law.epsilon_below(delta)
    crossed = window.crossing(window.log_delta_below, delta, delta, 0.0, -1)
    assert 0 < crossed == lower or (shift < 0 and math.isnan(crossed)), "a search answers where sums do not settle"
    assert window.log_delta_below(lower) >= math.log(delta)
    window = law.window(law.tilt_for(math.log(delta - math.exp(law.log_infinity))))
    assert logaddexp(law.log_infinity, window.log_delta(upper)) <= math.log(delta)
    monkeypatch.setattr(_Window, "crossing", lambda *_: math.nan)
    assert law.epsilon(delta, math.inf) == pytest.approx(upper, rel=1e-11)
    assert law.epsilon_below(delta) == pytest.approx(lower, rel=1e-11)


def test_infinite_losses_are_paid_for_by_chernoff_and_groups_are_no_fewer_than_asked_for() -> None:
    law = ComposedLosses([(normal_losses(0.01, 0.02, 1e-4), 10)])
    tilt = law.chernoff_tilt(2e-3)
    assert law.chernoff(2e-3, tilt) >= (tilt.log_mass - math.log(2e-3 - (1 - (1 - 1e-4) ** 10))) / tilt.t * (1 - 1e-9)
    assert law.chernoff(9e-4, tilt) == math.inf
    curve, times = privacy_profile.PrivacyProfile(lambda _: 0.0, at_most=1.0), privacy_profile.MAX_TRANSFORMED + 1
    assert privacy_profile._grouped(curve, times, normal_losses(0.01, 0.02))[1] * privacy_profile.GROUP_SIZE >= times


def test_a_ratio_beyond_all_doubles_is_no_warning_and_no_answer() -> None:
    """Of two rounds of 26 users; a search finds the root, just below twice the local budget."""
    found = shuffled_rounds_lower(AnyProfile(6.58), 26, 2, delta=1.07e-14)
    assert 2 * 6.58 * (1 - 1e-7) < found < 2 * 6.58
