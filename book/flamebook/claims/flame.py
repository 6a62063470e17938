"""Claims about FLAME that no registered function states: accounting, definitions and algorithms, accuracy.

Accounting: the truth is enumerated (binary response repeated, a sample drawn in every way, one coordinate hidden among
many).  Definitions and algorithms: outcomes and index sets are enumerated, the latter in exact fractions; what concerns
the parties runs their functions.

Accuracy is judged by the notebook's run at full size (``data/results``), never by a fresh one.  A printed gap comes
from a single run.  It is compared with the mean of ours; the tolerance of its row is half the width of the interval
that would hold one more of our runs with 95 %, which a test recomputes from the same runs.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from flamebook.claims import truth
from flamebook.claims.accuracy import summation_bias
from flamebook.claims.blanket import evaluate
from flamebook.experiments.runs import Gap
from flamebook.places import RESULTS
from flamelib.accounting.composition.closed_form import least_epsilon
from flamelib.accounting.coordinates import counting, paper_bounds
from flamelib.accounting.noise.gaussian import classical_noise_std, gaussian_mechanism
from flamelib.accounting.sampling.closed_form import sampled_epsilon
from flamelib.accounting.shuffling import closed_form, numerical
from flamelib.accounting.shuffling.accuracy import summation_plan
from flamelib.core.divergences import hockey_stick
from flamelib.core.profiles import AnyProfile, KaryProfile, LaplaceProfile
from flamelib.mechanisms.coordinates import largest
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame

BOUNDS: dict[str, Callable[..., float]] = {
    "withdrawn": closed_form.bennett_withdrawn,
    "bennett": closed_form.bennett,
    "hoeffding": closed_form.hoeffding,
    "blanket": numerical.blanket_divergence,
}

# --- composition and sampling ------------------------------------------------------------------------------------


def composed_delta(times: int, part: float, epsilon: float, part_delta: float = 0.0) -> float:
    """Exact delta at ``epsilon`` of repeated binary response of budget ``part``; each tells all with ``part_delta``."""
    honest = truth.binomial_law(times, 1 / (1 + math.exp(-part)))
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


def mass_at_lower_condition(n_users: int, n_buckets: int, delta: float) -> float:
    """Blanket mass that the theorem asks for where the lemma's regime begins by its printed lower condition."""
    begins = math.sqrt(14 * math.log(2 / delta) * (n_buckets - 1) / (n_users - 1))
    return closed_form.blankets_needed(n_buckets, begins, delta) / (n_users - 1)


def sampled_theorem(
    n_users: int, n_buckets: int, epsilon0: float, sampling_rate: float, delta: float, certified: bool = False
) -> float:
    """Epsilon of Theorem 2; or Lemma 4 applied to the certified blanket divergence of the sampled users."""
    if not certified:
        return paper_bounds.sampled_kary(n_users, n_buckets, epsilon0, sampling_rate, delta).epsilon
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
    stays, others = 1 / (1 + math.exp(-epsilon0)), truth.binomial_law(padded - 1, 0.5)
    plus, minus = (_bit_added(others, chance) for chance in (stays, 1 - stays))
    return hockey_stick(plus, minus, sampled_epsilon(inner, sampling_rate))


# --- Theorem 4: two counts at once -------------------------------------------------------------------------------


def one_of_many_delta(dimension: int, padded: int, epsilon0: float, epsilon: float) -> float:
    """Exact delta of one user who reports one random coordinate, every coordinate padded to ``padded`` bits.

    The user holds +C or -C everywhere and answers by binary response; the other users hold 0 and round it at
    random, which is the blanket law, the dummies'.  The sum runs over how many coordinates show how many ones.
    """
    stays = 1 / (1 + math.exp(-epsilon0))
    blanket = truth.binomial_law(padded, 0.5)
    others = truth.binomial_law(padded - 1, 0.5)
    gains = [_bit_added(others, chance) / blanket for chance in (stays, 1 - stays)]
    total = 0.0
    for counts in truth.compositions(dimension, padded + 1):
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


