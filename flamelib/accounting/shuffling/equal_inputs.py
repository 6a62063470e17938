r"""Shuffled Gaussian noise where all other users hold the victim's other value: likelihood ratios on a lattice.

Every user joins at the rate :math:`\gamma`.  The others, and in Q the victim, hold 0; in P the victim holds 1.  With
:math:`r=\mathrm dN(1,\sigma^2)/\mathrm dN(0,\sigma^2)` and messages y,

.. math:: \frac{\mathrm dP}{\mathrm dQ} = 1+\frac1n\sum_{i\text{ joins}}(r(y_i)-1).

*A coarser view.*  Cut the line at :math:`-\infty=t_0<t_1<\dots` so that P has exactly :math:`1+jh` times Q's
probability in an interval, with a whole number j for each, and give up what lies beyond the last one.  If of a message
only its interval is seen, dP/dQ - 1 is h/n times a sum of n independent whole numbers under Q: one Fourier transform.

Who sees less distinguishes less: for bounds from below.  Adjacency: replace-one.  Source: this project.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from flamelib.accounting.composition.dominating_pair import DominatingPair
from flamelib.core.arrays import Reals
from flamelib.core.logspace import LOG_OMITTED, MAX_EXPONENT, UNIT
from flamelib.core.profiles import GaussianProfile

MAX_WINDOW = 2**21  # points of the Fourier transform at most
MAX_CELLS = 4000  # cells that are composed at most
RTOL_RATIO = 1e-12  # relative error of the ratio of probabilities of an interval


def equal_inputs_pair(randomizer: GaussianProfile, n_users: int, checkin_rate: float = 1.0) -> DominatingPair | None:
    """A coarser view of the pair (``None`` where the noise is too small for a lattice, or nothing is certain)."""
    distance = 1 / randomizer.noise_std
    spread = math.sqrt(math.expm1(min(distance * distance, MAX_EXPONENT)))  # standard deviation of r under Q
    if not spread:  # below the doubles: no message tells anything
        return None
    step = min(spread / 16, 1 / 8)
    for tail, h in ((1e-9, step), (1e-7, step), (1e-5, step), (1e-4, 2 * step)):
        end = distance - float(ndtri(tail))  # the message of P's victim lies beyond with probability `tail`
        if distance * (end - distance / 2) > math.log(MAX_WINDOW * h):
            continue
        places, masses = _intervals(distance, h, end)
        window = [_reach(n_users, checkin_rate, side * places, masses) for side in (-1, 1)]
        if sum(window) < MAX_WINDOW:
            return _pair(places, masses, h, n_users, checkin_rate, *window)
    return None


def _intervals(distance: float, h: float, end: float) -> tuple[NDArray[np.int64], Reals]:
    """Whole numbers j of the intervals and their probabilities under N(0, 1); P is N(distance, 1)."""
    places, masses = list[int](), list[float]()
    j, left = math.ceil(math.expm1(-distance * (end + distance / 2)) / h), -math.inf
    while True:
        ratio = 1 + j * h
        turn = math.log(ratio) / distance + distance / 2  # here the densities have the ratio of the interval
        if left < turn:
            if _excess(left, end, ratio, distance) <= 0:
                return np.array(places, dtype=np.int64), np.array(masses)
            right = _right_end(left, turn, end, ratio, distance)
            places.append(j)
            masses.append(_normal(left, right))
            left = right
        j += max(1, abs(j) // 20)  # far from 1 ratios need not be as fine as the lattice


def _excess(left: float, right: float, ratio: float, distance: float) -> float:
    """P's probability of an interval minus ``ratio`` times Q's."""
    return _normal(left - distance, right - distance) - ratio * _normal(left, right)


def _normal(left: float, right: float) -> float:
    """Standard normal probability of an interval, from the nearer tail."""
    return float(ndtr(right) - ndtr(left)) if right < 0 else float(ndtr(-left) - ndtr(-right))


def _right_end(left: float, turn: float, end: float, ratio: float, distance: float) -> float:
    """The right end in (turn, end] of the interval with this left end and ratio, by Newton's method in a bracket."""
    low, high, right = turn, end, min(2 * turn - left, end)
    for _ in range(100):
        excess = _excess(left, right, ratio, distance)
        low, high = (right, high) if excess < 0 else (low, right)
        slope = math.exp(-((right - distance) ** 2) / 2) - ratio * math.exp(-right * right / 2)
        newest = right - excess * math.sqrt(2 * math.pi) / slope if slope > 0 else high
        newest = newest if low < newest < high else (low + high) / 2
        if abs(newest - right) <= 4 * UNIT * (1 + abs(right)):
            break
        right = newest
    return right


def _reach(n_users: int, rate: float, places: NDArray[np.int64], masses: Reals) -> int:
    """The sum of n whole numbers exceeds this with probability exp(-LOG_OMITTED) at most (Chernoff)."""
    most = max(int(places.max()), 1)
    tilts = np.geomspace(1e-6, 100, 200) / most
    with np.errstate(over="ignore"):
        moments = n_users * np.log1p(rate * (np.expm1(tilts[:, None] * places) @ masses))
    return math.ceil(float(((LOG_OMITTED + moments) / tilts).min()) * (1 + 1e-9))


def _pair(
    places: NDArray[np.int64], masses: Reals, h: float, n: int, rate: float, below: int, above: int
) -> DominatingPair | None:
    size = 2 ** math.ceil(math.log2(below + above + 1))
    law = np.zeros(size)
    np.add.at(law, places % size, masses)
    moved = rate * (np.fft.rfft(law) - 1)
    with np.errstate(divide="ignore"):
        near = np.log1p(2 * moved.real + np.abs(moved) ** 2) / 2
        log_size = np.where(np.abs(moved) < 0.5, near, np.log(np.abs(1 + moved)))
    power = np.exp(n * log_size) * np.exp(1j * n * np.arctan2(moved.imag, 1 + moved.real))
    # Round-off relative to the sum of all masses: theirs, log2(size) steps of a transform, the logarithm, the power.
    off = UNIT * (4 * len(places) + 8 * math.log2(size) + 16)
    doubt = n * rate * off * (np.exp(log_size) + rate * off) ** (n - 1) + off * np.abs(power)
    error = 2 * float(doubt.mean()) + 2 * math.exp(-LOG_OMITTED)  # what lies outside the window comes back inside
    index = np.arange(-below, above + 1)
    base = np.fft.irfft(power, size)[index % size]
    index, base = index[base > 10 * error], base[base > 10 * error]
    if not len(index):
        return None
    lift = index * (h / n)
    first = np.flatnonzero(np.diff(np.arange(len(index)) * MAX_CELLS // max(len(index), MAX_CELLS), prepend=-1))
    errors = (error + RTOL_RATIO * base) * (1 + np.abs(lift))
    base, gain, errors = (np.add.reduceat(part, first) for part in (base, base * lift, errors))
    losses = np.log1p(gain / base)
    return DominatingPair(losses, losses, base, gain, errors)
