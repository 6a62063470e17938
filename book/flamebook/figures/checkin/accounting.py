r"""Self check-in over many rounds: the bounds of the document, its baselines, and what is certified today.

Two protocols.  *Shuffled*: reports of local budget epsilon0, shuffled.  *Distributed*: vectors of norm at most 1, each
with Gaussian noise, summed.  In both every client tosses its own coin in every round and it is seen how many came.
Neighbours replace one record.  A scheme is a way to account; its look in a figure says whether it is a bound.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from flamebook.records import LOOKS, Curves, whole_grid
from flamebook.statements import (
    AtLeast,
    AtMost,
    Finding,
    at_least,
    at_most,
    compared,
    counted,
    either,
    every,
    listed,
    percent,
    ranked,
    sided,
    silent,
    times,
)
from flamelib.accounting.checkin.baselines import baseline_distributed, baseline_shuffled
from flamelib.accounting.checkin.renyi import distributed_renyi_epsilon, shuffled_renyi_epsilon
from flamelib.accounting.checkin.shuffled import HARDEST, largest_epsilon0, shuffled_rounds, shuffled_rounds_lower
from flamelib.accounting.checkin.summed import distributed_noise, distributed_rounds, distributed_rounds_lower
from flamelib.accounting.checkin.theorems import exact_renyi, shuffled_renyi, split_renyi, summed_renyi
from flamelib.accounting.composition.renyi import renyi_to_epsilon
from flamelib.core.profiles import AnyProfile, ClonedProfile, KaryProfile
from flamelib.core.vocabulary import DomainError, check

LARGE_ORDERS = tuple(whole_grid(2, 3000, 60).tolist())
SMALL_ORDERS = tuple(range(2, 41))
ROOM = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """What both protocols know: clients, their coin, rounds, and the failure probability of all rounds together.

    ``delta`` is 1/n unless it is given.
    """

    n_users: int
    checkin_rate: float
    rounds: int
    delta: float | None = None

    def __post_init__(self) -> None:
        for name, value in check(**self.as_parameters()).items():
            object.__setattr__(self, name, value)

    @property
    def failure(self) -> float:
        """The failure probability that is meant."""
        return 1 / self.n_users if self.delta is None else self.delta

    def at(self, name: str, value: float) -> Self:
        """The same with one thing changed."""
        return replace(self, **{name: value})  # type: ignore[arg-type]

    def as_parameters(self) -> dict[str, Any]:
        """For the card of a figure."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def by_orders(self, divergence: Callable[[int], float], orders: Sequence[int]) -> float:
        """Epsilon after all rounds from divergences of one round, at the best of some orders."""
        return renyi_to_epsilon(lambda order: self.rounds * divergence(int(order)), self.failure, orders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled(Crowd):
    """Reports of a local budget, shuffled."""

    epsilon0: float

    def epsilon(self, scheme: str) -> float:
        """Epsilon after all rounds by one of the schemes of :data:`SHUFFLED`."""
        return _once(SHUFFLED[scheme], self)

    @property
    def where(self) -> tuple[float, int, float]:
        """Local budget, clients and rate."""
        return self.epsilon0, self.n_users, self.checkin_rate

    def composed(self, randomizer: AnyProfile | ClonedProfile | KaryProfile) -> float:
        """Certified for this randomizer."""
        given = {"delta": self.failure, "checkin_rate": self.checkin_rate}
        return shuffled_rounds(randomizer, self.n_users, self.rounds, **given)

    def lower(self, randomizer: AnyProfile | KaryProfile) -> float:
        """What this randomizer loses at least; 0 where there are too many outcomes to tell."""
        given = {"delta": self.failure, "checkin_rate": self.checkin_rate}
        return shuffled_rounds_lower(randomizer, self.n_users, self.rounds, **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distributed(Crowd):
    """Noisy vectors, summed."""

    noise_std: float

    def epsilon(self, scheme: str) -> float:
        """Epsilon after all rounds by one of the schemes of :data:`DISTRIBUTED`."""
        return _once(DISTRIBUTED[scheme], self)

    @property
    def where(self) -> tuple[int, float, float]:
        """Clients, rate and noise."""
        return self.n_users, self.checkin_rate, self.noise_std


@functools.lru_cache(maxsize=1024)
def _once(scheme: Callable[[Any], float], setting: Shuffled | Distributed) -> float:
    """NaN where the scheme has no answer for such numbers."""
    try:
        return float(scheme(setting))
    except DomainError:
        return math.nan


SHUFFLED: Mapping[str, Callable[[Shuffled], float]] = {
    "baseline-closed": lambda one: baseline_shuffled(*one.where, one.rounds, one.failure, "closed"),
    "baseline-numerical": lambda one: baseline_shuffled(*one.where, one.rounds, one.failure, "numerical"),
    "thm-2": lambda one: shuffled_renyi_epsilon(*one.where, one.rounds, one.failure, "thm-2"),
    "thm-2-paper": lambda one: one.by_orders(lambda order: shuffled_renyi(order, *one.where, "paper"), LARGE_ORDERS),
    "thm-3": lambda one: shuffled_renyi_epsilon(*one.where, one.rounds, one.failure, "thm-3"),
    "checkin-any": lambda one: one.composed(ClonedProfile(one.epsilon0)),
    "checkin-binary": lambda one: min(one.composed(KaryProfile(one.epsilon0, 2)), one.epsilon("checkin-any")),
    "lower": lambda one: one.lower(KaryProfile(one.epsilon0, 2)) or math.nan,
    "checkin-clones": lambda one: one.composed(AnyProfile(one.epsilon0)),
    "lower-any": lambda one: one.lower(AnyProfile(one.epsilon0)) or math.nan,
}
THEN_AND_NOW = ("checkin-clones", "lower-any")  # of any randomizer, in no figure unless it is named

DISTRIBUTED: Mapping[str, Callable[[Distributed], float]] = {
    "baseline-drv": lambda one: baseline_distributed(*one.where, one.rounds, one.failure, "drv"),
    "baseline-kov": lambda one: baseline_distributed(*one.where, one.rounds, one.failure, "kov"),
    "eq-11": lambda one: one.by_orders(lambda order: split_renyi(order, *one.where, "paper"), SMALL_ORDERS),
    "eq-10": lambda one: one.by_orders(lambda order: summed_renyi(order, *one.where, "paper"), SMALL_ORDERS),
    "eq-10-exact": lambda one: distributed_renyi_epsilon(*one.where, one.rounds, one.failure, "thm-4"),
    "renyi": lambda one: one.by_orders(lambda order: exact_renyi(order, *one.where), SMALL_ORDERS),
    "renyi-cut": lambda one: distributed_renyi_epsilon(*one.where, one.rounds, one.failure, "rdp-exact"),
    "losses": lambda one: distributed_rounds(*one.where, one.rounds, delta=one.failure),
    "lower": lambda one: distributed_rounds_lower(*one.where, one.rounds, delta=one.failure),
}


# Of these no bound is known to come out: readings of baselines, the document's formulas, and a pair that occurs.
FORMULAS = (
    "baseline-closed", "baseline-numerical", "thm-2-paper", "thm-3", "eq-10", "eq-11", "renyi", "renyi-cut",
)  # fmt: skip


# --- figures ---------------------------------------------------------------------------------------------------------


def compute_along(
    setting: Shuffled | Distributed, name: str, values: Sequence[float], schemes: Sequence[str] | None = None
) -> Curves:
    """Epsilon after all rounds against one parameter of the setting, by some of its schemes.

    Left out: those of the document's figures.

    Source: Liew, Hasegawa, Takahashi 2022, Figures 1 and 2(a).
    """
    known = SHUFFLED if isinstance(setting, Shuffled) else DISTRIBUTED
    names = schemes or tuple(name for name in known if name not in THEN_AND_NOW)
    settings = [setting.at(name, value) for value in values]
    curves = {scheme: np.array([one.epsilon(scheme) for one in settings]) for scheme in names}
    given = {key: value for key, value in setting.as_parameters().items() if key != name}
    return Curves(name, "total_epsilon", np.asarray(values, dtype=float), curves, given)


def rounds_grid(rounds: int, points: int) -> list[int]:
    """Numbers of rounds from one to all of them, in geometric progression; one number where there is one round.

    >>> rounds_grid(100, 3), rounds_grid(1, 3)
    ([1, 10, 100], [1])
    """
    return [int(count) for count in whole_grid(1, rounds, points)] if rounds > 1 else [1]


# --- tables ----------------------------------------------------------------------------------------------------------


def rows(record: Curves) -> list[tuple[object, ...]]:
    """For a table: a row a curve, with what it is called and its value at every point."""
    return [
        (LOOKS[name].label, *(sided(name, value, FORMULAS) for value in values))
        for name, values in record.curves.items()
    ]


def ratio_rows(record: Curves) -> list[tuple[object, ...]]:
    """For a table: by how much each reading of the baseline exceeds each other curve, at every point."""
    return [
        (LOOKS[base].label, LOOKS[name].label, *_ratios(record, base, name))
        for base in ("baseline-closed", "baseline-numerical")
        for name in ("thm-2-paper", "thm-2", "thm-3", "checkin-any")
    ]


# --- words -----------------------------------------------------------------------------------------------------------


def ordered(records: Sequence[Curves], *names: str) -> Finding:
    """Whether no curve is above the next one, from the lowest on, at any point of any figure; NaN is left out."""
    return every(
        *(
            compared(*(np.concatenate([one.curves[low] for one in records]), "<=",
                       (1 + ROOM) * np.concatenate([one.curves[high] for one in records])))
            for low, high in pairwise(names)
        )
    )  # fmt: skip


def right_end(record: Curves) -> str:
    """The curves at the right end of a figure, the largest first, and those that have no value there."""
    last = {LOOKS[name].label: float(values[-1]) for name, values in record.curves.items()}
    found = {label: value for label, value in last.items() if not math.isnan(value)}
    missing = [label for label in last if label not in found]
    words = f"at the right end, from the largest: {ranked(found)}"
    return f"{words}; nothing there: {listed(missing)}" if missing else words


def lowest_ratio(records: Sequence[Curves], one: str, other: str) -> float:
    """The least ratio of one curve to another, at any point of any figure."""
    return float(np.nanmin(np.concatenate([_ratios(record, one, other) for record in records])))


def words_of_users(decades: Curves, figures: Sequence[Curves]) -> dict[str, str]:
    """What the page says of Figure 1 of the document: ratios at some numbers of clients, and how often curves cross.

    ``decades`` has the document's setting at four numbers of clients, of which the middle ones are told.
    """
    middle = slice(1, 3)
    points = sum(len(record.x) for record in figures)

    def crossing(name: str) -> str:
        below = sum(int((record.curves[name] < record.curves["thm-3"]).sum()) for record in figures)
        return "none" if not below else f"{below:,}"

    return {
        "lower_by_numbers": _all_times(_ratios(decades, "baseline-numerical", "thm-3")[middle]),
        "upper_by_form": _all_times(_ratios(decades, "baseline-closed", "thm-2-paper")[middle]),
        "upper_by_numbers": _all_times(_ratios(decades, "baseline-numerical", "thm-2-paper")[middle]),
        "slack": _all_times(_ratios(decades, "thm-2-paper", "checkin-any")[middle]),
        "binary_crossing": crossing("checkin-binary"),
        "any_crossing": crossing("checkin-any"),
        "crossing_points": counted(points, "point"),
    }


def words_of_sums(decades: Curves) -> dict[str, str]:
    """What the page says of Figure 2(a) of the document, at powers of ten of rounds, the first and the third told."""
    few, last = 0, -1
    rise = {name: float(decades.curves[name][2] / decades.curves[name][few]) for name in decades.curves}
    below = 1 - decades.curves["lower"] / decades.curves["losses"]
    return {
        "late_gain": times(_ratios(decades, "baseline-kov", "eq-10")[last]),
        **{f"rise_{name.replace('-', '_')}": percent(rise[name] - 1) for name in ("eq-10", "eq-11", "renyi")},
        "rise_losses": times(rise["losses"]),
        "cut_gain": times(_ratios(decades, "renyi", "renyi-cut")[few]),
        "sums_gap": f"{percent(float(np.nanmin(below)))} to {percent(float(np.nanmax(below)))}",
    }


def words_of_reported(reported: Curves) -> dict[str, str]:
    """What each account gives where the document reports two numbers."""
    last = {name: float(values[-1]) for name, values in reported.curves.items()}
    return {
        "reported_form": f"{last['baseline-closed']:.4g}",
        "reported_numbers": f"{last['baseline-numerical']:.4g}",
        "reported_theorem": at_most(last["thm-2"]),
        "reported_certified": at_most(last["checkin-any"]),
    }


def words_of_training(record: Curves) -> dict[str, str]:
    """What was certified for any randomizer after all rounds by the clones of 2021."""
    before = float(record.curves["checkin-clones"][-1])
    return {"training_before": f"at most {at_most(before)}" if before < math.inf else "not bounded"}


def certified(record: Curves, name: str, below: str = "lower") -> str:
    """What is certified after the last round by a curve, and what is lost at least by another: half a sentence.

    >>> curves = {"losses": np.array([0.25]), "lower": np.array([math.nan])}
    >>> certified(Curves("rounds", "total_epsilon", np.array([10.0]), curves), "losses")
    'at most 0.25, and no lower bound could be had'
    """
    upper, lower = float(record.curves[name][-1]), float(record.curves[below][-1])
    most = f"at most {at_most(upper)}" if upper < math.inf else "not bounded"
    return f"{most}, and {f'at least {at_least(lower)}' if lower > 0 else 'no lower bound could be had'}"


def _ratios(record: Curves, one: str, other: str) -> np.typing.NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(record.curves[one] / record.curves[other])


def _all_times(ratios: Sequence[float] | np.typing.NDArray[np.float64]) -> str:
    return listed([times(float(ratio)) for ratio in ratios])


@dataclass(frozen=True, slots=True)
class Calibration:
    """What keeps a target after all rounds: a local budget, or a noise, and the epsilon that each of them has."""

    target: float
    epsilon0: float
    noise_std: float
    reached: tuple[float, float]

    @property
    def kept(self) -> Finding:
        """Whether neither exceeds the target; silent where no noise was found."""
        reached = [compared(one, "<=", self.target * (1 + ROOM)) for one in self.reached]
        return every(
            reached[0], reached[1] if math.isfinite(self.noise_std) else silent("no noise was found that does")
        )

    def words(self) -> str:
        """Both answers in words; they may lie at an end of the search."""
        budget = either(
            self.epsilon0 < HARDEST,
            f"a local budget of {at_least(self.epsilon0)} keeps the target, with any randomizer",
            f"any local budget up to {HARDEST:g} keeps the target, and no larger one is looked for",
        )
        if not self.noise_std:
            return f"{budget}; no noise is needed, for a client is hardly ever there"
        if math.isinf(self.noise_std):
            return f"{budget}; no noise was found that does"
        return f"{budget}; so does a noise of {at_most(self.noise_std)}, where vectors are summed"

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: what is told, and its value."""
        return [
            ("epsilon", self.target),
            ("largest local budget of shuffled reports, any randomizer", AtLeast(self.epsilon0)),
            ("epsilon that it has", AtMost(self.reached[0])),
            ("least noise of each client, noisy sums", AtMost(self.noise_std)),
            ("epsilon that it has", AtMost(self.reached[1])),
        ]


def compute_calibration(crowd: Crowd, epsilon: float) -> Calibration:
    """The largest local budget for any randomizer and the least noise for ``epsilon`` after all rounds.

    The noise is 0 where none is needed and infinite where none was found; what it reaches is 0 and NaN then.
    """
    shared: dict[str, Any] = {field.name: getattr(crowd, field.name) for field in fields(Crowd)}
    given = (crowd.n_users, crowd.checkin_rate, crowd.rounds, epsilon, crowd.failure)
    budget, noise = largest_epsilon0(*given), float(distributed_noise(*given))
    by_noise = Distributed(**shared, noise_std=noise).epsilon("losses") if 0 < noise < math.inf else 0.0
    reached = (Shuffled(**shared, epsilon0=budget).epsilon("checkin-any"), math.nan if math.isinf(noise) else by_noise)
    return Calibration(epsilon, budget, noise, reached)
