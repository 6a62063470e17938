"""Privacy of split-and-mix by smooth shares: the lemmas of Ghazi, Pagh and Velingker, in closed form.

Every user's value is split into ``n_messages`` shares that add up to it modulo ``modulus``.  Computed in logarithms, as
binomial coefficients of thousands and moduli to 2^256 overflow.  Upper answers are rounded up by a relative 1e-12.
Proofs: book, chapter on cloak aggregation, under the numbers of the lemmas.  Standard library only.
"""

import math

from flamelib.accounting.composition.closed_form import Budget
from flamelib.core.logspace import MARGIN, added_up, exp_or_inf, log_expm1, logaddexp
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check, honest, odd, plainly

MIN_MESSAGES_LEMMA_1 = 4  # least number of messages for which Lemma 1 holds


@states("cloak", "best-1", item="split-and-mix, after Balle, Bell, Gascon, Nissim 2020", gives="upper",
        rests_on="cited", adjacency="sum-preserving")  # fmt: skip
def messages_needed(security_bits: float, n_users: int, log2_modulus: float) -> int:
    r"""Messages per user with which data sets of equal sum are within :math:`2^{-\sigma}` (upper, never too few).

    .. math:: m = \Big\lceil2+\frac{2\sigma+\log_2N}{\log_2n-\log_2e}\Big\rceil, \qquad m\ge3,\ n\ge19

    Fewer users are refused; subtract the number of colluding users from ``n_users``.  The formula is cited;
    ``cloak:own-3``, which is proven here, needed no more messages wherever the two were compared.

    Source: Balle, Bell, Gascon, Nissim 2020, Private Summation in the Multi-Message Shuffle Model.

    Examples
    --------
    >>> messages_needed(40, 10_000, 32)
    12
    """
    if n_users < 19:
        raise DomainError(f"n_users must be a whole number in [19, 2^53] for this theorem, got {n_users}")
    needed = (2 * security_bits + log2_modulus) / (math.log2(n_users) - math.log2(math.e))
    return max(3, math.ceil(2 + needed * (1 + MARGIN)))


@states("cloak", "bits", item="Section 8, bits per user", gives="exact", rests_on="proven", adjacency="none")
def bits_sent(modulus: int, n_messages: int, dimension: int = 1) -> int:
    r"""Bits that a user sends, :math:`d\,m\lceil\log_2N\rceil` (exact).

    Source: Ghazi, Pagh, Velingker 2019: messages are whole numbers below the modulus.

    Examples
    --------
    >>> bits_sent(23_328_000_001, 54)
    1890
    """
    return dimension * n_messages * modulus_bits(modulus)


@plainly
def modulus_bits(modulus: int) -> int:
    r"""Bits of one message, :math:`\lceil\log_2N\rceil`."""
    return (modulus - 1).bit_length()


@states("cloak", "lemma-1", item="Lemma 1", gives="upper", rests_on="proven", adjacency="none")
def smooth_failure(modulus: int, n_messages: int, smoothness: float) -> float:
    r"""Probability that the shares of two users repeat or are not smooth (upper).

    .. math:: \eta = \frac{2m^2}N + \frac{18\sqrt m\,N^2}{\gamma^2\,4^m}

    for an odd modulus, :math:`m\ge4` and :math:`\gamma>6\sqrt m/4^m`, else ``inf``.  It may exceed 1.  Smooth: each
    residue is the sum of a fraction within :math:`(1\pm\gamma)/N` of the m-subsets.

    Source: Ghazi, Pagh, Velingker 2019, Lemma 1.

    Examples
    --------
    >>> round(smooth_failure(257, 10, 0.5) - 2 * 10**2 / 257, 1)
    14.3
    """
    return exp_or_inf(log_failure(modulus, n_messages, smoothness))


@states("cloak", "cor-1", item="Corollary 1", gives="upper", rests_on="proven", adjacency="none")
def narrow_failure(modulus: int) -> float:
    r"""Lemma 1's failure at :math:`m = 3\lceil\log_2N\rceil` messages and smoothness :math:`1/N` (upper).

    .. math:: \frac{19\lceil\log_2N\rceil^2}N,

    which exceeds 1 for a modulus below 2737.

    Source: Ghazi, Pagh, Velingker 2019, Corollary 1, with the constant of its proof.

    Examples
    --------
    >>> round(narrow_failure(2737), 6)
    0.999635
    """
    return math.nextafter(19 * modulus_bits(odd(modulus)) ** 2 / modulus, math.inf)


@states("cloak", "lemma-5", item="Lemma 5, one swap", gives="upper", rests_on="proven", adjacency="sum-preserving")
def swap_budget(modulus: int, n_messages: int, smoothness: float) -> Budget:
    r"""Budget of one swap (moving an amount from one user's value to another's): ln((1 + γ) / (1 - γ)), η (upper).

    Source: Ghazi, Pagh, Velingker 2019, Lemmas 4 and 5.

    Examples
    --------
    >>> found = swap_budget(2**61 - 1, 100, 0.1)
    >>> round(found.epsilon, 9), f"{found.delta:.3e}"
    (0.200670695, '8.674e-15')
    """
    return swaps_budget(modulus, n_messages, smoothness, 1)


