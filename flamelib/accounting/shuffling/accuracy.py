"""Accuracy in the single-message shuffle model: exact errors, the best plan, and lower bounds.

Errors are mean squared errors of an *unnormalised* sum of values in [0, 1]; the estimator is unbiased, so that
they are variances.  Standard library only.  Proofs: book, chapter on the privacy blanket, the sections on how accurate
a sum can be and cannot be.

Source: Balle, Bell, Gascon, Nissim 2019, Section 4.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from flamelib.accounting.shuffling.closed_form import blankets_needed, histogram_blanket_mass
from flamelib.core.logspace import below
from flamelib.core.statements import states
from flamelib.core.vocabulary import Domain, DomainError, check, plainly

UNIT_INTERVAL = Domain("a user's value", low=0, high=1)


@dataclass(frozen=True, slots=True)
class SummationPlan:
    """The best summation protocol that Theorem 3.1 allows: messages in {0, ..., n_levels}, and its errors."""

    n_levels: int
    blanket_mass: float
    mse: float
    mse_bound: float


def summation_mse(values: Iterable[float], n_levels: int, blanket_mass: float) -> float:
    r"""Mean squared error of the summation protocol on these values in [0, 1], one per user (exact).

    With :math:`f_i = k x_i - \lfloor k x_i \rfloor`,

    .. math:: \frac{1}{(1-\gamma)^2}\sum_i\Big[(1-\gamma)\Big(x_i^2+\frac{f_i(1-f_i)}{k^2}\Big)
              +\gamma\frac{2k+1}{6k}-\Big((1-\gamma)x_i+\frac\gamma2\Big)^2\Big],

    evaluated with the squares of :math:`x_i` cancelled analytically.
    """
    _check(n_levels, blanket_mass)
    total = math.fsum(_user_variance(UNIT_INTERVAL.accept("values", value), n_levels, blanket_mass) for value in values)
    return total / (1 - blanket_mass) ** 2


def _user_variance(value: float, n_levels: int, mass: float) -> float:
    part = value * n_levels % 1.0
    rounding = part * (1 - part) / n_levels**2
    return (1 - mass) * (rounding - mass * value * (1 - value)) + _coin_variance(n_levels, mass)


def _coin_variance(n_levels: int, mass: float) -> float:
    """Variance of the message of a user with value 0 or 1: that of the blanket alone."""
    return mass * (2 * n_levels + 1) / (6 * n_levels) - mass * mass / 4


@plainly
def worst_input(n_levels: int, blanket_mass: float) -> float:
    r"""The value x in [0, 1/2] of the largest error per user (exact); 1 - x has the same.

    It is :math:`(1-\gamma k)_+ / (2(1-\gamma)k)`.
    """
    _check(n_levels, blanket_mass)
    return max(0.0, 1 - blanket_mass * n_levels) / (2 * (1 - blanket_mass) * n_levels)


@plainly
def summation_worst_mse(n_users: int, n_levels: int, blanket_mass: float) -> float:
    r"""Greatest mean squared error over all inputs (exact): every user at :func:`worst_input`.

    .. math:: \frac{n}{(1-\gamma)^2}\Big[\frac{\max(0, 1-\gamma k)^2}{4k^2} + \gamma\frac{2k+1}{6k} -
              \frac{\gamma^2}{4}\Big].
    """
    _check(n_levels, blanket_mass, n_users)
    return n_users * _worst_per_user(n_levels, blanket_mass)


def _worst_per_user(n_levels: int, mass: float) -> float:
    rounding = max(0.0, 1 / n_levels - mass) ** 2 / 4
    return (rounding + _coin_variance(n_levels, mass)) / (1 - mass) ** 2


@plainly
def summation_mse_bound(n_users: int, n_levels: int, blanket_mass: float) -> float:
    r"""The paper's bound :math:`\frac{n}{(1-\gamma)^2}\big(\frac{1}{4k^2}+\frac\gamma2\big)` of the error (upper)."""
    _check(n_levels, blanket_mass, n_users)
    return n_users * (1 / (4 * n_levels**2) + blanket_mass / 2) / (1 - blanket_mass) ** 2


