"""Claims about splitting into shares, and about noise before it: messages, subsets, two users, all users, error, rules.

Truth is enumerated, as the law of the shuffled messages or over every sequence of them; laws of noise are summed term
by term.  A formula of the document is on the other side of each comparison.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations, product
from operator import ne

import numpy as np
from scipy.special import gammaln

from flamebook.claims.blanket import evaluate
from flamebook.claims.truth import compositions
from flamelib.accounting.splitting.n_user_bounds import least_messages
from flamelib.accounting.splitting.pairwise_swaps import least_messages_behind
from flamelib.accounting.splitting.parameter_search import Plan, plans

Counts = tuple[int, ...]
Law = dict[Counts, float]

# --- what is sent ----------------------------------------------------------------------------------------------------


def shuffled_law(modulus: int, n_messages: int, values: Sequence[int]) -> Law:
    """Law of the shuffled messages of several users: how often each residue occurs."""
    law: Law = {(0,) * modulus: 1.0}
    for value in values:
        joined: Law = {}
        for own, chance in _user_law(modulus, n_messages, value % modulus):
            for others, weight in law.items():
                together = tuple(a + b for a, b in zip(own, others, strict=True))
                joined[together] = joined.get(together, 0.0) + chance * weight
        law = joined
    return law


def _user_law(modulus: int, n_messages: int, value: int) -> Iterator[tuple[Counts, float]]:
    for counts in compositions(n_messages, modulus):
        if sum(y * c for y, c in enumerate(counts)) % modulus == value:
            orders = math.factorial(n_messages) // math.prod(map(math.factorial, counts))
            yield counts, orders / modulus ** (n_messages - 1)


def distance(first: Mapping[Counts, float], second: Mapping[Counts, float], epsilon: float = 0.0) -> float:
    """Hockey-stick distance of two laws, the larger of both orders."""
    keys = first.keys() | second.keys()
    pairs = [(first.get(key, 0.0), second.get(key, 0.0)) for key in keys]
    scale = math.exp(epsilon)
    return max(
        math.fsum(max(p - scale * q, 0.0) for p, q in pairs), math.fsum(max(q - scale * p, 0.0) for p, q in pairs)
    )


def shares_distance(
    modulus: int, n_messages: int, inputs_a: Sequence[int], inputs_b: Sequence[int], epsilon: float = 0.0
) -> float:
    """Exact distance of the shuffled messages of two vectors of inputs."""
    first, second = (shuffled_law(modulus, n_messages, values) for values in (inputs_a, inputs_b))
    return distance(first, second, epsilon)


def swap_distance(modulus: int, n_messages: int) -> float:
    """Exact total variation of two users who hold (0, 0) or (1, -1)."""
    return crowd_distance(modulus, n_messages, 2)


def crowd_distance(modulus: int, n_messages: int, n_users: int) -> float:
    """The same among so many users, the others holding 0."""
    others = (0,) * (n_users - 2)
    return shares_distance(modulus, n_messages, (0, 0, *others), (1, modulus - 1, *others))


def left_out_distance(modulus: int, n_messages: int, value: int) -> float:
    """Largest distance from uniform of any m - 1 messages of a user, all of its draws listed."""
    drawn = [(*free, (value - sum(free)) % modulus) for free in product(range(modulus), repeat=n_messages - 1)]
    uniform = 1 / len(drawn)
    found = [Counter(shares[:out] + shares[out + 1 :] for shares in drawn) for out in range(n_messages)]
    possible = list(product(range(modulus), repeat=n_messages - 1))
    return max(abs(seen[key] / len(drawn) - uniform) for seen in found for key in possible)


def relayed_distance(items: int, weights: Sequence[float]) -> float:
    """Distance from uniform of a permutation drawn with some weights, followed by a uniform one; all are listed."""
    orders = list(permutations(range(items)))
    total = math.fsum(weights)
    law = Counter[tuple[int, ...]]()
    for weight, first in zip(weights, orders, strict=False):
        for second in orders:
            law[tuple(first[i] for i in second)] += weight / total / len(orders)  # type: ignore[assignment]
    return math.fsum(abs(law[order] - 1 / len(orders)) for order in orders) / 2


def longest_chain(n_users: int, scale: int) -> int:
    """Most swaps between two data sets of equal sum, by breadth-first search over all of them on the grid."""
    longest = 0
    for total in range(n_users * scale + 1):
        sets = [values for values in product(range(scale + 1), repeat=n_users) if sum(values) == total]
        starts = {tuple(sorted(values)) for values in sets}
        longest = max([longest, *(max(_swaps_from(start, sets).values()) for start in starts)])
    return longest


def _swaps_from(start: Counts, sets: Sequence[Counts]) -> dict[Counts, int]:
    reached, edge = {start: 0}, [start]
    while edge:
        edge = [s for s in sets if s not in reached and any(sum(map(ne, s, other)) == 2 for other in edge)]
        step = max(reached.values()) + 1
        reached |= dict.fromkeys(edge, step)
    return reached


# --- subsets ---------------------------------------------------------------------------------------------------------


def subset_sums(messages: Sequence[int], modulus: int) -> Counter[int]:
    """How many halves of the messages have each sum."""
    return Counter(sum(part) % modulus for part in combinations(messages, len(messages) // 2))


def identity_over_distance(modulus: int, n_messages: int, inputs_a: Sequence[int], inputs_b: Sequence[int]) -> float:
    """Mean difference of subset counts over every sequence of the right sum, over the exact total variation."""
    total = sum(inputs_a) % modulus
    spread = 0
    for free in product(range(modulus), repeat=2 * n_messages - 1):
        counts = subset_sums((*free, (total - sum(free)) % modulus), modulus)
        spread += abs(counts[inputs_a[0]] - counts[inputs_b[0]])
    mean = spread / float(modulus ** (2 * n_messages - 1))
    found = modulus * mean / (2 * math.comb(2 * n_messages, n_messages))
    return found / shares_distance(modulus, n_messages, inputs_a, inputs_b)


def other_subsets_variance(modulus: int, n_messages: int, inputs: Sequence[int], target: int) -> float:
    """Variance of the number of subsets with a sum, two users' own left out, over ``(C - 2)(1/N - 1/N^2)``.

    The denominator is the variance of that many pairwise independent subsets.
    """
    own = [
        [(*free, (value - sum(free)) % modulus) for free in product(range(modulus), repeat=n_messages - 1)]
        for value in inputs
    ]
    found = []
    for first, second in product(*own):
        mine = (sum(first) % modulus == target) + (sum(second) % modulus == target)
        found.append(subset_sums(first + second, modulus)[target] - mine)
    mean = sum(found) / len(found)
    variance = sum((z - mean) ** 2 for z in found) / len(found)
    subsets = math.comb(2 * n_messages, n_messages) - 2
    return variance / (subsets * (1 / modulus - 1 / modulus**2))


def other_subsets_over_claimed(n_messages: int) -> float:
    """Number of subsets that are not a user's own over what the proof of Lemma 1 needs, ``4^m / (2 sqrt m)``."""
    return (math.comb(2 * n_messages, n_messages) - 2) / (4.0**n_messages / (2 * math.sqrt(n_messages)))


