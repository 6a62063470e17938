"""Answers by id: one registered statement, its inputs by name, one JSON object.

Nothing here prints; :mod:`flamelib.cli` does.  A refusal is a
:class:`~flamelib.core.vocabulary.DomainError`; any other exception is a fault of the library and stays one.
"""

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

from flamelib.core.guarantees import Certified
from flamelib.core.profiles import BUCKETED, AnyProfile, GaussianProfile, LaplaceProfile
from flamelib.core.statements import STATEMENTS, Statement, homes
from flamelib.core.vocabulary import VOCABULARY, DomainError, known, once

PROFILES: dict[str, Any] = BUCKETED | {p.kind: p for p in (LaplaceProfile, GaussianProfile, AnyProfile)}


def statement(key: str) -> Statement:
    """The registered statement of this id, its module imported on demand; a refusal lists near ids."""
    if key not in STATEMENTS and key in homes():
        import_module(homes()[key])
    if key in STATEMENTS:
        return STATEMENTS[key]
    import difflib  # a refusal has time

    near = difflib.get_close_matches(key, homes(), n=3, cutoff=0.6)
    meant = f"did you mean {' or '.join(near)}" if near else f"ids begin with {', '.join(prefixes())}"
    raise DomainError(f"id must be a registered one (flamelib evaluate --list prints them), got {key!r}: {meant}?")


def prefixes() -> list[str]:
    """What ids begin with: the documents that have statements."""
    return list(dict.fromkeys(key.partition(":")[0] + ":" for key in homes()))


def load_all() -> dict[str, Statement]:
    """Every registered statement, in order of document and id."""
    for module in dict.fromkeys(homes().values()):
        import_module(module)
    return {key: STATEMENTS[key] for key in homes()}


def answer(key: str, inputs: Mapping[str, Any], text: bool = True) -> dict[str, Any]:
    """The answer of a statement to named inputs, ready for :func:`json.dumps`.

    Parameters
    ----------
    key : str
        An id such as ``blanket:lem-hoeffding``.
    inputs : mapping
        Numbers; ``randomizer`` is a word and stands beside its own parameters.
    text : bool
        Whether a number may also be written as text, as on the command line.

    Returns
    -------
    dict
        ``id``, ``value``, ``gives``, ``adjacency``, ``rests_on`` (unless the answer is a formula's value, which
        promises nothing), ``assumes`` (where a proven answer stands on more than its theorem), ``inputs``,
        ``source``, and ``uncertainty`` where the value carries a numerical error (already added on the safe side).

    Raises
    ------
    DomainError
        If the id is unknown or an input is unknown, missing or outside its domain.
    """
    found = statement(key)
    accepted = accept(found, inputs, text)
    arguments = assemble(found, accepted)
    value = found.function(**arguments)
    reply = {
        "id": key,
        "value": plain(value),
        "gives": str(found.given(arguments)),
        "adjacency": str(found.adjacency),
    }
    ground, assumed = found.stands_on(arguments), found.assumed(arguments)
    reply |= ({"rests_on": str(ground)} if ground else {}) | ({"assumes": assumed} if assumed else {})
    reply |= {"inputs": accepted, "source": found.source}
    return reply | ({"uncertainty": plain(value.uncertainty)} if isinstance(value, Certified) else {})


def assignments(words: Iterable[str]) -> dict[str, str]:
    """The words ``name=value`` as a mapping; refuses a word without ``=`` and a name given twice."""
    found: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            domain = f": {VOCABULARY[word]}" if word in VOCABULARY else ""
            raise DomainError(f"{word!r} must be written name=value{domain}")
        if name in found:
            raise DomainError(f"{name} is given twice, as {found[name]!r} and {value!r}; it takes one value")
        found[name] = value
    return found


def accept(found: Statement, inputs: Mapping[str, Any], text: bool = True) -> dict[str, Any]:
    """The inputs, of which numbers may be written as text, as plain numbers and words of their domains, in order."""
    allowed = flat(found, _kind(found, inputs))
    what = found.id + (f" with randomizer={inputs['randomizer']}" if "randomizer" in inputs else "")
    known(inputs, allowed, [name for name, required in allowed.items() if required], what)
    domains = {name: found.domain(name) for name in inputs}
    return {name: (one.read if text else one.accept)(name, inputs[name]) for name, one in domains.items()}


def flat(found: Statement, kind: str | None) -> dict[str, bool]:
    """Name of every input and whether it is required, the parameters of the randomizer spelled out."""
    names: dict[str, bool] = {}
    for name, parameter in found.parameters.items():
        names[name] = parameter.default is parameter.empty
        if name == "randomizer" and kind is not None:
            names |= dict.fromkeys(_fields(kind), True)
    return names


