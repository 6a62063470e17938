"""Two makings of one book, byte for byte: ``python -m flamelib.companion.regeneration FIRST SECOND``.

Time and memory stand in the receipts, and on the page that shows them; everything else is decided by the inputs and
has to be equal.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from flamelib.companion.build import FINGERPRINT
from flamelib.companion.runs import RECEIPT
from flamelib.core.vocabulary import DomainError

OF_ONE_MAKING = (FINGERPRINT, "book/status.html", "_sources/book/status.md")


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
    return sorted(name for name in one | two if not (name in one & two and _same(first / name, second / name)))


def _files(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != RECEIPT)
    return {path.relative_to(folder).as_posix() for path in found} - set(OF_ONE_MAKING)


def _same(one: Path, two: Path) -> bool:
    return one.stat().st_size == two.stat().st_size and one.read_bytes() == two.read_bytes()


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
