"""Numerical shuffling bounds, certified: blanket, clones, all others equal, exact binary response.

Every answer comes from a bracket (:mod:`flamelib.accounting.shuffling.bromwich`,
:mod:`flamelib.accounting.shuffling.exact_binary`): upper bounds return its upper end, lower bounds its lower end, and a
search ends at a point where the certified end, not an estimate, meets the target.  The ``uncertainty`` is the width of
the numerical error.  Adjacency is replace-one throughout; both orders of the two values are covered.  Proofs: book,
chapter on the privacy blanket.
"""

from collections.abc import Mapping
from typing import Any

from flamelib.accounting.shuffling.analysis import BlanketAnalysis
from flamelib.accounting.shuffling.any_randomizer import AnyAnalysis, ClonedAnalysis
from flamelib.accounting.shuffling.discrete import KaryAnalysis
from flamelib.accounting.shuffling.randomizers import analysis
from flamelib.core.guarantees import Certified, Gives
from flamelib.core.profiles import (
    AnyProfile,
    ClonedProfile,
    GaussianProfile,
    KaryProfile,
    LaplaceProfile,
    SupportProfile,
)
from flamelib.core.statements import states
from flamelib.core.vocabulary import SUPPORTS

Analyzed = KaryProfile | SupportProfile | LaplaceProfile | GaussianProfile


def _exact_gives(arguments: Mapping[str, Any]) -> Gives:
    """Exact up to 1e9 users; beyond, counts lose digits and the blanket bound may be the answer."""
    return Gives.EXACT if arguments["n_users"] <= 10**9 else Gives.UPPER


@states("blanket", "lem-reduction", item="Section 5, reduction to a sum of independent variables, worst pair of values",
        gives="upper", rests_on="proven", randomizers=("kary", "laplace", "gaussian", *SUPPORTS))  # fmt: skip
