"""The page of every figure: rows of each document, links that exist, sizes from the parameter sets."""

from flamebook.places import ROOT
from flamebook.site.written import coverage
from flamebook.site.written.markup import linker


def test_every_document_has_its_figures_and_every_link_its_label():
    text = coverage.page(ROOT, linker(ROOT), [])
    rows = [line for line in text.splitlines() if line.startswith("| ") and "what it shows" not in line]
    assert len(rows) == sum(map(len, coverage.figures().values()))
    assert "`" not in "".join(line.split("|")[3] for line in rows if "{ref}" not in line and "{prf:ref}" not in line)
    assert "`repeats` quick: 2; paper: 10" in text
    assert (
        text.count("<figure id=")
        == text.count('class="only-dark"')
        == sum(row.get("here", "").startswith("notebooks/") for rows in coverage.figures().values() for row in rows)
    )


def test_every_picture_has_the_name_of_its_label():
    for row in (row for rows in coverage.figures().values() for row in rows):
        notebook, _, label = row.get("here", "").partition("#fig-")
        assert not label or f'name=\\"{label}\\"' in (ROOT / f"{notebook}.ipynb").read_text(), row["here"]
