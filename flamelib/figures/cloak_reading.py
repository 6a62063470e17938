"""How a noisy sum is read: the clipped estimate and the centred one, their exact expectations and means over rounds.

Rounds are run side by side, as coordinates of one vector with a shuffle each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from flamelib.core.arrays import Wholes
from flamelib.core.vocabulary import DomainError, check
from flamelib.figures.cloak_attack import at_least
from flamelib.figures.curves import Parameters, Values, to_csv
from flamelib.figures.style import Pen
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

BLOCK = 10**6
READERS: dict[str, tuple[Callable[..., NDArray[np.float64]], str, str]] = {
    "clipped": (analyze, "vermillion", "--"),
    "centred": (analyze_centred, "blue", "-"),
}


def noise_law(modulus: int, decay: float, noise_rate: float, n_users: int) -> Values:
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
    if not isinstance(protocol.noise, TruncatedLaplace):
        raise DomainError("protocol must have truncated discrete Laplace noise")
    law = noise_law(protocol.modulus, protocol.noise.decay, protocol.noise_rate, protocol.n_users)
    seen = (np.arange(protocol.modulus) + whole_sum) % protocol.modulus
    return float(READERS[reader][0](protocol, seen) @ law)


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
    """Mean error of both analyzers after so many rounds in which nobody holds anything, and its expectation."""

    rounds: Wholes
    means: dict[str, Values]
    exact: dict[str, float]
    above: int
    below: int
    parameters: Parameters

    @property
    def above_at_least(self) -> float:
        """Lower Clopper-Pearson limit of the chance that the clipped estimate is above the truth."""
        return at_least(self.above, int(self.rounds[-1]))

    def to_csv(self) -> str:
        """One row a number of rounds."""
        return to_csv(["rounds", *self.means], zip(self.rounds, *self.means.values(), strict=True))


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
    clipped = estimates["clipped"]
    public = {name: getattr(protocol, name) for name in ("n_users", "modulus", "scale", "n_messages", "noise_rate")}
    return Bias(at, means, exact, int((clipped > 0).sum()), int((clipped < 0).sum()), {**public, "seed": seed})


def draw_bias(ax: Axes, record: Bias, pen: Pen) -> None:
    """Size of the mean error against rounds, and the expectation of the clipped estimate."""
    for name, values in record.means.items():
        _, hue, dash = READERS[name]
        ax.plot(record.rounds, np.abs(values), color=pen.colour(hue), linestyle=dash, label=f"{name} estimate")
    ax.axhline(record.exact["clipped"], color=pen.colour("black"), linestyle=":", label="expectation, clipped")
    ax.set(xscale="log", yscale="log", xlabel="rounds that are averaged", ylabel="size of the mean error (users)")
