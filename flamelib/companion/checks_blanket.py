r"""Claims about blankets and the amplification variable L, by tables and quadrature.

Integrals use Simpson's rule on pieces on which the integrand is smooth, least densities a brute search
over inputs; no closed form of the library is on this side.
"""

import math

import numpy as np
from numpy.typing import NDArray

from flamelib.core.divergences import kary_table
from flamelib.core.profiles import KaryProfile


def kary_splits(n_buckets: int, epsilon0: float) -> bool:
    """Whether every row is mass times the blanket plus a non-negative rest, with mass in [exp(-epsilon0), 1]."""
    table = kary_table(n_buckets, epsilon0)
    shared = table.min(axis=0)
    mass = KaryProfile(epsilon0, n_buckets).mass
    rest = (table - shared) / (1 - mass)
    return bool(
        math.isclose(shared.sum(), mass, rel_tol=1e-12)
        and math.exp(-epsilon0) <= mass <= 1
        and rest.min() >= 0
        and np.allclose(rest.sum(axis=1), 1, rtol=1e-9)
    )


def overlap(kind: str, scale: float, width: int | None = None) -> float:
    """Integral (or sum) of the pointwise least density over all inputs, by brute force.

    ``scale`` is the local budget of ``laplace`` and ``discrete-laplace``, the standard deviation of
    ``gaussian`` and ``discrete-gaussian``.
    """
    if width is not None:
        reach = np.arange(-4000.0, 4001.0)
        rows = [_shape(kind, scale / width if "laplace" in kind else scale, reach - x) for x in range(width + 1)]
        return float(np.min([row / row.sum() for row in rows], axis=0).sum())
    half = 40 / scale if kind == "laplace" else 40 * scale
    points = np.linspace(0.5 - half, 0.5, 400_001)
    least = np.min([_shape(kind, scale, points - x) for x in np.linspace(0, 1, 11)], axis=0)
    norm = scale / 2 if kind == "laplace" else 1 / (scale * math.sqrt(2 * math.pi))
    return 2 * norm * _simpson(least, points)


def _shape(kind: str, scale: float, distance: NDArray[np.float64]) -> NDArray[np.float64]:
    exponent = -scale * np.abs(distance) if "laplace" in kind else -0.5 * (distance / scale) ** 2
    return np.asarray(np.exp(exponent), dtype=np.float64)


def _simpson(values: NDArray[np.float64], points: NDArray[np.float64]) -> float:
    step = (points[-1] - points[0]) / (len(points) - 1)
    return float(step / 3 * (values[0] + values[-1] + 4 * values[1:-1:2].sum() + 2 * values[2:-1:2].sum()))


def laplace_blanket_is_laplace(epsilon0: float) -> bool:
    """Whether the least Laplace density over inputs is mass times the density for the input one half."""
    points = np.linspace(-3, 4, 1401)
    least = np.min([_shape("laplace", epsilon0, points - x) for x in np.linspace(0, 1, 101)], axis=0)
    return bool(np.allclose(least, math.exp(-epsilon0 / 2) * _shape("laplace", epsilon0, points - 0.5), rtol=1e-9))


# --- the variable L --------------------------------------------------------------------------------


def gain(what: str, epsilon0: float, epsilon: float, n_buckets: int | None = None) -> float:
    """``mean``, ``second`` moment, ``largest`` value or ``range`` of L; Laplace noise where ``n_buckets`` is not given.

    k-ary: every message.  Laplace, inputs 0 and 1: Simpson's rule on the three smooth pieces.
    """
    law = _laplace_gain(epsilon0, epsilon) if n_buckets is None else _kary_gain(n_buckets, epsilon0, epsilon)
    weights, gains = law
    if what in ("mean", "second"):
        return float(weights @ (gains if what == "mean" else gains**2))
    return float(gains.max() if what == "largest" else gains.max() - gains.min())


def _kary_gain(n_buckets: int, epsilon0: float, epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    table = kary_table(n_buckets, epsilon0)
    blanket = table.min(axis=0) / table.min(axis=0).sum()
    return blanket, (table[0] - math.exp(epsilon) * table[1]) / blanket


def _laplace_gain(epsilon0: float, epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    far = 60 / epsilon0
    points = np.concatenate([np.linspace(a, b, 20_001) for a, b in ((-far, 0), (0, 1), (1, 1 + far))])
    density = [epsilon0 / 2 * _shape("laplace", epsilon0, points - x) for x in (0.0, 0.5, 1.0)]
    simpson = np.array([1, *[4, 2] * 9_999, 4, 1]) / 3
    steps = np.repeat([far, 1.0, far], 20_001) / 20_000
    return np.tile(simpson, 3) * steps * density[1], (density[0] - math.exp(epsilon) * density[2]) / density[1]


def gain_within(epsilon0: float, epsilon: float, n_buckets: int, tight: bool) -> bool:
    """Whether L of k-ary response stays in the generic interval, or in the ``tight`` one of the ratio's range."""
    _, gains = _kary_gain(n_buckets, epsilon0, epsilon)
    mass = KaryProfile(epsilon0, n_buckets).mass
    power, goal = math.exp(epsilon0), math.exp(epsilon)
    low, high = mass / power * (1 - goal * power**2), mass * power * (1 - goal / power**2)
    if tight:
        low, high = max(low, mass * (1 - goal * power)), min(high, mass * (power - goal))
    return bool(gains.min() >= low - 1e-9 and gains.max() <= high + 1e-9)
