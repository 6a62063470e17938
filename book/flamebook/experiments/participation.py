r"""Learning with random participation: every scheme with the noise that its accounting asks for at one guarantee.

How much noise comes from the privacy side, what it does to training from the mechanism side; they meet here.  All
schemes of a run share initial model, batches and directions of noise, so that differences are taken within a run.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from flamebook.experiments.runs import Gap, Learning, half_width, named
from flamebook.records import Parameters
from flamebook.statements import (
    AtMost,
    Finding,
    compared,
    counted,
    either,
    every,
    listed,
    percent,
    ranked,
    silent,
    times,
)
from flamelib.accounting.sampling.hidden import participation_noise
from flamelib.accounting.sampling.rounds import dominated_rounds
from flamelib.core.vocabulary import DomainError, check
from flamelib.learning.models import Model
from flamelib.learning.participation import Scheme, train
from flamelib.learning.records import Records
from flamelib.protocols.participation import batch_size

UNPROTECTED, NOISELESS = "unprotected", "noiseless"
BASELINES = ("wcs", "ols")
RANKING = (UNPROTECTED, "outer", *BASELINES)
PAIRS = (*pairwise(RANKING), (UNPROTECTED, NOISELESS), (NOISELESS, "outer"), ("inner", "outer"))
SLOW = "slow"
STANDINGS = {"ahead": ">", "behind": "<", "not told apart": "\N{ALMOST EQUAL TO}"}
LEAST_NOISE = 1e-6  # of the clipping norm: a record that is drawn is as good as seen


@dataclass(frozen=True, slots=True)
class Setting:
    r"""Public parameters of one experiment; all records are dealt out to clients of equal size.

    Parameters
    ----------
    n_records : int
        Records of a client.
    participation_rate, record_rate : float in (0, 1]
    clip_norm : float, positive
    epsilon, delta : float
        Guarantee of one round, the paper's :math:`(\varepsilon', \delta')`.
    rounds : int
    learning_rate : float, positive
        Of every scheme.
    slow_learning_rate : float, positive, optional
        WCS and OLS are trained with this one, too.

    Examples
    --------
    >>> Setting(30, 0.0056, 0.1).as_parameters()["n_records"]
    30
    """

    n_records: int
    participation_rate: float
    record_rate: float
    clip_norm: float = 1.0
    epsilon: float = 1e-2
    delta: float = 1e-7
    rounds: int = 2000
    learning_rate: float = 2e-3
    slow_learning_rate: float | None = None

    def __post_init__(self) -> None:
        check(**self.as_parameters())
        if self.slow_learning_rate is not None:
            check(learning_rate=self.slow_learning_rate)

    def as_parameters(self) -> Parameters:
        """For the card of a figure."""
        names = ("n_records", "participation_rate", "record_rate", "clip_norm", "epsilon", "delta", "rounds")
        return {name: getattr(self, name) for name in (*names, "learning_rate")}

    def noise_std(self, scheme: str) -> float:
        """Noise on the sum at which the accounting of a scheme finds the guarantee of a round."""
        return float(
            participation_noise(
                scheme, self.participation_rate, self.record_rate, self.n_records, self.clip_norm,
                self.epsilon, self.delta,
            )
        )  # fmt: skip

    def total_epsilon(self, scheme: str, total_delta: float) -> float:
        """Upper bound on epsilon after all rounds with the noise of a scheme, by its own accounting.

        ``inner`` has none that is a bound: its noise is accounted for by the certified reading.
        """
        accounting = "outer" if scheme == "inner" else scheme
        noise = max(self.noise_std(scheme), self.clip_norm * LEAST_NOISE)
        return float(
            dominated_rounds(
                accounting, self.participation_rate, self.record_rate, self.n_records, noise, self.clip_norm,
                self.rounds, delta=total_delta,
            )
        )  # fmt: skip

    def schemes(self) -> dict[str, Scheme]:
        """No privacy; clipped gradients without noise; the theorem, certified and as it is read; both baselines."""
        found = {
            UNPROTECTED: Scheme(0.0, math.inf, self.learning_rate),
            NOISELESS: Scheme(0.0, self.clip_norm, self.learning_rate),
        }
        noise = {name: self.noise_std(name) for name in ("inner", "outer", *BASELINES)}
        found |= {name: Scheme(std, self.clip_norm, self.learning_rate) for name, std in noise.items()}
        if self.slow_learning_rate is not None:
            slow = self.slow_learning_rate
            found |= {f"{name}:{SLOW}": Scheme(noise[name], self.clip_norm, slow) for name in BASELINES}
        return found


def settings(
    n_records: Sequence[int],
    participation_rate: Sequence[float],
    record_rate: Sequence[float],
    *,
    slow_learning_rate: float | None = None,
    **common: float,
) -> list[Setting]:
    """One setting for each entry of the lists, the rest in common; the slow rate is tried in the first.

    >>> [one.record_rate for one in settings([30, 1000], [0.0056, 0.1], [0.1, 0.0056], rounds=10)]
    [0.1, 0.0056]
    """
    if not len(n_records) == len(participation_rate) == len(record_rate) > 0:
        raise DomainError("n_records, participation_rate and record_rate must be lists of one length, one at least")
    rates = zip(n_records, participation_rate, record_rate, strict=True)
    slow = [slow_learning_rate, *[None] * (len(n_records) - 1)]
    return [Setting(*one, slow_learning_rate=rate, **common) for one, rate in zip(rates, slow, strict=True)]  # type: ignore[arg-type]


def compute_learning(
    records: Records, setting: Setting, repeats: int, seed: int, *, model: Model | None = None, points: int = 10
) -> Learning:
    """Train all schemes of a setting ``repeats`` times, softmax regression unless another model is given."""
    schemes = setting.schemes()
    histories = [
        train(
            model or records.softmax, records, schemes, setting.rounds, rng, points=points,
            participation_rate=setting.participation_rate, record_rate=setting.record_rate,
            n_records=setting.n_records,
        )
        for rng in np.random.default_rng(seed).spawn(repeats)
    ]  # fmt: skip
    noise = {name: scheme.noise_std for name, scheme in schemes.items()}
    return Learning.of(histories, noise, {**setting.as_parameters(), "repeats": repeats, "seed": seed})


def setting_rows(records: Records, found: Iterable[Setting]) -> list[tuple[object, ...]]:
    """For a table: clients, rates, and the mean and standard deviation of a batch."""
    rows: list[tuple[object, ...]] = []
    for one in found:
        n_clients = records.n_clients(one.n_records)
        mean, std = batch_size(one.participation_rate, one.record_rate, n_clients, one.n_records)
        rates = (one.participation_rate, one.record_rate)
        rows.append((f"{n_clients:,} \N{MULTIPLICATION SIGN} {one.n_records:,}", *rates, mean, std, mean**0.5))
    return rows


def total_epsilons(setting: Setting, total_delta: float) -> dict[str, float]:
    """Upper bound on epsilon after all rounds for each scheme with noise."""
    return {name: setting.total_epsilon(name, total_delta) for name in ("inner", "outer", *BASELINES)}


def scheme_rows(record: Learning, totals: Mapping[str, float]) -> list[tuple[object, ...]]:
    """For a table: a scheme's noise, its epsilon after all rounds, and its accuracy."""
    rows: list[tuple[object, ...]] = []
    for name in record.curves:
        total = totals.get(name.partition(":")[0], math.inf)
        rows.append((named(name), record.noise[name], AtMost(total), str(Gap.of(record.final(name)))))
    return rows


