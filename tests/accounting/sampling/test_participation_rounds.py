"""Many rounds against quadrature, other formulas, another library: upper never below, lower never above, and close."""

import dataclasses
import math

import numpy as np
import pytest
from mpmath import mp, mpf
from oracles.participation import given_count
from scipy.special import gammaln
from scipy.stats import binom, norm

from flamelib.accounting.composition import dominating_pair
from flamelib.accounting.composition.dominating_pair import RTOL_MASS, DominatingPair, composed, composed_below
from flamelib.accounting.sampling import secret_participation as participation
from flamelib.accounting.sampling.public_participation import cs, ols, wcs
from flamelib.accounting.sampling.rounds import (
    MAX_SIGMAS_FAR,
    SCHEMES,
    _normal,
    _points,
    aligned_rounds_lower,
    outer_cells,
    participation_rounds,
    round_cells,
    subsampled_cells,
)
from flamelib.accounting.sampling.theorem_4_1 import add_estimate, aligned_estimate, outer_estimate

SETTINGS = [(0.1, 0.1, 5, 1.0), (0.01, 0.01, 30, 1.5), (0.001, 0.1, 30, 3.44), (0.1, 0.001, 1000, 1.7),
            (0.6, 0.5, 4, 0.5), (1.0, 0.3, 7, 2.0), (0.2, 1.0, 3, 2.0)]  # fmt: skip


def upper(scheme, setting, rounds, **asked):
    return participation_rounds(scheme, *setting, 1.0, rounds, **asked)


def lower(setting, rounds, **asked):
    return aligned_rounds_lower(*setting, 1.0, rounds, **asked)


# --- a pair composed by hand ------------------------------------------------------------------------


def densities(mixture, x):
    return sum(float(weight) * norm.pdf(x, float(mean)) for weight, mean in mixture)


def twice(larger, smaller, epsilon, low, high, points=3001):
    """Delta of two rounds in the given order, by the trapezoid rule in the plane."""
    x = np.linspace(low, high, points)
    p, q = densities(larger, x) * (x[1] - x[0]), densities(smaller, x) * (x[1] - x[0])
    return sum(
        float(np.maximum(one * p - math.exp(epsilon) * other * q, 0).sum()) for one, other in zip(p, q, strict=True)
    )


class TestByHand:
    @pytest.mark.parametrize(("rate", "noise_std", "epsilon"), [(0.1, 1.0, 0.3), (0.5, 2.0, 0.2), (0.02, 0.7, 0.1)])
    def test_two_rounds_of_drawn_records(self, rate, noise_std, epsilon):
        larger, smaller = given_count(1.0, rate, 0, 1 / noise_std)
        truth = [twice(*pair, epsilon, -8, 8 + 1 / noise_std) for pair in ((larger, smaller), (smaller, larger))]
        found = upper("cs", (1.0, rate, 1, noise_std), 2, epsilon=epsilon)
        assert max(truth) * (1 - 1e-5) <= found <= max(truth) * 1.003
        assert max(truth) * 0.99 <= lower((1.0, rate, 1, noise_std), 2, epsilon=epsilon) <= max(truth) * (1 + 1e-5)
        swapped = composed_order(subsampled_cells(rate, 1 / noise_std).swapped(), 2, epsilon)
        assert truth[1] * (1 - 1e-5) <= swapped <= truth[1] * 1.003

    @pytest.mark.parametrize("epsilon", [0.1, 0.6])
    @pytest.mark.parametrize(("p", "q", "j", "mu"), [(0.5, 0.3, 2, 1.0), (0.2, 0.5, 1, 0.5)])
    def test_two_rounds_with_a_known_number_of_others(self, p, q, j, mu, epsilon):
        """The pair is above the aligned and the opposed gradients, of every two rounds."""
        cells = outer_cells(p, q, j + 1, mu)
        found = composed([(cells, 2)], epsilon=epsilon)
        for sign in (1, -1):
            larger, smaller = given_count(p, q, j, mu, sign)
            most = float(binom.pmf(j, j, q)) ** 2
            for pair in ((larger, smaller), (smaller, larger)):
                assert most * twice(*pair, epsilon, -9, 9 + 3 * mu * (j + 1)) <= found


