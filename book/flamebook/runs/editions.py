"""Two editions of the book side by side: which numbers moved, and what had changed before they did.

An edition is a built book, the folder of its runs (``_build/runs``), or the folder of one run.  Its numbers are the
recorded results of the notebooks, the tables behind their figures, and the values of the ledger where the edition has
one.  The reasons are read from the receipts: parameters, versions and inputs that differ.

``python -m flamebook.runs.editions FIRST SECOND`` compares two makings of one book byte for byte.  Time and memory
stand in the receipts, and on the page that shows them; everything else is decided by the inputs and has to be equal.
"""

import csv
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from filecmp import cmp
from pathlib import Path
from typing import Any

from flamebook.places import FINGERPRINT
from flamebook.runs import files
from flamebook.runs.execute import RECEIPT, RESULTS, Receipt, receipt_of
from flamelib.core.vocabulary import DomainError

SHOWN = 8


@dataclass(frozen=True, slots=True)
class Edition:
    """What an edition recorded.

    Attributes
    ----------
    receipts : mapping from notebook to its receipt
    numbers : mapping from page to its named values
        A notebook's results, and the cells of its figures' tables as ``figure.csv row column``; the ledger's values.
    """

    receipts: Mapping[str, Receipt]
    numbers: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Moved:
    """A value before and after; ``None`` where there is none.

    >>> str(Moved("epsilon", 0.5, 0.25))
    'epsilon: 0.5 -> 0.25 (-50%)'
    >>> str(Moved("verdict", "reproduced", None))
    'verdict: reproduced -> gone'
    """

    name: str
    before: Any
    after: Any

    def __str__(self) -> str:
        before = "new" if self.before is None else self.before
        after = "gone" if self.after is None else self.after
        return f"{self.name}: {before} -> {after}" + (f" ({self.change:+.3g}%)" if math.isfinite(self.change) else "")

    @property
    def change(self) -> float:
        """Relative change in percent; NaN where there is none."""
        if not (_is_number(self.before) and _is_number(self.after)) or self.before == 0:
            return math.nan
        return float(100 * (self.after - self.before) / abs(self.before))


@dataclass(frozen=True, slots=True)
class Difference:
    """One page of both editions: values that moved, and why they may have.

    Attributes
    ----------
    page : str
    moved : tuple of Moved
    reasons : tuple of str
        What differs in what the page was made from, or that one edition lacks it; empty for the ledger, and where
        nothing differs, which no page should show.
    """

    page: str
    moved: tuple[Moved, ...]
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.page}: {len(self.moved)} moved", *(f"  {one}" for one in self.moved[:SHOWN])]
        lines += [f"  and {len(self.moved) - SHOWN} more"] if len(self.moved) > SHOWN else []
        return "\n".join([*lines, *(f"  because {reason}" for reason in self.reasons)])


def read(folder: Path) -> Edition:
    """The edition in a folder.

    Parameters
    ----------
    folder : Path
        A built book (it has ``files``), a folder of runs, or the folder of one run.

    Raises
    ------
    DomainError
        Where there is no receipt of any run.
    """
    runs = folder / "files" if (folder / "files").is_dir() else folder
    single = receipt_of(folder)
    places = {place.parent.name: place.parent for place in sorted(runs.glob(f"*/{RECEIPT}"))}
    places = {single.notebook: folder} if single else places
    receipts = {name: found for name, place in places.items() if (found := receipt_of(place))}
    if not receipts:
        raise DomainError(f"an edition must be a built book, a folder of runs or of one run, got {str(folder)!r}")
    numbers: dict[str, Mapping[str, Any]] = {name: dict(_numbers(places[name])) for name in receipts}
    ledgers = sorted(folder.glob("_downloads/*/ledger.json"))
    return Edition(receipts, numbers | ({"ledger": dict(_claims(ledgers[0]))} if ledgers else {}))


def _numbers(place: Path) -> Iterator[tuple[str, Any]]:
    results = place / RESULTS
    if results.is_file():
        yield from json.loads(results.read_text(encoding="utf-8")).items()
    for table in sorted((place / "figures").glob("*.csv")):
        with table.open(encoding="utf-8", newline="") as file:
            for at, row in enumerate(csv.DictReader(file), start=1):
                yield from ((f"{table.name} row {at} {column}", _value(cell)) for column, cell in row.items())


