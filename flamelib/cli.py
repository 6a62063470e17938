"""The command ``flamelib``: answers by id at once; runs, sweeps and data through what is installed beside it.

Exit statuses: 0 done; 1 a run failed, or a batch held a refused request; 2 refused, with one sentence on
standard error that names the parameter and its domain.  A fault of the library is a traceback and status 1.
"""

import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from types import FrameType
from typing import NoReturn

from flamelib import answers
from flamelib.core.vocabulary import DomainError

# Entry points under this name take the words of every other command; flamebook brings one.
COMMANDS = "flamelib.commands"

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
        status = answer(words[1:]) if words[:1] == ["evaluate"] else _other(words)
        sys.stdout.flush()  # here, where a reader that has gone can be told from a fault
        return status
    except DomainError as refusal:
        return refused(refusal)
    except BrokenPipeError:
        # The reader of our output has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        print("interrupted; nothing half-written is left", file=sys.stderr)
        return 128 + signal.SIGINT


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
    lines = (line.decode(errors="replace") for line in sys.stdin.buffer)
    for reply in answers.replies(lines):
        if "failed" in reply:
            print(reply["failed"], end="", file=sys.stderr)
        if "refused" in reply or "failed" in reply:
            status = 1
        print(answers.dumps(reply), flush=True)
    return status


def _other(words: list[str]) -> int:
    # Looked up when asked for: these commands take longer to import than an answer takes to compute.
    for found in entry_points(group=COMMANDS):
        status: int = found.load()(words)
        return status
    raise DomainError(f"command must be evaluate here, got {' '.join(words)!r}: the others come with the book")


def _stop(signum: int, _: FrameType | None) -> NoReturn:
    # A polite end runs the clean-up of whatever is at work.
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    sys.exit(main())
