"""Rows of the ledger that named checks compute, by balls: see :mod:`balls.rows.recorded`."""

from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from balls import judging, of_checkin, of_coordinates, of_rounds, of_sampling, of_shuffling, of_splitting
from balls.rows import on_blanket, on_checkin, on_cloak, on_flame, on_participation, recorded

SUBJECTS = (on_blanket, on_checkin, on_cloak, on_flame, on_participation)
JUDGING = (of_checkin, of_coordinates, of_rounds, of_sampling, of_shuffling, of_splitting)
# A refuted row has a ball, or a reason.
WITHOUT = {
    "checkin:rem-2/numerical": "a hundred thousand rounds to three percent, and the least over three thousand orders",
    "checkin:thm-3/budget": "a thousand rounds of ten million clients, from above for every randomizer",
    "cloak:encrypt-one/all-sides": "an attack that is run",
    "cloak:encrypt-one/two": "an attack that is run",
    "cloak:seed/units": "an attack that is run",
    "flame:claim-0.24/topk-epsilon": "weights of all messages of a bag; flame:topk-lower/epsilon has a ball",
}


# An end of a headline of the page on what is unknown has a ball at its inputs, or a reason.
OUT_OF_REACH = {
    "Any randomizer behind self check-in, 5,540 rounds, lower": "six thousand clients over many rounds",
    "Any randomizer behind self check-in, 5,540 rounds, upper": "six thousand clients over many rounds",
    "Any randomizer, local budget 4, lower": "k-ary responses of a million users",
    "Any randomizer, local budget 8, lower": "k-ary responses of ten million users",
    "Error of a private sum, one message a user, upper": "k-ary responses of a million users",
    "Gaussian noise 2, ten thousand users, lower": "noisy messages of a crowd",
    "Gaussian noise 2, ten thousand users, upper": "noisy messages of a crowd",
    "Laplace noise behind self check-in, 100 rounds, lower": "six thousand clients over many rounds",
    "Laplace noise behind self check-in, 100 rounds, upper": "six thousand clients over many rounds",
    "Laplace noise, local budget 4, few users, lower": "noisy messages of a crowd",
    "Random participation, five records, 100 rounds, lower": "gradients in a plane",
    "Random participation, ten records, 1,000 rounds, lower": "gradients in a plane",
    "SS-Topk, bags that never overflow, lower": "weights of all messages of a bag",
    "Ten-ary response, local budget 2, lower": "k-ary responses of a hundred thousand users",
    "Ten-ary response, local budget 2, upper": "k-ary responses of a hundred thousand users",
}


@pytest.mark.parametrize("row", recorded.ENCLOSURES)
def test_the_ball_contains_what_is_recorded_and_excludes_what_is_refuted(row: str) -> None:
    verdict = recorded.ledger()[row]["verdict"]
    for one in recorded.judged(recorded.ENCLOSURES[row]):
        assert one.contains, f"{row}: {one.number!r} is not in {one.ball}"
        assert one.agrees is (verdict == "reproduced"), f"{row}: {one.ball} is said to be {one.relation} {one.stated}"


def test_every_refuted_row_has_a_ball_or_a_reason() -> None:
    refuted = {name for name, row in recorded.ledger().items() if row["verdict"] == "refuted"}
    by_statement = {
        name
        for name in refuted
        for row in [recorded.ledger()[name]]
        for judge in judging.JUDGES.values()
        if judge.id == row.get("compute") and judge.ledger and judge.reach(row["inputs"])
    }
    balls = recorded.ENCLOSURES.keys()
    assert WITHOUT.keys().isdisjoint(balls | by_statement), "a row that is judged needs no excuse"
    assert refuted - balls - by_statement == WITHOUT.keys()
    print(
        f"{len(balls & refuted)} balls of named checks and {len(by_statement)} of statements exclude what is refuted, "
        f"{len(balls)} contain what is recorded; {len(WITHOUT)} of {len(refuted)} refuted rows have none"
    )


def test_a_number_that_is_spoilt_is_seen() -> None:
    """The last digit but one that is recorded, and a claim that would be true."""
    for row, truly in (("blanket:lem-bennett/withdrawn", 1.01), ("cloak:lemma-1/three", 0.99)):
        one = next(recorded.judged(recorded.ENCLOSURES[row]))
        assert one.contains
        assert one.agrees is False
        assert not replace(one, number=one.number * (1 + 1e-5)).contains
        assert replace(one, stated=one.number * truly).agrees is True


def checks() -> list[tuple[str, str, judging.Inputs]]:
    """Ends of headlines that a named check computes, whose rows have a ball."""
    balls = {recorded.ledger()[row].get("function") for row in recorded.ENCLOSURES}
    return [end for end in judging.headlines() if end[1] in balls]


@pytest.mark.parametrize(("name", "check", "inputs"), checks())
def test_a_headline_of_a_check_is_on_its_side_of_the_ball(name: str, check: str, inputs: Any) -> None:
    module, _, function = check.rpartition(":")
    ball = next(one for row, one in recorded.ENCLOSURES.items() if recorded.ledger()[row].get("function") == check)
    found = recorded.Found(
        ball.ball(**inputs), getattr(import_module(module), function)(**inputs), None, "", 0, "lower"
    )
    assert found.contains, f"{name}: {found.number!r} is above {found.ball}"


def test_every_headline_has_a_ball_or_a_reason() -> None:
    ends = judging.headlines()
    judged = {name for name, key, inputs in ends if judging.judges_of(key, inputs)} | {name for name, _, _ in checks()}
    assert judged.isdisjoint(OUT_OF_REACH), "a headline that is judged needs no excuse"
    assert {name for name, _, _ in ends} - judged == OUT_OF_REACH.keys()
    print(f"{len(judged)} of {len(ends)} ends of headlines are on their sides of balls")
