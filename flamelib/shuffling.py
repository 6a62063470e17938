"""The shuffler: forwards every message and forgets who sent it."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from flamelib._validate import DomainError

Letter = TypeVar("Letter", bound="np.generic[Any]")


def shuffle(messages: NDArray[Letter], rng: np.random.Generator) -> NDArray[Letter]:
    """The messages in uniformly random order along the first axis, as a copy.

    What is learnt from the output is the multiset of messages and nothing else.

    Parameters
    ----------
    messages : ndarray, first axis one entry a message
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, same shape and dtype

    Examples
    --------
    >>> sorted(shuffle(np.array([3, 1, 2]), np.random.default_rng(0)).tolist())
    [1, 2, 3]
    """
    if np.ndim(messages) == 0:
        raise DomainError("messages must be an array with one entry a message along its first axis, got a single value")
    return rng.permutation(messages, axis=0)
