"""The numbers of the built pages are those of the record of how far they move."""

import json
from pathlib import Path

import pytest

from flamebook.runs import execute, inputs, own
from flamebook.site.measured import record_spread, spread

pytestmark = pytest.mark.browser


def test_the_headlines_of_the_pages_are_those_of_the_record(book: Path) -> None:
    """Where a page has the sizes and the data sets of the record; a tenth of a spread is left to other processors."""
    data_sets = json.loads(spread.TABLE.with_suffix(".json").read_text(encoding="utf-8"))["data_sets"]
    for name, run in record_spread.with_seed().items():
        receipt = execute.receipt_of(book / "files" / name)
        used = receipt and (receipt.parameters, receipt.inputs.get(inputs.DATA_SETS, data_sets))
        if used == (run.parameters, data_sets):
            known = {one.name: one for one in spread.recorded() if one.notebook == name}
            found = own.read_results(book / "files" / name)
            assert set(found) == set(known), name
            assert {key: value for key, value in found.items() if not _agrees(known[key], value)} == {}, name


def _agrees(one: spread.Headline, value: float | str) -> bool:
    if not one.numbers or isinstance(value, str):
        return value == one.values[0]
    return value == pytest.approx(one.numbers[0], rel=1e-6, abs=one.std / 10)
