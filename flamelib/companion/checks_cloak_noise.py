r"""Claims about noise before splitting: its law, what it hides, what it adds to the error, rules for parameters.

Laws are summed term by term; a formula of the document is on the other side of each comparison.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from scipy.special import gammaln

from flamelib.accounting.splitting.plans import Plan, plans
from flamelib.companion.checks import evaluate
from flamelib.companion.checks_cloak import Counts, Law, distance, shuffled_law, subset_sums, unevenness

Powers = Mapping[int, float]

# --- the law ---------------------------------------------------------------------------------------------------------


def powers(modulus: int, decay: float) -> Powers:
    """Truncated two-sided geometric law from its definition: powers of the decay, normalised."""
    reach = (modulus - 1) // 2
    weights = {j: decay ** abs(j) for j in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {j: weight / total for j, weight in weights.items()}


def pmf_over_powers(modulus: int, decay: float) -> float:
    """Largest relative difference of the registered law from normalised powers."""
    law = powers(modulus, decay)
    given = {"modulus": modulus, "decay": decay}
    return max(abs(evaluate("cloak:def-tdl", given | {"value": j}, "pmf") / law[j] - 1) for j in law)


def variance_over(compute: str, modulus: int, decay: float, field: str | None = None) -> float:
    """Variance of normalised powers over a registered one."""
    summed = math.fsum(j * j * p for j, p in powers(modulus, decay).items())
    given = {"modulus": modulus, "decay": decay} | ({"value": 0} if field else {})
    return summed / evaluate(compute, given, field)


def shift_over_power(modulus: int, decay: float) -> float:
    """Largest ratio of two probabilities a shift apart, over the power of the decay that Lemma 7 gives."""
    law = powers(modulus, decay)
    return max(law[_centred(j + t, modulus)] / law[j] * decay ** abs(t) for j, t in product(law, law))


def squares_over_closed(decay: float, terms: int) -> float:
    """The series of Lemma 9, cut, over its closed form."""
    return math.fsum(j * j * decay**j for j in range(1, terms)) / (decay * (1 + decay) / (1 - decay) ** 3)


def _centred(j: int, modulus: int) -> int:
    return (j + modulus // 2) % modulus - modulus // 2


def polya_less_laplace(n_users: int, decay: float, reach: int) -> float:
    """Largest difference of probabilities of all users' Pólya shares together and of the discrete Laplace law."""
    j = np.arange(reach)
    logs = gammaln(j + 1 / n_users) - gammaln(j + 1) - gammaln(1 / n_users) + j * math.log(decay)
    one = np.exp(logs + math.log1p(-decay) / n_users)
    transform = np.abs(np.fft.fft(one, 2 * reach)) ** (2 * n_users)
    law = (1 - decay) / (1 + decay) * decay**j
    return float(np.abs(np.fft.ifft(transform).real[:reach] - law).max())


# --- noise and shares together ---------------------------------------------------------------------------------------


def noisy_law(modulus: int, n_messages: int, values: Sequence[int], noise: Sequence[Powers]) -> Law:
    """Law of the shuffled messages where each user adds noise of its own."""
    found: Law = {}
    for draws in product(*(law.items() for law in noise)):
        chance = math.prod(p for _, p in draws)
        shifted = [value + j for value, (j, _) in zip(values, draws, strict=True)]
        for key, weight in shuffled_law(modulus, n_messages, shifted).items():
            found[key] = found.get(key, 0.0) + chance * weight
    return found


def thinned(modulus: int, decay: float, noise_rate: float) -> Powers:
    """The law with some chance, else no noise."""
    law = {j: noise_rate * p for j, p in powers(modulus, decay).items()}
    return law | {0: law[0] + 1 - noise_rate}


def noisy_pair_over(modulus: int, n_messages: int, scale: int, decay: float, who: str) -> float:
    """Largest ratio of two probabilities of distinct messages after a change of user 1, over Lemma 10's.

    ``who`` adds noise: ``other`` user, ``same`` user or ``both``.
    """
    silent, loud = {0: 1.0}, powers(modulus, decay)
    noise = {"other": (silent, loud), "same": (loud, silent), "both": (loud, loud)}[who]
    first, second = (noisy_law(modulus, n_messages, (value, 1), noise) for value in (0, scale))
    worst = 0.0
    for key in first:
        if max(key) == 1:
            gamma = unevenness([y for y, count in enumerate(key) if count], modulus)
            smooth = 1.0 if who != "other" else (1 + gamma) / (1 - gamma) if gamma < 1 else math.inf
            worst = max(worst, first[key] * decay**scale / (smooth * second[key]) if smooth < math.inf else 0.0)
    return worst


