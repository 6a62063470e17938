"""The house around the library: one lock, commands that exist, nothing of any one machine in what is committed."""

import re
import subprocess
import tomllib
from importlib import metadata
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from flamebook.places import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M).group(1).split())  # type: ignore[union-attr]


def tracked() -> dict[str, str]:
    """The text of every file in git, or of every file that would go there."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    found = {name: (ROOT / name).read_bytes() for name in names if name and (ROOT / name).is_file()}
    return {name: data.decode() for name, data in found.items() if b"\0" not in data[:8000]}


def locked() -> dict[str, str]:
    """Package to version, as the lock pins them."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line.split("==") for line in lines if line and not line.lstrip().startswith("#")]
    assert all(len(pin) == 2 for pin in pins), "the lock holds pins and nothing else"
    return {canonicalize_name(name): version for name, version in pins}


def asked(requirement: Requirement) -> list[Requirement]:
    """What an installed package asks for in its turn, with the extras it is asked for with."""
    texts = metadata.requires(requirement.name) or []
    extras = ["", *requirement.extras]
    found = [Requirement(text) for text in texts]
    return [one for one in found if one.marker is None or any(one.marker.evaluate({"extra": name}) for name in extras)]


def test_the_lock_is_what_the_project_asks_for_and_nothing_more() -> None:
    pins = locked()
    extras = [Requirement(text) for texts in PROJECT["optional-dependencies"].values() for text in texts]
    own = [one for one in extras if one.name == PROJECT["name"]]
    assert all(one.extras <= set(PROJECT["optional-dependencies"]) for one in own)
    waiting = [*map(Requirement, PROJECT["dependencies"]), *(one for one in extras if one not in own)]
    needed: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        assert name in pins, f"{one} is not in requirements.lock"
        assert one.specifier.contains(pins[name], prereleases=True), f"the lock pins {name} {pins[name]}, against {one}"
        if (name, frozenset(one.extras)) not in needed:
            needed.add((name, frozenset(one.extras)))
            waiting += asked(one)
    assert {name for name, _ in needed} == set(pins)


def test_conda_and_binder_get_the_lock_and_its_python() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip, packages = environment["dependencies"]
    without_cuda = re.search(r"^TORCH_INDEX \?= (.*)$", MAKEFILE, re.M).group(1)  # type: ignore[union-attr]
    words = [f"--extra-index-url {without_cuda}", "-r requirements.lock", "-e ."]
    assert packages == {"pip": words}, "no second list of versions"
    assert pip == "pip"
    assert python == "python=3.11"
    assert PROJECT["requires-python"] == ">=3.11", "the library runs on later ones, the lock is for this one"
    assert "(3, 11)" in MAKEFILE
    assert not any((ROOT / name).exists() for name in ("binder", ".binder")), "either would hide environment.yml"
    after = ROOT / "postBuild"
    assert after.stat().st_mode & 0o111
    assert subprocess.run(["bash", "-n", after], check=False).returncode == 0


def test_no_text_holds_control_characters() -> None:
    """A backslash that a program took for an escape: ``\\begin`` begins with a backspace then."""
    for name, text in tracked().items():
        found = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", text)
        assert found is None, f"{name} at {found and found.start()}"
        assert "\t" not in text or not name.endswith((".md", ".py")), name


@pytest.mark.parametrize("name", ["README.md", "book/rerun.md", "book/contributing.md", ".ci/run"])
def test_commands_that_a_page_names_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    # A command stands in backquotes or begins a line of a listing.
    called = set(re.findall(r"(?:`|^\s*(?:\$ )?)make ([a-z-]+)", text, re.M))
    assert called
    assert called <= TARGETS


def test_nothing_of_one_machine_is_committed() -> None:
    # The words are put together here, lest this file be found.
    hosts = "|".join(
        rf"{one}\.{two}" for one, two in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("deb", "debian"))
    )
    own = re.compile(rf"(?<![\w.:/-])/({'|'.join(('work', 'root', 'home/[a-z]', 'farm', 'opt/[a-z]'))})/|{hosts}")
    found = {name: own.findall(text) for name, text in tracked().items() if name != "LICENSE"}
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_no_text_leads_to_a_repository_or_an_index_that_is_not_known_to_be_ours() -> None:
    """An address of this repository is asked of the checkout (``flamebook.places``), never written down."""
    # The words are put together here, lest this file be found; the change log tells of what was.
    name = PROJECT["name"]
    ours = "|".join((rf"(?:hub|lab)\.com[/:]{name}\b", rf"pip install [\"']?{name}\b", "co" + "lab\\."))
    texts = {name: text for name, text in tracked().items() if name != "CHANGELOG.md"}
    found = {name: re.findall(ours, text) for name, text in texts.items()}
    assert {name: hits for name, hits in found.items() if hits} == {}
    assert "urls" not in PROJECT
    assert "repository-code" not in yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert "codeRepository" not in (ROOT / "codemeta.json").read_text()


def test_every_page_of_the_contents_is_a_source_or_is_made_by_the_build() -> None:
    contents = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text())
    chapters = [page for part in contents["parts"] for page in part["chapters"]]
    assert len(chapters) <= 45, "nobody reads a longer menu"
    below = [page for chapter in chapters for page in chapter.get("sections", [])]
    listed = [
        contents["root"],
        *(page["file"] for page in chapters + below if not page["file"].startswith("book/api/")),
    ]
    made = {f"book/{page}" for page in ("beside", "figures", "ledger", "theorems", "unknown")}
    there = {name for name in listed if any((ROOT / f"{name}.{kind}").is_file() for kind in ("md", "ipynb"))}
    assert set(listed) - made == there
    templates = {f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert templates <= set(listed), "a notebook that no reader finds"
