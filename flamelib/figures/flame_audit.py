r"""Figures of the audit of FLAME's budgets: an attack exact and executed, claims between certified bounds, two counts.

The attack counts the messages above one half in the bags of k coordinates, where one user holds +C everywhere, or -C.
Its law is known (:mod:`flamelib.amplification.counting`); here the protocol's own users and shuffler are run as well.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.stats import binomtest

from flamelib._validate import DomainError, check
from flamelib.amplification import shuffling
from flamelib.amplification.counting import Count, double_lower, simple_lower, topk_lower
from flamelib.amplification.full_bags import full_bags_lower
from flamelib.amplification.sampling import sampled_epsilon
from flamelib.amplification.vectors import account, double_revealed, topk_truncated
from flamelib.composition import least_epsilon
from flamelib.figures.curves import Parameters, Values, name_decades, to_csv, words
from flamelib.figures.style import Pen
from flamelib.profiles import LaplaceProfile
from flamelib.protocols import flame
from flamelib.randomizers import LaplaceNoise

AT_ONCE = 10
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Round:
    """Public parameters of one round, with the experiments' failure probability.

    Attributes
    ----------
    n_users, dimension, kept, padded : int
    epsilon0 : float
        Local budget of one of ``kept`` coordinates; SS-Simple spreads the same total over all.
    """

    n_users: int
    dimension: int
    kept: int
    padded: int
    epsilon0: float

    def __post_init__(self) -> None:
        given = check(**self.as_parameters())
        if given["kept"] > given["dimension"] or given["kept"] % 1:
            raise DomainError(f"kept must be a whole number of at most dimension = {self.dimension}, got {self.kept!r}")
        for name, value in given.items():
            object.__setattr__(self, name, value if name == "epsilon0" else int(value))

    @property
    def delta(self) -> float:
        """The failure probability 0.01 / n^1.1."""
        return float(0.01 / self.n_users**1.1)

    @property
    def sampling_rate(self) -> float:
        """Share of the coordinates that a user reports."""
        return self.kept / self.dimension

    def as_parameters(self) -> dict[str, Any]:
        """For the card of a figure."""
        return {name: getattr(self, name) for name in self.__slots__}

    def account(self, protocol: str, bound: str, route: str) -> float:
        """Epsilon of a round by a bound and a route of :func:`flamelib.amplification.vectors.account`."""
        simple = protocol == "simple"
        epsilon0 = self.epsilon0 * (self.sampling_rate if simple else 1.0)
        rest = {} if simple else {"kept": self.kept, "padded": self.padded}
        return float(account(protocol, self.dimension, self.n_users, epsilon0, self.delta, bound, route, **rest))


# --- an attack, exact and executed ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attack:
    """Counts of messages above one half in rounds that were run, and their law.

    Attributes
    ----------
    plus, minus : arrays of int, shape (repeats,)
        One count a round, the victim at +C and at -C.
    law : Count
        The exact law of both.
    epsilon : float
        The budget that is attacked; it fixes the threshold, before any round is run.
    """

    plus: NDArray[np.int64]
    minus: NDArray[np.int64]
    law: Count
    epsilon: float
    parameters: Parameters

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The counts that can be seen: what the victim can move, and four standard deviations beyond."""
        total, drift = self.law.fair + self.law.biased, self.law.biased * (self.law.chance - 0.5)
        middle, reach = total / 2, drift + 2 * math.sqrt(total)
        return np.arange(math.floor(middle - reach), math.ceil(middle + reach) + 1)

    @cached_property
    def laws(self) -> Values:
        """Exact probabilities of these counts, the victim at +C and at -C; shape (2, counts)."""
        return np.array([self.law.pair(int(place), tails=False) for place in self.places]).T

    def threshold(self, epsilon: float) -> int:
        """The best test at ``epsilon``: +C is said from this count on."""
        return self.law.best_threshold(math.exp(epsilon))

    def exact(self, epsilon: float) -> float:
        """Delta that this test gives away, from the law."""
        more, less = self.law.pair(self.threshold(epsilon))
        return more - math.exp(epsilon) * less

    def seen(self, epsilon: float) -> float:
        """The same from the shares of the rounds."""
        more, less = (np.mean(counts >= self.threshold(epsilon)) for counts in (self.plus, self.minus))
        return float(more - math.exp(epsilon) * less)

    def interval(self, epsilon: float) -> tuple[float, float]:
        """Clopper-Pearson interval of that delta: both shares hold together with ``CONFIDENCE``."""
        (low, high), (least, most) = self._shares(epsilon)
        return low - math.exp(epsilon) * most, high - math.exp(epsilon) * least

    def epsilon_at_least(self, delta: float) -> float:
        """Budget that the rounds alone show to be exceeded at ``delta``, with more than ``CONFIDENCE``."""
        (low, _), (_, most) = self._shares(self.epsilon)
        return math.log((low - delta) / most) if low > delta else 0.0

    def _shares(self, epsilon: float) -> list[tuple[float, float]]:
        at, each = self.threshold(epsilon), (1 + CONFIDENCE) / 2
        tests = (binomtest(int((counts >= at).sum()), len(counts)) for counts in (self.plus, self.minus))
        found = (test.proportion_ci(each, method="exact") for test in tests)
        return [(float(one.low), float(one.high)) for one in found]

    def to_csv(self) -> str:
        """One row a possible count: both probabilities, and in how many rounds it was seen."""
        seen = [[int((counts == place).sum()) for place in self.places] for counts in (self.plus, self.minus)]
        header = ["count", "law at +C", "law at -C", "rounds at +C", "rounds at -C"]
        return to_csv(header, zip(self.places, *self.laws, *seen, strict=True))


