"""What leaves a process or is loaded again is what it was: answers with their error, modules with their statements."""

import copy
import importlib
import pickle
import sys

import pytest

from flamelib import answers
from flamelib.accounting.noise import gaussian
from flamelib.core.guarantees import Certified
from flamelib.core.statements import STATEMENTS, states


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_certified_number_keeps_its_error(protocol: int) -> None:
    """A pool of processes sends its answers as pickles."""
    for found in (Certified(1.5, 0.25), gaussian.gaussian_mechanism(1.0, 1.0, delta=1e-6)):
        for again in (pickle.loads(pickle.dumps(found, protocol)), copy.copy(found), copy.deepcopy(found)):
            assert (type(again), float(again), again.uncertainty) == (Certified, float(found), found.uncertainty)
            assert type(again.uncertainty) is float


def test_a_module_may_be_loaded_again() -> None:
    """As autoreload of a notebook does, or an import that was interrupted half-way."""
    before = dict(STATEMENTS)
    try:
        answers.statement("participation:thm-2.4")
        importlib.reload(sys.modules["flamelib.accounting.noise.gaussian"])
        assert STATEMENTS.keys() == before.keys() | {"participation:thm-2.4"}
        given = {"sensitivity": 1, "noise_std": 1, "epsilon": 1}
        assert answers.answer("participation:thm-2.4", given)["value"] > 0
        with pytest.raises(RuntimeError, match="already has a home"):
            states("participation", "thm-2.4", item="x", gives="value", rests_on="proven")(lambda epsilon: epsilon)
    finally:
        STATEMENTS.update(before)