def least_failure_below_the_range(n_messages: int) -> float:
    """Smallest failure bound of Lemma 1 with a smoothness below ``6 sqrt(m) N / 4^m``, which the statement admits."""
    edge = 6 * math.sqrt(n_messages) / 4**n_messages
    points = [
        (modulus, edge * modulus ** (step / 10) * 1.0001)
        for modulus in (3, 7, 31, 1023, 65535)
        for step in range(10)
        if edge * modulus < 1
    ]
    return min(
        evaluate("cloak:lemma-1", {"modulus": modulus, "n_messages": n_messages, "smoothness": smoothness})
        for modulus, smoothness in points
    )


def corollary_over_lemma(modulus: int) -> float:
    """Failure bound of Lemma 1 at the parameters of Corollary 1 over the corollary's."""
    n_messages = 3 * math.ceil(math.log2(modulus))
    lemma = evaluate("cloak:lemma-1", {"modulus": modulus, "n_messages": n_messages, "smoothness": 1 / modulus})
    return lemma / evaluate("cloak:cor-1", {"modulus": modulus})


def distinct_is_formula(modulus: int, n_messages: int, inputs: Sequence[int]) -> bool:
    """Whether Lemma 2 gives the probability of every set of distinct messages."""
    law, total = shuffled_law(modulus, n_messages, inputs), sum(inputs) % modulus
    for chosen in combinations(range(modulus), 2 * n_messages):
        ways = subset_sums(chosen, modulus)[inputs[0] % modulus] if sum(chosen) % modulus == total else 0
        formula = math.factorial(n_messages) ** 2 * ways / modulus ** (2 * n_messages - 2)
        if not math.isclose(law.get(_counts(chosen, modulus), 0.0), formula, rel_tol=1e-12):
            return False
    return True


