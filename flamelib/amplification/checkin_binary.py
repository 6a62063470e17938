r"""One round of shuffled check-in with binary response: what all data sets cost.

The number m of messages is seen, and the victim is among the m who joined with the chance m/n.  Reveal what m - 1 of
the others who joined hold.  Left is one more message: the victim's with the chance m/n, else that of one more user, who
holds the one value or the other.  Both values of the victim and both of that user give laws of the form :math:`I_s`,
response to a bit s among these m - 1 others, so that by convexity the worst such user holds a fixed value, and since
:math:`\alpha\ge1` it is x': with :math:`\beta_m=1+\frac nm(\alpha-1)`

.. math:: H_\alpha\big(\tfrac mn I_x+(1-\tfrac mn)I_{x'}\,\Vert\,I_{x'}\big) = \tfrac mn H_{\beta_m}(I_x\Vert I_{x'})
    \ \ge\ H_\alpha\big(I_x\,\Vert\,\tfrac mn I_{x'}+(1-\tfrac mn)I_x\big),

the difference of the integrands being :math:`(1-\frac mn)(\alpha-1)(I_x-I_{x'})`, and the right one positive only where
:math:`I_x>I_{x'}`.  Hence, with :math:`\delta_m` the supremum over the data sets of m users
(:mod:`flamelib.amplification.binary`),

.. math:: H_\alpha(P\Vert Q) \le \sum_m \binom nm\gamma^m(1-\gamma)^{n-m}\,\tfrac mn\,\delta_m(\log\beta_m),

with equality if for each m the worst others all held x'; they do or nearly so but far out in the tail.

*In numbers.*  :math:`\delta_m` does not rise with m (one more message hides no less: add it oneself), and as a function
of m with :math:`\delta` fixed, the summand :math:`r\,h((\alpha-1)/r)`, :math:`r=m/n`, is convex.  So the m are taken in
blocks, each with the :math:`\delta` of its least m, and by the chord between its ends; :math:`\delta` itself is convex
in :math:`e^\varepsilon`, and taken from chords between few values.  All three err upwards, together by about a
hundredth in epsilon.

Source: this project, after Balle, Barthe, Gaboardi 2018 (subsampling) and Feldman, McMillan, Talwar 2021.
"""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from scipy.stats import binom

from flamelib.amplification import binary
from flamelib.amplification.certify import SMALLEST, locally
from flamelib.loss_knots import Delta

ENDS = (-9.0, -4.0, -2.0, 0.0, 2.0, 9.0)
KNOTS = 6.0
SAFE = 1 + 1e-9


def checkin_profile(epsilon0: float, n_users: int, checkin_rate: float) -> Delta:
    """Upper bound of the profiles of all pairs of neighbors, in both directions.

    Parameters
    ----------
    epsilon0 : float, positive
    n_users : int
    checkin_rate : float in (0, 1)
        At least some hundred users ought to join.

    Examples
    --------
    >>> f"{checkin_profile(1.0, 20_000, 0.1)(0.002):.4f}"
    '0.0003'
    """
    blocks = list(_blocks(epsilon0, n_users, checkin_rate))

    def profile(epsilon: float) -> float:
        return min(SAFE * sum(block.delta(math.expm1(epsilon)) for block in blocks), 1.0)

    return profile


@dataclass(frozen=True, slots=True)
class Block:
    """Numbers of messages: shares of their ends among n users, the chances given to these, a bound for all."""

    ends: tuple[float, float]
    chances: tuple[float, float]
    hidden: Delta

    def delta(self, growth: float) -> float:
        """The part of the sum, at this excess of alpha over 1."""
        return sum(
            chance * share * self.hidden(math.log1p(growth / share))
            for share, chance in zip(self.ends, self.chances, strict=True)
        )


def _blocks(epsilon0: float, n: int, rate: float) -> Iterator[Block]:
    """Very few messages as if unshuffled, all others by the worst data sets of the least number."""
    spread = math.sqrt(n * rate * (1 - rate))
    firsts = [1] + [min(max(math.ceil(n * rate + end * spread), 1), n) for end in ENDS]
    for i, (first, last) in enumerate(zip(firsts, [*(first - 1 for first in firsts[1:]), n], strict=True)):
        if last < first:
            continue
        hidden = _chords(epsilon0, first) if i else _local(epsilon0)
        yield Block((first / n, last / n), _chances(n, rate, first, last), hidden)


def _chances(n: int, rate: float, first: int, last: int) -> tuple[float, float]:
    """The binomial chances of a stretch, given to its ends so that mean and mass stay."""
    mass, moment = _mass(n, rate, first, last), n * rate * _mass(n - 1, rate, first - 1, last - 1)
    if first == last:
        return mass, 0.0
    right = min(max((moment - first * mass) / (last - first), 0.0), mass)
    return mass - right, right


def _mass(n: int, rate: float, first: int, last: int) -> float:
    if first > n * rate:
        return float(binom.sf(first - 1, n, rate) - binom.sf(last, n, rate))
    return float(binom.cdf(last, n, rate) - binom.cdf(first - 1, n, rate))


def _local(epsilon0: float) -> Delta:
    return lambda epsilon: math.exp(locally(epsilon0)(epsilon).high)


def knot_step(epsilon0: float, n_users: float) -> float:
    """Distance of the epsilons between which chords are drawn: a part of the width of the profile."""
    return 2 * math.sinh(epsilon0 / 2) / math.sqrt(n_users) / KNOTS


def _chords(epsilon0: float, n_users: int) -> Delta:
    """Worst data sets of plain shuffling: values between knots by chords, which lie above a convex curve."""
    step = min(knot_step(epsilon0, n_users), epsilon0)

    @functools.cache
    def knot(i: int) -> float:
        log_delta = binary.ceiling(epsilon0, n_users, i * step)
        return max(math.exp(min(log_delta, 0.0)), SMALLEST) if log_delta > -math.inf else 0.0

    def delta(epsilon: float) -> float:
        i = math.floor(epsilon / step)
        part = math.expm1(epsilon - i * step) / math.expm1(step)
        return (1 - part) * knot(i) + part * knot(i + 1) if epsilon < epsilon0 else 0.0

    return delta
