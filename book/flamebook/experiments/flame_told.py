"""What the page on learning under FLAME says of its runs in words: orders, gaps, where padding overflows."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from flamebook.experiments.flame import Setting
from flamebook.experiments.flame_grid import EqualBudget, Sweep
from flamebook.experiments.runs import Gap, Runs, named
from flamebook.statements import at_least, at_most, compared, counted, either, every, listed, percent, times, verdict
from flamelib.core.arrays import Reals
from flamelib.learning.datasets import load
from flamelib.learning.federated import Users

Words = dict[str, str]
PROTOCOLS = ("topk", "double", "simple")


def crowd(dataset: str, users: Users, setting: Setting) -> Words:
    """About the users: which data they hold, how many images each trains on, and the setting that fits them."""
    return {
        "data": titled(dataset),
        "images": str(users.labels.shape[1]),
        "crowd": f"{setting.n_users:,}",
        "step_of_topk": f"{users.model.dimension / setting.kept(users.model.dimension):.4g} times",
    }


def titled(dataset: str) -> str:
    """What a data set, or what stands in for it, is called."""
    found = load(dataset)
    return found.title.partition(",")[0] if found.title else found.name


def accuracies(record: Runs) -> dict[str, float]:
    """Mean accuracy of every method at the end, in percent, the best first."""
    means = {name: float(record.final(name).mean()) for name in record.curves}
    return dict(sorted(means.items(), key=lambda one: -one[1]))


def standings(record: Runs) -> str:
    """The methods in the order of their accuracy, for those who do not see the curves."""
    return listed([f"{named(name)} ({mean:.3g} %)" for name, mean in accuracies(record).items()])


def ends(record: Sweep) -> str:
    """Every method of a sweep from its first to its last value, for those who do not see the curves."""
    told = []
    for name in record.finals:
        known = [(x, y) for x, y in zip(record.x, record.mean(name), strict=True) if not math.isnan(y)]
        (first, low), (last, high) = known[0], known[-1]
        told.append(f"{named(name)} from {low:.3g} % at {first:g} to {high:.3g} % at {last:g}")
    return "; ".join(told)


def steps(record: Sweep) -> Words:
    """Whether plain averaging is ahead of the largest coordinates at every step of this page."""
    return {
        "steps_here": either(
            compared(record.mean("clipped"), ">", record.mean("sparse")),
            "so it is at every step that this page tries",
            "on this page it is not so at every step",
        )
    }


def crowded(record: Sweep, dimension: int) -> Words:
    """About bags that overflow: at the fewest and the most multiples, in the first and the last round."""
    full = record.full["topk"]
    (few, _), (first, last) = (
        [percent(float(full[at, :, end, 0].mean()) / dimension) for end in (0, 1)] for at in (0, -1)
    )
    change = Gap.of(record.finals["topk"][:, -1] - record.finals["topk"][:, 0])
    alone = f"at $l={record.x[0]:g}$ {few} of the coordinates overflow in round 1"
    most = f"at $l={record.x[-1]:g}$ it is {first} in round 1 and {last} in the last round"
    hardly = "hardly changes" if abs(change.mean) <= change.spread else "changes"
    return {
        "most_multiples": f"{record.x[-1]:g}",
        "crowded": f"{first} of the coordinates overflow in the first round, and {last} in the last",
        "hiding_change": either(
            record.x.size > 1,
            f"The accuracy {hardly} ({change} points from the fewest to the most multiples).",
            "No other number of multiples is tried on this page.",
        ),
        "overflow_row": either(
            full[..., 0].any(),
            f"not where users agree: {alone}; {most}",
            "not put to the test: no bag overflows on this page",
        ),
    }


def budgets(record: EqualBudget) -> Words:
    """About equal budgets: what is claimed and what is certain, and who is ahead of whom at the lower ends."""
    leads = {name: record.lead(name) for name in PROTOCOLS}
    ahead = [f"{named(name)} (by {lead:.1f} points)" for name, lead in leads.items() if lead > 0]
    behind = [f"{named(name)} (by {-lead:.1f})" for name, lead in leads.items() if lead <= 0]
    dense, double, simple = (record.intervals[name] for name in ("topk:dense", "double", "simple"))
    own, longer = (record.lead("topk:dense", method) for method in ("dp", "dp:step"))
    says = {"holds": "holds", "open": "is not refuted", "refuted": "is refuted"}
    state = verdict(double.claimed, double.lower, double.upper)
    return {
        "double_claim": f"{double.claimed:.4g} {says[state]}: at least {at_least(double.lower)} is given away, and at "
        f"most {at_most(double.upper)}",
        "simple_claim": times(simple.claimed / simple.upper) if simple.upper else "infinitely many times",
        "leads": f"the server is ahead of {listed(ahead, 'none of the three protocols')}"
        + (f", and behind {listed(behind)}" if behind else ""),
        "dense_claim": says[verdict(dense.claimed, dense.lower, dense.upper)],
        "dense_leads": f"{_position(-own)} the server with its own step, and {_position(-longer)} the server with the "
        "longer step",
        "server_row": either(
            leads["topk"] > 0,
            f"does not hold: at proved budgets the server leads by {leads['topk']:.2f} points on this page",
            f"at proved budgets SS-Topk leads by {-leads['topk']:.2f} points on this page",
        ),
    }


def sound(found: Sweep, recorded: bool) -> Words:
    """About certified budgets, of recorded runs or of a page's own: what the better account is worth, who is ahead."""
    mean = {name: found.mean(name) for name in found.finals}
    gain = mean["double"] - mean["double:told"]
    alike = Gap.of(found.finals["double"] - found.finals["simple"])
    largest = int(gain.argmax())
    return {
        "sound_of": either(recorded, "recorded on MNIST", "on this page"),
        "sound_runs": counted(len(found.finals["dp"]), "run"),
        "sound_gain": f"up to {gain[largest]:.1f} points, at $\\varepsilon={found.x[largest]:g}$",
        "sound_ahead": _where(mean["double"] > mean["topk"], found.x),
        "sound_simple": either(
            abs(alike.mean) <= alike.spread,
            "SS-Double and SS-Simple cannot be told apart, on average over the budgets tried",
            f"SS-Double differs from SS-Simple by {alike} points on average over the budgets tried",
        ),
        "sound_server": "ahead of all three protocols "
        + _where([mean["dp"][at] > max(mean[name][at] for name in PROTOCOLS) for at in range(len(found.x))], found.x),
    }


