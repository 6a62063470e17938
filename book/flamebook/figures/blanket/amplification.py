"""Figures of amplification by shuffling: every bound side by side, for one randomizer or several."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from flamebook.figures.blanket.comparisons import SAME, as_large, best, from_on, over, side, span
from flamebook.figures.curves import draw_curves
from flamebook.figures.style import Pen
from flamebook.records import LOOKS, Curves, Parameters, Rates, log_log_slope, words
from flamebook.statements import Finding, at_least, at_most, compared, either, every, listed, percent, sided
from flamelib.accounting.shuffling import closed_form, numerical
from flamelib.core.arrays import Reals
from flamelib.core.profiles import AnyProfile, KaryProfile, LaplaceProfile
from flamelib.mechanisms.randomizers import KaryResponse

PureProfile = KaryProfile | LaplaceProfile | AnyProfile
Counts = Sequence[int] | NDArray[np.int64]
EpsilonBound = Callable[[Any, int, float], float]

BOUNDS: Mapping[str, EpsilonBound] = {
    "erlingsson": lambda profile, n, delta: closed_form.erlingsson(profile.epsilon0, n, delta),
    "hoeffding": lambda profile, n, delta: closed_form.hoeffding(profile, n, delta=delta),
    "bennett": lambda profile, n, delta: closed_form.bennett(profile, n, delta=delta),
    "withdrawn": lambda profile, n, delta: closed_form.bennett_withdrawn(profile, n, delta=delta),
    "clones-2021": lambda profile, n, delta: numerical.clones_2021(profile.epsilon0, n, delta=delta),
    "clones-2023": lambda profile, n, delta: numerical.clones_2023(profile, n, delta=delta),
    "blanket": lambda profile, n, delta: numerical.blanket_divergence(profile, n, delta=delta),
    "exact": lambda profile, n, delta: numerical.exact_binary(profile.epsilon0, n, delta=delta),
    "any": lambda profile, n, delta: numerical.any_randomizer(profile.epsilon0, n, "upper", delta=delta),
    "lower": lambda profile, n, delta: _lower(profile, n, delta),
}


DELTAS: Mapping[str, Callable[..., float]] = {
    "bennett": closed_form.bennett,
    "withdrawn": closed_form.bennett_withdrawn,
    "blanket": numerical.blanket_divergence,
    "lower": numerical.all_equal,
}


def profile_name(profile: PureProfile) -> str:
    """The randomizer in two words, for a legend.

    >>> profile_name(KaryProfile(1.0, 10))
    '10-ary'
    """
    if isinstance(profile, KaryProfile):
        return f"{profile.n_buckets}-ary"
    return "Laplace" if isinstance(profile, LaplaceProfile) else "any randomizer"


def known_bounds(profile: PureProfile) -> tuple[str, ...]:
    """The bounds of the then-and-now picture that hold for this randomizer, oldest first.

    >>> known_bounds(KaryProfile(1.0, 2))[-2:]
    ('exact', 'lower')
    """
    if isinstance(profile, AnyProfile):
        return ("erlingsson", "hoeffding", "bennett", "clones-2021", "any", "lower")
    binary = isinstance(profile, KaryProfile) and profile.n_buckets == 2
    clones = ("clones-2021", "clones-2023") if isinstance(profile, KaryProfile) else ("clones-2021",)
    return ("hoeffding", "bennett", *clones, "blanket", *(("exact",) if binary else ()), "lower")


def compute_epsilons(
    profile: PureProfile, n_users: Counts, delta: float, bounds: Sequence[str] | None = None
) -> Curves:
    """Central epsilon against the number of users, one curve a bound; upper bounds never below the truth.

    Parameters
    ----------
    profile : profile of a local randomizer
    n_users : sequence of int
    delta : float
        Of the central guarantee, in (0, 1).
    bounds : sequence of str, optional
        Keys of :data:`BOUNDS`; :func:`known_bounds` by default.

    Examples
    --------
    >>> compute_epsilons(AnyProfile(0.5), [10_000], 1e-6, ["hoeffding"]).curves["hoeffding"].round(6).tolist()
    [0.053996]
    """
    chosen = known_bounds(profile) if bounds is None else bounds
    curves = {key: np.array([BOUNDS[key](profile, int(n), delta) for n in n_users], dtype=float) for key in chosen}
    parameters: Parameters = {"randomizer": profile_name(profile), "epsilon0": profile.epsilon0, "delta": delta}
    return Curves("n_users", "epsilon", np.asarray(n_users, dtype=float), curves, parameters)


def compute_deltas(profile: PureProfile, n_users: int, epsilon: Reals, bounds: Sequence[str]) -> Curves:
    """Delta of the shuffled messages against central epsilon, one curve a bound (keys of :data:`DELTAS`)."""
    curves = {key: np.array([DELTAS[key](profile, n_users, epsilon=float(e)) for e in epsilon]) for key in bounds}
    parameters: Parameters = {"randomizer": profile_name(profile), "epsilon0": profile.epsilon0, "n_users": n_users}
    return Curves("epsilon", "delta", epsilon, curves, parameters)


def in_order(*records: Curves) -> Finding:
    """Whether lower bound, exact value, blanket divergence and the older bounds are in this order at every point.

    The bound for any randomizer stands in the place of the blanket divergence where there is no other.  Clones of 2023
    stand between the blanket divergence and the clones of 2021; Hoeffding and Bennett have no order.
    """
    chains = (
        ("lower", "exact", "blanket", "clones-2023", "clones-2021"),
        ("lower", "any", "clones-2021"),
        ("lower", "blanket", "hoeffding"),
        ("lower", "blanket", "bennett"),
    )
    present = [[one.curves[key] for key in chain if key in one.curves] for one in records for chain in chains]
    pairs = [pair for chain in present for pair in pairwise(chain)]
    return every(*(compared(low, "<=", high * (1 + SAME)) for low, high in pairs))


def draw_deltas(ax: Axes, record: Curves, pen: Pen) -> None:
    """Privacy curves: delta on a logarithmic axis, epsilon on a plain one."""
    draw_curves(ax, record, pen)
    ax.set(xscale="linear")


def named(record: Curves) -> list[tuple[str, float]]:
    """Name and first value of each curve: the rows of a table at one point."""
    return [(LOOKS[key].label, sided(key, values[0], ["withdrawn"])) for key, values in record.curves.items()]


def draw_epsilons(ax: Axes, record: Curves, pen: Pen) -> None:
    """The bounds, and the local budget as the level that shuffling starts from."""
    draw_curves(ax, record, pen)
    ax.axhline(float(record.parameters["epsilon0"]), **pen.line("local-budget", linewidth=1.6))


def compute_local_budgets(
    n_users: Counts, epsilon: float, delta: float, families: Mapping[str, Sequence[str]]
) -> Curves:
    """Largest local budget that each bound allows for a central (epsilon, delta), against the number of users.

    Parameters
    ----------
    n_users : sequence of int
    epsilon, delta : float
        Central guarantee to keep.
    families : mapping from bound to randomizers
        Bounds are ``erlingsson``, ``hoeffding``, ``bennett``; randomizers are keys of :data:`FAMILIES`.
    """
    curves = {
        f"{bound}:{family}": np.array([_local_budget(bound, family, int(n), epsilon, delta) for n in n_users])
        for bound, members in families.items()
        for family in members
    }
    return Curves("n_users", "epsilon0", np.asarray(n_users, float), curves, {"epsilon": epsilon, "delta": delta})


def compute_growing_alphabet(n_users: Counts, epsilon: float) -> Curves:
    """The same for k-ary response with as many buckets as the cube root of n, and delta = 1 / n^2."""
    curves = {
        key: np.array([_growing(key, int(n), epsilon) for n in n_users], dtype=float)
        for key in ("hoeffding", "bennett")
    }
    parameters: Parameters = {"epsilon": epsilon, "delta": "n^-2", "n_buckets": "floor(n^(1/3))"}
    return Curves("n_users", "epsilon0", np.asarray(n_users, float), curves, parameters)


def whole_cube_root(number: int) -> int:
    """Largest whole number whose cube is at most ``number``, which floating point alone gets wrong.

    >>> whole_cube_root(1000), int(1000 ** (1 / 3))
    (10, 9)
    """
    root: int = round(number ** (1 / 3))
    return root - (root**3 > number)


def compute_gap(profiles: Sequence[PureProfile], n_users: Counts, delta: float) -> Curves:
    """How far the best upper bound is from the lower bound: ratio of the two epsilons, 1 where they meet."""
    curves = {
        f"blanket:{profile_name(profile)}": np.array([_ratio(profile, int(n), delta) for n in n_users], dtype=float)
        for profile in profiles
    }
    parameters: Parameters = {"epsilon0": profiles[0].epsilon0, "delta": delta}
    return Curves("n_users", "ratio", np.asarray(n_users, float), curves, parameters)


def draw_gap(ax: Axes, record: Curves, pen: Pen) -> None:
    """Ratios on a plain vertical axis that starts at 1, each randomizer in its own hue."""
    hues = ("blue", "vermillion", "green", "purple")
    for hue, (name, values) in zip(hues, record.curves.items(), strict=False):
        marker: dict[str, Any] = {"marker": "osD^"[hues.index(hue)], "markersize": 5}
        ax.plot(record.x, values, color=pen.colour(hue), label=name.partition(":")[2], **marker)
    ax.axhline(1, color=pen.colour("grey"), linestyle=":")
    ax.set(xlabel=words("n_users"), ylabel=words("ratio"), ylim=(0.97, None))
    if any(np.isfinite(values).any() for values in record.curves.values()):
        ax.set(xscale="log")


def least_crowd(n_buckets: int, epsilon: float, delta: float) -> int:
    """The least number of users for which Theorem 3.1 speaks at this central epsilon, be its blanket mass 1.

    >>> least_crowd(4, 0.25, 1e-6)
    13001
    """
    return math.ceil(closed_form.blankets_needed(n_buckets, epsilon, delta)) + 1


def compute_theorem(n_users: int, n_buckets: int, delta: float, promised: Reals) -> Curves:
    """Epsilon that Theorem 3.1 promises, against what its own randomizer achieves (upper and lower bound)."""
    masses = [closed_form.histogram_blanket_mass(n_users, n_buckets, float(epsilon), delta) for epsilon in promised]
    responses = [KaryResponse.from_blanket_mass(n_buckets, mass) for mass in masses]
    curves = {"theorem": promised}
    for key in ("blanket", "lower"):
        curves[key] = np.array([BOUNDS[key](response, n_users, delta) for response in responses], dtype=float)
    parameters: Parameters = {"n_users": n_users, "n_buckets": n_buckets, "delta": delta}
    return Curves("promised", "epsilon", promised, curves, parameters)


def compute_generic_rate(epsilon0: Sequence[float], n_users: Counts, delta: float) -> Rates:
    r"""Epsilon of the generic Hoeffding bound over the rate of the corollary for every local randomizer.

    The rate is :math:`(1 \wedge \varepsilon_0) e^{\varepsilon_0} \sqrt{\log(1/\delta)/n}`.  Outside
    :math:`\varepsilon_0 \le \tfrac12 \log(n / \log(1/\delta))` the corollary is silent, and so is the curve (NaN).
    A line that is left with fewer than three points has no slope.
    """
    n = np.asarray(n_users, dtype=float)
    curves, slopes = {}, {}
    for budget in epsilon0:
        covered = budget <= np.log(n / math.log(1 / delta)) / 2
        epsilon = np.array([BOUNDS["hoeffding"](AnyProfile(budget), int(m), delta) for m in n_users], dtype=float)
        rate = min(1.0, budget) * math.exp(budget) * np.sqrt(math.log(1 / delta) / n)
        curves[f"hoeffding:local budget {budget:g}"] = np.where(covered, epsilon / rate, np.nan)
        fitted = covered & (epsilon > 0)
        if fitted.sum() > 2:
            slopes[budget] = log_log_slope(n[fitted], epsilon[fitted])
    return Rates(Curves("n_users", "budget / rate of the corollary", n, curves, {"delta": delta}), slopes)


FAMILIES: Mapping[str, Callable[[float], PureProfile]] = {
    "any randomizer": AnyProfile,
    "2-ary": lambda epsilon0: KaryProfile(epsilon0, 2),
    "100-ary": lambda epsilon0: KaryProfile(epsilon0, 100),
    "Laplace": LaplaceProfile,
}
NAMED = {
    "2-ary": "binary response",
    "10-ary": "10-ary response",
    "100-ary": "100-ary response",
    "Laplace": "Laplace noise",
}
NONE = "none of the three"
NO_GAP = "Here no ratio can be formed, for the lower bound is 0"


def _lower(profile: PureProfile, n_users: int, delta: float) -> float:
    """The worst of some randomizers where none is named."""
    if isinstance(profile, AnyProfile):
        return numerical.any_randomizer(profile.epsilon0, n_users, "lower", delta=delta)
    return numerical.all_equal(profile, n_users, delta=delta)


def _local_budget(bound: str, family: str, n_users: int, epsilon: float, delta: float) -> float:
    if bound == "erlingsson":
        found = closed_form.erlingsson_epsilon0(n_users, epsilon, delta)
        return found if found > epsilon else math.nan
    return closed_form.largest_epsilon0(getattr(closed_form, bound), FAMILIES[family], n_users, epsilon, delta)


def _growing(bound: str, n_users: int, epsilon: float) -> float:
    delta_of: Callable[..., float] = getattr(closed_form, bound)
    n_buckets = whole_cube_root(n_users)
    return closed_form.largest_epsilon0(delta_of, lambda e: KaryProfile(e, n_buckets), n_users, epsilon, n_users**-2.0)


def _ratio(profile: PureProfile, n_users: int, delta: float) -> float:
    lower = BOUNDS["lower"](profile, n_users, delta)
    return BOUNDS["blanket"](profile, n_users, delta) / lower if lower > 0 else math.nan


# --- what the figures say, for the texts around them ------------------------------------------------------------------


def gain(record: Curves) -> float:
    """Bennett's bound over the blanket divergence for the largest crowd; NaN where both are 0."""
    return float(over(record.curves["bennett"], record.curves["blanket"])[-1])


