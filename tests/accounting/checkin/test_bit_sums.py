"""RAPPOR whose bits are added up, against every message of every user and every data set of the others."""

import pytest
from oracles import bit_sums

from flamelib.accounting.shuffling.accountant import rappor_sums


@pytest.mark.parametrize(("epsilon0", "n_users"), [(1.0, 2), (3.0, 3), (2.0, 5), (6.0, 5), (4.0, 6)])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
class TestEveryDataSet:
    def test_between_both_sides_in_one_round(self, epsilon0: float, n_users: int, share: float) -> None:
        epsilon = share * epsilon0
        truth = max(bit_sums.delta(one, other, epsilon) for one, other in bit_sums.pairs(epsilon0, n_users))
        lower, upper = (rappor_sums(epsilon0, n_users, side, epsilon=epsilon) for side in ("lower", "upper"))
        assert 0 < lower <= truth * (1 + 1e-9)
        assert truth <= upper * (1 + 1e-9)
        assert upper <= 1.5 * lower

    def test_between_both_sides_asked_for_epsilon(self, epsilon0: float, n_users: int, share: float) -> None:
        worst = max(bit_sums.pairs(epsilon0, n_users), key=lambda pair: bit_sums.delta(*pair, share * epsilon0))
        delta = bit_sums.delta(*worst, share * epsilon0)
        assert rappor_sums(epsilon0, n_users, "lower", delta=delta) <= share * epsilon0 + 1e-9
        assert rappor_sums(epsilon0, n_users, "upper", delta=delta) >= share * epsilon0 - 1e-9


@pytest.mark.parametrize(("epsilon0", "n_users"), [(1.0, 2), (3.0, 3), (2.0, 4)])
def test_two_rounds_of_the_same_data_set(epsilon0: float, n_users: int) -> None:
    epsilon = 0.3 * epsilon0
    laws = [(bit_sums.twice(one), bit_sums.twice(other)) for one, other in bit_sums.pairs(epsilon0, n_users)]
    truth = max(bit_sums.delta(one, other, epsilon) for one, other in laws)
    assert rappor_sums(epsilon0, n_users, "lower", epsilon=epsilon, rounds=2) <= truth * (1 + 1e-9)
    assert truth <= rappor_sums(epsilon0, n_users, "upper", epsilon=epsilon, rounds=2) * (1 + 1e-9)


@pytest.mark.parametrize(("bit", "printed", "most"), [(5.0, 0.317, 0.299), (6.5, 0.906, 0.703), (7.0, 1.528, 0.954)])
def test_the_table_of_the_draft_is_kept(bit: float, printed: float, most: float) -> None:
    lower, upper = (rappor_sums(2 * bit, 100_000, side, delta=1e-9) for side in ("lower", "upper"))
    assert 0.995 * upper <= lower <= upper < most < printed


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_what_one_report_says_without_others_is_never_passed(side: str) -> None:
    assert rappor_sums(2.0, 2, side, delta=0.0) <= 2.0
    assert rappor_sums(2.0, 100, side, delta=1.0) == 0.0
