"""Claims about what shares are used for: the protocol's own code run, shortcuts attacked, linear sketches, learning.

Learning is judged by the notebook's run at full size (``data/results``), never by fresh ones.  Runs of two methods
share their random numbers, so a method counts as ahead of another if the mean of paired differences exceeds two of
their standard deviations.
"""

import math
from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import pandas as pd
from scipy.integrate import quad

from flamebook.attacks.shortcuts import compute_opened, compute_stream
from flamebook.attacks.too_few import compute_vectors
from flamebook.claims.blanket import evaluate
from flamebook.claims.flame import DEVIATIONS
from flamebook.experiments.runs import Gap
from flamebook.places import RESULTS
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.integers.randomness import Simulation
from flamelib.mechanisms.sealing import AnalyzerKey, new_round, open_bags, seal
from flamelib.mechanisms.sketches.counts import CountMin, CountSketch
from flamelib.mechanisms.sketches.linear import direct_table
from flamelib.mechanisms.sketches.norms import CauchyNorm
from flamelib.mechanisms.sketches.support import LinearCounting
from flamelib.mechanisms.sketches.trees import DyadicQuantiles
from flamelib.protocols.cloak import CloakProtocol, analyze, average, encode, pool, relay, shuffler, total

# --- the protocol ----------------------------------------------------------------------------------------------------


def sum_is_floored(n_users: int, modulus: int, scale: int, n_messages: int, seed: int) -> bool:
    """Whether every user sends ``n_messages`` residues and the shuffled ones give the sum of rounded values exactly."""
    protocol = CloakProtocol(n_users, modulus, scale, n_messages)
    rng = np.random.default_rng(seed)
    steps = rng.integers(0, scale + 1, n_users)
    messages = encode(protocol, np.minimum(steps + 0.5, scale) / scale, Simulation(rng))
    mixed = relay(pool(messages), [lambda row: row[::-1], lambda row: shuffler(row, Simulation(rng))])
    estimate = float(analyze(protocol, total(protocol, mixed)))
    shaped = messages.shape == (n_users, n_messages) and messages.min() >= 0 and messages.max() < modulus
    return bool(shaped and estimate == steps.sum() / scale and float(average(protocol, estimate)) == estimate / n_users)


def last_closes(n_users: int, modulus: int, scale: int, n_messages: int, seed: int) -> bool:
    """Whether a user's last message is its value less all others, which are the source's own residues."""
    protocol = CloakProtocol(n_users, modulus, scale, n_messages)
    steps = np.random.default_rng(seed).integers(0, scale + 1, n_users)
    messages = encode(protocol, np.minimum(steps + 0.5, scale) / scale, Simulation(np.random.default_rng(seed)))
    drawn = Simulation(np.random.default_rng(seed)).uniform(modulus, (n_messages - 1, n_users)).T
    closed = (messages[:, -1] == (steps - drawn.sum(axis=1)) % modulus).all()
    return bool((messages[:, :-1] == drawn).all() and closed)


def floor_loss(n_users: int, scale: int, seed: int) -> float:
    """What rounding down takes from a sum of values spread over [0, 1], over ``n / 2k``."""
    values = np.random.default_rng(seed).random(n_users)
    protocol = CloakProtocol(n_users, 2 * n_users * scale + 1, scale, 2)
    found = float(
        analyze(protocol, total(protocol, pool(encode(protocol, values, Simulation(np.random.default_rng(0))))))
    )
    return (math.fsum(values) - found) / (n_users / (2 * scale))


def all_refused(values: Sequence[float | str]) -> bool:
    """Whether the encoder refuses each of these values."""
    protocol = CloakProtocol(2, 1001, 100, 3)
    return all(_refused(protocol, float(value)) for value in values)


def _refused(protocol: CloakProtocol, value: float) -> bool:
    try:
        encode(protocol, [value, 0.5], Simulation(np.random.default_rng(0)))
    except DomainError:
        return True
    return False


def signed_error(n_users: int, bound: float, scale: int, seed: int) -> float:
    """Largest error of a sum of signed values, shifted and scaled into [0, 1], over what rounding allows."""
    values = np.random.default_rng(seed).uniform(-bound, bound, n_users)
    protocol = CloakProtocol(n_users, 2 * n_users * scale + 1, scale, 3)
    messages = encode(protocol, (values + bound) / (2 * bound), Simulation(np.random.default_rng(seed)))
    found = 2 * bound * float(analyze(protocol, total(protocol, pool(messages)))) - n_users * bound
    return abs(found - math.fsum(values)) / (2 * bound * n_users / scale)


