"""Conditions that join a notebook's parameters: what is understood, what is refused, and what would do instead."""

import json
from pathlib import Path

import pytest
import templates
import yaml

from flamebook.places import ROOT
from flamebook.runs import notebook as notebook_module
from flamebook.runs import sweep
from flamebook.runs.notebook import declared, values
from flamelib.core.vocabulary import DomainError

PARAMETERS = "modulus: int = 4096  # of the group\nn_users: int = 20\nsizes: list[int] = [1, 2]\nlabel: str = 'a'"


def notebook(folder: Path, conditions: str) -> Path:
    path = folder / "tiny.ipynb"
    path.write_text(json.dumps(templates.notebook(PARAMETERS, (conditions, {"tags": ["domain"]}))))
    return path


@pytest.mark.parametrize(
    ("condition", "given", "refusal"),
    [
        ("modulus > n_users * 100  # modulus = n_users * 100 + 1", {"modulus": 601},
         "modulus must be above n_users * 100 = 2000, got 601; the nearest admissible value is modulus=2001"),
        ("n_users <= modulus  # n_users = modulus", {"n_users": 7e3},
         "n_users must be at most modulus = 4096, got 7000; the nearest admissible value is n_users=4096"),
        ("n_users + modulus < 5000", {"modulus": 5000},
         "n_users + modulus must be below 5000, got modulus=5000, n_users=20"),
        ("len(sizes) == 2  # sizes = [5, 6]", {"sizes": "1,2,3"},
         "the number of entries of sizes must be 2, got sizes=1,2,3; the nearest admissible value is sizes=5,6"),
        ("max(n_users, 2 * len(sizes)) <= 5", {"sizes": "1,2,3", "n_users": 5},
         "the largest of n_users and 2 * len(sizes) must be at most 5, got n_users=5, sizes=1,2,3"),
        ("n_users > 2 or label in ('a', 'b')", {"n_users": 2, "label": "c"},
         "n_users must be above 2 or label must be one of a, b, got label=c, n_users=2"),
        ("not label == 'a'", {}, "label must be other than a, got label=a"),
    ],
)  # fmt: skip
def test_values_that_do_not_go_together_are_refused(tmp_path, condition, given, refusal):
    path = notebook(tmp_path, condition)
    with pytest.raises(DomainError) as caught:
        values(path, given)
    assert str(caught.value).endswith(refusal)


def test_values_that_go_together_pass(tmp_path):
    path = notebook(tmp_path, "0 < n_users <= modulus  # n_users = modulus\nmin(sizes) >= 1 and not label == 'b'")
    assert values(path, {"n_users": 4096})["n_users"] == 4096
    mixed = sweep.plan(path, {"n_users": "30,200", "modulus": "100"})
    assert list(mixed.refused.values()) == [
        "n_users must be above 0 and at most modulus = 100, got 200; the nearest admissible value is n_users=100"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "__import__('os')",
        "open('x')",
        "n_users.real > 1",
        "n_users >",
    ],
)
def test_anything_else_is_not_understood(tmp_path, line):
    with pytest.raises(DomainError, match="line 1"):
        values(notebook(tmp_path, line), {})


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_books_own_values_go_together(path):
    for profile in ("quick", "paper"):
        given = yaml.safe_load((ROOT / "book" / "parameters" / f"{profile}.yml").read_text()).get(path.stem) or {}
        assert values(path, given).keys() == declared(path).keys()


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_listed_domains_are_the_real_ones(path):
    """Each end of what is listed is accepted, but for what joins several parameters, which is listed, too."""
    rules = notebook_module.rules(path)
    for name, one in declared(path).items():
        ends = {end for end in (one.one.low, one.one.high) if one.one.contains(end)} if one.one else set()
        for end in {*ends, *(one.one.choices if one.one else ())}:
            given = [end] * len(one.default) if one.several else end
            told = _refusal(path, {name: given})
            assert told == "" or any(told.startswith(rule) for rule in rules), f"{name}={end}: {told}"
    assert not [rule for rule in rules if rule.endswith("must hold")]


def _refusal(path, given):
    try:
        values(path, given)
    except DomainError as refusal:
        return str(refusal)
    return ""
