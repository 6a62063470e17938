"""Tables as text, and what each bound is called and how it looks in all figures.

Nothing here draws, so that claims, attacks and experiments can share it; the hues stand in
:mod:`flamebook.figures.style`.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Parameters = Mapping[str, float | str]

Dash = str | tuple[float, tuple[float, ...]]  # of a line: a name, or an offset and the lengths of strokes and gaps


def to_csv(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Comma-separated text with every digit of every number.

    >>> to_csv(["n_users", "epsilon"], [(1000, 0.1)])
    'n_users,epsilon\\n1000,0.1\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_plain(cell) for cell in row] for row in rows)
    return text.getvalue()


def columns_csv(columns: Mapping[str, Iterable[object]]) -> str:
    """The same from columns of one length, by name.

    >>> columns_csv({"n_users": [1000, 2000], "epsilon": [0.1, 0.05]})
    'n_users,epsilon\\n1000,0.1\\n2000,0.05\\n'
    """
    return to_csv(list(columns), zip(*columns.values(), strict=True))


def _plain(cell: object) -> object:
    value = cell.item() if isinstance(cell, np.generic) else cell
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value


# --- what bounds and protocols are called ----------------------------------------------------------------------------

SOLID: Dash = "-"
DASHED: Dash = (0, (6, 2))
DOTTED: Dash = (0, (1.2, 1.6))
DASHDOT: Dash = (0, (7, 2, 1.5, 2))
DASHDOTDOT: Dash = (0, (7, 2, 1.5, 2, 1.5, 2))


@dataclass(frozen=True, slots=True)
class Look:
    """How one bound or protocol is drawn, and what it is called."""

    label: str
    hue: str
    dash: Dash = SOLID
    marker: str = ""
    width: float = 2.0


LOOKS: dict[str, Look] = {
    "hoeffding": Look("Hoeffding", "vermillion", DASHED),
    "bennett": Look("Bennett", "purple", DASHDOT),
    "withdrawn": Look("Bennett, withdrawn", "purple", DOTTED, width=2.6),
    "blanket": Look("blanket divergence", "blue", SOLID, width=2.6),
    "clones-2021": Look("clones 2021", "ochre", DASHDOTDOT),
    "clones-2023": Look("clones 2023", "ochre", SOLID),
    "any": Look("clones of any randomizer", "blue", SOLID, width=2.6),
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
    "np": Look("NP-FL", "black", DOTTED, width=2.6),
    "dp": Look("DP-FL", "green", DASHED, "v"),
    "ldp": Look("LDP-FL", "grey", DASHDOT, "s"),
    "simple": Look("SS-Simple", "purple", DASHDOTDOT, "^"),
    "double": Look("SS-Double", "ochre", DASHED, "D"),
    "topk": Look("SS-Topk", "blue", SOLID, "o", width=2.6),
    "sparse": Look("largest coordinates, no noise", "sky", DASHED, "s"),
    "certified": Look("certified upper bound", "blue", SOLID, "o", width=2.6),
    "theorem-4": Look("Theorem 4, blanket divergence", "vermillion", DASHED, "s"),
    "double-hidden": Look("SS-Double, every coordinate counted", "ochre", DOTTED, width=2.6),
    "unshuffled": Look("composition alone, no shuffler", "grey", DASHDOT),
    "clipped": Look("all coordinates, no noise", "vermillion", DASHDOT, "^"),
    "outer": Look("outer (certified)", "blue", SOLID, width=2.6),
    "turning": Look("outer, angles told apart", "black", DOTTED, width=2.8),
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
    "checkin-clones": Look("any randomizer, clones 2021", "ochre", DASHDOTDOT, "v"),
    "lower-any": Look("lower bound, any randomizer", "green", DASHDOT),
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
    "own-4": Look("one swap among all users", "sky", DASHDOT, "^"),
    "own-5": Look("the same by the second moment", "vermillion", DOTTED, width=2.6),
    "own-6": Look("one user, P\N{LATIN SMALL LETTER O WITH ACUTE}lya noise", "green", DASHED, "v"),
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
    "book-loop": Look("the book's own loop", "black", DOTTED, "o", width=2.8),
    "flower": Look("Flower, on all test images", "blue", DASHED, "D"),
    "flower-told": Look("Flower, summed in shares", "ochre", DASHDOT, "s"),
    "budget": Look("budget", "vermillion", DASHED),
    "opacus-flamelib": Look("this library (certified)", "blue", SOLID, "o", width=2.6),
    "opacus-prv": Look("Opacus, PRV", "ochre", DASHDOT, "s"),
    "opacus-rdp": Look("Opacus, RDP", "vermillion", DASHED, "^"),
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
