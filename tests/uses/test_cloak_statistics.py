"""Statistics over cloak aggregation: tables to the last digit, noise by its law, budgets by enumeration."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from flamelib.accounting.splitting.n_user_bounds import users_distance
from flamelib.core.guarantees import Adjacency
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.integers.randomness import Simulation
from flamelib.mechanisms.sketches.counts import CountMin, CountSketch, SecondMoment
from flamelib.mechanisms.sketches.hashing import PRIME
from flamelib.mechanisms.sketches.linear import Sketch, Total, contributions, direct_table
from flamelib.mechanisms.sketches.norms import CauchyNorm, StableEntropy
from flamelib.mechanisms.sketches.support import LinearCounting, WeightedCounting, empty_weights
from flamelib.mechanisms.sketches.trees import DyadicQuantiles, PrefixSearch
from flamelib.protocols.cloak import run_vector
from flamelib.uses.statistics import SketchRelease, collect, median_noise_std, simulate

SKETCHES: list[Sketch] = [
    Total(15),
    CountMin(7, 3, seed=1),
    CountSketch(7, 3, seed=1),
    SecondMoment(3, 2, seed=1),
    LinearCounting(9, seed=1),
    DyadicQuantiles(4),
    PrefixSearch(4, 2, 5, 3, seed=1, signed=True),
    CauchyNorm(5, 20.0, 10, seed=1),
    StableEntropy(5, 20.0, 10, seed=1),
]


def simulation(seed: int = 1) -> Simulation:
    return Simulation(np.random.default_rng(seed))


@pytest.mark.parametrize("sketch", SKETCHES, ids=lambda sketch: type(sketch).__name__)
def test_the_protocol_gives_the_table_to_the_last_digit(sketch: Sketch) -> None:
    items = np.random.default_rng(2).integers(0, 16, size=1100)
    release = SketchRelease(sketch, n_users=1100)
    direct = direct_table(sketch, items)
    assert (collect(release, items, simulation()) == direct).all()
    shuffled = run_vector(release.protocol, contributions(sketch, items), simulation())
    assert (shuffled.reshape(sketch.shape) == direct).all()
    assert (simulate(release, direct, np.random.default_rng(1)) == direct).all()


def test_random_weights_go_through_the_protocol() -> None:
    items, sketch = np.random.default_rng(2).integers(0, 30, size=500), WeightedCounting(40, seed=1)
    release = SketchRelease(sketch, n_users=500)
    assert release.modulus == PRIME
    assert (collect(release, items, simulation()) == sketch.table(items)).all()
    with pytest.raises(DomainError, match="epsilon must be left out"):
        SketchRelease(sketch, n_users=500, epsilon=1.0)


@pytest.mark.parametrize("colluding", [0, 200, 298])
def test_the_noise_of_all_shares_is_what_the_release_says(colluding: int) -> None:
    """Variance, chance of 0 and law, from the users' shares and from the noise drawn at once."""
    sketch, items = CountMin(columns=500, rows=4, seed=1), np.zeros(300, dtype=int)
    release = SketchRelease(sketch, n_users=300, epsilon=6.0, colluding=colluding)
    direct, law = direct_table(sketch, items), all_shares(release)
    for noise in (collect(release, items, simulation()) - direct, _drawn(release, direct)):
        assert abs(noise.mean()) < 5 * noise.std() / math.sqrt(noise.size)
        spread = np.square(noise).std() / math.sqrt(noise.size)
        assert abs(np.square(noise).mean() - release.noise_variance) < 5 * spread
        for size in (0, 1, 4):
            chance = law[np.abs(np.arange(len(law)) - len(law) // 2) <= size].sum()
            assert abs(np.mean(np.abs(noise) <= size) - chance) < 5 * math.sqrt(chance * (1 - chance) / noise.size)
        assert np.abs(noise).max() <= release.room


def all_shares(release: SketchRelease) -> Any:
    """Law of X - Y around its middle: negative binomial masses by their recursion, and their correlation."""
    p, shape = release.decay, release.n_users / (release.n_users - release.colluding)
    steps = np.arange(1, 2 * release.room + 200)
    mass = np.cumprod(np.append((1 - p) ** shape, p * (shape + steps - 1) / steps))
    return np.correlate(mass, mass, "full")


@pytest.mark.parametrize("colluding", [0, 1, 100, 250, 450, 498])
@pytest.mark.parametrize("epsilon", [0.7, 20.0])
def test_room_holds_the_noise_of_all_shares(colluding: int, epsilon: float) -> None:
    """From both sides: by the sum of the law's tail, and beyond three quarters."""
    release = SketchRelease(CountMin(64, 4, 1), 500, epsilon, colluding=colluding)
    law = all_shares(release)
    away = np.abs(np.arange(len(law)) - len(law) // 2)
    assert release.noise_variance == pytest.approx(float((away**2 * law).sum()))
    assert release.counters * law[away > release.room].sum() <= 2.0**-60
    assert release.counters * law[away > 0.75 * release.room - 1].sum() > 2.0**-60


@pytest.mark.parametrize("colluding", [0, 7, 10])
@pytest.mark.parametrize(("kind", "each"), [(SecondMoment, 1), (CountSketch, 2000)])
def test_second_moments_under_the_noise_of_all_shares(kind: Any, each: int, colluding: int) -> None:
    """One item only: nothing but the squares of noise, those of colluders' shares included, is off."""
    sketch, items = kind(2000, 1, seed=1), [7] * 12
    release = SketchRelease(sketch, 12, epsilon=0.05 * sketch.sensitivity, colluding=colluding)
    table = collect(release, items, simulation(3))
    read = sketch.estimate if kind is SecondMoment else sketch.second_moment
    spread = each * np.square(table).std() / math.sqrt(2000)
    assert abs(read(table, release.noise_variance) - 144) < 5 * spread < each * release.noise_variance


def _drawn(release: SketchRelease, table: Any) -> Any:
    return simulate(release, table, np.random.default_rng(4)) - table


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("sensitivity", [1, 7, 10_000])
def test_rounding_never_costs_privacy(epsilon: float, sensitivity: int) -> None:
    decay = SketchRelease(Total(sensitivity), 100, epsilon).decay
    with mp.workdps(40):
        spent = -sensitivity * mp.log(mp.mpf(decay))
        assert spent <= epsilon
        assert spent > epsilon * (1 - 1e-8)


def test_the_table_keeps_its_budget_by_enumeration() -> None:
    """All tables that two users can send, all outputs near them: the ratio of chances reaches e^epsilon and no more."""
    sketch = CountMin(columns=3, rows=2, seed=1)
    p = Fraction(SketchRelease(sketch, 2, epsilon=1.0).decay)
    sent = {tuple(one) for one in contributions(sketch, range(20))}
    worst = Fraction(0)
    for a, b in product(sent, repeat=2):
        for seen in (a, b, tuple(np.array(a) * 3 - 1)):
            exponents = (abs(s - y) - abs(s - x) for s, x, y in zip(seen, a, b, strict=True))
            worst = max(worst, p ** (-sum(int(one) for one in exponents)))
    assert Fraction(math.e) * Fraction(999, 1000) < worst <= Fraction(math.e)


@pytest.mark.parametrize("epsilon", [None, 0.5, 4.0])
@pytest.mark.parametrize("sketch", [CountMin(300, 5, seed=1), CauchyNorm(50, 30.0, 10, seed=1)])
def test_every_counter_is_read_with_its_sign(sketch: Sketch, epsilon: float | None) -> None:
    release = SketchRelease(sketch, 1000, epsilon)
    half = release.modulus // 2
    assert release.modulus % 2 == 1
    assert half >= 1000 * sketch.bound + release.room
    p, beyond = mp.mpf(release.decay), release.room + 1
    assert release.counters * 2 * p**beyond / (1 + p) <= mp.mpf(2) ** -60
    assert epsilon or release.modulus == 2 * 1000 * sketch.bound + 1


@pytest.mark.parametrize("colluding", [0, 300])
def test_messages_are_as_many_as_the_bound_asks_for_all_counters(colluding: int) -> None:
    release = SketchRelease(CountMin(300, 5, seed=1), 1000, 1.0, colluding=colluding)
    honest, target = 1000 - colluding, 2.0**-40 / 1500
    assert users_distance(release.modulus, release.n_messages, honest) <= target
    assert users_distance(release.modulus, release.n_messages - 1, honest) > target
    assert release.bits == 1500 * release.n_messages * release.modulus.bit_length()


def test_guarantees_say_for_whom_they_hold() -> None:
    sketch = CountMin(30, 2, seed=1)
    bare, noisy = SketchRelease(sketch, 1000).guarantee, SketchRelease(sketch, 1000, 1.0).guarantee
    assert (bare.epsilon, bare.delta, bare.adjacency) == (0.0, 2.0**-40, Adjacency.SUM_PRESERVING)
    assert (noisy.epsilon, noisy.adjacency) == (1.0, Adjacency.REPLACE_ONE)
    assert (1 + math.e) * 2.0**-40 <= noisy.delta <= (1 + math.e) * 2.0**-40 * 1.001
    assert SketchRelease(sketch, 1000, 690.0).guarantee.delta == 1


@pytest.mark.parametrize(
    "bad",
    [
        *({"n_users": value} for value in (0, 1, float("nan"), 2.5)),
        *({"epsilon": value} for value in (0.0, -1.0, float("nan"), float("inf"), 1e300, 1e-300)),
        *({"security_bits": value} for value in (0.0, float("nan"))),
        *({"colluding": value} for value in (-1, 999)),
    ],
)
def test_bad_releases_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(DomainError):
        SketchRelease(**({"sketch": CountMin(30, 2, seed=1), "n_users": 1000, "epsilon": 1.0} | bad))


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_noise_of_a_median_by_enumeration(rows: int) -> None:
    p = mp.mpf(1) / 3
    law = {j: (1 - p) / (1 + p) * p ** abs(j) for j in range(-12, 13)}
    least = rows // 2 + 1
    beyond = {j: sum(law[i] for i in law if i >= j) for j in law}
    tail = {
        j: sum(mp.binomial(rows, k) * q**k * (1 - q) ** (rows - k) for k in range(least, rows + 1))
        for j, q in beyond.items()
    }
    variance = sum(j**2 * (tail[j] - tail.get(j + 1, 0)) for j in law)
    assert median_noise_std(1 / 3, rows) ** 2 == pytest.approx(float(variance), rel=1e-3)


def test_the_spread_of_unmixed_counts_is_exact() -> None:
    """Against many noisy tables of one true table: the number of empty buckets, not its logarithm."""
    sketch = LinearCounting(40, seed=1)
    release = SketchRelease(sketch, 100, epsilon=3.0)
    table = direct_table(sketch, np.arange(1000, 1010), [90, 40, 30, 12, 5, 5, 1, 1, 1, 1])
    rng = np.random.default_rng(1)
    weights = [empty_weights(simulate(release, table, rng), release.decay).sum() for _ in range(3000)]
    empty = np.count_nonzero(table == 0)
    assert abs(np.mean(weights) - empty) < 5 * np.std(weights) / math.sqrt(3000)
    noise = math.sqrt(sketch.unmixed_std(table, 10, release.decay) ** 2 - sketch.std(10) ** 2)
    assert noise * (1 - 1 / 40) ** 10 == pytest.approx(np.std(weights), rel=0.1)