def words_of_any(record: Curves) -> dict[str, str]:
    """Of the bounds for every randomizer: who speaks, who is lower, and what has been won since 2019."""
    curves, budget = record.curves, f"any randomizer of local budget {record.parameters['epsilon0']:g}"
    crowd, today = f"{record.x[-1]:,.0f} users", float(curves["any"][-1])
    low = curves["lower"][-1]
    speaks = from_on(record.x, np.isfinite(curves["erlingsson"]))
    won = (
        f"For {budget} among {crowd} the first bound, of 2019, is {as_large(curves['erlingsson'][-1] / today)} "
        "the best bound on this page, although the messages are the same"
        if speaks and today
        else f"For {budget} among {crowd} the first bound, of 2019, says nothing; the best bound on this page is "
        f"{at_most(today)}"
    )
    order = side(curves["bennett"], curves["hoeffding"])
    reason = "Bennett's uses the second moment, and the second moment that covers every randomizer is pessimistic."
    return {
        "since_first": won,
        "any_gain": f"at most {percent(1 - float(over(curves['any'], curves['clones-2021']).min()), up=True)}",
        "any_left": either(
            low > 0,
            f"among {crowd} {at_most(today)} is certified for all, and some randomizer certainly loses {at_least(low)}",
            f"among {crowd} {at_most(today)} is certified for all, and no loss is certain",
        ),
        "erlingsson_speaks": f"speaks {speaks}" if speaks else "says nothing for any crowd of the figure",
        "generic_order": f"The curve by Bennett's inequality {order} that by Hoeffding's here."
        f"{f' {reason}' if order == 'lies above' else ''}",
    }


