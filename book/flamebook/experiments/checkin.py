r"""Learning with self check-in: vector randomizers against no noise and no clip, and accuracy against the budget spent.

Training does not know how its privacy is accounted for.  Every run is made once; a model tested after t rounds stands
at the epsilon that an accountant finds for t rounds, at one failure probability.  Points of a sphere keep
:math:`\varepsilon_0` for certain, so that any bound on shuffled check-in holds for them; with Gaussian noise the *sum*
of the messages is accounted for (distributed check-in), at the same accuracy.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from flamebook.experiments.runs import Gap, Learning, half_width
from flamebook.records import LOOKS, Parameters, to_csv
from flamebook.statements import Finding, at_most, compared, counted, either, listed, percent, ranked, sided, times
from flamelib.accounting.checkin.baselines import baseline_distributed, baseline_shuffled
from flamelib.accounting.checkin.shuffled import checkin_shuffled
from flamelib.accounting.checkin.summed import distributed
from flamelib.accounting.noise.gaussian import analytic_noise_std
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import DomainError, check
from flamelib.learning.checkin import Scheme, train
from flamelib.learning.models import Model
from flamelib.learning.records import Records
from flamelib.mechanisms.vectors import CapMessages, GaussianMessages, VectorRandomizer

UNPROTECTED, NOISELESS, CAP, SPHERE, GAUSSIAN = "unprotected", "noiseless", "privunit2", "duchi", "gaussian"
NAMES = (UNPROTECTED, NOISELESS, CAP, SPHERE, GAUSSIAN)
STEPS: Mapping[str, float] = {UNPROTECTED: 0.3, NOISELESS: 30.0, CAP: 10.0, SPHERE: 3.0, GAUSSIAN: 3.0}
LOCAL_DELTA = 1e-5
LEARNED = 80.0  # percent of the test images from which on a model has learned
REACHED = 89.5  # percent that count as about 90
PRINTED = 0.67  # the document's central budget of the large experiment
PUBLIC = ("n_users", "checkin_rate", "dropout", "epsilon0", "clip_norm", "rounds")


@dataclass(frozen=True, slots=True)
class Setting:
    r"""Public parameters of one experiment.

    Parameters
    ----------
    n_users : int
    checkin_rate : float in (0, 1]
        Chance that a user checks in.
    epsilon0 : float in (0, 700]
        Budget of one message; Gaussian noise keeps it with failure probability 1e-5.
    rounds : int
    dropout : float in [0, 1)
        Chance that a user that checked in is lost.
    clip_norm : float, positive
    steps : mapping from scheme to float
        Learning rates; what is not named is not trained.

    Examples
    --------
    >>> round(Setting(60_000, 0.125, 2.0, 5540, dropout=0.2).effective_rate, 12)
    0.1
    """

    n_users: int
    checkin_rate: float
    epsilon0: float
    rounds: int
    dropout: float = 0.0
    clip_norm: float = 0.05
    steps: Mapping[str, float] = field(default_factory=lambda: STEPS)

    def __post_init__(self) -> None:
        check(**self.as_parameters())
        if not self.steps or set(self.steps) - set(NAMES):
            raise DomainError(f"steps must name one of {', '.join(NAMES)} or more, got {', '.join(self.steps)}")

    def as_parameters(self) -> Parameters:
        """For the card of a figure."""
        return {name: getattr(self, name) for name in PUBLIC}

    @classmethod
    def of(cls, parameters: Parameters) -> Self:
        """The setting that a record was made with, as far as accounting goes."""
        return cls(**{name: parameters[name] for name in PUBLIC})  # type: ignore[arg-type]

    @property
    def effective_rate(self) -> float:
        """Chance that a user's message arrives in a round."""
        return self.checkin_rate * (1 - self.dropout)

    @property
    def noise_std(self) -> float:
        """Noise that a user adds to each coordinate so that its message keeps (epsilon0, 1e-5)."""
        return analytic_noise_std(2 * self.clip_norm, self.epsilon0, LOCAL_DELTA)

    def randomizer(self, scheme: str, dimension: int) -> VectorRandomizer:
        """What a user does to its gradient."""
        if scheme == CAP:
            return CapMessages.privunit2(dimension, self.epsilon0, self.clip_norm)
        if scheme == SPHERE:
            return CapMessages.duchi(dimension, self.epsilon0, self.clip_norm)
        if scheme == GAUSSIAN:
            return GaussianMessages(dimension, self.clip_norm, self.noise_std)
        return GaussianMessages(dimension, math.inf if scheme == UNPROTECTED else self.clip_norm, 0.0)

    def schemes(self, dimension: int) -> dict[str, Scheme]:
        """All that is trained, with a step each."""
        return {name: Scheme(self.randomizer(name, dimension), step) for name, step in self.steps.items()}


