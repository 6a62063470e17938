"""Rows of several mechanisms: who serves, who is refused, and who errs less."""

import pytest

from flamebook.figures.together import crossing
from flamelib.uses.deployments import mechanisms
from flamelib.uses.requests import Request

REQUEST = Request(60, delta=1e-4, sampling_rate=0.5)
NAMES = ("local", "topk", "cloak, Pólya noise", "cloak, no noise", "trusted curator")


@pytest.fixture(scope="module")
def found() -> crossing.Crossing:
    return crossing.compute_rows(REQUEST, 1.0, NAMES)


def test_every_mechanism_has_a_line_of_its_own() -> None:
    assert set(crossing.DRAWN) == set(mechanisms())
    assert len(set(crossing.DRAWN.values())) == len(crossing.DRAWN)


def test_rows_and_refusals_are_told_apart(found: crossing.Crossing) -> None:
    assert [one.mechanism for one in found.found] == [
        "local",
        "cloak, Pólya noise",
        "cloak, no noise",
        "trusted curator",
    ]
    assert [one.mechanism for one in found.refused] == ["topk"]
    assert found.parameters["epsilon"] == 1.0


def test_errors_are_compared_where_both_serve(found: crossing.Crossing) -> None:
    assert found.errs_less("trusted curator", "local").holds
    assert found.errs_less("local", "trusted curator").holds is False
    assert found.errs_less("trusted curator", "local", times=1e9).holds is False
    assert found.errs_less("topk", "local").numbers == "topk does not serve this request"
