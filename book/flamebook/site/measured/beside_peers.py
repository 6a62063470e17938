"""Accountants of others and this library's, asked the same in one process: a program of its own, run apart.

``python beside_peers.py WORK`` prints one list of :class:`Asked` in JSON.  The peers are installed from the versions in
``data/beside.txt``; each is used as its own documentation says, at its default settings where none are told.
"""

import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

from flamelib import Checkin, GaussianNoise, KaryResponse, Participation, Shuffled, bounds
from flamelib.accounting.checkin.subsampled_shuffle import round_curve
from flamelib.accounting.composition.dominating_pair import DominatingPair, to_dp_accounting
from flamelib.accounting.composition.privacy_profile import dominating_pair_of
from flamelib.core.profiles import KaryProfile

REPEATS, LONG = 3, 5.0  # answers, but no further one after so many seconds: the first may take a second to load code


@dataclass(frozen=True, slots=True)
class Work:
    """Rounds of Gaussian noise on a sum of norm-1 contributions, each there by a coin: what is asked of everybody."""

    rate: float
    noise_std: float
    rounds: int
    delta: float

    def protocol(self) -> Participation:
        """The same for this library: one record a client."""
        return Participation(
            participation_rate=self.rate, record_rate=1.0, n_records=1, clip_norm=1.0, noise_std=self.noise_std
        )

    def __str__(self) -> str:
        return f"Rate {self.rate:g}, noise {self.noise_std:g}, {self.rounds:,} rounds, delta {self.delta:g}"


@dataclass(frozen=True, slots=True)
class Shuffles:
    """Rounds of shuffled answers yes or no, by everybody or by those whom a coin checks in."""

    n_users: int
    epsilon0: float
    rate: float
    rounds: int
    delta: float

    def protocol(self) -> Shuffled | Checkin:
        """The same for this library."""
        survey = Shuffled(KaryResponse(self.epsilon0, 2), self.n_users)
        return Checkin(survey, self.rate) if self.rate < 1 else survey

    def __str__(self) -> str:
        people = f"{self.n_users:,} people" + (f", each there with chance {self.rate:g}" if self.rate < 1 else "")
        return f"{people}, local budget {self.epsilon0:g}, {self.rounds:,} rounds, delta {self.delta:.3g}"


@dataclass(frozen=True, slots=True)
class NoisyShuffles:
    """Rounds of shuffled numbers in [0, 1], each with Gaussian noise of its own."""

    n_users: int
    noise_std: float
    rate: float
    rounds: int
    delta: float

    def protocol(self) -> Shuffled | Checkin:
        """The same for this library."""
        numbers = Shuffled(GaussianNoise(self.noise_std), self.n_users)
        return Checkin(numbers, self.rate) if self.rate < 1 else numbers

    def __str__(self) -> str:
        people = f"{self.n_users:,} people" + (f", each there with chance {self.rate:g}" if self.rate < 1 else "")
        rounds = f"{self.rounds:,} round{'s' * (self.rounds > 1)}"
        return f"{people}, noise {self.noise_std:g}, {rounds}, delta {self.delta:.3g}"


AnyWork = Work | Shuffles | NoisyShuffles


@dataclass(frozen=True, slots=True)
class Asked:
    """Who was asked, in which way, which epsilon came out, and processor seconds, the median of three if short."""

    package: str
    way: str
    epsilon: float
    seconds: float


WORKS: dict[str, AnyWork] = {
    "a hundredth in 10,000 rounds, delta 1e-5": Work(0.01, 1.0, 10_000, 1e-5),
    "a hundredth in 10,000 rounds, delta 1e-12": Work(0.01, 1.0, 10_000, 1e-12),
    "a tenth in 1,000 rounds, delta 1e-6": Work(0.1, 2.0, 1_000, 1e-6),
    "everybody in 100 rounds, delta 1e-6": Work(1.0, 10.0, 100, 1e-6),
    "everybody answers in 100 rounds, shuffled": Shuffles(10_000, 1.0, 1.0, 100, 1e-6),
    "a tenth answers in 5,540 rounds, shuffled": Shuffles(60_000, 2.0, 0.1, 5540, 1 / 60_000),
    "everybody's noisy number once, shuffled": NoisyShuffles(1000, 1.0, 1.0, 1, 1e-5),
    "everybody's noisy number in 100 rounds, shuffled": NoisyShuffles(1000, 1.0, 1.0, 100, 1e-5),
    "a tenth of noisy numbers in 5,540 rounds, shuffled": NoisyShuffles(60_000, 2.0, 0.1, 5540, 1 / 60_000),
}
OWN, FROM_BELOW = "flamelib", "from below"


def own(work: AnyWork) -> float:
    """This library's upper end."""
    return bounds(work.protocol(), delta=work.delta, rounds=work.rounds).upper


def own_below(work: AnyWork) -> float:
    """This library's lower end: an epsilon below it is no guarantee."""
    return bounds(work.protocol(), delta=work.delta, rounds=work.rounds).lower


