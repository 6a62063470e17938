"""What a round of FLAME costs, measured for the record."""

import json

import numpy as np
import pytest

from flamebook.recordings import costs
from flamebook.recordings.costs import Costs
from flamebook.runs import record as recorder

LINE = Costs("messages", {"seal": [(10, 0.5), (100, 5.0)]}, {"more": 5000}, {})


def test_what_is_recorded_reads_back_as_it_was(folder, monkeypatch):
    monkeypatch.setattr(costs, "compute_round_cost", lambda users: LINE)
    monkeypatch.setattr(costs, "compute_sealing_cost", lambda *sizes: LINE)
    assert recorder.record(costs.RECORDING, say=lambda line: None)
    told = json.loads((folder / costs.RECORDED.name).read_text(encoding="utf-8"))["costs"]
    line = {"x_name": "messages", "measured": {"seal": [[10, 0.5], [100, 5.0]]}, "further": {"more": 5000}}
    assert told["round"] == told["sealing"] == line | {"parameters": {}}
    assert len(costs.processor()) > 2


def test_a_round_is_measured_at_every_size():
    record = costs.compute_round_cost((20, 40, 60), dimension=50, kept=5, up_to=1000)
    for name in ("topk", "double"):
        sizes, seconds = zip(*record.measured[name], strict=True)
        assert sizes == (100, 200, 300)
        assert min(seconds) > 0
    assert record.further == {"1,000 users": 5000}
    assert record.parameters == {"dimension": 50, "kept": 5, "epsilon0": 0.5}


@pytest.mark.parametrize("n_users", [1, 6, 7, 8, 20])
def test_blocks_add_up_to_all_users(n_users):
    block = np.arange(14.0).reshape(7, 2)
    joined = np.concatenate(list(costs._repeated(block, n_users)))
    assert joined.shape == (n_users, 2)
    assert (joined[:, 0] == 2 * (np.arange(n_users) % 7)).all()


def test_sealing_is_extended_to_the_messages_of_a_round():
    record = costs.compute_sealing_cost((2, 4, 8), n_users=1000, dimension=7850, kept=157, padded=333)
    for name in ("seal", "open"):
        assert [size for size, _ in record.measured[name]] == [2, 4, 8]
    assert sorted(record.further.values()) == [157_000, 2_614_050]
