"""One round of random participation beyond one client and its server: clients of all sizes, and a curious server."""

from collections.abc import Iterable

from flamelib.amplification.known_participants import wcs
from flamelib.amplification.participation import random_participation
from flamelib.core.guarantees import Certified
from flamelib.core.vocabulary import check


def system_guarantee(
    participation_rate: float,
    record_rate: float,
    sizes: Iterable[int],
    noise_std: float,
    clip_norm: float,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:
    """Guarantee that every client of a system has, whatever its size (upper, both directions).

    The largest of the clients' own guarantees, which is that of the client with most records.

    Parameters
    ----------
    sizes : iterable of int, each at least 1
        Records of each client, the differing one included.
    participation_rate, record_rate, noise_std, clip_norm, epsilon, delta
        As for :func:`~flamelib.amplification.participation.random_participation`.

    Source: Hasircioglu, Gunduz 2022, Section 4.

    Examples
    --------
    >>> f"{system_guarantee(0.1, 0.1, [1, 30, 12], 1.0, 1.0, epsilon=0.1):.4e}"
    '1.6493e-03'
    """
    largest = max((check(n_records=size)["n_records"] for size in sizes), default=0)
    return random_participation(
        "outer", participation_rate, record_rate, check(n_records=largest)["n_records"], noise_std, clip_norm,
        epsilon, delta,
    )  # fmt: skip


def all_send(
    participation_rate: float,
    record_rate: float,
    n_records: int,
    noise_std: float,
    clip_norm: float,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:
    """Guarantee against the server when every available client sends, those who sit out pure noise (upper).

    Each client adds the noise itself, and its message is seen alone; what it sends is the sum of its clipped gradients
    over a *public* constant: the average over the records drawn would have another sensitivity.  The sum over all
    clients carries the noise of all of them.

    Parameters
    ----------
    noise_std : float, positive
        Standard deviation of the client's own noise, in the unit of ``clip_norm``.
    participation_rate, record_rate, n_records, clip_norm, epsilon, delta
        As for :func:`~flamelib.amplification.participation.random_participation`.

    Source: Hasircioglu, Gunduz 2022, Section 5.5, first variant.

    Examples
    --------
    >>> f"{all_send(0.1, 0.1, 2, 1.0, 1.0, epsilon=0.1):.4e}"
    '1.8386e-04'
    """
    return random_participation(
        "outer", participation_rate, record_rate, n_records, noise_std, clip_norm, epsilon, delta
    )


def participants_send(
    participation_rate: float,
    record_rate: float,
    noise_std: float,
    clip_norm: float,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:
    """Guarantee against the server when only participants send, so that it sees who they are (upper).

    Parameters
    ----------
    noise_std : float, positive
        Standard deviation of the client's own noise, in the unit of ``clip_norm``.
    participation_rate, record_rate, clip_norm, epsilon, delta
        As for :func:`~flamelib.amplification.participation.random_participation`.

    Source: Hasircioglu, Gunduz 2022, Section 5.5, second variant.

    Examples
    --------
    >>> f"{participants_send(0.1, 0.1, 1.0, 1.0, epsilon=0.1):.6e}"
    '1.847193e-03'
    """
    return wcs(participation_rate, record_rate, noise_std, clip_norm, epsilon, delta)
