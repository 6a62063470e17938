r"""Monotone inversion that errs to the safe side: one routine for every bound of the library.

Functions are given by the logarithm of delta.  Roots are sought in :math:`\sqrt{-\log\delta}`, which for a
shuffled or composed mechanism is close to linear in epsilon, by Chandrupatla's method (inverse quadratic steps
where they can be trusted, halving elsewhere).  Every step keeps a bracket, and the answer is the end of it at
which the bound *was evaluated* and found to hold.

:func:`root` is for arguments of which every one is valid and one is best.  Standard library only.
"""

import math
from collections.abc import Callable, Iterator
from itertools import islice

from flamelib.core.vocabulary import DomainError

STEPS = 200
WIDTH = 1e-12
GOLDEN = (math.sqrt(5) - 1) / 2
CLOSE, NARROW, ATTEMPTS, LEAP = 0.98, 1.01, 20, 4.0
FARTHEST = 2.0  # a step along a straight line on logarithmic axes, at most
FINEST = 4 * math.ulp(1.0)
FARTHEST_BACK = 1e-3  # the last relative step back from where a search ended
DOUBLINGS = 64  # a whole number beyond 2^64 is out of reach


def smallest_epsilon(
    log_delta: Callable[[float], float],
    delta: float,
    at_most: float,
    rises: bool = False,
    at_least: float = 0.0,
    after: Callable[[float], float] = float,
) -> float:
    """Least epsilon found with ``log_delta(epsilon) <= log(delta)``: never too small, 1e-12 too large at most.

    It takes some ten evaluations for a smooth bound, and at most ``STEPS`` for any.

    Parameters
    ----------
    log_delta : callable
        Non-increasing in epsilon on [0, at_most]; itself an upper bound on the logarithm of delta.  ``-inf``
        stands for a delta of 0, ``inf`` and NaN for no bound.
    delta : float
        Target in [0, 1]; a delta of 1 is kept by every mechanism, so that its answer is 0.
    at_most : float
        An epsilon that is a guarantee anyway (the local budget), or ``inf``: the answer when the bound never
        reaches the target.
    rises : bool
        The bound may fall and then rise again before ``at_most``: look for its valley where its end is too high.
    at_least : float
        No smaller answer exists; the answer where the bound already holds there.
    after : callable
        Non-decreasing function from the epsilon sought to the one that is meant; the search ends when that is settled.
    """
    if delta == 0 or delta >= 1:
        return at_most if delta == 0 else 0.0
    excess = _excess(log_delta, delta)
    at_start = excess(at_least)
    if at_start <= 0:
        return at_least
    end = _reached(excess, at_most, rises)
    return at_most if end is None else _safe_end(excess, (at_least, at_start), end, after)


def largest(log_delta: Callable[[float], float], delta: float, at_least: float, at_most: float) -> float:
    """Greatest argument found in [at_least, at_most] with ``log_delta <= log(delta)``: never too large.

    Parameters
    ----------
    log_delta : callable
        Non-decreasing on [at_least, at_most]; itself an upper bound on the logarithm of delta.
    delta : float
        Target in [0, 1].
    at_least : float
        An argument that is allowed anyway; the answer when no greater one is.
    at_most : float
        End of the search, and the answer where the bound still holds.
    """
    if delta == 0:
        return at_least
    excess = _excess(log_delta, delta)
    at_end = excess(at_most)
    if at_end <= 0:
        return at_most
    at_start = excess(at_least)
    return _safe_end(excess, (at_most, at_end), (at_least, at_start)) if at_start <= 0 else at_least


def greatest(rising: Callable[[float], float], target: float, start: float, most: float = math.inf) -> float:
    """An argument at which a rising function was evaluated, found not above the target, and close below it if possible.

    At a jump of the function the answer is within 1 % of it; arguments beyond ``most`` are not tried.
    Straight lines on logarithmic axes are followed; where one leaves the bracket, its middle is taken.
    """
    low, high = (0.0, 0.0), (math.inf, math.inf)
    argument = start
    for _ in range(ATTEMPTS):
        found = rising(argument)
        if found <= target:
            low = (argument, found)
        else:
            high = (argument, found)
        if low[1] >= CLOSE * target or min(high[0], most) <= NARROW * low[0]:
            break
        argument = min(_between(low, high, (1 + CLOSE) / 2 * target), most)
    if not low[0]:
        raise DomainError(f"target must be one that is reached within {ATTEMPTS} trials, got {target}")
    return low[0]


