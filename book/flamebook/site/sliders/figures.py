"""Figures that move: which statements they show, over which parameter, and which parameters have sliders.

:data:`FIGURES` is the one list.  The build places each figure below the one of the book whose label it has, and the
page runs this module in the browser, on the very sources of the library; standard library only.  A curve is a row as on
the page of sliders: a closed form, computed, or a certified bound, read off a recorded grid on the safe side.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flamebook.site.sliders import page
from flamebook.site.sliders.grids import grids, towards
from flamebook.site.sliders.page import CALLED, ROWS, Inputs, Named, Recast, Row, having
from flamelib.answers import sentence
from flamelib.core.vocabulary import DomainError, read
from flamelib.front.results import rounded

POINTS = 29


@dataclass(frozen=True, slots=True)
class Slider:
    """A parameter between two ends, both included, or one of a few values; logarithmic or, over whole numbers, not."""

    name: str
    start: float
    low: float = 0.0
    high: float = 0.0
    choices: tuple[float, ...] = ()
    log: bool = True
    symbol: str = ""

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return (self.choices[0], self.choices[-1]) if self.choices else (self.low, self.high)

    @property
    def whole(self) -> bool:
        """Whether it takes whole numbers only."""
        return page.is_whole(self.name)

    def points(self) -> list[float]:
        """Where a curve over this parameter is computed."""
        if self.choices:
            return list(self.choices)
        if not self.log:
            return [float(at) for at in range(int(self.low), int(self.high) + 1)]
        ratio = math.log(self.high / self.low) / (POINTS - 1)
        inner = [self.low * math.exp(ratio * at) for at in range(1, POINTS - 1)]
        found = [self.low, *inner, self.high]
        return sorted({round(at) for at in found}) if self.whole else [float(f"{at:.6g}") for at in found]

    def told(self) -> Named:
        """What the page must know of it."""
        label, symbol = CALLED[self.name][0], self.symbol or CALLED[self.name][1]
        low, high = self.ends
        ends = {"low": low, "high": high, "log": self.log, "choices": self.choices, "whole": self.whole}
        return {"name": self.name, "label": f"{label} {symbol}", "symbol": symbol, "start": self.start} | ends


@dataclass(frozen=True, slots=True)
class Curve:
    """A row, and its look, a key of :data:`flamebook.records.LOOKS`; the other words replace parts of that."""

    look: str
    row: Row
    words: str = ""
    dash: str | None = None
    hue: str = ""

    @property
    def key(self) -> str:
        """Its name in the figure."""
        return self.row.key

    def steps(self, x: str) -> int:
        """Between points of a grid a bound is that of the next (1) or of the last (-1); else nothing is drawn (0)."""
        recorded = self.row.recorded
        return towards(recorded, x) if recorded and grids()[recorded]["gives"] != "value" else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure that moves.

    Attributes
    ----------
    name : str
        Label of the figure, or of the theorem, of the book below which it stands.
    under : str
        The page that has this label.
    title : str
        What is drawn against what.
    x : Slider
        The parameter of the axis; its slider moves the mark.
    sliders, fixed
        The parameters that can be moved, and the values of the others.
    curves : tuple of Curve
        What is drawn; all answer with the same quantity.
    y : str
        Words on the axis, its symbol first.
    notebook, words
        The page whose form takes values, the notebook above if none is named, and which: its names to those of this
        figure.
    log, least, most
        Whether the axis of the curves is logarithmic, and between which values it shows them.
    """

    name: str
    under: str = "book/sliders"
    title: str
    x: Slider
    sliders: tuple[Slider, ...] = ()
    curves: tuple[Curve, ...]
    y: str
    notebook: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    log: bool = True
    least: float = 1e-8
    most: float = 1e4

    def __post_init__(self) -> None:
        if not self.notebook and self.under.startswith("notebooks/"):
            object.__setattr__(self, "notebook", self.under)

    def start(self) -> Named:
        """The values with which it opens."""
        return dict(self.fixed) | {one.name: one.start for one in (self.x, *self.sliders)}

    def curves_at(self, given: Inputs) -> dict[str, Named]:
        """Abscissae and values of every curve, by its key, and what they give; ``None`` where its statement refuses."""
        inputs = read(**{**self.fixed, **given})
        return {curve.key: self._along(curve.row, inputs) for curve in self.curves}

    def _along(self, row: Row, inputs: Inputs) -> Named:
        """Of a recorded row the points of its grid."""
        name, (low, high) = self.x.name, self.x.ends
        axis = _axis(row.recorded, name) if row.recorded else self.x.points()
        at = [one for one in axis if low <= one <= high]
        found = [page.reply(row, {**inputs, name: one}) for one in at]
        gives = {one["gives"] for one in found if "gives" in one}
        return {
            "x": at,
            "y": [one.get("value") for one in found],
            "gives": "upper" if len(gives) > 1 else "".join(gives),
        }

    def marked(self, given: Inputs) -> dict[str, Named]:
        """What every curve says at the mark: a number that errs on the safe side, or a refusal."""
        inputs = read(**{**self.fixed, **given})
        return {curve.key: _told(page.reply(curve.row, inputs), re.split(r"\W* ", self.y)[0]) for curve in self.curves}


