r"""Coordinates of an update: which ones a user reports, and what a message says about a number in [-C, C].

The number is mapped to :math:`\tilde x \in [0, 1]` and randomized by Laplace noise, or rounded to
:math:`\{0, \dots, b\}` and randomized by k-ary response on these :math:`b + 1` letters.  :func:`decode` turns a
message into an unbiased estimate of :math:`\tilde x`; a message from the blanket decodes to one half on average.
Sets of coordinates are rows of flags, one row a user; a row depends on that user's data and randomness alone.

Source: Liu, Cao, Chen, Guo, Yoshikawa 2021, Algorithm 1 and equation (1); with the noise on :math:`\{0, \dots, b\}`
instead of the printed :math:`\{1, \dots, b\}`, which would make equation (1) biased and a letter 0 reveal its value.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.arrays import Flags, Reals, Shape, Wholes
from flamelib.mechanisms.encoding import round_randomly
from flamelib.mechanisms.randomizers import KaryResponse, LaplaceNoise

Randomizer = LaplaceNoise | KaryResponse
Messages = Reals | Wholes

ROWS_AT_ONCE = 4  # so many rows of a model's size stay in the processor's cache


def to_unit(values: Reals, clip_norm: float) -> Reals:
    r"""The value clipped to [-C, C] and mapped to [0, 1]: :math:`(\mathrm{clip}(x) + C) / 2C`."""
    return np.clip(np.clip(values, -clip_norm, clip_norm) / (2 * clip_norm) + 0.5, 0.0, 1.0)


def sample(randomizer: Randomizer, values: ArrayLike, rng: np.random.Generator) -> Messages:
    """One message for each value in [0, 1]: a number, or a letter in {0, ..., n_buckets - 1}; same shape."""
    if isinstance(randomizer, LaplaceNoise):
        return randomizer.sample(values, rng)
    return randomizer.sample(round_randomly(values, randomizer.n_buckets - 1, rng), rng)


def sample_blanket(randomizer: Randomizer, shape: Shape, rng: np.random.Generator) -> Messages:
    """Messages that say nothing about a value: draws from the blanket law of the randomizer."""
    if isinstance(randomizer, LaplaceNoise):
        noise, scale = rng.standard_exponential(shape), 1 / randomizer.epsilon0
        bits = np.frombuffer(rng.bytes(noise.size // 8 + 1), dtype=np.uint8)
        noise *= np.unpackbits(bits, count=noise.size).reshape(noise.shape) * (2 * scale) - scale
        noise += 0.5
        return noise
    return randomizer.sample_blanket(shape, rng)


def decode(randomizer: Randomizer, messages: ArrayLike) -> Reals:
    r"""The unbiased estimate of the value behind each message; NaN for what no user of the randomizer can send.

    Laplace: the message itself.  Letters: :math:`(y / b - \gamma / 2) / (1 - \gamma)` with :math:`b + 1` letters.
    """
    received = np.asarray(messages, dtype=np.float64)
    if isinstance(randomizer, LaplaceNoise):
        finite = np.isfinite(received)
        return received if finite.all() else np.where(finite, received, np.nan)
    top = randomizer.n_buckets - 1
    known = (received >= 0) & (received <= top) & (np.floor(received) == received)
    return np.where(known, (received / top - randomizer.mass / 2) / randomizer.kept, np.nan)


def blanket_variance(randomizer: Randomizer) -> float:
    r"""Exact variance of a decoded blanket message: of letters :math:`\frac{b + 2}{12 b (1 - \gamma)^2}`."""
    if isinstance(randomizer, LaplaceNoise):
        return 2 / randomizer.epsilon0**2
    top = randomizer.n_buckets - 1
    return (top + 2) / (12 * top * randomizer.kept**2)


def centred_sums(
    randomizer: Randomizer, places: NDArray[np.integer], values: Reals, dimension: int, rng: np.random.Generator
) -> Reals:
    """For each coordinate, the sum of its decoded messages less one half each, drawn with its exact law.

    ``places`` holds the coordinate of each message and ``values`` the value in [0, 1] behind it, both of shape
    (messages,).  With Laplace noise no message is drawn: only the sum of the noises of a coordinate is.
    """
    if isinstance(randomizer, LaplaceNoise):
        counts = np.bincount(places, minlength=dimension)
        return np.asarray(np.bincount(places, values - 0.5, dimension) + laplace_sums(randomizer, counts, rng))
    decoded = decode(randomizer, sample(randomizer, values, rng))
    return np.bincount(places, decoded - 0.5, dimension).astype(np.float64, copy=False)


def centred_blanket_sums(randomizer: Randomizer, counts: Wholes, rng: np.random.Generator) -> Reals:
    """Sums of ``counts[j]`` decoded blanket messages minus one half each, with their exact law.

    Only how often each letter occurs is drawn, or, where letters are many, one message of every coordinate at a time.
    """
    if isinstance(randomizer, LaplaceNoise):
        return laplace_sums(randomizer, counts, rng)
    top = randomizer.n_buckets - 1
    few = randomizer.n_buckets <= counts.max(initial=0)
    letters = _sums_by_letter(counts, top, rng) if few else _sums_by_message(counts, top, rng)
    return np.asarray((letters / top - counts / 2) / randomizer.kept)


def laplace_sums(randomizer: LaplaceNoise, counts: Wholes, rng: np.random.Generator) -> Reals:
    r"""Sums of ``counts[j]`` Laplace noises: :math:`(G - G') / \varepsilon_0`, two Gamma variables of that shape."""
    difference = rng.standard_gamma(counts) - rng.standard_gamma(counts)
    return np.asarray(difference / randomizer.epsilon0)


def _sums_by_letter(counts: Wholes, top: int, rng: np.random.Generator) -> Wholes:
    """A multinomial count of letters, one letter after another by conditional binomials."""
    left, total = counts.copy(), np.zeros_like(counts)
    for letter in range(top):
        found = rng.binomial(left, 1 / (top + 1 - letter))
        total += letter * found
        left -= found
    return total + top * left


def _sums_by_message(counts: Wholes, top: int, rng: np.random.Generator) -> Wholes:
    total = np.zeros_like(counts)
    for drawn in range(counts.max(initial=0)):
        total += np.where(drawn < counts, rng.integers(top + 1, size=counts.shape), 0)
    return total


def largest(updates: Reals, kept: int) -> Flags:
    """The ``kept`` coordinates of each row with the largest absolute values; among equals the choice is arbitrary."""
    n_rows, dimension = updates.shape
    chosen = np.zeros(updates.shape, dtype=bool)
    for start in range(0, n_rows, ROWS_AT_ONCE):
        sizes = np.abs(updates[start : start + ROWS_AT_ONCE])
        order = sizes.argpartition(dimension - kept, axis=1)[:, dimension - kept :]
        chosen[np.arange(start, start + len(sizes))[:, None], order] = True
    return chosen


def random_subsets(sizes: Wholes, avoid: Flags, rng: np.random.Generator) -> Flags:
    """In each row a uniformly random set of ``sizes`` coordinates, without replacement, among those not in ``avoid``.

    Coordinates are drawn with replacement and those met before are drawn anew.  No step tells one free coordinate
    from another, so the law of a set is unchanged when free coordinates are renamed: it is uniform.
    """
    free = (~avoid).sum(axis=1)
    if 2 * sizes.sum() > free.sum():  # fewer are left out than chosen
        return ~(_drawn(free - sizes, avoid, rng) | avoid)
    return _drawn(sizes, avoid, rng)


def _drawn(sizes: Wholes, avoid: Flags, rng: np.random.Generator) -> Flags:
    n_rows, dimension = avoid.shape
    taken = avoid.copy()
    places, missing = taken.reshape(-1), sizes.astype(np.int64)
    while missing.any():
        rows = np.repeat(np.arange(n_rows), missing)
        drawn = rows * dimension + rng.integers(dimension, size=rows.size)
        drawn = np.sort(drawn[~places[drawn]])
        fresh = drawn[np.diff(drawn, prepend=-1) > 0]
        places[fresh] = True
        missing -= np.bincount(fresh // dimension, minlength=n_rows)
    return taken & ~avoid
