"""The worst points of the bounds for split-and-mix, against power series in balls (the exponential formula)."""

import math

import pytest
from attacks.boxes import Axis, hunt
from balls.of_splitting import graphs
from flint import arb, ctx
from oracles.loss_sums import log

from flamelib.accounting.splitting import n_user_bounds, pairwise_swaps
from flamelib.accounting.splitting.n_user_bounds import users_distance
from flamelib.accounting.splitting.pairwise_swaps import swap_distance
from flamelib.accounting.splitting.two_users import log_two_user_delta, second_moment_delta, two_user_distance


def distances(modulus, n_messages, n_users):
    """Both formulas: of all users, and of one swap."""
    ctx.prec = 1500
    excess, apart = graphs(modulus, n_messages, n_users)
    return (arb(modulus) * excess / (2 * (modulus - 1))).sqrt(), (2 * apart).sqrt() / 2


def test_all_users_and_one_swap_are_never_nearer_than_they_are():
    def miss(log2_modulus, n_messages, n_users):
        modulus = round(2**log2_modulus)
        misses = [-math.inf]
        for truth, answer in zip(
            distances(modulus, int(n_messages), int(n_users)), (users_distance, swap_distance), strict=True
        ):
            found = answer(modulus, int(n_messages), int(n_users))
            low = float(found) - found.uncertainty
            if truth > 1 or truth < arb(1e-290):
                continue
            misses += [log(truth) - math.log(found), math.log(low) - log(truth) if low > 0 else -math.inf]
        return max(misses) / 1e-12

    axes = [Axis(1, 40), Axis(2, 14, whole=True), Axis(2, 40, whole=True)]
    worst = hunt(miss, axes, seed=1, tries=24, starts=2)
    assert worst.miss <= 0, worst


@pytest.mark.parametrize("branch", ["bracket", "recursion", "largest"])
def test_many_users_are_bounded_from_above(branch, monkeypatch):
    """By the bracket, by short rows of the recursion, and by the largest component with few users outside."""
    monkeypatch.setattr(n_user_bounds, "N_END_TERMS", 3)

    def miss(log2_modulus, n_messages, n_users, rest):
        modulus, m, n = round(2**log2_modulus), int(n_messages), int(n_users)
        monkeypatch.setattr(pairwise_swaps, "MAX_OUTSIDE", min(int(rest), n // 2 - 1))
        whole, apart = distances(modulus, m, n)
        way = {
            "bracket": n_user_bounds._bracket,
            "recursion": n_user_bounds._recursion,
            "largest": pairwise_swaps._by_largest,
        }[branch]
        ends = way(modulus, m, n)
        # What the distances are roots of.
        truth = log(2 * apart**2) if branch == "largest" else log(2 * whole**2 * (modulus - 1) / modulus)
        return max(truth - ends.high, ends.low - truth) / 1e-12

    axes = [Axis(1, 40), Axis(3, 8, whole=True), Axis(8, 60, whole=True), Axis(3, 12, whole=True)]
    worst = hunt(miss, axes, seed=2, tries=60, starts=4)
    assert worst.miss <= 0, worst


def by_moment(size, is_odd, ways, epsilon):
    """The bound by the second moment, as it is written."""
    grown = epsilon.exp()
    square = ((size - 2 if is_odd else 2 * (size - 1)) + 2 * (size - 1) * grown**2 + 4 * grown) / ways
    return ((square + (grown - 1) ** 2).sqrt() - (grown - 1)) / 2


def test_two_users_are_never_nearer_than_they_are():
    def miss(log2_modulus, n_messages, epsilon):
        ctx.prec = 400
        modulus, m = round(2**log2_modulus), int(n_messages)
        size, ways = arb(modulus), arb.fac_ui(2 * m) / arb.fac_ui(m) ** 2
        odd = arb(3) / 4 if modulus % 2 else arb(1)
        apart = (odd * size / ways).sqrt()
        last = (1 + (2 + 2 / (size - 1)).sqrt()).log()
        e = arb(epsilon) if last > epsilon else last
        plain = (2 * (size - 1) * (1 + (2 * e).exp()) + 4 * e.exp()) / (4 * (e.exp() - 1) * ways)
        misses = [log(plain) - log_two_user_delta(modulus, m, epsilon)]
        before, moment = (by_moment(size, modulus % 2, ways, arb(at)) for at in (0.999 * epsilon, epsilon))
        pairs = [(apart, two_user_distance(modulus, m))]
        # Where the formula rises the answer is its least value.
        pairs += [(moment, second_moment_delta(modulus, m, epsilon))] if moment < before else []
        misses += [log(truth) - math.log(found) for truth, found in pairs if arb(1e-290) < truth < 1]
        return max(misses) / 1e-12

    axes = [Axis(1, 200), Axis(2, 900, log=True, whole=True), Axis(1e-9, 3, log=True)]
    worst = hunt(miss, axes, seed=3, tries=100)
    assert worst.miss <= 0, worst
