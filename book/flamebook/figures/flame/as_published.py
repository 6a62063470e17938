"""What happens when FLAME is carried out as published: the algorithms as printed, and the authors' code as released.

Algorithms: the printed alphabet, and messages permuted as wholes.  Code: noise by the classical Gaussian formula, sums
in half precision, and noise that is the same in every round.

Source: Liu, Cao, Chen, Guo, Yoshikawa 2021, Algorithms 1 to 3 and Section "Evaluation", with the authors' code.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from flamebook.figures.blanket.audit import bias_of_alphabet, level_table
from flamebook.figures.style import Pen
from flamebook.records import Curves
from flamelib.accounting.noise.gaussian import classical_noise_std, gaussian_mechanism
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms.coordinates import random_subsets
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame
from flamelib.protocols.averages import CentralGaussian

# --- Algorithm 1 ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Alphabet:
    """Rounding to {0..b} with replacements from one alphabet.

    Attributes
    ----------
    zero_from_zero, zero_from_one : float
        Chance of the message 0 for the input 0 and for the input 1.
    budget : float
        Largest log-ratio of the chances of a message under two inputs; what the randomizer really keeps.
    bias : float
        Of equation (1)'s sum of ``n_users`` values.
    """

    zero_from_zero: float
    zero_from_one: float
    budget: float
    bias: float


def compute_alphabet(n_levels: int, epsilon0: float, n_users: int, printed: bool) -> Alphabet:
    """Algorithm 1 as printed (replacements from 1..b) or corrected (from 0..b), its noise set for ``epsilon0``.

    >>> [round(compute_alphabet(4, 1.0, 1000, printed).budget, 12) for printed in (True, False)]
    [inf, 1.0]
    """
    check(n_levels=n_levels, epsilon0=epsilon0, n_users=n_users)
    letters, lowest = (n_levels, 1) if printed else (n_levels + 1, 0)
    mass = letters / (math.expm1(epsilon0) + letters)
    table = level_table(n_levels, mass, lowest)
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    reach = np.where(table.max(axis=0) > 0, logs.max(axis=0) - logs.min(axis=0), 0.0)
    bias = bias_of_alphabet(n_users, n_levels, mass, lowest)
    return Alphabet(float(table[0, 0]), float(table[-1, 0]), float(reach.max()), bias)


def alphabet_rows(printed: Alphabet, corrected: Alphabet, epsilon0: float) -> list[tuple[object, ...]]:
    """For a table: what both do, and the local budget that was asked for."""
    return [
        ("chance of the message 0 from the input 0", printed.zero_from_zero, corrected.zero_from_zero),
        ("chance of the message 0 from the input 1", printed.zero_from_one, corrected.zero_from_one),
        ("local budget asked for", epsilon0, epsilon0),
        ("local budget kept", printed.budget, corrected.budget),
        ("bias of equation (1), in users", printed.bias, corrected.bias),
    ]


# --- whole messages ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Linked:
    """How often a whole message with the victim's top coordinates was found.

    Attributes
    ----------
    found, mistaken : int
        Rounds with such a message, the victim holding these coordinates and holding others.
    repeats : int
        Rounds of each kind.
    chance : float
        Probability that another user's or a dummy's message carries the set; exact where updates are symmetric.
    """

    found: int
    mistaken: int
    repeats: int
    chance: float

    def delta(self, epsilon: float) -> float:
        """What is certainly given away at a budget: the list is there surely, or by that chance."""
        return max(0.0, 1 - math.exp(epsilon) * self.chance)

    def rows(self) -> list[tuple[object, ...]]:
        """For a table."""
        return [
            ("rounds of each kind", self.repeats),
            ("list found, victim holds it", self.found),
            ("list found, victim does not", self.mistaken),
            ("chance of the latter", self.chance),
            ("delta at epsilon = 1", self.delta(1.0)),
        ]


def compute_linked(n_users: int, dimension: int, kept: int, padded: int, repeats: int, seed: int) -> Linked:
    """Run SS-Topk's users, permute their messages as wholes among dummy vectors, look for the victim's coordinates.

    The other users' updates are Gaussian, so their top coordinates are any of the sets with equal chance; a dummy
    vector has random coordinates, as in Algorithm 3.

    Examples
    --------
    >>> compute_linked(10, 12, 3, 5, repeats=20, seed=0).found
    20
    """
    given = check(n_users=n_users, dimension=dimension, kept=kept, padded=padded, repeats=repeats, seed=seed)
    if 2 * given["kept"] > dimension or kept % 1:
        raise DomainError(f"kept must be a whole number of at most half of dimension = {dimension}, got {kept!r}")
    protocol = flame.FlameTopk(n_users, dimension, 1.0, LaplaceNoise(1.0), kept, padded)
    look = partial(_carried, protocol, rng=np.random.default_rng(seed))
    found, mistaken = (sum(look(here) for _ in range(repeats)) for here in (True, False))
    vectors = _dummy_vectors(protocol) + n_users - 1
    return Linked(found, mistaken, repeats, -math.expm1(vectors * math.log1p(-1 / math.comb(dimension, kept))))


def _dummy_vectors(protocol: flame.FlameTopk) -> int:
    return protocol.dimension * protocol.padded // protocol.kept - protocol.n_users


def _carried(protocol: flame.FlameTopk, here: bool, rng: np.random.Generator) -> bool:
    """Whether one of the permuted messages lists the first coordinates, which the victim holds only if ``here``."""
    kept, dimension = protocol.kept, protocol.dimension
    updates = rng.normal(size=(protocol.n_users, dimension))
    updates[0] = np.roll(np.arange(dimension) < kept, 0 if here else kept)
    lists = flame.user(protocol, updates, rng).places.reshape(-1, kept)
    count = _dummy_vectors(protocol)
    dummies = random_subsets(np.full(count, kept), np.zeros((count, dimension), dtype=bool), rng)
    lists = rng.permutation(np.concatenate([lists, np.nonzero(dummies)[1].reshape(-1, kept)]))
    return bool((lists == np.arange(kept)).all(axis=1).any())


COORDINATES_AT_ONCE = 500
MESSAGES_AT_ONCE = 10**7
MOST_MESSAGES = 2 * 10**8  # as many are drawn at most: the first coordinates'

# --- Gaussian baselines -----------------------------------------------------------------------------------------------


def compute_classical(epsilons: Reals, delta: float) -> Curves:
    """True epsilon of the noise that the classical formula asks for, against the one it was asked for."""
    true = np.array([float(gaussian_mechanism(1.0, classical_noise_std(1.0, e, delta), delta=delta)) for e in epsilons])
    return Curves("claimed epsilon", "true epsilon", epsilons, {"exact": true}, {"delta": delta})


def draw_classical(ax: Axes, record: Curves, pen: Pen) -> None:
    """True over claimed epsilon; above 1 the claim is too small; the formula's proof ends at 1."""
    ratio = record.curves["exact"] / record.x
    ax.axhspan(1, max(1.35, float(ratio.max()) * 1.05), color=pen.colour("vermillion"), alpha=0.14, linewidth=0,
               label="less private than claimed")  # fmt: skip
    ax.axvspan(
        float(record.x.min()), 1, color=pen.colour("green"), alpha=0.1, linewidth=0, label="covered by the proof"
    )
    ax.plot(record.x, ratio, **pen.line("exact", linestyle="-", label=r"true / claimed $\varepsilon$"))
    ax.set(xscale="log", xlabel=r"claimed $\varepsilon$", ylabel=r"true $\varepsilon$ / claimed $\varepsilon$")


