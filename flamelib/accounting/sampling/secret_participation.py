r"""One round of random participation, Theorem 4.1: what the noise, the clients' coins and the records drawn hide.

A client joins with probability p and then draws each of its L records with probability q; nobody learns who joined.
With :math:`\varepsilon = \log(1+(e^{\varepsilon'}-1)/(pq))`, :math:`c_0 = (1-p)(1-e^{-\varepsilon})` and
:math:`c_1 = 1-c_0`,

.. math:: \delta' = pq\;D_{e^{\varepsilon}}\big(\mu_2\,\|\,c_1\mu_1+c_0\mu_0\big)

where the client is out (:math:`\mu_0`), in without the record (:math:`\mu_1`), in with it (:math:`\mu_2`).  Three
readings differ in what they do with the number j of other records that the client has drawn:

* ``outer``: j is given away, :math:`\delta' = pq\sum_j\mathrm B(j;L-1,q)\,D_j`.  For a given j aligned gradients are
  the worst, so this upper bound holds for every data set; it exceeds the other direction,
  :func:`random_participation_add`, and alone is the guarantee.
* ``inner``: j is mixed inside the second measure only.  At most ``outer``, and no bound: some data sets lose more.
* ``aligned``: j is mixed inside both.  The exact divergence of one pair of data sets, so a lower bound of the truth.

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

    with :math:`a_0 = (1-p)(1-e^{-\varepsilon})`, :math:`a_1 = p(1-q)(1-e^{-\varepsilon})`, :math:`a_2 = 1-a_0-a_1`:
    the record against all others of the client.  Never more than the other direction.  Parameters and answer are those
    of :func:`random_participation`.

    Source: after Hasircioglu, Gunduz 2022, Theorem 4.1.

    Examples
    --------
    >>> f"{random_participation_add(0.1, 0.1, 2, 1.0, 1.0, epsilon=0.001):.4e}"
    '3.1941e-03'
    """
    return _answer("add", (participation_rate, record_rate, n_records, noise_std, clip_norm), epsilon, delta)


def _answer(reading: str, one: Round, epsilon: float | None, delta: float | None) -> Certified:
    if epsilon is not None:
        return _delta(reading, one, epsilon)
    return _epsilon(reading, one, 1.0 if delta is None else delta)


def _delta(reading: str, one: Round, epsilon: float) -> Certified:
    found = _estimate(reading, one, epsilon)
    if reading == "aligned" and found.log == -math.inf:
        return Certified(0.0, float(_delta("outer", one, epsilon)))
    if reading == "aligned":
        low = math.exp(min(found.log, 0.0))
        return Certified(low, min(low * math.expm1(min(found.error, 700.0)) + math.ulp(low), 1.0))
    high = probability(found.high)
    # A smaller epsilon has few digits left in its exponential.
    if epsilon < 1e-9 and reading in ("outer", "add"):  # who takes part may as well be known
        p, q, _, noise_std, clip_norm = one
        high = min(high, float(wcs(p, q, noise_std, clip_norm, epsilon=epsilon)))
    return Certified(high, high * -math.expm1(-2 * found.error) + math.ulp(high))


def _estimate(reading: str, one: Round, epsilon: float) -> Estimate:
    p, q, n_records, noise_std, clip_norm = one
    return ESTIMATES[reading](p, q, n_records, clip_norm / noise_std, epsilon)


