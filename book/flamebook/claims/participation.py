"""Claims about random participation: tools, the theorem's readings, baselines, rounds, learning.

Truth is enumerated for laws on few outcomes, integrated from densities as they are defined, or bounded from below by
boxes; no formula of the theorem is on that side.

Learning is judged by the notebook's run at the paper's sizes (``data/results``), never by fresh ones.  Runs of two
schemes share their random numbers, so an order is one of paired differences: one scheme counts as ahead of another if
the 95 % confidence interval of the mean difference is above zero.
"""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.stats import binom, norm

from flamebook.attacks.participation import EqualGradients, delta_of_term, grow_gram_matrices, search_gradients
from flamebook.claims.blanket import evaluate
from flamebook.experiments.runs import Learning
from flamelib.accounting.sampling.adaptive_gradients import draws_delta, equal_draws
from flamelib.accounting.sampling.participation_round import ParticipationRound
from flamelib.accounting.sampling.rounds import aligned_rounds_lower, participation_rounds
from flamelib.core.arrays import Reals
from flamelib.core.divergences import hockey_stick

Density = Callable[[float], float]

_FILES = {
    "sec-5.5": "participation-own.csv",
    "exp-6.1": "participation-small.csv",
    "exp-6.2": "participation-large.csv",
}

# --- definitions and tools -------------------------------------------------------------------------------------------


def event_over_divergence(outcomes: int, epsilon: float, seed: int) -> float:
    """Best event of all over the sum of positive parts, for two random laws; each event is listed."""
    left, right = _laws(2, outcomes, seed)
    events = np.array(list(product((0, 1), repeat=outcomes)))
    best = float((events @ (left - math.exp(epsilon) * right)).max())
    return best / hockey_stick(left, right, epsilon)


def privacy_is_divergence(outcomes: int, epsilon: float, seed: int) -> bool:
    """Whether the definition over all events and both orders holds at the larger divergence and at nothing smaller."""
    left, right = _laws(2, outcomes, seed)
    orders = ((left, right), (right, left))
    events = np.array(list(product((0, 1), repeat=outcomes)))
    delta = max(hockey_stick(one, other, epsilon) for one, other in orders)
    excess = max(float((events @ (one - math.exp(epsilon) * other)).max()) for one, other in orders)
    return delta * (1 - 1e-9) < excess <= delta * (1 + 1e-12)


def convexity_gap(outcomes: int, share: float, epsilon: float, seed: int) -> float:
    """Relative difference of both sides of Theorem A.1 for three random laws."""
    common, one, other = _laws(3, outcomes, seed)
    after = math.log1p(share * math.expm1(epsilon))
    kept = math.exp(after - epsilon)
    left = hockey_stick((1 - share) * common + share * one, (1 - share) * common + share * other, after)
    return abs(left / (share * hockey_stick(one, (1 - kept) * common + kept * other, epsilon)) - 1)


def _laws(count: int, outcomes: int, seed: int) -> list[Reals]:
    return list(np.random.default_rng(seed).dirichlet(np.ones(outcomes), count))


def gaussian_over_registry(sensitivity: float, noise_std: float, epsilon: float) -> float:
    """Divergence of two normal laws by quadrature over the one of the registered Gaussian mechanism."""
    shift = sensitivity / noise_std
    found = _divergence(_mixture([1.0], [shift]), _mixture([1.0], [0.0]), epsilon, shift)
    given = {"sensitivity": sensitivity, "noise_std": noise_std, "epsilon": epsilon}
    return found / evaluate("participation:thm-2.4", given)


def sampled_over_bound(rate: float, noise_std: float, epsilon: float) -> float:
    """Larger divergence of the sampled Gaussian mechanism over what Theorem 2.5 says; at most 1 if it holds."""
    before = math.log1p(math.expm1(epsilon) / rate)
    inner = evaluate("participation:thm-2.4", {"sensitivity": 1, "noise_std": noise_std, "epsilon": before})
    pair = _mixture([1 - rate, rate], [0.0, 1 / noise_std]), _mixture([1.0], [0.0])
    truth = max(_divergence(one, other, epsilon, 1 / noise_std) for one, other in (pair, pair[::-1]))
    return truth / (rate * inner)


