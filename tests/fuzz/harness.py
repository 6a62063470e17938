"""Random requests to every registered statement, and what must be true of any answer.

``PYTHONPATH=tests python tests/fuzz/harness.py --seconds 120 --seed 7`` draws requests from the declared domains,
ordinary ones, wide ones and ends of domains, for so long; whatever is wrong is printed as the command that shows it
again, and the status is 1.  Wrong is

``fault``      an exception other than a refusal, an answer that is no number, or a label that promises too much;
``slow``       an answer that takes longer than :data:`PATIENCE` seconds;
``order``      an upper answer below a lower one of the same quantity;
``monotone``   a budget that rises with the failure probability, or falls with rounds;
``loose``      the same of a lower answer, which is safe and could be better;
``round trip`` the failure probability at the budget answered, larger than the one that was asked for;
``oracle``     an answer on the wrong side of the truth by enumeration, for a few users and letters.

Beside the statements the front door is asked: ``account``, ``bounds`` and ``calibrate`` of shuffled records.
"""

import argparse
import itertools
import math
import shlex
import signal
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np
import yaml
from oracles import tables as oracle
from oracles.shuffling import gaussian_at_least

from flamelib import AnyRandomizer, Checkin, KaryResponse, LaplaceNoise, Shuffled, account, answers, bounds, calibrate
from flamelib.accounting.shuffling.brackets import MAX_EPSILON0
from flamelib.core.statements import Statement
from flamelib.core.vocabulary import LARGEST_WHOLE, VOCABULARY, Domain, DomainError

Inputs = dict[str, Any]

PATIENCE = 3.0  # seconds that an answer may take on an idle machine
LIMIT = 6.0  # seconds of the processor after which a request is given up
SHARE = 5.0  # a statement that has taken so many times its share of the processor sits out a turn
DIGITS_LEFT = 1e6  # a larger epsilon has too few digits left to lead back to a delta
LARGEST_TOLD, FAINTEST = 700.0, -690.0  # epsilon, and logarithm of a delta, that doubles hold
ROUNDING = 1e-6  # relative: what a numerical answer may be off on its safe side, when another one is asked
TYPICAL = {
    "epsilon0": 1.0,
    "epsilon": 0.3,
    "delta": 1e-6,
    "n_users": 300,
    "n_buckets": 4,
    "blanket_mass": 0.2,
    "noise_std": 1.0,
    "clip_norm": 1.0,
    "rounds": 10,
    "n_records": 5,
    "order": 4,
    "dimension": 40,
    "kept": 4,
    "padded": 30,
    "times": 10,
    "modulus": 1000,
    "n_messages": 6,
    "scale": 10,
    "swaps": 3,
    "colluding": 1,
    "missing": 1,
    "security_bits": 40,
    "log2_modulus": 20,
    "error": 2.0,
    "input_bits": 16,
    "population": 50,
    "sampled": 5,
    "multiples": 5,
    "index_privacy": 3.0,
    "sensitivity": 1.0,
}
# Statements whose delta is that of a part: what they answer rises with it.
RISING = ("flame:lem-4", "participation:thm-2.5")
# Published formulas of delta that fall and rise again with epsilon; the other way round their valley answers.
VALLEYS = ("blanket:lem-bennett", "blanket:lem-hoeffding")
# Lower and upper answer of one quantity: id and what is fixed in it, for either side.
ORDERED: list[tuple[tuple[str, Inputs], tuple[str, Inputs]]] = [
    (("shuffle:lower", {"randomizer": "kary"}), ("blanket:lem-reduction", {"randomizer": "kary"})),
    (("shuffle:lower", {"randomizer": "kary"}), ("blanket:lem-hoeffding", {"randomizer": "kary"})),
    (("shuffle:lower", {"randomizer": "kary"}), ("blanket:lem-bennett", {"randomizer": "kary"})),
    (("shuffle:lower", {"randomizer": "laplace"}), ("blanket:lem-reduction", {"randomizer": "laplace"})),
    (("shuffle:lower", {"randomizer": "laplace"}), ("blanket:lem-hoeffding", {"randomizer": "any"})),
    (("shuffle:lower", {"randomizer": "kary"}), ("clones:2023", {"randomizer": "kary"})),
    (("shuffle:lower", {"randomizer": "kary"}), ("clones:2021", {})),
    (("shuffle:lower", {"randomizer": "kary", "n_buckets": 2}), ("shuffle:exact-binary", {})),
    (("shuffle:exact-binary", {}), ("clones:2021", {})),
    (("shuffle:exact-binary", {}), ("blanket:lem-reduction", {"randomizer": "kary", "n_buckets": 2})),
    (("participation:thm-4.1", {"reading": "aligned"}), ("participation:thm-4.1", {"reading": "outer"})),
    (("checkin:thm-3", {}), ("checkin:thm-2", {"inner": "exact"})),
    (("flame:topk-lower", {}), ("flame:weighed", {})),
    (("flame:weighed", {}), ("flame:account", {"protocol": "topk", "bound": "blanket", "route": "sound"})),
]


