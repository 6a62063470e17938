"""The layout, read from the paths: sides apart, arrows downwards, no circle, no heap without a reason, no crumbs."""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from flamebook.places import ROOT
from flamelib.answers import load_all
from flamelib.core.statements import homes

PACKAGES = {"flamelib": ROOT / "flamelib", "flamebook": ROOT / "book" / "flamebook"}

# From the ground up.  A folder may import what stands before it; folders of one line may not import each other.
FLOORS = (
    ("flamelib.core",),
    ("flamelib.mechanisms", "flamelib.accounting"),
    ("flamelib.protocols",),
    ("flamelib.learning", "flamelib.uses"),
    ("flamelib.answers",),
    ("flamelib",),
    ("flamelib.bridges",),
    ("flamebook.places",),
    ("flamebook.records",),
    ("flamebook.statements",),
    ("flamebook.figures.style",),
    ("flamebook.page",),
    ("flamebook.runs",),
    ("flamebook.attacks", "flamebook.flower"),
    ("flamebook.figures",),
    ("flamebook.experiments",),
    ("flamebook.recordings",),
    ("flamebook.claims",),
    ("flamebook.figures.together",),
    ("flamebook.site",),
    ("flamebook",),
)
# Computed, never drawn.
UNDRAWN = ("flamebook.attacks", "flamebook.claims", "flamebook.experiments")
# A subject of its own, though one neighbour alone uses it.
SUBJECTS = {
    "flamelib.mechanisms.integers.enclosures": "numbers to any digit: what makes exact choices exact",
    "flamelib.accounting.sampling.turning": "a program over angles, whose proof stands apart",
    "flamelib.accounting.sampling.terms": "one Gaussian against a mixture, with its error",
    "flamelib.accounting.sampling.readings": "the three readings of one theorem, which are tested one by one",
    "flamelib.uses.sums": "half of the mechanisms, which a notebook asks for by themselves",
    "flamebook.claims.accuracy": "a subject of claims",
    "flamebook.claims.flame": "a document's claims",
    "flamebook.recordings.costs": "a recording of its own, which also knows the machine's name",
    "flamebook.runs.domain": "a small language, and nothing of notebooks",
    "flamebook.flower.server": "one of the two apps that Flower asks for",
    "flamebook.runs.page.folded": "a page as one file",
    "flamebook.runs.page.head": "what stands at the top of a page",
    "flamebook.site.book.pages": "the pages that are made",
    "flamebook.site.book.jobs": "what is run, apart from who asks for it",
    "flamebook.site.measured.costs": "records of another kind on one page",
}


