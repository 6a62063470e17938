r"""Rényi differential privacy: divergences, composition, and conversion to (epsilon, delta) and back.

The Rényi divergence of order :math:`\lambda > 1` is
:math:`D_\lambda(P\|Q) = \frac1{\lambda-1}\log E_Q[(P/Q)^\lambda]`.  Standard library only.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from flamelib.core.logspace import ROUNDING, log1mexp, logaddexp, product_above
from flamelib.core.search import golden_sections
from flamelib.core.statements import states
from flamelib.core.vocabulary import check


def renyi_divergence(first: Sequence[float], second: Sequence[float], order: float) -> float:
    """Rényi divergence of two distributions on finitely many outcomes, at an order above 1 (exact).

    The answer is ``inf`` where the first distribution is not absolutely continuous.

    Source: Liew, Hasegawa, Takahashi 2022, Definition 3.
    """
    if any(p > 0 and q == 0 for p, q in zip(first, second, strict=True)):
        return math.inf
    logs = [order * math.log(p) + (1 - order) * math.log(q) for p, q in zip(first, second, strict=True) if p > 0]
    top = max(logs)
    return max(0.0, (top + math.log(math.fsum(math.exp(x - top) for x in logs))) / (order - 1))


@states("checkin", "def-3", item="Definition 3, Rényi privacy of an epsilon-private mechanism (Mironov 2017)",
        gives="exact", rests_on="proven")  # fmt: skip
def pure_renyi(order: int, epsilon: float) -> float:
    r"""Largest Rényi divergence of any epsilon-private mechanism, that of binary response (exact).

    .. math:: \frac1{\lambda-1}\log\frac{\sinh\lambda\varepsilon-\sinh(\lambda-1)\varepsilon}{\sinh\varepsilon}
              = \frac1{\lambda-1}\log\Big(1+\frac{2\sinh(\lambda\varepsilon/2)\sinh((\lambda-1)\varepsilon/2)}
              {\cosh(\varepsilon/2)}\Big)

    Source: Liew, Hasegawa, Takahashi 2022, Definition 3; the maximum is Mironov 2017, Proposition 10.

    Examples
    --------
    >>> round(pure_renyi(8, 1.0), 6)
    0.955248
    """
    if epsilon == 0:
        return 0.0
    log_cosh = epsilon / 2 + math.log1p(math.exp(-epsilon))
    return logaddexp(0.0, _log_2sinh(order * epsilon) + _log_2sinh((order - 1) * epsilon) - log_cosh) / (order - 1)


def _log_2sinh(twice: float) -> float:
    """``log(2 sinh(x/2))``."""
    return twice / 2 + log1mexp(twice)


@states("checkin", "lem-1", item="Lemma 1, composition", gives="upper", rests_on="proven", adjacency="none")
def renyi_composition(divergence: float, times: int) -> float:
    r"""Rényi divergence of ``times`` mechanisms together, each of at most ``divergence`` at the same order (upper).

    The mechanisms may be chosen adaptively.

    Source: Liew, Hasegawa, Takahashi 2022, Lemma 1, after Mironov 2017.

    Examples
    --------
    >>> renyi_composition(0.25, 10)
    2.5
    """
    return product_above(divergence, times)


@states(
    "checkin", "lem-2", item="Lemma 2, Equation 3, at one order", gives="upper", rests_on="proven", adjacency="none"
)
def renyi_conversion(order: int, divergence: float, delta: float) -> float:
    r"""Epsilon at ``delta`` of a mechanism with this Rényi divergence at this order (upper); ``inf`` at 0.

    .. math:: \max\Big\{0,\ D + \frac{\log(1/\delta)+(\lambda-1)\log(1-1/\lambda)-\log\lambda}{\lambda-1}\Big\}

    Source: Liew, Hasegawa, Takahashi 2022, Lemma 2, after Canonne, Kamath, Steinke 2020.

    Examples
    --------
    >>> round(renyi_conversion(8, 0.25, 1e-5), 9)
    1.464109168
    """
    return converted(order, divergence, delta)


def converted(order: float, total: float, delta: float) -> float:
    """The formula of :func:`renyi_conversion` at any real order above 1; arguments are not checked."""
    if delta == 0 or delta == 1:
        return math.inf if delta == 0 else 0.0
    cost = -math.log(delta) + (order - 1) * math.log1p(-1 / order) - math.log(order)
    size = abs(total) + (2 - math.log(delta) + math.log(order)) / (order - 1)
    return max(0.0, total + cost / (order - 1) + 4 * ROUNDING * size)


def renyi_to_epsilon(curve: Callable[[float], float], delta: float, orders: Iterable[float]) -> float:
    """Least epsilon of Lemma 2 at ``delta`` over these orders above 1 (upper).

    ``curve`` is the Rényi divergence of the composition by order; a finer grid can only decrease the answer.

    Source: Liew, Hasegawa, Takahashi 2022, Lemma 2.
    """
    delta = check(delta=delta)["delta"]
    return min(converted(order, curve(order), delta) for order in orders)


@states("checkin", "lem-3", item="Lemma 3, Equation 4, in its complete form", gives="value",
        adjacency="none")  # fmt: skip
def least_renyi(order: int, epsilon: float, delta: float) -> float:
    r"""The divergence of Lemma 3: the least of a pair with exactly this (epsilon, delta), **not a bound** from above.

    .. math:: \varepsilon + \frac1{\lambda-1}\log\min_{\delta<r<1}
              \big(r^\lambda(r-\delta)^{1-\lambda} + (1-r)^\lambda(e^\varepsilon-r+\delta)^{1-\lambda}\big)

    The document prints the minimum alone as the divergence.  The pair :math:`P = (r, 1-r)`,
    :math:`Q = e^{-\varepsilon}(r-\delta,\ e^\varepsilon-r+\delta)` has the divergence ``delta`` at ``epsilon``; every
    pair with that divergence has at least this Rényi divergence.  The lemma claims it as an upper bound for every
    (epsilon, delta)-private mechanism; in fact it may be ``inf``: book, chapter on check-in, *There is no such lemma*.

    Source: Liew, Hasegawa, Takahashi 2022, Lemma 3, completed.

    Examples
    --------
    A (1, 0)-private mechanism may have .955; for (1, 1e-5) the lemma claims less than .029:

    >>> round(least_renyi(8, 1.0, 1e-5), 4), round(pure_renyi(8, 1.0), 3)
    (0.0288, 0.955)
    """
    return max(0.0, epsilon + _log_least(order, epsilon, delta) / (order - 1))


def _log_least(order: int, epsilon: float, delta: float) -> float:
    """Golden section over ``log(r/delta)``: the minimum is that of a convex function of r."""
    if delta == 0 or delta == 1:
        return (1 - order) * epsilon if delta == 0 else math.inf

    def log_sum(u: float) -> float:
        r, beyond = min(delta * math.exp(u), 1.0), delta * math.expm1(u)
        if beyond <= 0:
            return math.inf
        first = order * math.log(r) + (1 - order) * math.log(beyond)
        rest = math.log1p(-r) if r < 1 else -math.inf
        return logaddexp(first, order * rest + (1 - order) * (epsilon + math.log1p(-beyond * math.exp(-epsilon))))

    sections = golden_sections(log_sum, -math.log(delta))
    return next(islice(sections, 80, None))[0][0]  # so many give all digits
