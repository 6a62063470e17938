"""Words of a page against its own tables: in the built book, and in runs with values of a reader's own.

Each witness computes again, from the table behind a figure alone and by code that shares nothing with the page's, what
a sentence of that page says.
"""

import csv
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from flamebook.places import ROOT

Columns = dict[str, list[float]]
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def _table(run: Path, name: str) -> Columns:
    with (run / "figures" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {key: [_value(row[key]) for row in rows] for key in rows[0]}


def _value(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _shown(words: str, values: Iterable[float]) -> None:
    """The numbers of a sentence are these values, each within one unit of its last digit."""
    told = [text.replace(",", "") for text in NUMBER.findall(words.replace("-ary", " ").replace("\u2011ary", " "))]
    expected = list(values)
    assert len(told) >= len(expected), (words, expected)
    for text, value in zip(told, expected, strict=False):
        mantissa, _, exponent = text.partition("e")
        unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        if "." not in mantissa and not exponent:  # a whole number may be rounded to two digits
            unit = max(unit, 10.0 ** (len(mantissa) - 2))
        assert abs(float(text) - value) <= unit, (words, text, value)


def inner_below(run: Path, words: str) -> None:
    table = _table(run, "participation-readings")
    below = [one < other for one, other in zip(table["inner"], table["turned"], strict=True)]
    numbers = [int(text) for text in re.findall(r"\d+", words.replace("none of", "0 of"))]
    if numbers:
        assert numbers == [sum(below), len(below)], words
    elif any(below):
        assert "every" in words, words
        assert all(below), words
    else:
        assert "nowhere" in words or "not" in words or "no " in words, words


def rounds_between(run: Path, words: str) -> None:
    table = _table(run, "participation-rounds")
    _shown(words, [table["lower"][-1], table["turning"][-1]])


def deployment(run: Path, words: str) -> None:
    table = _table(run, "checkin-deployment")
    upper, lower = table["losses"][-1], table["lower"][-1]
    _shown(words, [upper, lower])
    told = [float(text) for text in NUMBER.findall(words)]
    assert told[0] >= upper >= lower >= told[1], words


def polya_bits(run: Path, words: str) -> None:
    table = _table(run, "cloak-bits")
    bits = [value for value in table["mix-own-3"] if value == value]
    _shown(words, [min(bits), max(bits), min(table["n_users"]), max(table["n_users"])])


WITNESSES: dict[tuple[str, str], Callable[[Path, str], None]] = {
    ("participation_accounting", "inner_below"): inner_below,
    ("participation_accounting", "rounds_between"): rounds_between,
    ("checkin_accounting", "deployment"): deployment,
    ("cloak_accounting", "polya_bits"): polya_bits,
}
# What a reader may ask for; few points, since every one costs time.
OWN = [
    ("participation_accounting", ["participation_rate=0.9", "record_rate=0.6", "n_records=2", "points=4", "rounds=7"]),
    ("cloak_accounting", ["n_users=37", "colluding=3", "epsilon=0.3", "points=2", "repeats=20"]),
    ("checkin_accounting", ["n_users=900", "rounds=60", "checkin_rate=0.4", "points=2"]),
]


def _judge(run: Path, name: str) -> int:
    texts = json.loads((run / "texts.json").read_text(encoding="utf-8"))
    mine = [(key, witness) for (notebook, key), witness in WITNESSES.items() if notebook == name]
    for key, witness in mine:
        witness(run, texts[key])
    return len(mine)


@pytest.mark.parametrize("name", sorted({name for name, _ in WITNESSES}))
def test_the_book_says_what_its_tables_show(name: str) -> None:
    assert _judge(ROOT / "_build" / "runs" / name, name) > 0


@pytest.mark.parametrize(("name", "given"), OWN, ids=lambda value: value if isinstance(value, str) else value[0])
def test_a_run_of_ones_own_says_what_its_tables_show(name: str, given: list[str], tmp_path: Path) -> None:
    words = [word for one in given for word in ("-p", one)]
    command = [sys.executable, "-m", "flamelib.cli", "run", name, *words, "--output", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert _judge(tmp_path / "run", name) > 0


def test_a_wrong_word_is_seen() -> None:
    _shown("at most 36 % for one and 0.044 % for another", [36.4, 0.0437])
    with pytest.raises(AssertionError):
        _shown("at most 36 %", [39.0])
