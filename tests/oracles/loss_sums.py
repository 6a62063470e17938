"""Compositions of finite laws by exact sums: balls of 300 bits, every outcome; nothing from the library."""

from collections.abc import Sequence

from flint import arb, arb_poly, ctx

BITS = 300


def ball(value: float) -> arb:
    """The double itself."""
    ctx.prec = BITS
    return arb(float(value))


def powered(masses: dict[int, float], times: int) -> tuple[int, list[arb]]:
    """The law of a sum of so many independent whole numbers: its first value, and its masses from there on."""
    ctx.prec = BITS
    low, high = min(masses), max(masses)
    law = arb_poly([ball(masses.get(place, 0.0)) for place in range(low, high + 1)]) ** times
    return times * low, [law[i] for i in range(times * (high - low) + 1)]


def sum_delta(masses: dict[int, float], times: int, step: float, infinity: float, epsilon: float) -> arb:
    r"""``1 - (1 - infinity)^times + E[(1 - exp(epsilon - step S))_+]`` for the sum S."""
    first, law = powered(masses, times)
    found = 1 - (1 - ball(infinity)) ** times
    for i, mass in enumerate(law):
        excess = ball(step) * (first + i) - ball(epsilon)
        if excess > 0:
            found += mass * (1 - (-excess).exp())
    return found


def counts(total: int, letters: int) -> list[tuple[int, ...]]:
    """Every way to share so many draws among letters."""
    if letters == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in counts(total - first, letters - 1)]


def pair_delta(p: Sequence[float], q: Sequence[float], times: int, epsilon: float) -> arb:
    """Delta of so many draws of one of two laws on the same letters, P first."""
    ctx.prec = BITS
    ps, qs, growth = [ball(x) for x in p], [ball(x) for x in q], ball(epsilon).exp()
    powers = [[[one**k for k in range(times + 1)] for one in law] for law in (ps, qs)]
    found = arb(0)
    factorials = [arb.fac_ui(k) for k in range(times + 1)]
    for count in counts(times, len(p)):
        ways, here, there = factorials[times], arb(1), arb(1)
        for letter, k in enumerate(count):
            ways /= factorials[k]
            here *= powers[0][letter][k]
            there *= powers[1][letter][k]
        excess = here - growth * there
        if excess > 0:
            found += ways * excess
    return found


def binomial_tails(trials: int, rate: float, count: int, most: int = 20_000) -> tuple[arb | None, arb | None]:
    """Probabilities of at most that many hits and of more, term by term; ``None`` for one of too many terms."""
    ctx.prec = 160
    hit, miss = arb(rate), 1 - arb(rate)

    def mass(j: int) -> arb:
        ways = arb(trials + 1).lgamma() - arb(j + 1).lgamma() - arb(trials - j + 1).lgamma()
        return (ways + j * hit.log() + (trials - j) * miss.log()).exp()

    def summed(start: int, step: int) -> arb | None:
        total, term, j = arb(0), mass(start), start
        for done in range(most):
            if not 0 <= j <= trials or (done % 64 == 63 and float(term.mid()) < 1e-25 * float(total.mid())):
                return total
            total += term
            term *= hit / miss * (trials - j) / (j + 1) if step > 0 else miss / hit * j / (trials - j + 1)
            j += step
        return None

    return summed(count, -1), summed(count + 1, 1)


def log(value: arb) -> float:
    """Natural logarithm as a double; ``-inf`` of what is not positive."""
    return float(value.log().mid()) if value > 0 else float("-inf")
