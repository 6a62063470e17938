r"""Amplification by shuffling in closed form: the blanket paper's bounds and what they are compared with.

Adjacency everywhere: one user's value is replaced.  Each pair of budgets takes exactly one of ``epsilon`` and
``delta`` and answers with the other; an upper answer is never below what its lemma says.  Hoeffding's and
Bennett's inequalities depend on a randomizer by three numbers of the amplification variable
:math:`L = r - e^{\varepsilon} r'`, :math:`r, r'` being the likelihood ratios of two inputs against the blanket.
Everything is computed by logarithms, so that no local budget from ``1e-300`` to ``700`` cancels or overflows, delta may
be ``1e-300`` and the number of users ``1e15``; a positive bound below the smallest double is answered as that double.
An ``epsilon`` of at least the local budget costs no delta at all (pure local privacy survives shuffling), and a bound
that never reaches ``delta`` below the local budget answers the local budget.  Outside its regime a theorem answers
``inf``.  Standard library only: the same source runs in a browser.  Proofs: book, chapter on the privacy blanket.

Source: Balle, Bell, Gascon, Nissim 2019.
"""

import math
from collections.abc import Callable

from flamelib.core.logspace import MARGIN, ROUNDING, above, log1mexp, log_expm1, probability
from flamelib.core.profiles import (
    AnyProfile,
    GaussianProfile,
    KaryProfile,
    LaplaceProfile,
    LossShape,
    Profile,
    SupportProfile,
)
from flamelib.core.search import largest, smallest_epsilon
from flamelib.core.statements import states
from flamelib.core.vocabulary import SUPPORTS, DomainError, check

BoundedProfile = KaryProfile | SupportProfile | LaplaceProfile | AnyProfile
LogDelta = Callable[[float], float]


@states("blanket", "erlingsson", item="Section 1, the earlier bound of Erlingsson et al. 2019", gives="upper",
        rests_on="cited")  # fmt: skip
def erlingsson(epsilon0: float, n_users: int, delta: float) -> float:
    r"""Central epsilon by the earlier bound for every local randomizer (upper).

    .. math:: \varepsilon = 12\,\varepsilon_0 \sqrt{\log(1/\delta)/n}

    for :math:`\varepsilon_0 \le \tfrac12`, :math:`n \ge 1000`, :math:`\delta \le 0.01` and a result of at most
    :math:`\varepsilon_0`; ``inf`` elsewhere.

    Source: Erlingsson et al. 2019, as compared in the blanket paper.

    Examples
    --------
    >>> round(erlingsson(0.4, 5000, 1e-6), 10)
    0.2523130449
    """
    factor = _erlingsson_factor(n_users, delta)
    return above(factor * epsilon0) if epsilon0 <= 0.5 and factor <= 1 else math.inf


def erlingsson_epsilon0(n_users: int, epsilon: float, delta: float) -> float:
    """Greatest local budget, at most one half, for which :func:`erlingsson` gives ``epsilon``; 0 outside its regime."""
    n_users, epsilon, delta = check(n_users=n_users, epsilon=epsilon, delta=delta).values()
    factor = _erlingsson_factor(n_users, delta)
    if factor > 1:
        return 0.0
    found = epsilon / factor
    while found <= 0.5 and above(factor * found) > epsilon:
        found = math.nextafter(found, 0)
    return min(0.5, found)


def _erlingsson_factor(n_users: int, delta: float) -> float:
    if n_users < 1000 or not 0 < delta <= 0.01:
        return math.inf
    return 12 * math.sqrt(-math.log(delta) / n_users)


@states("blanket", "cheu", item="Section 1, the binary protocol of Cheu et al. 2019", gives="upper", rests_on="cited")
def cheu(blanket_mass: float, n_users: int, delta: float) -> float:
    r"""Central epsilon of shuffled binary response by Cheu et al. (upper).

    Every bit is replaced by a fair coin with probability ``blanket_mass`` :math:`= \lambda/n`:

    .. math:: \varepsilon = \sqrt{\frac{32\log(4/\delta)}{s}}\Big(1-\frac sn\Big),\qquad
              s = \lambda - \sqrt{2\lambda\log(2/\delta)},

    for :math:`14\log(4/\delta) \le \lambda \le n`; ``inf`` elsewhere.

    Source: Cheu et al. 2019, as compared in the blanket paper.

    Examples
    --------
    >>> round(cheu(0.5, 1000, 1e-4), 4)
    0.5517
    """
    blankets = blanket_mass * n_users
    if delta == 0 or blankets < 14 * math.log(4 / delta):
        return math.inf
    lower = blankets - math.sqrt(2 * blankets * math.log(2 / delta))
    factor = 1 - blanket_mass + math.sqrt(2 * blanket_mass * math.log(2 / delta) / n_users)
    return above(math.sqrt(32 * math.log(4 / delta) / lower) * factor)