def words_of_local_budgets(record: Curves, families: Sequence[str]) -> dict[str, str]:
    """Of Bennett beside Hoeffding: which allows the larger local budget for which randomizer, and by how much."""
    ratio = {name: over(record.curves[f"bennett:{name}"], record.curves[f"hoeffding:{name}"]) for name in families}
    return {
        "largest_small": f"{record.x[-1]:,.0f}",
        "bennett_wins": listed([NAMED[name] for name in best(record.curves, families, "bennett", "hoeffding")], NONE),
        "hoeffding_wins": listed([NAMED[name] for name in best(record.curves, families, "hoeffding", "bennett")], NONE),
        **{f"bennett_for_{name.partition('-')[0].lower()}": span(values) for name, values in ratio.items()},
    }


def gap_story(record: Curves) -> str:
    """By how much the best upper bound exceeds the lower one, for each randomizer."""
    names = {name.partition(":")[2]: _excess(ratios) for name, ratios in record.curves.items()}
    told = [f"{share} for {NAMED[name]}" for name, share in names.items() if share]
    crowds = f"Among up to {record.x[-1]:,.0f} users"
    return f"{crowds} the upper bound exceeds the lower one by at most {listed(told)}" if told else NO_GAP


def words_of_gap(record: Curves, binary: Curves) -> dict[str, str]:
    """The same, and by how much the exact value of binary response exceeds its lower bound."""
    exact = _excess(over(binary.curves["exact"], binary.curves["lower"]))
    exceeds = f"exceeds the lower bound by at most {exact}" if exact else "cannot be compared with a lower bound of 0"
    return {"gap_story": gap_story(record), "exact_story": exceeds}


