r"""Privacy of split-and-mix in closed form: what shuffled shares tell beside the sum of the values.

Every user's value becomes ``n_messages`` shares that add up to it modulo ``modulus``.  Logarithms hold what doubles
cannot: binomial coefficients of thousands, moduli to 2^256.  Upper answers are rounded up by some 1e-12 of themselves.
Standard library only: the same source runs in a browser.
"""

import math

from flamelib._validate import VOCABULARY, DomainError, check
from flamelib.composition import Budget
from flamelib.logspace import exp_or_inf, log_expm1, logaddexp, probability
from flamelib.sources import states

MARGIN = 1e-12
ROUNDING = 2.0**-51
LEAST_MESSAGES = 4
SMALL = 512


@states("cloak", "lemma-1", item="Lemma 1", gives="upper", adjacency="none")
def smooth_failure(modulus: int, n_messages: int, smoothness: float) -> float:
    r"""Chance that the shares of two users are not smooth: repeat, or have subset sums far from uniform (upper).

    .. math:: \eta = \frac{2m^2}N + \frac{18\sqrt m\,N^2}{\gamma^2\,4^m}

    for :math:`m\ge4` and :math:`\gamma>6\sqrt m/4^m`, else ``inf``.  It may exceed 1.

    Parameters
    ----------
    modulus : int, odd, from 3 to 2**256
    n_messages : int, at least 1
    smoothness : float in (0, 1)
        The :math:`\gamma`: every residue is the sum of a fraction :math:`(1\pm\gamma)/N` of the m-subsets.

    Raises
    ------
    DomainError
        Where ``modulus`` is even.

    Source: Ghazi, Pagh, Velingker 2019, Lemma 1.

    Examples
    --------
    >>> round(smooth_failure(257, 10, 0.5) - 2 * 10**2 / 257, 1)
    14.3
    """
    return exp_or_inf(log_failure(modulus, n_messages, smoothness))


@states("cloak", "cor-1", item="Corollary 1", gives="upper", adjacency="none")
def narrow_failure(modulus: int) -> float:
    r"""Lemma 1's failure at :math:`m = 3\lceil\log_2N\rceil` messages and smoothness :math:`1/N` (upper).

    .. math:: \frac{19\lceil\log_2N\rceil^2}N,

    above 1 below 2737.

    Parameters
    ----------
    modulus : int, odd, from 3 to 2**256

    Source: Ghazi, Pagh, Velingker 2019, Corollary 1, with the constant of its proof.

    Examples
    --------
    >>> round(narrow_failure(2737), 6)
    0.999635
    """
    return math.nextafter(19 * modulus_bits(odd(modulus)) ** 2 / modulus, math.inf)


@states("cloak", "lemma-5", item="Lemma 5, one swap", gives="upper", adjacency="sum-preserving")
def swap_budget(modulus: int, n_messages: int, smoothness: float) -> Budget:
    r"""Budget of moving a part of one user's value to another's: :math:`\ln\frac{1+\gamma}{1-\gamma}`, η (upper).

    Parameters
    ----------
    modulus : int, odd, from 3 to 2**256
    n_messages : int, at least 1
    smoothness : float in (0, 1)

    Source: Ghazi, Pagh, Velingker 2019, Lemmas 4 and 5.

    Examples
    --------
    >>> found = swap_budget(2**61 - 1, 100, 0.1)
    >>> round(found.epsilon, 9), f"{found.delta:.3e}"
    (0.200670695, '8.674e-15')
    """
    return swaps_budget(modulus, n_messages, smoothness, 1)


@states("cloak", "lemma-12", item="Lemma 12, sum-preserving, at most n_users - colluding - 1 swaps", gives="upper",
        adjacency="sum-preserving")  # fmt: skip
