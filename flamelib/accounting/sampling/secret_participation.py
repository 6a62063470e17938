r"""One round of random participation with secret participants, Theorem 4.1.

A client joins with probability p and then draws each of its L records with probability q; participation is secret.
With :math:`\varepsilon = \log(1+(e^{\varepsilon'}-1)/(pq))`, :math:`c_0 = (1-p)(1-e^{-\varepsilon})` and
:math:`c_1 = 1-c_0`,

.. math:: \delta' = pq\;D_{e^{\varepsilon}}\big(\mu_2\,\|\,c_1\mu_1+c_0\mu_0\big)

where the client is absent (:math:`\mu_0`), present without the record (:math:`\mu_1`), present with it (:math:`\mu_2`).
Three readings differ in the treatment of the number j of other records that the client has drawn:

* ``outer``: j is revealed, :math:`\delta' = pq\sum_j\mathrm B(j;L-1,q)\,D_j`.  For a given j aligned gradients are the
  worst, so this upper bound holds for every data set; it exceeds the other direction,
  :func:`random_participation_add`, and alone is the guarantee.
* ``inner``: a mixture over j in the second measure only.  At most ``outer``, and no bound: below some data sets' delta.
* ``aligned``: mixtures over j in both.  The exact divergence of one pair of data sets, hence a lower bound.

Proofs: book, chapter on random participation, lemma "Gram matrices", "Outer is an upper bound", "Inner is no bound",
"Adding a record", "Removing is worse than adding".
"""

import math
from collections.abc import Callable
from functools import cache, partial

from flamelib.accounting.noise.gaussian import analytic_noise_std, gaussian_mechanism
from flamelib.accounting.sampling.closed_form import added_epsilon, sampled_epsilon, unsampled_epsilon
from flamelib.accounting.sampling.public_participation import sampled_from_delta, share, wcs
from flamelib.accounting.sampling.theorem_4_1 import (
    MAX_FINITE_EPSILON,
    Estimate,
    add_estimate,
    aligned_estimate,
    certain_epsilon,
    inner_estimate,
    outer_estimate,
)
from flamelib.core.guarantees import ARITHMETIC, Certified, Gives
from flamelib.core.logspace import ROUNDING_8, probability
from flamelib.core.search import WIDTH, smallest_epsilon, stepped_back
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError

READINGS: dict[str, Callable[[float, float, int, float, float], Estimate]] = {
    "outer": outer_estimate,
    "inner": inner_estimate,
    "aligned": aligned_estimate,
}
ESTIMATES = READINGS | {"add": add_estimate}

#: Participation rate, record rate, records, noise, clipping norm.
Round = tuple[float, float, int, float, float]


@states("participation", "thm-4.1", item="Theorem 4.1, Equations 5 to 7, in three readings",
        gives=lambda given: Gives({"outer": "upper", "inner": "value", "aligned": "lower"}[given["reading"]]),
        rests_on="proven",
        adjacency="add-remove")  # fmt: skip
