r"""Exact privacy of the released sum: thinned noise, or Pólya shares.

One user's value shifts the sum by up to ``scale`` steps of the grid, and the sum is released with noise W, modulo N or
not (post-processing).  The worst shift s is the largest, both directions have the same delta, and the set on which
:math:`f(x-s)/f(x)` exceeds :math:`e^\varepsilon` is the union of s and one interval: delta is a difference of masses,
which :mod:`flamelib.accounting.noise.sum_laws` computes to a relative ``error``, added on the safe side.
Proof: book, chapter on cloak aggregation, "What the released sum reveals".

Several sums of the same users are composed by :func:`flamelib.accounting.composition.privacy_profile.composed_epsilon`
with the profile ``PrivacyProfile(lambda epsilon: thinned_sum(..., epsilon=epsilon), at_most=...)``.
"""

import math
from functools import partial, reduce

from flamelib.accounting.noise.sum_laws import MAX_SUMMANDS, Noise, PolyaNoise, ThinnedNoise, log_from, rare_count
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import log1mexp, logaddexp, probability
from flamelib.core.search import least_whole, least_whole_beyond, smallest_epsilon
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check, honest, odd, one_budget


@states("cloak", "doubt-9", item="Theorem 1, the released sum alone, this project", gives="upper", rests_on="proven")
def thinned_sum(
    n_users: int,
    scale: int,
    decay: float,
    noise_rate: float,
    epsilon: float | None = None,
    delta: float | None = None,
    colluding: int = 0,
    modulus: int | None = None,
) -> Certified:
    r"""Guarantee of the sum released by Theorem 1, without the leakage of the shuffled shares (upper).

    Exact up to ``uncertainty`` where at most 512 users add noise at the same time; beyond, only the noise of that many
    of them is counted, the rest being post-processing.  The printed guarantee is :math:`k\ln\frac1p` and
    :math:`(1-q)^n`.

    Parameters
    ----------
    scale : int, at least 1
        The :math:`k`, largest change of a user's value.
    colluding : int, below ``n_users``
        Users whose noise does not count: they reveal it, or drop out.
    modulus : int, odd, optional
        The :math:`N` at which each user's noise is truncated; left out, it is not.  The total variation to
        untruncated noise of n users is at most :math:`nq\frac{2p^{(N+1)/2}}{1+p}`, which counts :math:`1+e^\varepsilon`
        times, at the epsilon up to the given one at which the sum is least.

    Source: Ghazi, Pagh, Velingker 2019, Theorem 1; the accounting is this project's.

    Examples
    --------
    >>> rule = {"n_users": 1000, "scale": 10**4, "decay": math.exp(-0.9e-4), "noise_rate": math.log(2e6) / 1000}
    >>> f"{thinned_sum(**rule, epsilon=0.5):.4e}", f"{thinned_sum(**rule, delta=1e-6):.4f}"
    ('2.1658e-08', '0.4578')
    """
    n_users = honest(n_users, colluding)
    noise = ThinnedNoise(counted_users(n_users, noise_rate), decay, noise_rate)
    log_cut = -math.inf
    if modulus is not None:
        log_tail = (odd(modulus) + 1) // 2 * math.log(decay) + math.log(2 / (1 + decay))
        log_cut = min(math.log(n_users) + math.log(noise_rate) + log_tail, 0.0)
    return _answer(noise, scale, epsilon, delta, log_cut)


