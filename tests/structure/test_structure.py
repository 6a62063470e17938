"""The shape of the house: which way imports go, what a notebook may hold, how long a function may be."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flamebook.claims import ledger
from flamebook.places import ROOT
from flamebook.runs.notebook import declared
from flamelib.answers import HOMES, load_all
from flamelib.core.vocabulary import VOCABULARY

PACKAGE = ROOT / "flamelib"
FILES = sorted(PACKAGE.rglob("*.py"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def _name(path: Path) -> str:
    """``amplification.closed_form`` for its file; ``amplification`` for the package's own."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def _imports(tree: ast.AST, prefix: str = "flamelib.") -> set[str]:
    """Modules of the library that a file imports, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return {name.removeprefix(prefix) for name in found} & set(MODULES)


# --- imports go downwards ---------------------------------------------------------------------------

MECHANISM = {
    "encoding", "randomizers", "vector_randomizers", "coordinates", "selection", "shuffling", "sealing", "clipping",
    "cloak_decoding", "randomness", "discrete_noise", "_enclosures", "_geometric", "_arrays", "_folded",
    "_vector_protocols", "_cloak_protocol", "modular", "hashing", "sketches", "count_sketches", "support_sketches",
    "tree_sketches", "stable_sketches",
}  # fmt: skip
PRIVACY = {
    "laws", "divergences", "amplification", "composition", "renyi", "accuracy", "loss_cells", "loss_grids",
    "loss_knots", "loss_sums", "loss_export", "privacy_loss", "client_ledger",
}  # fmt: skip
# From the bottom up; modules of one line may import each other, and everything on the lines above.
LAYERS = (
    {"_validate", "logspace", "_download"},
    {"guarantees", "sources", "search", "profiles"},
    MECHANISM | PRIVACY,
    {"protocols", "auditing"},
    {
        *("datasets", "federated", "models", "convolutional", "random_participation", "checkin_learning"),
        *("cloak_statistics", "cloak_learning", "deployments"),
        *("noisy_sums", "private_reports", "requested"),
    },
    {"figures"},
    {"companion"},
)


def _layer(module: str) -> int:
    head = module.split(".")[0]
    [found] = [i for i, layer in enumerate(LAYERS) if head in layer]
    return found


ARROWS = [(name, to) for name, tree in MODULES.items() if name != "__init__" for to in sorted(_imports(tree)) if to]


@pytest.mark.parametrize("module", [name for name in MODULES if name != "__init__"])
def test_every_module_has_a_place(module: str) -> None:
    assert 0 <= _layer(module) < len(LAYERS)


@pytest.mark.parametrize(("module", "imported"), ARROWS)
def test_imports_go_downwards(module: str, imported: str) -> None:
    if imported != "__init__":
        assert _layer(imported) <= _layer(module)


@pytest.mark.parametrize(("module", "imported"), ARROWS)
def test_the_two_sides_do_not_meet_below_the_protocols(module: str, imported: str) -> None:
    here, there = module.split(".")[0], imported.split(".")[0]
    assert not (here in MECHANISM and there in PRIVACY)
    assert not (here in PRIVACY and there in MECHANISM)


@pytest.mark.parametrize("module", [name for name in MODULES if name.split(".")[0] in PRIVACY])
def test_the_privacy_side_never_sees_a_generator(module: str) -> None:
    names = {node.attr for node in ast.walk(MODULES[module]) if isinstance(node, ast.Attribute)}
    assert not names & {"random", "Generator", "default_rng"}


def test_protocols_do_not_import_each_other() -> None:
    """The modules of one protocol begin with its name, the parties' being that name alone."""
    between = [arrow for arrow in ARROWS if all(module.startswith("protocols.") for module in arrow)]
    assert [(module, to) for module, to in between if module.partition("_")[0] != to] == []


@pytest.mark.parametrize("module", [name for name in MODULES if name.split(".")[0] != "companion"])
def test_only_a_few_modules_import_heavy_packages(module: str) -> None:
    tops = set()
    for node in ast.walk(MODULES[module]):
        if isinstance(node, ast.Import):
            tops |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            tops.add(str(node.module).split(".")[0])
    assert not tops & {"papermill", "snakemake", "typer", "yaml"}
    assert "torch" not in tops or module == "convolutional"
    assert "matplotlib" not in tops or module.startswith("figures")


