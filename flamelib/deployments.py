r"""One request, every mechanism of the five documents: what each promises, how far it is off, what it costs.

A *request* is a published mean.  Each of ``n_users`` users holds a vector of ``dimension`` coordinates: values in
[0, 1] (task ``mean``), or one item of a list, a 1 among zeros (task ``histogram``).  The mean over the users is
published in each of ``rounds`` rounds, and the budget is that of all rounds together, for a user whose vectors are
replaced in every one of them.  So that numbers can be compared, the *error* is the same for all: the root of the mean
squared error of the published mean of one round, averaged over coordinates, for users whose values make it largest
(random rounding and absent users included).

Every epsilon comes from an account of the library.  Beside it stands what the document claims for the same parameters,
where it claims anything.  A mechanism that cannot serve a request is refused, with the reason.  Budgets of different
adjacency are never comparable as numbers; such rows carry a warning.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from flamelib._validate import DomainError, check
from flamelib.accuracy import summation_worst_mse
from flamelib.amplification.checkin_distributed import distributed, distributed_noise, distributed_rounds
from flamelib.amplification.checkin_shuffled import checkin_shuffled, shuffled_rounds
from flamelib.amplification.closed_form import histogram_epsilon
from flamelib.amplification.gaussian_mechanism import analytic_noise_std, gaussian_mechanism
from flamelib.amplification.participation import random_participation
from flamelib.amplification.participation_rounds import participation_rounds
from flamelib.amplification.skellam import least_variance, vector_epsilon
from flamelib.amplification.splitting import bits_sent, modulus_bits
from flamelib.amplification.splitting_noise import shared_noise, truncated_variance
from flamelib.amplification.splitting_rules import exact_rule, noisy_rule, security_needed
from flamelib.amplification.splitting_users import least_messages
from flamelib.amplification.sum_plans import recommended
from flamelib.amplification.vectors import account
from flamelib.discrete_noise import TruncatedLaplace
from flamelib.guarantees import Adjacency
from flamelib.profiles import AnyProfile, KaryProfile
from flamelib.protocols import blanket, cloak, flame
from flamelib.randomizers import LaplaceNoise
from flamelib.search import greatest
from flamelib.vector_randomizers import CapMessages

REAL_BITS = 64
MOST_LEVELS = 64
FAR = 10
SPARED = 6
OVERFLOW = 2.0**-40
SHARE = 0.5
STEEPNESS = 3.4
LARGEST_START = 4.0
TASKS = ("mean", "histogram")

ADD_REMOVE = (
    "hides that one record is there at all; to replace a record is to remove one and to add one, at up to twice epsilon"
)
SUM_PRESERVING = "hides which data set of this very sum it is; the sum itself is published without noise"


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be published, about whom, and how often.

    Parameters
    ----------
    n_users : int, at least 2
    dimension : int
        Coordinates of a user's vector, or items of the list.
    rounds : int
    delta : float in (0, 1)
        Of all rounds together.
    task : "mean" or "histogram"
    sampling_rate : float in (0, 1]
        Chance that a user takes part in a round, where the mechanism draws lots for users; that it reports a
        coordinate, in SS-Double.

    Examples
    --------
    >>> Request(1000, dimension=16).moved
    (4.0, 16)
    """

    n_users: int
    dimension: int = 1
    rounds: int = 1
    delta: float = 1e-6
    task: str = "mean"
    sampling_rate: float = 0.1

    def __post_init__(self) -> None:
        check(n_users=self.n_users, dimension=self.dimension, rounds=self.rounds, sampling_rate=self.sampling_rate)
        if not 0 < check(delta=self.delta)["delta"] < 1:
            raise DomainError(f"delta must be a number in (0, 1), got {self.delta!r}")
        if self.task not in TASKS:
            raise DomainError(f"task must be one of {', '.join(TASKS)}, got {self.task!r}")
        if self.task == "histogram" and self.dimension < 2:
            raise DomainError(f"dimension must be a whole number of at least 2 for a histogram, got {self.dimension}")

    @property
    def moved(self) -> tuple[float, int]:
        """Largest change of a user's vector, in the 2-norm and in the 1-norm."""
        return (math.sqrt(self.dimension), self.dimension) if self.task == "mean" else (math.sqrt(2), 2)

    @property
    def radius(self) -> float:
        """Norm of the ball that holds every vector: around one half for values, around 0 for items."""
        return math.sqrt(self.dimension) / 2 if self.task == "mean" else 1.0

    @property
    def parts(self) -> int:
        """Numbers that one user can change in all rounds: among so many the budget is split."""
        return self.moved[1] * self.rounds

    @property
    def absence(self) -> float:
        """Variance that absent users add to the mean, on average over coordinates, at most."""
        rate = self.sampling_rate
        return self.radius**2 / self.dimension * (1 - rate) / (rate * self.n_users)


