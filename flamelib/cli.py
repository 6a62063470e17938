"""The command ``flamelib``: answers at once; the book's commands where the book is installed.

An answer is a text where standard output is a terminal, and one JSON object a line elsewhere, or with ``--json``.
Exit statuses: 0 done; 1 a run failed, or a batch held a refused request; 2 refused, with one sentence on
standard error that names the parameter and its domain.  A fault of the library is a traceback and status 1.
"""

import json
import os
import re
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from flamelib import answers, sentences
from flamelib.core.extras import MissingExtra, extra
from flamelib.core.vocabulary import Domain, DomainError, meant, once

# Entry points under this name take the words of the book's commands; flamebook brings one.
COMMANDS = "flamelib.commands"
# What the book's commands are called; the first four need its files, which a clone holds and no package.
BOOK = ("run", "sweep", "record", "check", "diff", "data")
WITH_NOTEBOOKS = BOOK[:4]

HELP = """\
Usage: flamelib COMMAND ...

Differential privacy in the shuffle model and in federated learning: five documents, recomputed.

Answers, at once:
  account    what a protocol guarantees: epsilon at delta, or delta at epsilon
  bounds     between which two numbers the truth lies
  calibrate  which parameter keeps a budget
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

  completion     print a script with which bash, zsh or fish completes commands, ids and parameters

  --json         after a command that answers: one JSON object a line, as where the output is no terminal
  --version      print the version and stop
  -h, --help     this text; that of a command after its name

Examples:
  flamelib account shuffled randomizer=kary epsilon0=2 n_buckets=10 n_users=1e5 delta=1e-8
  flamelib evaluate blanket:lem-5.1 randomizer=kary epsilon0=1 n_buckets=10
  flamelib compare n_users=1e4 dimension=16 epsilon0=1
  flamelib deployment survey.yaml
  flamelib vet accountant.py:epsilon
  flamelib run blanket_histogram -p epsilon=0.5
  flamelib sweep blanket_histogram -p epsilon=0.25,0.5,1
  flamelib check flame:thm-3/always-reported
  flamelib data list
"""

ASK_HELP = """\
Usage: flamelib account|bounds|calibrate RECORD name=value ...

account    the smallest epsilon at delta=, or delta at epsilon=, that can be certified, never too small
bounds     the same, and beside it what some data sets are known to lose
calibrate  the value of a parameter that keeps epsilon= and delta=: of over=, or else of epsilon0, noise_std or decay,
           whichever there is; what is sought may be left out

The answer is a text at a terminal, otherwise, or with --json, a JSON object.  The records, what may be left out in []:
{records}

A local randomizer is written as in evaluate, or randomizer=table table=[[0.7,0.3],[0.3,0.7]].  With protocol=summed
only the sum of those who check in is seen, with Gaussian noise from each.  A cloak is the cheapest one for epsilon=,
delta= and error=, asked about at that delta, or has numbers of its own: decay= is that of Polya noise which honest
users share, or, with noise_rate= as well, of truncated Laplace noise which each adds with that probability.
{inputs}

Examples:
  flamelib account shuffled randomizer=kary epsilon0=2 n_buckets=10 n_users=1e5 delta=1e-8
  flamelib account checkin protocol=summed noise_std=1 n_users=1000 rate=0.01 delta=1e-6
  flamelib bounds checkin rate=0.1 randomizer=kary epsilon0=2 n_buckets=10 n_users=1e5 delta=1e-8 rounds=100
  flamelib account cloak n_users=1000 epsilon=1 delta=1e-6 error=1.5
  flamelib calibrate shuffled randomizer=laplace n_users=1e4 epsilon=0.1 delta=1e-6

Exit status: 0 answered; 2 refused (one sentence on standard error).
"""

COMPLETION_HELP = """\
Usage: flamelib completion bash|zsh|fish

Print a script with which a shell completes commands, records, ids and parameters.

Examples:
  eval "$(flamelib completion bash)"      in .bashrc; likewise zsh, in .zshrc after compinit
  flamelib completion fish | source       in config.fish
"""

COMPARE_HELP = """\
Usage: flamelib compare name=value ...

Put one request to every mechanism of the five documents; a table at a terminal, otherwise one JSON object a line.

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

Answer for a deployment by its description, in words at a terminal and otherwise with one JSON object: a certified
lower and upper epsilon, the odds, and what is left open.  A description that leaves open what the answer depends on is
refused with the questions to ask.

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

Answer with a statement of the documents by its id: a sentence at a terminal, otherwise, or with --json, a JSON object.

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
    name, *rest = words or ["--help"]
    if name in ANSWERS:
        return ANSWERS[name](rest)
    if name in BOOK:
        return _book(words)
    if name not in ("-h", "--help", "--version"):
        known = (*ANSWERS, *BOOK)
        raise DomainError(f"command must be one of {', '.join(known)}, got {name!r}{meant(name, known)}")
    print(f"flamelib {_version()}" if name == "--version" else HELP, end="\n" if name == "--version" else "")
    return 0


def _read_by(words: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether a person reads the answer, at a terminal and without ``--json``, and the words without that one."""
    return sys.stdout.isatty() and "--json" not in words, [word for word in words if word != "--json"]


# Lines are broken at spaces alone, so that no name is.
_fill = partial(textwrap.fill, break_long_words=False, break_on_hyphens=False)


