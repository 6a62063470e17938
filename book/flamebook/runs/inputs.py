"""What a notebook's result depends on, by content: template, imported modules, data files, lock.

The modules are found by reading imports, without importing anything: the notebook's own, then those of every
module found, down to the end.  Time stamps play no part.
"""

import ast
import functools
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from flamebook.runs import notebook as stamp

LOCK = "requirements.lock"
OF_A_RUN = ("receipt.json", "results.json")  # what a kept run says of itself is read by no notebook
READS_DATA_SETS = "flamelib/learning/datasets.py"
DATA_SETS = "FLAMELIB_DATA"


def sha256(path: Path) -> str:
    """The file's SHA-256, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests(template: Path, root: Path, values: Mapping[str, Any] = MappingProxyType({})) -> dict[str, str]:
    """Path from the root to SHA-256, for everything that the notebook's result depends on.

    Parameters
    ----------
    template : Path
        The notebook.
    root : Path
        Folder of the checkout: packages, ``data`` and the lock lie in it.
    values : mapping
        Of its parameters; those that are files of one's own data count, under the parameter's name.

    Returns
    -------
    dict of str to str
        The template, the modules it imports (directly or not), the files under ``data`` or beside a module
        whose names these write down, the lock; and, for notebooks that read data sets, the listing of the
        data sets' folder.
    """
    own = {name: Path(str(value)) for name, value in values.items() if str(value).endswith(".npz")}
    read = {f"{name} ({path.name})": sha256(path) for name, path in own.items() if path.is_file()}
    return of_code(stamp.code(stamp.read(template)), root, [template.resolve()]) | read


def of_code(code: str, root: Path, files: Iterable[Path] = ()) -> dict[str, str]:
    """The same for code that is no notebook, and for these files beside it."""
    found = modules(code, root)
    sources = [code, *(path.read_text(encoding="utf-8") for path in found)]
    used = [*files, *found, *_data_files(sources, [root / "data", *(path.parent for path in found)])]
    used += [root / LOCK] if (root / LOCK).is_file() else []
    named = {Path(os.path.relpath(path, root)).as_posix(): sha256(path) for path in used}
    return named | ({DATA_SETS: listing()} if READS_DATA_SETS in named else {})


def differing(*pairs: tuple[dict[str, Any], dict[str, Any]]) -> str:
    """What has another value before than after, in a few words; empty where nothing has.

    >>> differing(({"a.py": "1", "b.py": "2"}, {"a.py": "1", "b.py": "3"}), ({"n": 1}, {"n": 2}))
    'b.py, n changed'
    """
    names = [name for old, new in pairs for name in sorted(old | new) if old.get(name) != new.get(name)]
    return ", ".join(names[:3]) + (" and more" if len(names) > 3 else "") + " changed" if names else ""


def modules(code: str, root: Path) -> list[Path]:
    """Files under the root that this code imports, directly or through others, in order of their paths."""
    found: set[Path] = set()
    waiting = [path for name in imported(code) for path in _files(name, root)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            source = path.read_text(encoding="utf-8")
            waiting += [file for name in imported(source, _package(path, root)) for file in _files(name, root)]
    return sorted(found)


@functools.cache
def imported(code: str, package: str = "") -> list[str]:
    """Names that this code of a package imports."""
    found: list[str] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            # What is imported may be a name in the module or a module of the package: both are tried.
            found += [f"{origin}.{alias.name}" for alias in node.names]
    return found


def _package(path: Path, root: Path) -> str:
    return ".".join(path.parent.relative_to(root).parts).removeprefix("book.")


def _files(name: str, root: Path) -> Iterator[Path]:
    """The files that importing ``a.b.c`` runs: a, a.b and a.b.c, as far as they lie under the root.

    A name that a package loads when it is first asked for stands for the module that has it.
    """
    package, _, rest = name.partition(".")
    entrance = root / package / "__init__.py"
    homes = _lazy(entrance.read_text(encoding="utf-8")) if rest and entrance.is_file() else {}
    yield from _run_by(f"{package}.{homes.get(rest, rest)}" if rest else name, root)


@functools.cache
def _lazy(entrance: str) -> dict[str, str]:
    """Public name to module, of a package whose ``__init__.py`` holds such a table under the name ``_HOMES``."""
    for node in ast.parse(entrance).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            return {name: home.partition(":")[0] for name, home in ast.literal_eval(node.value).items()}
    return {}


def _run_by(name: str, root: Path) -> Iterator[Path]:
    place = root / "book" if name.split(".")[0] == "flamebook" else root
    for part in name.split("."):
        place = place / part
        if (place / "__init__.py").is_file():
            yield place / "__init__.py"
        elif place.with_name(part + ".py").is_file():
            yield place.with_name(part + ".py")
            return
        else:
            return


def _data_files(sources: list[str], folders: list[Path]) -> list[Path]:
    names = set().union(*map(_named, sources))
    files = {path for folder in dict.fromkeys(folders) for path in folder.rglob("*.*") if path.name in names}
    files -= {path for path in files if path.name in OF_A_RUN}
    return sorted(path for path in files if path.suffix != ".py" and path.is_file())


@functools.cache
def _named(source: str) -> set[str]:
    """Names of files among the words that a source writes down."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    words = {node.value for node in nodes if isinstance(node.value, str)}
    return {Path(word).name for word in words if Path(word).suffix and "\n" not in word}


def listing() -> str:
    """Digest of which files of the data sets are there, by name and size, wherever they lie."""
    # The registry holds the digest of every data file; which of them are there decides what a notebook reads.
    from flamelib.learning import datasets

    try:
        states = [one for listed in datasets.listing() for one in datasets.places(listed.name)]
    except datasets.DataError as fault:  # the folder is not there: the run will say so
        states = [(str(fault), 0)]
    return hashlib.sha256("\n".join(f"{name} {size}" for name, size in states).encode()).hexdigest()
