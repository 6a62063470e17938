r"""Statements on cloak aggregation that do not hold, or say less than they seem to: the smallest cases, in numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from scipy.special import gammaln

from flamelib._validate import check
from flamelib.amplification.splitting import smooth_failure, swap_budget
from flamelib.amplification.splitting_exact import shuffled_distance
from flamelib.amplification.splitting_messages import messages_needed
from flamelib.amplification.splitting_pairs import two_user_delta, two_user_distance
from flamelib.amplification.splitting_rules import noisy_rule
from flamelib.amplification.splitting_subsets import subset_moments
from flamelib.amplification.splitting_sums import thinned_sum
from flamelib.amplification.splitting_users import users_distance
from flamelib.figures.curves import Parameters, Values, to_csv, words
from flamelib.figures.style import Pen

# --- counting --------------------------------------------------------------------------------------------------------


def ambiguity(n_users: int, n_messages: int, modulus: int, scale: int, dimension: int = 1) -> float:
    r"""Upper bound, by counting, on what two data sets of equal sum have in common on average: its base-2 logarithm.

    A data set can have given rise to a view if the :math:`nm` messages fall into groups with its values as sums.
    There are :math:`M = (nm)!/(m!)^n` ways to group them.  With :math:`r = ((k+1)/N)^d` and :math:`c` components of
    the graph that joins users to groups,

    .. math:: E_{x'}\bigl[1 - \mathrm{TV}(P_x, P_{x'})\bigr]
              \le M r^{n-1} E\bigl[r^{1-c}\bigr] \Bigl(\frac{nk+1}{(k+1)^n}\Bigr)^d

    for every data set :math:`x` and :math:`x'` uniform among all with sum :math:`s`, the most frequent one.

    Parameters
    ----------
    n_users : int
    n_messages : int, at least 2
    modulus, scale : int
    dimension : int
        Coordinates that are shuffled together.

    Examples
    --------
    >>> ambiguity(1000, 4, 2**40, 10**4) < -2000 < 0 < ambiguity(1000, 5, 2**40, 10**4)
    True
    """
    given = check(n_users=n_users, n_messages=n_messages, modulus=modulus, scale=scale, dimension=dimension)
    n, m = given["n_users"], given["n_messages"]
    groupings = math.lgamma(n * m + 1) - n * math.lgamma(m + 1)
    rare = dimension * (math.log(scale + 1) - math.log(modulus))
    data_sets = dimension * (n * math.log(scale + 1) - math.log(n * scale + 1))
    return float(groupings + (n - 1) * rare + _components(n, m, -rare) - data_sets) / math.log(2)


def _components(n: int, m: int, log_weight: float) -> float:
    """Logarithm of E[w^(c - 1)], c the components of a random m-regular bipartite multigraph on n + n vertices.

    The component of the first vertex has i of n vertices on either side; the rest is a graph of the same kind.
    """
    log_orders = gammaln(m * np.arange(n + 1.0) + 1)
    log_factorials = gammaln(np.arange(n + 1.0) + 1)
    connected, moments = np.zeros(n + 1), np.zeros(n + 1)
    for j in range(1, n + 1):
        i = np.arange(1, j + 1)
        chosen = 2 * (log_factorials[j] - log_factorials[i] - log_factorials[j - i]) + np.log(i / j)
        part = chosen + log_orders[i] + log_orders[j - i] - log_orders[j]
        connected[j] = math.log(-math.expm1(_log_sum(part[:-1] + connected[1:j])))
        moments[j] = log_weight + _log_sum(part + connected[i] + moments[j - i])
    return float(moments[n]) - log_weight


def _log_sum(logs: Values) -> float:
    if not len(logs):
        return -math.inf
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def messages_by_counting(n_users: int, modulus: int, scale: int, dimension: int = 1) -> int:
    """Smallest number of messages that counting leaves open: with fewer, most pairs of data sets are told apart.

    Examples
    --------
    >>> messages_by_counting(1000, 2**40, 10**4)
    5
    """
    low, high = 1, 2
    while ambiguity(n_users, high, modulus, scale, dimension) < 0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if ambiguity(n_users, middle, modulus, scale, dimension) < 0 else (low, middle)
    return high


def between(n_users: int, modulus: int, scale: int, messages: Sequence[int]) -> list[tuple[object, ...]]:
    """Total variation distance of data sets of equal sum, by messages: on average at least, of a swap, at most.

    Two data sets are at most n - 1 swaps apart, each of which stays on the grid, so some swap has 1 / (n - 1) of it.

    Examples
    --------
    >>> between(100, 2**31 - 1, 2**16, [3])  # doctest: +ELLIPSIS
    [(3, '1 - 2^-1050', 0.0101..., 1.0)]
    """
    rows: list[tuple[object, ...]] = []
    for m in messages:
        bits = ambiguity(n_users, m, modulus, scale)
        least = 1 - 2.0 ** max(bits, -50.0) if bits < 0 else 0.0
        said: object = f"1 - 2^{math.ceil(bits)}" if bits < -10 else least
        rows.append((m, said, least / (n_users - 1), min(1.0, float(users_distance(modulus, m, n_users)))))
    return rows


@dataclass(frozen=True, slots=True)
class Counted:
    """Messages of a user against the coordinates that are shuffled together: refuted below one curve, proven above.

    Attributes
    ----------
    apart : int
        What is proven enough for all these coordinates if each is shuffled on its own.
    """

    dimensions: Sequence[int]
    refuted: Values
    proven: Values
    apart: int
    parameters: Parameters

    def to_csv(self) -> str:
        """One row a dimension."""
        rows = zip(self.dimensions, self.refuted, self.proven, strict=True)
        return to_csv(["dimension", "smallest left open by counting", "enough by the theorem"], rows)


def compute_counted(n_users: int, modulus: int, scale: int, security_bits: float, dimensions: Sequence[int]) -> Counted:
    """Both for whole share vectors as units; the theorem's group has N^d elements."""
    refuted = [messages_by_counting(n_users, modulus, scale, d) for d in dimensions]
    proven = [messages_needed(security_bits, n_users, d * math.log2(modulus)) for d in dimensions]
    apart = messages_needed(security_bits + math.log2(max(dimensions)), n_users, math.log2(modulus))
    given: Parameters = {"n_users": n_users, "modulus": modulus, "scale": scale, "security_bits": security_bits}
    return Counted(tuple(dimensions), np.array(refuted, dtype=float), np.array(proven, dtype=float), apart, given)


