r"""What self check-in is compared with: a bound for one round with approximate budgets, sampling, strong composition.

The document does not spell its baselines out; the readings are stated here.  Adjacency: one client's record is
replaced.
"""

import math
from collections.abc import Mapping
from typing import Any

from flamelib.accounting.composition.closed_form import advanced_composition, kairouz_oh_viswanath
from flamelib.accounting.composition.renyi import least_renyi, renyi_to_epsilon
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.sampling.closed_form import sampled_epsilon
from flamelib.accounting.shuffling.closed_form import clones_closed
from flamelib.accounting.shuffling.numerical import clones_2021
from flamelib.core.binomial import quantiles
from flamelib.core.guarantees import ARITHMETIC, Gives, RestsOn
from flamelib.core.logspace import product_above
from flamelib.core.statements import states

# Rényi orders that are tried; every one gives a valid epsilon.
BASELINE_ORDERS = (*range(2, 65), *(int(64 * 2 ** (i / 8)) for i in range(1, 45)))


@states("checkin", "baseline-distributed", item="Section 4.2, baseline of Figure 2, noisy sums", gives="upper",
        rests_on="proven", words={"route": ("kov", "drv")})  # fmt: skip
def baseline_distributed(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, route: str = "kov"
) -> float:
    r"""Epsilon of distributed check-in by quantiles, the Gaussian mechanism, sampling and composition (upper).

    Quarters of delta go to composition, to the rounds, and to the two tails of the number of clients: in no round are
    there fewer than :math:`l_1` or more than :math:`l_2`, so that a round is the Gaussian mechanism of sensitivity
    :math:`2/l_1` and noise :math:`\sigma/\sqrt{l_1}`, sampled at the rate :math:`l_2/n`.  The answer is ``inf`` where a
    round without clients is too likely.

    Parameters
    ----------
    noise_std
        Standard deviation of each client's own noise; its report has norm at most 1.
    route
        Composition by Kairouz, Oh, Viswanath (``kov``) or by Dwork, Rothblum, Vadhan (``drv``).

    Source: Liew, Hasegawa, Takahashi 2022, Section 4.2.

    Examples
    --------
    >>> one = {"n_users": 600_000, "checkin_rate": 1e-3, "noise_std": 1.0, "rounds": 10**5, "delta": 1e-8}
    >>> [round(baseline_distributed(**one, route=route), 3) for route in ("kov", "drv")]
    [2.077, 2.191]
    """
    share = delta / 4 / rounds
    if checkin_rate == 0 or delta == 1:
        return 0.0
    low, high = quantiles(n_users, checkin_rate, share)
    if low == 0 or share == 0:
        return math.inf
    rate = high / n_users
    epsilon = gaussian_mechanism(2 / math.sqrt(low), noise_std, delta=min(1.0, share / rate))
    return _composed(sampled_epsilon(epsilon, rate) if epsilon < math.inf else math.inf, rounds, delta / 4, route)


def _gives(arguments: Mapping[str, Any]) -> Gives:
    return Gives.VALUE if arguments.get("slack_delta") is None else Gives.UPPER


def _rests_on(arguments: Mapping[str, Any]) -> RestsOn:
    """The closed form of the clones is cited."""
    return RestsOn.CITED if arguments.get("route", "closed") == "closed" else RestsOn.PROVEN


def _assumes(arguments: Mapping[str, Any]) -> str:
    return ARITHMETIC if arguments.get("route") == "numerical" else ""


@states("checkin", "baseline-shuffled", item="Section 4.1, baseline of Figure 1, shuffled reports", gives=_gives,
        rests_on=_rests_on, assumes=_assumes, words={"route": ("closed", "numerical")})  # fmt: skip