def _axis(recorded: str, name: str) -> list[float]:
    """The points of a grid along a parameter."""
    axis: list[float] = grids()[recorded]["axes"][name]
    return axis


def _told(reply: Named, symbol: str) -> Named:
    """The words of an answer: upper bounds are rounded up, lower ones down; the point of a grid, if it is another."""
    if "refused" in reply or reply["value"] == "inf":
        return {"refused": reply.get("refused", "outside the regime of the statement")}
    gives, value = reply["gives"], float(reply["value"])
    if symbol == "δ" and value > 1:
        return {"refused": "says nothing here, being above 1"}
    sign = {"upper": "≤", "lower": "≥"}.get(gives, "=")
    text = f"{value:.4g}" if gives == "value" else rounded(value, up=gives != "lower")
    return {
        "shown": f"{symbol} {sign} {text}",
        "gives": gives,
        "at": reply["at"] if reply.get("off") else "",
        "command": reply["command"],
    }


def _row(
    statement: str, about: str, needs: str, answers: str = "epsilon", recast: Recast = dict, recorded: str = ""
) -> Row:
    return Row("", statement, "", about, tuple(needs.split()), answers, recast, recorded)


def _page(*looks: tuple[str, ...]) -> tuple[Curve, ...]:
    """Curves of rows of the page of sliders: look, key and, where those of the look do not do, words, dash and hue."""
    found = {row.key: row for row in ROWS}
    return tuple(Curve(look, found[key], *words) for look, key, *words in looks)


_DASHED, _DOTTED, _DASHDOT = "6 2", "1.2 1.6", "7 2 1.5 2"
_OF_KIND = {"kary": _DASHED, "laplace": _DASHDOT, "any": _DOTTED, "binary": None}
_LOOK_OF = {
    "thm-3.1": "theorem", "lem-hoeffding": "hoeffding", "lem-bennett": "bennett", "2021-closed": "clones-2021",
    "erlingsson": "erlingsson", "lem-reduction": "blanket", "2021": "clones-2021", "exact-binary": "exact",
    "lower": "lower",
}  # fmt: skip
_ABOUT = {
    "kary": "k-ary response",
    "laplace": "Laplace noise",
    "any": "any ε₀-private randomizer",
    "binary": "binary response",
}


def _of_page(row: Row) -> Curve:
    hue = "sky" if (row.recorded, row.about) == ("laplace", "laplace") else ""
    return Curve(
        _LOOK_OF[row.statement.partition(":")[2]], row, f"{row.label}, {_ABOUT[row.about]}", _OF_KIND[row.about], hue
    )


