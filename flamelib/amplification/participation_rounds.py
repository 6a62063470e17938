r"""Many rounds of random participation: what the whole training costs, and what it costs at least.

The pair of :mod:`flamelib.amplification.participation_losses` dominates every round, whatever the model and whatever
the gradients at it, and products of dominating pairs dominate adaptive compositions (Zhu, Dong, Wang 2022, Theorem 10):
its T-fold product bounds T rounds, and the exchanged product bounds them for an added record.  The answer is the larger
of both.  No round is announced to be one of the client's own, so that every round counts in which it might have
joined.  Trust is that of the document: the server shows its sums to nobody and the noise is fresh in each round.

From below: the client's gradients are all equal in each round.  That is a pair of data sets like any other.
"""

import math

from flamelib.amplification.known_participants import cs, ols, wcs
from flamelib.amplification.participation import random_participation
from flamelib.amplification.participation_losses import aligned_cells, outer_cells, subsampled_cells
from flamelib.core.guarantees import Certified
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check
from flamelib.loss_cells import composed, composed_below
from flamelib.loss_grids import Cells

LEAST = 1e-30
LEAST_RATIO = 1e-6
LARGEST_RATIO = 1000.0
MOST_ALIGNED = 1000

SCHEMES = ("outer", "wcs", "ols", "cs")


@states(
    "participation",
    "rounds",
    item="Sections 4 and 5, composed over rounds by dominating pairs",
    gives="upper",
    adjacency="add-remove",
    words={"scheme": SCHEMES},
)
def participation_rounds(
    scheme: str,
    participation_rate: float,
    record_rate: float,
    n_records: int,
    noise_std: float,
    clip_norm: float,
    rounds: int,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:
    r"""Guarantee after ``rounds`` rounds, one record added or removed (upper, both directions).

    Parameters
    ----------
    scheme : str
        ``outer``: nobody knows who joins, Theorem 4.1; ``wcs``: who joins is known; ``ols``: all join; ``cs``: every
        record is drawn on its own, at the product of the rates.
    participation_rate, record_rate : float in (0, 1]
        Chances that the client joins a round, ignored by ``ols``, and that a record of a joining client is drawn.
    n_records : int, at least 1
        Records of the client in the larger data set; ignored but by ``outer``.
    noise_std, clip_norm : float, positive
        Deviation of the noise of each coordinate of the sum, and largest 2-norm of a record's contribution to it.
    rounds : int, at least 1
    epsilon, delta : float
        Exactly one, of the whole; the answer is the other one.

    Returns
    -------
    Certified
        ``uncertainty`` estimates what the grid of losses adds; 4 million rounds and more are left to Chernoff's bound.

    Source: Hasircioglu, Gunduz 2022, Theorems 4.1, 5.1, 5.2, Corollary 5.3; Zhu, Dong, Wang 2022, Theorem 10.

    Examples
    --------
    >>> f"{participation_rounds('outer', 0.1, 0.1, 5, 1.0, 1.0, 100, epsilon=2.0):.2e}"
    '1.76e-05'
    >>> f"{participation_rounds('cs', 0.1, 0.1, 5, 1.0, 1.0, 1000, delta=1e-5):.2f}"
    '1.83'
    """
    if rounds == 1:
        return _once(scheme, participation_rate, record_rate, n_records, noise_std, clip_norm, epsilon, delta)
    if clip_norm / noise_std > LARGEST_RATIO:
        return _disclosed(_rate(scheme, participation_rate, record_rate), rounds, epsilon, delta)
    cells = round_cells(scheme, participation_rate, record_rate, n_records, noise_std, clip_norm)
    found = composed([(cells, rounds)], epsilon, delta)
    coarse = min(participation_rate, record_rate) < LEAST or clip_norm / noise_std < LEAST_RATIO
    return Certified(found, found) if coarse else found


def round_cells(
    scheme: str, participation_rate: float, record_rate: float, n_records: int, noise_std: float, clip_norm: float
) -> Cells:
    """Cells of a pair that dominates one round; the ratio of clip_norm and noise_std is at most 1000.

    Rates below 1e-30 count as 1e-30, ratios below 1e-6 as 1e-6, which protects less.

    Examples
    --------
    >>> cells = round_cells("cs", 0.5, 0.5, 3, 1.0, 1.0)
    >>> f"{cells.delta(0.0):.6f}"
    '0.095731'
    """
    p, q, ratio = max(LEAST, participation_rate), max(LEAST, record_rate), max(LEAST_RATIO, clip_norm / noise_std)
    if scheme == "outer":
        return outer_cells(p, q, n_records, ratio)
    return subsampled_cells(p * q if scheme == "cs" else q, ratio, joins=p if scheme == "wcs" else 1.0)


def aligned_rounds_lower(
    participation_rate: float,
    record_rate: float,
    n_records: int,
    noise_std: float,
    clip_norm: float,
    rounds: int,
    epsilon: float | None = None,
    delta: float | None = None,
) -> float:
    """What ``rounds`` rounds cost at least, by a client whose gradients are all equal, in its worse direction (lower).

    A client may have more records whose gradients are 0: the answer for fewer records holds as well, and may be the
    larger one.  Beyond 1000 records, it is that for 1000.

    Parameters
    ----------
    participation_rate, record_rate, n_records, noise_std, clip_norm, rounds
        As for :func:`participation_rounds`, without a scheme: nobody knows who joins.
    epsilon, delta : float
        Exactly one; the answer is the other one, 0 where nothing can be said.

    Examples
    --------
    >>> f"{aligned_rounds_lower(0.1, 0.1, 5, 1.0, 1.0, 100, epsilon=2.0):.2e}"
    '1.37e-07'
    """
    if (epsilon is None) == (delta is None):
        raise DomainError("exactly one of epsilon and delta must be given")
    check(participation_rate=participation_rate, record_rate=record_rate, n_records=n_records, noise_std=noise_std)
    check(clip_norm=clip_norm, rounds=rounds, **({"epsilon": epsilon} if delta is None else {"delta": delta}))
    ratio = min(clip_norm / noise_std, LARGEST_RATIO)
    cells = aligned_cells(participation_rate, record_rate, min(n_records, MOST_ALIGNED), ratio)
    return composed_below([(cells, rounds)], epsilon, delta)


def _once(
    scheme: str,
    participation_rate: float,
    record_rate: float,
    n_records: int,
    noise_std: float,
    clip_norm: float,
    epsilon: float | None,
    delta: float | None,
) -> Certified:
    """One round needs no composing."""
    if scheme == "outer":
        return random_participation(
            "outer", participation_rate, record_rate, n_records, noise_std, clip_norm, epsilon, delta
        )
    alone = {"wcs": wcs, "ols": ols, "cs": cs}[scheme]
    return alone(participation_rate, record_rate, noise_std, clip_norm, epsilon, delta)


def _rate(scheme: str, participation_rate: float, record_rate: float) -> float:
    """Chance that the record is drawn."""
    return record_rate if scheme == "ols" else participation_rate * record_rate


def _disclosed(rate: float, rounds: int, epsilon: float | None, delta: float | None) -> Certified:
    """A record that is drawn is as good as seen: so it is in one round at least."""
    seen = -math.expm1(rounds * math.log1p(-rate)) if rate < 1 else 1.0
    if epsilon is not None:
        return Certified(min(1.0, seen * (1 + 1e-12)), seen)
    return Certified(0.0 if delta is not None and delta >= seen * (1 + 1e-12) else math.inf, 0.0)
