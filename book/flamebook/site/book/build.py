"""``make book``: run what is not current, stage the pages, build them strictly, put the book in its place.

A book is put in place by renaming a finished folder, so a build that is killed leaves the old book whole.
Whether there is anything to do is decided by content, never by time stamps.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import yaml

from flamebook.places import BRANCH, FINGERPRINT, repository, revision
from flamebook.runs import execute, files, inputs, notebook, schedule, tied
from flamebook.runs.page import built, plain
from flamebook.runs.schedule import Outcome, say
from flamelib.core.vocabulary import DomainError

SOURCE = Path("_build/src")
WORK = Path("_build/work")
HTML = Path("_build/html")
LOG = Path("_build/book.log")
CONFIG = SOURCE / "_config.yml"
SOURCES = ("_config.yml", "requirements.lock", "book", "data", "flamelib", "notebooks", "tests", "CHANGELOG.md")
# Addresses of pages that have moved, and where they lead; what an address keeps of a choice goes along.
FORWARDED = {
    "book/bench.html": "defend.html",
    "book/dossiers.html": "refuted.html",
    "book/falls.html": "theorems.html",
    "book/status.html": "beside.html",
}
FORWARDING = """<!DOCTYPE html><html lang="en"><title>This page has moved</title>
<script>location.replace("{target}" + location.hash);</script>
<meta http-equiv="refresh" content="1; url={target}"><p>This page has moved: <a href="{target}">{target}</a></p></html>
"""
# The package has no module to run; this is what its command does, in this very Python.
JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"
STRICT = ("-W", "--keep-going", "-n", "--all")

#: Writes the generated pages: (folder of the runs, staged ``book`` folder).
Pages = Callable[[Path, Path], None]
#: Adds files to a built book, given its folder.
Finish = Callable[[Path], object]


class BookFailed(RuntimeError):
    """The strict build of the pages found something wrong."""


def build(root: Path, profile: str, jobs: int, options: Sequence[str], pages: Pages, finish: Finish) -> Outcome:
    """Bring the book under ``root`` up to date; returns what was run.

    Raises
    ------
    DomainError
        For an unknown profile, notebook or parameter, or an address that is none.
    BookFailed
        If the pages do not build without a warning.  The book of an earlier build stays.
    """
    repository(root)  # a wrong address is refused before anything runs
    outcome = schedule.carry_out(schedule.plan(root, profile), jobs, options)
    if outcome.failed:
        return outcome
    with files.held(root / "_build", lambda who: say(f"waiting  another build makes the pages: {who}")) as lock:
        return _with_pages(root, edition(root, profile), outcome, pages, finish, lock)


def edition(root: Path, profile: str) -> str:
    """Which edition a page is of, for the foot of every page: parameter set, version, revision and its date."""
    found = revision(root)
    named = f", revision {found[0]} of {found[1]}" if found else ""
    return f"Edition “{profile}” of flamelib {metadata.version('flamelib')}{named}"


def _with_pages(root: Path, told: str, outcome: Outcome, pages: Pages, finish: Finish, lock: IO[str]) -> Outcome:
    """Make the pages from the runs, unless those in place are made from just these."""
    wanted = hashlib.sha256(f"{told}\n{repository(root)}\n{fingerprint(root)}".encode()).hexdigest()
    if _current(root) == wanted and (root / built.SEED).is_dir():
        say("current  the pages")
        return outcome
    say("building the pages")
    stage(root, pages)
    _write_config(root, told)
    html = _jupyter_book(root, lock)
    _copy_results(root, html)
    finish(html)
    _write_downloads(root, html)
    (html / FINGERPRINT).write_text(wanted + "\n", encoding="utf-8")
    files.put_in_place(html, root / HTML)
    # Pages of own runs are made from it; their numbers are those of the book that stands there.
    files.put_in_place(root / WORK / "_build" / ".doctrees", root / built.SEED)
    shutil.rmtree(root / WORK, ignore_errors=True)
    return outcome


def fingerprint(root: Path) -> str:
    """One digest of everything that the pages are made from."""
    found = [path for name in SOURCES for path in _under(root / name)] + list(_under(root / schedule.RUNS))
    lines = (f"{path.relative_to(root).as_posix()} {inputs.sha256(path)}" for path in sorted(found))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _under(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    elif place.is_dir() and place.name != "__pycache__":
        for inner in place.iterdir():
            if not inner.name.startswith("."):
                yield from _under(inner)


def _current(root: Path) -> str:
    try:
        return (root / HTML / FINGERPRINT).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def stage(root: Path, pages: Pages) -> Path:
    """Lay out the pages as the book reads them: at the paths they have in the repository, notebooks executed."""
    source = root / SOURCE
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(root / "book", source / "book", ignore=shutil.ignore_patterns("__pycache__", ".*"))
    (source / "notebooks").mkdir()
    for page in sorted((root / schedule.RUNS).glob("*/*.ipynb")):
        if (root / "notebooks" / page.name).is_file():
            shutil.copy(page, source / "notebooks" / page.name)
    pages(root / schedule.RUNS, source / "book")
    return source


def _write_config(root: Path, told: str) -> None:
    """The book's settings with the edition at the foot of every page, and what leads to the repository."""
    settings = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    settings.setdefault("html", {})["extra_footer"] = f'<p class="fl-edition">{told}</p>'
    if address := repository(root):
        _add_buttons(settings, address)
    (root / CONFIG).write_text(yaml.safe_dump(settings, allow_unicode=True, sort_keys=False), encoding="utf-8")