def own_numbers_lower(dimension: int, kept: int, padded: int, epsilon0: float, delta: float) -> float:
    """Certified lower bound of SS-Double's epsilon at the delta of Theorem 4, ``delta`` being one coordinate's.

    Binary response; the victim holds +C everywhere or -C everywhere, all others 0, which they round to a fair bit, and
    there are no more of them than fit into a bag.  All ones of all bags are counted.
    """
    other = 1 / (1 + math.exp(epsilon0))
    count = counting.Count(dimension * padded - kept, kept, 1 - other, other)
    return float(count.epsilon(paper_bounds.double_vector(kept, 1.0, delta).delta))


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
    return paper_bounds.simple_ratio(dimension, n_users, n_buckets, epsilon0, delta)


def double_ratio(
    dimension: int, kept: float, padded: int, n_buckets: int, epsilon0: float, delta: float, hidden: bool = False
) -> float:
    """The same of SS-Double, by Theorems 3 and 4; ``hidden`` counts all coordinates, each with the gain of sampling."""
    if not hidden:
        return paper_bounds.double_ratio(dimension, kept, padded, n_buckets, epsilon0, delta)
    each = delta / (dimension + 1)
    one = paper_bounds.padded_kary(n_buckets, epsilon0, padded, kept / dimension, each).epsilon
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
    rates = [paper_bounds.simple_rate(epsilon0, d, n_users, delta) for d in points]
    return float(np.polyfit(np.log(points), np.log(np.divide(lower, rates)), 1)[0])


# --- what a round gives away, and what it gains ------------------------------------------------------------------


def count_lower(protocol: str, **inputs: float) -> float:
    """Certified lower bound by counting messages of ``simple``, ``double`` or ``disjoint`` sets.

    ``double`` is for independent inclusion, ``exactly`` for exactly k coordinates.
    """
    counted: dict[str, Callable[..., float]] = {
        "simple": counting.simple_lower, "double": counting.double_lower, "exactly": counting.exactly_lower,
        "disjoint": counting.disjoint_lower,
    }  # fmt: skip
    return float(counted[protocol](**inputs))


