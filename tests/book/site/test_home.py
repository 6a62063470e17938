"""Numbers in the text of the home page: what the library answers at the parameters that the sentence names."""

import math
import re

import pytest

from flamebook.claims.record import recorded
from flamebook.places import ROOT
from flamelib.answers import answer, load_all

HOME = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")


def _told(pattern: str) -> list[float]:
    found = re.search(pattern, HOME)
    assert found, pattern
    return [float(number.replace(",", "")) for number in found.groups()]


@pytest.mark.parametrize(
    ("pattern", "key", "routes", "inputs"),
    [
        (
            r"certifies (\S+) instead of (\S+) for \$10\^5\$ adaptive rounds of noisy sums",
            "checkin:distributed",
            ("pld", "thm-4"),
            {"n_users": 600_000, "checkin_rate": 1e-3, "noise_std": 1.0, "rounds": 100_000, "delta": 1e-8},
        ),
        (
            r"certifies (\S+) instead of (\S+) for 5,540 rounds of shuffled messages",
            "checkin:shuffled",
            ("any", "thm-2"),
            {"epsilon0": 2.0, "n_users": 60_000, "checkin_rate": 0.1, "rounds": 5540, "delta": 1 / 60_000},
        ),
    ],
    ids=["sums", "messages"],
)
def test_budgets_of_check_in(pattern: str, key: str, routes: tuple[str, str], inputs: dict[str, float]) -> None:
    for told, route in zip(_told(pattern), routes, strict=True):
        value = float(answer(key, {"route": route} | inputs)["value"])
        assert value <= told <= 1.01 * value, route


def test_budgets_of_every_randomizer() -> None:
    inputs = {"epsilon0": 1.0, "n_users": 10_000, "delta": 1e-6}
    told = _told(
        r"10,000 users and \$\\delta=10\^\{-6\}\$ it gives \$\\varepsilon=(\S+)\$ instead of the \$(\S+)\$ of 2021"
    )
    for digits, key, side in zip(told, ("shuffle:any", "clones:2021"), ({"side": "upper"}, {}), strict=True):
        value = float(answer(key, inputs | side)["value"])
        assert value <= digits <= 1.01 * value, key


def test_the_floor_of_the_renyi_account() -> None:
    n_users, rate = 600_000, 1e-3
    inputs = {"n_users": n_users, "checkin_rate": rate, "noise_std": 1.0, "rounds": 1, "delta": 1e-8}
    [told] = _told(r"gives more than (\S+) even for a single round")
    value = float(answer("checkin:distributed", {"route": "thm-4"} | inputs)["value"])
    assert told <= value <= 1.01 * told
    [power] = _told(r"only one client checks in, whose probability is \$10\^\{-(\d+)\}")
    assert round(math.log10(n_users * rate) + (n_users - 1) * math.log10(1 - rate)) == -power


def test_messages_of_a_cloaked_sum() -> None:
    few, short, many, long = _told(r"sends (\d+) messages of (\d+) bits instead of (\d+) of (\d+) bits")
    plans = answer("cloak:plan", {"n_users": 1000, "epsilon": 1.0, "delta": 1e-6, "error": 10.0})["value"]
    found = {
        plan["theorem"]: (plan["n_messages"], math.ceil(math.log2(plan["modulus"])))
        for plan in plans
        if plan["adjacency"] == "replace-one"
    }
    assert (found["cloak:own-3"], found["cloak:thm-1"]) == ((few, short), (many, long))


def test_the_budget_of_the_footnote_holds_with_a_factor_to_spare() -> None:
    [told] = _told(r"holds with a factor of (\d+) to spare")
    certified = recorded()["flame:claim-0.24/topk-upper"][1]
    assert isinstance(certified, float)
    assert told == math.floor(20.53 / certified)


def test_the_glossary_has_every_word_that_an_answer_takes() -> None:
    words = {name for statement in load_all().values() for name in statement.parameters} - {"profile"}
    assert len(words) > 40
    assert sorted(word for word in words if f"`{word}`" not in GLOSSARY) == []
