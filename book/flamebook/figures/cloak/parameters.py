"""Parameters of cloak aggregation: rules with and without noise, what noise is needed, bits and errors, plans."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flamebook.figures.cloak.told import number
from flamebook.records import Curves
from flamebook.statements import AtMost, at_most, counted, listed, percent, times
from flamelib.accounting.noise.discrete_laplace import shared_noise
from flamelib.accounting.noise.sum_laws import ThinnedNoise
from flamelib.accounting.noise.sums import polya_sum, thinned_sum
from flamelib.accounting.splitting.costs import Cost, cost
from flamelib.accounting.splitting.crowds import least_messages
from flamelib.accounting.splitting.lemmas import modulus_bits
from flamelib.accounting.splitting.plans import plans
from flamelib.accounting.splitting.rules import (
    exact_rule,
    noisy_rule,
    security_needed,
    sharp_exact_rule,
    sharp_noisy_rule,
)
from flamelib.core.vocabulary import DomainError

Rows = list[tuple[Any, ...]]

STEPS = 12

# --- rules -----------------------------------------------------------------------------------------------------------


NOISY_HEADER = (
    *("epsilon", "delta", "n", "T1: m", "N", "bits", "noise, bound"),
    *("two users: m", "bits", "Pólya: m", "bits", "noise"),
)
EXACT_HEADER = (
    *("epsilon", "delta", "n", "error", "k", "T2: m", "N", "bits"),
    *("two users: m", "bits", "components: m", "bits"),
)
PLAN_HEADER = ("theorem", "neighbours", "m", "N", "k", "rounding", "noise", "bits", "error")


def noisy_rows(settings: Sequence[tuple[float, float, int]]) -> Rows:
    """For a table, as in ``NOISY_HEADER``: rule T1's messages, bits and noise, then those of its relatives."""
    rows: Rows = []
    for epsilon, delta, n in settings:
        rule, sharp, mix = noisy_rule(epsilon, delta, n), sharp_noisy_rule(epsilon, delta, n), _mixed(n, epsilon, delta)
        told = (rule.n_messages, f"{rule.modulus:,}", rule.bits, AtMost(rule.noise_bound))
        rows.append((epsilon, delta, n, *told, sharp.n_messages, sharp.bits, mix.messages, mix.bits, mix.error))
    return rows


def exact_rows(settings: Sequence[tuple[float, float, int, float]]) -> Rows:
    """For a table, as in ``EXACT_HEADER``: rule T2's grid, messages and bits, then those by sharper bounds."""
    rows: Rows = []
    for epsilon, delta, n, error in settings:
        rule, sharp = exact_rule(epsilon, delta, n, error), sharp_exact_rule(epsilon, delta, n, error)
        modulus = n * rule.scale + 1
        all_users = least_messages(-math.log2(delta), n, modulus)
        told = (rule.scale, rule.n_messages, f"{rule.modulus:,}", rule.bits, sharp.n_messages, sharp.bits)
        rows.append((epsilon, delta, n, error, *told, all_users, all_users * modulus_bits(modulus)))
    return rows


def noisy_words(row: Sequence[Any]) -> dict[str, str]:
    """How many times as many messages rule T1 takes as Pólya shares, in a row of the table.

    >>> noisy_words((1.0, 1e-6, 100, 30, "101", 300, 5.0, 20, 200, 12, 120, 1.5))
    {'message_ratio': '2.5'}
    """
    told = dict(zip(NOISY_HEADER, row, strict=True))
    return {"message_ratio": number(told["T1: m"] / told["Pólya: m"])}


def exact_words(rows: Rows) -> dict[str, str]:
    """The largest share, in percent, of rule T2's bits that is needed where components are counted.

    >>> exact_words([(1, 1e-6, 9, 0.1, 4, 5, "37", 200, 4, 100, 3, bits) for bits in (50, 60)])
    {'share_of_bits': '30'}
    """
    rule = EXACT_HEADER.index("bits")
    return {"share_of_bits": at_most(100 * max(row[-1] / row[rule] for row in rows), 2)}


