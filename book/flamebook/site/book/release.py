"""The built book as one file to hand on: ``python -m flamebook.site.book.release``; unpacked, it opens from disk.

Equal books give equal bytes: names are sorted, and no time or owner is kept.
"""

import sys
import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from flamebook.places import FINGERPRINT
from flamebook.runs.files import whole
from flamebook.site.book.build import HTML
from flamelib.core.vocabulary import DomainError

EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(html: Path, folder: Path) -> Path:
    """Put a built book into ``folder/flamelib-book-VERSION.zip``; the file appears whole or not at all.

    Parameters
    ----------
    html : Path
        Folder of the built book.
    folder : Path
        Where the file goes; made if need be.

    Raises
    ------
    DomainError
        If ``html`` holds no built book.
    """
    if not (html / FINGERPRINT).is_file():
        raise DomainError(f"html must be the folder of a built book (run `make book`), got {str(html)!r}")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"flamelib-book-{version('flamelib')}.zip"
    with whole(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(file for file in html.rglob("*") if file.is_file()):
            entry = zipfile.ZipInfo(f"{path.stem}/{file.relative_to(html).as_posix()}", EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            packed.writestr(entry, file.read_bytes())
    return path


def main(words: Sequence[str]) -> int:
    """Pack the book of the current folder in a folder, ``_build`` by default, and print its name."""
    try:
        print(pack(HTML, Path(words[0] if words else "_build")))
    except DomainError as refusal:
        print(refusal, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