def sealed_sum(reader: str, n_users: int, modulus: int, scale: int, n_messages: int, seed: int) -> bool:
    """Whether messages that are sealed for the shuffler or the analyzer give the sum, and another key opens none."""
    protocol = CloakProtocol(n_users, modulus, scale, n_messages)
    rng = np.random.default_rng(seed)
    steps = rng.integers(0, scale + 1, n_users)
    messages = pool(encode(protocol, np.minimum(steps + 0.5, scale) / scale, Simulation(rng)))
    key, name = AnalyzerKey(), new_round()
    envelopes = seal(key.public, name, np.zeros(messages.size, dtype=int), messages)
    order = rng.permutation(messages.size)
    if reader == "shuffler":  # opens first, and hands on what it read in another order
        shuffled = open_bags(key, name, envelopes[None]).values[0][order]
    else:
        shuffled = open_bags(key, name, envelopes[order][None]).values[0]
    other = open_bags(AnalyzerKey(), name, envelopes[None])
    found = float(analyze(protocol, total(protocol, shuffled.astype(np.int64))))
    return bool(found == steps.sum() / scale) and other.refused["unreadable"] == messages.size


# --- shortcuts -------------------------------------------------------------------------------------------------------


def recovered_vectors(n_users: int, n_messages: int, modulus: int, scale: int, dimension: int, together: bool) -> float:
    """Share of users whose vector is read off shuffled share vectors, or off coordinates shuffled apart; two rounds."""
    protocol = CloakProtocol(n_users, modulus, scale, n_messages)
    return compute_vectors(protocol, dimension, together, repeats=2, seed=1).share


def recovered_with_clear(n_users: int, n_messages: int, modulus: int, scale: int, encrypted: int) -> float:
    """Share of users recovered where all messages but some are read with the name, and the shuffled output too."""
    protocol = CloakProtocol(n_users, modulus, scale, n_messages)
    return compute_opened(protocol, encrypted, repeats=2, seed=1).share


def recovered_from_stream(n_users: int, n_messages: int, scale: int, system: bool) -> float:
    """Share of later users recovered from a predictable generator's earlier outputs, or from the operating system's."""
    protocol = CloakProtocol(n_users, 2**32, scale, n_messages)
    return compute_stream(protocol, system, repeats=1, seed=1).recovery.share


def seed_bits(n_messages: int, dimension: int, log2_modulus: int, key_bits: int, seeds: int) -> float:
    """Bits of a vector with so many shares sent as seeds, over those of all shares in full."""
    sent = seeds * key_bits + (n_messages - seeds) * dimension * log2_modulus
    return sent / (n_messages * dimension * log2_modulus)


def wrapped_sum_is_right(n_users: int, n_messages: int, modulus: int) -> bool:
    """Whether messages of N - 1, added up in 64 bits, still have the right sum modulo N."""
    count = n_users * n_messages
    wrapped = (count * (modulus - 1) + 2**63) % 2**64 - 2**63
    return wrapped % modulus == count * (modulus - 1) % modulus


def floors_lost(grid: int) -> int:
    """How many of the points i / grid, times grid as doubles, are rounded down to less than i."""
    return sum(math.floor(i / grid * grid) < i for i in range(grid + 1))


# --- linear sketches -------------------------------------------------------------------------------------------------


