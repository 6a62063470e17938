"""Two clients against the inner rate of Theorem 1's proof: listed views, the sum of the theorem, a run attack."""

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flamebook.attacks import checkin as attack
from flamebook.attacks.checkin import BinaryCheckin
from flamelib.accounting.checkin.theorems import binary_renyi
from flamelib.core.divergences import hockey_stick

TWO = BinaryCheckin(2, 0.3, 1.0)


def by_theorem(clients: BinaryCheckin, order: int, inner: str) -> float:
    """What the sum of Theorem 1 gives."""
    return binary_renyi(order, clients.epsilon0, clients.n_users, clients.checkin_rate, inner)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 5), st.floats(0, 1), st.floats(0.1, 3), st.integers(2, 6))
def test_with_the_rate_of_the_statement_theorem_1_is_an_equality(
    n: int, rate: float, epsilon0: float, order: int
) -> None:
    clients = BinaryCheckin(n, rate, epsilon0)
    assert sum(clients.view([0] * n).values()) == pytest.approx(1, rel=1e-12)
    assert clients.renyi(order) == pytest.approx(by_theorem(clients, order, "exact"), rel=1e-9, abs=1e-14)


def test_the_attack_refutes_and_stays_below_the_truth() -> None:
    found = attack.compute_attack(TWO, 2, 300_000, seed=3)
    assert by_theorem(found.clients, 2, "paper") < found.least < found.estimate < TWO.renyi(2)


@pytest.mark.parametrize(("epsilon0", "order"), [(700.0, 10_000), (1e-9, 2), (40.0, 300)])
def test_extreme_budgets_have_a_divergence(epsilon0: float, order: int) -> None:
    clients = BinaryCheckin(3, 0.3, epsilon0)
    assert clients.renyi(order) == pytest.approx(by_theorem(clients, order, "exact"), rel=1e-9, abs=1e-14)
    assert attack.event_divergence(0.3, 0.0, order) == math.inf
    assert attack.event_divergence(0.0, 0.0, order) == 0


def test_others_who_differ_are_worse_than_others_who_agree() -> None:
    """Three users, total variation: a third coin that is even hides less."""
    clients, flip = BinaryCheckin(3, 1.0, 1.0), 1 / (1 + math.e)
    laws = []
    for bits in ((0, 1, 1), (0, 1, 0)):
        law = [0.0] * 4
        for reports in product((0, 1), repeat=3):
            law[sum(reports)] += math.prod(1 - flip if b == r else flip for b, r in zip(bits, reports, strict=True))
        laws.append(law)
    mixed = clients.profile([0, 1], 0.0)
    assert mixed == pytest.approx(hockey_stick(laws[0], laws[1], 0.0), rel=1e-12)
    assert mixed > 1.13 * clients.profile([0, 0], 0.0)
