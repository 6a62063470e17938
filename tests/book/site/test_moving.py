"""Figures that move: what the one list says of them fits the book, and whatever is shown errs on the safe side."""

import json
from operator import attrgetter

import pytest

from flamebook.places import ROOT
from flamebook.runs.notebook import declared
from flamebook.site.sliders import figures
from flamebook.site.sliders.figures import CALLED, FIGURES, Figure
from flamebook.site.sliders.grids import certified, grids

each = pytest.mark.parametrize("figure", FIGURES, ids=attrgetter("name"))


@each
def test_it_stands_where_the_book_has_it(figure: Figure) -> None:
    page = ROOT / figure.under
    text = page.with_suffix(".ipynb" if figure.under.startswith("notebooks/") else ".md").read_text(encoding="utf-8")
    assert f":label: {figure.name}\n" in text or f'"name": "{figure.name}"' in text
    assert 2 <= len(figure.sliders) <= 3
    assert len({curve.key for curve in figure.curves}) == len(figure.curves) >= 2
    assert {*figure.start()} <= CALLED.keys()


@each
def test_the_notebook_takes_the_values_by_their_names(figure: Figure) -> None:
    parameters = declared(ROOT / f"{figure.notebook}.ipynb")
    assert figure.words.keys() <= parameters.keys()
    assert {*figure.words.values()} <= figure.start().keys()


@each
def test_sliders_begin_between_their_ends_and_curves_speak(figure: Figure) -> None:
    for one in (figure.x, *figure.sliders):
        assert one.ends[0] <= one.start <= one.ends[1]
        assert not one.choices or one.start in one.choices
    found = figure.curves_at(figure.start())
    for curve in figure.curves:
        assert sum(isinstance(value, int | float) for value in found[curve.key]["y"]) >= 3, curve.key
        marked = figure.marked(figure.start())[curve.key]
        assert marked.keys() >= ({"refused"} if "refused" in marked else {"shown", "gives", "at", "command"})


@each
def test_what_is_recorded_is_drawn_at_the_points_of_its_grid(figure: Figure) -> None:
    found = figure.curves_at(figure.start())
    for curve in figure.curves:
        if curve.row.recorded:
            axis = grids()[curve.row.recorded]["axes"][figure.x.name]
            assert set(found[curve.key]["x"]) <= set(axis)
            assert figure.x.ends[0] <= min(found[curve.key]["x"])


def test_digits_never_flatter_and_the_point_of_a_grid_is_named_where_it_is_another() -> None:
    figure = figures.BY_NAME["fig-nb-a"]
    replies = figure.marked({"n_users": 12_345, "epsilon0": 0.9, "delta": 1e-6})
    upper, lower = replies["recorded-binary-binary-epsilon"], replies["recorded-binary-lower-binary-epsilon"]
    assert upper["at"] == "ε₀ = 1, n = 10000, δ = 1e-06"
    assert upper["gives"] == "upper", "what is exact at another point is a bound here"
    assert lower["at"] == "ε₀ = 0.7, n = 30000, δ = 1e-06"
    for key, up in (("binary", True), ("binary-lower", False)):
        value = certified(key, {"n_users": 12_345, "epsilon0": 0.9, "delta": 1e-6})["value"]
        digits = float((upper if up else lower)["shown"].split()[2])
        assert digits >= value if up else digits <= value
        assert digits == pytest.approx(value, rel=1e-3)


def test_a_message_is_answered_or_refused_in_one_sentence() -> None:
    asked = {"want": "figure", "figure": "fig-nb-a", "inputs": {"n_users": 100, "epsilon0": 1, "delta": 2}}
    assert json.loads(figures.respond(json.dumps(asked)))["refused"] == "delta must be a number in [0, 1], got 2"
    asked["inputs"] = {"n_users": 100, "epsilon0": 1, "delta": 1e-6}
    assert json.loads(figures.respond(json.dumps(asked)))["found"].keys() == {"curves", "marked"}
