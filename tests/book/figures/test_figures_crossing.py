"""All mechanisms on common axes: rows are sorted into lines, refusals and bits; drawings show each of them."""

import csv
import io
import math

import pytest
from matplotlib.figure import Figure

from flamebook.figures.style import LIGHT, look
from flamebook.figures.together import crossing
from flamelib.accounting.splitting.costs import cost
from flamelib.uses.deployments import mechanisms, row
from flamelib.uses.requests import Request, Row

REQUEST = Request(60, delta=1e-4, sampling_rate=0.5)
NAMES = ("local", "topk", "cloak, Pólya noise", "cloak, no noise", "trusted curator")


@pytest.fixture(scope="module")
def found() -> crossing.Crossing:
    return crossing.compute_rows(REQUEST, 1.0, NAMES)


def test_every_mechanism_has_a_line_of_its_own() -> None:
    assert set(crossing.DRAWN) == set(mechanisms())
    assert len(set(crossing.DRAWN.values())) == len(crossing.DRAWN)


def test_rows_and_refusals_are_told_apart(found: crossing.Crossing) -> None:
    assert found.names == ["local", "trusted curator", "cloak, Pólya noise", "cloak, no noise"]
    assert [name for name, _ in crossing.refused_rows(found)] == ["SS-Topk"]
    assert found.parameters["epsilon"] == 1.0


def test_a_row_is_written_down_with_what_makes_it_incomparable(found: crossing.Crossing) -> None:
    table = list(csv.DictReader(io.StringIO(found.to_csv())))
    marked = {line["mechanism"]: line["neighbours"] for line in table}
    assert marked["cloak, no noise"] == "sum-preserving (not comparable)"
    assert marked["local"] == "replace-one"
    [one] = found.series("cloak, Pólya noise")
    direct = row("cloak, Pólya noise", REQUEST, 1.0)
    assert isinstance(direct, Row)
    assert one == direct


def test_errors_are_compared_where_both_serve(found: crossing.Crossing) -> None:
    assert found.errs_less("trusted curator", "local").holds
    assert found.errs_less("local", "trusted curator").holds is False
    assert found.errs_less("trusted curator", "local", times=1e9).holds is False
    assert found.errs_less("topk", "local").numbers == "topk does not serve this request"
    assert found.errors_in_order.startswith("from above: local (")
    assert math.isnan(found.largest_claim)


def test_budgets_become_one_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("LOCAL", "CENTRAL"):
        kept = {name: make for name, make in getattr(crossing, kind).items() if name in NAMES}
        monkeypatch.setattr(crossing, kind, kept)
    record = crossing.compute_crossing(REQUEST, [2.0, 1.0])
    assert [one.epsilon for one in record.series("local")] == [1.0, 2.0]
    assert len(record.refused) == 1
    assert record.best("local") == record.series("local")[-1]
    with look(LIGHT, "crossing") as pen:
        ax = Figure().subplots()
        crossing.draw_errors(ax, record, pen)
    assert [line.get_label() for line in ax.get_lines()] == record.names


def test_bits_are_those_of_the_rows_and_of_secure_aggregation() -> None:
    record = crossing.compute_bits(REQUEST, 1.0, [4, 60])
    direct = row("cloak, Skellam noise", REQUEST, 1.0)
    assert isinstance(direct, Row)
    assert record.bits["cloak, Skellam noise"][1] == direct.bits
    assert math.isnan(record.bits["cloak, Pólya noise"][0])
    assert record.bits[crossing.AGGREGATION][1] == cost("cmp-bon", 60, 1.0, 1e-4).bits
    assert len(record.to_csv().splitlines()) == 3
    assert "Pólya" not in record.in_words
    assert record.in_words.startswith("from 4 to 60 users: cloak, Theorem 1 from ")
    with look(LIGHT, "bits") as pen:
        ax = Figure().subplots()
        crossing.draw_bits(ax, record, pen)
    assert len(ax.get_lines()) == len(record.bits) + 1
