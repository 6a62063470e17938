"""Every protocol of the library on trial: run on two neighbouring data sets, beside what its account promises.

Each case is small, so that runs can show something: a few users, the worst neighbours that we know, a delta that runs
can tell from 0.  What is counted is what the protocol's adversary sees.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from flamebook.figures.style import Pen
from flamebook.records import Parameters, to_csv, words
from flamebook.statements import AtLeast, Finding, compared, counted, listed
from flamelib.accounting.checkin.shuffled import shuffled_rounds
from flamelib.accounting.checkin.summed import distributed_rounds
from flamelib.accounting.coordinates.certified import account, topk_truncated
from flamelib.accounting.sampling import hidden as accounts
from flamelib.accounting.splitting.crowds import least_messages
from flamelib.core.profiles import KaryProfile
from flamelib.core.vocabulary import check
from flamelib.mechanisms.integers.noise import PolyaShare
from flamelib.mechanisms.integers.randomness import Simulation
from flamelib.mechanisms.randomizers import KaryResponse, LaplaceNoise
from flamelib.mechanisms.vectors import GaussianMessages
from flamelib.protocols import baselines, blanket, checkin, cloak, flame, participation
from flamelib.uses.auditing import Audit, audit


@dataclass(frozen=True, slots=True)
class Setting:
    """What the cases share."""

    n_users: int = 6
    epsilon0: float = 2.0
    delta: float = 0.01

    def __post_init__(self) -> None:
        check(n_users=self.n_users, epsilon0=self.epsilon0, delta=self.delta)

    @property
    def parameters(self) -> Parameters:
        """For the card of a figure."""
        return {"n_users": self.n_users, "epsilon0": self.epsilon0, "delta": self.delta}


@dataclass(frozen=True)
class Case:
    """A protocol with its record bound, two neighbours, a statistic, and the epsilon that is promised at ``delta``."""

    name: str
    run: Callable[[Any, np.random.Generator], Any]
    neighbours: tuple[Any, Any]
    statistic: Callable[[Any], float]
    promised: float
    delta: float
    adjacency: str = "replace one"


def histogram(setting: Setting) -> Case:
    """Shuffled k-ary response with three buckets; all others hold bucket 0, the victim 1 or 2."""
    mass = KaryProfile(setting.epsilon0, 3).mass
    protocol = blanket.HistogramProtocol(setting.n_users, 3, mass)
    others = [0] * (setting.n_users - 1)
    promised = blanket.account(protocol, setting.delta).epsilon
    neighbours = ([*others, 1], [*others, 2])
    run = _of(blanket.run, protocol)
    return Case("shuffled histogram", run, neighbours, lambda v: float(v[1] - v[2]), promised, setting.delta)


def shuffled_sum(setting: Setting) -> Case:
    """The shuffled sum of values rounded to five levels; all others hold 0, the victim 1 or 0."""
    mass = KaryProfile(setting.epsilon0, 5).mass
    protocol = blanket.SummationProtocol(setting.n_users, 4, mass)
    promised = blanket.account(protocol, setting.delta).epsilon

    def messages(values: NDArray[np.float64], rng: np.random.Generator) -> Any:
        return blanket.shuffler(blanket.user(protocol, values, rng), rng)

    def statistic(view: NDArray[np.int64]) -> float:
        return float(np.sum(view == 4) - 0.5 * np.sum(view == 0))

    return Case("shuffled sum", messages, _ones(setting.n_users), statistic, promised, setting.delta)


def unary_sum(setting: Setting) -> Case:
    """Eight randomized bits of each user; all others hold 0, the victim 1 or 0."""
    protocol = baselines.UnarySumProtocol(setting.n_users, 8, 0.8)
    promised = baselines.account(protocol, setting.delta).epsilon
    return Case("shuffled bits", _of(baselines.run, protocol), _ones(setting.n_users), float, promised, setting.delta)


def simple_vector(setting: Setting) -> Case:
    """SS-Simple on two coordinates with Laplace noise; all others hold -1 everywhere, the victim 1 or -1."""
    randomizer = LaplaceNoise(setting.epsilon0 / 2)
    protocol = flame.FlameSimple(setting.n_users, 2, 1.0, randomizer)
    promised = account("simple", 2, setting.n_users, randomizer.epsilon0, setting.delta, "blanket", "sound")
    rows = np.full((setting.n_users, 2), -1.0)
    return Case("SS-Simple", _bags(protocol), _last(rows, 1.0), _above_half, promised, setting.delta)


def double_vector(setting: Setting) -> Case:
    """SS-Double, each of two coordinates reported with chance one half; all others hold -1, the victim 1 or -1."""
    randomizer, n_users = LaplaceNoise(setting.epsilon0), setting.n_users
    protocol = flame.FlameDouble(n_users, 2, 1.0, randomizer, kept=1, padded=n_users, inclusion="independent")
    size = protocol.kept, protocol.padded
    promised = account("double", 2, n_users, randomizer.epsilon0, setting.delta, "blanket", "sound", *size)
    rows = np.full((n_users, 2), -1.0)
    return Case("SS-Double", _bags(protocol), _last(rows, 1.0), _above_half, promised, setting.delta)


def topk_vector(setting: Setting) -> Case:
    """SS-Topk, one of two coordinates; all report the first one, all others -1, the victim 1 or -1."""
    randomizer = LaplaceNoise(setting.epsilon0)
    protocol = flame.FlameTopk(setting.n_users, 2, 1.0, randomizer, kept=1, padded=setting.n_users)
    promised = float(topk_truncated(protocol.kept, protocol.padded, setting.epsilon0, setting.delta))
    rows = np.tile([-1.0, 0.0], (setting.n_users, 1))
    return Case("SS-Topk", _bags(protocol), _last(rows, [1.0, 0.0]), _above_half, promised, setting.delta)


def random_participation(setting: Setting) -> Case:
    """A noisy sum of drawn records; the one client holds two equal gradients, or one of them."""
    protocol = participation.Participation(0.6, 0.6, 2, clip_norm=1.0, noise_std=0.6)
    words = (0.6, 0.6, 2, 0.6, 1.0)
    promised = max(
        float(accounts.random_participation("outer", *words, delta=setting.delta)),
        float(accounts.random_participation_add(*words, delta=setting.delta)),
    )
    neighbours = ([np.ones((2, 1))], [np.ones((1, 1))])
    run = _of(participation.run, protocol)
    name, adjacency = "random participation", "add or remove a record"
    return Case(name, run, neighbours, lambda v: float(v[0]), promised, setting.delta, adjacency)


def shuffled_checkin(setting: Setting) -> Case:
    """Binary response of those who check in, half of the users; all others hold 0, the victim 1 or 0."""
    protocol = checkin.CheckinProtocol(KaryResponse(setting.epsilon0, 2), 0.5)
    randomizer = KaryProfile(setting.epsilon0, 2)
    rate = protocol.checkin_rate
    promised = float(shuffled_rounds(randomizer, setting.n_users, 1, delta=setting.delta, checkin_rate=rate))
    run, neighbours = _of(checkin.run, protocol), _ones(setting.n_users)
    whole = tuple(one.astype(int) for one in neighbours)
    statistic = _less_expected(1 - randomizer.mass / 2)
    return Case("shuffled check-in", run, (whole[0], whole[1]), statistic, promised, setting.delta)


def noisy_checkin(setting: Setting) -> Case:
    """A sum in which each client that checks in brings its noise; all others hold 0, the victim 1 or -1."""
    protocol = checkin.CheckinProtocol(GaussianMessages(1, 1.0, 1.0), 0.5)
    promised = float(distributed_rounds(setting.n_users, protocol.checkin_rate, 1.0, 1, delta=setting.delta))

    def aggregate(values: Any, rng: np.random.Generator) -> float:
        total, count = checkin.aggregate(checkin.run(protocol, values, rng), 1)
        return float(total[0]) / max(1, count)

    rows = np.zeros((setting.n_users, 1))
    neighbours = (_last(rows, 1.0)[0], _last(rows, -1.0)[0])
    return Case("noisy check-in", aggregate, neighbours, float, promised, setting.delta)


def cloaked_sum(setting: Setting) -> Case:
    """Shares of a bit with Polya noise, as many as hide who sent what; all others hold 0, the victim 1 or 0."""
    modulus, epsilon = max(101, 4 * setting.n_users + 1), setting.epsilon0
    bits = (float(np.logaddexp(0, epsilon)) - math.log(setting.delta)) / math.log(2)
    shares = least_messages(bits, setting.n_users, modulus)
    noise = PolyaShare(setting.n_users, math.exp(-epsilon))
    protocol = cloak.CloakProtocol(setting.n_users, modulus, 1, shares, rounding="grid", noise=noise)

    def centre(values: NDArray[np.float64], rng: np.random.Generator) -> float:
        randomness = Simulation(rng)
        messages = cloak.shuffler(cloak.pool(cloak.encode(protocol, values, randomness)), randomness)
        return float(cloak.analyze_centred(protocol, cloak.total(protocol, messages)))

    return Case("cloak aggregation", centre, _ones(setting.n_users), float, epsilon, setting.delta)


Maker = Callable[[Setting], Case]

CASES: tuple[Maker, ...] = (
    histogram, shuffled_sum, unary_sum,
    simple_vector, double_vector, topk_vector,
    random_participation,
    shuffled_checkin, noisy_checkin,
    cloaked_sum,
)  # fmt: skip


# --- on trial ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trials:
    """Each case with what its runs showed."""

    cases: tuple[Case, ...]
    found: tuple[Audit, ...]
    parameters: Parameters

    @property
    def refuted(self) -> list[str]:
        """Names of the cases whose runs exceed what is promised."""
        return [case.name for case, one in zip(self.cases, self.found, strict=True) if one.refutes(case.promised)]

    @property
    def kept(self) -> Finding:
        """Whether no protocol loses more than its account promises, as far as its runs show."""
        return compared([one.epsilon for one in self.found], "<=", [case.promised for case in self.cases])

    @property
    def shown(self) -> int:
        """Number of cases whose runs show a loss."""
        return sum(one.epsilon > 0 for one in self.found)

    def words(self) -> dict[str, str]:
        """Words for the page: how many runs are counted, and where circles lie right of their squares."""
        beyond = (
            f"right of their squares lie those of {listed(self.refuted)}"
            if self.refuted
            else "no circle lies right of its square"
        )
        return {
            "counted_runs": f"{self.found[0].trials:,}",
            "audits_alt": f"A circle with its square for each of {counted(len(self.cases), 'protocol')}; {beyond}.",
        }

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: protocol, neighbours, certified below, promised, and the counts behind it."""
        return [
            (case.name, case.adjacency, AtLeast(one.epsilon), case.promised, *one.hits, one.trials)
            for case, one in zip(self.cases, self.found, strict=True)
        ]

    def to_csv(self) -> str:
        """One row a case."""
        header = ["protocol", "adjacency", "at_least", "promised", "hits_first", "hits_second", "counted_runs"]
        return to_csv(header, self.rows())


