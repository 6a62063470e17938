"""Claims about self check-in: Rényi divergences, rounds of binary response and of noisy sums, many rounds, learning.

Truth is enumerated (every set of clients, every report), summed over counts of clients, or, for noisy sums, integrated
as a mixture of normal laws over all sets of clients; a formula of the document is on the other side of each comparison.
What all rounds cost is taken from the accounts of the figures, certified accounts and rules of composition.

Learning is judged by the recorded runs (``data/results``), never by fresh ones.  Runs of two schemes share their random
numbers, so an order is one of paired differences: one scheme counts as ahead of another if the 95 % confidence interval
of the mean difference is above zero.
"""

import functools
import math
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
from scipy.stats import binom, norm

from flamebook.attacks.checkin import BinaryCheckin
from flamebook.claims.blanket import evaluate
from flamebook.experiments.runs import Learning
from flamelib.accounting.checkin.approximate import gaussian_vector_rounds
from flamelib.accounting.checkin.baselines import baseline_distributed, baseline_shuffled
from flamelib.accounting.checkin.closed_form import sharper_lower_renyi
from flamelib.accounting.checkin.distributed_noise import distributed_rounds, distributed_rounds_lower, effective_rate
from flamelib.accounting.checkin.renyi import distributed_renyi_epsilon, shuffled_renyi_epsilon
from flamelib.accounting.checkin.shuffled import shuffled_rounds, shuffled_rounds_lower
from flamelib.accounting.checkin.theorems import shuffled_renyi, split_renyi, summed_renyi
from flamelib.accounting.composition.renyi import renyi_divergence, renyi_to_epsilon
from flamelib.accounting.noise.gaussian import analytic_noise_std
from flamelib.core.arrays import Reals
from flamelib.core.divergences import hockey_stick
from flamelib.core.profiles import ClonedProfile, KaryProfile

STEP = 0.01
REACH = 14.0

# --- Rényi tools -----------------------------------------------------------------------------------------------------


def gaussian_over_formula(order: int, shift: float) -> float:
    """Rényi divergence of two normal laws from their densities, over ``order shift^2 / 2``."""
    x = np.arange(-REACH, order * shift + REACH, STEP)
    found = math.log(norm.pdf(x) @ np.exp(order * (shift * x - shift**2 / 2)) * STEP) / (order - 1)
    return found / (order * shift**2 / 2)


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


def _counts(n_users: int, checkin_rate: float) -> tuple[Reals, Reals]:
    """Every number of clients that may check in, from 1, and its chance."""
    k = np.arange(1.0, n_users + 1)
    return k, np.asarray(binom.pmf(k, n_users, checkin_rate))


# --- a round of binary response --------------------------------------------------------------------------------------


def count_distance(n_users: int, checkin_rate: float, epsilon0: float) -> float:
    """Total variation of the number of messages between two neighbours, all sets and reports listed."""
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


Gain = Callable[[Reals, Reals], Reals]


def sums_over_listed(order: int, n_users: int, checkin_rate: float, noise_std: float) -> float:
    """The registered exact divergence over that of clients who are all alike but one, all sets of clients listed."""
    k, chances = _counts(n_users, checkin_rate)
    records = _worlds([-1.0] * (n_users - 1))
    moments = [_given(int(i), records, noise_std, lambda p, q: q * (p / q) ** order) for i in k]
    found = math.log(binom.pmf(0, n_users, checkin_rate) + float(chances @ moments)) / (order - 1)
    return evaluate("checkin:rdp-exact", _noisy(n_users, checkin_rate, noise_std) | {"order": order}) / found


def records_over_pair(n_users: int, checkin_rate: float, noise_std: float, epsilon: float, seed: int) -> float:
    """Delta of a round with random records on [-1, 1] over that with records all alike but one, all sets listed."""
    k, chances = _counts(n_users, checkin_rate)
    factor = math.exp(epsilon)

    def delta(others: Sequence[float]) -> float:
        records = _worlds(others)
        parts = [_given(int(i), records, noise_std, lambda p, q: np.maximum(p - factor * q, 0.0)) for i in k]
        return float(chances @ parts)

    return delta(np.random.default_rng(seed).uniform(-1, 1, n_users - 1).tolist()) / delta([-1.0] * (n_users - 1))


