r"""Rounds whose pair may be exchanged from round to round, by one who has seen all that came before.

A round is (P, Q) or (Q, P).  One who chooses for each of T rounds, knowing the outcomes so far, reaches at most

.. math:: F_T(\alpha) = \max_{(P,Q),\,(Q,P)} \int p\,F_{T-1}(\alpha q/p), \qquad F_0(\alpha) = (1-\alpha)_+ ,

the profile of the whole; :math:`F_T(1/\alpha) = 1-1/\alpha+F_T(\alpha)/\alpha`, because an exchange of everything is a
way to choose.  With losses on multiples of a step (from above: a maximum of functionals that are monotone in
domination, as :math:`F_{T-1}` is convex) F is needed at those multiples only, and a round is two sums of products of
positive numbers, right to a few units of rounding however small they are.  What is left beyond the last multiple counts
as never falling.

A block of rounds is then bounded by a pair that is its own exchange, and blocks are composed as in
:mod:`flamelib.privacy_loss`.  Were single rounds to be bounded like that, both orders of a skew pair would be paid at
once; the sum of a block is hardly skew.

Source: Zhu, Dong, Wang 2022, Theorem 10 and its proof, without the step from both orders to one pair.
"""

import math
from collections.abc import Sequence

import numpy as np

from flamelib.guarantees import Certified
from flamelib.loss_cells import composed, cut
from flamelib.loss_grids import ROUND, Cells, above
from flamelib.loss_knots import Curve, Delta
from flamelib.loss_sums import UNIT, Loss, LossSum, Real
from flamelib.privacy_loss import composed_delta, composed_epsilon
from flamelib.search import smallest_epsilon

BLOCK = 256
FINE = 12
LONGEST = 4096
MOST = 2**27
WORK = 4e8
SPARED = 1e-4
LEFT = 1e-3
FAINTEST = 1e-290
NAMES = ("low", "high", "base", "gain", "error")

Parts = Sequence[tuple[Cells, int]]


def composed_turning(parts: Parts, epsilon: float | None = None, delta: float | None = None) -> Certified:
    """Delta at ``epsilon``, or least epsilon for ``delta``, however pairs are exchanged from round to round (upper).

    Parameters
    ----------
    parts : sequence of (Cells, int)
        Each pair with the number of mechanisms that it, or its exchange, dominates.  Above 1 its profile is at least
        that of its exchange, as of a record drawn at random.
    epsilon, delta : float
        Exactly one, within its domain.

    Returns
    -------
    Certified
        Its ``uncertainty`` estimates what grids add, not what the choice of blocks does.

    Examples
    --------
    >>> coin = Cells(*np.array([[-1.0, 1.0], [-1.0, 1.0], [0.731, 0.269], [-0.462, 0.462], [0.0, 0.0]]))
    >>> f"{composed_turning([(coin, 2)], epsilon=1.0):.3f}"
    '0.338'
    """
    most = sum(times * cells.variation for cells, times in parts)
    if delta is not None and (delta == 0 or delta >= min(most, 1.0)):
        return Certified(math.inf if delta < min(most, 1.0) else 0.0, 0.0)
    if delta is None and most < FAINTEST:
        return Certified(most, most)
    target = delta if delta is not None else _expected(parts, epsilon or 0.0)
    steps = [_step(cells, SPARED * target / _count(parts)) for cells, _ in parts]
    whole = [(both_orders(cells), times) for cells, times in parts]
    if any(step == 0 for step in steps) or _count(parts) > MOST:
        return composed(whole, epsilon, delta)
    fine, coarse = (_answer(parts, [times * step for step in steps], epsilon, target) for times in (1, 2))
    found = min(fine, coarse, key=float)
    if math.isinf(found):
        return composed(whole, epsilon, delta)
    moved = abs(float(coarse) - float(fine)) if math.isfinite(max(fine, coarse)) else found
    return Certified(found, min(found.uncertainty + moved, found))


def both_orders(cells: Cells) -> Cells:
    """A pair that dominates (P, Q) and (Q, P): the positive losses of the one, the negative ones of the other.

    For (P, Q) whose profile is the larger one above 1, in cells without losses of both signs.

    Examples
    --------
    >>> both = both_orders(Cells(*np.array([[-1.0, 1.0], [-1.0, 1.0], [0.731, 0.269], [-0.462, 0.462], [0.0, 0.0]])))
    >>> both.low.tolist()
    [1.0, -1.0, 0.0]
    """
    arrays = (cells.low, cells.high, cells.base, cells.gain, cells.error)
    ahead = Cells(*(array[(cells.low >= 0) & (cells.high > 0)] for array in arrays))
    back = ahead.swapped()
    rest = max(0.0, 1 - float((ahead.base + ahead.gain).sum() + (back.base + back.gain).sum()))
    ends = (0.0, 0.0, rest, 0.0, ROUND / 10)
    return Cells(*(np.hstack([getattr(ahead, n), getattr(back, n), end]) for n, end in zip(NAMES, ends, strict=True)))