# --- noise -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Noises:
    """Noise of the sum, three ways: that of rule T1, the least of its kind, and Pólya shares.

    ``half_delta`` is the failure probability that the sum may use; ``decays`` and ``noise_rate`` describe the first
    two.
    """

    n_users: int
    scale: int
    epsilon: float
    half_delta: float
    noise_rate: float
    decays: tuple[float, float]
    bound: float

    @property
    def errors(self) -> tuple[float, float, float]:
        """Mean absolute error of the sum of values in [0, 1] by each."""
        thinned = [ThinnedNoise(self.n_users, decay, self.noise_rate) for decay in self.decays]
        rule, lean = (math.exp(noise.log_mean) / self.scale for noise in thinned)
        return rule, lean, shared_noise(self.scale, self.epsilon).mean_error

    def thinned(self, which: int, epsilon: float | None = None, delta: float | None = None) -> float:
        """Delta at an epsilon, or epsilon at a delta, of the noise of some users."""
        return float(thinned_sum(self.n_users, self.scale, self.decays[which], self.noise_rate, epsilon, delta))

    def polya(self, epsilon: float | None = None, delta: float | None = None) -> float:
        """The same of Pólya shares."""
        decay = shared_noise(self.scale, self.epsilon).decay
        return float(polya_sum(self.n_users, self.scale, decay, epsilon, delta))

    def rows(self) -> Rows:
        """For a table: mean error, and the epsilon that the sum has."""
        reached = (*(self.thinned(which, delta=self.half_delta) for which in (0, 1)), self.polya(delta=0.0))
        names = ("rule T1", "the same users, least noise", "Pólya shares of all users")
        deltas = (self.half_delta, self.half_delta, 0.0)
        return list(zip(names, self.errors, map(AtMost, reached), deltas, strict=True))

    def words(self) -> dict[str, str]:
        """The least noise of rule T1's kind, in percent of its own."""
        return {"lean": percent(self.errors[1] / self.errors[0])}


def compute_noises(n_users: int, epsilon: float, delta: float) -> Noises:
    """Rule T1's noise at ten steps a user, and the least noise of as many users that keeps half of delta."""
    rule = noisy_rule(epsilon, delta, n_users)

    def kept(spread: float) -> bool:
        found = thinned_sum(n_users, rule.scale, _decay(spread, rule.scale), rule.noise_rate, epsilon=epsilon)
        return found <= delta / 2

    low, high = 0.0, -1 / (rule.scale * math.log(rule.decay))
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    decays = (rule.decay, _decay(high, rule.scale))
    return Noises(n_users, rule.scale, epsilon, delta / 2, rule.noise_rate, decays, rule.noise_bound)


def _decay(spread: float, scale: int) -> float:
    return math.exp(-1 / (spread * scale))


def compute_released(noises: Noises, epsilons: Sequence[float]) -> Curves:
    """Delta of the released sum alone against epsilon, by each noise; NaN where it is 0."""
    schemes: Mapping[str, Callable[[float], float]] = {
        "rule-t1": lambda epsilon: noises.thinned(0, epsilon=epsilon),
        "least-thinned": lambda epsilon: noises.thinned(1, epsilon=epsilon),
        "polya": lambda epsilon: noises.polya(epsilon=epsilon),
    }
    curves = {name: np.array([scheme(epsilon) or math.nan for epsilon in epsilons]) for name, scheme in schemes.items()}
    given = {"n_users": noises.n_users, "scale": noises.scale, "noise_rate": noises.noise_rate}
    return Curves("epsilon", "delta", np.asarray(epsilons, dtype=float), curves, given)


# --- cost ------------------------------------------------------------------------------------------------------------


def _mixed(n_users: int, epsilon: float, delta: float) -> Cost:
    """Pólya noise and the least number of messages for all users together, N = 30 n^2 + 1."""
    scale = 10 * n_users
    modulus = 3 * n_users * scale + 1
    messages = least_messages(security_needed(epsilon, delta), n_users, modulus)
    return Cost(messages, messages * modulus_bits(modulus), shared_noise(scale, epsilon).mean_error)


def _sharp(n_users: int, epsilon: float, delta: float) -> Cost:
    rule = sharp_noisy_rule(epsilon, delta, n_users)
    return Cost(rule.n_messages, rule.bits, rule.noise_bound)


def _known(protocol: str) -> Callable[[int, float, float], Cost]:
    return lambda n_users, epsilon, delta: cost(protocol, n_users, epsilon, delta)


COSTS: Mapping[str, Callable[[int, float, float], Cost]] = {
    "bonawitz": _known("cmp-bon"),
    "rule-t1": _known("cmp-t1"),
    "sharp-t1": _sharp,
    "mix-best-1": _known("cmp-ikos"),
    "mix-own-3": _mixed,
    "recursive": _known("cmp-rec"),
    "one-message": _known("cmp-blanket"),
    "local": _known("cmp-local"),
}

SAME_ERROR = ("bonawitz", "sharp-t1", "mix-best-1")


def compute_costs(users: Sequence[int], epsilon: float, delta: float) -> tuple[Curves, Curves]:
    """Bits of a user, and the error of the sum, against the number of users, by each protocol whose cost is known.

    Protocols with the same noise have one error, and a sum without noise has none.
    """
    found = {name: [_tried(protocol, int(n), epsilon, delta) for n in users] for name, protocol in COSTS.items()}
    x, given = np.asarray(users, dtype=float), {"epsilon": epsilon, "delta": delta}
    bits = {name: np.array([one[0] for one in costs]) for name, costs in found.items()}
    errors = {name: np.array([one[1] for one in costs]) for name, costs in found.items() if name not in SAME_ERROR}
    return Curves("n_users", "bits", x, bits, given), Curves("n_users", "error", x, errors, given)