def user_delta_over(
    modulus: int, n_messages: int, scale: int, decay: float, noise_rate: float, smoothness: float
) -> float:
    """Exact delta of two users, one replaced, over Lemma 11's with this book's bound in the place of Lemma 1's."""
    noise = [thinned(modulus, decay, noise_rate)] * 2
    first, second = (noisy_law(modulus, n_messages, (value, 0), noise) for value in (0, scale))
    swap = math.log((1 + smoothness) / (1 - smoothness))
    given = {"modulus": modulus, "n_messages": n_messages, "epsilon": swap}
    bound = (1 - noise_rate) ** 2 + evaluate("cloak:own-2", given)
    return distance(first, second, swap - scale * math.log(decay)) / bound


def transferred_over(modulus: int, n_messages: int, n_users: int, scale: int, decay: float, epsilon: float) -> float:
    """Exact delta with noise of one user, over that of the noisy sum and ``(1 + e^epsilon)`` times the distance.

    All have 0, and the user without noise changes to ``scale``; the distance is the bound for all users.
    """
    noise = [{0: 1.0}] * (n_users - 1) + [powers(modulus, decay)]
    values = [(start, *(0,) * (n_users - 1)) for start in (0, scale)]
    first, second = (noisy_law(modulus, n_messages, one, noise) for one in values)
    exact = distance(first, second, epsilon)
    shares = evaluate("cloak:own-3", {"modulus": modulus, "n_messages": n_messages, "n_users": n_users})
    return exact / (sum_delta(modulus, scale, decay, epsilon) + (1 + math.exp(epsilon)) * shares)


def sum_delta(modulus: int, scale: int, decay: float, epsilon: float) -> float:
    """Exact delta of the sum modulo N with the noise of one user, a value replaced by one ``scale`` away."""
    law = powers(modulus, decay)
    laws: list[dict[Counts, float]] = [{((j + shift) % modulus,): p for j, p in law.items()} for shift in (0, scale)]
    return distance(laws[0], laws[1], epsilon)


# --- errors ----------------------------------------------------------------------------------------------------------


def clipped_mean(modulus: int, n_users: int, scale: int, decay: float, noise_rate: float, total: int) -> float:
    """Mean of the analyzer's answer at a given sum of scaled values, summed over the law of the noise."""
    law, one = np.zeros(modulus), np.zeros(modulus)
    law[total % modulus] = 1
    for j, p in thinned(modulus, decay, noise_rate).items():
        one[j % modulus] += p
    for _ in range(n_users):
        law = np.array([law @ np.roll(one[::-1], z + 1) for z in range(modulus)])
    answers = [evaluate("cloak:alg-2", _message(z, modulus, scale, n_users)) for z in range(modulus)]
    return float(law @ answers)


def _message(z: int, modulus: int, scale: int, n_users: int) -> dict[str, object]:
    return {"messages": [z], "modulus": modulus, "scale": scale, "n_users": n_users}


def answered(total: int, modulus: int, scale: int, n_users: int) -> float:
    """The analyzer's answer to a sum modulo N."""
    return evaluate("cloak:alg-2", _message(total, modulus, scale, n_users))


def mean_noise(epsilon: float, delta: float, n_users: int) -> float:
    """Exact mean absolute noise of Rule T1, in units of the values, from its characteristic function."""
    rule = {
        name: evaluate("cloak:thm-1", {"epsilon": epsilon, "delta": delta, "n_users": n_users}, name)
        for name in ("scale", "decay", "noise_rate")
    }
    return thinned_mean(n_users, rule["scale"], rule["decay"], rule["noise_rate"])


