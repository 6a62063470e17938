"""Where the book's files lie in a checkout, and at which address everybody finds them."""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from flamelib.core.vocabulary import DomainError

FINGERPRINT = "fingerprint.txt"

ROOT = Path(__file__).resolve().parents[2]
# Installed from a wheel there is no checkout around this file: notebooks read what the wheel has brought.
DATA = next(filter(Path.is_dir, [ROOT / "data", Path(sys.prefix, "share", "flamelib")]), ROOT / "data")
RESULTS = DATA / "results"


def revision(root: Path) -> tuple[str, str] | None:
    """The commit of a checkout and its date; ``None`` where git knows of none."""
    name, _, date = _git(root, "log", "-1", "--format=%h %cs").partition(" ")
    return (name, date) if name else None


def _git(root: Path, *words: str) -> str:
    """What git answers about a checkout; nothing where it knows of none."""
    words = ("git", "-C", str(root), *words)
    told = subprocess.run(words, capture_output=True, text=True, check=False) if shutil.which("git") else None
    return told.stdout.strip() if told and told.returncode == 0 else ""


# --- the repository's address ----------------------------------------------------------------------

ADDRESS = "FLAMELIB_REPOSITORY"  # names the address, or, where it is empty, says that there is none
BRANCH = "main"
# On the web: a host with a name that is not of one network alone, and a path of two parts or more.  Bitbucket's
# addresses of files have another form than those of all others.
_WEB = re.compile(
    r"(https?://)(?:[^/@]*@)?((?!.*bitbucket)(?:[\w-]+\.)+(?!local|internal|lan\b|invalid\b)[a-z]{2,}(?::\d+)?)"
    r"((?:/[\w.~-]+?){2,})(?:\.git)?/?"
)
_SSH = re.compile(r"(?:ssh://)?git@([\w.-]+)[:/]")


def repository(root: Path) -> str:
    """The address at which a reader finds this checkout on the web; empty where none is known.

    The variable ``FLAMELIB_REPOSITORY`` decides if it is set. Else it is the remote ``origin``, if that is an address
    on the web, and else the repository that GitHub runs a workflow for. Every link, button and command that leads to
    the repository is made from it, and none is made without it.

    Raises
    ------
    DomainError
        If ``FLAMELIB_REPOSITORY`` is neither empty nor such an address.
    """
    named = os.environ.get(ADDRESS)
    if named is not None:
        found = on_the_web(named)
        if named and not found:
            raise DomainError(f"{ADDRESS} must be empty or an address such as https://HOST/OWNER/NAME, got {named!r}")
        return found
    owned = os.environ.get("GITHUB_REPOSITORY", "")
    site = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    return _origin(root) or on_the_web(f"{site}/{owned}" if owned else "")


@cache
def _origin(root: Path) -> str:
    # Asked for in this very folder: git would also answer for a checkout above it.
    there = (root / ".git").exists()
    return on_the_web(_git(root, "config", "--get", "remote.origin.url")) if there else ""


def on_the_web(remote: str) -> str:
    """A remote of git as the address of its page, without a password; empty where it has none.

    >>> on_the_web("https://name:secret@github.com/owner/book.git"), on_the_web("git@github.com:owner/book.git")
    ('https://github.com/owner/book', 'https://github.com/owner/book')
    >>> on_the_web("../book"), on_the_web("http://127.0.0.1:3000/owner/book"), on_the_web("https://localhost/a/b")
    ('', '', '')
    """
    found = _WEB.fullmatch(_SSH.sub(r"https://\1/", remote.strip()))
    return "".join(found.groups()) if found else ""


def source_url(path: str, line: int | None = None) -> str:
    """The address of a file of this checkout, and of a line in it; empty where the checkout has none."""
    address = repository(ROOT)
    return f"{address}/blob/{BRANCH}/{path}" + (f"#L{line}" if line else "") if address else ""