@dataclass(frozen=True, slots=True)
class Wrong:
    """One request of whose answer something is not true."""

    kind: str
    key: str
    inputs: Inputs
    words: str

    def __str__(self) -> str:
        given = " ".join(shlex.quote(f"{name}={value}") for name, value in self.inputs.items())
        return f"{self.kind}: flamelib evaluate {self.key} {given}  # {self.words}"


class TooLongError(Exception):
    """A request that had not ended when its time was over."""


class FaultError(Exception):
    """A request that ended in an exception other than a refusal."""

    def __init__(self, key: str, inputs: Mapping[str, Any], fault: Exception) -> None:
        super().__init__(str(fault))
        self.wrong = Wrong("fault", key, dict(inputs), f"{type(fault).__name__}: {fault}")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as the command gives it, and how long it took."""

    value: Any
    gives: str
    rests_on: str
    uncertainty: float
    seconds: float

    @property
    def number(self) -> float:
        """The value as a number; NaN for an object."""
        return float(self.value) if isinstance(self.value, int | float | str) else math.nan


def _give_up(_number: int, _frame: FrameType | None) -> NoReturn:
    raise TooLongError


def ask(key: str, inputs: Mapping[str, Any]) -> Reply:
    """The answer of the library; a refusal is a :class:`DomainError`."""
    started = time.process_time()
    found = limited(key, inputs, lambda: answers.answer(key, inputs))
    took = time.process_time() - started
    error = found.get("uncertainty", 0.0)
    return Reply(found["value"], found["gives"], found.get("rests_on", ""), float(error), took)


def limited(key: str, inputs: Mapping[str, Any], question: Callable[[], Any]) -> Any:
    """What a question is answered within the limit."""
    signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        return question()
    except (DomainError, TooLongError):
        raise
    except Exception as fault:
        raise FaultError(key, inputs, fault) from fault
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


# --- drawing ---------------------------------------------------------------------------------------------------------


def drawn(
    found: Statement, generator: np.random.Generator, fixed: Mapping[str, Any], wide: bool | None = None
) -> Inputs:
    """Inputs for a statement from the domains of its parameters; what is fixed stays.  Three in ten are ``wide``."""
    wide = generator.random() < 0.3 if wide is None else wide
    kind = fixed.get("randomizer") or (str(generator.choice(found.randomizers)) if found.randomizers else None)
    inputs: Inputs = {}
    for name, required in answers.flat(found, kind).items():
        if name in fixed:
            inputs[name] = fixed[name]
        elif name == "randomizer":
            inputs[name] = kind
        elif required or generator.random() < 0.3:
            inputs[name] = drawn_value(name, found.domain(name), wide, generator)
    if found.either:
        asked = next((name for name in ("epsilon", "delta") if name in fixed), None)
        asked = asked or ("delta" if generator.random() < 0.7 else "epsilon")
        inputs.pop("delta" if asked == "epsilon" else "epsilon", None)
        inputs[asked] = fixed[asked] if asked in fixed else drawn_value(asked, found.domain(asked), wide, generator)
    return inputs


def drawn_value(name: str, domain: Domain, wide: bool, generator: np.random.Generator) -> Any:
    """A value of a domain: about the usual one, or ``wide`` anywhere, its ends included."""
    if domain.choices:
        return str(generator.choice(domain.choices))
    if domain.several:
        size = max(domain.shortest, int(generator.integers(1, 4)))
        return [int(entry) for entry in generator.integers(0, 5, size)]
    if wide and generator.random() < 0.2:
        ends = [end for end in (domain.low, domain.high) if domain.contains(end)]
        if ends:
            end = float(generator.choice(ends))
            return int(end) if domain.whole else end
    if domain.low == 0 and domain.high == 1:
        return _share(name, domain, wide, generator)
    center = TYPICAL.get(name, max(2.0, domain.low) if domain.whole else 1.0)
    low, high = max(domain.low, 1.0 if domain.whole else 1e-12), min(domain.high, 1e15 if domain.whole else 1e12)
    if wide:
        number = math.exp(generator.uniform(math.log(low), math.log(high)))
    else:
        number = min(max(center * math.exp(0.8 * generator.standard_normal()), low), high)
    return min(round(number), LARGEST_WHOLE) if domain.whole else float(f"{number:.6g}")


def _share(name: str, domain: Domain, wide: bool, generator: np.random.Generator) -> float:
    if name in ("delta", "slack_delta", "local_delta", "total_delta"):
        return float(f"{10 ** -generator.uniform(0.5, 300 if wide else 14):.4g}")
    odds = math.exp(generator.normal(0, 8 if wide else 1.5))
    share = float(f"{odds / (1 + odds):.6g}")
    return share if domain.contains(share) else 0.5


# --- what must be true -----------------------------------------------------------------------------------------------


def judged(key: str, inputs: Inputs) -> Iterator[Wrong]:
    """Everything that is wrong with the answer to one request; nothing where it is refused."""
    try:
        reply = ask(key, inputs)
        yield from _of_reply(key, inputs, reply)
    except DomainError:
        return
    except TooLongError:
        yield Wrong("slow", key, inputs, f"no answer in {LIMIT:.0f} s")
    except FaultError as fault:
        yield fault.wrong


def _of_reply(key: str, inputs: Inputs, reply: Reply) -> Iterator[Wrong]:
    if reply.seconds > PATIENCE:
        yield Wrong("slow", key, inputs, f"{reply.seconds:.1f} s")
    if reply.gives == "exact" and reply.rests_on == "estimated":
        yield Wrong("fault", key, inputs, "an estimate is called exact")
    value = reply.number
    if isinstance(reply.value, int | float) and math.isnan(value):
        yield Wrong("fault", key, inputs, "the answer is no number")
    if reply.gives == "value" or math.isnan(value):
        return
    if value < 0:
        yield Wrong("fault", key, inputs, f"{value} is negative")
    yield from _neighbours(key, inputs, reply)
    if "gaussian" in (inputs.get("randomizer"), inputs.get("route")) and reply.gives == "upper":
        yield from _one_large(key, inputs, value)


def _one_large(key: str, inputs: Inputs, value: float) -> Iterator[Wrong]:
    """An upper answer below what a single large value of Gaussian noise gives away, in one round."""
    epsilon, delta = inputs.get("epsilon", value), inputs.get("delta", value)
    if epsilon < LARGEST_TOLD and delta < 1:
        least = gaussian_at_least(inputs["noise_std"], inputs["n_users"], epsilon, inputs.get("checkin_rate", 1.0))
        if least > FAINTEST and math.log(max(delta, 5e-324)) < least - 1e-3:
            yield Wrong("oracle", key, inputs, f"{value!r}, but one large value alone gives exp({least!r})")


def _neighbours(key: str, inputs: Inputs, reply: Reply) -> Iterator[Wrong]:
    """The same request with one number moved in a direction that the answer must follow."""
    either = answers.statement(key).either
    if not either and ("delta" not in inputs or key in RISING):
        return
    asked, other = ("delta", "epsilon" if either else "the answer") if "delta" in inputs else ("epsilon", "delta")
    at = float(inputs[asked])
    larger = min(1.0, at * 3) if asked == "delta" else at * 1.5 + 1e-3
    for name, moved, sign in ((asked, larger, -1), ("rounds", inputs.get("rounds", 0) * 2, 1)):
        if name in inputs and moved != inputs[name] and VOCABULARY[name].contains(moved):
            found = _number(key, inputs | {name: moved})
            silent = found is None or (name == asked and math.isinf(found))  # the theorem does not speak there
            silent = silent or (asked == name == "epsilon" and key in VALLEYS)
            if not silent and sign * (found - reply.number) < -_slack(reply, found):
                words = f"{other} {reply.number!r}, but {found!r} at {name}={moved!r}"
                yield Wrong("loose" if reply.gives == "lower" else "monotone", key, inputs, words)
    if either and asked == "delta" and reply.gives == "upper" and reply.number < DIGITS_LEFT and at > 0:
        back = _reply(
            key, {name: value for name, value in inputs.items() if name != "delta"} | {"epsilon": reply.number}
        )
        if back is not None and back.number > at * (1 + 0.03) + back.uncertainty:
            yield Wrong("round trip", key, inputs, f"epsilon {reply.number!r}, at which delta is {back.number!r}")


def _slack(reply: Reply, found: float) -> float:
    if math.inf in (reply.number, found):
        return 0.0
    return 2 * reply.uncertainty + ROUNDING * max(abs(reply.number), abs(found)) + 1e-12 * (reply.gives != "lower")


def _reply(key: str, inputs: Inputs) -> Reply | None:
    try:
        return ask(key, inputs)
    except (DomainError, TooLongError):
        return None


def _number(key: str, inputs: Inputs) -> float | None:
    found = _reply(key, inputs)
    return None if found is None else found.number


def _at_least(key: str, inputs: Inputs) -> float | None:
    """The number, without the error that an exact one has been given on its upper side."""
    found = _reply(key, inputs)
    if found is None:
        return None
    return found.number - (found.uncertainty if found.gives == "exact" else 0.0)


def ordered(lower: tuple[str, Inputs], upper: tuple[str, Inputs], inputs: Inputs) -> Iterator[Wrong]:
    """A lower answer above an upper one to the same question, as they are; an exact one holds from its error on."""
    try:
        found = [ends(key, _of(key, inputs | fixed)) for ends, (key, fixed) in ((_at_least, lower), (_number, upper))]
    except FaultError as fault:
        yield fault.wrong
        return
    if None in found or math.isnan(found[0] or 0.0) or math.isnan(found[1] or 0.0):
        return
    least, most = float(found[0] or 0.0), float(found[1] or 0.0)
    if least > most:
        yield Wrong("order", upper[0], _of(upper[0], inputs | upper[1]), f"{most!r}, but {lower[0]} says {least!r}")


def _of(key: str, inputs: Inputs) -> Inputs:
    """Those of the inputs that a statement has."""
    has = answers.flat(answers.statement(key), inputs.get("randomizer"))
    return {name: value for name, value in inputs.items() if name in has}


# --- small worlds ----------------------------------------------------------------------------------------------------

ABOVE = ("blanket:lem-reduction", "blanket:lem-hoeffding", "blanket:lem-bennett", "clones:2023", "clones:2021",
         "shuffle:any", "shuffle:table", "shuffle:exact-binary")  # fmt: skip
BELOW = ("shuffle:lower", "shuffle:table", "shuffle:exact-binary")
EXACT = 1e-15  # relative: the enumeration is of rational numbers, an answer is a double
WORK = 9_000  # histograms that a draw compares at most


def small(kind: str, generator: np.random.Generator) -> Inputs:
    """Few users with few letters, a table or a family; an epsilon up to their local budget, a delta down from theirs.

    Of the tables one in five has letters that nobody sends, or that give a value away, or values that send alike.
    """
    values, epsilon0 = int(generator.integers(2, 5)), float(f"{math.exp(generator.normal(0, 1)):.3g}")
    inputs: Inputs = {"randomizer": kind, "epsilon0": epsilon0, "n_buckets": values}
    if kind == "table":
        shape = (values, int(generator.integers(2, 5)))
        apart = generator.integers(0, 2, shape) if generator.random() < 0.5 else generator.normal(0, 0.5, shape)
        chances = np.exp(epsilon0 * apart) * 10.0 ** -generator.choice([0, 0, 0, 3, 40], shape[1])
        odd = generator.random()
        chances[:, 0] *= odd > 0.07
        chances[0, 1] *= odd < 0.93
        chances[-1] = chances[0] if 0.07 < odd < 0.14 else chances[-1]
        inputs = {"table": (chances / chances.sum(axis=1, keepdims=True)).tolist()}
    rows = _rows(inputs)
    fitting = [n for n in range(2, 8) if oracle.work(values, len(rows[0]), n) <= WORK or n == 2]
    inputs["n_users"] = n_users = int(generator.choice(fitting))
    most, near = oracle.budget(rows), 1 - 10.0 ** -generator.uniform(0, 9)
    share = float(generator.choice([0, near, *generator.uniform(0, 1, 4), 1, 1.1]))
    inputs["epsilon"] = float(f"{share * min(most, 30.0):.6g}")
    largest = float(oracle.worst(oracle.neighbours(rows, n_users), 0.0))
    inputs["delta"] = float(f"{largest * 10 ** -generator.exponential(2):.6g}") * (generator.random() < 0.95)
    return inputs


def _rows(inputs: Inputs) -> list[list[Fraction]]:
    if "table" in inputs:
        return oracle.normed(inputs["table"])
    return oracle.family(inputs["randomizer"], inputs["epsilon0"], inputs["n_buckets"])


def enumerated(inputs: Inputs) -> Iterator[Wrong]:
    """Answers on the wrong side of the truth about the worst data sets, of which all are tried; at epsilon and delta.

    A delta is held against the worst one at the epsilon, an epsilon by the worst delta at it against the one asked.
    """
    rows = _rows(inputs)
    if oracle.work(len(rows), len(rows[0]), inputs["n_users"]) > WORK:
        return
    world, most = oracle.neighbours(rows, inputs["n_users"]), oracle.budget(rows)
    coin = inputs.get("randomizer") == "kary" and inputs["n_buckets"] == 2
    for keys, side, sign in ((ABOVE, "upper", 1), (BELOW, "lower", -1)):
        for key, asked in itertools.product(keys, ("epsilon", "delta")):
            generic = key in ("clones:2021", "shuffle:any")
            if (key == "shuffle:exact-binary" and not coin) or (generic and most > VOCABULARY["epsilon0"].high):
                continue
            wish = {**inputs, "side": side, **({"epsilon0": most} if generic else {})}
            given = _of(
                key, {name: value for name, value in wish.items() if name not in {"epsilon", "delta"} - {asked}}
            )
            try:
                found = (_number if sign > 0 else _at_least)(key, given)
            except FaultError as fault:
                yield fault.wrong
                continue
            if found is None or (asked == "delta" and (found == math.inf if sign > 0 else found <= 0)):
                continue
            truth = float(oracle.worst(world, inputs["epsilon"] if asked == "epsilon" else found))
            gap = found - truth if asked == "epsilon" else inputs["delta"] - truth
            if sign * gap < -EXACT * truth - 1e-40:
                words = f"{found!r}, but every data set gives {truth!r}"
                yield Wrong("oracle", key, given, words + ("" if asked == "epsilon" else " at that epsilon"))


# --- the front door --------------------------------------------------------------------------------------------------


def visit(generator: np.random.Generator) -> Inputs:
    """A shuffled or checked-in record, its rounds, and a budget."""
    wide = generator.random() < 0.3
    several = Domain("several", whole=True, low=2, high=10**9)
    rate = _share("checkin_rate", VOCABULARY["checkin_rate"], wide, generator) if generator.random() < 0.5 else 1.0
    return {
        "kind": str(generator.choice(["kary", "laplace", "any"])),
        "epsilon0": drawn_value("epsilon0", VOCABULARY["epsilon0"], wide, generator),
        "n_buckets": drawn_value("n_buckets", several, False, generator),
        "n_users": drawn_value("n_users", several, wide, generator),
        "rate": rate,
        "rounds": 1 if generator.random() < 0.3 else drawn_value("rounds", several, wide, generator),
        "delta": _share("delta", VOCABULARY["delta"], wide, generator),
        "epsilon": drawn_value("epsilon", VOCABULARY["epsilon"], wide, generator),
    }


def visited(inputs: Inputs) -> Iterator[Wrong]:
    """What is wrong with the answers of the front door."""
    key = "front:account"
    delta, epsilon, rounds = inputs["delta"], inputs["epsilon"], inputs["rounds"]
    try:
        survey = limited(key, inputs, lambda: _record(inputs))
        kept = limited(key, inputs, lambda: account(survey, delta=delta, rounds=rounds))
        # Beyond the numerics Renyi orders may answer one question and the local budget the other.
        if rounds == 1 and delta > 0 and kept.epsilon < DIGITS_LEFT and inputs["epsilon0"] <= MAX_EPSILON0:
            back = limited(key, inputs, lambda: account(survey, epsilon=kept.epsilon, rounds=rounds)).delta
            if back > delta * (1 + 0.03):
                yield Wrong("round trip", key, inputs, f"epsilon {kept.epsilon!r}, at which delta is {back!r}")
        more = limited(key, inputs, lambda: account(survey, delta=delta, rounds=2 * rounds))
        if more.epsilon < kept.epsilon * (1 - ROUNDING) - 2 * kept.uncertainty:
            yield Wrong("monotone", key, inputs, f"epsilon {kept.epsilon!r}, but {more.epsilon!r} in twice the rounds")
        limited("front:bounds", inputs, lambda: bounds(survey, epsilon=epsilon, rounds=rounds))
        found = limited("front:calibrate", inputs, lambda: calibrate(survey, epsilon=epsilon, delta=delta))
        again = limited(key, inputs, lambda: account(found.protocol, delta=delta)).epsilon
        if not found.guarantee.epsilon == again <= epsilon:
            yield Wrong("round trip", "front:calibrate", inputs, f"{found!r} costs {again!r}")
    except (DomainError, TooLongError):
        return
    except FaultError as fault:
        yield fault.wrong


def _record(inputs: Inputs) -> Shuffled | Checkin:
    epsilon0 = inputs["epsilon0"]
    randomizer = {
        "kary": lambda: KaryResponse(epsilon0, inputs["n_buckets"]),
        "laplace": lambda: LaplaceNoise(epsilon0),
        "any": lambda: AnyRandomizer(epsilon0),
    }[inputs["kind"]]()
    survey = Shuffled(randomizer, inputs["n_users"])
    return survey if inputs["rate"] == 1 else Checkin(survey, rate=inputs["rate"])


# --- the whole -------------------------------------------------------------------------------------------------------


def fuzz(seconds: float, seed: int, only: str = "", points: int = sys.maxsize) -> tuple[list[Wrong], Counter[str]]:
    """Requests for so long, statement by statement in turn, with the pairs between them.

    Every draw has a generator of its own, so that a point is the same however long the others took.

    Parameters
    ----------
    seconds : float
        Processor time to spend.
    seed : int
        Of all draws.
    only : str
        Beginning of the ids to try; all where it is empty.
    points : int
        Draws after which it ends at the latest.

    Returns
    -------
    list of Wrong, Counter
        What was found, the first of a kind and id; and how many requests were drawn for each id.
    """
    checks = {
        **{key: _alone(found) for key, found in answers.load_all().items() if key.startswith(only)},
        **{f"{low[0]} <= {high[0]}": _pair(low, high) for low, high in ORDERED if high[0].startswith(only)},
        **{name: check for name, check in OTHERS.items() if name.startswith(only)},
    }
    wrong: dict[tuple[str, str], Wrong] = {}
    drawn_of: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    started = time.process_time()
    for turn in itertools.count():
        for name, (draw, check) in checks.items():
            if spent[name] > SHARE * max(spent.total() / len(checks), 1.0):
                continue
            before = time.process_time()
            inputs = draw(np.random.default_rng([seed, turn, zlib.crc32(name.encode())]))
            drawn_of[name] += 1
            for one in check(inputs):
                if (one.kind, one.key) not in wrong:
                    print(one, flush=True)
                wrong.setdefault((one.kind, one.key), one)
            spent[name] += time.process_time() - before  # type: ignore[assignment]
            if time.process_time() - started > seconds or drawn_of.total() >= points:
                return [*wrong.values()], drawn_of
    raise AssertionError("turns do not end")


Draw = Callable[[np.random.Generator], Inputs]
Check = Callable[[Inputs], Iterator[Wrong]]


def _alone(found: Statement) -> tuple[Draw, Check]:
    return lambda generator: drawn(found, generator, {}), lambda inputs: judged(found.id, inputs)


def _pair(low: tuple[str, Inputs], high: tuple[str, Inputs]) -> tuple[Draw, Check]:
    def draw(generator: np.random.Generator) -> Inputs:
        asked = {"delta": float(f"{10 ** -generator.uniform(1, 12):.3g}")}
        inputs: Inputs = {}
        for key, fixed in (low, high):
            inputs |= drawn(answers.statement(key), generator, asked | inputs | fixed)
        return inputs

    return draw, lambda inputs: ordered(low, high, inputs)


OTHERS: dict[str, tuple[Draw, Check]] = {
    **{f"small {kind}": (partial(small, kind), enumerated) for kind in ("table", *oracle.KINDS)},
    "front door": (visit, visited),
}


def cases() -> list[dict[str, Any]]:
    """The requests that once went wrong."""
    kept: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "cases.yml").read_text(encoding="utf-8"))
    return kept


def main(words: list[str]) -> int:
    """Judge what once went wrong, then fuzz; status 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="processor time to spend")
    parser.add_argument("--points", type=int, default=sys.maxsize, help="draws after which it ends at the latest")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6, help="of the draws; printed")
    parser.add_argument("--only", default="", help="beginning of the ids to try")
    given = parser.parse_args(words)
    print(f"seed {given.seed}", flush=True)
    kept = [case for case in cases() if case["id"].startswith(given.only)]
    again = [one for case in kept for one in judged(case["id"], case["inputs"])]
    print(f"{len(again)} wrong of {len(kept)} requests that once went wrong", *again, sep="\n", flush=True)
    wrong, drawn_of = fuzz(given.seconds, given.seed, given.only, given.points)
    print(f"{len(wrong)} wrong of {drawn_of.total()} requests drawn for {len(drawn_of)} statements and pairs")
    return 1 if wrong or again else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