def pairs(record: Learning) -> list[tuple[str, str]]:
    """The pairs that are compared, as far as both were trained."""
    return [(one, other) for one, other in PAIRS if {one, other} <= set(record.curves)]


def pair_rows(record: Learning) -> list[tuple[object, ...]]:
    """For a table: mean and spread of paired differences, the interval of the mean, and what it shows."""
    rows: list[tuple[object, ...]] = []
    for one, other in pairs(record):
        gap = record.gap(one, other)
        reach = half_width(gap)
        interval = f"[{gap.mean - reach:.2f}, {gap.mean + reach:.2f}]"
        difference = f"{named(one)} \N{MINUS SIGN} {named(other)}"
        rows.append((difference, str(gap), interval, standing(record, one, other)))
    return rows


def recorded_pair_rows(runs: Mapping[tuple[str, str], Learning], model: str) -> list[tuple[object, ...]]:
    """The rows of :func:`pair_rows` for all recorded experiments with one model, each after its experiment's name."""
    return [(experiment, *row) for (experiment, name), run in runs.items() if name == model for row in pair_rows(run)]


# --- statements and words --------------------------------------------------------------------------------------------


def ahead(record: Learning, one: str, other: str) -> Finding:
    """Whether the interval of the mean difference lies above zero; silent where zero is in it."""
    gap = record.gap(one, other)
    reach = half_width(gap)
    if abs(gap.mean) <= reach:
        return silent(f"the interval of the difference is from {gap.mean - reach:.2g} to {gap.mean + reach:.2g} points")
    return compared(gap.mean, ">", 0)


