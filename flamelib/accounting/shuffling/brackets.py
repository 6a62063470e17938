"""Conversion of brackets of log delta: delta at an epsilon, or the epsilon at which the certified bound is delta."""

import math
from collections.abc import Callable, Sequence
from operator import itemgetter

from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.shuffling import bromwich, gaussian_sums
from flamelib.accounting.shuffling.bromwich import Bracket
from flamelib.accounting.shuffling.gaussian_sums import GaussianLaw
from flamelib.accounting.shuffling.laws import AtomicLaw, LossLaw
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import UNIT, log1mexp
from flamelib.core.search import smallest_epsilon
from flamelib.core.vocabulary import plainly

LawAt = Callable[[float], LossLaw | GaussianLaw]
BracketAt = Callable[[float], Bracket]
LogDeltaAt = Callable[[float], float]

RTOL_NOISE = 1e-5  # width of lower brackets of log delta for continuous noise, whose sums are long
ATOL_TARGET = 1e-8  # distance of log delta to its target at the answer
RTOL_LOCAL = 1e-12  # relative distance from the local budget of one evaluation
MIN_EPSILON0 = 1e-7  # smallest local budget of the numerics
MAX_EPSILON0 = 30.0  # largest local budget of the numerics and of searches: beyond, shuffling amplifies nothing


def divergence(law: LawAt, n_users: int, rtol: float = bromwich.RTOL_TIGHT) -> BracketAt:
    """Certified bracket of log delta, of width about ``rtol`` but for Gaussian noise, as a function of epsilon."""
    if isinstance(law(0.0), GaussianLaw):
        return lambda epsilon: gaussian_sums.bracket(law(epsilon), n_users)  # type: ignore[arg-type]
    return lambda epsilon: bromwich.bracket(law(epsilon), n_users, rtol)  # type: ignore[arg-type]


def estimate(law: LawAt, n_users: int) -> LogDeltaAt:
    """Uncertified log delta as a function of epsilon."""
    if isinstance(law(0.0), GaussianLaw):
        return lambda epsilon: gaussian_sums.quick(law(epsilon), n_users)  # type: ignore[arg-type]
    return lambda epsilon: bromwich.quick(law(epsilon), n_users)  # type: ignore[arg-type]


def of_law(
    law: LawAt, n_users: int, at_most: float, epsilon: float | None, delta: float | None, *, upper: bool = True,
    rtol: float = bromwich.RTOL_TIGHT,
) -> Certified:  # fmt: skip
    """The :func:`answer` for shuffled messages of this distribution; brackets of log delta have width ``rtol``."""
    reach, at_zero = at_most, law(0.0)
    if delta and isinstance(at_zero, GaussianLaw):
        reach = (1 + RTOL_LOCAL) * float(gaussian_mechanism(1.0, at_zero.noise_std, None, delta))  # of one message
    certified, quick = divergence(law, n_users, rtol), estimate(law, n_users)
    return answer(certified, quick, at_most, epsilon, delta, upper=upper, reach=reach)


def of_laws(
    laws: Sequence[Callable[[float], AtomicLaw]], n_users: int, at_most: float, epsilon: float | None,
    delta: float | None, *, upper: bool = True,
) -> Certified:  # fmt: skip
    """Maximum of :func:`of_law` over distributions; those below it by a Chernoff bound or one bracket are skipped."""
    found = of_law(laws[0], n_users, at_most, epsilon, delta, upper=upper)
    at = float(found) if epsilon is None else epsilon
    if not within_reach(at_most) or delta in (0, 1) or at >= at_most:
        return found
    # Near the local budget, not more than 1000 distributions are tried.
    if upper and epsilon is None and len(laws) > 1000 and at >= at_most * (1 - 1e-3):
        return Certified(at_most, at_most - at)

    def log_target() -> float:
        target = float(found) if delta is None else delta
        return math.log(target) if target else -math.inf

    tilt, least = bromwich.tilt(laws[0](at), n_users), log_target()
    likely = [law for law in laws[1:] if bromwich.chernoff_at(law(at), n_users, tilt) > least]
    bounded = [(bromwich.chernoff(law(at), n_users), law) for law in likely]
    for upper_log, law in sorted(bounded, key=itemgetter(0), reverse=True):
        at, least = float(found) if epsilon is None else epsilon, log_target()
        if at >= at_most or upper_log <= least:
            break
        # A wide and cheap bracket excludes most.
        if divergence(law, n_users, 0.01)(at).high <= least:
            continue
        if epsilon is None:
            bracket = divergence(law, n_users)(at)
            if (bracket.high if upper else bracket.low) <= least:
                continue
        found = max(found, of_law(law, n_users, at_most, epsilon, delta, upper=upper))
    return found


