"""A local randomizer that is given by its table: for each value, the probability of each message."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import Reals, Wholes, wholes
from flamelib.core.profiles import TableProfile


@dataclass(frozen=True, slots=True)
class TableRandomizer(TableProfile):
    """A randomizer by its table: row x holds the probabilities of the messages 0, 1, 2, ... for the value x.

    Parameters
    ----------
    table : sequence of sequences of float
        Rows of one length that sum to 1 within 1e-12; a message that one value may send, every value may.

    Examples
    --------
    >>> TableRandomizer([[0.75, 0.25], [0.25, 0.75]]).epsilon0
    1.0986122886681098
    """

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Wholes:
        """A message for each value; the values are whole numbers below the number of rows, any shape."""
        held = wholes("values", values, 0, len(self.table) - 1)
        probabilities = np.cumsum(np.array(self.table), axis=1)
        # Messages that nobody sends end where they begin, so that "at or above" passes them over.
        drawn = rng.random(held.shape)[..., None] * probabilities[held][..., -1:]
        return np.asarray((drawn >= probabilities[held]).sum(axis=-1))

    def estimate(self, messages: Wholes) -> Reals:
        """How often each message was sent."""
        return np.bincount(messages, minlength=len(self.table[0])).astype(float)
