"""Random check-ins, the earlier protocol of independent participation in a window of time slots.

Each user joins with some probability and then chooses one of ``window`` slots uniformly; the server updates its model
once a slot, from one of those who chose it.  The bound covers the *entire* protocol, in which a user contributes at
most once, under replace-one adjacency, and is not comparable with one round of random participation.  Standard library
only.
"""

import math

from flamelib.accounting.composition.closed_form import Budget
from flamelib.core.logspace import exp_or_inf, log_expm1
from flamelib.core.statements import states
from flamelib.core.vocabulary import check


@states("participation", "cmp-random-checkins",
        item="Section 5.4, comparison with random check-ins in a fixed window (Balle et al. 2020)",
        gives="value")  # fmt: skip
def random_checkins(epsilon0: float, participation_rate: float, window: int, delta: float) -> float:
    r"""Epsilon of random check-ins in a fixed window with an :math:`\varepsilon_0`-LDP randomizer (value).

    .. math:: \varepsilon = p\,(e^{\varepsilon_0}-1)\sqrt{\frac{2e^{\varepsilon_0}\log(1/\delta)}{m}}
              + \frac{p^2e^{\varepsilon_0}(e^{\varepsilon_0}-1)^2}{2m}

    The formula as cited, ``inf`` at delta 0, not proven here.  No minimum with the local budget is taken.

    Source: Balle, Kairouz, McMahan, Thakkar, Thakurta 2020, fixed window; compared in Hasircioglu, Gunduz 2022.

    Examples
    --------
    >>> f"{random_checkins(1.0, 0.1, 1000, 1e-6):.6f}"
    '0.047131'
    """
    if delta == 0:
        return math.inf
    log_term = math.log(participation_rate) + log_expm1(epsilon0) + (epsilon0 - math.log(window)) / 2
    spread = exp_or_inf(log_term + math.log(-2 * math.log(delta)) / 2) if delta < 1 else 0.0
    return spread + exp_or_inf(2 * log_term) / 2


def approximate_checkins(
    epsilon0: float, participation_rate: float, window: int, delta: float, slack_delta: float
) -> Budget:
    r"""Guarantee of random check-ins with a randomizer that is :math:`(\varepsilon_0,\delta_0)`-LDP only (value).

    The formula of :func:`random_checkins` at :math:`8\varepsilon_0`, and :math:`\delta + m(e^{\varepsilon}+1)\delta_1`
    for a :math:`\delta_1` = ``slack_delta`` in (0, 1), vacuous where it is 1 or more; it requires a :math:`\delta_0` of
    at most :func:`largest_local_delta`.  Stated as cited, not proven here.

    Source: Balle, Kairouz, McMahan, Thakkar, Thakurta 2020, fixed window.
    """
    factor = 8  # factor of the budget in the reduction of an approximate randomizer to a pure one
    checked = check(
        epsilon0=epsilon0, participation_rate=participation_rate, window=window, delta=delta, slack_delta=slack_delta
    )
    raised = min(factor * checked["epsilon0"], 700.0)
    if raised < factor * checked["epsilon0"]:
        return Budget(math.inf, 1.0)
    epsilon = random_checkins(raised, participation_rate, window, delta)
    return Budget(epsilon, checked["delta"] + checked["window"] * (exp_or_inf(epsilon) + 1) * checked["slack_delta"])


def largest_local_delta(epsilon0: float, slack_delta: float) -> float:
    r"""Largest :math:`\delta_0` of the randomizer that :func:`approximate_checkins` allows, rounded down (a value).

    .. math:: \delta_0 \le \frac{(1-e^{-\varepsilon_0})\,\delta_1}
              {4e^{\varepsilon_0}\big(2+\log(2/\delta_1)/\log(1/(1-e^{-5\varepsilon_0}))\big)}

    Source: Balle, Kairouz, McMahan, Thakkar, Thakurta 2020.
    """
    checked = check(epsilon0=epsilon0, slack_delta=slack_delta)
    budget, slack = float(checked["epsilon0"]), float(checked["slack_delta"])
    per_trial = -math.log(-math.expm1(-5 * budget))
    trials = 2 + (math.log(2 / slack) / per_trial if per_trial > 0 else math.inf)
    return -math.expm1(-budget) * math.exp(-budget) * slack / 4 / trials
