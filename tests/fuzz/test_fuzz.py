"""The fuzz harness: some seconds of it on every change, the requests that once went wrong, and what it is to find."""

import harness
import pytest
import recording

CASES = [case for case in harness.cases() if not case.get("slow")]
POINTS = 300  # the weekly build spends an hour


def test_random_requests() -> None:
    wrong, drawn = harness.fuzz(600.0, seed=0, points=POINTS)
    # How long an answer takes depends on the machine, and a loose one is safe: only the weekly build looks at these.
    assert [str(one) for one in wrong if one.kind not in ("slow", "loose")] == []
    assert drawn


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_what_once_went_wrong(case: dict[str, object]) -> None:
    key, inputs = str(case["id"]), dict(case["inputs"])  # type: ignore[call-overload]
    found = [one for one in harness.judged(key, inputs) if one.kind != "slow"]
    assert [str(one) for one in found] == []


COIN = {"randomizer": "kary", "epsilon0": 1.0, "n_buckets": 2, "n_users": 3, "epsilon": 0.3, "delta": 0.1}
TABLE = {"table": [[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]], "n_users": 3, "epsilon": 0.3, "delta": 0.1}


@pytest.mark.parametrize("inputs", [COIN, COIN | {"randomizer": "hadamard", "n_buckets": 3}, TABLE])
def test_a_small_world_that_is_misjudged_is_told(monkeypatch: pytest.MonkeyPatch, inputs: harness.Inputs) -> None:
    assert list(harness.enumerated(inputs)) == []
    number, at_least = harness._number, harness._at_least
    for factor, side in ((0.5, "upper"), (2.0, "lower")):
        with monkeypatch.context() as patch:
            patch.setattr(harness, "_number", lambda key, given, factor=factor: _times(factor, number(key, given)))
            patch.setattr(harness, "_at_least", lambda key, given, factor=factor: _times(factor, at_least(key, given)))
            found = list(harness.enumerated(inputs))
        assert {one.kind for one in found} == {"oracle"}
        assert {"epsilon", "delta"} <= {name for one in found for name in one.inputs}
        assert "table" not in inputs or side in {one.inputs.get("side") for one in found}


def test_a_local_budget_is_rounded_to_the_safe_side() -> None:
    """At a delta of 0 the answer is the table's local budget, which a double may miss from below."""
    for rows in ([[0.37790290725733006, 0.6220970927426698], [0.7880039810755344, 0.2119960189244656]],
                 [[0.8249137318359602, 0.1750862681640398], [0.1750862681640398, 0.8249137318359602]]):  # fmt: skip
        inputs = {"table": rows, "n_users": 2, "delta": 0.0}
        for epsilon in (0.5, 1.55):
            assert list(harness.enumerated(inputs | {"epsilon": epsilon})) == []


def _times(factor: float, number: float | None) -> float | None:
    return None if number is None else factor * number


@pytest.mark.parametrize("n_users", [300, 1501])
def test_the_front_door_answers_at_the_ends_of_its_domains(n_users: int) -> None:
    """Overflows of earlier days: a local budget at the end of its domain, a rate at which hardly anybody comes."""
    wish = {"n_buckets": 4, "n_users": n_users, "rounds": 30, "delta": 1e-6, "epsilon": 7.0}
    for kind, epsilon0, rate in (("kary", 700.0, 0.9), ("any", 4.0, 1e-6)):
        assert list(harness.visited(wish | {"kind": kind, "epsilon0": epsilon0, "rate": rate})) == []


@pytest.mark.parametrize(
    ("side", "name", "before", "after", "said"),
    [("upper", "epsilon", 1.0, 0.999, "tighter upper"), ("upper", "epsilon", 1.0, 1.009, ""),
     ("upper", "epsilon", 1.0, 1.011, "looser"), ("lower", "lower", 1.0, 1.001, "tighter lower"),
     ("lower", "lower", 1.0, 0.5, ""), ("upper", "n_users", 1000, 999, "tighter upper")],
)  # fmt: skip
def test_a_move_is_told_by_its_side(side: str, name: str, before: float, after: float, said: str) -> None:
    old, new = ({side: {name: value}, "seconds": 0.1} for value in (before, after))
    found = list(recording.moves({"inputs": {"delta": 1e-6}}, old, new))
    assert [move.partition(":")[0] for move in found] == [said] * bool(said)


def test_a_larger_local_budget_is_less_safe() -> None:
    inputs = {"randomizer": "kary", "n_buckets": 4, "n_users": 300, "delta": 1e-6}
    small, large = (
        recording.answered({"asked": "calibrate", "record": "shuffled", "inputs": inputs | {"epsilon": epsilon}})
        for epsilon in (0.3, 0.5)
    )
    assert large["upper"]["epsilon0"] < small["upper"]["epsilon0"] < 0
