"""Whole rounds of cloak aggregation: users, shuffler and analyzer of :mod:`flamelib.protocols.cloak`, one by one.

:func:`run` is a round for one number of each user, :func:`run_vector` one for a vector.  :func:`stream` simulates the
estimate of more users than memory holds, without a shuffler: no release of anything.

Source: Ghazi, Pagh, Velingker 2019, Algorithms 1 and 2.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import one_per_user
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.integers.modular import Residues, add_up, centred, residue_type, whole_numbers
from flamelib.mechanisms.integers.randomness import CACHED, Randomness
from flamelib.protocols.cloak import CloakProtocol, analyze, encode, pool, prerandomize, shuffler, split, total


def run(protocol: CloakProtocol, values: ArrayLike, randomness: Randomness) -> float:
    """A round for one number of each user: the estimated sum, by the clipping rule.

    Parameters
    ----------
    protocol : CloakProtocol
    values : array_like of numbers in [0, 1], shape (n_users,)
    randomness : Randomness
        Users and shuffler get sources of their own, spawned from it.

    Examples
    --------
    >>> from flamelib.mechanisms.integers.randomness import Release
    >>> run(CloakProtocol(3, 2**80, 100, 4), [0.5, 0.25, 1.0], Release())
    1.75
    """
    one_per_user("values", np.asarray(values), protocol.n_users)
    users, shuffling = randomness.spawn(2)
    return float(analyze(protocol, total(protocol, shuffler(pool(encode(protocol, values, users)), shuffling))))


def run_vector(protocol: CloakProtocol, rows: ArrayLike, randomness: Randomness) -> Residues:
    """A round for a vector of whole numbers of each user: the sums, each coordinate with a shuffle of its own.

    Coordinates are dealt with a few at a time, in the memory that these need.

    Parameters
    ----------
    protocol : CloakProtocol
    rows : array_like of int, shape (n_users, dimension)
        Whole numbers of any sign, as :func:`~flamelib.protocols.cloak.scaled` or a sketch makes them; the protocol's
        noise is added.
    randomness : Randomness
        Users and shuffler get sources of their own, spawned from it.

    Returns
    -------
    ndarray of int, shape (dimension,)
        The sums with the noise, right where they lie between -N/2 and N/2.

    Examples
    --------
    >>> from flamelib.mechanisms.integers.randomness import Release
    >>> run_vector(CloakProtocol(3, 1001, 10, 4), [[1, -10], [2, 5], [3, 0]], Release()).tolist()
    [6, -5]
    """
    domain = f"whole numbers, a row for each of {protocol.n_users} users"
    whole = whole_numbers("rows", rows, domain)
    if whole.ndim != 2 or len(whole) != protocol.n_users:
        raise DomainError(f"rows must be {domain}, got shape {whole.shape}")
    users, shuffling = randomness.spawn(2)
    at_once = 1 + CACHED // (protocol.n_users * protocol.n_messages)
    sums: list[Residues] = [np.empty(0, dtype=residue_type(protocol.modulus))]
    for start in range(0, whole.shape[1], at_once):
        noisy = prerandomize(protocol, whole[:, start : start + at_once], users)
        sums.append(total(protocol, shuffler(pool(split(protocol, noisy, users)), shuffling)))
    return centred(np.concatenate(sums), protocol.modulus)


def stream(protocol: CloakProtocol, blocks: Iterable[ArrayLike], randomness: Randomness) -> Residues:
    """The total of values that come block by block, in the memory of one block's messages.

    It does not depend on the order of the messages: whoever simulates estimates only needs no shuffler, and here is
    none.  Privacy does need one, so this is no release of anything.

    Parameters
    ----------
    protocol : CloakProtocol
    blocks : iterable of array_like of numbers in [0, 1], shape (users of the block,)
        Some 16384 users at a time are quickest.
    randomness : Randomness

    Returns
    -------
    ndarray of one residue, shape ()
        What :func:`analyze` and :func:`analyze_centred` read.

    Raises
    ------
    DomainError
        Where the blocks do not hold ``n_users`` in all.

    Examples
    --------
    >>> from flamelib.mechanisms.integers.randomness import Simulation
    >>> protocol = CloakProtocol(4, 1001, 100, 4)
    >>> float(analyze(protocol, stream(protocol, [[0.5, 0.5], [0.25, 1.0]], Simulation(np.random.default_rng(0)))))
    2.25
    """
    sums, n_seen = [], 0
    for block in blocks:
        messages = encode(protocol, block, randomness)
        sums.append(add_up(pool(messages), protocol.modulus))
        n_seen += len(messages)
    if n_seen != protocol.n_users:
        raise DomainError(f"blocks must hold one value for each of n_users = {protocol.n_users}, got {n_seen}")
    return add_up(np.stack(sums), protocol.modulus)
