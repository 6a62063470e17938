"""The page's pieces: one look in two themes, files beside the run, the same bytes every time."""

import json
import math
import re

import numpy as np
import pytest

from flamebook.figures import present
from flamebook.figures.curves import draw_curves
from flamebook.figures.style import DARK, LIGHT, THEMES
from flamebook.records import Curves
from flamebook.statements import compared
from flamelib.core.vocabulary import DomainError

RECORD = Curves(
    "n_users",
    "epsilon",
    np.array([10.0, 100.0, 1000.0]),
    {"hoeffding": np.array([math.inf, 0.1, 0.01]), "lower": np.array([0.3, 0.03, 0.003])},
    {"epsilon0": 0.5, "delta": 1e-06},
)


@pytest.fixture(autouse=True)
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    monkeypatch.delenv("FLAMELIB_RUN", raising=False)
    monkeypatch.delenv("FLAMELIB_RUN_PARAMETERS", raising=False)
    return tmp_path


def shown(**changes):
    return present.show(RECORD, draw_curves, **{"name": "curve-a", "alt": "Two falling curves.", **changes})


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_every_hue_and_the_ink_stand_out_from_the_page(theme):
    assert min(contrast(hue, theme.page) for hue in [*theme.hues.values(), theme.ink]) >= 4.5


def test_files_are_written_and_equal_on_a_second_run(run):
    first = shown()
    files = {path.name: path.read_bytes() for path in (run / "figures").iterdir()}
    assert files.keys() == {"curve-a.svg", "curve-a-dark.svg", "curve-a.png", "curve-a.csv"}
    second = shown()
    assert second == first
    assert {path.name: path.read_bytes() for path in (run / "figures").iterdir()} == files
    assert b"<dc:date" not in files["curve-a.svg"]
    assert files["curve-a.csv"].decode().splitlines() == [
        "n_users,hoeffding,lower",
        "10,inf,0.3",
        "100,0.1,0.03",
        "1000,0.01,0.003",
    ]
    assert files["curve-a.png"].startswith(b"\x89PNG")


def test_the_page_gets_one_light_and_one_dark_picture_without_shared_ids():
    markup = shown()._repr_html_()
    light, dark = markup.split('<div class="only-dark"')
    assert '<div class="only-light" role="img" aria-label="Two falling curves.">' in light
    ids = [set(re.findall(r'\bid="([^"]+)"', part)) for part in (light, dark)]
    assert ids[0]
    assert not ids[0] & ids[1]
    for part, known in zip((light, dark), ids, strict=True):
        used = set(re.findall(r'xlink:href="#([^"]+)"|url\(#([^)]+)\)', part))
        assert {a or b for a, b in used} <= known
    assert LIGHT.hues["vermillion"] in light
    assert DARK.hues["vermillion"] in dark
    assert LIGHT.hues["vermillion"] not in dark


def test_the_card_tells_files_parameters_and_the_command(monkeypatch):
    monkeypatch.setenv("FLAMELIB_RUN", "blanket_amplification")
    monkeypatch.setenv("FLAMELIB_RUN_PARAMETERS", json.dumps({"delta": 1e-06, "n_buckets": 10, "seed": 3}))
    markup = shown()._repr_html_()
    for file in ("curve-a.svg", "curve-a-dark.svg", "curve-a.png", "curve-a.csv"):
        assert f'href="../files/blanket_amplification/figures/{file}" download' in markup
    assert "flamelib run blanket_amplification -p delta=1e-06 -p n_buckets=10 -p seed=3" in markup
    assert "<code>epsilon0=0.5</code>" in markup


def test_words_of_the_reader_are_escaped():
    assert "<script>" not in shown(alt='<script>"')._repr_html_()
    assert "<b>" not in present.table(["<b>"], [["<b>"]])._repr_html_()
    assert "<b>" not in present.check(True, "<b>")._repr_html_()


@pytest.mark.parametrize("changes", [{"name": "../a"}, {"name": "A b"}, {"name": ""}, {"alt": " "}])
def test_a_bad_name_or_empty_alt_writes_nothing(run, changes):
    with pytest.raises(DomainError, match=next(iter(changes))):
        shown(**changes)
    assert not list(run.iterdir())


def test_results_are_kept_in_order_with_words_for_what_json_lacks(run):
    present.record_result("z_last", np.float64(0.25))
    present.record_result("a_first", math.inf)
    said = present.record_result("n_users", np.int64(697932))
    assert json.loads((run / "results.json").read_text()) == {"a_first": "inf", "n_users": 697932, "z_last": 0.25}
    assert (run / "results.json").read_text().index("a_first") < (run / "results.json").read_text().index("z_last")
    assert repr(said) == "n_users = 697,932"
    with pytest.raises(DomainError, match="curve"):
        present.record_result("curve", [1, 2])


def test_a_statement_that_fails_is_shown_with_its_numbers_and_kept(run):
    shown = present.checks((compared(3, "<", 2), "three is <b>less</b>"), (None, "nobody knows"), (True, "one is one"))
    assert repr(shown).splitlines() == [
        "does not hold here: three is <b>less</b> (3 against 2; it holds in the book)",
        "says nothing here: nobody knows (it holds in the book)",
        "holds: one is one",
    ]
    assert "<b>" not in shown._repr_html_()
    kept = json.loads((run / "statements.json").read_text())
    assert [one["verdict"] for one in kept] == ["does not hold", "says nothing", "holds"]


def test_a_statement_that_fails_stops_an_edition(run, monkeypatch):
    monkeypatch.setenv("FLAMELIB_EDITION", "quick")
    present.check(1 + 1 == 2, "the sum is two")
    for wrong in (False, None):
        with pytest.raises(present.CheckError, match=r"quick.*the sum is three"):
            present.check(wrong, "the sum is three")
