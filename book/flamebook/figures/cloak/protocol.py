"""The cloak protocol step by step: the shares of one value, chains of shufflers, noise, rounding, reading a noisy sum.

Rounds are run side by side, as coordinates of one vector with a shuffle each.  A noisy sum is read by the clipped
estimate and by the centred one, with their exact expectations beside means over rounds.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chisquare

from flamebook.attacks.shortcuts import at_least
from flamebook.figures.style import Pen
from flamebook.records import Curves, Parameters, columns_csv, to_csv
from flamebook.statements import Finding, compared, counted, silent
from flamelib.accounting.splitting.crowds import least_messages
from flamelib.core.arrays import Reals, Wholes
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms.integers.modular import Residues
from flamelib.mechanisms.integers.noise import TruncatedLaplace
from flamelib.mechanisms.integers.randomness import Simulation
from flamelib.protocols.cloak import (
    CloakProtocol,
    analyze,
    analyze_centred,
    encode,
    pool,
    prerandomize,
    relay,
    scaled,
    shuffler,
    split,
    total,
)

FAR = 4  # standard deviations of a mean, beyond which it does not come by chance
FEWEST, RAREST = 5, 1e-6  # messages that a test expects of a cell; a chance that is taken for none
READERS: dict[str, tuple[Callable[..., NDArray[np.float64]], str, str]] = {
    "clipped": (analyze, "vermillion", "--"),
    "centred": (analyze_centred, "blue", "-"),
}


def noise_law(modulus: int, decay: float, noise_rate: float, n_users: int) -> Reals:
    """Probability of every residue as the sum of all users' noise: the n-fold convolution, by Fourier transform.

    Examples
    --------
    >>> law = noise_law(31, 0.9, 0.5, 5)
    >>> round(float(law.sum()), 12), bool(np.allclose(law[1:], law[:0:-1]))
    (1.0, True)
    """
    check(modulus=modulus, decay=decay, noise_rate=noise_rate, n_users=n_users)
    place = np.arange(modulus)
    one = decay ** np.minimum(place, modulus - place).astype(float)
    one *= noise_rate / one.sum()
    one[0] += 1 - noise_rate
    return np.maximum(np.fft.irfft(np.fft.rfft(one) ** n_users, modulus), 0)


def expected(protocol: CloakProtocol, whole_sum: int, reader: str) -> float:
    """Exact expectation of the estimate of an analyzer, ``clipped`` or ``centred``, at a sum of scaled values.

    Examples
    --------
    >>> small = noisy(5, 31, 2, 4, 0.9, 0.5)
    >>> [round(expected(small, whole_sum, "clipped"), 3) for whole_sum in (0, 10)]
    [2.195, 2.805]
    """
    return _mean(protocol, whole_sum, READERS[reader][0])


def _mean(protocol: CloakProtocol, whole_sum: int, reading: Callable[..., NDArray[np.float64]]) -> float:
    """Exact expectation of what is read from the noisy sum."""
    if not isinstance(protocol.noise, TruncatedLaplace):
        raise DomainError("protocol must have truncated discrete Laplace noise")
    law = noise_law(protocol.modulus, protocol.noise.decay, protocol.noise_rate, protocol.n_users)
    seen = (np.arange(protocol.modulus) + whole_sum) % protocol.modulus
    return float(reading(protocol, seen) @ law)


def expected_rows(protocols: Sequence[CloakProtocol], whole_sums: Sequence[int]) -> list[tuple[object, ...]]:
    """For a table: modulus, true sum, and the expectation of both estimates."""
    return [
        (one.modulus, whole / one.scale, expected(one, whole, "clipped"), expected(one, whole, "centred"))
        for one in protocols
        for whole in whole_sums
    ]


def noisy(n_users: int, modulus: int, scale: int, n_messages: int, decay: float, noise_rate: float) -> CloakProtocol:
    """The protocol with the pre-randomizer of the document."""
    noise = TruncatedLaplace(modulus, decay)
    return CloakProtocol(n_users, modulus, scale, n_messages, noise=noise, noise_rate=noise_rate)


@dataclass(frozen=True, slots=True)
class Bias:
    """Mean error of both analyzers after so many rounds in which nobody holds anything, and its expectation.

    ``spread`` is the exact standard deviation of the centred estimate of one round.
    """

    rounds: Wholes
    means: dict[str, Reals]
    exact: dict[str, float]
    spread: float
    above: int
    below: int
    parameters: Parameters

    @property
    def kept(self) -> Finding:
        """Whether the mean of the clipped estimate stays above half of its expectation."""
        return self._settled(compared(float(self.means["clipped"][-1]), ">", self.exact["clipped"] / 2))

    @property
    def lost(self) -> Finding:
        """Whether the size of the mean of the centred estimate falls below that half."""
        return self._settled(compared(abs(float(self.means["centred"][-1])), "<", self.exact["clipped"] / 2))

    def _settled(self, finding: Finding) -> Finding:
        """The finding, where the noise of a mean is small enough for that half to show."""
        rounds = int(self.rounds[-1])
        room = self.exact["clipped"] / 2
        small = FAR * self.spread / math.sqrt(rounds) < room
        return finding if small else silent(f"after {counted(rounds, 'round')} the noise is larger than {room:.2g}")

    @property
    def above_at_least(self) -> float:
        """Lower Clopper-Pearson limit of the chance that the clipped estimate is above the truth."""
        return at_least(self.above, int(self.rounds[-1]))

    def to_csv(self) -> str:
        """One row a number of rounds."""
        return columns_csv({"rounds": self.rounds, **self.means})


def _second_moment(protocol: CloakProtocol) -> float:
    """Exact expectation of the square of the centred estimate of 0."""
    return _mean(protocol, 0, lambda protocol, seen: analyze_centred(protocol, seen) ** 2)


def compute_bias(protocol: CloakProtocol, rounds: int, points: int, seed: int) -> Bias:
    """Rounds of the whole protocol in which every user holds 0, and the running mean of both estimates.

    Examples
    --------
    >>> found = compute_bias(noisy(5, 31, 2, 4, 0.9, 0.5), 2000, 3, seed=1)
    >>> bool(abs(found.means["clipped"][-1] - found.exact["clipped"]) < 0.2), found.below
    (True, 0)
    """
    check(rounds=rounds, points=points, seed=seed)
    randomness = Simulation(np.random.default_rng(seed))
    nothing = np.zeros((protocol.n_users, rounds), dtype=np.int64)
    messages = shuffler(pool(split(protocol, prerandomize(protocol, nothing, randomness), randomness)), randomness)
    sums, at = total(protocol, messages), np.unique(np.geomspace(1, rounds, points).astype(int))
    estimates = {name: read(protocol, sums) for name, (read, _, _) in READERS.items()}
    means = {name: (np.cumsum(one) / np.arange(1, rounds + 1))[at - 1] for name, one in estimates.items()}
    exact = {name: expected(protocol, 0, name) for name in READERS}
    spread = math.sqrt(_second_moment(protocol) - exact["centred"] ** 2)
    clipped = estimates["clipped"]
    public = {name: getattr(protocol, name) for name in ("n_users", "modulus", "scale", "n_messages", "noise_rate")}
    return Bias(at, means, exact, spread, int((clipped > 0).sum()), int((clipped < 0).sum()), {**public, "seed": seed})


def draw_bias(ax: Axes, record: Bias, pen: Pen) -> None:
    """Size of the mean error against rounds, and the expectation of the clipped estimate."""
    for name, values in record.means.items():
        _, hue, dash = READERS[name]
        ax.plot(record.rounds, np.abs(values), color=pen.colour(hue), linestyle=dash, label=f"{name} estimate")
    ax.axhline(record.exact["clipped"], color=pen.colour("black"), linestyle=":", label="expectation, clipped")
    ax.set(xscale="log", yscale="log", xlabel="rounds that are averaged", ylabel="size of the mean error (users)")


Rows = list[list[object]]
HUES = ("blue", "vermillion", "green", "purple", "ochre", "sky")


def _listed(protocol: CloakProtocol) -> Parameters:
    names = ("n_users", "modulus", "scale", "n_messages")
    return {name: getattr(protocol, name) for name in names}


# --- one value --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Walks:
    """Partial sums of the shares of one value, modulo N: row by row another encoding, from 0 to the scaled value."""

    modulus: int
    sums: Wholes
    parameters: Parameters

    def to_csv(self) -> str:
        """One row an encoding."""
        return to_csv([f"after {j}" for j in range(self.sums.shape[1])], self.sums)


def compute_walks(protocol: CloakProtocol, value: float, repeats: int, seed: int) -> Walks:
    """The same value encoded several times.

    Examples
    --------
    >>> walks = compute_walks(CloakProtocol(10, 101, 10, 4), 0.5, 3, seed=0)
    >>> walks.sums[:, 0].tolist(), walks.sums[:, -1].tolist()
    ([0, 0, 0], [5, 5, 5])
    """
    check(repeats=repeats, seed=seed)
    shares = encode(protocol, np.full(repeats, value), Simulation(np.random.default_rng(seed)))
    sums = np.hstack([np.zeros((repeats, 1), dtype=np.int64), shares.cumsum(axis=1) % protocol.modulus])
    return Walks(protocol.modulus, sums, {**_listed(protocol), "value": value, "seed": seed})


def draw_walks(ax: Axes, record: Walks, pen: Pen) -> None:
    """Rings are copies of the residues, one for each share; a walk goes outwards, to the sum of the shares so far."""
    rings = np.arange(record.sums.shape[1]) + 1.0
    round_about = np.linspace(0, 2 * np.pi, 361)
    for ring in rings:
        ax.plot(ring * np.sin(round_about), ring * np.cos(round_about), color=pen.theme.faint, linewidth=1, zorder=1)
    for i, sums in enumerate(record.sums):
        angle = 2 * np.pi * sums / record.modulus
        at = rings * np.sin(angle), rings * np.cos(angle)
        hue, mark = pen.colour(HUES[i % len(HUES)]), "osD^v"[i % 5]
        ax.plot(*at, color=hue, linewidth=1.4, marker=mark, markersize=4.5, label=f"encoding {i + 1}", zorder=3)
    end = 2 * np.pi * record.sums[0, -1] / record.modulus
    ray = np.array([0.0, 1.1 * rings[-1]])
    ax.plot(ray * np.sin(end), ray * np.cos(end), **pen.line("truth", marker="", label="the scaled value"), zorder=2)
    ax.set_aspect("equal")
    ax.set_axis_off()


# --- one round, in numbers --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Round:
    """Everything that happens in a small round."""

    users: Rows
    shuffled: Residues
    total: int
    clipped: float
    centred: float

    def to_csv(self) -> str:
        """One row a user."""
        return to_csv(["value", "scaled", "noise", "messages", "sum of the messages"], self.users)


def compute_round(protocol: CloakProtocol, values: Sequence[float], seed: int) -> Round:
    """A round with every step kept: value, scaled value, noise, messages and their sum for each user.

    Examples
    --------
    >>> small = compute_round(CloakProtocol(3, 101, 10, 3), [0.1, 0.5, 1.0], seed=0)
    >>> [row[-1] for row in small.users], small.total, small.clipped
    ([1, 5, 10], 16, 1.6)
    """
    users, shuffling = Simulation(np.random.default_rng(check(seed=seed)["seed"])).spawn(2)
    wholes = scaled(protocol, values, users)
    noisy = prerandomize(protocol, wholes, users)
    messages = split(protocol, noisy, users)
    noise = (noisy - wholes + protocol.modulus // 2) % protocol.modulus - protocol.modulus // 2
    told = zip(values, wholes, noise, messages.tolist(), noisy, strict=True)
    rows: Rows = [[x, int(v), int(w), ", ".join(map(str, row)), int(z)] for x, v, w, row, z in told]
    shuffled = shuffler(pool(messages), shuffling)
    found = total(protocol, shuffled)
    read = float(analyze(protocol, found)), float(analyze_centred(protocol, found))
    return Round(rows, shuffled, int(found), *read)


# --- what the parties see ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seen:
    """How many of the scaled values, and of the messages, lie in each of some equal cells of Z_N."""

    values: Wholes
    messages: Wholes
    pvalues: Reals
    parameters: Parameters

    @property
    def uniform(self) -> Finding:
        """Whether the shares of every position fit the uniform law; a few messages a cell cannot tell."""
        if self.values.sum() < FEWEST * self.values.size:
            return silent(f"{counted(int(self.values.sum()), 'user')} are too few for {self.values.size} cells")
        return compared(self.pvalues, ">", RAREST)

    def to_csv(self) -> str:
        """One row a cell."""
        return columns_csv({"cell": range(self.values.size), "values": self.values, "messages": self.messages})


def compute_seen(protocol: CloakProtocol, value: float, cells: int, seed: int) -> Seen:
    """A crowd that all hold the same value: their scaled values, and their messages.

    ``pvalues`` tests each user's j-th message for uniformity, one number for each j, the closing one included.

    Examples
    --------
    >>> seen = compute_seen(CloakProtocol(1000, 30_001, 10, 3), 0.5, 10, seed=0)
    >>> seen.values.tolist()[0], int(seen.messages.sum()), bool((seen.pvalues > 1e-4).all())
    (1000, 3000, True)
    """
    check(points=cells, seed=seed)
    randomness = Simulation(np.random.default_rng(seed))
    values = np.full(protocol.n_users, value)
    wholes, messages = scaled(protocol, values, randomness), encode(protocol, values, randomness)
    edges = [-(-i * protocol.modulus // cells) for i in range(cells + 1)]
    counts = np.array([np.histogram(column, edges)[0] for column in messages.T])
    expected = protocol.n_users * np.diff(edges) / protocol.modulus
    pvalues = np.array([chisquare(row, expected).pvalue for row in counts])
    given = {**_listed(protocol), "value": value, "points": cells, "seed": seed}
    return Seen(np.histogram(wholes, edges)[0], counts.sum(axis=0), pvalues, given)


def draw_seen(ax: Axes, record: Seen, pen: Pen) -> None:
    """Shares of the cells as stairs; values and messages have one area."""
    edges = np.linspace(0, 1, record.values.size + 1)
    for counts, key, label in ((record.values, "kept", "scaled values"), (record.messages, "blanket-part", "messages")):
        shares = counts / counts.sum()
        ax.stairs(shares, edges, color=pen.colour(key), fill=True, alpha=0.35)
        ax.stairs(shares, edges, color=pen.colour(key), linewidth=2, label=label)
    ax.set(xlabel="residue / $N$", ylabel="share of all", yscale="log", xlim=(0, 1))


# --- the reading of the sum -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """Both readings of every residue, and how likely it is as the noisy sum."""

    clipped: Reals
    centred: Reals
    chance: Reals
    parameters: Parameters

    def to_csv(self) -> str:
        """One row a residue."""
        columns = {"clipped": self.clipped, "centred": self.centred, "chance": self.chance}
        return columns_csv({"residue": range(self.chance.size), **columns})


def compute_reading(protocol: CloakProtocol, whole_sum: int) -> Reading:
    """The analyzer's rule on all of Z_N, with the exact law of the noisy sum at one sum of scaled values.

    Examples
    --------
    >>> noise = TruncatedLaplace(31, 0.5)
    >>> reading = compute_reading(CloakProtocol(5, 31, 2, 4, noise=noise, noise_rate=0.5), 0)
    >>> reading.clipped[[0, 10, 20, 30]].tolist(), reading.centred[[0, 10, 20, 30]].tolist()
    ([0.0, 5.0, 5.0, 0.0], [0.0, 5.0, 10.0, -0.5])
    """
    noise = protocol.noise
    if not isinstance(noise, TruncatedLaplace):
        raise DomainError("protocol must have truncated discrete Laplace noise")
    law = noise_law(protocol.modulus, noise.decay, protocol.noise_rate, protocol.n_users)
    given = {**_listed(protocol), "decay": noise.decay, "noise_rate": protocol.noise_rate, "value": whole_sum}
    residues = np.arange(protocol.modulus)
    readings = analyze(protocol, residues), analyze_centred(protocol, residues)
    return Reading(*readings, np.roll(law, whole_sum), given)


def draw_reading(ax: Axes, record: Reading, pen: Pen) -> None:
    """Estimates against the residue; the law is drawn to half the height of the largest sum."""
    residues = np.arange(record.chance.size)
    largest = float(record.clipped.max())
    height = record.chance * (largest / (2 * record.chance.max()))
    ax.fill_between(residues, height, step="mid", color=pen.colour("grey"), alpha=0.35, label="chance of the noisy sum")
    ax.plot(residues, record.centred, **pen.line("certified", marker="", label="centred"), drawstyle="steps-mid")
    ax.plot(residues, record.clipped, **pen.line("theory", marker="", label="clipped"), drawstyle="steps-mid")
    ax.set(xlabel="sum of all messages modulo $N$", ylabel="estimated sum", xlim=(0, residues[-1]))


# --- rounding ---------------------------------------------------------------------------------------


def compute_rounding(n_users: int, scales: Sequence[int], repeats: int, seed: int) -> Curves:
    r"""Root-mean-square error of the sum by rounding alone, for values spread over [0, 1], against the scale.

    Rounding down loses :math:`\frac n{2k}` on average, random rounding is off by :math:`\sqrt{n/6}/k` at random.

    Examples
    --------
    >>> found = compute_rounding(1000, [10, 100], 20, seed=0)
    >>> [round(float(values[0])) for values in found.curves.values()]
    [50, 50, 1, 1]
    """
    check(n_users=n_users, repeats=repeats, seed=seed)
    rng = np.random.default_rng(seed)
    values, found = rng.random((repeats, n_users)), dict[str, Reals]()
    grid = np.array(scales, dtype=np.float64)
    theory = {"floor": n_users / (2 * grid), "random": np.sqrt(n_users / 6) / grid}
    for way, expected in theory.items():
        off = [_errors(n_users, int(scale), way, values, Simulation(rng)) for scale in scales]
        found[f"rounding-{way}"] = np.array([np.sqrt((one**2).mean()) for one in off])
        found[f"rounding-{way}-law"] = expected
    return Curves("scale", "error", grid, found, {"n_users": n_users, "repeats": repeats, "seed": seed})


def _errors(n_users: int, scale: int, way: str, values: Reals, randomness: Simulation) -> Reals:
    protocol = CloakProtocol(n_users, n_users * scale + 1, scale, 2, way)
    return np.asarray(scaled(protocol, values, randomness).sum(axis=1) / scale - values.sum(axis=1))


def shuffler_rows(messages: int, repeats: int, seed: int) -> Rows:
    """Where the first message ends up, behind chains of shufflers of which some apply an order of their own choice.

    Each row: who is in the chain, places where the message was ever seen, and how well they fit a uniform place.

    Examples
    --------
    >>> [row[:2] for row in shuffler_rows(5, 200, seed=0)]
    [['nobody honest', 1], ['honest alone', 5], ['honest first', 5], ['honest last', 5], ['honest in between', 5]]
    """
    check(points=messages, repeats=repeats, seed=seed)
    source = Simulation(np.random.default_rng(seed))
    kinds: dict[str, Callable[[Residues], Residues]] = {
        "h": lambda found: shuffler(found, source),
        "f": np.flip,
        "r": lambda found: np.roll(found, 1),
    }
    chains = {
        "nobody honest": "fr",
        "honest alone": "h",
        "honest first": "hfr",
        "honest last": "frh",
        "honest in between": "fhr",
    }
    rows: Rows = []
    for name, chain in chains.items():
        relayed = [relay(np.arange(messages), [kinds[one] for one in chain]) for _ in range(repeats)]
        counts = np.bincount([int(np.flatnonzero(found == 0)[0]) for found in relayed], minlength=messages)
        rows.append([name, int((counts > 0).sum()), float(chisquare(counts).pvalue)])
    return rows


def places_found(rows: Rows, messages: int, repeats: int) -> tuple[Finding, Finding]:
    """Whether the first message stayed at one place without an honest shuffler, and came to every place with one.

    >>> [found.verdict for found in places_found(shuffler_rows(5, 200, seed=0), 5, 200)]
    ['holds', 'holds']
    >>> places_found(shuffler_rows(8, 20, seed=0), 8, 20)[1]
    Finding(holds=None, numbers='in 20 rounds a place may be missed by chance')
    """
    stayed = compared(int(str(rows[0][1])), "==", 1)
    if (len(rows) - 1) * messages * (1 - 1 / messages) ** repeats > RAREST:
        return stayed, silent(f"in {counted(repeats, 'round')} a place may be missed by chance")
    return stayed, compared([int(str(row[1])) for row in rows[1:]], "==", messages)


def compute_traffic(users: ArrayLike, scale: int, security_bits: float) -> tuple[Curves, Curves]:
    """Messages of a user, and megabytes at the shuffler, against the number of users; the values alone beside it.

    Modulus 3 n k + 1; as many messages as the sharpest known bound asks for.

    Examples
    --------
    >>> messages, traffic = compute_traffic([100, 1000], 100, 40.0)
    >>> messages.curves["own-3"].tolist()
    [14.0, 11.0]
    """
    counts = [int(n) for n in np.atleast_1d(users)]
    check(scale=scale, security_bits=security_bits)
    bits = np.array([(3 * n * scale).bit_length() for n in counts])
    needed = np.array([least_messages(security_bits, n, 3 * n * scale + 1) for n in counts], dtype=np.float64)
    x, given = np.array(counts, dtype=np.float64), {"scale": scale, "security_bits": security_bits}
    curves = {"all-shares": x * needed * bits / 8e6, "bare-values": x * scale.bit_length() / 8e6}
    return Curves("n_users", "n_messages", x, {"own-3": needed}, given), Curves(
        "n_users", "megabytes", x, curves, given
    )
