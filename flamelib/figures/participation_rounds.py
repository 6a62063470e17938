r"""Random participation over many rounds, and beside the protocol of random check-ins, which bounds a whole window."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from flamelib.accounting.noise.gaussian import analytic_noise_std
from flamelib.accounting.sampling.random_checkins import approximate_checkins, largest_local_delta, random_checkins
from flamelib.accounting.sampling.rounds import aligned_rounds_lower, participation_rounds
from flamelib.core.vocabulary import check
from flamelib.figures.curves import Curves, draw_curves
from flamelib.figures.participation import Setting
from flamelib.figures.style import LOOKS, Pen

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


def draw(ax: Axes, record: Curves, pen: Pen) -> None:
    """Curves on doubly logarithmic axes; where a budget is infinite there is nothing to draw."""
    draw_curves(ax, record, pen)


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