@dataclass(frozen=True, slots=True)
class Row:
    """What a mechanism yields for a request.

    Attributes
    ----------
    mechanism, document : str
    epsilon : float
        By an account of the library, at the request's delta (upper).
    claimed : float or None
        By the document's formula for the same parameters; none where it states nothing.
    error : float
        Root mean squared error of a coordinate of the mean.
    messages : float
        Of a user who takes part in a round; bits alike.
    trusted : str
        Who must do as told, or must not tell.
    adjacency : Adjacency
    warning : str
        Why its epsilon is not comparable with that of other rows; empty for replace-one.
    parameters : mapping
        What the account was called with, beside the request.
    """

    mechanism: str
    document: str
    epsilon: float
    claimed: float | None
    error: float
    messages: float
    bits: float
    trusted: str
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    warning: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A mechanism that cannot serve a request, and why."""

    mechanism: str
    reason: str


Maker = Callable[[Request, float], Row]


def mechanisms() -> tuple[str, ...]:
    """Names of all mechanisms, those with a local budget first.

    >>> mechanisms()[:4]
    ('local', 'blanket', 'simple', 'double')
    """
    return (*LOCAL, *CENTRAL)


def row(name: str, request: Request, epsilon: float | None = None, epsilon0: float | None = None) -> Row | Refusal:
    """One mechanism at a local budget, or tuned so that its certified epsilon is what is asked for.

    Parameters
    ----------
    name : str
        One of :func:`mechanisms`.
    request : Request
    epsilon, epsilon0 : float, positive
        Exactly one.  For a central ``epsilon`` the answer's is never above it (upper), and at least 98 % of it where
        a local budget is searched for.  ``epsilon0`` is the budget of one report.

    Examples
    --------
    >>> found = row("blanket", Request(10_000), epsilon0=2.0)
    >>> round(found.epsilon, 3), round(found.claimed, 3), round(found.error, 4), found.bits
    (0.108, 0.437, 0.005, 2)
    >>> row("topk", Request(10_000), epsilon=1.0).reason
    'it reports the largest coordinates only, so that the mean of full vectors comes out wrong'
    """
    if name not in mechanisms():
        raise DomainError(f"name must be one of {', '.join(mechanisms())}, got {name!r}")
    if (epsilon is None) == (epsilon0 is None):
        raise DomainError("exactly one of epsilon and epsilon0 must be given")
    asked = check(epsilon0=epsilon0)["epsilon0"] if epsilon is None else check(epsilon=epsilon)["epsilon"]
    if asked == 0:
        raise DomainError("epsilon must be a number above 0, got 0")
    try:
        if name in CENTRAL:
            if epsilon is None:
                return Refusal(name, "nothing that one user sends is private by itself: ask for a central epsilon")
            return CENTRAL[name](request, asked)
        return LOCAL[name](request, asked if epsilon is None else _local_budget(name, request, asked))
    except DomainError as error:
        return Refusal(name, str(error))


def rows(
    request: Request, epsilon: float | None = None, epsilon0: float | None = None, names: Iterable[str] | None = None
) -> tuple[Row | Refusal, ...]:
    """Every mechanism, or those named, as in :func:`row`.

    Examples
    --------
    >>> found = rows(Request(1000, dimension=20, rounds=3), epsilon0=1e-9)
    >>> [one.mechanism for one in found if isinstance(one, Row)]
    ['local', 'blanket', 'simple', 'double', 'shuffled check-in']
    """
    return tuple(row(name, request, epsilon, epsilon0) for name in (mechanisms() if names is None else names))


def _local_budget(name: str, request: Request, epsilon: float) -> float:
    """The largest local budget found whose certified epsilon is not above this."""
    share = STEEPNESS * math.sqrt(request.dimension * request.rounds / request.n_users)
    start = epsilon if name == "local" else min(epsilon / share, LARGEST_START)
    return greatest(lambda epsilon0: LOCAL[name](request, epsilon0).epsilon, epsilon, start)


# --- no shuffler, no server -------------------------------------------------------------------------------------------


def _local(request: Request, epsilon0: float) -> Row:
    """Every report is private alone; reports of one user compose."""
    n, times = request.n_users, request.rounds * (request.dimension if request.task == "mean" else 1)
    if request.task == "mean":
        error, bits = math.sqrt(2 / n) / epsilon0, float(REAL_BITS * request.dimension)
    else:
        error, bits = math.sqrt(_item_variance(request, epsilon0) / n), float(modulus_bits(request.dimension))
    given = {"epsilon0": epsilon0, "times": times}
    messages = request.dimension if request.task == "mean" else 1
    return Row("local", "baseline", epsilon0 * times, None, error, messages, bits, "nobody", parameters=given)


def _noisy_local(request: Request, epsilon: float) -> Row:
    """Gaussian noise of every user on its whole vector."""
    found, std = _gaussian(request, epsilon)
    size, error = request.dimension, std / math.sqrt(request.n_users)
    given = {"noise_std": std}
    return Row("local Gaussian", "baseline", found, None, error, size, REAL_BITS * size, "nobody", parameters=given)


def _curator(request: Request, epsilon: float) -> Row:
    """Gaussian or Laplace noise on the sum, whichever is less."""
    found, std = _gaussian(request, epsilon)
    laplace = math.sqrt(2) * request.parts / epsilon
    if laplace < std:
        found, std = epsilon, laplace
    size, given = request.dimension, {"noise_std": std}
    return Row(
        "trusted curator", "baseline", found, None, std / request.n_users, size, REAL_BITS * size,
        "the server, with all data", parameters=given,
    )  # fmt: skip


def _gaussian(request: Request, epsilon: float) -> tuple[float, float]:
    """Certified epsilon and the least noise: rounds of Gaussian noise are one with as many times the squared change."""
    moved = request.moved[0] * math.sqrt(request.rounds)
    std = analytic_noise_std(moved, epsilon, request.delta)
    return min(epsilon, float(gaussian_mechanism(moved, std, delta=request.delta))), std


# --- shuffled reports -------------------------------------------------------------------------------------------------


def _item_variance(request: Request, epsilon0: float) -> float:
    """Of one user's unbiased report of an item, on average over the items: the same whatever it is."""
    protocol = blanket.HistogramProtocol(2, request.dimension, KaryProfile(epsilon0, request.dimension).mass)
    both = [float(blanket.count_variance(protocol, count)) / 2 for count in (0, 2)]
    return (both[1] + (request.dimension - 1) * both[0]) / request.dimension