def baseline_shuffled(
    epsilon0: float, n_users: int, checkin_rate: float, rounds: int, delta: float, route: str = "closed",
    slack_delta: float | None = None,
) -> float:  # fmt: skip
    r"""Epsilon of shuffled check-in by clones, sampling and composition (a value, or upper with ``slack_delta``).

    Half of what remains of delta goes to composition (Kairouz, Oh, Viswanath), half to the rounds; :math:`n\gamma`
    reports are shuffled in each and the rate is :math:`\gamma`.  With ``slack_delta``, a part of delta, the number of
    reports is not taken to be its mean: except with that chance it lies between two quantiles in every round, of which
    the lower one is shuffled and the upper one gives the rate.

    Parameters
    ----------
    route
        Clones in closed form, as the document has them, or computed.
    slack_delta
        At ``delta`` or more, the answer is that of the local budget alone.

    Source: Liew, Hasegawa, Takahashi 2022, Section 4.1, after Girgis et al. 2021 and Feldman, McMillan, Talwar 2021.

    Examples
    --------
    >>> one = {"epsilon0": 1.0, "n_users": 10**7, "checkin_rate": 1e-3, "rounds": 10**5, "delta": 1e-7}
    >>> round(baseline_shuffled(**one), 3), round(baseline_shuffled(**one, slack_delta=5e-8), 3)
    (0.5, 0.583)
    """
    if checkin_rate == 0 or delta == 1:
        return 0.0
    left = delta - (slack_delta or 0.0)
    share = left / 2 / rounds
    if share <= 0:
        return product_above(rounds, epsilon0)
    low = high = max(1, round(n_users * checkin_rate))
    if slack_delta is not None:
        low, high = quantiles(n_users, checkin_rate, slack_delta / rounds / 2)
        if not high:
            return 0.0  # that anybody comes is within the slack
    rate = high / n_users
    each = _shuffled(epsilon0, low, min(1.0, share / rate), route)
    return min(product_above(rounds, epsilon0), _composed(sampled_epsilon(each, rate), rounds, left / 2, "kov"))


@states("checkin", "sec-4.1-generic", item="Section 4.1, the route for approximate local randomizers", gives="value")
def generic_route(
    epsilon0: float, n_users: int, checkin_rate: float, rounds: int, delta: float, slack_delta: float,
    local_delta: float = 0.0,
) -> float:  # fmt: skip
    r"""Epsilon by shuffling, sampling, Lemma 3 and Lemma 2 (a value, **not a bound**: Lemma 3 points the wrong way).

    The mean number :math:`k = n\gamma` of reports is shuffled (clones in closed form at ``slack_delta``, to which a
    local delta adds :math:`(e^\varepsilon+1)(1+e^{-\varepsilon_0}/2)k\delta_0`) and sampled at the rate
    :math:`\gamma`; Lemma 3 makes a Rényi divergence of that.  The smaller ``slack_delta``, the smaller the answer,
    down to less than the truth.

    Parameters
    ----------
    slack_delta
        Failure probability of shuffling in a round.

    Source: Liew, Hasegawa, Takahashi 2022, Section 4.1.

    Examples
    --------
    >>> one = {"epsilon0": 1.0, "n_users": 10**4, "checkin_rate": 0.01, "rounds": 10**5, "delta": 1e-5}
    >>> [round(generic_route(**one, slack_delta=slack), 3) for slack in (1e-6, 1e-9, 1e-12)]
    [0.064, 0.014, 0.006]
    """
    if checkin_rate == 0:
        return 0.0
    k = max(1, round(n_users * checkin_rate))
    each = _shuffled(epsilon0, k, slack_delta, "closed")
    gained = (math.exp(each) + 1) * (1 + math.exp(-epsilon0) / 2) * k * local_delta if local_delta else 0.0
    failure = min(1.0, checkin_rate * (slack_delta + gained))
    epsilon = sampled_epsilon(each, checkin_rate)
    return renyi_to_epsilon(lambda order: rounds * least_renyi(int(order), epsilon, failure), delta, BASELINE_ORDERS)


def _shuffled(epsilon0: float, k: int, delta: float, route: str) -> float:
    """Epsilon of k shuffled reports, never above the local one."""
    if k < 2:
        return epsilon0
    found = clones_closed(epsilon0, k, delta) if route == "closed" else clones_2021(epsilon0, k, delta=delta)
    return min(epsilon0, found)


def _composed(epsilon: float, rounds: int, slack: float, route: str) -> float:
    """Strong composition; the deltas of the rounds are accounted for."""
    if slack <= 0 or epsilon == math.inf:
        return math.inf
    compose = kairouz_oh_viswanath if route == "kov" else advanced_composition
    return compose(epsilon=epsilon, delta=0.0, times=rounds, slack_delta=slack).epsilon