def _mixture(weights: Sequence[float], centres: Sequence[float]) -> Density:
    weight, centre = np.asarray(weights, dtype=float), np.asarray(centres, dtype=float)
    return lambda x: float(weight @ np.exp(-((x - centre) ** 2) / 2)) / math.sqrt(2 * math.pi)


def _divergence(left: Density, right: Density, epsilon: float, far: float) -> float:
    low, high = min(far, 0.0) - 12.0, max(far, 0.0) + 12.0
    breaks = np.linspace(low, high, 4 * round(high - low) + 1)
    factor = math.exp(epsilon)
    pieces = (
        quad(lambda x: max(left(x) - factor * right(x), 0.0), a, b, epsabs=1e-16, epsrel=1e-9)[0]
        for a, b in pairwise(breaks.tolist())
    )
    return math.fsum(pieces)


# --- Algorithm 1 -----------------------------------------------------------------------------------------------------


def estimate_bias(participation_rate: float, record_rate: float, sizes: Sequence[int], divided_by: str) -> float:
    """Largest bias of the estimated mean gradient, every coin of every client listed.

    ``divided_by``: ``all`` records of available clients, or the records that were ``drawn``.
    """
    gradients = [np.sin(np.arange(size) + 1.0 + 7 * at) for at, size in enumerate(sizes)]
    everything, total = np.concatenate(gradients), 0.0
    for joins in product((0, 1), repeat=len(sizes)):
        for drawn in product((0, 1), repeat=len(everything)):
            kept = np.array(drawn) * np.repeat(joins, sizes)
            chance = _chance(joins, participation_rate) * _chance(drawn, record_rate)
            scale = participation_rate * record_rate * len(everything) if divided_by == "all" else max(1, kept.sum())
            total += chance * float(kept @ everything) / scale
    return abs(total - float(everything.mean()))


def _chance(coins: Sequence[int], rate: float) -> float:
    return float(np.prod([rate if coin else 1 - rate for coin in coins]))


def true_size_over_bound(n_records: int, epsilon: float, **rates: Any) -> float:
    """Delta of a client whose gradients are all zero, if the *true* size is divided by, over the theorem's delta.

    The noise is then divided by ``n_records`` or by one less, and its size tells which.
    """
    x = np.linspace(0, 12 / (n_records - 1), 100_001)
    left, right = (2 * n * norm.pdf(n * x) * (x[1] - x[0]) for n in (n_records - 1, n_records))
    factor = math.exp(epsilon)
    truth = max(float(np.maximum(one - factor * two, 0.0).sum()) for one, two in ((left, right), (right, left)))
    return truth / ParticipationRound(n_records=n_records, **rates).delta("outer", epsilon)


def average_change(n_records: int, record_rate: float) -> float:
    """Largest change of an average over drawn records by one more, over ``C / (q L)``; the others are opposite."""
    drawn = np.arange(n_records)
    before = np.where(drawn > 0, -1.0, 0.0)
    after = (1.0 - drawn) / (drawn + 1)
    return float(np.abs(after - before).max()) * n_records * record_rate


# --- Theorem 4.1 -----------------------------------------------------------------------------------------------------


def outer_over_quadrature(epsilon: float, **setting: Any) -> float:
    """The reading ``outer`` over the average of divergences by quadrature, each from the laws given j others."""
    return _over_quadrature("outer", ParticipationRound(**setting), epsilon, add=False)


def add_over_quadrature(epsilon: float, **setting: Any) -> float:
    """The add direction over the same average, laws exchanged and the others opposite."""
    return _over_quadrature("add", ParticipationRound(**setting), epsilon, add=True)


