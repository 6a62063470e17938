r"""Claims about self check-in: Rényi divergences, the number of clients, a round of binary response.

Truth is enumerated (every set of clients, every report) or summed over counts of clients; a formula of the document is
on the other side of each comparison.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from flamelib.accounting.checkin.closed_form import sharper_lower_renyi
from flamelib.accounting.composition.renyi import renyi_divergence, renyi_to_epsilon
from flamelib.companion.checks import evaluate
from flamelib.core.divergences import hockey_stick
from flamelib.figures.checkin_attack import BinaryCheckin

Real = NDArray[np.float64]

STEP = 0.01
REACH = 14.0

# --- Rényi tools -----------------------------------------------------------------------------------------------------


def gaussian_over_formula(order: int, shift: float) -> float:
    """Rényi divergence of two normal laws from their densities, over ``order shift^2 / 2``."""
    x = np.arange(-REACH, order * shift + REACH, STEP)
    found = math.log(norm.pdf(x) @ np.exp(order * (shift * x - shift**2 / 2)) * STEP) / (order - 1)
    return found / (order * shift**2 / 2)


def pure_over_registry(order: int, epsilon: float) -> float:
    """Divergence of binary response from its two probabilities, over the registered largest one."""
    return _response(order, epsilon) / evaluate("checkin:def-3", {"order": order, "epsilon": epsilon})


def adaptive_over_sum(outcomes: int, order: int, seed: int) -> float:
    """Divergence of two rounds, the second one chosen by the first's outcome, over the sum of the worst."""
    first = _laws(2, outcomes, seed)
    second = [_laws(2, outcomes, seed + 1 + seen) for seen in range(outcomes)]
    both = [np.outer(first[world], np.ones(outcomes)) * [pair[world] for pair in second] for world in (0, 1)]
    parts = _divergence(first, order) + max(_divergence(pair, order) for pair in second)
    return _divergence([law.ravel() for law in both], order) / parts


def converted_over_asked(outcomes: int, delta: float, orders: Sequence[int], seed: int) -> float:
    """Exact delta of two random laws at the epsilon that Lemma 2 gives for ``delta``, over that delta."""
    left, right = _laws(2, outcomes, seed)
    epsilon = renyi_to_epsilon(lambda order: renyi_divergence(left, right, order), delta, orders)
    return hockey_stick(left, right, epsilon) / delta


def leaked_divergence(order: int, delta: float) -> float:
    """Rényi divergence of a mechanism that is (0, delta)-private: it tells a bit with probability ``delta``."""
    zero, one = [delta, 0.0, 1 - delta], [0.0, delta, 1 - delta]
    return renyi_divergence(zero, one, order) if hockey_stick(zero, one, 0.0) <= delta else math.nan


def pure_over_lemma_3(order: int, epsilon: float, delta: float) -> float:
    """Divergence of binary response, which is private with any ``delta`` too, over what Lemma 3 allows."""
    return _response(order, epsilon) / evaluate("checkin:lem-3", {"order": order, "epsilon": epsilon, "delta": delta})


def tail_over_bound(tail: str, n_users: int, checkin_rate: float, slack: float) -> float:
    """Exact probability of a tail of the count over Lemma 4: ``lower_tail`` or ``upper_tail``."""
    mean = n_users * checkin_rate
    low, high = math.floor((1 - slack) * mean), math.ceil((1 + slack) * mean)
    law = binom(n_users, checkin_rate)
    exact = float(law.cdf(low) if tail == "lower_tail" else law.sf(high - 1))
    return exact / evaluate("checkin:lem-4", _count(n_users, checkin_rate) | {"slack": slack}, tail)


def mean_over_split(divergence: float, n_users: int, checkin_rate: float, slack: float) -> float:
    """Mean of ``exp(divergence / k)`` over the count, 1 at 0, over what Lemma 5 gives for it."""
    k, chances = _counts(n_users, checkin_rate)
    mean = float(binom.pmf(0, n_users, checkin_rate) + chances @ np.exp(divergence / k))
    given = _count(n_users, checkin_rate) | {"divergence": divergence, "slack": slack}
    return mean / evaluate("checkin:lem-5", given)


def _response(order: int, epsilon: float) -> float:
    truth = 1 / (1 + math.exp(-epsilon))
    return renyi_divergence([truth, 1 - truth], [1 - truth, truth], order)


def _divergence(laws: Sequence[Any], order: int) -> float:
    left, right = laws
    return renyi_divergence(left, right, order)


