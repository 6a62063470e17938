"""The cloak protocol step by step: the shares of one value, chains of shufflers, noise, rounding, reading a noisy sum.

Rounds are run side by side, as coordinates of one vector with a shuffle each.  A noisy sum is read by the clipped
estimate and by the centred one, with their exact expectations beside means over rounds.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from flamebook.attacks.shortcuts import at_least
from flamebook.figures.style import Pen
from flamebook.records import Parameters, columns_csv
from flamebook.statements import Finding, compared, counted, silent
from flamelib.core.arrays import Reals, Wholes
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms.integers.noise import TruncatedLaplace
from flamelib.mechanisms.integers.randomness import Simulation
from flamelib.protocols.cloak import (
    CloakProtocol,
    analyze,
    analyze_centred,
    pool,
    prerandomize,
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
