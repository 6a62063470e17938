"""The vocabulary of parameters: one name, one meaning, one domain, checked once at the door.

Every argument of a public function and every ``name=value`` on the command line is a word of :data:`VOCABULARY`.  A
refusal names the argument and its domain.
Standard library only: the closed forms run in a browser.
"""

import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

LARGEST_WHOLE = 2**53  # up to here every whole number is a double
LARGEST_MODULUS = 2**256  # whole numbers that are no doubles, of a group in which shares add up


class DomainError(ValueError):
    """An argument lies outside its domain; the message is one sentence fit for a user."""


@dataclass(frozen=True, slots=True)
class Domain:
    """What a parameter may be: real or whole, between bounds, or one of a few words; or a list of such."""

    about: str
    whole: bool = False
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    choices: tuple[str, ...] = ()
    least: float = 0.0
    """0 belongs to the domain, and no number between 0 and this one does."""
    several: bool = False
    shortest: int = 0
    """Least number of entries of a list."""
    rows: bool = False
    """Whether it is a list of lists, of two or more entries each: a table."""

    def __str__(self) -> str:
        if self.rows:
            return f"rows of one length, written [[1,2],[3,4]], each entry {replace(self, rows=False)}"
        if self.several:
            count = f" of {self.shortest} or more" if self.shortest else ""
            return f"a list{count}, written 1,2,3 or [1,2,3], each entry {replace(self, several=False)}"
        if self.choices:
            return "one of " + ", ".join(self.choices)
        kind = "a whole number" if self.whole else "a number"
        low, high = _end(self.low), _end(self.high)
        if low and high:
            if self.least:
                return f"{low}, or {kind} in [{self.least:g}, {high}]"
            left, right = "(" if self.open_low else "[", ")" if self.open_high else "]"
            return f"{kind} in {left}{low}, {high}{right}"
        if low:
            return f"{kind} {'above' if self.open_low else 'of at least'} {low}"
        return kind if high is None else f"{kind} {'below' if self.open_high else 'of at most'} {high}"

    def contains(self, value: Any) -> bool:
        """Whether a finite number lies between the bounds (NaN and infinities never do)."""
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        above = above and (value <= 0 or value >= self.least)
        return above and below and math.isfinite(value) and (not self.whole or value == int(value))

    def accept(self, name: str, value: Any) -> Any:
        """The value as a plain ``int``, ``float`` or ``str``; :class:`DomainError` if it does not belong.

        Numbers of every type are taken for what they are (:func:`number`), whole ones exactly, others as the double
        next to them; a text is a word and no number (:meth:`read` takes it for one), and so is a truth value.  A list
        comes back as a tuple.
        """
        if self.several or self.rows:
            return self._accept_each(name, value)
        if self.choices:
            if isinstance(value, str) and value in self.choices:
                return str(value)
            raise self._refusal(name, value)
        found = number(value)
        if self.whole:
            if found is None or not self.contains(found):
                raise self._refusal(name, value)
            return int(found)
        double = math.nan if found is None else _double(found)
        if not (self.contains(double) and self.contains(found)):
            raise self._refusal(name, value)
        # A whole number stays one while it is a double as well; zero has no sign.
        return found if isinstance(found, int) and abs(found) <= LARGEST_WHOLE else double + 0.0

    def read(self, name: str, value: Any) -> Any:
        """As :meth:`accept`, where numbers, lists and tables may also be written as text: on a command line."""
        if self.choices or not isinstance(value, str):
            if self.several and isinstance(value, list | tuple):
                value = [_written(one, self.whole) if isinstance(one, str) else one for one in value]
            return self.accept(name, value)
        try:
            return self.accept(name, _written(value, self.whole, self.several, self.rows))
        except (DomainError, ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise self._refusal(name, value) from None

    def _refusal(self, name: str, value: Any) -> DomainError:
        given = repr(str(value)[:200]) if self.rows else shown(value)
        near = meant(value, self.choices) if isinstance(value, str) else ""
        return DomainError(f"{name} must be {self}, got {given}{near}")

    def _accept_each(self, name: str, value: Any) -> tuple[Any, ...]:
        """A list entry by entry; the entries of a table are lists themselves."""
        listed = value.tolist() if hasattr(value, "tolist") else value
        one = replace(self, several=self.rows, rows=False)
        try:
            if isinstance(listed, list | tuple) and len(listed) >= self.shortest:
                return tuple(one.accept(name, entry) for entry in listed)
        except DomainError:
            pass
        raise self._refusal(name, value)


def number(value: Any) -> Any:
    """The number as the standard library has it (int, float, Decimal or Fraction), no digit lost; or ``None``.

    Numbers are those of Python, numpy, torch and whatever else registers as a real number, arrays without an axis
    included.  Texts, truth values of any library, masked entries and dates are none.

    >>> number(True), number("1"), number(2.5)
    (None, None, 2.5)
    """
    if isinstance(value, bool | str):
        return None
    if hasattr(value, "ndim") and hasattr(value, "item"):
        if value.ndim or getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M"):
            return None
        if getattr(value, "mask", False):
            return None
        try:
            held = value.item()
        except (TypeError, ValueError, RuntimeError):
            return None
        if type(held) is not type(value):  # what is wider than a double comes back as it is
            return number(held)
    if isinstance(value, Integral):
        return operator.index(value)
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    return _ratio(value) if isinstance(value, Real) else None


def _ratio(value: Any) -> Any:
    if isinstance(value, float) or not math.isfinite(value):
        return float(value)
    from fractions import Fraction  # for rare types alone

    ratio = getattr(value, "as_integer_ratio", None)
    return Fraction(*ratio()) if ratio else float(value)


def plainly(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function take numbers of every type: each argument that is one comes as Python has it."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        given: Any = map(_plain, args)
        return function(*given, **{name: _plain(value) for name, value in kwargs.items()})

    return called


def _plain(value: Any) -> Any:
    if type(value) in (float, int, str, bool, type(None)):
        return value
    found = number(value)
    return value if found is None else found if isinstance(found, int) else _double(found)


def shown(value: Any) -> str:
    """The value in a refusal, at most 200 characters of it."""
    try:
        text = repr(value)
    except ValueError:  # Python spells out no number of thousands of digits
        text = "a number of thousands of digits"
    return text if len(text) <= 200 else text[:197] + "..."


def _written(text: str, whole: bool, several: bool = False, rows: bool = False) -> Any:
    """What a text means where a number, a list or a table is due."""
    if rows:
        from ast import literal_eval  # for a table alone

        return literal_eval(text.strip())
    if several:
        inner = text.strip()
        if not inner:
            return None
        inner = inner[1:-1] if inner[0] == "[" and inner[-1] == "]" else inner
        return [_written(one, whole) for one in inner.split(",")] if inner.strip() else []
    try:
        return Decimal(text) if whole else float(text)
    except (ValueError, ArithmeticError):
        return None


def _end(bound: float) -> str | None:
    """A bound in words, large powers of two as such; none for infinity."""
    if abs(bound) >= LARGEST_WHOLE and math.isfinite(bound):
        return f"{'-' if bound < 0 else ''}2^{int(abs(bound)).bit_length() - 1}"
    short = f"{bound:g}"
    return (short if float(short) == bound else str(bound)) if math.isfinite(bound) else None


def _double(found: Any) -> float:
    try:
        return float(found)
    except (ValueError, OverflowError):
        return math.nan


def _positive(about: str, high: float = math.inf) -> Domain:
    return Domain(about, low=0, open_low=True, high=high)


def _rate(about: str) -> Domain:
    return Domain(about, low=0, high=1)


def _probability(about: str) -> Domain:
    return Domain(about, low=0, high=1, open_low=True)


def _inside(about: str) -> Domain:
    return Domain(about, low=0, high=1, open_low=True, open_high=True)


def _count(about: str, low: int = 1) -> Domain:
    return Domain(about, whole=True, low=low, high=LARGEST_WHOLE)


def _large(about: str, low: int, several: bool = False, shortest: int = 0) -> Domain:
    return Domain(about, whole=True, low=low, high=LARGEST_MODULUS, several=several, shortest=shortest)


#: Kinds of local randomizer: those of an alphabet of values whose messages support some of them, and all.
SUPPORTS = ("rappor", "oue", "subset", "hadamard", "local-hash")
KINDS = ("kary", "laplace", "gaussian", "any", *SUPPORTS)

#: Every parameter name of the library, with its domain.
#:
#: :meta hide-value:
VOCABULARY: dict[str, Domain] = {
    "epsilon0": _positive("local privacy budget", 700),
    "epsilon": Domain("central privacy budget, the guarantee itself", low=0),
    "delta": _rate("failure probability of the guarantee"),
    "alpha": _rate("rate of false alarms of an attacker"),
    "n_users": _count("users whose messages are shuffled together", 2),
    "n_buckets": _count("size of the alphabet of messages", 2),
    "blanket_mass": _probability("probability that a message ignores its input"),
    "noise_std": _positive("standard deviation of Gaussian noise"),
    "n_levels": _count("levels of fixed-point rounding: messages live in 0..n_levels"),
    "n_cells": _count("cells of equal length that split [0, 1]", 2),
    "n_messages": _count("messages each user sends"),
    "width": _count("largest whole input of a discrete randomizer"),
    "randomizer": Domain("local randomizer", choices=KINDS),
    "table": Domain("laws of the message, a row for each value", low=0, high=1, rows=True),
    "side": Domain("on which side of the truth the answer lies", choices=("upper", "lower")),
    "seed": Domain("seed of the one generator", whole=True, low=0, high=LARGEST_WHOLE),
    "repeats": _count("independent repetitions of a simulation"),
    "points": _count("points of a curve", 2),
    "trials": _count("runs of a protocol on each of two data sets", 2),
    "seconds": _positive("time that a search may take"),
    "probes": _count("claims that are compared with certified lower ends"),
    "confidence": _inside("probability that what is concluded from the runs is true"),
    "dimension": _count("coordinates of a vector"),
    "kept": _positive("coordinates that a user reports"),
    "sampling_rate": _probability("probability that a coordinate of a user is reported"),
    "padded": _count("messages of each coordinate after padding", 2),
    "inclusion": Domain("how a user's random coordinates are chosen", choices=("independent", "exact")),
    "overflow": Domain("what becomes of reports that find their bag full", choices=("none", "drop")),
    "multiples": _count("reported coordinates for each true one"),
    "index_privacy": Domain("largest ratio of posterior to prior of a reported index", low=1),
    "times": _count("mechanisms that are composed"),
    "slack_delta": _inside("failure probability that composition adds"),
    "sampled": _count("members drawn without replacement"),
    "population": _count("members from whom a sample is drawn"),
    "protocol": Domain(
        "protocol",
        choices=(
            *("simple", "double", "topk"),
            *("cmp-t1", "cmp-t2", "cmp-bon", "cmp-cheu", "cmp-blanket", "cmp-rec", "cmp-ikos"),
            *("cmp-gmpv", "cmp-gkm", "cmp-pure", "cmp-vec", "cmp-central", "cmp-local"),
        ),
    ),
    "bound": Domain("amplification bound", choices=("withdrawn", "bennett", "hoeffding", "blanket")),
    "route": Domain(
        "way to account",
        choices=(
            *("paper", "unsampled", "sound"),
            *("thm-2", "thm-3", "any", "clones", "kary", "laplace", "gaussian", *SUPPORTS),
            *("thm-4", "eq-11", "rdp-exact", "pld-exact", "pld"),
            *("kov", "drv", "closed", "numerical"),
        ),
    ),
    "participation_rate": _probability("probability that a client joins a round"),
    "record_rate": _probability("probability that a record of a joining client is drawn"),
    "checkin_rate": Domain("probability that a client checks in to a round by itself", low=0, high=1, least=1e-300),
    "dropout": Domain("probability that a message is lost on its way", low=0, high=1, open_high=True),
    "n_records": _count("records of the affected client in the larger data set, the differing one included"),
    "n_clients": _count("clients available in a round"),
    "angle": Domain("angle between the gradients of two records, in degrees", low=0, high=180),
    "clip": _positive("largest absolute value of a coordinate"),
    "clip_norm": _positive("largest size of a contribution"),
    "sensitivity": _positive("largest change that one member makes"),
    "rounds": _count("rounds of training"),
    "order": Domain("order of a Rényi divergence", whole=True, low=2, high=10_000),
    "divergence": Domain("Rényi divergence of some order", low=0),
    "slack": _rate("relative deviation from its mean at which a binomial law is split"),
    "inner": Domain("rate inside the sum over who checks in", choices=("paper", "exact")),
    "local_delta": _rate("failure probability of the local guarantee"),
    "reading": Domain("reading of the theorem on random participation", choices=("outer", "inner", "aligned")),
    "scheme": Domain("what is hidden from whom in a round", choices=("outer", "inner", "aligned", "wcs", "ols", "cs")),
    "window": _count("slots among which a user chooses one"),
    "modulus": _large("size of the group in which the shares of a value add up", 2),
    "scale": _large("steps of the fixed-point grid: a value in [0, 1] becomes a whole number in 0..scale", 1),
    "rounding": Domain("how a scaled value becomes whole", choices=("floor", "random", "grid")),
    "decay": _inside("ratio of neighbouring probabilities of discrete noise"),
    "noise_rate": _probability("probability that a user adds noise"),
    "smoothness": _inside("relative deviation from uniform of the sums of shares"),
    "colluding": Domain("users who tell the attacker all they know", whole=True, low=0, high=LARGEST_WHOLE),
    "swaps": _count("transfers between two users that lead from one data set to the other"),
    "missing": Domain(
        "users whose noise is not in the sum, or is known to the attacker", whole=True, low=0, high=LARGEST_WHOLE
    ),
    "wraparound": _inside("probability that noise goes around the modulus"),
    "sensitivity_1": _positive("largest change that one member makes, in the 1-norm, in units of the grid"),
    "sensitivity_2": _positive("largest change that one member makes, in the 2-norm, in units of the grid"),
    "variance": _positive("variance of whole-number noise on one coordinate of a sum"),
    "rejection": Domain("largest probability that a vector is rounded again", low=0, high=1, open_high=True),
    "security_bits": _positive("minus the base-2 logarithm of a total variation distance", 1e6),
    "log2_modulus": _positive("base-2 logarithm of the modulus", 1e6),
    "messages": _large("messages that leave the shuffler", 0, several=True),
    "inputs_a": _large("scaled inputs of the users, one data set", -LARGEST_MODULUS, several=True, shortest=1),
    "inputs_b": _large("scaled inputs of the users, the other data set", -LARGEST_MODULUS, several=True, shortest=1),
    "error": _positive("largest error allowed in the sum of values in [0, 1]"),
    "value": Domain("value of the noise", whole=True, low=-LARGEST_MODULUS, high=LARGEST_MODULUS),
    "input_bits": Domain("bits of an input of one coordinate", whole=True, low=1, high=64),
    "n_inputs": _count("numbers in a sample"),
    "n_classes": _count("classes of samples", 2),
    "learning_rate": _positive("step of gradient descent"),
    "momentum": Domain("share of a step that is repeated in the next one", low=0, high=1, open_high=True),
    "epochs": _count("steps of a user on all its own samples"),
    "server_step": _positive("factor on the published mean before it is added to the model"),
    "rows": _count("independent rows of a sketch"),
    "columns": _count("counters in a row of a sketch"),
    "levels": Domain("levels of a tree of counters", whole=True, low=1, high=60),
    "base": _count("children of a node of a tree of counters", 2),
    "support": _count("different items that occur"),
    "threshold": _count("occurrences from which an item is reported"),
    "independence": _count("values of a hash function that are independent together"),
    "cutoff": _positive("where the draws of a heavy-tailed law are cut off"),
    "grid": _count("steps of fixed-point numbers between two whole ones"),
    "accuracy": _inside("relative error that is asked for"),
    "failure": _inside("probability that an error is larger than asked for"),
}


def check(**named: Any) -> dict[str, Any]:
    """Every named value, in this order, as a plain number or word of the domain of its name."""
    return {name: VOCABULARY[name].accept(name, value) for name, value in named.items()}


def read(**named: Any) -> dict[str, Any]:
    """As :func:`check`, of values that may be texts: words of a command line."""
    return {name: VOCABULARY[name].read(name, value) for name, value in named.items()}


def keep(record: Any, **checked: Any) -> None:
    """Store what was checked in a frozen record that is being made."""
    for name, value in checked.items():
        object.__setattr__(record, name, value)


class Checked:
    """A record all of whose fields are words of the vocabulary: each is checked, and plain, when it is made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        keep(self, **check(**{one.name: getattr(self, one.name) for one in fields(self)}))  # type: ignore[arg-type]


def one_budget(epsilon: float | None, delta: float | None, **others: Any) -> dict[str, Any]:
    """As :func:`check`, with epsilon and delta first, of which one is given; both or neither are refused."""
    if (epsilon is None) == (delta is None):
        raise DomainError("exactly one of epsilon and delta must be given")
    given = check(**({"epsilon": epsilon} if delta is None else {"delta": delta}), **others)
    return {"epsilon": None, "delta": None} | given


def known(names: Iterable[str], allowed: Mapping[str, Any], required: Iterable[str], what: str) -> None:
    """Refuse names that ``what`` does not have and required ones that are missing."""
    for name in names:
        if name not in allowed:
            taken = ", ".join(allowed)
            raise DomainError(f"{name} is not a parameter of {what}, which takes {taken}{meant(name, allowed)}")
    for name in required:
        if name not in names:
            domain = f": {VOCABULARY[name]}" if name in VOCABULARY else ""
            raise DomainError(f"{name} is missing for {what}{domain}")


def once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Names with their values; a name that is given twice is refused."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise DomainError(f"{name} is given twice; it takes one value")
        found[name] = value
    return found


def meant(name: object, names: Iterable[str]) -> str:
    """How a refusal of an unknown name ends: with the nearest one that is known, if one is near.

    >>> meant("n_user", ["delta", "n_users"]), meant("colour", ["delta", "n_users"])
    (': did you mean n_users?', '')
    """
    import difflib  # a refusal has time

    near = difflib.get_close_matches(str(name), list(names), n=1)
    return f": did you mean {near[0]}?" if near else ""


def honest(n_users: int, colluding: int) -> int:
    """Users who do not collude; refused where fewer than two are left."""
    n_users, colluding = check(n_users=n_users, colluding=colluding).values()
    if colluding > n_users - 2:
        raise DomainError(f"colluding must be a whole number in [0, {n_users - 2}] of {n_users} users, got {colluding}")
    return n_users - colluding


def odd(modulus: int) -> int:
    """The modulus, refused where it is even."""
    if modulus % 2 == 0:
        raise DomainError(f"modulus must be odd, {VOCABULARY['modulus']}, got {modulus!r}")
    return modulus
