r"""Vetting: is a formula for the epsilon of shuffled messages ever below what certain data sets are known to lose?

A claim is a function of the local budget, the number of users, delta and perhaps the number of rounds.  It is asked at
settings in which formulas tend to fail, then at random ones and around the worst one found.  Where it promises least
in comparison with an estimate of the truth, it is compared with a certified lower end: that of the worst randomizer
known, or of one randomizer.  A claim below a certified lower end is wrong; one that never is may still be wrong.
"""

import functools
import inspect
import itertools
import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from flamelib.accounting.shuffling.accountant import kind_of
from flamelib.accounting.shuffling.brackets import estimate
from flamelib.accounting.shuffling.randomizers import analysis
from flamelib.core.arrays import Reals
from flamelib.core.profiles import BUCKETED
from flamelib.core.search import smallest_epsilon
from flamelib.core.vocabulary import LARGEST_WHOLE, DomainError, check, meant, number, read, shown
from flamelib.front.asking import evaluate
from flamelib.front.results import rounded

#: A randomizer's kind and the size of its alphabet, which ``any`` and ``laplace`` have none of.
Kind = tuple[str, int | None]
#: Local budget, users, delta, rounds.
Setting = tuple[float, int, float, int]

NAMES = ("epsilon0", "n_users", "delta", "rounds")
# Where formulas fail, the most telling first: a large local budget of too few users for closed forms, many users,
# moderate ones, a handful of users, a tiny delta, a small local budget; then a grid.
HARD_SETTINGS = (
    *((8.0, 10**4, 1e-5), (8.0, 10**6, 1e-6), (1.0, 10**4, 1e-6), (4.0, 50, 1e-3), (2.0, 2, 1e-3), (5.0, 10**5, 1e-5)),
    *((2.0, 1000, 1e-12), (0.1, 10**6, 1e-8), (12.0, 10**9, 1e-9), (1.0, 10**4, 1e-40), (0.01, 1000, 1e-6)),
    *itertools.product((0.1, 1.0, 3.0, 9.0), (5, 300, 20_000, 10**7), (1e-3, 1e-9)),
)
ROUNDS = (1, 100, 1000, 10)  # of these settings, in turn
SEARCH_RANGE = ((0.01, 2, 1e-15, 1), (12.0, 1e9, 0.1, 1000))  # of later settings, drawn evenly on a logarithmic scale
N_RANDOM, N_COMPARED = 24, 4  # random settings of a turn of the search, and the most telling ones that are compared
FIRST_STEP, LAST_STEP = 4.0, 1.01  # factors by which a coordinate of the worst setting moves
MAX_UNANSWERED = 4  # turns without an answer after which a function is taken for one that has none


class Vetted:
    """What vetting found; it prints as sentences.

    ``counterexample`` is the worst one: the inputs, what is claimed there, the certified lower end (at least), their
    ratio, and the command that recomputes the lower end.  ``fault`` is the first answer that is no epsilon, not a
    number or negative, with its inputs; ``refusal`` the first of ``refused`` exceptions, by which nothing is claimed.
    ``tried`` has the settings that were compared with certified lower ends, ``worst`` is that of the largest ratio.
    """

    def __init__(self, with_rounds: bool) -> None:
        self._names, self.tried = NAMES[: 3 + with_rounds], list[Setting]()
        self.counterexample: dict[str, Any] = {}
        self.fault: dict[str, Any] = {}
        self.refusal: dict[str, Any] = {}
        self.refused = 0
        self.worst: Setting | None = None
        self.largest_ratio = 0.0

    @property
    def safe(self) -> bool:
        """Whether neither a counterexample nor a fault was found."""
        return not (self.counterexample or self.fault)

    def take(self, claim: Callable[..., Any], setting: Setting) -> float | None:
        """The epsilon that is claimed; ``None``, and a record of it, where the answer is none."""
        inputs: dict[str, Any] = dict(zip(self._names, setting, strict=False))
        try:
            answered = claim(*setting[:3], **{name: inputs[name] for name in self._names[3:]})
            found = number(answered)
            value = math.nan if found is None else float(found)
        except (Exception, SystemExit) as raised:
            self.refused += 1
            self.refusal = self.refusal or {"inputs": inputs, "claimed": shown(raised), "fault": "refused"}
            return None
        if value >= 0:
            return value
        fault = "negative" if value < 0 else "not a number"
        self.fault = self.fault or {"inputs": inputs, "claimed": shown(answered), "fault": fault}
        return None

    def compare(self, kind: Kind, setting: Setting, claimed: float) -> None:
        """Compare a claim with the certified lower end."""
        at_least, command = lower_end(kind, setting)
        ratio = _ratio(at_least, claimed)
        self.tried.append(setting)
        if self.worst is None or ratio > self.largest_ratio:
            self.worst, self.largest_ratio = setting, ratio
            if claimed < at_least:
                inputs = dict(zip(self._names, setting, strict=False))
                found = {"claimed": claimed, "at_least": at_least, "ratio": ratio, "command": command}
                self.counterexample = {"inputs": inputs, **found}

    def reply(self) -> dict[str, Any]:
        """The object that ``flamelib vet`` prints."""
        columns = zip(self._names, zip(*self.tried, strict=True), strict=False)
        ends = {name: [min(values), max(values)] for name, values in columns}
        reply = {"found": 0, "tried": len(self.tried), "range": ends, "largest_ratio": self.largest_ratio}
        refused = {"refused": self.refused, "first_refused": self.refusal} if self.refused else {}
        return self.counterexample or self.fault or reply | refused

    def __repr__(self) -> str:
        reply, first = self.reply(), self.refusal
        inputs = reply.get("inputs") or first.get("inputs", {})
        where = ", ".join(f"{name} = {value}" for name, value in inputs.items())
        if self.counterexample:
            lost = f"some data sets lose at least {rounded(reply['at_least'], up=False, digits=6)}"
            more = f"{rounded(reply['ratio'], up=False)} times as much"
            return f"Too small: {reply['claimed']:.6g} at {where}; {lost}, {more}.\n{reply['command']}"
        if self.fault:
            return f"No epsilon: {reply['claimed']} at {where}."
        ends = ", ".join(f"{name} from {low:g} to {high:g}" for name, (low, high) in reply["range"].items())
        most = f"The largest certified lower end is {rounded(self.largest_ratio)} times what is claimed."
        refused = (
            f"\nNothing is claimed at {self.refused} inputs, such as {where}: {first['claimed']}." if first else ""
        )
        return f"No counterexample among {len(self.tried)} inputs, {ends}.\n{most}{refused}"


