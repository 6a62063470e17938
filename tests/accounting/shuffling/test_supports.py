"""Messages that support values: account, bounds and samplers against tables written down message by message."""

import math

import numpy as np
import pytest
from oracles import supports
from oracles import tables as oracle

import flamelib
from flamelib.accounting.shuffling.closed_form import bennett, blanket_mass, hoeffding
from flamelib.accounting.shuffling.numerical import all_equal, any_randomizer, blanket_divergence, clones_2023
from flamelib.accounting.shuffling.tables import table_divergence, table_lower
from flamelib.core.profiles import SUPPORTING, KaryProfile, LaplaceProfile, TableProfile

RANDOMIZERS = {
    "rappor": flamelib.Rappor,
    "oue": flamelib.OptimizedUnary,
    "subset": flamelib.SubsetSelection,
    "hadamard": flamelib.HadamardResponse,
    "local-hash": flamelib.LocalHashing,
}
KINDS = sorted(SUPPORTING)
CASES = [(kind, epsilon0, k) for kind in KINDS for epsilon0, k in ((0.4, 2), (1.0, 3), (1.5, 4))]


def table(kind, epsilon0, k):
    rows = [[float(chance) for chance in row] for row in oracle.family(kind, epsilon0, k)]
    return TableProfile([[x / math.fsum(row) for x in row] for row in rows])


@pytest.mark.parametrize(("kind", "epsilon0", "k"), CASES)
class TestAgainstTables:
    def test_masses_and_moments(self, kind, epsilon0, k):
        profile, rows = SUPPORTING[kind](epsilon0, k), np.array(table(kind, epsilon0, k).table)
        least = rows.min(axis=0)
        assert blanket_mass(profile) == pytest.approx(least.sum(), rel=1e-11)
        assert profile.kept == pytest.approx(1 - least.sum(), rel=1e-9)
        ratios = rows * least.sum() / least
        assert profile.same == pytest.approx(ratios[0] ** 2 @ least / least.sum(), rel=1e-10)
        assert profile.cross == pytest.approx(ratios[0] * ratios[1] @ least / least.sum(), rel=1e-10)
        assert table(kind, epsilon0, k).epsilon0 == pytest.approx(epsilon0, rel=1e-9)

    def test_upper_is_the_worst_pair_of_the_table(self, kind, epsilon0, k):
        profile, rows = SUPPORTING[kind](epsilon0, k), table(kind, epsilon0, k)
        for n_users, share in ((3, 0.3), (3000, 0.02)):
            found = blanket_divergence(profile, n_users, epsilon=epsilon0 * share)
            assert found == pytest.approx(table_divergence(rows, n_users, epsilon=epsilon0 * share), rel=2e-6)
            assert found <= hoeffding(profile, n_users, epsilon=epsilon0 * share) * (1 + 2e-6)
            assert found <= bennett(profile, n_users, epsilon=epsilon0 * share) * (1 + 2e-6)
            assert found <= any_randomizer(epsilon0, n_users, "upper", epsilon=epsilon0 * share) * (1 + 2e-6)
            assert (
                all_equal(profile, n_users, epsilon=epsilon0 * share)
                <= found
                <= clones_2023(profile, n_users, epsilon=epsilon0 * share) * (1 + 2e-6)
            )

    def test_lower_is_a_data_set_of_the_table(self, kind, epsilon0, k):
        """Few users: no more than every data set; many: all others equal, as for the table."""
        profile, rows = SUPPORTING[kind](epsilon0, k), table(kind, epsilon0, k)
        assert all_equal(profile, 2000, epsilon=epsilon0 * 0.03) == pytest.approx(
            table_lower(rows, 2000, epsilon=epsilon0 * 0.03), rel=1e-5
        )
        for share in (0.0, 0.25, 0.7):
            most = table_lower(rows, 3, epsilon=epsilon0 * share)
            assert all_equal(profile, 3, epsilon=epsilon0 * share) <= most * (1 + 1e-9)
            assert all_equal(profile, 3, epsilon=epsilon0 * share) == pytest.approx(most, rel=0.35)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [2**53])
