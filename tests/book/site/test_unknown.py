"""The page of what is still unknown: ends in order, nothing older below what is certified today, lists that agree."""

import csv
import io
import json

import numpy as np
import pytest

from flamebook.claims import ledger
from flamebook.claims import record as record_ledger
from flamebook.places import ROOT
from flamebook.site.written import unknown
from flamebook.site.written.markup import linker


def test_both_ends_are_in_order_and_every_document_is_there(brackets):
    for one in brackets:
        assert 0 < one.lower.value <= one.upper.value, one.name
        assert all(one.upper.value <= earlier.value for earlier in one.before), one.name
    assert {one.document for one in brackets} == set(ledger.contents())
    assert [one.ratio for one in brackets] == sorted((one.ratio for one in brackets), reverse=True)


def test_the_ends_are_those_certified_elsewhere(brackets):
    ends = {one.name: (one.lower.value, one.upper.value) for one in brackets}
    known = {
        "SS-Double, exactly 157 of 7,850 coordinates": (0.1435, 0.1574),
        "Any randomizer, local budget 8": (0.1128, 0.1129),
        "Random participation, ten records, 1,000 rounds": (2.1e-7, 8e-7),
        "Any randomizer behind self check-in, 5,540 rounds": (1.026, 1.094),
        "Cloak, two users with two messages modulo 3": (4 / 9 - 1e-12, 0.605),
    }
    for name, (least, most) in known.items():
        low, high = ends[name]
        assert least <= low <= high <= most, name
        assert (low - least) / least < 0.05 > (most - high) / most or name.startswith("Random"), name


def test_a_headline_is_one_number_in_the_brackets_the_ledger_and_the_notebooks(brackets):
    ledgers, compared = record_ledger.recorded(), 0
    for one in brackets:
        for end in (one.lower, one.upper):
            for place in end.also:
                if ":" in place:
                    values = ledgers[place][1]
                else:
                    notebook, _, name = place.partition(".")
                    file = ROOT / "_build" / "html" / "files" / notebook / "results.json"
                    values = json.loads(file.read_text(encoding="utf-8"))[name]
                near = [value == pytest.approx(end.value, rel=2e-6) for value in np.atleast_1d(values)]
                assert any(near), f"{one.name}: {end.value} is {values} at {place}"
                compared += 1
    assert compared >= 14


def test_the_page_rounds_to_the_safe_side_and_the_lists_hold_every_digit(brackets):
    text = unknown.page(brackets, linker(ROOT))
    records, rows = json.loads(unknown.as_json(brackets)), list(csv.DictReader(io.StringIO(unknown.as_csv(brackets))))
    for one, record, row in zip(brackets, records, rows, strict=True):
        section = text.split(f"## {one.name}\n")[1].split("\n## ")[0]
        said = {side: float(section.split(f"{side} ")[-1].split(" |")[0]) for side in ("at most", "at least")}
        assert said["at least"] <= one.lower.value <= one.upper.value <= said["at most"]
        assert said["at most"] / said["at least"] <= 1.003 * one.ratio
        assert record["lower"]["value"] == one.lower.value == float(row["lower"])
        assert record["upper"]["value"] == one.upper.value == float(row["upper"])
        assert json.loads(row["upper_inputs"]) == record["upper"]["inputs"]
    assert unknown.drawing(brackets).count('class="then"') == sum(len(one.before) for one in brackets)
