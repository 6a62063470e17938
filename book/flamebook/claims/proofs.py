"""What falls with a proof: the rows of the ledger that a proposition of the book carries, by what they execute.

``data/proofs.yml`` says for each proposition which functions of the library are only as good as its proof, and which
other propositions the proof uses.  While a row is judged the functions that it enters are noted; it rests on a
proposition if it enters one of that proposition's functions, and on all that the proof of this one uses.
"""

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from operator import attrgetter
from pathlib import Path
from types import FrameType

import yaml

from flamebook.claims import ledger
from flamebook.claims.ledger import Claim, Judged
from flamebook.places import DATA, ROOT
from flamelib.core.vocabulary import DomainError

PROOFS = DATA / "proofs.yml"
HOME = "flamelib.accounting."
_STATEMENT = re.compile(r"^:::+\{prf:(?!proof)\w+\} *(.+)\n:label: (\S+)$", re.M)


@dataclass(frozen=True, slots=True)
class Proof:
    """A proposition by its label in the book, the functions that it carries, and the propositions its proof uses."""

    label: str
    title: str
    page: str
    carries: tuple[str, ...]
    needs: tuple[str, ...]


@cache
def load(path: Path = PROOFS) -> dict[str, Proof]:
    """Every proposition of the file, those that a proof uses before it.

    Raises
    ------
    DomainError
        If a label is in no chapter, a function does not exist, or a proposition is used that does not stand before.
    """
    known, proofs = _statements(), dict[str, Proof]()
    for label, entry in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        carries, needs = tuple(entry.get("carries", ())), tuple(entry.get("needs", ()))
        _require(label in known, label, "is the label of no proposition of the book")
        _require(entry.keys() <= {"carries", "needs"}, label, "may have carries and needs, nothing else")
        for needed in needs:
            _require(needed in proofs, label, f"needs {needed}, which must stand before it")
        for name in carries:
            _require(_exists(name), label, f"carries {name}, which is no function below {HOME}*")
        proofs[label] = Proof(label, *known[label], carries, needs)
    return proofs


def _require(condition: bool, label: str, what: str) -> None:
    if not condition:
        raise DomainError(f"{PROOFS.name}: {label} {what}")


def _statements() -> dict[str, tuple[str, str]]:
    """Label to title and page of every numbered statement of the chapters."""
    pages = sorted((ROOT / "book").glob("*.md"))
    found = ((page.stem, _STATEMENT.findall(page.read_text(encoding="utf-8"))) for page in pages)
    return {label: (title, page) for page, statements in found for title, label in statements}


def _exists(name: str) -> bool:
    module, _, function = name.partition(":")
    try:
        return callable(attrgetter(function)(import_module(HOME + module)))
    except (ImportError, AttributeError):
        return False


def entered(names: Collection[str]) -> list[str]:
    """The propositions that carry one of these functions, written ``module:function`` below the accounting."""
    return [label for label, proof in load().items() if not set(proof.carries).isdisjoint(names)]


def used(labels: Iterable[str]) -> list[str]:
    """These propositions and all that their proofs use, directly or through others, in the order of the file.

    >>> used(["blanket-lem-bennett"])
    ['blanket-worst-pair', 'blanket-lem-reduction', 'blanket-lem-exponential', 'blanket-lem-bennett']
    """
    found = set(labels)
    for label, proof in reversed(load().items()):
        if label in found:
            found.update(proof.needs)
    return [label for label in load() if label in found]


def fallen(label: str, rests: Mapping[str, Collection[str]]) -> tuple[list[str], list[str]]:
    """What has no proof left if this one falls: the propositions whose proofs use it, and the rows that rest on them.

    ``rests`` names for each row the propositions that it enters.
    """
    down = [one for one in load() if label in used([one])]
    return down, [row for row, labels in rests.items() if not set(labels).isdisjoint(down)]


def traced(claim: Claim) -> tuple[Judged, list[str]]:
    """The row judged, and the propositions that its computation enters; answers that are kept from before hide some."""
    names: set[str] = set()

    def note(frame: FrameType, _event: str, _argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(HOME):
            names.add(f"{module.removeprefix(HOME)}:{frame.f_code.co_qualname}")

    before = sys.gettrace()
    sys.settrace(note)
    try:
        judged = ledger.judge(claim)
    finally:
        sys.settrace(before)
    return judged, entered(names)


def trace_all(claims: Iterable[Claim]) -> list[tuple[Judged, list[str]]]:
    """Every row judged and traced, each in a process of its own, so that nothing is answered from memory."""
    load()
    return [_alone(claim) for claim in claims]


def _alone(claim: Claim) -> tuple[Judged, list[str]]:
    # A pool would fork its workers from a thread, with whatever locks the others hold.
    context = get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_tell, args=(claim, there))
    process.start()
    there.close()
    try:
        found: tuple[Judged, list[str]] | BaseException = here.recv()
    except EOFError:
        found = RuntimeError(f"claims ledger, row {claim.id}: its process ended without an answer")
    process.join()
    if isinstance(found, BaseException):
        raise found
    return found


def _tell(claim: Claim, there: Connection) -> None:
    try:
        there.send(traced(claim))
    except Exception as fault:
        there.send(fault)
