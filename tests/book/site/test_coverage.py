"""The page of every figure: rows of each document, links that exist, sizes from the parameter sets."""

import pytest

from flamebook.places import ROOT
from flamebook.site.written import coverage
from flamebook.site.written.markup import linker
from flamelib.core.vocabulary import DomainError


def test_every_document_has_its_figures_and_every_link_its_label():
    text = coverage.page(ROOT, linker(ROOT), [])
    rows = [line for line in text.splitlines() if line.startswith("| ") and "what it shows" not in line]
    assert len(rows) == sum(map(len, coverage.figures().values()))
    assert "`" not in "".join(line.split("|")[3] for line in rows if "{ref}" not in line and "{prf:ref}" not in line)
    assert "`repeats` quick: 3; paper: 10" in text
    assert text.count("<figure id=") == text.count('class="only-dark"') == sum(
        row.get("here", "").startswith("notebooks/") for rows in coverage.figures().values() for row in rows
    )


def test_every_picture_has_the_name_of_its_label():
    for row in (row for rows in coverage.figures().values() for row in rows):
        notebook, _, label = row.get("here", "").partition("#fig-")
        assert not label or f'name=\\"{label}\\"' in (ROOT / f"{notebook}.ipynb").read_text(), row["here"]


def test_a_ledger_row_of_a_figure_is_on_the_page():
    from flamebook.claims import ledger

    judged = {claim.page for claim in ledger.load() if claim.kind == "figure" and "#fig" in claim.page}
    shown = {row.get("here") for rows in coverage.figures().values() for row in rows}
    assert judged <= shown


@pytest.mark.parametrize(
    "text",
    [
        "nowhere: [{printed: Figure 1, shows: a, why: b}]",
        "flame: [{printed: Figure 1, shows: a}]",
        "flame: [{printed: Figure 1, shows: a, here: b, why: c}]",
        "flame: [{printed: Figure 1, shows: a, here: b, colour: red}]",
    ],
)
def test_a_bad_row_is_refused(tmp_path, text):
    path = tmp_path / "figures.yml"
    path.write_text(text)
    with pytest.raises(DomainError, match=r"figures\.yml"):
        coverage.figures(path)