@states("clones", "2021-closed", item="2021, Theorem 3.1, closed form", gives="upper", rests_on="cited")
def clones_closed(epsilon0: float, n_users: int, delta: float) -> float:
    r"""Central epsilon after shuffling any local randomizer, by clones in closed form (upper).

    .. math:: \varepsilon = \log\Big(1+\frac{p-1}{p+1}\Big(\frac{8\sqrt{p\log(4/\delta)}}{\sqrt n}
              +\frac{8p}{n}\Big)\Big),\qquad p = e^{\varepsilon_0},

    for :math:`\varepsilon_0 \le \log\frac{n}{16\log(2/\delta)}`; ``inf`` elsewhere.

    Source: Feldman, McMillan, Talwar 2021, Theorem 3.1.

    Examples
    --------
    >>> round(clones_closed(4.0, 100_000, 1e-6), 6)
    0.534634
    """
    if delta == 0 or epsilon0 > math.log(n_users / (16 * (math.log(2) - math.log(delta)))):
        return math.inf
    p = math.exp(epsilon0)
    growth = 8 * math.sqrt(p * (math.log(4) - math.log(delta)) / n_users) + 8 * p / n_users
    return above(math.log1p(math.tanh(epsilon0 / 2) * growth))


def hoeffding_curve(shape: LossShape, n_users: int) -> LogDelta:
    """Hoeffding's inequality for every number of blanket users, averaged; rounded up."""
    mass, spread = shape.mass, shape.spread
    scale = 2 * math.log(spread) - math.log(4) - shape.log_mass - math.log(n_users)

    def log_delta(epsilon: float) -> float:
        growth = math.expm1(epsilon)
        ratio = math.tanh(epsilon / 2) / spread  # a / b
        power = n_users * math.log1p(mass * math.expm1(-2 * ratio * ratio))
        doubt = MARGIN + 32 * ROUNDING * abs(power)  # roundings in the exponent
        return scale + 2 * math.log(growth + 2) - math.log(growth) + power + doubt

    return log_delta


def bennett_curve(shape: LossShape, n_users: int) -> LogDelta:
    """Bennett's inequality for every number of blanket users, averaged; rounded up."""
    mass, odds = shape.mass, shape.odds
    scale = -shape.log_mass - math.log(n_users)

    def log_delta(epsilon: float) -> float:
        log_front, decay = _bennett_parts(shape, epsilon)
        power = n_users * math.log1p(mass * math.expm1(-decay))
        doubt = MARGIN + (32 + 4 * abs(log_expm1(epsilon))) * ROUNDING * abs(power)
        return scale + log_front + power + log1mexp(n_users * math.log1p(math.exp(-decay) * odds)) + doubt

    return log_delta


def _bennett_parts(shape: LossShape, epsilon: float) -> tuple[float, float]:
    """Logarithm of ``b_+ / log(1 + a b_+ / c)``, and minus the logarithm of ``x``."""
    log_a = log_expm1(epsilon)
    log_c = shape.log_second_moment(epsilon, log_a)
    u = math.exp(log_a + shape.log_high(epsilon) - log_c)
    stretch = u / math.log1p(u) if u > 0 else 1.0
    return log_c - log_a + math.log(stretch), math.exp(2 * log_a - log_c) * phi_over_square(u)


def phi_over_square(u: float) -> float:
    """``((1 + u) log(1 + u) - u) / u^2``, by its series near 0 where the difference cancels."""
    if u > 0.3:
        return ((1 + u) * math.log1p(u) - u) / (u * u)
    total = 0.0
    for degree in range(30, 1, -1):
        total = 1 / (degree * (degree - 1)) - u * total
    return total