def kept_over_asked(n_users: int, checkin_rate: float, noise_std: float, delta: float) -> float:
    """Delta of one round at the epsilon answered for ``delta``, over that delta, all sets listed."""
    given = _noisy(n_users, checkin_rate, noise_std) | {"delta": delta, "rounds": 1, "route": "pld-exact"}
    factor = math.exp(evaluate("checkin:distributed", given))
    k, chances = _counts(n_users, checkin_rate)
    records = _worlds([-1.0] * (n_users - 1))
    parts = [_given(int(i), records, noise_std, lambda p, q: np.maximum(p - factor * q, 0.0)) for i in k]
    return float(chances @ parts) / delta


def _worlds(others: Sequence[float]) -> tuple[list[float], list[float]]:
    return [*others, 1.0], [*others, -1.0]


def _given(k: int, worlds: tuple[Sequence[float], Sequence[float]], noise_std: float, of: Gain) -> float:
    """Sum of a function of both densities of the noisy sum, given that ``k`` clients check in."""
    noise = math.sqrt(k) * noise_std
    x = np.arange(-(k + REACH * noise), k + REACH * noise, STEP * noise)
    p, q = (_mean_density(x, [sum(part) for part in combinations(records, k)], noise) for records in worlds)
    return float(of(p, q).sum()) * STEP * noise


def _mean_density(x: Reals, places: Sequence[float], noise: float) -> Reals:
    return np.asarray(np.mean([norm.pdf(x, place, noise) for place in places], axis=0))


def largest_over_pair(order: int, rate: float, noise_std: float, points: int) -> float:
    """Largest divergence over records on a grid of [-1, 1] (one common, two differing) over that of the pair.

    ``rate`` is that of the differing record, ``noise_std`` the deviation of the sum.
    """
    x = np.arange(-REACH * noise_std - 3 * order, REACH * noise_std + 3 * order, STEP * noise_std)

    def moment(common: float, one: float, other: float) -> float:
        near, left, right = (norm.logpdf(x, place, noise_std) for place in (common, one, other))
        p, q = (np.logaddexp(np.log1p(-rate) + near, math.log(rate) + own) for own in (left, right))
        return float(np.exp(order * p + (1 - order) * q).sum())

    grid = np.linspace(-1, 1, points)
    return max(moment(*records) for records in product(grid, grid, grid)) / moment(-1.0, 1.0, -1.0)


def sum_over(compute: str, order: int, n_users: int, checkin_rate: float, noise_std: float, **words: str) -> float:
    """The exact divergence of noisy sums over a registered bound."""
    given = _noisy(n_users, checkin_rate, noise_std) | {"order": order}
    return evaluate("checkin:rdp-exact", given) / evaluate(compute, given | words)


def split_over_sum(order: int, n_users: int, checkin_rate: float, noise_std: float) -> float:
    """Equation 11 over Equation 10, both as printed."""
    given = _noisy(n_users, checkin_rate, noise_std) | {"order": order, "inner": "paper"}
    return evaluate("checkin:eq-11", given) / evaluate("checkin:thm-4", given)


def moment_without_nobody(order: int, n_users: int, checkin_rate: float, noise_std: float) -> float:
    """Theorem 4's moment as printed, without the rounds in which nobody checks in."""
    given = _noisy(n_users, checkin_rate, noise_std) | {"order": order, "inner": "paper"}
    whole = math.exp((order - 1) * evaluate("checkin:thm-4", given))
    return whole - float(binom.pmf(0, n_users, checkin_rate))


def _noisy(n_users: int, checkin_rate: float, noise_std: float) -> dict[str, Any]:
    return {"n_users": n_users, "checkin_rate": checkin_rate, "noise_std": noise_std}


def removal_over_reading(order: int, others: int, rate: float, noise_std: float) -> float:
    """Moment of a round with a client, who brings its own noise, over that without, as the removal reading has it.

    The reading gives both the noise of the ``others``; ``rate`` is that of the client.
    """
    chances = binom.pmf(np.arange(order + 1), order, rate)
    noise = others * noise_std**2

    def moment(wide: float) -> float:
        return float(chances @ [_power(j, wide, noise) for j in range(order + 1)])

    return moment(noise + noise_std**2) / moment(noise)