def classical_rows(claims: Iterable[float], delta: float) -> list[tuple[float, ...]]:
    """For a table: claimed epsilon, noise over sensitivity, exact delta there, exact epsilon at ``delta``."""
    rows: list[tuple[float, ...]] = []
    for epsilon in claims:
        noise_std = classical_noise_std(1.0, epsilon, delta)
        found = (gaussian_mechanism(1.0, noise_std, epsilon=epsilon), gaussian_mechanism(1.0, noise_std, delta=delta))
        rows.append((epsilon, noise_std, *map(float, found)))
    return rows


# --- half precision ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HalfPrecision:
    """LDP-FL's messages stored and added in 16 bits.

    Attributes
    ----------
    noise_std : float
    overflowing, expected : float
        Share of the messages that become infinite: seen, and from the normal law.
    lost : float
        Share of the coordinates whose sum is not a number.
    largest, spacing : float
        Largest number of 16 bits, and distance of neighbours near the sum of SS-Simple's noise.
    messages : int
        How many were drawn.
    """

    noise_std: float
    overflowing: float
    expected: float
    lost: float
    largest: float
    spacing: float
    messages: int

    def rows(self) -> list[tuple[object, ...]]:
        """For a table."""
        return [
            ("standard deviation of the noise on a value in [0, 1]", self.noise_std),
            ("largest number of 16 bits", self.largest),
            ("messages drawn", self.messages),
            ("share of messages that become infinite", self.overflowing),
            ("the same by the normal law", self.expected),
            ("share of coordinates whose sum is not a number", self.lost),
            ("SS-Simple: distance of 16-bit neighbours near its sums", self.spacing),
        ]


