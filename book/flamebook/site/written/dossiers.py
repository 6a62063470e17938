r"""Three refutations to take apart: each assumption of a finding is a switch, the attack is played.

A dossier enumerates its switches.  For each combination it knows what is claimed, the exact :math:`\delta` of the two
data sets, and the outcomes that the best attack watches for; the page's script draws rounds of the protocol, counts how
many of them fall among these outcomes, and computes no :math:`\delta` of its own.

An outcome is a pair of what is seen openly, a whole number, and of a number: a count, or a mixture of normals.
On the page "What does not hold", ``@play ROW@`` in a story becomes the dossier of the row.
"""

import html
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr

from flamebook.claims.ledger import Judged
from flamelib.accounting.checkin.distributed_noise import effective_rate
from flamelib.accounting.sampling.closed_form import sampled_epsilon
from flamelib.accounting.sampling.secret_participation import random_participation
from flamelib.accounting.shuffling.numerical import blanket_divergence
from flamelib.core import binomial
from flamelib.core.arrays import Reals
from flamelib.core.profiles import KaryProfile
from flamelib.core.vocabulary import DomainError
from flamelib.front.results import rounded

WORD = re.compile(r"@play (\S+)@")
DIGITS = 3
FAR, KNOTS = 12.0, 4001  # deviations beyond the outermost centre, where nothing of size is left; points of a first look
EQUAL = 1 + 1e-9  # rounding: what exceeds a claim by less does not contradict it

Outcomes = list[tuple[float, float]]


class Position(NamedTuple):
    """One position of a switch: its name in the record, and what the page says."""

    name: str
    words: str


@dataclass(frozen=True)
class Switch:
    """An assumption; the story's own position stands first."""

    name: str
    asks: str
    positions: tuple[Position, ...]


class Seen(NamedTuple):
    """Both distributions of the number, given what is seen openly: weights of centres with normal noise of this width.

    The width 0 stands for the centres themselves.
    """

    chance: float
    first: ArrayLike
    second: ArrayLike
    centres: ArrayLike
    width: float


@dataclass(frozen=True)
class Case:
    """One combination: the claim, the truth, and for each number that is seen openly the outcomes watched for."""

    epsilon: float
    claimed: float
    exact: float
    watched: Mapping[int, Outcomes]

    @property
    def contradicted(self) -> bool:
        """Whether the two data sets lose more than is claimed."""
        return self.exact > self.claimed * EQUAL


@dataclass(frozen=True)
class Dossier:
    """A refuted row with its switches, what the script needs to draw a round, and the solution of a combination."""

    row: str
    given: Mapping[str, float]
    rounds: int
    switches: tuple[Switch, ...]
    solve: Callable[[Mapping[str, str]], Case]

    @property
    def name(self) -> str:
        """For addresses and the script."""
        return self.row.split(":")[0]

    def cases(self) -> dict[str, Case]:
        """Every combination, by the names of its positions."""
        combinations = itertools.product(*(one.positions for one in self.switches))
        names = [[position.name for position in found] for found in combinations]
        keys = [one.name for one in self.switches]
        return {" ".join(found): self.solve(dict(zip(keys, found, strict=True))) for found in names}


def loss(laws: Mapping[int, Seen], epsilon: float) -> tuple[float, dict[int, Outcomes]]:
    """Exact delta of the first distribution against the second, and where it exceeds ``exp(epsilon)`` times that."""
    watched = {seen: found for seen, law in laws.items() if (found := _watched(law, epsilon))}
    parts = [laws[seen].chance * _gain(laws[seen], found, epsilon) for seen, found in watched.items()]
    return math.fsum(parts), watched


def _watched(law: Seen, epsilon: float) -> Outcomes:
    first, second = np.asarray(law.first, dtype=float), np.asarray(law.second, dtype=float)
    centres = np.asarray(law.centres, dtype=float)
    if not law.width:
        above = centres[first > math.exp(epsilon) * second]
        runs = np.split(above, np.flatnonzero(np.diff(above) > 1) + 1) if above.size else []
        return [(float(run[0]) - 0.5, float(run[-1]) + 0.5) for run in runs]

    def excess(x: float | Reals) -> Reals:
        one, other = (_log_density(x, weights, centres, law.width) for weights in (first, second))
        return one - other - epsilon

    knots = np.linspace(centres.min() - FAR * law.width, centres.max() + FAR * law.width, KNOTS)
    above = excess(knots) > 0
    turns = np.flatnonzero(np.diff(above))
    ends = [float(brentq(excess, knots[i], knots[i + 1], xtol=1e-13)) for i in turns]
    ends = [-math.inf] * bool(above[0]) + ends + [math.inf] * bool(above[-1])
    return list(zip(ends[::2], ends[1::2], strict=True))


