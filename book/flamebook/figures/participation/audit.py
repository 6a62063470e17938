"""The audit of random participation, drawn: the reading ``inner``, turned gradients, and a search for worse ones."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from flamebook.attacks.gradients import Angles, Search
from flamebook.attacks.participation import Counterexample, InnerCurve, ratio
from flamebook.figures.participation.accounting import ROOM, SLACK, where
from flamebook.figures.style import Pen
from flamebook.records import words
from flamebook.statements import at_least, either, listed, percent, times, verdict

HUES = ("blue", "ochre", "purple", "vermillion")
DEPTH = 1e-12  # of the largest value: lower ones are not drawn on a logarithmic axis


def draw_angles(ax: Axes, record: Angles, pen: Pen) -> None:
    """A curve a size, with marks of its own, and the upper bound as a thin line of the same colour."""
    for hue, marker, (name, values) in zip(HUES, "osD^", record.curves.items(), strict=False):
        ax.plot(record.angles, values, color=pen.colour(hue), label=name, marker=marker, markevery=2)
        ax.axhline(record.levels[name], color=pen.colour(hue), linewidth=1.2, linestyle=(0, (6, 2)))
    top = max(record.levels.values())
    low = max(min(float(values[0]) for values in record.curves.values()) / 2, DEPTH * top)
    logarithmic = record.scale == "log" and low > 0
    ax.set(
        yscale="log" if logarithmic else "linear",
        ylim=(low if logarithmic else 0.0, (1.5 if logarithmic else 1.1) * top or None),
        xlabel="angle of the other gradients (degrees)",
        ylabel=record.ylabel,
        xticks=range(0, 181, 30),
    )


def draw_search(ax: Axes, record: Search, pen: Pen) -> None:
    """A mark a start and direction: how much of the bound the worst configuration reached, against the size."""
    spread = np.linspace(-0.3, 0.3, len(record.records))
    for column, key, mark, name in ((0, "outer", "o", "remove direction"), (1, "add", "^", "add direction")):
        ax.plot(record.records + spread, record.ratios[:, column], mark, color=pen.colour(key), alpha=0.6, markersize=5,
                label=name)  # fmt: skip
    ax.axhline(1.0, color=pen.theme.ink, linewidth=1.2, linestyle=(0, (1.2, 1.6)), label="the bound")
    ax.set(xlabel="records of the client", ylabel="divergence found / certified bound", ylim=(0, 1.08))


def draw_inner_curve(ax: Axes, record: InnerCurve, pen: Pen) -> None:
    """The curves, and the attacks with their intervals; what is not above zero is cut at the lower edge."""
    floor = max(float(record.curves["inner"].min()) / 2, DEPTH * float(record.curves["outer"].max()))
    for name, values in record.curves.items():
        ax.plot(record.epsilon, values, **pen.line(name))
    low, high = np.array([one.interval for one in record.attacks]).T
    seen = np.array([one.estimate for one in record.attacks])
    reach = np.array([seen - np.maximum(low, floor), high - seen])
    ax.errorbar([one.epsilon for one in record.attacks], np.maximum(seen, floor), np.maximum(reach, 0), fmt="o",
                color=pen.colour("green"), capsize=4, label="attack, run")  # fmt: skip
    ax.set(yscale="log" if floor else "linear", ylim=(floor, None))
    ax.set(xlabel=words("round_epsilon"), ylabel=words("round_delta"))


# --- words -----------------------------------------------------------------------------------------------------------


def attack_words(attacks: Sequence[Counterexample]) -> dict[str, str]:
    """What the runs of the attack have shown, and how often its event occurred in the last of them."""
    found = [one.refuted.holds for one in attacks]
    sizes = listed([f"$L={one.setting.n_records}$" for one, holds in zip(attacks, found, strict=True) if holds])
    last = attacks[-1]
    return {
        "attack_evidence": either(
            any(found),
            f"observes what contradicts inner, here for {sizes}",
            "observes nothing here that contradicts inner",
        ),
        "attack_rare": percent(last.seen[0] / last.repeats),
    }


def inner_words(record: InnerCurve) -> dict[str, str]:
    """Where the exact value of one data set exceeds what inner promises."""
    return {"inner_below": where(record.curves["exact"] > record.curves["inner"], "budgets")}


def angle_words(record: Angles) -> dict[str, str]:
    """For which sizes of the client equal gradients are the worst of those tried, and how much worse others are."""
    rows = [row for row in record.rows() if row[3]]
    turned = {name: ratio(most, equal) for name, equal, _, most, _ in rows if most > equal * (1 + SLACK)}
    equal = [name for name, *_ in rows if name not in turned]
    seen = [f"{angle:g} degrees for {name}" for name, _, angle, *_ in rows]
    told = [
        f"{name} ({times(turned[name])} as much at {angle:g} degrees)" for name, _, angle, *_ in rows if name in turned
    ]
    sentences = [
        f"Of the angles tried, equal gradients lose the most for {listed(equal)}." if equal else "",
        f"For {listed(told)} some turned gradients lose more." if told else "",
        f"The largest client, {rows[-1][0]}, loses {percent(rows[-1][3] / rows[-1][4], 3)} of what outer allows."
        if rows
        else "",
        "An account that takes aligned gradients for the worst case is too small by such factors." if told else "",
    ]
    return {
        "angles_found": " ".join(filter(None, sentences)) or "What is lost here is too small for a number.",
        "angles_seen": f"it is largest at {listed(seen, 'no angle')}",
    }


def verdicts(attacks: Sequence[Counterexample], angles: Angles, search: Search) -> list[tuple[object, ...]]:
    """For a table: what is stated, what is true of it at these values, and why."""
    one = next((attack for attack in attacks if attack.exact > attack.values["inner"]), attacks[0])
    inner, outer = one.values["inner"], one.values["outer"]
    name, equal, angle, most, bound = max(angles.rows(), key=lambda row: np.nan_to_num(ratio(row[3], row[1])))
    return [
        (
            "inner is a bound",
            verdict(inner * (1 + ROOM), one.exact, outer),
            f"{at_least(one.exact)} is lost, {inner:.4g} promised: {one.setting.n_records} equal gradients",
        ),
        (
            "aligned gradients are the worst case",
            verdict(equal * (1 + SLACK), most, bound),
            f"{at_least(most)} is lost at {angle:g} degrees, {equal:.4g} at 0 degrees: {name}",
        ),
        (
            "aligned gradients are the worst case for each number of others",
            "holds",
            "proven; no curve rises above its start",
        ),
        ("outer is a bound", "holds", f"proven; of {search.tried:,} configurations {search.exceeding} exceed it"),
    ]
