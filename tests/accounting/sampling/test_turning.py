"""The program over angles against densities in the plane: every angle of an interval, and every turn of two rounds."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from flamelib.accounting.composition.dominating_pair import tilted
from flamelib.accounting.sampling.adaptive_angles import choices, fineness, interval_cells, turned_profile
from flamelib.accounting.sampling.rounds import outer_cells, participation_rounds, turned_cells

SIDE = 0.05


def plane(p, q, j, ratio, cosine):
    """Masses of a round given the number of others, with the record and without, on a grid in the plane."""
    reach = 7 + (j + 1) * ratio
    x, y = np.meshgrid(*2 * [np.arange(-reach, reach, SIDE)])
    others = j * ratio * np.array([cosine, math.sqrt(1 - cosine**2)])

    def law(centre):
        return norm.pdf(x - centre[0]) * norm.pdf(y - centre[1]) * SIDE**2

    out, without, along = law((0.0, 0.0)), law(others), law([others[0] + ratio, others[1]])
    return ((1 - p) * out + p * ((1 - q) * without + q * along)).ravel(), ((1 - p) * out + p * without).ravel()


def divergences(first, second, alphas):
    """Of both, at rising alphas, by the order of their likelihood ratios."""
    order = np.argsort(first / second)[::-1]
    above = np.searchsorted(-(first / second)[order], -np.asarray(alphas))
    sums = (np.append(0.0, np.cumsum(one[order])) for one in (first, second))
    p, q = (one[above] for one in sums)
    return p - alphas * q


def profile(cells, alphas):
    """Of the pair whose cells have all their mass at the end that loses more."""
    ends = [np.expm1(np.minimum(one, 700)) for one in (cells.low, cells.high)]
    mass = cells.base + cells.gain
    found = []
    for alpha in alphas:
        # The largest convex combination with both masses kept: the chord between the ends of the cell.
        at = [np.maximum(1 - alpha / np.maximum(1 + one, 1e-300), 0) for one in ends]
        rise = np.where(ends[1] > ends[0], ends[1] - ends[0], 1.0)
        ratio = np.clip((cells.gain / np.maximum(cells.base, 1e-300) - ends[0]) / rise, 0, 1)
        share = np.clip(ratio * (1 + ends[1]) * cells.base / np.maximum(mass, 1e-300), 0, 1)
        found.append(float(mass @ (share * at[1] + (1 - share) * at[0])))
    return np.array(found)


@pytest.mark.parametrize(("p", "q", "j", "ratio"), [(0.3, 0.4, 1, 1.0), (0.1, 0.1, 2, 0.5), (0.5, 0.2, 3, 0.7)])
@pytest.mark.parametrize("ends", [(-1.0, 1.0), (-0.5, 0.2), (0.3, 0.8)])
def test_an_interval_of_angles_is_dominated_by_its_ends(p, q, j, ratio, ends):
    cells = interval_cells(p, q, j, ratio, ends)
    alphas = np.exp([-0.3, -0.05, 0.0, 0.02, 0.1, 0.4])
    most = np.zeros(len(alphas))
    for cosine in np.linspace(*ends, 5):
        most = np.maximum(most, divergences(*plane(p, q, j, ratio, cosine), alphas))
    found = profile(cells, alphas)
    assert (most * (1 - 3e-4) - 1e-9 <= found).all()
    assert (found <= most * 1.03 + 1e-6).all()


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("p", "q", "n_records", "ratio", "epsilon"), [(0.4, 0.3, 2, 1.0, 0.25), (0.2, 0.5, 3, 0.6, 0.1)]
)
def test_every_turn_of_two_rounds(swapped, p, q, n_records, ratio, epsilon):
    """The recursion itself, with nine angles, on a grid in the plane; and a single angle for both rounds below it."""
    chances = binom.pmf(np.arange(n_records), n_records - 1, q)
    grid = np.exp(np.linspace(-3, 3, 4001))
    worlds = []
    for j, chance in enumerate(chances):
        pairs = [plane(p, q, j, ratio, cosine) for cosine in (np.linspace(-1, 1, 9) if j else [1.0])]
        worlds.append((chance, [pair[::-1] if swapped else pair for pair in pairs]))
    once = sum(chance * np.max([divergences(*pair, grid) for pair in pairs], axis=0) for chance, pairs in worlds)
    alpha = math.exp(epsilon)
    truth = sum(
        chance * max(float(one @ np.interp(alpha * other / one, grid, once)) for one, other in pairs)
        for chance, pairs in worlds
    )
    cells = outer_cells(p, q, n_records, ratio)
    cells = cells.swapped() if swapped else cells
    options = [
        (chance, [one.swapped() if swapped else one for one in some])
        for chance, some in choices(p, q, n_records, ratio, 8)
    ]
    tilt = tilted([(cells, 2)], epsilon, 1e-9)
    places, values = turned_profile(options, 2, epsilon, tilt, 1e-3, 0.01)
    middle = len(values) // 2
    assert places[middle] == pytest.approx(epsilon, rel=1e-12)
    assert truth * (1 - 1e-3) <= values[middle] <= truth * 1.05
    assert (np.diff(values) <= 1e-12).all()


@pytest.mark.parametrize(
    ("setting", "rounds", "epsilon", "most"),
    [((0.1, 0.1, 5, 1.0, 1.0), 100, 2.0, 1.735e-5), ((0.1, 0.1, 10, 4.0, 1.0), 1000, 0.4, 8e-7)],
)
def test_smaller_than_without_angles(setting, rounds, epsilon, most):
    found = participation_rounds("outer", *setting, rounds, epsilon=epsilon)
    assert participation_rounds("outer", *setting, rounds, epsilon=epsilon, side="lower") < found <= most
    assert participation_rounds("outer", *setting, rounds, delta=found) == pytest.approx(epsilon, rel=2e-3)


def test_where_there_is_no_time():
    assert fineness(10, 0.1, 0.25, 1000) is not None
    assert fineness(10, 0.1, 0.25, 10**6) is None
    assert fineness(5, 0.1, 9.0, 10) is None
    assert turned_cells(0.1, 0.1, 3, 1.0, 30).base.sum() == pytest.approx(1)
