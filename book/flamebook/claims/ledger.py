"""The claims ledger: every checkable statement of the documents, computed from its own inputs and judged.

``data/claims``, with a file for each document, holds what the documents say and what we recorded; this module
computes the other half.
A row never reads a notebook's parameters, so no re-run can change a verdict.

The verdict follows from the relation.  A number that misses the stated one by more than the tolerance
*deviates*.  An inequality or a property that fails is *refuted*, and only an exact value, or a bound on the
side that contradicts, may fail it.  What nobody can compute is *not-checkable*, and the row says why.
"""

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from flamebook.places import DATA
from flamelib import answers
from flamelib.core import workers
from flamelib.core.guarantees import Gives
from flamelib.core.statements import DOCUMENTS
from flamelib.core.vocabulary import DomainError

CLAIMS = DATA / "claims"  # a file for each document
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the compiled one is eight times as fast
KINDS = ("definition", "algorithm", "theorem", "lemma", "figure", "number", "remark")
RELATIONS = ("equal", "at-most", "at-least", "holds")
SPEAKERS = ("document", "reading", "elsewhere", "this book")
VERDICTS = ("reproduced", "deviates", "refuted", "not-checkable")
# How much a refutation weighs, the heaviest first.
WEIGHTS = ("budget broken", "bound wrong", "proof gap", "reading only", "slip of notation")
CHECKS = tuple(f"{__package__}.{path.stem}" for path in sorted(Path(__file__).parent.glob("[a-z]*.py")))

Value = float | bool | list[float]


