r"""Hash functions that everybody knows: polynomials over a prime field, so that independence is proven.

.. math:: h(x) = \Big(\sum_{j<k} a_j x^j \bmod p\Big), \qquad p = 2^{61} - 1,

with independent uniform coefficients is :math:`k`-wise independent and uniform on :math:`\{0, \dots, p - 1\}`.
Reduced to :math:`w` values, each has probability :math:`1/w` up to :math:`1/p`.  Arithmetic is exact.  Coefficients
come from a public seed: hashing hides nothing, and items must not be chosen by somebody who knows the seed.

Source: Carter, Wegman 1979; Wegman, Carter 1981.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.arrays import Reals, Wholes, wholes
from flamelib.core.vocabulary import VOCABULARY, DomainError, check, keep

PRIME = 2**61 - 1  # a Mersenne prime: 2^61 is 1, so that products stay within 64 bits
_LETTERS = "abcdefghijklmnopqrstuvwxyz'"
ALPHABET = len(_LETTERS) + 1  # all letters, and the end of a word
LONGEST = 12  # letters of a word: 28^12 is below the prime

Words64 = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Hashes:
    """Independent hash functions, ``rows`` of them, each :math:`k`-wise independent with :math:`k` ``independence``.

    The seed is public; another ``part`` gives other functions under the same seed.
    """

    rows: int
    independence: int
    seed: int
    part: int = 0

    def __post_init__(self) -> None:
        keep(self, **check(rows=self.rows, independence=self.independence, seed=self.seed))
        keep(self, part=VOCABULARY["seed"].accept("part", self.part))

    def values(self, items: ArrayLike) -> Words64:
        """Hash values of whole numbers in [0, 2^61 - 1), of shape (rows, n)."""
        x = wholes("items", items, 0, PRIME - 1).astype(np.uint64)
        found = np.zeros((self.rows, *x.shape), dtype=np.uint64)
        rng = np.random.default_rng([self.seed, self.part])
        for a in rng.integers(PRIME, size=(self.independence, self.rows), dtype=np.uint64):
            found = (times(found, x) + a.reshape(-1, *[1] * x.ndim)) % np.uint64(PRIME)
        return found

    def buckets(self, items: ArrayLike, width: int) -> Wholes:
        """Values reduced to {0, ..., width - 1}, of shape (rows, n)."""
        return (self.values(items) % np.uint64(width)).astype(np.int64)

    def signs(self, items: ArrayLike) -> Wholes:
        """+1 or -1 by the lowest bit, of shape (rows, n); a mean is 1/p at most."""
        return 1 - 2 * (self.values(items) & np.uint64(1)).astype(np.int64)


def times(a: Words64, b: Words64) -> Words64:
    r"""Product of two numbers below p, modulo p, without overflow.

    With :math:`a = a_1 2^{31} + a_0` and :math:`2^{61} \equiv 1` every part of the product stays below :math:`2^{64}`.
    """
    half, low = np.uint64(31), np.uint64(2**31 - 1)
    a1, a0, b1, b0 = a >> half, a & low, b >> half, b & low
    middle = a1 * b0 + a0 * b1
    parts = ((a1 * b1) << np.uint64(1)) + (middle >> np.uint64(30)) + a0 * b0
    parts = parts + ((middle & np.uint64(2**30 - 1)) << half)
    return np.asarray(parts % np.uint64(PRIME))


def keyed_uniforms(items: ArrayLike, count: int, seed: int) -> Reals:
    """Points of the open interval (0, 1), ``count`` for each item, that any item has again wherever it occurs.

    They come from the block cipher Philox under the key (seed, item): independent as far as anybody can tell, which
    sketches by stable laws ask for and no polynomial gives.  Shape (count, n) for n items in [0, 2^61 - 1).
    """
    found, where = np.unique(wholes("items", items, 0, PRIME - 1), return_inverse=True)
    drawn = np.empty((count, found.size))
    for column, item in enumerate(found.tolist()):
        drawn[:, column] = np.random.Generator(np.random.Philox(key=[seed, item])).random(count)
    return np.minimum(drawn + 2.0**-54, 1 - 2.0**-53)[:, where]


def numbered(words: Sequence[str]) -> Wholes:
    """Words of a to z and the apostrophe as whole numbers to base 28; what follows the twelfth letter is cut off.

    The first letters of a word are the leading digits of its number, which is what prefix trees need.
    """
    return np.array([_number(word) for word in words], dtype=np.int64)


def _number(word: str) -> int:
    digits = [_LETTERS.find(letter) + 1 for letter in word[:LONGEST]]
    if not digits or 0 in digits or not all(letter in _LETTERS for letter in word):
        raise DomainError(f"words must be of letters a to z and the apostrophe, got {word!r}")
    number = 0
    for digit in digits + [0] * (LONGEST - len(digits)):
        number = number * ALPHABET + digit
    return number


def spelled(numbers: ArrayLike) -> list[str]:
    """The words, or their first twelve letters, behind the numbers of :func:`numbered`."""
    return [_spell(int(number)) for number in wholes("items", numbers, 0, ALPHABET**LONGEST - 1)]


def _spell(number: int) -> str:
    digits = [number // ALPHABET**place % ALPHABET for place in reversed(range(LONGEST))]
    return "".join(_LETTERS[digit - 1] for digit in digits if digit)