def withdrawn_curve(shape: LossShape, n_users: int) -> LogDelta:
    """Bennett's inequality before the correction: every term divided by ``a m`` (no bound)."""
    mass, odds = shape.mass, shape.odds
    scale = -shape.log_mass - math.log(n_users)

    def log_delta(epsilon: float) -> float:
        log_front, decay = _bennett_parts(shape, epsilon)
        power = n_users * math.log1p(mass * math.expm1(-decay))
        inverse = math.log(_mean_inverse(n_users, math.exp(-decay) * odds))
        return scale + log_front - log_expm1(epsilon) + power + inverse

    return log_delta


def _mean_inverse(n: int, odds: float) -> float:
    r"""``E[1/M; M >= 1]`` for a binomial M of n trials with these odds of success.

    Few trials: the sum of :math:`(w^i - w^n)/(n-i)` with :math:`w = 1/(1+\text{odds})`, from the integral of
    :math:`((1+t)^n - 1)/t`.  Many successes: Waring's series of inverse rising factorials, whose error is below
    ``1e-17``.  Else the probabilities themselves, by their recurrence.
    """
    prob = odds / (1 + odds) if odds < 1e300 else 1.0
    if n <= 1000:
        rate = min(math.log1p(odds), 1000.0)
        return math.fsum(-math.exp(-i * rate) * math.expm1((i - n) * rate) / (n - i) for i in range(n))
    if n * prob > 200:
        term, total = 1 / ((n + 1) * prob), 0.0
        for j in range(1, 15):
            total += term
            term *= j / ((n + j + 1) * prob)
        return total
    weight, total, m = n * odds * math.exp(-n * math.log1p(odds)), 0.0, 1
    while m <= n * prob or weight > 1e-18 * total:
        total += weight / m
        weight *= (n - m) / (m + 1) * odds
        m += 1
    return total


@states("blanket", "lem-5.1", item="Section 5, blanket mass of standard randomizers", gives="exact", rests_on="proven",
        adjacency="none", randomizers=("kary", "laplace", "gaussian", *SUPPORTS))  # fmt: skip
def blanket_mass(randomizer: KaryProfile | SupportProfile | LaplaceProfile | GaussianProfile) -> float:
    r"""Probability that a message can be taken to ignore its input (exact).

    .. math:: \gamma = \frac{k}{e^{\varepsilon_0}+k-1}, \qquad e^{-\varepsilon_0/2}, \qquad 2\Phi(-\tfrac{1}{2\sigma})

    for k-ary response, Laplace noise of scale :math:`1/\varepsilon_0` and Gaussian noise of standard deviation
    :math:`\sigma` on inputs in [0, 1].

    Source: Balle, Bell, Gascon, Nissim 2019, Section 5.

    Examples
    --------
    >>> round(blanket_mass(LaplaceProfile(epsilon0=1.0)), 12)
    0.606530659713
    """
    return randomizer.mass


@states("blanket", "thm-3.1", item="Theorem 3.1", gives="value")
def histogram_blanket_mass(n_users: int, n_buckets: int, epsilon: float, delta: float) -> float:
    r"""Blanket mass at which shuffled k-ary response is (epsilon, delta)-private by Theorem 3.1 (a value).

    .. math:: \gamma = \frac{k}{n-1}\max\Big\{\frac{14\log(2/\delta)}{\varepsilon^2},\ \frac{27}{\varepsilon}\Big\}.

    Parameters
    ----------
    n_buckets
        Size of the alphabet, at least 2 (one more than the finest message of a summation).
    epsilon
        In (0, 1]: the theorem's regime.
    delta
        In (0, 1].

    Raises
    ------
    DomainError
        Outside the regime, or where the mass would exceed 1: the theorem says nothing for so few users.

    Source: Balle, Bell, Gascon, Nissim 2019, Theorem 3.1.

    Examples
    --------
    >>> round(histogram_blanket_mass(1000, 10, 1.0, 0.5), 12)
    0.27027027027
    """
    if not 0 < epsilon <= 1:
        raise DomainError(f"epsilon must be a number in (0, 1] for Theorem 3.1, got {epsilon!r}")
    if delta == 0:
        raise DomainError("delta must be a number in (0, 1] for Theorem 3.1, got 0")
    needed = blankets_needed(n_buckets, epsilon, delta)
    if needed > n_users - 1:
        least = math.ceil(needed) + 1 if needed < 2**53 else needed
        raise DomainError(
            f"n_users must be at least {least:.16g} for Theorem 3.1 at these n_buckets, epsilon and delta "
            f"(the blanket mass may not exceed 1), got {n_users}"
        )
    return needed / (n_users - 1)


