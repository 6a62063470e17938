"""Parameters of split-and-mix by rule: T1 (replace-one), T2 (sum-preserving), and sharper versions.

Each rule answers the least number of messages that its bound allows.  Ceilings are taken of exact fractions; rounding
is on the safe side.  The sharper rules do not need distinct messages: their modulus is the smallest for the sum of the
values.  Proofs: book, chapter on cloak aggregation, theorems 1 and 2 and "Noise".  Standard library only.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import count

from flamelib.accounting.noise.discrete_laplace import crowded_error, noise_decay, shared_noise, thinned_error
from flamelib.accounting.splitting.lemmas import (
    MIN_MESSAGES_LEMMA_1,
    log_failure,
    log_ratio,
    log_unsmooth,
    messages_needed,
    modulus_bits,
)
from flamelib.accounting.splitting.two_users import log_two_user_delta
from flamelib.core.logspace import MARGIN, MAX_EXPONENT, SMALLEST, exp_or_inf, least_double
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check, honest, plainly

BUDGET_KEPT = 1 - 4 * MARGIN  # fraction of a budget after the error of its logarithms
SHARES_FRACTION = 0.1  # fraction of epsilon for the shares; the rest is for noise


@dataclass(frozen=True, slots=True)
class NoisyRule:
    """Parameters of a replace-one guarantee, and the errors of the sum by noise and rounding."""

    n_messages: int
    modulus: int
    scale: int
    decay: float
    noise_rate: float
    smoothness: float
    bits: int
    noise_bound: float
    rounding_bound: float
    delta: float


@dataclass(frozen=True, slots=True)
class MixRule:
    """Parameters of a replace-one guarantee with total noise that is exactly discrete Laplace."""

    n_messages: int
    modulus: int
    scale: int
    decay: float
    security_bits: float
    bits: int
    mean_error: float


@dataclass(frozen=True, slots=True)
class _Shape:
    """Common part of the replace-one rules: decay exp(-rate), and P[no honest user adds noise]."""

    n_users: int
    scale: int
    rate: float
    decay: float
    noise_rate: float
    smoothness: float
    no_noise: float

    def rule(self, n_messages: int, modulus: int, failure: float, delta: float) -> NoisyRule:
        """The rule at these messages; ``delta`` is a proven upper bound."""
        noise = thinned_error(modulus, self.scale, self.rate, self.decay, self.noise_rate, self.n_users)
        bits, rounding = n_messages * modulus_bits(modulus), least_double(Fraction(self.n_users, self.scale))
        total = min(delta, (self.no_noise + failure) * (1 + MARGIN) + SMALLEST)
        public = (self.scale, self.decay, self.noise_rate, self.smoothness)
        return NoisyRule(n_messages, modulus, *public, bits, noise, rounding, total)


@states(
    "cloak", "thm-1", item="Theorem 1, by Lemma 13 with explicit constants (rule T1)", gives="upper", rests_on="proven"
)
def noisy_rule(epsilon: float, delta: float, n_users: int, scale: int | None = None, colluding: int = 0) -> NoisyRule:
    r"""Parameters with which one user's value is (epsilon, delta)-private, and their errors (upper).

    With :math:`h = n-|C|`: :math:`p = e^{-0.9\varepsilon/k}`, :math:`\gamma = \tanh(0.05\,\varepsilon)`,
    :math:`q = \min(1, \ln(2/\delta)/h)`; for m = 4, 5, ... N is the smallest odd whole number of at least
    :math:`3nk+1` and :math:`8m^2/\delta`; the first m with :math:`\gamma>6\sqrt m/4^m` and
    :math:`18\sqrt mN^2/(\gamma^24^m)\le\delta/4` is taken.  The grid has ``10 * n_users`` steps k where ``scale`` is
    left out.  Refused for a budget of 0, or an epsilon above 700, or so small that no decay below 1 attains it.

    ``noise_bound`` and ``rounding_bound`` add up to a bound on the mean absolute error of the sum of values in [0, 1],
    with noise of ``decay``, the least double not below p; ``delta`` is :math:`(1-q)^h` plus the failure of Lemma 1, at
    most the one asked for.

    Source: Ghazi, Pagh, Velingker 2019, Theorem 1 and Lemmas 11 and 13.

    Examples
    --------
    >>> found = noisy_rule(1.0, 1e-6, 1000)
    >>> found.n_messages, found.modulus, found.bits, round(found.noise_bound, 3)
    (54, 23328000001, 1890, 5.985)
    """
    shape = _shape(epsilon, delta, n_users, scale, colluding)
    eighth, log_quarter = Fraction(delta) / 8, math.log(delta) - math.log(4)
    n_messages, modulus = _first_number(
        lambda m: least_odd(max(3 * n_users * shape.scale + 1, math.ceil(m * m / eighth))),
        lambda m, modulus: log_unsmooth(modulus, m, shape.smoothness) <= log_quarter,
        lambda least: _too_few(least, shape.smoothness, log_quarter),
    )
    failure = exp_or_inf(log_failure(modulus, n_messages, shape.smoothness))
    return shape.rule(n_messages, modulus, failure, delta)


@plainly
def sharp_noisy_rule(
    epsilon: float, delta: float, n_users: int, scale: int | None = None, colluding: int = 0
) -> NoisyRule:
    r"""As :func:`noisy_rule`, with ``cloak:own-2`` at :math:`\varepsilon/10` in place of Lemma 1 (upper).

    N is the smallest odd whole number above :math:`3nk`, and shares may repeat.
    """
    shape = _shape(epsilon, delta, n_users, scale, colluding)
    log_beta, log_half = log_ratio(shape.smoothness), math.log(delta) - math.log(2)
    n_messages, modulus = _first_number(
        lambda _: least_odd(3 * n_users * shape.scale + 1),
        lambda m, modulus: log_two_user_delta(modulus, m, log_beta) <= log_half,
    )
    return shape.rule(n_messages, modulus, exp_or_inf(log_two_user_delta(modulus, n_messages, log_beta)), delta)


@plainly
def mix_rule(epsilon: float, delta: float, n_users: int, scale: int | None = None, colluding: int = 0) -> MixRule:
    r"""Split-and-mix by ``cloak:best-1`` around Pólya noise: (epsilon, delta)-private for one user's value (upper).

    The released sum is epsilon-private, and the shares add :math:`\delta = (1+e^\varepsilon)2^{-\sigma}`; N is
    :math:`3nk+1`.  The mean error is of noise with the ``decay`` returned.  Grid as for :func:`noisy_rule`; at least 19
    users must not collude.

    Source: Balle, Bell, Gascon, Nissim 2020; Ishai, Kushilevitz, Ostrovsky, Sahai 2006.
    """
    steps, n_honest = default_scale(n_users, scale), honest(n_users, colluding)
    security, noise = security_needed(epsilon, delta), shared_noise(steps, epsilon)
    modulus = 3 * n_users * steps + 1
    n_messages = messages_needed(security, n_honest, math.log2(modulus))
    bits, error = n_messages * modulus_bits(modulus), crowded_error(noise, n_users, n_honest)
    return MixRule(n_messages, modulus, steps, noise.decay, security, bits, error)


def security_needed(epsilon: float, delta: float, dimension: int = 1) -> float:
    r"""The σ at which :math:`d(1+e^\varepsilon)2^{-\sigma} = \delta`, rounded up."""
    positive_budget(epsilon or 1.0, delta)
    weight = math.log2(1 + math.exp(check(epsilon=epsilon)["epsilon"]))
    return max(MARGIN, (weight + math.log2(dimension) - math.log2(delta)) * (1 + MARGIN))


def default_scale(n_users: int, scale: int | None) -> int:
    """The given scale, by default ``10 * n_users``."""
    checked = check(n_users=n_users, **({} if scale is None else {"scale": scale}))
    return int(checked.get("scale", 10 * checked["n_users"]))


def noise_shares(epsilon: float, delta: float, n_honest: int) -> tuple[float, float]:
    """Epsilon of the noise, and the noise rate q with ``P[none of n_honest users adds noise] <= delta / 2``."""
    rate = (math.log(2) - math.log(delta)) / n_honest * (1 + MARGIN / 1000)
    return (1 - SHARES_FRACTION) * epsilon * BUDGET_KEPT, min(1.0, rate)


def _shape(epsilon: float, delta: float, n_users: int, scale: int | None, colluding: int) -> _Shape:
    positive_budget(epsilon, delta)
    steps, n_honest = default_scale(n_users, scale), honest(n_users, colluding)
    noise_epsilon, noise_rate = noise_shares(epsilon, delta, n_honest)
    no_noise = math.exp(n_honest * math.log1p(-noise_rate)) if noise_rate < 1 else 0.0
    decay, smoothness = noise_decay(steps, noise_epsilon), _smoothness_of(SHARES_FRACTION * epsilon)
    return _Shape(n_users, steps, noise_epsilon / steps, decay, noise_rate, smoothness, no_noise)


@dataclass(frozen=True, slots=True)
class ExactRule:
    """Parameters of a sum-preserving guarantee."""

    n_messages: int
    modulus: int
    scale: int
    smoothness: float
    bits: int


@states("cloak", "thm-2", item="Theorem 2, by Lemma 6 with explicit constants (rule T2)", gives="upper",
        rests_on="proven", adjacency="sum-preserving")  # fmt: skip
def exact_rule(epsilon: float, delta: float, n_users: int, error: float, colluding: int = 0) -> ExactRule:
    r"""Parameters without noise with which data sets of equal sum are (epsilon, delta)-close (upper).

    With :math:`t = n-|C|-1`, :math:`\gamma = \tanh\frac\varepsilon{2t}` and :math:`T =
    \frac{e^\varepsilon-1}{e^{\varepsilon/t}-1}`: :math:`k = \lceil n/\alpha\rceil` for the ``error`` :math:`\alpha` of
    rounding, the least whole number whose n/k, as a double, is not above it; for m = 4, 5, ... N is the smallest odd
    whole number of at least :math:`nk+1` and :math:`4m^2T/\delta`; the first m with :math:`\gamma>6\sqrt m/4^m` and
    :math:`\eta\,T\le\delta` is taken.  Refused for a budget of 0 or an epsilon above 700.

    Source: Ghazi, Pagh, Velingker 2019, Theorem 2 and Lemma 6.

    Examples
    --------
    >>> exact_rule(1.0, 1e-6, 100, 0.01).n_messages, exact_rule(1.0, 1e-6, 1000, 1e-3).bits
    (67, 3496)
    """
    swaps, scale, smoothness = _swap_shape(epsilon, delta, n_users, error, colluding)
    swap_sum = _geometric_sum(epsilon, swaps)
    log_allowed, quarter = math.log(delta) - float(swap_sum.ln()) - 4 * MARGIN, Fraction(delta) / 4 / Fraction(swap_sum)
    n_messages, modulus = _first_number(
        lambda m: least_odd(max(n_users * scale + 1, math.ceil(m * m / quarter))),
        lambda m, modulus: log_failure(modulus, m, smoothness) <= log_allowed,
        lambda least: _too_few(least, smoothness, log_allowed),
    )
    return ExactRule(n_messages, modulus, scale, smoothness, n_messages * modulus_bits(modulus))


@plainly
def sharp_exact_rule(epsilon: float, delta: float, n_users: int, error: float, colluding: int = 0) -> ExactRule:
    r"""As :func:`exact_rule`, with ``cloak:own-2`` for each swap in place of Lemma 5 (upper).

    N is :math:`nk+1`, of either parity, and shares may repeat.
    """
    swaps, scale, smoothness = _swap_shape(epsilon, delta, n_users, error, colluding)
    log_allowed = math.log(delta) - float(_geometric_sum(epsilon, swaps).ln()) - 4 * MARGIN
    n_messages, modulus = _first_number(
        lambda _: n_users * scale + 1,
        lambda m, modulus: log_two_user_delta(modulus, m, log_ratio(smoothness)) <= log_allowed,
    )
    return ExactRule(n_messages, modulus, scale, smoothness, n_messages * modulus_bits(modulus))


def grid_scale(n_users: int, error: float) -> int:
    r"""The least k whose n/k, as a double, is not above ``error``."""
    n_users, error = check(n_users=n_users, error=error).values()
    if error >= n_users:
        return 1
    # What is below the middle between two doubles is rounded down; the middle itself may be rounded up.
    scale = math.ceil(2 * n_users / (Fraction(error) + Fraction(math.nextafter(error, math.inf))))
    return scale if n_users / scale <= error else scale + 1


def _geometric_sum(epsilon: float, swaps: int) -> Decimal:
    r"""The factor :math:`T = (e^\varepsilon-1)/(e^{\varepsilon/t}-1)` of delta for t swaps, to 60 digits."""
    step = Decimal(epsilon) / swaps
    digits = Context(prec=60 + 2 * max(0, -step.adjusted()), traps=[])
    step = digits.divide(Decimal(epsilon), swaps)
    numerator, denominator = (digits.subtract(digits.exp(power), 1) for power in (Decimal(epsilon), step))
    return digits.divide(numerator, denominator)


def _swap_shape(epsilon: float, delta: float, n_users: int, error: float, colluding: int) -> tuple[int, int, float]:
    """Swaps, scale and smoothness of the rules for data sets of equal sum."""
    positive_budget(epsilon, delta)
    swaps = honest(n_users, colluding) - 1
    return swaps, grid_scale(n_users, error), _smoothness_of(epsilon / swaps)


# --- how rules are found ----------------------------------------------------------------------------


def positive_budget(epsilon: float, delta: float) -> None:
    """Refuse budgets outside the domain of the rules."""
    epsilon, delta = check(epsilon=epsilon, delta=delta).values()
    if not 0 < epsilon <= MAX_EXPONENT:
        raise DomainError(f"epsilon must be a number in (0, {MAX_EXPONENT:g}] for this rule, got {epsilon!r}")
    if delta == 0:
        raise DomainError("delta must be a number in (0, 1] for this rule, got 0")


def least_odd(least: int) -> int:
    """The smallest odd whole number of at least this."""
    return least | 1


def _smoothness_of(epsilon: float) -> float:
    r"""The smoothness :math:`\gamma` with :math:`\ln\frac{1+\gamma}{1-\gamma}` = ``epsilon``, rounded down."""
    min_smoothness = 1e-300  # above the subnormal numbers
    smoothness = min(math.tanh(epsilon * BUDGET_KEPT / 2), math.nextafter(1.0, 0.0))
    while smoothness > 0 and log_ratio(smoothness) > epsilon * (BUDGET_KEPT + MARGIN):
        smoothness = math.nextafter(smoothness, 0.0)
    if smoothness < min_smoothness:
        raise DomainError(
            f"epsilon must be so large that shares have a smoothness of {min_smoothness:g}, not {smoothness:g}"
        )
    return smoothness


def _too_few(modulus: int, smoothness: float, log_allowed: float) -> int:
    """A number of messages, at least 4, below which Lemma 1's failure exceeds the allowed one."""
    bits = (math.log(18) + 2 * (math.log(modulus) - math.log(smoothness)) - log_allowed) / math.log(4)
    return max(MIN_MESSAGES_LEMMA_1, math.floor(bits))


def _first_number(
    modulus: Callable[[int], int], holds: Callable[[int, int], bool], start: Callable[[int], int] = lambda _: 2
) -> tuple[int, int]:
    """The first number m of messages with ``holds(m, modulus(m))``, from ``start(modulus(2))``, and its modulus."""
    return next((m, size) for m in count(start(modulus(2))) for size in (modulus(m),) if holds(m, size))
