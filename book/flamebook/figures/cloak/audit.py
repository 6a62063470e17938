"""Statements on cloak aggregation that do not hold, or say less than they seem to: the smallest cases, in numbers.

Where a sum of shares goes wrong (overflow, messages lost or sent twice, values nobody may hold), what goes right stands
beside it.  Rounds are run side by side, as coordinates of one vector with a shuffle each.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import binomtest, chisquare

from flamebook.attacks.shortcuts import CONFIDENCE
from flamebook.attacks.too_few import Counted, Moduli
from flamebook.figures.style import Pen
from flamebook.records import words
from flamebook.statements import listed, percent
from flamelib.accounting.noise.sums import thinned_sum
from flamelib.accounting.splitting.lemmas import smooth_failure, swap_budget
from flamelib.accounting.splitting.rules import noisy_rule
from flamelib.accounting.splitting.small_worlds import shuffled_distance, subset_moments
from flamelib.accounting.splitting.two_users import two_user_delta, two_user_distance
from flamelib.core.arrays import Wholes
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms.integers.modular import add_up
from flamelib.mechanisms.integers.randomness import Simulation
from flamelib.protocols.cloak import CloakProtocol, analyze, pool, scaled, shuffler, split, total


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


def tiny_rows(users: Sequence[int], epsilon: float, delta: float) -> list[tuple[object, ...]]:
    """For a table: users, those messages, bits of the modulus, that delta."""
    rows: list[tuple[object, ...]] = []
    for n in users:
        n_messages, modulus, failure = tiny_error(n, epsilon, delta)
        rows.append((n, n_messages, math.log2(modulus), failure))
    return rows


def sum_rows(modulus: int, messages: Sequence[int]) -> list[tuple[object, ...]]:
    """For a table: messages, and the exact distance of 0, 0 from two users with that sum and with another one."""
    others = ((1, modulus - 1), (1, 0))
    return [(m, *(shuffled_distance(modulus, m, (0, 0), other, 0) for other in others)) for m in messages]


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


def verdict_rows(
    verdicts: Mapping[str, str],
    *,
    four: float,
    units: float,
    loose: float,
    tight: float,
    clipped: float,
) -> list[tuple[str, ...]]:
    """For a table: a reading of the documents, verdict and row of the ledger, a case against it, what is true instead.

    Parameters
    ----------
    verdicts : mapping
        Rows of the ledger and their verdicts: the readings are of printed texts, which no run changes.
    four : float
        Share of 300 users' values recovered from four messages each.
    units : float
        The same of 3 share vectors of 2 coordinates, shuffled as units.
    loose, tight : float
        The same with one message of eight encrypted, at a modulus with room and at the smallest.
    clipped : float
        Expectation of the clipped estimate of 0, five users.
    """  # fmt: skip
    readings = [
        ("few messages suffice in practice", "alg-1/smaller",
         f"m = 2 at any n; m = 4, n = 300: {_recovered(four)}; n = 1000 by counting", "m by the bound for all users"),
        ("seeds, shuffled as units, may stand for share vectors", "seed/units",
         f"3 messages, 2 coordinates: {_recovered(units)}", "each coordinate shuffled on its own"),
        ("encrypting one message is enough, even where the output is seen", "encrypt-one/all-sides",
         f"{_recovered(loose)} at a loose N, {_recovered(tight)} at the tightest", "all messages encrypted"),
        ("the estimate is unbiased", "alg-2/biased", f"5 users: {clipped:.3f} for 0", "centred, with room in N"),
        ("subsets' sums are pairwise independent", "lemma-1/pairwise", "N = 3, m = 2",
         "exact moments; the lemma survives"),
        ("error 2^-m follows from Lemma 1", "thm-2/from-lemma-1", "every n and m", "true by two users' bound"),
    ]  # fmt: skip
    return [(said, verdicts[f"cloak:{row}"], f"cloak:{row}", case, true) for said, row, case, true in readings]


def _recovered(share: float) -> str:
    """A share of values that an attack recovered, in words.

    >>> _recovered(0.996), _recovered(1.0), _recovered(0.0)
    ('99.6% recovered', '100% recovered', 'nobody recovered in this run')
    """
    return f"{100 * share:.3g}% recovered" if share else "nobody recovered in this run"


BLOCK = 10**6

# --- overflow --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sums:
    """Whether the sum modulo N is right, by ways to add."""

    largest: bool
    n_messages: int
    modulus: int
    size: float
    right: dict[str, bool]

    def row(self) -> tuple[object, ...]:
        """For a table: which messages, how many, modulus, true sum in units of 2^63, right or not by each way."""
        kind = "all N - 1" if self.largest else "uniform"
        return kind, self.n_messages, self.modulus, self.size, *self.right.values()


def compute_sums(n_users: int, n_messages: int, modulus: int, largest: bool, seed: int) -> Sums:
    """Messages of a round, as large as they can be or uniform, added up in 64-bit words, doubles, and by blocks.

    Examples
    --------
    >>> compute_sums(10**6, 9, 2**40 - 87, True, seed=1).right
    {'int64': False, 'uint64': True, 'float64': False, 'blocks': True}
    """
    check(n_users=n_users, n_messages=n_messages, modulus=modulus, seed=seed)
    rng, count = np.random.default_rng(seed), n_users * n_messages
    if largest:
        messages = np.broadcast_to(np.int64(modulus - 1), (count,))
        exact = count * (modulus - 1)
    else:
        messages = rng.integers(0, modulus, size=count)
        exact = sum(int(messages[start : start + BLOCK].sum()) for start in range(0, count, BLOCK))
    said = {name: int(messages.sum(dtype=name)) for name in ("int64", "uint64", "float64")}
    right = {name: one % modulus == exact % modulus for name, one in said.items()}
    return Sums(
        largest,
        n_messages,
        modulus,
        exact / 2**63,
        right | {"blocks": int(add_up(messages, modulus)) == exact % modulus},
    )


# --- messages that are lost or sent twice ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Damage:
    """Rounds in which something happened to the messages: how often the sum was right, and what was refused.

    Attributes
    ----------
    uniform : float
        The p-value of a chi-squared test that the error is uniform over the residues.
    """

    what: str
    refused: bool
    right: int
    repeats: int
    uniform: float

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper-Pearson interval of the chance that the sum is right."""
        found = binomtest(self.right, self.repeats).proportion_ci(CONFIDENCE, method="exact")
        return float(found.low), float(found.high)

    def row(self) -> tuple[object, ...]:
        """For a table: what happened, whether it is refused, right of so many rounds, interval, p-value."""
        low, high = self.interval
        said = "no error" if self.right == self.repeats else self.uniform
        return self.what, self.refused, f"{self.right:,} of {self.repeats:,}", f"{low:.4f} to {high:.4f}", said


