r"""Shuffled Gaussian noise where all other users hold the victim's other value: likelihood ratios on a lattice.

Every user joins with probability :math:`\gamma`.  The others, and under Q the victim, hold 0; under P the victim holds
1.  With the likelihood ratio :math:`r=\mathrm dN(1,\sigma^2)/\mathrm dN(0,\sigma^2)` and messages y,

.. math:: \frac{\mathrm dP}{\mathrm dQ} = 1+\frac1n\sum_{i\text{ joins}}(r(y_i)-1).

*Quantisation.*  Partition the line at :math:`-\infty=t_0<t_1<\dots` into intervals I with
:math:`P(I)=(1+jh)\,Q(I)`, an integer lattice index j each; the mass beyond the last one is dropped.  For
quantised messages, dP/dQ - 1 is h/n times a sum of n i.i.d. integers under Q: one Fourier transform.

Quantisation is post-processing: lower bounds.  Adjacency: replace-one.  Source: this project.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from flamelib.accounting.composition.dominating_pair import DominatingPair
from flamelib.core.arrays import Reals
from flamelib.core.logspace import LOG_OMITTED, MAX_EXPONENT, UNIT
from flamelib.core.profiles import GaussianProfile

MAX_WINDOW = 2**21  # points of the Fourier transform, at most
MAX_CELLS = 4000  # cells of the composed pair, at most
RTOL_RATIO = 1e-12  # relative error of the likelihood ratio of an interval


def equal_inputs_pair(randomizer: GaussianProfile, n_users: int, checkin_rate: float = 1.0) -> DominatingPair | None:
    """The quantised pair (``None`` where the noise is too small for the lattice, or no mass exceeds its error)."""
    mu = 1 / randomizer.noise_std
    spread = math.sqrt(math.expm1(min(mu * mu, MAX_EXPONENT)))  # standard deviation of r under Q
    if not spread:  # underflow: the messages are indistinguishable
        return None
    finest = min(spread / 16, 1 / 8)
    for tail_mass, step in ((1e-9, finest), (1e-7, finest), (1e-5, finest), (1e-4, 2 * finest)):
        cutoff = mu - float(ndtri(tail_mass))  # quantile of the victim's message under P
        if mu * (cutoff - mu / 2) > math.log(MAX_WINDOW * step):
            continue
        indices, masses = _intervals(mu, step, cutoff)
        window = [_quantile(n_users, checkin_rate, sign * indices, masses) for sign in (-1, 1)]
        if sum(window) < MAX_WINDOW:
            return _pair(indices, masses, step, n_users, checkin_rate, *window)
    return None


def _intervals(mu: float, step: float, cutoff: float) -> tuple[NDArray[np.int64], Reals]:
    """Lattice indices j of the intervals and their masses under Q = N(0, 1); P is N(mu, 1)."""
    indices, masses = list[int](), list[float]()
    index, lower = math.ceil(math.expm1(-mu * (cutoff + mu / 2)) / step), -math.inf
    while True:
        ratio = 1 + index * step
        crossing = math.log(ratio) / mu + mu / 2  # point at which dP/dQ equals this ratio
        if lower < crossing:
            if _excess(lower, cutoff, ratio, mu) <= 0:
                return np.array(indices, dtype=np.int64), np.array(masses)
            upper = _upper_end(lower, crossing, cutoff, ratio, mu)
            indices.append(index)
            masses.append(_normal(lower, upper))
            lower = upper
        index += max(1, abs(index) // 20)  # coarser than the lattice far from ratio 1


def _excess(lower: float, upper: float, ratio: float, mu: float) -> float:
    """``P(I) - ratio Q(I)`` of an interval I."""
    return _normal(lower - mu, upper - mu) - ratio * _normal(lower, upper)


def _normal(lower: float, upper: float) -> float:
    """N(0, 1) mass of an interval, as a difference of its smaller tails."""
    return float(ndtr(upper) - ndtr(lower)) if upper < 0 else float(ndtr(-lower) - ndtr(-upper))


def _upper_end(lower: float, crossing: float, cutoff: float, ratio: float, mu: float) -> float:
    """Upper endpoint in (crossing, cutoff] of the interval with ``P(I) = ratio Q(I)``, by bracketed Newton steps."""
    low, high, upper = crossing, cutoff, min(2 * crossing - lower, cutoff)
    for _ in range(100):
        excess = _excess(lower, upper, ratio, mu)
        low, high = (upper, high) if excess < 0 else (low, upper)
        slope = math.exp(-((upper - mu) ** 2) / 2) - ratio * math.exp(-upper * upper / 2)
        iterate = upper - excess * math.sqrt(2 * math.pi) / slope if slope > 0 else high
        iterate = iterate if low < iterate < high else (low + high) / 2
        if abs(iterate - upper) <= 4 * UNIT * (1 + abs(upper)):
            break
        upper = iterate
    return upper


def _quantile(n_users: int, rate: float, indices: NDArray[np.int64], masses: Reals) -> int:
    """Quantile of the sum of n lattice indices: tail mass at most ``exp(-LOG_OMITTED)`` (Chernoff bound)."""
    largest = max(int(indices.max()), 1)
    tilts = np.geomspace(1e-6, 100, 200) / largest
    with np.errstate(over="ignore"):
        cumulants = n_users * np.log1p(rate * (np.expm1(tilts[:, None] * indices) @ masses))
    return math.ceil(float(((LOG_OMITTED + cumulants) / tilts).min()) * (1 + 1e-9))


def _pair(
    indices: NDArray[np.int64], masses: Reals, step: float, n: int, rate: float, below: int, above: int
) -> DominatingPair | None:
    size = 2 ** math.ceil(math.log2(below + above + 1))
    pmf = np.zeros(size)
    np.add.at(pmf, indices % size, masses)
    centred = rate * (np.fft.rfft(pmf) - 1)
    with np.errstate(divide="ignore"):
        near_one = np.log1p(2 * centred.real + np.abs(centred) ** 2) / 2
        log_modulus = np.where(np.abs(centred) < 0.5, near_one, np.log(np.abs(1 + centred)))
    power = np.exp(n * log_modulus) * np.exp(1j * n * np.arctan2(centred.imag, 1 + centred.real))
    # Round-off relative to the total mass: of the masses, log2(size) butterflies, the logarithm, the power.
    roundoff = UNIT * (4 * len(indices) + 8 * math.log2(size) + 16)
    errors = n * rate * roundoff * (np.exp(log_modulus) + rate * roundoff) ** (n - 1) + roundoff * np.abs(power)
    error = 2 * float(errors.mean()) + 2 * math.exp(-LOG_OMITTED)  # the mass outside the window aliases into it
    index = np.arange(-below, above + 1)
    base = np.fft.irfft(power, size)[index % size]
    index, base = index[base > 10 * error], base[base > 10 * error]
    if not len(index):
        return None
    ratio = index * (step / n)
    starts = np.flatnonzero(np.diff(np.arange(len(index)) * MAX_CELLS // max(len(index), MAX_CELLS), prepend=-1))
    gain_errors = (error + RTOL_RATIO * base) * (1 + np.abs(ratio))
    base, gain, gain_errors = (np.add.reduceat(part, starts) for part in (base, base * ratio, gain_errors))
    losses = np.log1p(gain / base)
    return DominatingPair(losses, losses, base, gain, gain_errors)
