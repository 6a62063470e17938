"""Sampling in public and in secret: the printed formulas with many digits, and the actual mixtures both ways."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from oracles import participation as oracle

from flamelib.accounting.sampling import public_participation

SCHEMES = {
    "ols": (public_participation.ols, lambda p, q: (1, q)),
    "wcs": (public_participation.wcs, lambda p, q: (p, q)),
    "cs": (public_participation.cs, lambda p, q: (1, mpf(p) * mpf(q))),
}
rates = st.floats(-9, 0).map(lambda e: 10.0**e)
noises = st.floats(-2, 3).map(lambda e: 10.0**e)


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(60):
        yield


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=40)
@given(rates, rates, noises, st.floats(-290, -1).map(lambda e: 10.0**e))
def test_epsilon_answers_delta_and_never_falls_short(scheme, p, q, noise_std, delta):
    bound, at = SCHEMES[scheme]
    with mp.workdps(60):
        found = bound(p, q, noise_std, 1.0, delta=delta)
        public, secret = at(p, q)

        def exact(epsilon):
            before = oracle.before(epsilon, secret)
            return mpf(public) * mpf(secret) * (oracle.gaussian(1 / mpf(noise_std), before) if before > 1 else 1)

        assert found == 0 or exact(float(found)) <= delta
        below = (found - 2 * found.uncertainty) * (1 - 1e-10)
        assert below <= 0 or exact(below) > delta


@pytest.mark.parametrize("case", [(0.1, 1.0, 0.1), (0.5, 2.0, 0.4), (0.9, 0.5, 0.05), (0.01, 1.5, 0.01)])
def test_the_larger_data_set_reaches_the_formula_and_the_smaller_one_stays_below(case):
    rate, mu, epsilon = case
    alpha = mp.exp(mpf(epsilon))
    with_it, without = [(1 - mpf(rate), mpf(0)), (mpf(rate), mpf(mu))], [(mpf(1), mpf(0))]
    formula = float(public_participation.ols(1.0, rate, 1 / mu, 1.0, epsilon=epsilon))
    assert float(oracle.divergence(with_it, without, alpha)) == pytest.approx(formula, rel=1e-9)
    # By convexity once more: smaller by beta at least.
    beta = float(alpha / oracle.before(epsilon, rate))
    assert float(oracle.divergence(without, with_it, alpha)) <= beta * formula < formula
    # A list of participants beside it: the same on each side of the list.
    public = float(public_participation.wcs(0.3, rate, 1 / mu, 1.0, epsilon=epsilon))
    assert 0.3 * float(oracle.divergence(with_it, without, alpha)) == pytest.approx(public, rel=1e-9)
