"""Learning under FLAME: settings, runs and gaps on the digits inside scikit-learn; the recorded results read back."""

import csv
import io
import math
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from scipy.stats import norm

from flamebook.claims import flame, ledger
from flamebook.experiments import flame as flame_learning
from flamebook.experiments import flame as flame_methods
from flamebook.experiments import flame_grid, flame_told
from flamebook.experiments.flame import Setting
from flamebook.experiments.flame_grid import EqualBudget, Interval
from flamebook.experiments.runs import Gap, Runs
from flamebook.figures import present
from flamebook.figures.together import learning as drawn
from flamebook.recordings import flame as flame_recorded
from flamebook.recordings import flame as record_learning
from flamebook.records import to_csv
from flamebook.runs import record as recorder
from flamebook.runs import recorded
from flamebook.runs.inputs import sha256
from flamelib.accounting.noise.gaussian import analytic_noise_std, gaussian_mechanism
from flamelib.core.vocabulary import DomainError
from flamelib.learning.federated import load_users

SMALL = Setting(n_users=150, padded=60, rounds=3)


@pytest.fixture(scope="module")
def users():
    return load_users("digits")


@pytest.fixture(scope="module")
def runs(users):
    return flame_learning.compute_runs(users, SMALL, flame_methods.all_methods(SMALL, users.model.dimension), 3, 1)


def columns(record):
    rows = list(csv.reader(io.StringIO(record.to_csv())))
    return dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))


# --- settings and methods -----------------------------------------------------------------------------------------


def test_the_setting_is_that_of_the_experiments():
    setting = Setting()
    assert setting.kept(7850) == 157
    assert replace(setting, sampling_rate=0.1).kept(7850) == 785
    assert setting.delta == pytest.approx(5.0118723e-6, rel=1e-8)
    assert setting.epsilon0 * setting.kept(7850) == 78.5
    assert flame_methods.simple(setting, 7850).randomizer.epsilon0 == pytest.approx(0.01)


def test_baselines_keep_the_printed_budgets():
    """0.24 with sampling, 20.53 without, 2.348 at one coordinate in ten, 0.91 for SS-Simple."""
    setting = Setting()
    assert flame_methods.claimed_epsilon(setting, 7850) == pytest.approx(0.237926, abs=2e-6)
    assert flame_methods.claimed_epsilon(setting, 7850, "unsampled") == pytest.approx(20.5352544, abs=1e-6)
    assert flame_methods.claimed_epsilon(setting, 7850, protocol="simple") == pytest.approx(0.910056, abs=1e-6)
    dense = flame_methods.dense(setting)
    assert (dense.kept(7850), dense.padded) == (785, 666)
    assert flame_methods.claimed_epsilon(dense, 7850) == pytest.approx(2.348191, abs=1e-6)
    methods = flame_methods.all_methods(setting, 7850)
    assert methods["topk:dense"] == flame_methods.topk(dense, 7850)
    assert methods["dp:claimed"].noise_std == pytest.approx(37.1, abs=0.05)
    assert methods["dp:claimed"].clip_norm == pytest.approx(0.886, abs=1e-4)
    assert methods["ldp:Gaussian"].noise_std == pytest.approx(1.645e5, rel=1e-3)


def test_a_small_crowd_gets_a_setting_that_fits(users):
    fitted = Setting().fitted(users)
    assert fitted.n_users == len(users) == 174
    assert fitted.padded >= fitted.n_users * fitted.sampling_rate
    assert flame_methods.topk(fitted, 650).padded == fitted.padded == 58
    assert SMALL.fitted(users) == SMALL


@pytest.mark.parametrize(
    ("changes", "name"),
    [({"n_users": 1}, "n_users"), ({"epsilon0": 0}, "epsilon0"), ({"sampling_rate": 2}, "sampling_rate"),
     ({"padded": 1}, "padded"), ({"clip_norm": -1}, "clip_norm"), ({"rounds": 0}, "rounds")],
)  # fmt: skip
def test_a_bad_setting_is_refused_by_name(changes, name):
    with pytest.raises(DomainError, match=name):
        Setting(**changes)


# --- runs and gaps ------------------------------------------------------------------------------------------------


