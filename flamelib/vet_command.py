"""Look for inputs at which an epsilon that is claimed after shuffling is below what data sets are certified to lose.

Usage::

  flamelib vet FILE.py:FUNCTION [options]
  flamelib vet --command "PROGRAM {epsilon0} {n_users} {delta}" [options]
  flamelib vet --claims FILE.csv [options]

  FILE.py:FUNCTION  FUNCTION(epsilon0, n_users, delta) returns the epsilon that it claims after one shuffle,
                    replace-one, and inf where it claims none; an exception is a refusal.  A parameter rounds is
                    passed if it has one.
  --command WORDS   a program that prints one number; a status other than 0 is a refusal
  --claims FILE     columns epsilon0, n_users, delta, epsilon, and perhaps rounds, randomizer, n_buckets; every row
                    is judged
  --randomizer R    for which randomizers it is claimed: any (if left out), laplace, or with the size of the alphabet
                    kary:10, rappor:10, oue:10, subset:10, hadamard:10, local-hash:10
  --seconds S       after which time the search ends (20 if left out)
  --seed N          of random inputs (0 if left out)
  --json            one JSON object, which is also printed where standard output is no terminal

The object is the worst counterexample: inputs, claimed, at_least (a certified lower end), ratio, and the command that
recomputes at_least; or inputs, claimed and fault where an answer is no epsilon; or found (0), tried, range and
largest_ratio (of lower end and claim).

Examples::

  flamelib vet accountant.py:epsilon
  flamelib vet accountant.py:epsilon --randomizer kary:10 --seconds 60
  flamelib vet --command "./accountant {epsilon0} {n_users} {delta}"
  flamelib vet --claims printed.csv

Exit status: 0 nothing found; 1 a counterexample, or an answer that is no epsilon; 2 it cannot be asked (one sentence
on standard error).
"""

import contextlib
import csv
import importlib.util
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flamelib.core.vocabulary import DomainError, known, meant, read, shown
from flamelib.uses import vetting

OPTIONS = {"randomizer": "any", "seconds": "20", "seed": "0", "command": "", "claims": ""}
COLUMNS = ("epsilon0", "n_users", "delta", "epsilon", "rounds", "randomizer", "n_buckets")


def vetted(words: Sequence[str]) -> vetting.Vetted:
    """What the search that these words of ``flamelib vet`` describe has found."""
    given, places, left = dict(OPTIONS), [], iter(words)
    for word in left:
        name, sign, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            places.append(word)
        elif name in OPTIONS:
            given[name] = value if sign else next(left, "")
        else:
            options = ", ".join(f"--{one}" for one in OPTIONS)
            raise DomainError(f"option must be one of {options}, --json, got {word!r}{meant(name, OPTIONS)}")
    if len([*places, *filter(None, (given["command"], given["claims"]))]) != 1:
        form = "flamelib vet FILE.py:FUNCTION (or --command WORDS, or --claims FILE)"
        raise DomainError(f"claim must be given once, as in {form}, got {' '.join(words)!r}")
    limits = read(seconds=given["seconds"], seed=given["seed"])
    with contextlib.redirect_stdout(sys.stderr):  # what a function prints is no answer
        if given["claims"]:
            return judged(given["claims"], given["randomizer"])
        claim = program(given["command"], limits["seconds"]) if given["command"] else function(places[0])
        return vetting.vet(claim, given["randomizer"], **limits)


def function(place: str) -> Callable[..., Any]:
    """The function at ``FILE.py:FUNCTION``."""
    file, _, name = place.rpartition(":")
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if not Path(file).is_file() or not spec or not spec.loader:
        raise DomainError(f"claim must be a function in a file, FILE.py:FUNCTION, got {place!r}")
    sys.path.insert(0, str(Path(file).resolve().parent))  # as where the file is run
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as fault:
        raise DomainError(f"claim must be in a file that can be imported, got {file!r}: {shown(fault)}") from None
    found: Callable[..., Any] | None = getattr(module, name, None)
    if not callable(found):
        raise DomainError(f"claim must be a function of {file}, got {name!r}{meant(name, vars(module))}")
    return found


def program(template: str, timeout: float) -> Callable[..., Any]:
    """A program as a function; a status other than 0, and no end within so many seconds, are refusals to claim."""
    if not all(f"{{{name}}}" in template for name in COLUMNS[:3]):
        raise DomainError(f"command must name {{epsilon0}}, {{n_users}} and {{delta}}, got {template!r}")

    words = shlex.split(template)

    def claim(epsilon0: float, n_users: int, delta: float) -> float | str:
        asked = [word.format(epsilon0=epsilon0, n_users=n_users, delta=delta) for word in words]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise ValueError(f"status {done.returncode}: {done.stderr.strip()[-100:]}")
        return _number(done.stdout)

    return claim


def judged(file: str, randomizer: str) -> vetting.Vetted:
    """Every row of a table of claims, compared with its certified lower end."""
    try:
        rows = csv.DictReader(Path(file).read_text(encoding="utf-8-sig").splitlines(), restval="")
    except (OSError, UnicodeDecodeError) as fault:
        raise DomainError(f"claims must be a file that can be read as text, got {file!r}: {fault}") from None
    columns = rows.fieldnames or ()
    known(columns, dict.fromkeys(COLUMNS), COLUMNS[:4], f"the claims in {file}")
    found = vetting.Vetted("rounds" in columns)
    for row in rows:
        try:
            size = f":{row['n_buckets']}" if row.get("n_buckets") else ""
            kind = vetting.kind_and_size((row.get("randomizer") or randomizer) + size)
            setting = read(**{name: row[name] for name in COLUMNS[:3]}, rounds=row.get("rounds") or 1)
        except DomainError as refusal:
            raise DomainError(f"line {rows.line_num} of {file}: {refusal}") from None
        claimed = found.take(lambda *_, stated=row["epsilon"], **__: _number(stated), tuple(setting.values()))
        if claimed is not None:
            found.compare(kind, tuple(setting.values()), claimed)
    if not found.tried and not found.fault:
        raise DomainError(f"claims must have a row, got none in {file}")
    return found


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text.strip()
