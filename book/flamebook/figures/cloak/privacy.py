"""What shuffled shares tell beside the sum: exact distances, estimates, and every bound on them.

Two users first, as far as all multisets can be counted and by sampling beyond; then a crowd.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from flamebook.figures.cloak.told import first_at_most, number
from flamebook.figures.curves import draw_curves
from flamebook.figures.style import Pen
from flamebook.records import Curves, Parameters, columns_csv, words
from flamebook.statements import AtMost, Finding, at_least, compared, every, times
from flamelib.accounting.splitting.crowds import least_messages, users_distance
from flamelib.accounting.splitting.lemmas import messages_needed, smooth_failure
from flamelib.accounting.splitting.small_worlds import shuffled_distance, subset_tables
from flamelib.accounting.splitting.swaps import least_messages_behind, swap_distance
from flamelib.accounting.splitting.two_users import second_moment_delta, two_user_delta, two_user_distance
from flamelib.core.arrays import Reals
from flamelib.core.search import least_whole_beyond
from flamelib.core.vocabulary import DomainError, check

Rows = list[tuple[Any, ...]]

FIRST, OTHER = (0, 0), (1, -1)
FAINTEST = 1e-12
BLOCK = 256
STEPS = 10  # of the grid for each user, as in the deployments of the page
CLOSED_FORM = 19  # users from which on the theorem in closed form is proven

# --- two users -------------------------------------------------------------------------------------------------------


SMALL_HEADER = ("N", "m = 2", "m = 3", "m = 4", "exact, m = 4", "bound", "Lemma 1")  # of rows up to four messages


def small_rows(moduli: Sequence[int], most: int, epsilon: float) -> Rows:
    """For a table: exact total variation of (0, 0) and (1, -1) with two messages and more, and bounds at the most."""
    return [
        (
            modulus,
            *(str(_fraction(modulus, m)) for m in range(2, most + 1)),
            shuffled_distance(modulus, most, FIRST, OTHER, 0),
            AtMost(two_user_distance(modulus, most)),
            AtMost(smooth_failure(modulus, most, math.tanh(epsilon / 2))),
        )
        for modulus in moduli
    ]


def small_words(rows: Rows) -> dict[str, str]:
    """The least that Lemma 1 says in these rows.

    >>> small_words([(3, 0.2, 1.234), (5, 0.1, 1.5)])
    {'lemma_1': '1.2'}
    """
    return {"lemma_1": at_least(min(row[-1] for row in rows), 2)}


def _fraction(modulus: int, n_messages: int) -> Fraction:
    """The distance as a fraction: a multiple of one over the number of draws."""
    draws = modulus ** (2 * (n_messages - 1))
    return Fraction(round(shuffled_distance(modulus, n_messages, FIRST, OTHER, 0) * draws), draws)


def compute_two_users(modulus: int, messages: Sequence[int], epsilon: float) -> Curves:
    """Exact distance of two users' shares and its bounds against the number of messages, at 0 and at an epsilon.

    Exact ones are left out where none can be enumerated.
    """
    slack = math.tanh(epsilon / 2)
    schemes: Mapping[str, Callable[[int], float]] = {
        "lemma-5": lambda m: smooth_failure(modulus, m, slack),
        "own-1": lambda m: two_user_distance(modulus, m),
        "exact-distance": lambda m: _enumerated(modulus, m, 0.0),
        "own-2": lambda m: two_user_delta(modulus, m, epsilon),
        "own-5": lambda m: second_moment_delta(modulus, m, epsilon),
        "exact-delta": lambda m: _enumerated(modulus, m, epsilon) or math.nan,
    }
    every = {name: np.array([scheme(m) for m in messages]) for name, scheme in schemes.items()}
    curves = {name: values for name, values in every.items() if np.isfinite(values).any()}
    given: Parameters = {"modulus": modulus, "epsilon": epsilon}
    return Curves("n_messages", "distance", np.asarray(messages, dtype=float), curves, given)


def _enumerated(modulus: int, n_messages: int, epsilon: float) -> float:
    try:
        return shuffled_distance(modulus, n_messages, FIRST, OTHER, epsilon)
    except DomainError:
        return math.nan


@dataclass(frozen=True, slots=True)
class Sampled:
    """Distances estimated from shares that were drawn, with their standard errors, and bounds on them.

    Attributes
    ----------
    x : array of shape (points,)
        Messages of each user.
    distance, error : array of shape (points,)
        Mean and standard error of half the gap between two subset counts.
    bounds : mapping from name to an array of shape (points,)
    """

    x: Reals
    distance: Reals
    error: Reals
    bounds: Mapping[str, Reals]
    parameters: Parameters = field(default_factory=dict)

    def to_csv(self) -> str:
        """One row a number of messages."""
        measured = {"n_messages": self.x, "distance": self.distance, "standard_error": self.error}
        return columns_csv({**measured, **self.bounds})

    @property
    def bounded(self) -> Finding:
        """Whether no estimate exceeds the sharper bound by more than five standard errors; one draw has none."""
        return compared(self.distance - 5 * self.error, "<=", self.bounds["own-1"])


def compute_sampled(modulus: int, messages: Sequence[int], epsilon: float, repeats: int, seed: int) -> Sampled:
    r"""Total variation of two users' shares as :math:`\frac12E|\frac NC(B_0-B_1)|`, by drawing shares.

    Subsets of drawn shares are counted exactly, 32 messages a user at most.
    """
    check(modulus=modulus, repeats=repeats, seed=seed)
    streams = np.random.default_rng(seed).spawn(len(messages))
    gaps = [_gaps(modulus, m, repeats, rng) for m, rng in zip(messages, streams, strict=True)]
    bounds = {
        "lemma-5": np.array([smooth_failure(modulus, m, math.tanh(epsilon / 2)) for m in messages]),
        "own-1": np.array([two_user_distance(modulus, m) for m in messages]),
    }
    given: Parameters = {"modulus": modulus, "epsilon": epsilon, "repeats": repeats, "seed": seed}
    mean = np.array([gap.mean() for gap in gaps])
    error = np.array([gap.std(ddof=1) / math.sqrt(repeats) if repeats > 1 else math.nan for gap in gaps])
    return Sampled(np.asarray(messages, dtype=float), mean, error, bounds, given)


def _gaps(modulus: int, n_messages: int, repeats: int, rng: np.random.Generator) -> Reals:
    shares = rng.integers(0, modulus, (repeats, 2 * n_messages))
    shares[:, -1] = -shares[:, :-1].sum(axis=1) % modulus
    blocks = np.array_split(shares, 1 + repeats // BLOCK)
    gaps = [np.abs(np.subtract(*subset_tables(block, modulus)[:, :2].T)) for block in blocks]
    return np.asarray(np.concatenate(gaps) * (modulus / 2 / math.comb(2 * n_messages, n_messages)))


def draw_sampled(ax: Axes, record: Sampled, pen: Pen) -> None:
    """Estimates with bars of two standard errors, bounds as curves."""
    ax.set(yscale="log", xlabel=words("n_messages"), ylabel=words("distance"))
    for name, values in record.bounds.items():
        ax.plot(record.x, values, **pen.line(name))
    style = pen.line("sampled-distance")
    ax.errorbar(record.x, record.distance, yerr=2 * record.error, capsize=3, **style)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_by_messages(ax: Axes, record: Curves, pen: Pen) -> None:
    """Curves on a logarithmic scale against a whole number."""
    draw_curves(ax, record, pen)
    ax.set_xscale("linear")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_by_epsilon(ax: Axes, record: Curves, pen: Pen) -> None:
    """Curves on a logarithmic scale against a budget, down to where nobody can tell any more."""
    draw_curves(ax, record, pen)
    ax.set_xscale("linear")
    ax.set_ylim(max(FAINTEST, ax.get_ylim()[0]), 1)


# --- a crowd ---------------------------------------------------------------------------------------------------------


def compute_crowd(modulus: int, messages: Sequence[int], users: Sequence[int]) -> Curves:
    """Exact total variation of (0, 0, 0, ...) and (1, -1, 0, ...) against users, and bounds from three messages on.

    One bound is for all inputs, the other for those that are one swap of two users apart, as these are.
    """
    exact = {
        f"exact-distance:m = {m}": np.array(
            [shuffled_distance(modulus, m, (0,) * n, (1, -1) + (0,) * (n - 2), 0) for n in users]
        )
        for m in messages
    }
    kinds = {"own-4": swap_distance, "own-3": users_distance}
    bounds = {
        f"{name}:m = {m}": np.array([float(bound(modulus, m, n)) for n in users])
        for name, bound in kinds.items()
        for m in messages
        if m > 2  # two hide nothing in a crowd
    }
    return Curves("n_users", "distance", np.asarray(users, dtype=float), exact | bounds, {"modulus": modulus})


def compute_needed(users: Sequence[int], security_bits: float, log2_modulus: int) -> Curves:
    """Messages per user that keep all data sets of equal sum together, against users: swap by swap, and all at once.

    Behind Pólya shares of all users they hide one user's value, which moves by ten steps for each user.
    """
    modulus = 2**log2_modulus
    schemes: Mapping[str, Callable[[int], float]] = {
        "chained": lambda n: _chained(security_bits, n, modulus),
        "best-1": lambda n: _closed(security_bits, n, log2_modulus),
        "own-3": lambda n: least_messages(security_bits, n, modulus),
        "own-6": lambda n: least_messages_behind(2.0**-security_bits, n, modulus, STEPS * n),
    }
    curves = {name: np.array([scheme(int(n)) for n in users], dtype=float) for name, scheme in schemes.items()}
    given: Parameters = {"security_bits": security_bits, "log2_modulus": log2_modulus}
    return Curves("n_users", "n_messages", np.asarray(users, dtype=float), curves, given)


def _chained(security_bits: float, n_users: int, modulus: int) -> int:
    """Two users' bound, once for every swap: a triangle inequality."""
    return least_whole_beyond(lambda m: (n_users - 1) * two_user_distance(modulus, m) <= 2.0**-security_bits, 1)


