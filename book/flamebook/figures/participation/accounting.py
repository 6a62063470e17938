"""Random participation: one round under each reading of the theorem and under its three baselines, and many rounds.

``outer`` is a certified upper bound, ``inner`` a value that promises nothing, ``aligned`` exact for one data set and
so a lower bound; ``ols``, ``wcs`` and ``cs`` are the document's baselines.  Budgets are those of one round, after
amplification: the document's primed pair.  Over many rounds the protocol of random check-ins stands beside them, which
bounds a whole window.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flamebook.attacks.participation import Setting
from flamebook.records import LOOKS, Curves, to_csv
from flamelib.accounting.noise.gaussian import analytic_noise_std
from flamelib.accounting.sampling.random_checkins import approximate_checkins, largest_local_delta, random_checkins
from flamelib.accounting.sampling.rounds import aligned_rounds_lower, participation_rounds
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import check

SCHEMES = ("cs", "outer", "inner", "aligned", "wcs", "ols")
ORDER = ("cs", "outer", "wcs", "ols")
ROOM = 1e-9


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
    "order: CS, Theorem 4.1, WCS, OLS",
    "one record: Theorem 4.1 is CS",
    "more records: worse, up to WCS",
    "smaller record rate: better",
    "fixed product: smaller record rate is better",
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
    return [(one.participation_rate, one.record_rate, left, right, left / right) for one, left, right in found]


def calibration_rows(
    settings: Sequence[Setting], epsilon: float, delta: float, schemes: Sequence[str] = SCHEMES
) -> list[tuple[object, ...]]:
    """For each setting the least noise of every scheme at this guarantee of a round."""
    return [
        (one.participation_rate, one.record_rate, one.n_records, *(one.noise(name, epsilon, delta) for name in schemes))
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


def compute_rounds(setting: Setting, counts: Sequence[int], delta: float) -> Curves:
    """Epsilon at ``delta`` after so many rounds: certified for four schemes, and what nothing can be below."""
    given = setting.as_parameters()
    curves = {
        name: np.array([float(participation_rounds(name, **given, rounds=int(t), delta=delta)) for t in counts])
        for name in COMPOSED
    }
    curves["lower"] = np.array([float(aligned_rounds_lower(**given, rounds=int(t), delta=delta)) for t in counts])
    return Curves("rounds", "total_epsilon", np.asarray(counts, dtype=float), curves, given | {"delta": delta})


def headings(record: Curves) -> list[str]:
    """What the curves of a record are called."""
    return [LOOKS[name].label for name in record.curves]


def rows(record: Curves) -> list[tuple[object, ...]]:
    """For a table: the number of rounds, and every curve there."""
    return [(int(t), *values) for t, *values in zip(record.x, *record.curves.values(), strict=True)]


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
    slack = SLACK * delta / window
    noise = analytic_noise_std(1.0, epsilon0, largest_local_delta(epsilon0, slack))
    approximate = approximate_checkins(epsilon0, rate, window, delta / 2, slack)
    one = Setting(rate / window, 1.0, 1, noise)
    return {
        "checkins-noise": approximate.epsilon if approximate.delta <= delta else np.inf,
        "checkins": random_checkins(epsilon0, rate, window, delta),
        "cs": float(participation_rounds("cs", **one.as_parameters(), rounds=window, delta=delta)),
    }
