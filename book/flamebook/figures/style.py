"""One look for the whole book: the same bound has the same colour, dash and words in every figure.

Colours follow the Okabe-Ito palette, darkened for a light page and lightened for a dark one until each has a contrast
of at least 4.5 to its page; curves that share a hue differ in their dash, so no figure relies on colour alone.
Nothing here touches matplotlib's global settings: :func:`look` is a context.

What the diagrams of parties are drawn with.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.typing import LineStyleType


@dataclass(frozen=True, slots=True)
class Theme:
    """Page, ink and the named hues of a light or a dark page."""

    name: str
    page: str
    ink: str
    faint: str
    hues: dict[str, str]


LIGHT = Theme(
    name="light",
    page="#ffffff",
    ink="#1f2328",
    faint="#d4d9de",
    hues={
        "blue": "#0067a5",
        "vermillion": "#b94a00",
        "green": "#00734f",
        "purple": "#a2447e",
        "sky": "#2b7a99",
        "ochre": "#8a6100",
        "grey": "#5b6570",
        "black": "#111418",
    },
)
DARK = Theme(
    name="dark",
    page="#14181e",
    ink="#e2e6ea",
    faint="#3a424c",
    hues={
        "blue": "#6fb7ff",
        "vermillion": "#ff9a5c",
        "green": "#4fd6a6",
        "purple": "#f09ccb",
        "sky": "#8fd3f5",
        "ochre": "#f2c14e",
        "grey": "#a7b0ba",
        "black": "#f5f7fa",
    },
)
THEMES = (LIGHT, DARK)

SOLID: LineStyleType = "-"
DASHED: LineStyleType = (0, (6, 2))
DOTTED: LineStyleType = (0, (1.2, 1.6))
DASHDOT: LineStyleType = (0, (7, 2, 1.5, 2))
DASHDOTDOT: LineStyleType = (0, (7, 2, 1.5, 2, 1.5, 2))


@dataclass(frozen=True, slots=True)
class Look:
    """How one bound or protocol is drawn, and what it is called."""

    label: str
    hue: str
    dash: LineStyleType = SOLID
    marker: str = ""
    width: float = 2.0


LOOKS: dict[str, Look] = {
    "hoeffding": Look("Hoeffding", "vermillion", DASHED),
    "bennett": Look("Bennett", "purple", DASHDOT),
    "withdrawn": Look("Bennett, withdrawn", "purple", DOTTED, width=2.6),
    "blanket": Look("blanket divergence", "blue", SOLID, width=2.6),
    "clones-2021": Look("clones 2021", "ochre", DASHDOTDOT),
    "clones-2023": Look("clones 2023", "ochre", SOLID),
    "three-component": Look("clones in three parts", "vermillion", DOTTED, width=2.6),
    "exact": Look("exact", "black", DOTTED, width=2.8),
    "lower": Look("lower bound", "green", DASHED),
    "erlingsson": Look("Erlingsson et al.", "grey", DASHDOT),
    "theorem": Look("Theorem 3.1", "vermillion", SOLID),
    "cheu": Look("one bit per user (Cheu et al.)", "vermillion", DASHED, "s"),
    "local-budget": Look("no shuffler", "grey", DOTTED),
    "curator": Look("trusted curator", "green", SOLID, "v"),
    "local": Look("local, no shuffler", "purple", DASHDOT, "^"),
    "blanket-protocol": Look("blanket protocol", "blue", SOLID, "o"),
    "theorem-protocol": Look("blanket protocol, Theorem 3.1", "sky", DASHED, "D"),
    "kept": Look("kept value", "vermillion"),
    "blanket-part": Look("blanket", "blue"),
    "truth": Look("truth", "black", DOTTED, "o"),
    "estimate": Look("estimate", "blue", SOLID, "D"),
    "right-alphabet": Look("blanket on 0..k", "blue", SOLID),
    "wrong-alphabet": Look("blanket on 1..k", "vermillion", DASHED),
    "theory": Look("theory", "vermillion", DASHED),
    "np": Look("NP-FL", "black", DOTTED, width=2.6),
    "dp": Look("DP-FL", "green", DASHED, "v"),
    "ldp": Look("LDP-FL", "grey", DASHDOT, "s"),
    "simple": Look("SS-Simple", "purple", DASHDOTDOT, "^"),
    "double": Look("SS-Double", "ochre", DASHED, "D"),
    "topk": Look("SS-Topk", "blue", SOLID, "o", width=2.6),
    "sparse": Look("largest coordinates, no noise", "sky", DASHED, "s"),
    "certified": Look("certified upper bound", "blue", SOLID, "o", width=2.6),
    "certified-full": Look("certified, bags may overflow", "sky", SOLID, "^"),
    "certified-subset": Look("certified, exactly k", "purple", SOLID, "v"),
    "lower-full": Look("lower bound, bags overflow", "ochre", DASHED),
    "theorem-4": Look("Theorem 4, blanket divergence", "vermillion", DASHED, "s"),
    "double-hidden": Look("SS-Double, every coordinate counted", "ochre", DOTTED, width=2.6),
    "unshuffled": Look("composition alone, no shuffler", "grey", DASHDOT),
    "clipped": Look("all coordinates, no noise", "vermillion", DASHDOT, "^"),
    "outer": Look("outer (certified)", "blue", SOLID, width=2.6),
    "inner": Look("inner (no bound)", "vermillion", DOTTED, width=2.6),
    "aligned": Look("aligned (one data set)", "green", DASHDOT),
    "turned": Look("turned (lower bound)", "green", DASHED),
    "add": Look("add direction (certified)", "sky", DASHED),
    "ols": Look("OLS", "grey", DASHED),
    "wcs": Look("WCS", "ochre", DASHDOT),
    "cs": Look("CS", "purple", SOLID),
    "checkins": Look("check-ins, any randomizer", "vermillion", DASHED),
    "checkins-noise": Look("check-ins, Gaussian noise", "vermillion", DASHDOT),
    "inner-exact": Look("inner rate k/n", "blue", SOLID, width=2.6),
    "inner-paper": Look("inner rate \N{GREEK SMALL LETTER GAMMA} (no bound)", "vermillion", DOTTED, width=2.6),
    "thm-2-paper": Look("Thm 2 as printed (no bound)", "vermillion", DASHED),
    "thm-2": Look("Thm 2 with k/n (certified)", "sky", SOLID, "^"),
    "thm-3": Look("Thm 3, converted (no bound)", "purple", DOTTED, width=2.6),
    "baseline-closed": Look("baseline, closed form", "grey", DASHED),
    "baseline-numerical": Look("baseline, clones by numbers", "grey", DASHDOTDOT, "v"),
    "checkin-any": Look("any randomizer (certified)", "ochre", SOLID, "s"),
    "checkin-binary": Look("binary response (certified)", "blue", SOLID, "o", width=2.6),
    "eq-11": Look("Eq. 11 (no bound)", "vermillion", DASHDOT),
    "eq-10": Look("Eq. 10 (no bound)", "vermillion", DASHED),
    "eq-10-exact": Look("Eq. 10 with k/n (certified)", "sky", SOLID, "^"),
    "renyi": Look("exact moments of the pair", "ochre", DASHED, "s"),
    "renyi-cut": Look("cut moments of the pair", "ochre", SOLID, "D"),
    "losses": Look("privacy losses (certified)", "blue", SOLID, "o", width=2.6),
    "baseline-kov": Look("baseline, Kairouz et al.", "grey", DASHED),
    "baseline-drv": Look("baseline, Dwork et al.", "grey", DASHDOT),
    "lemma-3": Look("what Lemma 3 gives", "vermillion", DASHED),
    "exact-response": Look("exact, binary response", "black", DOTTED, width=2.8),
    "generic": Look("route through Lemma 3 (no bound)", "vermillion", DASHED),
    "response": Look("binary response", "blue", SOLID, width=2.6),
    "all-counts": Look("exact moments, all counts", "blue", SOLID, width=2.6),
    "likely-counts": Look("window of counts (no bound)", "green", DASHDOT),
    "unprotected": Look("no privacy", "black", DOTTED, "o", width=2.6),
    "noiseless": Look("clipped, no noise", "sky", DASHED, "^"),
    "privunit2": Look("PrivUnit2", "blue", SOLID, "D", width=2.6),
    "duchi": Look("Duchi et al.", "ochre", DASHDOT, "s"),
    "gaussian": Look("Gaussian noise", "purple", DASHDOTDOT, "v"),
    "cloak": Look("cloak, Skellam noise", "vermillion", SOLID, "s", width=2.6),
    "server": Look("trusted server, Gaussian noise", "green", DASHED, "v"),
    "count-min": Look("Count-Min, one row", "blue", SOLID, "o"),
    "count-min-rows": Look("Count-Min, least of several rows", "sky", DASHED, "^"),
    "count-sketch": Look("Count-Sketch, one row", "vermillion", SOLID, "s"),
    "count-sketch-noisy": Look("Count-Sketch, one row, noise", "purple", DASHDOT, "D"),
    "one-row": Look("one row", "blue", SOLID, "o"),
    "three-rows": Look("median of three rows", "vermillion", DASHED, "s"),
    "five-rows": Look("median of five rows", "green", DASHDOT, "^"),
    "tree": Look("binary tree", "blue", SOLID, "o"),
    "flat": Look("one counter for each value", "vermillion", DASHED, "s"),
    "split-and-mix": Look("cloak with P\N{LATIN SMALL LETTER O WITH ACUTE}lya noise", "blue", SOLID, "o"),
    "support": Look("empty buckets, no noise", "blue", SOLID, "o"),
    "unmixed": Look("noise taken out", "vermillion", DASHED, "s"),
    "threshold": Look("buckets above a threshold", "ochre", DASHDOT, "^"),
    "all-signs": Look("every user signs every counter", "vermillion", DASHED, "s"),
    "one-sign": Look("every user signs one counter", "blue", SOLID, "o"),
    "entropy": Look("entropy of words, no noise", "blue", SOLID, "o"),
    "entropy-noisy": Look("entropy of labels, noise", "purple", DASHDOT, "D"),
    "norm": Look("distance of two halves, no noise", "vermillion", DASHED, "s"),
    "lemma-5": Look("Lemma 5 at this epsilon", "vermillion", DASHED, "s"),
    "own-1": Look("bound for two users", "blue", SOLID, width=2.6),
    "own-2": Look("bound for two users at this epsilon", "sky", DASHDOT),
    "own-3": Look("all users, by components", "blue", SOLID, "o", width=2.6),
    "best-1": Look("all users, closed form", "ochre", DASHED, "D"),
    "chained": Look("two users, swap by swap", "vermillion", DASHDOT, "s"),
    "exact-distance": Look("exact total variation", "black", DOTTED, "o", width=2.8),
    "exact-delta": Look("exact at this epsilon", "green", DOTTED, "v", width=2.6),
    "sampled-distance": Look("total variation, sampled", "black", DOTTED, "o", width=2.8),
    "rule-t1": Look("rule T1", "vermillion", DASHED, "s"),
    "sharp-t1": Look("T1, bound for two users", "ochre", DASHDOT, "D"),
    "mix-best-1": Look("P\N{LATIN SMALL LETTER O WITH ACUTE}lya, closed form", "sky", DASHED, "^"),
    "mix-own-3": Look("P\N{LATIN SMALL LETTER O WITH ACUTE}lya, by components", "blue", SOLID, "o", width=2.6),
    "least-thinned": Look("least noise of as many users", "ochre", DASHDOT, "D"),
    "polya": Look("P\N{LATIN SMALL LETTER O WITH ACUTE}lya shares", "blue", SOLID, "o", width=2.6),
    "bonawitz": Look("secure aggregation 2017", "green", DASHDOTDOT, "v"),
    "recursive": Look("recursive blanket", "grey", DASHED, "D"),
    "one-message": Look("one message", "grey", DASHDOT, "s"),
    "rounding-floor": Look("rounded down", "vermillion", SOLID, "s"),
    "rounding-floor-law": Look("n / 2k", "vermillion", DASHED),
    "rounding-random": Look("rounded at random", "blue", SOLID, "o"),
    "rounding-random-law": Look("square root of n/6, over k", "blue", DASHED),
    "all-shares": Look("shares of all users", "blue", SOLID, "o", width=2.6),
    "bare-values": Look("the scaled values alone", "grey", DASHED, "s"),
    "seal": Look("sealing", "vermillion", SOLID, "s"),
    "open": Look("opening", "blue", SOLID, "o"),
}


@dataclass(frozen=True, slots=True)
class Pen:
    """The looks in the hues of one theme: what a drawing function asks for colours."""

    theme: Theme

    def colour(self, key: str) -> str:
        """Hex colour of a bound (a key of :data:`LOOKS`) or of a hue."""
        return self.theme.hues[LOOKS[key].hue if key in LOOKS else key]

    def line(self, key: str, **changes: Any) -> dict[str, Any]:
        """Keyword arguments of ``Axes.plot`` for a bound, with its label."""
        look = LOOKS[key]
        style = {"color": self.colour(key), "linestyle": look.dash, "linewidth": look.width, "label": look.label}
        return style | {"marker": look.marker, "markersize": 5.5} | changes


@contextmanager
def look(theme: Theme, salt: str) -> Iterator[Pen]:
    """Matplotlib settings of one theme while the context lasts; ``salt`` fixes the ids inside an SVG.

    >>> with look(DARK, "example") as pen:
    ...     pen.colour("blanket")
    '#6fb7ff'
    """
    with mpl.rc_context(cast(Any, _settings(theme, salt))):
        yield Pen(theme)


def _settings(theme: Theme, salt: str) -> dict[str, Any]:
    return {
        "axes.edgecolor": theme.ink,
        "axes.facecolor": "none",
        "axes.grid": True,
        "axes.labelcolor": theme.ink,
        "axes.labelsize": 12,
        "axes.prop_cycle": cycler(color=list(theme.hues.values())),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": 12,
        "figure.facecolor": "none",
        "font.family": "DejaVu Sans",
        "font.size": 11.5,
        "grid.color": theme.faint,
        "grid.linewidth": 0.7,
        "legend.columnspacing": 1.6,
        "legend.fontsize": 10.5,
        "legend.frameon": False,
        "legend.handlelength": 2.6,
        "lines.linewidth": 2.0,
        "savefig.facecolor": "none",
        "svg.fonttype": "path",
        "svg.hashsalt": salt,
        "text.color": theme.ink,
        "xtick.color": theme.ink,
        "ytick.color": theme.ink,
    }


Point = tuple[float, float]


def draw_box(ax: Axes, pen: Pen, centre: Point, words: str, key: str) -> None:
    """A party: words in a frame of a colour."""
    frame = {"boxstyle": "round,pad=0.35", "facecolor": pen.theme.page, "edgecolor": pen.colour(key), "linewidth": 1.6}
    ax.text(*centre, words, ha="center", va="center", fontsize=11, bbox=frame)


def draw_arrow(ax: Axes, pen: Pen, start: Point, end: Point) -> None:
    """What is handed from one to another."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": pen.theme.ink, "linewidth": 1.2})