def compute_trials(setting: Setting, trials: int, confidence: float, seed: int) -> Trials:
    """Every protocol on trial; the bounds hold *together* with the confidence, by a share of the rest for each.

    Parameters
    ----------
    setting : Setting
    trials : int
        Runs of every protocol on each of its two data sets.
    confidence : float in (0, 1)
    seed : int
    """
    check(trials=trials, confidence=confidence, seed=seed)
    cases = tuple(make(setting) for make in CASES)
    each = 1 - (1 - confidence) / len(cases)
    generators = np.random.default_rng(seed).spawn(len(cases))
    found = tuple(
        audit(case.run, case.neighbours, case.statistic, trials, each, delta=case.delta, rng=rng)
        for case, rng in zip(cases, generators, strict=True)
    )
    return Trials(cases, found, {**setting.parameters, "trials": trials, "confidence": confidence, "seed": seed})


def draw_trials(ax: Axes, record: Trials, pen: Pen) -> None:
    """One line a protocol, from what runs certify to what is promised: truth lies on it."""
    for place, (case, one) in enumerate(zip(record.cases, record.found, strict=True)):
        ax.plot([one.epsilon, case.promised], [place, place], color=pen.theme.faint, linewidth=5, zorder=1)
    at = range(len(record.cases))
    low, high = [one.epsilon for one in record.found], [case.promised for case in record.cases]
    ax.plot(low, at, **pen.line("lower", label="runs certify at least", linestyle="", marker="o"))
    ax.plot(high, at, **pen.line("certified", label="the account promises at most", linestyle="", marker="s"))
    ax.set(xlabel=words("epsilon"), xlim=(0, None), ylim=(len(record.cases) - 0.5, -0.5))
    ax.set_yticks(list(at), [case.name for case in record.cases])
    ax.grid(visible=False, axis="y")


# --- parts of the cases -----------------------------------------------------------------------------------------------


def _of(run: Callable[..., Any], protocol: Any) -> Callable[[Any, np.random.Generator], Any]:
    return lambda data, rng: run(protocol, data, rng)


def _ones(n_users: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """All hold 0, and the last one holds 1 or 0."""
    return _last(np.zeros(n_users), 1.0)


def _last(rows: NDArray[np.float64], value: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    changed = rows.copy()
    changed[-1] = value
    return changed, rows


def _bags(protocol: flame.Protocol) -> Callable[[Any, np.random.Generator], Any]:
    def run(updates: Any, rng: np.random.Generator) -> Any:
        return flame.shuffler(protocol, flame.user(protocol, updates, rng), rng).bags

    return run


def _above_half(bags: NDArray[np.float64]) -> float:
    """Laplace messages beyond either value say that value alone, so messages are clipped before they are added."""
    return float(np.clip(bags, 0, 1).sum())


def _less_expected(kept: float) -> Callable[[Any], float]:
    """Ones less those expected from as many reports of 0."""
    return lambda messages: float(np.sum(messages) - (1 - kept) * len(messages))