def _log_density(x: float | Reals, weights: Reals, centres: Reals, width: float) -> Reals:
    held = weights > 0
    apart = (np.asarray(x)[..., None] - centres[held]) / width
    return np.asarray(logsumexp(-(apart**2) / 2, axis=-1, b=weights[held]))


def _gain(law: Seen, watched: Outcomes, epsilon: float) -> float:
    """The first distribution of these outcomes less ``exp(epsilon)`` times the second."""
    centres = np.asarray(law.centres, dtype=float)
    if law.width:
        inside = sum(ndtr((centres - low) / law.width) - ndtr((centres - high) / law.width) for low, high in watched)
    else:
        inside = np.array([any(low < c < high for low, high in watched) for c in centres], dtype=float)
    return math.fsum((np.asarray(law.first) - math.exp(epsilon) * np.asarray(law.second)) * inside)


# --- FLAME: the largest coordinates are no sample ------------------------------------------------------------------


def topk(padded: int, epsilon0: float, sampling_rate: float, delta: float) -> Dossier:
    """One coordinate of SS-Topk among dummies, at the epsilon that sampling would leave."""
    without = blanket_divergence(KaryProfile(epsilon0, 2), padded, delta=delta / sampling_rate)
    claims = {"sampled": (sampled_epsilon(without, sampling_rate), delta), "plain": (without, delta / sampling_rate)}
    dummies = binomial.pmf(np.arange(padded), padded - 1, 0.5)
    true = 1 / (1 + math.exp(-epsilon0))

    def solve(at: Mapping[str, str]) -> Case:
        reported = 1.0 if at["choice"] == "largest" else sampling_rate
        second = 1 - true if at["other"] == "opposite" else 0.5
        chances = [reported * one + (1 - reported) * 0.5 for one in (true, second)]
        if at["order"] == "told":
            laws = [np.array([1 - one, one]) for one in chances]
        else:
            laws = [np.append(dummies, 0.0) * (1 - one) + np.insert(dummies, 0, 0.0) * one for one in chances]
        epsilon, claimed = claims[at["claim"]]
        exact, watched = loss({0: Seen(1.0, laws[0], laws[1], np.arange(len(laws[0])), 0.0)}, epsilon)
        return Case(epsilon, claimed, exact, watched)

    switches = (
        Switch("choice", "Which coordinates does the user report?", (
            Position("largest", "the largest of the update, so this one for certain"),
            Position("drawn", f"drawn by a coin, whatever the data: this one with probability {sampling_rate:g}"),
        )),
        Switch("other", "What does the update hold here in the other data set?", (
            Position("opposite", "−C: reported as well"),
            Position("nothing", "0: a dummy, or a report that looks like one"),
        )),
        Switch("order", "What does the shuffler do?", (
            Position("mixed", "mixes the messages of this coordinate"),
            Position("told", "reveals who sent which message"),
        )),
        Switch("claim", "What is promised?", (
            Position("sampled", "the budget of the coordinate with the gain of sampling"),
            Position("plain", "the budget of the coordinate without that gain"),
        )),
    )  # fmt: skip
    given = {"padded": padded, "sampling_rate": sampling_rate, "true": true}
    return Dossier("flame:thm-3/always-reported", given, 1_000_000, switches, solve)


# --- Self check-in: dropouts take their noise with them ------------------------------------------------------------


