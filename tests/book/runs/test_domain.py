"""Conditions that join a notebook's parameters: what is understood, what is refused, and what would do instead."""

import json
from pathlib import Path

import pytest
import yaml

from flamebook.places import ROOT
from flamebook.runs import domain, sweep
from flamebook.runs.notebook import declared, values
from flamelib.core.vocabulary import DomainError

PARAMETERS = "modulus: int = 4096  # of the group\nn_users: int = 20\nsizes: list[int] = [1, 2]\nlabel: str = 'a'"


def notebook(folder: Path, conditions: str) -> Path:
    cells = [
        {"cell_type": "code", "metadata": {"tags": [tag]}, "source": source}
        for tag, source in (("parameters", PARAMETERS), ("domain", conditions))
    ]
    path = folder / "tiny.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


@pytest.mark.parametrize(
    ("condition", "given", "refusal"),
    [
        ("modulus > n_users * 100  # modulus = n_users * 100 + 1", {"modulus": 601},
         "modulus must be above n_users * 100 = 2000, got 601; the nearest admissible value is modulus=2001"),
        ("n_users <= 50  # n_users = 50", {"n_users": 70},
         "n_users must be at most 50, got 70; the nearest admissible value is n_users=50"),
        ("n_users + modulus < 5000", {"modulus": 5000},
         "n_users + modulus < 5000 must hold, got modulus=5000, n_users=20"),
        ("len(sizes) == 2", {"sizes": "1,2,3"}, "len(sizes) == 2 must hold, got sizes=1,2,3"),
        ("n_users > 2 or label in ('a', 'b')", {"n_users": 2, "label": "c"}, "must hold, got label=c, n_users=2"),
        ("modulus > 10**9 / (n_users - 20)", {},
         "modulus > 10**9 / (n_users - 20) must hold, got modulus=4096, n_users=20"),
        ("n_users <= 50  # n_users = -7", {"n_users": 70}, "n_users must be at most 50, got 70"),
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
        "0 < n_users <= modulus must hold, got modulus=100, n_users=200; the nearest admissible value is n_users=100"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "__import__('os')",
        "open('x')",
        "n_users.real > 1",
        "m_users > 1",
        "[x for x in sizes]",
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


def test_a_condition_without_numbers_does_not_hold():
    (one,) = domain.read("a", "1 / n_users > 0", ["n_users"])
    assert not one.holds({"n_users": 0})