def assemble(found: Statement, accepted: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the function: the randomizer's word and parameters become one object."""
    kind = accepted.get("randomizer") if found.randomizers else None
    arguments = {name: value for name, value in accepted.items() if name in found.parameters}
    if kind is not None:
        arguments["randomizer"] = PROFILES[kind](**{name: accepted[name] for name in _fields(kind)})
    return arguments


def _fields(kind: str) -> list[str]:
    return [field.name for field in dataclasses.fields(PROFILES[kind])]


def _kind(found: Statement, inputs: Mapping[str, Any]) -> str | None:
    parameter = found.parameters.get("randomizer")
    if parameter is None or not found.randomizers:
        return None
    if "randomizer" not in inputs and parameter.default is not parameter.empty:
        return None
    choices = ", ".join(found.randomizers)
    if "randomizer" not in inputs:
        raise DomainError(f"randomizer is missing for {found.id}: one of {choices}")
    kind = inputs["randomizer"]
    if not isinstance(kind, str) or kind not in found.randomizers:
        raise DomainError(f"randomizer must be one of {choices} for {found.id}, got {kind!r}")
    return kind


def plain(value: Any) -> Any:
    """The value in strict JSON: infinities as text, records and arrays spelled out; NaN is a fault."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    return _number(value) if isinstance(value, float) else plain(value.tolist())


def _number(value: float) -> float | str:
    if math.isnan(value):
        raise ArithmeticError("the answer is not a number")
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(value) + 0.0


def dumps(reply: Mapping[str, Any]) -> str:
    """One line of strict JSON, floats with every digit."""
    return json.dumps(reply, allow_nan=False)


def sentence(refusal: Exception | str) -> str:
    """The refusal as one line of bounded length: of a longer one the beginning, and the end with what was given."""
    line = " ".join(str(refusal).split())
    return line if len(line) <= 1000 else f"{line[:600]} ... {line[-395:]}"


def replies(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """One reply for each request line ``{"id": ..., "inputs": {...}}``, in order; blank lines are passed over.

    A refused request is answered ``{"id", "refused"}``.  A fault of the library is answered
    ``{"id", "failed"}`` with the traceback's text, never as a refusal, and the next request is still answered.
    """
    for line in lines:
        if line.strip():
            yield _reply(line)


def _reply(line: str) -> dict[str, Any]:
    key: Any = None
    try:
        request = _request(line)
        key = request.get("id")
        return answer(*_parts(request))
    except DomainError as refusal:
        return {"id": key, "refused": sentence(refusal)}
    except Exception:
        import traceback

        return {"id": key, "failed": traceback.format_exc()}


def _request(line: str) -> dict[str, Any]:
    form = 'a request must be one line of JSON, {"id": ..., "inputs": {...}}'
    try:
        request = json.loads(line, object_pairs_hook=once)
    except DomainError:
        raise
    except (ValueError, RecursionError):
        raise DomainError(form) from None
    if not isinstance(request, dict):
        raise DomainError(form)
    return request


def _parts(request: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    known(request, {"id": None, "inputs": None}, (), "a request")
    key, inputs = request.get("id"), request.get("inputs", {})
    if not isinstance(key, str):
        raise DomainError(f"id must be a text, got {key!r}")
    if not isinstance(inputs, dict):
        raise DomainError(f"inputs must be an object of names and values, got {inputs!r}")
    return key, inputs


def listing(prefix: str = "") -> Iterator[str]:
    """Lines that describe every statement whose id begins with ``prefix``: what it gives, its inputs, their domains."""
    for key, found in load_all().items():
        if key.startswith(prefix):
            yield from _describe(key, found)


def _describe(key: str, found: Statement) -> Iterator[str]:
    ground = "depends on the inputs" if callable(found.rests_on) else found.rests_on
    yield f"{key}   {_direction(found)}, {found.adjacency}" + (f"; {ground}" if ground else "")
    yield f"    {found.source}"
    for name, parameter in found.parameters.items():
        if name == "randomizer" and found.randomizers:
            yield f"    {name:<19}one of " + "; ".join(f"{k} (with {', '.join(_fields(k))})" for k in found.randomizers)
            for field in dict.fromkeys(f for k in found.randomizers for f in _fields(k)):
                yield f"      {field:<17}{VOCABULARY[field]}"
        elif not (found.either and name in ("epsilon", "delta")):
            optional = "" if parameter.default is parameter.empty else " (may be left out)"
            yield f"    {name:<19}{found.domain(name)}{optional}"
    if found.either:
        yield f"    either epsilon ({VOCABULARY['epsilon']}) or delta ({VOCABULARY['delta']}); answers with the other"
    yield ""


def _direction(found: Statement) -> str:
    if not callable(found.gives):
        return str(found.gives)
    said = {k: str(found.given({"randomizer": PROFILES[k](**dict.fromkeys(_fields(k), 2))})) for k in found.randomizers}
    return ", ".join(f"{gives} for {kind}" for kind, gives in said.items()) or "depends on the inputs"
