"""From brackets to answers: delta at an epsilon, or the epsilon at which the certified end meets delta."""

import math
from collections.abc import Callable, Sequence
from operator import itemgetter

from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.shuffling import bromwich, gaussian_branch_cut
from flamelib.accounting.shuffling.bromwich import Bracket
from flamelib.accounting.shuffling.gaussian_branch_cut import GaussianLaw
from flamelib.accounting.shuffling.laws import AtomicLaw, LossLaw
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import UNIT, log1mexp
from flamelib.core.search import smallest_epsilon
from flamelib.core.vocabulary import plainly

LawAt = Callable[[float], LossLaw | GaussianLaw]
BracketAt = Callable[[float], Bracket]
LogDeltaAt = Callable[[float], float]

RTOL_NOISE = 1e-5  # width of the bracket of log delta for noise from below: the sixth digit takes long sums
ATOL_TARGET = 1e-8  # distance of log delta below its target at the answer
RTOL_LOCAL = 1e-12  # relative distance from the local budget at which the bound is evaluated once
MIN_EPSILON0 = 1e-7  # least local budget that the numerics answer for
MAX_EPSILON0 = 30.0  # largest local budget that the numerics answer for and searches try: more hides nothing


def divergence(law: LawAt, n_users: int, close: float = bromwich.RTOL_TIGHT) -> BracketAt:
    """Certified bracket of log delta, about so ``close`` but for Gaussian noise, as a function of epsilon."""

    def at(epsilon: float) -> Bracket:
        here = law(epsilon)
        if isinstance(here, GaussianLaw):
            return gaussian_branch_cut.bracket(here, n_users)
        return bromwich.bracket(here, n_users, close)

    return at


def estimate(law: LawAt, n_users: int) -> LogDeltaAt:
    """Quick log delta without certificate, as a function of epsilon."""

    def at(epsilon: float) -> float:
        here = law(epsilon)
        return (
            gaussian_branch_cut.quick(here, n_users) if isinstance(here, GaussianLaw) else bromwich.quick(here, n_users)
        )

    return at


def of_law(
    law: LawAt, n_users: int, at_most: float, epsilon: float | None, delta: float | None, *, upper: bool = True,
    close: float = bromwich.RTOL_TIGHT,
) -> Certified:  # fmt: skip
    """The :func:`answer` for shuffled messages of this law; brackets of log delta are about so ``close``."""
    reach, here = at_most, law(0.0)
    if delta and isinstance(here, GaussianLaw):
        reach = (1 + RTOL_LOCAL) * float(gaussian_mechanism(1.0, here.noise_std, None, delta))  # of one message alone
    certified, quick = divergence(law, n_users, close), estimate(law, n_users)
    return answer(certified, quick, at_most, epsilon, delta, upper=upper, reach=reach)


