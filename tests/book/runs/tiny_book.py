"""A book of three small notebooks over four modules, and its build as a process of its own, to try the machinery on."""

import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import psutil
import templates

from flamebook.places import ROOT
from flamebook.site.book import build

PARAMETERS = "n_users: int = 10_000  # users\nseed: int = 7  # of the one generator"
CONFIG = """\
title: Tiny
author: Nobody
copyright: "2026"
logo: ""
only_build_toc_files: true
execute: {execute_notebooks: "off"}
"""
BUILD = "import sys; from flamebook.site.book import build; sys.exit(build.main([], *[lambda *folders: None] * 2))"


def notebook(*sources: str, text: str = "# Page") -> dict[str, object]:
    """A template: one text, the parameters, then these cells."""
    found: dict[str, object] = templates.notebook(PARAMETERS, *sources, text=text)
    return found


def put(path: Path, text: str | dict[str, object]) -> Path:
    """Write a file, its folder too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


def make(folder: Path, names: str = "abc") -> Path:
    """A checkout with these notebooks over four modules; ``a`` and ``b`` share the module ``base``."""
    put(folder / "tinylib" / "__init__.py", "")
    put(folder / "tinylib" / "base.py", "BASE = 1\n")
    put(folder / "tinylib" / "one.py", "from tinylib.base import BASE as ONE\n")
    put(folder / "tinylib" / "two.py", "from . import base\n\nTWO = base.BASE\nREADS = 'words.csv'\n")
    put(folder / "tinylib" / "three.py", "THREE = 3\n")
    put(folder / "data" / "words.csv", "word\n")
    for name in names:
        module = {"a": "one", "b": "two", "c": "three"}[name]
        text = f"# Page {name}"
        page = notebook(f"from tinylib.{module} import {module.upper()}\n({module.upper()}, n_users)", text=text)
        put(folder / "notebooks" / f"{name}.ipynb", page)
    put(folder / "book" / "index.md", "# Tiny\n")
    put(folder / "book" / "_toc.yml", "{format: jb-book, root: book/index, chapters: [{file: notebooks/a}]}\n")
    put(folder / "book" / "parameters" / "quick.yml", "a: {n_users: 20000}\n")
    put(folder / "_config.yml", CONFIG)
    shutil.copy(ROOT / "Snakefile", folder)
    return folder


def without_privileges() -> None:
    """In a child before it becomes another program: the superuser is held to permissions like anybody else."""
    drop_from_bounding_set = 24
    if os.geteuid() == 0:
        for capability in range(64):
            ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)


def start(
    root: Path,
    out: IO[str] | int = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> "subprocess.Popen[str]":
    """``make book`` without the environment, in a process group of its own."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "book"), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", BUILD],
        cwd=root,
        env={**os.environ, **(environment or {}), "PYTHONPATH": path},
        stdout=out,
        stderr=out,
        text=True,
        start_new_session=True,
        preexec_fn=before,
    )


def at_work(root: Path) -> list[psutil.Process]:
    """The processes that work somewhere under a folder, but this one."""
    found = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if one.pid != os.getpid() and one.status() != psutil.STATUS_ZOMBIE and str(root) in one.cwd():
                found.append(one)
    return found


def wait_until(reached: Callable[[], bool]) -> None:
    """Until then; a build that hangs is ended by the limit of a test."""
    while not reached():
        time.sleep(0.1)


def pages(root: Path) -> dict[str, bytes]:
    """Every page of the book in place."""
    return {str(path.relative_to(root)): path.read_bytes() for path in (root / build.HTML).rglob("*.html")}
