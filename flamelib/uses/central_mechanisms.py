"""Mechanisms that add noise to a sum: what they yield for a request at a central budget.

One function for each, from the request and the epsilon that is to be kept; accounts and errors are the library's.
"""

import functools
import math

from flamelib.accounting.checkin.distributed_noise import distributed, distributed_noise, distributed_rounds
from flamelib.accounting.noise.discrete_laplace import shared_noise, truncated_variance
from flamelib.accounting.noise.gaussian import analytic_noise_std, gaussian_mechanism
from flamelib.accounting.noise.skellam import least_variance, vector_epsilon
from flamelib.accounting.sampling.rounds import participation_rounds
from flamelib.accounting.sampling.secret_participation import random_participation
from flamelib.accounting.splitting.lemmas import bits_sent
from flamelib.accounting.splitting.n_user_bounds import least_messages
from flamelib.accounting.splitting.parameter_search import recommended
from flamelib.accounting.splitting.theorem_parameters import exact_rule, noisy_rule, security_needed
from flamelib.core.guarantees import Adjacency, RestsOn
from flamelib.core.search import greatest, stepped_back
from flamelib.mechanisms.integers.noise import TruncatedLaplace
from flamelib.protocols.cloak import CloakProtocol, account
from flamelib.uses.workload import REAL_BITS, Maker, Request, Row, finite

_FAR = 10  # standard deviations of noise for which the modulus has room
_OVERFLOW = 2.0**-40  # probability that noise goes around the modulus
_SHARE = 0.5  # of delta, at most, for what the shares tell
_SHUFFLERS = "one of several shufflers; all others add their noise"
_ADD_REMOVE = (
    "hides that one record is there at all; to replace a record is to remove one and to add one, "
    "at up to twice epsilon with a delta that is 1 + exp(epsilon) times as large"
)
_SUM_PRESERVING = "hides which data set of this very sum it is; the sum itself is published without noise"


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
    least = analytic_noise_std(moved, epsilon, request.delta)

    def found(std: float) -> float:
        return float(gaussian_mechanism(moved, std, delta=request.delta))

    std = stepped_back(found, least, epsilon, rises=False)
    return found(std), std