def blankets_needed(n_buckets: int, epsilon: float, delta: float) -> float:
    r"""Expected number of blanket messages that Theorem 3.1 asks for: its mass times :math:`n - 1`."""
    n_buckets, epsilon, delta = check(n_buckets=n_buckets, epsilon=epsilon, delta=delta).values()
    if epsilon == 0 or delta == 0:
        return math.inf
    return n_buckets * max(14 * math.log(2 / delta) / epsilon / epsilon, 27 / epsilon)


def histogram_epsilon(n_users: int, n_buckets: int, blanket_mass: float, delta: float) -> float:
    r"""Least epsilon that Theorem 3.1 gives k-ary response of this blanket mass: its inverse (upper).

    .. math:: \varepsilon = \max\Big\{\sqrt{\frac{14\log(2/\delta)}{c}},\ \frac{27}{c}\Big\}, \qquad
              c = \frac{(n-1)\gamma}{k},

    ``inf`` above 1, outside the regime.  Source: Balle, Bell, Gascon, Nissim 2019, Theorem 3.1.
    """
    n_users, n_buckets, blanket_mass, delta = check(
        n_users=n_users, n_buckets=n_buckets, blanket_mass=blanket_mass, delta=delta
    ).values()
    if delta == 0:
        return math.inf
    per_bucket = (n_users - 1) * blanket_mass / n_buckets
    epsilon = above(max(math.sqrt(14 * math.log(2 / delta) / per_bucket), 27 / per_bucket))
    while epsilon <= 1 and blankets_needed(n_buckets, epsilon, delta) > (n_users - 1) * blanket_mass:
        epsilon = math.nextafter(epsilon, math.inf)
    return epsilon if epsilon <= 1 else math.inf


def kary_epsilon0(n_buckets: int, blanket_mass: float) -> float:
    r"""Local budget of k-ary response with this blanket mass: :math:`\log(1 + k(1-\gamma)/\gamma)` (exact).

    Source: Balle, Bell, Gascon, Nissim 2019, Algorithm 1.
    """
    n_buckets, blanket_mass = check(n_buckets=n_buckets, blanket_mass=blanket_mass).values()
    return math.log1p(n_buckets * (1 - blanket_mass) / blanket_mass)


@states("blanket", "lem-hoeffding", item="Section 5, bound by Hoeffding's inequality", gives="upper", rests_on="proven",
        randomizers=("kary", "laplace", "any", *SUPPORTS))  # fmt: skip