def settings(
    n_users: Sequence[int],
    checkin_rate: Sequence[float],
    epsilon0: Sequence[float],
    rounds: Sequence[int],
    *,
    dropout: float,
    clip_norm: float,
) -> list[Setting]:
    """One setting for each entry of the lists, the rest in common.

    >>> [one.rounds for one in settings([100, 200], [0.1, 0.2], [8.0, 2.0], [10, 20], dropout=0.1, clip_norm=1.0)]
    [10, 20]
    """
    if not len(n_users) == len(checkin_rate) == len(epsilon0) == len(rounds) > 0:
        raise DomainError("n_users, checkin_rate, epsilon0 and rounds must be lists of one length, one at least")
    rows = zip(n_users, checkin_rate, epsilon0, rounds, strict=True)
    return [Setting(*row, dropout=dropout, clip_norm=clip_norm) for row in rows]


def compute_learning(
    records: Records,
    setting: Setting,
    repeats: int,
    seed: int,
    *,
    model: Model | None = None,
    points: int = 20,
) -> Learning:
    """Train all schemes of a setting ``repeats`` times, softmax regression unless another model is given.

    ``noise`` of the record is the spread of one message on each coordinate: the length of a message over the root of
    the dimension, or the standard deviation of Gaussian noise.
    """
    trained = model or records.softmax
    schemes = setting.schemes(trained.dimension)
    histories = [
        train(
            trained, records, schemes, setting.rounds, rng, points=points,
            n_users=setting.n_users, checkin_rate=setting.checkin_rate, dropout=setting.dropout,
        )
        for rng in np.random.default_rng(seed).spawn(repeats)
    ]  # fmt: skip
    noise = {name: spread(scheme.randomizer) for name, scheme in schemes.items()}
    return Learning.of(histories, noise, {**setting.as_parameters(), "repeats": repeats, "seed": seed})


def spread(randomizer: VectorRandomizer) -> float:
    """Root mean square of a coordinate of a message, beside what it tells.

    >>> spread(GaussianMessages(10, 1.0, 0.5)), round(spread(CapMessages.duchi(100, 1.0, 1.0)), 3)
    (0.5, 2.705)
    """
    if isinstance(randomizer, GaussianMessages):
        return randomizer.noise_std
    return randomizer.norm / math.sqrt(randomizer.dimension)


def message_rows(setting: Setting, dimensions: Mapping[str, int]) -> list[tuple[object, ...]]:
    """For a table: how long messages are, in units of the clip, randomizer by randomizer and model by model."""
    root = {name: math.sqrt(dimension) for name, dimension in dimensions.items()}
    return [
        (
            LOOKS[scheme].label,
            *(spread(setting.randomizer(scheme, d)) * root[name] / setting.clip_norm for name, d in dimensions.items()),
        )
        for scheme in (CAP, SPHERE, GAUSSIAN)
    ]


