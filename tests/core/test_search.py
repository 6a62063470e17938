"""Inversions: the answer holds where it was evaluated, and nothing much better does."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import brentq

from flamelib.core.search import STEPS, close_below, greatest, largest, root, smallest_epsilon  # fmt: skip
from flamelib.core.vocabulary import DomainError

SHAPES = {
    "exponential": lambda scale: (lambda x: -x / scale, lambda t: t * scale),
    "gaussian": lambda scale: (lambda x: -((x / scale) ** 2), lambda t: math.sqrt(t) * scale),
    "steep": lambda scale: (lambda x: -((x / scale) ** 9), lambda t: t ** (1 / 9) * scale),
    "flat": lambda scale: (lambda x: -math.log1p(x / scale), lambda t: math.expm1(t) * scale),
    "plateau": lambda scale: (lambda x: min(0.0, 3 - x / scale), lambda t: (3 + t) * scale),
}


def counted(function):
    def wrapped(argument):
        wrapped.calls += 1
        return function(argument)

    wrapped.calls = 0
    return wrapped


@pytest.mark.parametrize("shape", SHAPES)
@given(st.floats(1e-9, 1e3), st.floats(1e-12, 0.9), st.floats(1.0, 1e4))
@example(1e-9, 1e-12, 1e4)
def test_smallest_is_safe_and_sharp(shape, scale, delta, room):
    curve, inverse = SHAPES[shape](scale)
    root = inverse(-math.log(delta))
    asked = counted(curve)
    answer = smallest_epsilon(asked, delta, at_most=root * (1 + room))
    assert curve(answer) <= math.log(delta)
    assert answer == pytest.approx(root, rel=3e-12 if shape != "flat" else 1e-10)
    assert asked.calls <= 60


@given(st.floats(1e-3, 1e3), st.floats(1e-300, 0.9), st.floats(1.5, 1e4))
def test_largest_is_safe_and_sharp(scale, delta, room):
    root = -scale / math.log(delta)
    asked = counted(lambda x: -scale / x)
    answer = largest(asked, delta, at_least=root / room, at_most=root * room)
    assert -scale / answer <= math.log(delta)
    assert answer == pytest.approx(root, rel=3e-12)
    assert asked.calls <= 60


def test_steps_are_found_at_their_edge():
    edge = 0.123456789
    answer = smallest_epsilon(lambda x: -50.0 if x >= edge else -1.0, 1e-6, at_most=7.0)
    assert 0 <= answer - edge <= 1e-12 * edge
    answer = smallest_epsilon(lambda x: -math.inf if x >= edge else math.inf, 1e-6, at_most=7.0)
    assert 0 <= answer - edge <= 1e-12 * edge
    answer = largest(lambda x: -math.inf if x <= edge else 0.0, 1e-6, 0.0, 7.0)
    assert 0 <= edge - answer <= 1e-12 * edge


@given(st.floats(0.05, 0.95), st.floats(-60.0, -1.0), st.floats(1.0, 50.0))
def test_a_valley_is_found_where_it_is_asked_for(bottom, depth, rise):
    def curve(x):
        return depth * (1 - ((x - bottom) / bottom) ** 2) if x < bottom else depth + rise * (x - bottom) / (1 - bottom)

    delta = math.exp(depth * 0.99)
    answer = smallest_epsilon(curve, delta, at_most=1.0, rises=True)
    assert curve(answer) <= math.log(delta)
    assert answer == pytest.approx(0.9 * bottom, rel=1e-9)
    assert smallest_epsilon(curve, math.exp(depth * 1.01), at_most=1.0, rises=True) == 1.0


def test_hostile_curves_end():
    asked = counted(lambda x: -1.0 if int(x * 1e9) % 2 else -20.0)
    answer = smallest_epsilon(asked, 1e-6, at_most=1e-7)
    assert answer == 0.0 or asked(answer) <= math.log(1e-6)
    assert asked.calls <= STEPS + 5


def test_an_answer_is_sought_no_lower_and_no_closer_than_it_is_asked_for():
    met = []

    def log_delta(argument):
        met.append(argument)
        return -10 * argument

    assert smallest_epsilon(log_delta, 1e-3, 5.0, at_least=0.6) == pytest.approx(math.log(1000) / 10, rel=1e-11)
    assert min(met) >= 0.6
    assert smallest_epsilon(log_delta, 1e-3, 5.0, at_least=0.7) == 0.7
    met.clear()
    assert smallest_epsilon(log_delta, 1e-3, 5.0, after=lambda argument: 1.0) == 5.0
    assert met == [0.0, 5.0]


@pytest.mark.parametrize("start", [1e-3, 1.0, 50.0])
def test_the_greatest_argument_is_found_where_the_function_bends_or_ends(start):
    """A cubic, a function without a value beyond 10, and one that begins at 0."""
    for rising, best in (
        (lambda x: x**3, 2.0),
        (lambda x: x if x < 10 else math.inf, 8.0),
        (lambda x: max(0, x - 2), 10),
    ):
        found = greatest(rising, 8.0, start)
        assert 0.95 * best < found <= best
    assert greatest(lambda x: 0.0, 8.0, start, most=700.0) == 700.0
    with pytest.raises(DomainError, match="target"):
        greatest(lambda x: 1 + x, 0.5, start)


@given(
    st.sampled_from(
        [
            lambda x, a: x**3 - a,
            lambda x, a: math.atan(x - a) + 0.01,
            lambda x, a: -1.0 if x < a else 1.0,
            lambda x, a: math.copysign(math.sqrt(abs(x - a)), x - a),
            lambda x, a: math.inf if x > a + 1 else x - a,
        ]
    ),
    st.floats(0.01, 100),
    st.floats(-1000, 0),
    st.floats(1e-9, 1000),
)
def test_a_root_is_that_of_scipy_to_the_last_bit(function, at, low, width):
    high = low + width
    ends = function(low, at), function(high, at)
    if (ends[0] < 0) == (ends[1] < 0) and ends[0] != 0 != ends[1]:
        with pytest.raises(ValueError, match="sign"):
            root(lambda x: function(x, at), low, high, 1e-8, 1e-6)
    else:
        found = root(lambda x: function(x, at), low, high, 1e-8, 1e-6, steps=300)
        assert found == brentq(function, low, high, (at,), xtol=1e-8, rtol=1e-6, maxiter=300)


# --- whole numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("guess", [0.1, 0.5, 1.2599, 1.26, 1.3, 10.0])
@pytest.mark.parametrize("power", [0.5, 1, 3, 9])
def test_a_guess_spares_the_ends(guess, power):
    asked = []

    def rising(argument):
        asked.append(argument)
        return argument**power

    found = close_below(rising, 2.0, 0.01, 100.0, 1e-6, start=guess)
    assert found in asked
    assert 2 * (1 - 1e-6) <= found**power <= 2
    assert len(asked) <= 15
    assert min(asked) > 0.01


def test_a_guess_beside_a_jump_or_an_end():
    def jump(argument):
        return math.inf if argument > 1 else 0.0

    assert 0.999 < close_below(jump, 2.0, 1e-3, 1e3, 1e-4, start=70.0) <= 1
    assert close_below(lambda x: x, 2.0, 0.1, 1.0, 1e-4, start=0.2) == 1.0
    with pytest.raises(DomainError, match="epsilon must be one that is reached"):
        close_below(lambda x: x, 2.0, 3.0, 9.0, 1e-4, "epsilon", start=5.0)
