"""Light to install: the wheel, with NumPy and SciPy alone, and what a cold command loads."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from flamebook.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BUILD = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
PACKAGES = {"flamelib": ROOT / "flamelib", "flamebook": ROOT / "book" / "flamebook"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built beside it."""
    tree = tmp_path_factory.mktemp("tree")
    unmade = shutil.ignore_patterns("__pycache__")
    for folder in PACKAGES.values():
        shutil.copytree(folder, tree / folder.relative_to(ROOT), ignore=unmade)
    for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-text"):
        shutil.copy(ROOT / name, tree)
    subprocess.run([sys.executable, "-c", BUILD], cwd=tree, capture_output=True, check=True)
    (found,) = (tree / "dist").glob("*.whl")
    return found


def test_the_wheel_holds_both_packages_whole_and_nothing_else(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    there = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for package, folder in PACKAGES.items()
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    assert held == there
    assert {"flamelib/py.typed", "flamelib/learning/datasets.json"} <= held


def test_the_wheel_asks_for_numpy_and_scipy_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as members:
        (name,) = (name for name in members.namelist() if name.endswith(".dist-info/METADATA"))
        told = message_from_string(members.read(name).decode())
    asked = [Requirement(text) for text in told.get_all("Requires-Dist", [])]
    assert {one.name for one in asked if one.marker is None} == {"numpy", "scipy"}
    assert told["Requires-Python"] == PROJECT["requires-python"] == ">=3.11"
    assert set(told.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    assert told.get_all("Project-URL") is None, "an address is not known when this is written"


def loaded(program: str) -> set[str]:
    """Modules in a fresh interpreter after a program that prints nothing."""
    told = f"import sys; before = set(sys.modules)\n{program}\nprint(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", told], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_library_loads_next_to_nothing() -> None:
    assert {name.partition(".")[0] for name in loaded("import flamelib")} <= {"flamelib"}


def test_a_certified_answer_loads_no_large_part_of_scipy() -> None:
    """Neither do the listing, which imports every module that states something, and the command."""
    answers = [
        ("blanket:lem-reduction", {"randomizer": "laplace", "epsilon0": 1, "n_users": 1e4, "delta": 1e-6}),
        ("clones:2021", {"epsilon0": 1, "n_users": 1e4, "delta": 1e-6}),
        ("shuffle:exact-binary", {"epsilon0": 1, "n_users": 1e6, "delta": 1e-8}),
        (
            "checkin:shuffled",
            {"route": "clones", "epsilon0": 1, "n_users": 1e3, "checkin_rate": 0.1, "rounds": 3, "delta": 1e-6},
        ),
    ]
    listing = "import contextlib, io\nfrom flamelib import cli\nwith contextlib.redirect_stdout(io.StringIO()):"
    listing += "\n    cli.main(['evaluate', '--list'])\n"
    found = loaded(listing + f"from flamelib.answers import answer\nfor key, given in {answers!r}: answer(key, given)")
    assert "scipy.special" in found
    slow = {"scipy.stats", "scipy.optimize", "scipy.integrate", "scipy.linalg", "scipy.sparse", "scipy.signal"}
    assert not found & (slow | {"torch", "sklearn", "pooch", "nacl", "typer", "papermill", "matplotlib", "nbformat"})


def test_what_runs_notebooks_builds_no_grammars() -> None:
    assert {"lark", "nbformat"} & loaded("import flamebook.runs, papermill") == {"nbformat"}
