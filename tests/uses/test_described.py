"""Deployments by their descriptions: numbers on their sides of an enumeration, and questions in place of guesses."""

import itertools
import json
import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from oracles import bit_sums
from terminal import flamelib

from flamebook.figures.together import trial
from flamelib import KaryResponse, LaplaceNoise, Shuffled, bounds, cli
from flamelib.core.vocabulary import DomainError
from flamelib.uses.deployment_card import FIELDS, QUESTIONS, Unstated, answered

SURVEY = {
    "mechanism": "kary", "epsilon0": 2, "n_buckets": 10, "n_users": "1e5", "rounds": 1, "delta": 1e-8,
    "adjacency": "replace-one", "trust": "shuffler", "unit": "one answer",
}  # fmt: skip
CENSUS = {"mechanism": "zcdp", "rho": 2.56, "delta": 1e-10, "trust": "curator", "unit": "a person", "rounds": 1}


def without(given: Mapping[str, Any], *fields: str) -> dict[str, Any]:
    return {field: value for field, value in given.items() if field not in fields}


def test_a_shuffled_survey_is_what_the_front_door_says() -> None:
    found = answered(SURVEY)
    lower, upper = bounds(Shuffled(KaryResponse(2.0, 10), 100_000), delta=1e-8)
    assert (found.lower, found.upper) == (lower, upper)
    assert (found.odds, found.alone, found.unstated) == (math.exp(upper), 2.0, ())


def test_a_sum_shows_no_more_than_reports_in_random_order() -> None:
    noise = without(SURVEY, "n_buckets") | {"mechanism": "laplace", "trust": "aggregator", "n_users": 1000}
    found = answered(noise)
    assert found.upper == bounds(Shuffled(LaplaceNoise(2.0), 1000), delta=1e-8).upper
    assert found.lower is None
    assert answered(SURVEY | {"trust": "aggregator"}).upper == answered(SURVEY).upper