def compute_half_precision(
    n_users: int, dimension: int, epsilon: float, delta: float, epsilon0: float, seed: int
) -> HalfPrecision:
    """Noise for ``epsilon / dimension`` a coordinate by the classical formula, on values of one half, in float16.

    Of very many messages those of the first coordinates are drawn.

    Parameters
    ----------
    n_users, dimension : int
    epsilon, delta : float
        Of the vector; the code splits epsilon and keeps delta whole.
    epsilon0 : float
        SS-Simple's local budget of a coordinate.
    seed : int
    """
    check(n_users=n_users, dimension=dimension, epsilon0=epsilon0, seed=seed)
    noise_std = classical_noise_std(1.0, epsilon / dimension, delta)
    rng, infinite, lost = np.random.default_rng(seed), 0, 0
    looked = min(dimension, max(1, MOST_MESSAGES // n_users))
    at_once = max(1, min(COORDINATES_AT_ONCE, MESSAGES_AT_ONCE // n_users))
    for start in range(0, looked, at_once):
        shape = (n_users, min(at_once, looked - start))
        with np.errstate(over="ignore", invalid="ignore"):
            messages = (0.5 + rng.normal(scale=noise_std, size=shape)).astype(np.float16)
            sums = messages.sum(axis=0)
        infinite += int(np.isinf(messages).sum())
        lost += int(np.isnan(sums).sum())
    largest = float(np.finfo(np.float16).max)
    limit = largest + float(np.spacing(np.float16(largest / 2)))
    tails = sum(math.erfc((limit - side) / noise_std / math.sqrt(2)) / 2 for side in (0.5, -0.5))
    simple = min(math.sqrt(2 * n_users) / epsilon0, largest)
    with np.errstate(over="ignore"):
        spacing = float(np.spacing(np.float16(simple)))
    drawn = n_users * looked
    return HalfPrecision(noise_std, infinite / n_users / looked, tails, lost / looked, largest, spacing, drawn)


# --- the same noise in every round ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RepeatedNoise:
    """Errors of a model after each round, and of the difference of two rounds.

    Attributes
    ----------
    curves : Curves
        Root mean square over coordinates of the model's error; ``dp`` and ``simple``, each fresh and repeated.
    differences : dict
        Largest error, by the same names, of one round minus the next as an estimate of that difference of the means.
    one_user : float
        How far one user's extreme vectors move the mean in a coordinate.
    """

    curves: Curves
    differences: dict[str, float]
    one_user: float

    @property
    def parameters(self) -> object:
        return self.curves.parameters

    def to_csv(self) -> str:
        """One row a round."""
        return self.curves.to_csv()

    def errors(self, kind: str) -> list[float]:
        """The largest error of a difference of two rounds, of each method with ``fresh`` or ``repeated`` noise."""
        return [value for name, value in self.differences.items() if name.endswith(f":{kind}")]

    def growth(self, name: str) -> float:
        """Error after the last round over that after the first."""
        return float(self.curves.curves[name][-1] / self.curves.curves[name][0])

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: method, noise, that largest error, and what one user can move."""
        return [
            (name, kind, self.differences[f"{key}:{kind}"], self.one_user)
            for key, name in (("dp", "DP-FL"), ("simple", "SS-Simple"))
            for kind in ("fresh", "repeated")
        ]


def compute_repeated_noise(
    n_users: int, dimension: int, epsilon: float, epsilon0: float, rounds: int, seed: int
) -> RepeatedNoise:
    """Rounds of DP-FL and SS-Simple on changing updates, the generator going on or put back before each round.

    Parameters
    ----------
    n_users, dimension, rounds, seed : int
    epsilon : float
        DP-FL's budget, by the classical formula.
    epsilon0 : float
        SS-Simple's local budget of a coordinate.
    """
    check(n_users=n_users, dimension=dimension, epsilon=epsilon, epsilon0=epsilon0, rounds=rounds, seed=seed)
    clip = math.sqrt(dimension)
    server = CentralGaussian(clip, classical_noise_std(2 * clip, epsilon, 0.01 / n_users**1.1))
    simple = partial(flame.run, flame.FlameSimple(n_users, dimension, 1.0, LaplaceNoise(epsilon0)))
    curves, differences = {}, {}
    for name, publish in (("dp", server.run), ("simple", simple)):
        for kind in ("fresh", "repeated"):
            for_updates, for_noise = np.random.default_rng(seed).spawn(2)
            errors = []
            for _ in range(rounds):
                updates = for_updates.uniform(-1, 1, size=(n_users, dimension))
                rng = np.random.default_rng(seed) if kind == "repeated" else for_noise
                errors.append(publish(updates, rng).estimate - updates.mean(axis=0))
            curves[f"{name}:{kind}"] = _rms(np.cumsum(errors, axis=0))
            differences[f"{name}:{kind}"] = float(np.abs(errors[0] - errors[-1]).max())
    parameters = {"n_users": n_users, "dimension": dimension, "epsilon": epsilon, "epsilon0": epsilon0, "seed": seed}
    found = Curves("round", "error", np.arange(1.0, rounds + 1), curves, parameters)
    return RepeatedNoise(found, differences, 2 / n_users)


def _rms(errors: NDArray[np.float64]) -> Reals:
    return np.asarray(np.sqrt((errors**2).mean(axis=1)))


def draw_repeated_noise(ax: Axes, record: RepeatedNoise, pen: Pen) -> None:
    """Errors in units of the first round's: a straight line where noise repeats, a square root where it is fresh."""
    x = record.curves.x
    for name, values in record.curves.curves.items():
        key, _, kind = name.partition(":")
        style = pen.line(key, linestyle="-" if kind == "repeated" else (0, (1.2, 1.6)))
        ax.plot(x, values / values[0], **style | {"label": f"{style['label'].split(',')[0]}, {kind}"})
    ax.plot(x, x, color=pen.theme.ink, linewidth=0.8)
    ax.plot(x, np.sqrt(x), color=pen.theme.ink, linewidth=0.8)
    ax.set(xlabel="rounds", ylabel="error of the model / error after one round", ylim=(0, None))
