"""Every statement against balls that were computed by other means: see :mod:`balls.judging`."""

from typing import Any

import pytest
from balls import judging, of_checkin, of_coordinates, of_rounds, of_sampling, of_shuffling, of_splitting

from flamelib.core.statements import homes

SUBJECTS = (of_checkin, of_coordinates, of_rounds, of_sampling, of_shuffling, of_splitting)
# A new statement has a ball or a reason.
WITHOUT = {"cloak:plan": "a list of parameters, each of them by a theorem that is judged under its own id"}
# What the balls of a statement leave out.
BEYOND = {
    "blanket:lem-reduction": "Gaussian noise, and crowds, but those of binary response and of Laplace noise",
    "blanket:own-sum": "many users, as of lem-reduction",
    "checkin:baseline-shuffled": "the computed route, and counts between their quantiles",
    "checkin:distributed": "many clients over many rounds",
    "checkin:shuffled": "many clients, noise, and closeness: the balls are those of explicit data sets",
    "cloak:best-1": "the theorem, which is cited; its formula is judged",
    "flame:account": "how close the certified route is, which composes thousands of coordinates",
    "participation:rounds": "closeness over rounds of hidden participants, and their lower side",
    "participation:turned-gradients": "how close the bound is where gradients are turned",
    "shuffle:any": "from below the randomizers that are not k-ary responses",
    "shuffle:calibrate": "noise, and many users",
    "shuffle:exact-binary": "more than two hundred users, but for one data set",
    "shuffle:rappor-sums": "crowds, and more rounds than one",
}


@pytest.mark.parametrize(("judge", "inputs"), judging.cases(), ids=lambda one: getattr(one, "id", ""))
def test_the_answer_lies_on_its_side_of_the_ball(judge: judging.Judge, inputs: Any) -> None:
    found = judging.verdicts(judge, inputs)
    assert found
    for one in found:
        sides = f"{one.low.str(20)} and {one.high.str(20)}"
        assert one.low.is_finite() or one.high.is_finite() or not one.ball.is_finite(), "any answer would do"
        assert one.holds, f"{one.what or 'the answer'} {one.number!r} of {dict(inputs)} is not between {sides}"


def test_every_statement_has_a_ball_or_a_reason() -> None:
    judged = {judge.id for judge in judging.JUDGES.values()}
    assert judged <= homes().keys()
    assert judged.isdisjoint(WITHOUT), "a statement that is judged needs no excuse"
    assert homes().keys() - judged == WITHOUT.keys()
    assert BEYOND.keys() <= judged
    print(f"{len(judged)} of {len(homes())} statements are judged by balls, at {len(list(judging.cases()))} points")


def test_a_ball_that_is_missed_is_seen() -> None:
    """An upper answer that is a millionth too small, a lower one too large, an exact one off."""
    for key in ("blanket:lem-reduction", "flame:topk-lower", "participation:thm-2.4"):
        judge = next(judge for judge in judging.JUDGES.values() if judge.id == key)
        one = judging.verdicts(judge, judge.points[0])[0]
        wrong = one.number * (1 + 1e-6 * (1 if key == "flame:topk-lower" else -1))
        assert one.holds
        assert not judging.Verdict(one.what, wrong, one.ball, one.low, one.high).holds