def draw_counted(ax: Axes, record: Counted, pen: Pen) -> None:
    """Both curves, and the messages that suffice if each coordinate is shuffled on its own."""
    shown = {
        "enough, vectors as units (theorem)": (record.proven, "blue", "-", "o"),
        "told apart below (counting)": (record.refuted, "vermillion", (0, (6, 2)), "s"),
        "enough, each coordinate on its own": (
            np.full(len(record.dimensions), record.apart),
            "green",
            (0, (7, 2, 1.5, 2)),
            "",
        ),
    }
    for label, (values, hue, dash, marker) in shown.items():
        ax.plot(record.dimensions, values, color=pen.colour(hue), linestyle=dash, marker=marker, label=label)
    ax.set(xscale="log", yscale="log", xlabel=words("dimension"), ylabel=words("n_messages"))


# --- proofs and constants --------------------------------------------------------------------------------------------


def pairwise(cases: Sequence[tuple[int, int]]) -> list[tuple[object, ...]]:
    """Variance of how many other subsets have a sum: as if pairwise independent, and exact at most residues and at one.

    Examples
    --------
    >>> [tuple(round(float(x), 4) for x in row) for row in pairwise([(3, 2)])]
    [(3.0, 2.0, 0.8889, 0.4444, 1.7778)]
    """
    rows: list[tuple[object, ...]] = []
    for modulus, n_messages in cases:
        found = subset_moments(modulus, n_messages)
        rows.append((modulus, n_messages, found.mean * (1 - 1 / modulus), found.variance, found.variance_at_half))
    return rows


def tails(delta: float, users: Sequence[int]) -> list[tuple[object, ...]]:
    """Chance that no honest user adds noise, at the rate of Rule T1: as printed, exactly, and what is allowed.

    Examples
    --------
    >>> [(q, printed > allowed, exact) for _, q, printed, exact, allowed in tails(1e-6, [10])]
    [(1.0, True, 0.0)]
    """
    rows: list[tuple[object, ...]] = []
    for n in users:
        rate = min(1.0, math.log(2 / delta) / n)
        rows.append((n, rate, math.exp(-rate * n), (1 - rate) ** n, delta / 2))
    return rows