@states("cloak", "lemma-6", item="Lemma 6, t swaps", gives="upper", adjacency="sum-preserving")
def swaps_budget(modulus: int, n_messages: int, smoothness: float, swaps: int) -> Budget:
    r"""Budget of two data sets of equal sum that so many swaps lie apart (upper).

    .. math:: \Big(t\ln\beta,\ \eta\,\frac{\beta^t-1}{\beta-1}\Big), \qquad \beta = \frac{1+\gamma}{1-\gamma}

    Any two data sets of equal sum are at most :math:`n-1` swaps apart, and :math:`n-|C|-1` where they agree on
    colluding users C.

    Parameters
    ----------
    modulus : int, odd, from 3 to 2**256
    n_messages : int, at least 1
    smoothness : float in (0, 1)
    swaps : int, at least 1

    Returns
    -------
    Budget
        ``delta`` is ``inf`` outside the regime of Lemma 1, and may exceed 1.

    Source: Ghazi, Pagh, Velingker 2019, Lemmas 6 and 12.

    Examples
    --------
    >>> found = swaps_budget(2**61 - 1, 100, 0.001, 99)
    >>> round(found.epsilon, 9), f"{found.delta:.3e}"
    (0.198000066, '1.014e-12')
    """
    step = log_ratio(smoothness)
    chained = (log_expm1(swaps * step), -log_expm1(step)) if swaps > 1 else ()
    delta = exp_or_inf(added_up(log_failure(modulus, n_messages, smoothness), *chained))
    return Budget(swaps * step * (1 + MARGIN), delta)


@states("cloak", "lemma-11", item="Lemma 11", gives="upper")
def user_budget(
    modulus: int, n_messages: int, smoothness: float, scale: int, decay: float, noise_rate: float, n_users: int
) -> Budget:
    r"""Budget of one user's value when some users add noise; nobody colludes (upper).

    As :func:`single_user_budget` with ``colluding=0``.  Source: Ghazi, Pagh, Velingker 2019, Lemma 11.

    Examples
    --------
    >>> found = user_budget(2**61 - 1, 100, 0.05, 1000, 0.999, 0.02, 1000)
    >>> round(found.epsilon, 6), f"{found.delta:.3e}"
    (1.100584, '2.061e-09')
    """
    return single_user_budget(modulus, n_messages, smoothness, scale, decay, noise_rate, n_users, 0)


