"""What every experiment on images shares: records to be dealt out, and images to test on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flamelib.core.arrays import Floats, Wholes
from flamelib.core.vocabulary import DomainError, check
from flamelib.learning.datasets import load
from flamelib.learning.models import SoftmaxRegression


@dataclass(frozen=True, slots=True)
class Samples:
    """Standardised images as rows of float32, with their labels."""

    images: Floats
    labels: Wholes

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Records:
    """Training images, rows of pixels in random order, to be dealt out to clients, and the test images.

    ``mean`` and ``spread`` are those of all pixels of the training images, by which images are standardised;
    ``notice`` says what the data are.
    """

    images: NDArray[np.uint8]
    labels: Wholes
    tested: Samples
    mean: float
    spread: float
    n_classes: int
    notice: str

    def __len__(self) -> int:
        return len(self.labels)

    def n_clients(self, n_records: int) -> int:
        """How many clients can hold so many records each; the few records left over are nobody's."""
        found = len(self) // int(check(n_records=n_records)["n_records"])
        if not found:
            raise DomainError(f"n_records must be at most the {len(self)} records there are, got {n_records}")
        return found

    def batch(self, numbers: Wholes) -> Samples:
        """Standardised images of these records, with their labels."""
        return Samples(_standard(self.images[numbers], self.mean, self.spread), self.labels[numbers])

    def held(self, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Numbers of the ``n`` records that all clients hold together, one client's after another's.

        They are the first ``n`` where there are as many; otherwise each is drawn at random, once and for all.
        """
        if n <= len(self):
            return np.arange(n, dtype=np.int32)
        return rng.integers(len(self), size=n, dtype=np.int32)

    @property
    def softmax(self) -> SoftmaxRegression:
        """The linear model that fits these images."""
        return SoftmaxRegression(self.images.shape[1], self.n_classes)


def load_records(dataset: str = "emnist-letters", seed: int = 7, pool: int = 1, n_tested: int | None = None) -> Records:
    """Images of a set that :func:`flamelib.learning.datasets.load` knows, its training part in random order.

    ``pool`` is the side of the squares whose mean replaces their pixels.  At most ``n_tested`` test images are taken,
    chosen at random.
    """
    rng = np.random.default_rng(check(seed=seed)["seed"])
    train, test = load(dataset), load(dataset, "test")
    order = rng.permutation(train.n)
    images = _pooled(train.images, pool)[order]
    mean, spread = float(images.mean(dtype=np.float64)), float(images.std(dtype=np.float64))
    some = np.sort(rng.permutation(test.n)[:n_tested])
    tested = Samples(_standard(_pooled(test.images, pool)[some], mean, spread), test.labels[some].astype(np.int64))
    labels = train.labels[order].astype(np.int64)
    return Records(images, labels, tested, mean, spread, train.classes, train.notice)


def _pooled(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Rows of pixels: means over squares, rounded; lines and columns that fill no square are left out."""
    n, height, width = images.shape
    if not 1 <= side <= min(height, width):
        raise DomainError(f"pool must be a whole number in [1, {min(height, width)}], got {side}")
    kept = images[:, : height // side * side, : width // side * side]
    sums = kept.reshape(n, height // side, side, width // side, side).sum(axis=(2, 4), dtype=np.uint32)
    return np.asarray((sums + side**2 // 2) // side**2, dtype=np.uint8).reshape(n, -1)


def _standard(images: NDArray[np.uint8], mean: float, spread: float) -> Floats:
    return np.asarray((images - np.float32(mean)) / np.float32(spread), dtype=np.float32)