def released(epsilon: float, delta: float, n_users: int, budgets: Sequence[float]) -> list[tuple[object, ...]]:
    """Delta of the released sum with the noise of Rule T1: at each budget exactly, and the chance that there is none.

    Examples
    --------
    >>> [(budget, f"{exact:.1e}", f"{silent:.1e}") for budget, exact, silent in released(1.0, 1e-6, 1000, [0.5])]
    [(0.5, '2.2e-08', '4.5e-07')]
    """
    rule = noisy_rule(epsilon, delta, n_users)
    given = (n_users, rule.scale, rule.decay, rule.noise_rate)
    silent = (1 - rule.noise_rate) ** n_users
    return [(budget, float(thinned_sum(*given, epsilon=budget)), silent) for budget in budgets]


def repeats_left(n_users: int, scale: int, epsilon: float, delta: float) -> tuple[int, int, float]:
    """Messages, modulus and 2m^2/N where N is just above 3nk + 10/delta + 10/epsilon and m is 10 log2(nk/(eps delta)).

    Examples
    --------
    >>> n_messages, modulus, left = repeats_left(1000, 10**4, 1.0, 1e-6)
    >>> n_messages, modulus, round(left, 4)
    (432, 40000011, 0.0093)
    """
    n_messages = math.ceil(10 * math.log2(n_users * scale / (epsilon * delta)))
    modulus = _odd_above(3 * n_users * scale + round(10 / delta) + round(10 / epsilon))
    return n_messages, modulus, 2 * n_messages**2 / modulus


def tiny_error(n_users: int, epsilon: float, delta: float) -> tuple[int, int, float]:
    """Fewest messages m with error 2^-m, by two users' bound and swaps; the modulus; and delta by Lemma 1 instead.

    Examples
    --------
    >>> [tiny_error(n, 1.0, 1e-6)[0] for n in (2, 100, 1000)]
    [27, 51, 65]
    """
    swaps = n_users - 1
    chained = math.expm1(epsilon) / math.expm1(epsilon / swaps)
    smoothness, n_messages = math.tanh(epsilon / swaps / 2), 2
    modulus = _tiny_modulus(n_users, n_messages)
    while two_user_delta(modulus, n_messages, epsilon / swaps) * chained > delta:
        n_messages += 1
        modulus = _tiny_modulus(n_users, n_messages)
    return n_messages, modulus, chained * smooth_failure(modulus, n_messages, smoothness)


def _tiny_modulus(n_users: int, n_messages: int) -> int:
    return _odd_above(n_users**2 * 2**n_messages)


def _odd_above(bound: int) -> int:
    return bound + 1 + bound % 2


def looseness(cases: Sequence[tuple[int, int]], epsilon: float) -> list[tuple[object, ...]]:
    """Two users, 0 and 0 or 1 and -1: exact distance, the bound by variances, and delta by Lemma 5 at ``epsilon``.

    Examples
    --------
    >>> [tuple(round(float(x), 3) for x in row) for row in looseness([(3, 4)], 1.0)]
    [(3.0, 4.0, 0.11, 0.179, 16.593)]
    """
    smoothness = math.tanh(epsilon / 2)
    return [
        (
            modulus, m, shuffled_distance(modulus, m, (0, 0), (1, -1), 0),
            two_user_distance(modulus, m), swap_budget(modulus, m, smoothness).delta,
        )
        for modulus, m in cases
    ]  # fmt: skip


def crowds(modulus: int, n_messages: int, users: Sequence[int]) -> list[float]:
    """Exact total variation distance of all 0 from 1, -1 and all others 0, against the number of users.

    Examples
    --------
    >>> crowds(3, 2, [2, 4, 6]) == [4 / 9] * 3
    True
    """
    return [shuffled_distance(modulus, n_messages, [0] * n, [1, -1, *[0] * (n - 2)], 0) for n in users]


def word_bias(word_bits: int, modulus: int) -> float:
    """Total variation distance of a uniform word, reduced modulo N, from a uniform residue.

    Examples
    --------
    >>> round(word_bias(32, 3 * 2**30), 4), word_bias(32, 2**20)
    (0.1667, 0.0)
    """
    words = 1 << word_bits
    over = words % modulus
    return over * (modulus - over) / (modulus * words)