def _counts(messages: Sequence[int], modulus: int) -> Counts:
    found = Counter(messages)
    return tuple(found[y] for y in range(modulus))


def unevenness(messages: Sequence[int], modulus: int) -> float:
    """Least smoothness of Definition 2: largest relative deviation of subset sums from even."""
    counts, subsets = subset_sums(messages, modulus), math.comb(len(messages), len(messages) // 2)
    return max(abs(modulus * counts[x] / subsets - 1) for x in range(modulus))


def registered_over_unevenness(modulus: int, messages: Sequence[int]) -> float:
    """The registered least smoothness over the one from all subsets."""
    return evaluate("cloak:def-2", {"messages": messages, "modulus": modulus}) / unevenness(messages, modulus)


def ratio_over_smooth(modulus: int, n_messages: int, inputs_a: Sequence[int], inputs_b: Sequence[int]) -> float:
    """Largest ratio of two probabilities of distinct messages, over (1 + g)/(1 - g), g their own unevenness."""
    first, second = (shuffled_law(modulus, n_messages, values) for values in (inputs_a, inputs_b))
    worst = 0.0
    for chosen in combinations(range(modulus), 2 * n_messages):
        gamma, key = unevenness(chosen, modulus), _counts(chosen, modulus)
        if gamma < 1 and second.get(key):
            worst = max(worst, first.get(key, 0.0) / second[key] * (1 - gamma) / (1 + gamma))
    return worst


# --- bounds over the truth -------------------------------------------------------------------------------------------


def pair_over(
    compute: str, modulus: int, n_messages: int, inputs_a: Sequence[int], inputs_b: Sequence[int], epsilon: float = 0.0
) -> float:
    """Exact distance of two users' messages over a registered bound."""
    given = {"modulus": modulus, "n_messages": n_messages} | ({} if compute == "cloak:own-1" else {"epsilon": epsilon})
    return shares_distance(modulus, n_messages, inputs_a, inputs_b, epsilon) / evaluate(compute, given)


def exact_over_listed(
    modulus: int, n_messages: int, inputs_a: Sequence[int], inputs_b: Sequence[int], epsilon: float
) -> float:
    """The registered exact distance over the one from convolved laws."""
    given = {"modulus": modulus, "n_messages": n_messages, "inputs_a": inputs_a, "inputs_b": inputs_b}
    listed = shares_distance(modulus, n_messages, inputs_a, inputs_b, epsilon)
    return evaluate("cloak:exact", given | {"epsilon": epsilon}) / listed


def crowd_over_pair(modulus: int, n_messages: int, others: Sequence[int], epsilon: float) -> float:
    """Exact distance of a swap, (0, 0) for (1, -1), among other users over the same without them."""
    first, second = (0, 0), (1, modulus - 1)
    crowd = shares_distance(modulus, n_messages, (*first, *others), (*second, *others), epsilon)
    return crowd / shares_distance(modulus, n_messages, first, second, epsilon)


def told_over_pair(modulus: int, n_messages: int, epsilon: float) -> float:
    """Exact delta of a swap where a third user tells its own messages, over the same without it."""
    pair = [shuffled_law(modulus, n_messages, values) for values in ((0, 0), (1, modulus - 1))]
    told = [
        {(*own, *(a + b for a, b in zip(own, rest, strict=True))): p * q for own, p in third for rest, q in law.items()}
        for law in pair
        for third in [list(_user_law(modulus, n_messages, 2))]
    ]
    return distance(told[0], told[1], epsilon) / distance(pair[0], pair[1], epsilon)


def chain_over_steps(modulus: int, n_messages: int, epsilon: float) -> float:
    """Exact delta of two swaps at twice epsilon, over the sum that Lemma 6 makes of the exact deltas of each."""
    sets = ((0, 0, 0), (1, modulus - 1, 0), (1, 1, modulus - 2))
    both = shares_distance(modulus, n_messages, sets[0], sets[2], 2 * epsilon)
    steps = [shares_distance(modulus, n_messages, sets[i], sets[i + 1], epsilon) for i in (0, 1)]
    return both / (steps[0] + math.exp(epsilon) * steps[1])


def users_over(modulus: int, n_messages: int, n_users: int, bound: str = "cloak:own-3") -> float:
    """Exact total variation of a swap among equal users over a bound, that for all users unless said otherwise."""
    given = {"modulus": modulus, "n_messages": n_messages, "n_users": n_users}
    return crowd_distance(modulus, n_messages, n_users) / evaluate(bound, given)


def users_over_listed(modulus: int, n_messages: int, n_users: int) -> float:
    """The bound for all users over its formula, components of every pairing of half-edges counted."""
    blocks = [i // n_messages for i in range(n_users * n_messages)]
    powers = [modulus ** (_components(blocks, pairing, n_users) - 1) for pairing in set(permutations(blocks))]
    excess = sum(powers) / len(powers) - 1
    listed = min(1.0, math.sqrt(modulus * excess / (2 * (modulus - 1))))
    return evaluate("cloak:own-3", {"modulus": modulus, "n_messages": n_messages, "n_users": n_users}) / listed


def _components(left: Sequence[int], right: Sequence[int], n_users: int) -> int:
    roots = list(range(2 * n_users))
    for a, b in zip(left, right, strict=True):
        old, new = roots[a], roots[n_users + b]
        roots = [new if root == old else root for root in roots]
    return len(set(roots))


def security_left(security_bits: float, n_users: int, log2_modulus: int, spared: int = 0) -> float:
    """Bits of security by the bound for all users, at the closed form's number of messages less some."""
    given = {"security_bits": security_bits, "n_users": n_users, "log2_modulus": log2_modulus}
    n_messages = int(evaluate("cloak:best-1", given)) - spared
    return security(2**log2_modulus, n_messages, n_users)


def security(modulus: int, n_messages: int, n_users: int) -> float:
    """Minus the base-2 logarithm of the bound for all users."""
    return -math.log2(evaluate("cloak:own-3", {"modulus": modulus, "n_messages": n_messages, "n_users": n_users}))


def fewest_messages(security_bits: float, n_users: int, log2_modulus: int) -> int:
    """Fewest messages with so many bits of security by the bound for all users."""
    return least_messages(security_bits, n_users, 2**log2_modulus)


def fewest_behind_noise(delta: float, n_users: int) -> int:
    """Fewest messages that hide one user behind Pólya shares, ten steps of the grid for every user."""
    scale = 10 * n_users
    return least_messages_behind(delta, n_users, 3 * n_users * scale + 1, scale)


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
    law, half = powers(modulus, decay), modulus // 2
    return max(law[(j + t + half) % modulus - half] / law[j] * decay ** abs(t) for j, t in product(law, law))


def squares_over_closed(decay: float, terms: int) -> float:
    """The series of Lemma 9, cut, over its closed form."""
    return math.fsum(j * j * decay**j for j in range(1, terms)) / (decay * (1 + decay) / (1 - decay) ** 3)


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
    """What that plan's shares and modulus tell over what may be told, delta over the plan's factor."""
    found = planned(theorem, noise, n_users, epsilon, delta, error)
    given = {"modulus": found.modulus, "n_messages": found.n_messages, "n_users": n_users}
    if theorem == "cloak:own-6":
        return evaluate("cloak:own-6", given | {"scale": found.scale}) / delta
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
