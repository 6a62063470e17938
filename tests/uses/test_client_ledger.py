"""A client's ledger: every round in which it was available counts, and what is kept is kept whole or not at all."""

import json
import os

import pytest

from flamelib.accounting.sampling.rounds import dominated_rounds
from flamelib.core.vocabulary import DomainError
from flamelib.uses.client_ledger import Announcement, ClientLedger

USUAL = Announcement(0.1, 0.1, 1.0, 1.0)
OTHER = Announcement(0.05, 0.2, 2.0, 1.0)


def filled():
    ledger = ClientLedger(n_records=5)
    ledger.charge(USUAL, rounds=60)
    ledger.charge(OTHER, rounds=10)
    ledger.charge(USUAL, rounds=40)
    return ledger


class TestSpent:
    def test_equal_rounds_are_the_guarantee_of_many(self):
        ledger = ClientLedger(n_records=5)
        for _ in range(100):
            ledger.charge(USUAL)
        assert ledger.rounds == 100
        assert ledger.delta(2.0) == dominated_rounds("outer", 0.1, 0.1, 5, 1.0, 1.0, 100, epsilon=2.0)
        assert ledger.epsilon(1e-5) == dominated_rounds("outer", 0.1, 0.1, 5, 1.0, 1.0, 100, delta=1e-5)

    def test_unlike_rounds(self):
        """Above each kind alone, below their budgets added, and about the same in any order."""
        ledger, turned = filled(), ClientLedger(5)
        turned.charge(OTHER, 10)
        turned.charge(USUAL, 100)
        usual = dominated_rounds("outer", 0.1, 0.1, 5, 1.0, 1.0, 100, delta=1e-5)
        other = dominated_rounds("outer", 0.05, 0.2, 5, 2.0, 1.0, 10, delta=1e-5)
        assert usual < ledger.epsilon(2e-5) + 0.2
        assert max(usual, other) < ledger.epsilon(1e-5) < usual + other
        assert ledger.epsilon(1e-5) == pytest.approx(turned.epsilon(1e-5), rel=1e-4)

    def test_more_records_than_declared(self):
        ledger = filled()
        ledger.charge(USUAL, n_records=5)
        ledger.charge(USUAL, n_records=1)
        with pytest.raises(DomainError, match="n_records must be at most the 5"):
            ledger.charge(USUAL, n_records=6)
        assert ledger.rounds == 112


class TestRemaining:
    @pytest.mark.parametrize(("epsilon", "delta"), [(2.5, 1e-5), (4.0, 1e-6)])
    def test_is_within_the_budget_and_hardly_more_would_be(self, epsilon, delta):
        ledger = filled()
        left = ledger.remaining(USUAL, epsilon, delta)
        assert left > 10
        ledger.charge(USUAL, left)
        assert ledger.delta(epsilon) <= delta
        ledger.charge(USUAL, 2 + left // 200)
        assert ledger.delta(epsilon) > delta
        assert ledger.remaining(USUAL, epsilon, delta) == 0


class TestKept:
    def test_round_trip(self, tmp_path):
        ledger = filled()
        ledger.save(tmp_path / "ledger.json")
        again = ClientLedger.load(tmp_path / "ledger.json")
        assert again.rounds == ledger.rounds
        assert again.n_records == ledger.n_records
        assert again.delta(2.0) == ledger.delta(2.0)
        again.charge(USUAL)
        again.save(tmp_path / "ledger.json")
        assert ClientLedger.load(tmp_path / "ledger.json").rounds == ledger.rounds + 1
        assert os.listdir(tmp_path) == ["ledger.json"]

    def test_every_broken_file_is_refused_in_one_sentence(self, tmp_path):
        path = tmp_path / "ledger.json"
        filled().save(path)
        whole = path.read_text(encoding="utf-8")
        kept = json.loads(whole)
        broken = [whole[:cut] for cut in range(0, len(whole) - 1, 41)]
        broken += [whole.replace("100", "10"), whole.replace('"version": 1', '"version": 2')]
        broken += [json.dumps(other) for other in ([], 3, None, {}, kept | {"digest": 1}, kept | {"n_records": 4})]
        for text in broken:
            path.write_text(text, encoding="utf-8")
            with pytest.raises(DomainError, match="path must be a ledger"):
                ClientLedger.load(path)
        path.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(DomainError, match="path must be a ledger"):
            ClientLedger.load(path)

    def test_a_file_that_is_not_there_is_no_empty_ledger(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            ClientLedger.load(tmp_path / "ledger.json")

    def test_a_failure_leaves_the_old_file(self, tmp_path, monkeypatch):
        path = tmp_path / "ledger.json"
        ledger = filled()
        ledger.save(path)
        before = path.read_bytes()
        ledger.charge(OTHER)
        for name in ("fsync", "replace"):
            with monkeypatch.context() as patch:
                patch.setattr(os, name, lambda *_: (_ for _ in ()).throw(OSError("no space left")))
                with pytest.raises(OSError, match="no space"):
                    ledger.save(path)
            assert path.read_bytes() == before
            assert os.listdir(tmp_path) == ["ledger.json"]


class TestBadInput:
    @pytest.mark.parametrize(
        ("name", "value"),
        [("participation_rate", 0), ("record_rate", 2), ("noise_std", 0), ("clip_norm", -1), ("scheme", "inner"),
         ("scheme", "x"), ("noise_std", 1e-9)],
    )  # fmt: skip
    def test_of_a_setting(self, name, value):
        good = {"participation_rate": 0.1, "record_rate": 0.1, "noise_std": 1.0, "clip_norm": 1.0}
        with pytest.raises(DomainError, match=name):
            Announcement(**good | {name: value})

    def test_of_a_ledger(self):
        for value in (0, 1.5, None, "x"):
            with pytest.raises(DomainError, match="n_records"):
                ClientLedger(value)
            with pytest.raises(DomainError, match="rounds"):
                ClientLedger(3).charge(USUAL, rounds=value)
        with pytest.raises(DomainError, match="delta"):
            filled().epsilon(2.0)
        with pytest.raises(DomainError, match="epsilon"):
            filled().delta(-1.0)
        with pytest.raises(DomainError, match="delta"):
            filled().remaining(USUAL, 1.0, -1.0)
