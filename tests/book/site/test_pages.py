"""The generated pages: complete, the same on every run, and with links to things that exist."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import jsonschema
import pytest

from flamebook.claims import ledger
from flamebook.claims.ledger import Judged
from flamebook.places import ADDRESS, ROOT
from flamebook.site.book import pages
from flamebook.site.written import ledger_page, refuted, theorems, unknown
from flamebook.site.written.markup import anchor, linker
from flamelib.answers import load_all


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory, judged: list[Judged], brackets: list[unknown.Bracket]) -> Path:
    """The book as it is staged, with the notebooks' templates in the place of their runs."""
    source = tmp_path_factory.mktemp("book") / "src"
    shutil.copytree(ROOT / "book", source / "book")
    shutil.copytree(ROOT / "notebooks", source / "notebooks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ADDRESS, "https://github.com/somebody/a-book")
        patch.setattr(ledger, "judge_all", lambda jobs: judged)
        patch.setattr(unknown, "brackets", lambda jobs: brackets)
        pages.write(source / "runs", source / "book")
    return source


def test_every_row_has_its_own_anchor_and_both_numbers(staged: Path, judged: list[Judged]) -> None:
    page = (staged / "book" / "ledger.md").read_text(encoding="utf-8")
    anchors = re.findall(r"\]\{#(claim-[a-z0-9-]+)\}", page)
    assert len(anchors) == len(set(anchors)) == len(judged)
    for row in judged:
        assert anchor(row.claim.id) in anchors
    assert set(re.findall(r"\]\(#(claim-[a-z0-9-]+)\)", page)) == set(anchors)


def test_what_does_not_hold_is_told_with_its_evidence(staged: Path, judged: list[Judged]) -> None:
    page = (staged / "book" / "refuted.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(#(claim-[a-z0-9-]+)\)", page)
    assert sorted(links) == sorted(anchor(row.claim.id) for row in judged if row.verdict != "reproduced")
    assert all(row.claim.evidence in page for row in judged if row.verdict in ("deviates", "not-checkable"))
    assert "@" not in page


def test_downloads_hold_every_row_and_agree(staged: Path, judged: list[Judged]) -> None:
    generated = staged / "book" / "generated"
    page = (staged / "book" / "ledger.md").read_text(encoding="utf-8")
    assert all((staged / "book" / path).is_file() for path in re.findall(r"\{download\}`[^<]*<([^>]*)>`", page))
    rows = json.loads((generated / "ledger.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)["claims"]
    table = list(csv.DictReader(io.StringIO((generated / "ledger.csv").read_text(encoding="utf-8"))))
    assert [row["id"] for row in rows] == [row["id"] for row in table] == [row.claim.id for row in judged]
    assert [row["verdict"] for row in rows] == [row["verdict"] for row in table] == [row.verdict for row in judged]
    assert [row["value"] for row in table] == [_cell(row["value"]) for row in rows]


def test_rows_tell_how_many_sentences_of_their_page_are_checked(tmp_path: Path, judged: list[Judged]) -> None:
    (tmp_path / "flame_audit").mkdir()
    told = [{"sentence": "It holds, twice.", "verdict": "holds"}, {"sentence": "Or not.", "verdict": "says nothing"}]
    (tmp_path / "flame_audit" / "statements.json").write_text(json.dumps(told))
    checked = ledger_page.checks(tmp_path)
    text = ledger_page.page(judged, "", lambda page: page, checked)
    assert "check 2 sentences where they stand: 1 hold in this edition, 1 say nothing" in text
    rows = [row for row in judged if row.claim.page.startswith("notebooks/flame_audit")]
    assert text.count("(2 checks)") == len(rows) > 0
    assert list(csv.reader(io.StringIO(ledger_page.checks_csv(checked))))[1] == [
        "notebooks/flame_audit",
        *told[0].values(),
    ]


def test_the_ledger_keeps_to_its_schema(staged: Path) -> None:
    generated = staged / "book" / "generated"
    found = json.loads((generated / "ledger.json").read_text(encoding="utf-8"))
    schema = json.loads((generated / "ledger.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    judge = jsonschema.Draft202012Validator(schema)
    assert [fault.message for fault in judge.iter_errors(found)] == []
    row = next(one for one in found["claims"] if one["verdict"] == "refuted")
    for wrong in ({"weight": None}, {"value": "large"}, {"verdict": "true"}, {"command": "echo"}, {"new": 1}):
        assert not judge.is_valid(found | {"claims": [row | wrong]}), wrong
    assert not judge.is_valid(found | {"claims": [{name: row[name] for name in row if name != "proofs"}]})


def _cell(value: object) -> str:
    return json.dumps(value) if isinstance(value, list) else "" if value is None else str(value)


def test_what_is_unknown_can_be_downloaded_with_its_inputs(staged: Path, brackets: list[unknown.Bracket]) -> None:
    found = json.loads((staged / "book" / "generated" / "brackets.json").read_text(encoding="utf-8"))
    page = (staged / "book" / "unknown.md").read_text(encoding="utf-8")
    assert [f"## {one['name']}" for one in found] == [line for line in page.splitlines() if line.startswith("## ")]
    told = [[one[end][name] for name in ("id", "inputs", "value")] for one in found for end in ("lower", "upper")]
    ends = [end for one in brackets for end in (one.lower, one.upper)]
    assert told == [[end.source, end.inputs, end.value] for end in ends]


def test_the_front_page_counts_findings(staged: Path, judged: list[Judged]) -> None:
    text = (staged / "book" / "generated" / "counts.md").read_text(encoding="utf-8")
    found = refuted.findings((ROOT / "book" / "refuted.md").read_text(encoding="utf-8"), judged)
    printed, readings, waits, figures = map(int, re.findall(r"\*\*(\d+)\*\*", text))
    assert waits == sum(one.section == refuted.WAITS for one in found)
    others = sum(one.said_by in ("elsewhere", "this book") for one in found)
    assert printed + readings + waits + others == len(found)
    parts = re.search(r"(\d+) against a promised .* (\d+) against a bound .* (\d+) .* step .* (\d+) against n", text)
    assert parts is not None
    assert printed == sum(map(int, parts.groups()))
    assert int(parts[1]) == sum(one.weight == "budget broken" for one in found) == 2
    assert (figures, "from 0 executed notebooks" in text) == (0, True)
    statements = load_all().values()
    of, proven, cited, rest, values = map(int, re.findall(r"(\d+)(?= statements| are (?!bounds)| this d)", text))
    assert of == len(statements) == proven + cited + rest + values
    assert proven == sum(statement.rests_on == "proven" for statement in statements)
    assert values == sum(statement.gives == "value" for statement in statements)


def test_the_box_says_how_many_rows_wait_for_the_print(staged: Path, judged: list[Judged]) -> None:
    text = (staged / "book" / "generated" / "copies.md").read_text(encoding="utf-8")
    assert f"**{sum(row.claim.reconstructed for row in judged)} rows" in text
    pages = {path.name for path in (ROOT / "book").glob("*.md") if "generated/copies.md" in path.read_text()}
    assert "index.md" in pages


def test_the_index_has_every_statement_with_direction_and_adjacency(staged: Path) -> None:
    page = (staged / "book" / "theorems.md").read_text(encoding="utf-8")
    rows = page.split("\n* - ")
    assert all(f"<{label}>" in page for label in ("blanket-thm-3-1", "participation-rounds", "checkin-thm-1"))
    for key, statement in load_all().items():
        [row] = [row for row in rows if row.startswith(f"`{key}`")]
        assert str(statement.adjacency) in row
        label = "depends on the inputs" if callable(statement.rests_on) else statement.rests_on or ""
        assert f"\n  - {label}{theorems.ASSUMING if label == 'proven' and statement.assumes else ''}\n" in row
        assert statement.function.__name__ in row
        assert re.search(r"/blob/\w+/tests/[\w/]*test_\w+\.py#L\d+\)", row), f"{key} has no test that names it"


def test_links_to_tests_point_at_their_lines(staged: Path) -> None:
    page = (staged / "book" / "theorems.md").read_text(encoding="utf-8")
    found = re.findall(r"/blob/\w+/(tests/[\w/]+\.py)#L(\d+)\)", page)
    assert len({path for path, _ in found}) >= 20
    for path, line in found:
        assert "def test_" in (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]


def test_every_row_points_at_a_page_and_label_that_exist(staged: Path, judged: list[Judged]) -> None:
    link = linker(staged)
    assert [row.claim.id for row in judged if link(row.claim.page).startswith("`")] == []