def _add_buttons(settings: dict[str, Any], address: str) -> None:
    """Repository, issues and edit buttons on every page, and Binder on those with a notebook."""
    settings.setdefault("repository", {}).update(url=address, branch=BRANCH)
    settings["html"] |= {f"use_{name}_button": True for name in ("repository", "issues", "edit_page")}
    # The environment of Binder is environment.yml; Colab would lack it.
    settings["launch_buttons"] = {"notebook_interface": "jupyterlab", "binderhub_url": "https://mybinder.org"}
    options = settings.setdefault("sphinx", {}).setdefault("config", {}).setdefault("html_theme_options", {})
    options["repository_provider"] = "gitlab" if "gitlab" in address else "github"


def _jupyter_book(root: Path, lock: IO[str]) -> Path:
    # A new folder every time: an old doctree keeps old numbers on other pages.
    work = root / WORK
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    words = ["build", str(SOURCE), "--config", str(CONFIG), "--toc", "book/_toc.yml", "--path-output", str(WORK)]
    with (root / LOG).open("w+", encoding="utf-8") as log:
        command = [*tied.command(JUPYTER_BOOK), *words, *STRICT]
        options: dict[str, Any] = {"cwd": root, "env": os.environ | tied.surroundings()}
        # The child holds our lock too, until it notices that this process was killed.
        options |= {"stdout": log, "stderr": subprocess.STDOUT, "pass_fds": [lock.fileno()]}
        done = subprocess.run(command, check=False, **options)
        log.seek(0)
        told = [line.rstrip() for line in log]
    if done.returncode != 0:
        wrong = [line for line in told if "WARNING" in line or "ERROR" in line or "rror:" in line]
        raise BookFailed("\n".join([f"the pages do not build; the whole log is {LOG}", *(wrong or told)[:40]]))
    return work / "_build" / "html"


def _copy_results(root: Path, html: Path) -> None:
    for receipt in sorted((root / schedule.RUNS).glob(f"*/{execute.RECEIPT}")):
        if (html / "notebooks" / f"{receipt.parent.name}.html").is_file():
            shutil.copytree(receipt.parent, html / "files" / receipt.parent.name)


def _write_downloads(root: Path, html: Path) -> None:
    """The notebooks that pages offer for download, in Markdown that any Jupyter shows."""
    known = plain.book(root / WORK / "_build" / ".doctrees", root / "book" / "references.bib")
    clone = repository(root)
    for page in sorted((html / "_sources" / "notebooks").glob("*.ipynb")):
        notebook.write(page, plain.notebook(notebook.read(page), known, clone, beside=False))


def summary(root: Path, outcome: Outcome, seconds: float) -> str:
    """What was run, where the book is, how long it took."""
    lines = [f"\n{message.rstrip()}" for message in outcome.failed.values()]
    lines += [f"notebooks  {len(outcome.ran)} run, {len(outcome.skipped)} current, {len(outcome.failed)} failed"]
    lines += [] if outcome.failed else [f"book       {(root / HTML / 'index.html').resolve()}"]
    return "\n".join([*lines, f"time       {int(seconds // 60)} min {seconds % 60:.0f} s"])


def main(words: Sequence[str], pages: Pages | None = None, finish: Finish | None = None) -> int:
    """Build the book of the current folder; status 1 if a notebook or a page failed, 2 for a refusal."""
    parser = argparse.ArgumentParser(prog="flamebook.site.book.build", description=main.__doc__)
    parser.add_argument("--profile", default="quick", help="parameter set: quick or paper")
    parser.add_argument("--jobs", type=int, default=2, help="notebooks at a time")
    parser.add_argument("options", nargs="*", help="after --: further words for Snakemake")
    given = parser.parse_args(words)
    started = time.monotonic()
    try:
        outcome = build(Path(), given.profile, given.jobs, given.options, pages or _pages, finish or _finish)
    except DomainError as refusal:
        print(refusal, file=sys.stderr)
        return 2
    except BookFailed as fault:
        print(fault, file=sys.stderr)
        return 1
    except OSError as fault:
        print(f"_build must be a folder that can be written, and its disk have room: {fault}", file=sys.stderr)
        return 1
    print(summary(Path(), outcome, time.monotonic() - started))
    return 1 if outcome.failed else 0


def _pages(runs_folder: Path, book_folder: Path) -> None:
    from flamebook.site.book import pages

    pages.write(runs_folder, book_folder)


def _finish(html: Path) -> None:
    from flamebook.site.sliders import pyodide

    pyodide.install(html)
    for path, target in FORWARDED.items():
        (html / path).write_text(FORWARDING.format(target=target), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
