"""Does every admissible run end in a page?  Notebooks tried with values drawn from the domains that they declare.

``python tests/fuzz/trial.py --draw 100 --seed 7`` draws values and runs them; ``--cases FILE`` runs those of a file
(``notebook: [{name: value}, ...]``).  Each run ends in a page, or is refused in one sentence before it starts;
anything else is printed with the command that shows it again, and the status is 1.
"""

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from flamebook.places import ROOT
from flamebook.runs import notebook
from flamebook.runs.execute import receipt_of
from flamebook.runs.notebook import Declared
from flamelib.core.vocabulary import Domain, DomainError

CHANGED = 0.6  # chance that a parameter is changed
EDGE = 0.1  # chance that it goes to an end of its domain
SPREAD = 1.5  # standard deviation of the logarithm of a change
COSTLY = ("repeats", "sweep_repeats", "points", "trials", "rounds")  # only made smaller: they buy precision with time
LIMIT = 900.0  # seconds of one run


@dataclass(frozen=True, slots=True)
class Trial:
    """How a run with given values ended: ``page``, ``refused`` or ``fault``, and in which words."""

    notebook: str
    given: Mapping[str, str]
    end: str
    words: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        values = " ".join(f"-p {name}={value}" for name, value in self.given.items())
        return f"{self.end:8}{self.seconds:5.0f} s  flamelib run {self.notebook} {values}  {self.words}".rstrip()


def drawn(template: Path, generator: np.random.Generator) -> dict[str, str]:
    """Values for some parameters of a notebook, as words, each in the domain of its name."""
    changed = [one for one in notebook.declared(template).values() if generator.random() < CHANGED]
    return {one.name: word for one in changed if (word := _word(one, generator))}


def _word(one: Declared, generator: np.random.Generator) -> str:
    domain = one.one or Domain("")
    if one.element in ("str", "bool"):
        return str(generator.choice(domain.choices)) if domain.choices else ""
    values = one.default if one.several else [one.default]
    return ",".join(_number(one.name, float(value), domain, one.element == "int", generator) for value in values)


def _number(name: str, value: float, domain: Domain, whole: bool, generator: np.random.Generator) -> str:
    ends = [end for end in (domain.low, domain.high) if domain.contains(end) and abs(end) < 1e6]
    if name not in COSTLY and ends and generator.random() < EDGE:
        return f"{generator.choice(ends):g}"
    change = math.exp(SPREAD * generator.standard_normal())
    change = min(change, 1 / change) if name in COSTLY else change
    if domain.low == 0 and domain.high == 1 and 0 < value < 1:
        odds = value / (1 - value) * change
        moved = odds / (1 + odds)
    else:
        moved = value * change
    moved = min(max(moved, domain.low), domain.high)
    return str(round(moved)) if whole else f"{moved:.3g}"


def tried(template: Path, given: Mapping[str, str], limit: float = LIMIT) -> Trial:
    """Run a notebook with these values, in a process of its own and a folder that is thrown away."""
    try:
        notebook.values(template, given)
    except DomainError as refusal:
        return Trial(template.stem, given, "refused", str(refusal))
    words = [word for name, value in given.items() for word in ("-p", f"{name}={value}")]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="flamelib-trial-") as place:
        folder = Path(place) / "run"
        command = [sys.executable, "-m", "flamelib.cli", "run", str(template), *words, "--output", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
            fault = _fault(folder, template, done.stderr)
        except subprocess.TimeoutExpired:
            fault = f"no end within {limit:.0f} seconds"
    return Trial(template.stem, given, "fault" if fault else "page", fault, time.monotonic() - started)


def _fault(folder: Path, template: Path, said: str) -> str:
    """What is wrong with a finished run; empty where nothing is."""
    receipt = receipt_of(folder)
    if receipt is None or not (folder / template.with_suffix(".html").name).is_file():
        return f"no page: {said.strip()[-300:]}"
    return "; ".join(receipt.faults)


def _plans(words: argparse.Namespace) -> Iterator[tuple[Path, Mapping[str, str]]]:
    if words.cases:
        for name, cases in yaml.safe_load(words.cases.read_text(encoding="utf-8")).items():
            yield from ((notebook.locate(name), {key: str(value) for key, value in case.items()}) for case in cases)
    templates = [notebook.locate(name) for name in words.notebooks] or sorted((ROOT / "notebooks").glob("*.ipynb"))
    generator = np.random.default_rng(words.seed)
    for number in range(words.draw):
        template = templates[number % len(templates)]
        yield template, drawn(template, generator)


def main(words: Sequence[str]) -> int:
    """Try notebooks; status 1 if a run neither ended in a page nor was refused."""
    parser = argparse.ArgumentParser(prog="trial.py", description=main.__doc__)
    parser.add_argument("notebooks", nargs="*", help="names; all of them if left out")
    parser.add_argument("--draw", type=int, default=0, help="how many sets of values to draw")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6, help="of the draws; printed")
    parser.add_argument("--cases", type=Path, help="a file of cases to run besides")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    given = parser.parse_args(words)
    print(f"seed {given.seed}", flush=True)
    faults = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for trial in pool.map(lambda plan: tried(*plan), list(_plans(given))):
            print(trial, flush=True)
            faults += trial.end == "fault"
    print(f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
