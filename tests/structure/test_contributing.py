"""One place to add: a statement is one file, a claim one row; nothing else is edited, and both are found everywhere."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from flamebook.places import ROOT

TOY = '''"""A toy: what a new contributor writes."""

from flamelib.core.statements import states


@states("blanket", "toy", item="Toy of a contributor", gives="exact", rests_on="proven", adjacency="none")
def toy_bound(n_users: int, epsilon: float) -> float:
    """As many epsilons as users.

    Source: nothing that was ever written.
    """
    return n_users * epsilon
'''
ROW = """
- item: blanket:toy
  kind: theorem
  where: Toy
  page: book/blanket
  test: tests/structure/test_contributing.py::test_the_ledger_has_the_row
  rows:
    - id: twice
      claim: Two users have twice the epsilon.
      relation: equal
      paper: 0.5
      compute: blanket:toy
      inputs: {n_users: 2, epsilon: 0.25}
      verdict: reproduced
      evidence: The toy itself.
"""
COPIED = ("flamelib", "book/flamebook", "data/claims/blanket.yml", "_config.yml")
LOOK = """
import json
from flamebook.claims import ledger
from flamebook.places import ROOT
from flamebook.site.written.markup import linker, sourced
from flamebook.site.written import api, theorems

judged = [ledger.judge(claim) for claim in ledger.load() if claim.item == "blanket:toy"]
index = theorems.page(ROOT, linker(ROOT), judged, sourced)
print(json.dumps({
    "root": str(ROOT),
    "ledger": [[row.claim.id, row.verdict, row.value] for row in judged],
    "index": [row for row in index.split("\\n* - ") if row.startswith("`blanket:toy`")],
    "reference": api.pages()["api/accounting.shuffling.md"],
}))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What three programs print in a copy of the tree to which one file and one row were added."""
    root = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, root / name)
    (root / "flamelib" / "accounting" / "shuffling" / "toy.py").write_text(TOY, encoding="utf-8")
    with (root / "data" / "claims" / "blanket.yml").open("a", encoding="utf-8") as claims:
        claims.write(ROW)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(root), str(root / "book")))}
    commands = {
        "answer": ["-m", "flamelib.cli", "evaluate", "blanket:toy", "n_users=3", "epsilon=0.5"],
        "list": ["-m", "flamelib.cli", "evaluate", "--list"],
        "look": ["-c", LOOK],
    }
    running = {
        name: subprocess.Popen(
            [sys.executable, *words],
            cwd=root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, words in commands.items()
    }
    told = {name: process.communicate(timeout=120) for name, process in running.items()}
    assert {name: err for name, (_, err) in told.items() if running[name].returncode != 0} == {}
    found = {name: out for name, (out, _) in told.items()}
    assert json.loads(found["look"])["root"] == str(root)
    return found


def test_the_command_answers_and_lists_it(seen: dict[str, str]) -> None:
    assert json.loads(seen["answer"])["value"] == 1.5
    assert "blanket:toy   exact, none; proven\n" in seen["list"]


def test_the_theorem_index_has_its_row_with_a_link(seen: dict[str, str]) -> None:
    [row] = json.loads(seen["look"])["index"]
    assert "Toy of a contributor ({doc}`ledger </book/ledger>`)" in row
    assert "{py:func}`~flamelib.accounting.shuffling.toy.toy_bound`" in row


def test_the_page_of_its_folder_has_the_module(seen: dict[str, str]) -> None:
    page = json.loads(seen["look"])["reference"]
    assert ".. automodule:: flamelib.accounting.shuffling.toy\n   :members:" in page
    assert "A toy: what a new contributor writes." in page


def test_the_ledger_has_the_row(seen: dict[str, str]) -> None:
    assert json.loads(seen["look"])["ledger"] == [["blanket:toy/twice", "reproduced", 0.5]]