def _print(person: bool, found: Any, text: Callable[[Any], str], plain: Callable[[Any], Any] = answers.plain) -> int:
    """Print an answer: for a person its text, broken at the width of the terminal, otherwise a JSON object."""
    if person:
        width = shutil.get_terminal_size().columns
        print("\n".join(_fill(line, width, subsequent_indent="    ") for line in text(found).splitlines()))
    else:
        print(answers.dumps(plain(found)), flush=True)
    return 0


def refused(refusal: Exception | str) -> int:
    """One sentence on standard error, and the status of a refusal."""
    print(answers.sentence(refusal), file=sys.stderr)
    return 2


def answer(words: Sequence[str]) -> int:
    """``flamelib evaluate``: one answer, a batch, or the list of ids; never imports torch."""
    person, words = _read_by(words)
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
    return _print(person, answers.answer(rest[0], answers.assignments(rest[1:])), sentences.of_statement)


def ask(question: str, words: Sequence[str]) -> int:
    """``flamelib account``, ``bounds`` and ``calibrate``: a question of the front door to a record by its name."""
    from flamelib.front import by_name

    person, words = _read_by(words)
    if {"-h", "--help"} & set(words):
        records, inputs = map(_filled, by_name.described())
        print(ASK_HELP.replace("{records}", records).replace("{inputs}", inputs), end="")
        return 0
    record, *given = words or [""]
    found = by_name.ask(question, record, answers.assignments(given))
    return _print(person, found, sentences.of_protocol, by_name.reply)


def _filled(lines: Mapping[str, str]) -> str:
    """Lines of a help text: names, and what they are."""
    filled = (f"{name:18} {about}" for name, about in lines.items())
    return "\n".join(_fill(line, 118, initial_indent="  ", subsequent_indent=" " * 21) for line in filled)


def completion(words: Sequence[str]) -> int:
    """``flamelib completion``: the script of a shell; with ``--words`` what the last of the words may become."""
    from flamelib.completion import SCRIPTS, candidates

    if words[:1] == ["--words"]:
        print("\n".join(candidates((*ANSWERS, *BOOK), words[1:])))
    elif {"-h", "--help"} & set(words):
        print(COMPLETION_HELP, end="")
    else:
        shell = Domain("shell", choices=tuple(SCRIPTS)).accept("shell", " ".join(words))
        print(SCRIPTS[shell], end="")
    return 0


def vet(words: list[str]) -> int:
    """``flamelib vet``: inputs at which a claimed epsilon is certainly too small."""
    from flamelib import vet_command  # no other command needs the search

    if {"-h", "--help"} & set(words):
        print((vet_command.__doc__ or "").replace("::\n", ":\n"), end="")
        return 0
    person, words = _read_by(words)
    found = vet_command.vetted(words)
    print(found if person else answers.dumps(answers.plain(found.reply())))  # whole lines: the last one is a command
    return 0 if found.safe else 1


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
    person, words = _read_by(words)
    options = [word for word in words if word.startswith("-")]
    if {"-h", "--help"} & set(options):
        print(COMPARE_HELP, end="")
        return 0
    if options:
        raise DomainError(f"request must be given, as in flamelib compare name=value ..., got {' '.join(words)!r}")
    # The accounts of all documents: no other command needs them.
    from flamelib.front.asking import Comparison
    from flamelib.uses.deployments import compared, mechanisms

    given = answers.assignments(words)
    found = compared(given, os.cpu_count() or 1)
    asked, rows = [given["mechanism"]] if "mechanism" in given else mechanisms(), []
    for done, name in enumerate(asked):
        with _told(f"{done} of {len(asked)} answered, waiting for {name}"):
            rows.append(next(found))
        if not person:
            _print(person, rows[-1], repr)
    return _print(person, Comparison(rows), repr) if person else 0


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

    person, rest = _read_by(words)
    if {"-h", "--help"} & set(rest):
        print(DEPLOYMENT_HELP.replace("{fields}", _filled(FIELDS)), end="")
        return 0
    if not rest or "=" in rest[0]:
        raise DomainError(f"file must be given, as in flamelib deployment FILE, got {' '.join(rest)!r}")
    text = _text_of(rest[0])
    given = _plain_lines(text) or (load(text) if load else None)
    if given is None and rest[0] == "-":
        raise DomainError("file must be a path where a description is more than JSON or lines such as n_users: 1000")
    if given is None:
        return _book(["deployment", *words], "a description in YAML of more than plain lines needs PyYAML, which")
    more = {name: unquoted(word) for name, word in answers.assignments(rest[1:]).items()}
    return _print(person, answered({**given, **more}), sentences.of_deployment)


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
    fields = [re.fullmatch(r"(\w+):[ \t]+([\w.+-](?:[^:#\n]|(?<! )#|:(?! ))*)(?: #.*)?", line) for line in lines]
    if not lines or None in fields:
        return None
    return once((one[1], unquoted(one[2])) for one in fields if one)


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
    message = f"{what or f'flamelib {words[0]}'} comes with the book: {installed}"
    if not helped:
        raise DomainError(message)
    about = next(line for line in HELP.splitlines() if line.startswith(f"  {words[0]} ")).split(maxsplit=1)[1]
    print(f"Usage: flamelib {words[0]} ...\n\n{about.capitalize()}.")
    print(f"Its options are listed where the book is installed: {installed}.")
    return 0


#: What needs no book, by its word.
#:
#: :meta hide-value:
ANSWERS: dict[str, Callable[[list[str]], int]] = {
    **{question: partial(ask, question) for question in ("account", "bounds", "calibrate")},
    "evaluate": answer, "compare": compare, "deployment": deployment, "vet": vet,
    "completion": completion,
}  # fmt: skip


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