@states("cloak", "lemma-13", item="Lemma 13 (Lemma 11 where nobody colludes), with the printed tail", gives="upper")
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

    Parameters
    ----------
    modulus : int, odd, from 3 to 2**256
    n_messages : int, at least 1
    smoothness : float in (0, 1)
    scale : int, at least 1
        Steps k of the grid: a user's scaled value lies in 0..k.
    decay : float in (0, 1)
        The p of the truncated discrete Laplace noise.
    noise_rate : float in (0, 1]
        Chance q that a user adds noise.
    n_users : int, at least 2
    colluding : int, from 0 to n_users - 2

    Returns
    -------
    Budget
        ``delta`` is ``inf`` outside the regime of Lemma 1, and may exceed 1.

    Source: Ghazi, Pagh, Velingker 2019, Lemma 13.

    Examples
    --------
    >>> found = single_user_budget(2**61 - 1, 100, 0.05, 1000, 0.999, 0.2, 1000, 900)
    >>> round(found.epsilon, 6), f"{found.delta:.3e}"
    (1.100584, '2.061e-09')
    """
    epsilon = log_ratio(smoothness) - scale * math.log(decay)
    silent = math.exp(-noise_rate * honest(n_users, colluding))
    delta = silent + exp_or_inf(log_failure(modulus, n_messages, smoothness))
    return Budget(epsilon * (1 + MARGIN), delta * (1 + MARGIN))


@states("cloak", "own-1", item="this project: two users, total variation", gives="upper", adjacency="sum-preserving")
def two_user_distance(modulus: int, n_messages: int) -> float:
    r"""Total variation between the shuffled shares of two pairs of inputs with equal sum (upper).

    .. math:: \sqrt{N/C_m} \text{ for every modulus}, \qquad \sqrt{3N/(4C_m)} \text{ for an odd one}, \qquad
              C_m = \binom{2m}m

    for :math:`m\ge2`, at most 1; ``inf`` for a single message, which hides nothing.

    Parameters
    ----------
    modulus : int from 2 to 2**256
    n_messages : int, at least 1

    Source: this project, by the exact variance of the number of subsets with a given sum.

    Examples
    --------
    >>> round(two_user_distance(3, 4), 5), round(two_user_distance(4, 4), 5)
    (0.17928, 0.23905)
    """
    if n_messages < 2:
        return math.inf
    shrunk = math.log(0.75) if modulus % 2 else 0.0
    return probability(added_up(math.log(modulus), shrunk, -log_central_binomial(n_messages)) / 2)


@states("cloak", "own-2", item="this project: two users, hockey-stick, every modulus", gives="upper",
        adjacency="sum-preserving")  # fmt: skip
def two_user_delta(modulus: int, n_messages: int, epsilon: float) -> float:
    r"""Delta between the shuffled shares of two pairs of inputs with equal sum (upper).

    .. math:: \frac{2(N-1)(1+e^{2\varepsilon})+4e^\varepsilon}{4(e^\varepsilon-1)\,C_m}, \qquad C_m = \binom{2m}m

    for :math:`m\ge2` and :math:`\varepsilon>0`, at most 1; else ``inf``.  No smoothness and no distinct messages are
    asked for.

    Parameters
    ----------
    modulus : int from 2 to 2**256
    n_messages : int, at least 1
    epsilon : float, at least 0

    Source: this project, by :math:`(u)_+\le(u-Eu)^2/(4|Eu|)` and exact variances.

    Examples
    --------
    >>> f"{two_user_delta(30_000_001, 27, 0.1):.4e}"
    '1.6273e-07'
    """
    found = log_two_user_delta(modulus, n_messages, epsilon)
    return probability(found) if found < math.inf else math.inf


def odd_two_user_delta(modulus: int, n_messages: int, epsilon: float) -> float:
    r"""As :func:`two_user_delta` for odd moduli only, with the smaller numerator (upper).

    .. math:: \frac{(N-2)+2(N-1)e^{2\varepsilon}+4e^\varepsilon}{4(e^\varepsilon-1)\,C_m}

    Examples
    --------
    >>> f"{odd_two_user_delta(30_000_001, 27, 0.1):.4e}"
    '1.2610e-07'
    """
    check(modulus=modulus, n_messages=n_messages, epsilon=epsilon)
    found = log_two_user_delta(modulus, n_messages, epsilon, parity=True)
    return probability(found) if found < math.inf else math.inf


@states("cloak", "best-1", item="split-and-mix, after Balle, Bell, Gascon, Nissim 2020", gives="upper",
        adjacency="sum-preserving")  # fmt: skip
def messages_needed(security_bits: float, n_users: int, log2_modulus: float) -> int:
    r"""Messages per user with which data sets of equal sum are within :math:`2^{-\sigma}` (upper, never too few).

    .. math:: m = \Big\lceil2+\frac{2\sigma+\log_2N}{\log_2n-\log_2e}\Big\rceil, \qquad m\ge3,\ n\ge19

    Of several colluding users, subtract their number from ``n_users``.  The formula is theirs; wherever the two were
    compared, ``cloak:own-3``, which is proven here, needs no more messages.

    Parameters
    ----------
    security_bits : float in (0, 1e6]
        Minus the base-2 logarithm σ of the total variation distance.
    n_users : int, at least 19
    log2_modulus : float in (0, 1e6]

    Raises
    ------
    DomainError
        With fewer than 19 users: the theorem is silent.

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


@states("cloak", "bits", item="Section 8, bits per user", gives="exact", adjacency="none")
def bits_sent(modulus: int, n_messages: int, dimension: int = 1) -> int:
    r"""Bits that a user sends, :math:`d\,m\lceil\log_2N\rceil` (exact).

    Parameters
    ----------
    modulus : int from 2 to 2**256
    n_messages : int, at least 1
    dimension : int, at least 1

    Source: Ghazi, Pagh, Velingker 2019: messages are whole numbers below the modulus.

    Examples
    --------
    >>> bits_sent(23_328_000_001, 54)
    1890
    """
    return dimension * n_messages * modulus_bits(modulus)