def _loaded_by(code: str) -> set[str]:
    """Top-level packages in a fresh interpreter after some code (``-S``-like noise of start-up excluded)."""
    told = "import sys; before = set(sys.modules)\n" + code + "\nprint(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", told], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize(
    "module",
    [
        "flamelib.accounting.shuffling.closed_form",
        "flamelib.accounting.coordinates.printed",
        "flamelib.accounting.coordinates.index_privacy",
        "flamelib.accounting.coordinates.printed",
        "flamelib.accounting.sampling.known",
        "flamelib.accounting.sampling.random_checkins",
        "flamelib.accounting.checkin.closed_form",
        "flamelib.accounting.splitting.rules",
        "flamelib.accounting.splitting.rules",
        "flamelib.accounting.splitting.costs",
        "flamelib.accounting.noise.skellam",
        "flamelib.mechanisms.integers.decoding",
        "flamelib.accounting.composition.closed_form",
        "flamelib.accounting.composition.renyi",
        "flamelib.accounting.shuffling.accuracy",
        "flamelib.core.profiles",
    ],
)
def test_what_runs_in_the_browser_is_standard_library_only(module: str) -> None:
    assert _loaded_by(f"import {module}") - sys.stdlib_module_names == {"flamelib"}


def test_importing_and_evaluating_never_imports_torch() -> None:
    ask = "answer('blanket:lem-reduction', {'randomizer': 'laplace', 'epsilon0': 1, 'n_users': 100, 'epsilon': 0.1})"
    loaded = _loaded_by(f"import flamelib\nfrom flamelib.answers import answer, load_all\nload_all()\n{ask}")
    assert not loaded & {"torch", "sklearn", "matplotlib", "papermill"}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("__init__.py")), ids=_name)
def test_a_package_file_holds_a_docstring_only(path: Path) -> None:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    assert len(body) == 1
    assert isinstance(body[0], ast.Expr)


# --- length and manners -----------------------------------------------------------------------------


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _spoken(tree: ast.AST) -> int:
    """Lines of docstrings, which may be as long as their theorem needs."""
    holders = (n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef))
    first = [node.body[0] for node in holders if ast.get_docstring(node) is not None]
    return sum((text.end_lineno or text.lineno) - text.lineno + 1 for text in first)


def _code_lines(tree: ast.AST, lines: int) -> int:
    return lines - _spoken(tree)


def _length(function: ast.FunctionDef) -> int:
    return _code_lines(function, (function.end_lineno or function.lineno) - function.lineno + 1)


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_files_and_functions_are_short(path: Path) -> None:
    assert _code_lines(MODULES[_name(path)], len(path.read_text(encoding="utf-8").splitlines())) <= 300
    assert [f.name for f in _functions(MODULES[_name(path)]) if _length(f) > 50] == []