def test_runs_start_alike_and_a_seed_fixes_them(users, runs):
    assert {curves[:, 0].tobytes() for curves in runs.curves.values()} == {runs.curves["np"][:, 0].tobytes()}
    again = flame_learning.compute_runs(users, SMALL, {"topk": flame_methods.topk(SMALL, 650)}, 3, 1)
    assert np.array_equal(again.curves["topk"], runs.curves["topk"])
    other = flame_learning.compute_runs(users, SMALL, {"topk": flame_methods.topk(SMALL, 650)}, 3, 2)
    assert not np.array_equal(other.curves["topk"], runs.curves["topk"])


def test_methods_that_see_more_learn_more(runs):
    final = {name: runs.final(name).mean() for name in runs.curves}
    assert final["np"] > final["topk"] > final["ldp:Gaussian"]
    assert runs.curves["np"].shape == (3, 4)
    assert runs.full["topk"].shape == (3, 3, 2)


def test_repeated_noise_is_the_same_for_random_coordinates_and_not_for_chosen_ones():
    """Noise of two rounds from one generator state, on users who know nothing in common."""
    setting = replace(SMALL, clip_norm=1e-6)
    methods = {"double": flame_methods.double(setting, 650), "topk": flame_methods.topk(setting, 650)}
    found = {}
    for name, method in methods.items():
        aggregate = flame_methods.aggregate(method, repeat_noise=True)
        rounds = [
            aggregate(np.random.default_rng(n).normal(size=(150, 650)).astype(np.float32), np.random.default_rng(9))
            for n in (1, 2)
        ]
        found[name] = float(np.corrcoef(*(one.estimate for one in rounds))[0, 1])
    assert found["double"] > 0.95 > 0.8 > found["topk"]


def test_a_gap_knows_its_spread_and_what_one_more_run_may_be():
    gap = Gap.of(np.array([1.0, 2.0, 3.0, 4.0]))
    assert (gap.mean, gap.spread) == (2.5, pytest.approx(1.290994))
    assert gap.agrees(2.5 + 0.99 * gap.reach)
    assert not gap.agrees(2.5 + 1.01 * gap.reach)
    assert str(gap) == "2.50 ± 1.29"
    with pytest.raises(DomainError, match="repeats"):
        Gap.of(np.array([1.0]))


def test_the_interval_of_one_more_run_holds_it_as_often_as_it_says():
    rng = np.random.default_rng(0)
    draws = norm.rvs(size=(1500, 6), random_state=rng)
    inside = np.mean([Gap.of(row[:5]).agrees(row[5]) for row in draws])
    assert inside == pytest.approx(0.95, abs=0.02)


def test_gap_tables_have_a_row_for_each_printed_gap(runs):
    rows = flame_learning.gap_rows(runs, runs)
    assert [row[1] for row in rows] == [4.07, 55.5, 33.94, 60.7, 1.48]
    assert all(row[2:4] == row[4:6] for row in rows)
    assert flame_learning.fitting_gaps(runs) == sum(bool(row[3]) for row in rows)
    assert rows[2][0] == "SS-Topk − DP-FL, budget claimed for SS-Topk"
    assert len(flame_learning.accuracy_rows(runs)) == len(runs.curves)


def test_the_users_table_tells_the_overlap(users):
    rows = dict(flame_learning.users_rows(users))
    assert rows["of these in some user's hands"] == users.official_held.sum() > 0
    assert rows["parameters of the model"] == 650


# --- sweeps -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sweeps(users):
    grids = {"padded": [2, 60, 100], "server_step": [1, 4], "epsilon": [1.0, 100.0], "multiples": [1, 4]}
    return {name: flame_grid.compute_sweep(users, SMALL, name, values, 2, 1) for name, values in grids.items()}


def test_a_sweep_has_a_column_for_every_value_that_has_a_protocol(sweeps):
    padded = sweeps["padded"]
    assert padded.x.tolist() == [60, 100]
    assert padded.finals["topk"].shape == (2, 2)
    assert "padded" not in padded.parameters
    assert columns(padded).keys() == {"padded", "topk mean", "topk spread", "double mean", "double spread"}