@states("cloak", "lemma-12", item="Lemma 12, sum-preserving, at most n_users - colluding - 1 swaps", gives="upper",
        rests_on="proven", adjacency="sum-preserving")  # fmt: skip
@states("cloak", "lemma-6", item="Lemma 6, t swaps", gives="upper", rests_on="proven", adjacency="sum-preserving")
def swaps_budget(modulus: int, n_messages: int, smoothness: float, swaps: int) -> Budget:
    r"""Budget of two data sets of equal sum at a distance of ``swaps`` swaps (upper).

    .. math:: \Big(t\ln\beta,\ \eta\,\frac{\beta^t-1}{\beta-1}\Big), \qquad \beta = \frac{1+\gamma}{1-\gamma}

    Any two data sets of equal sum are at most :math:`n-1` swaps apart, and :math:`n-|C|-1` where they agree on
    colluding users C.  ``delta`` is ``inf`` outside the regime of Lemma 1, and may exceed 1.

    Source: Ghazi, Pagh, Velingker 2019, Lemmas 6 and 12.

    Examples
    --------
    >>> found = swaps_budget(2**61 - 1, 100, 0.001, 99)
    >>> round(found.epsilon, 9), f"{found.delta:.3e}"
    (0.198000066, '1.014e-12')
    """
    step = log_ratio(smoothness)
    geometric = (log_expm1(swaps * step), -log_expm1(step)) if swaps > 1 else ()
    delta = exp_or_inf(added_up(log_failure(modulus, n_messages, smoothness), *geometric))
    return Budget(swaps * step * (1 + MARGIN), delta)


@states("cloak", "lemma-11", item="Lemma 11", gives="upper", rests_on="proven")
def user_budget(
    modulus: int, n_messages: int, smoothness: float, scale: int, decay: float, noise_rate: float, n_users: int
) -> Budget:
    r"""Budget of one user's value when some users add noise; nobody colludes (upper).

    As :func:`single_user_budget` with ``colluding=0``.

    Source: Ghazi, Pagh, Velingker 2019, Lemma 11.

    Examples
    --------
    >>> found = user_budget(2**61 - 1, 100, 0.05, 1000, 0.999, 0.02, 1000)
    >>> round(found.epsilon, 6), f"{found.delta:.3e}"
    (1.100584, '2.061e-09')
    """
    return single_user_budget(modulus, n_messages, smoothness, scale, decay, noise_rate, n_users, 0)


@states("cloak", "lemma-13", item="Lemma 13 (Lemma 11 where nobody colludes), with the printed tail", gives="upper",
        rests_on="proven")  # fmt: skip
def single_user_budget(
    modulus: int,
    n_messages: int,
    smoothness: float,
    scale: int,
    decay: float,
    noise_rate: float,
    n_users: int,
    colluding: int = 0,
) -> Budget:
    r"""Budget of one user's value when some users add noise and some collude (upper).

    .. math:: \Big(\ln\frac{1+\gamma}{1-\gamma}+k\ln\frac1p,\ e^{-q(n-|C|)}+\eta\Big)

    ``delta`` is ``inf`` outside the regime of Lemma 1, and may exceed 1.

    Source: Ghazi, Pagh, Velingker 2019, Lemma 13.

    Examples
    --------
    >>> found = single_user_budget(2**61 - 1, 100, 0.05, 1000, 0.999, 0.2, 1000, 900)
    >>> round(found.epsilon, 6), f"{found.delta:.3e}"
    (1.100584, '2.061e-09')
    """
    epsilon = log_ratio(smoothness) - scale * math.log(decay)
    no_noise = math.exp(-noise_rate * honest(n_users, colluding))
    delta = no_noise + exp_or_inf(log_failure(modulus, n_messages, smoothness))
    return Budget(epsilon * (1 + MARGIN), delta * (1 + MARGIN))


def log_ratio(smoothness: float) -> float:
    r"""The :math:`\ln\beta = \ln\frac{1+\gamma}{1-\gamma}` of a smoothness."""
    smoothness = check(smoothness=smoothness)["smoothness"]
    return math.log1p(smoothness) - math.log1p(-smoothness)


@plainly
def log_failure(modulus: int, n_messages: int, smoothness: float) -> float:
    """Logarithm of :func:`smooth_failure`, for a modulus of any size; ``inf`` outside the regime of the lemma."""
    repeated = added_up(math.log(2), 2 * math.log(n_messages), -math.log(odd(modulus)))
    return logaddexp(repeated, log_unsmooth(modulus, n_messages, smoothness)) + MARGIN


@plainly
def log_unsmooth(modulus: int, n_messages: int, smoothness: float) -> float:
    """Logarithm of the second term of :func:`smooth_failure`, messages that do not repeat."""
    root, subsets, slack = math.log(n_messages) / 2, n_messages * math.log(4), math.log(smoothness)
    if n_messages < MIN_MESSAGES_LEMMA_1 or slack <= math.log(6) + root - subsets:
        return math.inf
    return added_up(math.log(18), root, -subsets, 2 * math.log(modulus), -2 * slack)
