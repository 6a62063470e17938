"""What the pages on FLAME say in words that depend on their numbers: comparisons, verdicts, sizes."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from flamebook.attacks import flame as attacks
from flamebook.figures.flame.accounting import Setting, ThenAndNow
from flamebook.records import LOOKS, Curves, Rates, log_log_slope
from flamebook.statements import at_least, at_most, compared, either, every, listed, percent, times, verdict
from flamelib.core.arrays import Reals

Words = dict[str, str]
FORMULA = "the printed formula"


def ratio(one: float, other: float) -> float:
    """A quotient that is infinite where something is divided by nothing, NaN where nothing is.

    >>> ratio(1.0, 2.0), ratio(1.0, 0.0), ratio(0.0, 0.0)
    (0.5, inf, nan)
    """
    return one / other if other else math.inf if one else math.nan


def standing(printed: float, lower: float, upper: float) -> str:
    """What a protocol is, by what the printed formula says of it and by certified bounds.

    >>> standing(0.9, 0.09, 0.09)
    '10 times better than the printed formula says'
    >>> standing(1.5, 1, 2), standing(0.2, 1, 2)
    ('neither proven nor refuted to be what the printed formula says', 'not what the printed formula says')
    """
    found = verdict(printed, lower, upper)
    if found != "holds":
        return f"{'not' if found == 'refuted' else 'neither proven nor refuted to be'} what {FORMULA} says"
    better = ratio(printed, upper)
    same = math.isnan(better) or times(better) == "once"
    return f"{'as good as' if same else f'{times(better)} better than'} {FORMULA} says"


def interval(lower: float, upper: float) -> str:
    """Two certified bounds.

    >>> interval(0.0900123, 0.0903456)
    '0.09001 to 0.09035'
    """
    return f"{at_least(lower)} to {at_most(upper)}"


# --- What FLAME's budgets are worth -------------------------------------------------------------------------------------


def then_and_now(setting: Setting, now: ThenAndNow) -> Words:
    """About the three protocols of a figure: how each stands to its printed budget, and what loses how much."""
    simple, double, topk = (now.budgets[name] for name in ("simple", "double", "topk"))
    formulas = [simple[bound] for bound in ("withdrawn", "bennett", "blanket")]
    shape = (setting.n_users, setting.dimension, setting.kept, setting.padded, setting.epsilon0, setting.delta)
    exactly = verdict(double["withdrawn"], attacks.exactly_lower(*shape), double["certified-subset"])
    plain = [topk[key] for key in ("withdrawn", "lower", "certified")]
    return {
        "simple_standing": standing(*(simple[key] for key in ("withdrawn", "lower", "certified"))),
        "formulas_within": percent(ratio(max(formulas), min(formulas)) - 1),
        "lemma_factor": times(ratio(simple["blanket"], simple["certified"])),
        "simple_gap": either(
            simple["lower"] > 0,
            f"Counting gives away all but {percent(1 - ratio(simple['lower'], simple['certified']))} of the certified budget.",
            "Counting gives nothing away here.",
        ),
        "double_standing": standing(*(double[key] for key in ("withdrawn", "lower", "certified"))),
        "exactly_factor": times(ratio(double["certified-subset"], double["certified"])),
        "exactly_verdict": {
            "holds": "the printed formula gives no less than that, and its budget holds as well",
            "open": "the printed formula gives less than that, and nothing contradicts it",
            "refuted": "the budget of the printed formula is refuted, for counting gives away more",
        }[exactly],
        "topk_standing": standing(*plain),
        "topk_verdict": {
            "holds": "The printed formula gives no less than the certified budget, as long as no bag overflows.",
            "open": "The printed formula gives a budget between what counting gives away and what is certified.",
            "refuted": f"The lower bound is {times(ratio(topk['lower'], topk['withdrawn']))} what the printed formula gives.",
        }[verdict(*plain)],
        "order_of_both": either(
            compared(simple["certified"], "<", double["certified"]),
            "the other way round: at the same $\\varepsilon_l$, SS-Simple is *more* private than SS-Double",
            "in that order here: at the same $\\varepsilon_l$, SS-Simple is not more private than SS-Double",
        ),
        "double_survives": {"holds": "survives", "open": "is neither refuted nor proven", "refuted": "is refuted"}[
            verdict(double["withdrawn"], double["lower"], double["certified"])
        ],
        "now_alt": "Budgets of three protocols on a logarithmic axis: "
        + "; ".join(
            f"{LOOKS[name].label} from {interval(*now.interval(name))}, by the printed formula {found['withdrawn']:.4g}"
            for name, found in now.budgets.items()
        )
        + ".",
    }


def trend(curve: Reals) -> str:
    """Which way a curve goes where it has values.

    >>> trend(np.array([1.0, np.nan, 2.0])), trend(np.array([2.0, 1.0])), trend(np.array([1.0, 2.0, 1.0]))
    ('rising', 'falling', 'changing')
    """
    steps = np.diff(curve[np.isfinite(curve)])
    return "level" if not steps.any() else "rising" if (steps >= 0).all() else "falling" if (steps <= 0).all() else "changing"


def overall(record: Curves, which: str) -> Words:
    """About one of Figures 9 and 10, its words with that name in front: gap of the bounds, trend, order."""
    names = [LOOKS[protocol].label for protocol in ("simple", "double")]
    certified, lower, printed = (
        {name: record.curves[f"{kind}:{name}"] for name in names} for kind in ("certified", "lower", "withdrawn")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = certified[names[0]] / lower[names[0]] - 1
    told = gaps[np.isfinite(gaps)]
    trends = list(dict.fromkeys(trend(certified[name]) for name in names))
    over = [name for name in names if compared(printed[name], ">", certified[name]).holds]
    return {
        f"{which}_gap": either(
            told.size > 0,
            f"The certified and the lower curve of SS-Simple differ by {percent(float(max(told, default=0.0)))} at most.",
            "Nothing is given away by counting under SS-Simple here.",
        ),
        f"{which}_trend": " and ".join(trends),
        f"{which}_private": either(
            trends == ["falling"],
            "More coordinates of smaller budget each: the vector becomes more private.",
            "More coordinates of smaller budget each: at these values the vector does not become more private throughout.",
        ),
        f"{which}_alt": f"certified curves {' and '.join(trends)}; the printed curve lies above the certified one for "
        f"{listed(over, 'neither protocol')}",
    }


def in_both(*records: Curves) -> str:
    """Whether SS-Double's certified curve lies above SS-Simple's in all of these figures."""
    pairs = [[one.curves[f"certified:{LOOKS[protocol].label}"] for protocol in ("double", "simple")] for one in records]
    return either(
        every(*(compared(double, ">", simple) for double, simple in pairs)),
        "In both figures the certified curve of SS-Double lies above that of SS-Simple: the picture of the previous "
        "section, along the whole axis.",
        "The certified curve of SS-Double does not lie above that of SS-Simple along the whole axis of both figures.",
    )


def rates(corollaries: Rates, sampled: Curves) -> Words:
    """About the corollaries: whether both slopes are near -1/2, and the slope in the share of reported coordinates."""
    slopes = [slope.exponent for slope in corollaries.slopes.values()]
    ends = [float(values[-1]) for values in corollaries.scaled.curves.values()]
    shares = [log_log_slope(sampled.x, sampled.curves[name]).exponent for name in ("certified", "lower")]
    return {
        "rates_right": either(
            compared(np.abs(np.array(slopes) + 0.5), "<", 0.1),
            "The rates in $n$ are right.",
            "Bags of these sizes do not show the rates in $n$ yet.",
            "At these values the bound is 0, and shows no rate.",
        ),
        "share_slopes": " and ".join(f"{slope:.2f}" for slope in shares),
        "rates_alt": f"Two curves over the size of a bag, {' and '.join(dict.fromkeys(map(trend, corollaries.scaled.curves.values())))}, "
        f"at {' and '.join(f'{end:.2g}' for end in ends)} for the largest bags.",
    }


# --- Exercises ----------------------------------------------------------------------------------------------------------


def exercises(n_users: int, padded: int, claimed: float, sizes: Sequence[int], given: Sequence[float]) -> Words:
    """About the exercise on padding: whether its promise is broken at all, and by which bags the count is silenced.

    >>> exercises(100, 10, 0.5, [10, 20, 40], [0.9, 0.6, 0.4])["enough"]
    'Of the sizes tried, 40 messages are the first that do, 0.4 times as many as there are users'
    >>> exercises(100, 10, 1.5, [10, 20], [0.9, 0.6])["broken"]
    'Counting does not contradict that already with bags of 10 messages.'
    >>> exercises(100, 10, 0.5, [10, 20], [0.9, 0.6])["enough"]
    'None of the sizes tried does'
    """
    silent = [size for size, lower in zip(sizes, given, strict=True) if lower <= claimed]
    return {
        "broken": either(
            compared(given[0], ">", claimed),
            f"Counting shows that bags of {padded:,} messages do not.",
            f"Counting does not contradict that already with bags of {padded:,} messages.",
        ),
        "enough": f"Of the sizes tried, {silent[0]:,} messages are the first that do, "
        f"{times(silent[0] / n_users)} as many as there are users"
        if silent
        else "None of the sizes tried does",
    }