def polya_sum(
    n_users: int,
    scale: int,
    decay: float,
    epsilon: float | None = None,
    delta: float | None = None,
    colluding: int = 0,
    missing: int = 0,
) -> Certified:
    r"""Guarantee of a sum with Pólya shares of noise, without the leakage of the shuffled shares (upper).

    The shares of ``n_users - colluding`` users add up to two-sided geometric noise: :math:`k\ln\frac1p` at a delta
    of 0.  Where more are ``missing`` in fact than the ``colluding`` users planned for, it is
    :math:`\ln\frac{f(0)}{f(k)}` for the mass function f of the shares present.  Where fewer are missing, all shares
    present count, as a whole multiple of those planned, up to 512; the rest is post-processing.  Exactly one of
    ``epsilon`` and ``delta`` is given.

    Source: Balle, Bell, Gascon, Nissim 2020, Private Summation in the Multi-Message Shuffle Model.
    """
    given = check(n_users=n_users, scale=scale, decay=decay, missing=missing)
    planned = honest(n_users, colluding)
    if missing >= n_users:
        raise DomainError(f"missing must be a whole number in [0, {n_users - 1}] of {n_users} users, got {missing}")
    epsilon, delta = one_budget(epsilon, delta).values()
    present = given["n_users"] - given["missing"]
    times = min(present // planned, MAX_SUMMANDS)
    noise = ThinnedNoise(times, decay, 1.0) if times > 1 else PolyaNoise(present, planned, decay)
    return _answer(noise, given["scale"], epsilon, delta, -math.inf)


def counted_users(n_users: int, noise_rate: float) -> int:
    """Largest number of these users with ``rare_count`` at most ``MAX_SUMMANDS``."""
    n_users, noise_rate = check(n_users=n_users, noise_rate=noise_rate).values()
    return least_whole(lambda count: rare_count(count + 1, noise_rate) > MAX_SUMMANDS, 0, n_users)


def log_delta(noise: Noise, shift: int, epsilon: float) -> float:
    """Log delta of a sum with this noise and a shift of up to ``shift`` (upper)."""
    return _excess(noise, shift, epsilon)[0]


def _answer(noise: Noise, shift: int, epsilon: float | None, delta: float | None, log_cut: float) -> Certified:
    """Delta, or least epsilon, plus ``(1 + e^epsilon) exp(log_cut)`` for a total variation of ``exp(log_cut)``.

    The sum is convex in ``e^epsilon``.  It decreases while the mass under Q of the set of ratios above ``e^epsilon``
    exceeds ``exp(log_cut)``; beyond its minimum (``valley``), the minimum is the answer.
    """
    step = 1e-4  # relative step of epsilon for the slope of log delta, for the uncertainty
    pure, cuts = _max_loss(noise, shift), log_cut > -math.inf
    valley = smallest_epsilon(partial(_log_exceeding, noise, shift), math.exp(log_cut), pure) if cuts else pure

    def log_delta(at: float) -> float:
        cut = logaddexp(0.0, at) + log_cut
        return logaddexp(_excess(noise, shift, at)[0], cut) if at < pure else cut

    if epsilon is not None:
        at = min(epsilon, valley) if cuts else epsilon
        high, log_error = probability(log_delta(at)), _excess(noise, shift, at)[1]
        return Certified(high, min(probability(log_error), high))
    if not delta or delta == 1 or (pure > 1e4 and not cuts):  # the largest loss is the answer
        return Certified(0.0 if delta == 1 else math.inf if cuts else pure, pure if delta and delta < 1 else 0.0)
    target = math.log(delta)
    found = smallest_epsilon(log_delta, delta, valley)
    if log_delta(found) > target:
        return Certified(math.inf, 0.0)
    slope = max((log_delta((1 - step) * found) - target) / step, step)
    return Certified(found, min(math.exp(_excess(noise, shift, found)[1] - target) / slope + step * step, 1.0) * found)


def _max_loss(noise: Noise, shift: int) -> float:
    """Largest privacy loss (upper): that at the shift, or that of a two-sided geometric distribution."""
    return max(_loss(noise, shift, shift) + 2 * noise.error(shift), -shift * math.log(noise.decay)) * (1 + 1e-15)


def _loss(noise: Noise, shift: int, x: int) -> float:
    """``log(f(x - shift) / f(x))`` for x of at least 1."""
    distance = abs(x - shift)
    return (noise.log_mass(distance) if distance else noise.log_atom) - noise.log_mass(x)


def _excess(noise: Noise, shift: int, epsilon: float) -> tuple[float, float]:
    """Log delta (upper), and the logarithm of its numerical error."""
    if isinstance(noise, PolyaNoise) and not noise.concave:
        return _excess_log_convex(noise, shift, epsilon)

    first, has_shift = _exceeding(noise, shift, epsilon)
    parts = [_log_difference(log_from(noise, first - shift), epsilon + log_from(noise, first), 2 * noise.error(first))]
    log_error = math.log(8 * noise.error(first)) + log_from(noise, first - shift)
    if has_shift:
        parts.append(_log_difference(noise.log_atom, epsilon + noise.log_mass(shift), 2 * noise.error(shift)))
        log_error = logaddexp(log_error, math.log(8 * noise.error(shift)) + noise.log_atom)
    return logaddexp(reduce(logaddexp, parts), logaddexp(log_error, math.log(2) + noise.log_lost)), log_error


def _exceeding(noise: Noise, shift: int, epsilon: float) -> tuple[int, bool]:
    """Set of ratios above ``e^epsilon`` for log-concave noise: its lower end, and whether it includes the shift.

    A superset, up to round-off of ratios near ``e^epsilon``, which is part of the error.
    """

    def exceeds(x: int) -> bool:
        return _loss(noise, shift, x) > epsilon - 2 * noise.error(x)

    first = least_whole(exceeds, shift // 2 + 1, shift)
    if first < shift:
        return first, False
    return least_whole_beyond(exceeds, shift), exceeds(shift)


def _log_exceeding(noise: Noise, shift: int, epsilon: float) -> float:
    """Log mass of that set under the unshifted noise."""
    first, has_shift = _exceeding(noise, shift, epsilon)
    return logaddexp(log_from(noise, first), noise.log_mass(shift) if has_shift else -math.inf)


def _excess_log_convex(noise: PolyaNoise, shift: int, epsilon: float) -> tuple[float, float]:
    """The same for log-convex noise: the set is an interval around the shift; a superset of it is used."""

    def exceeds(x: int) -> bool:
        return _loss(noise, shift, x) > epsilon - 2 * noise.error(x)

    if not exceeds(shift):
        return -math.inf, -math.inf
    first, last = least_whole(exceeds, shift // 2 + 1, shift), math.inf
    if epsilon >= -shift * math.log(noise.decay):
        last = least_whole_beyond(lambda x: not exceeds(x), shift)
    sides = [noise.log_between(1, count) for count in (shift - first, last - shift - 1) if count]
    left = reduce(logaddexp, sides, noise.log_atom)
    right = epsilon + noise.log_between(first, last - first)
    log_error = math.log(8 * noise.error(shift)) + left
    return logaddexp(_log_difference(left, right, 2 * noise.error(shift)), log_error), log_error


def _log_difference(left: float, right: float, error: float) -> float:
    """``log(exp(left) - exp(right))`` (upper bound), or ``-inf``."""
    return left + error + log1mexp(left - right + 2 * error) if left - right > -2 * error else -math.inf
