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


def _exceeds(upper: list[float], lower: list[float]) -> float:
    return max(100 * (one / other - 1) for one, other in zip(upper, lower, strict=True) if other > 0)


def exact_story(run: Path, words: str) -> None:
    table = _table(run, "then-and-now-binary")
    if "exceeds" in words:
        _shown(words, [_exceeds(table["exact"], table["lower"])])


def gap_story(run: Path, words: str) -> None:
    table = _table(run, "gap")
    if "infinite" in words or "nothing" in words:
        return
    said = words.partition("at most")[2].split("%")[: len(table) - 1]
    for (name, column), part in zip(list(table.items())[1:], said, strict=True):
        excess = 100 * (max(v for v in column if v == v) - 1)
        _shown(part.split()[-1], [excess])
        assert float(part.split()[-1]) >= excess, (words, name)


def withdrawn_under(run: Path, words: str) -> None:
    table = _table(run, "withdrawn")
    numbers = [float(text.replace(",", "")) for text in re.findall(r"from ([\d,]+) users on", words)]
    for other, start in zip(("blanket", "lower"), numbers, strict=False):
        for n, wrong, right in zip(table["n_users"], table["withdrawn"], table[other], strict=True):
            assert (wrong < right) == (n >= start) or wrong == right, (words, n)
    if not numbers:
        assert not any(wrong < low for wrong, low in zip(table["withdrawn"], table["lower"], strict=True)), words


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


def polya_bits(run: Path, words: str) -> None:
    table = _table(run, "cloak-bits")
    bits = [value for value in table["mix-own-3"] if value == value]
    _shown(words, [min(bits), max(bits), min(table["n_users"]), max(table["n_users"])])


def budgets_alt(run: Path, words: str) -> None:
    table = _table(run, "printed-budgets")
    left = sum(one < low for one, low in zip(table["printed"], table["at least"], strict=True))
    right = sum(one > high for one, high in zip(table["printed"], table["at most"], strict=True))
    every = len(table["printed"])
    _shown(words, [every, left, every - left - right, right])


WITNESSES: dict[tuple[str, str], Callable[[Path, str], None]] = {
    ("blanket_amplification", "exact_story"): exact_story,
    ("blanket_amplification", "gap_story"): gap_story,
    ("blanket_amplification", "withdrawn_under"): withdrawn_under,
    ("participation_accounting", "inner_below"): inner_below,
    ("participation_accounting", "rounds_between"): rounds_between,
    ("cloak_accounting", "polya_bits"): polya_bits,
    ("audits", "budgets_alt"): budgets_alt,
}
# What a reader may ask for; few points, since every one costs time.
OWN = [
    ("participation_accounting", ["participation_rate=0.9", "record_rate=0.6", "n_records=2", "points=4", "rounds=7"]),
    ("cloak_accounting", ["n_users=37", "colluding=3", "epsilon=0.3", "points=2", "repeats=20"]),
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
