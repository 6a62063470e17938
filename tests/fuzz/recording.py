"""Record thousands of answers before a change of the engine, and compare them after it.

``PYTHONPATH=tests python tests/fuzz/recording.py record FILE --points 8000`` asks random requests of every registered
statement, on either side and in either direction, and of ``account``, ``bounds`` and ``calibrate`` for every record;
``compare FILE`` asks them again in the present code.  It prints every answer that moved to the unsafe side, that is
looser by more than a hundredth (a twentieth below a delta of 1e-40), and that takes half as long again and longer than
a second, with the memory needed; the status is 1 where there is one.
"""

import argparse
import json
import math
import resource
import sys
import time
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import harness
import numpy as np

from flamelib import answers
from flamelib.core.vocabulary import DomainError
from flamelib.front import by_name

LOOSER, LOOSER_BELOW, TINY = 0.01, 0.05, 1e-40  # relative growth of an upper answer that is allowed; below which delta
ROUNDING = 1e-9  # relative: what may move by round-off alone
SLOWER, PATIENCE = 1.5, 1.0  # times as long and longer than so many seconds

Request = dict[str, Any]


def requests(points: int, seed: int) -> Iterator[Request]:
    """Statements and questions in turn; each request has a generator of its own."""
    statements = [found for key, found in answers.load_all().items() if found.gives != "value"]
    fronts = [(question, record) for question in by_name.QUESTIONS for record in by_name.WORDS["record"]]
    of_front = points // 3
    for number in range(points - of_front):
        found = statements[number % len(statements)]
        generator = np.random.default_rng([seed, number, zlib.crc32(found.id.encode())])
        yield {"asked": found.id, "inputs": harness.drawn(found, generator, {})}
    for number in range(of_front):
        question, record = fronts[number % len(fronts)]
        generator = np.random.default_rng([seed, number, zlib.crc32(f"{question} {record}".encode())])
        yield {"asked": question, "record": record, "inputs": front(question, record, generator)}


def front(question: str, record: str, generator: np.random.Generator) -> harness.Inputs:
    """A record with its parts, and what it is asked about."""
    wide = bool(generator.random() < 0.3)
    inputs: harness.Inputs = {}
    for part in ("protocol", "randomizer"):
        if part in by_name.inputs(question, record, inputs):
            words = [word for word in by_name.WORDS[part] if word != "table"]
            words = ["kary", "laplace"] if record.startswith("flame") and part == "randomizer" else words
            inputs[part] = str(generator.choice(words))
    taken = by_name.inputs(question, record, inputs)
    asked = "delta" if question != "account" or generator.random() < 0.7 else "epsilon"
    for name, needed in taken.items():
        wanted = needed or name == asked or (name in ("rounds", "colluding", "dropout") and generator.random() < 0.2)
        if name not in inputs and wanted:
            inputs[name] = harness.drawn_value(name, by_name.DOMAINS[name], wide, generator)
    if "kept" in inputs:  # coordinates of which there are fewer are refused
        inputs["kept"], inputs["padded"] = 1 + int(inputs["kept"]) % int(inputs["dimension"]), inputs["dimension"]
    return inputs


def answered(request: Request) -> dict[str, Any]:
    """Ends of the answer, or the refusal; seconds of the processor, and megabytes that were needed at most so far."""
    started = time.process_time()
    asked, inputs = request["asked"], request["inputs"]
    try:
        found = harness.limited(asked, inputs, lambda: _ends(request))
    except DomainError as refusal:
        found = {"refused": str(refusal)}
    except (harness.TooLongError, harness.FaultError) as fault:
        found = {"fault": repr(fault)}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return found | {"seconds": round(time.process_time() - started, 4), "megabytes": memory}


def _ends(request: Request) -> dict[str, Any]:
    if "record" in request:
        found = by_name.reply(by_name.ask(request["asked"], request["record"], request["inputs"]))
        calibrated = found.keys() & {*by_name.SOUGHT, "n_users"}
        # More noise or users are safer, as a larger epsilon is; a larger local budget is not.
        upper = {name: float(found[name]) * (-1 if name == "epsilon0" else 1) for name in calibrated}
        upper = upper or {name: found[name] for name in ("epsilon", "delta", "upper") if name in found}
        return {"upper": upper, "lower": {name: found[name] for name in found.keys() & {"lower"}}}
    found = answers.answer(request["asked"], request["inputs"])
    sides = ("lower", "upper") if found["gives"] == "exact" else (found["gives"],)
    return {side: {"value": found["value"]} for side in sides}


def moves(request: Request, before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """What is worse after than before."""
    for end in ("fault", "refused"):
        if end in after and end not in before:
            yield f"{end}: {after[end]}"
    tiny = float(request["inputs"].get("delta", 1.0) or 0.0) < TINY
    for side in ("upper", "lower"):
        for name, old in before.get(side, {}).items():
            new = after.get(side, {}).get(name)
            if new is None or isinstance(new, list | dict):
                continue
            low, high = sorted((float(old), float(new)))
            if high - low <= ROUNDING * max(abs(low), abs(high)) or math.isnan(high - low):
                continue
            up, room = float(new) > float(old), (LOOSER_BELOW if tiny else LOOSER) * abs(float(old))
            if up == (side == "lower"):
                yield f"tighter {side}: {old} -> {new}"  # to be proved, or else it is unsafe
            elif abs(float(new) - float(old)) > room and side == "upper":
                yield f"looser: {old} -> {new}"
    if after["seconds"] > max(PATIENCE, SLOWER * before["seconds"]):
        yield f"slower: {before['seconds']} -> {after['seconds']} s"


def main(words: list[str]) -> int:
    """Record, or compare with a recording."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--points", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="beginning of what is asked")
    given = parser.parse_args(words)
    warnings.simplefilter("ignore")
    answers.load_all()  # no answer pays for loading
    if given.what == "record":
        with given.file.open("w", encoding="utf-8") as out:
            for request in requests(given.points, given.seed):
                if str(request["asked"]).startswith(given.only):
                    print(json.dumps(request | {"answer": answered(request)}), file=out, flush=True)
        return 0
    worse, megabytes = 0, 0
    for line in given.file.read_text(encoding="utf-8").splitlines():
        request = json.loads(line)
        if str(request["asked"]).startswith(given.only):
            after = answered(request)
            megabytes = after["megabytes"]
            for move in moves(request, request.pop("answer"), after):
                worse += 1
                print(move, json.dumps(request), flush=True)
    print(f"{worse} answers moved; {megabytes} MB at most")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