def compute_attack(kept: int, padded: int, epsilon0: float, epsilon: float, repeats: int, seed: int) -> Attack:
    """Run SS-Topk ``repeats`` times with the victim at +C, as often at -C, and count in the bags after shuffling.

    Only the bags of the attacked coordinates are made.  Bags are shuffled one by one and share nothing, so that those
    of other coordinates say nothing about the victim; and another user who holds zero in an attacked coordinate sends
    what a dummy is.  So a model of just these coordinates, one other user at zero and dummies has the law of the whole
    round.  For the same reason some rounds are run at once, side by side as coordinates of one.

    Parameters
    ----------
    kept, padded, epsilon0
        Of the protocol: attacked coordinates, messages of each, local budget.
    epsilon : float
        The budget that is attacked.
    repeats, seed : int

    Examples
    --------
    >>> attack = compute_attack(20, 30, 1.0, 0.2, repeats=50, seed=0)
    >>> len(attack.plus), attack.threshold(0.2), bool(attack.plus.mean() > attack.minus.mean())
    (50, 305, True)
    """
    check(kept=kept, padded=padded, epsilon=epsilon, repeats=repeats, seed=seed)
    if kept % 1:
        raise DomainError(f"kept must be a whole number of coordinates, got {kept!r}")
    noise, kept = LaplaceNoise(epsilon0), int(kept)
    below = noise.mass / 2
    law = Count(kept * (padded - 1), kept, 1 - below, below)
    worlds = np.random.default_rng(seed).spawn(2)
    plus, minus = (_counts(kept, padded, noise, x, repeats, rng) for x, rng in zip((1, -1), worlds, strict=True))
    parameters = {"kept": kept, "padded": padded, "epsilon0": epsilon0, "repeats": repeats, "seed": seed}
    return Attack(plus, minus, law, epsilon, parameters | {"epsilon": epsilon})