def _levels(epsilon0: float) -> int:
    """Levels of rounding with the least error at this local budget."""
    return min(range(1, MOST_LEVELS + 1), key=lambda levels: _value_variance(epsilon0, levels))


def _value_variance(epsilon0: float, levels: int) -> float:
    """Of one user's unbiased report of a value, the worst one."""
    mass = KaryProfile(epsilon0, levels + 1).mass
    return summation_worst_mse(2, levels, mass) / 2 if mass < 1 else math.inf


def _shuffled(request: Request, epsilon0: float) -> Row:
    """The blanket protocol: an item at once, the coordinates of a vector with a shuffle for each."""
    histogram = request.task == "histogram"
    buckets = request.dimension if histogram else _levels(epsilon0) + 1
    variance = _item_variance(request, epsilon0) if histogram else _value_variance(epsilon0, buckets - 1)
    times = request.rounds * (1 if histogram else request.dimension)
    profile, n, delta = KaryProfile(epsilon0, buckets), request.n_users, request.delta
    claimed = histogram_epsilon(n, buckets, profile.mass, delta) if times == 1 else math.inf
    if times == 1:
        found = blanket.account(blanket.HistogramProtocol(n, buckets, profile.mass), delta).epsilon
    else:
        found = float(shuffled_rounds(profile, n, times, delta=delta))
    messages = 1 if histogram else request.dimension
    return Row(
        "blanket", "Balle, Bell, Gascon, Nissim 2019", found, _finite(claimed), math.sqrt(variance / n), messages,
        messages * modulus_bits(buckets), "a shuffler", parameters={"epsilon0": epsilon0, "n_buckets": buckets},
    )  # fmt: skip