def _count(parts: Parts) -> int:
    return sum(times for _, times in parts)


def _expected(parts: Parts, epsilon: float) -> float:
    """About the delta of the composition, rather less."""
    guess = 1e-12
    for _ in range(4):
        kept = [(cut(cells, SPARED * guess / _count(parts)), times) for cells, times in parts]
        step = max(max(_spread(cells), cells.range / LONGEST) for cells, _ in kept) / 2
        law = LossSum([(above(cells, step), times) for cells, times in kept])
        tilt = law.tilt_to(epsilon)
        reached = tilt.log_mass - tilt.t * epsilon - 10
        if reached >= math.log(guess) or guess <= FAINTEST:
            break
        guess = max(math.exp(max(reached, -660.0)), FAINTEST)
    return min(guess, 1.0)


def _spread(cells: Cells) -> float:
    return math.sqrt(cells.second_moment)


def _step(cells: Cells, spared: float) -> float:
    """A step that is small beside the losses of a round, 0 if these reach too far for it."""
    kept = cut(cells, spared)
    step = _spread(kept) / FINE
    return step if kept.range <= LONGEST * step else 0.0


def _answer(parts: Parts, steps: Sequence[float], epsilon: float | None, delta: float) -> Certified:
    """The answer with these steps: delta at ``epsilon``, which is about the one given, or epsilon."""
    share = delta / _count(parts)
    curves: list[tuple[Curve, int]] = []
    for (cells, times), step in zip(parts, steps, strict=True):
        curves += _blocks(cut(cells, SPARED * share), times, LEFT * share, step)
    if len(curves) > 1 or curves[0][1] > 1:
        return composed_epsilon(curves, delta) if epsilon is None else composed_delta(curves, epsilon)
    alone = curves[0][0].forward
    if epsilon is not None:
        return Certified(alone(epsilon), 0.0)
    return Certified(smallest_epsilon(lambda e: math.log(max(alone(e), math.ulp(0.0))), delta, math.inf), 0.0)


def _blocks(cells: Cells, rounds: int, left: float, step: float) -> list[tuple[Curve, int]]:
    """Profiles of blocks of rounds, each with its number; ``left`` is what a round may leave beyond the last loss."""
    laws = [above(one, step) for one in (cells, cells.swapped())]
    length = min(rounds, BLOCK)
    reach = math.ceil(max(_reach(law, length, left * length) for law in laws) / step)
    length = max(1, min(length, int(WORK / (reach * sum(law.index[-1] - law.index[0] + 1 for law in laws)))))
    profiles = _turning(laws, length, min(reach, 2 * LONGEST))
    rest = [(Curve(_chord(profiles[rounds % length - 1], step)), 1)] if rounds % length else []
    return [(Curve(_chord(profiles[-1], step)), rounds // length), *rest]


def _reach(law: Loss, rounds: int, left: float) -> float:
    """A loss beyond which little is left of so many rounds in one order; somewhat more for both."""
    total = LossSum([(law, rounds)])
    found = total.chernoff(left + math.exp(total.log_infinity), total.tilt_for(math.log(left)))
    return 1.05 * found + 8 * law.step if math.isfinite(found) else 2.0 * LONGEST * law.step


def _turning(laws: Sequence[Loss], rounds: int, reach: int) -> list[Real]:
    """The profile after 1, 2, ... rounds at multiples of the step from 0 to ``reach``."""
    dense = [(int(law.index[0]), np.bincount(law.index - law.index[0], law.masses), law.infinity) for law in laws]
    most = max(max(first + len(masses) for first, masses, _ in dense), 1)
    least = max(max(-first for first, _, _ in dense), 0)
    losses = laws[0].step * np.arange(1, most + 1)
    falls, rises = np.exp(-losses), -np.expm1(-losses)
    profile, found = np.zeros(reach + 1), []
    for _ in range(rounds):
        ahead = np.append(profile, np.full(max(least, most - reach), profile[-1]))
        whole = np.append((rises + falls * ahead[1 : most + 1])[::-1], ahead)
        turns = [
            np.convolve(whole[most - first - len(masses) + 1 : most - first + reach + 1], masses, "valid")
            * (1 + (len(masses) + 16) * UNIT)
            + infinity
            for first, masses, infinity in dense
        ]
        profile = np.minimum(np.maximum(*turns), 1.0)
        found.append(profile)
    return found


def _chord(profile: Real, step: float) -> Delta:
    """The profile between the multiples, by chords of a convex curve."""
    wide = math.expm1(step)

    def value(epsilon: float) -> float:
        place = int(min(epsilon / step, len(profile) - 1))
        if place == len(profile) - 1:
            return float(profile[-1])
        share = min(max(math.expm1(epsilon - place * step) / wide, 0.0), 1.0)
        return float((1 - share) * profile[place] + share * profile[place + 1]) * (1 + 16 * UNIT)

    return value
