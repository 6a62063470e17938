"""Per-sample clipping: every gradient is scaled down to a given 2-norm before anything is added up.

Where the gradient of a sample is an outer product its norm is known without it, and a clipped sum is one product of
matrices: models clip that way (:meth:`flamelib.models.SoftmaxRegression.clipped_sum`).
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.arrays import Reals, reals
from flamelib.core.vocabulary import DomainError, check


def clip_factors(norms: NDArray[np.floating], clip_norm: float) -> NDArray[np.floating]:
    """What each vector of these norms is multiplied by, at most 1; an infinite ``clip_norm`` clips nothing.

    Examples
    --------
    >>> clip_factors(np.array([0.0, 0.5, 4.0]), 1.0)
    array([1.  , 1.  , 0.25])
    """
    if clip_norm != math.inf:
        check(clip_norm=clip_norm)
    return np.asarray(np.minimum(1, clip_norm / np.maximum(norms, np.finfo(norms.dtype).tiny)), dtype=norms.dtype)


def clipped_sum(gradients: ArrayLike, clip_norm: float) -> Reals:
    """Sum of the rows, each scaled down to the 2-norm ``clip_norm`` if it is longer; of no rows, zeros.

    Parameters
    ----------
    gradients : array_like of shape (n_records, dimension)
    clip_norm : float, positive

    Returns
    -------
    array of float64, shape (dimension,)

    Examples
    --------
    >>> clipped_sum([[3.0, 4.0], [0.0, 0.1]], 1.0)
    array([0.6, 0.9])
    """
    rows = reals("gradients", gradients)
    if rows.ndim != 2:
        raise DomainError(f"gradients must have shape (n_records, dimension), got {rows.shape}")
    return np.asarray(clip_factors(np.linalg.norm(rows, axis=1), clip_norm) @ rows)