def test_the_step_of_the_honest_mean_is_the_unit(users, sweeps):
    """At the step 1 / beta the sweep is the protocol itself."""
    unit = 650 / SMALL.kept(650)
    here = flame_grid.compute_sweep(users, SMALL, "server_step", [unit], 2, 1)
    plain = flame_learning.compute_runs(users, SMALL, {"topk": flame_methods.topk(SMALL, 650)}, 2, 1)
    assert here.finals["topk"][:, 0] == pytest.approx(plain.final("topk"), abs=1e-9)
    assert set(sweeps["server_step"].finals) == {"topk", "sparse", "clipped"}
    assert sweeps["server_step"].best("clipped") == 4


def test_the_server_is_calibrated_at_every_budget():
    for point in flame_grid.points(SMALL, 650, "epsilon", [1.0, 100.0]):
        [server] = point.methods.values()
        exact = gaussian_mechanism(server.sensitivity, server.noise_std, delta=SMALL.delta)
        assert exact == pytest.approx(point.value, rel=1e-9)


def test_hiding_fills_the_bags(sweeps):
    rows = flame_grid.crowded_rows(sweeps["multiples"])
    assert [row[0] for row in rows] == [1, 4]
    assert rows[1][1] >= rows[0][1] >= 0
    assert sweeps["multiples"].at("topk", 4).repeats == 2


def test_a_sweep_without_any_protocol_is_refused(users):
    with pytest.raises(DomainError, match="padded"):
        flame_grid.compute_sweep(users, SMALL, "padded", [2], 2, 1)


# --- equal budgets ------------------------------------------------------------------------------------------------


def test_certified_intervals_hold_the_attack_and_tell_which_claim_falls():
    found = {key: flame_grid.interval(Setting(), 7850, key) for key in flame_grid.PROTOCOLS}
    for one in found.values():
        assert 0 < one.lower <= one.upper
    assert found["topk"].lower == pytest.approx(1.797, abs=1e-3)
    assert found["double"].lower == pytest.approx(0.1436, abs=1e-4)
    assert found["simple"].lower == pytest.approx(0.0900, abs=1e-4)
    assert found["topk:dense"].claimed == pytest.approx(2.348, abs=1e-3)
    assert found["double"].upper == pytest.approx(0.1573, abs=1e-4)
    assert found["topk:dense"].lower == pytest.approx(2.771, abs=1e-3)
    assert [key for key, one in found.items() if one.refuted] == ["topk", "topk:dense"]


def test_at_a_sound_budget_everything_keeps_it_and_hardly_less():
    setting, epsilon = Setting(n_users=200, padded=100), 0.7
    [point] = flame_grid.points(setting, 500, "sound", [epsilon])
    local = {name: getattr(method, "randomizer", None) for name, method in point.methods.items()}
    for name in ("topk", "double", "double:told", "simple"):
        share = setting.kept(500) / 500 if name == "simple" else 1.0
        here = replace(setting, epsilon0=local[name].epsilon0 / share)
        assert 0.98 * epsilon <= flame_grid.certified_epsilon(here, 500, name) <= epsilon
    assert point.methods["double"].inclusion == "exact"
    assert local["double"].epsilon0 > 2 * local["double:told"].epsilon0, "blocks are worth it"
    assert local["double:told"].epsilon0 > local["topk"].epsilon0, "one set of coordinates changes, not two"
    clip = setting.clip_norm * math.sqrt(500)
    server, alone = point.methods["dp"].noise_std, point.methods["ldp"].noise_std
    assert server == pytest.approx(analytic_noise_std(2 * clip, epsilon, setting.delta))
    assert 2 * setting.clip_norm * alone == pytest.approx(server), "the same noise, but of every user"


def test_the_server_is_judged_at_the_lower_end(sweeps):
    low, high = sweeps["epsilon"].mean("dp")
    record = EqualBudget(sweeps["epsilon"], {"topk": np.array([low - 9, low - 9.5])}, {"topk": Interval(0.1, 1.0, 2.0)})
    assert record.server_at(1.0) == pytest.approx(low)
    assert record.server_at(10) == pytest.approx((low + high) / 2)
    assert record.server_at(0.01) == pytest.approx(low)
    assert record.lead("topk") == pytest.approx(9.25)
    assert record.lead("topk", "dp:step") == pytest.approx(sweeps["epsilon"].mean("dp:step")[0] - low + 9.25)
    assert record.rows()[0][:4] == ("SS-Topk", 0.1, 1.0, 2.0)
    assert columns(record)["method"] == ("dp", "dp", "dp:step", "dp:step", "topk")


