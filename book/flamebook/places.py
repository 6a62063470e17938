"""Where the book's files lie in a checkout; standard library only."""

import shutil
import subprocess
from pathlib import Path

FINGERPRINT = "fingerprint.txt"

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
RESULTS = DATA / "results"


def revision(root: Path) -> tuple[str, str] | None:
    """The commit of a checkout and its date; ``None`` where git knows of none."""
    git = ["git", "-C", str(root), "log", "-1", "--format=%h %cs"]
    told = subprocess.run(git, capture_output=True, text=True, check=False) if shutil.which("git") else None
    name, _, date = told.stdout.strip().partition(" ") if told and told.returncode == 0 else ("", "", "")
    return (name, date) if name else None
