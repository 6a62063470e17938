"""Protocols by name, as words of a command line have them, and what the questions answer as objects for JSON."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import flamelib
from flamelib.answers import plain
from flamelib.core.vocabulary import VOCABULARY, Domain, honest, known
from flamelib.front import questions
from flamelib.front.results import Bounds, Calibrated, Guarantee

QUESTIONS = ("account", "bounds", "calibrate")
#: Words of records, and of those that stand in a field, beside which their own fields are given; each to its public
#: name, whose code is loaded when it is asked for.
#:
#: :meta hide-value:
WORDS = {
    "record": {
        "shuffled": "Shuffled", "checkin": "Checkin", "participation": "Participation", "flame-simple": "FlameSimple",
        "flame-double": "FlameDouble", "flame-topk": "FlameTopk", "cloak": "Cloak",
    },
    "randomizer": {
        "kary": "KaryResponse", "laplace": "LaplaceNoise", "gaussian": "GaussianNoise", "any": "AnyRandomizer",
        "rappor": "Rappor", "oue": "OptimizedUnary", "subset": "SubsetSelection", "hadamard": "HadamardResponse",
        "local-hash": "LocalHashing", "table": "TableRandomizer",
    },
    "protocol": {"shuffled": "Shuffled", "summed": "Summed"},
}  # fmt: skip
# What may be left out though the record asks for it: no guarantee depends on where a coordinate is clipped.
DEFAULTS: dict[str, Any] = {"protocol": "shuffled", "clip": 1.0}
# Parameters that are sought where over= names none: no record has two.  The value stands for one that is left out.
SOUGHT = {"epsilon0": 1.0, "noise_std": 1.0, "decay": 0.5}
DOMAINS = VOCABULARY | {
    "record": Domain("protocol", choices=tuple(WORDS["record"])),
    "rate": VOCABULARY["checkin_rate"],
    "protocol": Domain("what those who check in take part in", choices=tuple(WORDS["protocol"])),
    "randomizer": Domain("local randomizer", choices=tuple(WORDS["randomizer"])),
    "over": Domain("parameter that is sought", choices=(*SOUGHT, "n_users")),
}


def ask(question: str, record: str, given: Mapping[str, Any]) -> Guarantee | Bounds | Calibrated:
    """The answer of ``account``, ``bounds`` or ``calibrate`` to a record by its word and inputs by name, also as text.

    A cloak without numbers of its own is the cheapest one for the budget and the error, asked about at that delta.

    Raises
    ------
    DomainError
        If a name is unknown, an input missing, or a value outside its domain, before any work.

    Examples
    --------
    >>> survey = {"randomizer": "kary", "epsilon0": "2", "n_buckets": "10", "n_users": "1e5"}
    >>> ask("account", "shuffled", survey | {"delta": "1e-8"})
    (0.03074, 1e-08)-DP, replace-one; proven
    """
    taken, what = inputs(question, record, given), f"{question} {record}"
    known(given, taken, (), what)
    read = {name: DOMAINS[name].read(name, value) for name, value in given.items()}
    if question == "calibrate":
        stand_ins = SOUGHT | {"n_users": 2 + read.get("colluding", 0)}
        sought = [read["over"]] if "over" in read else SOUGHT
        read = {name: stand_ins[name] for name in sought if name in taken} | read
    known(read, taken, [name for name, needed in taken.items() if needed], what)
    asked = {name: read[name] for name in _asked(question) if name in read}
    maker = _maker("record", record, read)
    if "epsilon" in _fields(maker, read) and question != "calibrate":
        del asked["epsilon"]
    found: Guarantee | Bounds | Calibrated = getattr(questions, question)(_made(maker, read), **asked)
    return found


def inputs(question: str, record: str, given: Mapping[str, Any]) -> dict[str, bool]:
    """Name of every input and whether it is needed, as far as the words that are given decide it."""
    taken = _fields(_maker("record", record, given), given)
    return taken | {name: needed or taken.get(name, False) for name, needed in _asked(question).items()}


def reply(found: Guarantee | Bounds | Calibrated) -> dict[str, Any]:
    """The answer as an object for JSON."""
    if isinstance(found, Calibrated):
        return {found.parameter: plain(found.value)} | reply(found.guarantee)
    ends = ("lower", "upper", "asked") if isinstance(found, Bounds) else ("epsilon", "delta")
    return {name: plain(getattr(found, name)) for name in (*ends, "adjacency", "rests_on", "assumes")}


def described() -> tuple[dict[str, str], dict[str, str]]:
    """Every record with its inputs, in brackets those that may be left out, and every input with its domain."""
    names: dict[str, bool] = {}
    records = {}
    for record, title, given in [*((one, one, {}) for one in WORDS["record"]), ("cloak", "  or", {"modulus": 0})]:
        taken = _fields(_maker("record", record, given), given)
        names |= taken
        records[title] = " ".join(name if needed else f"[{name}]" for name, needed in taken.items())
    return records, {name: f"{DOMAINS[name].about}: {DOMAINS[name]}" for name in names | _asked("calibrate")}


def _asked(question: str) -> dict[str, bool]:
    """Inputs of the question itself, and whether they are needed."""
    _, *asked = inspect.signature(getattr(questions, question)).parameters.values()
    return {one.name: one.default is one.empty for one in asked}


def _maker(name: str, word: str, given: Mapping[str, Any]) -> Callable[..., Any]:
    """What makes the record that a word stands for out of its fields."""
    made: Any = getattr(flamelib, WORDS[name][DOMAINS[name].accept(name, word)])
    own = given.keys() & {"modulus", "scale", "n_messages"}
    return made if word != "cloak" else _cloak if own else made.plan


def _cloak(
    n_users: int, modulus: int, scale: int, n_messages: int, rounding: str = "floor", decay: float | None = None,
    noise_rate: float | None = None, colluding: int = 0,
) -> Any:  # fmt: skip
    """With a decay, honest users share Pólya noise; with a noise rate as well, each may add truncated Laplace noise."""
    from flamelib.front.cloak import Cloak
    from flamelib.mechanisms.integers.noise import PolyaShare, TruncatedLaplace

    noise: Any = None
    if decay is not None:
        alone = noise_rate is not None
        noise = TruncatedLaplace(modulus, decay) if alone else PolyaShare(honest(n_users, colluding), decay)
    return Cloak(n_users, modulus, scale, n_messages, rounding, noise, noise_rate or 1.0, colluding)


def _fields(maker: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, bool]:
    """Names of the fields and whether they are needed, with those of a part; of every part while none is named."""
    own, words = inspect.signature(maker).parameters, DEFAULTS | dict(given)
    found = {name: one.default is one.empty and name not in DEFAULTS for name, one in own.items()}
    for part in own.keys() & WORDS.keys():
        for word in [words[part]] if part in words else WORDS[part]:
            beside = _fields(_maker(part, word, given), given)
            found |= {name: needed and part in words for name, needed in beside.items() if name not in own}
    return found


def _made(maker: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """The record; a name that it shares with a part is its own."""
    own, given = inspect.signature(maker).parameters, DEFAULTS | dict(given)
    rest = {name: value for name, value in given.items() if name not in own}
    return maker(**{
        name: _made(_maker(name, given[name], rest), rest) if name in WORDS else given[name]
        for name in own if name in given
    })  # fmt: skip
