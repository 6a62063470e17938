"""Weighed messages against convolution with weights of their own making, and between the bounds from both sides."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_bounds import padded_divergence
from scipy.optimize import brentq
from scipy.stats import laplace

from flamelib.accounting.coordinates.counting import topk_lower
from flamelib.accounting.coordinates.likelihood_weighted import weighed_lower
from flamelib.accounting.coordinates.vector_bounds import account
from flamelib.core.profiles import LaplaceProfile

DELTA = 0.01 / 1000**1.1
BUDGETS = st.floats(-1.5, 0.9).map(lambda x: 10**x)


def cells(padded, epsilon0):
    """Chances of the weights for the values 1 and 0, from densities and a root for every end of a cell."""
    noise = {"scale": 1 / epsilon0}

    def weight(x):
        ratio = math.exp(-epsilon0 * abs(x)) / math.exp(-epsilon0 * abs(x - 1))
        return -math.log(1 + (ratio - 1) / padded)

    step = max(abs(weight(0.0)), abs(weight(1.0))) / 16
    first, last = round(weight(0.0) / step), round(weight(1.0) / step)
    ends = [brentq(lambda x, w=w: weight(x) - (w + 0.5) * step, 0, 1, xtol=1e-15) for w in range(first, last)]
    return [np.diff([0, *laplace.cdf(ends, value, **noise), 1]) for value in (1, 0)]


def tails(kept, padded, epsilon0):
    """Chances of both sums to reach each threshold."""
    one, zero = cells(padded, epsilon0)
    found = []
    for swapped in (0, kept):
        law = np.ones(1)
        for i in range(kept * padded):
            law = np.convolve(law, zero if i < swapped else one)
        found.append(np.cumsum(law[::-1])[::-1])
    return found


@settings(max_examples=15, deadline=None)
@given(BUDGETS, st.integers(1, 4), st.integers(2, 9), st.floats(-6, -1), st.floats(0, 0.9))
def test_every_threshold(epsilon0, kept, padded, log_delta, share):
    more, less = tails(kept, padded, epsilon0)
    delta, epsilon = 10**log_delta, share * epsilon0
    counted = [topk_lower(kept, padded, epsilon0, **one) for one in ({"delta": delta}, {"epsilon": epsilon})]
    enough = more > delta
    best = max(float(np.log((more[enough] - delta) / less[enough]).max()), counted[0])
    found = weighed_lower(padded, kept, padded, epsilon0, delta=delta)
    assert 0.98 * best <= found <= best * (1 + 1e-12) + 1e-13
    best = max(float((more - math.exp(epsilon) * less).max()), counted[1])
    found = weighed_lower(padded, kept, padded, epsilon0, epsilon=epsilon)
    assert 0.9 * best <= found <= best * (1 + 1e-12) + 1e-13


@pytest.mark.parametrize("kept", [1, 3])
@pytest.mark.parametrize(
    ("padded", "epsilon0", "share"), [(5, 0.5, 0.2), (50, 2.0, 0.1), (300, 0.5, 0.05), (300, 4.0, 0.1)]
)
def test_between_the_count_and_the_certified_account(kept, padded, epsilon0, share):
    epsilon = share * epsilon0
    found = weighed_lower(1000, kept, padded, epsilon0, epsilon=epsilon)
    assert topk_lower(kept, padded, epsilon0, epsilon=epsilon) <= found
    if kept == 1:
        assert found <= padded_divergence(LaplaceProfile(epsilon0), padded, epsilon=epsilon, real=padded)
    given = {"dimension": 50 * kept, "n_users": 1000, "epsilon0": epsilon0, "kept": kept, "padded": padded}
    for delta in (1e-2, 1e-6)[kept // 3 :]:
        sound = account("topk", bound="blanket", route="sound", delta=delta, **given)
        assert weighed_lower(1000, kept, padded, epsilon0, delta=delta) <= sound


def test_the_setting_of_the_paper():
    """A round of Figure 5: counting alone gives 1.198, and 1.444 is certified."""
    found = weighed_lower(1000, 157, 333, 0.5, delta=DELTA)
    assert found == pytest.approx(1.2863, abs=1e-4)
    assert found.uncertainty < 1e-6
    reached = weighed_lower(1000, 157, 333, 0.5, epsilon=float(found))
    assert reached == pytest.approx(DELTA, rel=1e-3)
    assert weighed_lower(1000, 157, 333, 4.0, delta=DELTA) > 4 * topk_lower(157, 333, 4.0, delta=DELTA)
