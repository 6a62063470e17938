r"""What explicit data sets lose under a mechanism at the parameters of its row: the lower end beside the account.

A function for each mechanism of which something is known from below; of the others nothing is claimed.  Reports of
vectors of which the account knows the local budget alone, and sums in shares are such.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from flamelib.accounting.checkin.distributed_noise import distributed_rounds_lower
from flamelib.accounting.coordinates import counting, likelihood_weighted
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.sampling.rounds import participation_rounds
from flamelib.accounting.shuffling.accountant import lower_bound
from flamelib.core.guarantees import CROSSED, RestsOn, bracketed_ends
from flamelib.core.logspace import MARGIN
from flamelib.core.profiles import KaryProfile
from flamelib.core.vocabulary import plainly
from flamelib.uses.workload import Request, Row


def bracketed(found: Row, request: Request) -> Row:
    """The row with its lower end, where there is one; ends that contradict each other are warned of, and estimated."""
    known = _LOWEST.get(found.mechanism)
    least = known(request, found) if known else None
    if least is None:
        return found
    lower, upper, sure = bracketed_ends(max(float(least), 0.0), found.epsilon, 0.0, f"{found.mechanism} of {request}")
    rests_on = found.rests_on if sure else RestsOn.ESTIMATED
    warning = "; ".join(filter(None, (found.warning, "" if sure else CROSSED)))
    return replace(found, lower=lower, epsilon=upper, rests_on=rests_on, warning=warning)


@plainly
def repeated_lower(epsilon0: float, probability: float, times: int, delta: float) -> float:
    r"""Epsilon that so many reports of one person, seen together, lose at least (lower).

    A report loses all that it can, :math:`\varepsilon_0`, with this ``probability`` under one of two values.  That j of
    them do, the others being ignored, has the probability :math:`p^j` under that value and
    :math:`p^je^{-j\varepsilon_0}` under the other, so that :math:`p^j(1-e^{\varepsilon-j\varepsilon_0})` is a lower
    bound of delta, and

    .. math:: \varepsilon \ge \max_j\; j\varepsilon_0 + \log(1 - \delta p^{-j}) .

    The maximum is next to where the slope vanishes, at :math:`\delta p^{-j} = \varepsilon_0/(\varepsilon_0 - \log p)`.

    Examples
    --------
    >>> round(repeated_lower(1.0, 0.5, 1, 0.0), 6), round(repeated_lower(1.0, 0.5, 100, 1e-6), 4)
    (1.0, 18.2571)
    """
    nats = -math.log(probability)
    best = times if delta == 0 else (math.log(epsilon0 / (epsilon0 + nats)) - math.log(delta)) / nats if nats else times
    found = 0.0
    for j in {min(max(math.floor(best) + more, 0), times) for more in (0, 1)}:
        share = delta * math.exp(j * nats) if j * nats < 700 else math.inf
        found = max(found, j * epsilon0 + math.log1p(-share) if share < 1 else 0.0)
    return found * (1 - MARGIN)


def _local(request: Request, found: Row) -> float:
    """A Laplace report of 0 is at most 0 half of the time; one of an item is true with a given probability."""
    epsilon0 = found.parameters["epsilon0"]
    true = 1 / (1 + (request.dimension - 1) * math.exp(-epsilon0))
    probability = 0.5 if request.task == "mean" else true
    return repeated_lower(epsilon0, probability, int(found.parameters["times"]), request.delta)


def _shuffled(request: Request, found: Row) -> float:
    profile = KaryProfile(found.parameters["epsilon0"], int(found.parameters["n_buckets"]))
    times = request.rounds * (request.dimension if request.task == "mean" else 1)
    return lower_bound(profile, request.n_users, times, 1.0, None, request.delta)


def _simple(request: Request, found: Row) -> float:
    size, epsilon0 = request.dimension * request.rounds, found.parameters["epsilon0"]
    return counting.simple_lower(size, request.n_users, epsilon0, None, request.delta)


def _double(request: Request, found: Row) -> float:
    """Rounds are so many times more coordinates, each included by itself."""
    size, padded = request.dimension * request.rounds, int(found.parameters["padded"])
    rate, epsilon0 = request.sampling_rate, found.parameters["epsilon0"]
    return counting.double_lower(size, rate, padded, epsilon0, None, request.delta, n_users=request.n_users)


def _topk(request: Request, found: Row) -> float:
    plan = found.parameters
    return likelihood_weighted.weighed_lower(
        request.n_users, int(plan["kept"]), int(plan["padded"]), plan["epsilon0"], None, request.delta
    )


def _shuffled_checkin(request: Request, found: Row) -> float | None:
    buckets = int(found.parameters["n_buckets"])
    if not buckets:
        return None
    profile = KaryProfile(found.parameters["epsilon0"], buckets)
    return lower_bound(profile, request.n_users, request.rounds, request.sampling_rate, None, request.delta)


def _distributed(request: Request, found: Row) -> float:
    std = found.parameters["noise_std"]
    given = (request.n_users, request.sampling_rate, std, request.rounds, None, request.delta)
    return distributed_rounds_lower(*given) if std else 0.0


def _participation(request: Request, found: Row) -> float:
    std = found.parameters["noise_std"]
    given = (request.sampling_rate, 1.0, 1, std, 1.0, request.rounds, None, request.delta)
    return participation_rounds("outer", *given, side="lower")


def _gaussian(request: Request, found: Row) -> float:
    moved = request.moved[0] * math.sqrt(request.rounds)
    exact = gaussian_mechanism(moved, found.parameters["noise_std"], delta=request.delta)
    return exact - exact.uncertainty


def _curator(request: Request, found: Row) -> float:
    """Laplace noise on the sum tells of every number as a report does."""
    if found.parameters["noise_std"] == math.sqrt(2) * request.parts / found.epsilon:
        return repeated_lower(found.epsilon / request.parts, 0.5, request.parts, request.delta)
    return _gaussian(request, found)


_LOWEST: dict[str, Callable[[Request, Row], float | None]] = {
    "local": _local,
    "blanket": _shuffled,
    "simple": _simple,
    "double": _double,
    "topk": _topk,
    "shuffled check-in": _shuffled_checkin,
    "distributed check-in": _distributed,
    "random participation": _participation,
    "local Gaussian": _gaussian,
    "trusted curator": _curator,
}
