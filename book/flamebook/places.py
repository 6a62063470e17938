"""Where the book's files lie in a checkout; standard library only."""

from pathlib import Path

FINGERPRINT = "fingerprint.txt"

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
RESULTS = DATA / "results"
