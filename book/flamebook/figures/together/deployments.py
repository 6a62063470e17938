"""Three deployments: which mechanism meets the requirements at these values, and what the choice costs, in words."""

import math
from collections.abc import Collection

from flamebook.figures.blanket.comparisons import as_large
from flamebook.figures.together.crossing import Crossing
from flamebook.statements import Finding, at_most, compared, counted, silent
from flamelib.uses.requests import Request, Row

FEW_BITS = 64  # of an upload that is sent once, from anywhere
CURATOR, BLANKET, REPORTS, NOISE = "trusted curator", "blanket", "shuffled check-in", "distributed check-in"
SHARES = ("cloak, Pólya noise", "cloak, Skellam noise")
NAMED = {
    "local": "reports that are private by themselves",
    "local Gaussian": "Gaussian noise on every report",
    BLANKET: "the blanket protocol",
    "cloak, Theorem 1": "cloak aggregation by the rule of its Theorem 1",
    "cloak, Pólya noise": "cloak aggregation with Pólya noise",
    "cloak, Skellam noise": "cloak aggregation with Skellam noise",
    REPORTS: "shuffled check-in",
    NOISE: "distributed check-in",
}


def chosen(record: Crossing, bits: float = math.inf, names: Collection[str] | None = None) -> Row | None:
    """The row that errs least among those of these names that hide a user and send at most so many bits.

    The curator is no candidate, nor is a row whose epsilon is not comparable; none where no candidate is left.
    """
    fitting = [one for one in record.found if one.mechanism != CURATOR and not one.warning and one.bits <= bits]
    return min((one for one in fitting if names is None or one.mechanism in names), key=_error, default=None)


def _error(one: Row) -> float:
    return one.error


def name_of(record: Crossing, bits: float = math.inf) -> str:
    """The name of the chosen mechanism, or ``none``."""
    row = chosen(record, bits)
    return row.mechanism if row else "none"


def keyboard(record: Crossing, request: Request) -> dict[str, str]:
    """The list of words: the most exact of the small uploads, beside sums of shares and reports without a shuffler."""
    best, shares = chosen(record, FEW_BITS), chosen(record, names=SHARES)
    told = {"keyboard_words": f"{request.dimension:,}", "keyboard_users": f"{request.n_users:,}"}
    told |= {"keyboard_times": _so_often(request.rounds), "few_bits": str(FEW_BITS)}
    if best is None:
        return told | {"keyboard_choice": "none", "keyboard_story": "No mechanism needs so few bits."}
    curator, local, said = (
        record.best(CURATOR),
        record.best("local"),
        [f"The error of its frequencies is {best.error:.3g}."],
    )
    if shares is None:
        said += ["No sum of shares serves this request."]
    elif best.mechanism not in SHARES:
        said += [
            f"That is {as_large(best.error / shares.error)} the error of {NAMED[shares.mechanism]}, but a phone sends "
            f"{_bits(best)} in place of {_bits(shares)} in {counted(round(shares.messages), 'message')}."
        ]
    if shares and curator:
        # Discrete Laplace noise varies slightly less than the curator's continuous noise of the same epsilon.
        why = ", whose noise is continuous; noise in whole numbers varies a little less"
        below = why * (shares.error < curator.error)
        said += [f"The sum of shares has an error {as_large(shares.error / curator.error)} the curator's{below}."]
    if local and best.mechanism != "local":
        said += [
            f"Without a shuffler the error at the same budget is {as_large(local.error / best.error)} that of "
            f"the choice: {local.error:.3g}, while the average frequency of a word is {1 / request.dimension:.3g}."
        ]
    return told | {"keyboard_choice": NAMED[best.mechanism], "keyboard_story": " ".join(said)}


def hospitals(record: Crossing, request: Request) -> dict[str, str]:
    """The wards: whoever errs least, beside the curator, the blanket and the row that protects no hospital."""
    best, curator, exact = chosen(record), record.best(CURATOR), record.best("cloak, no noise")
    told = {"hospital_users": f"{request.n_users:,}", "hospital_times": _so_often(request.rounds)}
    told["hospital_numbers"] = f", {request.dimension:,} numbers each," if request.dimension > 1 else ""
    told["tempting_row"] = (
        f"The last row of the table has an error of {exact.error:.3g} at the same $\\varepsilon$."
        if exact
        else "It would be cloak aggregation without noise, which does not serve this request."
    )
    if best is None or curator is None:
        none = {"hospital_choice": "none", "hospital_error": "unknown size"}
        return told | none | {"hospital_story": "No mechanism serves this request."}
    said = ["It has the least error among the mechanisms that protect a hospital.", f"Its error is {best.error:.3g}, "]
    said[1] += f"{as_large(best.error / curator.error)} the curator's."
    for other in (record.best(BLANKET), chosen(record, names=SHARES)):
        if other and other.mechanism != best.mechanism:
            said += [f"The error of {NAMED[other.mechanism]} is {as_large(other.error / best.error)} that."]
    return told | {
        "hospital_choice": NAMED[best.mechanism],
        "hospital_story": " ".join(said),
        "hospital_error": f"{best.error:.3g}",
    }