@pytest.mark.parametrize("epsilon0", [1e-300, 700.0])
def test_edges(kind, k, epsilon0):
    profile = SUPPORTING[kind](epsilon0, k)
    assert 0 <= blanket_mass(profile) <= 1
    for bound in (hoeffding, bennett, blanket_divergence, all_equal):
        assert 0 <= bound(profile, 1000, delta=1e-6) <= epsilon0


class TestSamplers:
    @pytest.mark.parametrize(("kind", "epsilon0", "k"), [case for case in CASES if case[2] < 4])
    def test_frequencies(self, kind, epsilon0, k):
        messages, rows = supports.TABLES[kind](epsilon0, k)
        trials, rng = 20_000, np.random.default_rng(7)
        for value in range(k):
            drawn = RANDOMIZERS[kind](epsilon0, k).sample(np.full(trials, value), rng)
            keys = [tuple(int(x) for x in row) if np.ndim(row) else int(row) for row in drawn]
            expected = np.array(rows[value]) * trials
            place = {message: i for i, message in enumerate(messages)}
            counts = np.bincount([place[key] for key in keys], minlength=len(messages))
            distance = float(((counts - expected) ** 2 / expected).sum())
            assert distance < len(messages) + 6 * math.sqrt(2 * len(messages))

    @pytest.mark.parametrize("kind", KINDS)
    def test_counts_are_unbiased(self, kind):
        survey = flamelib.Shuffled(RANDOMIZERS[kind](2.0, 4), 40_000)
        values = np.repeat(np.arange(4), [20_000, 10_000, 10_000, 0])
        found = flamelib.run(survey, values, np.random.default_rng(5))
        assert found == pytest.approx(np.bincount(values, minlength=4), abs=6 * math.sqrt(40_000 * 3))

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_value_outside_is_refused(self, kind):
        with pytest.raises(flamelib.DomainError, match="values"):
            RANDOMIZERS[kind](1.0, 3).sample([3], np.random.default_rng(0))


def test_what_products_below_the_smallest_doubles_add_is_taken_off():
    """In fifty digits the worst of all data sets gives 1.3e-327."""
    rows = [
        [1.7222461028221216e-80, 0.06141866980385369, 0.0005857550099678191, 0.9379955751861785],
        [7.504275416240566e-83, 0.5, 1.2460566204618572e-05, 0.4999875394337954],
        [6.551054534502015e-84, 0.04577763624078934, 0.003545381061250787, 0.9506769826979599],
    ]
    assert table_lower(TableProfile(rows), 4, epsilon=7.874343635956494) == 0


class TestLoudFromBelow:
    """Local budgets beyond the numerics: noise is added to the messages, of which something is told all the same."""

    @pytest.mark.parametrize("kind", ["kary", "rappor", "oue", "subset", "hadamard"])
    @pytest.mark.parametrize("epsilon0", [31.0, 100.0])
    def test_every_data_set(self, kind, epsilon0):
        profile = {"kary": KaryProfile, **SUPPORTING}[kind](epsilon0, 3)
        world = oracle.neighbours(oracle.family(kind, epsilon0, 3), 2)
        for epsilon in (0.0, 10.0, 25.0):
            truth = float(oracle.worst(world, epsilon))
            assert 0.8 * truth <= all_equal(profile, 2, epsilon=epsilon) <= truth
        found = all_equal(profile, 2, delta=1e-3)
        assert 20 < found <= 30
        assert oracle.worst(world, float(found)) >= 1e-3
        assert all_equal(profile, 2, delta=0.0) == epsilon0

    def test_sizes_that_depend_on_the_budget_are_left_alone(self):
        assert all_equal(SUPPORTING["subset"](31.0, 10**14), 2, epsilon=1.0) == 0
        assert all_equal(SUPPORTING["local-hash"](31.0, 3), 2, epsilon=1.0) == 0
        assert 20 < all_equal(LaplaceProfile(100.0), 1000, delta=1e-5) <= 30
