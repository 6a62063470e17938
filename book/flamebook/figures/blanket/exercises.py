"""Answers to the exercises on the privacy blanket: what a table or a sentence of a solution says at these values."""

from collections.abc import Sequence
from itertools import pairwise

from flamebook.figures.blanket.comparisons import SAME, from_on
from flamebook.statements import AtLeast, Finding, compared, every, listed, silent
from flamelib.accounting.shuffling.accuracy import summation_plan
from flamelib.accounting.shuffling.closed_form import histogram_blanket_mass, histogram_epsilon
from flamelib.core.profiles import KaryProfile
from flamelib.core.vocabulary import DomainError

LARGEST_CROWD = 2**50  # up to here one user fewer shows in a double


def enough(least: int, n_buckets: int, epsilon: float, delta: float) -> Finding:
    """Whether Theorem 3.1 promises this epsilon to so many users, and not to one fewer.

    >>> enough(8126, 10, 0.5, 1e-6).holds, enough(8127, 10, 0.5, 1e-6).holds, enough(508, 10, 2.0, 1e-6).verdict
    (True, False, 'says nothing')
    """
    if epsilon > 1:
        return silent("the theorem speaks of central budgets of at most 1")
    if least > LARGEST_CROWD:
        return silent("no crowd is so large")
    mass = histogram_blanket_mass(least, n_buckets, epsilon, delta)
    return every(compared(mass, "<=", 1.0), compared(histogram_epsilon(least - 1, n_buckets, 1.0, delta), ">", epsilon))


def which_effect_wins(budgets: Sequence[float]) -> str:
    """What a growing alphabet does to the central budget.

    >>> which_effect_wins([0.4, 0.2]), which_effect_wins([3.0, 3.0])
    ('The second effect wins, and the central budget falls', 'Here neither shows: the budget stays as it is')
    """
    if all(later < earlier * (1 - SAME) for earlier, later in pairwise(budgets)):
        return "The second effect wins, and the central budget falls"
    if all(abs(later - earlier) <= SAME * earlier for earlier, later in pairwise(budgets)):
        return "Here neither shows: the budget stays as it is"
    return "Here neither wins throughout" if budgets[-1] < budgets[0] else "Here the second effect does not win"


def where_tight(users: Sequence[int], truth: Sequence[float], bound: Sequence[float]) -> str:
    """For how many users a bound is the truth.

    >>> where_tight([2, 4, 8], [0.2, 0.1, 0.03], [0.2, 0.1, 0.04])
    'the bound is the truth for 2 and 4 users, and lies above it for 8'
    """
    tight = [str(n) for n, exact, most in zip(users, truth, bound, strict=True) if most <= exact * (1 + SAME)]
    loose = [str(n) for n in users if str(n) not in tight]
    if not tight:
        return f"the bound lies above the truth for {listed(loose)} users"
    above = f", and lies above it for {listed(loose)}" if loose else ""
    return f"the bound is the truth for {listed(tight)} users{above}"


def levels(crowds: Sequence[int], epsilon: float, delta: float, needed: float) -> list[tuple[object, ...]]:
    """Users, the rule of thumb for the number of levels, and the best number that Theorem 4.1 allows.

    >>> levels([10, 100_000], 0.5, 1e-6, 813.0)[0][2]
    'the theorem is silent'
    """

    def best(n_users: int) -> object:
        try:
            return summation_plan(n_users, epsilon, delta).n_levels
        except DomainError:
            return "the theorem is silent"

    return [(n, (n / needed) ** (1 / 3), best(n)) for n in crowds]


def where_false(crowds: Sequence[int], old: Sequence[float], best: Sequence[float], floor: Sequence[float]) -> str:
    """From which crowd on a bound lies below what it should bound, and below what two data sets give away.

    >>> where_false([64, 256], [0.8, 0.2], [0.6, 0.3], [0.5, 0.1])
    'below the blanket divergence from 256 users on, and certainly false for none of these crowds'
    """
    below = from_on(crowds, [a < b * (1 - SAME) for a, b in zip(old, best, strict=True)])
    false = from_on(crowds, [a < b for a, b in zip(old, floor, strict=True)])
    none = "for none of these crowds"
    return f"below the blanket divergence {below or none}, and certainly false {false or none}"


def says(profile: KaryProfile) -> tuple[float, float, float]:
    """Local budget of k-ary response, rounded down, and how often the value is kept on purpose and the message true.

    >>> [round(number, 5) for number in says(KaryProfile(0.5, 10))]
    [0.5, 0.06092, 0.15483]
    """
    return AtLeast(profile.epsilon0), profile.kept, profile.kept + profile.mass / profile.n_buckets