def standing(record: Learning, one: str, other: str) -> str:
    """A key of :data:`STANDINGS`: what the interval of the mean difference says of the first scheme."""
    return either(ahead(record, one, other), "ahead", "behind", "not told apart")


def order_words(record: Learning) -> str:
    """The claimed ranking with the signs that the paired runs put between its neighbours."""
    signs = [STANDINGS[standing(record, *pair)] for pair in pairwise(RANKING)]
    steps = (f"{sign} {named(name)}" for sign, name in zip(signs, RANKING[1:], strict=True))
    return " ".join([named(RANKING[0]), *steps])


def end_words(record: Learning) -> str:
    """Every scheme with its accuracy at the end, the best first."""
    return ranked({named(name): float(record.final(name).mean()) for name in record.curves}, shown="{:.1f} %")


def noise_words(noise: Mapping[str, float]) -> str:
    """What the baselines ask for beside the certified reading of the theorem."""
    least = noise["outer"]
    found = [
        f"{named(name)} for {noise[name]:.3g}" + (f" ({noise[name] / least:.3g} times as much)" if least else "")
        for name in BASELINES
    ]
    return f"{named('outer')} asks for noise of {least:.3g}, {listed(found)}"


def less_noise_words(first: Mapping[str, float], second: Mapping[str, float]) -> str:
    """The schemes that ask for less noise in the second experiment."""
    return listed([named(name) for name in ("inner", "outer", *BASELINES) if second[name] < first[name]], "no scheme")


def experiment_words(setting: Setting, record: Learning, n_clients: int, totals: Mapping[str, float]) -> dict[str, str]:
    """What an experiment shows: clients, noise, the order of the schemes, what clipping costs, budgets in the end."""
    gaps = [record.gap(*pair) for pair in pairwise(RANKING[1:])]
    spread = [Gap.of(record.final(name)).spread for name in ("inner", *RANKING[1:])]
    slow = {named(name.partition(":")[0]): record.final(name).mean() for name in record.curves if SLOW in name}
    lost, clipped = record.gap(UNPROTECTED, "outer").mean, record.gap(UNPROTECTED, NOISELESS).mean
    return {
        "clients": f"{counted(n_clients, 'client')} of {counted(setting.n_records, 'image')}",
        "shown": f"joins {percent(setting.participation_rate)} of the rounds and then shows "
        f"{percent(setting.record_rate)} of its images, {setting.n_records * setting.record_rate:.3g} on average",
        "noise": noise_words(record.noise),
        "order": order_words(record),
        "end": end_words(record),
        "slow": listed([f"{name} at {end:.1f} %" for name, end in slow.items()]),
        "spread": f"up to {max(spread):.2g} points from run to run, paired differences by up to "
        f"{max(gap.spread for gap in gaps):.2g}",
        "lost": f"{lost:.3g} points away from training without privacy; clipping without any noise is {clipped:.3g}",
        "totals": f"OLS ends at {_in_units(totals['ols'], totals['outer'])}, the noise that inner asks for at "
        f"{_in_units(totals['inner'], totals['outer'])}",
    }


def _in_units(epsilon: float, unit: float) -> str:
    return f"{times(epsilon / unit)} the epsilon of outer" if 0 < unit < math.inf else f"an epsilon of {epsilon:.3g}"


def recorded_words(runs: Mapping[tuple[str, str], Learning]) -> dict[str, str]:
    """What recorded runs show of the document's statements, by experiment (``6.1``, ``6.2``) and model.

    The second key is ``softmax`` or ``network``.
    """
    models = ("softmax", "network")
    poor = every(*(ahead(runs["6.1", model], "outer", "ols") for model in models))
    apart = {key: record.gap("outer", "ols").mean for key, record in runs.items()}
    close = every(*(compared(apart["6.2", model], "<", apart["6.1", model]) for model in models))
    share = runs["6.1", "softmax"].noise["inner"] / runs["6.1", "softmax"].noise["outer"]
    told = {
        "recorded_poor": either(poor, "holds", "is not seen"),
        "recorded_close": either(close, "closer than in 6.1", "not closer than in 6.1"),
        "recorded_less": less_noise_words(runs["6.1", "softmax"].noise, runs["6.2", "softmax"].noise),
        "recorded_share": percent(share),
    }
    for model in models:
        record = runs["6.1", model]
        told[f"recorded_{model}"] = f"{len(record.final('outer'))} paired runs over {record.rounds[-1]:,} rounds"
        told[f"recorded_order_{model}"] = order_words(record)
    return told
