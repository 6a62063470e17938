"""Both directions beside ``dp-accounting``: their events here, our rounds there, what is certain below either."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as plds
from dp_accounting.privacy_accountant import NeighboringRelation, UnsupportedEventError

from flamelib import AnyRandomizer, Checkin, KaryResponse, Participation, Shuffled, Summed, account, bounds
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.bridges.dp_accounting import (
    ADJACENCIES,
    CertifiedAccountant,
    CheckinDpEvent,
    ParticipationDpEvent,
    ShuffledDpEvent,
    exported,
    imported,
)
from flamelib.bridges.histories import Sampled, history_account

ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
DELTA = 1e-5
SURVEY = Shuffled(KaryResponse(1.0, 2), 10_000)
CLIENTS = Participation(0.1, 0.1, 30, 1.0, 1.0)
SUMS = Checkin(Summed(1000, 1.0), 0.05)


def sampled(noise, rate):
    return dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))


@dataclass
class Case:
    """One event, so many times; beside it theirs of the same laws, or our round, which has a lower end."""

    relation: Any
    event: Any
    times: int
    theirs: Any = None
    protocol: Any = None
    close: float = 1.003


def theirs(build, times=1, **given):
    """Their distribution, pessimistic or not."""
    return lambda pessimistic: build(pessimistic_estimate=pessimistic, **given).self_compose(times)


def gauss(noise, rate=1.0, times=1, relation=ADD):
    given = {"standard_deviation": noise, "sampling_prob": rate, "neighboring_relation": relation}
    return lambda pessimistic: theirs(plds.from_gaussian_mechanism, times, use_connect_dots=pessimistic, **given)(
        pessimistic
    )


def laplace(scale, times, rate=1.0):
    return theirs(plds.from_laplace_mechanism, times, parameter=scale, sampling_prob=rate)


EVENTS = dp_event
TWICE = EVENTS.ComposedDpEvent([EVENTS.SelfComposedDpEvent(sampled(1.0, 0.05), 2), EVENTS.NoOpDpEvent()])
RESPONSES = {"noise_parameter": 0.8, "num_buckets": 4, "neighboring_relation": REPLACE}
ANY = Shuffled(AnyRandomizer(1.0), 5000)
CASES = {
    "gaussian": Case(ADD, EVENTS.GaussianDpEvent(2.0), 10, gauss(2 / math.sqrt(10)), Sampled(2.0, 1.0)),
    "gaussian, replaced": Case(REPLACE, EVENTS.GaussianDpEvent(5.0), 10, gauss(5 / math.sqrt(10), 1.0, 1, REPLACE)),
    "steps": Case(ADD, sampled(1.0, 0.01), 500, gauss(1.0, 0.01, 500), Sampled(1.0, 0.01)),
    "loud steps": Case(ADD, sampled(0.5, 0.05), 10, gauss(0.5, 0.05, 10), Sampled(0.5, 0.05)),
    "steps, replaced": Case(REPLACE, sampled(1.0, 0.01), 500, gauss(1.0, 0.01, 500, REPLACE), None, 1.07),
    "laplace": Case(ADD, EVENTS.LaplaceDpEvent(5.0), 8, laplace(5.0, 8)),
    "sampled laplace": Case(
        ADD, EVENTS.PoissonSampledDpEvent(0.1, EVENTS.LaplaceDpEvent(1.0)), 20, laplace(1.0, 20, 0.1)
    ),
    "discrete laplace": Case(
        ADD, EVENTS.DiscreteLaplaceDpEvent(0.3, 1), 10, theirs(plds.from_discrete_laplace_mechanism, 10, parameter=0.3)
    ),
    "responses": Case(
        REPLACE, EVENTS.RandomizedResponseDpEvent(0.8, 4), 10, theirs(plds.from_randomized_response, 10, **RESPONSES)
    ),
    "composed": Case(ADD, TWICE, 20, gauss(1.0, 0.05, 40)),
    "clients": Case(ADD, ParticipationDpEvent(CLIENTS), 50, None, CLIENTS, 1.3),
    "survey": Case(REPLACE, ShuffledDpEvent(SURVEY), 20, None, SURVEY, 1.02),
    "any survey": Case(REPLACE, ShuffledDpEvent(ANY), 10, None, ANY, 1.2),
    "survey by check-in": Case(REPLACE, CheckinDpEvent(Checkin(SURVEY, 0.2)), 30, None, Checkin(SURVEY, 0.2), 1.05),
    "sums by check-in": Case(REPLACE, CheckinDpEvent(SUMS), 30, None, SUMS, 1.1),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_both_directions(case):
    """Ours from their events, theirs from our rounds: neither is below what is certain, each near the other."""
    accountant, times = CertifiedAccountant(case.relation), case.times
    assert accountant.supports(case.event)
    ours = accountant.compose(case.event, times).get_epsilon(DELTA)
    assert accountant.get_delta(ours) == pytest.approx(DELTA, rel=0.05)
    if case.theirs:
        certain, near = (case.theirs(pessimistic).get_epsilon_for_delta(DELTA) for pessimistic in (False, True))
    else:
        certain = near = bounds(case.protocol, delta=DELTA, rounds=times).lower
        assert ours == account(case.protocol, delta=DELTA, rounds=times).epsilon
    assert certain <= ours <= near * case.close
    if case.protocol:
        there = exported(case.protocol, times, DELTA)
        back = history_account([(imported(there, ADJACENCIES[case.relation]), times)], delta=DELTA)
        for found in (there.self_compose(times).get_epsilon_for_delta(DELTA), back.epsilon):
            assert certain <= found <= ours * 1.003
        assert back.rests_on == "cited"


def test_theirs_and_ours_compose():
    training, survey = sampled(1.0, 0.01), ShuffledDpEvent(SURVEY)
    both = CertifiedAccountant(REPLACE).compose(training, 100).compose(survey, 20)
    both.compose(EVENTS.LaplaceDpEvent(20.0), 3)
    parts = [(Sampled(1.0, 0.01), 100), (SURVEY, 20)]
    assert both.get_epsilon(DELTA) > history_account(parts, delta=DELTA).epsilon
    assert both.guarantee(DELTA).rests_on == "cited"
    assert "ShuffledDpEvent" in repr(both.ledger)
    other = CertifiedAccountant(REPLACE).compose(both.ledger)
    assert other.get_epsilon(DELTA) == both.get_epsilon(DELTA)
    clients = CertifiedAccountant().compose(ParticipationDpEvent(CLIENTS), 5).compose(training, 100)
    assert clients.get_epsilon(DELTA) == history_account([(CLIENTS, 5), parts[0]], delta=DELTA).epsilon


def test_an_import_in_both_orders_is_not_its_own_mirror():
    """The pair of a Poisson sample differs in its orders: the larger answer counts, whichever comes first."""
    pld = plds.from_gaussian_mechanism(1.0, sampling_prob=0.05)
    mirrored = plds.PrivacyLossDistribution(pld._pmf_add, pld._pmf_remove)
    one, other = (history_account([(imported(found), 30)], delta=DELTA).epsilon for found in (pld, mirrored))
    assert one == pytest.approx(other, rel=1e-9)
    assert one == pytest.approx(pld.self_compose(30).get_epsilon_for_delta(DELTA), rel=2e-3)
    delta = history_account([(imported(pld), 30)], epsilon=one).delta
    assert pld.self_compose(30).get_delta_for_epsilon(one) <= delta <= DELTA * 1.02


def test_a_distribution_that_was_composed_there_is_imported():
    """Their transforms leave round-off at losses so small that the other law would have a mass of 1e60 there."""
    pld = plds.from_gaussian_mechanism(0.2, value_discretization_interval=0.01).self_compose(3)
    found = history_account([(imported(pld), 3)], delta=DELTA).epsilon
    truth = gaussian_mechanism(3.0, 0.2, delta=DELTA)
    assert truth <= found <= truth * 1.003


LAP, POISSON = EVENTS.LaplaceDpEvent, EVENTS.PoissonSampledDpEvent
MIXTURE = EVENTS.MixtureOfGaussiansDpEvent(2.0, [0.0, 1.0], [0.7, 0.3])


def replaced_laplace(scale, rate, times, delta):
    """Epsilon at least, of noisy sums of samples with a record at 1 or at -1: losses of cells, rounded down."""
    edges, step = np.linspace(-200, 200, 40_001), 2e-3
    law = [np.abs(np.diff(0.5 * np.exp(-np.abs(edges - at) / scale))) for at in (0.0, 1.0, -1.0)]
    one, other = ((1 - rate) * law[0] + rate * law[at] for at in (1, 2))
    place = np.floor(np.log(one / other) / step).astype(int)
    mass, least = np.bincount(place - place.min(), one), place.min()
    total = mass
    for _ in range(times - 1):
        total = np.convolve(total, mass)
    losses = step * (times * least + np.arange(len(total)))
    low, high = 0.0, float(losses[-1])
    for _ in range(60):
        middle = (low + high) / 2
        more = losses > middle
        above_delta = float(total[more] @ -np.expm1(middle - losses[more])) > delta
        low, high = (middle, high) if above_delta else (low, middle)
    return low


@pytest.mark.parametrize(
    ("scale", "rate", "times", "most"),
    [(1.0, 1.0, 1, 2.0), (10.0, 1.0, 1, 0.2), (1.0, 0.1, 1, 0.24), (1.0, 0.9, 1, 1.8), (3.0, 0.4, 4, 1.25)],
)
def test_laplace_noise_on_a_record_that_is_replaced(scale, rate, times, most):
    """Their mass at infinity of 1e-15 once grew with exp(epsilon) until no epsilon was left (MEND 5.3)."""
    event = LAP(scale) if rate == 1 else POISSON(rate, LAP(scale))
    found = CertifiedAccountant(REPLACE, 1e-3).compose(event, times).get_epsilon(DELTA)
    assert replaced_laplace(scale, rate, times, DELTA) <= found <= most


def test_other_events_on_a_record_that_is_replaced():
    with_survey = CertifiedAccountant(REPLACE, 1e-3).compose(LAP(10.0)).compose(ShuffledDpEvent(SURVEY))
    assert 0.2 < with_survey.get_epsilon(DELTA) <= 0.24
    mixture = CertifiedAccountant(REPLACE, 1e-2).compose(MIXTURE).guarantee(DELTA)
    alike = [(Sampled(2.0, 0.3), 1)]
    assert history_account(alike, delta=DELTA).epsilon <= mixture.epsilon
    assert mixture.epsilon <= 1.02 * history_account(alike, delta=DELTA, adjacency=ADJACENCIES[REPLACE]).epsilon
    budget = plds.common.DifferentialPrivacyParameters(1.0, 1e-6)
    pair = imported(plds.from_privacy_parameters(budget))
    found = history_account([(pair, 1)], delta=DELTA, adjacency=ADJACENCIES[REPLACE])
    assert 1.999 < found.epsilon <= 2
    assert history_account([(pair, 1)], delta=1e-8, adjacency=ADJACENCIES[REPLACE]).epsilon == math.inf
    twice = CertifiedAccountant(REPLACE, 1e-3).compose(EVENTS.DiscreteLaplaceDpEvent(0.5, 1))
    assert 0.99 < twice.get_epsilon(DELTA) <= 1.0 + 1e-3


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0, "1", True, None, 1j])
def test_an_event_of_no_number_is_refused_in_one_sentence(wrong):
    response, discrete = EVENTS.RandomizedResponseDpEvent, EVENTS.DiscreteLaplaceDpEvent
    for relation in (ADD, REPLACE):
        for event, name in [
            (LAP(wrong), "noise_multiplier of LaplaceDpEvent"), (response(wrong, 4), "noise_parameter of Rand"),
            (EVENTS.GaussianDpEvent(wrong), "noise_multiplier of GaussianDpEvent"),
            (discrete(wrong, 1), "noise_parameter of Disc"), (response(0.5, wrong), "num_buckets of Rand"),
            (discrete(0.5, wrong), "sensitivity of Disc"), (POISSON(wrong, LAP(1.0)), "sampling_probability of"),
            (POISSON(0.5, LAP(wrong)), "noise_multiplier of LaplaceDpEvent"),
            (EVENTS.MixtureOfGaussiansDpEvent(wrong, [1.0], [1.0]), "standard_deviation of Mix"),
            (EVENTS.MixtureOfGaussiansDpEvent(1.0, [1.0], [wrong]), "sampling_probs of Mix"),
            (EVENTS.SelfComposedDpEvent(LAP(1.0), wrong), "count must be"),
            (EVENTS.ComposedDpEvent(wrong), "events must be"),
        ]:  # fmt: skip
            accountant = CertifiedAccountant(relation)
            assert not accountant.supports(event)
            with pytest.raises(UnsupportedEventError, match=name):
                accountant.compose(event)
            assert accountant.get_epsilon(0.0) == 0, "nothing of it is left behind"


@pytest.mark.parametrize(
    "event",
    [
        EVENTS.ZCDpEvent(0.1), EVENTS.RepeatAndSelectDpEvent(LAP(1.0), 1.0, 1.0),
        EVENTS.SingleEpochTreeAggregationDpEvent(5.0, 16), POISSON(0.1, EVENTS.ComposedDpEvent([LAP(1.0)])),
        EVENTS.SampledWithoutReplacementDpEvent(100, 10, LAP(1.0)), POISSON(0.1, EVENTS.NonPrivateDpEvent()),
        EVENTS.SampledWithReplacementDpEvent(100, 10, LAP(1.0)),
    ],
)  # fmt: skip
def test_an_event_that_nobody_accounts_for_is_refused(event):
    for relation in (ADD, REPLACE):
        with pytest.raises(UnsupportedEventError, match="event must be one that PLDAccountant supports"):
            CertifiedAccountant(relation).compose(event)


@pytest.mark.parametrize(
    ("relation", "event"),
    [
        (ADD, ShuffledDpEvent(SURVEY)),
        (ADD, CheckinDpEvent(SUMS)),
        (REPLACE, ShuffledDpEvent(CLIENTS)),
        (ADD, EVENTS.UnsupportedDpEvent()),
        (ADD, EVENTS.ComposedDpEvent([EVENTS.NoOpDpEvent(), EVENTS.UnsupportedDpEvent()])),
        (ADD, sampled(-1.0, 0.1)),
        (ADD, sampled(1.0, 1.1)),
    ],
)
def test_what_is_not_supported_is_refused(relation, event):
    accountant = CertifiedAccountant(relation)
    assert not accountant.supports(event)
    with pytest.raises(UnsupportedEventError):
        accountant.compose(event)
    assert accountant.get_epsilon(0.0) == 0
