r"""A deployment by its description: what it guarantees, between two certified ends, or the question it leaves open.

A description names a mechanism, its budgets, how many people there are, how often they are asked, who is trusted, and
whose data the guarantee protects: the fields of :data:`FIELDS`.  If a field is missing that the guarantee depends on,
the answer is a question and never a guess; a description without a unit of privacy is refused whatever else it says.
The rounds, the adjacency and, beside rho, delta may be left out: the answer then says what was assumed, and what would
change it.

``trust`` decides what is seen: every report (``nobody`` is trusted), reports in random order (``shuffler``), only their
sum (``aggregator``), or a release by somebody who sees all data (``curator``).
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from flamelib.accounting.composition.dominating_pair import DominatingPair, composed
from flamelib.accounting.composition.renyi import renyi_to_epsilon
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.shuffling.accountant import compose, kind_of, lower_bound, rappor_sums
from flamelib.core.guarantees import CROSSED, Adjacency, RestsOn, bracketed_ends
from flamelib.core.logspace import UNIT, product_above, product_below
from flamelib.core.search import smallest_epsilon
from flamelib.core.vocabulary import SUPPORTS, VOCABULARY, Domain, DomainError, known, once

#: Fields of a description, with their meaning.
#:
#: :meta hide-value:
FIELDS: dict[str, str] = {
    "name": "what is deployed, in words",
    "mechanism": "a local randomizer (any, kary, laplace, rappor, oue, subset, hadamard, local-hash), or a release by "
    "a curator (gaussian, zcdp), or stated: a final budget whose mechanism is not told",
    "epsilon0": "for a local randomizer: its budget for one report, or for the whole vector if a vector is sent",
    "n_buckets": "values that a report can stand for; not needed for any and laplace",
    "n_users": "at least how many people's reports are mixed; needed if a shuffler or an aggregator is trusted",
    "noise_std": "for gaussian: standard deviation of the noise, divided by the most that one unit of privacy can move "
    "the result",
    "rho": "for zcdp: its budget for everything that is released",
    "epsilon": "for stated: the final budget; for other mechanisms the number that is published, for comparison",
    "delta": "failure probability of the guarantee, for all rounds together",
    "rounds": "how often the same unit of privacy takes part, or how many releases there are; once if left out",
    "adjacency": "replace-one or add-remove",
    "trust": "who follows the protocol and tells nobody what it sees: nobody, shuffler, aggregator or curator",
    "unit": "whose data is protected: one report, a person's reports of a day, all that a person ever sends",
}
#: What is asked where a field is needed and left out.
#:
#: :meta hide-value:
QUESTIONS: dict[str, str] = {
    "unit": "whose data does the guarantee protect: one report, a person's reports of a day, or all of them?",
    "mechanism": "which mechanism makes the reports or the release?",
    "trust": "who sees single reports: everybody (nobody is trusted), a shuffler, an aggregator, or a curator?",
    "epsilon0": "what is the local budget of one report?",
    "n_buckets": "how many values can a report stand for?",
    "n_users": "at least how many people's reports are mixed before anybody sees them?",
    "noise_std": "how much noise is added, divided by the most that one unit of privacy can move?",
    "rho": "what is the budget rho of everything that is released?",
    "epsilon": "what is the budget epsilon?",
    "delta": "with what failure probability delta must the guarantee hold?",
}
TRUST = ("nobody", "shuffler", "aggregator", "curator")
SENT = ("any", "kary", "laplace", *SUPPORTS)
RELEASED = {"gaussian": "noise_std", "zcdp": "rho", "stated": "epsilon"}
IF_UNSTATED = (
    "answered for a report that is replaced, not for one that is left out",
    "the budget is for the one that its publisher computed it for; a replacement is a removal and an addition",
)
WORDS = ("name", "unit", "mechanism", "trust", "adjacency")  # fields that hold a text; others hold a number
# One reading of unquoted words, whichever reader of YAML would take them for a truth value or for nothing.
TRUTHS, NOTHING = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}, ("", "~", "null")
# Readers differ about other forms: 017 is 15 or 17, 1:30 is 90 or a text, 0x10 is 16 or a text.
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
USUAL_DELTA = 1e-10  # at which a release that states rho is answered if it names no delta
OFTEN = 10  # rounds of which is told what they would cost where none are named
RHO = Domain("budget of zero-concentrated privacy", low=0, high=1e6, open_low=True)
MOST_SEEN, FAINTEST = 2**13, 1e-250  # reports whose losses are all told apart, and a delta that is
SLIP = 1e-9  # of what is computed there, relatively
_ORDERS = [1 + 10 ** (k / 100) for k in range(-600, 601)]  # of Rényi: each is valid, the best one is taken


def unquoted(word: str) -> str | bool | None:
    """What a word without quotes means in a description: nothing, a truth value (which no field has), or the text.

    >>> unquoted("1e3"), unquoted("Off"), unquoted("~")
    ('1e3', False, None)
    """
    word = word.strip()
    return None if word.lower() in NOTHING else TRUTHS.get(word.lower(), word)


def from_json(text: str) -> Any:
    """Content of a text in JSON, numbers as they are written; ``ValueError`` for other texts."""
    as_is: Any = str
    try:
        return json.loads(text, object_pairs_hook=once, parse_int=as_is, parse_float=as_is, parse_constant=as_is)
    except RecursionError:
        raise DomainError("a description must be names with values, got lists within lists") from None


class Unstated(DomainError):
    """A description leaves something open that the answer depends on; ``questions`` has it by field."""

    def __init__(self, questions: Mapping[str, str], name: str = "") -> None:
        self.questions = dict(questions)
        what = "; ".join(f"{field} is unstated: {asked}" for field, asked in self.questions.items())
        super().__init__(f"{name}: {what}" if name else what)


@dataclass(frozen=True, slots=True)
class Answered:
    """What a description guarantees.

    ``upper`` is never below the truth and ``lower`` never above it, where ``basis`` is ``computed``; where it is
    ``stated``, ``upper`` repeats the description, whose mechanism is not told, and ``lower`` is ``None``.  ``odds`` is
    by how much the odds of a guess about one unit can grow, up to ``delta``.  ``alone`` is the epsilon, at delta 0,
    that is left if whoever is trusted does not deserve it, ``None`` where nothing is.  ``unstated`` says what was left
    open, and what would change.
    """

    name: str
    unit: str
    basis: str
    lower: float | None
    upper: float
    delta: float
    odds: float
    alone: float | None
    said: float | None
    adjacency: str
    trust: str
    rests_on: str
    because: str
    unstated: tuple[str, ...]


def answered(given: Mapping[str, Any]) -> Answered:
    """The guarantee of a description: a mapping with fields of :data:`FIELDS`, numbers also as text.

    Raises
    ------
    Unstated
        Where something that the answer depends on is not said; the questions stand in the sentence.
    DomainError
        Where a field is unknown or outside its domain.

    Examples
    --------
    >>> words = {"mechanism": "rappor", "epsilon0": 14, "n_users": 100_000, "delta": 1e-9, "trust": "aggregator"}
    >>> found = answered(words | {"unit": "one report", "rounds": 1, "adjacency": "replace-one"})
    >>> f"{found.lower:.4f} to {found.upper:.4f}"
    '0.9504 to 0.9530'
    >>> answered(words)
    Traceback (most recent call last):
    flamelib.uses.deployment_card.Unstated: unit is unstated: whose data does the guarantee protect: ...
    """
    known(given, FIELDS, [], "a description")
    card = {field: value.strip() if isinstance(value, str) else value for field, value in given.items()}
    card = {field: value for field, value in card.items() if value is not None and value != ""}
    for field in card.keys() & set(WORDS):
        if not isinstance(card[field], str):
            raise DomainError(f"{field} must be a text, in quotes where it may be read otherwise, got {card[field]!r}")
    name, asked = str(card.pop("name", "")), _questions(card)
    if asked:
        raise Unstated(asked, name)
    unit, trust, mechanism = (str(card.pop(field)) for field in ("unit", "trust", "mechanism"))
    adjacency = card.pop("adjacency", None)
    numbers = {"rounds": 1} | {field: _number(field, value) for field, value in card.items()}
    open_ends = [] if "rounds" in card else [_oftener(mechanism, trust, numbers, unit)]
    if mechanism == "zcdp" and "delta" not in numbers:
        numbers["delta"] = USUAL_DELTA
        open_ends.append(f"delta: rho has an epsilon for every delta, and this one is at {USUAL_DELTA:g}")
    lower, upper, rests_on, because = _ends(mechanism, trust, numbers)
    if lower is not None:
        doubt = getattr(upper, "uncertainty", 0.0)
        lower, upper, sure = bracketed_ends(lower, upper, doubt, f"{mechanism} with {numbers}")
        rests_on, because = (rests_on, because) if sure else (RestsOn.ESTIMATED, f"{because}; {CROSSED}")
    if adjacency is None:
        adjacency = "unstated" if mechanism in RELEASED else Adjacency.REPLACE_ONE
        open_ends.append(f"adjacency: {IF_UNSTATED[mechanism in RELEASED]}")
    if mechanism not in RELEASED and adjacency != Adjacency.REPLACE_ONE:
        raise DomainError(f"adjacency must be replace-one for reports that people send, got {adjacency!r}")
    alone = product_above(numbers["rounds"], numbers["epsilon0"]) if trust in ("shuffler", "aggregator") else None
    return Answered(
        name, unit, "stated" if mechanism == "stated" else "computed", lower, upper, numbers.get("delta", 0.0),
        math.exp(upper) if upper < 700 else math.inf, alone, numbers.get("epsilon") if mechanism != "stated" else None,
        str(adjacency), trust, rests_on, because, tuple(open_ends),
    )  # fmt: skip


def _number(field: str, value: Any) -> float:
    """The number, which may be a text in the one form that all readers understand alike."""
    domain = RHO if field == "rho" else VOCABULARY[field]
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise DomainError(f"{field} must be {domain}, written like 17, 0.5 or 1e-8, got {value[:200]!r}")
    found: float = domain.read(field, value)
    return found


def _questions(card: Mapping[str, Any]) -> dict[str, str]:
    """What is needed and left out, by field; refuses words that are none of the domain."""
    for field, words in (("trust", TRUST), ("mechanism", (*SENT, *RELEASED)), ("adjacency", tuple(Adjacency)[:2])):
        if field in card and card[field] not in words:
            raise DomainError(f"{field} must be one of {', '.join(words)}, got {card[field]!r}")
    trust, mechanism = card.get("trust"), card.get("mechanism")
    if None not in (trust, mechanism) and (mechanism in RELEASED) != (trust == "curator"):
        kinds = ", ".join(RELEASED if trust == "curator" else SENT)
        raise DomainError(f"mechanism must be one of {kinds} where trust is {trust}, got {mechanism!r}")
    needed = ["unit", "mechanism", "trust"]
    if mechanism in RELEASED:
        needed += [RELEASED[mechanism], *(["delta"] if mechanism == "gaussian" else [])]
    elif mechanism:
        needed += ["epsilon0", *(["n_buckets"] if mechanism not in ("any", "laplace", "rappor") else [])]
        needed += ["n_buckets"] if mechanism == "rappor" and trust == "shuffler" else []
    if trust in ("shuffler", "aggregator"):
        needed += ["n_users", "delta"]
    formula = isinstance(card.get("delta"), str) and re.search("[a-df-zA-DF-Z]", card["delta"])
    written = re.sub(r"[\\{}]", "", str(card.get("delta")))  # without the marks of TeX
    unclear = {"delta": f"it is the formula {written}; what is its value?"} if formula else {}
    return {field: QUESTIONS[field] for field in needed if field not in card} | unclear


def _ends(mechanism: str, trust: str, numbers: Mapping[str, Any]) -> tuple[float | None, float, str, str]:
    """Lower end, upper end, what they rest on, and by which account."""
    rounds, delta, n_users = numbers["rounds"], numbers.get("delta", 0.0), numbers.get("n_users", 2)
    if mechanism == "stated" and rounds > 1:
        raise DomainError(f"rounds must be 1 for a final budget, got {rounds!r}")
    if mechanism in ("gaussian", "zcdp") and not 0 < delta < 1:
        raise DomainError(f"delta must be a number in (0, 1), got {delta!r}")
    if mechanism == "stated":
        because = "the budget as stated; without the noise and the number of contributions nothing can be recomputed"
        return None, numbers["epsilon"], "stated", because
    if mechanism in RELEASED:
        noise = numbers["noise_std"] if mechanism == "gaussian" else 1 / math.sqrt(2 * numbers["rho"])
        gaussian = gaussian_mechanism(1.0, noise / math.sqrt(rounds), None, delta)
        if mechanism == "gaussian":
            return max(gaussian - gaussian.uncertainty, 0.0), gaussian, RestsOn.PROVEN, "Gaussian noise, exactly"
        upper = renyi_to_epsilon(lambda order: rounds * numbers["rho"] * order, delta, _ORDERS)
        because = "the upper end for every mechanism with this rho, the lower end for Gaussian noise, which has it"
        return max(gaussian - gaussian.uncertainty, 0.0), upper, RestsOn.PROVEN, because
    if trust == "nobody":
        return _unshuffled(mechanism, numbers["epsilon0"], numbers.get("n_buckets"), rounds, delta)
    if mechanism == "rappor" and trust == "aggregator":
        budget = (numbers["epsilon0"], n_users)
        lower, upper = (rappor_sums(*budget, side, delta=delta, rounds=rounds) for side in ("lower", "upper"))
        return lower, upper, RestsOn.PROVEN, "sums of flipped bits: two shuffled binary responses"
    randomizer = kind_of(mechanism, numbers.get("n_buckets"))(numbers["epsilon0"])
    upper = compose(randomizer, n_users, rounds, 1.0, None, delta)
    if trust == "aggregator" and mechanism != "kary":
        because = "a sum shows no more than shuffled reports do; how much less is not known here"
        return None, upper, RestsOn.PROVEN, because
    lower = lower_bound(randomizer, n_users, rounds, 1.0, None, delta)
    return lower, upper, RestsOn.PROVEN, "shuffled reports; the lower end by explicit data sets"


def _unshuffled(
    mechanism: str, epsilon0: float, n_buckets: int | None, rounds: int, delta: float
) -> tuple[float | None, float, str, str]:
    """Reports that are seen one by one, so that nobody else hides them."""
    if not delta:
        least, most = product_below(rounds, epsilon0), product_above(rounds, epsilon0)
        return least, most, RestsOn.PROVEN, "the local budget, once for each report"
    bits, letters = (2, 2) if mechanism == "rappor" else (1, n_buckets if mechanism == "kary" else 2)
    lower, upper = _seen(epsilon0 / bits, letters or 2, bits * rounds, delta)
    if mechanism not in ("any", "kary", "rappor"):
        return None, upper, RestsOn.PROVEN, "binary response, which loses the most of all with this local budget"
    return lower, upper, RestsOn.PROVEN, "the law of the reports"


def _seen(epsilon0: float, n_buckets: int, times: int, delta: float) -> tuple[float, float]:
    """Both ends of the epsilon of k-ary response, seen so many times: losses are whole multiples of the budget.

    A sum of losses has a law of ``2 * times + 1`` points, by products of positive numbers, whose relative error is far
    below ``SLIP``.  The losses are rounded up, as nothing else is small against a delta near the largest of them.
    """
    most = product_above(times, epsilon0)
    whole = math.exp(-epsilon0) * (n_buckets - 1) + 1
    other = math.exp(-epsilon0) / whole
    if times > MOST_SEEN or delta < FAINTEST:
        gain, losses = -math.expm1(-epsilon0) / whole, np.array([epsilon0, 0.0, -epsilon0])
        base = np.array([other, (n_buckets - 2) * other, 1 / whole])
        cells = DominatingPair(losses, losses, base, np.array([gain, 0.0, -gain]), np.full(3, 4 * UNIT)).some(base > 0)
        return 0.0, min(composed([(cells, times)], delta=delta), most)
    law, square = np.ones(1), np.array([other, (n_buckets - 2) * other, 1 / whole])
    for bit in bin(times)[:1:-1]:
        law = np.convolve(law, square) if bit == "1" else law
        square = np.convolve(square, square) if len(square) <= 2 * times else square
    losses = np.nextafter(epsilon0 * np.arange(-times, times + 1), np.inf)

    def log_delta(epsilon: float) -> float:
        beyond = losses > epsilon
        return math.log(max(float(law[beyond] @ -np.expm1(epsilon - losses[beyond])), 5e-324))

    lower, upper = (smallest_epsilon(log_delta, delta * (1 + sign * SLIP), most) for sign in (1, -1))
    return max(lower * (1 - SLIP) - SLIP, 0.0), min(upper, most)


def _oftener(mechanism: str, trust: str, numbers: Mapping[str, Any], unit: str) -> str:
    """What more rounds would change."""
    if mechanism == "stated":
        return f"rounds: it is not said whether the budget counts every release that {unit!r} takes part in"
    delta = {"delta": numbers.get("delta", USUAL_DELTA)} if mechanism == "zcdp" else {}
    more = _ends(mechanism, trust, {**numbers, **delta, "rounds": OFTEN})[1]
    return f"rounds: answered for one; {OFTEN} of the same unit would cost at most {more:.4g}"
