"""How far an estimate of FLAME's protocols is off: its noise alone, and its exact variance.

Source: Liu, Cao, Chen, Guo, Yoshikawa 2021, Algorithms 2 to 4.
"""

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import Reals
from flamelib.mechanisms import coordinates
from flamelib.mechanisms.coordinates import largest
from flamelib.protocols.flame import Protocol, TopkProtocol, all_rows, estimated


def noise_std(protocol: Protocol) -> float:
    r"""Standard deviation of an estimate that rests on blanket messages alone: :math:`2C\sqrt{n_p v} / (n\beta)`.

    With Laplace noise, :math:`v = 2 / \varepsilon_0^2`, it is the noise of every coordinate whoever reported it.

    Examples
    --------
    >>> from flamelib.protocols.flame import DoubleProtocol
    >>> from flamelib.mechanisms.randomizers import LaplaceNoise
    >>> round(noise_std(DoubleProtocol(1000, 7850, 0.01, LaplaceNoise(0.5), kept=157, padded=333)), 4)
    0.0516
    """
    spread = (protocol.padded * coordinates.blanket_variance(protocol.randomizer)) ** 0.5
    return float(estimated(protocol, np.asarray(spread)))


def variance(protocol: Protocol, updates: ArrayLike) -> Reals:
    r"""Exact variance of each estimate where no bag overflows, choice of coordinates included.

    .. math:: \Big(\frac{2C}{n\beta}\Big)^2 \Big[\sum_i p_{ij} v(\tilde x_{ij}) + \big(n_p - \sum_i p_{ij}\big) v_\omega
       + \sum_i p_{ij}(1 - p_{ij})(\tilde x_{ij} - \tfrac12)^2\Big]

    with :math:`p_{ij}` the chance that user :math:`i` reports coordinate :math:`j` as a true one: 1 for SS-Simple,
    :math:`\beta` for SS-Double (users are independent, so both kinds of inclusion agree), 0 or 1 for SS-Topk.

    Parameters
    ----------
    protocol : SimpleProtocol, DoubleProtocol or TopkProtocol
    updates : array_like of finite numbers, shape (n_users, dimension)

    Returns
    -------
    ndarray of float64, shape (dimension,)
    """
    [rows] = all_rows(protocol, iter([updates]))
    chance = largest(rows, protocol.kept) if isinstance(protocol, TopkProtocol) else protocol.kept / protocol.dimension
    unit = coordinates.to_unit(rows, protocol.clip_norm)
    own = chance * coordinates.variance(protocol.randomizer, unit) + chance * (1 - chance) * (unit - 0.5) ** 2
    dummies = protocol.padded - (chance * np.ones_like(unit)).sum(axis=0)
    total = own.sum(axis=0) + dummies * coordinates.blanket_variance(protocol.randomizer)
    return np.asarray(total * estimated(protocol, np.asarray(1.0)) ** 2)
