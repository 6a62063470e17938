"""What the exercises on self check-in tabulate, and what is said of it where there is nothing to say."""

import math

import pytest

from flamebook.figures.checkin import exercises


def test_the_wrong_rate_wastes_the_most_between_four_and_five_check_ins() -> None:
    """The ratio is the mean number of check-ins times the mean of its inverse, whatever the budget."""
    means = [0.01, 2, 4, 4.12, 5, 6]
    ratio = exercises.wrong_over_right(1.0, 200, means)
    assert ratio == pytest.approx(exercises.wrong_over_right(30.0, 200, means), rel=1e-9)
    assert ratio[0] == pytest.approx(1e-4, rel=0.02)
    assert max(ratio) == ratio[3] > 1.27
    assert all(math.isnan(value) for value in exercises.wrong_over_right(1e-300, 200, [2.0]))


def test_designs_keep_the_target_and_their_words_say_by_how_much() -> None:
    designs = exercises.compute_designs(10_000, 0.2, 10, 1.0, 1e-6)
    assert [one.name for one in designs] == ["as given", "twice the clients", "twice the rate"]
    assert [one.holds for one in exercises.design_findings(designs, 1.0)] == [True, True, True]
    assert exercises.design_words(designs).startswith("Here the noise as given is 1.4")
    assert exercises.design_findings(designs, 0.9)[0].holds is False


@pytest.mark.parametrize(
    ("given", "name", "holds"),
    [((100, 0.6, 3, 5.0, 1e-4), "everybody in every round", [True, True, False]),
     ((100, 1.0, 3, 5.0, 1e-4), "everybody in every round", [True, True, None]),
     ((100, 1e-9, 3, 5.0, 1e-4), "twice the rate", [True, None, None])],
)  # fmt: skip
def test_designs_at_the_edges(given: tuple[int, float, int, float, float], name: str, holds: list[bool]) -> None:
    designs = exercises.compute_designs(*given)
    assert designs[2].name == name
    assert [one.holds for one in exercises.design_findings(designs, 5.0)] == holds
    assert ("nothing can be compared" in exercises.design_words(designs)) == (holds[1] is None)


def test_more_rounds_cost_more() -> None:
    assert exercises.doubled([1.0, 1.5]).holds
    assert exercises.doubled([1.0, 2.5]).holds is False
    assert exercises.doubled([0.0, 0.1]).numbers == "nothing is spent at first"
    assert exercises.doubled([math.inf, math.inf]).numbers == "nothing is certified"


def test_dropouts_that_are_not_counted() -> None:
    """Among ten clients with little noise, half of whom drop out, what is not counted is exceeded for certain."""
    many, few = exercises.compute_dropouts(60_000, 0.1, 2.0, 0.5, 1e-6)
    assert many.uncounted > many.counted
    assert few.uncounted < few.least
    assert [one.holds for one in exercises.dropout_findings([many, few], 0.5)] == [True, True]
    assert exercises.dropout_findings([few, many], 0.5)[1].holds is False
    assert exercises.dropout_findings([many, few], 0.0)[1].holds is None