def _finite(claimed: float) -> float | None:
    """A claim, or none where the document's formula is silent."""
    return claimed if math.isfinite(claimed) else None


def _simple(request: Request, epsilon0: float) -> Row:
    protocol = flame.SimpleProtocol(request.n_users, request.dimension, 0.5, LaplaceNoise(epsilon0))
    return _flame(request, "simple", protocol, flame.noise_std(protocol) ** 2)


def _double(request: Request, epsilon0: float) -> Row:
    """Bags with room for six standard deviations more than come on average."""
    n, kept = request.n_users, request.sampling_rate * request.dimension
    likely = n * request.sampling_rate
    padded = max(2, math.ceil(likely + SPARED * math.sqrt(likely)))
    protocol = flame.DoubleProtocol(n, request.dimension, 0.5, LaplaceNoise(epsilon0), kept, padded, "bernoulli")
    absent = (1 - request.sampling_rate) / (4 * likely)
    return _flame(request, "double", protocol, flame.noise_std(protocol) ** 2 + absent)


def _topk(request: Request, epsilon0: float) -> Row:
    """The item is the only coordinate that is not 0; bags have room for all users, and the sum is divided by n."""
    if request.task == "mean":
        raise DomainError("it reports the largest coordinates only, so that the mean of full vectors comes out wrong")
    protocol = flame.TopkProtocol(request.n_users, request.dimension, 1.0, LaplaceNoise(epsilon0), 1, request.n_users)
    return _flame(request, "topk", protocol, (flame.noise_std(protocol) / request.dimension) ** 2)


def _flame(request: Request, name: str, protocol: flame.Protocol, variance: float) -> Row:
    """Rounds are accounted for as so many times more coordinates."""
    kept, rounds, budget = protocol.kept, request.rounds, protocol.randomizer.epsilon0
    whole, padded = kept * rounds, protocol.padded

    def epsilon(bound: str, route: str) -> float:
        size = request.dimension * rounds
        return account(name, size, request.n_users, budget, request.delta, bound, route, whole, padded)

    bits = kept * (REAL_BITS + modulus_bits(max(2, request.dimension)))
    return Row(
        name, "Liu et al. 2021", float(epsilon("blanket", "sound")), _finite(epsilon("withdrawn", "paper")),
        math.sqrt(variance), kept, bits, "a shuffler that pads",
        parameters={"epsilon0": budget, "kept": whole, "padded": padded},
    )  # fmt: skip