def blanket_divergence(
    randomizer: Analyzed, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    r"""Tightest guarantee the blanket decomposition gives after shuffling (upper bound).

    .. math:: \delta = \frac{1}{\gamma n} E\Big[\Big(\sum_{i=1}^{M} L_i\Big)_+\Big],\quad M \sim \mathrm{Bin}(n,\gamma),

    for the worst pair of inputs, 0 and 1, never below the true value of the formula and at most 1e-6 (relative, in
    delta) above it where ``uncertainty`` does not say otherwise; epsilon is at most the local budget.

    Parameters
    ----------
    randomizer
        K-ary response, or Laplace or Gaussian noise on a value in [0, 1].

    Source: Balle, Bell, Gascon, Nissim 2019, Section 5; the worst pair is proved in the book, *The worst pair*.

    Examples
    --------
    >>> f"{blanket_divergence(KaryProfile(4.0, 10), 10**8, epsilon=0.0046):.6e}"
    '1.188828e-10'
    """
    account: BlanketAnalysis = analysis(randomizer)  # type: ignore[assignment]  # each of these has a blanket
    return account.by_blanket(n_users, epsilon, delta)


@states("shuffle", "lower", item="exact divergence when all other users hold one value, worst such value",
        gives="lower", rests_on="proven", randomizers=("kary", "laplace", "gaussian", *SUPPORTS))  # fmt: skip
def all_equal(
    randomizer: Analyzed, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    r"""Divergence of the shuffled output on explicit data sets (lower bound).

    If all other users hold z, the divergence is :math:`\frac1n E[(\sum_{i=1}^n L_i)_+]` exactly, with L taken
    under :math:`\mu_z` instead of the blanket; the answer is the largest over z of the certified lower ends, never
    above the truth for the worst pair of neighbouring data sets.  Where few users send k-ary responses, every data set
    is enumerated in which the others hold the two values in question and a third one.  A local budget above 30 counts
    as 30 where noise that is added to the messages makes it that.

    Source: the reduction of Balle, Bell, Gascon, Nissim 2019 with nothing revealed.

    Examples
    --------
    >>> f"{all_equal(KaryProfile(1.0, 2), 10_000, delta=1e-6):.5f}"
    '0.03566'
    """
    return analysis(randomizer).from_below(n_users, epsilon, delta)


@states(
    "clones", "2021", item="Hiding Among the Clones, reduction to three-valued counts", gives="upper", rests_on="proven"
)
def clones_2021(epsilon0: float, n_users: int, epsilon: float | None = None, delta: float | None = None) -> Certified:
    r"""Guarantee after shuffling any local randomizers with budget ``epsilon0`` (upper bound), epsilon at most that.

    Each other user is a clone of the affected one with probability :math:`e^{-\varepsilon_0}`; the pair is that of
    binary response hidden among the clones, which is the blanket formula with that mass.

    Source: Feldman, McMillan, Talwar 2021, Theorem 3.2.

    Examples
    --------
    >>> f"{clones_2021(1.0, 10_000, delta=1e-6):.4f}"
    '0.0530'
    """
    return AnyAnalysis(AnyProfile(epsilon0)).by_blanket(n_users, epsilon, delta)


@states("clones", "2023", gives="upper", rests_on="proven", randomizers=("kary", "laplace", *SUPPORTS),
        item="Stronger Privacy Amplification by Shuffling, clone probability 2/(e^epsilon0 + 1), within its erratum",
        )  # fmt: skip
def clones_2023(
    randomizer: KaryProfile | SupportProfile | LaplaceProfile, n_users: int, epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:  # fmt: skip
    r"""Guarantee after shuffling, by clones of probability :math:`2/(e^{\varepsilon_0}+1)` (upper bound).

    Valid where :math:`\mu_x + \mu_{x'} \le (e^{\varepsilon_0}+1) \inf_z \mu_z` pointwise for the pair that matters,
    which not every randomizer satisfies (erratum of 2023).  K-ary response has it for every pair.  Laplace noise on [0,
    1] has it for the end points, whose blanket divergence is the largest of all pairs and below the clone value.  For
    all others the bound is that of :func:`any_randomizer`.  Epsilon is at most the local budget.

    Source: Feldman, McMillan, Talwar 2023, with its erratum.

    Examples
    --------
    >>> f"{clones_2023(KaryProfile(1.0, 2), 10_000, delta=1e-6):.5f}"
    '0.04321'
    """
    return ClonedAnalysis(ClonedProfile(randomizer.epsilon0)).by_blanket(n_users, epsilon, delta)


@states("shuffle", "exact-binary", item="binary randomized response, worst data sets, both directions",
        gives=_exact_gives, rests_on="proven")  # fmt: skip
def exact_binary(epsilon0: float, n_users: int, epsilon: float | None = None, delta: float | None = None) -> Certified:
    """Exact guarantee of shuffled binary response: worst other users, worst direction (upper above 1e9 users).

    The worst data set is not always "all others equal": the count of ones among the others shifts the threshold
    of the best test against the lattice of counts, and a better alignment can win (by 19 % at n = 20,
    epsilon0 = 3, epsilon = 0.06; mostly by less than 1 % from n = 100 on).  The search over that count, which misses
    nothing, is described in :mod:`flamelib.accounting.shuffling.exact_binary`; the remaining doubt is the
    ``uncertainty``, added upwards.  Epsilon is at most ``epsilon0``.

    Source: this project; the divergence is that of two sums of independent bits; book, *The worst data set, certified*.

    Examples
    --------
    >>> f"{exact_binary(1.0, 12, epsilon=0.3):.5f}"
    '0.03909'
    """
    return KaryAnalysis(KaryProfile(epsilon0, 2)).one_round(n_users, epsilon, delta)


@states("shuffle", "any", item="every local randomizer of one budget: clones of probability 2/(e^epsilon0 + 1), "
        "and from below the worst of k-ary responses",
        gives=lambda arguments: Gives(arguments["side"]), rests_on="proven")  # fmt: skip
def any_randomizer(
    epsilon0: float, n_users: int, side: str, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    r"""Guarantee after shuffling the messages of one randomizer of budget ``epsilon0``: any (upper), some (lower).

    Upper: for the pair of values in question
    :math:`\inf_z\mu_z\ge e^{-\varepsilon_0}\max(\mu_x,\mu_{x'})` is a blanket, whose amplification variable is in
    convex order below that of binary response: a reduction to clones of probability
    :math:`2/(e^{\varepsilon_0}+1)`.

    Lower: the larger of binary response at its worst data set and of k-ary response whose other users hold a third
    value (the latter wins from about :math:`\varepsilon_0=\log 2` on).

    Source: this project; the blanket reduction is of Balle, Bell, Gascon, Nissim 2019.

    Examples
    --------
    >>> f"{any_randomizer(1.0, 10_000, 'upper', delta=1e-6):.4f} {any_randomizer(1.0, 10_000, 'lower', delta=1e-6):.4f}"
    '0.0432 0.0380'
    """
    account = AnyAnalysis(AnyProfile(epsilon0))
    return (account.one_round if side == "upper" else account.from_below)(n_users, epsilon, delta)
