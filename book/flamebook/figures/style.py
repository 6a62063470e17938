"""One look for the whole book: the same bound has the same colour, dash and words in every figure.

Colours follow the Okabe-Ito palette, darkened for a light page and lightened for a dark one until each has a contrast
of at least 4.5 to its page; curves that share a hue differ in their dash, so no figure relies on colour alone.
Nothing here touches matplotlib's global settings: :func:`look` is a context.  Which bound has which look stands in
:mod:`flamebook.records`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import matplotlib as mpl
from cycler import cycler

from flamebook.records import LOOKS


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
    with mpl.rc_context(cast(Any, settings(theme, salt))):
        yield Pen(theme)


def settings(theme: Theme, salt: str) -> dict[str, Any]:
    """Matplotlib's settings for a theme; the salt fixes the ids inside an SVG."""
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