def dropout(n_users: int, checkin_rate: float, lost: float, noise_std: float, epsilon0: float) -> Dossier:
    """One round of few clients; the account of a round at a rate is its exact delta at that rate."""
    sent = effective_rate(checkin_rate, lost)
    true = 1 / (1 + math.exp(-epsilon0))

    def seen(kind: str, count: int, chance: float) -> Seen:
        there = count / n_users
        if kind == "shuffled":
            rest = binomial.pmf(np.arange(count), count - 1, 1 - true)
            holds = [np.append(rest, 0.0) * (1 - one) + np.insert(rest, 0, 0.0) * one for one in (true, 1 - true)]
            return Seen(chance, there * holds[0] + (1 - there) * holds[1], holds[1], np.arange(count + 1), 0.0)
        width = noise_std * math.sqrt(count if kind == "clients" else n_users * checkin_rate)
        return Seen(chance, [1 - there, there], [1.0, 0.0], [0.0, 2.0], width)

    @cache
    def round_at(kind: str, rate: float, epsilon: float) -> tuple[float, dict[int, Outcomes]]:
        chances = binomial.pmf(np.arange(n_users + 1), n_users, rate)
        return loss({k: seen(kind, k, float(chances[k])) for k in range(1, n_users + 1)}, epsilon)

    def solve(at: Mapping[str, str]) -> Case:
        epsilon = {"large": 3.0, "small": 0.5}[at["epsilon"]]
        claimed, _ = round_at(at["noise"], checkin_rate if at["account"] == "ignores" else sent, epsilon)
        exact, watched = round_at(at["noise"], sent if at["dropouts"] == "some" else checkin_rate, epsilon)
        return Case(epsilon, claimed, exact, watched)

    switches = (
        Switch("noise", "Who adds noise?", (
            Position("clients", "every client who sends, to its own number; the sum is published"),
            Position("server", "the server, to the sum, always the same amount"),
            Position("shuffled", "every client, by randomized response; the messages are shuffled"),
        )),
        Switch("dropouts", "Who checks in and does not send?", (
            Position("some", f"each with probability {lost:g}"),
            Position("none", "nobody"),
        )),
        Switch("account", "What does the account assume?", (
            Position("ignores", "everybody who checks in sends"),
            Position("counts", f"a share of {lost:g} drops out"),
        )),
        Switch("epsilon", "At which ε are the two compared?", (
            Position("large", "3, which only rare outcomes exceed"),
            Position("small", "0.5, which common outcomes exceed"),
        )),
    )  # fmt: skip
    given = {
        "n_users": n_users, "checkin_rate": checkin_rate, "lost": lost, "noise_std": noise_std, "true": true
    }  # fmt: skip
    return Dossier("checkin:distributed/dropout", given, 1_000_000, switches, solve)


# --- Random participation: the reading that was probably printed ---------------------------------------------------


def inner(participation_rate: float, record_rate: float, n_records: int, epsilon: float) -> Dossier:
    """Records with equal gradients, noise as large as the clip, against two readings of one theorem."""
    p, q, others = participation_rate, record_rate, n_records - 1
    rates = (p, q, n_records, 1.0, 1.0)
    claims = {name: float(random_participation(name, *rates, epsilon=epsilon)) for name in ("inner", "outer")}
    drawn = binomial.pmf(np.arange(n_records), others, q)

    def law(counts: Mapping[int, float], own: bool, moved: bool) -> Reals:
        """Weights of 0, 1, ... gradients in the sum, the others' counts having these probabilities."""
        found = np.zeros(n_records + 1)
        found[0] += 1 - p
        for j, chance in counts.items():
            found[j * moved] += p * chance * (1 - q if own else 1)
            found[j * moved + 1] += p * chance * q * own
        return found

    def solve(at: Mapping[str, str]) -> Case:
        told = [(float(drawn[j]), {j: 1.0}) for j in range(n_records)]
        groups = told if at["count"] == "told" else [(1.0, {j: float(drawn[j]) for j in range(n_records)})]
        moved = at["others"] == "equal"
        laws = {}
        for seen, (chance, counts) in enumerate(groups):
            pair = law(counts, True, moved), law(counts, False, moved)
            first, second = pair if at["change"] == "removed" else pair[::-1]
            laws[seen] = Seen(chance, first, second, np.arange(n_records + 1.0), 1.0)
        exact, watched = loss(laws, epsilon)
        return Case(epsilon, claims[at["reading"]], exact, watched)

    switches = (
        Switch("reading", "Where is the average over the other records?", (
            Position("inner", "inside the divergence, the reading that was probably printed"),
            Position("outer", "outside, the reading that is proven"),
        )),
        Switch("others", "What are the gradients of the other records?", (
            Position("equal", "all equal to that of the record in question"),
            Position("zero", "all zero"),
        )),
        Switch("count", "Does the attacker learn how many other records are drawn?", (
            Position("hidden", "no, as in the protocol"),
            Position("told", "yes"),
        )),
        Switch("change", "Which data set has the record?", (
            Position("removed", "the first: its δ is that of removing the record"),
            Position("added", "the second: its δ is that of adding the record"),
        )),
    )  # fmt: skip
    given = {"participation_rate": p, "record_rate": q, "others": others}
    return Dossier("participation:thm-4.1/inner-five", given, 2_000_000, switches, solve)


# --- The page ------------------------------------------------------------------------------------------------------