def test_most_functions_are_very_short() -> None:
    lengths = sorted(_length(f) for tree in MODULES.values() for f in _functions(tree))
    assert lengths[len(lengths) // 2] <= 12


@pytest.mark.parametrize("module", [name for name in MODULES if name.split(".")[0] != "companion"])
def test_the_library_neither_prints_nor_asserts(module: str) -> None:
    for node in ast.walk(MODULES[module]):
        assert not isinstance(node, ast.Assert)
        assert not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print")


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_nothing_is_left_undone(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not [word for word in ("TODO", "FIXME", "XXX", "NotImplementedError") if word in text]
    public = [n for n in MODULES[_name(path)].body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
    # The help of the whole command stands where the command is made.
    said = [n for n in public if any(".callback(" in ast.unparse(mark) for mark in n.decorator_list)]
    assert [n.name for n in public if n not in said and not ast.get_docstring(n)] == []


# --- one registry -----------------------------------------------------------------------------------


def _homes() -> list[str]:
    """Every id given to ``@states`` in the source."""
    found = []
    for tree in MODULES.values():
        for function in _functions(tree):
            for mark in function.decorator_list:
                if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "states":
                    document, name = mark.args
                    assert isinstance(document, ast.Constant)
                    assert isinstance(name, ast.Constant)
                    found.append(f"{document.value}:{name.value}")
    return found


def test_every_statement_has_one_home_that_the_command_loads() -> None:
    homes = _homes()
    assert len(homes) == len(set(homes))
    assert set(homes) == set(load_all())
    assert {home.split(":")[0] for home in homes} == set(HOMES)


@pytest.mark.parametrize("key", sorted(load_all()))
def test_a_statement_is_documented(key: str) -> None:
    statement = load_all()[key]
    text = statement.function.__doc__ or ""
    assert "Source" in text, "a docstring names its source"
    assert ">>>" in text, "a docstring has an example that runs"
    sides = ("upper", "lower", "exact", "value", "mass", "never", "not a bound")
    assert any(word in text.split("\n\n")[0].lower() for word in sides), "the first sentence tells the direction"


@pytest.mark.parametrize("key", sorted(load_all()))
def test_a_statement_speaks_the_vocabulary(key: str) -> None:
    assert set(load_all()[key].parameters) <= set(VOCABULARY)


# --- notebooks --------------------------------------------------------------------------------------


def _cells(path: Path, kind: str = "code") -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells if cell["cell_type"] == kind]


def _code(path: Path) -> str:
    return "\n".join(cell["source"] for cell in _cells(path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestNotebook:
    def test_is_stored_without_outputs(self, path: Path) -> None:
        assert [cell for cell in _cells(path) if cell["outputs"] or cell["execution_count"] is not None] == []

    def test_declares_its_parameters_first(self, path: Path) -> None:
        tagged = [i for i, cell in enumerate(_cells(path)) if "parameters" in cell["metadata"].get("tags", [])]
        assert tagged == [0]
        names = declared(path)
        assert names
        assert [name for name, one in names.items() if not one.about] == [], "every parameter has a help text"

    def test_speaks_the_vocabulary(self, path: Path) -> None:
        numeric = {name for name, one in declared(path).items() if one.element in ("int", "float")}
        assert numeric <= set(VOCABULARY)

    def test_is_thin(self, path: Path) -> None:
        code = _code(path)
        # Counted as one line a statement, so that wrapping a long call does not matter.
        assert len([line for line in ast.unparse(ast.parse(code)).splitlines() if line.strip()]) <= 60
        for node in ast.walk(ast.parse(code)):
            assert not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda)

    def test_holds_no_randomness_and_no_path(self, path: Path) -> None:
        tree = ast.parse(_code(path))
        assert "random" not in {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        endings = (".csv", ".json", ".svg", ".png", ".npy", ".txt")
        assert [text for text in texts if text.startswith(("/", "./", "../", "~")) or text.endswith(endings)] == []

    def test_imports_little_but_the_library(self, path: Path) -> None:
        tops = set()
        for node in ast.walk(ast.parse(_code(path))):
            if isinstance(node, ast.Import):
                tops |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                tops.add(str(node.module).split(".")[0])
        assert tops - {"flamelib", "numpy", "matplotlib"} - sys.stdlib_module_names == set()

    def test_every_figure_has_words_for_those_who_cannot_see_it(self, path: Path) -> None:
        for cell in _cells(path):
            calls = [node for node in ast.walk(ast.parse(cell["source"])) if isinstance(node, ast.Call)]
            shows = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "show"]
            for call in shows:
                given = {word.arg: word.value for word in call.keywords}
                alt = given["alt"]
                assert isinstance(alt, ast.Constant)
                assert len(alt.value) >= 20
                figure = cell["metadata"]["mystnb"]["figure"]
                assert figure["name"].startswith("fig-")
                assert figure["caption"]


def test_figures_have_names_of_their_own() -> None:
    names = [
        cell["metadata"]["mystnb"]["figure"]["name"]
        for path in NOTEBOOKS
        for cell in _cells(path)
        if "figure" in cell["metadata"].get("mystnb", {})
    ]
    assert names
    assert len(names) == len(set(names))


def test_a_reference_to_a_theorem_names_it() -> None:
    """Theorems keep the numbers of their documents, so the builder has none to print in a bare reference."""
    pages = [*NOTEBOOKS, *(ROOT / "book").glob("*.md")]
    assert [path.name for path in pages if re.search(r"\{prf:ref\}`[^<`]*`", path.read_text(encoding="utf-8"))] == []


# --- the ledger covers what the library states ------------------------------------------------------


def test_every_statement_of_a_covered_document_is_in_the_ledger() -> None:
    claims = ledger.load()
    items = {claim.item for claim in claims}
    documents = {claim.document for claim in claims}
    assert [key for key in load_all() if key.split(":")[0] in documents and key not in items] == []


def test_the_library_page_shows_every_public_module() -> None:
    page = (ROOT / "book" / "api.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"automodule:: flamelib\.([\w.]+)", page))
    inner = ("figures", "companion")
    files = [path for path in FILES if path.parent.name not in inner and not path.name.startswith("_")]
    public = {_name(path) for path in files if path.stem != "logspace"}
    assert public - shown == set()
