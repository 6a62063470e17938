"""What the pages on FLAME say in words that depend on their numbers: comparisons, verdicts, sizes."""

import math
from collections.abc import Sequence

import numpy as np

from flamebook.figures.flame.accounting import Setting, ThenAndNow, label
from flamebook.figures.flame.as_published import HalfPrecision, RepeatedNoise
from flamebook.figures.flame.attack import Attack, AttackCurve
from flamebook.figures.flame.audit import Accounts, Claim, Claims, Round
from flamebook.records import LOOKS, Curves, Rates, log_log_slope
from flamebook.statements import at_least, at_most, compared, counted, either, every, listed, percent, times, verdict
from flamelib.core.arrays import Reals

Words = dict[str, str]
FORMULA = "the printed formula"


def ratio(one: float, other: float) -> float:
    """A quotient that is infinite where something is divided by nothing, NaN where nothing is.

    >>> ratio(1.0, 2.0), ratio(1.0, 0.0), ratio(0.0, 0.0)
    (0.5, inf, nan)
    """
    return one / other if other else math.inf if one else math.nan


def multiple(factor: float) -> str:
    """How many times something, in front of it.

    >>> multiple(8.8), multiple(1.001), multiple(float("nan"))
    ('8.8 times', 'as much as', 'as little as')
    """
    return "as little as" if math.isnan(factor) else times(factor).replace("once", "as much as")


def standing(printed: float, lower: float, upper: float) -> str:
    """What a protocol is, by what the printed formula says of it and by certified bounds.

    >>> standing(0.9, 0.09, 0.09)
    'as private as the printed formula says, with a factor of 10 to spare'
    >>> standing(1.5, 1, 2)
    'neither proven nor refuted to be as private as the printed formula says'
    >>> standing(0.2, 1, 2)
    'not as private as the printed formula says'
    """
    found = verdict(printed, lower, upper)
    if found != "holds":
        return f"{'not' if found == 'refuted' else 'neither proven nor refuted to be'} as private as {FORMULA} says"
    better = ratio(printed, upper)
    same = math.isnan(better) or times(better) == "once"
    spare = "" if same else f", with a factor of {times(better).removesuffix(' times')} to spare"
    return f"as private as {FORMULA} says{spare}"


def interval(lower: float, upper: float) -> str:
    """Two certified bounds.

    >>> interval(0.0900123, 0.0903456)
    '0.09001 to 0.09035'
    """
    return f"{at_least(lower)} to {at_most(upper)}"


# --- What FLAME's budgets are worth -----------------------------------------------------------------------------------


def then_and_now(now: ThenAndNow) -> Words:
    """About the three protocols of a figure: how each stands to its printed budget, and what loses how much."""
    simple, double, exactly, topk = (now.budgets[name] for name in ("simple", "double", "exactly", "topk"))
    formulas = [simple[bound] for bound in ("withdrawn", "bennett", "blanket")]
    before, today = exactly["certified-before"], exactly["certified"]
    plain = [topk[key] for key in ("withdrawn", "lower", "certified")]
    return {
        "simple_standing": standing(*(simple[key] for key in ("withdrawn", "lower", "certified"))),
        "formulas_agree": either(
            min(formulas) > 0,
            f"agree within {percent(ratio(max(formulas), min(formulas)) - 1)}",
            "do not agree at all, for some give 0",
        ),
        "lemma_factor": multiple(ratio(simple["blanket"], simple["certified"])),
        "simple_gap": either(
            simple["lower"] > 0,
            f"Counting gives away {percent(ratio(simple['lower'], simple['certified']), 3)} of the certified budget.",
            "Counting gives nothing away here.",
        ),
        "double_standing": standing(*(double[key] for key in ("withdrawn", "lower", "certified"))),
        "exactly_gain": either(
            compared(today, "<", before),
            f"{at_most(today)} where {at_most(before)} was all that could be certified before",
            f"{at_most(today)}, as before",
        ),
        "exactly_lower": at_least(exactly["lower"]),
        "exactly_verdict": {
            "holds": "the printed formula gives no less than is certified, so its budget holds as well",
            "open": "the printed formula gives less than is certified, and nothing contradicts it",
            "refuted": "the budget of the printed formula is refuted, for counting gives away more",
        }[verdict(exactly["withdrawn"], exactly["lower"], today)],
        "topk_gain": either(
            compared(topk["lower"], ">", topk["lower-before"]),
            f"shows that at least {at_least(topk['lower'])} is lost; the yield of counting is "
            f"{at_least(topk['lower-before'])}",
            f"shows no more here: at least {at_least(topk['lower'])} is lost",
        ),
        "topk_standing": standing(*plain),
        "topk_verdict": {
            "holds": "The printed formula gives no less than the certified budget, as long as no bag overflows.",
            "open": "The printed formula gives a budget between the lower bound and what is certified.",
            "refuted": f"The lower bound is {times(ratio(topk['lower'], topk['withdrawn']))} what {FORMULA} gives.",
        }[verdict(*plain)],
        "order_of_both": either(
            compared(simple["certified"], "<", double["certified"]),
            "the other way round: at the same $\\varepsilon_l$, SS-Simple is *more* private than SS-Double",
            "in that order here: at the same $\\varepsilon_l$, SS-Simple is not more private than SS-Double",
        ),
        "double_survives": {"holds": "survives", "open": "is neither refuted nor proven", "refuted": "is refuted"}[
            verdict(double["withdrawn"], double["lower"], double["certified"])
        ],
        "now_alt": "; ".join(
            f"{label(name)} from {interval(*now.interval(name))}, by the printed formula {found['withdrawn']:.4g}"
            for name, found in now.budgets.items()
        ),
    }