def phones(record: Crossing, request: Request, error: float) -> dict[str, str]:
    """The readings: reports in random order if they are exact enough, beside noise in the sum and a trusted server."""
    days = request.sampling_rate * request.rounds
    on_days = f"{days:,.0f}" if days >= 10 else f"{days:.2g}"
    told = {"phone_users": f"{request.n_users:,}", "phone_times": _so_often(request.rounds)}
    told |= {"phone_readings": counted(request.dimension, "reading"), "phone_days": f"{on_days} of {request.rounds:,}"}
    reports, noise = record.best(REPORTS), record.best(NOISE)
    server, shares = record.best("random participation"), chosen(record, names=SHARES)
    told["account_story"] = _decided(reports, noise)
    if reports is None:
        none = "Shuffled check-in, the one candidate that needs no list, does not serve this request."
        return told | {"phone_choice": "none", "phone_story": none}
    enough = reports.error < error
    said = [
        f"Its error is {reports.error:.3g}, which is within the {error:g} that is asked for."
        if enough
        else f"Shuffled check-in has an error of {reports.error:.3g}, more than the {error:g} that is asked for.",
        f"The local budget of its reports is {(local := reports.parameters['epsilon0']):.3g}: one report alone, with "
        f"its sender, may change the odds of two values by a factor of up to {at_most(math.exp(local), 3)}.",
    ]
    if noise:
        said += [f"With noise in the sum the error is {noise.error:.3g}."]
    if noise and request.absence:
        absent = as_large(noise.error / math.sqrt(request.absence))
        said += [f"That is {absent} the error that absent phones can cause by themselves."]
    if noise and server:
        said += [f"It is {as_large(noise.error / server.error)} the error of a trusted server with the same coins."]
    if shares:
        said += [f"Sums of shares of all phones have an error of {shares.error:.3g}."]
    return told | {"phone_choice": NAMED[REPORTS] if enough else "none of these", "phone_story": " ".join(said)}


def claims_more(record: Crossing, name: str, factor: float) -> Finding:
    """Whether the document's own bound is so many times the certified epsilon, or more."""
    row = record.best(name)
    if row is None or row.claimed is None:
        return silent(f"{name} does not serve this request" if row is None else "the document's bound says nothing")
    return compared(row.claimed / row.epsilon if row.epsilon else math.nan, ">", factor)


def reaches(record: Crossing, name: str, error: float) -> Finding:
    """Whether a mechanism errs less than is asked for."""
    row = record.best(name)
    return compared(row.error, "<", error) if row else silent(f"{name} does not serve this request")


def saves(record: Crossing, one: str, other: str, factor: float) -> Finding:
    """Whether a mechanism sends so many times fewer bits than another."""
    rows = record.best(one), record.best(other)
    if not (rows[0] and rows[1]):
        return silent(f"{one if rows[0] is None else other} does not serve this request")
    return compared(rows[1].bits / rows[0].bits, ">", factor)


def not_comparable(record: Crossing, name: str) -> Finding:
    """Whether a row carries a warning."""
    row = record.best(name)
    return Finding(bool(row.warning)) if row else silent(f"{name} does not serve this request")


def _decided(*rows: Row | None) -> str:
    told = [
        f"epsilon is {one.claimed:.4g} for {NAMED[one.mechanism]}, where {at_most(one.epsilon)} is certified"
        for one in rows
        if one and one.claimed is not None
    ]
    return (
        f"By the document's own bounds {', and '.join(told)}."
        if told
        else "The document's own bounds say nothing here."
    )


def _bits(one: Row) -> str:
    return counted(round(one.bits), "bit")


def _so_often(rounds: int) -> str:
    return "once" if rounds == 1 else f"{rounds:,} times"
