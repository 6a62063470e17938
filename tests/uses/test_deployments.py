"""Every mechanism for one request: rows are what accounts say, errors are those of runs, refusals have reasons."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flamelib.accounting.checkin.distributed_noise import distributed, distributed_rounds
from flamelib.accounting.coordinates.vector_bounds import account, shared_account
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.noise.skellam import vector_epsilon
from flamelib.accounting.noise.sums import polya_sum
from flamelib.accounting.sampling.rounds import participation_rounds
from flamelib.accounting.shuffling.numerical import blanket_divergence
from flamelib.core.guarantees import Adjacency
from flamelib.core.profiles import KaryProfile
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import blanket
from flamelib.uses.central_mechanisms import CENTRAL
from flamelib.uses.deployments import Refusal, mechanisms, row
from flamelib.uses.workload import Request, Row

N, DELTA = 200, 1e-5
ONE = Request(N, delta=DELTA, sampling_rate=0.25)
ITEMS = Request(N, dimension=4, rounds=2, delta=DELTA, task="histogram", sampling_rate=0.25)
VECTOR = Request(N, dimension=3, rounds=2, delta=DELTA, sampling_rate=0.25)
REQUESTS = {"one": ONE, "items": ITEMS, "vector": VECTOR}


def served(name: str, request: Request, **budget: float) -> Row:
    found = row(name, request, **budget)
    assert isinstance(found, Row), found
    return found


# --- each row is a direct call of its account -------------------------------------------------------------------------


def test_one_shuffled_number() -> None:
    found = served("blanket", ONE, epsilon0=1.5)
    profile = KaryProfile(1.5, int(found.parameters["n_buckets"]))
    assert found.epsilon == pytest.approx(min(1.5, float(blanket_divergence(profile, N, delta=DELTA))), rel=1e-6)


@pytest.mark.parametrize(("name", "given"), [("simple", {}), ("double", {"kept": 2.0, "padded": 90})])
def test_shared_answers_about_vectors_are_hardly_above_the_account(name: str, given: dict[str, float]) -> None:
    direct = account(name, 8, N, 0.7, DELTA, "blanket", "sound", **given)
    shared = [shared_account(name, 8, N, 0.7, delta, **given) for delta in (DELTA, 1e-30)]
    assert 0.999 * direct < shared[0] < (1.005 if name == "simple" else 1.04) * direct
    assert shared[0] < shared[1] < math.inf


def test_of_the_largest_coordinates_each_counts_as_one_that_is_always_reported() -> None:
    found = shared_account("topk", 2, N, 0.7, DELTA, 2, N)
    assert found == pytest.approx(shared_account("simple", 2, N, 0.7, DELTA), rel=1e-3)


@pytest.mark.parametrize("key", REQUESTS)
def test_sums_with_noise(key: str) -> None:
    request = REQUESTS[key]
    rounds, (far, much) = request.rounds, request.moved
    one = served("distributed check-in", request, epsilon=1.5)
    std = one.parameters["noise_std"]
    assert one.epsilon == distributed_rounds(N, 0.25, std, rounds, delta=DELTA) <= 1.5
    assert one.claimed == distributed(N, 0.25, std, rounds, DELTA, "thm-4")
    one = served("random participation", request, epsilon=1.5)
    std = one.parameters["noise_std"]
    assert one.epsilon == pytest.approx(participation_rounds("outer", 0.25, 1, 1, std, 1, rounds, delta=DELTA))
    one = served("cloak, Skellam noise", request, epsilon=1.5)
    security = one.parameters["security_bits"]
    scale = one.parameters["sensitivity_2"] / far
    direct = vector_epsilon(
        request.dimension, scale * far, one.parameters["variance"], rounds, DELTA, scale * much, security
    )
    assert one.epsilon == pytest.approx(direct, rel=1e-9)
    assert one.epsilon == pytest.approx(1.5, rel=1e-9)
    one = served("local Gaussian", request, epsilon=1.5)
    assert one.epsilon == pytest.approx(
        float(gaussian_mechanism(far * math.sqrt(rounds), one.parameters["noise_std"], delta=DELTA))
    )


@pytest.mark.parametrize("key", REQUESTS)
def test_an_even_share_of_the_budget_for_each_sum(key: str) -> None:
    """Pure epsilon of a sum, times the sums that a user moves, and delta for the shares of all sums."""
    request = REQUESTS[key]
    found = served("cloak, Pólya noise", request, epsilon=1.5)
    moved = {"one": 1, "items": 4, "vector": 6}[key]
    each = polya_sum(N, int(found.parameters["scale"]), found.parameters["decay"], delta=0.0)
    assert moved * each == pytest.approx(1.5, rel=1e-6)
    sums = request.dimension * request.rounds
    assert sums * (1 + math.exp(1.5)) * 2.0 ** -found.parameters["security_bits"] <= DELTA
    assert served("cloak, Theorem 1", request, epsilon=1.5).epsilon <= 1.5


# --- sanity -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon0", [2.39, 0.531, 10.6])
def test_local_budgets_that_add_are_rounded_up(epsilon0: float) -> None:
    """Three times the double is between two doubles, the nearest of which is below."""
    assert served("local", replace(ONE, rounds=3), epsilon0=epsilon0).epsilon > 3 * Fraction(epsilon0)


def test_only_budgets_of_one_adjacency_are_without_a_warning() -> None:
    for name in CENTRAL:
        found = served(name, ONE, epsilon=1.0)
        assert bool(found.warning) == (found.adjacency != Adjacency.REPLACE_ONE)
    assert served("cloak, no noise", ONE, epsilon=1.0).adjacency == Adjacency.SUM_PRESERVING
    assert served("random participation", ONE, epsilon=1.0).adjacency == Adjacency.ADD_REMOVE


@given(st.sampled_from(mechanisms()), st.booleans())
def test_what_cannot_be_served_is_refused_with_a_reason(name: str, full: bool) -> None:
    if name in CENTRAL:
        found = row(name, ONE, epsilon0=1.0)
    else:
        found = row("topk", replace(ONE, dimension=3) if full else ONE, epsilon=1.0)
    assert isinstance(found, Refusal)
    assert len(found.reason) > 20


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"epsilon": None}, "exactly one"), ({"epsilon": 1.0, "epsilon0": 1.0}, "exactly one"),
        ({"epsilon": 0.0}, "epsilon"), ({"epsilon0": math.nan}, "epsilon0"),
        ({"epsilon": 1.0, "name": "x"}, "mechanism"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_refused(wrong: dict[str, object], named: str) -> None:
    given = {"name": "local", "request": ONE, **wrong}
    with pytest.raises(DomainError, match=named):
        row(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"delta": 0}, {"delta": 1}, {"task": "sum"}, {"task": "histogram"}, {"n_users": 1}, {"sampling_rate": 0}]
)
def test_a_wrong_request_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(DomainError, match=next(iter(wrong)) if wrong != {"task": "histogram"} else "dimension"):
        replace(ONE, **wrong)  # type: ignore[arg-type]


# --- errors are those of runs -----------------------------------------------------------------------------------------


def test_the_error_of_items_is_that_of_runs() -> None:
    request, rng = replace(ITEMS, rounds=1), np.random.default_rng(5)
    found = served("blanket", request, epsilon0=1.5)
    protocol = blanket.HistogramProtocol(N, 4, KaryProfile(1.5, 4).mass)
    values = np.arange(N) % 3
    true = np.bincount(values, minlength=4) / N
    off = [np.asarray(blanket.run(protocol, values, rng)) / N - true for _ in range(1500)]
    assert found.error == pytest.approx(float(np.sqrt(np.mean(np.square(off)))), rel=0.05)


def test_the_error_of_absent_users_is_that_of_runs() -> None:
    """Gaussian noise of those who check in, records at the corners, where absence costs most."""
    rng, found = np.random.default_rng(6), served("distributed check-in", VECTOR, epsilon=3.0)
    rows = rng.choice([-0.5, 0.5], (N, 3))
    std, rate = found.parameters["noise_std"] * VECTOR.radius, VECTOR.sampling_rate
    off = []
    for _ in range(1500):
        here = rng.random(N) < rate
        total = rows[here].sum(axis=0) + rng.normal(scale=std, size=(int(here.sum()), 3)).sum(axis=0)
        off.append(total / (rate * N) - rows.mean(axis=0))
    assert found.error == pytest.approx(float(np.sqrt(np.mean(np.square(off)))), rel=0.05)


def test_values_between_two_steps_of_a_grid_are_rounded_at_random() -> None:
    """A coin between neighbours has variance one quarter; at such a budget that counts beside the noise."""
    found = served("cloak, Skellam noise", ONE, epsilon=50.0)
    scale, noise = found.parameters["sensitivity_1"], found.parameters["variance"]
    assert found.error == pytest.approx(math.sqrt(noise + N * 0.5**2) / (scale * N), rel=1e-12)


def test_the_error_of_sampled_coordinates_is_that_of_runs() -> None:
    rng, found = np.random.default_rng(7), served("double", ONE, epsilon0=2.0)
    values, padded = rng.choice([0.0, 1.0], N), int(found.parameters["padded"])
    off = []
    for _ in range(1500):
        here = rng.random(N) < ONE.sampling_rate
        messages = np.append(values[here], np.full(padded - int(here.sum()), 0.5))
        noisy = messages + rng.laplace(scale=0.5, size=len(messages))
        off.append((noisy - 0.5).sum() / (N * ONE.sampling_rate) + 0.5 - values.mean())
    assert found.error == pytest.approx(float(np.sqrt(np.mean(np.square(off)))), rel=0.05)
    assert LaplaceNoise(2.0).epsilon0 == found.parameters["epsilon0"]
