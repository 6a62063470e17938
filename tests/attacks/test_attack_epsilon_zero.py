"""Epsilon 0 of every randomizer whose losses are equal steps there, against multinomial truths in forty digits.

The points are drawn where n times the probability of a message that tells the two values apart is between 0.1 and 300:
there the sums are neither enumerated nor Gaussian.  The suite tries :data:`POINTS` points.  For 1,250 of them, in some
minutes: ``FLAMELIB_ATTACK_TRIES=50 pytest --timeout 3600 tests/attacks/test_attack_epsilon_zero.py``;
``FLAMELIB_ATTACK_SEED=7`` draws others.
"""

import math

import numpy as np
import pytest
from attacks.boxes import MORE, SEED
from mpmath import mp, mpf
from oracles.steps import DIGITS, at_zero, rare, up_less_down

from flamelib import (
    AnyRandomizer,
    HadamardResponse,
    KaryResponse,
    LocalHashing,
    OptimizedUnary,
    Rappor,
    Shuffled,
    SubsetSelection,
    TableRandomizer,
    account,
    bounds,
)
from flamelib.accounting.shuffling.numerical import all_equal

POINTS = 25
KINDS = {
    "kary": KaryResponse,
    "rappor": Rappor,
    "oue": OptimizedUnary,
    "subset": SubsetSelection,
    "hadamard": HadamardResponse,
    "local-hash": LocalHashing,
}
# Answers that were on the wrong side; the last two are of steps that nearly every user makes.
SEEN = [
    ("kary", 10.0, 5, 93791),
    ("kary", 3.5, 1000, 4405),
    ("kary", 3.0, 4, 111),
    ("any", 10.0, 2, 94022),
    ("kary", 9.539378479280186, 4, 54032),
    ("any", 0.001, 2, 1001),
    ("any", 1e-5, 2, 10001),
]
EPS = 2.0**-52


def drawn(rng):
    """A kind, a local budget, an alphabet, and users for 0.1 to 300 messages that tell the values apart."""
    kind = str(rng.choice(4 * [*KINDS, "any"] + ["table"]))
    while True:
        epsilon0, k = (
            float(np.exp(rng.uniform(math.log(0.01), math.log(11)))),
            round(float(np.exp(rng.uniform(1.1, 7)))),
        )
        if kind == "table":
            return kind, _table(rng), 0, round(float(np.exp(rng.uniform(math.log(0.2), math.log(300))) * 50))
        if kind == "local-hash" and epsilon0 > 8:
            continue
        n = round(float(np.exp(rng.uniform(math.log(0.1), math.log(300))) / float(2 * rare(kind, epsilon0, k))))
        if 2 <= n <= 10**7:
            return kind, epsilon0, k, n


def _table(rng):
    """Two values and three messages: one speaks for either, as loudly, and one for none."""
    loud, faint = sorted(rng.dirichlet([1.0, 1.0]) * rng.uniform(0.01, 1.0), reverse=True)
    rest = 1 - loud - faint
    return ((loud, faint, rest), (faint, loud, rest))


def asked(kind, epsilon0, k, n):
    """The record, and the truth."""
    if kind == "any":
        return Shuffled(AnyRandomizer(epsilon0), n), at_zero("any", epsilon0, k, n)
    if kind != "table":
        return Shuffled(KINDS[kind](epsilon0, k), n), at_zero(kind, epsilon0, k, n)
    record = Shuffled(TableRandomizer(epsilon0), n)
    loud, faint = record.randomizer.table[0][:2]
    with mp.workdps(DIGITS):
        return record, (mpf(loud) / mpf(faint) - 1) / n * up_less_down(n, mpf(faint))


def judged(kind, epsilon0, k, n, lower=True):
    """What is wrong at a point, in words; nothing where all is well.  The lower end takes seconds for some crowds."""
    record, truth = asked(kind, epsilon0, k, n)
    found, wrong = account(record, epsilon=0), []
    # The table's own entries are rounded; binary response has more exact a route, of its worst data set.
    blur = 64 * EPS * truth if kind == "table" else 0
    if found.delta < truth - blur:
        wrong.append(f"upper {found.delta!r} is below")
    if found.delta - found.uncertainty > truth + blur:
        wrong.append(f"uncertainty {found.uncertainty!r} of {found.delta!r} is too small")
    both = bounds(record, epsilon=0) if lower else None
    if both and both.lower > truth + blur:
        wrong.append(f"lower {both.lower!r} is above")
    if both and both.upper < truth - blur:
        wrong.append(f"upper end {both.upper!r} is below")
    return [f"{(kind, epsilon0, k, n)}: {one}, truth {mp.nstr(truth, 17)}" for one in wrong]


@pytest.mark.parametrize("point", SEEN, ids=str)
def test_what_was_wrong_in_print(point):
    assert not judged(*point)


def test_a_smaller_delta_is_not_kept_at_epsilon_zero():
    record, truth = asked(*SEEN[0])
    less = 0.99 * float(truth)
    assert account(record, delta=less).epsilon > 0


def test_drawn():
    rng = np.random.default_rng(1 + SEED)
    wrong = [line for i in range(int(POINTS * MORE)) for line in judged(*drawn(rng), lower=i % 20 == 0)]
    assert not wrong, "\n".join(wrong)


def test_lower_of_a_third_value():
    """All others hold a third value: k-ary response of three values or more is answered exactly at epsilon 0."""
    rng = np.random.default_rng(2 + SEED)
    for _ in range(int(20 * MORE)):
        epsilon0, k = float(np.exp(rng.uniform(-3, 2.3))), int(rng.integers(3, 500))
        n = max(round(float(np.exp(rng.uniform(math.log(0.1), math.log(300)))) * (math.expm1(epsilon0) + k) / 2), 2)
        truth = at_zero("kary", epsilon0, k, n)
        low = all_equal(KaryResponse(epsilon0, k), n, epsilon=0.0)
        assert low <= truth <= low + low.uncertainty, (epsilon0, k, n)
