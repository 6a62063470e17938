"""Shares where few users differ: pairings one by one, components by generating functions, and laws enumerated."""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, reduce

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flamelib.accounting.splitting import n_user_bounds, pairwise_swaps
from flamelib.accounting.splitting.enumeration import shuffled_distance
from flamelib.accounting.splitting.n_user_bounds import users_distance
from flamelib.accounting.splitting.pairwise_swaps import least_messages_behind, shares_delta, swap_distance
from flamelib.accounting.splitting.two_users import two_user_distance
from flamelib.core.vocabulary import DomainError

# --- oracles: every pairing of messages; every partition into components, in fractions --------------------------------


def listed(modulus: int, n_messages: int, n_users: int) -> Fraction:
    """The mean of N^(c-1) where two given users are apart on both sides, over every way to pair the messages."""
    found, count = 0, 0
    for pairing in itertools.permutations(range(n_users * n_messages)):
        group = list(range(2 * n_users))
        for left, right in enumerate(pairing):
            one, two = group[left // n_messages], group[n_users + right // n_messages]
            group = [one if label == two else label for label in group]
        count += 1
        if group[0] != group[1] and group[n_users] != group[n_users + 1]:
            found += modulus ** (len(set(group)) - 1)
    return Fraction(found, count)


def partitions(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    if total == 0:
        yield ()
    for part in range(min(total, largest), 0, -1):
        for rest in partitions(total - part, part):
            yield (part, *rest)


@cache
def connected(n_messages: int, n_users: int) -> Fraction:
    """Coefficient of the logarithm of the series of all graphs."""
    every = [Fraction(math.factorial(k * n_messages), math.factorial(k) ** 2) for k in range(n_users + 1)]
    rest = sum((i * connected(n_messages, i) * every[n_users - i] for i in range(1, n_users)), Fraction(0))
    return every[n_users] - rest / n_users


@cache
def moment(modulus: int, n_messages: int, n_users: int, least: int = 1, most: int = 10**9) -> Fraction:
    """The mean of N^(c-1) times the chance that two users are apart on both sides, by the sizes of components.

    Only graphs count whose largest component has between ``least`` and ``most`` users.
    """
    total = Fraction(0)
    for sizes in partitions(n_users, n_users):
        if not least <= sizes[0] <= most:
            continue
        ways = math.prod(
            connected(n_messages, size) ** often / math.factorial(often) for size, often in Counter(sizes).items()
        )
        apart = 1 - Fraction(sum(i * (i - 1) for i in sizes), n_users * (n_users - 1))
        total += ways * modulus ** (len(sizes) - 1) * apart**2
    return total * math.factorial(n_users) ** 2 / math.factorial(n_users * n_messages)


def distance(of: Fraction) -> float:
    return min(1.0, float(mpmath.sqrt(2 * mpmath.mpf(of.numerator) / of.denominator) / 2))


# --- one swap ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_messages", "n_users"), [(1, 2), (1, 3), (2, 2), (3, 2), (4, 2), (2, 3), (2, 4)])
def test_pairings_one_by_one(n_messages: int, n_users: int) -> None:
    for modulus in (2, 3, 10):
        expected = listed(modulus, n_messages, n_users)
        assert moment(modulus, n_messages, n_users) == expected
        found = swap_distance(modulus, n_messages, n_users)
        assert found - found.uncertainty <= distance(expected) * (1 + 1e-14) <= found * (1 + 1e-13)


@pytest.mark.parametrize(
    ("modulus", "n_messages", "n_users"),
    [(3, 3, 3), (2, 2, 12), (1000, 5, 6), (2**40, 12, 9), (7, 3, 20), (2**20, 6, 16), (10**6, 100, 14)],
)
def test_components_by_generating_functions(modulus: int, n_messages: int, n_users: int) -> None:
    found, expected = swap_distance(modulus, n_messages, n_users), distance(moment(modulus, n_messages, n_users))
    assert found - found.uncertainty <= expected <= found
    assert found.uncertainty <= 1e-6 * found


@pytest.mark.parametrize(("modulus", "n_messages", "few", "n_users"), [(2, 3, 6, 9), (300, 4, 12, 25)])
def test_the_largest_component_bounds_the_rest(
    modulus: int, n_messages: int, few: int, n_users: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few users are listed here, so that what is bounded and not listed counts."""
    monkeypatch.setattr(pairwise_swaps, "MAX_LISTED", few)
    monkeypatch.setattr(pairwise_swaps, "MAX_OUTSIDE", few // 2)
    found, expected = swap_distance(modulus, n_messages, n_users), distance(moment(modulus, n_messages, n_users))
    assert found - found.uncertainty <= expected <= found


@pytest.mark.parametrize(("modulus", "n_messages"), [(2, 3), (3, 4), (50, 5), (2**20, 9)])
def test_what_is_bounded_and_not_listed(modulus: int, n_messages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Components of at most half the users, and largest ones that leave more than three outside."""
    monkeypatch.setattr(pairwise_swaps, "MAX_OUTSIDE", 3)
    for n_users in (9, 14, 20):
        half = n_users // 2 + 1
        first = [n_user_bounds.log_ratio(b, n_messages) for b in range(3)]
        outside = pairwise_swaps._many_outside(modulus, n_messages, n_users, first, half)
        assert 0 < moment(modulus, n_messages, n_users, half, n_users - 4) <= mpmath.exp(outside)
        none = n_user_bounds.no_majority(modulus, n_messages, n_users, first)
        assert 0 < moment(modulus, n_messages, n_users, 1, half - 1) <= mpmath.exp(none)
        assert outside < math.inf


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([(2, 5), (3, 4), (4, 3), (5, 3), (7, 2)]), st.integers(2, 4), st.integers(2, 4), st.data())
def test_a_swap_is_seen_no_better(size: tuple[int, int], n_users: int, n_messages: int, data: st.DataObject) -> None:
    modulus, most = size
    a = data.draw(st.lists(st.integers(0, modulus - 1), min_size=n_users, max_size=n_users))
    moved = data.draw(st.integers(1, modulus - 1))
    b = [a[0] + moved, a[1] - moved, *a[2:]]
    exact = shuffled_distance(modulus, min(n_messages, most), a, b, 0.0)
    assert exact <= swap_distance(modulus, min(n_messages, most), n_users)


def test_two_users_and_all_of_them() -> None:
    for modulus, n_messages in ((4, 5), (2**40, 30), (10, 12)):
        assert swap_distance(modulus, n_messages, 2) == pytest.approx(two_user_distance(modulus, n_messages), rel=1e-9)
    for modulus, n_messages, n_users in ((30_000_001, 8, 1000), (2**20, 9, 100), (10**13, 6, 10**6)):
        one, every = swap_distance(modulus, n_messages, n_users), users_distance(modulus, n_messages, n_users)
        assert one == pytest.approx(2 / n_users * every, rel=0.01)
        assert one.uncertainty <= 1e-5 * one


# --- one user behind Pólya shares -------------------------------------------------------------------------------------


def alone(modulus: int, n_messages: int, n_users: int, decay: float, value: int) -> dict[tuple[int, ...], float]:
    """The law of the shares of a user who adds its share of the noise: how often each residue is sent."""
    shape, reach = 1 / n_users, math.ceil(-40 / math.log(decay))
    mass = [(1 - decay) ** shape]
    for j in range(reach):
        mass.append(mass[-1] * decay * (shape + j) / (j + 1))
    noise = [0.0] * modulus
    for j, one in enumerate(mass):
        for i, two in enumerate(mass):
            noise[(j - i) % modulus] += one * two
    law: dict[tuple[int, ...], float] = defaultdict(float)
    for shares in itertools.product(range(modulus), repeat=n_messages):
        counts = tuple(shares.count(residue) for residue in range(modulus))
        law[counts] += noise[(sum(shares) - value) % modulus] / modulus ** (n_messages - 1)
    return law


def together(left: dict[tuple[int, ...], float], right: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
    law: dict[tuple[int, ...], float] = defaultdict(float)
    for one, p in left.items():
        for two, q in right.items():
            law[tuple(map(sum, zip(one, two, strict=True)))] += p * q
    return law


@pytest.mark.parametrize(
    ("modulus", "n_messages", "n_users", "scale"),
    [(3, 4, 2, 1), (3, 4, 3, 1), (3, 4, 3, 2), (2, 4, 4, 1), (4, 4, 2, 2), (5, 4, 2, 2), (4, 3, 3, 3), (3, 3, 4, 1)],
)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_one_user_behind_shared_noise(modulus: int, n_messages: int, n_users: int, scale: int, epsilon: float) -> None:
    """Everything that can be seen, with the noise of all users, one of whom moves by as much as the noise hides."""
    decay = math.exp(-epsilon / scale)
    laws = [alone(modulus, n_messages, n_users, decay, value) for value in (0, scale)]
    for others in ([0] * (n_users - 1), [scale] * (n_users - 1), [0, scale, 0][: n_users - 1]):
        rest = reduce(together, (laws[value > 0] for value in others))
        a, b = (together(rest, law) for law in laws)
        found = max(
            sum(max(one.get(seen, 0.0) - math.exp(epsilon) * two.get(seen, 0.0), 0.0) for seen in {*one, *two})
            for one, two in ((a, b), (b, a))
        )
        assert found <= shares_delta(modulus, n_messages, n_users, scale) + 1e-12


@pytest.mark.parametrize("scale", [1, 2, 3, 7, 32, 10_001])
def test_swaps_that_move_the_noise_are_harmonic_numbers(scale: int) -> None:
    parts = [sum(Fraction(1, t) for t in range(1, d + 1)) for d in (scale // 2, -(-scale // 2))]
    found, one = shares_delta(2**20, 9, 1000, scale), swap_distance(2**20, 9, 1000)
    assert float(sum(parts)) * one <= found <= float(sum(parts)) * one * 1.01 or scale <= 3
    assert float(sum(parts)) * one <= found <= (float(sum(parts)) + 0.2) * one


def test_the_least_messages_behind_shared_noise() -> None:
    """With a thousand users seven where the bound for all of them at once asks for eight, with a million five."""
    for n_users, modulus, scale, expected in ((1000, 30_000_001, 10**4, 7), (10**6, 3 * 10**13 + 1, 10**7, 5)):
        assert least_messages_behind(1e-6, n_users, modulus, scale) == expected
        assert shares_delta(modulus, expected, n_users, scale) <= 1e-6
        assert shares_delta(modulus, expected - 1, n_users, scale) > 1e-6
        assert (1 + math.e) * users_distance(modulus, expected, n_users) > 1e-6
    with pytest.raises(DomainError, match="delta"):
        least_messages_behind(0.0, 2, 3, 5)