def _epsilon(reading: str, one: Round, delta: float) -> Certified:
    """Sought before sampling, where the root of ``-log delta`` is nearly a straight line.

    Between the answers of a client with one record, whose is CS, and of one with so many that it is seen, whose is WCS.
    """
    p, q, n_records, noise_std, clip_norm = one
    lower = reading == "aligned"
    after, end = _sampling(reading, one)
    most = float(sampled_from_delta((p,), (q,), noise_std, clip_norm, delta))
    if reading == "add":
        most = min(most, certain_epsilon(p, q, n_records))
    if delta in (0.0, 1.0) or most in (0.0, math.inf):
        return Certified(0.0 if lower and delta > 0 else most, 0.0 if delta in (0.0, 1.0) else most)

    estimate = cache(partial(_estimate, reading, one))

    def log_delta(epsilon: float) -> float:
        return estimate(epsilon).log if lower else estimate(epsilon).high

    known = gaussian_mechanism(clip_norm, noise_std, delta=share(delta, (p, q)))
    start, end = 0.0, min(known + 0.0, end)
    if reading in ("outer", "inner"):
        start = sampled_epsilon(max(known - known.uncertainty, 0.0) * (1 - 10 * WIDTH), p)
    before = smallest_epsilon(lambda x: log_delta(after(x)), delta, end, at_least=start, after=after)
    target = math.log(delta)
    if lower:
        # Relative steps back until a lower bound holds where it was evaluated.
        places = (after(before * (1 - part)) for part in (2 * WIDTH, 1e-9, 1e-6, 1e-3))
        found = next((place for place in places if log_delta(place) >= target), 0.0)
    else:
        found = after(before) if log_delta(after(before)) <= target else most
    width = found - after(before * (1 - 4 * WIDTH)) + 2 * abs(after(before) - found) + 2 * WIDTH * found
    return Certified(found, min(width + _blur(estimate, found), most))


def _sampling(reading: str, one: Round) -> tuple[Callable[[float], float], float]:
    """Epsilon after sampling as a function of that before, and where to stop: from there on it hardly grows."""
    p, q, n_records, *_ = one
    if reading != "add":
        return partial(sampled_epsilon, sampling_rate=q), MAX_FINITE_EPSILON
    rate = p * q if n_records == 1 else q
    # Plus the logarithm of what is never drawn: beyond this epsilon sampling adds less than 1e-13.
    return partial(added_epsilon, sampling_rate=rate), MAX_FINITE_EPSILON if rate == 1 else 30.0 - math.log1p(-rate)


def _blur(estimate: Callable[[float], Estimate], epsilon: float) -> float:
    """How far epsilon may be off because the estimate of delta is."""
    step = 1e-6  # relative step of epsilon for the slope of log delta
    here, near = estimate(epsilon), estimate(epsilon * (1 - step))
    steep = near.log > here.log > -math.inf
    return 2 * here.error * step * epsilon / (near.log - here.log) if steep else math.inf


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

    It is a standard deviation in the unit of ``clip_norm``, never too small and relatively at most 1e-10 too large; it
    is 0 where a record is drawn too rarely to need any.

    Parameters
    ----------
    scheme : str
        ``outer`` (both directions), ``wcs``, ``ols`` or ``cs``; ``inner`` and ``aligned`` promise nothing.

    Source: Hasircioglu, Gunduz 2022, Section 6.

    Examples
    --------
    >>> f"{participation_noise('outer', 0.01, 0.01, 30, 1.0, 1e-3, 1e-6):.4f}"
    '1.5125'
    """
    if delta == 0:
        raise DomainError("delta must be above 0 for Gaussian noise, got 0")
    p, q = participation_rate, record_rate
    known, hidden = {"ols": ((), (q,)), "cs": ((), (p, q))}.get(scheme, ((p,), (q,)))
    inside = share(delta, known + hidden)
    if inside >= 1:
        return 0.0
    before = min(unsampled_epsilon(epsilon, *hidden) * (1 - ROUNDING_8), MAX_FINITE_EPSILON)
    most = analytic_noise_std(clip_norm, before, inside)
    if scheme in ("wcs", "ols", "cs"):
        return stepped_back(
            lambda noise: sampled_from_delta(known, hidden, noise, clip_norm, delta), most, epsilon, rises=False
        )

    def log_delta(noise: float) -> float:
        return READINGS[scheme](p, q, n_records, clip_norm / noise if noise > 0 else math.inf, epsilon).high

    def certified(noise: float) -> float:
        """Both directions, a record removed and one added."""
        one = (p, q, n_records, noise, clip_norm, None, delta)
        return max(random_participation("outer", *one), random_participation_add(*one))

    found = smallest_epsilon(lambda part: log_delta(part * most), delta, at_most=1.0) * most
    return stepped_back(certified, found, epsilon, rises=False) if scheme == "outer" and found else found
