r"""Claims about FLAME's accounting that no registered function states: composition, sampling, routes, corollaries.

The truth is enumerated: binary response repeated, a sample drawn in every way, one coordinate hidden among many.
"""

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flamelib.accounting.composition.closed_form import least_epsilon
from flamelib.accounting.coordinates import counting, printed
from flamelib.accounting.coordinates.certified import double_revealed
from flamelib.accounting.noise.gaussian import classical_noise_std, gaussian_mechanism
from flamelib.accounting.sampling.closed_form import sampled_epsilon
from flamelib.accounting.shuffling import closed_form, numerical
from flamelib.accounting.shuffling.accuracy import summation_plan
from flamelib.companion import enumeration
from flamelib.companion.checks import evaluate
from flamelib.core.divergences import hockey_stick
from flamelib.core.profiles import AnyProfile, KaryProfile, LaplaceProfile

BOUNDS: dict[str, Callable[..., float]] = {
    "withdrawn": closed_form.bennett_withdrawn,
    "bennett": closed_form.bennett,
    "hoeffding": closed_form.hoeffding,
    "blanket": numerical.blanket_divergence,
}

# --- composition and sampling ------------------------------------------------------------------------------------


def composed_delta(times: int, part: float, epsilon: float, part_delta: float = 0.0) -> float:
    """Exact delta at ``epsilon`` of repeated binary response of budget ``part``; each tells all with ``part_delta``."""
    honest = enumeration.binomial_law(times, 1 / (1 + math.exp(-part)))
    gain = (2 * np.arange(times + 1) - times) * part
    pure = math.fsum(chance * -math.expm1(epsilon - g) for chance, g in zip(honest, gain, strict=True) if g > epsilon)
    return -math.expm1(times * math.log1p(-part_delta) + math.log1p(-pure))


def beyond_basic(epsilon: float, times: int) -> float:
    """Exact delta that is left at the epsilon of basic composition."""
    return composed_delta(times, epsilon, evaluate("flame:lem-2", {"epsilon": epsilon, "times": times}))


def composed_over_bound(compute: str, count: str, inputs: dict[str, Any]) -> float:
    """Exact delta of the composed mechanisms over the delta that a registered statement gives at its epsilon.

    ``count`` names the input that says how many are composed; ``epsilon`` and ``delta`` are those of each.
    """
    epsilon, delta = (evaluate(compute, inputs, field) for field in ("epsilon", "delta"))
    return composed_delta(int(inputs[count]), inputs["epsilon"], epsilon, inputs["delta"]) / delta


def sampled_over_bound(part: float, epsilon: float, sampled: int, population: int) -> float:
    """Exact delta, over what Lemma 4 gives: a noisy bit says whether the sample holds a 1, and one member does or not.

    Every sample is listed.  The largest ratio is 1: the lemma is tight.
    """
    stays = 1 / (1 + math.exp(-part))
    samples = list(combinations(range(population), sampled))
    hit = sum(0 in sample for sample in samples) / len(samples)
    with_one = [hit * stays + (1 - hit) * (1 - stays), hit * (1 - stays) + (1 - hit) * stays]
    without = [1 - stays, stays]
    inputs = {"epsilon": epsilon, "delta": hockey_stick([stays, 1 - stays], without, epsilon)}
    found = {f: evaluate("flame:lem-4", inputs | {"sampled": sampled, "population": population}, f) for f in inputs}
    pairs = ((with_one, without), (without, with_one))
    return max(hockey_stick(p, q, found["epsilon"]) for p, q in pairs) / found["delta"]


# --- Lemma 1 and Theorem 3 ---------------------------------------------------------------------------------------


def lemma_over_certified(n_users: int, n_buckets: int, epsilon0: float, delta: float) -> float:
    """Epsilon of Lemma 1 over the one of the certified blanket divergence; at least 1 for a valid bound."""
    inputs = {"n_users": n_users, "n_buckets": n_buckets, "epsilon0": epsilon0, "delta": delta}
    return evaluate("flame:lem-1", inputs) / evaluate("blanket:lem-reduction", inputs | {"randomizer": "kary"})