def _where(true: Sequence[bool] | NDArray[np.bool_], budgets: Reals) -> str:
    """
    >>> _where([True, False], [0.3, 1]), _where([True, True], [0.3, 1]), _where([False, False], [0.3, 1])
    ('at $\\\\varepsilon=0.3$', 'at every budget tried', 'at none of the budgets tried')
    """
    there = [f"$\\varepsilon={at:g}$" for at, holds in zip(budgets, true, strict=True) if holds]
    return "at every budget tried" if len(there) == len(budgets) else f"at {listed(there, 'none of the budgets tried')}"


def at_lower_ends(record: EqualBudget) -> str:
    """Each protocol's accuracy beside the server's at the lower end of its interval, in words."""
    told = [
        f"{named(name)} has {record.finals[name].mean():.3g} % at {at_least(one.lower)} and the server "
        f"{record.server_at(one.lower):.3g} %"
        for name, one in record.intervals.items()
    ]
    return f"At the lower end of what it certainly keeps, {'; '.join(told)}"


def _position(points: float) -> str:
    """
    >>> _position(5.71), _position(-0.04)
    ('5.7 points ahead of', '0.0 points behind')
    """
    return f"{abs(points):.1f} points {'ahead of' if points > 0 else 'behind'}"


def leads(record: Runs) -> bool | None:
    """Whether SS-Topk is the most accurate of the three protocols; ``None`` where the spread is larger than a gap."""
    gaps = [record.gap("topk", other) for other in PROTOCOLS[1:]]
    if any(gap.mean < -gap.spread for gap in gaps):
        return False
    return True if all(gap.mean > gap.spread for gap in gaps) else None


def elsewhere(here: Runs, there: Runs, dataset: str) -> Words:
    """About the same methods on other data: whether their order is the same, and whether SS-Topk leads the three."""
    first = [leads(runs) for runs in (here, there)]
    return {
        "other_data": titled(dataset),
        "same_order": either(
            list(accuracies(here)) == list(accuracies(there)),
            "The order of the methods at the end is the same, the distances are not.",
            "The distances between the methods differ, and so does their order at the end.",
        ),
        "topk_first": either(
            every(*first),
            "holds, on both data sets of this page",
            "holds on one of the two data sets of this page" if True in first else "does not hold on this page",
            "the runs of this page do not tell",
        ),
    }