# --- drawing ------------------------------------------------------------------------------------------------------


def test_figures_are_drawn_with_words_on_their_axes(runs, sweeps, monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    budget = EqualBudget(sweeps["epsilon"], {"topk": runs.final("topk")}, {"topk": Interval(0.1, 1.0, 2.0)})
    beside = flame_recorded.Beside(sweeps["epsilon"], sweeps["epsilon"])
    for name, record, draw in (
        ("runs", runs, drawn.draw_runs),
        ("sweep", sweeps["server_step"], drawn.draw_sweep),
        ("beside", beside, drawn.draw_beside),
        ("equal", budget, drawn.draw_equal_budget),
    ):
        seen = []

        def watched(ax, given, pen, draw=draw, seen=seen):
            draw(ax, given, pen)
            seen.append((ax.get_xlabel(), ax.get_ylabel()))

        present.show(record, watched, name=name, alt="A figure of the test.")
        assert all(x and y for x, y in seen)


# --- recorded results ---------------------------------------------------------------------------------------------


def test_what_is_recorded_is_read_back(users, runs, folder, monkeypatch):
    monkeypatch.setattr(record_learning, "DATASETS", ("digits",))
    monkeypatch.setattr(record_learning, "SETTING", SMALL)
    monkeypatch.setattr(record_learning, "GRIDS", {"padded": (60, 100), "server_step": (1.0,)})
    for name, value in (("SEED", 1), ("REPEATS", 3), ("SWEEP_REPEATS", 2)):
        monkeypatch.setattr(record_learning, name, value)
    assert recorder.record(record_learning.RECORDING)
    found = flame_recorded.recorded_runs("digits")
    for name, curves in runs.curves.items():
        assert found.curves[name] == pytest.approx(curves, abs=1e-5)
        assert np.array_equal(found.full[name], runs.full[name][:, [0, -1]])
    assert flame_recorded.recorded_sweep("padded", "digits").x.tolist() == [60, 100]
    assert set(flame_recorded.recorded_sweep("server_step", "digits").finals) == {"topk", "sparse", "clipped"}
    repeated = flame_recorded.recorded_runs("digits", "repeated")
    assert np.array_equal(repeated.curves["np"], found.curves["np"])
    assert not np.array_equal(repeated.curves["simple"], found.curves["simple"])
    assert recorded.provenance(flame_recorded.TABLE)["sizes"]["digits"]["users"] == 174
    apart = record_learning.RECORDING.taken_apart()
    assert list(apart) == list(record_learning.parts())
    assert apart["digits/fresh"]["sizes"]["users"] == 174
    rows = chain.from_iterable(part["rows"] for part in apart.values())
    assert to_csv(record_learning.HEADER, rows) == (recorded.RESULTS / flame_recorded.TABLE).read_text("utf-8")
    with pytest.raises(DomainError, match="experiment"):
        flame_recorded.recorded_runs("mnist")
    with pytest.raises(DomainError, match="experiment"):
        flame_recorded.recorded_sweep("epsilon0", "digits")


def test_the_stored_table_is_the_one_its_provenance_tells_of():
    about = recorded.provenance(flame_recorded.TABLE)
    assert sha256(recorded.RESULTS / flame_recorded.TABLE) == about["sha256"][flame_recorded.TABLE]
    assert about["sizes"]["mnist"]["users"] == 6000
    assert about["sizes"]["mnist"]["of these held by users"] == 1138
    for dataset in ("mnist", "fashion-mnist"):
        for noise in ("fresh", "repeated"):
            assert flame_recorded.recorded_runs(dataset, noise).curves["topk"].shape == (about["repeats"], 13)
    for experiment, values in record_learning.GRIDS.items():
        assert set(flame_recorded.recorded_sweep(experiment).x) <= set(values)


def test_recorded_gaps_of_the_ledger_have_the_tolerance_of_their_runs():
    """A row's tolerance is half the interval that holds one more run, recomputed here from the recorded runs."""
    rows = [claim for claim in ledger.load() if str(claim.function).endswith("claims.flame:gap")]
    assert len(rows) == 10
    for claim in rows:
        reach = flame.recorded_gap(**claim.inputs).reach
        assert claim.tolerance * claim.paper == pytest.approx(reach, rel=0.02)
        assert claim.paper == flame_learning.GAPS[claim.inputs["claim"]][2]


def test_checks_read_the_recorded_runs():
    assert flame.final("np") > 70
    assert flame.in_order(["ldp:Gaussian", "simple", "np"])
    assert not flame.in_order(["np", "simple"])
    assert flame.rises("epsilon0", "topk")
    assert not flame.rises("epsilon0", "topk", downwards=True)
    assert flame.step_gain("clipped", "sparse") == -flame.step_gain("sparse", "clipped")


# --- words --------------------------------------------------------------------------------------------------------


def flat(values, repeats=3):
    """Runs that end at these percentages, all alike."""
    curves = {name: np.full((repeats, 2), value / 100) for name, value in values.items()}
    nothing = {name: np.zeros(repeats) for name in values}
    return Runs(curves, nothing, nothing, {}, {})


def swept(finals, full=0):
    """A sweep over 1 and 16 with these pairs of percentages in two runs each."""
    table = {name: np.array([pair, np.array(pair) + 1.0]) for name, pair in finals.items()}
    return flame_grid.Sweep("x", np.array([1.0, 16.0]), table, {name: np.full((2, 2, 2, 2), full) for name in finals})


def test_runs_are_told_from_the_top():
    runs = flat({"np": 80.0, "topk": 85.0})
    assert flame_told.standings(runs) == "SS-Topk (85 %) and NP-FL (80 %)"


def test_the_ends_of_a_sweep_are_told_where_it_has_points():
    sweep = swept({"topk": [50.0, 60.0], "double": [math.nan, 30.0]})
    assert (
        flame_told.ends(sweep)
        == "SS-Topk from 50.5 % at 1 to 60.5 % at 16; SS-Double from 30.5 % at 16 to 30.5 % at 16"
    )


def test_steps_are_told_as_they_are():
    assert "so it is" in flame_told.steps(swept({"clipped": [2.0, 3.0], "sparse": [1.0, 2.0]}))["steps_here"]
    assert "not so" in flame_told.steps(swept({"clipped": [2.0, 3.0], "sparse": [1.0, 4.0]}))["steps_here"]


def test_full_bags_are_told():
    words = flame_told.crowded(swept({"topk": [50.0, 50.0]}, full=20), 100)
    assert words["crowded"] == "20 % of the coordinates overflow in the first round, and 20 % in the last"
    assert words["hiding_change"].startswith("The accuracy hardly changes (0.00")
    assert words["overflow_row"].startswith("not where users agree: at $l=1$ 20 %")
    alone = flame_grid.Sweep("x", np.array([4.0]), {"topk": np.ones((2, 1))}, {"topk": np.zeros((1, 2, 2, 2))})
    assert flame_told.crowded(alone, 100)["hiding_change"].startswith("No other number")
    other = flame_told.crowded(swept({"topk": [50.0, 40.0]}), 100)
    assert other["hiding_change"].startswith("The accuracy changes (-10.00")
    assert "no bag overflows" in other["overflow_row"]


@pytest.mark.parametrize(
    ("server", "leads", "row"),
    [
        (90.0, "SS-Topk (by 40.0 points), SS-Double (by 50.0 points) and SS-Simple (by 60.0 points)", "does not hold"),
        (
            45.0,
            "SS-Double (by 5.0 points) and SS-Simple (by 15.0 points), and behind SS-Topk (by 5.0)",
            "SS-Topk leads by 5.00",
        ),
        (10.0, "none of the three protocols", "SS-Topk leads by 40.00"),
    ],
)
def test_leads_are_told_either_way(server, leads, row):
    sweep = flame_grid.Sweep("epsilon", np.array([1.0]), dict.fromkeys(("dp", "dp:step"), np.full((2, 1), server)), {})
    finals = {"topk": 50.0, "topk:dense": 60.0, "double": 40.0, "simple": 30.0}
    given = dict.fromkeys(finals, Interval(0.5, 1.0, 2.0)) | {"double": Interval(1.5, 1.0, 2.0)}
    words = flame_told.budgets(EqualBudget(sweep, {name: np.full(2, end) for name, end in finals.items()}, given))
    assert leads in words["leads"]
    assert row in words["server_row"]
    assert words["dense_claim"] == "is refuted"
    assert words["double_claim"].startswith("1.5 is not refuted")
    assert words["simple_claim"] == "0.25 times"
    assert words["dense_leads"].startswith(f"{abs(60 - server):.1f} points {'behind' if server > 60 else 'ahead of'}")


def test_sound_budgets_are_told_where_who_is_ahead():
    finals = {"dp": [60.0, 40.0], "topk": [50.0, 50.0], "double": [55.0, 45.0], "double:told": [30.0, 40.0]}
    sweep = swept(finals | {"simple": [54.9, 45.1]})
    words = flame_told.sound(sweep, recorded=False)
    assert words["sound_of"] == "on this page"
    assert words["sound_gain"] == "up to 25.0 points, at $\\varepsilon=1$"
    assert words["sound_ahead"] == words["sound_server"].removeprefix("ahead of all three protocols ")
    assert words["sound_ahead"] == "at $\\varepsilon=1$"
    assert "cannot be told apart" in words["sound_simple"]
    other = swept(finals | {"simple": [30.0, 20.0], "dp": [99.0, 99.0], "topk": [90.0, 90.0]})
    words = flame_told.sound(other, recorded=True)
    assert words["sound_of"] == "recorded on MNIST"
    assert words["sound_ahead"] == "at none of the budgets tried"
    assert words["sound_server"].endswith("at every budget tried")
    assert words["sound_simple"].startswith("SS-Double differs from SS-Simple by 25.00")


def test_a_server_is_judged_below_its_grid_too():
    sweep = flame_grid.Sweep("epsilon", np.array([1.0, 2.0]), {"dp": np.array([[10.0, 20.0]] * 2)}, {})
    record = EqualBudget(sweep, {"topk": np.full(2, 15.0)}, {"topk": Interval(0.0, 0.0, 0.0)})
    assert record.server_at(0.0) == 10.0
    assert flame_told.at_lower_ends(record).endswith("SS-Topk has 15 % at 0 and the server 10 %")


def test_other_data_are_told_beside_these():
    here, there = (
        flat({"topk": 50.0, "double": 40.0, "simple": 30.0}),
        flat({"topk": 60.0, "double": 40.0, "simple": 70.0}),
    )
    words = flame_told.elsewhere(here, here, "digits")
    assert words["other_data"] == "handwritten digits"
    assert "is the same" in words["same_order"]
    assert words["topk_first"].startswith("holds, on both")
    other = flame_told.elsewhere(here, there, "digits")
    assert other["same_order"].startswith("The distances between the methods differ")
    assert other["topk_first"] == "holds on one of the two data sets of this page"
    assert flame_told.elsewhere(there, there, "digits")["topk_first"] == "does not hold on this page"
    level = flat(dict.fromkeys(("topk", "double", "simple"), 50.0))
    assert flame_told.elsewhere(here, level, "digits")["topk_first"] == "the runs of this page do not tell"


def test_a_crowd_is_told_with_what_stands_in_for_its_data(users):
    words = flame_told.crowd("digits", users, SMALL)
    assert words == {"data": "handwritten digits", "images": "7", "crowd": "150", "step_of_topk": "50 times"}


def test_more_multiples_than_fit_become_the_most_that_do():
    points = flame_grid.points(SMALL, 650, "multiples", [1, 4, 100, 1000])
    assert [point.value for point in points] == [1, 4, 20]
    tight = replace(SMALL, padded=3)
    assert [point.value for point in flame_grid.points(tight, 650, "multiples", [16])] == [1]


def test_a_claim_of_zero_still_has_baselines():
    nothing = Setting(n_users=2, padded=2, sampling_rate=1e-4)
    assert flame_methods.claimed_epsilon(nothing, 7850) == 0
    methods = flame_methods.all_methods(nothing, 7850)
    assert np.isfinite(methods["dp:claimed"].noise_std)


def test_a_set_without_untouched_images_says_so(runs):
    none = replace(runs, untouched={name: np.full(3, np.nan) for name in runs.curves})
    assert {row[3] for row in flame_learning.accuracy_rows(none)} == {"no such image"}