class TestWhatIsNotSaid:
    @pytest.mark.parametrize("field", ["unit", "n_users", "mechanism", "trust", "delta", "epsilon0", "n_buckets"])
    def test_is_asked_for(self, field: str) -> None:
        with pytest.raises(Unstated, match=f"{field} is unstated: ") as refusal:
            answered(without(SURVEY, field))
        assert refusal.value.questions == {field: QUESTIONS[field]}

    @pytest.mark.parametrize("field", ["unit", "rho", "mechanism", "trust"])
    def test_is_asked_for_of_a_release(self, field: str) -> None:
        with pytest.raises(Unstated, match=f"{field} is unstated"):
            answered(without(CENSUS, field))

    def test_all_of_it_at_once_and_nothing_is_a_guess(self) -> None:
        with pytest.raises(Unstated) as refusal:
            answered({"name": "Phones", "mechanism": "any", "trust": "shuffler", "unit": ""})
        assert list(refusal.value.questions) == ["unit", "epsilon0", "n_users", "delta"]
        assert str(refusal.value).startswith("Phones: unit is unstated: whose data")

    def test_is_told_where_it_can_be_bounded(self) -> None:
        rounds, adjacency = answered(without(SURVEY, "rounds", "adjacency")).unstated
        assert float(rounds.rpartition(" ")[2]) == pytest.approx(answered(SURVEY | {"rounds": 10}).upper, rel=1e-3)
        assert adjacency.startswith("adjacency: answered for a report that is replaced")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"trust": "me"}, "trust must be one of nobody"),
        ({"mechanism": "magic"}, "mechanism must be one of any"),
        ({"mechanism": "zcdp", "rho": 1}, "where trust is shuffler"),
        ({"trust": "curator"}, "where trust is curator"),
        ({"n_users": 1}, "n_users must be"),
        ({"rounds": 0.5}, "rounds must be"),
        ({"people": 5}, "people is not a parameter of a description"),
        ({"adjacency": "add-remove"}, "adjacency must be replace-one"),
        ({"adjacency": "none"}, "adjacency must be one of"),
        ({"epsilon0": [1]}, "epsilon0 must be"),
    ],
)
def test_wrong_fields_are_refused_by_name(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(DomainError, match=told):
        answered(SURVEY | wrong)


@pytest.mark.parametrize("wrong", [{"rho": 0}, {"rho": "much"}, {"rho": math.nan}, {"delta": 0}, {"delta": 1}])
def test_wrong_releases_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(DomainError, match=f"{next(iter(wrong))} must be"):
        answered(CENSUS | wrong)


class TestNobodyIsTrusted:
    """Reports that are seen one by one, against every outcome."""

    @staticmethod
    def least(pairs: list[tuple[float, float]], rounds: int, delta: float) -> float:
        """Epsilon of so many reports, by going through all their outcomes."""
        ways = itertools.product(pairs, repeat=rounds)
        outcomes = [tuple(math.prod(chances) for chances in zip(*way, strict=True)) for way in ways]

        def at(epsilon: float) -> float:
            return math.fsum(max(p - math.exp(epsilon) * q, 0.0) for p, q in outcomes)

        low, high = 0.0, 50.0
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if at(middle) > delta else (low, middle)
        return high

    @pytest.mark.parametrize(("mechanism", "n_buckets"), [("any", 2), ("kary", 2), ("kary", 5)])
    @pytest.mark.parametrize("rounds", [1, 4])
    @pytest.mark.parametrize("delta", [1e-6, 0.02])
    def test_of_letters(self, mechanism: str, n_buckets: int, rounds: int, delta: float) -> None:
        whole = math.exp(1.5) + n_buckets - 1
        pairs = [(math.exp(1.5) / whole, 1 / whole), (1 / whole, math.exp(1.5) / whole)]
        pairs += [(1 / whole, 1 / whole)] * (n_buckets - 2)
        truth = self.least(pairs, rounds, delta)
        words = {"mechanism": mechanism, "n_buckets": n_buckets, "epsilon0": 1.5, "rounds": rounds, "delta": delta}
        found = answered(words | {"trust": "nobody", "unit": "a report"})
        assert found.lower is not None
        assert found.lower <= truth * (1 + 1e-9)
        assert truth <= found.upper * (1 + 1e-9)
        assert found.upper <= truth * 1.01
        assert found.lower >= truth * 0.99

    @pytest.mark.parametrize("delta", [1e-4, 0.05])
    def test_of_flipped_bits(self, delta: float) -> None:
        one, other = (bit_sums.message(value, 1 / (math.exp(1.5) + 1)) for value in (0, 1))
        truth = self.least([(one[seen], other[seen]) for seen in one], 1, delta)
        words = {"mechanism": "rappor", "epsilon0": 3, "delta": delta, "trust": "nobody", "unit": "a report"}
        found = answered(words)
        assert found.lower is not None
        assert found.lower <= truth * (1 + 1e-9)
        assert truth <= found.upper * (1 + 1e-9)

    @pytest.mark.parametrize("epsilon0", [2.39, 0.531, 0.8, 10.6])
    @pytest.mark.parametrize("delta", [0, 1e-25, 1e-200])
    def test_budgets_that_add_are_rounded_to_their_sides(self, epsilon0: float, delta: float) -> None:
        """Three times the double is between two doubles; at such a delta nothing else is as small as their distance."""
        whole, words = 3 * Fraction(epsilon0), {"mechanism": "kary", "n_buckets": 2, "epsilon0": epsilon0, "rounds": 3}
        found = answered(words | {"delta": delta, "trust": "nobody", "unit": "a phone"})
        assert found.lower is not None
        assert found.lower < whole < found.upper < whole * (1 + Fraction(1e-12))
        shuffled = answered(words | {"n_users": 2, "delta": 1e-9, "trust": "shuffler", "unit": "a phone"})
        assert shuffled.alone is not None
        assert shuffled.alone > whole


class TestReleases:
    @pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
    @pytest.mark.parametrize("rho", [1e-4, 0.5, 20.0])
    def test_noise_that_has_the_rho_lies_between(self, rho: float, delta: float) -> None:
        found = answered(CENSUS | {"rho": rho, "delta": delta})
        noise = answered(
            without(CENSUS, "rho") | {"mechanism": "gaussian", "noise_std": (2 * rho) ** -0.5, "delta": delta}
        )
        assert found.lower is not None
        assert noise.upper * (1 - 1e-9) <= found.lower <= noise.upper <= found.upper
        orders = [1 + math.exp(at / 1000) for at in range(-7000, 12000)]
        least = min(
            rho * order + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1) for order in orders
        )
        # The least epsilon over all orders, by the conversion of Canonne, Kamath and Steinke 2020.
        assert max(least, 0.0) * (1 - 1e-5) <= found.upper <= max(least, 0.0) * 1.005 + 1e-12


