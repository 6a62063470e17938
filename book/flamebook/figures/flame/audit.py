"""The audit of FLAME's budgets: claims between certified bounds, the two counts behind Theorem 4, and all verdicts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from flamebook.figures.curves import name_decades
from flamebook.figures.flame.as_published import Alphabet, HalfPrecision, Linked, RepeatedNoise
from flamebook.figures.style import Pen
from flamebook.records import Parameters, to_csv, words
from flamebook.statements import AtLeast, AtMost, at_least, at_most, verdict
from flamelib.accounting.composition.closed_form import least_epsilon
from flamelib.accounting.coordinates.certified import account, double_revealed, topk_truncated
from flamelib.accounting.coordinates.counting import double_lower, exactly_lower, simple_lower
from flamelib.accounting.coordinates.full_bags import dropped_lower
from flamelib.accounting.coordinates.weighed import weighed_lower
from flamelib.accounting.sampling.closed_form import sampled_epsilon
from flamelib.accounting.shuffling import numerical
from flamelib.core.profiles import LaplaceProfile
from flamelib.core.vocabulary import DomainError, check


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

    @property
    def share(self) -> str:
        """That share in words."""
        return f"1 in {1 / self.sampling_rate:.4g}"

    def as_parameters(self) -> dict[str, Any]:
        """For the card of a figure."""
        return {name: getattr(self, name) for name in self.__slots__}

    def account(self, protocol: str, bound: str, route: str, **options: str) -> float:
        """Epsilon of a round by a bound and a route of :func:`flamelib.accounting.coordinates.certified.account`."""
        simple = protocol == "simple"
        epsilon0 = self.epsilon0 * (self.sampling_rate if simple else 1.0)
        rest: dict[str, Any] = {} if simple else {"kept": self.kept, "padded": self.padded} | options
        return float(account(protocol, self.dimension, self.n_users, epsilon0, self.delta, bound, route, **rest))


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
        """What the bounds say of the claim."""
        return verdict(self.claimed, self.lower, self.upper)


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims by what they are about."""

    claims: Mapping[str, Claim]
    parameters: Parameters

    def __getitem__(self, key: str) -> Claim:
        return self.claims[key]

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: protocol and assumption, claimed, lower, upper, verdict."""
        return [
            (one.name, one.claimed, AtLeast(one.lower), AtMost(one.upper), one.verdict) for one in self.claims.values()
        ]

    def to_csv(self) -> str:
        """One row a claim."""
        return to_csv(["protocol", "claimed", "lower", "upper", "verdict"], self.rows())


def denser(one: Round) -> Round:
    """The same crowd with a tenth of the coordinates and bags for two thirds of it, as the paper's best accuracy has.

    >>> denser(Round(1000, 7850, 157, 333, 0.5)).padded
    666
    """
    kept = max(1, one.dimension // 10)
    padded = max(2, int(one.n_users / 1.5), -(-one.n_users * kept // one.dimension))
    return Round(one.n_users, one.dimension, kept, padded, one.epsilon0)


def compute_claims(sparse: Round, dense: Round) -> Claims:
    """The budgets of the paper's route with the withdrawn bound, for two rounds, between certified bounds.

    Keys are ``simple`` (the first round alone), ``double`` (SS-Double with independent inclusion of coordinates),
    ``subset`` (with exactly ``kept`` of them, as printed), ``topk`` and ``full`` (SS-Topk with overflowing bags), the
    latter four for the first round and, with ``:dense``, for the second.
    """
    found = {"simple": _simple(sparse)}
    for suffix, one in (("", sparse), (":dense", dense)):
        found |= {key + suffix: claim for key, claim in _sampled(one).items()}
    rounds = (("first", sparse), ("second", dense))
    return Claims(found, {f"{name} {of}": value for of, one in rounds for name, value in one.as_parameters().items()})


def _simple(one: Round) -> Claim:
    lower = simple_lower(one.dimension, one.n_users, one.epsilon0 * one.sampling_rate, delta=one.delta)
    upper = one.account("simple", "blanket", "sound")
    return Claim("SS-Simple", one.account("simple", "withdrawn", "paper"), float(lower), upper)


def _sampled(one: Round) -> dict[str, Claim]:
    share, claimed = one.share, one.account("double", "withdrawn", "paper")
    size, delta = (one.padded, one.epsilon0), one.delta
    names = {
        "double": f"SS-Double, {share}, independent",
        "subset": f"SS-Double, {share}, exactly",
        "topk": f"SS-Topk, {share}, no overflow",
        "full": f"SS-Topk, {share}, overflow dropped",
    }
    crowd = (one.n_users, one.dimension, one.kept, *size, delta)
    weighed = weighed_lower(one.n_users, one.kept, *size, delta=delta)
    lower = {
        "double": double_lower(one.dimension, one.sampling_rate, *size, delta=delta, n_users=one.n_users),
        "subset": exactly_lower(*crowd[:5], delta=delta),
        "topk": weighed,
        "full": max(
            dropped_lower(*crowd[:5], delta=delta), weighed
        ),  # no bag of the data sets that are weighed overflows
    }
    upper = {
        "double": one.account("double", "blanket", "sound"),
        "subset": one.account("double", "blanket", "sound", inclusion="exact", overflow="drop"),
        "topk": one.account("topk", "blanket", "sound"),
        "full": topk_truncated(one.kept, *size, delta),
    }
    return {key: Claim(names[key], claimed, float(lower[key]), float(upper[key])) for key in names}


def draw_claims(ax: Axes, record: Claims, pen: Pen) -> None:
    """A row a claim: the certified interval as a bar, the claim as a cross, in red where it lies below."""
    claims = list(record.claims.values())[::-1]
    least = _least(number for one in claims for number in (one.claimed, one.lower, one.upper))
    for row, one in enumerate(claims):
        label = "certified interval" if row == 0 else None
        ends = [max(one.lower, least), max(one.upper, least)]
        ax.plot(ends, [row, row], "|-", color=pen.colour("blue"), linewidth=4, markersize=13,
                label=label)  # fmt: skip
    for word, key, mark in (("refuted", "vermillion", "X"), ("open", "ochre", "D"), ("holds", "green", "o")):
        chosen = [(max(one.claimed, least), row) for row, one in enumerate(claims) if one.verdict == word]
        if chosen:
            ax.plot(*zip(*chosen, strict=True), mark, color=pen.colour(key), markersize=9, label=f"claimed, {word}")
    ax.set(xscale="log", xlabel=words("epsilon"), yticks=range(len(claims)), ylim=(-0.6, len(claims) - 0.4))
    ax.set_yticklabels([one.name for one in claims])
    ax.grid(visible=False, axis="y")
    name_decades(ax)


def _least(values: Iterable[float]) -> float:
    """Where a logarithmic axis begins: a tenth of the smallest number above 0 if there is a 0, else at or below all."""
    found = list(values)
    positive = min((one for one in found if one > 0), default=1.0)
    return positive / 10 if min(found) <= 0 else positive


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


def compute_double_accounts(one: Round, hidden: Claim, exactly: Claim) -> Accounts:
    """SS-Double's epsilon by the sound counts, also by Lemma 3 in place of exact composition, and by the printed mix.

    Parameters
    ----------
    one : Round
    hidden, exactly : Claim
        The certified bounds of ``double`` and ``subset`` in this round (:func:`compute_claims`).
    """
    rows = [
        ("messages counted", max(hidden.lower, exactly.lower), "lower"),
        ("hidden: d with sampling, loss distributions", hidden.upper, "upper"),
        ("exactly k: a block each, loss distributions", exactly.upper, "upper"),
        ("printed: 2k with sampling, Lemma 3", _by_lemma(one, 2 * one.kept, one.sampling_rate), "value"),
        ("revealed: k without, loss distributions", _revealed(one), "upper"),
        ("hidden: d with sampling, Lemma 3", _by_lemma(one, one.dimension, one.sampling_rate), "upper"),
        ("revealed: k without, Lemma 3", _by_lemma(one, one.kept, 1.0), "upper"),
    ]
    return Accounts(rows, one.as_parameters())


def _revealed(one: Round) -> float:
    """Of the coordinates that are known to be reported, real against real (upper)."""
    return float(double_revealed(one.kept, one.padded, one.epsilon0, one.delta))


def _by_lemma(one: Round, count: int, rate: float) -> float:
    """Advanced composition of ``count`` coordinates, each with the certified blanket divergence, sampled at a rate."""
    each = one.delta / (count + 1)
    inner = numerical.blanket_divergence(LaplaceProfile(one.epsilon0), one.padded, delta=min(1.0, each / rate))
    return least_epsilon(sampled_epsilon(inner, rate), count, each)


def draw_accounts(ax: Axes, record: Accounts, pen: Pen) -> None:
    """A mark a way, on a logarithmic axis; the shaded part is certainly too little."""
    looks = {"lower": ("lower", "<"), "upper": ("blanket", ">"), "value": ("vermillion", "X")}
    said = {"lower": "no account can be below", "upper": "proven", "value": "not proven"}
    rows = list(record.rows)[::-1]
    low = _least(value for _, value, _ in rows)
    ax.axvspan(low / 2, low, color=pen.colour("lower"), alpha=0.14, linewidth=0)
    for kind, (key, mark) in looks.items():
        chosen = [(max(value, low), row) for row, (_, value, one) in enumerate(rows) if one == kind]
        ax.plot(*zip(*chosen, strict=True), mark, color=pen.colour(key), markersize=9, label=said[kind])
    written = {"lower": at_least, "upper": at_most}
    for row, (_, value, kind) in enumerate(rows):
        told = written[kind](value, 3) if kind in written else f"{value:.3g}"
        ax.annotate(told, (max(value, low), row), xytext=(9, 0), textcoords="offset points", va="center", fontsize=10)
    highest = max(value for _, value, _ in rows)
    ax.set(xscale="log", xlabel=words("epsilon"), xlim=(low / 2, highest * 2.5), yticks=range(len(rows)))
    ax.set_yticklabels([name for name, _, _ in rows])
    ax.grid(visible=False, axis="y")
    name_decades(ax)


Rows = list[tuple[object, ...]]


def printed_rows(claims: Claims, lost: float, short: Alphabet, full: Alphabet, linked: Linked) -> Rows:
    """For a table: statements of the paper, the verdict, and why.

    Parameters
    ----------
    claims : Claims
        Budgets.
    lost : float
        Largest delta where Theorem 4 promises none.
    short, full : Alphabet
        Algorithm 1 as printed and corrected.
    linked : Linked
        Messages that are permuted as wholes.
    """
    return [
        *(
            (
                f"budget of {one.name}",
                one.verdict,
                f"{one.claimed:.4g}; certainly {at_least(one.lower)} to {at_most(one.upper)}",
            )
            for one in claims.claims.values()
        ),
        ("Theorem 4, for every randomizer", verdict(0.0, lost), f"promised delta 0, true {at_least(lost, 2)}"),
        (
            "Algorithm 1 has a local budget",
            verdict(full.budget, short.budget),
            f"budget {short.budget}, with 0..b {full.budget:.3g}",
        ),
        (
            "equation (1) is unbiased",
            verdict(abs(full.bias), abs(short.bias)),
            f"{short.bias:.4g} users too many, with 0..b {full.bias:.1g}",
        ),
        (
            "permuting whole messages is enough",
            verdict(0.0, linked.delta(1.0)),
            f"found {linked.found} of {linked.repeats} times",
        ),
    ]


def released_rows(gaussian: Iterable[tuple[float, ...]], half: HalfPrecision, noise: RepeatedNoise) -> Rows:
    """For a table: what the released code claims or does, the verdict, and why.

    Parameters
    ----------
    gaussian : iterable of tuple
        Rows of :func:`~flamebook.figures.flame.as_published.classical_rows`.
    half : HalfPrecision
    noise : RepeatedNoise
    """
    return [
        *(
            (f"DP-FL at {claimed:.4g}", verdict(claimed, true, true), f"keeps {true:.4g}")
            for claimed, _, _, true in gaussian
        ),
        (
            "LDP-FL as released",
            "broken" if half.lost else "works",
            f"{100 * half.lost:.0f}% of the sums are no numbers",
        ),
        (
            "rounds have fresh noise, as released",
            "broken" if noise.growth("dp:repeated") > 1 else "works",
            f"error {noise.growth('dp:repeated'):.3g}-fold in {noise.curves.x.size} rounds",
        ),
    ]