def thinned_mean(n_users: int, scale: float, decay: float, noise_rate: float) -> float:
    r"""Mean absolute value of a sum of thinned discrete Laplace variables over ``scale``.

    By :math:`E|W|=\frac1\pi\int_0^\pi\frac{1-\varphi(t)}{1-\cos t}dt` for whole numbers; truncation is left out.
    """
    t = np.geomspace(1e-9, math.pi, 40_001)
    half = 2 * np.sin(t / 2) ** 2
    one = (1 - decay) ** 2 / ((1 - decay) ** 2 + 2 * decay * half)
    lost = -np.expm1(n_users * np.log1p(noise_rate * (one - 1)))
    return float(np.trapezoid(lost / half * t, np.log(t)) / math.pi / scale)


def noise_ratio(epsilon: float, delta: float, n_users: int, colluding: int) -> float:
    """Bound on the noise of Rule T1 with colluding users over the one without."""
    given = {"epsilon": epsilon, "delta": delta, "n_users": n_users}
    with_them = evaluate("cloak:thm-1", given | {"colluding": colluding}, "noise_bound")
    return with_them / evaluate("cloak:thm-1", given, "noise_bound")


# --- rules -----------------------------------------------------------------------------------------------------------


def remembered_repeats(n_users: int, epsilon: float, delta: float, n_messages: int) -> float:
    """First term of Lemma 1's failure at the modulus ``3 k n + 10/delta + 10/epsilon``, k = 10 n, over delta."""
    modulus = 30 * n_users**2 + 10 / delta + 10 / epsilon
    return 2 * n_messages**2 / modulus / delta


def tail_of_rule(epsilon: float, delta: float, n_users: int) -> float:
    """The printed tail ``exp(-q n)`` of Rule T1 over half of delta."""
    rate = evaluate("cloak:thm-1", {"epsilon": epsilon, "delta": delta, "n_users": n_users}, "noise_rate")
    return math.exp(-rate * n_users) / (delta / 2)


def least_failure_at_error(n_users: int) -> float:
    """Smallest failure of Lemma 1 over all m for which the error is 2^-m, however large the smoothness."""
    found = []
    for m in range(4, 80):
        modulus = n_users**2 * 2**m + 1
        given = {"modulus": modulus, "n_messages": m, "smoothness": 1 - 1e-9}
        found.append(evaluate("cloak:lemma-1", given))
    return min(found)


def messages_at_error(n_users: int, epsilon: float, delta: float) -> int:
    """Fewest messages with error 2^-m and (epsilon, delta) by chaining this book's bound for two users."""
    swaps = n_users - 1
    step = epsilon / swaps
    chained = math.expm1(epsilon) / math.expm1(step)
    for m in range(2, 200):
        modulus = n_users**2 * 2**m + 1
        if evaluate("cloak:own-2", {"modulus": modulus, "n_messages": m, "epsilon": step}) * chained <= delta:
            return m
    return 200


def planned(theorem: str, noise: str, n_users: int, epsilon: float, delta: float, error: float) -> Plan:
    """The plan by a theorem with some noise, of all that reach the error."""
    found = plans(n_users, epsilon, delta, error)
    return next(plan for plan in found if (plan.theorem, plan.noise) == (theorem, noise))


def plan_bits(theorem: str, noise: str, n_users: int, epsilon: float, delta: float, error: float) -> int:
    """Bits of a user in that plan."""
    return planned(theorem, noise, n_users, epsilon, delta, error).bits


def plan_distance(theorem: str, noise: str, n_users: int, epsilon: float, delta: float, error: float) -> float:
    """Bound for all users at that plan's shares and modulus over what may be told, delta over the plan's factor."""
    found = planned(theorem, noise, n_users, epsilon, delta, error)
    given = {"modulus": found.modulus, "n_messages": found.n_messages, "n_users": n_users}
    factor = 1 if found.noise == "none" else 1 + math.exp(epsilon)
    return evaluate("cloak:own-3", given) * factor / delta


def even_ways(messages: Sequence[int], modulus: int, total: int, largest: int) -> list[int]:
    """How many halves of the messages have each sum that a value up to ``largest`` may be, with its complement."""
    counts = subset_sums(messages, modulus)
    return [counts[x] for x in range(largest + 1) if x <= total - x]


def least_ways(messages: Sequence[int], modulus: int, total: int, largest: int) -> int:
    """The least of these."""
    return min(even_ways(messages, modulus, total, largest))


def most_ways(messages: Sequence[int], modulus: int, total: int, largest: int) -> int:
    """The largest of these."""
    return max(even_ways(messages, modulus, total, largest))
