r"""What rounds of different kinds on the same people cost together: training on Poisson samples beside surveys.

Every kind has a pair of laws that dominates one of its rounds, and products of such pairs dominate whatever is composed
of them, adaptively too.  Records that are added or removed and users whose value is replaced do not mix by themselves.
Replacing is removing and then adding: with the data set C that lacks the record, for :math:`\alpha=\alpha_1\alpha_2`,

.. math:: H_\alpha(A\Vert B) \le H_{\alpha_1}(A\Vert C) + \alpha_1 H_{\alpha_2}(C\Vert B),

since :math:`p-\alpha q = (p-\alpha_1 r) + \alpha_1(r-\alpha_2 q)` for the densities p, r and q of A, C and B.  The
least of it over a few shares of epsilon is a profile for replacing, and all rounds are composed under that.

Source: Zhu, Dong, Wang 2022, Theorem 10 (dominating pairs).
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from flamelib.accounting.checkin.distributed_noise import distributed_cells
from flamelib.accounting.composition.dominating_pair import (
    RTOL_MASS,
    DominatingPair,
    above,
    both_orders,
    composed,
    composed_in_order,
)
from flamelib.accounting.composition.privacy_profile import (
    MAX_LOSS,
    PrivacyProfile,
    composed_delta,
    composed_epsilon,
    dominating_pair_of,
)
from flamelib.accounting.noise.gaussian import MAX_RATIO
from flamelib.accounting.sampling.rounds import dominated_rounds, round_cells
from flamelib.accounting.shuffling.randomizers import analysis, round_curve
from flamelib.core import profiles
from flamelib.core.guarantees import Adjacency, Certified, RestsOn, weakest
from flamelib.core.logspace import UNIT
from flamelib.core.vocabulary import Domain, DomainError, check, keep, one_budget, shown
from flamelib.front import questions
from flamelib.front.checkin import Checkin, Summed
from flamelib.front.crowd import honest_part
from flamelib.front.results import Guarantee, guarantee
from flamelib.front.rounds import Rounds
from flamelib.front.shuffled import Shuffled
from flamelib.mechanisms import randomizers, supports, tables
from flamelib.protocols.participation import Participation

# Grid of losses from which profiles are read, in root mean square losses and in parts of their range.
FINE, MOST = 0.01, 2**20
# Shares of epsilon that removing a record may take, the rest being left for adding the other.
SHARES = (0.2, 0.35, 0.5, 0.65, 0.8)
# A mass of the largest losses that is given up first, and then this part of the delta that was found.
FIRST_SPARED, SPARED_SHARE = 1e-14, 1e-4
# Levels of noise that are told apart, each of which takes some hundredths of a second.
MOST_LEVELS = 100
NOISE, RATE = Domain("standard deviation of noise over a sensitivity", low=0), Domain("probability", low=0, high=1)
# Mass without a loss, at least, of a record that is nearly always seen: more than there is, and of no use to anybody.
LEAST_REST = 0.5


@dataclass(frozen=True, slots=True)
class Sampled:
    """Gaussian noise on a sum over a Poisson sample: every record is drawn by a coin of its own.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the largest norm of a record's contribution; 0 is no noise.
    sample_rate : float
        Probability that a record is drawn, in [0, 1].
    """

    noise_multiplier: float
    sample_rate: float

    def __post_init__(self) -> None:
        keep(self, noise_multiplier=NOISE.accept("noise_multiplier", self.noise_multiplier))
        keep(self, sample_rate=RATE.accept("sample_rate", self.sample_rate))


@dataclass(frozen=True, eq=False, slots=True)
class Pair:
    """The pair of laws that dominates one round when a record is removed, and that for one added if it differs."""

    removed: DominatingPair
    added: DominatingPair | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    rests_on: RestsOn = RestsOn.PROVEN


#: What is accounted for: a record of the front door, a Poisson sample, or a pair that is known from elsewhere.
Round = Shuffled | Checkin | Rounds | Participation | Sampled | Pair
History = Sequence[tuple[Round, int]]
_RECORDS: dict[str, Any] = {
    one.__name__: one
    for home in (profiles, randomizers, supports, tables)
    for one in vars(home).values()
    if isinstance(one, type) and is_dataclass(one) and one.__module__ == home.__name__
} | {one.__name__: one for one in (Shuffled, Checkin, Summed, Rounds, Participation, Sampled, Pair, DominatingPair)}


def spelled(one: Any) -> Any:
    """A round as lists, numbers and words alone, for files that hold no code; :func:`restored` reads it.

    >>> spelled(Sampled(1.0, 0.5))
    ['Sampled', {'noise_multiplier': 1.0, 'sample_rate': 0.5}]
    """
    if isinstance(one, tuple(_RECORDS.values())):
        kind: Any = type(one)
        return [kind.__name__, {field.name: spelled(getattr(one, field.name)) for field in fields(kind)}]
    if isinstance(one, np.ndarray):
        return ["array", one.tolist()]
    if isinstance(one, tuple):
        return ["tuple", [spelled(part) for part in one]]
    return str(one) if isinstance(one, str) else one


def restored(one: Any) -> Any:
    """The round that :func:`spelled` has written; anything else is refused."""
    if not isinstance(one, list):
        return one
    kind, held = one if len(one) == 2 else (None, None)
    if kind == "array":
        return np.array(held, dtype=float)
    if kind == "tuple" and isinstance(held, list):
        return tuple(restored(part) for part in held)
    record = _RECORDS.get(kind) if isinstance(kind, str) else None
    if record is None or not isinstance(held, dict) or held.keys() != {field.name for field in fields(record)}:
        raise DomainError(f"rounds must hold what a state_dict of flamelib spells out, got {shown(one)}")
    parts = {name: restored(part) for name, part in held.items()}
    found = record(**parts)
    keep(found, **{name: part for name, part in parts.items() if isinstance(part, tuple)})  # rows add up to 1 already
    return found


def history_account(
    history: History, delta: float | None = None, epsilon: float | None = None, adjacency: Adjacency | None = None
) -> Guarantee:
    """What rounds of different kinds guarantee together (upper; exactly one of ``delta`` and ``epsilon`` is given).

    Left out, the adjacency is one record added or removed, or replace-one where any of the rounds is of that kind.  Of
    more than a hundred levels of noise those next to each other count as the least of them, at the largest rate.

    Examples
    --------
    >>> from flamelib import KaryResponse
    >>> training, survey = Sampled(1.0, 0.01), Shuffled(KaryResponse(epsilon0=1.0, n_buckets=2), n_users=10_000)
    >>> history_account([(training, 1000)], delta=1e-5)
    (1.829, 1e-05)-DP, add-remove; proven
    >>> history_account([(training, 1000), (survey, 20)], delta=1e-5)
    (2.986, 1e-05)-DP, replace-one; proven
    """
    epsilon, delta = one_budget(epsilon, delta).values()
    every = _merged(history)
    native = {_adjacency(one) for one in every}
    wanted = adjacency or (Adjacency.REPLACE_ONE if Adjacency.REPLACE_ONE in native else Adjacency.ADD_REMOVE)
    if wanted == Adjacency.ADD_REMOVE and Adjacency.REPLACE_ONE in native:
        raise DomainError("adjacency must be replace-one where users shuffle their messages or check in by themselves")
    rounds = [(one, times) for one, times in every.items() if _shows(one)]
    if not rounds:
        return Guarantee(epsilon or 0.0, delta or 0.0, wanted)
    found = _alike(rounds, delta, epsilon) if native == {wanted} else None
    if found is not None:
        return found
    total = sum(times for _, times in rounds)
    if total == 1 and native != {wanted}:
        pair = dominating_pair(rounds[0][0], 1, delta, wanted)
        if pair.adjacency != wanted:
            part = [(_replaced(pair), 1)]
            once = composed_delta(part, epsilon or 0.0) if delta is None else composed_epsilon(part, delta)
            return _guarantee(once, epsilon, delta, wanted, pair.rests_on)
    pairs = [(_under(wanted, dominating_pair(one, total, delta, wanted), total, delta), times) for one, times in rounds]
    weak = weakest(*(pair.rests_on for pair, _ in pairs))
    return _guarantee(_composed(pairs, epsilon, delta), epsilon, delta, wanted, weak)


def _shows(one: Any) -> bool:
    """Whether anybody takes part, and sends what depends on its value."""
    inner = getattr(one, "protocol", one)
    there = getattr(one, "rate", getattr(one, "sample_rate", 1))
    return bool(there) and (not isinstance(inner, Shuffled) or inner.randomizer.epsilon0 > 0)


def _adjacency(one: Round) -> Adjacency:
    """Which data sets a round compares by itself."""
    if isinstance(one, Pair):
        return one.adjacency
    return Adjacency.ADD_REMOVE if isinstance(one, Sampled | Participation) else Adjacency.REPLACE_ONE


def _merged(history: History) -> Counter[Any]:
    """How often each kind of round was run; of too many levels of noise, close ones count as the least of them."""
    count: Counter[Any] = Counter()
    for one, times in history:
        if not isinstance(one, Round):
            raise DomainError(f"history must hold Shuffled, Checkin, Rounds, Participation or Sampled, got {one!r}")
        times = check(rounds=times)["rounds"]
        for part, again in one.parts if isinstance(one, Rounds) else [(one, 1)]:
            if getattr(getattr(part, "protocol", part), "dropout", 0):
                raise DomainError(f"dropout must be 0 in a history, but for that of Checkin, got {part!r}")
            count[honest_part(part) if isinstance(part, Shuffled | Checkin) else part] += again * times
    steps = sorted((one for one in count if isinstance(one, Sampled)), key=lambda one: one.noise_multiplier)
    size = -(-len(steps) // MOST_LEVELS)
    for some in (steps[i : i + size] for i in range(0, len(steps), size or 1) if size > 1):
        worst = Sampled(some[0].noise_multiplier, max(one.sample_rate for one in some))
        total = sum(count.pop(one) for one in some)
        count[worst] += total
    return count


def _alike(rounds: list[tuple[Any, int]], delta: float | None, epsilon: float | None) -> Guarantee | None:
    """The answer of an account of its own, where there is one for all these rounds."""
    one, times = rounds[0]
    if len(rounds) == 1 and isinstance(one, Sampled) and one.noise_multiplier:
        found = dominated_rounds("ols", 1.0, one.sample_rate, 1, one.noise_multiplier, 1.0, times, epsilon, delta)
        return _guarantee(found, epsilon, delta, Adjacency.ADD_REMOVE, RestsOn.PROVEN)
    if len(rounds) == 1 and not isinstance(one, Sampled | Pair):
        return questions.account(one, delta=delta, epsilon=epsilon, rounds=times)
    if all(isinstance(getattr(part, "protocol", part), Shuffled) for part, _ in rounds):
        return questions.account(Rounds(rounds), delta=delta, epsilon=epsilon)
    return None


def _guarantee(
    found: Certified, epsilon: float | None, delta: float | None, adjacency: Adjacency, rests_on: RestsOn
) -> Guarantee:
    if delta is None:  # sums take a mass of 1 for a little less
        found = Certified(float(found) * (1 + 4 * UNIT), found.uncertainty)
    return guarantee(found, rests_on, epsilon, delta, adjacency)


def dominating_pair(one: Any, total: int, delta: float | None, wanted: Adjacency | None = None) -> Pair:
    """A pair that dominates one round, in a composition of so many for an answer near this delta.

    A record that is always drawn moves the sum twice as far when it is replaced.
    """
    if isinstance(one, Pair):
        return one
    if isinstance(one, Participation):
        if one.clip_norm / one.noise_std > MAX_RATIO:
            return Pair(disclosing(one.participation_rate * one.record_rate))
        given = one.participation_rate, one.record_rate, one.n_records, one.noise_std, one.clip_norm
        return Pair(round_cells("outer", *given))
    if isinstance(one, Sampled):
        rate, noise = one.sample_rate, one.noise_multiplier
        if noise * MAX_RATIO < 2:
            return Pair(disclosing(rate))
        if rate == 1 and wanted == Adjacency.REPLACE_ONE:
            return Pair(round_cells("ols", 1.0, 1.0, 1, noise / 2, 1.0), adjacency=wanted)
        return Pair(round_cells("ols", 1.0, rate, 1, noise, 1.0))
    inner, rate = (one.protocol, one.rate) if isinstance(one, Checkin) else (one, 1.0)
    if isinstance(inner, Summed):
        cells = both_orders(distributed_cells(inner.n_users, rate, inner.noise_std))
        return Pair(cells, adjacency=Adjacency.REPLACE_ONE)
    curve = round_curve(analysis(inner.randomizer).reduced, inner.n_users, rate)
    cells = dominating_pair_of(curve, total, _near(delta))
    return Pair(cells, adjacency=Adjacency.REPLACE_ONE)


def _near(delta: float | None) -> float:
    """The delta for which points of curves are placed: any is valid."""
    return min(max(delta or 1e-9, 1e-100), 0.5)


def disclosing(rate: float) -> DominatingPair:
    """The pair of a record that is seen with this probability: everything is lost then, and nothing otherwise."""
    rest = max(1 - rate, LEAST_REST)
    ends = np.array([math.inf, 0.0, -math.inf])
    return DominatingPair(ends, ends, np.array([0.0, rest, rate]), np.array([rate, 0.0, -rate]), np.zeros(3))


def _under(wanted: Adjacency, pair: Pair, total: int, delta: float | None) -> Pair:
    """The pair, or one for a record that is replaced."""
    if pair.adjacency == wanted:
        return pair
    return Pair(dominating_pair_of(_replaced(pair), total, _near(delta)), None, wanted, pair.rests_on)


def _replaced(pair: Pair) -> PrivacyProfile:
    """The profile of a record that is replaced: removed and another one added (upper)."""
    added = pair.removed.swapped() if pair.added is None else pair.added
    (removing, most), (adding, other) = _profile(pair.removed), _profile(added)

    def at(epsilon: float) -> float:
        # Beyond its largest finite loss removing keeps what it loses at once; more of epsilon would multiply the rest.
        shares = (min(part * epsilon, most) for part in SHARES)
        return min(removing(one) + math.exp(one) * adding(epsilon - one) * (1 + 4 * UNIT) for one in shares)

    # Profiles fall, and this bound does not where it multiplies a mass at infinity: it stays where it is least.
    places = [(most + other) * 2 ** (-rung / 8) for rung in range(81)]
    end = min((place for place in places if place < MAX_LOSS), key=at, default=MAX_LOSS)

    def replacing(epsilon: float) -> float:
        return at(min(epsilon, end))

    return PrivacyProfile(replacing, at_most=most + other if at(most + other) == 0 else math.inf)


def _profile(cells: DominatingPair) -> tuple[Callable[[float], float], float]:
    """Delta of one round in the order of the cells, as a function of epsilon (upper), and where it stops to fall."""
    if np.array_equal(cells.low, cells.high):  # atoms, whose losses need no grid
        order = np.argsort(cells.high)
        high, mass = cells.high[order], np.maximum(cells.base * (1 + RTOL_MASS) + cells.gain + cells.error, 0)[order]
        finite, at_once = np.isfinite(high), float(mass[np.isposinf(high)].sum())
        losses, masses = high[finite], mass[finite]
    else:
        loss = above(cells, max(FINE * math.sqrt(cells.second_moment), cells.range / MOST, 1e-12))
        losses, masses, at_once = loss.losses, loss.masses, loss.infinity
    masses, at_once = masses * (1 + (len(masses) + 8) * UNIT), at_once * (1 + (len(masses) + 8) * UNIT)

    def delta(epsilon: float) -> float:
        there = int(np.searchsorted(losses, epsilon))
        return float(-np.expm1(epsilon - losses[there:]) @ masses[there:]) + at_once

    return delta, max(float(losses[-1]), 0.0) if len(losses) else 0.0


def _composed(pairs: list[tuple[Pair, int]], epsilon: float | None, delta: float | None) -> Certified:
    """The larger of two answers: every round with a record removed, and every round with one added."""
    removed = [(pair.removed, times) for pair, times in pairs]
    if all(pair.added is None for pair, _ in pairs):
        return composed(removed, epsilon, delta)
    added = [(pair.removed.swapped() if pair.added is None else pair.added, times) for pair, times in pairs]
    if delta is not None:
        spared = SPARED_SHARE * delta
        found = max(composed_in_order(order, spared, delta=delta) for order in (removed, added))
        return Certified(found, 0.0)
    found = max(composed_in_order(order, FIRST_SPARED, epsilon) for order in (removed, added))
    spared = SPARED_SHARE * found
    again = max(composed_in_order(order, spared, epsilon) for order in (removed, added))
    return Certified(min(found, again), max(again - found, 0.0))