def log_excess(value: float, target: float) -> float:
    """Logarithm of a positive value over its target, which is above 0 wherever the value is above the target."""
    if not value:
        return -math.inf
    found = math.log(value / target)
    return max(found, math.ulp(0.0)) if value > target else min(found, 0.0)


def stepped_back(
    shown: Callable[[float], float], argument: float, target: float, name: str = "epsilon", *, rises: bool = True
) -> float:
    """The argument, moved to its safe side until the number shown for it, compared as it is, is at most the target.

    Two searches may end some digits apart: an argument at which delta is kept at epsilon, say, and the epsilon that is
    then certified at delta.  Mostly no step is needed, or one.

    Parameters
    ----------
    shown : callable
        The number that will be shown for an argument.
    argument : float
        Above 0, where the search ended.
    target : float
        Refused under its ``name`` where a step of ``FARTHEST_BACK`` does not lead to it.
    rises : bool
        Whether the number rises with the argument (a local budget) or falls (noise).

    >>> round(stepped_back(lambda x: x * (1 + 1e-9), 2.0, 2.0), 10)
    1.999999996
    """
    step = 0.0
    while (found := shown(argument)) > target:
        step = max(2 * (found / target - 1) if target else 0.0, 4 * step, FINEST)
        if not step <= FARTHEST_BACK:
            raise DomainError(f"{name} must be one that is kept within reach, got {target!r}")
        argument *= 1 - step if rises else 1 + step
    return argument


def root(
    function: Callable[[float], float], low: float, high: float, xtol: float, rtol: float = FINEST, steps: int = 100
) -> float:
    """A root of a function that changes its sign in [low, high], by the method of Brent 1973; no side is the safe one.

    It takes the same steps, and gives the same answer to the last bit, as ``scipy.optimize.brentq``, whose module takes
    longer to load than a certified answer takes to compute.

    Parameters
    ----------
    function : callable
        Of another sign at ``low`` than at ``high``, or 0 there.
    low, high : float
    xtol, rtol : float
        The answer is within ``xtol + rtol * abs(root)``.
    steps : int
        The most steps that are taken; the answer is where the last one led.
    """
    before, at = float(low), float(high)
    f_before, f_at = _value(function, before), _value(function, at)
    if f_before == 0 or f_at == 0:
        return before if f_before == 0 else at
    if (f_before < 0) == (f_at < 0):
        raise ValueError(f"the function must change its sign in [{low}, {high}]")
    other = f_other = last = step = 0.0
    for _ in range(steps):
        if f_before != 0 and f_at != 0 and (f_before < 0) != (f_at < 0):
            other, f_other = before, f_before
            last = step = at - before
        if abs(f_other) < abs(f_at):
            before, at, other = at, other, at
            f_before, f_at, f_other = f_at, f_other, f_at
        near = (xtol + rtol * abs(at)) / 2
        half = (other - at) / 2
        if f_at == 0 or abs(half) < near:
            break
        leap = math.inf
        if abs(last) > near and abs(f_at) < abs(f_before):
            leap = _leap((before, f_before), (at, f_at), (other, f_other))
        last, step = (step, leap) if 2 * abs(leap) < min(abs(last), 3 * abs(half) - near) else (half, half)
        before, f_before = at, f_at
        at += step if abs(step) > near else math.copysign(near, half)
        f_at = _value(function, at)
    return at


def _value(function: Callable[[float], float], argument: float) -> float:
    value = float(function(argument))
    if math.isnan(value):
        raise ValueError(f"the function is not a number at {argument}")
    return value


def _leap(before: tuple[float, float], at: tuple[float, float], other: tuple[float, float]) -> float:
    """Where the secant, or the inverse parabola, leads from ``at``; infinitely far where there is none."""
    (a, fa), (b, fb), (c, fc) = before, at, other
    try:
        if a == c:
            return -fb * (b - a) / (fb - fa)
        near, far = (fa - fb) / (a - b), (fc - fb) / (c - b)
        return -fb * (fc * far - fa * near) / (far * near * (fc - fa))
    except ZeroDivisionError:
        return math.inf


