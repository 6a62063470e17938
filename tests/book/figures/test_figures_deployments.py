"""The choice for each deployment follows its rule, and the words around it follow the rows."""

import pytest

from flamebook.figures.together import crossing, deployments
from flamelib.uses.requests import Request

NOISY = ("cloak, Pólya noise", "cloak, Skellam noise", "trusted curator")


def rows(request: Request, *names: str, epsilon: float = 1.0) -> crossing.Crossing:
    return crossing.compute_rows(request, epsilon, names)


def test_the_keyboard_takes_the_most_exact_small_upload() -> None:
    request = Request(2_000, 20, task="histogram", delta=1e-6)
    found = rows(request, "local", "blanket", *NOISY)
    words = deployments.keyboard(found, request)
    assert words["keyboard_choice"] == "the blanket protocol"
    assert "Without a shuffler the error at the same budget is " in words["keyboard_story"]
    assert "a phone sends 5 bits in place of " in words["keyboard_story"]
    few = Request(3, 2, task="histogram", delta=1e-6)
    alone = deployments.keyboard(rows(few, "local", "blanket", "cloak, Pólya noise", "trusted curator"), few)
    assert "No sum of shares serves this request." in alone["keyboard_story"]
    assert deployments.keyboard(rows(few, "trusted curator"), few)["keyboard_choice"] == "none"


@pytest.mark.parametrize(
    ("epsilon", "choice"), [(1.0, "cloak aggregation with Skellam noise"), (0.5, "the blanket protocol")]
)
def test_the_wards_take_who_errs_least_and_hides_a_hospital(epsilon: float, choice: str) -> None:
    request = Request(200, 1, 12, 1e-5)
    names = ("blanket", *NOISY, "cloak, no noise")
    found = rows(request, *names, epsilon=epsilon)
    words = deployments.hospitals(found, request)
    assert words["hospital_choice"] == choice
    assert words["tempting_row"].startswith("The last row of the table has an error of 0.005")
    assert found.best("cloak, no noise").error < deployments.chosen(found).error  # type: ignore[union-attr]
    assert deployments.not_comparable(found, "cloak, no noise").holds
    assert deployments.not_comparable(found, "blanket").holds is False


def test_wards_that_nobody_serves_are_told_so() -> None:
    request = Request(5, 1, 12, 1e-5)
    words = deployments.hospitals(rows(request, "cloak, Pólya noise"), request)
    assert (words["hospital_choice"], words["hospital_story"]) == ("none", "No mechanism serves this request.")


def test_phones_take_reports_where_they_are_exact_enough() -> None:
    request = Request(10_000, 1, 7, 1e-6, sampling_rate=0.2)
    found = rows(request, "shuffled check-in", "distributed check-in", "random participation", *NOISY)
    enough, more = (deployments.phones(found, request, error) for error in (0.05, 0.001))
    assert (enough["phone_choice"], more["phone_choice"]) == ("shuffled check-in", "none of these")
    assert "which is within the 0.05" in enough["phone_story"]
    assert "more than the 0.001" in more["phone_story"]
    assert enough["phone_days"] == "1.4 of 7"
    assert deployments.reaches(found, "shuffled check-in", 0.05).holds
    assert deployments.reaches(found, "shuffled check-in", 0.001).holds is False
    assert deployments.claims_more(found, "shuffled check-in", 3).holds
    assert deployments.claims_more(found, "shuffled check-in", 1e9).holds is False
    assert deployments.claims_more(found, "random participation", 3).numbers == "the document's bound says nothing"
    everybody = Request(10_000, 1, 7, 1e-6, sampling_rate=1)
    words = deployments.phones(rows(everybody, "shuffled check-in", "distributed check-in"), everybody, 0.05)
    assert "absent" not in words["phone_story"]
    nobody = deployments.phones(rows(request, "trusted curator"), request, 0.05)
    assert nobody["phone_choice"] == "none"
    assert nobody["account_story"] == "The document's own bounds say nothing here."


def test_savings_are_told_where_both_serve() -> None:
    request = Request(2_000, 20, task="histogram", delta=1e-6)
    found = rows(request, "blanket", "cloak, Pólya noise")
    assert deployments.saves(found, "blanket", "cloak, Pólya noise", 2).holds
    assert deployments.saves(found, "blanket", "cloak, Pólya noise", 1e9).holds is False
    assert deployments.saves(found, "blanket", "local", 2).numbers == "local does not serve this request"
