"""Figures that move: what the one list says of them fits the book, and whatever is shown errs on the safe side."""

from operator import attrgetter

import pytest

from flamebook.places import ROOT
from flamebook.runs.notebook import declared
from flamebook.site.sliders import figures
from flamebook.site.sliders.figures import FIGURES, Figure
from flamebook.site.sliders.grids import certified

each = pytest.mark.parametrize("figure", FIGURES, ids=attrgetter("name"))


@each
def test_the_notebook_takes_the_values_by_their_names(figure: Figure) -> None:
    parameters = declared(ROOT / f"{figure.notebook}.ipynb")
    assert figure.words.keys() <= parameters.keys()
    assert {*figure.words.values()} <= figure.start().keys()


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