def composed_order(cells, rounds, epsilon):
    """The composition in this order alone."""
    return math.exp(dominating_pair._converged([(cells, rounds)], dominating_pair.DeltaAt(epsilon), -math.inf)[0])


# --- one round --------------------------------------------------------------------------------------


class TestOneRound:
    @pytest.mark.parametrize("setting", SETTINGS)
    @pytest.mark.parametrize("epsilon", [0.01, 0.5])
    def test_is_the_statement_about_one_round(self, setting, epsilon):
        p, q, n_records, noise_std = setting
        rates = (p, q, noise_std, 1.0)
        removed = participation.random_participation("outer", p, q, n_records, noise_std, 1.0, epsilon=epsilon)
        added = participation.random_participation_add(p, q, n_records, noise_std, 1.0, epsilon=epsilon)
        known = {"outer": max(removed, added), "wcs": wcs(*rates, epsilon=epsilon), "ols": ols(*rates, epsilon=epsilon),
                 "cs": cs(*rates, epsilon=epsilon)}  # fmt: skip
        for scheme, truth in known.items():
            if truth < 1e-45:
                continue
            found = composed([(round_cells(scheme, *setting, 1.0), 1)], epsilon=epsilon)
            assert truth * (1 - 1e-9) <= found <= truth * 1.003
            assert found - truth <= found.uncertainty * 1.01 + 1e-300

    @pytest.mark.parametrize("setting", SETTINGS)
    def test_both_directions_apart(self, setting):
        """The other order is that of an added record, opposed gradients and all."""
        p, q, n_records, noise_std = setting
        cells = round_cells("outer", *setting, 1.0)
        for epsilon in (0.0, 1e-3, 0.02, 0.2):
            removed = math.exp(outer_estimate(p, q, n_records, 1 / noise_std, epsilon).high)
            added = math.exp(add_estimate(p, q, n_records, 1 / noise_std, epsilon).high)
            assert cells.delta(epsilon) == pytest.approx(removed, rel=2e-3)
            assert cells.swapped().delta(epsilon) == pytest.approx(added, rel=2e-3, abs=1e-12)

    def test_the_aligned_pair(self):
        for setting in SETTINGS[:4]:
            p, q, n_records, noise_std = setting
            truth = math.exp(aligned_estimate(p, q, n_records, 1 / noise_std, 0.3).log)
            assert truth * 0.95 <= lower(setting, 1, epsilon=0.3) <= truth * (1 + 1e-9)


# --- many rounds ------------------------------------------------------------------------------------


class TestPublishedSettings:
    def test_aligned(self):
        assert 1.36e-7 < lower((0.1, 0.1, 5, 1.0), 100, epsilon=2.0) < 1.36997e-7 * (1 + 1e-5)

    def test_drawn_records_in_both_directions(self):
        setting = (0.1, 0.1, 9, 1.0)
        cells = round_cells("cs", *setting, 1.0)
        assert 2.612420e-3 <= composed_order(cells, 1000, 1.0) <= 2.612420e-3 * 1.005
        assert 7.945901e-4 <= composed_order(cells.swapped(), 1000, 1.0) <= 7.945901e-4 * 1.005
        assert upper("cs", setting, 1000, epsilon=1.0) == pytest.approx(composed_order(cells, 1000, 1.0), rel=1e-6)


