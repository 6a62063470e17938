"""What the page of sliders shows: which closed forms, at which inputs, and their answers.

The page runs this module in the browser, on the very sources of the package; the build runs it once over
:data:`AXES` for a reader whose browser cannot.  Answers come from :mod:`flamelib.companion.evaluate`, so a
row is what the command line under it prints.  Standard library only.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from flamelib._validate import DomainError, check
from flamelib.amplification import closed_form
from flamelib.companion.evaluate import answer, plain, sentence, statement
from flamelib.profiles import KaryProfile

Inputs = Mapping[str, Any]

# The grid of the page without Python in it: enough to see every slope, small enough to send along.
AXES: dict[str, tuple[float, ...]] = {
    "epsilon0": (0.1, 0.2, 0.5, 1, 2, 3, 4, 6, 8),
    "n_users": (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000),
    "delta": (1e-12, 1e-9, 1e-6, 1e-4, 1e-2),
    "n_buckets": (2, 10, 100, 1000),
    "epsilon": (0.1, 0.25, 0.5, 1),
    "n_messages": (2, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    "log2_modulus": (8, 16, 24, 32, 40, 53, 64),
}
USERS = tuple(round(10 ** (2 + step / 4)) for step in range(29))


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the page: a registered statement, the randomizer it is asked about, its inputs.

    ``answers`` says what its value is, or which part of an answer of several.
    """

    statement: str
    label: str
    randomizer: str
    needs: tuple[str, ...]
    answers: str = "epsilon"

    @property
    def key(self) -> str:
        """Name of the row in the page."""
        return f"{self.statement.replace(':', '-').replace('.', '-')}-{self.randomizer}-{self.answers}"

    def inputs(self, given: Inputs) -> dict[str, Any]:
        """The named inputs as the command line takes them."""
        word = {"randomizer": self.randomizer} if self.statement in _WITH_RANDOMIZER else {}
        named = word | {name: given[name] for name in self.needs}
        return _OTHERWISE[self.statement](named) if self.statement in _OTHERWISE else named


def _shares(named: dict[str, Any]) -> dict[str, Any]:
    """The modulus of so many bits in the place of its logarithm; too many are refused, not computed."""
    bits = round(min(named.pop("log2_modulus"), 1000.0))
    return {"modulus": 2 ** max(bits, 1)} | named


def _whole_error(named: dict[str, Any]) -> dict[str, Any]:
    return named | {"error": 1}


def _security(named: dict[str, Any]) -> dict[str, Any]:
    """Bits of security for a failure probability."""
    delta = named.pop("delta")
    return {"security_bits": -math.log2(delta) if delta else math.inf} | named


_WITH_RANDOMIZER = ("blanket:lem-5.1", "blanket:lem-hoeffding", "blanket:lem-bennett")
_OTHERWISE = {
    "cloak:own-1": _shares,
    "cloak:own-2": _shares,
    "cloak:best-1": _security,
    "cloak:thm-2": _whole_error,
}
_ANY = ("epsilon0", "n_users", "delta")
_TARGET = ("n_users", "n_buckets", "epsilon", "delta")
_KARY = ("epsilon0", "n_buckets", "n_users", "delta")
ROWS: tuple[Row, ...] = (
    Row("blanket:lem-5.1", "Blanket mass", "kary", ("epsilon0", "n_buckets"), "mass"),
    Row("blanket:thm-3.1", "Theorem 3.1, mass for the target", "kary", _TARGET, "mass"),
    Row("blanket:thm-3.1", "Theorem 3.1", "kary", _KARY),
    Row("blanket:lem-hoeffding", "Hoeffding", "kary", _KARY),
    Row("blanket:lem-hoeffding", "Hoeffding", "laplace", _ANY),
    Row("blanket:lem-hoeffding", "Hoeffding", "any", _ANY),
    Row("blanket:lem-bennett", "Bennett", "kary", _KARY),
    Row("blanket:lem-bennett", "Bennett", "laplace", _ANY),
    Row("blanket:lem-bennett", "Bennett", "any", _ANY),
    Row("clones:2021-closed", "Clones, closed form", "any", _ANY),
    Row("blanket:erlingsson", "Erlingsson et al.", "any", _ANY),
    Row("cloak:own-1", "Two users in shares", "shares", ("n_messages", "log2_modulus"), "distance"),
    Row("cloak:own-2", "Two users in shares", "shares", ("n_messages", "log2_modulus", "epsilon"), "delta"),
    Row("cloak:best-1", "Shares among all users", "shares", ("n_users", "delta", "log2_modulus"), "messages"),
    Row("cloak:thm-2", "Rule T2, error 1", "shares", ("n_users", "epsilon", "delta"), "bits"),
    Row("cloak:thm-1", "Rule T1", "shares", ("n_users", "epsilon", "delta"), "bits"),
    Row("cloak:thm-1", "Rule T1", "shares", ("n_users", "epsilon", "delta"), "noise_bound"),
)


