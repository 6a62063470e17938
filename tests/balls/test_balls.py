"""Every statement against balls that were computed by other means: see :mod:`balls.judging`."""

from typing import Any

import pytest
from balls import judging, of_checkin, of_coordinates, of_sampling, of_shuffling, of_splitting

SUBJECTS = (of_checkin, of_coordinates, of_sampling, of_shuffling, of_splitting)


@pytest.mark.parametrize(("judge", "inputs"), judging.cases(), ids=lambda one: getattr(one, "id", ""))
def test_the_answer_lies_on_its_side_of_the_ball(judge: judging.Judge, inputs: Any) -> None:
    found = judging.verdicts(judge, inputs)
    assert found
    for one in found:
        assert one.holds, (
            f"{one.what or 'answer'} {one.number!r} is not between {one.low.str(20)} and {one.high.str(20)}"
        )