def vet(
    claim: Callable[..., Any], randomizer: str = "any", *, seconds: float | None = 20.0, probes: int | None = None,
    seed: int = 0,
) -> Vetted:  # fmt: skip
    """Look for an input at which a claimed epsilon of shuffled messages is certainly too small.

    Parameters
    ----------
    claim : callable
        ``claim(epsilon0, n_users, delta)`` is the epsilon that is claimed after one shuffle, replace-one, ``inf`` where
        nothing is; an exception is a refusal to claim.  Where it has a parameter ``rounds``, that many shuffles of the
        same people are asked for as well.
    randomizer : str
        For which randomizers it is claimed: ``any`` with that local budget, ``laplace``, or one with the size of its
        alphabet such as ``kary:10`` (``rappor``, ``oue``, ``subset``, ``hadamard``, ``local-hash``).
    seconds, probes : float, int
        After which time, or how many comparisons with certified lower ends, the search ends; one of them may be
        ``None``.  Without ``seconds`` the outcome is the same on every machine.
    seed : int
        Of random settings.

    Returns
    -------
    Vetted
        ``.safe``, ``.counterexample``, ``.fault``, ``.tried``, ``.largest_ratio``; it prints as sentences.

    Examples
    --------
    >>> import math
    >>> vet(lambda epsilon0, n_users, delta: epsilon0 / math.sqrt(n_users), seconds=None, probes=1).safe
    False
    >>> found = vet(lambda epsilon0, n_users, delta: epsilon0, seconds=None, probes=5)
    >>> found.safe, len(found.tried), found.largest_ratio <= 1
    (True, 5, True)
    """
    kind, rng = kind_and_size(randomizer), np.random.default_rng(check(seed=seed)["seed"])
    if seconds is None and probes is None:
        raise DomainError("one of seconds and probes must be given")
    ends = math.inf if seconds is None else time.monotonic() + check(seconds=seconds)["seconds"]
    most = LARGEST_WHOLE if probes is None else check(probes=probes)["probes"]
    with_rounds = _takes_rounds(claim)
    found, step, asked = Vetted(with_rounds), FIRST_STEP, set[Setting]()
    batch: list[Setting] = [(*s, ROUNDS[i % 4] if with_rounds else 1) for i, s in enumerate(HARD_SETTINGS)]
    for turn in range(most):
        now, candidates = time.monotonic(), []
        while batch:
            if (setting := batch.pop(0)) not in asked and (claimed := found.take(claim, setting)) is not None:
                candidates.append((_estimated(kind, setting) / claimed if claimed else math.inf, setting, claimed))
            asked.add(setting)
            if time.monotonic() > now + (ends - now) / 3:  # a slow function leaves time for comparisons
                break
        before = found.largest_ratio
        for hope, setting, claimed in sorted(candidates, reverse=True)[: N_COMPARED if turn else None]:
            if found.tried and (time.monotonic() > ends or len(found.tried) >= most):
                return found
            if found.counterexample and hope < found.largest_ratio:
                break  # a worse one is to be sought around it
            found.compare(kind, setting, claimed)
        if time.monotonic() > ends or (found.worst is None and turn >= MAX_UNANSWERED):
            break
        step = step if found.largest_ratio > before else max(math.sqrt(step), LAST_STEP)
        moves = np.vstack([np.eye(4), -np.eye(4)]) * math.log(step)
        around = np.array(found.worst) * np.exp(moves) if found.worst else moves[:0]
        low, high = np.log(SEARCH_RANGE)
        drawn = np.exp(rng.uniform(low, high, (N_RANDOM, 4)))
        batch += [_setting(values, with_rounds) for values in (*around, *drawn)]
    if found.worst is None and not found.fault:
        raise DomainError(f"claim must answer somewhere, got {found.refusal['claimed']} everywhere")
    return found