class TestOtherWays:
    def test_participants_in_the_open_are_a_mixture_over_the_rounds_joined(self):
        p, q, noise_std, rounds, epsilon = 0.4, 0.3, 2.0, 6, 0.7
        joined = [float(upper("ols", (p, q, 1, noise_std), k, epsilon=epsilon)) for k in range(1, rounds + 1)]
        truth = float(binom.pmf(np.arange(1, rounds + 1), rounds, p) @ joined)
        assert upper("wcs", (p, q, 1, noise_std), rounds, epsilon=epsilon) == pytest.approx(truth, rel=4e-3)

    def test_all_records_always_is_one_gaussian(self):
        truth = norm.cdf(0.5 - 2.0) - math.exp(2.0) * norm.cdf(-0.5 - 2.0)
        found = upper("ols", (1.0, 1.0, 3, 20.0), 400, epsilon=2.0)
        assert truth <= found <= truth * 1.01
        assert truth * 0.97 <= lower((1.0, 1.0, 3, 20.0), 400, epsilon=2.0) <= truth

    def test_small_rates_and_deltas(self):
        """Where one round with the record drawn decides, delta is that of the one round times their number."""
        setting = (0.001, 0.1, 30, 3.44)
        one = upper("outer", setting, 1, epsilon=0.5)
        assert upper("outer", setting, 100, epsilon=0.5) == pytest.approx(100 * one, rel=0.05)

    def test_faint_answers_stay_above(self):
        for epsilon in (20.0, 1e6):
            assert 0 < upper("outer", (0.1, 0.1, 5, 1.0), 10, epsilon=epsilon) < 1e-20


def _two_rounds(rate, mu, epsilon):
    """Delta of two rounds of a record drawn at a rate, the larger data set first: one integral of a closed form."""
    with mp.workdps(25):
        rate, mu, epsilon = mpf(rate), mpf(mu), mpf(epsilon)

        def density(x):
            return (1 - rate) * mp.npdf(x) + rate * mp.npdf(x, mu)

        def rest(x):
            alpha = mp.exp(epsilon) / (1 - rate + rate * mp.exp(mu * x - mu**2 / 2))
            if alpha <= 1 - rate:
                return 1 - alpha
            edge = (mp.log((alpha - (1 - rate)) / rate) + mu**2 / 2) / mu
            return (1 - rate - alpha) * mp.ncdf(-edge) + rate * mp.ncdf(mu - edge)

        return mp.quad(lambda x: density(x) * rest(x), [mpf(i) for i in range(-40, 48, 2)], maxdegree=5)