def _over_quadrature(scheme: str, one: ParticipationRound, epsilon: float, add: bool) -> float:
    p, q, ratio = one.participation_rate, one.record_rate, one.clip_norm / one.noise_std
    total = 0.0
    for others in range(one.n_records):
        place = -others * ratio if add else others * ratio
        with_it = _mixture([1 - p, p * (1 - q), p * q], [0.0, place, place + ratio])
        without = _mixture([1 - p, p], [0.0, place])
        pair = (without, with_it) if add else (with_it, without)
        total += binom.pmf(others, one.n_records - 1, q) * _divergence(*pair, epsilon, place)
    return one.delta(scheme, epsilon) / total


def aligned_over_quadrature(epsilon: float, **setting: Any) -> float:
    """The reading ``aligned`` over the exact divergence of equal gradients, by quadrature."""
    one = ParticipationRound(**setting)
    return one.delta("aligned", epsilon) / EqualGradients(one).exact(epsilon)


def exact_over(scheme: str, epsilon: float, **setting: Any) -> float:
    """Exact divergence of equal gradients over a scheme's delta; above 1 the scheme promises too much."""
    one = ParticipationRound(**setting)
    return EqualGradients(one).exact(epsilon) / one.delta(scheme, epsilon)


def turned_over(scheme: str, angle: float, epsilon: float, **setting: Any) -> float:
    """Delta that turned gradients certainly lose, over a scheme's delta."""
    one = ParticipationRound(**setting)
    return one.turned(angle, epsilon) / one.delta(scheme, epsilon)


def added_over(scheme: str, angle: float, epsilon: float, **setting: Any) -> float:
    """The same in the add direction alone."""
    one = ParticipationRound(**setting)
    draws = equal_draws(one.n_records, one.record_rate, one.clip_norm / one.noise_std, angle)
    found = draws_delta(draws, one.participation_rate, one.record_rate, epsilon, add=True)
    return found / one.delta(scheme, epsilon)


def over(scheme: str, other: str, epsilon: float, **setting: Any) -> float:
    """Delta of one scheme over that of another."""
    one = ParticipationRound(**setting)
    return one.delta(scheme, epsilon) / one.delta(other, epsilon)


def largest_over(scheme: str, other: str, epsilons: Sequence[float], settings: Sequence[dict[str, Any]]) -> float:
    """The largest such ratio over budgets and settings."""
    return max(over(scheme, other, epsilon, **setting) for epsilon in epsilons for setting in settings)


def searched_over_bound(starts: int, steps: int, seed: int) -> float:
    """The largest divergence over its bound that a random search over gradients finds, both directions."""
    found = search_gradients(starts, steps, seed)
    return float(max(found["remove"].max(), found["add"].max()))


def terms_fall_with_the_angle(counts: Sequence[int], epsilon: float, points: int) -> bool:
    """Whether, given the number of other records, aligned gradients are the worst of all angles."""
    angles = np.linspace(0, 180, points).tolist()
    curves = ([delta_of_term(ParticipationRound(), epsilon, count, angle) for angle in angles] for count in counts)
    return all(max(values) <= values[0] * (1 + 1e-4) for values in curves)


def outer_holds_at_every_angle(sizes: Sequence[int], epsilon: float, points: int) -> bool:
    """Whether no common angle of the other gradients exceeds ``outer``."""
    angles, settings = np.linspace(0, 180, points).tolist(), [ParticipationRound(n_records=size) for size in sizes]
    return all(one.turned(angle, epsilon) <= one.delta("outer", epsilon) for one in settings for angle in angles)


def gram_order_holds(pairs: int, seed: int) -> bool:
    """Whether the integral of the lemma falls in no pair of growing Gram matrices."""
    smaller, larger = grow_gram_matrices(pairs, seed)
    return bool((larger >= smaller * (1 - 1e-3)).all())


# --- figures, baselines, noise ---------------------------------------------------------------------------------------