def _counts(
    kept: int, padded: int, noise: LaplaceNoise, value: float, repeats: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    found = []
    for start in range(0, repeats, AT_ONCE):
        rounds = min(AT_ONCE, repeats - start)
        dimension = kept * rounds
        protocol = flame.TopkProtocol(2, dimension, 1.0, noise, kept=dimension, padded=padded)
        updates = np.outer([value, 0.0], np.ones(dimension))
        bags = np.asarray(flame.shuffler(protocol, flame.user(protocol, updates, rng), rng).bags, dtype=float)
        found.append(np.count_nonzero((bags > 0.5).reshape(rounds, -1), axis=1))
    return np.concatenate(found)


def draw_attack(ax: Axes, record: Attack, pen: Pen) -> None:
    """Histograms of the rounds under their exact laws, and the threshold."""
    edges = (np.linspace(record.places[0], record.places[-1], 49).round() - 0.5).tolist()
    for counts, law, key, name in (
        (record.plus, record.laws[0], "vermillion", "victim at +C"),
        (record.minus, record.laws[1], "blue", "victim at \N{MINUS SIGN}C"),
    ):
        weights = np.full(len(counts), 1 / len(counts) / (edges[1] - edges[0]))
        ax.hist(counts, edges, weights=weights, color=pen.colour(key), alpha=0.35, label=f"rounds, {name}")
        ax.plot(record.places, law, color=pen.colour(key), label=f"law, {name}")
    ax.axvline(
        record.threshold(record.epsilon) - 0.5, color=pen.theme.ink, linestyle=(0, (1.2, 1.6)), label="threshold"
    )
    ax.set(xlabel="messages above one half", ylabel="probability", ylim=(0, None))
    ax.locator_params(axis="x", nbins=6)


@dataclass(frozen=True, slots=True)
class AttackCurve:
    """Delta of the attack along epsilon: from the law, and from the rounds with an interval.

    Attributes
    ----------
    epsilon, exact : arrays of shape (points,)
    at, seen, low, high : arrays of shape (marks,)
    claimed : tuple of float
        The pair (epsilon, delta) that is attacked.
    """

    epsilon: Values
    exact: Values
    at: Values
    seen: Values
    low: Values
    high: Values
    claimed: tuple[float, float]
    parameters: Parameters

    def to_csv(self) -> str:
        """One row a point of the law, one a point of the rounds."""
        law = [("law", e, d, d, d) for e, d in zip(self.epsilon, self.exact, strict=True)]
        rounds = [("rounds", *row) for row in zip(self.at, self.seen, self.low, self.high, strict=True)]
        claim = ("claimed", self.claimed[0], *(self.claimed[1],) * 3)
        return to_csv(["source", "epsilon", "delta", "low", "high"], [*law, *rounds, claim])


def compute_attack_curve(attack: Attack, delta: float, points: int) -> AttackCurve:
    """From no budget at all to a little beyond the one that the attack refutes at ``delta``."""
    kept, padded, epsilon0 = (attack.parameters[name] for name in ("kept", "padded", "epsilon0"))
    last = 1.1 * topk_lower(float(kept), int(padded), float(epsilon0), delta=delta) + 1e-3
    grid, marks = np.linspace(0, last, points), np.linspace(0, attack.epsilon * 1.25, 6)
    low, high = np.array([attack.interval(e) for e in marks]).T
    exact, seen = (np.array([at(e) for e in x]) for at, x in ((attack.exact, grid), (attack.seen, marks)))
    return AttackCurve(grid, exact, marks, seen, low, high, (attack.epsilon, delta), attack.parameters)


def draw_attack_curve(ax: Axes, record: AttackCurve, pen: Pen) -> None:
    """The law's curve, the rounds' intervals, and the claim far below both."""
    floor = record.claimed[1] / 10
    ax.plot(record.epsilon, record.exact, **pen.line("lower", label="given away, exactly"))
    reach = np.abs(np.array([record.low, record.high]) - record.seen)
    ax.errorbar(
        record.at, record.seen, reach, fmt="o", color=pen.colour("blue"), capsize=4, label="given away, in rounds run"
    )
    ax.axhline(record.claimed[1], color=pen.theme.ink, linewidth=1, linestyle=(0, (1.2, 1.6)))
    ax.plot(*record.claimed, "X", color=pen.colour("vermillion"), markersize=11, label="claimed")
    ax.set(xlabel=words("epsilon"), ylabel=words("delta"), yscale="log", ylim=(floor, 1))


# --- claims against certified intervals -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """What is claimed of a round's epsilon, with certified bounds from below and above under one assumption."""

    name: str
    claimed: float
    lower: float
    upper: float

    @property
    def verdict(self) -> str:
        """``refuted`` below the lower bound, ``holds`` from the upper bound on, ``open`` between.

        >>> [Claim("", claimed, 1.0, 2.0).verdict for claimed in (0.9, 1.5, 2.0)]
        ['refuted', 'open', 'holds']
        """
        return "refuted" if self.claimed < self.lower else "holds" if self.claimed >= self.upper else "open"


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims by what they are about."""

    claims: Mapping[str, Claim]
    parameters: Parameters

    def __getitem__(self, key: str) -> Claim:
        return self.claims[key]

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: protocol and assumption, claimed, lower, upper, verdict."""
        return [(one.name, one.claimed, one.lower, one.upper, one.verdict) for one in self.claims.values()]

    def to_csv(self) -> str:
        """One row a claim."""
        return to_csv(["protocol", "claimed", "lower", "upper", "verdict"], self.rows())


def compute_claims(sparse: Round, dense: Round) -> Claims:
    """The budgets of the paper's route with the withdrawn bound, for two rounds, between certified bounds.

    Keys are ``simple`` (the first round alone), ``double``, ``topk`` and ``full`` (SS-Topk with overflowing bags),
    the latter three for the first round and, with ``:dense``, for the second.
    """
    found = {"simple": _simple(sparse)}
    for suffix, one in (("", sparse), (":dense", dense)):
        found |= {key + suffix: claim for key, claim in _sampled(one).items()}
    return Claims(found, {f"{name} {of}": value for of, one in (("first", sparse), ("second", dense))
                          for name, value in one.as_parameters().items()})  # fmt: skip


def _simple(one: Round) -> Claim:
    lower = simple_lower(one.dimension, one.n_users, one.epsilon0 * one.sampling_rate, delta=one.delta)
    upper = one.account("simple", "blanket", "sound")
    return Claim("SS-Simple", one.account("simple", "withdrawn", "paper"), float(lower), upper)


def _sampled(one: Round) -> dict[str, Claim]:
    share, claimed = f"1 in {1 / one.sampling_rate:g}", one.account("double", "withdrawn", "paper")
    size, delta = (one.padded, one.epsilon0), one.delta
    bounds = {
        "double": (
            double_lower(one.dimension, one.sampling_rate, *size, delta=delta),
            one.account("double", "blanket", "sound"),
        ),
        "topk": (topk_lower(one.kept, *size, delta=delta), one.account("topk", "blanket", "sound")),
        "full": (full_bags_lower(one.n_users, one.kept, *size, delta=delta), topk_truncated(one.kept, *size, delta)),
    }
    names = {
        "double": f"SS-Double, {share}",
        "topk": f"SS-Topk, {share}, no overflow",
        "full": f"SS-Topk, {share}, overflow dropped",
    }
    return {key: Claim(names[key], claimed, float(low), float(high)) for key, (low, high) in bounds.items()}


def draw_claims(ax: Axes, record: Claims, pen: Pen) -> None:
    """A row a claim: the certified interval as a bar, the claim as a cross, in red where it lies below."""
    claims = list(record.claims.values())[::-1]
    for row, one in enumerate(claims):
        label = "certified interval" if row == 0 else None
        ax.plot([one.lower, one.upper], [row, row], "|-", color=pen.colour("blue"), linewidth=4, markersize=13,
                label=label)  # fmt: skip
    for word, key, mark in (("refuted", "vermillion", "X"), ("open", "ochre", "D"), ("holds", "green", "o")):
        chosen = [(one.claimed, row) for row, one in enumerate(claims) if one.verdict == word]
        if chosen:
            ax.plot(*zip(*chosen, strict=True), mark, color=pen.colour(key), markersize=9, label=f"claimed, {word}")
    ax.set(xscale="log", xlabel=words("epsilon"), yticks=range(len(claims)), ylim=(-0.6, len(claims) - 0.4))
    ax.set_yticklabels([one.name for one in claims])
    ax.grid(visible=False, axis="y")
    name_decades(ax)


# --- Theorem 4: two counts at once ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Accounts:
    """Ways to account for one thing: words, value, and what the value is (``lower``, ``upper`` or ``value``)."""

    rows: Sequence[tuple[str, float, str]]
    parameters: Parameters

    def __getitem__(self, name: str) -> float:
        return {words: value for words, value, _ in self.rows}[name]

    def to_csv(self) -> str:
        """One row a way."""
        return to_csv(["account", "epsilon", "direction"], self.rows)


def compute_double_accounts(one: Round) -> Accounts:
    """SS-Double's epsilon by both sound counts, each by Lemma 3 and by exact composition, and by the printed mix."""
    rows = [
        ("messages counted", double_lower(one.dimension, one.sampling_rate, one.padded, one.epsilon0, delta=one.delta)),
        ("hidden: d with sampling, loss distributions", one.account("double", "blanket", "sound")),
        ("printed: 2k with sampling, Lemma 3", _by_lemma(one, 2 * one.kept, one.sampling_rate)),
        ("revealed: k without, loss distributions", double_revealed(one.kept, one.padded, one.epsilon0, one.delta)),
        ("hidden: d with sampling, Lemma 3", _by_lemma(one, one.dimension, one.sampling_rate)),
        ("revealed: k without, Lemma 3", _by_lemma(one, one.kept, 1.0)),
    ]
    kinds = ("lower", "upper", "value", "upper", "upper", "upper")
    told = [(name, float(value), kind) for (name, value), kind in zip(rows, kinds, strict=True)]
    return Accounts(told, one.as_parameters())


def _by_lemma(one: Round, count: int, rate: float) -> float:
    """Advanced composition of ``count`` coordinates, each with the certified blanket divergence, sampled at a rate."""
    each = one.delta / (count + 1)
    inner = shuffling.blanket_divergence(LaplaceProfile(one.epsilon0), one.padded, delta=each / rate)
    return least_epsilon(sampled_epsilon(inner, rate), count, each)


def draw_accounts(ax: Axes, record: Accounts, pen: Pen) -> None:
    """A mark a way, on a logarithmic axis; the shaded part is certainly too little."""
    looks = {"lower": ("lower", "<"), "upper": ("blanket", ">"), "value": ("vermillion", "X")}
    said = {"lower": "no account can be below", "upper": "proven", "value": "not proven"}
    rows = list(record.rows)[::-1]
    low = min(value for _, value, _ in rows)
    ax.axvspan(low / 2, low, color=pen.colour("lower"), alpha=0.14, linewidth=0)
    for kind, (key, mark) in looks.items():
        chosen = [(value, row) for row, (_, value, one) in enumerate(rows) if one == kind]
        ax.plot(*zip(*chosen, strict=True), mark, color=pen.colour(key), markersize=9, label=said[kind])
    for row, (_, value, _) in enumerate(rows):
        ax.annotate(f"{value:.3g}", (value, row), xytext=(9, 0), textcoords="offset points", va="center", fontsize=10)
    highest = max(value for _, value, _ in rows)
    ax.set(xscale="log", xlabel=words("epsilon"), xlim=(low / 2, highest * 2.5), yticks=range(len(rows)))
    ax.set_yticklabels([name for name, _, _ in rows])
    ax.grid(visible=False, axis="y")
    name_decades(ax)