def words_of_rate(record: Rates) -> dict[str, str]:
    """Whether a line of the figure rises, and between which heights the lines lie."""
    heights = np.concatenate(list(record.scaled.curves.values()))
    heights = heights[np.isfinite(heights)]
    steep = [slope.exponent for slope in record.slopes.values()]
    level = compared(steep, "<=", -0.5) if steep else Finding(None)
    return {
        "rate_slopes": either(
            level,
            "No line rises over the crowds of the figure, as the corollary says; the lines fall since "
            "the bound on $\\delta$ has a factor $1/n$",
            "A line rises over the crowds of the figure, which are too small to show the rate",
            "With so few crowds no slope can be told",
        ),
        "rate_heights": f"between {heights.min():.2g} and {heights.max():.2g}" if heights.size else "nowhere",
    }


def words_of_withdrawn(record: Curves) -> dict[str, str]:
    """From which crowd on the withdrawn bound lies below what it should bound, and below what is given away."""
    curves = record.curves
    none, false = (from_on(record.x, curves["withdrawn"] < curves[key]) for key in ("blanket", "lower"))
    under = (
        f"{none} below the very quantity that it should bound" if none else "above the quantity that it should bound"
    )
    worse = f"{false}; a budget read off there is smaller than what two explicit data sets certainly lose"
    return {
        "withdrawn_under": f"{under}, and below the *lower* bound {worse if false else 'for no crowd of the figure'}",
        "corrected_side": side(curves["bennett"], curves["blanket"]),
    }


def _excess(ratios: Reals) -> str:
    known = ratios[np.isfinite(ratios)]
    return percent(max(0.0, float(known.max()) - 1), up=True) if known.size else ""
