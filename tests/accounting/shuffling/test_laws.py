"""Laws of the amplification variable: their values, their transforms and what they promise about them."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from oracles import shuffling as oracles

from flamelib.accounting.shuffling.laws import AtomicLaw, LaplaceLaw, clone_blanket, kary_blanket, kary_others
from flamelib.core.profiles import KaryProfile, LaplaceProfile

LAPLACE = [
    (1.0, 0.3, 0.5),
    (4.0, 1.0, 0.5),
    (1.0, 0.3, 0.0),
    (1.0, 0.3, 1.0),
    (2.0, 1.9, 0.3),
    (0.01, 0.002, 0.5),
    (8.0, 0.5, 0.8),
]


def laplace(epsilon0, epsilon, center):
    return LaplaceLaw(epsilon0, epsilon, center, math.exp(-epsilon0 / 2) if center == 0.5 else 1.0)


def laplace_transform(epsilon0, epsilon, center, s):
    """``E exp(s L)`` over the message, by quadrature in 40 digits."""

    def integrand(w):
        first, second = (mp.exp(epsilon0 * (abs(w - center) - abs(w - end))) for end in (0, 1))
        return (
            mpf(epsilon0)
            / 2
            * mp.exp(-epsilon0 * abs(w - center))
            * mp.exp(s * (first - mp.exp(mpf(epsilon)) * second))
        )

    places = sorted({mpf(i) / 32 for i in range(33)} | {mpf(center)})
    return mp.quad(integrand, [-mp.inf, *places, mp.inf])


class TestAtoms:
    @pytest.mark.parametrize("n_buckets", [2, 3, 7])
    @pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.9])
    def test_values_are_ratios_of_rows(self, n_buckets, epsilon):
        """Blanket and every value of the others: L at a message is ratio of row 0 less ``e`` times ratio of row 1."""
        rows = oracles.kary_rows(1.0, n_buckets)
        blanket = [min(row[y] for row in rows) for y in range(n_buckets)]
        cases = {"blanket": [b / sum(blanket) for b in blanket], "first": rows[0], "second": rows[1]}
        if n_buckets > 2:
            cases["third"] = rows[2]
        profile = KaryProfile(1.0, n_buckets)
        for name, reference in cases.items():
            law = kary_blanket(profile, epsilon) if name == "blanket" else kary_others(profile, epsilon, name)
            want = {}
            for y in range(n_buckets):
                value = float((rows[0][y] - mp.exp(mpf(epsilon)) * rows[1][y]) / reference[y])
                want[round(value, 12)] = want.get(round(value, 12), 0.0) + float(reference[y])
            found = {}
            for value, weight in zip(law.values, law.weights, strict=True):
                if weight > 0:
                    found[round(float(value), 12)] = found.get(round(float(value), 12), 0.0) + weight
            assert found == pytest.approx(want, rel=1e-13)
            assert law.mass == pytest.approx(float(sum(blanket)) if name == "blanket" else 1, rel=1e-15)
            assert law.kept == pytest.approx(1 - law.mass, abs=1e-15)

    def test_the_mean_is_one_less_e(self):
        for law in (
            kary_blanket(KaryProfile(2.0, 5), 0.4),
            clone_blanket(2.0, 0.4, 0.3, 0.7),
            kary_others(KaryProfile(2.0, 5), 0.4, "third"),
        ):
            assert law.weights @ law.values == pytest.approx(-math.expm1(0.4), rel=1e-13)
            assert law.weights.sum() == pytest.approx(1, rel=1e-15)

    def test_second_moment_is_that_of_the_profile(self):
        profile, e = KaryProfile(1.5, 6), math.exp(0.4)
        law = kary_blanket(profile, 0.4)
        assert law.weights @ law.values**2 == pytest.approx(
            (1 + e * e) * profile.same - 2 * e * profile.cross, rel=1e-13
        )

    def test_turn_is_the_difference_of_transforms(self):
        law, y = kary_blanket(KaryProfile(2.0, 5), 0.4), np.array([0.0, 1e-9, 0.3, 40.0])
        for t in (0.0, 0.7):
            whole = law.transform(t + 1j * y) - law.transform(np.array([t + 0j]))
            assert law.turn(t, y) == pytest.approx(whole, abs=1e-14)
        assert law.turn(0.0, np.array([1e-9]))[0].imag == pytest.approx(-1e-9 * math.expm1(0.4), rel=1e-12)

    def test_turn_is_exact_to_its_own_size_next_to_the_poles_of_the_tangent(self):
        """Sixty digits at the very doubles: both parts within eight units of rounding of themselves."""
        law = AtomicLaw(np.array([2.0]), np.array([1.0]), 1.0, 0.0)
        poles = math.pi / 2 * np.array([1, 3, 11, 1001, 10**6 + 1])
        y = np.concatenate(
            [pole * (1 + np.array([0, 1, -3, 1e3, -1e6]) * 2.0**-52) for pole in poles] + [[1e-100, 1e12]]
        )
        for at, found in zip(y, law.turn(0.0, y), strict=True):
            sine, cosine = mp.sin(mpf(at)), mp.cos(mpf(at))
            for got, want in ((found.real, -2 * sine**2), (found.imag, 2 * sine * cosine)):
                assert abs(got - want) <= 8 * 2.0**-53 * abs(want)


class TestLaplace:
    @pytest.mark.parametrize("case", LAPLACE)
    @pytest.mark.parametrize("share", [0.05, 0.3 + 0.2j, 0.01 + 2j, 3 + 1j])
    def test_transform_in_closed_form(self, case, share):
        law = laplace(*case)
        s = law.reach * share
        want = complex(laplace_transform(*case, mp.mpc(s)))
        assert complex(law.transform(np.array([s + 0j]))[0]) == pytest.approx(want - 1, rel=1e-11, abs=1e-12)

    @pytest.mark.parametrize("case", LAPLACE)
    def test_points_and_closed_form_agree_where_they_meet(self, case):
        law = laplace(*case)
        values, weights = law.points
        for s in (0.02, 0.5j, 0.1 + 0.7j, 0.99j):
            s = np.array([s * law.reach + 0j])
            error = abs(weights @ np.expm1(s * values) - law.transform(s)[0])
            assert error <= law.slip(abs(s[0])) + 3e-14 * math.exp(max(0.0, s[0].real * values.max()))

    @pytest.mark.parametrize("case", LAPLACE)
    def test_turn_on_both_sides_of_the_reach(self, case):
        law = laplace(*case)
        y = law.reach * np.array([0.0, 0.5, 0.999, 1.001, 3.0])
        for t in (0.01 * law.reach, 2 * law.reach):
            whole = law.transform(t + 1j * y) - law.transform(np.array([t + 0j]))
            assert np.abs(law.turn(t, y) - whole).max() < 1e-12 * abs(1 + law.transform(np.array([t + 0j]))[0])

    @pytest.mark.parametrize("case", LAPLACE)
    @pytest.mark.parametrize("share", [0.0, 0.1, 2.0])
    def test_decay_bounds_the_transform(self, case, share):
        law = laplace(*case)
        t = share * law.reach
        atoms, smooth = law.decay(t)
        y = law.reach * np.logspace(-2, 5, 400)
        assert np.all(np.abs(1 + law.transform(t + 1j * y)) <= (atoms + smooth / y) * (1 + 1e-9))

    @pytest.mark.parametrize("epsilon0", [0.1, 1.0, 5.0])
    def test_moments_are_those_of_the_profile(self, epsilon0):
        profile, e = LaplaceProfile(epsilon0), math.exp(epsilon0 / 3)
        values, weights = LaplaceLaw(epsilon0, epsilon0 / 3, 0.5, profile.mass).points
        assert weights.sum() == pytest.approx(1, rel=1e-13)
        assert weights @ values == pytest.approx(1 - e, rel=1e-11)
        assert weights @ values**2 == pytest.approx((1 + e * e) * profile.same - 2 * e * profile.cross, rel=1e-12)