def _power(j: int, wide: float, narrow: float) -> float:
    """Mean of the j-th power of the ratio of N(1, wide) to N(0, narrow), under the latter; by completing the square."""
    left = j / wide + (1 - j) / narrow
    if left <= 0:
        return math.inf
    exponent = j * j / wide**2 / left / 2 - j / wide / 2
    return math.exp(exponent + ((j - 1) * math.log(narrow) - j * math.log(wide) - math.log(left)) / 2)


LARGE_ORDERS = np.unique(np.geomspace(2, 3000, 60).round()).astype(int).tolist()
SMALL_ORDERS = range(2, 41)


@functools.cache
def shuffled_epsilon(scheme: str, *, delta: float | None = None, **setting: Any) -> float:
    """Epsilon after all rounds of shuffled check-in by one of the accounts of Figure 1; delta is 1/n unless given."""
    epsilon0, n, rate, rounds = (setting[name] for name in ("epsilon0", "n_users", "checkin_rate", "rounds"))
    delta = 1 / n if delta is None else delta
    given = (epsilon0, n, rate, rounds, delta)
    match scheme:
        case "baseline-closed" | "baseline-numerical":
            return baseline_shuffled(*given, scheme.removeprefix("baseline-"))
        case "thm-2" | "thm-3":
            return shuffled_renyi_epsilon(*given, scheme)
        case "thm-2-paper":
            return _composed(lambda order: shuffled_renyi(order, *given[:3], "paper"), rounds, delta, LARGE_ORDERS)
        case "checkin-any":
            return shuffled_rounds(ClonedProfile(epsilon0), n, rounds, delta=delta, checkin_rate=rate)
        case _:
            return shuffled_rounds_lower(KaryProfile(epsilon0, 2), n, rounds, delta=delta, checkin_rate=rate)


@functools.cache
def distributed_epsilon(scheme: str, *, delta: float, **setting: Any) -> float:
    """Epsilon after all rounds of distributed check-in by one of the accounts of Figure 2(a)."""
    n, rate, noise, rounds = (setting[name] for name in ("n_users", "checkin_rate", "noise_std", "rounds"))
    given = (n, rate, noise)
    match scheme:
        case "baseline-kov":
            return baseline_distributed(*given, rounds, delta, "kov")
        case "eq-10" | "eq-11":
            divergence = {"eq-10": summed_renyi, "eq-11": split_renyi}[scheme]
            return _composed(lambda order: divergence(order, *given, "paper"), rounds, delta, SMALL_ORDERS)
        case "eq-10-exact" | "renyi-cut":
            route = {"eq-10-exact": "thm-4", "renyi-cut": "rdp-exact"}[scheme]
            return distributed_renyi_epsilon(*given, rounds, delta, route)
        case _:
            return distributed_rounds(*given, rounds, delta=delta)


def vectors_epsilon(epsilon0: float, local_delta: float, **setting: Any) -> float:
    """Certified epsilon of shuffled vectors with the Gaussian noise of an approximate local budget."""
    return gaussian_vector_rounds(analytic_noise_std(2.0, epsilon0, local_delta), **setting)


def _composed(divergence: Callable[[int], float], rounds: int, delta: float, orders: Sequence[int]) -> float:
    """Epsilon after all rounds from divergences of one round, at the best of some orders."""
    return renyi_to_epsilon(lambda order: rounds * divergence(int(order)), delta, orders)


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


def in_order(crowd: str, schemes: Sequence[str]) -> bool:
    """Whether each scheme is ahead of the next one in the ``large`` or the ``small`` crowd."""
    runs = _runs(crowd)
    return all(runs.ahead(one, other) for one, other in pairwise(schemes))


def final(crowd: str, scheme: str) -> float:
    """Mean accuracy of the last models on the test images, in percent."""
    return float(_runs(crowd).final(scheme).mean())


def _runs(crowd: str) -> Learning:
    """The run of the notebook at the paper's sizes."""
    return Learning.recorded("checkin_learning", f"checkin-{crowd}.csv")
