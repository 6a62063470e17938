r"""One round of a Gaussian mechanism with public participation, or with independently drawn records.

A client joins with probability p, a record of a client that joins is drawn with probability q, and
:math:`h(\varepsilon)` is the delta of the Gaussian mechanism without sampling.  Three schemes, with
:math:`\varepsilon_r = \log(1+(e^{\varepsilon'}-1)/r)`:

* OLS, *only local sampling*: all clients join, :math:`\delta' = q\,h(\varepsilon_q)`;
* WCS, *weak client sampling*: the list of those who joined is public, :math:`\delta' = p\,q\,h(\varepsilon_q)`;
* CS, *centralized shuffling*: every record is drawn independently, :math:`\delta' = p\,q\,h(\varepsilon_{pq})`.

With the larger data set first each is attained, with the smaller one first each is an upper bound.  Proof: book,
chapter on random participation, Theorem 2.5.  Standard library only.
"""

import math

from flamelib.accounting.noise.gaussian import gaussian_mechanism, log_delta
from flamelib.accounting.sampling.closed_form import sampled_epsilon, unsampled_epsilon
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import MARGIN, ROUNDING_8, probability
from flamelib.core.statements import states


@states("participation", "thm-5.1", item="Theorem 5.1, Equations 8 and 9, only local sampling (OLS)", gives="upper",
        rests_on="proven", adjacency="add-remove")  # fmt: skip
def ols(
    participation_rate: float,
    record_rate: float,
    noise_std: float,
    clip_norm: float,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:
    r"""Guarantee of one round in which every client joins and draws its records itself (upper, both directions).

    .. math:: \delta' = q\,h\big(\log(1+(e^{\varepsilon'}-1)/q)\big)

    Attained, the larger data set first, by a differing record of the largest norm.  At delta 0 epsilon is ``inf``.

    Parameters
    ----------
    participation_rate : float in (0, 1]
        Probability that a client joins; ignored, as all join.
    noise_std, clip_norm : float, positive
        Deviation of the noise of each coordinate of the sum, and largest 2-norm of a record's contribution to it.

    Source: Hasircioglu, Gunduz 2022, Theorem 5.1.

    Examples
    --------
    >>> f"{ols(0.1, 0.1, 1.0, 1.0, epsilon=0.1):.6e}"
    '1.847193e-02'
    """
    return _answer((), (record_rate,), noise_std, clip_norm, epsilon, delta)


@states("participation", "thm-5.2", item="Theorem 5.2, Equations 10 and 11, weak client sampling (WCS)", gives="upper",
        rests_on="proven", adjacency="add-remove")  # fmt: skip
def wcs(
    participation_rate: float,
    record_rate: float,
    noise_std: float,
    clip_norm: float,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:
    r"""Guarantee of one round with public participation (upper, both directions).

    .. math:: \delta' = p\,q\,h\big(\log(1+(e^{\varepsilon'}-1)/q)\big)

    Parameters are those of :func:`ols`.

    Source: Hasircioglu, Gunduz 2022, Theorem 5.2.

    Examples
    --------
    >>> f"{wcs(0.1, 0.1, 1.0, 1.0, epsilon=0.1):.6e}"
    '1.847193e-03'
    """
    return _answer((participation_rate,), (record_rate,), noise_std, clip_norm, epsilon, delta)


@states("participation", "cor-5.3", item="Corollary 5.3, Equations 12 and 13, centralized shuffling (CS)",
        gives="upper", rests_on="proven", adjacency="add-remove")  # fmt: skip
def cs(
    participation_rate: float,
    record_rate: float,
    noise_std: float,
    clip_norm: float,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:
    r"""Guarantee of one round whose records a trusted server draws independently (upper, both directions).

    .. math:: \delta' = p\,q\,h\big(\log(1+(e^{\varepsilon'}-1)/(pq))\big)

    This is random participation of clients that hold one record each.  If records are shuffled among clients that then
    draw jointly, as described in the paper, draws are not independent and the formula can be too small.
    Parameters are those of :func:`ols`.

    Source: Hasircioglu, Gunduz 2022, Corollary 5.3.

    Examples
    --------
    >>> f"{cs(0.1, 0.1, 1.0, 1.0, epsilon=0.1):.6e}"
    '7.290038e-05'
    """
    return _answer((), (participation_rate, record_rate), noise_std, clip_norm, epsilon, delta)


def sampled_from_delta(
    public: tuple[float, ...], secret: tuple[float, ...], noise_std: float, clip_norm: float, delta: float
) -> Certified:
    """Upper epsilon of a round sampled at ``public`` and at ``secret`` rates."""
    conditional = share(delta, public + secret)
    base = gaussian_mechanism(clip_norm, noise_std, delta=conditional)
    found = _amplified(base, secret)
    return Certified(found, found - _amplified(max(base - base.uncertainty, 0.0), secret) if found < math.inf else 0.0)


def share(delta: float, rates: tuple[float, ...]) -> float:
    """Delta conditional on the record being drawn: ``delta`` over the rates, rounded down, at most 1."""
    for rate in rates:
        delta /= rate
    return min(max(delta * (1 - ROUNDING_8), 0.0), 1.0) if rates and delta < 1 else min(delta, 1.0)


def _answer(
    public: tuple[float, ...],
    secret: tuple[float, ...],
    noise_std: float,
    clip_norm: float,
    epsilon: float | None,
    delta: float | None,
) -> Certified:
    if epsilon is None:
        return sampled_from_delta(public, secret, noise_std, clip_norm, 1.0 if delta is None else delta)
    log_rate, unsampled = math.fsum(map(math.log, public + secret)), unsampled_epsilon(epsilon, *secret)
    upper = probability(log_rate + log_delta(clip_norm, noise_std, unsampled * (1 - ROUNDING_8)) + MARGIN)
    lower = math.exp(log_rate + log_delta(clip_norm, noise_std, unsampled * (1 + ROUNDING_8)) - 2 * MARGIN)
    return Certified(upper, max(upper - lower, 0.0) + math.ulp(upper))


def _amplified(epsilon: float, rates: tuple[float, ...]) -> float:
    """Epsilon amplified by sampling, rounded up."""
    if math.isinf(epsilon):
        return epsilon
    for rate in rates:
        epsilon = sampled_epsilon(epsilon, rate) * (1 + ROUNDING_8)
    return epsilon