def _name(path: Path, package: str) -> str:
    return ".".join((package, *path.relative_to(PACKAGES[package]).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {_name(path, package): path for package, folder in PACKAGES.items() for path in sorted(folder.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
FILES = [name for name, path in MODULES.items() if path.stem != "__init__"]


def _imported(name: str) -> set[str]:
    """Modules of the project that a file imports, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return (found & set(FILES)) - {name}


ARROWS = {name: _imported(name) for name in FILES}
PAIRS = [(name, to) for name, others in ARROWS.items() for to in sorted(others)]


def _outside(name: str) -> set[str]:
    """Top-level packages that a file imports, the project's own and the standard library's left out."""
    tops: set[str] = set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            tops |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            tops.add(str(node.module).split(".")[0])
    return tops - set(sys.stdlib_module_names) - set(PACKAGES)


def _floor(name: str) -> int:
    """The floor of the longest prefix that is listed."""
    found = [(len(room), i) for i, rooms in enumerate(FLOORS) for room in rooms if (name + ".").startswith(room + ".")]
    return max(found)[1]


def _below(start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for to in ARROWS[waiting.pop()] - found:
            found.add(to)
            waiting.append(to)
    return found


BELOW = {name: _below(name) for name in FILES}


# --- arrows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("module", "imported"), PAIRS)
def test_imports_go_downwards(module: str, imported: str) -> None:
    assert _floor(imported) <= _floor(module)
    if _floor(imported) == _floor(module):
        assert _room(imported, 2) == _room(module, 2), "folders of one floor do not import each other"


def _room(name: str, depth: int) -> str:
    return ".".join(name.split(".")[:depth])


def test_no_file_imports_itself_in_a_circle() -> None:
    assert [name for name in FILES if name in BELOW[name]] == []


def test_no_folder_imports_itself_in_a_circle() -> None:
    """Folders as rooms; the top of a package, where the command and the places lie, is no room."""
    arrows: dict[str, set[str]] = defaultdict(set)
    for module, imported in PAIRS:
        here, there = module.rpartition(".")[0], imported.rpartition(".")[0]
        if here != there and not {here, there} & set(PACKAGES):
            arrows[here].add(there)

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            for to in arrows.get(waiting.pop(), set()) - found:
                found.add(to)
                waiting.append(to)
        return found

    assert [room for room in list(arrows) if room in reached(room)] == []


@pytest.mark.parametrize("module", FILES)
def test_the_two_sides_do_not_meet_below_the_protocols(module: str) -> None:
    sides = {"flamelib.mechanisms": "flamelib.accounting", "flamelib.accounting": "flamelib.mechanisms"}
    other = sides.get(_room(module, 2))
    assert not [name for name in BELOW[module] if other and _room(name, 2) == other]


@pytest.mark.parametrize("module", [name for name in FILES if name.startswith("flamelib.accounting.")])
def test_the_privacy_side_never_sees_a_generator(module: str) -> None:
    names = {node.attr for node in ast.walk(TREES[module]) if isinstance(node, ast.Attribute)}
    assert not names & {"random", "Generator", "default_rng"}


def test_protocols_do_not_import_each_other() -> None:
    rooms = [arrow for arrow in PAIRS if all(_room(name, 2) == "flamelib.protocols" for name in arrow)]
    assert rooms == []


@pytest.mark.parametrize("module", [name for name in FILES if name.startswith("flamelib.")])
def test_the_library_never_reaches_the_book_nor_what_only_the_book_needs(module: str) -> None:
    assert not [name for name in BELOW[module] if name.startswith("flamebook")]
    asked = set().union(*(_outside(name) for name in (module, *BELOW[module])))
    assert not asked & {"matplotlib", "yaml", "papermill", "snakemake", "typer", "jinja2", "IPython"}
    assert "torch" not in _outside(module) or module == "flamelib.learning.networks"


@pytest.mark.parametrize("module", [name for name in FILES if _room(name, 2) in UNDRAWN])
def test_what_is_computed_never_reaches_what_draws(module: str) -> None:
    asked = set().union(*(_outside(name) for name in (module, *BELOW[module])))
    assert "matplotlib" not in asked


# --- rooms ------------------------------------------------------------------------------------------


def test_no_folder_is_empty() -> None:
    size: dict[str, int] = defaultdict(int)
    for package, folder in PACKAGES.items():
        for place in (folder, *(path for path in folder.rglob("*") if path.is_dir() and path.name != "__pycache__")):
            entries = [p for p in place.iterdir() if p.name not in ("__init__.py", "__pycache__", "py.typed")]
            room = ".".join((package, *place.relative_to(folder).parts))
            size[room] = len([p for p in entries if p.is_dir() or p.suffix == ".py"])
    assert all(size.values()), "no folder is empty"


def test_no_crumbs() -> None:
    """A file whose only importer sits in its own folder belongs into it, unless it is a subject of its own."""
    users: dict[str, set[str]] = defaultdict(set)
    for module, imported in PAIRS:
        users[imported].add(module)
    lonely = {
        name
        for name, found in users.items()
        if len(found) == 1 and next(iter(found)).rpartition(".")[0] == name.rpartition(".")[0]
    }
    stated = set(homes().values())
    assert lonely - stated == set(SUBJECTS) - stated


@pytest.mark.parametrize("path", [path for path in MODULES.values() if path.stem == "__init__"], ids=str)
def test_a_folder_says_what_it_holds(path: Path) -> None:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    assert isinstance(body[0], ast.Expr)
    assert len(body) == 1 or path.parent == PACKAGES["flamelib"], "only the front door holds code"


# --- what is loaded ---------------------------------------------------------------------------------


def _loaded_by(code: str) -> set[str]:
    """Top-level packages in a fresh interpreter after some code."""
    told = "import sys; before = set(sys.modules)\n" + code + "\nprint(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", told], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def _closed() -> list[str]:
    """Modules of statements that reach nothing but the standard library: these can be asked in a browser."""
    stated = sorted(set(homes().values()))
    return [name for name in stated if not set().union(*(_outside(one) for one in (name, *BELOW[name])))]


def test_closed_forms_are_standard_library_only_and_load_so() -> None:
    closed = _closed()
    assert {
        "flamelib.accounting.shuffling.closed_form",
        "flamelib.accounting.composition.closed_form",
        "flamelib.accounting.composition.renyi",
        "flamelib.accounting.sampling.known",
        "flamelib.accounting.checkin.closed_form",
        "flamelib.accounting.coordinates.printed",
        "flamelib.accounting.splitting.rules",
        "flamelib.mechanisms.integers.decoding",
    } <= set(closed)
    code = "".join(f"import {name}\n" for name in closed)
    assert _loaded_by(code) - set(sys.stdlib_module_names) == {"flamelib"}


def test_importing_and_evaluating_never_imports_torch() -> None:
    ask = "answer('blanket:lem-reduction', {'randomizer': 'laplace', 'epsilon0': 1, 'n_users': 100, 'epsilon': 0.1})"
    loaded = _loaded_by(f"import flamelib\nfrom flamelib.answers import answer, load_all\nload_all()\n{ask}")
    assert not loaded & {"torch", "sklearn", "matplotlib", "papermill"}


def test_the_whole_ledger_loads_without_matplotlib() -> None:
    code = "".join(f"import {name}\n" for name in FILES if _room(name, 2) in UNDRAWN)
    assert "matplotlib" not in _loaded_by(code)


def test_every_statement_is_found_by_walking_the_folders() -> None:
    assert list(load_all()) == list(homes())