def _between(low: tuple[float, float], high: tuple[float, float], target: float) -> float:
    if not low[0] or math.isinf(high[0]):
        argument, value = low if low[0] else high
        return argument * (min(max(target / value, 1 / LEAP), LEAP) if value else LEAP)
    if math.isinf(high[1]) or not low[1]:
        return math.sqrt(low[0] * high[0])
    share = math.log(target / low[1]) / math.log(high[1] / low[1])
    return low[0] * math.pow(high[0] / low[0], min(max(share, 0.05), 0.95))


def _excess(log_delta: Callable[[float], float], delta: float) -> Callable[[float], float]:
    """The bound minus the target, both on the scale on which a Gaussian tail is a straight line."""
    target = math.log(delta)
    bent_target = _bend(target)

    def excess(argument: float) -> float:
        value = log_delta(argument)
        bent = _bend(value) - bent_target
        # Two logarithms may bend to the same double; the sign is decided before bending.
        return bent if (bent <= 0) == (value <= target) else math.copysign(math.ulp(0.0), value - target)

    return excess


def _bend(value: float) -> float:
    return math.copysign(math.sqrt(abs(value)), value)


def _reached(excess: Callable[[float], float], at_most: float, rises: bool) -> tuple[float, float] | None:
    """An argument at which the target is met, with its excess."""
    high = 1.0 if math.isinf(at_most) else at_most
    while True:
        value = excess(high)
        if value <= 0:
            return high, value
        if math.isfinite(at_most) or high > 1e6:
            return _valley(excess, high) if rises else None
        high *= 2


def _valley(excess: Callable[[float], float], high: float) -> tuple[float, float] | None:
    """Golden-section descent on [0, high]; stops at the first argument that meets the target."""
    for (value, argument), low, end in islice(golden_sections(excess, high), STEPS):
        if value <= 0:
            return argument, value
        if end - low <= 1e-6 * end:
            break
    return None


def golden_sections(value: Callable[[float], float], high: float) -> Iterator[tuple[tuple[float, float], float, float]]:
    """Golden sections of [0, high] about a minimum: the least of both values within, its argument, and both ends."""
    low = 0.0
    left, right = high - GOLDEN * high, GOLDEN * high
    at_left, at_right = value(left), value(right)
    while True:
        yield min((at_left, left), (at_right, right)), low, high
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = value(right)


def _safe_end(
    excess: Callable[[float], float],
    outside: tuple[float, float],
    inside: tuple[float, float],
    after: Callable[[float], float] = float,
) -> float:
    """The end of the final bracket at which the excess was evaluated and is at most 0."""
    newest, other, before = outside, inside, outside
    step = 0.0
    for count in range(STEPS):
        if _same(newest[0], other[0]) or _same(after(newest[0]), after(other[0])):
            break
        step = _secant(newest, other) if count == 0 else _quadratic(newest, other, before)
        argument = _place(newest[0], other[0], step, 0.4 * WIDTH * max(abs(newest[0]), abs(other[0])))
        if argument in (newest[0], other[0]):
            break
        found = (argument, excess(argument))
        if (found[1] <= 0) == (newest[1] <= 0):
            before = newest
        else:
            before, other = other, newest
        newest = found
    return newest[0] if newest[1] <= 0 else other[0]


def _same(one: float, two: float) -> bool:
    return abs(one - two) <= WIDTH * max(abs(one), abs(two))


def _secant(one: tuple[float, float], two: tuple[float, float]) -> float:
    """Where a straight line crosses zero, as a fraction of the way; 0 stands for halving."""
    rise = one[1] - two[1]
    return one[1] / rise if math.isfinite(rise) and rise != 0 else 0.0


