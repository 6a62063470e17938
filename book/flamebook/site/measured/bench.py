"""What the page *Defend your epsilon* shows: recorded answers of ``flamelib compare``, read on the safe side.

The page cannot compute, so it looks up the tables of :mod:`flamebook.site.measured.bench_grid`, which ``flamelib record
bench`` has computed by the same functions.  What is said of a mechanism there beside its numbers stands here.
"""

import json
from pathlib import Path
from typing import NamedTuple

import yaml

from flamebook.places import ROOT, repository
from flamebook.site.measured.bench_grid import RECORDED


class Shown(NamedTuple):
    """What the page says of a mechanism.

    ``needs`` is whom it relies on: nobody, a shuffler, the noise of others behind a secure sum or shufflers, or the
    server.  Its upper end rests on ``theorem``, the ``statement`` of the theorem index, which the book proves or cites.
    """

    title: str
    needs: str
    statement: str
    theorem: str
    rests_on: str = "proven"


SHOWN = {
    "local": Shown("Local reports, each private by itself", "nobody", "flame:lem-2",
        "basic composition of local budgets"),
    "local Gaussian": Shown("Local Gaussian noise", "nobody", "participation:thm-2.4",
        "Theorem 8 of Balle and Wang (2018) on the Gaussian mechanism"),
    "trusted curator": Shown("Trusted curator, noise on the sum", "server", "participation:thm-2.4",
        "Theorem 8 of Balle and Wang (2018), or on the Laplace mechanism where its noise is less"),
    "blanket": Shown("Shuffled randomized response (privacy blanket)", "shuffler", "blanket:lem-reduction",
        "the privacy blanket's reduction to a sum, composed over reports and rounds"),
    "simple": Shown("SS-Simple: shuffled Laplace reports", "shuffler", "flame:account",
        "the privacy blanket's reduction to a sum, composed over coordinates and rounds"),
    "double": Shown("SS-Double: shuffled reports, sampled and padded", "shuffler", "flame:account",
        "subsampling, padding and the privacy blanket, composed over coordinates and rounds"),
    "topk": Shown("SS-Topk: shuffled reports of the largest numbers", "shuffler", "flame:account",
        "the privacy blanket's reduction to a sum, composed over reported coordinates"),
    "shuffled check-in": Shown("Self check-in, shuffled reports", "shuffler", "checkin:shuffled",
        "the book's proposition “One sum for shuffled check-in”, over rounds"),
    "distributed check-in": Shown("Self check-in, noise of everybody on a secure sum", "others", "checkin:distributed",
        "the book's proposition “The pair of distributed check-in”"),
    "random participation": Shown("Random participation, noise of the server", "server", "participation:rounds",
        "Theorem 4.1 of random participation, read as outer, over rounds"),
    "cloak, Theorem 1": Shown("Sum in shares, truncated Laplace noise (Invisibility Cloak)", "others", "cloak:thm-1",
        "Theorem 1 of cloak aggregation with explicit constants"),
    "cloak, Pólya noise": Shown("Sum in shares, Pólya noise", "others", "cloak:best-2",
        "discrete Laplace noise by Pólya shares, and a bound on what shares leak"),
    "cloak, Skellam noise": Shown("Sum in shares, Skellam noise", "others", "cloak:plan",
        "the Rényi bound of Agarwal, Kairouz and Liu (2021) on Skellam noise", "cited"),
    "cloak, no noise": Shown("Sum in shares, no noise", "others", "cloak:thm-2",
        "Theorem 2 of cloak aggregation with explicit constants"),
}  # fmt: skip


def script(recorded: Path = RECORDED) -> str:
    """The recorded tables as a script, because a page opened from disk may load scripts and nothing else."""
    table = json.loads(recorded.read_text(encoding="utf-8"))
    edition = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    told = {"version": edition["version"], "date": str(edition["date-released"]), "address": repository(ROOT)}
    table["edition"] = told
    for one in table["mechanisms"]:
        one |= SHOWN[one["name"]]._asdict()
    return f"flamelibDefend.receive({json.dumps(table, separators=(',', ':'), ensure_ascii=False)});\n"
