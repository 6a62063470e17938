"""Vector-level accounts: the paper's printed numbers, and certified ones between what is given away and the trivial."""

import itertools
import warnings

import pytest

from flamelib.accounting.composition.privacy_profile import composed_epsilon
from flamelib.accounting.coordinates.counting import double_lower, simple_lower, topk_lower
from flamelib.accounting.coordinates.padded import Coordinate, all_real
from flamelib.accounting.coordinates.truncated import full_bags_lower
from flamelib.accounting.coordinates.vector_bounds import account, central_limit, topk_truncated
from flamelib.core.profiles import LaplaceProfile

DELTA = 0.01 / 1000**1.1
SIMPLE = {"protocol": "simple", "dimension": 7850, "n_users": 1000, "epsilon0": 0.01, "delta": DELTA}
FIFTIETH = {"dimension": 7850, "n_users": 1000, "kept": 157, "padded": 333, "epsilon0": 0.5, "delta": DELTA}
TENTH = FIFTIETH | {"kept": 785, "padded": 666}
BOUNDS = ("withdrawn", "bennett", "hoeffding", "blanket")
SMALL = {"dimension": 40, "n_users": 30, "kept": 8.0, "padded": 12, "epsilon0": 0.8, "delta": 1e-5}


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


class TestPublished:
    @pytest.mark.parametrize(
        ("given", "route", "numbers"),
        [
            (SIMPLE, "paper", (0.910056, 0.927808, 0.896581, 0.793699)),
            (SIMPLE, "unsampled", (0.910056, 0.927808, 0.896581, 0.793699)),
            (FIFTIETH | {"protocol": "double"}, "paper", (0.237927, 0.304505, 0.309157, 0.238861)),
            (FIFTIETH | {"protocol": "topk"}, "paper", (0.237927, 0.304505, 0.309157, 0.238861)),
            (FIFTIETH | {"protocol": "topk"}, "unsampled", (20.535254, 26.0431, 25.8048, 19.5897)),
            (TENTH | {"protocol": "double"}, "paper", (2.348191, 2.919140, 3.031349, 2.403808)),
        ],
    )
    def test_the_printed_routes(self, given, route, numbers):
        for bound, number in zip(BOUNDS, numbers, strict=True):
            assert account(bound=bound, route=route, **given) == pytest.approx(number, rel=4e-6)

    def test_certified(self):
        """Regression values, each above the attack and close to the central limit."""
        simple = account(bound="blanket", route="sound", **SIMPLE)
        double = account("double", bound="blanket", route="sound", **FIFTIETH)
        topk = account("topk", bound="blanket", route="sound", **FIFTIETH)
        assert simple_lower(7850, 1000, 0.01, delta=DELTA) <= simple == pytest.approx(0.09035, abs=3e-5)
        assert double_lower(7850, 0.02, 333, 0.5, delta=DELTA) <= double == pytest.approx(0.15193, abs=5e-5)
        assert topk_lower(157, 333, 0.5, delta=DELTA) <= topk == pytest.approx(1.4440, abs=1e-3)
        assert simple <= 1.004 * central_limit(**SIMPLE)
        assert double <= 1.01 * central_limit("double", **FIFTIETH)
        noise = LaplaceProfile(0.5)
        assert topk <= central_limit("topk", **FIFTIETH | {"padded": int(333 * noise.mass)}) * 1.005

    def test_what_overflows_is_covered_by_the_bound_for_it_alone(self):
        given_away = full_bags_lower(1000, 157, 333, 0.5, delta=DELTA)
        assert account("topk", bound="blanket", route="sound", **FIFTIETH) < given_away
        assert given_away <= topk_truncated(157, 333, 0.5, DELTA)
        for n_users, kept, padded in ((20, 4, 6), (60, 10, 15)):
            assert full_bags_lower(n_users, kept, padded, 1.0, delta=1e-4) <= topk_truncated(kept, padded, 1.0, 1e-4)


class TestSound:
    def test_every_overlap_of_top_coordinates_is_covered(self):
        """Coordinates chosen in both data sets, in the first only, in the second only; composed as they are."""
        noise, kept = LaplaceProfile(0.8), 8
        others = all_real(noise, 12)
        curves = [Coordinate(noise, others, *pair).curve() for pair in ((1, 1), (1, 0), (0, 1))]
        sound = account("topk", bound="blanket", route="sound", **SMALL)
        for same in (0, 4, 7):
            counts = (same, kept - same, kept - same)
            parts = [(curve, count) for curve, count in zip(curves, counts, strict=True) if count]
            assert composed_epsilon(parts, SMALL["delta"]) <= sound * (1 + 1e-3)

    def test_fractions_of_a_coordinate_count_whole_or_as_they_are(self):
        whole = account("topk", bound="blanket", route="sound", **SMALL)
        assert account("topk", bound="blanket", route="sound", **SMALL | {"kept": 7.1}) == whole
        paper = [account("topk", bound="blanket", route="paper", **SMALL | {"kept": k}) for k in (7.0, 7.5, 8.0)]
        assert paper == sorted(paper)
        assert len(set(paper)) == 3


def test_more_than_a_million_coordinates_cost_what_a_million_do():
    """Long compositions of rare losses are one transform; in groups they once cost twenty times as much."""
    one = {"n_users": 279240, "epsilon0": 0.0338, "padded": 613, "delta": 8.6e-9}
    few, more = (
        account("double", dimension=d, kept=d / 585, bound="blanket", route="sound", overflow="drop", **one)
        for d in (2**20, 2**20 + 1)
    )
    assert float(few) * (1 - 1e-6) <= float(more) <= float(few) * 1.0001


def test_a_billion_rare_reports_cost_what_a_gaussian_does():
    """Grouped a few hundred at a time, with tails of overflow that must not spread the places too far."""
    given = {"dimension": 10**9, "n_users": 10**6, "epsilon0": 1.0, "delta": 1e-6, "kept": 10**5, "padded": 200}
    found = account("double", bound="blanket", route="sound", **given)
    # Most of the 100 other reports that are expected are no blanket: some 69 of 100 messages hide.
    limit = central_limit("double", **given | {"padded": round(200 * 0.691)})
    assert double_lower(10**9, 1e-4, 200, 1.0, delta=1e-6) < found == pytest.approx(limit, rel=5e-3)


def test_a_bound_that_says_nothing_at_zero_is_asked_where_it_says_something():
    """Bennett's: as the failure probability moves by halves, so does the answer, and evenly."""
    given = {"dimension": 40, "n_users": 1104, "epsilon0": 1.08505, "bound": "bennett", "route": "sound"}
    found = [float(account("simple", delta=3e-12 * 3**i, **given)) for i in range(-1, 3)]
    steps = [one - two for one, two in itertools.pairwise(found)]
    assert all(0.04 < step < 0.07 for step in steps)