def random_participation(
    reading: str,
    participation_rate: float,
    record_rate: float,
    n_records: int,
    noise_std: float,
    clip_norm: float,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:
    r"""Guarantee of one round, the larger data set first: ``outer`` upper, ``inner`` a value, ``aligned`` lower.

    .. math:: \delta'_{outer} = pq\sum_{j=0}^{L-1}\mathrm B(j;L-1,q)\;
              D_{e^\varepsilon}\big(N(C)\,\|\,c_1N(0)+c_0N(-jC)\big)

    The upper bound holds in both directions.  At delta 0 epsilon is ``inf``.

    Parameters
    ----------
    noise_std, clip_norm : float, positive
        Deviation of the noise of each coordinate of the sum, and largest 2-norm of a record's contribution to it.

    Source: Hasircioglu, Gunduz 2022, Theorem 4.1.

    Examples
    --------
    >>> for reading in ("outer", "inner", "aligned"):
    ...     print(f"{random_participation(reading, 0.1, 0.1, 2, 1.0, 1.0, epsilon=0.1):.4e}")
    1.8386e-04
    8.9985e-05
    1.7382e-04
    """
    return _answer(reading, (participation_rate, record_rate, n_records, noise_std, clip_norm), epsilon, delta)


@states("participation", "thm-4.1-add", item="Theorem 4.1, the other direction", gives="upper", rests_on="proven",
        adjacency="add-remove")  # fmt: skip
def random_participation_add(
    participation_rate: float,
    record_rate: float,
    n_records: int,
    noise_std: float,
    clip_norm: float,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:
    r"""Guarantee of one round, the smaller data set first (upper).

    .. math:: \delta' = pq\sum_{j=0}^{L-1}\mathrm B(j;L-1,q)\;
              D_{e^\varepsilon}\big(N(0)\,\|\,a_1N(0)+a_2N(C)+a_0N(jC)\big)

    with :math:`a_0 = (1-p)(1-e^{-\varepsilon})`, :math:`a_1 = p(1-q)(1-e^{-\varepsilon})`, :math:`a_2 = 1-a_0-a_1`, for
    opposed gradients.  At most the other direction.  Parameters and answer are those of :func:`random_participation`.

    Source: after Hasircioglu, Gunduz 2022, Theorem 4.1.

    Examples
    --------
    >>> f"{random_participation_add(0.1, 0.1, 2, 1.0, 1.0, epsilon=0.001):.4e}"
    '3.1941e-03'
    """
    return _answer("add", (participation_rate, record_rate, n_records, noise_std, clip_norm), epsilon, delta)


def _answer(reading: str, params: Round, epsilon: float | None, delta: float | None) -> Certified:
    if epsilon is not None:
        return _delta(reading, params, epsilon)
    return _epsilon(reading, params, 1.0 if delta is None else delta)


def _delta(reading: str, params: Round, epsilon: float) -> Certified:
    estimate = _estimate(reading, params, epsilon)
    if reading == "aligned" and estimate.log == -math.inf:
        return Certified(0.0, float(_delta("outer", params, epsilon)))
    if reading == "aligned":
        lower = math.exp(min(estimate.log, 0.0))
        return Certified(lower, min(lower * math.expm1(min(estimate.error, 700.0)) + math.ulp(lower), 1.0))
    upper = probability(estimate.high)
    # For a smaller epsilon expm1 loses digits; public participation is an upper bound.
    if epsilon < 1e-9 and reading in ("outer", "add"):
        p, q, _, noise_std, clip_norm = params
        upper = min(upper, float(wcs(p, q, noise_std, clip_norm, epsilon=epsilon)))
    return Certified(upper, upper * -math.expm1(-2 * estimate.error) + math.ulp(upper))


def _estimate(reading: str, params: Round, epsilon: float) -> Estimate:
    p, q, n_records, noise_std, clip_norm = params
    return ESTIMATES[reading](p, q, n_records, clip_norm / noise_std, epsilon)


def _epsilon(reading: str, params: Round, delta: float) -> Certified:
    """Solved for epsilon before sampling, in which sqrt(-log delta) is nearly linear.

    Bracketed by the answers of a client with one record (CS) and of one with infinitely many (WCS).
    """
    p, q, n_records, noise_std, clip_norm = params
    lower = reading == "aligned"
    amplify, end = _amplification(reading, params)
    upper = float(sampled_from_delta((p,), (q,), noise_std, clip_norm, delta))
    if reading == "add":
        upper = min(upper, certain_epsilon(p, q, n_records))
    if delta in (0.0, 1.0) or upper in (0.0, math.inf):
        return Certified(0.0 if lower and delta > 0 else upper, 0.0 if delta in (0.0, 1.0) else upper)

    estimate = cache(partial(_estimate, reading, params))

    def log_delta(epsilon: float) -> float:
        return estimate(epsilon).log if lower else estimate(epsilon).high

    gaussian = gaussian_mechanism(clip_norm, noise_std, delta=share(delta, (p, q)))
    start, end = 0.0, min(gaussian + 0.0, end)
    if reading in ("outer", "inner"):
        start = sampled_epsilon(max(gaussian - gaussian.uncertainty, 0.0) * (1 - 10 * WIDTH), p)
    unsampled = smallest_epsilon(lambda x: log_delta(amplify(x)), delta, end, at_least=start, after=amplify)
    target = math.log(delta)
    if lower:
        # Relative steps back until the lower bound holds.
        candidates = (amplify(unsampled * (1 - rtol)) for rtol in (2 * WIDTH, 1e-9, 1e-6, 1e-3))
        answer = next((candidate for candidate in candidates if log_delta(candidate) >= target), 0.0)
    else:
        answer = amplify(unsampled) if log_delta(amplify(unsampled)) <= target else upper
    width = answer - amplify(unsampled * (1 - 4 * WIDTH)) + 2 * abs(amplify(unsampled) - answer) + 2 * WIDTH * answer
    return Certified(answer, min(width + _epsilon_error(estimate, answer), upper))


def _amplification(reading: str, params: Round) -> tuple[Callable[[float], float], float]:
    """Epsilon after sampling as a function of that before, and the latter's upper limit."""
    p, q, n_records, *_ = params
    if reading != "add":
        return partial(sampled_epsilon, sampling_rate=q), MAX_FINITE_EPSILON
    rate = p * q if n_records == 1 else q
    # 30 - log(1 - rate): beyond this epsilon sampling adds less than 1e-13.
    return partial(added_epsilon, sampling_rate=rate), MAX_FINITE_EPSILON if rate == 1 else 30.0 - math.log1p(-rate)


def _epsilon_error(estimate: Callable[[float], Estimate], epsilon: float) -> float:
    """Error of epsilon by that of log delta: error over slope."""
    step = 1e-6  # relative step of epsilon for the slope of log delta
    at, below = estimate(epsilon), estimate(epsilon * (1 - step))
    is_increasing = below.log > at.log > -math.inf
    return 2 * at.error * step * epsilon / (below.log - at.log) if is_increasing else math.inf


@states("participation", "calibrate", item="Section 6, the noise that a guarantee of one round needs",
        gives=lambda given: Gives.VALUE if given["scheme"] in ("inner", "aligned") else Gives.UPPER, rests_on="proven",
        assumes=ARITHMETIC, adjacency="add-remove")  # fmt: skip
def participation_noise(
    scheme: str,
    participation_rate: float,
    record_rate: float,
    n_records: int,
    clip_norm: float,
    epsilon: float,
    delta: float,
) -> float:
    """Least noise that gives (epsilon, delta) in one round: upper, or the value of a formula that is no bound.

    A standard deviation in the unit of ``clip_norm``, rounded up by a relative 1e-10 at most; 0 where the probability
    that a record is drawn is at most delta.

    Parameters
    ----------
    scheme : str
        ``outer`` (both directions), ``wcs``, ``ols`` or ``cs``; ``inner`` and ``aligned`` are no guarantees.

    Source: Hasircioglu, Gunduz 2022, Section 6.

    Examples
    --------
    >>> f"{participation_noise('outer', 0.01, 0.01, 30, 1.0, 1e-3, 1e-6):.4f}"
    '1.5125'
    """
    if delta == 0:
        raise DomainError("delta must be above 0 for Gaussian noise, got 0")
    p, q = participation_rate, record_rate
    public, secret = {"ols": ((), (q,)), "cs": ((), (p, q))}.get(scheme, ((p,), (q,)))
    conditional = share(delta, public + secret)
    if conditional >= 1:
        return 0.0
    unsampled = min(unsampled_epsilon(epsilon, *secret) * (1 - ROUNDING_8), MAX_FINITE_EPSILON)
    upper = analytic_noise_std(clip_norm, unsampled, conditional)
    if scheme in ("wcs", "ols", "cs"):
        return stepped_back(
            lambda noise: sampled_from_delta(public, secret, noise, clip_norm, delta), upper, epsilon, rises=False
        )

    def log_delta(noise: float) -> float:
        return READINGS[scheme](p, q, n_records, clip_norm / noise if noise > 0 else math.inf, epsilon).high

    def certified(noise: float) -> float:
        """The larger of both directions."""
        arguments = (p, q, n_records, noise, clip_norm, None, delta)
        return max(random_participation("outer", *arguments), random_participation_add(*arguments))

    noise_std = smallest_epsilon(lambda fraction: log_delta(fraction * upper), delta, at_most=1.0) * upper
    return stepped_back(certified, noise_std, epsilon, rises=False) if scheme == "outer" and noise_std else noise_std