def answers(given: Inputs) -> dict[str, dict[str, Any]]:
    """Answer or refusal of every row, by its key.

    Parameters
    ----------
    given : mapping
        ``epsilon0``, ``n_users``, ``delta``, ``n_buckets``, the target ``epsilon``, ``n_messages`` and
        ``log2_modulus``, as numbers or text.

    Raises
    ------
    DomainError
        If an input lies outside its domain whatever the row.

    Examples
    --------
    >>> found = answers({"epsilon0": 1, "n_users": 1e4, "delta": 1e-6, "n_buckets": 2, "epsilon": 1,
    ...                  "n_messages": 30, "log2_modulus": 32})
    >>> round(found["blanket-lem-5-1-kary-mass"]["value"], 12), found["cloak-best-1-shares-messages"]["value"]
    (0.53788284274, 9)
    """
    inputs = check(**given)
    return {row.key: _reply(row, inputs) for row in ROWS}


def _reply(row: Row, inputs: Inputs) -> dict[str, Any]:
    try:
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


def _inverse(inputs: Inputs) -> dict[str, Any]:
    mass = closed_form.blanket_mass(KaryProfile(inputs["epsilon0"], inputs["n_buckets"]))
    called = (inputs["n_users"], inputs["n_buckets"], mass, inputs["delta"])
    words = ", ".join(map(str, called))
    code = f"from flamelib.amplification.closed_form import histogram_epsilon; print(histogram_epsilon({words}))"
    value = plain(closed_form.histogram_epsilon(*called))
    source = statement("blanket:thm-3.1").source
    return {"value": value, "gives": "upper", "source": source, "command": f'python -c "{code}"'}


def _shown(row: Row, inputs: Inputs) -> float | str | None:
    """The bare value of a row, ``None`` where the statement refuses."""
    value: float | str | None = _reply(row, inputs).get("value")
    return value


def curves(given: Inputs) -> dict[str, list[float | str | None]]:
    """Epsilon of every row that answers one, at each of :data:`USERS`; the number of users given plays no part."""
    inputs = check(**given)
    bounds = [row for row in ROWS if row.answers == "epsilon"]
    return {row.key: [_shown(row, {**inputs, "n_users": n_users}) for n_users in USERS] for row in bounds}


def grid() -> dict[str, list[float | str | None]]:
    """Value of every row over the axes it needs, the last of them running fastest."""
    return {row.key: list(_along(row)) for row in ROWS}


def _along(row: Row) -> Iterator[float | str | None]:
    for point in product(*(AXES[name] for name in row.needs)):
        yield _shown(row, check(**dict(zip(row.needs, point, strict=True))))


def layout() -> dict[str, Any]:
    """Rows, axes and the abscissae of the curves, for the page."""
    shown = ("key", "label", "randomizer", "answers", "needs")
    return {"rows": [{name: getattr(row, name) for name in shown} for row in ROWS], "axes": AXES, "users": USERS}


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
