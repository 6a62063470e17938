"""What notebooks show: figures in two themes with their files, tables, results and checks."""

import json
import math
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from flamebook import page
from flamebook.figures.style import DARK, LIGHT, Theme
from flamebook.statements import pretty
from flamelib.core.vocabulary import DomainError


@pytest.fixture(autouse=True)
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    for name in ("FLAMELIB_RUN", "FLAMELIB_RUN_PARAMETERS", "FLAMELIB_EDITION"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def shown(name: str = "curve-a", alt: str = "Two falling curves.") -> str:
    """The markup of a figure of two bounds."""
    fig, ax = plt.subplots()
    data = {"n_users": [10.0, 100.0, 1000.0], "hoeffding": [math.inf, 0.1, 0.01], "lower": [0.3, 0.03, 0.003]}
    for bound in ("hoeffding", "lower"):
        ax.loglog(data["n_users"], data[bound], **page.LOOK[bound])
    return page.figure(fig, name=name, alt=alt, data=data)._repr_html_()


class TestLook:
    @pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
    def test_every_hue_and_the_ink_stand_out_from_the_page(self, theme: Theme) -> None:
        def luminance(colour: str) -> float:
            channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
            linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

        for colour in (*theme.hues.values(), theme.ink):
            low, high = sorted((luminance(colour), luminance(theme.page)))
            assert (high + 0.05) / (low + 0.05) >= 4.5


class TestFigure:
    def test_files_are_written_and_equal_on_a_second_run(self, run: Path) -> None:
        first = shown()
        files = {path.name: path.read_bytes() for path in (run / "figures").iterdir()}
        assert files.keys() == {"curve-a.svg", "curve-a-dark.svg", "curve-a.png", "curve-a.csv"}
        assert shown() == first
        assert {path.name: path.read_bytes() for path in (run / "figures").iterdir()} == files
        assert b"<dc:date" not in files["curve-a.svg"]
        assert files["curve-a.csv"].decode() == "n_users,hoeffding,lower\n10,inf,0.3\n100,0.1,0.03\n1000,0.01,0.003\n"
        assert files["curve-a.png"].startswith(b"\x89PNG")

    def test_the_page_gets_one_light_and_one_dark_picture_without_shared_ids(self) -> None:
        light, dark = shown().split('<div class="only-dark"')
        assert '<div class="only-light" role="img" aria-label="Two falling curves.">' in light
        ids = [set(re.findall(r'\bid="([^"]+)"', part)) for part in (light, dark)]
        assert ids[0]
        assert not ids[0] & ids[1]
        for part, known in zip((light, dark), ids, strict=True):
            assert {a or b for a, b in re.findall(r'xlink:href="#([^"]+)"|url\(#([^)]+)\)', part)} <= known
        assert LIGHT.hues["vermillion"] in light
        assert DARK.hues["vermillion"] in dark
        assert LIGHT.hues["vermillion"] not in dark

    def test_the_card_has_the_files_and_in_a_run_the_command(self, monkeypatch: pytest.MonkeyPatch) -> None:
        alone = shown()
        assert 'href="figures/curve-a.csv"' in alone
        assert "flamelib run" not in alone
        monkeypatch.setenv("FLAMELIB_RUN", "blanket_amplification")
        monkeypatch.setenv("FLAMELIB_RUN_PARAMETERS", json.dumps({"delta": 1e-06, "sizes": [1.0, 2.5], "seed": 3}))
        markup = shown()
        for file in ("curve-a.svg", "curve-a-dark.svg", "curve-a.png", "curve-a.csv"):
            assert f'href="../files/blanket_amplification/figures/{file}" download' in markup
        assert "flamelib run blanket_amplification -p delta=1e-06 -p sizes=1,2.5 -p seed=3" in markup

    @pytest.mark.parametrize("changes", [{"name": "../a"}, {"name": "A b"}, {"name": ""}, {"alt": " "}])
    def test_a_bad_name_or_empty_alt_writes_nothing(self, run: Path, changes: dict[str, str]) -> None:
        with pytest.raises(DomainError, match=next(iter(changes))):
            shown(**changes)
        assert not list(run.iterdir())


def test_what_is_no_markup_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed: list[page.Html] = [page.table(pd.DataFrame({"<b>": ["<b>"]}, index=["<b>"]))]
    monkeypatch.setattr(page, "display", displayed.append)
    page.holds("<b>", True)
    page.result(word="<b>")
    assert not [one for one in displayed if "<b>" in one._repr_html_()]
    assert len(displayed) == 3
    assert "<script>" not in shown(alt='<script>"')


def test_results_are_kept_with_words_for_what_json_lacks(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page.result(z_last=np.float64(0.25), a_first=math.inf, n_users=np.int64(697932))
    kept = (run / "results.json").read_text()
    assert list(json.loads(kept).items()) == [("a_first", "inf"), ("n_users", 697932), ("z_last", 0.25)]
    assert "n_users = 697,932" in capsys.readouterr().out
    with pytest.raises(DomainError, match="curve"):
        page.result(curve=[1, 2])


class TestHolds:
    def test_a_sentence_is_shown_with_its_numbers_and_kept(self, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        page.holds("Three is less.", [True, 3 < 2], three=3)
        page.holds("Nobody knows.", None)
        page.holds("One is one.", np.bool_(True), lower=[0.123459, 0.5])
        assert capsys.readouterr().out.splitlines() == [
            "does not hold: Three is less. (three 3)",
            "says nothing: Nobody knows.",
            "holds: One is one. (lower 0.1234, 0.5)",
        ]
        kept = json.loads((run / "statements.json").read_text())
        assert [one["verdict"] for one in kept] == ["does not hold", "says nothing", "holds"]

    def test_what_is_not_true_stops_an_edition(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FLAMELIB_EDITION", "quick")
        page.holds("The sum is two.", 1 + 1 == 2)
        for wrong in (False, None):
            with pytest.raises(page.CheckError, match=r"quick.*The sum is three"):
                page.holds("The sum is three.", wrong)


class TestSides:
    def test_what_is_shown_never_lies_on_the_wrong_side(self) -> None:
        for value in (10.0 ** np.random.default_rng(0).uniform(-300, 300, 2000)).tolist():
            upper, lower = float(pretty(value, "at most")), float(pretty(value, "at least"))
            assert lower <= value <= upper <= value * (1 + 1e-3)
            assert upper <= lower * (1 + 1.0001e-3)

    @pytest.mark.parametrize(
        ("heading", "value", "cell"),
        [
            ("lower, overflow", 0.12349, "0.1234"),
            ("certainly at most", 0.12341, "0.1235"),
            ("certified epsilon", 0.12341, "0.1235"),
            ("upper", math.nan, ""),
        ],
    )
    def test_a_heading_says_on_which_side_its_numbers_are(self, heading: str, value: float, cell: str) -> None:
        frame = pd.DataFrame({"users": [1234], heading: [value]})
        assert str(page.table(frame)) == f"users {heading}\n1,234 {cell}"
        turned = pd.DataFrame({"epsilon": [value]}, index=[heading])
        assert str(page.table(turned)) == f" epsilon\n{heading} {cell}"