def margin(claim: int, epsilons: Sequence[float], settings: Sequence[dict[str, Any]], scheme: str = "outer") -> float:
    """Worst margin of one of the five claims on the figures; at least 1 where it holds.

    A margin is the least ratio of the delta that should be the larger to the one that should be the smaller.
    """
    test = (_order, _one_record, _in_records, _in_record_rate, _at_fixed_product)[claim]
    return min(test(ParticipationRound(**one), float(epsilon), scheme) for one in settings for epsilon in epsilons)


def _order(setting: ParticipationRound, epsilon: float, scheme: str) -> float:
    """Delta never falls in the order CS, Theorem 4.1, WCS, OLS."""
    return _least_step(setting.delta(name, epsilon) for name in ("cs", scheme, "wcs", "ols"))


def _one_record(setting: ParticipationRound, epsilon: float, scheme: str) -> float:
    """For one record Theorem 4.1 equals CS."""
    alone, sampled = replace(setting, n_records=1).delta(scheme, epsilon), setting.delta("cs", epsilon)
    return min(alone / sampled, sampled / alone)


def _in_records(setting: ParticipationRound, epsilon: float, scheme: str) -> float:
    """More records never lower delta, which tends to WCS."""
    sizes = (1, 2, 5, 10, 30, 100, 1000)
    rising = [replace(setting, n_records=size).delta(scheme, epsilon) for size in sizes]
    limit, last = setting.delta("wcs", epsilon), replace(setting, n_records=10**6).delta(scheme, epsilon)
    return _least_step([*rising, limit]) if last / limit > 0.99 else last / limit


def _in_record_rate(setting: ParticipationRound, epsilon: float, scheme: str) -> float:
    """A smaller record rate never raises delta."""
    rates = [setting.record_rate * share for share in (0.1, 0.3, 1.0)]
    return _least_step(replace(setting, record_rate=rate).delta(scheme, epsilon) for rate in rates)


def _at_fixed_product(setting: ParticipationRound, epsilon: float, scheme: str) -> float:
    """With the product of both rates fixed a smaller record rate never raises delta."""
    product = setting.participation_rate * setting.record_rate
    return _least_step(
        replace(setting, participation_rate=min(1.0, product / q), record_rate=q).delta(scheme, epsilon)
        for q in np.geomspace(product, 1.0, 5).tolist()
    )


def _least_step(values: Iterable[float]) -> float:
    """Least ratio of a value to the one before."""
    return min(late / early for early, late in pairwise(values))


def scheme_over_quadrature(scheme: str, epsilon: float, **setting: Any) -> float:
    """A baseline over the larger divergence of a sampled Gaussian mechanism by quadrature; public names are a coin."""
    one = ParticipationRound(**setting)
    p, q, ratio = one.participation_rate, one.record_rate, one.clip_norm / one.noise_std
    rate, public = {"ols": (q, 1.0), "wcs": (q, p), "cs": (p * q, 1.0)}[scheme]
    pair = _mixture([1 - rate, rate], [0.0, ratio]), _mixture([1.0], [0.0])
    truth = public * max(_divergence(left, right, epsilon, ratio) for left, right in (pair, pair[::-1]))
    return one.delta(scheme, epsilon) / truth


def shuffled_over_cs(
    n_clients: int, n_records: int, participation_rate: float, record_rate: float, epsilon: float
) -> float:
    """Exact divergence over Corollary 5.3 if records are shuffled among the clients and drawn as in Algorithm 1.

    All gradients are equal and as long as the noise is wide, so that only the number of records drawn matters.
    """

    def client(records: int) -> Reals:
        law = participation_rate * np.asarray(binom.pmf(np.arange(records + 1), records, record_rate))
        return np.asarray(law + (1 - participation_rate) * (np.arange(records + 1) == 0))

    others = functools.reduce(np.convolve, [client(n_records)] * (n_clients - 1), np.ones(1))
    laws = (np.convolve(others, client(records)).tolist() for records in (n_records, n_records - 1))
    larger, smaller = (_mixture(law, range(len(law))) for law in laws)
    truth = _divergence(larger, smaller, epsilon, float(n_clients * n_records))
    rates = {"participation_rate": participation_rate, "record_rate": record_rate}
    return truth / evaluate("participation:cor-5.3", rates | {"noise_std": 1, "clip_norm": 1, "epsilon": epsilon})


