"""The reference of names in code: a page for each folder of the library, made from what lies in the folder.

A module that is added to a folder stands on the folder's page without being listed anywhere.  What is said of it is its
docstring.
"""

import ast
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import flamelib
from flamebook.places import ROOT

LIBRARY = ROOT / "flamelib"


def folders(library: Path = LIBRARY) -> dict[str, list[str]]:
    """Name of every page to the modules on it: a folder's dotted name below the library, the library's own for its top.

    >>> "flamelib.accounting.checkin.baselines" in folders()["accounting.checkin"]
    True
    """
    found: dict[str, list[str]] = {}
    for path in sorted(library.rglob("*.py"), key=lambda path: (len(path.parts) > len(library.parts) + 1, path)):
        if path.stem == "__init__":
            continue
        parts = path.relative_to(library).with_suffix("").parts
        found.setdefault(".".join(parts[:-1]) or library.name, []).append(".".join((library.name, *parts)))
    return found


def documented(library: Path = LIBRARY) -> set[str]:
    """Every module that has its place on a page."""
    return {module for modules in folders(library).values() for module in modules}


def pages(library: Path = LIBRARY) -> dict[str, str]:
    """Path below ``book`` to the text in MyST, of every page."""
    return {f"api/{name}.md": _page(name, modules, library) for name, modules in folders(library).items()}


def _page(name: str, modules: list[str], library: Path) -> str:
    package = name if name == library.name else f"{library.name}.{name}"
    inside = [line for module in modules for line in (f":py:mod:`~{module}`", f"   {_opening(module, library)}", "")]
    parts = [f"# {name}", "", *_rest(f".. automodule:: {package}", "", *inside)]
    parts += _names(flamelib) if package == flamelib.__name__ else []
    for module in modules:
        parts += [f"## {module.rpartition('.')[2]}", "", *_rest(f".. automodule:: {module}", "   :members:")]
    return "\n".join(parts)


def _rest(*lines: str) -> list[str]:
    return ["```{eval-rst}", *lines, "```", ""]


def _opening(module: str, library: Path) -> str:
    """What the module says of itself at once; its text is read, and nothing is imported."""
    path = library.parent.joinpath(*module.split(".")).with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n\n")[0].replace("\n", " ")


def _names(front: ModuleType) -> list[str]:
    """The public names at the top of the library, each with a link to its home; nothing where there are none."""
    found = {name: getattr(front, name) for name in getattr(front, "__all__", ()) if not name.startswith("__")}
    if not found:
        return []
    own = ", ".join(name for name, value in found.items() if getattr(value, "__module__", None) == front.__name__)
    links = [f"- {_link(name, value, front.__name__)}" for name, value in found.items()]
    head = ["## Names at the top", "", f"`from {front.__name__} import ...` finds these; each leads to its home.", ""]
    return [*head, *links, "", *(_rest(f".. automodule:: {front.__name__}", f"   :members: {own}") if own else [])]


def _link(name: str, value: Any, front: str) -> str:
    if isinstance(value, ModuleType):
        return f"{{py:mod}}`{name} <{value.__name__}>`"
    if not (inspect.isclass(value) or inspect.isroutine(value)) or not value.__module__.startswith(front):
        return f"`{name}`"
    role = "class" if inspect.isclass(value) else "func"
    return f"{{py:{role}}}`{name} <{value.__module__}.{value.__qualname__}>`"
