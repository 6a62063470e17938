r"""FLAME's guarantee for a vector: the paper's route, and certified bounds.

Each of d coordinates is randomized with Laplace noise on [0, 1] of local budget ``epsilon0`` and shuffled
independently. (Does not apply to messages that carry all coordinates of a user, which remain linked.)  Adjacency: one
user's whole vector is replaced.

*The paper's route*, a value and no guarantee.  With t = d and n = ``n_users`` for SS-Simple, t = 2k and n = ``padded``
else, one coordinate is bounded at the delta :math:`\delta/(t+1)`; for the latter two this delta is divided by
:math:`\beta = k/d` and the epsilon becomes :math:`\log(1+\beta(e^\varepsilon-1))`; t of these are composed by the basic
or the advanced theorem.  The route ``unsampled`` leaves :math:`\beta` out.

*The certified routes*, upper bounds, take a bound of :mod:`flamelib.accounting.coordinates.padded` on one coordinate
and compose by privacy loss distributions:

* SS-Simple: d-fold, real against real among n messages.
* SS-Double, each coordinate included with probability :math:`\beta` **independently**: d-fold, a message that is real
  with probability :math:`\beta` in both data sets.
* SS-Double, **exactly** k of d coordinates: :mod:`flamelib.accounting.coordinates.fixed_size_subsets`, k-fold.
* SS-Topk: k-fold, at every epsilon the larger of real against real and of real against dummy with dummy against real.

*Full bags.*  With ``overflow=none`` SS-Topk **assumes** that no coordinate holds more than ``padded`` real messages,
and SS-Double, whose choice is independent of the data, counts such coordinates as unshuffled.  With ``overflow=drop``
there is no assumption, and a bag keeps ``padded`` of its reports at random: SS-Topk then has the account of
:func:`topk_truncated`; :mod:`flamelib.accounting.coordinates.truncated` has a lower bound.

Proofs: book, chapter on FLAME, "The vector of SS-Double", "The vector of SS-Topk" and the propositions there.
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flamelib.accounting.composition.closed_form import least_epsilon
from flamelib.accounting.composition.privacy_profile import (
    RTOL_DELTA,
    PrivacyProfile,
    composed_epsilon,
    tabulated,
    together,
)
from flamelib.accounting.coordinates.fixed_size_subsets import Subsets
from flamelib.accounting.coordinates.padded import TAIL_MASS, Bound, Coordinate, all_real, sampled
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.sampling.closed_form import sampled_epsilon
from flamelib.accounting.shuffling import closed_form, numerical
from flamelib.core.guarantees import ARITHMETIC, Certified, Gives
from flamelib.core.profiles import LaplaceProfile
from flamelib.core.statements import states
from flamelib.core.vocabulary import LARGEST_WHOLE, VOCABULARY, DomainError, check, plainly

DELTA_OVERFLOW = 1e-6  # share of a coordinate's delta for an overflow

#: Assumption of SS-Topk with ``overflow=none``.
NO_OVERFLOW = "no coordinate has more messages than the padded number"

BOUNDS: dict[str, Callable[..., float]] = {
    "withdrawn": closed_form.bennett_withdrawn,
    "bennett": closed_form.bennett,
    "hoeffding": closed_form.hoeffding,
    "blanket": numerical.blanket_divergence,
}


def _gives(arguments: Mapping[str, Any]) -> Gives:
    return Gives.UPPER if arguments.get("route") == "sound" else Gives.VALUE


def _assumes(arguments: Mapping[str, Any]) -> str:
    no_overflow = arguments["protocol"] == "topk" and arguments.get("overflow", "none") == "none"
    return f"{NO_OVERFLOW}; {ARITHMETIC}" if no_overflow else ARITHMETIC


@states("flame", "account", item="one round by Theorems 1, 3 and 4, or certified (topk: while no coordinate holds "
        "more real messages than padded)", gives=_gives, rests_on="proven", assumes=_assumes,
        words={"protocol": ("simple", "double", "topk"), "route": ("paper", "unsampled", "sound")})  # fmt: skip
def account(
    protocol: str,
    dimension: int,
    n_users: int,
    epsilon0: float,
    delta: float,
    bound: str,
    route: str,
    kept: float | None = None,
    padded: int | None = None,
    inclusion: str = "independent",
    overflow: str = "none",
) -> float:
    """Epsilon of a whole vector after one round at a whole ``delta`` (upper with route ``sound``, else a value).

    Parameters
    ----------
    bound : str
        ``withdrawn`` (no guarantee, refused for ``sound``), ``bennett``, ``hoeffding`` or ``blanket``.
    route : {"paper", "unsampled", "sound"}
        The first two as in the module's text; ``sound``: the smallest certified epsilon, with its error.
    kept : float, at most ``dimension``
        Coordinates that a user reports, for ``double`` on average; needed except for ``simple``.  The formulas accept a
        fraction; the certified route of ``topk`` rounds it up, and an exact inclusion needs a whole number.
    padded : int, at least 2
        Messages of each coordinate after padding; needed except for ``simple``.
    inclusion
        For ``double`` and ``sound``: each coordinate independently with probability ``kept / dimension``, or exactly
        ``kept``.
    overflow
        For ``double``, ``topk`` and ``sound``: full bags as in the module's text.

    Source: Liu et al. 2021, Theorems 1, 3, 4; the certified routes are this project's.

    Examples
    --------
    >>> one = {"protocol": "double", "dimension": 7850, "kept": 157, "n_users": 1000, "padded": 333, "epsilon0": 0.5}
    >>> round(account(**one, delta=5.0118723e-6, bound="withdrawn", route="paper"), 4)
    0.2379
    >>> round(account(**one, delta=5.0118723e-6, bound="blanket", route="sound"), 3)
    0.152
    >>> round(account(**one, delta=5.0118723e-6, bound="blanket", route="sound", inclusion="exact"), 3)
    0.157
    """
    vector = _vector(protocol, dimension, n_users, epsilon0, kept, padded, inclusion, overflow)
    if route != "sound":
        return vector.paper_route(delta, BOUNDS[bound], sampled_once=route == "paper")
    if bound == "withdrawn":
        raise DomainError("bound must be one of bennett, hoeffding, blanket for route=sound: the withdrawn one is none")
    return vector.certified(delta, bound)


@plainly
def shared_account(
    protocol: str,
    dimension: int,
    n_users: int,
    epsilon0: float,
    delta: float,
    kept: float | None = None,
    padded: int | None = None,
) -> Certified:
    """Route ``sound`` of :func:`account` with the blanket, with a cached profile of one coordinate (upper).

    Calls that differ only in ``delta`` or in the number of coordinates share the profile; the answers exceed those of
    :func:`account` by a relative 1e-3 or so (``double``: where few report, by more).
    """
    accuracy = 0.02  # relative error of a tabulated profile
    protocol, dimension, n_users, epsilon0, delta = check(
        protocol=protocol, dimension=dimension, n_users=n_users, epsilon0=epsilon0, delta=delta
    ).values()
    vector = _vector(protocol, dimension, n_users, epsilon0, kept, padded)
    if protocol == "topk":
        return vector.topk(delta, "blanket", _shared_curve, accuracy)
    rest = TAIL_MASS
    while 0 < DELTA_OVERFLOW * delta / dimension < rest and rest > 1e-160:
        rest *= rest
    return composed_epsilon([(_shared_curve(vector.coordinate(rest), "blanket"), dimension)], delta, accuracy)


@functools.lru_cache(maxsize=64)
def _shared_curve(coordinate: Coordinate, bound: Bound) -> PrivacyProfile:
    return tabulated(coordinate.curve(bound))


@plainly
def central_limit(
    protocol: str,
    dimension: int,
    n_users: int,
    epsilon0: float,
    delta: float,
    kept: float | None = None,
    padded: int | None = None,
) -> float:
    r"""Epsilon of the Gaussian limit of the composition, all other messages blanket (a value, no bound).

    Its sensitivity is :math:`\mu` standard deviations, :math:`\mu^2 = t\beta^2\chi^2/n`,
    :math:`\chi^2 = \int(\mu_0-\mu_1)^2/\omega`: t = d and n = ``n_users`` for ``simple`` (:math:`\beta = 1`), t = d
    and n = ``padded`` for ``double``, t = k and :math:`\beta = 1` for ``topk``.
    """
    protocol, dimension, n_users, epsilon0, delta = check(
        protocol=protocol, dimension=dimension, n_users=n_users, epsilon0=epsilon0, delta=delta
    ).values()
    vector = _vector(protocol, dimension, n_users, epsilon0, kept, padded)
    variance, cross = vector.noise.excess_moments
    times = vector.kept if protocol == "topk" else dimension
    rate = vector.kept / dimension if protocol == "double" else 1.0
    shift = rate * math.sqrt(2 * times * (variance + cross) / vector.messages)
    return float(gaussian_mechanism(shift, 1.0, delta=delta)) if shift > 0 else 0.0


@dataclass(frozen=True, slots=True)
class _Vector:
    """One round: ``messages`` in each coordinate, of which a user reports ``kept``."""

    protocol: str
    dimension: int
    n_users: int
    noise: LaplaceProfile
    kept: float
    messages: int
    inclusion: str = "independent"
    overflow: str = "none"

    def paper_route(self, delta: float, bound: Callable[..., float], sampled_once: bool) -> float:
        """The paper's routes."""
        count = self.dimension if self.protocol == "simple" else 2 * self.kept
        rate = self.kept / self.dimension if sampled_once else 1.0
        share = delta / (count + 1)
        epsilon = bound(self.noise, self.messages, delta=min(share / rate, 1.0))
        return least_epsilon(sampled_epsilon(epsilon, rate), count, share)

    def certified(self, delta: float, bound: Any) -> Certified:
        """The certified routes."""
        if self.protocol == "topk":
            if self.overflow == "drop" and self.n_users > self.messages:
                return _composed_all_real(2, self.kept, self.messages, self.noise.epsilon0, delta, bound)
            return self.topk(delta, bound)
        if self.inclusion == "exact":
            given = (self.noise, self.dimension, int(self.kept), self.n_users, self.messages)
            return Subsets(*given, drop=self.overflow == "drop").epsilon(delta, bound)
        tail_mass = min(max(DELTA_OVERFLOW * delta / self.dimension, 1e-290), 1e-10)
        return composed_epsilon([(self.coordinate(tail_mass).curve(bound), self.dimension)], delta)

    def coordinate(self, tail_mass: float) -> Coordinate:
        """One coordinate of ``simple`` or ``double``; the latter up to an event of probability ``tail_mass``."""
        if self.protocol == "simple":
            return Coordinate(self.noise, all_real(self.noise, self.messages))
        rate = self.kept / self.dimension
        others = sampled(self.noise, self.messages, self.n_users, rate, tail_mass, drop=self.overflow == "drop")
        return Coordinate(self.noise, others, rate, rate)

    def topk(
        self,
        delta: float,
        bound: Any,
        curve: Callable[[Coordinate, Any], PrivacyProfile] = Coordinate.curve,
        accuracy: float = RTOL_DELTA,
    ) -> Certified:
        """The certified route of ``topk``."""
        others, times = all_real(self.noise, self.messages), math.ceil(self.kept)
        real = curve(Coordinate(self.noise, others), bound)
        if 0 < delta < 1:
            first = curve(Coordinate(self.noise, others, 1.0, 0.0), bound)
            second = PrivacyProfile(first.backward or first.forward, first.forward, first.at_most, first.error)
            # Two coordinates of real against dummy are well below one of real against real: a coarse profile suffices.
            dummies = together([(first, 1), (second, 1)], times, delta, symmetric=True, accuracy=0.1)
            real = _pointwise_maximum(real, dummies.forward, dummies.at_most)
        return composed_epsilon([(real, times)], delta, accuracy)


