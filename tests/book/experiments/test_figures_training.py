"""Training with Opacus: the same numbers twice, accountants in their order, a drawing that computes nothing."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from flamebook.experiments import training
from flamebook.figures.style import LIGHT, look
from flamebook.figures.together.training import draw_training
from flamelib import Participation
from flamelib.bridges.histories import Sampled
from flamelib.learning.records import load_records

NOISE = [0.8, 2.0]


def trained() -> training.Trained:
    records = load_records("digits", n_tested=100)
    return training.compute_training(records, 500, NOISE, 0.1, 1.0, 12, 1.0, 1e-5, seed=3)


@pytest.fixture(scope="module")
def found() -> training.Trained:
    return trained()


def test_a_training_is_the_same_again(found: training.Trained) -> None:
    assert trained().to_csv() == found.to_csv()


def test_it_learns_and_its_accounts_are_in_order(found: training.Trained) -> None:
    assert all(value > 0.3 for value in found.accuracy)
    for i in range(len(NOISE)):
        certain, ours, prv, rdp, gdp = (
            found.certain[i], *(found.spent[name][i] for name in ("flamelib", "prv", "rdp", "gdp"))
        )  # fmt: skip
        assert gdp < certain <= ours < prv < rdp
        assert ours < 1.001 * certain
    assert all(one.holds for one in (found.never_below, found.smallest, found.too_small))
    assert found.resumed


def test_an_account_that_were_too_small_would_be_seen(found: training.Trained) -> None:
    spent = {**found.spent, "flamelib": tuple(0.99 * value for value in found.certain)}
    wrong = training.Trained(found.noise, found.accuracy, found.certain, spent, True, {})
    assert wrong.never_below.holds is False


def test_the_table_and_the_words(found: training.Trained) -> None:
    assert [len(row) for row in found.rows()] == [6, 6]
    assert found.words()["middle_noise"] == "2"
    assert found.to_csv().splitlines()[0].startswith("noise_std,accuracy,epsilon_at_least,epsilon_flamelib")


def test_the_drawing(found: training.Trained) -> None:
    with look(LIGHT, "training") as pen:
        ax = Figure().add_subplot()
        draw_training(ax, found, pen)
        drawn = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
        for line, name in zip(drawn, training.BOUNDS, strict=True):
            assert np.allclose(line.get_xdata(), found.spent[name])


def test_rows_of_costs() -> None:
    steps, joined = (Sampled(1.0, 0.01), 100), (Participation(0.1, 0.1, 5, 1.0, 1.0), 5)
    rows = training.cost_rows({"one": [steps], "other": [joined], "both": [steps, joined]}, 1e-5)
    assert training.less_together(rows).holds
    assert [row[2:] for row in rows] == [("add-remove", "proven")] * 3
    assert training.sampled_at(100, 0.3) == 1 / 4