def _distributed_checkin(request: Request, epsilon: float) -> Row:
    """Records of norm 1 at most; every client that checks in adds Gaussian noise of its own."""
    n, rate, rounds, delta = request.n_users, request.sampling_rate, request.rounds, request.delta
    std, found = _checkin_noise(n, rate, rounds, epsilon, delta)
    claimed = float(distributed(n, rate, std, rounds, delta, "thm-4")) if std else math.inf
    error = math.sqrt((std * request.radius) ** 2 / (rate * n) + request.absence)
    return Row(
        "distributed check-in", "Liew, Hasegawa, Takahashi 2022", found, finite(claimed), error, request.dimension,
        REAL_BITS * request.dimension, "secure aggregation; all others add their noise", parameters={"noise_std": std},
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _checkin_noise(n_users: int, rate: float, rounds: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Noise of a client for records of norm 1, whatever their dimension, and its certified epsilon.

    No noise is needed where a client is there with a probability of at most delta.
    """
    std = distributed_noise(n_users, rate, rounds, epsilon, delta)
    return std, float(distributed_rounds(n_users, rate, std, rounds, delta=delta)) if std else 0.0


@functools.lru_cache(maxsize=64)
def _participation_noise(rate: float, rounds: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Noise of the server for records of norm 1, and its certified epsilon."""

    @functools.cache
    def found(std: float) -> float:
        return float(participation_rounds("outer", rate, 1.0, 1, std, 1.0, rounds, delta=delta))

    std = 1 / greatest(lambda precision: found(1 / precision), epsilon, epsilon)
    return std, found(std)


def _participation(request: Request, epsilon: float) -> Row:
    """One record a client; noise of a server that keeps to itself who took part."""
    rate, rounds, delta = request.sampling_rate, request.rounds, request.delta
    std, found = _participation_noise(rate, rounds, epsilon, delta)
    claimed = float(random_participation("outer", rate, 1.0, 1, std, 1.0, delta=delta)) if rounds == 1 else None
    error = math.sqrt((std * request.radius / (rate * request.n_users)) ** 2 + request.absence)
    size = request.dimension
    return Row(
        "random participation", "Hasircioglu, Gunduz 2022", found, claimed, error, size, REAL_BITS * size,
        "the server, with all updates and who sent them", Adjacency.ADD_REMOVE, _ADD_REMOVE, {"noise_std": std},
    )  # fmt: skip


# --- sums of shares ---------------------------------------------------------------------------------------------------


def _cloak_rule(request: Request, epsilon: float) -> Row:
    """Rule T1 on an even share of the budget for every number that a user can change."""
    n, parts = request.n_users, request.parts
    rule = noisy_rule(epsilon / parts, request.delta / parts, n)
    found = parts * _rule_epsilon(n, epsilon / parts, request.delta / parts)
    std = math.sqrt(rule.noise_rate * n * truncated_variance(rule.modulus, rule.decay)) / rule.scale
    size = request.dimension
    return Row(
        "cloak, Theorem 1", "Ghazi, Pagh, Velingker 2019", min(found, epsilon), epsilon,
        math.hypot(std, rule.rounding_bound) / n, size * rule.n_messages, size * rule.bits, _SHUFFLERS,
        parameters={"decay": rule.decay, "noise_rate": rule.noise_rate, "scale": rule.scale},
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _rule_epsilon(n_users: int, epsilon: float, delta: float) -> float:
    """Certified epsilon of one number by rule T1 for this claim."""
    rule = noisy_rule(epsilon, delta, n_users)
    noise = TruncatedLaplace(rule.modulus, rule.decay)
    protocol = CloakProtocol(
        n_users, rule.modulus, rule.scale, rule.n_messages, noise=noise, noise_rate=rule.noise_rate
    )
    one = account(protocol, delta).one_user
    return one.epsilon if one else math.inf


def _cloak_polya(request: Request, epsilon: float) -> Row:
    """Pure epsilon for the sums, an even share of it for each; the shares of all coordinates cost delta."""
    n, size, each = request.n_users, request.dimension, epsilon / request.parts
    security = security_needed(epsilon, request.delta, size * request.rounds)
    plan = recommended(n, each, _OVERFLOW, security, scale=1 if request.task == "histogram" else None)
    rounding = plan.rounding_std if request.task == "mean" else 0.0
    error = math.hypot(shared_noise(plan.scale, each).std, rounding) / n
    return Row(
        "cloak, Pólya noise", "Balle, Bell, Gascon, Nissim 2020", epsilon, None, error, size * plan.n_messages,
        size * plan.bits, _SHUFFLERS, parameters={"decay": plan.decay, "scale": plan.scale, "security_bits": security},
    )  # fmt: skip


def _cloak_skellam(request: Request, epsilon: float) -> Row:
    """Whole numbers on a grid whose rounding costs little; half of delta at most for the shares."""
    n, size, rounds = request.n_users, request.dimension, request.rounds
    scale = 1 if request.task == "histogram" else math.isqrt(n - 1) + 1
    security = security_needed(epsilon, _SHARE * request.delta, size * rounds)
    given = {"sensitivity_2": scale * request.moved[0], "sensitivity_1": scale * request.moved[1]}
    variance = least_variance(
        size, rounds=rounds, epsilon=epsilon, delta=request.delta, security_bits=security, **given
    )

    def certified(variance: float) -> float:
        return vector_epsilon(
            size, variance=variance, rounds=rounds, delta=request.delta, security_bits=security, **given
        )

    variance = stepped_back(certified, variance, epsilon, rises=False)
    found = certified(variance)
    modulus = n * scale + 2 * math.ceil(_FAR * math.sqrt(variance)) + 1
    messages = least_messages(security, n, modulus)
    error = math.sqrt(variance + (n / 4 if request.task == "mean" else 0)) / (scale * n)
    return Row(
        "cloak, Skellam noise", "Agarwal, Kairouz, Liu 2021", found, None, error,
        size * messages, bits_sent(modulus, messages, size), _SHUFFLERS,
        parameters={"variance": variance, "security_bits": security, **given}, rests_on=RestsOn.CITED,
    )  # fmt: skip


def _cloak_exact(request: Request, epsilon: float) -> Row:
    """Rule T2: nothing is added; rounding moves the sum by 1 at most."""
    n, times, size = request.n_users, request.dimension * request.rounds, request.dimension
    rule = exact_rule(epsilon / times, request.delta / times, n, 1.0)
    error = 1 / rule.scale if request.task == "mean" else 0.0
    return Row(
        "cloak, no noise", "Ghazi, Pagh, Velingker 2019", epsilon, epsilon, error, size * rule.n_messages,
        size * rule.bits, "one of several shufflers", Adjacency.SUM_PRESERVING, _SUM_PRESERVING,
        {"scale": rule.scale, "smoothness": rule.smoothness},
    )  # fmt: skip


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