def _pointwise_maximum(real: PrivacyProfile, other: Callable[[float], float], at_most: float) -> PrivacyProfile:
    """Pointwise maximum of the symmetric profile of real against real and another."""
    return PrivacyProfile(
        lambda epsilon: max(real.forward(epsilon), other(epsilon)), None, max(real.at_most, at_most), real.error
    )


def _vector(
    protocol: str,
    dimension: int,
    n_users: int,
    epsilon0: float,
    kept: float | None,
    padded: int | None,
    inclusion: str = "independent",
    overflow: str = "none",
) -> _Vector:
    noise = LaplaceProfile(epsilon0)
    if inclusion != "independent" and protocol != "double":
        raise DomainError(f"inclusion must be independent unless protocol=double, got {inclusion!r}")
    if protocol == "simple":
        if overflow != "none":
            raise DomainError(f"overflow must be none for protocol=simple, whose bags never fill, got {overflow!r}")
        return _Vector(protocol, dimension, n_users, noise, float(dimension), n_users)
    for name, value in (("kept", kept), ("padded", padded)):
        if value is None:
            raise DomainError(f"{name} is missing for protocol={protocol}: {VOCABULARY[name]}")
    checked = check(kept=kept, padded=padded)
    if checked["kept"] > dimension:
        raise DomainError(f"kept must be a number in (0, {dimension}], at most dimension, got {kept!r}")
    if inclusion == "exact" and checked["kept"] != int(checked["kept"]):
        raise DomainError(f"kept must be a whole number in [1, {dimension}] for inclusion=exact, got {kept!r}")
    return _Vector(protocol, dimension, n_users, noise, checked["kept"], checked["padded"], inclusion, overflow)