def modulus_bits(modulus: int) -> int:
    r"""Bits of one message, :math:`\lceil\log_2N\rceil`.

    Examples
    --------
    >>> modulus_bits(2**32), modulus_bits(2**32 + 1)
    (32, 33)
    """
    return (modulus - 1).bit_length()


def log_ratio(smoothness: float) -> float:
    r"""The :math:`\ln\beta = \ln\frac{1+\gamma}{1-\gamma}` of a smoothness.

    Examples
    --------
    >>> round(log_ratio(0.5), 12) == round(math.log(3), 12)
    True
    """
    check(smoothness=smoothness)
    return math.log1p(smoothness) - math.log1p(-smoothness)


def log_central_binomial(n_messages: int) -> float:
    r"""Natural logarithm of :math:`\binom{2m}m` to some ulps, for m of any size.

    Beyond 512 by :math:`m\ln4-\frac12\ln(\pi m)-\frac1{8m}+\frac1{192m^3}`, whose remainder is below
    :math:`1/(640m^5)`.

    Examples
    --------
    >>> round(math.exp(log_central_binomial(5)), 9)
    252.0
    """
    if n_messages <= SMALL:
        return math.log(math.comb(2 * n_messages, n_messages))
    correction = (1 / 24 / n_messages**2 - 1) / (8 * n_messages)
    return math.fsum([n_messages * math.log(4), -math.log(math.pi * n_messages) / 2, correction])


def honest(n_users: int, colluding: int) -> int:
    """Users who do not collude; refused where fewer than two are left.

    Examples
    --------
    >>> honest(1000, 900)
    100
    """
    check(n_users=n_users, colluding=colluding)
    if colluding > n_users - 2:
        raise DomainError(f"colluding must be a whole number in [0, {n_users - 2}] of {n_users} users, got {colluding}")
    return n_users - colluding


def odd(modulus: int) -> int:
    """The modulus, refused where it is even.

    Examples
    --------
    >>> odd(5)
    5
    """
    if modulus % 2 == 0:
        raise DomainError(f"modulus must be odd, {VOCABULARY['modulus']}, got {modulus!r}")
    return modulus


def log_failure(modulus: int, n_messages: int, smoothness: float) -> float:
    """Logarithm of :func:`smooth_failure`, for a modulus of any size; ``inf`` outside the regime of the lemma."""
    repeated = added_up(math.log(2), 2 * math.log(n_messages), -math.log(odd(modulus)))
    return logaddexp(repeated, log_unsmooth(modulus, n_messages, smoothness)) + MARGIN


def log_unsmooth(modulus: int, n_messages: int, smoothness: float) -> float:
    """Logarithm of the second term of :func:`smooth_failure`, messages that do not repeat."""
    root, subsets, slack = math.log(n_messages) / 2, n_messages * math.log(4), math.log(smoothness)
    if n_messages < LEAST_MESSAGES or slack <= math.log(6) + root - subsets:
        return math.inf
    return added_up(math.log(18), root, -subsets, 2 * math.log(modulus), -2 * slack)


def log_two_user_delta(modulus: int, n_messages: int, epsilon: float, parity: bool = False) -> float:
    """Logarithm of :func:`two_user_delta`, or of the odd form, for a modulus of any size; may exceed 0."""
    if n_messages < 2 or epsilon == 0:
        return math.inf
    terms = [
        math.log(odd(modulus) - 2 if parity else 2 * modulus - 2),
        math.log(2) + math.log(modulus - 1) + 2 * epsilon,
    ]
    numerator = logaddexp(logaddexp(*terms), math.log(4) + epsilon)
    return added_up(numerator, -math.log(4), -log_expm1(epsilon), -log_central_binomial(n_messages))


def added_up(*logarithms: float) -> float:
    """The sum of logarithms, rounded up by what each of them may be wrong.

    Examples
    --------
    >>> 0 < added_up(1.0, -1.0) < 1e-11
    True
    """
    return math.fsum(logarithms) + MARGIN + ROUNDING * sum(map(abs, logarithms))
