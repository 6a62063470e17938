"""Composition: the printed formulas at high precision, and the exact composition of binary response they bound."""

import functools

import mpmath as mp
import pytest

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