def subset_lower(dimension: int, kept: int, padded: int, epsilon0: float, delta: float) -> float:
    """The same for SS-Double with exactly ``kept`` random coordinates: so many biased messages among all of them."""
    return evaluate("flame:topk-lower", {
        "kept": kept, "padded": -(-dimension * padded // kept), "epsilon0": epsilon0, "delta": delta
    })  # fmt: skip


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
            values.append(paper_bounds.mean_deviation(padded, 1, *target))
            continue
        plan, sampled = summation_plan(padded, *target), int(share * padded)
        values.append(paper_bounds.padded_deviation(padded, sampled, plan.n_levels, plan.blanket_mass) * sampled)
    return float(np.polyfit(np.log(points), np.log(values), 1)[0])


# --- definitions -------------------------------------------------------------------------------------------------


def sets_agree_with_positive_part(left: list[float], right: list[float], epsilon: float) -> bool:
    """Whether the worst of all sets of outcomes is what the positive parts of single outcomes add up to."""
    outcomes = range(len(left))
    sets = [chosen for size in range(len(left) + 1) for chosen in combinations(outcomes, size)]
    worst = max(math.fsum(left[i] - math.exp(epsilon) * right[i] for i in chosen) for chosen in sets)
    return math.isclose(worst, hockey_stick(left, right, epsilon), rel_tol=1e-12)


def spread_thin_delta(outcomes: int, epsilon: float, delta: float) -> float:
    """Exact delta of a message that tells its input and adds a label, one of ``outcomes``; 0 if a single one exceeds.

    With at least ``1 / delta`` labels every single outcome satisfies the printed inequality of Definition 2.
    """
    left, right = np.zeros((2, 2 * outcomes))
    left[:outcomes] = right[outcomes:] = 1 / outcomes
    if (left > math.exp(epsilon) * right + delta).any():
        return 0.0
    return hockey_stick(left, right, epsilon)


def told_order_delta(epsilon0: float, epsilon: float) -> float:
    """Exact delta of one Laplace message that can be traced to its sender: what a shuffler that talks leaves."""
    return -math.expm1((epsilon - epsilon0) / 2)


# --- Algorithm 1 and equation 1 ----------------------------------------------------------------------------------


def debiasing_is_exact(values: list[float], n_levels: int, blanket_mass: float, lowest: int) -> bool:
    """Whether equation (1) leaves no bias when replacements are drawn from ``lowest``..``n_levels``."""
    return abs(summation_bias(values, n_levels, blanket_mass, lowest)) < 1e-12


# --- parties -----------------------------------------------------------------------------------------------------


def _round(seed: int) -> tuple[flame.FlameTopk, flame.Reports]:
    protocol = flame.FlameTopk(20, 12, 1.0, LaplaceNoise(1.0), kept=3, padded=11, multiples=2)
    rng = np.random.default_rng(seed)
    return protocol, flame.user(protocol, rng.normal(size=(20, 12)), rng)


def shuffler_is_blind(seed: int) -> bool:
    """Whether the shuffler moves messages without reading them: renamed messages come out in the same places."""
    protocol, reports = _round(seed)
    names = np.arange(reports.messages.size, dtype=float)
    first, second = (
        flame.shuffler(protocol, flame.Reports(reports.senders, reports.places, sent), np.random.default_rng(seed))
        for sent in (names, 3 * names + 1000)
    )
    marks, renamed = np.asarray(first.bags, dtype=float), np.asarray(second.bags, dtype=float)
    users = np.isin(marks, names)
    return bool(np.array_equal(3 * marks[users] + 1000, renamed[users]) and (first.overflow == second.overflow).all())


def analyzer_ignores_order(seed: int) -> bool:
    """Whether every bag has the public size, and permuting bags, each on its own, leaves the estimate unchanged."""
    protocol, reports = _round(seed)
    rng = np.random.default_rng(seed)
    bags = np.asarray(flame.shuffler(protocol, reports, rng).bags, dtype=float)
    plain, mixed = (flame.analyzer(protocol, some)[0] for some in (bags, rng.permuted(bags, axis=1)))
    return bags.shape == (protocol.dimension, protocol.padded) and bool(np.allclose(plain, mixed, rtol=1e-12))


def divisor_share(n_users: int, dimension: int, kept: int, divisor: float) -> float:
    """How much of the mean update SS-Double's estimate shows when the sum is divided by ``divisor``."""
    chance = sum(0 in chosen for chosen in combinations(range(dimension), kept)) / math.comb(dimension, kept)
    return n_users * chance / divisor


# --- permuting whole messages ------------------------------------------------------------------------------------


def linked_delta(kept: int, vectors: int, epsilon0: float, epsilon: float) -> float:
    """Delta that is certainly lost if each user's ``kept`` coordinates stay together in one permuted message.

    One user holds +C or -C everywhere, all the others and the dummies, ``vectors`` messages in all, send blanket noise;
    the analyzer looks for the message with most entries above one half.  Exact for that count.
    """
    up = 1 - math.exp(-epsilon0 / 2) / 2
    cumulated = [np.minimum(np.cumsum(truth.binomial_law(kept, p)), 1.0) for p in (0.5, up, 1 - up)]
    others = cumulated[0] ** (vectors - 1)
    plus, minus = (np.diff(others * own, prepend=0.0) for own in cumulated[1:])
    return hockey_stick(plus, minus, epsilon)


# --- padding -----------------------------------------------------------------------------------------------------


def padded_over_full(real: int, padded: int, epsilon0: float, epsilon: float, absent: bool) -> float:
    """Exact delta of a padded bag of bits over the blanket bound for ``padded`` users; at most 1 if padding is sound.

    ``real`` users by binary response, the rest dummies; the user's value is replaced, or, with ``absent``, the user by
    a dummy.  Worst over the other users' values and both directions.
    """
    stays = 1 / (1 + math.exp(-epsilon0))
    dummies = truth.binomial_law(padded - real, 0.5)
    worst = 0.0
    for ones in range(real):
        users = np.convolve(truth.binomial_law(ones, stays), truth.binomial_law(real - 1 - ones, 1 - stays))
        others = np.convolve(users, dummies)
        for chances in ((stays, 0.5), (1 - stays, 0.5)) if absent else ((stays, 1 - stays),):
            laws = [np.append(others, 0.0) * (1 - c) + np.insert(others, 0, 0.0) * c for c in chances]
            worst = max(worst, *(hockey_stick(p, q, epsilon) for p, q in (laws, laws[::-1])))
    inputs = {"randomizer": "kary", "n_buckets": 2, "epsilon0": epsilon0, "n_users": padded, "epsilon": epsilon}
    return worst / evaluate("blanket:lem-reduction", inputs)


def overflow_exponent(n_users: int, rate: float, padded: int) -> float:
    """Logarithm to base 10 of the chance that more than ``padded`` of the users report one coordinate at random."""
    logs = [
        math.lgamma(n_users + 1) - math.lgamma(m + 1) - math.lgamma(n_users - m + 1)
        + m * math.log(rate) + (n_users - m) * math.log1p(-rate)
        for m in range(padded + 1, n_users + 1)
    ]  # fmt: skip
    return float(np.logaddexp.reduce(logs)) / math.log(10)


def overflow_chance(n_users: int, rate: float, padded: int) -> float:
    """That chance itself."""
    return float(10.0 ** overflow_exponent(n_users, rate, padded))


def agreeing_overflow(n_users: int, dimension: int, kept: int, padded: int) -> int:
    """Messages beyond ``padded`` in a coordinate of SS-Topk when all users hold the same update."""
    chosen = largest(np.tile(np.arange(1.0, dimension + 1), (n_users, 1)), kept)
    return max(0, int(chosen.sum(axis=0).max()) - padded)


def dummies_fit(dimension: int, kept: float, n_users: int, padded: int) -> bool:
    """Whether Algorithm 3's number of dummy vectors is whole."""
    missing = Fraction(dimension * padded) - n_users * Fraction(str(kept))
    return (missing / Fraction(str(kept))).denominator == 1


def filling_completes(missing: list[int], kept: int) -> bool:
    """Whether Algorithm 3 can always give each dummy vector ``kept`` coordinates that still lack some: every choice."""
    lacking = [j for j, count in enumerate(missing) if count]
    if not lacking:
        return True
    choices = combinations(lacking, kept)
    after = [[count - (j in chosen) for j, count in enumerate(missing)] for chosen in choices]
    return bool(after) and all(filling_completes(rest, kept) for rest in after)


# --- index privacy -----------------------------------------------------------------------------------------------


def posterior(dimension: int, kept: int, multiples: int) -> Fraction:
    """Chance that the reported index 0 is a true one: every set of true indices, every set among which it hides."""
    true = reported = Fraction(0)
    for top in combinations(range(dimension), kept):
        others = combinations(sorted(set(range(dimension)) - set(top)), kept * (multiples - 1))
        shown = [0 in top or 0 in hiding for hiding in others]
        reported += Fraction(sum(shown), len(shown))
        true += 0 in top
    return true / reported


def posterior_share(dimension: int, kept: int, multiples: int) -> float:
    """That chance times the multiples; 1 if it is what the paper says."""
    return float(posterior(dimension, kept, multiples) * multiples)


def definition_3_holds(dimension: int, kept: int, multiples: int, index_privacy: float) -> bool:
    """Whether both inequalities of Definition 3 hold for the reported index."""
    chance, prior, ratio = posterior(dimension, kept, multiples), Fraction(kept, dimension), Fraction(index_privacy)
    return chance <= ratio * prior and 1 - chance >= (1 - prior) / ratio


def set_ratio(dimension: int, kept: int, multiples: int) -> float:
    """Posterior over prior of the whole set of true indices, given the report."""
    return math.comb(dimension, kept) / math.comb(kept * multiples, kept)


def report_budget(dimension: int, kept: int, multiples: int) -> float:
    """Largest log-likelihood ratio of a report of index sets between two sets of true indices."""
    reports = list(combinations(range(dimension), kept * multiples))
    tops = list(combinations(range(dimension), kept))
    admits = {top: {report for report in reports if set(top) <= set(report)} for top in tops}
    return 0.0 if all(admits[top] == admits[tops[0]] for top in tops) else math.inf


def report_fits(dimension: int, kept: int) -> bool:
    """Whether a user has enough coordinates for the multiples at which Proposition 2 promises a ratio of 1."""
    return math.ceil(Fraction(dimension, kept)) * kept <= dimension


def top_after_mapping_agrees(update: list[float], kept: int, clip_norm: float) -> bool:
    """Whether the largest absolute values are the same before and after the map to [0, 1], as Algorithm 4 has it."""
    before = np.array([update])
    mapped = (np.clip(before, -clip_norm, clip_norm) + clip_norm) / (2 * clip_norm)
    return bool((largest(before, kept) == largest(mapped, kept)).all())


# --- accuracy ----------------------------------------------------------------------------------------------------

DEVIATIONS = 2.0
GAPS = {  # method ahead, method behind
    "claim-4.07": ("double", "simple"),
    "claim-55.5": ("topk", "double"),
    "claim-33.94": ("topk", "dp:claimed"),
    "claim-60.7": ("topk", "ldp:Gaussian"),
    "claim-1.48": ("np", "topk:dense"),
}
_RUNS = {"fresh": "flame-accuracy.csv", "repeated": "flame-repeated.csv"}
_SWEEPS = {
    "epsilon0": "flame-local-budget.csv",
    "padded": "flame-padding.csv",
    "sampling_rate": "flame-sampling.csv",
    "server_step": "flame-steps.csv",
}


def _finals(file: str, *axis: str) -> pd.DataFrame:
    """Accuracy of the last models, in percent: a row a run, a column a method, or a method and a value of a sweep."""
    runs = pd.read_csv(RESULTS / "flame_learning" / file)
    last = runs[runs["round"] == runs["round"].max()]
    return 100 * last.pivot(index="run", columns=["method", *axis], values="accuracy")


def recorded_gap(claim: str, noise: str) -> Gap:
    """A printed gap as we measured it, with ``fresh`` or with ``repeated`` noise."""
    finals, (ahead, behind) = _finals(_RUNS[noise]), GAPS[claim]
    return Gap.of((finals[ahead] - finals[behind]).to_numpy())


def gap(claim: str, noise: str) -> float:
    """Mean of the differences in final accuracy, in percentage points."""
    return recorded_gap(claim, noise).mean


def in_order(methods: Sequence[str]) -> bool:
    """Whether each method is ahead of the one before, by two standard deviations of the difference; noise is fresh."""
    finals = _finals(_RUNS["fresh"])
    gaps = [finals[ahead] - finals[behind] for behind, ahead in pairwise(methods)]
    return all(one.mean() > DEVIATIONS * one.std() for one in gaps)


def final(method: str) -> float:
    """Mean accuracy of the last models on the users' own test images, in percent; noise is fresh."""
    return float(_finals(_RUNS["fresh"])[method].mean())


def best(experiment: str, method: str) -> float:
    """The value of a sweep at which a method is most accurate on average."""
    return float(_finals(_SWEEPS[experiment], experiment)[method].mean().idxmax())


def rises(experiment: str, method: str, downwards: bool = False) -> bool:
    """Whether mean accuracy rises (or falls) from each value of a sweep to the next."""
    steps = np.diff(_finals(_SWEEPS[experiment], experiment)[method].mean())
    return bool((steps < 0).all() if downwards else (steps > 0).all())


def step_gain(method: str, over: str) -> float:
    """Accuracy of one estimate over another's, in points, both without noise and at the longest step tried."""
    finals = _finals(_SWEEPS["server_step"], "server_step")
    return float((finals[method] - finals[over]).iloc[:, -1].mean())
