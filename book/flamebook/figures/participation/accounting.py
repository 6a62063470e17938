"""Random participation: one round under each reading of the theorem and under its three baselines, and many rounds.

``outer`` is a certified upper bound, ``inner`` a value that promises nothing, ``aligned`` exact for one data set and
so a lower bound; ``ols``, ``wcs`` and ``cs`` are the document's baselines.  Budgets are those of one round, after
amplification: the document's primed pair.  Over many rounds the protocol of random check-ins stands beside them, which
bounds a whole window.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flamebook.attacks.participation import Setting, ratio
from flamebook.records import LOOKS, Curves, to_csv
from flamebook.statements import Finding, at_least, at_most, compared, either, every, listed, ranked, sided, times
from flamelib.accounting.noise.gaussian import analytic_noise_std
from flamelib.accounting.sampling.random_checkins import approximate_checkins, largest_local_delta, random_checkins
from flamelib.accounting.sampling.rounds import aligned_rounds_lower, dominated_rounds, participation_rounds
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import check

SCHEMES = ("cs", "outer", "inner", "aligned", "wcs", "ols")
ORDER = ("cs", "outer", "wcs", "ols")
ROOM = 1e-9
FOR_ALL = ("outer", "inner")  # readings that are meant to hold for every data set
FEW = 2  # records of the smallest client that has company


# --- Figure 1 --------------------------------------------------------------------------------------------------------


def compute_tradeoff(setting: Setting, epsilons: Sequence[float], sizes: Sequence[int]) -> Curves:
    """Delta against epsilon of one round: the baselines, and ``outer`` for clients of several sizes.

    Source: Hasircioglu, Gunduz 2022, Figure 1, with parameters of our own.
    """
    curves = {name: _along(setting.delta, name, epsilons) for name in ("ols", "wcs")}
    for size in sorted(sizes, reverse=True):
        curves[f"outer:{_size(size)}"] = _along(replace(setting, n_records=size).delta, "outer", epsilons)
    curves["cs"] = _along(setting.delta, "cs", epsilons)
    return Curves(
        "round_epsilon", "round_delta", np.asarray(epsilons, dtype=float), curves, _without(setting, "n_records")
    )


def compute_readings(setting: Setting, epsilons: Sequence[float]) -> Curves:
    """The same for one size: all three readings, the baselines, and the best lower bound by turned gradients."""
    names = ("ols", "wcs", "outer", "turned", "aligned", "inner", "cs")
    curves = {name: _along(setting.delta, name, epsilons) for name in names}
    return Curves("round_epsilon", "round_delta", np.asarray(epsilons, dtype=float), curves, setting.as_parameters())


# --- Figures 2 and 3 -------------------------------------------------------------------------------------------------


def compute_noise(
    setting: Setting, noises: Sequence[float], epsilon: float | None = None, delta: float | None = None
) -> Curves:
    """Against the noise: epsilon at a fixed ``delta`` (the document's Figure 2), or the reverse (Figure 3)."""
    settings = [replace(setting, noise_std=noise) for noise in noises]
    curves = {}
    for name in reversed(SCHEMES):
        if delta is not None:
            curves[name] = np.array([one.epsilon(name, delta) for one in settings])
        elif epsilon is not None:
            curves[name] = np.array([one.delta(name, epsilon) for one in settings])
    fixed: dict[str, float] = {"round_epsilon": epsilon} if epsilon is not None else {"round_delta": float(delta or 0)}
    shown = "round_delta" if epsilon is not None else "round_epsilon"
    return Curves("noise_std", shown, np.asarray(noises, dtype=float), curves, _without(setting, "noise_std") | fixed)


# --- Figure 5 --------------------------------------------------------------------------------------------------------


def compute_fixed_product(
    setting: Setting, product: float, rates: Sequence[float], epsilon: float, sizes: Sequence[int]
) -> Curves:
    """Delta against the record rate while the product of both rates stays: few clients with much, or many with little.

    Source: Hasircioglu, Gunduz 2022, Figure 5, with parameters of our own.
    """
    settings = [replace(setting, participation_rate=min(1.0, product / q), record_rate=float(q)) for q in rates]
    curves = {name: np.array([one.delta(name, epsilon) for one in settings]) for name in ("ols", "wcs")}
    for size in sorted(sizes, reverse=True):
        sized = [replace(one, n_records=size) for one in settings]
        curves[f"outer:{_size(size)}"] = np.array([one.delta("outer", epsilon) for one in sized])
    for name in ("aligned", "inner"):
        curves[f"{name}:{_size(setting.n_records)}"] = np.array([one.delta(name, epsilon) for one in settings])
    curves["cs"] = np.array([one.delta("cs", epsilon) for one in settings])
    given = _without(setting, "participation_rate", "record_rate") | {"product": product, "round_epsilon": epsilon}
    return Curves("record_rate", "round_delta", np.asarray(rates, dtype=float), curves, given)


# --- the qualitative claims ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claims:
    """The document's claims on its figures, each with the worst margin over a grid: at least 1 where it holds."""

    margins: Mapping[str, float]
    points: int

    def holds(self, name: str) -> bool:
        """Whether the claim holds at every point of the grid, rounding aside."""
        return self.margins[name] >= 1 - ROOM

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: claim, worst margin, whether it holds."""
        return [(name, margin, self.holds(name)) for name, margin in self.margins.items()]

    def to_csv(self) -> str:
        """One row a claim."""
        return to_csv(["claim", "worst margin", "holds"], self.rows())


CLAIMS = (
    "delta never falls in the order CS, Theorem 4.1, WCS, OLS",
    "for one record Theorem 4.1 equals CS",
    "more records never lower delta, which tends to WCS",
    "a smaller record rate never raises delta",
    "with pq fixed a smaller record rate never raises delta",
)


def compute_claims(settings: Sequence[Setting], epsilons: Sequence[float], scheme: str = "outer") -> Claims:
    """Five claims on the figures, for one reading of Theorem 4.1, over every setting and epsilon.

    A margin is the least ratio of the delta that should be the larger to the one that should be the smaller.
    """
    margins = {name: compute_margin(at, settings, epsilons, scheme) for at, name in enumerate(CLAIMS)}
    return Claims(margins, len(settings) * len(epsilons))


def compute_margin(claim: int, settings: Sequence[Setting], epsilons: Sequence[float], scheme: str = "outer") -> float:
    """Margin of one of the :data:`CLAIMS`."""
    test = (_order, _one_record, _in_records, _in_record_rate, _at_fixed_product)[claim]
    return min(test(setting, float(epsilon), scheme) for setting in settings for epsilon in epsilons)


def _order(setting: Setting, epsilon: float, scheme: str) -> float:
    return _least_step(setting.delta(scheme if name == "outer" else name, epsilon) for name in ORDER)


def _one_record(setting: Setting, epsilon: float, scheme: str) -> float:
    alone, sampled = replace(setting, n_records=1).delta(scheme, epsilon), setting.delta("cs", epsilon)
    return min(alone / sampled, sampled / alone)


def _in_records(setting: Setting, epsilon: float, scheme: str) -> float:
    sizes = (1, 2, 5, 10, 30, 100, 1000)
    rising = [replace(setting, n_records=size).delta(scheme, epsilon) for size in sizes]
    limit, last = setting.delta("wcs", epsilon), replace(setting, n_records=10**6).delta(scheme, epsilon)
    return min(_least_step([*rising, limit]), 1 + ROOM if last / limit > 0.99 else last / limit)


def _in_record_rate(setting: Setting, epsilon: float, scheme: str) -> float:
    rates = [setting.record_rate * share for share in (0.1, 0.3, 1.0)]
    return _least_step(replace(setting, record_rate=rate).delta(scheme, epsilon) for rate in rates)


def _at_fixed_product(setting: Setting, epsilon: float, scheme: str) -> float:
    product = setting.participation_rate * setting.record_rate
    rates = np.geomspace(product, 1.0, 5)
    return _least_step(
        replace(setting, participation_rate=min(1.0, product / q), record_rate=float(q)).delta(scheme, epsilon)
        for q in rates
    )


def _least_step(values: Iterable[float]) -> float:
    """Least ratio of a value to the one before."""
    found = np.array(list(values))
    return float((found[1:] / found[:-1]).min())


def identity_rows(settings: Sequence[Setting], epsilon: float) -> list[tuple[object, ...]]:
    """The rates, delta of WCS, the joining probability times delta of OLS, and their ratio."""
    found = [(one, one.delta("wcs", epsilon), one.participation_rate * one.delta("ols", epsilon)) for one in settings]
    return [(one.participation_rate, one.record_rate, left, right, ratio(left, right)) for one, left, right in found]


def calibration_rows(
    settings: Sequence[Setting], epsilon: float, delta: float, schemes: Sequence[str] = SCHEMES
) -> list[tuple[object, ...]]:
    """For each setting the least noise of every scheme at this guarantee of a round."""
    return [
        (
            one.participation_rate,
            one.record_rate,
            one.n_records,
            *(sided(name, one.noise(name, epsilon, delta), ("inner", "aligned")) for name in schemes),
        )
        for one in settings
    ]


def labels(schemes: Sequence[str] = SCHEMES) -> list[str]:
    """What the schemes are called in every figure."""
    return [LOOKS[name].label for name in schemes]


def _along(delta: Callable[[str, float], float], scheme: str, epsilons: Sequence[float]) -> Reals:
    return np.array([delta(scheme, float(e)) for e in epsilons])


def _size(records: int) -> str:
    return f"L = {records}"


def _without(setting: Setting, *names: str) -> dict[str, Any]:
    return {name: value for name, value in setting.as_parameters().items() if name not in names}


COMPOSED = ("ols", "wcs", "outer", "cs")
SLACK = 1e-3
NOTICEABLE = 1e-9  # a delta that is worth a comparison
LEAST_SLACK = 1e-300  # which the accounting of Gaussian noise still tells from 0


def compute_rounds(setting: Setting, counts: Sequence[int], delta: float) -> Curves:
    """Epsilon at ``delta`` after so many rounds: certified for four schemes, and what nothing can be below.

    ``outer`` has one pair for all angles between gradients, ``turning`` tells them apart; ``aligned`` knows equal
    gradients alone, ``lower`` the worst angle.
    """
    given = setting.as_parameters()
    accounts: dict[str, Callable[..., float]] = {
        **{name: partial(dominated_rounds, name) for name in COMPOSED},
        "turning": partial(participation_rounds, "outer"),
        "lower": partial(participation_rounds, "outer", side="lower"),
        "aligned": aligned_rounds_lower,
    }
    curves = {
        name: np.array([float(one(**given, rounds=int(t), delta=delta)) for t in counts])
        for name, one in accounts.items()
    }
    return Curves("rounds", "total_epsilon", np.asarray(counts, dtype=float), curves, given | {"delta": delta})


def headings(record: Curves) -> list[str]:
    """What the curves of a record are called."""
    return [LOOKS[name].label for name in record.curves]


def rows(record: Curves) -> list[tuple[object, ...]]:
    """For a table: the number of rounds, and every curve there."""
    curves = [[sided(name, value) for value in values] for name, values in record.curves.items()]
    return [(int(t), *values) for t, *values in zip(record.x, *curves, strict=True)]


def compute_checkins(participation_rate: float, epsilon0: float, windows: Sequence[int], delta: float) -> Curves:
    """Epsilon at ``delta`` against the window of random check-ins, and of random participation with as many records.

    Clients hold one record and are heard ``participation_rate`` times on average: once in a random slot of the window,
    or in each of as many rounds with that chance over the window.  The Gaussian noise is the least that makes one
    message of norm 1 ``epsilon0``-private with the failure probability that the check-in's theorem allows.

    Parameters
    ----------
    participation_rate : float in (0, 1]
    epsilon0 : float, positive
        Local budget of a message.
    windows : sequence of int
    delta : float in (0, 1)

    Source: Hasircioglu, Gunduz 2022, Figure 4, with parameters of our own.
    """
    check(participation_rate=participation_rate, epsilon0=epsilon0, delta=delta)
    found = [_window(participation_rate, epsilon0, int(m), delta) for m in windows]
    curves = {name: np.array([one[name] for one in found]) for name in found[0]}
    given = {"participation_rate": participation_rate, "epsilon0": epsilon0, "delta": delta}
    return Curves("window", "total_epsilon", np.asarray(windows, dtype=float), curves, given)


def _window(rate: float, epsilon0: float, window: int, delta: float) -> dict[str, float]:
    slack = _slack(window, delta)
    approximate = approximate_checkins(epsilon0, rate, window, delta / 2, slack)
    one = _message(rate, epsilon0, window, delta)
    return {
        "checkins-noise": approximate.epsilon if approximate.delta <= delta else np.inf,
        "checkins": random_checkins(epsilon0, rate, window, delta),
        "cs": float(participation_rounds("cs", **one.as_parameters(), rounds=window, delta=delta)),
    }


def _slack(window: int, delta: float) -> float:
    return max(SLACK * delta / window, LEAST_SLACK)


def _message(rate: float, epsilon0: float, window: int, delta: float) -> Setting:
    """A round of clients with one record that join with the rate over the window, and a message's noise."""
    noise = analytic_noise_std(1.0, epsilon0, largest_local_delta(epsilon0, _slack(window, delta)))
    return Setting(rate / window, 1.0, 1, noise)


# --- statements and words --------------------------------------------------------------------------------------------


def where(found: ArrayLike, points: str) -> str:
    """At how many points of a curve something is seen.

    >>> where([True, True], "budgets"), where([True, False], "budgets"), where([False], "budgets")
    ('at all 2 budgets', 'at 1 of the 2 budgets', 'at none of the 1 budgets')
    """
    seen = np.asarray(found, dtype=bool)
    share = "all" if seen.all() else f"{seen.sum()} of the" if seen.any() else "none of the"
    return f"at {share} {seen.size} {points}"


def in_order(record: Curves, names: Sequence[str] = ORDER, room: float = ROOM) -> Finding:
    """Whether no curve lies below the one named before it, rounding aside."""
    return every(
        *(compared(record.curves[low], "<=", record.curves[high] * (1 + room)) for low, high in pairwise(names))
    )


def largest_ratio(record: Curves, one: str, other: str) -> float:
    """The largest ratio of two curves; NaN if both are too small everywhere."""
    found = [ratio(*pair) for pair in zip(record.curves[one], record.curves[other], strict=True)]
    return max((value for value in found if not math.isnan(value)), default=math.nan)


def ends(record: Curves) -> str:
    """The least and the largest baseline at the first point, for those who do not see the figure."""
    return f"at the left end CS is at {record.curves['cs'][0]:.2g} and OLS at {record.curves['ols'][0]:.2g}"


def reading_words(setting: Setting, epsilon: float, record: Curves) -> dict[str, str]:
    """What the three readings do here: beside what certain gradients lose, and beside CS."""
    inner_below = where(record.curves["inner"] < record.curves["turned"], "budgets")
    seen = record.curves["turned"] >= NOTICEABLE
    shown = replace(record, curves={name: values[seen] for name, values in record.curves.items()})
    most = largest_ratio(shown, "turned", "aligned")
    return {
        "inner_below": f"lies below what certain gradients really lose {inner_below}",
        "aligned_beside": either(
            compared(most, ">", 1 + SLACK),
            f"gradients at some angle lose up to {times(most)} as much",
            "no angle that was tried loses more",
            "no angle loses a noticeable amount",
        ),
        "beside_cs": _beside_cs(setting, epsilon),
    }


def _beside_cs(setting: Setting, epsilon: float) -> str:
    least = setting.delta("cs", epsilon)
    if least == 0:
        return "CS is too small to be distinguished from 0"
    sizes = [FEW, setting.n_records] if setting.n_records > FEW else [FEW]
    found = [[replace(setting, n_records=size).delta(name, epsilon) / least for name in FOR_ALL] for size in sizes]
    numbers = [
        f"{outer:.3g} and {inner:.3g} times CS for a client of {size:,} records"
        for size, (outer, inner) in zip(sizes, found, strict=True)
    ]
    return f"outer and inner are at {', at '.join(numbers)}"


def checkin_words(record: Curves) -> dict[str, str]:
    """What check-ins are said to cost beside the local budget of a message, and what a single round costs."""
    rate, epsilon0, delta = (float(record.parameters[name]) for name in ("participation_rate", "epsilon0", "delta"))
    noisy = record.curves["checkins-noise"]
    single = [_message(rate, epsilon0, int(m), delta).epsilon("cs", delta) for m in record.x]
    apart = [ratio(*pair) for pair in zip(record.curves["checkins"], record.curves["cs"], strict=True)]
    return {
        "checkins_noise": _at_windows(record, noisy),
        "checkins_worth": either(
            compared(noisy, ">=", epsilon0),
            "never less than the local budget of the message, which holds without any check-in",
            f"less than the local budget of the message {where(noisy < epsilon0, 'windows')}",
        ),
        "checkins_single": _at_windows(record, single),
        "checkins_apart": f"from {times(min(apart))} to {times(max(apart))}",
    }


def _at_windows(record: Curves, values: ArrayLike) -> str:
    windows: dict[str, list[str]] = {}
    for m, value in zip(record.x, np.asarray(values, dtype=float), strict=True):
        windows.setdefault("infinite" if math.isinf(value) else f"{value:.3g}", []).append(f"{int(m):,}")
    return listed([f"{number} for {listed(several)} slots" for number, several in windows.items()])


def round_words(record: Curves) -> dict[str, str]:
    """Whether the order of one round is that of many, and what is open after the last."""
    last = {name: float(values[-1]) for name, values in record.curves.items()}
    return {
        "rounds_order": either(
            in_order(record, room=SLACK),
            "The curves have the same order as in one round.",
            "The curves do not have the order of one round at every number of rounds.",
        ),
        "rounds_between": f"between {at_least(last['lower'])} and {at_most(last['turning'])}",
        "rounds_before": f"between {at_least(last['aligned'])} and {at_most(last['outer'])}",
        "rounds_last": ranked({LOOKS[name].label: value for name, value in last.items()}),
    }


def less_noise(tables: Sequence[Sequence[Sequence[Any]]], first: int, second: int) -> str:
    """The schemes that ask for less noise in the second design than in the first, in every table of noises."""
    less = [
        name
        for at, name in enumerate(labels(), start=3)
        if all(table[second][at] < table[first][at] for table in tables)
    ]
    return listed(less, empty="no scheme")