def _quadratic(newest: tuple[float, float], other: tuple[float, float], before: tuple[float, float]) -> float:
    """Inverse quadratic step as a fraction of the way to the other end; 0 where it cannot be trusted."""
    (a, fa), (b, fb), (c, fc) = newest, other, before
    if c == b or not (math.isfinite(fa) and math.isfinite(fb) and math.isfinite(fc)) or fc == fb or fa == fc:
        return 0.0
    place, level = (a - b) / (c - b), (fa - fb) / (fc - fb)
    if not (level * level < place and (1 - level) * (1 - level) < 1 - place):
        return 0.0
    return fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)


def _place(start: float, stop: float, step: float, least: float) -> float:
    """The next argument: at least ``least`` from both ends; halving is geometric across orders of magnitude."""
    low, high = min(start, stop), max(start, stop)
    if step == 0:
        far_apart = high > 8 * low
        return math.sqrt(max(low, 1e-4 * high) * high) if far_apart else low + 0.5 * (high - low)
    return min(max(start + step * (stop - start), low + least), high - least)


def close_below(
    rising: Callable[[float], float],
    target: float,
    low: float,
    high: float,
    near: float,
    name: str = "target",
    start: float | None = None,
    slope: float = 1.0,
) -> float:
    """An argument in [low, high] at which a rising function was evaluated and is at most the target.

    It is ``high`` if the function is at most the target there.  Else the function is within ``near`` of the target,
    relatively, where it is smooth.  Few evaluations are made, for functions that take a second to compute.
    Straight lines on logarithmic axes are followed, and the middle is taken where they leave the bracket's inner part.
    A target that is not kept at ``low`` is refused under its ``name``.  With a guess, ``start``, the ends are asked for
    only where the search comes to them; ``slope`` is that of the first line.

    >>> round(close_below(lambda x: x**3, 2.0, 0.1, 10.0, 1e-6), 5)
    1.25992
    """
    if start is None:
        above = rising(high)
        if above <= target:
            return high
        below = rising(low)
    else:
        low, below, high, above = _around(rising, target, (low, high), near, (start, slope))
        if below <= target and low == high:
            return low
    if below > target:
        raise DomainError(f"{name} must be one that is reached in [{low:g}, {high:g}], got {target!r}")
    for _ in range(60):
        if below >= (1 - near) * target or high <= low * (1 + near / 10):
            break
        share = 0.5
        if below > 0 and math.isfinite(above):
            aim = math.log((1 - near / 2) * target / below) / math.log(above / below)
            share = min(max(aim, 0.02), 0.98)
        middle = low * (high / low) ** share
        found = rising(middle)
        low, below, high, above = (middle, found, high, above) if found <= target else (low, below, middle, found)
    return low


def _around(
    rising: Callable[[float], float], target: float, ends: tuple[float, float], near: float, start: tuple[float, float]
) -> tuple[float, float, float, float]:
    """Two arguments with their values, the target between them; one of them twice where it is near, or is an end."""
    last, argument, slope = None, min(max(start[0], ends[0]), ends[1]), start[1]
    while True:
        value = rising(argument)
        if last is not None and (value <= target) != (last[1] <= target):
            return (argument, value, *last) if value <= target else (*last, argument, value)
        if (1 - near) * target <= value <= target or argument == ends[value <= target]:
            return argument, value, argument, value
        step = LEAP if value <= target else 1 / LEAP
        if 0 < value < math.inf:
            if last is not None and 0 < last[1] < math.inf and last[1] != value:
                slope = max(math.log(value / last[1]) / math.log(argument / last[0]), 0.2)
            aim = math.exp(min(max(math.log((1 - near / 2) * target / value) / slope, -FARTHEST), FARTHEST))
            step = max(aim, 1 + near) if value <= target else min(aim, 1 - near)
        last, argument = (argument, value), min(max(argument * step, ends[0]), ends[1])


# --- whole numbers ----------------------------------------------------------------------------------


def least_whole(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Least whole number in [low, high] from which on ``holds`` is true; ``high``, untested, if no lower one is."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def least_whole_beyond(holds: Callable[[int], bool], start: int) -> int:
    """Least whole number above ``start`` from which on ``holds`` is true, or a number that is out of reach."""
    low, high = start, start + 1
    for _ in range(DOUBLINGS):
        if holds(high):
            return least_whole(holds, low + 1, high)
        low, high = high, 2 * high
    return high
