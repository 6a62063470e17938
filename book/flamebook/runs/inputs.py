"""What a notebook's result depends on, by content: template, imported modules, data files, lock.

The modules are found by reading imports, without importing anything: the notebook's own, then those of every
module found, down to the end.  Time stamps play no part.
"""

import ast
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from flamebook.runs import notebook as stamp

LOCK = "requirements.lock"
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
    notebook = stamp.code(stamp.read(template))
    found = modules(notebook, root)
    sources = [notebook, *(path.read_text(encoding="utf-8") for path in found)]
    files = [template.resolve(), *found, *_data_files(sources, [root / "data", *(path.parent for path in found)])]
    files += [root / LOCK] if (root / LOCK).is_file() else []
    named = {Path(os.path.relpath(path, root)).as_posix(): sha256(path) for path in files}
    own = {name: Path(str(value)) for name, value in values.items() if str(value).endswith(".npz")}
    named |= {f"{name} ({path.name})": sha256(path) for name, path in own.items() if path.is_file()}
    return named | ({DATA_SETS: listing()} if READS_DATA_SETS in named else {})


def modules(code: str, root: Path) -> list[Path]:
    """Files under the root that this code imports, directly or through others, in order of their paths."""
    found: set[Path] = set()
    waiting = [path for name in _imported(code, "") for path in _files(name, root)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            source = path.read_text(encoding="utf-8")
            waiting += [file for name in _imported(source, _package(path, root)) for file in _files(name, root)]
    return sorted(found)


def _imported(code: str, package: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            # What is imported may be a name in the module or a module of the package: both are tried.
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def _package(path: Path, root: Path) -> str:
    return ".".join(path.parent.relative_to(root).parts).removeprefix("book.")


def _files(name: str, root: Path) -> Iterator[Path]:
    """The files that importing ``a.b.c`` runs: a, a.b and a.b.c, as far as they lie under the root.

    A name that a package loads when it is first asked for stands for the module that has it.
    """
    package, _, rest = name.partition(".")
    yield from _run_by(f"{package}.{_lazy(root, package).get(rest, rest)}" if rest else name, root)


def _lazy(root: Path, package: str) -> dict[str, str]:
    """Public name to module, of a package whose ``__init__.py`` holds such a table under the name ``_HOMES``."""
    entrance = root / package / "__init__.py"
    tree = ast.parse(entrance.read_text(encoding="utf-8")) if entrance.is_file() else ast.Module([], [])
    for node in tree.body:
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
    words = {
        node.value
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    names = {Path(word).name for word in words if Path(word).suffix and "\n" not in word}
    files = {path for folder in folders for path in folder.rglob("*.*") if path.name in names and path.is_file()}
    return sorted(path for path in files if path.suffix != ".py")


def listing() -> str:
    """Digest of which data files are there, by name and size."""
    # The registry holds the digest of every data file; which of them are there decides what a notebook reads.
    folder = os.environ.get(DATA_SETS)
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file()) if folder else []
    text = "\n".join(f"{path.relative_to(folder or '.').as_posix()} {path.stat().st_size}" for path in files)
    return hashlib.sha256(text.encode()).hexdigest()