def list_of_names(epsilon: float, **setting: Any) -> float:
    """Delta of WCS over the joining probability times delta of OLS."""
    one = ParticipationRound(**setting)
    return one.delta("wcs", epsilon) / (one.participation_rate * one.delta("ols", epsilon))


def epsilon_in_order(delta: float, noises: Sequence[float], **setting: Any) -> bool:
    """Whether epsilon at ``delta`` is in the order CS, outer, WCS, OLS and falls with the noise (Figure 2)."""
    return _in_order(noises, lambda one, scheme: one.epsilon(scheme, delta), **setting)


def delta_in_order(epsilon: float, noises: Sequence[float], **setting: Any) -> bool:
    """The same of delta at ``epsilon`` (Figure 3)."""
    return _in_order(noises, lambda one, scheme: one.delta(scheme, epsilon), **setting)


def _in_order(noises: Sequence[float], answer: Callable[[ParticipationRound, str], float], **setting: Any) -> bool:
    quieter = [replace(ParticipationRound(**setting), noise_std=float(noise)) for noise in noises]
    ordered = [np.array([answer(one, scheme) for one in quieter]) for scheme in ("cs", "outer", "wcs", "ols")]
    rising = all((low <= high * (1 + 1e-9)).all() for low, high in pairwise(ordered))
    return rising and all(bool((np.diff(values) <= 0).all()) for values in ordered)


def noise_ratio(scheme: str, epsilon: float, delta: float, settings: Sequence[dict[str, Any]]) -> float:
    """Noise that a scheme asks for in the second setting over the first."""
    first, second = (ParticipationRound(**one).noise(scheme, epsilon, delta) for one in settings)
    return second / first


def lost_at_noise_of(scheme: str, epsilon: float, delta: float, **setting: Any) -> float:
    """Exact delta of equal gradients at the noise calibrated by a scheme, over the delta that was asked for."""
    one = ParticipationRound(**setting)
    noise = one.noise(scheme, epsilon, delta)
    return EqualGradients(ParticipationRound(**setting | {"noise_std": noise})).exact(epsilon) / delta


# --- over rounds -----------------------------------------------------------------------------------------------------


def rounds_lower(rounds: int, epsilon: float, **setting: Any) -> float:
    """Delta that equal gradients certainly lose over so many rounds."""
    return aligned_rounds_lower(**ParticipationRound(**setting).as_parameters(), rounds=rounds, epsilon=epsilon)


def one_of_many(scheme: str, epsilon: float, **setting: Any) -> float:
    """Delta of the composed account after a single round over the delta of a round."""
    one = ParticipationRound(**setting)
    return participation_rounds(scheme, **one.as_parameters(), rounds=1, epsilon=epsilon) / one.delta(scheme, epsilon)


def in_order(experiment: str, schemes: Sequence[str]) -> bool:
    """Whether each scheme is ahead of the next one."""
    runs = _runs(experiment)
    return all(runs.ahead(one, other) for one, other in pairwise(schemes))


def gap(experiment: str, one: str, other: str) -> float:
    """Mean of the differences in final accuracy, in percentage points."""
    return _runs(experiment).gap(one, other).mean


def final(experiment: str, scheme: str) -> float:
    """Mean accuracy of the last models on the test images, in percent."""
    return float(_runs(experiment).final(scheme).mean())


def trained_noise_ratio(scheme: str) -> float:
    """Noise that a scheme needed in Experiment 6.2 over what it needed in Experiment 6.1."""
    return _runs("exp-6.2").noise[scheme] / _runs("exp-6.1").noise[scheme]


def _runs(experiment: str) -> Learning:
    """The run of the notebook at the paper's sizes, of an experiment by its name in the ledger."""
    return Learning.recorded("participation_learning", _FILES[experiment])
