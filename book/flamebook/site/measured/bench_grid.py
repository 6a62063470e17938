r"""The grid of *Defend your epsilon*: on which numbers of a request each mechanism depends, and where it is recorded.

A request is never answered between two points, but by the epsilon of the next harder one, and its lower end by the next
easier one.  Which one is harder, and why it is so of the true epsilon, whatever the account:

``n_users``
    Fewer: messages, or the absence, of users that are alike in both data sets can be made up, and so can those that
    fill bags.  What a user sends does not depend on how many there are.
``crowd``
    People again, where no order is known: bags of SS-Double grow with the crowd and may overflow, and its certified
    epsilon can rise with the crowd.  It is answered at recorded crowds only.
``numbers``, ``rounds``
    More: fewer rounds, or reports, are a part of more.  ``numbers`` is the product of coordinates and rounds, where
    nothing but this product counts: every coordinate is reported by itself in every round, with a shuffle of its own,
    and all data of one person are replaced at once, so that it is as many reports, however they are spread.  That all
    ways to spread them answer the same is tested.
``delta``
    Smaller: a guarantee at one delta is one at every larger delta.
``items``
    Fewer, where the item itself is reported, from three items on.  A report out of k + 1 items is one out of k, where
    whatever is sent becomes the new item with the chance :math:`1/(e^{\varepsilon_0}+k)`: the chances of a true and of
    a false item come out right.  What the shuffler forwards of data that hold k items at most is therefore a function
    of what it would forward out of k.  Lower ends are of data that hold three items, or two where nobody shuffles; they
    stay valid for fewer items, down to these.  Upper ends from three items on bound the blanket, in which another user
    tells nothing or sends an item uniformly.  Here, too, whatever is sent, what tells nothing included, becomes the new
    item with that chance, and the blanket out of k + 1 comes out; so they stay valid for more items.  Two items, whose
    worst data set is known, stand for themselves, and so does one number.

The local budget is never between two points: it is chosen among those of the grid.  Sums are tuned to theirs, so that
it is their epsilon.  What a request costs, its error and its bits, promises nothing: it is the largest at the corners
of its cell, after a power of what it is asked for, by which it moves exactly or nearly so, is taken out.  Errors move
one way, or fall before they rise, and waver by less than three hundredths, which are added between points.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from flamebook.places import RESULTS
from flamelib.uses.workload import Request

RECORDED = RESULTS / "bench.json"
EPSILON0 = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0)
EPSILON = (0.1, 0.3, 1.0, 3.0, 10.0)
FARTHEST = 20
"""A larger epsilon promises nothing: it leaves doubts of two in a billion.  Harder requests have a larger one."""

REACH: dict[str, tuple[float, float]] = {
    "n_users": (100, 10**6), "dimension": (1, 10**6), "rounds": (1, 10**5), "delta": (1e-10, 1)
}  # fmt: skip
"""Requests that the grid answers."""

Points = tuple[float, ...]
Powers = Mapping[str, float]


def _points(steps: tuple[int, ...], first: int, last: int) -> Points:
    """These steps of every decade between both."""
    found = (step * 10**decade for decade in range(len(str(last))) for step in steps)
    return tuple(point for point in found if first <= point <= last)


def _every(last: int) -> Points:
    """Every whole number up to 20, then steps of a twentieth up to the last."""
    found = [1]
    while found[-1] < last:
        found.append(min(last, max(found[-1] + 1, found[-1] * 21 // 20)))
    return tuple(found)


CROWDS = _points((1, 2, 5), 100, 10**6)
HALVES = _points((1, 3), 100, 10**6)
FEW_CROWDS = (100, 1000, 10**4, 50_000, 10**5, 10**6)
DECADES = _points((1,), 100, 10**6)
FINE = (*_points((1, 2, 5), 1, 10**6), *_points((1,), 10**7, 10**11))  # up to most coordinates times most rounds
HALF = (*_points((1, 3), 1, 10**6), *_points((1,), 10**7, 10**11))
SPARSE = _points((1,), 1, 10**11)
PADDED = (*_points((1,), 1, 10**7), 10**11)  # between these its account takes minutes
ALONE = (*_every(1000), 10**11)  # of reports that nobody shuffles the largest epsilon comes soon
ROUNDS, FEW_ROUNDS = (1, 3, 10, 30, 100, 300, 1000, 10**5), (1, 100, 10**5)
MANY_ROUNDS, FIVE_ROUNDS = (1, 3, 10, 30, 100, 1000, 10**5), (1, 10, 100, 1000, 10**5)
MANY_ITEMS, SOME_ITEMS = (2, 3, 10, 30, 100, 300, 1000, 10**4, 10**5), (2, 3, 10, 30, 100, 1000, 10**4, 10**5)
ITEMS, FEW_ITEMS, TEN_ITEMS, SIZES = (2, 3, 30), (2, 3), (2, 3, 10, 30), (1, 2, *_points((1,), 10, 10**6))
DELTAS, FEW_DELTAS, LAST_DELTA = (1e-6, 1e-8, 1e-10), (1e-6, 1e-10), (1e-10,)


@dataclass(frozen=True)
class Table:
    """What is recorded of a mechanism for some requests.

    Attributes
    ----------
    tasks : tuple of str
        The tasks that it answers.
    axes : mapping
        Numbers of a request, by the names above, with their points; beside the budget, the last axis of all.
    columns : mapping
        ``epsilon`` and ``lower``, or the costs ``error``, ``absence`` and ``bits``, each with the powers of the request
        that are taken out.  Where there is an ``absence``, what absent users add to the error, the ``error`` is the
        rest, and both are added as squares.
    dimensions : (int, int)
        From how many numbers or items to how many it answers.
    below : tuple of str
        Tasks whose data the lower end speaks of.
    """

    tasks: tuple[str, ...]
    axes: Mapping[str, Points]
    columns: Mapping[str, Powers]
    dimensions: tuple[int, int] = (1, 10**6)
    below: tuple[str, ...] = ()

    @property
    def promises(self) -> bool:
        """Whether it holds promises, which are read on the safe side, or costs."""
        return "error" not in self.columns

    def request(self, at: Mapping[str, float]) -> Request:
        """A request with these numbers; nothing depends on what they leave open."""
        fewest = max(self.dimensions[0], 2 if self.tasks[0] == "histogram" else 1)
        dimension = int(at.get("items", max(at.get("dimension", fewest), fewest)))
        rounds = int(at.get("rounds", at.get("numbers", 1)))
        people = int(at.get("n_users", at.get("crowd", 1000)))
        return Request(people, dimension, rounds, at.get("delta", DELTAS[0]), self.tasks[0])


def _promise(
    tasks: tuple[str, ...], axes: Mapping[str, Points], *ends: str, dimensions: tuple[int, int] = (1, 10**6)
) -> Table:
    """Both ends if none is named."""
    columns: dict[str, Powers] = {end: {} for end in ends or ("epsilon", "lower")}
    return Table(tasks, axes, columns, dimensions, tasks[:1] if "lower" in columns else ())


def _cost(
    tasks: tuple[str, ...], axes: Mapping[str, Points], error: Powers, bits: Powers, absence: Powers | None = None,
    dimensions: tuple[int, int] = (1, 10**6),
) -> Table:  # fmt: skip
    columns = {"error": error, "bits": bits} | ({"absence": absence} if absence else {})
    return Table(tasks, axes, columns, dimensions)


MEAN, HISTOGRAM, BOTH = ("mean",), ("histogram",), ("mean", "histogram")
# Powers of a request.
_LIKE: Powers = {}
_CROWD, _SUM, _EACH = {"n_users": -0.5}, {"n_users": -1.0}, {"dimension": 1.0}
_ROUNDS, _PARTS, _VECTOR = {"rounds": 0.5}, {"rounds": 1.0}, {"dimension": 0.5}
# Axes that several have.
_SIZES = {"dimension": SIZES}
_SELDOM = {"n_users": DECADES, "delta": FEW_DELTAS, "rounds": FEW_ROUNDS}
_OFTEN = _SELDOM | {"delta": LAST_DELTA, "rounds": ROUNDS}
_SUMMED = _SELDOM | {"delta": LAST_DELTA}
_OUTER = {"delta": DELTAS, "rounds": MANY_ROUNDS}
_NUMBERS = {"n_users": DECADES, "delta": LAST_DELTA, "numbers": SPARSE}
_SIZED = _SUMMED | _SIZES

# Where the lower end takes long it has a table of its own.
TABLES: dict[str, tuple[Table, ...]] = {
    "local": (
        _promise(MEAN, {"delta": DELTAS, "numbers": ALONE}),
        _promise(HISTOGRAM, {"items": ITEMS, "delta": DELTAS, "rounds": ALONE}),
        _cost(MEAN, {}, _CROWD, _EACH),
        _cost(HISTOGRAM, _SIZES, _CROWD, _LIKE),
    ),
    "blanket": (
        _promise(MEAN, {"n_users": CROWDS, "delta": DELTAS, "numbers": FINE}),
        _promise(
            HISTOGRAM, {"n_users": FEW_CROWDS, "items": MANY_ITEMS, "delta": FEW_DELTAS, "rounds": ROUNDS}, "epsilon"
        ),
        _promise(
            HISTOGRAM, {"n_users": FEW_CROWDS, "items": TEN_ITEMS, "delta": FEW_DELTAS, "rounds": FIVE_ROUNDS}, "lower"
        ),
        _cost(MEAN, {}, _CROWD, _EACH),
        _cost(HISTOGRAM, _SIZES, _CROWD, _LIKE),
    ),
    # Vectors that lose as much as the lower end of SS-Simple are no items of a list.
    "simple": (
        _promise(BOTH, {"n_users": HALVES, "delta": FEW_DELTAS, "numbers": HALF}),
        _cost(BOTH, _SIZES, _CROWD, _EACH),
    ),
    "double": (
        _promise(BOTH, {"crowd": FEW_CROWDS, "delta": LAST_DELTA, "numbers": PADDED}, "epsilon"),
        _cost(BOTH, {"n_users": DECADES} | _SIZES, _CROWD, _EACH),
    ),
    "topk": (
        _promise(HISTOGRAM, _SUMMED | {"n_users": HALVES, "rounds": FIVE_ROUNDS}),
        _cost(HISTOGRAM, _SIZES, _CROWD, _LIKE),
    ),
    "shuffled check-in": (
        _promise(MEAN, _OFTEN, "epsilon", dimensions=(1, 1)),
        _promise(MEAN, _SELDOM, "lower", dimensions=(1, 1)),
        _promise(MEAN, _OFTEN, "epsilon", dimensions=(2, 10**6)),
        _promise(HISTOGRAM, {"items": SOME_ITEMS} | _OFTEN | {"n_users": FEW_CROWDS}, "epsilon"),
        _promise(HISTOGRAM, {"items": FEW_ITEMS} | _SELDOM, "lower"),
        _cost(MEAN, {}, _CROWD, _LIKE, dimensions=(1, 1)),
        _cost(MEAN, {"dimension": SIZES[1:]}, _CROWD, _EACH, dimensions=(2, 10**6)),
        _cost(HISTOGRAM, _SIZES, _CROWD, _LIKE),
    ),
    "distributed check-in": (
        _cost(MEAN, _SUMMED, _SUM | _VECTOR, _EACH, _CROWD),
        _cost(HISTOGRAM, _SUMMED, _SUM, _EACH, _CROWD | {"dimension": -0.5}),
    ),
    "random participation": (
        _cost(MEAN, _OUTER, _SUM | _VECTOR, _EACH, _CROWD),
        _cost(HISTOGRAM, _OUTER, _SUM, _EACH, _CROWD | {"dimension": -0.5}),
    ),
    "cloak, Theorem 1": (
        _cost(MEAN, _NUMBERS, _SUM | _PARTS | _EACH, _EACH),
        _cost(HISTOGRAM, _SUMMED, _SUM | _PARTS, _EACH),
    ),
    "cloak, Pólya noise": (
        _cost(MEAN, _NUMBERS, _SUM | _PARTS | _EACH, _EACH),
        _cost(HISTOGRAM, _SIZED, _SUM | _PARTS, _EACH),
    ),
    "cloak, Skellam noise": (
        _cost(MEAN, _SIZED, _SUM | _ROUNDS | _VECTOR, _EACH),
        _cost(HISTOGRAM, _SIZED, _SUM | _ROUNDS, _EACH),
    ),
    "cloak, no noise": (_cost(MEAN, _NUMBERS, _SUM, _EACH), _cost(HISTOGRAM, _SIZED, _LIKE, _EACH)),
    "local Gaussian": (
        _cost(MEAN, {"delta": DELTAS}, _CROWD | _ROUNDS | _VECTOR, _EACH),
        _cost(HISTOGRAM, {"delta": DELTAS}, _CROWD | _ROUNDS, _EACH),
    ),
    "trusted curator": (
        _cost(MEAN, {"delta": DELTAS, "numbers": SPARSE}, _SUM | _ROUNDS | _VECTOR, _EACH),
        _cost(HISTOGRAM, _OUTER, _SUM | _ROUNDS, _EACH),
    ),
}
"""What is recorded of each mechanism; the axis along which requests become harder soonest stands last in a promise."""
