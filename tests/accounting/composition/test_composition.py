"""Composition: the printed formulas at high precision, and the exact composition of binary response they bound."""

import functools

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flamelib.accounting.composition.closed_form import advanced_composition, basic_composition, kairouz_oh_viswanath


@functools.cache
def honest_answers(epsilon, times):
    """Chance and log-likelihood ratio of every number of honest answers of repeated binary response."""
    stays = mp.exp(epsilon) / (1 + mp.exp(epsilon))
    chances = [mp.binomial(times, i) * stays**i * (1 - stays) ** (times - i) for i in range(times + 1)]
    return [(chance, (2 * i - times) * mp.mpf(epsilon)) for i, chance in enumerate(chances)]


def exact_delta(epsilon, delta, times, at):
    """Binary response (with a tell-tale symbol of chance ``delta``) repeated: sum over the number of honest answers."""
    gains = [(chance, gain) for chance, gain in honest_answers(epsilon, times) if gain > at]
    pure = mp.fsum(chance * -mp.expm1(mp.mpf(at) - gain) for chance, gain in gains)
    return 1 - (1 - mp.mpf(delta)) ** times * (1 - pure)


def printed(epsilon, times, slack):
    e, t = mp.mpf(epsilon), mp.mpf(times)
    return e * mp.sqrt(2 * t * mp.log(1 / mp.mpf(slack))) + t * e * mp.expm1(e)


def printed_kov(epsilon, times, slack):
    e, t, s = mp.mpf(epsilon), mp.mpf(times), mp.mpf(slack)
    b = t * e * mp.expm1(e) / (mp.exp(e) + 1)
    first = e * mp.sqrt(2 * t * mp.log(mp.e + mp.sqrt(t * e**2) / s))
    return min(t * e, b + first, b + e * mp.sqrt(2 * t * mp.log(1 / s)))


EPSILON = st.floats(1e-12, 20)
SLACK = st.floats(1e-30, 0.9)
TIMES = st.integers(1, 10**7)


@given(EPSILON, TIMES, SLACK, st.floats(0, 1e-8))
def test_the_printed_formulas(epsilon, times, slack, delta):
    advanced, kov = advanced_composition(epsilon, delta, times, slack), kairouz_oh_viswanath(epsilon, times, slack)
    assert advanced.epsilon == pytest.approx(float(printed(epsilon, times, slack)), rel=1e-13)
    assert advanced.delta == pytest.approx(min(1.0, times * delta + slack), rel=1e-14)
    assert kov.epsilon == pytest.approx(float(printed_kov(epsilon, times, slack)), rel=1e-12)
    assert basic_composition(epsilon, times) == pytest.approx(times * epsilon, rel=1e-15)
    together = kairouz_oh_viswanath(epsilon, times, slack, delta).delta
    assert together == pytest.approx(float(1 - (1 - mp.mpf(delta)) ** times * (1 - mp.mpf(slack))), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.5])
@pytest.mark.parametrize("times", [1, 2, 7, 60, 400])
@pytest.mark.parametrize("slack", [1e-9, 1e-4, 0.1, 0.6])
def test_never_below_the_exact_composition(epsilon, times, slack):
    for delta in (0.0, 1e-6):
        for found in (
            advanced_composition(epsilon, delta, times, slack),
            kairouz_oh_viswanath(epsilon, times, slack, delta),
        ):
            assert exact_delta(epsilon, delta, times, found.epsilon) <= found.delta * (1 + 1e-12)
    assert exact_delta(epsilon, 0, times, basic_composition(epsilon, times) * (1 + 1e-15)) == 0


def test_the_exact_composition_is_not_far_below():
    """At 400 parts of budget 0.1 Kairouz, Oh and Viswanath lose less than a tenth, the advanced theorem more."""
    slack = 1e-6
    low, high = 0.0, 40.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if exact_delta(0.1, 0, 400, middle) <= slack else (middle, high)
    kov, advanced = kairouz_oh_viswanath(0.1, 400, slack).epsilon, advanced_composition(0.1, 0, 400, slack).epsilon
    assert high < kov < 1.2 * high < advanced < 1.5 * high
