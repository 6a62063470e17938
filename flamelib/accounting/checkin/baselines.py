r"""Baselines of self check-in: amplification by shuffling in one round, subsampling, strong composition.

The document does not specify its baselines; the assumptions are stated here.  Adjacency: one client's record is
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

# Rényi orders over which the conversion is minimised.
BASELINE_ORDERS = (*range(2, 65), *(int(64 * 2 ** (i / 8)) for i in range(1, 45)))


@states("checkin", "baseline-distributed", item="Section 4.2, baseline of Figure 2, noisy sums", gives="upper",
        rests_on="proven", words={"route": ("kov", "drv")})  # fmt: skip
def baseline_distributed(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, route: str = "kov"
) -> float:
    r"""Epsilon of distributed check-in by quantiles, the Gaussian mechanism, sampling and composition (upper).

    Delta is split in quarters over composition, the rounds, and the two tails of the number K of clients:
    :math:`l_1 \le K \le l_2` in every round, so that a round is the Gaussian mechanism of sensitivity :math:`2/l_1`
    and noise :math:`\sigma/\sqrt{l_1}`, sampled at the rate :math:`l_2/n`.  The answer is ``inf`` where
    :math:`l_1 = 0`.

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
    round_delta = delta / 4 / rounds
    if checkin_rate == 0 or delta == 1:
        return 0.0
    min_clients, max_clients = quantiles(n_users, checkin_rate, round_delta)
    if min_clients == 0 or round_delta == 0:
        return math.inf
    rate = max_clients / n_users
    epsilon = gaussian_mechanism(2 / math.sqrt(min_clients), noise_std, delta=min(1.0, round_delta / rate))
    return _compose(sampled_epsilon(epsilon, rate) if epsilon < math.inf else math.inf, rounds, delta / 4, route)


def _gives(arguments: Mapping[str, Any]) -> Gives:
    return Gives.VALUE if arguments.get("slack_delta") is None else Gives.UPPER


def _rests_on(arguments: Mapping[str, Any]) -> RestsOn:
    """Cited where the closed form of the clones is used."""
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

    :math:`\delta - ` ``slack_delta`` is split in halves over composition (Kairouz, Oh, Viswanath) and the rounds;
    :math:`n\gamma` reports are shuffled in each and the rate is :math:`\gamma`.  With ``slack_delta`` the number of
    reports is not replaced by its mean: except with that probability it lies between two quantiles in every round, the
    lower of which is shuffled and the upper of which gives the rate.

    Parameters
    ----------
    route
        Amplification by clones: ``closed`` form, as in the document, or ``numerical``.
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
    delta_left = delta - (slack_delta or 0.0)
    round_delta = delta_left / 2 / rounds
    if round_delta <= 0:
        return product_above(rounds, epsilon0)
    min_clients = max_clients = max(1, round(n_users * checkin_rate))
    if slack_delta is not None:
        min_clients, max_clients = quantiles(n_users, checkin_rate, slack_delta / rounds / 2)
        if not max_clients:
            return 0.0  # P[K > 0] is within the slack
    rate = max_clients / n_users
    epsilon = _amplify(epsilon0, min_clients, min(1.0, round_delta / rate), route)
    return min(product_above(rounds, epsilon0), _compose(sampled_epsilon(epsilon, rate), rounds, delta_left / 2, "kov"))


@states("checkin", "sec-4.1-generic", item="Section 4.1, the route for approximate local randomizers", gives="value")
def generic_route(
    epsilon0: float, n_users: int, checkin_rate: float, rounds: int, delta: float, slack_delta: float,
    local_delta: float = 0.0,
) -> float:  # fmt: skip
    r"""Epsilon by shuffling, sampling, Lemma 3 and Lemma 2 (a value, **not a bound**: Lemma 3 points the wrong way).

    The mean number :math:`k = n\gamma` of reports is shuffled (clones in closed form at ``slack_delta``, to which a
    local delta adds :math:`(e^\varepsilon+1)(1+e^{-\varepsilon_0}/2)k\delta_0`) and sampled at the rate
    :math:`\gamma`; Lemma 3 converts the result to a Rényi divergence.  The answer decreases with ``slack_delta``, to
    below the true epsilon.

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
    amplified = _amplify(epsilon0, k, slack_delta, "closed")
    added = (math.exp(amplified) + 1) * (1 + math.exp(-epsilon0) / 2) * k * local_delta if local_delta else 0.0
    failure = min(1.0, checkin_rate * (slack_delta + added))
    epsilon = sampled_epsilon(amplified, checkin_rate)
    return renyi_to_epsilon(lambda order: rounds * least_renyi(int(order), epsilon, failure), delta, BASELINE_ORDERS)


def _amplify(epsilon0: float, k: int, delta: float, route: str) -> float:
    """Epsilon of k shuffled reports, at most ``epsilon0``."""
    if k < 2:
        return epsilon0
    epsilon = clones_closed(epsilon0, k, delta) if route == "closed" else clones_2021(epsilon0, k, delta=delta)
    return min(epsilon0, epsilon)


def _compose(epsilon: float, rounds: int, slack: float, route: str) -> float:
    """Strong composition of pure budgets: the deltas of the rounds are budgeted by the caller."""
    if slack <= 0 or epsilon == math.inf:
        return math.inf
    compose = kairouz_oh_viswanath if route == "kov" else advanced_composition
    return compose(epsilon=epsilon, delta=0.0, times=rounds, slack_delta=slack).epsilon