def answer(
    certified: BracketAt, quick: LogDeltaAt, at_most: float, epsilon: float | None, delta: float | None,
    *, upper: bool = True, reach: float | None = None,
) -> Certified:  # fmt: skip
    """Delta at ``epsilon``, or epsilon at ``delta``, on the safe side; delta is 0 from ``at_most`` on.

    ``reach`` is an upper bound of the estimated epsilon, if smaller.  Outside ``MIN_EPSILON0`` to ``MAX_EPSILON0`` the
    bound is that of the local budget without shuffling, with an uncertainty as large.
    """
    if not within_reach(at_most):
        certified, quick = locally(at_most), lambda at: locally(at_most)(at).high
    if epsilon is not None:
        return _delta(certified(epsilon), upper) if epsilon < at_most else Certified(0.0, 0.0)
    if not delta:
        return Certified(at_most, 0.0)
    if delta == 1:
        return Certified(0.0, 0.0)
    return _epsilon(certified, quick, at_most, math.log(delta), upper, at_most if reach is None else reach)


@plainly
def within_reach(epsilon0: float) -> bool:
    """Whether a local budget is in the range of the numerics (``inf``, that of Gaussian noise, is)."""
    return epsilon0 == math.inf or MIN_EPSILON0 <= epsilon0 <= MAX_EPSILON0


def locally(epsilon0: float) -> BracketAt:
    r"""Log delta of every pair with likelihood ratios within :math:`e^{\pm\varepsilon_0}`: that of binary response."""

    def at(epsilon: float) -> Bracket:
        if epsilon >= epsilon0:
            return Bracket(-math.inf, -math.inf)
        gap = epsilon0 - epsilon
        log_delta = log1mexp(gap) - math.log1p(math.exp(-epsilon0))
        return Bracket(-math.inf, log_delta * (1 - (16 + gap) * UNIT))

    return at


def _delta(bracket: Bracket, upper: bool) -> Certified:
    high = min(math.nextafter(math.exp(min(bracket.high, 0.0)), 1), 1.0) if bracket.high > -math.inf else 0.0
    low = max(math.nextafter(math.exp(bracket.low), 0), 0.0)
    return Certified(high if upper else low, high - low)


def _epsilon(
    certified: BracketAt, quick: LogDeltaAt, at_most: float, target: float, upper: bool, reach: float
) -> Certified:
    """Bracketed secant method on the certified bound, from the root of the estimate."""

    def excess(at: float) -> tuple[float, float]:
        bracket = certified(at)
        width = bracket.high - bracket.low if bracket.high > -math.inf else 0.0
        return (bracket.high - target if upper else target - bracket.low), width

    sign = 1 if upper else -1
    infeasible, feasible = (0.0, at_most) if upper else (at_most, 0.0)
    # A discontinuous estimate is solved to six digits only.
    after = float if math.isfinite(at_most) else _six_digits
    at = smallest_epsilon(quick, math.exp(target), reach, after=after)
    if at > at_most * (1 - 1e-6):
        # Delta falls to 0 within rounding of the local budget: one evaluation decides.
        edge = at_most * (1 - RTOL_LOCAL)
        if upper == (excess(edge)[0] > 0):
            return Certified(at_most if upper else edge, RTOL_LOCAL * at_most)
    slope, previous = _slope(quick, at, at_most), (math.nan, math.nan)
    undecided, upper_end = 0, at_most
    for _ in range(60):  # evaluations at most
        value, width = excess(at)
        if -max(ATOL_TARGET, 0.1 * width) <= value <= 0 or (at == 0 and upper == (value <= 0)):
            return Certified(at if value <= 0 else 0.0, min((width + ATOL_TARGET) / slope, at_most))
        infeasible, feasible = (infeasible, at) if value <= 0 else (at, feasible)
        if not upper and value > 0:
            undecided, upper_end = (undecided + 1, upper_end) if value <= width else (undecided, min(at, upper_end))
            # At most 5 evaluations whose sign is undecided within the bracket.
            if undecided > 5:
                return Certified(feasible, upper_end - feasible)
        secant = -sign * (value - previous[1]) / (at - previous[0]) if at != previous[0] else math.nan
        is_stuck = feasible == math.inf and value >= previous[1]  # at underflow the bound may increase in epsilon
        slope, previous = (secant if secant > 0 and math.isfinite(secant) else slope), (at, value)
        low, high = min(infeasible, feasible), max(infeasible, feasible)
        at += sign * (value + ATOL_TARGET / 2) / slope
        if is_stuck or not low < at < high:
            at = (low + high) / 2 if math.isfinite(high) else 2 * low + 1
        is_edge = at_most == math.inf == value and high - low <= 1e-3 * low  # underflow, for Gaussian noise only
        if is_edge or not low < at < high:
            break
    return Certified(feasible, abs(feasible - infeasible) if math.isfinite(feasible) else math.inf)


def _six_digits(epsilon: float) -> float:
    """Epsilon rounded to six digits."""
    return float(f"{epsilon:.6g}")


def _slope(quick: LogDeltaAt, at: float, at_most: float) -> float:
    step = min(1e-5 * at + 1e-9, 0.1 * (at_most - at))
    low, high = max(at - step, 0.0), at + step
    if high <= low:
        return 1.0
    rate = (quick(low) - quick(high)) / (high - low)
    return rate if rate > 0 and math.isfinite(rate) else 1.0
