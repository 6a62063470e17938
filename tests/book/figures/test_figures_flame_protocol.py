"""The numbers behind the figures of FLAME's protocols: costs, their extension, and the way of one value."""

import csv
import io

import numpy as np
import pytest

from flamebook.figures import present
from flamebook.figures.flame import protocols
from flamebook.figures.flame.protocols import Costs
from flamebook.recordings import costs
from flamebook.runs import record as recorder
from flamelib.core.vocabulary import DomainError


def rows(record):
    return list(csv.DictReader(io.StringIO(record.to_csv())))


LINE = Costs("messages", {"seal": np.array([(10, 0.5), (100, 5.0), (1000, 50.0)])}, {"more": 5000, "less": 200}, {})


def test_costs_are_extended_along_a_line_and_only_beyond_what_was_measured():
    assert LINE.extended("seal").tolist() == [[5000, 250]]
    assert LINE.slope("seal").exponent == pytest.approx(1)
    assert [(float(row["messages"]), row["how"]) for row in rows(LINE)] == [
        *[(10, "measured"), (100, "measured"), (1000, "measured")],
        (5000, "extended"),
    ]


def test_recorded_costs_are_those_of_the_page():
    for what, names in (("round", ["topk", "double"]), ("sealing", ["seal", "open"])):
        record = protocols.recorded_costs(what)
        assert list(record.measured) == names
        assert all(0.8 < record.slope(name).exponent < 1.2 for name in names)
    assert protocols.machine()
    with pytest.raises(DomainError, match="what"):
        protocols.recorded_costs("lunch")


def test_what_is_recorded_reads_back_as_it_was(folder, monkeypatch):
    monkeypatch.setattr(costs, "compute_round_cost", lambda users: LINE)
    monkeypatch.setattr(costs, "compute_sealing_cost", lambda *sizes: LINE)
    assert recorder.record(costs.RECORDING, say=lambda line: None)
    monkeypatch.setattr(protocols, "RECORDED", folder / protocols.RECORDED.name)
    assert rows(protocols.recorded_costs("round")) == rows(LINE)
    assert len(costs.processor()) > 2


def test_a_round_is_measured_at_every_size():
    record = protocols.compute_round_cost((20, 40, 60), dimension=50, kept=5, up_to=1000)
    for name in ("topk", "double"):
        assert record.measured[name][:, 0].tolist() == [100, 200, 300]
        assert (record.measured[name][:, 1] > 0).all()
        assert record.extended(name)[:, 0].tolist() == [5000]
    assert record.parameters == {"dimension": 50, "kept": 5, "epsilon0": 0.5}


@pytest.mark.parametrize("n_users", [1, 6, 7, 8, 20])
def test_blocks_add_up_to_all_users(n_users):
    block = np.arange(14.0).reshape(7, 2)
    joined = np.concatenate(list(protocols._repeated(block, n_users)))
    assert joined.shape == (n_users, 2)
    assert (joined[:, 0] == 2 * (np.arange(n_users) % 7)).all()


def test_sealing_is_extended_to_the_messages_of_a_round():
    record = protocols.compute_sealing_cost((2, 4, 8), n_users=1000, dimension=7850, kept=157, padded=333)
    for name in ("seal", "open"):
        assert record.measured[name][:, 0].tolist() == [2, 4, 8]
        assert record.extended(name)[:, 0].tolist() == [157_000, 2_614_050]


@pytest.fixture(scope="module")
def one():
    return protocols.compute_one_value(-1.4, n_users=500, padded=100, epsilon0=1.0, seed=3)


def test_one_value_is_clipped_sent_and_lost_in_its_bag(one):
    assert (one.update, one.clipped) == (-1.4, -1.0)
    assert one.bag.shape == (100,)
    assert one.kind.count("own") == 1
    assert one.bag[one.kind.index("own")] == one.message
    assert 0 < one.kind.count("user") < 30


def test_the_estimate_is_that_of_the_bag(one):
    """Messages are in units of the bound already: their sum over the expected number of reports, 500 / 50."""
    assert one.estimate == pytest.approx(one.bag.sum() / 10)
    assert one.spread == pytest.approx(2 * np.sqrt(100 * 2 / 1.0**2) / 10)
    assert abs(one.estimate - one.truth) < 5 * one.spread


def test_noise_averages_out_to_the_truth():
    errors = [
        (found.estimate - found.truth) / found.spread
        for found in (protocols.compute_one_value(0.5, 300, 60, 1.0, seed) for seed in range(200))
    ]
    assert abs(np.mean(errors)) < 5 / np.sqrt(200)
    assert np.std(errors) == pytest.approx(1, abs=0.25)


def test_a_seed_fixes_the_way(one):
    again, other = (protocols.compute_one_value(-1.4, 500, 100, 1.0, seed) for seed in (3, 4))
    assert one.to_csv() == again.to_csv() != other.to_csv()
    stages = [row["stage"] for row in rows(one)]
    assert stages[:3] == ["update", "clipped", "message"]
    assert stages[-3:] == ["estimate", "truth", "spread"]
    assert len(stages) == 106


@pytest.mark.parametrize("update", [0, np.nan, np.inf, -np.inf])
def test_a_value_that_would_not_be_reported_is_refused(update):
    with pytest.raises(DomainError, match="update must be a finite number other than 0"):
        protocols.compute_one_value(update, 500, 100, 1.0, 3)


def test_a_bag_that_drops_the_value_is_refused():
    with pytest.raises(DomainError, match="padded must leave room for the 16 messages"):
        protocols.compute_one_value(1.0, 500, 10, 1.0, seed=6)


def test_the_figures_are_drawn(one, tmp_path, monkeypatch):
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    for name, record, draw in (
        ("costs", LINE, protocols.draw_costs),
        ("one-value", one, protocols.draw_one_value),
    ):
        present.show(record, draw, name=name, alt="A figure of the protocols.")
        assert (tmp_path / "figures" / f"{name}.csv").read_text() == record.to_csv()
        assert (tmp_path / "figures" / f"{name}.svg").stat().st_size > 5000
