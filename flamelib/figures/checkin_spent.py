r"""Accuracy of models trained with self check-in against the budget spent on them, accountant by accountant.

A model tested after t rounds stands at the epsilon that an accountant finds for t rounds, at one failure probability.
Points of a sphere keep :math:`\varepsilon_0` for certain, so that any bound on shuffled check-in holds for them; with
Gaussian noise the *sum* of the messages is accounted for (distributed check-in), at the same accuracy.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from flamelib.accounting.checkin.baselines import baseline_distributed, baseline_shuffled
from flamelib.accounting.checkin.shuffled import checkin_shuffled
from flamelib.accounting.checkin.summed import distributed
from flamelib.figures.checkin_learning import GAUSSIAN, Setting, shown
from flamelib.figures.curves import Parameters, Values, to_csv
from flamelib.figures.participation_learning import Learning
from flamelib.figures.style import LOOKS, Pen

SHUFFLED = {"clones": "checkin-any", "numerical": "baseline-numerical", "thm-2": "thm-2", "thm-3": "thm-3"}
DISTRIBUTED = {"pld": "losses", "rdp-exact": "renyi-cut", "thm-4": "eq-10-exact", "kov": "baseline-kov"}


@dataclass(frozen=True, slots=True)
class Spent:
    """Accuracy of one scheme, and what several accountants say that it cost.

    Attributes
    ----------
    scheme : str
    rounds : array of shape (points,)
        After how many rounds models were tested, from the first test after the start.
    accuracy : array of shape (repeats, points)
        Share of the test images told right.
    epsilon : mapping from accountant to array of shape (points,)
    parameters : mapping
    """

    scheme: str
    rounds: Values
    accuracy: Values
    epsilon: Mapping[str, Values]
    parameters: Parameters

    def to_csv(self) -> str:
        """One row an accountant, test and run."""
        rows = (
            (self.scheme, name, int(count), epsilon, run, share)
            for name, spent in self.epsilon.items()
            for i, (count, epsilon) in enumerate(zip(self.rounds, spent, strict=True))
            for run, share in enumerate(self.accuracy[:, i])
        )
        return to_csv(["scheme", "accountant", "round", "epsilon", "run", "accuracy"], rows)


def compute_spent(record: Learning, scheme: str, points: int = 6) -> Spent:
    """What a scheme had cost at ``points`` of the tests by every accountant of its kind, with delta = 1/n.

    Tests stand in about equal ratios from the first to the last.  The check-in rate that counts is
    the effective one: users that are lost on the way are hidden, too.
    """
    setting = Setting.of(record.parameters)
    delta = 1 / setting.n_users
    some = np.unique(np.geomspace(1, len(record.rounds) - 1, points).round().astype(int))
    rounds = record.rounds[some]
    known = DISTRIBUTED if scheme == GAUSSIAN else SHUFFLED
    return Spent(
        scheme,
        rounds.astype(float),
        record.curves[scheme][:, some],
        {name: np.array([_epsilon(setting, name, int(count), delta) for count in rounds]) for name in known},
        {**setting.as_parameters(), "delta": delta},
    )


def _epsilon(setting: Setting, route: str, rounds: int, delta: float) -> float:
    n_users, rate = setting.n_users, setting.effective_rate
    if route in DISTRIBUTED:
        summed = baseline_distributed if route == "kov" else distributed
        return float(summed(n_users, rate, setting.noise_std / setting.clip_norm, rounds, delta, route))
    shuffled = baseline_shuffled if route == "numerical" else checkin_shuffled
    return float(shuffled(setting.epsilon0, n_users, rate, rounds, delta, route))


def spent_rows(found: Spent) -> list[tuple[object, ...]]:
    """For a table: an accountant, epsilon after the last round, and the accuracy that it bought."""
    looks = SHUFFLED | DISTRIBUTED
    last = shown(100 * found.accuracy[:, -1])
    return [(LOOKS[looks[name]].label, spent[-1], last) for name, spent in found.epsilon.items()]


def draw_spent(ax: Axes, found: Spent, pen: Pen) -> None:
    """Mean accuracy against epsilon, one curve an accountant."""
    ax.set(
        xlabel=r"central budget $\varepsilon$ after the rounds so far",
        ylabel="accuracy on the test images (%)",
        xscale="log",
    )
    mean = 100 * found.accuracy.mean(axis=0)
    for name, spent in found.epsilon.items():
        ax.plot(spent, mean, **pen.line((SHUFFLED | DISTRIBUTED)[name]))