@dataclass(frozen=True, slots=True)
class Claim:
    """One row: what a document says, the inputs it is computed from, and the recorded verdict.

    ``said_by`` is the document itself (its authors' code included), one ``reading`` of an unclear passage,
    ``elsewhere`` for later literature, or ``this book``.  ``paper`` is the document's own number;
    ``reference`` stands in where it prints none: a value from an independent re-computation or derivation.
    ``over`` names one input and the values it runs through.  ``weight``, one of :data:`WEIGHTS`, says how much a
    refutation weighs.  A ``reconstructed`` statement is one whose formula our copy has lost.
    """

    id: str
    item: str
    kind: str
    where: str
    claim: str
    verdict: str
    evidence: str
    test: str
    page: str
    said_by: str = "document"
    relation: str | None = None
    paper: float | list[float] | None = None
    reference: float | list[float] | None = None
    tolerance: float = 1e-6
    compute: str | None = None
    function: str | None = None
    inputs: dict[str, Any] = field(default_factory=dict)
    over: dict[str, list[Any]] = field(default_factory=dict)
    field: str | None = None
    weight: str | None = None
    reconstructed: bool = False

    @property
    def document(self) -> str:
        """The prefix of the item: ``blanket``."""
        return self.item.split(":")[0]

    @property
    def stated(self) -> float | list[float] | None:
        """What the value is compared with: the document's number, else the reference."""
        return self.reference if self.paper is None else self.paper


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with the value computed from its inputs and the verdict that follows."""

    claim: Claim
    value: Value | None
    verdict: str

    @property
    def as_recorded(self) -> bool:
        """Whether the verdict is the one in the file."""
        return self.verdict == self.claim.verdict


def load(folder: Path = CLAIMS) -> list[Claim]:
    """Every row of every file of the folder, validated, document by document, in the order of the files.

    Raises
    ------
    DomainError
        One sentence that names the row and the field.
    """
    found = contents(folder)
    claims = [_claim(group, row) for content in found.values() for group in content["claims"] for row in group["rows"]]
    times = Counter(claim.id for claim in claims)
    for claim in claims:
        _require(times[claim.id] == 1, claim.id, "id", "occurs more than once")
        _validate(claim)
    items = {claim.item for claim in claims}
    for document, content in found.items():
        bare = [name for item in content["items"] if (name := f"{document}:{item}") not in items]
        _require(not bare, ", ".join(bare), "rows", "has no row in the ledger")
    return claims


def contents(folder: Path = CLAIMS) -> dict[str, dict[str, Any]]:
    """Document to its file as it was read, with ``items`` and ``claims``, in the order of the documents.

    Raises
    ------
    DomainError
        If a file is not named after a document, or has a row of another.
    """
    files = {path.stem: path for path in folder.glob("*.yml")}
    for stray in files.keys() - DOCUMENTS.keys():
        raise DomainError(f"claims ledger: {stray}.yml must be named after one of {', '.join(DOCUMENTS)}")
    read = (name for name in DOCUMENTS if name in files)
    found = {name: yaml.load(files[name].read_text(encoding="utf-8"), Loader=LOADER) for name in read}
    for document, content in found.items():
        for group in content["claims"]:
            own = str(group["item"]).split(":")[0] == document
            _require(own, group["item"], "item", f"must begin with {document}:, as its file {document}.yml does")
    return found


def _claim(group: Mapping[str, Any], row: Mapping[str, Any]) -> Claim:
    """A row takes what it does not say (kind, where, page, test) from its group."""
    item = group["item"]
    name = f"{item}/{row.get('id', '?')}"
    merged = {key: value for key, value in group.items() if key != "rows"} | dict(row) | {"id": name}
    known = {f.name: f for f in fields(Claim)}
    for key in merged:
        _require(key in known, name, key, f"is no field of a row ({', '.join(known)})")
    for key, found in known.items():
        needed = found.default is MISSING and found.default_factory is MISSING
        _require(not needed or bool(merged.get(key)), name, key, "is missing")
    if merged.get("said_by") in ("elsewhere", "this book"):
        merged.pop("reconstructed", None)  # of a group; what others say is not read off our copy
    return Claim(**{key: _numbers(value) if key in _NUMERIC else value for key, value in merged.items()})


_NUMERIC = ("paper", "reference", "tolerance", "inputs", "over")


def _numbers(value: Any) -> Any:
    """YAML 1.1 reads ``1e-6`` as a word; here it is the number everybody means."""
    if isinstance(value, dict):
        return {key: _numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_numbers(part) for part in value]
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _require(condition: bool, row: str, name: str, what: str) -> None:
    if not condition:
        raise DomainError(f"claims ledger, row {row}: {name} {what}")


def _validate(claim: Claim) -> None:
    def require(condition: bool, name: str, what: str) -> None:
        _require(condition, claim.id, name, what)

    require(claim.kind in KINDS, "kind", f"must be one of {', '.join(KINDS)}, got {claim.kind!r}")
    require(claim.said_by in SPEAKERS, "said_by", f"must be one of {', '.join(SPEAKERS)}, got {claim.said_by!r}")
    require(claim.verdict in VERDICTS, "verdict", f"must be one of {', '.join(VERDICTS)}, got {claim.verdict!r}")
    if claim.verdict == "refuted":
        require(claim.weight in WEIGHTS, "weight", f"must be one of {', '.join(WEIGHTS)}, got {claim.weight!r}")
        told = claim.weight != "reading only" or claim.said_by == "reading"
        require(told, "weight", f"is 'reading only' where a reading speaks, not {claim.said_by!r}")
    else:
        require(claim.weight is None, "weight", "is that of a refutation")
    sources = (claim.compute is not None) + (claim.function is not None)
    if claim.verdict == "not-checkable":
        require(sources == 0 and claim.relation is None, "verdict", "is not-checkable, yet the row says how to compute")
        return
    require(sources == 1, "compute", "or function must be given, exactly one of the two")
    require(claim.relation in RELATIONS, "relation", f"must be one of {', '.join(RELATIONS)}, got {claim.relation!r}")
    numeric = claim.relation != "holds"
    require(numeric == (claim.stated is not None), "paper", "or reference is needed for a number, and only there")
    require(claim.paper is None or claim.reference is None, "reference", "stands in only where paper is null")
    require(len(claim.over) <= 1, "over", "names one input")
    length = len(next(iter(claim.over.values()))) if claim.over else None
    stated = len(claim.stated) if isinstance(claim.stated, list) else None
    require(length == stated or not numeric, "over", "has as many values as paper or reference")
    _callable(claim)


def _callable(claim: Claim) -> Callable[..., Any]:
    """The function that computes the row, its arguments checked against the inputs."""
    inputs = claim.inputs | {name: values[0] for name, values in claim.over.items()}
    try:
        if claim.compute is not None:
            answers.accept(answers.statement(claim.compute), inputs)
            return lambda **given: answers.answer(str(claim.compute), given)["value"]
        module, _, name = str(claim.function).partition(":")
        _require(module in CHECKS, claim.id, "function", f"must lie in {' or '.join(CHECKS)}, got {claim.function!r}")
        found: Callable[..., Any] = getattr(import_module(module), name)
        inspect.signature(found).bind(**inputs)
    except (DomainError, AttributeError, ImportError, TypeError) as fault:
        raise DomainError(f"claims ledger, row {claim.id}: compute, function or inputs: {fault}") from None
    return found


def value_of(claim: Claim) -> Value | None:
    """The value that the row's inputs give, one number for each value of ``over``; ``None`` if not checkable."""
    if claim.relation is None:
        return None
    function = _callable(claim)
    values = [_plain(function(**claim.inputs | extra), claim) for extra in _points(claim)]
    return [float(v) for v in values] if claim.over else values[0]


