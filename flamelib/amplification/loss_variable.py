r"""The amplification variable :math:`L = r - e^{\varepsilon} r'`: its range, its moments, its atoms.

:math:`W` follows the blanket law, :math:`r, r'` are the likelihood ratios of two inputs against it.  What
Hoeffding's and Bennett's inequalities ask of a randomizer is three numbers, kept here by their logarithms so
that no budget from ``1e-300`` to ``700`` cancels or overflows.  Standard library only.
"""

import math
from dataclasses import dataclass

from flamelib.core.logspace import exp_or_inf, log1mexp, log_expm1, logaddexp
from flamelib.core.profiles import AnyProfile, KaryProfile, LaplaceProfile
from flamelib.core.vocabulary import DomainError, check

LARGEST = 700.0
BoundedProfile = KaryProfile | LaplaceProfile | AnyProfile


@dataclass(frozen=True, slots=True)
class LossVariable:
    """Mean, range and second moment of L at one epsilon; for the generic randomizer all but the mean are bounds."""

    mean: float
    low: float
    high: float
    second_moment: float


@dataclass(frozen=True, slots=True)
class LossShape:
    r"""What does not depend on epsilon: with :math:`a = e^{\varepsilon} - 1`,

    .. math:: b = \mathtt{spread}\,(e^{\varepsilon} + 1), \qquad
              E[L^2] = a^2\,\mathtt{cross} + (1 + e^{2\varepsilon})\,(\mathtt{same} - \mathtt{cross}).

    ``odds`` is :math:`\gamma / (1 - \gamma)`; ``log_gap`` the logarithm of ``same - cross``, which the profiles'
    two moments would lose to cancellation at a small local budget.
    """

    epsilon0: float
    log_mass: float
    odds: float
    spread: float
    log_cross: float
    log_gap: float
    generic: bool

    @property
    def mass(self) -> float:
        return math.exp(self.log_mass)

    def log_high(self, epsilon: float) -> float:
        """Logarithm of the greatest value of L; ``-inf`` at the local budget, where it is 0."""
        if self.generic:
            return self.epsilon0 + log1mexp(2 * self.epsilon0 - epsilon)
        return self.log_mass + epsilon + log_expm1(self.epsilon0 - epsilon)

    def log_second_moment(self, epsilon: float, log_a: float) -> float:
        """Logarithm of the second moment, ``log_a`` being ``log_expm1(epsilon)``."""
        squares = 2 * epsilon + math.log1p(math.exp(-2 * epsilon))
        return logaddexp(2 * log_a + self.log_cross, squares + self.log_gap)


def loss_shape(randomizer: BoundedProfile) -> LossShape:
    """The shape of L for k-ary response, Laplace noise, or the authors' generic constants."""
    epsilon0 = randomizer.epsilon0
    if isinstance(randomizer, KaryProfile):
        return _kary_shape(epsilon0, randomizer.n_buckets)
    return _laplace_shape(epsilon0) if isinstance(randomizer, LaplaceProfile) else _generic_shape(epsilon0)


def _kary_shape(epsilon0: float, n_buckets: int) -> LossShape:
    growth = math.expm1(epsilon0)
    log_mass = -math.log1p(growth / n_buckets)
    log_kept = log_expm1(epsilon0) - math.log(growth + n_buckets)
    return LossShape(
        epsilon0,
        log_mass,
        odds=n_buckets / growth,
        spread=math.exp(log_mass) * growth,
        log_cross=log_mass + math.log1p(math.exp(log_kept)),
        log_gap=2 * log_kept + math.log(n_buckets),
        generic=False,
    )