def google_losses(work: Work, **steps: float) -> float:
    """By privacy loss distributions, at the default discretisation if no other is given."""
    from dp_accounting import pld

    return _google(pld.PLDAccountant(**steps), work)


def google_renyi(work: Work) -> float:
    """By Rényi orders."""
    from dp_accounting import rdp

    return _google(rdp.RdpAccountant(), work)


def _google(accountant: object, work: Work) -> float:
    import dp_accounting

    event = dp_accounting.GaussianDpEvent(work.noise_std)
    if work.rate < 1:
        event = dp_accounting.PoissonSampledDpEvent(work.rate, event)
    accountant.compose(dp_accounting.SelfComposedDpEvent(event, work.rounds))  # type: ignore[attr-defined]
    return float(accountant.get_epsilon(work.delta))  # type: ignore[attr-defined]


def microsoft(work: Work) -> float:
    """The upper end of its bracket, asked to be within a hundredth."""
    import prv_accountant

    one = (
        prv_accountant.PoissonSubsampledGaussianMechanism(
            noise_multiplier=work.noise_std, sampling_probability=work.rate
        )
        if work.rate < 1
        else prv_accountant.GaussianMechanism(noise_multiplier=work.noise_std)
    )
    found = prv_accountant.PRVAccountant(
        prvs=[one], max_self_compositions=[work.rounds], eps_error=0.01, delta_error=work.delta / 1000
    )
    return float(found.compute_epsilon(delta=work.delta, num_self_compositions=[work.rounds])[2])


def autodp_renyi(work: Work) -> float:
    """Rényi orders, with its improved bound of sampling."""
    from autodp import mechanism_zoo, transformer_zoo

    one = mechanism_zoo.GaussianMechanism(work.noise_std)
    if work.rate < 1:
        one = transformer_zoo.AmplificationBySampling(PoissonSampling=True)(one, work.rate, improved_bound_flag=True)
    return float(transformer_zoo.Composition()([one], [work.rounds]).get_approxDP(work.delta))


def google_pairs(work: Shuffles, step: float = 1e-4) -> float:
    """The pair of one round composed there, at the default discretisation if no other is given."""
    found = to_dp_accounting(pair(work), step, 1e-3 * work.delta / work.rounds).self_compose(work.rounds)
    return float(found.get_epsilon_for_delta(work.delta))


@cache
def pair(work: Shuffles) -> DominatingPair:
    """Two laws that dominate one round, whatever its data; the peers themselves know nothing of shuffling."""
    curve = round_curve(KaryProfile(work.epsilon0, 2), work.n_users, work.rate)
    return dominating_pair_of(curve, work.rounds, work.delta)


def checkin_authors(work: NoisyShuffles) -> float:
    """Rényi orders to 20, as in the examples of its authors; of distance 1 between a number and what replaces it."""
    import shuffgauss

    arriving, given = int(work.n_users * work.rate), {"m": 20, "verbose": False}
    if work.rate < 1:
        found = shuffgauss.ApproxSCIGaussRDPtoDP(work.noise_std, work.n_users, arriving, **given)
        found.get_subshuff()
    else:
        found = shuffgauss.ShuffGaussRDPtoDP(work.noise_std, arriving, **given)
        found.get_shuff()
    return float(found.get_eps(work.delta, work.rounds)[0])


Ways = tuple[tuple[str, str, Callable[[Any], float]], ...]
_OWN: Ways = ((OWN, "from above", own), (OWN, FROM_BELOW, own_below))
ASKED: dict[type, Ways] = {
    Work: (
        *_OWN,
        ("dp-accounting", "loss distribution, its default step 1e-4", google_losses),
        ("dp-accounting", "loss distribution, step 1e-5", partial(google_losses, value_discretization_interval=1e-5)),
        ("dp-accounting", "Rényi", google_renyi),
        ("prv-accountant", "upper end, error 0.01", microsoft),
        ("autodp", "Rényi", autodp_renyi),
    ),
    Shuffles: (
        *_OWN,
        ("dp-accounting", "this library's round, its default step 1e-4", google_pairs),
        ("dp-accounting", "this library's round, step 1e-5", partial(google_pairs, step=1e-5)),
    ),
    NoisyShuffles: (*_OWN, ("shuffgauss", "Rényi, orders to 20", checkin_authors)),
}


def asked(work: AnyWork) -> list[Asked]:
    """Everybody's answer; one who refuses has none, which is infinite."""
    found = []
    if isinstance(work, Shuffles):
        pair(work)  # not counted against those who are given it
    for package, way, answer in ASKED[type(work)]:
        seconds: list[float] = []
        while len(seconds) < REPEATS and sum(seconds) < LONG:
            started = time.process_time()
            try:
                epsilon = answer(work)
            except (ArithmeticError, RuntimeError, ValueError) as refused:
                epsilon = math.inf
                print(f"{package}: {refused}", file=sys.stderr)
            seconds.append(time.process_time() - started)
        found.append(Asked(package, way, epsilon, statistics.median(seconds)))
    return found


if __name__ == "__main__":
    print(json.dumps([asdict(one) for one in asked(WORKS[sys.argv[1]])]))