def fallen(setting: Setting) -> Words:
    """What blocks of coordinates are worth to SS-Double with exactly k of them in another setting.

    >>> fallen(Setting(dimension=100, n_users=100, kept=5, padded=50))["fallen"][:10]
    'falls from'
    """
    before, today = setting.revealed(), setting.exactly()
    falls = either(compared(today, "<", before), f"falls from {at_most(before)} to {at_most(today)}", "does not fall")
    return {"fallen": falls, "fallen_setting": f"{setting.kept:g} coordinates and bags of {setting.padded}"}


def trend(curve: Reals) -> str:
    """Which way a curve goes where it has values.

    >>> trend(np.array([1.0, np.nan, 2.0])), trend(np.array([2.0, 1.0])), trend(np.array([1.0, 2.0, 1.0]))
    ('rising', 'falling', 'changing')
    """
    steps = np.diff(curve[np.isfinite(curve)])
    return (
        "level"
        if not steps.any()
        else "rising"
        if (steps >= 0).all()
        else "falling"
        if (steps <= 0).all()
        else "changing"
    )


def overall(record: Curves, which: str) -> Words:
    """About one of Figures 9 and 10, its words with that name in front: gap of the bounds, trend, order."""
    names = [LOOKS[protocol].label for protocol in ("simple", "double")]
    certified, lower, printed = (
        {name: record.curves[f"{kind}:{name}"] for name in names} for kind in ("certified", "lower", "withdrawn")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = certified[names[0]] / lower[names[0]]
    told = gaps[np.isfinite(gaps)]
    trends = list(dict.fromkeys(trend(certified[name]) for name in names))
    over = [name for name in names if compared(printed[name], ">", certified[name]).holds]
    return {
        f"{which}_gap": either(
            told.size > 0,
            f"The certified curve of SS-Simple is at most {at_most(max(told, default=1.0))} times as high as its "
            "lower bound.",
            "Counting gives nothing away under SS-Simple here.",
        ),
        f"{which}_trend": " and ".join(trends),
        f"{which}_private": either(
            trends == ["falling"],
            "With more coordinates of smaller budget each, the vector becomes more private.",
            "With more coordinates of smaller budget each, the vector does not become more private throughout here.",
        ),
        f"{which}_alt": f"certified curves {' and '.join(trends)}; the printed curve lies above the certified one for "
        f"{listed(over, 'neither protocol')}",
    }


def in_both(*records: Curves) -> Words:
    """Whether SS-Double's certified curve lies above SS-Simple's in all of these figures."""
    pairs = [[one.curves[f"certified:{LOOKS[protocol].label}"] for protocol in ("double", "simple")] for one in records]
    words = either(
        every(*(compared(double, ">", simple) for double, simple in pairs)),
        "In both figures the certified curve of SS-Double lies above that of SS-Simple along the whole axis.",
        "The certified curve of SS-Double does not lie above that of SS-Simple along the whole axis of both figures.",
    )
    return {"in_both": words}


def rates(corollaries: Rates, sampled: Curves) -> Words:
    """About the corollaries: whether both slopes are near -1/2, and the slope in the share of reported coordinates."""
    slopes = [slope.exponent for slope in corollaries.slopes.values()]
    ends = [float(values[-1]) for values in corollaries.scaled.curves.values()]
    ways = dict.fromkeys(map(trend, corollaries.scaled.curves.values()))
    shares = [log_log_slope(sampled.x, sampled.curves[name]).exponent for name in ("certified", "lower")]
    return {
        "rates_right": either(
            None if any(map(math.isnan, slopes)) else compared(np.abs(np.array(slopes) + 0.5), "<", 0.1),
            "The slopes are close to these rates in $n$.",
            "Bags of these sizes do not show the rates in $n$ yet.",
            "At these values a bound is 0 and shows no rate.",
        ),
        "share_slopes": " and ".join(f"{slope:.2f}" for slope in shares),
        "rates_alt": f"{' and '.join(ways)}, at {' and '.join(f'{end:.2g}' for end in ends)} for the largest bags",
    }


# --- What FLAME really keeps ------------------------------------------------------------------------------------------


def attacked(attack: Attack, curve: AttackCurve, claim: Claim) -> Words:
    """About the attack on SS-Topk: what it says of the claim, and whether its rounds agree with the law."""
    inside = sum(
        low <= attack.exact(float(at)) <= high for at, low, high in zip(curve.at, curve.low, curve.high, strict=True)
    )
    factor = times(ratio(attack.exact(attack.epsilon), curve.claimed[1]))
    yielded = attack.yielded(curve.claimed[1])
    broken = yielded > claim.claimed
    return {
        "intervals": either(
            inside == curve.at.size,
            "The intervals of the rounds contain the exact values",
            f"Of {curve.at.size} intervals of the rounds {inside} contain the exact value",
        ),
        "curve_and_claim": either(
            broken,
            f"At the claimed budget the curve is {factor} the claimed $\\delta$, to which it falls only at "
            f"{times(ratio(yielded, claim.claimed))} that budget.",
            "The claim does not lie below the curve: counting does not contradict it.",
        ),
        "attack_verdict": either(
            broken, "the claimed pair is **refuted**", "the claimed pair is **not refuted** by this count"
        ),
        "attack_reach": either(
            claim.upper > 0,
            f"its yield is still {percent(ratio(yielded, claim.upper))} of the certified upper bound",
            "the certified upper bound is 0 as well",
        ),
        "attacked_bags": counted(int(attack.parameters["kept"]), "bag"),
        "rounds_run": counted(len(attack.plus), "round"),
        "attack_alt": "Delta given away by counting, against epsilon, exact and in simulated rounds; the claimed point "
        + either(broken, f"lies below by a factor of {factor.removesuffix(' times')}.", "does not lie below."),
    }


_STATES = {"holds": "holds", "open": "is open", "refuted": "is refuted"}
_ALL = {"holds": "hold", "open": "are open", "refuted": "are refuted"}


def claimed(sparse: Round, dense: Round, claims: Claims) -> Words:
    """About the claims between certified bounds, of a round and of its denser counterpart."""
    sound = [
        ("SS-Simple", claims["simple"]),
        (f"SS-Double with {sparse.share}", claims["double"]),
        (f"SS-Double with {dense.share}", claims["double:dense"]),
    ]
    groups = {state: [name for name, one in sound if one.verdict == state] for state in _STATES}
    verbs = {state: _STATES[state] if len(names) == 1 else _ALL[state] for state, names in groups.items()}
    said = [f"{listed(names)} {verbs[state]}" for state, names in groups.items() if names]
    subset, topk, full = claims["subset"], claims["topk:dense"], claims["full:dense"]
    return {
        "sound_claims": "SS-Simple and SS-Double hold" if len(groups["holds"]) == len(sound) else "; ".join(said),
        "margins": listed([f"{_margin(one)} for {name}" for name, one in sound]),
        "subset_upper": at_most(subset.upper),
        "subset_claimed": f"{subset.claimed:.4g}",
        "subset_verdict": {"holds": "holds", "open": "stays open", "refuted": "is refuted"}[subset.verdict],
        "subset_lower": at_least(subset.lower),
        "dense_verdict": f"The budget of SS-Topk with one coordinate in {dense.dimension / dense.kept:.4g} "
        f"{_STATES[topk.verdict]}",
        "dense_numbers": f"The formula gives {topk.claimed:.4g}, at least {at_least(topk.lower)} is lost, and at most "
        f"{at_most(topk.upper)} is certified",
        "overflow": either(
            topk.verdict == full.verdict, "Overflow leaves the verdict as it is.", "Overflow changes the verdict."
        ),
        "full_verdict": either(
            full.lower > topk.lower,
            f"On data that fill the bags, at least {at_least(full.lower)} is lost, and the formula's "
            f"{full.claimed:.4g} {_STATES[full.verdict]}.",
            f"Here no more is known to be lost with full bags, and the formula's {full.claimed:.4g} "
            f"{_STATES[full.verdict]}.",
        ),
    }


def _margin(claim: Claim) -> str:
    found = ratio(claim.claimed, claim.upper)
    return "any number, where 0 is certified," if math.isinf(found) or math.isnan(found) else f"{found:.2g}"


def double_accounts(accounts: Accounts, hidden: Claim) -> Words:
    """About the seven accounts of SS-Double: the sound ones over the printed mix, and what becomes of the mix."""
    mix = accounts["printed: 2k with sampling, Lemma 3"]
    over = [ratio(accounts[f"{name}, Lemma 3"], mix) for name in ("revealed: k without", "hidden: d with sampling")]
    highest = max(value for _, value, _ in accounts.rows)
    states = {"holds": "survives", "open": "is neither proven nor refuted", "refuted": "fails"}
    return {
        "sound_counts": " and ".join(map(times, over)),
        "hidden_below": either(compared(hidden.upper, "<", mix), "falls below the mix", "does not fall below the mix"),
        "mix_survives": states[verdict(mix, hidden.lower, hidden.upper)],
        "accounts_alt": "Seven accounts of SS-Double on a logarithmic axis, from "
        f"{at_least(accounts['messages counted'], 3)} given away by counting to {highest:.3g}; "
        f"the printed mix is at {mix:.3g}.",
    }


def classical(record: Curves) -> Words:
    """Where the budget of the classical Gaussian formula begins to be too small."""
    beyond = record.x[record.curves["exact"] > record.x]
    return {
        "classical_alt": "Ratio of true to claimed budget of the classical Gaussian formula, "
        + (f"above one from about {beyond[0]:.2g} on." if beyond.size else "below one throughout.")
    }


def baselines(claim: Claim, gaussian: Sequence[Sequence[float]], half: HalfPrecision, noise: RepeatedNoise) -> Words:
    """About the baselines: what DP-FL keeps, what 16 bits lose, how far one user stands out of repeated noise."""
    same = max(noise.errors("repeated"))
    orders = math.floor(math.log10(noise.one_user / same)) if same > 0 else 0
    where = "every coordinate" if half.lost == 1 else f"{percent(half.lost)} of the coordinates"
    return {
        "asked": either(
            claim.claimed > 0,
            "",
            " (The formula says 0 here, which no noise keeps; a budget of 1 stands in its place.)",
        ),
        "dp_claimed": f"{gaussian[0][0]:.4g}",
        "dp_keeps": f"{gaussian[0][3]:.3g}",
        "dp_unsampled": f"{gaussian[1][0]:.4g}",
        "dp_unsampled_keeps": f"{gaussian[1][3]:.3g}",
        "lost": either(
            half.lost > 0,
            f"Infinities of both signs add up to *not a number*, in {where}. A model with such parameters is "
            "broken, and its accuracy says nothing about local privacy.",
            "At these values no sum is lost.",
        ),
        "stands_out": f"by {orders} orders of magnitude"
        if same > 0 and orders > 0
        else "without any error"
        if same == 0
        else "as far as the rounding errors of so large a noise allow",
    }


# --- Exercises --------------------------------------------------------------------------------------------------------


def ratios_of(**found: float) -> Words:
    """Ratios of the exercises as words, by their names.

    >>> ratios_of(dummy_ratio=3.6812)
    {'dummy_ratio': '3.681 times'}
    """
    return {name: f"{value:.4g} times" for name, value in found.items()}


def padding(n_users: int, padded: int, claimed: float, sizes: Sequence[int], given: Sequence[float]) -> Words:
    """Whether a promise is broken by a count at all, and by which bags the count is silenced.

    >>> padding(100, 10, 0.5, [10, 20, 40], [0.9, 0.6, 0.4])["enough"]
    'Of the sizes tried, bags of 40 messages are the first that do, 0.4 times as many as there are users'
    >>> padding(100, 10, 1.5, [10, 20], [0.9, 0.6])["broken"]
    'Counting does not contradict it with bags of 10 messages.'
    >>> padding(100, 10, 0.5, [10, 20], [0.9, 0.6])["enough"]
    'None of the sizes tried does'
    """
    silent = [size for size, lower in zip(sizes, given, strict=True) if lower <= claimed]
    return {
        "claimed": f"{claimed:.4g}",
        "broken": either(
            compared(given[0], ">", claimed),
            f"Counting shows that bags of {padded:,} messages do not keep it.",
            f"Counting does not contradict it with bags of {padded:,} messages.",
        ),
        "enough": f"Of the sizes tried, bags of {silent[0]:,} messages are the first that do, "
        f"{times(silent[0] / n_users)} as many as there are users"
        if silent
        else "None of the sizes tried does",
    }


def room(filled: int, price: float, expected: float, padded: int) -> Words:
    """Whether others can fill bags of a user, whether counting shows it, and whether as many messages find room.

    >>> room(3, 0.6, 500, 333)
    {'bags_filled': 'Here they can, and counting shows it.', 'wanted_fits': 'here it does not'}
    """
    return {
        "bags_filled": either(
            filled > 0,
            "Here they can, "
            + either(price > 0, "and counting shows it.", "though so small a count does not show it."),
            "Here there are too few of them.",
        ),
        "wanted_fits": either(compared(expected, "<=", padded), "here it does", "here it does not"),
    }