def assert_safe(claim: Callable[..., Any], randomizer: str = "any", **limits: Any) -> None:
    """Fail a test, with the counterexample in a sentence, where :func:`vet` finds one; ``limits`` are those of it.

    >>> def test_my_formula():
    ...     assert_safe(lambda epsilon0, n_users, delta: epsilon0, seconds=None, probes=3)
    >>> test_my_formula()
    """
    found = vet(claim, randomizer, **limits)
    if not found.safe:
        raise AssertionError(str(found))


def kind_and_size(randomizer: str) -> Kind:
    """The words ``any``, ``laplace`` or ``kary:10`` as a kind and the size of its alphabet.

    >>> kind_and_size("kary:10"), kind_and_size("any")
    (('kary', 10), ('any', None))
    """
    kind, _, size = str(randomizer).partition(":")
    if kind not in ("any", "laplace", *BUCKETED) or (kind in BUCKETED) != bool(size):
        known = ["any", "laplace", *(f"{one}:N" for one in BUCKETED)]
        raise DomainError(f"randomizer must be one of {', '.join(known)}, got {randomizer!r}{meant(kind, known)}")
    return kind, read(n_buckets=size)["n_buckets"] if size else None


@functools.lru_cache(maxsize=1024)
def lower_end(kind: Kind, setting: Setting) -> tuple[float, str]:
    """The largest certified lower end that is known for a setting, and the command that prints it.

    >>> at_least, command = lower_end(("any", None), (1.0, 10_000, 1e-6, 1))
    >>> f"{at_least:.4f}", command
    ('0.0380', 'flamelib evaluate shuffle:any epsilon0=1.0 n_users=10000 delta=1e-06 side=lower')
    """
    given: dict[str, Any] = dict(zip(NAMES[:3], setting, strict=False)) | {"side": "lower"}
    if setting[3] > 1:
        # Of any randomizer the account composes two and three buckets; for a large local budget ten lose more.
        kinds = [kind, ("kary", 10)] if kind[0] == "any" else [kind]
        key, given = "checkin:shuffled", given | {"checkin_rate": 1, "rounds": setting[3]}
        asked = [(key, {"route": name} | ({"n_buckets": size} if size else {}) | given) for name, size in kinds]
    elif kind[0] == "any":
        asked = [("shuffle:any", given)]
    else:
        del given["side"]
        asked = [("shuffle:lower", {"randomizer": kind[0]} | ({"n_buckets": kind[1]} if kind[1] else {}) | given)]
    ends = [(float(evaluate(key, **inputs).value), key, inputs) for key, inputs in asked]
    at_least, key, inputs = max(ends, key=lambda end: end[0])
    return at_least, " ".join(["flamelib evaluate", key, *(f"{name}={value}" for name, value in inputs.items())])


@functools.lru_cache(maxsize=4096)
def _estimated(kind: Kind, setting: Setting) -> float:
    """An estimate of epsilon, by which settings are ranked: that of the blanket, which rounds make grow as noise's."""
    epsilon0, n_users, delta, rounds = setting
    law = analysis(analysis(kind_of(*kind)(epsilon0)).reduced).blanket  # type: ignore[attr-defined]
    once = smallest_epsilon(estimate(law, n_users), delta, epsilon0)
    return min(math.sqrt(rounds) * once - (rounds - 1) * once**2 / (4 * math.log(delta)), rounds * epsilon0)


def _ratio(at_least: float, claimed: float) -> float:
    return at_least / claimed if claimed else math.inf if at_least else 0.0


def _takes_rounds(claim: Callable[..., Any]) -> bool:
    with suppress(ValueError, TypeError):  # of one that is compiled, or no function
        return "rounds" in inspect.signature(claim).parameters
    return False


def _setting(values: Reals, with_rounds: bool) -> Setting:
    """Of three digits, to be read and typed."""
    epsilon0, n_users, delta, rounds = (float(f"{value:.3g}") for value in np.clip(values, *SEARCH_RANGE))
    return epsilon0, round(n_users), delta, round(rounds) if with_rounds else 1