class TestTinyDeltas:
    """Down to 1e-300, every rate 1 included."""

    @pytest.mark.parametrize(
        ("rate", "mu", "epsilon"), [(0.1, 1.0, 35.0), (0.5, 2.0, 90.0), (0.01, 0.5, 16.0), (0.9, 8.0, 330.0)]
    )
    def test_two_rounds_by_an_integral(self, rate, mu, epsilon):
        truth = float(_two_rounds(rate, mu, epsilon))
        assert 0 < truth < 1e-90
        found = participation_rounds("cs", 1.0, rate, 1, 1.0, mu, 2, epsilon=epsilon)
        assert truth <= found <= truth * 1.02
        assert epsilon <= participation_rounds("cs", 1.0, rate, 1, 1.0, mu, 2, delta=truth) <= epsilon * (1 + 1e-4)

    @pytest.mark.parametrize(("ratio", "rounds", "epsilon"), [(1.0, 2, 50.0), (0.05, 400, 20.0), (6.0, 3, 400.0)])
    def test_the_grid_at_rate_one_is_a_gaussian(self, ratio, rounds, epsilon):
        """What the grid of losses says where the answer is known: shares of 1 and all."""
        with mp.workdps(330):
            mu, at = ratio * mp.sqrt(rounds), mpf(epsilon)
            truth = float(mp.ncdf(mu / 2 - at / mu) - mp.exp(at) * mp.ncdf(-mu / 2 - at / mu))
        assert truth < 1e-60
        found = composed([(subsampled_cells(1.0, ratio, reach=MAX_SIGMAS_FAR), rounds)], epsilon=epsilon)
        assert truth * (1 - 1e-9) <= found <= truth * 1.02

    @pytest.mark.parametrize("scheme", SCHEMES)
    def test_both_rates_one(self, scheme):
        """Once saturated: infinite, .437 and no number at all."""
        loud, louder = (scheme, 1, 1, 1, 0.125, 1.0, 2), (scheme, 1, 1, 1, 1 / 6, 1.0, 2)
        assert participation_rounds(*loud, delta=1e-6) == pytest.approx(116.94501003, rel=1e-9)
        assert participation_rounds(*loud, epsilon=120.0) == pytest.approx(2.54609179e-7, rel=1e-8)
        assert participation_rounds(*louder, delta=1e-6) == pytest.approx(75.541483974, rel=1e-9)
        assert participation_rounds(scheme, 1, 1, 1, 0.0333, 1.0, 2, epsilon=1500.0) == pytest.approx(1.74713635e-45)
        assert participation_rounds(scheme, 1, 1, 1, 20.0, 1.0, 2, delta=1e-60) == pytest.approx(1.13836132, rel=1e-8)

    @pytest.mark.parametrize("ratio", [2.0, 8.0, 30.0, 100.0])
    def test_a_rate_close_to_one(self, ratio):
        """A share next to 1 loses next to nothing against a share of 1."""
        rate, most = 1 - 1e-9, norm.isf(1e-6) * ratio * math.sqrt(2) + ratio**2
        found = composed([(subsampled_cells(rate, ratio), 2)], delta=1e-6)
        assert found <= participation_rounds("ols", 1, 1, 1, 1.0, ratio, 2, delta=1e-6) * 1.001 <= most * 1.001

    def test_more_rounds_more_loss(self):
        """Once stuck far above the truth, and falling."""
        setting = "ols", 0.1, 0.99999746, 1, 35.4, 0.06
        found = [participation_rounds(*setting, rounds, epsilon=2.3) for rounds in (15170, 16766)]
        mu = [0.06 / 35.4 * math.sqrt(rounds) for rounds in (15170, 16766)]
        truth = [norm.sf(2.3 / m - m / 2) - math.exp(2.3 + norm.logsf(2.3 / m + m / 2)) for m in mu]
        assert found == pytest.approx(truth, rel=1e-2)
        cells = subsampled_cells(0.99999746, 0.06 / 35.4)
        assert composed([(cells, 15170)], epsilon=2.3) == pytest.approx(truth[0], rel=2e-2)


class TestFromBelow:
    @pytest.mark.parametrize(
        ("setting", "rounds", "epsilon", "least", "aligned"),
        [((0.1, 0.1, 5, 1.0), 100, 2.0, 2.3e-6, 1.37e-7), ((0.1, 0.1, 10, 4.0), 1000, 0.4, 2.1e-7, 2.16e-7)],
    )
    def test_the_best_angle(self, setting, rounds, epsilon, least, aligned):
        found = upper("outer", setting, rounds, epsilon=epsilon, side="lower")
        assert max(least, lower(setting, rounds, epsilon=epsilon)) <= found <= 1.05 * max(least, aligned)
        assert found < upper("outer", setting, rounds, epsilon=epsilon)
        back = upper("outer", setting, rounds, delta=found, side="lower")
        assert 0.99 * epsilon <= back <= epsilon * (1 + 1e-6)

    @pytest.mark.parametrize("scheme", ["wcs", "ols", "cs"])
    @pytest.mark.parametrize("setting", [SETTINGS[0], SETTINGS[4], SETTINGS[6]])
    @pytest.mark.parametrize("rounds", [1, 2, 60])
    def test_baselines_are_attained(self, scheme, setting, rounds):
        for asked in ({"epsilon": 0.5}, {"delta": 1e-7}):
            least, most = (upper(scheme, setting, rounds, **asked, side=side) for side in ("lower", "upper"))
            assert 0.98 * most <= least <= most

    @pytest.mark.parametrize("scheme", SCHEMES)
    @pytest.mark.parametrize("setting", SETTINGS[:4])
    def test_nothing_is_cut_off_below_what_can_be_told(self, scheme, setting):
        """A delta just below what an adversary reaches at epsilon 0 still has a positive answer."""
        for rounds in (1, 3):
            reached = upper(scheme, setting, rounds, epsilon=0.0, side="lower")
            if reached > 1e-12:
                assert upper(scheme, setting, rounds, delta=0.99 * reached, side="lower") > 0

    def test_rates_of_one_are_a_gaussian(self):
        for asked in ({"epsilon": 3.0}, {"delta": 1e-200}, {"delta": 0.0}):
            ends = [
                participation_rounds("outer", 1, 1, 7, 1.0, 1.0, 9, **asked, side=side) for side in ("lower", "upper")
            ]
            assert ends[0] <= ends[1]
            assert ends[0] == pytest.approx(ends[1], rel=1e-9)