def _value(cell: str | None) -> float | str | None:
    """The number in a cell; infinities and NaN stay words, as in the recorded results."""
    try:
        number = float(cell or "")
    except ValueError:
        return cell
    return number if math.isfinite(number) else cell


def _claims(ledger: Path) -> Iterator[tuple[str, Any]]:
    for claim in json.loads(ledger.read_text(encoding="utf-8"))["claims"]:
        yield f"{claim['id']} verdict", claim["verdict"]
        yield f"{claim['id']} value", claim["value"]


def compare(old: Edition, new: Edition, tolerance: float = 0.0) -> list[Difference]:
    """Pages of which some value moved, appeared or went, and pages that only one edition has.

    Parameters
    ----------
    old, new : Edition
    tolerance : float, at least 0
        Relative changes of a number up to this are no move.
    """
    if not 0 <= tolerance < math.inf:
        raise DomainError(f"tolerance must be a number of at least 0, got {tolerance!r}")
    pages = sorted(old.numbers.keys() | new.numbers.keys())
    return [found for page in pages if (found := _difference(page, old, new, tolerance)) is not None]


def _difference(page: str, old: Edition, new: Edition, tolerance: float) -> Difference | None:
    if page not in old.numbers or page not in new.numbers:
        return Difference(page, (), ("the page is gone" if page in old.numbers else "the page is new",))
    changed = _moved(old.numbers[page], new.numbers[page])
    moved = tuple(one for one in changed if not abs(one.change) <= 100 * tolerance)
    reasons = _reasons(old.receipts[page], new.receipts[page]) if page in old.receipts else ()
    return Difference(page, moved, tuple(reasons)) if moved else None


def _moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Moved]:
    names = dict.fromkeys((*before, *after))
    return (Moved(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name))


def _reasons(old: Receipt, new: Receipt) -> Iterator[str]:
    for kind in ("parameters", "versions"):
        yield from (f"{kind[:-1]} {one}" for one in _moved(getattr(old, kind), getattr(new, kind)))
    for one in _moved(old.inputs, new.inputs):
        yield f"{one.name} " + ("is new" if one.before is None else "is gone" if one.after is None else "changed")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def write(differences: Sequence[Difference], path: Path) -> None:
    """Everything that differs, as JSON; the file appears whole or not at all."""
    try:
        with files.whole(path) as part:
            part.write_text(json.dumps([asdict(one) for one in differences], indent=1) + "\n", encoding="utf-8")
    except OSError as fault:
        raise DomainError(f"output must be a file that can be written, got {str(path)!r} ({fault.strerror})") from None


OF_ONE_MAKING = (FINGERPRINT, "_static/run_times.js")


def differences(first: Path, second: Path) -> list[str]:
    """Files that only one of two built books has, or that differ, apart from those that tell of one making.

    Parameters
    ----------
    first, second : Path
        Folders of built books.

    Returns
    -------
    list of str
        Paths inside the folders, sorted.

    Raises
    ------
    DomainError
        Where a folder holds no built book.
    """
    for name, folder in (("first", first), ("second", second)):
        if not (folder / FINGERPRINT).is_file():
            raise DomainError(f"{name} must be the folder of a built book, got {str(folder)!r}")
    one, two = _files(first), _files(second)
    return sorted(
        name for name in one | two if not (name in one & two and cmp(first / name, second / name, shallow=False))
    )


def _files(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != RECEIPT)
    return {path.relative_to(folder).as_posix() for path in found} - set(OF_ONE_MAKING)


def main(words: Sequence[str]) -> int:
    """Print the files that differ; status 1 if there are any, 2 for a refusal."""
    if len(words) != 2:
        print("two folders of built books must be given", file=sys.stderr)
        return 2
    try:
        found = differences(*map(Path, words))
    except DomainError as refusal:
        print(refusal, file=sys.stderr)
        return 2
    print("\n".join([*found, f"{len(found)} files differ between the two makings"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
