"""Answers by id: the form, the refusals, the numbers of the document."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flamelib import answers
from flamelib.core.guarantees import Certified
from flamelib.core.statements import DOCUMENTS, STATEMENTS, states
from flamelib.core.vocabulary import VOCABULARY, DomainError


@dataclass(frozen=True)
class Plan:
    n_levels: int
    mse: float


class Pair(NamedTuple):
    epsilon: float
    delta: float


@pytest.fixture
def registered() -> Iterator[None]:
    """A few statements whose answers are known by looking at them."""

    @states("blanket", "try-sum", item="a sum", gives="upper", rests_on="cited",
            randomizers=("kary", "gaussian", "any"))  # fmt: skip
    def total(randomizer: Any, n_users: int, epsilon: float | None = None, delta: float | None = None) -> float:
        return randomizer.epsilon0 + n_users + (100 if delta is None else 1000)

    @states("blanket", "try-values", item="values", gives="value", adjacency="none")
    def values(n_users: int, repeats: int = 5) -> Any:
        return {
            2: math.inf, 3: -math.inf, 4: Certified(0.5, 1e-9), 5: Plan(3, math.inf), 6: Pair(np.float64(0.25), 0.0),
            7: np.int64(7), 8: {"law": np.array([0.5, math.inf])}, 9: -0.0, 10: repeats, 11: True, 12: "word", 13: None,
        }[n_users]  # fmt: skip

    @states("blanket", "try-bug", item="a fault", gives="exact", rests_on="proven")
    def fault(n_users: int) -> float:
        return math.nan if n_users == 2 else float([1][n_users])

    @states("shuffle", "try-own", item="own budget", rests_on="proven",
            gives=lambda given: "upper" if given["epsilon0"] > 1 else "value")  # fmt: skip
    def own(epsilon0: float, dimension_free: None = None) -> float:
        return epsilon0

    yield
    for key in [key for key in STATEMENTS if ":try-" in key]:
        del STATEMENTS[key]


@pytest.mark.usefixtures("registered")
class TestForm:
    def test_every_key(self) -> None:
        given = {"randomizer": "kary", "epsilon0": "2", "n_buckets": "1e1", "n_users": "1e6", "delta": "1e-6"}
        reply = answers.answer("blanket:try-sum", given)
        assert reply["value"] == 2 + 10**6 + 1000
        assert (reply["gives"], reply["adjacency"]) == ("upper", "replace-one")
        sizes = {"n_buckets": 10, "n_users": 10**6}
        assert reply["inputs"] == {"randomizer": "kary", "epsilon0": 2.0, "delta": 1e-6} | sizes
        assert isinstance(reply["inputs"]["n_users"], int)
        assert reply["source"] == f"{DOCUMENTS['blanket']}: a sum"
        assert "\n" not in reply["source"]

    def test_gaussian_answers_with_its_own_parameter(self) -> None:
        reply = answers.answer("blanket:try-sum", {"randomizer": "gaussian", "noise_std": 2, "n_users": 10, "delta": 0})
        assert reply["value"] == "inf"

    @pytest.mark.parametrize(
        ("n_users", "value"),
        [
            (2, "inf"), (3, "-inf"), (4, 0.5), (5, {"n_levels": 3, "mse": "inf"}), (6, {"epsilon": 0.25, "delta": 0.0}),
            (7, 7), (8, {"law": [0.5, "inf"]}), (9, 0.0), (10, 5), (11, True), (12, "word"), (13, None),
        ],
    )  # fmt: skip
    def test_values_are_strict_json(self, n_users: int, value: Any) -> None:
        reply = answers.answer("blanket:try-values", {"n_users": n_users})
        assert json.loads(answers.dumps(reply), parse_constant=pytest.fail)["value"] == value
        assert "-0.0" not in answers.dumps(reply)

    def test_uncertainty_only_where_the_answer_has_one(self) -> None:
        assert answers.answer("blanket:try-values", {"n_users": 4})["uncertainty"] == 1e-9
        assert "uncertainty" not in answers.answer("blanket:try-values", {"n_users": 10})

    def test_every_digit_of_a_float_is_kept(self) -> None:
        line = answers.dumps(answers.answer("shuffle:try-own", {"epsilon0": 0.1 + 0.2}))
        assert json.loads(line)["value"] == 0.1 + 0.2

    @pytest.mark.parametrize("n_users", [2, 3])
    def test_a_fault_is_no_refusal(self, n_users: int) -> None:
        with pytest.raises((ArithmeticError, IndexError)) as caught:
            answers.answer("blanket:try-bug", {"n_users": n_users})
        assert not isinstance(caught.value, DomainError)


ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers(), max_size=2)
)
KARY = {"randomizer": "kary", "epsilon0": 1, "n_buckets": 2, "n_users": 10, "delta": 1e-6}
REFUSALS = [
    ("blanket:try-summ", {}, ["id", "blanket:try-sum", "--list"]),
    ("", {}, ["id"]),
    ("blanket:try-sum", {k: v for k, v in KARY.items() if k != "n_users"}, ["n_users", "[2, 2^53]"]),
    ("blanket:try-sum", {k: v for k, v in KARY.items() if k != "randomizer"}, ["randomizer", "kary, gaussian, any"]),
    ("blanket:try-sum", {**KARY, "randomizer": ["kary"]}, ["randomizer", "kary, gaussian, any"]),
    ("blanket:try-sum", {**KARY, "randomizer": "any"}, ["n_buckets", "randomizer=any"]),
    ("blanket:try-sum", {**KARY, "noise_std": 1}, ["noise_std", "randomizer=kary"]),
    ("blanket:try-sum", {k: v for k, v in KARY.items() if k != "delta"}, ["epsilon", "delta", "[0, 1]"]),
]


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(("key", "inputs", "words"), REFUSALS)
def test_refusals_name_the_parameter_and_its_domain(key: str, inputs: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(DomainError) as refusal:
        answers.answer(key, inputs)
    told = answers.sentence(refusal.value)
    assert all(word in told for word in words), told
    assert "\n" not in told


@pytest.mark.usefixtures("registered")
class TestBatch:
    @pytest.mark.parametrize(
        ("line", "key", "word"),
        [
            ("{", None, "JSON"), ("[]", None, "JSON"), ("[" * 100_000, None, "JSON"), ("1" * 5000, None, "JSON"),
            ('{"id": 3}', 3, "id"),
            ('{"id": "shuffle:try-own", "inputs": []}', "shuffle:try-own", "inputs"),
            ('{"id": "shuffle:try-own", "inputs": {"epsilon0": 1, "epsilon0": 2}}', None, "epsilon0"),
            ('{"id": "shuffle:try-own", "inputs": {"epsilon0": NaN}}', "shuffle:try-own", "epsilon0"),
            ('{"id": "shuffle:try-own", "inputs": {"epsilon0": 1e999}}', "shuffle:try-own", "epsilon0"),
        ],
    )  # fmt: skip
    def test_a_line_that_is_no_request_is_refused(self, line: str, key: Any, word: str) -> None:
        (reply,) = answers.replies([line])
        assert reply["id"] == key
        assert word in reply["refused"]

    def test_a_fault_is_told_as_one_and_the_rest_is_answered(self) -> None:
        lines = [
            '{"id": "blanket:try-bug", "inputs": {"n_users": 5}}',
            '{"id": "shuffle:try-own", "inputs": {"epsilon0": 1}}',
        ]
        first, second = answers.replies(lines)
        assert "refused" not in first
        assert "IndexError" in first["failed"]
        assert second["value"] == 1

    @given(st.text(max_size=200))
    def test_no_text_breaks_the_batch(self, text: str) -> None:
        for reply in answers.replies(text.splitlines()):
            assert "refused" in reply
            json.loads(answers.dumps(reply), parse_constant=pytest.fail)

    @given(st.dictionaries(st.sampled_from([*VOCABULARY, "bogus", ""]), ANYTHING))
    def test_any_inputs_are_answered_or_refused(self, inputs: dict[str, Any]) -> None:
        (reply,) = answers.replies([json.dumps({"id": "blanket:try-sum", "inputs": inputs})])
        assert ("value" in reply) != ("refused" in reply)


def test_the_list_tells_every_id_its_inputs_and_domains() -> None:
    told = "\n".join(answers.listing())
    for key, found in answers.load_all().items():
        assert key in told
        assert found.source in told
        assert found.either or all(f"    {name} " in told for name in found.parameters), key
    one = "\n".join(answers.listing("blanket:lem-hoeffding"))
    for word in ("upper", "replace-one", "kary (with epsilon0, n_buckets)", "(0, 700]", "[2, 2^53]", "either epsilon"):
        assert word in one