def test_a_delta_that_is_a_formula_is_asked_for() -> None:
    words = {"mechanism": "stated", "epsilon": 3, "trust": "curator", "unit": "a row"}
    with pytest.raises(Unstated, match="formula n"):
        answered(words | {"delta": "n^{-2}"})


class TestCommand:
    def test_lines_json_and_words_say_the_same(self, tmp_path: Path) -> None:
        lines = "# a survey\n" + "".join(f"{field}: {value}  # so\n" for field, value in SURVEY.items())
        (tmp_path / "one.yaml").write_text(lines, encoding="utf-8")
        found = flamelib("deployment", str(tmp_path / "one.yaml"))
        assert (found.returncode, found.stderr) == (0, "")
        assert flamelib("deployment", "-", given=json.dumps(SURVEY)).stdout == found.stdout
        fewer = json.dumps(without(SURVEY, "rounds"))
        assert flamelib("deployment", "-", "rounds=1", given=fewer).stdout == found.stdout
        assert json.loads(found.stdout)["upper"] == answered(SURVEY).upper

    @pytest.mark.parametrize(
        ("words", "given", "told"),
        [
            ([], "", "file must be given"),
            (["nowhere.yaml"], "", "file must be one that can be read"),
            (["-"], "[1]", "must be names with values"),
            (["-"], "unit: one\nunit: two\n", "unit is given twice"),
            (["-"], "a:\n  b: c\n", "file must be a path"),
            (["-"], json.dumps(without(SURVEY, "unit")), "unit is unstated"),
        ],
    )
    def test_a_refusal_is_one_sentence_and_status_2(self, words: list[str], given: str, told: str) -> None:
        done = flamelib("deployment", *words, given=given)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert told in done.stderr

    def test_the_help_has_every_field_and_an_example_that_is_answered(self, tmp_path: Path) -> None:
        told = flamelib("deployment", "--help").stdout
        assert all(f"\n  {field} " in told for field in FIELDS)
        example = told.partition("survey.yaml:\n")[2].partition("\n\n")[0]
        lines = [line.strip() for line in example.splitlines()]
        (tmp_path / "survey.yaml").write_text("\n".join(lines), encoding="utf-8")
        assert flamelib("deployment", str(tmp_path / "survey.yaml"), "rounds=30").returncode == 0


LINES = without(SURVEY, "n_users", "n_buckets")
FORMS = [
    ("10", 10), ("1e1", 10), ("1.0e+1", 10), ("10.0", 10), ("017", None), ("0o17", None), ("0x10", None),
    ("0b11", None), ("1_0", None), (".inf", None), ("NaN", None), ("yes", None), ("True", None), ("1e400", None),
    ("[]", None), ("1:30", None), ("+10", 10), ("\u0661\u0660", None), ("1,0", None),
]  # fmt: skip


def in_lines(given: Mapping[str, Any], form: str) -> str:
    return "".join(f"{field}: {value}\n" for field, value in given.items()) + f"n_users: 1000\nn_buckets: {form}\n"