def _laplace_shape(epsilon0: float) -> LossShape:
    half = epsilon0 / 2
    # same - cross = (2/3) exp(-2h) (exp(h) - 1)^2 (exp(h) + 2) with h = epsilon0 / 2, every factor positive.
    return LossShape(
        epsilon0,
        log_mass=-half,
        odds=exp_or_inf(-log_expm1(half)),
        spread=math.exp(-half) * math.expm1(epsilon0),
        log_cross=-half + math.log(2 - math.exp(-half)),
        log_gap=math.log(2 / 3) - 2 * half + 2 * log_expm1(half) + math.log(math.exp(half) + 2),
        generic=False,
    )


def _generic_shape(epsilon0: float) -> LossShape:
    return LossShape(
        epsilon0,
        log_mass=-epsilon0,
        odds=1 / math.expm1(epsilon0),
        spread=2 * math.sinh(epsilon0),
        log_cross=-3 * epsilon0,
        log_gap=epsilon0 + log1mexp(4 * epsilon0),
        generic=True,
    )


def loss_variable(randomizer: BoundedProfile, epsilon: float) -> LossVariable:
    r"""Mean, range and second moment of the amplification variable.

    k-ary response and Laplace noise (inputs 0 and 1): exact,

    .. math:: L \in [\gamma(1 - e^{\varepsilon+\varepsilon_0}),\ \gamma(e^{\varepsilon_0} - e^{\varepsilon})], \qquad
              E[L] = 1 - e^{\varepsilon}.

    Every randomizer of local budget :math:`\varepsilon_0`: outer range

    .. math:: [e^{-\varepsilon_0}(1 - e^{\varepsilon+2\varepsilon_0}),\
              e^{\varepsilon_0}(1 - e^{\varepsilon-2\varepsilon_0})]

    and the upper bound :math:`e^{\varepsilon_0}(e^{2\varepsilon}+1) - 2 e^{\varepsilon-3\varepsilon_0}` of the second
    moment.  Values beyond the range of doubles come out infinite, outwards.

    Parameters
    ----------
    randomizer : KaryProfile, LaplaceProfile or AnyProfile
    epsilon : float
        Central budget in [0, 700].

    Source: Balle, Bell, Gascon, Nissim 2019, Section 5; the range is sharper than the paper's generic one.

    Examples
    --------
    >>> loss = loss_variable(KaryProfile(epsilon0=1.0, n_buckets=2), 0.0)
    >>> loss.mean, round(loss.high, 12) == -round(loss.low, 12)
    (0.0, True)
    """
    if not isinstance(randomizer, KaryProfile | LaplaceProfile | AnyProfile):
        raise DomainError(
            f"randomizer must be one of kary, laplace, any, got {getattr(randomizer, 'kind', randomizer)!r}"
        )
    growth = _growth(epsilon)
    shape = loss_shape(randomizer)
    width = shape.spread * (growth + 2)
    high = shape.spread - growth * (math.exp(-shape.epsilon0) if shape.generic else shape.mass)
    second = exp_or_inf(shape.log_second_moment(epsilon, log_expm1(epsilon)))
    return LossVariable(0.0 - growth, high - width, high, second)


def _growth(epsilon: float) -> float:
    """``exp(epsilon) - 1``, refused where it overflows."""
    if check(epsilon=epsilon)["epsilon"] > LARGEST:
        raise DomainError(f"epsilon must be a number in [0, {LARGEST:g}], got {epsilon!r}")
    return math.expm1(epsilon)


def loss_atoms(randomizer: KaryProfile, epsilon: float) -> tuple[tuple[float, float], ...]:
    r"""The law of L for k-ary response: (value, probability) for the first input, the second, any other.

    Examples
    --------
    >>> atoms = loss_atoms(KaryProfile(epsilon0=1.0, n_buckets=4), 0.5)
    >>> [probability for _, probability in atoms]
    [0.25, 0.25, 0.5]
    """
    k, spread = randomizer.n_buckets, loss_shape(randomizer).spread
    rest = -randomizer.mass * _growth(epsilon)
    values = (rest + spread, rest - spread * math.exp(epsilon), rest)
    return tuple(zip(values, (1 / k, 1 / k, 1 - 2 / k), strict=True))