def _skewed(n_items: int) -> tuple[list[int], list[int]]:
    items = list(range(1, n_items + 1))
    return items, [max(1, 1000 // item) for item in items]


def count_min_failures(accuracy: float, failure: float, n_items: int, n_seeds: int) -> float:
    """Share of items over many hash functions that Count-Min overestimates by more than the accuracy, over the failure.

    Infinite if any is underestimated.
    """
    items, counts = _skewed(n_items)
    errors = []
    for seed in range(n_seeds):
        sketch = CountMin.within(accuracy, failure, seed)
        errors.append(sketch.estimate(direct_table(sketch, items, counts), items) - counts)
    found = np.array(errors)
    return math.inf if found.min() < 0 else float((found > accuracy * sum(counts)).mean()) / failure


def count_sketch_failures(accuracy: float, rows: int, n_items: int, n_seeds: int) -> float:
    """Share of items over many hash functions that Count-Sketch misses by more than accuracy times the 2-norm."""
    items, counts = _skewed(n_items)
    errors = []
    for seed in range(n_seeds):
        sketch = CountSketch(math.ceil(3 / accuracy**2), rows, seed)
        errors.append(np.abs(sketch.estimate(direct_table(sketch, items, counts), items) - counts))
    return float((np.array(errors) > accuracy * math.hypot(*counts)).mean())


def sign_moments(counts: Sequence[int], power: int) -> float:
    """Mean (power 1) or variance over twice the square (power 2) of Z^2 over the second moment, all signs listed."""
    squares = [float(np.dot(signs, counts)) ** 2 for signs in product((-1, 1), repeat=len(counts))]
    second = math.fsum(c * c for c in counts)
    return float(np.mean(squares)) / second if power == 1 else float(np.var(squares)) / (2 * second**2)


def tree_rank_is_exact(levels: int, n_users: int, seed: int) -> bool:
    """Whether all ranks of random values from the tree's table are the true ones."""
    values = np.random.default_rng(seed).integers(0, 2**levels, n_users)
    sketch = DyadicQuantiles(levels)
    asked = np.arange(2**levels + 1)
    found = sketch.rank(direct_table(sketch, values), asked)
    return bool((found == (values[None, :] < asked[:, None]).sum(axis=1)).all())


def support_deviation(columns: int, support: int, n_seeds: int) -> float:
    """Mean squared error of linear counting over many hash functions, over its theory."""
    sketches = [LinearCounting(columns, seed) for seed in range(n_seeds)]
    errors = [sketch.estimate(direct_table(sketch, range(1, support + 1))) - support for sketch in sketches]
    return float(np.mean(np.square(errors))) / sketches[0].std(support) ** 2


def cauchy_norm(rows: int, n_items: int, n_seeds: int) -> float:
    """Mean of the Cauchy estimates of the 1-norm over the norm, over many random draws."""
    items, counts = _skewed(n_items)
    sketches = [CauchyNorm(rows, 1e6, 100, seed) for seed in range(n_seeds)]
    found = [sketch.estimate(direct_table(sketch, items, counts)) for sketch in sketches]
    return float(np.mean(found)) / sum(counts)


def stable_moment(theta: float) -> float:
    """Exponential moment of the skewed stable law by quadrature over its angle, over ``theta ** theta``.

    The exponential factor w of the law enters by ``E w^theta = Gamma(1 + theta)``.
    """

    def over_angle(u: float) -> float:
        rest = math.pi / 2 - u
        return math.exp(theta * math.tan(u) * rest) * math.pow(math.cos(u) / rest, theta) / math.pi

    moment = quad(over_angle, -math.pi / 2 + 1e-12, math.pi / 2 - 1e-12, epsabs=1e-12, epsrel=1e-12, limit=200)[0]
    return math.gamma(1 + theta) * float(moment) / math.pow(theta, theta)


def shares_bits_over(n_messages: int, modulus: int, dimension: int) -> float:
    """Registered bits of a user over messages times coordinates times digits of the modulus."""
    given = {"modulus": modulus, "n_messages": n_messages, "dimension": dimension}
    return evaluate("cloak:bits", given) / (n_messages * dimension * len(bin(modulus - 1)[2:]))


def secure_expansion(n_users: int, dimension: int, input_bits: int) -> float:
    """Registered bits of a user of secure aggregation over those of the vector alone."""
    given = {"protocol": "cmp-bon", "n_users": n_users, "dimension": dimension, "input_bits": input_bits}
    return evaluate("cloak:cost", given | {"epsilon": 1, "delta": 1e-6}, "bits") / (dimension * input_bits)


def gap(ahead: str, behind: str, epsilon: float) -> Gap:
    """Paired differences of final accuracy of two methods at one guarantee, in points."""
    runs = pd.read_csv(RESULTS / "cloak_learning" / "cloak-equal.csv")
    last = runs[(runs["epsilon"] == epsilon) & (runs["round"] == runs["round"].max())]
    finals = 100 * last.pivot(index="run", columns="method", values="accuracy")
    return Gap.of((finals[ahead] - finals[behind]).to_numpy())


def in_order(methods: Sequence[str], epsilon: float) -> bool:
    """Whether each method is ahead of the next one."""
    found = [gap(ahead, behind, epsilon) for ahead, behind in pairwise(methods)]
    return all(one.mean > DEVIATIONS * one.spread for one in found)


def is_near(method: str, other: str, epsilon: float, points: float) -> bool:
    """Whether a method is at most so many points behind another one on average."""
    return gap(other, method, epsilon).mean <= points