def _closed(security_bits: float, n_users: int, log2_modulus: float) -> float:
    """The theorem in closed form; NaN below the users that it needs."""
    return messages_needed(security_bits, n_users, log2_modulus) if n_users >= CLOSED_FORM else math.nan


def share_row(security_bits: float, n_users: int, log2_modulus: int) -> tuple[int, float, int]:
    """Shares of a user by the bound for all users, by the closed form (NaN below 19 users), and by two users alone.

    Examples
    --------
    >>> share_row(40, 1000, 32), share_row(40, 18, 32)
    ((12, 16, 58), (23, nan, 58))
    """
    modulus = 2**log2_modulus
    alone = _chained(security_bits, 2, modulus)
    return least_messages(security_bits, n_users, modulus), _closed(security_bits, n_users, log2_modulus), alone


def draw_needed(ax: Axes, record: Curves, pen: Pen) -> None:
    """Whole numbers of messages, on a linear scale from 0."""
    draw_curves(ax, record, pen)
    ax.set_yscale("linear")
    ax.set_ylim(bottom=0)


def needed_rows(settings: Sequence[tuple[int, float, int]]) -> Rows:
    """For a table: users, bits of security, bits of the modulus, and messages by both theorems for all users."""
    return [
        (n, bits, log2_modulus, least_messages(bits, n, 2**log2_modulus), messages_needed(bits, n, log2_modulus))
        for n, bits, log2_modulus in settings
    ]