def printed_lemma(n_users: int, n_buckets: int, epsilon0: float, delta: float) -> float:
    """Lemma 1 as printed, without the second branch of the theorem that it quotes."""
    return math.sqrt(14 * math.log(2 / delta) * (math.exp(epsilon0) + n_buckets - 1) / (n_users - 1))


def mass_at_lower_condition(n_users: int, n_buckets: int, delta: float) -> float:
    """Blanket mass that the theorem asks for where the lemma's regime begins by its printed lower condition."""
    begins = math.sqrt(14 * math.log(2 / delta) * (n_buckets - 1) / (n_users - 1))
    return closed_form.blankets_needed(n_buckets, begins, delta) / (n_users - 1)


def sampled_theorem(
    n_users: int, n_buckets: int, epsilon0: float, sampling_rate: float, delta: float, certified: bool = False
) -> float:
    """Epsilon of Theorem 2; or Lemma 4 applied to the certified blanket divergence of the sampled users."""
    if not certified:
        return printed.sampled_kary(n_users, n_buckets, epsilon0, sampling_rate, delta).epsilon
    users = math.floor(n_users * sampling_rate + 1e-9)
    inner = numerical.blanket_divergence(KaryProfile(epsilon0, n_buckets), users, delta=delta / sampling_rate)
    return sampled_epsilon(inner, sampling_rate)


def theorem_2_over_certified(**inputs: float) -> float:
    """The first over the second; at least 1 for a valid bound."""
    given: dict[str, Any] = inputs
    return sampled_theorem(**given) / sampled_theorem(**given, certified=True)


def always_reported_delta(padded: int, epsilon0: float, sampling_rate: float, delta: float) -> float:
    """Exact delta of one coordinate that a user surely reports, at the epsilon that sampling would leave.

    Binary response among dummies; before sampling the certified blanket epsilon at ``delta / sampling_rate``.
    """
    inner = numerical.blanket_divergence(KaryProfile(epsilon0, 2), padded, delta=delta / sampling_rate)
    stays, others = 1 / (1 + math.exp(-epsilon0)), enumeration.binomial_law(padded - 1, 0.5)
    plus, minus = (_bit_added(others, chance) for chance in (stays, 1 - stays))
    return hockey_stick(plus, minus, sampled_epsilon(inner, sampling_rate))


# --- Theorem 4: two counts at once -------------------------------------------------------------------------------


def one_of_many_delta(dimension: int, padded: int, epsilon0: float, epsilon: float) -> float:
    """Exact delta of one user who reports one random coordinate, every coordinate padded to ``padded`` bits.

    The user holds +C or -C everywhere and answers by binary response; the other users hold 0 and round it at
    random, which is the blanket law, the dummies'.  The sum runs over how many coordinates show how many ones.
    """
    stays = 1 / (1 + math.exp(-epsilon0))
    blanket = enumeration.binomial_law(padded, 0.5)
    others = enumeration.binomial_law(padded - 1, 0.5)
    gains = [_bit_added(others, chance) / blanket for chance in (stays, 1 - stays)]
    total = 0.0
    for counts in enumeration.compositions(dimension, padded + 1):
        ways = math.factorial(dimension) // math.prod(map(math.factorial, counts))
        chance = ways * math.prod(p**c for p, c in zip(blanket.tolist(), counts, strict=True))
        plus, minus = (float(np.dot(counts, gain)) / dimension for gain in gains)
        total += chance * max(plus - math.exp(epsilon) * minus, 0.0)
    return total


def _bit_added(law: NDArray[np.float64], chance: float) -> NDArray[np.float64]:
    """The law of a count with one more bit."""
    return np.append(law, 0.0) * (1 - chance) + np.insert(law, 0, 0.0) * chance


def beyond_theorem_4(dimension: int, padded: int, epsilon0: float) -> float:
    """That delta at the epsilon of Theorem 4, whose own delta is 0 there.

    Each coordinate is sampled at the rate ``1 / dimension`` from a mechanism of budget ``epsilon0``.
    """
    each = sampled_epsilon(epsilon0, 1 / dimension)
    return one_of_many_delta(dimension, padded, epsilon0, double_epsilon(1, each))