@states("blanket", "thm-4.1", item="Theorem 4.1", gives="value")
def summation_plan(n_users: int, epsilon: float, delta: float) -> SummationPlan:
    r"""The number of levels with the least worst-case error at (epsilon, delta), and that error (exact).

    Theorem 3.1 is applied to the true alphabet of :math:`k+1` messages and :math:`n-1` other users, so that
    :math:`\gamma_k = (k+1)g`.  All :math:`k` are scanned from 1 upwards until none can be better: the error of
    :math:`k` levels is at least :math:`n\,h(\gamma_k)` with :math:`h(\gamma) = (\gamma/3-\gamma^2/4)/(1-\gamma)^2`,
    which increases on [0, 1).  That takes about one and a half times as many steps as the best number of levels.

    Raises
    ------
    DomainError
        Outside the regime of Theorem 3.1, or where even two messages would need a blanket mass of 1 or more.

    Source: Balle, Bell, Gascon, Nissim 2019, Theorem 4.1 and its proof.

    Examples
    --------
    >>> summation_plan(100_000, 1.0, 1e-6).n_levels
    9
    """
    if histogram_blanket_mass(n_users, 2, epsilon, delta) == 1:
        raise DomainError(f"n_users must be above {n_users} for Theorem 4.1 at this epsilon and delta, got {n_users}")
    grain = blankets_needed(2, epsilon, delta) / 2 / (n_users - 1)
    n_levels, best = 1, _worst_per_user(1, 2 * grain)
    tried, mass = 1, 3 * grain
    while mass < 1 and (mass / 3 - mass * mass / 4) / (1 - mass) ** 2 < best:
        tried += 1
        found = _worst_per_user(tried, mass)
        if found < best:
            n_levels, best = tried, found
        mass = (tried + 2) * grain
    used = histogram_blanket_mass(n_users, n_levels + 1, epsilon, delta)
    worst, bound = summation_worst_mse(n_users, n_levels, used), summation_mse_bound(n_users, n_levels, used)
    return SummationPlan(n_levels, used, worst, bound)


@states("blanket", "thm-4.2", item="Theorem 4.2, with the constants of its proof", gives="lower", rests_on="proven")
def summation_lower(n_users: int, epsilon: float, delta: float) -> float:
    r"""Worst-case error below which no private one-message protocol can stay (lower).

    .. math:: \max_{k\ge2}\ n\min\Big\{\frac{e^{-\varepsilon}}{8k^2},\
              \frac{(1/2-\delta)(k-1/k)}{48\,n}\Big\},

    0 for :math:`\delta \ge \tfrac12`.  The first term falls in :math:`k` and the second rises, so the best :math:`k`
    is a neighbour of the root of :math:`k^3-k = 6 n e^{-\varepsilon}/(1/2-\delta)`.

    Source: Balle, Bell, Gascon, Nissim 2019, Theorem 4.2; the paper states the order :math:`\Omega(n^{1/3})` only.

    Examples
    --------
    >>> round(summation_lower(1000, 1.0, 1e-6), 11), best_cells(1000, 1.0, 1e-6)
    (0.16601529297, 16)
    """
    if delta >= 0.5:
        return 0.0
    return _lower_at(best_cells(n_users, epsilon, delta), n_users, epsilon, delta)


def best_cells(n_users: int, epsilon: float, delta: float) -> int:
    """Number of cells, at least 2, at which the lower bound of :func:`summation_lower` is greatest."""
    n_users, epsilon, delta = check(n_users=n_users, epsilon=epsilon, delta=delta).values()
    if delta >= 0.5:
        return 2
    # For k >= 2 the root lies between the cube root of the right-hand side and that cube root plus one half.
    base = math.floor((6 * n_users * math.exp(-epsilon) / (0.5 - delta)) ** (1 / 3))
    candidates = range(max(2, base - 1), max(2, base + 2) + 1)
    return max(candidates, key=lambda cells: _lower_at(cells, n_users, epsilon, delta))


def _lower_at(n_cells: int, n_users: int, epsilon: float, delta: float) -> float:
    rounding = n_users * math.exp(-epsilon) / (8 * n_cells * n_cells)
    return below(min(rounding, (0.5 - delta) * (n_cells - 1 / n_cells) / 48))


def _check(n_levels: int, blanket_mass: float, n_users: int = 2) -> None:
    if check(n_users=n_users, n_levels=n_levels, blanket_mass=blanket_mass)["blanket_mass"] == 1:
        raise DomainError("blanket_mass must be a number in (0, 1): at 1 no message says anything, got 1")
