"""What the page of sliders shows: the statements of :mod:`flamelib.companion.slider_rows` and their answers.

The page runs this module in the browser, on the very sources of the package; the build runs it once over
:data:`AXES` for a reader whose browser cannot.  Answers come from :mod:`flamelib.companion.evaluate`, or from the
grids of :mod:`flamelib.companion.certified`, so a row is what the command line under it prints.  Standard library only.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from flamelib.accounting.shuffling import closed_form
from flamelib.companion.certified import certified
from flamelib.companion.evaluate import answer, plain, sentence, statement
from flamelib.companion.slider_rows import PARTS, ROWS, Row
from flamelib.core.profiles import KaryProfile
from flamelib.core.vocabulary import DomainError, check

Inputs = Mapping[str, Any]

# The grid of the page without Python in it: enough to see every slope, small enough to send along.
AXES: dict[str, tuple[float, ...]] = {
    "epsilon0": (0.1, 0.2, 0.5, 1, 2, 3, 4, 6, 8),
    "n_users": (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000),
    "delta": (1e-12, 1e-9, 1e-6, 1e-4, 1e-2),
    "epsilon": (0.1, 0.25, 0.5, 1),
    "n_buckets": (2, 10, 100, 1000),
    "kept": (10, 157),
    "padded": (333, 10_000),
    "dimension": (7850, 100_000),
    "noise_std": (0.5, 1, 2, 4),
    "rounds": (1, 100, 1000, 10_000),
    "participation_rate": (0.01, 0.1, 1),
    "record_rate": (0.01, 0.1, 1),
    "n_records": (1, 2, 20),
    "checkin_rate": (0.01, 0.1, 1),
    "n_messages": (2, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    "log2_modulus": (8, 16, 24, 32, 40, 53, 64),
}
USERS = (*(round(first * 10**power) for power in range(2, 9) for first in (1, 1.8, 3, 5.6)), 10**9)
SYMBOLS = {
    "epsilon0": "ε₀",
    "n_users": "n",
    "delta": "δ",
    "n_buckets": "k",
    "kept": "k",
    "padded": "nₚ",
    "noise_std": "σ",
    "rounds": "T",
    "participation_rate": "p",
    "record_rate": "q",
    "n_records": "L",
    "checkin_rate": "γ",
    "n_messages": "m",
    "modulus": "N",
}


def answers(given: Inputs) -> dict[str, dict[str, Any]]:
    """Answer or refusal of every row, by its key.

    Parameters
    ----------
    given : mapping
        A number, or its text, for every name in :data:`AXES`; ``epsilon`` is a target.

    Raises
    ------
    DomainError
        If an input lies outside its domain whatever the row.

    Examples
    --------
    >>> found = answers({name: axis[0] for name, axis in AXES.items()} | {
    ...     "epsilon0": 1, "n_users": 1e4, "delta": 1e-6, "log2_modulus": 32})
    >>> round(found["blanket-lem-5-1-kary-mass"]["value"], 12), found["cloak-best-1-shares-messages"]["value"]
    (0.53788284274, 9)
    """
    inputs = check(**given)
    return {row.key: _reply(row, inputs) for row in ROWS}


def _reply(row: Row, inputs: Inputs) -> dict[str, Any]:
    try:
        if row.recorded:
            found = certified(row.recorded, row.inputs(inputs))
            return found | {
                "at": ", ".join(f"{SYMBOLS[name]} = {_short(value)}" for name, value in found["at"].items())
            }
        if row.statement == "blanket:thm-3.1" and row.answers == "epsilon":
            return _inverse(inputs)
        named = row.inputs(inputs)
        found = answer(row.statement, named)
        words = " ".join(f"{name}={value}" for name, value in named.items())
        command = f"flamelib evaluate {row.statement} {words}"
        value = found["value"][row.answers] if isinstance(found["value"], dict) else found["value"]
        return {"value": value, "gives": found["gives"], "source": found["source"], "command": command}
    except DomainError as refusal:
        return {"refused": sentence(refusal)}


def _short(value: float) -> str:
    """A number of a grid as a reader writes it: powers of two from 2^16 on as such."""
    return (
        f"2^{value.bit_length() - 1}"
        if isinstance(value, int) and value >= 2**16 and value & -value == value
        else f"{value:g}"
    )


def _inverse(inputs: Inputs) -> dict[str, Any]:
    mass = closed_form.blanket_mass(KaryProfile(inputs["epsilon0"], inputs["n_buckets"]))
    called = (inputs["n_users"], inputs["n_buckets"], mass, inputs["delta"])
    words = ", ".join(map(str, called))
    code = f"from flamelib.accounting.shuffling.closed_form import histogram_epsilon; print(histogram_epsilon({words}))"
    value = plain(closed_form.histogram_epsilon(*called))
    source = statement("blanket:thm-3.1").source
    return {"value": value, "gives": "upper", "source": source, "command": f'python -c "{code}"'}


def _shown(row: Row, inputs: Inputs, exactly: tuple[str, ...]) -> float | str | None:
    """The bare value of a row; ``None`` where it refuses, or where one of these inputs is not on its recorded grid."""
    if row.recorded:
        try:
            named = row.inputs(inputs)
            found = certified(row.recorded, named)
            told = found["value"] if all(found["at"].get(name) == named.get(name) for name in exactly) else None
        except DomainError:
            return None
    else:
        told = _reply(row, inputs).get("value")
    value: float | str | None = told
    return value


def curves(given: Inputs) -> dict[str, list[float | str | None]]:
    """Epsilon after one shuffled round, by every row that answers it, at each of :data:`USERS`.

    The number of users given plays no part; a row that is looked up answers at the users of its grid alone.
    """
    inputs = check(**given)
    bounds = [row for row in ROWS if row.part == "blanket" and row.answers == "epsilon"]
    return {row.key: [_shown(row, {**inputs, "n_users": n}, ("n_users",)) for n in USERS] for row in bounds}


def grid() -> dict[str, list[float | str | None]]:
    """Value of every row over the axes it needs, the last of them running fastest."""
    return {row.key: list(_along(row)) for row in ROWS}


def _along(row: Row) -> Iterator[float | str | None]:
    for point in product(*(AXES[name] for name in row.needs)):
        inputs = check(**dict(zip(row.needs, point, strict=True)))
        yield _shown(row, inputs, tuple(row.inputs(inputs)))


def layout() -> dict[str, Any]:
    """Parts, rows, axes and the abscissae of the curves, for the page."""
    shown = ("key", "part", "label", "about", "answers", "needs", "recorded")
    rows = [{name: getattr(row, name) for name in shown} for row in ROWS]
    return {"parts": PARTS, "rows": rows, "axes": AXES, "users": USERS}


def respond(request: str) -> str:
    """One message of the page, ``{"want": "answers" | "curves", "inputs": {...}}``, answered in JSON.

    >>> respond('{"want": "answers", "inputs": {"delta": 2}}')
    '{"refused": "delta must be a number in [0, 1], got 2"}'
    """
    message = json.loads(request)
    try:
        wanted = {"answers": answers, "curves": curves}[message["want"]]
        return json.dumps({"found": wanted(message["inputs"])}, allow_nan=False)
    except DomainError as refusal:
        return json.dumps({"refused": sentence(refusal)})