def cost_words(bits: Curves, errors: Curves) -> dict[str, str]:
    """What the page says of costs: bits of Pólya noise, and the errors of single messages beside its own.

    Examples
    --------
    >>> x, none = np.array([20.0, 100.0]), np.array([np.nan, np.nan])
    >>> bits = Curves("n_users", "bits", x, {"mix-own-3": np.array([300.0, 200.0])})
    >>> one, ten = np.ones(2), np.array([10.0, 20.0])
    >>> errors = Curves("n_users", "error", x, {"mix-own-3": one, "one-message": ten, "recursive": none, "local": none})
    >>> for words in cost_words(bits, errors).values():
    ...     print(words)
    for 200 to 300 bits, from 20 to 100 users
    at 100 users that of one message with a blanket is 20 times as large as with Pólya noise
    >>> cost_words(Curves("n_users", "bits", x, {"mix-own-3": none}), errors)["polya_bits"]
    'wherever it has parameters, which is nowhere on these axes'
    """
    found = bits.curves["mix-own-3"]
    known = np.flatnonzero(np.isfinite(found))
    if not len(known):
        nowhere = "wherever it has parameters, which is nowhere on these axes"
        return {"polya_bits": nowhere, "single_errors": "there is no Pólya noise to set them against at this budget"}
    low, high = number(float(found[known].min())), number(float(found[known].max()))
    first, last = f"{bits.x[known[0]]:,.0f}", f"{bits.x[known[-1]]:,.0f}"
    names = {
        "one-message": "one message with a blanket",
        "recursive": "its recursive successor",
        "local": "local noise",
    }
    at = known[-1]
    ratios = {words: float(errors.curves[name][at] / errors.curves["mix-own-3"][at]) for name, words in names.items()}
    told = [f"that of {words} is {times(ratio)}" for words, ratio in ratios.items() if math.isfinite(ratio)]
    return {
        "polya_bits": f"for {low} to {high} bits, from {first} to {last} users",
        "single_errors": f"at {last} users {listed(told)} as large as with Pólya noise",
    }


def plan_words(rows: Rows) -> str:
    """How many theorems have parameters, the cheapest of them, and what hiding one user behind Pólya shares saves.

    >>> plan_words([])
    'no theorem has parameters at this error: it takes a larger one, or a larger budget'
    >>> plan_words([("cloak:own-3", "replace-one", 8, "101", 17, "random", "Pólya", 120, 1.9)])
    '1 choice of theorem and neighbours has parameters; the cheapest, cloak:own-3 with replace-one, takes 120 bits'
    >>> shares = [(f"cloak:own-{i}", "", m, "", 17, "", "Pólya", 15 * m, 1.9) for i, m in ((6, 6), (3, 8))]
    >>> plan_words(shares).partition("; 6")[2]
    " messages hide one user's value behind Pólya noise, where the bound for all users asks for 8"
    """
    if not rows:
        return "no theorem has parameters at this error: it takes a larger one, or a larger budget"
    theorem, neighbours, *_, size, _ = rows[0]
    count = counted(len(rows), "choice of theorem and neighbours has", "choices of theorem and neighbours have")
    told = f"{count} parameters; the cheapest, {theorem} with {neighbours}, takes {size:,} bits"
    shares = {row[0]: int(str(row[2])) for row in rows if row[6] == "Pólya"}
    if not {"cloak:own-3", "cloak:own-6"} <= shares.keys():
        return told
    all_users, one_user = shares["cloak:own-3"], shares["cloak:own-6"]
    hidden = f"{one_user} messages hide one user's value behind Pólya noise"
    return f"{told}; {hidden}, where the bound for all users asks for {all_users}"


def _tried(
    protocol: Callable[[int, float, float], Cost], n_users: int, epsilon: float, delta: float
) -> tuple[float, float]:
    """Bits and error; NaN where the protocol has no parameters."""
    try:
        found = protocol(n_users, epsilon, delta)
    except DomainError:
        return math.nan, math.nan
    return found.bits, found.error


def plan_rows(n_users: int, epsilon: float, delta: float, error: float, colluding: int, dimension: int) -> Rows:
    """For a table, as in ``PLAN_HEADER``: what each theorem asks for, cheapest first."""
    found = plans(n_users, epsilon, delta, error, colluding, dimension)
    return [
        (
            one.theorem,
            str(one.adjacency),
            one.n_messages,
            f"{one.modulus:,}",
            one.scale,
            one.rounding,
            one.noise,
            one.bits,
            AtMost(one.error),
        )
        for one in found
    ]