def _shuffled_checkin(request: Request, epsilon0: float) -> Row:
    """Items and single values by k-ary response, vectors by PrivUnit2, of which the local budget alone counts."""
    n, rate, size = request.n_users, request.sampling_rate, request.dimension
    buckets = size if request.task == "histogram" else _levels(epsilon0) + 1
    vector = request.task == "mean" and size > 1
    if vector:
        report = CapMessages.privunit2(size, epsilon0, request.radius).norm ** 2 / (size * rate * n)
        profile: AnyProfile | KaryProfile = AnyProfile(epsilon0)
    else:
        own = _item_variance(request, epsilon0) if size > 1 else _value_variance(epsilon0, buckets - 1)
        report, profile = own / (rate * n) + request.absence, KaryProfile(epsilon0, buckets)
    found = float(shuffled_rounds(profile, n, request.rounds, delta=request.delta, checkin_rate=rate))
    claimed = float(checkin_shuffled(epsilon0, n, rate, request.rounds, request.delta, "thm-2"))
    bits = REAL_BITS * size if vector else modulus_bits(buckets)
    return Row(
        "shuffled check-in", "Liew, Hasegawa, Takahashi 2022", found, _finite(claimed), math.sqrt(report), 1, bits,
        "an anonymous channel", parameters={"epsilon0": epsilon0, "n_buckets": 0 if vector else buckets},
    )  # fmt: skip


# --- sums with noise --------------------------------------------------------------------------------------------------


def _distributed_checkin(request: Request, epsilon: float) -> Row:
    """Records of norm 1 at most; every client that checks in adds Gaussian noise of its own."""
    n, rate, rounds, delta = request.n_users, request.sampling_rate, request.rounds, request.delta
    std = distributed_noise(n, rate, rounds, epsilon, delta)
    found = float(distributed_rounds(n, rate, std, rounds, delta=delta))
    claimed = float(distributed(n, rate, std, rounds, delta, "thm-4"))
    error = math.sqrt((std * request.radius) ** 2 / (rate * n) + request.absence)
    return Row(
        "distributed check-in", "Liew, Hasegawa, Takahashi 2022", found, _finite(claimed), error, request.dimension,
        REAL_BITS * request.dimension, "secure aggregation; all others add their noise", parameters={"noise_std": std},
    )  # fmt: skip


def _participation(request: Request, epsilon: float) -> Row:
    """One record a client; noise of a server that keeps to itself who took part."""
    rate, rounds, delta = request.sampling_rate, request.rounds, request.delta

    def found(precision: float) -> float:
        return float(participation_rounds("outer", rate, 1.0, 1, 1 / precision, 1.0, rounds, delta=delta))

    std = 1 / greatest(found, epsilon, epsilon)
    claimed = float(random_participation("outer", rate, 1.0, 1, std, 1.0, delta=delta)) if rounds == 1 else None
    error = math.sqrt((std * request.radius / (rate * request.n_users)) ** 2 + request.absence)
    size = request.dimension
    return Row(
        "random participation", "Hasircioglu, Gunduz 2022", found(1 / std), claimed, error, size, REAL_BITS * size,
        "the server, with all updates and who sent them", Adjacency.ADD_REMOVE, ADD_REMOVE, {"noise_std": std},
    )  # fmt: skip


# --- sums of shares ---------------------------------------------------------------------------------------------------

SHUFFLERS = "one of several shufflers; all others add their noise"


def _cloak_rule(request: Request, epsilon: float) -> Row:
    """Rule T1 on an even share of the budget for every number that a user can change."""
    n, parts = request.n_users, request.parts
    budget, delta = epsilon / parts, request.delta / parts
    rule = noisy_rule(budget, delta, n)
    noise = TruncatedLaplace(rule.modulus, rule.decay)
    protocol = cloak.CloakProtocol(
        n, rule.modulus, rule.scale, rule.n_messages, noise=noise, noise_rate=rule.noise_rate
    )
    one = cloak.account(protocol, delta).one_user
    found = parts * one.epsilon if one else math.inf
    std = math.sqrt(rule.noise_rate * n * truncated_variance(rule.modulus, rule.decay)) / rule.scale
    size = request.dimension
    return Row(
        "cloak, Theorem 1", "Ghazi, Pagh, Velingker 2019", min(found, epsilon), epsilon,
        math.hypot(std, rule.rounding_bound) / n, size * rule.n_messages, size * rule.bits, SHUFFLERS,
        parameters={"decay": rule.decay, "noise_rate": rule.noise_rate, "scale": rule.scale},
    )  # fmt: skip