def compute_damage(protocol: CloakProtocol, repeats: int, seed: int) -> list[Damage]:
    """Rounds whose shuffled messages arrive whole, or with one lost, one twice, or one lost and another one twice.

    Examples
    --------
    >>> [(one.refused, one.right) for one in compute_damage(CloakProtocol(5, 61, 4, 4), 1000, seed=1)]
    [(False, 1000), (True, 17), (True, 17), (False, 15)]
    """
    check(repeats=repeats, seed=seed)
    rng = np.random.default_rng(seed)
    values = rng.integers(0, protocol.scale + 1, size=(protocol.n_users, repeats))
    seen = shuffler(pool(split(protocol, values, Simulation(rng))), Simulation(rng))
    cases = {
        "nothing": seen,
        "one message lost": seen[:, 1:],
        "one message twice": np.concatenate([seen, seen[:, :1]], axis=1),
        "one lost, another twice": np.concatenate([seen[:, 1:], seen[:, 1:2]], axis=1),
    }
    truth = values.sum(axis=0) % protocol.modulus
    return [_damage(protocol, what, got, truth) for what, got in cases.items()]


def _damage(protocol: CloakProtocol, what: str, messages: Wholes, truth: Wholes) -> Damage:
    errors = (add_up(messages, protocol.modulus) - truth) % protocol.modulus
    counts = np.bincount(errors, minlength=protocol.modulus)
    return Damage(what, _refused(protocol, messages), int(counts[0]), len(truth), float(chisquare(counts).pvalue))


def _refused(protocol: CloakProtocol, messages: Wholes) -> bool:
    try:
        total(protocol, messages)
    except DomainError:
        return True
    return False


# --- values ----------------------------------------------------------------------------------------------------------


def lost_units(grid: int) -> tuple[int, ...]:
    """How many of the points i / grid do not become i: by a double's product, its exact value, ours on the grid.

    Examples
    --------
    >>> lost_units(100), lost_units(10**4)
    ((3, 44, 0), (573, 4994, 0))
    """
    values = np.arange(grid + 1) / grid
    wholes = range(grid + 1)
    double = sum(math.floor(x * grid) != i for x, i in zip(values.tolist(), wholes, strict=True))
    exact = sum(math.floor(Fraction(x) * grid) != i for x, i in zip(values.tolist(), wholes, strict=True))
    protocol = CloakProtocol(2, 2 * grid + 1, grid, 2, rounding="grid")
    ours = scaled(protocol, values, Simulation(np.random.default_rng(0)))
    return double, exact, int((ours != np.arange(grid + 1)).sum())


