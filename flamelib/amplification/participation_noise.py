"""The noise that a guarantee of one round of random participation needs, scheme by scheme."""

import math

from flamelib.amplification.gaussian_mechanism import analytic_noise_std
from flamelib.amplification.known_participants import ROUNDING, share
from flamelib.amplification.participation import READINGS
from flamelib.amplification.participation_estimates import FURTHEST
from flamelib.amplification.sampling import unsampled_epsilon
from flamelib.core.guarantees import Gives
from flamelib.core.search import smallest_epsilon
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError


@states(
    "participation",
    "calibrate",
    item="Section 6, the noise that a guarantee of one round needs",
    gives=lambda given: Gives.VALUE if given["scheme"] in ("inner", "aligned") else Gives.UPPER,
    adjacency="add-remove",
)
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

    Never too small and 1e-10 of itself too large at most; 0 where a record is drawn too rarely to need any.

    Parameters
    ----------
    scheme : str
        ``outer`` (both directions), ``wcs``, ``ols`` or ``cs``; ``inner`` and ``aligned`` promise nothing.
    participation_rate, record_rate, n_records, clip_norm
        As for :func:`~flamelib.amplification.participation.random_participation`.
    epsilon : float, at least 0
    delta : float in (0, 1]

    Returns
    -------
    float
        Standard deviation in the unit of ``clip_norm``.

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
    before = min(unsampled_epsilon(epsilon, *hidden) * (1 - ROUNDING), FURTHEST)
    most = analytic_noise_std(clip_norm, before, inside)
    if scheme in ("wcs", "ols", "cs"):
        return most

    def log_delta(noise: float) -> float:
        return READINGS[scheme](p, q, n_records, clip_norm / noise if noise > 0 else math.inf, epsilon).high

    return smallest_epsilon(lambda part: log_delta(part * most), delta, at_most=1.0) * most