BLANKET = Figure(
    name="blanket",
    title="Privacy blanket: budget against the number of users",
    x=Slider("n_users", 10_000, 100, 1e9),
    curves=tuple(_of_page(row) for row in ROWS if row.part == "blanket" and row.answers == "epsilon"),
    y="ε after shuffling",
)


def _modified(named: Named) -> Named:
    """Rounds that are composed without a failure probability of their own."""
    return {"times": named.pop("rounds")} | named


def _odd(named: Named) -> Named:
    """An odd modulus of so many bits, which is what Lemma 5 wants."""
    return {"modulus": 2 ** int(named.pop("log2_modulus")) - 1} | named


def _smooth(named: Named) -> Named:
    """The smoothness at which Lemma 5 speaks of this epsilon."""
    return _odd({"smoothness": math.tanh(named.pop("epsilon") / 2)} | named)


_COSTLY = {"cmp-rec": "sky"}  # beside another grey


def _costs(answers: str, *looks: tuple[str, str, str]) -> tuple[Curve, ...]:
    """What protocols for sums cost: look, protocol, words."""
    needs = "n_users epsilon delta"
    return tuple(
        Curve(look, _row("cloak:cost", name, needs, answers, having(protocol=name)), words, hue=_COSTLY.get(name, ""))
        for look, name, words in looks
    )


def _of_round(look: str, item: str, needs: str, words: str = "", **fixed: float) -> Curve:
    """Delta of one round of random participation."""
    return Curve(look, _row(f"participation:{item}", "round", needs, "delta", having(**fixed)), words)


_SPLIT = "log2_modulus n_messages epsilon"
_USERS = Slider("n_users", 10_000, 100, 1e9)
_DELTA = Slider("delta", 1e-6, 1e-9, 1e-4)
_LAPLACE = having(randomizer="laplace")
_ROUND = "participation_rate record_rate noise_std epsilon"
_JOINS = (Slider("participation_rate", 0.1, 0.01, 1), Slider("record_rate", 0.1, choices=(0.01, 0.1, 1)))
_SUM_USERS = Slider("n_users", 1000, 10, 1e7)
_BUDGET = (Slider("epsilon", 1, 0.05, 5), Slider("delta", 1e-6, 1e-12, 1e-3))

