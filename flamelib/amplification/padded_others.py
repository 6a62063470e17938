r"""The other messages of a padded coordinate: how many are real and hide nothing, from above.

Among :math:`n_p` messages some are real and the rest are dummies; what a real message does for the one in question is
to be a blanket message with probability :math:`\gamma`, while a dummy surely is one.

With m - 1 blanket messages beside hers the divergence is :math:`D(m) = \frac1m E[(\sum_{i\le m} L_i)_+]`
(:mod:`flamelib.amplification.padded`).  It falls with m (the mean of m variables is a conditional expectation of that
of m - 1), so a bound on the number K of messages that are real and not blanket is all that is needed: if K is
stochastically below
:math:`\mathrm{Bin}(n_p-1, 1-g)`, then the divergence is at most that of :math:`n_p` messages of blanket mass g,
:math:`\frac{1}{gn_p}E[(\sum_{i\le M}L_i)_+]`, :math:`M\sim\mathrm{Bin}(n_p,g)`.

* Nothing is known about who reports: all others are real in the worst case and :math:`g=\gamma`, since turning a real
  message into a dummy makes K smaller.
* :math:`n_s` messages are real, hers included: :math:`1-g = 1-\gamma^{(n_s-1)/(n_p-1)}`.  Proof: throw a Poisson
  number of balls, mean :math:`-(n_s-1)\log\gamma`, at :math:`n_s-1` cells, or at :math:`n_p-1`: the occupied cells
  are :math:`\mathrm{Bin}(n_s-1,1-\gamma)` and :math:`\mathrm{Bin}(n_p-1,1-g)`.  With k cells occupied the next ball
  finds a new one with probability one minus k over the number of cells, so that more cells mean more occupied ones.
* Each of n - 1 others reports with chance :math:`\beta`: K is :math:`\mathrm{Bin}(n-1,q)`, :math:`q=\beta(1-\gamma)`.
  If :math:`n\le n_p` as before.  Else it is compared up to some :math:`k_0` only, by the likelihood ratio of
  :math:`\mathrm{Bin}(n_p-1,1-g)` to it, which grows up to there if
  :math:`\frac{1-g}{g}=\frac{q}{1-q}\cdot\frac{n-k_0}{n_p-k_0}`; then the part :math:`K\le k_0` contributes at most the
  divergence for g.  What is left, :math:`K>k_0` or more than :math:`n_p-1` other real messages, is improbable, and
  counts with the divergence of her message in clear: who reports does not depend on the data, so that an overflow,
  whatever is done about it by looking at indices, shows no more than the messages themselves.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass

from scipy.stats import binom

from flamelib.core.profiles import KaryProfile, LaplaceProfile

Padded = KaryProfile | LaplaceProfile

REST = 1e-20
ABOVE = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class Others:
    """All messages, and the chance that one of the others ignores its value (``mass``, else ``kept``).

    This holds up to an event of probability ``rest``, on which nothing hides the message in question.
    """

    messages: int
    mass: float
    kept: float
    rest: float = 0.0


def all_real(randomizer: Padded, padded: int) -> Others:
    """No dummy among the messages: the worst case when nobody knows how many there are."""
    return Others(padded, randomizer.mass, randomizer.kept)


def some_real(randomizer: Padded, padded: int, real: int) -> Others:
    """``real`` messages, the one in question included, and dummies up to ``padded``."""
    return _spread(padded, _log_mass(randomizer) * (real - 1))


def sampled(randomizer: Padded, padded: int, n_users: int, sampling_rate: float, rest: float = REST) -> Others:
    """Every other user reports with chance ``sampling_rate``; about ``rest`` is set aside where users are many.

    Examples
    --------
    >>> found = sampled(LaplaceProfile(0.5), 333, 1000, 0.02)
    >>> round(found.kept * 332, 2), found.rest < 1e-19
    (4.71, True)
    """
    chance, others = sampling_rate * randomizer.kept, n_users - 1
    if others < padded:
        return _spread(padded, math.log1p(-chance) * others if chance < 1 else -math.inf)
    overflow = ABOVE * float(binom.sf(padded - 1, others, sampling_rate))
    far = -math.log(rest)
    most = math.ceil(min(others * chance + math.sqrt(2 * far * others * chance) + far / 1.5, padded - 1))
    most = bisect_left(range(most), True, key=lambda count: binom.sf(count, others, chance) <= rest)
    worst = all_real(randomizer, padded)
    if chance >= 1:
        return Others(padded, worst.mass, worst.kept, min(overflow, 1.0))
    odds = ABOVE * chance / (1 - chance) * (n_users - most) / (padded - most)
    if odds / (1 + odds) >= worst.kept:
        return Others(padded, worst.mass, worst.kept, min(overflow, 1.0))
    rest = overflow + ABOVE * float(binom.sf(most, others, chance))
    return Others(padded, 1 / (1 + odds), odds / (1 + odds), min(rest, 1.0))


def _spread(padded: int, log_none: float) -> Others:
    """As many others as there are places, with this logarithm of the chance that all of them are blanket."""
    log_mass = log_none / (padded - 1)
    return Others(padded, math.exp(log_mass), -math.expm1(log_mass))


def _log_mass(randomizer: Padded) -> float:
    return math.log1p(-randomizer.kept) if randomizer.kept < 0.5 else math.log(randomizer.mass)
