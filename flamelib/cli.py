"""The command ``flamelib``: answers by id and comparisons at once; the book's commands where the book is installed.

Exit statuses: 0 done; 1 a run failed, or a batch held a refused request; 2 refused, with one sentence on
standard error that names the parameter and its domain.  A fault of the library is a traceback and status 1.
"""

import json
import os
import re
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from flamelib import answers
from flamelib.core.extras import MissingExtra, extra
from flamelib.core.vocabulary import DomainError, meant, once

# Entry points under this name take the words of the book's commands; flamebook brings one.
COMMANDS = "flamelib.commands"
ANSWERS = ("evaluate", "compare", "deployment")
# What the book's commands are called; the first four need its files, which a clone holds and no package.
BOOK = ("run", "sweep", "record", "check", "diff", "data")
WITH_NOTEBOOKS = BOOK[:4]

HELP = """\
Usage: flamelib COMMAND ...

Differential privacy in the shuffle model and in federated learning: five documents, recomputed.

Answers, at once:
  evaluate   answer with a statement of the documents by its id
  compare    put one request to every mechanism of the five documents
  deployment what a deployment guarantees, from its description in a file
  vet        look for inputs at which a formula of yours promises too much privacy after shuffling

With the book (pip install '.[book]' in a clone of the repository, in which run, sweep, record and check work):
  run        run a notebook with parameters of your own
  sweep      run a notebook at every point of a grid
  record     record anew the results of long runs that the book shows
  check      recompute a row of the ledger of claims: inputs, both values, verdict, why
  diff       compare two editions of the book
  data       list, fetch or verify the data sets

  --json         after a command that answers: one JSON object a line, as without it
  --version      print the version and stop
  -h, --help     this text; that of a command after its name

Examples:
  flamelib evaluate blanket:lem-5.1 randomizer=kary epsilon0=1 n_buckets=10
  flamelib compare n_users=1e4 dimension=16 epsilon0=1
  flamelib deployment survey.yaml
  flamelib vet accountant.py:epsilon
  flamelib run blanket_histogram -p epsilon=0.5
  flamelib sweep blanket_histogram -p epsilon=0.25,0.5,1
  flamelib check flame:thm-3/always-reported
  flamelib data list
"""

COMPARE_HELP = """\
Usage: flamelib compare name=value ...

Put one request to every mechanism of the five documents; one JSON object a line.

The request: task (mean or histogram), n_users, dimension, rounds, delta, sampling_rate.  The budget: epsilon,
for which private reports are tuned until they keep it; or epsilon0 of a report; or epsilon and a list of
epsilon0 such as 0.5,1,2, of which private reports take the largest that keeps epsilon.  With mechanism=NAME, as a
row calls it, that one answers alone.  Beside the certified epsilon stands, as lower, what explicit data sets lose,
where that is known.

Examples:
  flamelib compare n_users=1e4 dimension=16 rounds=12 delta=1e-6 epsilon0=1
  flamelib compare task=histogram n_users=1e5 dimension=256 epsilon=1
  flamelib compare n_users=1e4 epsilon=1 epsilon0=0.5,1,2
  flamelib compare mechanism=blanket n_users=50000 epsilon0=1

Exit status: 0 answered; 2 refused (one sentence on standard error).
"""

DEPLOYMENT_HELP = """\
Usage: flamelib deployment FILE [name=value ...]

Answer for a deployment by its description: one JSON object, with a certified lower and upper epsilon, the odds, and
what is left open.  A description that leaves open what the answer depends on is refused with the questions to ask.

  FILE        lines such as "n_users: 100000", or JSON; - is standard input.  A record of the public registry of
              deployments, and any other YAML, is read where the book is installed (pip install '.[book]').
  name=value  a field that the file leaves out, or another value for one that it has

The fields:
{fields}

Example:
  flamelib deployment survey.yaml rounds=30

  survey.yaml:
    mechanism: kary
    epsilon0: 2
    n_buckets: 10
    n_users: 100000
    rounds: 1
    delta: 1e-8
    adjacency: replace-one
    trust: shuffler
    unit: one answer of a person

Exit status: 0 answered; 2 refused (one sentence on standard error).
"""

