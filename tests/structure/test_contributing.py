"""One place to add: a statement is one file, a randomizer too, a claim one row; nothing else is edited."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

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
from flamelib import answers

judged = [ledger.judge(claim) for claim in ledger.load() if claim.item == "blanket:toy"]
index = theorems.page(ROOT, linker(ROOT), judged, sourced)
print(json.dumps({
    "root": str(ROOT),
    "ledger": [[row.claim.id, row.verdict, row.value] for row in judged],
    "answer": answers.answer("blanket:toy", {"n_users": 3, "epsilon": 0.5})["value"],
    "list": list(answers.listing()),
    "index": [row for row in index.split("\\n* - ") if row.startswith("`blanket:toy`")],
    "reference": api.pages()["api/accounting.shuffling.md"],
}))
"""
USE = """
import json
import math
import numpy as np
from skipping import SkippingResponse
from flamelib import Checkin, Shuffled, TableRandomizer, account, bounds, run

own, a = Shuffled(SkippingResponse(1.0), 10_000), 0.5 / (1 + math.e)
table = Shuffled(TableRandomizer([[0.5 - a, a, 0.5], [a, 0.5 - a, 0.5]]), 10_000)
print(json.dumps({
    "once": account(own, delta=1e-6).epsilon,
    "table": [account(table, delta=1e-6, rounds=rounds).epsilon for rounds in (1, 3)],
    "rounds": account(Checkin(Shuffled(SkippingResponse(1.0), 10_000, dropout=0.1), 1.0), delta=1e-6, rounds=3).epsilon,
    "lower": bounds(own, delta=1e-6).lower,
    "ones": run(own, [1] * 3500 + [0] * 6500, np.random.default_rng(1)),
}))
"""


def test_the_ledger_has_the_row(tmp_path: Path) -> None:
    """One program in a copy of the tree to which a file and a row were added; so has every other page its line."""
    for name in COPIED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "flamelib" / "accounting" / "shuffling" / "toy.py").write_text(TOY, encoding="utf-8")
    with (tmp_path / "data" / "claims" / "blanket.yml").open("a", encoding="utf-8") as claims:
        claims.write(ROW)
    places = os.pathsep.join((str(tmp_path), str(tmp_path / "book")))
    words = [sys.executable, "-c", LOOK]
    done = subprocess.run(words, cwd=tmp_path, env=os.environ | {"PYTHONPATH": places}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["root"] == str(tmp_path)
    assert seen["ledger"] == [["blanket:toy/twice", "reproduced", 0.5]]
    assert seen["answer"] == 1.5
    assert "blanket:toy   exact, none; proven" in seen["list"]
    [row] = seen["index"]
    assert "Toy of a contributor ({doc}`ledger </book/ledger>`)" in row
    assert "{py:func}`~flamelib.accounting.shuffling.toy.toy_bound`" in row
    assert ".. automodule:: flamelib.accounting.shuffling.toy\n   :members:" in seen["reference"]


def test_a_randomizer_is_one_file(tmp_path: Path) -> None:
    """That of the page on contributing, imported in a program that knows nothing else of it, against its table."""
    page = (ROOT / "book" / "contributing.md").read_text(encoding="utf-8")
    file = page.split("## Add a randomizer", 1)[1].split("```python\n", 1)[1].split("```", 1)[0]
    (tmp_path / "skipping.py").write_text(file, encoding="utf-8")
    places = os.pathsep.join((str(tmp_path), str(ROOT)))
    words = [sys.executable, "-c", USE]
    done = subprocess.run(words, cwd=tmp_path, env=os.environ | {"PYTHONPATH": places}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    by_table, by_clones = seen["table"]
    assert math.isclose(seen["once"], by_table, rel_tol=1e-6)
    assert by_table < seen["rounds"] < by_clones, "the blanket of its own is better than clones"
    assert seen["lower"] == 0
    assert 3000 < seen["ones"] < 4000