def _cloak_polya(request: Request, epsilon: float) -> Row:
    """Pure epsilon for the sums, an even share of it for each; the shares of all coordinates cost delta."""
    n, size, each = request.n_users, request.dimension, epsilon / request.parts
    security = security_needed(epsilon, request.delta, size * request.rounds)
    plan = recommended(n, each, OVERFLOW, security, scale=1 if request.task == "histogram" else None)
    rounding = plan.rounding_std if request.task == "mean" else 0.0
    error = math.hypot(shared_noise(plan.scale, each).std, rounding) / n
    return Row(
        "cloak, Pólya noise", "Balle, Bell, Gascon, Nissim 2020", epsilon, None, error, size * plan.n_messages,
        size * plan.bits, SHUFFLERS, parameters={"decay": plan.decay, "scale": plan.scale, "security_bits": security},
    )  # fmt: skip


def _cloak_skellam(request: Request, epsilon: float) -> Row:
    """Whole numbers on a grid whose rounding costs little; half of delta at most for the shares."""
    n, size, rounds = request.n_users, request.dimension, request.rounds
    scale = 1 if request.task == "histogram" else math.isqrt(n - 1) + 1
    security = security_needed(epsilon, SHARE * request.delta, size * rounds)
    given = {"sensitivity_2": scale * request.moved[0], "sensitivity_1": scale * request.moved[1]}
    variance = least_variance(
        size, rounds=rounds, epsilon=epsilon, delta=request.delta, security_bits=security, **given
    )
    found = vector_epsilon(size, variance=variance, rounds=rounds, delta=request.delta, security_bits=security, **given)
    modulus = n * scale + 2 * math.ceil(FAR * math.sqrt(variance)) + 1
    messages = least_messages(security, n, modulus)
    error = math.sqrt(variance + (n / 4 if request.task == "mean" else 0)) / (scale * n)
    return Row(
        "cloak, Skellam noise", "Agarwal, Kairouz, Liu 2021", min(found, epsilon), None, error,
        size * messages, bits_sent(modulus, messages, size), SHUFFLERS,
        parameters={"variance": variance, "security_bits": security, **given},
    )  # fmt: skip


def _cloak_exact(request: Request, epsilon: float) -> Row:
    """Rule T2: nothing is added; rounding moves the sum by 1 at most."""
    n, times, size = request.n_users, request.dimension * request.rounds, request.dimension
    rule = exact_rule(epsilon / times, request.delta / times, n, 1.0)
    error = 1 / rule.scale if request.task == "mean" else 0.0
    return Row(
        "cloak, no noise", "Ghazi, Pagh, Velingker 2019", epsilon, epsilon, error, size * rule.n_messages,
        size * rule.bits, "one of several shufflers", Adjacency.SUM_PRESERVING, SUM_PRESERVING,
        {"scale": rule.scale, "smoothness": rule.smoothness},
    )  # fmt: skip


LOCAL: dict[str, Maker] = {
    "local": _local,
    "blanket": _shuffled,
    "simple": _simple,
    "double": _double,
    "topk": _topk,
    "shuffled check-in": _shuffled_checkin,
}
CENTRAL: dict[str, Maker] = {
    "distributed check-in": _distributed_checkin,
    "random participation": _participation,
    "cloak, Theorem 1": _cloak_rule,
    "cloak, Pólya noise": _cloak_polya,
    "cloak, Skellam noise": _cloak_skellam,
    "cloak, no noise": _cloak_exact,
    "local Gaussian": _noisy_local,
    "trusted curator": _curator,
}
