r"""Claims about what self check-in costs after all rounds: figures, certified accounts, rules of composition."""

import functools
import math
from typing import Any

import numpy as np
from scipy.stats import binom

from flamelib.accounting.checkin.shuffled import shuffled_rounds
from flamelib.accounting.checkin.summed import distributed_rounds, distributed_rounds_lower, effective_rate
from flamelib.companion.checks import evaluate
from flamelib.core.profiles import KaryProfile
from flamelib.figures.checkin import Distributed, Shuffled


@functools.cache
def shuffled_epsilon(scheme: str, **setting: Any) -> float:
    """Epsilon after all rounds of shuffled check-in by one of the schemes of the figures."""
    return Shuffled(**setting).epsilon(scheme)


@functools.cache
def distributed_epsilon(scheme: str, **setting: Any) -> float:
    """Epsilon after all rounds of distributed check-in by one of the schemes of the figures."""
    return Distributed(**setting).epsilon(scheme)


def shuffled_over(scheme: str, other: str, **setting: Any) -> float:
    """Epsilon by one scheme over epsilon by another."""
    return shuffled_epsilon(scheme, **setting) / shuffled_epsilon(other, **setting)


def distributed_over(scheme: str, other: str, **setting: Any) -> float:
    """The same for distributed check-in."""
    return distributed_epsilon(scheme, **setting) / distributed_epsilon(other, **setting)


def rounds_delta(rounds: int, epsilon: float, **setting: Any) -> float:
    """Certified delta after all rounds of noisy sums."""
    return distributed_rounds(**setting, rounds=rounds, epsilon=epsilon)


def rounds_lower(rounds: int, epsilon: float, **setting: Any) -> float:
    """Delta that clients who are all alike but one certainly lose over all rounds."""
    return distributed_rounds_lower(**setting, rounds=rounds, epsilon=epsilon)


def uncounted_dropout(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, dropout: float
) -> float:
    """Epsilon that is certainly lost with dropouts over the certified one without."""
    lost = distributed_rounds_lower(n_users, effective_rate(checkin_rate, dropout), noise_std, rounds, delta=delta)
    return lost / distributed_rounds(n_users, checkin_rate, noise_std, rounds, delta=delta)


def plain_rounds(epsilon0: float, n_users: int, rounds: int, delta: float) -> float:
    """Certified epsilon of rounds of shuffled binary response, everybody there in each."""
    return shuffled_rounds(KaryProfile(epsilon0, 2), n_users, rounds, delta=delta)


def generic_over_lower(slack_delta: float, **setting: Any) -> float:
    """Epsilon by the route through Lemma 3 over what binary response certainly loses, all others equal."""
    return evaluate("checkin:sec-4.1-generic", setting | {"slack_delta": slack_delta}) / shuffled_epsilon(
        "lower", **setting
    )


def baseline_of_everybody(epsilon0: float, n_users: int, checkin_rate: float, rounds: int, delta: float) -> float:
    """Strong composition as if the messages of all clients were shuffled, whoever checks in."""
    each = {"epsilon0": epsilon0, "n_users": n_users, "delta": delta / (2 * rounds * checkin_rate)}
    sampled = math.log1p(checkin_rate * math.expm1(evaluate("clones:2021-closed", each)))
    together = {"epsilon": sampled, "times": rounds, "slack_delta": delta / 2}
    return evaluate("checkin:strong-kov", together, "epsilon")


def composed_over_asked(rule: str, epsilon: float, times: int, slack_delta: float) -> float:
    """Exact delta of binary answers at the epsilon of a rule of composition, over the delta asked for."""
    given = {"epsilon": epsilon, "delta": 0.0, "times": times, "slack_delta": slack_delta}
    lies = np.arange(times + 1)
    losses = (times - 2 * lies) * epsilon - evaluate(rule, given, "epsilon")
    chances = binom.pmf(lies, times, 1 / (1 + math.exp(epsilon)))
    return float(chances @ -np.expm1(-np.maximum(losses, 0.0))) / slack_delta


def kov_over_drv(epsilon: float, times: int, slack_delta: float) -> float:
    """Epsilon of the newer rule of composition over that of the older one."""
    given = {"epsilon": epsilon, "delta": 0.0, "times": times, "slack_delta": slack_delta}
    newer, older = (evaluate(f"checkin:strong-{rule}", given, "epsilon") for rule in ("kov", "drv"))
    return newer / older