# --- what the page says ----------------------------------------------------------------------------------------------


def ordered(record: Curves, *names: str) -> Finding:
    """Whether no curve is above the next one, from the lowest on, wherever both are known."""
    return every(*(compared(record.curves[low], "<=", record.curves[high]) for low, high in pairwise(names)))


def crowd_bounded(record: Curves) -> Finding:
    """Whether every exact distance of a crowd is below the bounds for as many messages."""
    bounds = [name.partition(":") for name in record.curves if name.startswith("own-")]
    return every(*(ordered(record, f"exact-distance:{kind}", f"{bound}:{kind}") for bound, _, kind in bounds))


def constant(values: Reals) -> Finding:
    """Whether all values are the same to the last digit."""
    return compared(values, "==", values[0])


def share_words(record: Sampled) -> dict[str, str]:
    """What a share brings in a sample, in bits, and how far the bound for two users is above its last point.

    Examples
    --------
    >>> x, two = np.array([2.0, 4.0]), np.array([0.5, 0.1])
    >>> share_words(Sampled(x, two, two / 10, {"own-1": 3 * two}))
    {'bits_a_share': '1.16 bits', 'loose': '3 times', 'loose_shares': '1.6'}
    """
    first, last = (float(record.distance[at]) for at in (0, -1))
    ratio = float(record.bounds["own-1"][-1]) / last if last else math.inf
    bits = math.log2(first / last) / float(record.x[-1] - record.x[0]) if first and last else math.nan
    return {
        "bits_a_share": f"{number(bits)} bits",
        "loose": times(ratio),
        "loose_shares": number(float(f"{math.log2(ratio):.2g}")),
    }


def sampled_alt(record: Sampled) -> str:
    """A sample for those who cannot see it: how far the estimates and each bound fall."""
    bounds = {"the bound for two users": "own-1", "Lemma 5": "lemma-5"}
    curves = {"Sampled total variation falls": record.distance}
    curves |= {name: record.bounds[key] for name, key in bounds.items()}
    return ", ".join(f"{name} from {number(one[0])} to {number(one[-1])}" for name, one in curves.items()) + "."


LEVEL = 1e-6  # at which bounds for two users are compared


def earlier_words(record: Curves) -> dict[str, str]:
    """How many shares earlier than Lemma 5 the bounds for two users come below ``LEVEL``: distance, delta.

    Examples
    --------
    >>> x, late, early = np.array([4.0, 8.0, 12.0]), np.array([1, 1, 1e-7]), np.array([1, 1e-7, 1e-9])
    >>> earlier_words(Curves("n_messages", "distance", x, {"lemma-5": late, "own-1": early, "own-2": late}))
    {'earlier_distance': '4', 'earlier_delta': '0'}
    """
    lemma, distance, delta = (first_at_most(record, name, LEVEL) for name in ("lemma-5", "own-1", "own-2"))
    return {"earlier_distance": f"{lemma - distance:.0f}", "earlier_delta": f"{lemma - delta:.0f}"}


def two_users_alt(record: Curves) -> str:
    """The same curves for those who cannot see them."""
    begin, end = number(first_at_most(record, "lemma-5", 1)), number(record.curves["lemma-5"][-1])
    reached = [number(first_at_most(record, name, LEVEL)) for name in ("own-1", "own-2")]
    return (
        f"Lemma 5 is at most one from {begin} shares on, falls steeply and ends in a floor at {end}; the bounds for "
        f"two users are below one in a million from {' and '.join(reached)} shares on and go on falling."
    )