def double_revealed(kept: float, padded: int, epsilon0: float, delta: float) -> Certified:
    """Epsilon of SS-Double with public sets of coordinates that are independent of the data (upper).

    Only the at most ``kept`` coordinates of the victim's set (rounded up) differ, real against real.  Holds for every
    choice of sets and every overflow rule that depends on indices alone.  Proof: book, chapter on FLAME, "Revealed or
    hidden".
    """
    return _composed_all_real(1, kept, padded, epsilon0, delta)


def topk_truncated(kept: float, padded: int, epsilon0: float, delta: float) -> Certified:
    """Epsilon of SS-Topk where a coordinate with too many messages keeps ``padded`` of them at random (upper).

    For all data sets: up to 2k coordinates change, each bounded by real against real.  Parameters are those of
    :func:`double_revealed`.  Proof: book, chapter on FLAME, "Full bags".
    """
    return _composed_all_real(2, kept, padded, epsilon0, delta)


def _composed_all_real(
    sets: int, kept: float, padded: int, epsilon0: float, delta: float, bound: Bound = "blanket"
) -> Certified:
    """Epsilon of ``sets * ceil(kept)`` coordinates of real against real among real messages."""
    kept, padded, epsilon0, delta = check(kept=kept, padded=padded, epsilon0=epsilon0, delta=delta).values()
    if kept > LARGEST_WHOLE / 2:
        raise DomainError(f"kept must be a number in (0, 2^52] here, got {kept!r}")
    noise = LaplaceProfile(epsilon0)
    return composed_epsilon([(Coordinate(noise, all_real(noise, padded)).curve(bound), sets * math.ceil(kept))], delta)
