r"""Shuffling a randomizer that is given by its table: every pair of values is tried.

A row is the law of the message for one value.  The blanket is :math:`\gamma\omega(y) = \min_z \mu_z(y)`, and for each
ordered pair of values :math:`L = (\mu_x - e^\varepsilon\mu_{x'})/\omega` has finitely many values, so that the sums of
the blanket reduction are certified as for k-ary response.  Pairs whose laws are equal are computed once.

Source: the reduction of Balle, Bell, Gascon, Nissim 2019, Section 5, for each pair.
"""

import itertools
import math

import numpy as np

from flamelib.accounting.shuffling.brackets import LawAt, answer, divergence, estimate
from flamelib.accounting.shuffling.inversion import Bracket
from flamelib.accounting.shuffling.laws import AtomicLaw
from flamelib.core.arrays import Reals
from flamelib.core.guarantees import Certified
from flamelib.core.profiles import TableProfile


def table_divergence(
    randomizer: TableProfile, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """Tightest guarantee that the blanket decomposition gives for the worst pair of values (upper).

    Parameters
    ----------
    randomizer : TableProfile
    n_users : int, at least 2
    epsilon, delta : float
        Exactly one of them; the answer is the other one, epsilon at most the local budget.
    """
    rows = np.array(randomizer.table)
    blanket = rows.min(axis=0)
    seen = blanket > 0
    mass, kept = float(blanket.sum()), float((rows[0] - blanket).sum())
    laws = _laws(rows[:, seen] / (blanket[seen] / mass), blanket[seen] / mass, mass, kept)
    return _answer(laws, n_users, randomizer.epsilon0, epsilon, delta, upper=True)


def table_lower(
    randomizer: TableProfile, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """What data sets lose in which all others hold one value, the worst of them and the worst pair (lower).

    Parameters
    ----------
    randomizer, n_users, epsilon, delta
        As for :func:`table_divergence`.
    """
    rows = np.array(randomizer.table)
    seen = rows[0] > 0
    laws = [law for others in rows[:, seen] for law in _laws(rows[:, seen] / others, others, 1.0, 0.0)]
    return _answer(laws, n_users, randomizer.epsilon0, epsilon, delta, upper=False)


def _laws(ratios: Reals, weights: Reals, mass: float, kept: float) -> list[LawAt]:
    """A law for each ordered pair of values, those that are equal to the last digit once."""
    found: dict[tuple[tuple[float, ...], ...], LawAt] = {}
    for first, second in itertools.permutations(ratios, 2):
        atoms = sorted(zip(first.tolist(), second.tolist(), weights.tolist(), strict=True))
        found.setdefault(tuple(atoms), _law(first, second, weights, mass, kept))
    return list(found.values())


def _law(first: Reals, second: Reals, weights: Reals, mass: float, kept: float) -> LawAt:
    return lambda at: AtomicLaw(first - math.exp(at) * second, weights, mass, kept)


def _answer(
    laws: list[LawAt], n_users: int, epsilon0: float, epsilon: float | None, delta: float | None, upper: bool
) -> Certified:
    """The worst of all laws at every epsilon."""

    def certified(at: float) -> Bracket:
        brackets = [divergence(law, n_users)(at) for law in laws]
        return max(brackets, key=lambda bracket: bracket.high if upper else bracket.low)

    def quick(at: float) -> float:
        return max(estimate(law, n_users)(at) for law in laws)

    return answer(certified, quick, epsilon0, epsilon, delta, upper=upper)