FIGURES: tuple[Figure, ...] = (
    Figure(
        name="fig-nb-a",
        under="notebooks/blanket_amplification",
        title="central budget of any shuffled randomizer against the number of users",
        x=_USERS,
        sliders=(Slider("epsilon0", 0.5, 0.1, 8), _DELTA),
        curves=_page(
            ("erlingsson", "blanket-erlingsson-any-epsilon"),
            ("hoeffding", "blanket-lem-hoeffding-any-epsilon"),
            ("bennett", "blanket-lem-bennett-any-epsilon"),
            ("clones-2021", "clones-2021-closed-any-epsilon", "clones 2021, closed form"),
            ("clones-2021", "recorded-clones-any-epsilon", "clones 2021, by numbers"),
            ("exact", "recorded-binary-binary-epsilon", "binary response, exact"),
            ("lower", "recorded-binary-lower-binary-epsilon", "binary response, certified lower bound"),
        ),
        y="ε after shuffling",
        words={"epsilon0": "epsilon0", "delta": "delta"},
    ),
    Figure(
        name="fig-then-and-now",
        under="notebooks/blanket_amplification",
        title="central budget of shuffled k-ary response against the number of users",
        x=Slider("n_users", 10_000, 1000, 1e8),
        sliders=(
            Slider("epsilon0", 2, 0.5, 4),
            Slider("n_buckets", 10, choices=(2, 10, 100, 1000)),
            Slider("delta", 1e-6, 1e-9, 1e-4),
        ),
        curves=_page(
            ("theorem", "blanket-thm-3-1-kary-epsilon"),
            ("hoeffding", "blanket-lem-hoeffding-kary-epsilon"),
            ("bennett", "blanket-lem-bennett-kary-epsilon"),
            ("clones-2021", "clones-2021-closed-any-epsilon", "clones 2021, closed form"),
            ("clones-2021", "recorded-clones-any-epsilon", "clones 2021, by numbers"),
            ("blanket", "recorded-kary-kary-epsilon"),
        ),
        y="ε after shuffling",
        words={"large_epsilon0": "epsilon0", "n_buckets": "n_buckets", "delta": "delta"},
    ),
    Figure(
        name="fig-withdrawn",
        under="notebooks/blanket_amplification",
        title="central budget of shuffled Laplace noise against the number of users",
        x=Slider("n_users", 10_000, 1000, 1e8),
        sliders=(Slider("epsilon0", 0.5, 0.1, 4), _DELTA),
        curves=(
            Curve("withdrawn", _row("flame:bennett-withdrawn", "laplace", "epsilon0 n_users delta", recast=_LAPLACE)),
            *_page(
                ("bennett", "blanket-lem-bennett-laplace-epsilon", "Bennett, corrected"),
                ("hoeffding", "blanket-lem-hoeffding-laplace-epsilon"),
                ("blanket", "recorded-laplace-laplace-epsilon"),
            ),
        ),
        y="ε after shuffling",
        words={"epsilon0": "epsilon0", "delta": "delta"},
    ),
    Figure(
        name="flame-thm-3",
        under="book/flame",
        title="central budget of one coordinate against the messages of its bag",
        x=Slider("padded", 10_000, 100, 1e6),
        sliders=(
            Slider("epsilon0", 0.5, 0.05, 2),
            Slider("n_buckets", 2, choices=(2, 10, 100), symbol="b"),
            Slider("kept", 157, 1, 7850),
        ),
        curves=_page(
            ("theorem-4", "flame-thm-3-padded-epsilon", "Theorem 3, as printed"),
            ("certified", "flame-lem-1-padded-epsilon", "Lemma 1, the report counted"),
        ),
        y="ε of the coordinate",
        notebook="notebooks/flame_accounting",
        words={"padded": "padded", "epsilon0": "epsilon0", "kept": "kept"},
        fixed={"dimension": 7850, "delta": 1e-6},
    ),
    Figure(
        name="fig-flame-overall-budget",
        under="notebooks/flame_accounting",
        title="central budget of a vector against the coordinates that a user reports",
        x=Slider("kept", 157, choices=(1, 3, 10, 30, 50, 100, 157, 300, 785)),
        sliders=(Slider("epsilon0", 0.5, choices=(0.2, 0.5, 1, 2)), Slider("padded", 333, choices=(333, 10_000))),
        curves=(
            *_page(
                ("theorem-4", "recorded-topk-printed-vector-epsilon", "SS-Double and SS-Topk, as printed"),
                ("topk", "recorded-topk-vector-epsilon", "SS-Topk, certified upper bound"),
                ("lower", "recorded-topk-lower-vector-epsilon", "SS-Topk, yield of the attack by counting"),
            ),
            Curve(
                "double",
                _row("flame:account", "vector", "epsilon0 kept padded delta", recorded="double"),
                "SS-Double, certified upper bound",
                hue="purple",
            ),
        ),
        y="ε of the vector",
        words={"kept": "kept", "epsilon0": "epsilon0", "padded": "padded"},
        fixed={"delta": 1e-6},
    ),
    Figure(
        name="fig-participation-noise-epsilon",
        under="notebooks/participation_accounting",
        title="budget of one round against the noise",
        x=Slider("noise_std", 1, 0.5, 4),
        sliders=(*_JOINS, Slider("delta", 1e-6, 1e-9, 1e-6)),
        curves=(
            *_page(
                ("gaussian", "participation-thm-2-4-round-epsilon", "drawn for certain"),
                ("ols", "participation-thm-5-1-round-epsilon"),
                ("wcs", "participation-thm-5-2-round-epsilon"),
                ("cs", "participation-cor-5-3-round-epsilon"),
                ("outer", "recorded-participation-rounds-epsilon", "nobody knows who joins, certified"),
                ("lower", "recorded-participation-lower-rounds-epsilon", "nobody knows who joins, lower bound"),
            ),
        ),
        y="ε of one round",
        words={name: name for name in ("participation_rate", "record_rate", "n_records", "noise_std", "delta")},
        fixed={"n_records": 2, "rounds": 1},
    ),
    Figure(
        name="fig-participation-noise-delta",
        under="notebooks/participation_accounting",
        title="failure probability of one round against the noise",
        x=Slider("noise_std", 1, 0.5, 8),
        sliders=(_JOINS[0], Slider("record_rate", 0.1, 0.01, 1), Slider("epsilon", 0.1, 0.01, 2)),
        curves=(
            _of_round("gaussian", "thm-2.4", "noise_std epsilon", "drawn for certain", sensitivity=1),
            _of_round("ols", "thm-5.1", "record_rate noise_std epsilon", participation_rate=1, clip_norm=1),
            _of_round("wcs", "thm-5.2", _ROUND, clip_norm=1),
            _of_round("cs", "cor-5.3", _ROUND, clip_norm=1),
        ),
        y="δ of one round",
        words={name: name for name in ("participation_rate", "record_rate", "noise_std", "epsilon")},
        least=1e-15,
        most=1,
    ),
    Figure(
        name="fig-checkin-users",
        under="notebooks/checkin_accounting",
        title="budget of all rounds against the number of clients",
        x=Slider("n_users", 100_000, 10_000, 1e6),
        sliders=(
            Slider("epsilon0", 2, choices=(1, 2, 4)),
            Slider("checkin_rate", 0.1, choices=(0.01, 0.1, 1)),
            Slider("rounds", 1000, choices=(100, 1000, 100_000)),
        ),
        curves=_page(
            ("checkin-clones", "recorded-shuffled-any-epsilon", "shuffled check-in, certified"),
            ("checkins", "participation-cmp-random-checkins-any-epsilon", "random check-ins, as many slots"),
        ),
        y="ε after all rounds",
        words={name: name for name in ("n_users", "epsilon0", "checkin_rate", "rounds")},
        fixed={"delta": 1e-6},
    ),
    Figure(
        name="fig-checkin-rounds",
        under="notebooks/checkin_accounting",
        title="what rounds of one budget cost together",
        x=Slider("rounds", 1000, 1, 1e5),
        sliders=(Slider("epsilon", 0.01, 0.001, 1), Slider("delta", 1e-6, 1e-12, 1e-3)),
        curves=(
            Curve("unshuffled", _row("flame:lem-2", "target", "epsilon rounds", recast=_modified), "budgets added up"),
            *_page(
                ("baseline-drv", "checkin-strong-drv-target-epsilon", "Dwork, Rothblum, Vadhan", _DASHED, "vermillion"),
                ("baseline-kov", "checkin-strong-kov-target-epsilon", "Kairouz, Oh, Viswanath", "", "blue"),
            ),
        ),
        y="ε after all rounds",
        words={"rounds": "rounds"},
    ),
    Figure(
        name="fig-checkin-deployment",
        under="notebooks/checkin_accounting",
        title="budget of noisy sums against the number of rounds",
        x=Slider("rounds", 1000, choices=(1, 100, 1000, 10_000)),
        sliders=(
            Slider("n_users", 100_000, choices=(1000, 10_000, 100_000, 1_000_000)),
            Slider("checkin_rate", 0.1, choices=(0.001, 0.01, 0.1, 1)),
            Slider("noise_std", 1, choices=(0.5, 1, 2, 4)),
        ),
        curves=_page(
            ("eq-10-exact", "recorded-distributed-theorem-sums-epsilon", "Theorem 4", _DASHED),
            ("losses", "recorded-distributed-sums-epsilon", "privacy losses"),
        ),
        y="ε after all rounds",
        words={name: name for name in ("rounds", "n_users", "checkin_rate", "noise_std")},
        fixed={"delta": 1e-6},
    ),
    Figure(
        name="fig-cloak-two-users-large",
        under="notebooks/cloak_accounting",
        title="what the shares of two users tell against their number",
        x=Slider("n_messages", 32, 2, 64, log=False),
        sliders=(Slider("log2_modulus", 40, 8, 64, log=False), Slider("epsilon", 1, 0.01, 5)),
        curves=(
            Curve(
                "own-1", _row("cloak:own-1", "shares", "log2_modulus n_messages", "distance", _odd), "total variation"
            ),
            Curve("own-2", _row("cloak:own-2", "shares", _SPLIT, "delta", _odd)),
            Curve("own-5", _row("cloak:own-5", "shares", _SPLIT, "delta", _odd)),
            Curve("lemma-5", _row("cloak:lemma-5", "shares", _SPLIT, "delta", _smooth)),
        ),
        y="δ of one exchange",
        least=1e-15,
        most=1,
    ),
    Figure(
        name="fig-cloak-needed",
        under="notebooks/cloak_accounting",
        title="shares of each user against the number of users",
        x=_SUM_USERS,
        sliders=(Slider("delta", 1e-12, 1e-15, 1e-3), Slider("log2_modulus", 32, 8, 64, log=False)),
        curves=(
            *_page(("best-1", "cloak-best-1-shares-messages")),
            Curve("rule-t1", _row("cloak:thm-1", "shares", "n_users epsilon delta", "n_messages"), "rule T1, ε = 1"),
            Curve(
                "chained",
                _row("cloak:thm-2", "shares", "n_users epsilon delta", "n_messages", having(error=1)),
                "rule T2, ε = 1, error 1",
            ),
        ),
        y="m, shares of a user",
        words={"n_users": "n_users", "delta": "delta"},
        fixed={"epsilon": 1},
        log=False,
    ),
    Figure(
        name="fig-cloak-bits",
        under="notebooks/cloak_accounting",
        title="bits that a user sends against the number of users",
        x=_SUM_USERS,
        sliders=_BUDGET,
        curves=_costs(
            "bits",
            ("rule-t1", "cmp-t1", "rule T1"),
            ("chained", "cmp-t2", "rule T2"),
            ("split-and-mix", "cmp-ikos", "split and mix"),
            ("bonawitz", "cmp-bon", "secure aggregation 2017"),
            ("recursive", "cmp-rec", "recursive blanket"),
            ("one-message", "cmp-blanket", "one message"),
        ),
        y="bits of a user",
        words={name: name for name in ("n_users", "epsilon", "delta")},
        most=1e12,
    ),
    Figure(
        name="fig-cloak-errors",
        under="notebooks/cloak_accounting",
        title="error of the sum against the number of users",
        x=_SUM_USERS,
        sliders=_BUDGET,
        curves=_costs(
            "error",
            ("rule-t1", "cmp-t1", "rule T1"),
            ("split-and-mix", "cmp-ikos", "split and mix"),
            ("recursive", "cmp-rec", "recursive blanket"),
            ("one-message", "cmp-blanket", "one message"),
            ("curator", "cmp-central", "trusted curator"),
            ("local", "cmp-local", "local noise"),
        ),
        y="error of the sum",
        words={name: name for name in ("n_users", "epsilon", "delta")},
    ),
)
# The charts of the page of sliders, one for each part, which take the values of the whole page.
CHARTS: tuple[Figure, ...] = (
    BLANKET,
    Figure(
        name="flame",
        title="FLAME: one coordinate, or a vector, against the messages of a bag",
        x=Slider("padded", 10_000, 100, 1e6),
        curves=_page(
            ("withdrawn", "flame-bennett-withdrawn-coordinate-epsilon", "coordinate, Bennett's withdrawn form"),
            ("bennett", "blanket-lem-bennett-coordinate-epsilon", "coordinate, Bennett"),
            ("double", "flame-thm-3-padded-epsilon", "coordinate, Theorem 3 as printed"),
            ("checkin-any", "flame-lem-1-padded-epsilon", "coordinate, Lemma 1"),
            ("theorem-4", "recorded-topk-printed-vector-epsilon", "vector, top-k as printed"),
            ("topk", "recorded-topk-vector-epsilon", "vector, top-k certified"),
            ("lower", "recorded-topk-lower-vector-epsilon", "vector, top-k attack by counting"),
        ),
        y="ε after shuffling",
    ),
    Figure(
        name="participation",
        title="Random participation: budget against the noise",
        x=Slider("noise_std", 1, 0.1, 10),
        curves=_page(
            ("gaussian", "participation-thm-2-4-round-epsilon", "one round, drawn for certain"),
            ("ols", "participation-thm-5-1-round-epsilon", "one round, all join (OLS)"),
            ("wcs", "participation-thm-5-2-round-epsilon", "one round, known who joins (WCS)"),
            ("cs", "participation-cor-5-3-round-epsilon", "one round, every record by itself (CS)"),
            ("outer", "recorded-participation-rounds-epsilon", "all rounds, certified"),
            ("lower", "recorded-participation-lower-rounds-epsilon", "one round, lower bound"),
        ),
        y="ε of a record",
    ),
    Figure(
        name="checkin",
        title="Self check-in: budget against the rounds",
        x=Slider("rounds", 100, 1, 1e5),
        curves=_page(
            ("checkins", "participation-cmp-random-checkins-any-epsilon", "random check-ins"),
            ("baseline-drv", "checkin-strong-drv-target-epsilon", "rounds of ε each, Dwork et al."),
            ("baseline-kov", "checkin-strong-kov-target-epsilon", "rounds of ε each, Kairouz et al."),
            ("checkin-clones", "recorded-shuffled-any-epsilon", "shuffled reports"),
            ("eq-10-exact", "recorded-distributed-theorem-sums-epsilon", "noisy sums, Theorem 4"),
            ("losses", "recorded-distributed-sums-epsilon", "noisy sums, privacy losses"),
        ),
        y="ε of all rounds",
    ),
    Figure(
        name="cloak",
        title="Cloak aggregation: what shares tell against their number",
        x=Slider("n_messages", 32, 2, 64, log=False),
        curves=_page(
            ("own-1", "cloak-own-1-shares-distance", "two users, total variation"),
            ("own-2", "cloak-own-2-shares-delta"),
            ("best-1", "recorded-shares-shares-distance", "all users, total variation"),
        ),
        y="δ of the shares",
        least=1e-15,
        most=1,
    ),
)
BY_NAME = {one.name: one for one in (*CHARTS, *FIGURES)}


def respond(request: str) -> str:
    """One message of a page, ``{"want": "answers" | "curves" | "figure", "figure": ..., "inputs": {...}}``, in JSON.

    >>> json.loads(respond('{"want": "answers", "inputs": {"delta": "2"}}'))
    {'refused': "delta must be a number in [0, 1], got '2'"}
    """
    message = json.loads(request)
    want, inputs = message["want"], message["inputs"]
    try:
        if want == "answers":
            found: Any = page.answers(inputs)
        else:
            figure = BY_NAME[message["figure"]]
            found = figure.curves_at(inputs)
            found = found if want == "curves" else {"curves": found, "marked": figure.marked(inputs)}
        return json.dumps({"found": found}, allow_nan=False)
    except DomainError as refusal:
        return json.dumps({"refused": sentence(refusal)})
