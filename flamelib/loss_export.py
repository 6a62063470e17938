"""Cells of a known pair as a privacy loss distribution of Google's ``dp_accounting``, to be composed with others."""

import math
from typing import TYPE_CHECKING

from flamelib.core.vocabulary import DomainError
from flamelib.loss_cells import cut
from flamelib.loss_grids import Cells, above

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

MOST_LOSSES = 2**24


def to_dp_accounting(cells: Cells, step: float, spared: float = 0.0) -> "PrivacyLossDistribution":
    """The pair and its exchange, from above, as a pessimistic privacy loss distribution.

    ``dp_accounting`` must be installed.  Its compositions of the object err upwards, but for its own round-off.

    Parameters
    ----------
    cells : Cells
    step : float, positive
        Distance of losses, called ``value_discretization_interval`` there; the same for all that is composed.
    spared : float in [0, 1)
        Mass of the largest losses that is counted as infinite, so that the others reach less far.

    Examples
    --------
    >>> import numpy as np
    >>> coin = Cells(*np.array([[-1.0, 1.0], [-1.0, 1.0], [0.731, 0.269], [-0.462, 0.462], [0.0, 0.0]]))
    >>> f"{to_dp_accounting(coin, 0.1).self_compose(2).get_delta_for_epsilon(1.0):.3f}"
    '0.338'
    """
    if not (0 < step < math.inf and 0 <= spared < 1):
        raise DomainError(f"step must be a number above 0 and spared one in [0, 1), got {step!r} and {spared!r}")
    kept = cut(cells, spared)
    if kept.range > MOST_LOSSES * step:
        raise DomainError(f"step must be at least {kept.range / MOST_LOSSES:.3g} for losses that reach so far")
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    pmfs = []
    for one in (kept, kept.swapped()):
        law = above(one, step)
        masses = dict(zip(law.index.tolist(), law.masses.tolist(), strict=True))
        pmfs.append(pld_pmf.create_pmf(masses, step, law.infinity, pessimistic_estimate=True))
    return privacy_loss_distribution.PrivacyLossDistribution(*pmfs)
