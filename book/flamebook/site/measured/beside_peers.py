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
from importlib import metadata, util
from typing import Any, ClassVar, cast

from flamelib import AnyRandomizer, Checkin, GaussianNoise, KaryResponse, Participation, Shuffled, bounds
from flamelib.accounting.composition.dominating_pair import DominatingPair, to_dp_accounting
from flamelib.accounting.composition.privacy_profile import dominating_pair_of
from flamelib.accounting.shuffling.randomizers import round_curve

REPEATS, LONG = 3, 5.0  # answers, but no further one after so many seconds: the first may take a second to load code


@dataclass(frozen=True, slots=True)
class Work:
    """Rounds of Gaussian noise on a sum of norm-1 contributions, each there by a coin: what is asked of everybody."""

    kind: ClassVar[str] = "sum"
    rate: float
    noise_std: float
    rounds: int
    delta: float
    without: str = ""  # instructions that NumPy does without, by its names; a rounding may decide a very small delta

    def protocol(self) -> Participation:
        """The same for this library: one record a client."""
        return Participation(
            participation_rate=self.rate, record_rate=1.0, n_records=1, clip_norm=1.0, noise_std=self.noise_std
        )

    def __str__(self) -> str:
        processor = f", without {self.without}" if self.without else ""
        return f"Rate {self.rate:g}, noise {self.noise_std:g}, {self.rounds:,} rounds, delta {self.delta:g}{processor}"


@dataclass(frozen=True, slots=True)
class Shuffles:
    """Rounds of shuffled messages, of everybody or of those whom a coin checks in."""

    n_users: int
    randomizer: KaryResponse | GaussianNoise | AnyRandomizer
    rate: float
    rounds: int
    delta: float

    @property
    def kind(self) -> str:
        """Whom to ask."""
        return self.randomizer.kind

    def protocol(self) -> Shuffled | Checkin:
        """The same for this library."""
        survey = Shuffled(self.randomizer, self.n_users)
        return Checkin(survey, self.rate) if self.rate < 1 else survey

    def __str__(self) -> str:
        people = f"{self.n_users:,} people" + (f", each there with chance {self.rate:g}" if self.rate < 1 else "")
        local = self.randomizer
        noise = f"noise {local.noise_std:g}" if isinstance(local, GaussianNoise) else f"local budget {local.epsilon0:g}"
        return f"{people}, {noise}, {self.rounds:,} round{'s' * (self.rounds > 1)}, delta {self.delta:.3g}"


AnyWork = Work | Shuffles


@dataclass(frozen=True, slots=True)
class Asked:
    """Who was asked, in which way, which epsilon came out, and processor seconds, the median of three if short."""

    package: str
    way: str
    epsilon: float
    seconds: float


