r"""Claims about FLAME's definitions, algorithms and index privacy: parties, padding, permutation, reports.

Outcomes and index sets are enumerated, the latter in exact fractions; what concerns the parties runs their functions.
"""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np

from flamelib.companion import enumeration
from flamelib.companion.checks import evaluate
from flamelib.companion.checks_accuracy import summation_bias
from flamelib.core.divergences import hockey_stick
from flamelib.mechanisms.coordinates import largest
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame

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


def _round(seed: int) -> tuple[flame.TopkProtocol, flame.Reports]:
    protocol = flame.TopkProtocol(20, 12, 1.0, LaplaceNoise(1.0), kept=3, padded=11, multiples=2)
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
    cumulated = [np.minimum(np.cumsum(enumeration.binomial_law(kept, p)), 1.0) for p in (0.5, up, 1 - up)]
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
    dummies = enumeration.binomial_law(padded - real, 0.5)
    worst = 0.0
    for ones in range(real):
        users = np.convolve(enumeration.binomial_law(ones, stays), enumeration.binomial_law(real - 1 - ones, 1 - stays))
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