def _laws(count: int, outcomes: int, seed: int) -> list[Any]:
    return list(np.random.default_rng(seed).dirichlet(np.ones(outcomes), count))


def _count(n_users: int, checkin_rate: float) -> dict[str, Any]:
    return {"n_users": n_users, "checkin_rate": checkin_rate}


def _counts(n_users: int, checkin_rate: float) -> tuple[Real, Real]:
    """Every number of clients that may check in, from 1, and its chance."""
    k = np.arange(1.0, n_users + 1)
    return k, np.asarray(binom.pmf(k, n_users, checkin_rate))


# --- a round of binary response --------------------------------------------------------------------------------------


def count_distance(n_users: int, checkin_rate: float, epsilon0: float) -> float:
    """Total variation of the number of messages between two neighbors, all sets and reports listed."""
    clients = BinaryCheckin(n_users, checkin_rate, epsilon0)
    worlds = [clients.view([0] * (n_users - 1) + [bit]) for bit in (0, 1)]
    counts = [[sum(p for (k, _), p in world.items() if k == size) for size in range(n_users + 1)] for world in worlds]
    return hockey_stick(counts[0], counts[1], 0.0)


def theorem_1_over_listed(order: int, n_users: int, checkin_rate: float, epsilon0: float, inner: str) -> float:
    """Theorem 1 for binary response over the divergence of the listed views."""
    given = _count(n_users, checkin_rate) | {"epsilon0": epsilon0}
    return evaluate("checkin:thm-1", given | {"order": order, "inner": inner}) / BinaryCheckin(**given).renyi(order)


def theorem_1_ratio(order: int, n_users: int, checkin_rate: float, epsilon0: float) -> float:
    """What exceeds 1 in the moment of Theorem 1 with the inner rate gamma, over the same with k/n."""
    given = _count(n_users, checkin_rate) | {"epsilon0": epsilon0, "order": order}
    paper, exact = (evaluate("checkin:thm-1", given | {"inner": inner}) for inner in ("paper", "exact"))
    return math.expm1((order - 1) * paper) / math.expm1((order - 1) * exact)


def order_two(n_users: int, checkin_rate: float, epsilon0: float) -> float:
    """Divergence of order 2 of binary response, all others equal, in closed form."""
    return math.log1p(checkin_rate / n_users * 4 * math.sinh(epsilon0 / 2) ** 2)


def order_two_over_listed(n_users: int, checkin_rate: float, epsilon0: float) -> float:
    """That closed form over the divergence of the listed views."""
    return order_two(n_users, checkin_rate, epsilon0) / BinaryCheckin(n_users, checkin_rate, epsilon0).renyi(2)


def order_two_over(compute: str, n_users: int, checkin_rate: float, epsilon0: float, **words: str) -> float:
    """That closed form over a registered answer of order 2; above 1 the answer is below the truth."""
    given = {"n_users": n_users, "checkin_rate": checkin_rate, "epsilon0": epsilon0, "order": 2}
    return order_two(n_users, checkin_rate, epsilon0) / evaluate(compute, given | words)


def binary_over(compute: str, order: int, n_users: int, checkin_rate: float, epsilon0: float, **words: str) -> float:
    """Exact divergence of binary response, summed over counts, over a registered answer for any randomizer."""
    given = {"order": order, "n_users": n_users, "checkin_rate": checkin_rate, "epsilon0": epsilon0}
    return evaluate("checkin:thm-1", given | {"inner": "exact"}) / evaluate(compute, given | words)


def sharper_over_exact(n_users: int, checkin_rate: float, epsilon0: float) -> float:
    """The lower bound of order 2 without a split over the exact divergence of binary response."""
    given = {"order": 2, "epsilon0": epsilon0, "n_users": n_users, "checkin_rate": checkin_rate}
    exact = evaluate("checkin:thm-1", given | {"inner": "exact"})
    return sharper_lower_renyi(2, epsilon0, n_users, checkin_rate) / exact


def worst_over_equal(n_users: int, checkin_rate: float, epsilon0: float, epsilon: float) -> float:
    """Exact delta of binary response, the largest over all data sets of the others, over that with all others equal."""
    clients = BinaryCheckin(n_users, checkin_rate, epsilon0)
    found = []
    for ones in range(n_users):
        others = [1] * ones + [0] * (n_users - 1 - ones)
        one, zero = (clients.view([*others, bit]) for bit in (1, 0))
        found.append(max(hockey_stick(one, zero, epsilon), hockey_stick(zero, one, epsilon)))
    return max(found) / max(found[0], found[-1])
