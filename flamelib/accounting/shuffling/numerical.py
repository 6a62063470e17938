"""Numerical shuffling bounds, certified: blanket, clones, all others equal, exact binary response.

Every answer comes from a bracket (:mod:`flamelib.accounting.shuffling.inversion`,
:mod:`flamelib.accounting.shuffling.exact_binary`):
upper bounds return its upper end, lower bounds its lower end, and a search ends at a point where the
certified end, not an estimate, meets the target.  Adjacency is replace-one throughout; both orders of the
two values are covered.
"""

import functools
import math

from flamelib.accounting.shuffling import exact_binary as binary
from flamelib.accounting.shuffling.brackets import LawAt, answer, divergence, estimate, within_reach
from flamelib.accounting.shuffling.gaussian_cut import GaussianLaw
from flamelib.accounting.shuffling.laws import AtomicLaw, LaplaceLaw, clone_blanket, kary_blanket, kary_others
from flamelib.core.guarantees import Certified
from flamelib.core.profiles import GaussianProfile, KaryProfile, LaplaceProfile
from flamelib.core.search import smallest_epsilon
from flamelib.core.statements import states

Analyzed = KaryProfile | LaplaceProfile | GaussianProfile


@states(
    "blanket",
    "lem-reduction",
    item="Section 5, reduction to a sum of independent variables, worst pair of values",
    gives="upper",
    randomizers=("kary", "laplace", "gaussian"),
)
def blanket_divergence(
    randomizer: Analyzed, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    r"""Tightest guarantee the blanket decomposition gives after shuffling (upper bound).

    .. math:: \delta = \frac{1}{\gamma n} E\Big[\Big(\sum_{i=1}^{M} L_i\Big)_+\Big],\quad M \sim \mathrm{Bin}(n,\gamma),

    for the worst pair of inputs, never below the true value of the formula and at most 1e-6 (relative, in
    delta) above it where ``uncertainty`` does not say otherwise.  For k-ary response and Laplace noise the error is
    bounded; for Gaussian noise the quadrature's part of it is estimated, generously
    (:mod:`flamelib.accounting.shuffling.gaussian_cut`).

    Why the extreme pair (0, 1) is the worst.  Write :math:`r_x = \mu_x/\omega \ge \gamma`.  For the extreme pair the
    sets :math:`\{r_0 > \gamma\}`, :math:`\{r_1 > \gamma\}` are disjoint, so for :math:`c \ge \gamma(1-e^\varepsilon)`

    .. math:: E(L^{0,1}-c)_+ = E(r_0 - k)_+,\ k = c + e^\varepsilon\gamma \ge \gamma, \qquad
              E(L^{x,x'}-c)_+ \le E(r_x - k)_+ \ \text{because}\ r_{x'} \ge \gamma,

    and for smaller c the same with :math:`E(c-L)_+`, since all means equal :math:`1-e^\varepsilon`.  It remains that
    :math:`E(r_x-k)_+ \le E(r_0-k)_+` for :math:`k \ge \gamma`.  K-ary response: equality.  Noise with a symmetric
    log-concave density f: with :math:`\gamma\omega = \min(\mu_0,\mu_1)` the left side changes with x at the rate
    :math:`f(v-x) - f(v'-(1-x))`, where v and v' bound the two regions; for x below one half
    :math:`|v'-(1-x)| \le |v-x|`, so it falls until one half and is symmetric.  Hence every :math:`L^{x,x'}` is below
    :math:`L^{0,1}` in convex order, and so are the sums.

    Parameters
    ----------
    randomizer : KaryProfile, LaplaceProfile or GaussianProfile
        K-ary response, or Laplace or Gaussian noise on a value in [0, 1].

    Returns
    -------
    Certified
        Delta (or epsilon, at most the local budget), with the width of its numerical error.

    Source: Balle, Bell, Gascon, Nissim 2019, Section 5; the worst pair is proved here.

    Examples
    --------
    >>> f"{blanket_divergence(KaryProfile(4.0, 10), 10**8, epsilon=0.0046):.6e}"
    '1.188828e-10'
    """
    law = _blanket_law(randomizer)
    return answer(divergence(law, n_users), estimate(law, n_users), randomizer.epsilon0, epsilon, delta)


@states(
    "shuffle",
    "lower",
    item="exact divergence when all other users hold one value, worst such value",
    gives="lower",
    randomizers=("kary", "laplace", "gaussian"),
)
def all_equal(
    randomizer: Analyzed, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    r"""What the shuffled output of explicit data sets gives away (lower bound).

    If all other users hold z, the divergence is :math:`\frac1n E[(\sum_{i=1}^n L_i)_+]` exactly, with L taken
    under :math:`\mu_z` instead of the blanket; the answer is the largest over z of the certified lower ends.

    Parameters
    ----------
    randomizer : KaryProfile, LaplaceProfile or GaussianProfile

    Returns
    -------
    Certified
        Delta, or epsilon; never above the truth for the worst pair of neighboring data sets.

    Source: the reduction of Balle, Bell, Gascon, Nissim 2019 with nothing revealed.

    Examples
    --------
    >>> f"{all_equal(KaryProfile(1.0, 2), 10_000, delta=1e-6):.5f}"
    '0.03566'
    """
    law = _worst_others(randomizer, n_users, epsilon, delta)
    return answer(divergence(law, n_users), estimate(law, n_users), randomizer.epsilon0, epsilon, delta, upper=False)


@states("clones", "2021", item="Hiding Among the Clones, reduction to three-valued counts", gives="upper")
def clones_2021(epsilon0: float, n_users: int, epsilon: float | None = None, delta: float | None = None) -> Certified:
    r"""Guarantee after shuffling any local randomizers with budget ``epsilon0`` (upper bound).

    Each other user is a clone of the affected one with probability :math:`e^{-\varepsilon_0}`; the pair is that of
    binary response hidden among the clones, which is the blanket formula with that mass.

    Returns
    -------
    Certified
        Delta, or epsilon (at most ``epsilon0``).

    Source: Feldman, McMillan, Talwar 2021, Theorem 3.2.

    Examples
    --------
    >>> f"{clones_2021(1.0, 10_000, delta=1e-6):.4f}"
    '0.0530'
    """
    return _clones(epsilon0, (math.exp(-epsilon0), -math.expm1(-epsilon0)), n_users, epsilon, delta)


@states(
    "clones",
    "2023",
    item="Stronger Privacy Amplification by Shuffling, clone probability 2/(e^epsilon0 + 1), within its erratum",
    gives="upper",
    randomizers=("kary", "laplace"),
)
def clones_2023(
    randomizer: KaryProfile | LaplaceProfile, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    r"""Guarantee after shuffling, by clones of probability :math:`2/(e^{\varepsilon_0}+1)` (upper bound).

    Valid where :math:`\mu_x + \mu_{x'} \le (e^{\varepsilon_0}+1) \inf_z \mu_z` pointwise for the pair that matters,
    and not for every randomizer (erratum of 2023).  K-ary response has it for every pair.  Laplace noise on
    [0, 1] has it for the end points, where the infimum is the smaller density, at least
    :math:`e^{-\varepsilon_0}` times the larger; and by the convex order shown at :func:`blanket_divergence` the
    blanket divergence of every other pair is below that of the end points, which is below the clone value
    because the clones are part of the blanket.

    Parameters
    ----------
    randomizer : KaryProfile or LaplaceProfile

    Returns
    -------
    Certified
        Delta, or epsilon (at most the local budget).

    Source: Feldman, McMillan, Talwar 2023, with its erratum.

    Examples
    --------
    >>> f"{clones_2023(KaryProfile(1.0, 2), 10_000, delta=1e-6):.5f}"
    '0.04321'
    """
    epsilon0 = randomizer.epsilon0
    return _clones(epsilon0, (2 / (math.exp(epsilon0) + 1), math.tanh(epsilon0 / 2)), n_users, epsilon, delta)


def _clones(
    epsilon0: float, chances: tuple[float, float], n_users: int, epsilon: float | None, delta: float | None
) -> Certified:
    """By the probabilities that another user is a clone, and that it is not."""

    def law(at: float) -> AtomicLaw:
        return clone_blanket(epsilon0, at, *chances)

    return answer(divergence(law, n_users), estimate(law, n_users), epsilon0, epsilon, delta)


@states("shuffle", "exact-binary", item="binary randomized response, worst data sets, both directions", gives="exact")
def exact_binary(epsilon0: float, n_users: int, epsilon: float | None = None, delta: float | None = None) -> Certified:
    r"""Exact guarantee of shuffled binary response: worst other users, worst direction.

    The worst data set is not always "all others equal": the count of ones among the others shifts the threshold
    of the best test against the lattice of counts, and a better alignment can win (by 19 % at n = 20,
    epsilon0 = 3, epsilon = 0.06; mostly by less than 1 % from n = 100 on).  The search over that count is described
    in :mod:`flamelib.accounting.shuffling.exact_binary`; the remaining doubt is the ``uncertainty``, added upwards.

    Returns
    -------
    Certified
        Delta, or epsilon (at most ``epsilon0``).

    Source: this project; the divergence is that of two sums of independent bits.

    Examples
    --------
    >>> f"{exact_binary(1.0, 12, epsilon=0.3):.5f}"
    '0.03909'
    """
    return answer(
        lambda at: binary.worst(epsilon0, n_users, at),
        lambda at: binary.at_the_end(epsilon0, n_users, at),
        epsilon0,
        epsilon,
        delta,
    )


def _blanket_law(randomizer: Analyzed) -> LawAt:
    match randomizer:
        case KaryProfile():
            return lambda at: kary_blanket(randomizer, at)
        case LaplaceProfile():
            return lambda at: LaplaceLaw(randomizer.epsilon0, at, 0.5, randomizer.mass)
        case GaussianProfile():
            return lambda at: GaussianLaw(randomizer.noise_std, at, blanket=True)


def _others_law(randomizer: KaryProfile | LaplaceProfile, holds: str | float) -> LawAt:
    if isinstance(randomizer, KaryProfile):
        return lambda at: kary_others(randomizer, at, str(holds))
    return lambda at: LaplaceLaw(randomizer.epsilon0, at, float(holds), 1.0)


def _worst_others(randomizer: Analyzed, n_users: int, epsilon: float | None, delta: float | None) -> LawAt:
    """The law for the value of the others that gives most away, as far as is seen (any choice is a lower bound)."""
    if isinstance(randomizer, GaussianProfile):
        return lambda at: GaussianLaw(randomizer.noise_std, at, blanket=False)
    ends = "first" if isinstance(randomizer, KaryProfile) else 0.0
    if not within_reach(randomizer.epsilon0) or (epsilon or 0.0) >= randomizer.epsilon0:
        return _others_law(randomizer, ends)
    if delta is not None:
        epsilon = smallest_epsilon(estimate(_blanket_law(randomizer), n_users), delta or 1e-300, randomizer.epsilon0)
    at = min(epsilon or 0.0, (1 - 1e-6) * randomizer.epsilon0)

    if isinstance(randomizer, KaryProfile):
        # Far out in the tail the estimate cannot rank atoms; there are three values at most.
        laws = [_others_law(randomizer, holds) for holds in ("first", "second", "third")[: randomizer.n_buckets]]
        return max(laws, key=lambda law: divergence(law, n_users)(at).low)

    @functools.cache
    def strength(holds: float) -> float:
        return estimate(_others_law(randomizer, holds), n_users)(at)

    best, step = max((i / 8 for i in range(9)), key=strength), 1 / 8
    while step > 1e-4:
        step /= 2
        best = max((best, max(best - step, 0.0), min(best + step, 1.0)), key=strength)
    return _others_law(randomizer, best)