def double_epsilon(kept: float, epsilon: float) -> float:
    """Epsilon of Theorem 4 for coordinates without a delta."""
    return evaluate("flame:thm-4", {"kept": kept, "epsilon": epsilon, "delta": 0}, "epsilon")


def double_route(
    route: str, bound: str, dimension: int, kept: float, padded: int, epsilon0: float, delta: float
) -> float:
    """Epsilon of SS-Double with Laplace noise by a sound use of Lemmas 3 and 4, or by the paper's count.

    ``hidden``: the index set stays secret, each of all ``dimension`` coordinates has the gain of sampling.
    ``revealed``: it is known, ``kept`` coordinates count, without that gain.  ``paper``: 2 ``kept`` with it.
    """
    count = {"hidden": dimension, "revealed": kept, "paper": 2 * kept}[route]
    rate = 1.0 if route == "revealed" else kept / dimension
    each = delta / (count + 1)
    inner = BOUNDS[bound](LaplaceProfile(epsilon0), padded, delta=each / rate)
    return least_epsilon(sampled_epsilon(inner, rate), count, each)


# --- Figure 3 ----------------------------------------------------------------------------------------------------


def simple_ratio(dimension: int, n_users: int, n_buckets: int, epsilon0: float, delta: float) -> float:
    """Local over central epsilon of SS-Simple with k-ary response, by Lemma 1 and Theorem 1."""
    return printed.simple_ratio(dimension, n_users, n_buckets, epsilon0, delta)


def double_ratio(
    dimension: int, kept: float, padded: int, n_buckets: int, epsilon0: float, delta: float, hidden: bool = False
) -> float:
    """The same of SS-Double, by Theorems 3 and 4; ``hidden`` counts all coordinates, each with the gain of sampling."""
    if not hidden:
        return printed.double_ratio(dimension, kept, padded, n_buckets, epsilon0, delta)
    each = delta / (dimension + 1)
    one = printed.padded_kary(n_buckets, epsilon0, padded, kept / dimension, each).epsilon
    return kept * epsilon0 / least_epsilon(one, dimension, each)


def composition_ratio(dimension: int, epsilon0: float, slack_delta: float) -> float:
    """Local budget by basic composition over the same by advanced composition: what a ratio gains with no shuffler."""
    inputs = {"epsilon": epsilon0, "delta": 0, "times": dimension, "slack_delta": slack_delta}
    return dimension * epsilon0 / evaluate("flame:lem-3", inputs, "epsilon")


# --- corollaries -------------------------------------------------------------------------------------------------


def vector_epsilon(
    epsilon0: float, dimension: int, messages: int, delta: float, sampling_rate: float | None = None
) -> float:
    """Epsilon of a vector for any randomizer by the generic Bennett bound: Theorem 1, or Theorems 3 and 4.

    ``messages`` in a coordinate; the second where ``sampling_rate`` is given.
    """
    rate = 1.0 if sampling_rate is None else sampling_rate
    count = dimension if sampling_rate is None else 2 * rate * dimension
    each = delta / (count + 1)
    inner = closed_form.bennett(AnyProfile(epsilon0), messages, delta=each / rate)
    return least_epsilon(sampled_epsilon(inner, rate), count, each)


def vector_slope(along: str, start: float, stop: float, fixed: dict[str, float]) -> float:
    """Slope of that epsilon on doubly logarithmic axes, seven points."""
    points = [float(f"{x:.3g}") for x in np.geomspace(start, stop, 7)]
    given: list[dict[str, Any]] = [fixed | {along: int(x) if x >= 10 else x} for x in points]
    return float(np.polyfit(np.log(points), np.log([vector_epsilon(**one) for one in given]), 1)[0])


def growth_over_corollary(n_users: int, epsilon0: float, delta: float, start: float, stop: float) -> float:
    """Slope in d of a certified lower bound for SS-Simple over what Corollary 2 puts into its O; 0 if it is right."""
    points = [int(d) for d in np.geomspace(start, stop, 3)]
    lower = [float(counting.simple_lower(d, n_users, epsilon0, delta=delta)) for d in points]
    rates = [printed.simple_rate(epsilon0, d, n_users, delta) for d in points]
    return float(np.polyfit(np.log(points), np.log(np.divide(lower, rates)), 1)[0])


