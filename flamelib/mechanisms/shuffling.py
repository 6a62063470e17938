"""The shuffler: forwards every message and forgets who sent it; or fills a bag for each coordinate."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from flamelib.core.arrays import Wholes
from flamelib.core.vocabulary import DomainError

Letter = TypeVar("Letter", bound="np.generic[Any]")
_CACHED = 2**14  # so many dummies are drawn at once, which stay in the processor's cache


def shuffle(messages: NDArray[Letter], rng: np.random.Generator) -> NDArray[Letter]:
    """A copy of the messages in uniformly random order along the first axis, which reveals their multiset alone."""
    if np.ndim(messages) == 0:
        raise DomainError("messages must be an array with one entry a message along its first axis, got a single value")
    return rng.permutation(messages, axis=0)


def random_ranks(places: Wholes, dimension: int, rng: np.random.Generator) -> Wholes:
    """Number the messages of each coordinate 0, 1, 2, ... in uniformly random order.

    Keeping the ranks below a limit keeps a uniformly random part of the messages of each coordinate.
    """
    order = rng.permutation(places.size)
    narrow = places.astype(np.min_scalar_type(dimension))  # short whole numbers sort in linear time
    order = order[narrow[order].argsort(kind="stable")]
    counts = np.bincount(places, minlength=dimension)
    ranks = np.empty(places.size, dtype=np.int64)
    ranks[order] = np.arange(places.size) - np.repeat(counts.cumsum() - counts, counts)
    return ranks


def fill_bags(
    places: Wholes,
    messages: NDArray[Letter],
    shape: tuple[int, int],
    dummies: Callable[[Wholes], NDArray[Letter]],
    rng: np.random.Generator,
) -> NDArray[Letter]:
    """One bag for each coordinate, all of one size: its messages, filled up with dummies, in uniformly random order.

    Of a coordinate with more messages than its bag holds, a uniformly random part is kept.  Every bag is permuted on
    its own: nothing tells which messages of different bags have one sender.  ``places`` holds the coordinate of each
    message; ``shape`` is the number of coordinates and the size of each bag.  ``dummies`` turns an array of
    coordinates into one fresh dummy for each; those of a coordinate are independent with one law, so that it suffices
    to give the messages a uniformly random set of slots.  Messages, numbers or rows of bytes, are moved, never read.
    """
    dimension, size = shape
    ranks = random_ranks(places, dimension, rng)
    held = np.minimum(np.bincount(places, minlength=dimension), size)
    bags = np.empty((*shape, *messages.shape[1:]), dtype=messages.dtype)
    fits = ranks < size
    bags[places[fits], ranks[fits]] = messages[fits]
    for start in range(0, dimension, at_once := 1 + _CACHED // size):
        some = slice(start, start + at_once)
        missing = np.repeat(np.arange(dimension)[some], size - held[some])
        bags[some][np.arange(size) >= held[some, None]] = dummies(missing)
    _spread(bags, held, rng)
    return bags


def _spread(bags: NDArray[Any], held: Wholes, rng: np.random.Generator) -> None:
    """Move the first ``held`` messages of each bag to uniformly random slots (Fisher-Yates from the inside out).

    Slots above ``i`` are in uniformly random order when message ``i`` is put into a random one of the slots from
    ``i`` on and what was there takes its place: then so are the slots from ``i`` on.
    """
    fullest = np.argsort(-held, kind="stable")
    reach = np.searchsorted(-held[fullest], -np.arange(held.max(initial=0)))  # bags that hold more than i messages
    for i in reversed(range(reach.size)):
        rows = fullest[: reach[i]]
        slots = rng.integers(i, bags.shape[1], size=rows.size)
        moved = bags[rows, i]
        bags[rows, i] = bags[rows, slots]
        bags[rows, slots] = moved
