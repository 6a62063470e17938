"""Training that was stopped goes on where it was, to the same numbers; what differs in anything begins anew."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flamelib.core.vocabulary import DomainError
from flamelib.learning import checkin, participation, rounds
from flamelib.learning.records import Records, load_records
from flamelib.learning.rounds import History
from flamelib.mechanisms.vectors import CapMessages

Train = Callable[..., History]


@pytest.fixture(scope="module")
def records() -> Records:
    return load_records("digits", pool=2)


def by_participation(records: Records, rate: float = 0.05, noise: float = 1.0) -> History:
    """Twelve rounds with momentum, tested after every third."""
    schemes = {"noisy": participation.Scheme(noise, 1.0, rate), "plain": participation.Scheme(0.0, math.inf, rate)}
    given = {"participation_rate": 0.5, "record_rate": 0.2, "n_records": 30, "n_clients": 80, "points": 4}
    return participation.train(records.softmax, records, schemes, 12, np.random.default_rng(3), **given)


def by_checkin(records: Records, rate: float = 0.5, noise: float = 4.0) -> History:
    """Twelve rounds with a falling step, tested after every third."""
    sent = CapMessages.privunit2(records.softmax.dimension, noise, 0.5)
    schemes = {"cap": checkin.Scheme(sent, rate, falling=True)}
    given = {"n_users": 4000, "checkin_rate": 0.05, "points": 4}
    return checkin.train(records.softmax, records, schemes, 12, np.random.default_rng(3), **given)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder in which even the shortest training is kept."""
    monkeypatch.setenv("FLAMELIB_RESUME", str(tmp_path / "kept"))
    monkeypatch.setattr(rounds, "_SHORT", -1.0)
    return tmp_path / "kept"


def stopped(train: Train, records: Records, monkeypatch: pytest.MonkeyPatch, after: int) -> int:
    """Rounds that a training does before it is stopped in the midst of one, counted over all schemes."""
    done = 0
    real = rounds.Training.one_round

    def interrupted(batch: Callable[..., object]) -> Callable[..., object]:
        def one(*given: object) -> object:
            nonlocal done
            done += 1
            if done > after:
                raise KeyboardInterrupt
            return batch(*given)

        return one

    with monkeypatch.context() as patch:
        patch.setattr(Records, "batch", interrupted(Records.batch))
        with pytest.raises(KeyboardInterrupt) if after < 10**6 else monkeypatch.context():
            train(records)
    assert rounds.Training.one_round is real
    return done


@pytest.mark.parametrize("train", [by_participation, by_checkin])
def test_a_stopped_training_goes_on_to_the_same_numbers(train, records, kept, monkeypatch):
    with monkeypatch.context() as patch:
        patch.delenv("FLAMELIB_RESUME")
        whole = train(records)
    stopped(train, records, monkeypatch, after=8)
    assert stopped(train, records, monkeypatch, after=10**6) == 12 * len(whole.accuracy) - 6
    again = train(records)
    for name, accuracy in whole.accuracy.items():
        assert np.array_equal(again.accuracy[name], accuracy)
    assert np.array_equal(again.batches, whole.batches)
    assert stopped(train, records, monkeypatch, after=10**6) == 0


@pytest.mark.parametrize("changed", [{"rate": 0.04}, {"noise": 2.0}])
@pytest.mark.parametrize("train", [by_participation, by_checkin])
def test_another_setting_begins_anew(train, changed, records, kept):
    before = train(records)
    after = train(records, **changed)
    assert any(not np.array_equal(after.accuracy[name], before.accuracy[name]) for name in before.accuracy)
    pooled = replace(records, mean=records.mean + 100)
    assert not np.array_equal(*(next(iter(train(of).accuracy.values())) for of in (records, pooled)))


def test_short_trainings_keep_nothing(records, monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMELIB_RESUME", str(tmp_path / "kept"))
    by_checkin(records)
    assert not (tmp_path / "kept").exists()


def test_a_model_that_runs_away_is_named(records):
    with np.errstate(all="ignore"), pytest.raises(DomainError, match=r"ran away in round \d+: learning_rate"):
        by_participation(records, rate=1e300)


def test_more_clients_than_records_draw_theirs_at_random(records):
    rng = np.random.default_rng(0)
    few = replace(records, labels=records.labels[:10])
    assert few.held(10, rng).tolist() == list(range(10))
    assert few.held(4, rng).tolist() == list(range(4))
    assert np.bincount(few.held(100_000, rng), minlength=10) == pytest.approx(np.full(10, 10_000), abs=5 * 95)
