"""The registry: which function computes which statement of which document.

``@states("blanket", "thm-3.1", item="Theorem 3.1", gives="value", rests_on="proven")`` makes a function callable by id
(``flamelib evaluate blanket:thm-3.1 ...``), a row of the theorem index and a target of the squeeze tests, and checks
its arguments by the vocabulary.  Standard library only.
"""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from flamelib.core.guarantees import ARITHMETIC, Adjacency, Certified, Gives, RestsOn
from flamelib.core.vocabulary import VOCABULARY, Domain, DomainError, known

P = ParamSpec("P")
R = TypeVar("R")

DOCUMENTS: dict[str, str] = {
    "blanket": "Balle, Bell, Gascon, Nissim, The Privacy Blanket of the Shuffle Model, 2019 (arXiv 1903.02837)",
    "flame": "Liu, Cao, Chen, Guo, Yoshikawa, FLAME: Private Federated Learning in the Shuffle Model, 2021",
    "participation": "Hasircioglu, Gunduz, Privacy Amplification via Random Participation, 2022",
    "checkin": "Liew, Hasegawa, Takahashi, Shuffled Check-in, 2022",
    "cloak": "Ghazi, Pagh, Velingker, "
    "Scalable and Differentially Private Distributed Aggregation in the Shuffled Model, 2019; US20220374542A1",
    "shuffle": "this project, after Balle, Bell, Gascon, Nissim 2019",
    "clones": "Feldman, McMillan, Talwar, Hiding Among the Clones, 2021; Stronger Amplification by Shuffling, 2023",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """One registered item: where it stands, what its answer is, and the function that computes it.

    ``parameters`` maps name to parameter, in order; a default of ``None`` marks an optional one.  ``rests_on`` is
    ``None`` for a statement that gives a value, which promises nothing.
    """

    id: str
    item: str
    gives: Gives | Callable[[Mapping[str, Any]], Gives]
    adjacency: Adjacency
    rests_on: RestsOn | Callable[[Mapping[str, Any]], RestsOn] | None
    assumes: str | Callable[[Mapping[str, Any]], str]
    randomizers: tuple[str, ...]
    function: Callable[..., Any]
    parameters: dict[str, inspect.Parameter]
    words: Mapping[str, tuple[str, ...]]

    def domain(self, name: str) -> Domain:
        """The domain of a parameter: that of the vocabulary, its words narrowed to those this item knows."""
        found = VOCABULARY[name]
        return replace(found, choices=self.words[name]) if name in self.words else found

    @property
    def source(self) -> str:
        """Document and item, in one line."""
        return f"{DOCUMENTS[self.id.split(':')[0]]}: {self.item}"

    @property
    def either(self) -> bool:
        """Whether exactly one of ``epsilon`` and ``delta`` is asked for (and the other answered)."""
        found = self.parameters
        return "epsilon" in found and "delta" in found and found["epsilon"].default is None

    def given(self, arguments: Mapping[str, Any]) -> Gives:
        """What the answer to these arguments is (an item may be a bound for some randomizers only)."""
        return self.gives(arguments) if callable(self.gives) else self.gives

    def stands_on(self, arguments: Mapping[str, Any]) -> RestsOn | None:
        """What the answer to these arguments rests on; ``None`` for a value."""
        if self.given(arguments) == Gives.VALUE:
            return None
        return self.rests_on(arguments) if callable(self.rests_on) else self.rests_on

    def assumed(self, arguments: Mapping[str, Any]) -> str:
        """What a proven answer to these arguments assumes beside its theorem; empty where nothing."""
        if self.stands_on(arguments) != RestsOn.PROVEN:
            return ""
        return self.assumes(arguments) if callable(self.assumes) else self.assumes


STATEMENTS: dict[str, Statement] = {}

# How a statement stands in a source, and the folders of the library in which statements are looked for.
_DOOR = "\n@states("
_STATED = re.compile(r"\s*\"([\w-]+)\",\s*\"([\w.-]+)\"")
ROOMS = ("accounting", "protocols", "mechanisms")


@functools.cache
def homes() -> dict[str, str]:
    """Id of every statement to the module that states it, in order of document and id; nothing is imported.

    The sources are read for ``@states("document", "name"``: to write it there is all that a new statement needs.
    """
    package = Path(__file__).resolve().parents[1]
    found: dict[str, str] = {}
    for path in (path for room in ROOMS for path in sorted((package / room).rglob("*.py"))):
        module = ".".join((package.name, *path.relative_to(package).with_suffix("").parts))
        # Cut at the few places where one may stand: to try every line of every source would take several times longer.
        for after in path.read_text(encoding="utf-8").split(_DOOR)[1:]:
            if not (stated := _STATED.match(after)):
                continue
            document, name = stated.groups()
            if found.setdefault(f"{document}:{name}", module) != module:
                raise RuntimeError(f"{document}:{name} has two homes: {found[f'{document}:{name}']} and {module}")
    order = list(DOCUMENTS)
    return dict(sorted(found.items(), key=lambda one: (order.index(one[0].split(":")[0]), one[0])))


def states(
    document: str,
    name: str,
    *,
    item: str,
    gives: str | Callable[[Mapping[str, Any]], Gives],
    rests_on: str | Callable[[Mapping[str, Any]], RestsOn] | None = None,
    assumes: str | Callable[[Mapping[str, Any]], str] | None = None,
    adjacency: str = "replace-one",
    randomizers: tuple[str, ...] = (),
    words: Mapping[str, tuple[str, ...]] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register the function as the one home of an item and check its arguments at the door.

    Parameters
    ----------
    document, name : str
        The id is ``document:name``.
    item : str
        Where the statement stands in the document.
    gives : str or callable
        ``upper``, ``lower``, ``exact`` or ``value``, or a function of the arguments that says which.
    rests_on : str or callable
        ``proven``, ``cited`` or ``estimated`` (:class:`~flamelib.core.guarantees.RestsOn`), or a function of the
        arguments that says which.  What is cited is named in ``item``; what is estimated may not be ``exact``.  Left
        out for a ``value``, which promises nothing.
    assumes : str or callable, optional
        What a proven answer assumes beside its theorem, or a function of the arguments that says it.  Left out, it is
        :data:`~flamelib.core.guarantees.ARITHMETIC` for a function that returns a number with its numerical error
        (``Certified``), and nothing for others.
    adjacency : str
        ``replace-one``, ``add-remove``, ``sum-preserving`` or ``none``.
    randomizers : tuple of str
        Kinds of local randomizer accepted as ``randomizer``; none where only the word for a kind is asked for.
    words : mapping from parameter to tuple of str, optional
        The words this item knows, where the vocabulary has more.
    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        key = f"{document}:{name}"
        home = (function.__module__, function.__qualname__)  # again where a module is loaded once more
        if key in STATEMENTS and (STATEMENTS[key].function.__module__, STATEMENTS[key].function.__qualname__) != home:
            raise RuntimeError(f"{key} already has a home: {STATEMENTS[key].function.__qualname__}")
        direction = gives if callable(gives) else Gives(gives)
        if (direction is Gives.VALUE) != (rests_on is None):
            raise RuntimeError(f"{key} must say what it rests on, unless it gives a value: that rests on nothing")
        ground = rests_on if callable(rests_on) or rests_on is None else RestsOn(rests_on)
        if (direction, ground) == (Gives.EXACT, RestsOn.ESTIMATED):
            raise RuntimeError(f"{key} may not say exact: an estimate is none")
        signature = inspect.signature(function)
        numerical = ARITHMETIC if signature.return_annotation is Certified else ""

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            known(kwargs, signature.parameters, (), key)
            bound = signature.bind_partial(*args, **kwargs)
            required = [p.name for p in signature.parameters.values() if p.default is p.empty]
            known(bound.arguments, signature.parameters, required, key)
            return function(**admit(STATEMENTS[key], bound.arguments))  # type: ignore[call-arg]

        parameters = dict(signature.parameters)
        found = Statement(
            key, item, direction, Adjacency(adjacency), ground, numerical if assumes is None else assumes, randomizers,
            checked, parameters, words or {},
        )  # fmt: skip
        STATEMENTS[key] = found
        checked.__doc__ = described(inspect.getdoc(function) or "", found)
        return checked

    return register


_RULE = "\n----------\n"
# An own entry (names, type, indented text), and where the section of parameters, or the text before it, ends.
_ENTRY = re.compile(r"^(\w[^:\n]*?)(?: : (.*))?\n((?:\n*    .*\n?)*)", re.MULTILINE)
_AFTER_ENTRIES = re.compile(r"\n\n(?!    )")
_AFTER_TEXT = re.compile(r"\n(?=(?:Returns|Raises|Examples)\n---|Source: )")


def described(text: str, statement: Statement) -> str:
    """A docstring with its parameters as the vocabulary has them, and what every statement refuses.

    A source writes down only what a parameter means beyond its word: a section ``Parameters`` with ``name : type`` and
    a text where the type says more than the domain, or ``name`` and a text.

    Parameters
    ----------
    text : str
        The docstring as it stands in the source, without indentation.
    statement : Statement
        Whose signature and domains are described.
    """
    before, section, entries = text.partition("Parameters" + _RULE)
    if section:
        entries, after = _cut(_AFTER_ENTRIES, entries)
    else:
        before, after = _cut(_AFTER_TEXT, text)
        before = before.rstrip() + "\n\n"
    own: dict[str, tuple[str, str]] = {}
    if statement.either:
        both = "Exactly one of epsilon and delta is given; the answer is the other one."
        own = dict.fromkeys(("epsilon", "delta"), ("", both))
    for names, kind, words in _ENTRY.findall(f"{entries}\n"):
        text = "\n".join(line.strip() for line in words.splitlines() if line.strip())
        own |= dict.fromkeys(map(str.strip, names.split(",")), (kind, text))
    lines = []
    for name in statement.parameters:
        kind, words = own.get(name, ("", ""))
        if name in VOCABULARY:
            domain = statement.domain(name)
            kinds = " or ".join(statement.randomizers) if name == "randomizer" else ""
            kind, words = kind or kinds or str(domain), words or f"{domain.about.capitalize()}."
        lines += [f"{name} : {kind}", *(f"    {line}" for line in words.splitlines())]
    text = f"{before}Parameters{_RULE}" + "\n".join(lines) + "\n\n"
    if "Raises\n------" in after:
        return text + after
    cut = after.find("Source: ") if "Source: " in after else len(after)
    return (
        f"{text}{after[:cut]}Raises\n------\nDomainError\n    If an argument lies outside its domain.\n\n{after[cut:]}"
    )


def _cut(pattern: re.Pattern[str], text: str) -> tuple[str, str]:
    """The text before the pattern's first place, and what follows without blank lines ahead."""
    found = pattern.search(text)
    at = found.start() if found else len(text)
    return text[:at], text[at:].lstrip("\n")


def admit(statement: Statement, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments converted by their domains; :class:`DomainError` names the first that does not belong."""
    accepted: dict[str, Any] = {}
    parameters = statement.parameters
    for name, value in arguments.items():
        if name == "randomizer" and statement.randomizers:
            accepted[name] = _kind(value, statement)
        elif value is not None or parameters[name].default is not None:
            accepted[name] = statement.domain(name).accept(name, value)
    if statement.either and ("epsilon" in accepted) == ("delta" in accepted):
        domains = f"epsilon ({VOCABULARY['epsilon']}) and delta ({VOCABULARY['delta']})"
        raise DomainError(f"exactly one of {domains} must be given")
    return accepted


def _kind(randomizer: Any, statement: Statement) -> Any:
    kind = getattr(randomizer, "kind", None)
    if kind not in statement.randomizers:
        allowed = ", ".join(statement.randomizers)
        raise DomainError(f"randomizer must be one of {allowed} for {statement.id}, got {kind or randomizer!r}")
    return randomizer