def scheme_rows(record: Learning) -> list[tuple[object, ...]]:
    """For a table: a scheme, the spread of its messages and the accuracy of its last model."""
    return [(LOOKS[name].label, record.noise[name], shown(record.final(name))) for name in record.curves]


def shown(values: Sequence[float] | np.typing.NDArray[np.float64]) -> str:
    """Mean and spread of runs; of one run, its value.

    >>> shown([90.0]), shown([90.0, 91.0])
    ('90.00', '90.50 ± 0.71')
    """
    array = np.asarray(values, dtype=float)
    return str(Gap.of(array)) if len(array) > 1 else f"{array[0]:.2f}"


SHUFFLED = {"any": "checkin-any", "numerical": "baseline-numerical", "thm-2": "thm-2", "thm-3": "thm-3"}
DISTRIBUTED = {"pld": "losses", "rdp-exact": "renyi-cut", "thm-4": "eq-10-exact", "kov": "baseline-kov"}


@dataclass(frozen=True, slots=True)
class Spent:
    """Accuracy of one scheme, and what several accountants say that it cost.

    Attributes
    ----------
    scheme : str
    rounds : array of shape (points,)
        After how many rounds models were tested, from the first test after the start.
    accuracy : array of shape (repeats, points)
        Share of the test images told right.
    epsilon : mapping from accountant to array of shape (points,)
    parameters : mapping
    """

    scheme: str
    rounds: Reals
    accuracy: Reals
    epsilon: Mapping[str, Reals]
    parameters: Parameters

    def to_csv(self) -> str:
        """One row an accountant, test and run."""
        rows = (
            (self.scheme, name, int(count), epsilon, run, share)
            for name, spent in self.epsilon.items()
            for i, (count, epsilon) in enumerate(zip(self.rounds, spent, strict=True))
            for run, share in enumerate(self.accuracy[:, i])
        )
        return to_csv(["scheme", "accountant", "round", "epsilon", "run", "accuracy"], rows)


def compute_spent(record: Learning, scheme: str, points: int = 6) -> Spent:
    """What a scheme had cost at ``points`` of the tests by every accountant of its kind, with delta = 1/n.

    Tests stand in about equal ratios from the first to the last.  The check-in rate that counts is
    the effective one: users that are lost on the way are hidden, too.
    """
    setting = Setting.of(record.parameters)
    delta = 1 / setting.n_users
    some = np.unique(np.geomspace(1, len(record.rounds) - 1, points).round().astype(int))
    rounds = record.rounds[some]
    known = DISTRIBUTED if scheme == GAUSSIAN else SHUFFLED
    return Spent(
        scheme,
        rounds.astype(float),
        record.curves[scheme][:, some],
        {name: np.array([_epsilon(setting, name, int(count), delta) for count in rounds]) for name in known},
        {**setting.as_parameters(), "delta": delta},
    )


def _epsilon(setting: Setting, route: str, rounds: int, delta: float) -> float:
    n_users, rate = setting.n_users, setting.effective_rate
    if route in DISTRIBUTED:
        summed = baseline_distributed if route == "kov" else distributed
        return float(summed(n_users, rate, setting.noise_std / setting.clip_norm, rounds, delta, route))
    if route == "numerical":
        return baseline_shuffled(setting.epsilon0, n_users, rate, rounds, delta, route)
    return float(checkin_shuffled(n_users, rate, rounds, delta, route, setting.epsilon0))


def spent_rows(found: Spent) -> list[tuple[object, ...]]:
    """For a table: an accountant, epsilon after the last round, and the accuracy that it bought."""
    looks = SHUFFLED | DISTRIBUTED
    last = shown(100 * found.accuracy[:, -1])
    formulas = ("baseline-numerical", "thm-3", "renyi-cut")
    pairs = ((looks[name], spent[-1]) for name, spent in found.epsilon.items())
    return [(LOOKS[key].label, sided(key, spent, formulas), last) for key, spent in pairs]