def of_laws(
    laws: Sequence[Callable[[float], AtomicLaw]], n_users: int, at_most: float, epsilon: float | None,
    delta: float | None, *, upper: bool = True,
) -> Certified:  # fmt: skip
    """The worst :func:`of_law` of several; laws that Chernoff's bound or one bracket rules out are passed over."""
    found = of_law(laws[0], n_users, at_most, epsilon, delta, upper=upper)
    at = float(found) if epsilon is None else epsilon
    if not within_reach(at_most) or delta in (0, 1) or at >= at_most:
        return found
    # Number of laws beyond which not each is tried where one is so near to the local budget.
    if upper and epsilon is None and len(laws) > 1000 and at >= at_most * (1 - 1e-3):
        return Certified(at_most, at_most - at)

    def log_target() -> float:
        target = float(found) if delta is None else delta
        return math.log(target) if target else -math.inf

    tilt, least = bromwich.tilt(laws[0](at), n_users), log_target()
    likely = [law for law in laws[1:] if bromwich.chernoff_at(law(at), n_users, tilt) > least]
    bounded = [(bromwich.chernoff(law(at), n_users), law) for law in likely]
    for most, law in sorted(bounded, key=itemgetter(0), reverse=True):
        at, least = float(found) if epsilon is None else epsilon, log_target()
        if at >= at_most or most <= least:
            break
        # Width of the bracket of log delta by which laws are ruled out: most are further off, and it costs little.
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
    """Delta at ``epsilon``, or epsilon at ``delta``, on the safe side; zero delta from ``at_most`` on.

    The estimate keeps ``delta`` at ``reach``, if that is smaller.  A local budget below ``MIN_EPSILON0`` or above
    ``MAX_EPSILON0`` is out of reach of the numerics, and of no interest: there the bound is what the local budget alone
    gives, and the uncertainty is all of it.
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
    """Whether a local budget is one the numerics answer for (``inf``, which Gaussian noise has, is)."""
    return epsilon0 == math.inf or MIN_EPSILON0 <= epsilon0 <= MAX_EPSILON0


def locally(epsilon0: float) -> BracketAt:
    r"""Laws within a factor :math:`e^{\varepsilon_0}` of each other diverge at most like those of binary response."""

    def at(epsilon: float) -> Bracket:
        if epsilon >= epsilon0:
            return Bracket(-math.inf, -math.inf)
        gap = epsilon0 - epsilon
        most = log1mexp(gap) - math.log1p(math.exp(-epsilon0))
        # Roundings of the bound by the local budget, besides that of the gap.
        return Bracket(-math.inf, most * (1 - (16 + gap) * UNIT))

    return at


def _delta(bracket: Bracket, upper: bool) -> Certified:
    high = min(math.nextafter(math.exp(min(bracket.high, 0.0)), 1), 1.0) if bracket.high > -math.inf else 0.0
    low = max(math.nextafter(math.exp(bracket.low), 0), 0.0)
    return Certified(high if upper else low, high - low)


def _epsilon(
    certified: BracketAt, quick: LogDeltaAt, at_most: float, target: float, upper: bool, reach: float
) -> Certified:
    """Start where the estimate meets the target; secants of the certified end, inside a bracket, do the rest."""

    def miss(at: float) -> tuple[float, float]:
        bracket = certified(at)
        width = bracket.high - bracket.low if bracket.high > -math.inf else 0.0
        return (bracket.high - target if upper else target - bracket.low), width

    sign = 1 if upper else -1
    fails, holds = (0.0, at_most) if upper else (at_most, 0.0)
    # An estimate that jumps is not followed into the last digits of the jump.
    after = float if math.isfinite(at_most) else _roughly
    at = smallest_epsilon(quick, math.exp(target), reach, after=after)
    if at > at_most * (1 - 1e-6):
        # Delta falls to 0 within rounding of the local budget: one look there saves a search for nothing.
        edge = at_most * (1 - RTOL_LOCAL)
        if upper == (miss(edge)[0] > 0):
            return Certified(at_most if upper else edge, RTOL_LOCAL * at_most)
    slope, before = _slope(quick, at, at_most), (math.nan, math.nan)
    unsettled, most = 0, at_most
    for _ in range(60):  # evaluations at most
        here, width = miss(at)
        if -max(ATOL_TARGET, 0.1 * width) <= here <= 0 or (at == 0 and upper == (here <= 0)):
            return Certified(at if here <= 0 else 0.0, min((width + ATOL_TARGET) / slope, at_most))
        fails, holds = (fails, at) if here <= 0 else (at, holds)
        if not upper and here > 0:
            unsettled, most = (unsettled + 1, most) if here <= width else (unsettled, min(at, most))
            # Evaluations without a decision on which side the answer lies, at most: round-off decides there.
            if unsettled > 5:
                return Certified(holds, most - holds)
        found = -sign * (here - before[1]) / (at - before[0]) if at != before[0] else math.nan
        is_stuck = holds == math.inf and here >= before[1]  # where doubles end, a larger epsilon may be bounded worse
        slope, before = (found if found > 0 and math.isfinite(found) else slope), (at, here)
        low, high = min(fails, holds), max(fails, holds)
        at += sign * (here + ATOL_TARGET / 2) / slope
        if is_stuck or not low < at < high:
            at = (low + high) / 2 if math.isfinite(high) else 2 * low + 1
        # Relative distance from the edge of what doubles hold, for Gaussian noise.
        is_edge = at_most == math.inf == here and high - low <= 1e-3 * low  # only of Gaussian noise
        if is_edge or not low < at < high:
            break
    return Certified(holds, abs(holds - fails) if math.isfinite(holds) else math.inf)


def _roughly(epsilon: float) -> float:
    """The first six digits."""
    return float(f"{epsilon:.6g}")


def _slope(quick: LogDeltaAt, at: float, at_most: float) -> float:
    step = min(1e-5 * at + 1e-9, 0.1 * (at_most - at))
    low, high = max(at - step, 0.0), at + step
    if high <= low:
        return 1.0
    rate = (quick(low) - quick(high)) / (high - low)
    return rate if rate > 0 and math.isfinite(rate) else 1.0