class TestAccuracy:
    @pytest.mark.parametrize("setting", SETTINGS[::3])
    def test_within_the_stated_uncertainty_of_a_finer_grid(self, setting, monkeypatch):
        found = upper("outer", setting, 2000, epsilon=1.0)
        assert found.uncertainty < 0.02 * found
        monkeypatch.setattr(dominating_pair, "STEP_PER_SPREAD", dominating_pair.STEP_PER_SPREAD / 4)
        finer = upper("outer", setting, 2000, epsilon=1.0)
        assert finer <= found * (1 + 1e-6) + 1e-300
        assert found - finer <= found.uncertainty

    def test_more_rounds_than_a_transform_takes(self):
        setting, rounds = (0.01, 0.01, 30, 10.0), 10**8
        epsilon = upper("outer", setting, rounds, delta=1e-6)
        assert epsilon < 2 * 10 * upper("outer", setting, 10**6, delta=1e-6)
        assert 0 < upper("outer", setting, rounds, epsilon=2 * epsilon) < 1e-6
        assert 0 < lower(setting, 10**6, delta=1e-6) < lower(setting, rounds, delta=1e-6) < epsilon

    @pytest.mark.parametrize(("rounds", "delta"), [(1, 0.005), (1, 0.015), (2, 0.004), (2, 0.015)])
    def test_rare_large_losses_are_told_among_likely_small_ones(self, rounds, delta):
        """A grid as wide as the large losses would join all outcomes into one, which tells nothing."""
        setting = {
            "participation_rate": 0.8,
            "record_rate": 0.3,
            "n_records": 5,
            "noise_std": 0.493981,
            "clip_norm": 3.0,
        }
        low, high = (
            participation_rounds(scheme="cs", **setting, rounds=rounds, delta=delta, side=side)
            for side in ("lower", "upper")
        )
        assert 0.8 * high < low <= high

    def test_a_delta_below_all_cells_is_answered_as_if_the_record_were_always_drawn(self):
        setting = {"participation_rate": 0.01, "record_rate": 1.0, "n_records": 5, "noise_std": 1.0}
        one, two, more = (
            participation_rounds("cs", **setting, clip_norm=0.2447, rounds=rounds, delta=delta)
            for rounds, delta in ((1, 1e-315), (2, 1e-315), (2, 1e-300))
        )
        assert one < two
        assert more < two < math.inf

    @pytest.mark.parametrize("scheme", ["cs", "wcs"])
    def test_a_record_that_is_hardly_ever_drawn_costs_nothing(self, scheme):
        rare = {"participation_rate": 1e-100, "record_rate": 1e-6, "n_records": 5, "noise_std": 1.0}
        assert participation_rounds(scheme, **rare, clip_norm=11.0, rounds=2, delta=1e-60) == 0

    def test_noise_that_hides_nothing(self):
        seen = -math.expm1(10 * math.log1p(-0.01))
        assert upper("outer", (0.1, 0.1, 5, 1e-9), 10, epsilon=3.0) == pytest.approx(seen)
        assert upper("outer", (0.1, 0.1, 5, 1e-9), 10, delta=0.01) == pytest.approx(5e18)
        assert upper("outer", (0.1, 0.1, 5, 1e-9), 10, delta=0.1) == 0.0
        assert upper("ols", (0.1, 1.0, 5, 1e-9), 10, epsilon=3.0) == 1.0


# --- cells ------------------------------------------------------------------------------------------


