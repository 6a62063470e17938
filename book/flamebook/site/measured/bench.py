"""What the page *Defend your epsilon* shows: recorded answers of ``flamelib compare``, read on the safe side.

The page cannot compute, so it looks up the tables of :mod:`flamebook.site.measured.bench_grid`, which ``flamelib record
bench`` has computed by the same functions.  What is said of a mechanism there beside its numbers stands here.
"""

import json
from pathlib import Path

import yaml

from flamebook.places import ROOT
from flamebook.site.measured.bench_grid import RECORDED

TITLES = {
    "local": "Local reports, each private by itself",
    "local Gaussian": "Local Gaussian noise",
    "trusted curator": "Trusted curator, noise on the sum",
    "blanket": "Shuffled randomized response (privacy blanket)",
    "simple": "SS-Simple: shuffled Laplace reports",
    "double": "SS-Double: shuffled reports, sampled and padded",
    "topk": "SS-Topk: shuffled reports of the largest numbers",
    "shuffled check-in": "Self check-in, shuffled reports",
    "distributed check-in": "Self check-in, noise of everybody on a secure sum",
    "random participation": "Random participation, noise of the server",
    "cloak, Theorem 1": "Sum in shares, truncated Laplace noise (Invisibility Cloak)",
    "cloak, Pólya noise": "Sum in shares, Pólya noise",
    "cloak, Skellam noise": "Sum in shares, Skellam noise",
    "cloak, no noise": "Sum in shares, no noise",
}
"""What a mechanism is called on the page."""

NEEDS = {
    "local": "nobody", "local Gaussian": "nobody", "blanket": "shuffler", "simple": "shuffler", "double": "shuffler",
    "topk": "shuffler", "shuffled check-in": "shuffler", "distributed check-in": "others", "cloak, Theorem 1": "others",
    "cloak, Pólya noise": "others", "cloak, Skellam noise": "others", "cloak, no noise": "others",
    "random participation": "server", "trusted curator": "server",
}  # fmt: skip
"""Whom a mechanism relies on: nobody, a shuffler, the noise of others behind a secure sum or shufflers, the server."""

STATEMENTS = {
    "local": ("flame:lem-2", "basic composition of local budgets"),
    "local Gaussian": ("participation:thm-2.4", "Theorem 8 of Balle and Wang (2018) on the Gaussian mechanism"),
    "trusted curator": (
        "participation:thm-2.4",
        "Theorem 8 of Balle and Wang (2018), or on the Laplace mechanism where its noise is less",
    ),
    "blanket": ("blanket:lem-reduction", "the privacy blanket's reduction to a sum, composed over reports and rounds"),
    "simple": ("flame:account", "the privacy blanket's reduction to a sum, composed over coordinates and rounds"),
    "double": ("flame:account", "subsampling, padding and the privacy blanket, composed over coordinates and rounds"),
    "topk": ("flame:account", "the privacy blanket's reduction to a sum, composed over reported coordinates"),
    "shuffled check-in": ("checkin:shuffled", "the book's proposition “One sum for shuffled check-in”, over rounds"),
    "distributed check-in": ("checkin:distributed", "the book's proposition “The pair of distributed check-in”"),
    "random participation": ("participation:rounds", "Theorem 4.1 of random participation, read as outer, over rounds"),
    "cloak, Theorem 1": ("cloak:thm-1", "Theorem 1 of cloak aggregation with explicit constants"),
    "cloak, Pólya noise": ("cloak:best-2", "discrete Laplace noise by Pólya shares, and a bound on what shares leak"),
    "cloak, Skellam noise": ("cloak:plan", "the Rényi bound of Agarwal, Kairouz and Liu (2021) on Skellam noise"),
    "cloak, no noise": ("cloak:thm-2", "Theorem 2 of cloak aggregation with explicit constants"),
}
"""Statement of the theorem index, and the theorem in words, on which a mechanism's upper end rests."""

CITED = frozenset({"cloak, Skellam noise"})
"""Mechanisms whose epsilon rests on a theorem that the book cites; the others are proven."""


def script(recorded: Path = RECORDED) -> str:
    """The recorded tables as a script, because a page opened from disk may load scripts and nothing else."""
    table = json.loads(recorded.read_text(encoding="utf-8"))
    edition = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    table["edition"] = {"version": edition["version"], "date": str(edition["date-released"])}
    for one in table["mechanisms"]:
        name = one["name"]
        one |= {"title": TITLES[name], "needs": NEEDS[name], "rests_on": "cited" if name in CITED else "proven"}
        one |= dict(zip(("statement", "theorem"), STATEMENTS[name], strict=True))
    return f"flamelibDefend.receive({json.dumps(table, separators=(',', ':'), ensure_ascii=False)});\n"
