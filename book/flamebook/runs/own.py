"""One run of one's own: the executed notebook, its page, figures and results, in a folder that appears whole.

The work is done in a hidden sibling of the folder; a rename is the last step, so that an interrupted or
failed run leaves nothing behind.  A folder that holds files of somebody else is refused before any work.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flamebook.records import lines_csv
from flamebook.runs import files, notebook
from flamelib.core.vocabulary import DomainError

MARK = "own.json"
ROOM = 16 * 2**20  # bytes to begin with: about what the largest page and its figures take, twice


def default_folder(kind: str, name: str, digest: str) -> Path:
    """``_build/KIND/NAME/DIGEST`` under the current folder."""
    return Path.cwd() / "_build" / kind / name / digest


def run(template: Path, given: Mapping[str, Any], output: Path | None = None) -> Path:
    """Execute a notebook with these parameters and return the folder of its results.

    Parameters
    ----------
    template : Path
        A notebook, as :func:`flamebook.runs.notebook.locate` finds it.
    given : mapping
        Values, or their text, of declared parameters; the others keep their defaults.
    output : Path, optional
        Folder to write; ``_build/own/NAME/DIGEST`` under the current folder if left out.  One that an
        earlier run wrote is replaced.

    Returns
    -------
    Path
        A folder with ``NAME.ipynb``, ``NAME.html``, ``figures/``, ``results.json``, ``results.csv``.

    Raises
    ------
    DomainError
        If a parameter is unknown or outside its domain, or the folder is not ours to write.
    """
    full = notebook.values(template, given)
    folder = (output or default_folder("own", template.stem, notebook.digest(template, full))).resolve()
    with replaced(folder) as work:
        fill(template, full, work, folder)
        own = {"made_by": "flamelib run", "notebook": template.name, "parameters": full, "files": _listed(work)}
        (work / MARK).write_text(json.dumps(own, indent=1) + "\n", encoding="utf-8")
    return folder


def of_profile(template: Path, profile: str) -> dict[str, Any]:
    """The values that an edition of the book gives to a notebook's parameters; none where no edition is named.

    Raises
    ------
    DomainError
        For an unknown edition, or a notebook that is not the book's.
    """
    if not profile:
        return {}
    from flamebook.runs import schedule

    root = template.resolve().parent.parent
    if not (root / "book" / "parameters").is_dir():
        raise DomainError(f"profile must be left out for a notebook outside the book, got {profile!r}")
    return dict(schedule.plan(root, profile).runs[template.stem].parameters)


def fill(template: Path, full: Mapping[str, Any], work: Path, folder: Path) -> None:
    """Execute the notebook into ``work``, with the page and the table of results; it will lie at ``folder``."""
    # Papermill takes a second to import, and drawing another: a refusal should not wait for them.
    from flamebook.runs.execute import execute
    from flamebook.runs.page import made

    with made.beside_the_book(template):
        execute(template, work, dict(full), tolerant=True)
    made.make(template, work, folder, {name: one.default for name, one in notebook.declared(template).items()})
    results = read_results(work)
    (work / "results.json").write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    (work / "results.csv").write_text(lines_csv([("name", "value"), *results.items()]), encoding="utf-8")


def read_results(folder: Path) -> dict[str, Any]:
    """What a run recorded; empty where it recorded nothing."""
    path = folder / "results.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """A path in a hidden sibling to put the result at; it takes the folder's place at the end, or vanishes."""
    _refuse_foreign(folder)
    made = _make_parents(folder)
    files.make_room(folder.parent, ROOM)
    for left in folder.parent.glob(f".{folder.name}.part-*"):
        files.remove_left(left, patience=0)
    try:
        desk = Path(tempfile.mkdtemp(prefix=f".{folder.name}.part-", dir=folder.parent))
    except OSError as fault:
        raise files.unwritable(folder, fault) from None
    try:
        with files.filled(desk):
            yield desk / "result"
            files.put_in_place(desk / "result", folder)
    except OSError as fault:
        if fault.errno not in files.FULL:
            raise
        raise files.unwritable(folder, fault) from None
    finally:
        shutil.rmtree(desk, ignore_errors=True)
        for parent in made:
            if not any(parent.iterdir()):
                parent.rmdir()


def _make_parents(folder: Path) -> list[Path]:
    missing = [parent for parent in folder.parents if not parent.exists()]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise files.unwritable(folder, fault) from None
    return missing


def _refuse_foreign(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise DomainError(f"output must be a folder, and {folder} is a file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DomainError(f"output must be a folder that can be written, and {folder} is read-only")
    foreign = sorted(set(_listed(folder)) - set(_ours(folder)))
    if foreign:
        raise DomainError(f"output must be an empty folder or an earlier run's, and {folder} holds {foreign[0]}")


def _ours(folder: Path) -> list[str]:
    try:
        own = json.loads((folder / MARK).read_text(encoding="utf-8"))
        return [MARK, *own["files"]] if own["made_by"] == "flamelib run" else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _listed(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