def lost_rows(grids: Sequence[int]) -> list[tuple[object, ...]]:
    """For a table: a grid, its points, and those that are lost in each way."""
    return [(f"i/{grid}", grid + 1, *lost_units(grid)) for grid in grids]


def admitted(values: list[float], scale: int) -> list[tuple[object, ...]]:
    """What a cast to 64 bits makes of values outside [0, 1], and what this library does; rows for a table.

    Examples
    --------
    >>> admitted([-0.5, 1.5], 100)
    [(-0.5, -50, 'refused'), (1.5, 150, 'refused')]
    """
    protocol = CloakProtocol(2, 2 * scale + 1, scale, 2)
    with np.errstate(invalid="ignore"):
        cast = np.floor(np.array(values) * scale).astype(np.int64)
    return [(value, int(whole), _scaled(protocol, value)) for value, whole in zip(values, cast, strict=True)]


def _scaled(protocol: CloakProtocol, value: float) -> object:
    try:
        return int(scaled(protocol, [value], Simulation(np.random.default_rng(0)))[0])
    except DomainError:
        return "refused"


def poisoned(protocol: CloakProtocol, wanted: float, seed: int) -> tuple[float, float]:
    """Estimates of a round of honest users, and of one in which the last shifts an honest guess to ``wanted``.

    Examples
    --------
    >>> honest, shifted = poisoned(CloakProtocol(1000, 2**40 - 87, 10**4, 4), 0.0, seed=1)
    >>> 400 < honest < 600, shifted < 60
    (True, True)
    """
    check(seed=seed)
    rng = np.random.default_rng(seed)
    values = rng.integers(0, protocol.scale + 1, size=protocol.n_users)
    liar = values.copy()
    liar[-1] += round(wanted * protocol.scale) - protocol.n_users * protocol.scale // 2
    found = [total(protocol, pool(split(protocol, one % protocol.modulus, Simulation(rng)))) for one in (values, liar)]
    honest, shifted = (float(analyze(protocol, one)) for one in found)
    return honest, shifted


def poisoned_rows(protocol: CloakProtocol, wanted: Sequence[float], seed: int) -> list[tuple[str, ...]]:
    """For a table: what the liar wants, and both estimates."""
    return [(f"{one:g}", *(f"{found:.1f}" for found in poisoned(protocol, one, seed))) for one in wanted]


def rise_words(record: Moduli) -> dict[str, str]:
    """How many bits of the modulus lie between nothing and everything, and what is recovered at both ends.

    >>> moduli = Moduli((2**3, 2**5, 2**6), {2: np.array([0.0, 0.4, 1.0])}, 0, {"scale": 1})
    >>> rise_words(moduli)
    {'rise': '3 bits at most', 'ends': 'm = 2 from 0 % to 100 %'}
    """
    none = [record.loose[values <= 0.01] for values in record.shares.values()]
    full = [record.loose[values >= 0.99] for values in record.shares.values()]
    widths = [float(high[0] - low[-1]) for low, high in zip(none, full, strict=True) if len(low) and len(high)]
    ends = [f"m = {m} from {percent(values[0])} to {percent(values[-1])}" for m, values in record.shares.items()]
    return {
        "rise": f"{math.ceil(max(widths) - 1e-6)} bits at most" if widths else "more bits than were tried",
        "ends": listed(ends),
    }


MARKS = {2: ("blue", "o", "-"), 3: ("ochre", "s", (0, (6, 2))), 4: ("vermillion", "^", (0, (7, 2, 1.5, 2)))}


def draw_moduli(ax: Axes, record: Moduli, pen: Pen) -> None:
    """A curve a number of messages; on the left the smallest modulus that noise may have, 3nk."""
    for m, values in record.shares.items():
        hue, marker, dash = MARKS[m]
        ax.plot(record.loose, values, color=pen.colour(hue), marker=marker, linestyle=dash, label=f"m = {m}")
    ax.axvline(math.log2(3 * float(record.parameters["n_users"])), color=pen.colour("grey"), linestyle=":",
               label="N = 3nk")  # fmt: skip
    ax.set(xlabel=r"$\log_2(N/k)$", ylabel="share of values recovered for certain", ylim=(-0.03, 1.03))


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
