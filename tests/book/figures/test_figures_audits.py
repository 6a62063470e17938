"""No protocol of the library loses more than its account promises, as far as runs can show."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from flamebook.figures.style import LIGHT, look
from flamebook.figures.together import audits
from flamelib.core.vocabulary import DomainError
from flamelib.uses.auditing import Audit, Event

SETTING = audits.Setting()


@pytest.fixture(scope="module")
def found() -> audits.Trials:
    return audits.compute_trials(SETTING, trials=300, confidence=0.999, seed=11)


def test_no_account_is_refuted_by_its_own_protocol(found: audits.Trials) -> None:
    assert found.refuted == []
    assert found.kept.holds
    assert found.shown > 0
    assert found.words()["audits_alt"].endswith("no circle lies right of its square.")
    assert sum(1 - one.confidence for one in found.found) == pytest.approx(1 - 0.999)


def test_a_promise_that_is_broken_is_named(found: audits.Trials) -> None:
    leak = Audit(9.0, 0.01, 0.95, Event(0.0, above=True), (90, 0), 100, exchanged=False)
    broken = replace(found, found=(leak, *found.found[1:]))
    assert broken.refuted == [found.cases[0].name]
    assert broken.kept.holds is False
    assert broken.words()["audits_alt"].endswith("right of their squares lie those of shuffled histogram.")


@pytest.mark.parametrize("at", range(len(audits.CASES)), ids=[make.__name__ for make in audits.CASES])
def test_a_case_compares_neighbours_and_reads_a_number(found: audits.Trials, at: int) -> None:
    case = found.cases[at]
    first, second = ([np.atleast_1d(np.asarray(one)) for one in data] for data in case.neighbours)
    if case.adjacency == "replace one":
        assert sum(not np.array_equal(a, b) for a, b in zip(first, second, strict=True)) == 1
    else:
        assert [len(a) - len(b) for a, b in zip(first, second, strict=True)] == [1]
    view = case.run(case.neighbours[0], np.random.default_rng(0))
    assert np.isfinite(case.statistic(view))
    assert 0 < case.promised < 10


def test_names_are_distinct_and_rows_are_written_down(found: audits.Trials) -> None:
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert len({row["protocol"] for row in rows}) == len(rows) == len(audits.CASES)
    assert [float(row["promised"]) for row in rows] == [case.promised for case in found.cases]


def test_the_drawing_has_a_line_for_each(found: audits.Trials) -> None:
    with look(LIGHT, "audits") as pen:
        ax = Figure().subplots()
        audits.draw_trials(ax, found, pen)
    assert len(ax.get_lines()) == len(audits.CASES) + 2


@pytest.mark.parametrize("n_users", [6, 25, 200])
def test_the_modulus_of_shares_has_room_for_every_crowd(n_users: int) -> None:
    case = audits.cloaked_sum(audits.Setting(n_users))
    views = [case.statistic(case.run(case.neighbours[0], np.random.default_rng(seed))) for seed in range(20)]
    assert abs(np.mean(views)) < 5


@pytest.mark.parametrize("change", [{"n_users": 1}, {"epsilon0": 0}, {"delta": 2}])
def test_bad_settings_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(DomainError, match=next(iter(change))):
        audits.Setting(**change)  # type: ignore[arg-type]