def hoeffding(
    randomizer: BoundedProfile, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> float:
    r"""Central delta at ``epsilon``, or epsilon at ``delta``, by Hoeffding's inequality (upper).

    With :math:`a = e^{\varepsilon}-1`, blanket mass :math:`\gamma` and :math:`b` the range of the amplification
    variable,

    .. math:: \delta = \frac{b^2}{4a\gamma n}\Big(1-\gamma\big(1-e^{-2a^2/b^2}\big)\Big)^n ,

    at most 1.  The formula falls and, beyond :math:`\varepsilon = \log 3`, may rise again; epsilon is sought on the
    falling side, so that it is the least one at which the formula meets ``delta``.

    Parameters
    ----------
    randomizer
        ``any`` takes the authors' generic constants for every randomizer of that local budget.

    Source: Balle, Bell, Gascon, Nissim 2019, Section 5.

    Examples
    --------
    >>> from flamelib.core.profiles import AnyProfile
    >>> round(hoeffding(AnyProfile(0.4), 5000, epsilon=0.005), 10)
    0.0379424719
    >>> round(hoeffding(LaplaceProfile(0.4), 5000, delta=1e-6), 10)
    0.0242334546
    """
    return _answer(hoeffding_curve, randomizer, n_users, epsilon, delta)


@states("blanket", "lem-bennett", item="Section 5, bound by Bennett's inequality, as corrected by its authors",
        gives="upper", rests_on="proven", randomizers=("kary", "laplace", "any", *SUPPORTS))  # fmt: skip
def bennett(
    randomizer: BoundedProfile, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> float:
    r"""Central delta at ``epsilon``, or epsilon at ``delta``, by Bennett's inequality (upper; corrected form).

    With :math:`a = e^{\varepsilon}-1`, :math:`b_+` the greatest value and :math:`c` the second moment of the
    amplification variable, :math:`\phi(u) = (1+u)\log(1+u)-u` and
    :math:`x = \exp(-\tfrac{c}{b_+^2}\phi(\tfrac{ab_+}{c}))`,

    .. math:: \delta = \frac{b_+}{\gamma n \log(1+ab_+/c)}\Big[(1-\gamma+\gamma x)^n-(1-\gamma)^n\Big],

    at most 1.  Computed through :math:`u = ab_+/c` as :math:`\tfrac{b_+}{\log(1+u)} = \tfrac{c}{a}\tfrac{u}{\log(1+u)}`
    and :math:`\log x = -\tfrac{a^2}{c}\tfrac{\phi(u)}{u^2}`, which stay finite as :math:`b_+ \to 0`.

    Source: Balle, Bell, Gascon, Nissim 2019, Section 5, in the form of the authors' correction of July 2020.

    Examples
    --------
    >>> round(bennett(KaryProfile(0.4, 100), 5000, delta=1e-6), 10)
    0.0035207898
    """
    return _answer(bennett_curve, randomizer, n_users, epsilon, delta)


@states("flame", "bennett-withdrawn", item="the bound by Bennett's inequality as it stood before its correction",
        gives="value", randomizers=("kary", "laplace", *SUPPORTS))  # fmt: skip
def bennett_withdrawn(
    randomizer: KaryProfile | SupportProfile | LaplaceProfile, n_users: int, epsilon: float | None = None,
    delta: float | None = None,
) -> float:  # fmt: skip
    r"""The withdrawn form of :func:`bennett`, kept to reproduce what was computed with it (**not a bound**).

    Each term of the sum over the number :math:`m` of blanket users is divided by :math:`a m`:

    .. math:: \frac{b_+}{a\,\gamma n \log(1+ab_+/c)}\ E\Big[\frac{x^M}{M}\mathbf 1_{M\ge1}\Big], \qquad
              M \sim \mathrm{Bin}(n, \gamma).

    Source: the blanket authors' code before July 2020; used by FLAME (Liu et al. 2021).

    Examples
    --------
    >>> round(bennett_withdrawn(LaplaceProfile(0.5), 333, delta=8e-7), 4)
    0.1056
    """
    return _answer(withdrawn_curve, randomizer, n_users, epsilon, delta)


def largest_epsilon0(
    bound: Callable[..., float],
    profile_of: Callable[[float], Profile],
    n_users: int,
    epsilon: float,
    delta: float,
    at_most: float = 10.0,
) -> float:
    """Greatest local budget at which the bound still gives (epsilon, delta): never too large.

    The answer is at least ``epsilon``: a local budget of that size needs no shuffling; the search ends ``at_most``
    there.  The ``bound`` is asked for its delta, ``bound(randomizer, n_users, epsilon=...)``, and ``profile_of`` makes
    a randomizer of a local budget, as ``LaplaceProfile`` does.
    """
    n_users, epsilon, delta, at_most = check(n_users=n_users, epsilon=epsilon, delta=delta, epsilon0=at_most).values()

    def log_delta(epsilon0: float) -> float:
        found = bound(profile_of(epsilon0), n_users, epsilon=epsilon) if epsilon0 > epsilon else 0.0
        return math.log(found) if found > 0 else -math.inf

    return largest(log_delta, delta, min(epsilon, at_most), at_most)


def _log_delta(curve: LogDelta, epsilon0: float, epsilon: float) -> float:
    """The curve, at most 0, and ``-inf`` from the local budget on."""
    if epsilon >= epsilon0:
        return -math.inf
    return min(0.0, curve(epsilon)) if epsilon > 0 else 0.0


def _answer(
    bound: Callable[[LossShape, int], LogDelta], randomizer: BoundedProfile, n_users: int, epsilon: float | None,
    delta: float | None,
) -> float:  # fmt: skip
    """Delta at ``epsilon``, or epsilon at ``delta``; exactly one is given."""
    curve = bound(randomizer.loss_shape, n_users)
    if epsilon is not None:
        return probability(_log_delta(curve, randomizer.epsilon0, epsilon))
    # Uncapped up to the local budget: the search needs the slope of the curve, and its minimum.
    return smallest_epsilon(
        lambda trial: curve(trial) if trial > 0 else math.inf, delta or 0.0, at_most=randomizer.epsilon0, rises=True
    )