# --- what a round gives away, and what it gains ------------------------------------------------------------------


def count_lower(protocol: str, **inputs: float) -> float:
    """Certified lower bound by counting messages: ``simple``, ``double`` (independent inclusion), ``disjoint`` sets."""
    counted: dict[str, Callable[..., float]] = {
        "simple": counting.simple_lower, "double": counting.double_lower, "disjoint": counting.disjoint_lower
    }  # fmt: skip
    return float(counted[protocol](**inputs))


def subset_lower(dimension: int, kept: int, padded: int, epsilon0: float, delta: float) -> float:
    """The same for SS-Double with exactly ``kept`` random coordinates: so many biased messages among all of them."""
    return evaluate("flame:topk-lower", {
        "kept": kept, "padded": -(-dimension * padded // kept), "epsilon0": epsilon0, "delta": delta
    })  # fmt: skip


def revealed_upper(kept: float, padded: int, epsilon0: float, delta: float) -> float:
    """Certified upper bound for SS-Double with exactly ``kept`` random coordinates: their sets published."""
    return float(double_revealed(kept, padded, epsilon0, delta))


def amplification(
    protocol: str, local: float, dimension: int, kept: float, n_users: int, padded: int, delta: float, bound: str
) -> float:
    """Local budget of a vector over its epsilon by the paper's route; the budget is split evenly."""
    inputs = {
        "protocol": protocol, "dimension": dimension, "n_users": n_users, "delta": delta, "bound": bound,
        "route": "paper",
    }  # fmt: skip
    if protocol == "simple":
        return local / evaluate("flame:account", inputs | {"epsilon0": local / dimension})
    return local / evaluate("flame:account", inputs | {"epsilon0": local / kept, "kept": kept, "padded": padded})


def double_over_simple(local_per_coordinate: float, dimension: int, sampling_rate: float, **inputs: float) -> float:
    """Amplification of SS-Double over that of SS-Simple at the same local budget of a vector, by the paper's route."""
    given: dict[str, Any] = inputs
    local, kept = local_per_coordinate * dimension, sampling_rate * dimension
    double, simple = (
        amplification(protocol, local, dimension, kept, bound="withdrawn", **given) for protocol in ("double", "simple")
    )
    return double / simple


# --- baselines ---------------------------------------------------------------------------------------------------


def classical_gaussian(epsilon: float, delta: float, answers: str) -> float:
    """Exact ``delta`` at ``epsilon``, or ``epsilon`` at ``delta``, of the noise that the classical formula asks for."""
    noise_std = classical_noise_std(1.0, epsilon, delta)
    if answers == "delta":
        return float(gaussian_mechanism(1.0, noise_std, epsilon=epsilon))
    return float(gaussian_mechanism(1.0, noise_std, delta=delta))


# --- Proposition 1 -----------------------------------------------------------------------------------------------


def deviation_slope(along: str, start: float, stop: float, fixed: dict[str, float], share: float = 1.0) -> float:
    """Slope of the standard deviation of a coordinate's sum against ``along`` (``padded``, ``epsilon`` or ``tail``).

    As Proposition 1 counts it, or, where ``share`` of the messages are users' and the rest dummies, exactly, for the
    same best number of levels.  ``tail`` stands for ``log 1/delta``.
    """
    points = np.geomspace(start, stop, 7)
    values = []
    for point in points:
        given: dict[str, Any] = fixed | ({"delta": math.exp(-point)} if along == "tail" else {along: float(point)})
        padded, target = int(given["padded"]), (given["epsilon"], given["delta"])
        if share == 1:
            values.append(printed.mean_deviation(padded, 1, *target))
            continue
        plan, sampled = summation_plan(padded, *target), int(share * padded)
        values.append(printed.padded_deviation(padded, sampled, plan.n_levels, plan.blanket_mass) * sampled)
    return float(np.polyfit(np.log(points), np.log(values), 1)[0])