class TestOneReading:
    """The same text means the same in lines, in YAML and in JSON, or nothing in any of them."""

    @staticmethod
    def asked(text: str) -> float:
        given = cli._plain_lines(text)
        return answered(trial.described(text) if given is None else given).upper

    @pytest.mark.parametrize(("form", "meant"), FORMS)
    def test_of_a_number(self, form: str, meant: int | None) -> None:
        lines = in_lines(LINES, form)
        texts = [lines, "{" + ", ".join(lines.splitlines()) + "}", lines.replace("\n", "\n\n") + "...\n"]
        for text in (*texts, json.dumps(LINES | {"n_users": 1000, "n_buckets": form})):
            if meant is None:
                with pytest.raises(DomainError, match="n_buckets"):
                    self.asked(text)
            else:
                assert self.asked(text) == answered(LINES | {"n_users": 1000, "n_buckets": meant}).upper
        if meant and form[0] != "+":
            assert self.asked(json.dumps(LINES | {"n_users": 1000}).replace("}", f', "n_buckets": {form}' + "}")) > 0

    @pytest.mark.parametrize("value", ["[]", "{}", "false", "Yes", "null", "~", '""', '" "', "[a, b]", "{a: b}"])
    @pytest.mark.parametrize("field", ["unit", "mechanism", "trust"])
    def test_of_what_is_no_text(self, field: str, value: str) -> None:
        held = "".join(f"{one}: {SURVEY[one]}\n" for one in SURVEY if one != field) + f"{field}: {value}\n"
        with pytest.raises(DomainError, match=field):
            self.asked(held)
        read = trial.content(value)
        with pytest.raises(DomainError, match=field):
            self.asked(json.dumps(SURVEY | {field: read}))
        with pytest.raises(DomainError, match=field):
            answered(SURVEY | {field: read})

    def test_of_words_in_quotes(self) -> None:
        for unit in ("'no'", '"017"', "no answer", "1:30 h"):
            text = "".join(f"{one}: {SURVEY[one]}\n" for one in SURVEY if one != "unit") + f"unit: {unit}\n"
            assert answered(trial.described(text)).unit == unit.strip("'\"")

    @pytest.mark.parametrize(
        "text",
        [
            "epsilon0: 2\nepsilon0: 0.1\n", '{"epsilon0": 2, "epsilon0": 0.1}', "{epsilon0: 2, 'epsilon0': 0.1}",
            "deployment:\n  privacy_loss:\n    epsilon0: 2\n    epsilon0: 0.1\n",
            'unit: "a: b"\nepsilon0: 2\n\n"epsilon0": 0.1\n', "a: [{epsilon0: 2, epsilon0: 0.1}]\n",
            '{"deployment": [{"epsilon0": 1, "epsilon0": 2}]}',
        ],
    )  # fmt: skip
    def test_of_a_name_that_is_given_twice(self, text: str) -> None:
        with pytest.raises(DomainError, match="epsilon0 is given twice"):
            self.asked(text)

    @pytest.mark.parametrize(
        "text",
        [
            "a: &x [1]\nb: [*x, *x]\n", "? [a]\n: b\n", "a: 1\n---\nb: 2\n", "a: !!python/object:os.system b\n",
            "[" * 20_000, "{a: " * 5_000, "<<: {a: b}\n", "- a\n", "a: b: c\n", "\t- x",
        ],
    )  # fmt: skip
    def test_of_what_is_more_than_names_with_values(self, text: str) -> None:
        with pytest.raises(DomainError):
            self.asked(text)


@pytest.mark.parametrize("form", ["lines", "json"])
def test_a_byte_order_mark_is_passed_over_everywhere(form: str, tmp_path: Path) -> None:
    text = json.dumps(SURVEY) if form == "json" else "".join(f"{one}: {value}\n" for one, value in SURVEY.items())
    data = "\ufeff".encode() + text.encode()
    (tmp_path / "marked").write_bytes(data)
    done = [flamelib("deployment", file, given=data.decode()).stdout for file in (str(tmp_path / "marked"), "-")]
    assert done[0] == done[1]
    assert json.loads(done[0])["upper"] == answered(SURVEY).upper


def test_a_request_after_a_byte_order_mark_is_answered() -> None:
    request = '\ufeff{"id": "flame:lem-2", "inputs": {"epsilon": 1, "times": 2}}\n'
    assert json.loads(flamelib("evaluate", "--stdin", given=request).stdout)["value"] == 2