def dossiers(judged: Iterable[Judged]) -> list[Dossier]:
    """The three, with the settings of their rows; a round of check-in is small enough to be played."""
    inputs = {row.claim.id: row.claim.inputs for row in judged}
    five: dict[str, Any] = {k: v for k, v in inputs["participation:thm-4.1/inner-five"].items() if k != "scheme"}
    few = dropout(10, 0.8, inputs["checkin:distributed/dropout"]["dropout"], 0.7, 4.0)
    return [topk(**inputs["flame:thm-3/always-reported"]), few, inner(**five)]


def placed(template: str, judged: Iterable[Judged]) -> str:
    """The template of the page "What does not hold" with its dossiers.

    Raises
    ------
    DomainError
        If a word names no dossier.
    """
    known = {one.row: one for one in dossiers(judged)}

    def word(found: re.Match[str]) -> str:
        if found[1] not in known:
            raise DomainError(f"book/refuted.md: {found[0]} names no dossier; there are {', '.join(known)}")
        return played(known[found[1]])

    return WORD.sub(word, template)


def played(dossier: Dossier) -> str:
    """The switches, the verdict, the attack, and the table of every combination, which needs no script."""
    cases = dossier.cases()
    parts = [
        *("```{raw} html", f'<section class="fl-crowd fl-dossier" id="dossier-{dossier.name}"'),
        f' aria-label="The assumptions of {html.escape(dossier.row)} as switches">',
        f'<script type="application/json">{_record(dossier, cases)}</script>',
        *(_fieldset(dossier.name, switch) for switch in dossier.switches),
        '<p class="fl-dossier-verdict" role="status"></p>',
        '<svg class="fl-dossier-scale" viewBox="0 0 600 104" role="img" aria-label="Claimed, exact and counted"></svg>',
        f'<p class="fl-crowd-buttons"><button type="button">play {dossier.rounds:,} rounds of each data set</button>',
        '<button type="button">forget them</button></p>',
        '<p class="fl-dossier-counted" role="status">Nothing has been played yet.</p>',
        *("</section>", "```", "", f"::::{{dropdown}} All {len(cases)} combinations", ""),
        *(_table(dossier, cases), "::::", ""),
    ]
    return "\n".join(parts)


def _fieldset(name: str, switch: Switch) -> str:
    labels = [
        f'<label><input type="radio" name="{name}-{switch.name}" value="{one.name}"{" checked" * (not i)}> '
        f"{html.escape(one.words)}</label>"
        for i, one in enumerate(switch.positions)
    ]
    return f"<fieldset><legend>{html.escape(switch.asks)}</legend>{''.join(labels)}</fieldset>"


def _told(case: Case) -> tuple[str, str]:
    """The claim rounded up and the truth rounded towards it, so that no rounding makes a contradiction."""
    return rounded(case.claimed, up=True, digits=DIGITS), rounded(case.exact, up=not case.contradicted, digits=DIGITS)


def _record(dossier: Dossier, cases: Mapping[str, Case]) -> str:
    def written(key: str, case: Case) -> dict[str, Any]:
        claimed, exact = _told(case)
        ends = {seen: [[max(a, -1e9), min(b, 1e9)] for a, b in found] for seen, found in case.watched.items()}
        return {
            "epsilon": case.epsilon, "claimed": case.claimed, "exact": case.exact, "watched": ends,
            "told": [rounded(case.epsilon, up=True, digits=4), claimed, exact], "contradicted": case.contradicted,
        }  # fmt: skip

    record = {
        "name": dossier.name, "given": dossier.given, "rounds": dossier.rounds,
        "switches": [one.name for one in dossier.switches],
        "cases": {key: written(key, case) for key, case in cases.items()},
    }  # fmt: skip
    return json.dumps(record, allow_nan=False)


def _table(dossier: Dossier, cases: Mapping[str, Case]) -> str:
    words = {one.name: {position.name: position.words for position in one.positions} for one in dossier.switches}
    lines = [
        f"| {' | '.join(one.asks for one in dossier.switches)} | claimed $\\delta$ | exact $\\delta$ | |",
        f"|{'---|' * len(dossier.switches)}--:|--:|---|",
    ]
    for key, case in cases.items():
        positions = [words[one.name][name] for one, name in zip(dossier.switches, key.split(), strict=True)]
        verdict = "**contradicted**" if case.contradicted else "not contradicted"
        lines.append(f"| {' | '.join([*positions, *_told(case), verdict])} |")
    return "\n".join(lines)