# AVX-512, by the names of the NumPy that is pinned.
WITHOUT_AVX512 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"
WORKS: dict[str, AnyWork] = {
    "a hundredth in 10,000 rounds, delta 1e-5": Work(0.01, 1.0, 10_000, 1e-5),
    "a hundredth in 10,000 rounds, delta 1e-12": Work(0.01, 1.0, 10_000, 1e-12),
    "a hundredth in 10,000 rounds, delta 1e-12, no AVX-512": Work(0.01, 1.0, 10_000, 1e-12, WITHOUT_AVX512),
    "a tenth in 1,000 rounds, delta 1e-6": Work(0.1, 2.0, 1_000, 1e-6),
    "everybody in 100 rounds, delta 1e-6": Work(1.0, 10.0, 100, 1e-6),
    "everybody answers in 100 rounds, shuffled": Shuffles(10_000, KaryResponse(1.0, 2), 1.0, 100, 1e-6),
    "a tenth answers in 5,540 rounds, shuffled": Shuffles(60_000, KaryResponse(2.0, 2), 0.1, 5540, 1 / 60_000),
    "any randomizer of budget 1 once, shuffled": Shuffles(10_000, AnyRandomizer(1.0), 1.0, 1, 1e-6),
    "any randomizer of budget 2 once, shuffled": Shuffles(1_000_000, AnyRandomizer(2.0), 1.0, 1, 1e-8),
    "everybody's noisy number once, shuffled": Shuffles(1000, GaussianNoise(1.0), 1.0, 1, 1e-5),
    "everybody's noisy number in 100 rounds, shuffled": Shuffles(1000, GaussianNoise(1.0), 1.0, 100, 1e-5),
    "a tenth of noisy numbers in 5,540 rounds, shuffled": Shuffles(60_000, GaussianNoise(2.0), 0.1, 5540, 1 / 60_000),
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


def opake(work: Work, step: float) -> float:
    """By privacy loss distributions, in the compiled part alone: Python 3.11 cannot import the classes around it."""
    compiled = _opake_compiled()
    losses = compiled.gaussian_pld(work.noise_std, compiled.DiscretizationConfig(step))
    if work.rate < 1:
        losses = compiled.poisson_pld(losses, work.rate)
    return float(losses.self_compose(work.rounds).epsilon_at(work.delta))


@cache
def _opake_compiled() -> Any:
    files = metadata.files("opake-accounting") or []
    [path] = (one.locate() for one in files if one.suffix == ".so")
    spec: Any = util.spec_from_file_location("opake_accounting", str(path))
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def google_pairs(work: Shuffles, step: float = 1e-4) -> float:
    """The pair of one round composed there, at the default discretisation if no other is given."""
    found = to_dp_accounting(pair(work), step, 1e-3 * work.delta / work.rounds).self_compose(work.rounds)
    return float(found.get_epsilon_for_delta(work.delta))


@cache
def pair(work: Shuffles) -> DominatingPair:
    """Two laws that dominate one round, whatever its data; the peers themselves know nothing of shuffling."""
    curve = round_curve(work.randomizer, work.n_users, work.rate)
    return dominating_pair_of(curve, work.rounds, work.delta)


def random_allocation(work: Shuffles) -> float:
    """The clones of 2021, as its scheme of shuffling computes them, with the steps and bisections of its defaults."""
    from random_allocation.comparisons.structs import SchemeConfig
    from random_allocation.external_sources.shuffle_external import numericalanalysis
    from random_allocation.other_schemes.shuffle import _effective_shuffle_step

    config, budget = SchemeConfig(), work.randomizer.epsilon0
    step = _effective_shuffle_step(work.n_users, config.shuffle_step)
    searched = (config.shuffle_search_iterations, step)
    return float(numericalanalysis(work.n_users, budget, work.delta, *searched, upperbound=True))


def checkin_authors(work: Shuffles) -> float:
    """Rényi orders to 20, as in the examples of its authors; of distance 1 between a number and what replaces it."""
    import shuffgauss

    noise_std = cast(GaussianNoise, work.randomizer).noise_std
    arriving, given = int(work.n_users * work.rate), {"m": 20, "verbose": False}
    if work.rate < 1:
        found = shuffgauss.ApproxSCIGaussRDPtoDP(noise_std, work.n_users, arriving, **given)
        found.get_subshuff()
    else:
        found = shuffgauss.ShuffGaussRDPtoDP(noise_std, arriving, **given)
        found.get_shuff()
    return float(found.get_eps(work.delta, work.rounds)[0])


Ways = tuple[tuple[str, str, Callable[[Any], float]], ...]
_OWN: Ways = ((OWN, "from above", own), (OWN, FROM_BELOW, own_below))
ASKED: dict[str, Ways] = {
    "sum": (
        *_OWN,
        ("dp-accounting", "loss distribution, its default step 1e-4", google_losses),
        ("dp-accounting", "loss distribution, step 1e-5", partial(google_losses, value_discretization_interval=1e-5)),
        ("dp-accounting", "Rényi", google_renyi),
        ("opake-accounting", "loss distribution, its default step 1e-4", partial(opake, step=1e-4)),
        ("opake-accounting", "loss distribution, step 1e-5", partial(opake, step=1e-5)),
        ("prv-accountant", "upper end, error 0.01", microsoft),
        ("autodp", "Rényi", autodp_renyi),
    ),
    "kary": (
        *_OWN,
        ("dp-accounting", "this library's round, its default step 1e-4", google_pairs),
        ("dp-accounting", "this library's round, step 1e-5", partial(google_pairs, step=1e-5)),
    ),
    "any": (*_OWN, ("random-allocation", "clones of 2021", random_allocation)),
    "gaussian": (*_OWN, ("shuffgauss", "Rényi, orders to 20", checkin_authors)),
}


def asked(work: AnyWork) -> list[Asked]:
    """Everybody's answer; one who refuses has none, which is infinite."""
    found = []
    if isinstance(work, Shuffles) and work.kind == "kary":
        pair(work)  # not counted against those who are given it
    for package, way, answer in ASKED[work.kind]:
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
