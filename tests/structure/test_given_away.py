"""What is handed on agrees with itself: names, versions and licences in every file that tells them."""

import json
import re
import tomllib

import yaml

from flamebook.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CODEMETA = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_description_for_machines_says_what_the_project_says() -> None:
    told = {name: CODEMETA[name] for name in ("name", "description", "version", "keywords", "softwareRequirements")}
    assert told == {
        "name": PROJECT["name"],
        "description": PROJECT["description"],
        "version": PROJECT["version"],
        "keywords": CITATION["keywords"],
        "softwareRequirements": PROJECT["dependencies"],
    }
    assert CODEMETA["license"].endswith(f"/{PROJECT['license']}")
    assert sorted(PROJECT["keywords"]) == sorted(CITATION["keywords"])
    assert PROJECT["requires-python"].removeprefix(">=") in CODEMETA["runtimePlatform"]


def test_all_five_documents_are_cited() -> None:
    cited = {one["identifiers"][0]["value"] for one in CITATION["references"]}
    assert cited == {one["identifier"] for one in CODEMETA["referencePublication"]}
    library = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    assert len(cited) == 5
    assert all(one in library for one in cited)


def test_the_container_and_the_workflows_call_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    texts = [container["postCreateCommand"]]
    texts += [path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    called = {
        word for text in texts for words in re.findall(r"\bmake ((?:[a-z-]+ ?)+)", text) for word in words.split()
    }
    assert {"venv", "browser", "dist", "book"} <= called <= targets
