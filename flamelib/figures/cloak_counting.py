"""How many messages are too few: data sets of equal sum told apart by counting the groups that messages can form."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from scipy.special import gammaln

from flamelib.accounting.splitting.crowds import users_distance
from flamelib.accounting.splitting.lemmas import messages_needed
from flamelib.core.vocabulary import check
from flamelib.figures.curves import Parameters, Values, to_csv, words
from flamelib.figures.style import Pen


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
