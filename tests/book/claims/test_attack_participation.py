"""The attacks on random participation: one against its law, turned gradients, a search, ordered Gram matrices."""

import numpy as np
import pytest

from flamebook.attacks import participation as attack
from flamelib.accounting.sampling.participation_round import ParticipationRound
from flamelib.accounting.sampling.secret_participation import random_participation

FIVE = ParticipationRound(n_records=5)


def test_equal_gradients_have_the_divergence_of_the_aligned_reading() -> None:
    for n_records, epsilon in ((2, 0.5), (5, 0.02), (20, 0.1)):
        setting = ParticipationRound(n_records=n_records, noise_std=0.8)
        exact = attack.EqualGradients(setting).exact(epsilon)
        aligned = random_participation("aligned", **setting.as_parameters(), epsilon=epsilon)
        assert exact == pytest.approx(float(aligned), rel=1e-8)


@pytest.mark.parametrize(
    ("given", "epsilon"),
    [((1e-12, 1e-3, 5), 1e-9), ((0.1, 0.1, 5, 1e-300, 1e300), 0.1), ((1, 1, 5), 0.1), ((0.1, 0.1, 5, 1.0, 90.0), 0.1),
     ((0.01, 0.01, 5, 100.0), 1e-8), ((0.1, 0.1, 30, 1e6), 0.1)],
)  # fmt: skip
def test_the_integral_is_right_at_the_edges_of_the_domain(given: tuple[float, ...], epsilon: float) -> None:
    setting = ParticipationRound(*given)  # type: ignore[arg-type]
    aligned = random_participation("aligned", **setting.as_parameters(), epsilon=epsilon)
    assert attack.EqualGradients(setting).exact(epsilon) == pytest.approx(float(aligned), rel=1e-8)


def test_inner_is_refuted_exactly_and_by_the_attack() -> None:
    """The numbers of the counterexample, and an interval whose lower end is above what inner promises."""
    found = attack.attack_equal_gradients(FIVE, 0.1, 10_000_000, seed=1)
    assert found.exact == pytest.approx(4.2287e-4, rel=1e-4)
    assert FIVE.delta("inner", 0.1) == pytest.approx(1.5887e-4, rel=1e-4)
    assert FIVE.delta("inner", 0.1) < found.interval()[0] <= found.exact <= found.interval()[1]
    low, high = found.interval(1 - 1e-6)
    assert low < found.exact < high < 2 * found.exact, "another law would be seen"


def test_each_term_is_worst_for_aligned_gradients() -> None:
    for j in (1, 3):
        values = [attack.delta_of_term(ParticipationRound(), 0.1, j, angle) for angle in np.linspace(0, 180, 7)]
        assert (np.diff(values) <= 1e-4 * values[0]).all()
    quiet = [attack.delta_of_term(ParticipationRound(noise_std=1e-6), 0.1, 5, angle) for angle in (0, 90, 180)]
    assert max(quiet) <= quiet[0] * (1 + 1e-3)
    term = attack.delta_of_term(ParticipationRound(), 0.1, 0, 77.0)
    assert term == pytest.approx(float(random_participation("outer", 0.1, 0.1, 1, 1.0, 1.0, epsilon=0.1)), rel=1e-3)


def test_the_search_stays_below_the_bounds_and_repeats_itself() -> None:
    found = attack.search_gradients(starts=6, steps=2, seed=5)
    ratios = np.array([found["remove"], found["add"]])
    assert ratios.shape == (2, 6)
    assert 0.3 < ratios.max() <= 1
    again = attack.search_gradients(starts=6, steps=2, seed=5)
    assert all(np.array_equal(again[name], values) for name, values in found.items())


def test_a_search_would_see_a_bound_that_is_none() -> None:
    """With inner in the place of outer, the equal gradients of the counterexample exceed it."""
    place = np.tile([1.0, 0.0], (5, 1))
    bounds = np.array([FIVE.delta("inner", 0.1), FIVE.delta("add", 0.1)])
    assert attack._ratios(FIVE, 0.1, place, bounds)[0] > 2


def test_gram_matrices_that_grow_do_not_lower_the_integral() -> None:
    smaller, larger = attack.grow_gram_matrices(12, seed=4)
    assert (larger >= smaller * (1 - 1e-3)).all()
    assert (larger > 1.01 * smaller).any()
