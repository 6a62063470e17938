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

# Matplotlib's settings for a light page; the salt fixes the ids inside an SVG.
SETTINGS: Any = {
    "axes.edgecolor": LIGHT.ink,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": LIGHT.ink,
    "axes.labelsize": 12,
    "axes.prop_cycle": cycler(color=list(LIGHT.hues.values())),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 12,
    "figure.facecolor": "none",
    "font.family": "DejaVu Sans",
    "font.size": 11.5,
    "grid.color": LIGHT.faint,
    "grid.linewidth": 0.7,
    "legend.columnspacing": 1.6,
    "legend.fontsize": 10.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.linewidth": 2.0,
    "savefig.facecolor": "none",
    "svg.fonttype": "path",
    "svg.hashsalt": "page",
    "text.color": LIGHT.ink,
    "xtick.color": LIGHT.ink,
    "ytick.color": LIGHT.ink,
}
