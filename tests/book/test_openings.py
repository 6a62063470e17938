"""The smallest case at the head of each chapter, by fractions: every number of it stands in the text."""

from fractions import Fraction
from itertools import combinations

from flamebook.places import ROOT

TRUE = Fraction(3, 4)
HALF = Fraction(1, 2)


def _text(chapter: str) -> str:
    text = (ROOT / "book" / f"{chapter}.md").read_text(encoding="utf-8")
    return text.partition("## The smallest case\n")[2].partition("\n## ")[0]


def _written(number: Fraction) -> str:
    top, bottom = number.numerator, number.denominator
    return rf"\frac{top}{bottom}" if max(top, bottom) < 10 else rf"\frac{{{top}}}{{{bottom}}}"


def _excess(p: list[Fraction], q: list[Fraction], odds: Fraction) -> Fraction:
    return sum((max(Fraction(0), a - odds * b) for a, b in zip(p, q, strict=True)), Fraction(0))


def test_blanket() -> None:
    yes, no = ([b * (1 - TRUE) + a * TRUE for a, b in zip(move, stay, strict=True)] for move, stay in
               (((0, TRUE, 1 - TRUE), (TRUE, 1 - TRUE, 0)), ((TRUE, 1 - TRUE, 0), (0, TRUE, 1 - TRUE))))  # fmt: skip
    odds = Fraction(5, 3)
    assert yes[1] / no[1] == odds
    text = _text("blanket")
    for law in (yes, no):
        row = " | ".join(
            rf"$\frac{{{number * 16}}}{{16}}$" if number * 16 > 9 else rf"$\frac{number * 16}{{16}}$" for number in law
        )
        assert row in text
    alone = _excess([TRUE, 1 - TRUE], [1 - TRUE, TRUE], odds)
    with_ben = max(_excess(yes, no, odds), _excess(no, yes, odds))
    assert f"$\\delta$ falls from ${_written(alone)}$ to ${_written(with_ben)}$" in text


def test_flame() -> None:
    sent = HALF * TRUE + HALF * HALF
    text = _text("flame")
    assert f"={_written(sent)}$" in text
    assert f"odds of ${_written(sent / (1 - sent))}$" in text
    assert f"odds of {TRUE / (1 - TRUE)}." in text


def test_participation() -> None:
    text = _text("participation")
    assert f"={_written(1 + HALF * HALF * 2)}$" in text
    assert f"={1 + HALF * 2}$" in text


def test_checkin() -> None:
    text = _text("checkin")
    rate = Fraction(1, 4)
    for share in (HALF, rate):
        orange = share * TRUE + (1 - share) * (1 - TRUE)
        assert f"={_written(orange)}$" in text
        odds = orange / (1 - TRUE)
        assert (f"odds of {odds}" if odds.denominator == 1 else f"odds of only ${_written(odds)}$") in text


def test_cloak() -> None:
    ana, ben = (5, 12, 20), (90, 6, 9)
    assert (sum(ana) % 101, sum(ben) % 101) == (37, 4)
    candidates = [sum(chosen) % 101 for chosen in combinations(ana + ben, 3)]
    text = _text("cloak")
    assert "=20$ ways" in text
    assert len(candidates) == len(set(candidates)) == 20
    assert f"{101 - len(set(candidates))} of the 101 numbers" in text
    assert f"Their sum is {sum(ana + ben)}, and that is {sum(ana + ben) % 101}" in text