# --- words -----------------------------------------------------------------------------------------------------------


def setting_words(name: str, parameters: Parameters) -> dict[str, str]:
    """What texts say of an experiment, each word under a name that begins with ``name``.

    >>> setting_words("own", {"n_users": 60_000, "epsilon0": 2.0, "rounds": 300, "repeats": 1})["own_users"]
    '60,000'
    """
    return {
        f"{name}_users": f"{parameters['n_users']:,}",
        f"{name}_epsilon0": f"{parameters['epsilon0']:g}",
        f"{name}_rounds": counted(int(parameters["rounds"]), "round"),
        f"{name}_runs": counted(int(parameters["repeats"]), "run"),
    }


def ranking(record: Learning) -> str:
    """The schemes at the end of training, the most accurate first."""
    final = {LOOKS[name].label: float(record.final(name).mean()) for name in record.curves}
    return f"at the end, from the most accurate: {ranked(final, '{:.1f} %')}"


def spent_ranking(found: Spent) -> str:
    """The accountants after the last round, the least epsilon first."""
    looks = SHUFFLED | DISTRIBUTED
    last = {LOOKS[looks[name]].label: float(spent[-1]) for name, spent in found.epsilon.items()}
    return f"after the last round, from the least epsilon: {ranked(last, largest_first=False)}"


def clear_lead(record: Learning, one: str, other: str) -> Finding:
    """Whether the mean lead of one scheme over another at the end is above half the width of its interval."""
    gap = record.gap(one, other)
    return compared(gap.mean, ">", half_width(gap))


def recorded_words(large: Learning, small: Learning, network: Learning, spent: Spent) -> dict[str, str]:
    """What the page says of the recorded runs: what was learned, what was reached, what the accountants say."""
    setting, last = Setting.of(small.parameters), {name: float(found[-1]) for name, found in spent.epsilon.items()}
    shorter = 1 - small.noise[CAP] / small.noise[SPHERE]
    ends = {"the network with PrivUnit2": network.final(CAP)}
    ends |= {f"softmax regression with {LOOKS[name].label}": large.final(name) for name in (CAP, SPHERE, GAUSSIAN)}
    reached = {name: final.mean() >= REACHED for name, final in ends.items()}
    told = {name: f"{name} ({shown(final)} %)" for name, final in ends.items()}
    lead = either(clear_lead(small, CAP, SPHERE), "PrivUnit2 is better than Duchi et al. there, with",
                  "PrivUnit2 is no better than Duchi et al. there, in spite of")  # fmt: skip
    step = "; our step for it was the longer one" if setting.steps[CAP] > setting.steps[SPHERE] else ""
    return {
        "learned": either(small.final(CAP).mean() > LEARNED, "holds", "does not hold"),
        "small_lead": f"{lead} messages that are shorter by {percent(shorter)} at this budget{step}",
        "reached": f"reached by {listed([told[name] for name in ends if reached[name]], 'nothing')}; "
        f"not reached by {listed([told[name] for name in ends if not reached[name]], 'anything')}",
        "spent_certified": at_most(last["any"]),
        "spent_theorem": f"{last['thm-2']:.4g}",
        "spent_baseline": f"{last['numerical']:.4g}",
        "spent_gain": times(last["thm-2"] / last["any"]),
        "network_final": shown(network.final(CAP)),
        "softmax_final": shown(large.final(CAP)),
    }


def recorded_findings(large: Learning, small: Learning, spent: Spent) -> tuple[Finding, Finding, Finding]:
    """That it learns at the small budget, that shorter messages learn more, and where the printed budget lies."""
    certified, theorem = float(spent.epsilon["any"][-1]), float(spent.epsilon["thm-2"][-1])
    return (
        compared(float(small.final(CAP).mean()), ">", LEARNED),
        clear_lead(large, CAP, SPHERE),
        compared(certified, "<", PRINTED, "<", theorem),
    )