class TestCells:
    @pytest.mark.parametrize(
        ("low", "high", "mean"),
        [(-16.0, 0.5, 0.0), (-16.0, 16.0, 12.0), (0.5, 17.0, 1.0), (-16.0, 40.0, 20.0), (0.5, 37.2, 0.0)],
    )
    def test_masses_are_as_exact_as_counted(self, low, high, mean):
        points = _points(low, high)
        masses = _normal(points, mean)
        with mp.workdps(40):
            for i in range(0, len(masses), 197):
                ends = [mpf(float(point)) - mean for point in points[i : i + 2]]
                right = ends[0] > 0
                truth = abs(mp.ncdf(-ends[0]) - mp.ncdf(-ends[1]) if right else mp.ncdf(ends[0]) - mp.ncdf(ends[1]))
                assert abs(masses[i] / truth - 1) < RTOL_MASS

    @pytest.mark.parametrize("times", [1, 50])
    def test_errors_are_taken_to_the_safe_side(self, times):
        cells = subsampled_cells(0.3, 1.0)
        unsure = dataclasses.replace(cells, error=cells.error + 1e-6 * cells.base)
        assert composed([(unsure, times)], epsilon=1.0) > composed([(cells, times)], epsilon=1.0)
        assert composed_below([(unsure, times)], epsilon=1.0) < composed_below([(cells, times)], epsilon=1.0)

    @pytest.mark.parametrize("times", [1, 2, 30, 400])
    @pytest.mark.parametrize("rare", [1e-2, 1e-5])
    @pytest.mark.parametrize("gain", [0.3, 8.0])
    def test_likely_losses_do_not_drown_rare_gains(self, times, rare, gain):
        """Two likely losses nearer to each other than any grid, a rare larger one: every count, in both orders."""
        larger = np.array([0.6, 0.4 - rare, rare])
        smaller = larger * np.exp(-np.array([0.0, 1e-7, gain]))
        smaller[0] = 1 - smaller[1:].sum()
        losses = np.log(larger / smaller)
        cells = DominatingPair(losses, losses, smaller, larger - smaller, np.zeros(3))
        some, few = np.meshgrid(np.arange(times + 1.0), np.arange(times + 1.0))
        counts = np.stack([times - some - few, some, few], axis=-1)[some + few <= times]
        ways = gammaln(times + 1) - gammaln(counts + 1).sum(axis=1)
        first, second = (ways + counts @ np.log(law) for law in (larger, smaller))
        for epsilon in (0.1 * gain, 0.9 * gain, 1.5 * gain):
            truth = max(float(np.exp(p) @ -np.expm1(np.minimum(epsilon + q - p, 0)))
                        for p, q in ((first, second), (second, first)))  # fmt: skip
            found = composed_below([(cells, times)], epsilon=epsilon)
            assert (1 - 1e-9 if times == 1 else 0.97) * truth <= found <= truth * (1 + 1e-9)
            if truth > 0:
                back = composed_below([(cells, times)], delta=truth)
                assert back <= epsilon * (1 + 1e-9)
                assert back >= ((1 - 1e-6) if times == 1 else 0.9) * epsilon


@pytest.mark.parametrize(
    ("scheme", "p", "q", "n_records", "noise_std", "rounds", "delta"),
    [
        ("cs", 1.5e-3, 1.1e-2, 1, 0.7, 1000, 2.4e-6),
        ("outer", 9.2e-5, 3e-3, 30, 3.0, 1000, 4.3e-10),
        ("outer", 1e-6, 1e-3, 1000, 3.0, 10, 1e-11),
        ("cs", 8.3e-5, 0.134, 1, 0.7, 1000, 7e-5),
        ("outer", 1e-8, 1e-3, 1000, 3.0, 1, 1e-15),
    ],
)
def test_rare_records_and_the_way_back(scheme, p, q, n_records, noise_std, rounds, delta):
    """Losses that span many orders: delta at the epsilon for a delta is hardly more than that delta."""
    setting = scheme, p, q, n_records, noise_std, 1.0, rounds
    back = participation_rounds(*setting, epsilon=participation_rounds(*setting, delta=delta))
    assert back <= 1.5 * delta