EVALUATE_HELP = """\
Usage: flamelib evaluate ID name=value ...
       flamelib evaluate --stdin
       flamelib evaluate --list [PREFIX]

Answer with a statement of the documents by its id: one JSON object on standard output.

  ID name=value ...  the statement and its inputs; 1e6 is a valid whole number
  --stdin            one request a line, {"id": ..., "inputs": {...}}; one JSON line each, in order
  --list [PREFIX]    every id with its inputs, their domains and what it gives
  -h, --help         this text

Most shuffling items take exactly one of epsilon= and delta= and answer with the other.  A local
randomizer is written randomizer=kary epsilon0= n_buckets=, randomizer=laplace epsilon0=,
randomizer=gaussian noise_std= or randomizer=any epsilon0=.  A list is written 1,2,3 or [1,2,3].

Examples:
  flamelib evaluate blanket:lem-5.1 randomizer=kary epsilon0=1 n_buckets=10
  flamelib evaluate blanket:lem-hoeffding randomizer=laplace epsilon0=0.5 n_users=1000 epsilon=0.1
  flamelib evaluate shuffle:exact-binary epsilon0=1 n_users=1e6 delta=1e-8
  flamelib evaluate cloak:plan n_users=1e4 epsilon=1 delta=1e-6 error=3 colluding=1000
  flamelib evaluate cloak:alg-2 messages=17,40,54 modulus=101 scale=10 n_users=3
  flamelib evaluate --list clones
  echo '{"id": "clones:2021", "inputs": {"epsilon0": 1, "n_users": 1e4, "delta": 1e-6}}' | flamelib evaluate --stdin

Exit status: 0 answered; 1 a batch held a refused request; 2 refused (one sentence on standard error).
"""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command with these words (the process's own by default) and return its exit status."""
    words = list(sys.argv[1:] if words is None else words)
    signal.signal(signal.SIGTERM, _stop)
    try:
        status = _run(words)
        sys.stdout.flush()  # here, where a reader that has gone can be told from a fault
        return status
    except (DomainError, MissingExtra) as refusal:
        return refused(refusal)
    except BrokenPipeError:
        # The reader of our output has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        print("interrupted; nothing half-written is left", file=sys.stderr)
        return 128 + signal.SIGINT


def _run(words: list[str]) -> int:
    name = words[0] if words else "--help"
    if name in ANSWERS:
        words = [word for word in words if word != "--json"]  # what is printed anyway
    if name == "evaluate":
        return answer(words[1:])
    if name == "compare":
        return compare(words[1:])
    if name == "deployment":
        return deployment(words[1:])
    if name == "vet":
        from flamelib.vet_command import vet  # no other command needs the search

        return vet(words[1:])
    if name in BOOK:
        return _book(words)
    if name not in ("-h", "--help", "--version"):
        known = (*ANSWERS, "vet", *BOOK)
        raise DomainError(f"command must be one of {', '.join(known)}, got {name!r}{meant(name, known)}")
    print(f"flamelib {_version()}" if name == "--version" else HELP, end="\n" if name == "--version" else "")
    return 0


def refused(refusal: Exception | str) -> int:
    """One sentence on standard error, and the status of a refusal."""
    print(answers.sentence(refusal), file=sys.stderr)
    return 2


def answer(words: Sequence[str]) -> int:
    """``flamelib evaluate``: one answer, a batch, or the list of ids; never imports torch."""
    options = [word for word in words if word.startswith("-")]
    rest = [word for word in words if not word.startswith("-")]
    if {"-h", "--help"} & set(options):
        print(EVALUATE_HELP, end="")
        return 0
    if options == ["--stdin"] and not rest:
        return _batch()
    if options == ["--list"] and len(rest) <= 1:
        print("\n".join(_listed(*rest)))
        return 0
    if options or not rest:
        form = "flamelib evaluate ID name=value ... (or --stdin, or --list)"
        raise DomainError(f"id must be given, as in {form}, got {' '.join(words)!r}")
    print(answers.dumps(answers.answer(rest[0], answers.assignments(rest[1:]))))
    return 0


def _listed(prefix: str = "") -> list[str]:
    lines = list(answers.listing(prefix))
    if not lines:
        raise DomainError(f"prefix must begin an id ({', '.join(answers.prefixes())}), got {prefix!r}")
    return lines


def _batch() -> int:
    status = 0
    lines = (line.decode(errors="replace").lstrip("\ufeff") for line in sys.stdin.buffer)
    for reply in answers.replies(lines):
        if "failed" in reply:
            print(reply["failed"], end="", file=sys.stderr)
        if "refused" in reply or "failed" in reply:
            status = 1
        print(answers.dumps(reply), flush=True)
    return status


def compare(words: Sequence[str]) -> int:
    """``flamelib compare``: what every mechanism yields for one request, one JSON object a line."""
    options = [word for word in words if word.startswith("-")]
    if {"-h", "--help"} & set(options):
        print(COMPARE_HELP, end="")
        return 0
    if options:
        raise DomainError(f"request must be given, as in flamelib compare name=value ..., got {' '.join(words)!r}")
    # The accounts of all documents: no other command needs them.
    from flamelib.uses.deployments import compared, mechanisms

    given = answers.assignments(words)
    found = compared(given, os.cpu_count() or 1)
    asked = [given["mechanism"]] if "mechanism" in given else mechanisms()
    for done, name in enumerate(asked):
        with _told(f"{done} of {len(asked)} answered, waiting for {name}"):
            one = next(found)
        print(answers.dumps(answers.plain(one)), flush=True)
    return 0


@contextmanager
def _told(what: str) -> Iterator[None]:
    """While this lasts, a terminal shows what is waited for; nothing of it stays."""
    shown = sys.stderr.isatty()
    print(what if shown else "", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print("\r\x1b[K" if shown else "", end="", file=sys.stderr, flush=True)


def deployment(words: Sequence[str], load: Callable[[str], Any] | None = None) -> int:
    """``flamelib deployment``: what a description guarantees; ``load`` reads what is neither JSON nor plain lines."""
    from flamelib.uses.deployment_card import (  # no other command needs the accounts behind it
        FIELDS,
        answered,
        unquoted,
    )

    if {"-h", "--help"} & set(words):
        lines = (f"{field:11} {about}" for field, about in FIELDS.items())
        told = (textwrap.fill(line, 116, initial_indent="  ", subsequent_indent=" " * 14) for line in lines)
        print(DEPLOYMENT_HELP.replace("{fields}", "\n".join(told)), end="")
        return 0
    if not words or "=" in words[0]:
        raise DomainError(f"file must be given, as in flamelib deployment FILE, got {' '.join(words)!r}")
    text = _text_of(words[0])
    given = _plain_lines(text) or (load(text) if load else None)
    if given is None and words[0] == "-":
        raise DomainError("file must be a path where a description is more than JSON or lines such as n_users: 1000")
    if given is None:
        return _book(["deployment", *words], "a description in YAML of more than plain lines needs PyYAML, which")
    more = {name: unquoted(word) for name, word in answers.assignments(words[1:]).items()}
    print(answers.dumps(answers.plain(answered({**given, **more}))))
    return 0


def _text_of(file: str) -> str:
    try:
        return (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DomainError(f"file must be one that can be read as text, got {file!r}: {error}") from None


def _plain_lines(text: str) -> dict[str, Any] | None:
    """The fields of a description in JSON, or of lines ``name: value``; ``None`` if it is something else."""
    from flamelib.uses.deployment_card import from_json, unquoted

    with suppress(json.JSONDecodeError):
        found = from_json(text)
        if not isinstance(found, dict):
            raise DomainError(f"a description must be names with values, got {type(found).__name__}")
        return found
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    lines = lines[1:] if lines and lines[0].strip() == "---" else lines
    told = [re.fullmatch(r"(\w+):[ \t]+([\w.+-](?:[^:#\n]|(?<! )#|:(?! ))*)(?: #.*)?", line) for line in lines]
    if not lines or None in told:
        return None
    return once((one[1], unquoted(one[2])) for one in told if one)


def _book(words: list[str], what: str = "") -> int:
    helped = bool({"-h", "--help"} & set(words))
    if words[0] in WITH_NOTEBOOKS and not helped and not (Path(__file__).resolve().parents[1] / "notebooks").is_dir():
        raise DomainError(
            f"flamelib {words[0]} needs the notebooks, which no package holds: "
            f"in a clone of the repository, make book, and then .venv/bin/flamelib {words[0]} ..."
        )
    # Looked up when asked for: these commands take longer to import than an answer takes to compute.
    from importlib.metadata import entry_points

    missing = ""
    for found in entry_points(group=COMMANDS):
        try:
            with extra("book"):
                run = found.load()
        except MissingExtra as absent:
            missing = f" ({absent.name} is missing here)"
            break
        status: int = run(words)
        return status
    installed = f"pip install '.[book]' in the source of flamelib{missing}"
    told = f"{what or f'flamelib {words[0]}'} comes with the book: {installed}"
    if not helped:
        raise DomainError(told)
    about = next(line for line in HELP.splitlines() if line.startswith(f"  {words[0]} ")).split(maxsplit=1)[1]
    print(f"Usage: flamelib {words[0]} ...\n\n{about.capitalize()}.")
    print(f"Its options are told where the book is installed: {installed}.")
    return 0


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("flamelib")
    except PackageNotFoundError:
        return "(not installed)"


def _stop(signum: int, _: FrameType | None) -> NoReturn:
    # A polite end runs the clean-up of whatever is at work.
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    sys.exit(main())
