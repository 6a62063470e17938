"""What may import what: the privacy side apart from the data side, the library apart from the book, no circle."""

import ast
import functools
import sys
from pathlib import Path

from flamebook.places import ROOT

PACKAGES = {"flamelib": ROOT / "flamelib", "flamebook": ROOT / "book" / "flamebook"}


def _name(path: Path, package: str) -> str:
    return ".".join((package, *path.relative_to(PACKAGES[package]).with_suffix("").parts)).removesuffix(".__init__")


PATHS = {_name(path, package): path for package, folder in PACKAGES.items() for path in sorted(folder.rglob("*.py"))}
FILES = [name for name, path in PATHS.items() if path.stem != "__init__"]


@functools.cache
def _nodes(name: str) -> list[ast.AST]:
    return [*ast.walk(ast.parse(PATHS[name].read_text(encoding="utf-8")))]


@functools.cache
def imported(name: str) -> set[str]:
    """Everything that a file imports, wherever in the file."""
    found: set[str] = set()
    for node in _nodes(name):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return found


@functools.cache
def arrows(name: str) -> set[str]:
    """Our own files that a file imports."""
    return (imported(name) & set(FILES)) - {name}


@functools.cache
def below(start: str) -> set[str]:
    """Every file that a file reaches by imports."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        for to in arrows(name) - found:
            found.add(to)
            waiting.append(to)
    return found


def outside(name: str) -> set[str]:
    """Top-level packages that a file and what it reaches import, but for ours and the standard library's."""
    tops = {one.split(".")[0] for module in (name, *below(name)) for one in imported(module)}
    return tops - set(sys.stdlib_module_names) - set(PACKAGES)


def test_accounts_see_no_data_and_mechanisms_compute_no_epsilon() -> None:
    sides = ("flamelib.accounting.", "flamelib.mechanisms.")
    for own, other in (sides, sides[::-1]):
        inside = [name for name in FILES if name.startswith(own)]
        assert inside
        assert [(name, to) for name in inside for to in below(name) if to.startswith(other)] == []
    for name in (name for name in FILES if name.startswith(sides[0])):
        used = {node.attr for node in _nodes(name) if isinstance(node, ast.Attribute)}
        assert not used & {"random", "Generator", "default_rng"}, name


def test_the_library_never_reaches_the_book_nor_what_only_the_book_needs() -> None:
    for name in (name for name in FILES if name.startswith("flamelib.")):
        assert [to for to in below(name) if to.startswith("flamebook")] == [], name
        assert not outside(name) & {"matplotlib", "yaml", "papermill", "snakemake", "typer", "jinja2", "IPython"}, name
        torch = any(one.split(".")[0] == "torch" for one in imported(name))
        assert not torch or name == "flamelib.learning.networks", name


ORDER = (
    *("core", "answers", "mechanisms", "accounting", "protocols", "learning", "front", "uses", "bridges"),
    *("sentences", "completion", "vet_command", "cli"),
)


def test_imports_go_downwards_and_never_in_a_circle() -> None:
    assert [name for name in FILES if name in below(name)] == []
    place = {name: ORDER.index(name.split(".")[1]) for name in FILES if name.startswith("flamelib.")}
    upwards = {name for name in place for to in arrows(name) if place[to] > place[name]}
    # The front door compares mechanisms and audits them by what is built on it, loaded when it is asked.
    assert upwards == {"flamelib.front.asking"}
