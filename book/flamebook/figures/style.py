"""One look for the whole book: the same bound has the same colour, dash and words in every figure.

Colours follow the Okabe-Ito palette, darkened for a light page and lightened for a dark one until each has a contrast
of at least 4.5 to its page; curves that share a hue differ in their dash, so no figure relies on colour alone.
Which bound has which look stands in :mod:`flamebook.records`.
"""

from dataclasses import dataclass
from typing import Any

from cycler import cycler


@dataclass(frozen=True, slots=True)
class Theme:
    """Page, ink and the named hues of a light or a dark page."""

    name: str
    page: str
    ink: str
    faint: str
    hues: dict[str, str]


# Of a light page and of a dark one.
HUES = {
    "blue": ("#0067a5", "#6fb7ff"),
    "vermillion": ("#b94a00", "#ff9a5c"),
    "green": ("#00734f", "#4fd6a6"),
    "purple": ("#a2447e", "#f09ccb"),
    "sky": ("#2b7a99", "#8fd3f5"),
    "ochre": ("#8a6100", "#f2c14e"),
    "grey": ("#5b6570", "#a7b0ba"),
    "black": ("#111418", "#f5f7fa"),
}
LIGHT = Theme("light", "#ffffff", "#1f2328", "#d4d9de", {name: light for name, (light, _) in HUES.items()})
DARK = Theme("dark", "#14181e", "#e2e6ea", "#3a424c", {name: dark for name, (_, dark) in HUES.items()})

# Matplotlib's settings for a light page; the salt fixes the ids inside an SVG.
SETTINGS: Any = {
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), LIGHT.ink),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor"), "none"),
    **dict.fromkeys(("axes.spines.right", "axes.spines.top"), False),
    "axes.grid": True,
    "axes.labelsize": 12,
    "axes.prop_cycle": cycler(color=list(LIGHT.hues.values())),
    "axes.titlesize": 12,
    "font.family": "DejaVu Sans",
    "font.size": 11.5,
    "grid.color": LIGHT.faint,
    "grid.linewidth": 0.7,
    "legend.columnspacing": 1.6,
    "legend.fontsize": 10.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.linewidth": 2.0,
    "svg.fonttype": "path",
    "svg.hashsalt": "page",
}
