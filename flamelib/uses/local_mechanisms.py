"""Mechanisms in which every report is private by itself: what they yield for a request at a local budget.

One function for each, from the request and the budget of one report; accounts and errors are the library's.  Requests
that differ in delta, rounds or coordinates share what they ask about a single shuffle
(:mod:`flamelib.accounting.composition.privacy_profile`).
"""

import functools
import math

from flamelib.accounting.checkin.shuffled import RTOL_ROUNDS, checkin_shuffled
from flamelib.accounting.composition.privacy_profile import PrivacyProfile, composed_epsilon, tabulated
from flamelib.accounting.coordinates.vector_bounds import account, shared_account
from flamelib.accounting.shuffling.accuracy import summation_worst_mse
from flamelib.accounting.shuffling.closed_form import histogram_epsilon
from flamelib.accounting.shuffling.randomizers import round_curve
from flamelib.accounting.splitting.lemmas import modulus_bits
from flamelib.core.logspace import product_above
from flamelib.core.profiles import AnyProfile, KaryProfile, Profile
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.mechanisms.vectors import CapMessages
from flamelib.protocols import blanket, flame
from flamelib.uses.workload import REAL_BITS, Maker, Request, Row, finite

_MOST_LEVELS = 64  # of rounding, among which the best is taken
_SPARED = 6  # standard deviations of room in a bag beyond what comes on average


@functools.lru_cache(maxsize=512)
def _shuffles(randomizer: Profile, n_users: int, times: int, delta: float, rate: float = 1.0) -> float:
    """Certified epsilon of so many shuffles of one report of each user, or of those who check in at this rate."""
    return float(composed_epsilon([(_shuffle(randomizer, n_users, rate), times)], delta, RTOL_ROUNDS))


@functools.lru_cache(maxsize=64)
def _shuffle(randomizer: Profile, n_users: int, rate: float) -> PrivacyProfile:
    return tabulated(round_curve(randomizer, n_users, rate))


_flame_epsilon = functools.lru_cache(maxsize=512)(shared_account)


def _local(request: Request, epsilon0: float) -> Row:
    """Every report is private alone; reports of one user compose."""
    n, times = request.n_users, request.rounds * (request.dimension if request.task == "mean" else 1)
    if request.task == "mean":
        error, bits = math.sqrt(2 / n) / epsilon0, float(REAL_BITS * request.dimension)
    else:
        error, bits = math.sqrt(_item_variance(request, epsilon0) / n), float(modulus_bits(request.dimension))
    given = {"epsilon0": epsilon0, "times": times}
    messages = request.dimension if request.task == "mean" else 1
    epsilon = product_above(epsilon0, times)
    return Row("local", "baseline", epsilon, None, error, messages, bits, "nobody", parameters=given)


def _item_variance(request: Request, epsilon0: float) -> float:
    """Of one user's unbiased report of an item, on average over the items: the same whatever it is."""
    protocol = blanket.HistogramProtocol(2, request.dimension, KaryProfile(epsilon0, request.dimension).mass)
    both = [float(blanket.count_variance(protocol, count)) / 2 for count in (0, 2)]
    return (both[1] + (request.dimension - 1) * both[0]) / request.dimension


def _levels(epsilon0: float) -> int:
    """Levels of rounding with the least error at this local budget."""
    return min(range(1, _MOST_LEVELS + 1), key=lambda levels: _value_variance(epsilon0, levels))


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
        found = _shuffles(profile, n, times, delta)
    messages = 1 if histogram else request.dimension
    return Row(
        "blanket", "Balle, Bell, Gascon, Nissim 2019", found, finite(claimed), math.sqrt(variance / n), messages,
        messages * modulus_bits(buckets), "a shuffler", parameters={"epsilon0": epsilon0, "n_buckets": buckets},
    )  # fmt: skip


def _simple(request: Request, epsilon0: float) -> Row:
    protocol = flame.FlameSimple(request.n_users, request.dimension, 0.5, LaplaceNoise(epsilon0))
    return _flame(request, "simple", protocol, flame.noise_std(protocol) ** 2)


def _double(request: Request, epsilon0: float) -> Row:
    """Bags with room for six standard deviations more than come on average."""
    n, kept = request.n_users, request.sampling_rate * request.dimension
    likely = n * request.sampling_rate
    padded = max(2, math.ceil(likely + _SPARED * math.sqrt(likely)))
    protocol = flame.FlameDouble(n, request.dimension, 0.5, LaplaceNoise(epsilon0), kept, padded, "independent")
    absent = (1 - request.sampling_rate) / (4 * likely)
    return _flame(request, "double", protocol, flame.noise_std(protocol) ** 2 + absent)


def _topk(request: Request, epsilon0: float) -> Row:
    """The item is the only coordinate that is not 0; bags have room for all users, and the sum is divided by n."""
    if request.task == "mean":
        raise DomainError("it reports the largest coordinates only, so that the mean of full vectors comes out wrong")
    protocol = flame.FlameTopk(request.n_users, request.dimension, 1.0, LaplaceNoise(epsilon0), 1, request.n_users)
    return _flame(request, "topk", protocol, (flame.noise_std(protocol) / request.dimension) ** 2)


def _flame(request: Request, name: str, protocol: flame.Protocol, variance: float) -> Row:
    """Rounds are accounted for as so many times more coordinates."""
    kept, rounds, budget = protocol.kept, request.rounds, protocol.randomizer.epsilon0
    n, size, whole, padded = request.n_users, request.dimension * rounds, kept * rounds, protocol.padded
    claimed = account(name, size, n, budget, request.delta, "withdrawn", "paper", whole, padded)
    # Of the largest coordinates it does not matter out of how many they are chosen.
    found = _flame_epsilon(name, math.ceil(whole) if name == "topk" else size, n, budget, request.delta, whole, padded)
    bits = kept * (REAL_BITS + modulus_bits(max(2, request.dimension)))
    return Row(
        name, "Liu et al. 2021", float(found), finite(claimed), math.sqrt(variance), kept, bits, "a shuffler that pads",
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
    found = _shuffles(profile, n, request.rounds, request.delta, rate)
    claimed = float(checkin_shuffled(n, rate, request.rounds, request.delta, "thm-2", epsilon0))
    bits = REAL_BITS * size if vector else modulus_bits(buckets)
    return Row(
        "shuffled check-in", "Liew, Hasegawa, Takahashi 2022", found, finite(claimed), math.sqrt(report), 1, bits,
        "an anonymous channel", parameters={"epsilon0": epsilon0, "n_buckets": 0 if vector else buckets},
    )  # fmt: skip


LOCAL: dict[str, Maker] = {
    "local": _local,
    "blanket": _shuffled,
    "simple": _simple,
    "double": _double,
    "topk": _topk,
    "shuffled check-in": _shuffled_checkin,
}