def _points(claim: Claim) -> Iterator[dict[str, Any]]:
    if not claim.over:
        yield {}
    for name, values in claim.over.items():
        yield from ({name: value} for value in values)


def _plain(value: Any, claim: Claim) -> float | bool:
    if claim.field is not None:
        value = value[claim.field]
    return value if isinstance(value, bool) else float(value)


def judge(claim: Claim) -> Judged:
    """The row with its value and the verdict that its relation gives."""
    value = value_of(claim)
    return Judged(claim, value, _verdict(claim, value))


def judge_all(claims: Iterable[Claim] | None = None, jobs: int = 1) -> list[Judged]:
    """Every row judged, in the order of the files, by so many processes."""
    rows = list(load() if claims is None else claims)
    if jobs == 1:
        return [judge(claim) for claim in rows]
    with workers.pool(jobs) as pool:
        return list(pool.map(judge, rows, chunksize=4))


def _verdict(claim: Claim, value: Value | None) -> str:
    if claim.relation is None or value is None:
        return "not-checkable"
    values = value if isinstance(value, list) else [value]
    stated = claim.stated if isinstance(claim.stated, list) else [claim.stated] * len(values)
    if all(_agrees(claim, v, s) for v, s in zip(values, stated, strict=True)):
        return "reproduced"
    return "deviates" if claim.relation == "equal" or not _contradicts(claim) else "refuted"


def _agrees(claim: Claim, value: float | bool, stated: float | None) -> bool:
    if claim.relation == "holds" or stated is None:
        return value is True
    room = 0.0 if math.isinf(stated) or math.isinf(value) else claim.tolerance * (abs(stated) or 1.0)
    if claim.relation == "at-most":
        return value <= stated + room
    if claim.relation == "at-least":
        return value >= stated - room
    return value == stated or abs(value - stated) <= room


def _contradicts(claim: Claim) -> bool:
    """Whether the computed side may refute: exact checks may, a bound only from the side it bounds."""
    if claim.compute is None:
        return True
    gives = answers.answer(claim.compute, claim.inputs | next(_points(claim)))["gives"]
    return gives in (Gives.EXACT, Gives.LOWER if claim.relation == "at-most" else Gives.UPPER)


def shown(value: Value | None) -> str:
    """A value for a table: seven digits, lists joined, properties in words.

    >>> shown([0.25, 3.3602171e-9]), shown(True), shown(None), shown(408.0)
    ('0.25; 3.360217e-09', 'holds', 'none', '408')
    """
    if value is None:
        return "none"
    if isinstance(value, list):
        return "; ".join(shown(one) for one in value)
    if isinstance(value, bool):
        return "holds" if value else "fails"
    return "∞" if math.isinf(value) else f"{value:.7g}"
