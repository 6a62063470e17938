"""What the pages on FLAME say in words: both branches of what depends on numbers."""

import dataclasses

import numpy as np
import pytest

from flamebook.figures.flame import accounting, as_published, attack, audit, ratios, told
from flamebook.figures.flame.audit import Claim
from flamebook.records import Curves
from flamelib.core.vocabulary import DomainError

SETTING = accounting.Setting(dimension=40, n_users=30, kept=4, padded=30, epsilon0=0.5, delta=1e-4)


@pytest.fixture(scope="module")
def now():
    return accounting.compute_then_and_now(SETTING)


def moved(now, protocol, **values):
    return dataclasses.replace(now, budgets={**now.budgets, protocol: {**now.budgets[protocol], **values}})


def test_then_and_now_tells_what_its_table_has(now):
    words = told.then_and_now(now)
    simple = now.budgets["simple"]
    share = f"{100 * simple['lower'] / simple['certified']:.3g} %"
    assert words["simple_gap"] == f"Counting gives away {share} of the certified budget."
    assert words["lemma_factor"] == told.times(simple["blanket"] / simple["certified"])
    assert f"SS-Simple from {told.at_least(simple['lower'])}" in words["now_alt"]


def test_then_and_now_follows_the_verdicts(now):
    topk = now.budgets["topk"]
    for printed, title, sentence in (
        (topk["lower"] / 2, "not as private", "The lower bound is 2 times what the printed formula gives."),
        ((topk["lower"] + topk["certified"]) / 2, "neither proven", "between the lower bound"),
        (
            topk["certified"] * 3,
            "as private as the printed formula says, with a factor of 3",
            "no less than the certified budget",
        ),
    ):
        words = told.then_and_now(moved(now, "topk", withdrawn=printed))
        assert words["topk_standing"].startswith(title)
        assert sentence in words["topk_verdict"]
    nothing = told.then_and_now(moved(now, "simple", lower=0.0, certified=0.0))
    assert nothing["simple_gap"] == "Counting gives nothing away here."
    assert nothing["lemma_factor"] == "infinitely many times"
    assert nothing["formulas_agree"].startswith("agree within")
    silent = told.then_and_now(moved(now, "simple", withdrawn=0.0))
    assert silent["formulas_agree"] == "do not agree at all, for some give 0"
    for certified, words in ((1e-9, "*more* private"), (9.0, "in that order here")):
        assert words in told.then_and_now(moved(now, "simple", certified=certified))["order_of_both"]
    for withdrawn, words in ((1e-9, "is refuted"), (1e9, "holds as well")):
        assert words in told.then_and_now(moved(now, "exactly", withdrawn=withdrawn))["exactly_verdict"]


def test_then_and_now_tells_what_was_known_before(now):
    early = {"certified-before": 1.4, "certified": 0.2, "lower": 0.1}
    words = told.then_and_now(moved(moved(now, "exactly", **early), "topk", **{"lower-before": 1.1, "lower": 1.2}))
    assert words["exactly_gain"] == "0.2 where 1.4 was all that could be certified before"
    assert words["topk_gain"] == "shows that at least 1.2 is lost; the yield of counting is 1.1"
    same = told.then_and_now(
        moved(moved(now, "exactly", **early | {"certified": 1.4}), "topk", **{"lower-before": 1.2, "lower": 1.2})
    )
    assert same["exactly_gain"] == "1.4, as before"
    assert same["topk_gain"] == "shows no more here: at least 1.2 is lost"


def overall(double, simple, lower=1.0, printed=9.0):
    curves = {
        "certified:SS-Simple": simple, "certified:SS-Double": double,
        **{f"lower:{name}": [lower] * 3 for name in ("SS-Simple", "SS-Double")},
        **{f"withdrawn:{name}": [printed] * 3 for name in ("SS-Simple", "SS-Double")},
    }  # fmt: skip
    return Curves("dimension", "epsilon", np.arange(1.0, 4.0), {name: np.array(y) for name, y in curves.items()})


def test_curves_are_told_as_they_go():
    falling = overall([6.0, np.nan, 5.0], [4.0, np.nan, 3.0])
    crossing = overall([6.0, 2.0, 5.0], [4.0, 3.0, 2.0], lower=0.0, printed=1.0)
    words = told.overall(falling, "size")
    assert "at most 4 times as high" in words["size_gap"]
    assert words["size_private"].endswith("the vector becomes more private.")
    assert words["size_alt"].startswith("certified curves falling;")
    assert words["size_alt"].endswith("for SS-Simple and SS-Double")
    other = told.overall(crossing, "size")
    assert other["size_gap"] == "Counting gives nothing away under SS-Simple here."
    assert "does not become" in other["size_private"]
    assert other["size_alt"].endswith("for neither protocol")
    assert told.in_both(falling)["in_both"].startswith("In both figures")
    assert "does not lie above" in told.in_both(falling, crossing)["in_both"]


def test_values_about_a_setting_stay_in_their_domains():
    assert accounting.around(accounting.FIGURE_5, "vector_epsilon0", 3) == pytest.approx([15.7, 78.5, 392.5])
    assert accounting.around(accounting.FIGURE_5, "dimension", 3) == pytest.approx([785, 7850, 78500])
    extreme = accounting.Setting(dimension=1, n_users=2, kept=1, padded=2, epsilon0=700.0)
    assert accounting.around(extreme, "vector_epsilon0", 3).tolist() == [700.0] * 3
    assert accounting.around(extreme, "dimension", 3).tolist() == [1, 3, 10]


def test_rates_are_told_or_said_to_be_none():
    sampled = Curves("sampling_rate", "epsilon", np.array([0.1, 0.2, 0.4]), {
        "certified": np.array([1.0, 2.0, 4.0]), "lower": np.array([1.0, 4.0, 16.0])})  # fmt: skip
    right = ratios.compute_rates(7850, 0.02, 0.5, 1e-6, [10**6, 10**8, 10**10])
    words = told.rates(right, sampled)
    assert words["rates_right"] == "The slopes are close to these rates in $n$."
    assert words["share_slopes"] == "1.00 and 2.00"
    flat = ratios.compute_rates(7850, 0.02, 100.0, 1e-6, [10**6, 10**8, 10**10])
    assert "do not show" in told.rates(flat, sampled)["rates_right"]
    none = ratios.compute_rates(10, 1e-6, 0.5, 0.5, [10**6, 10**8, 10**10])
    assert "shows no rate" in told.rates(none, sampled)["rates_right"]
    assert [slope == "none" for _, slope in ratios.slope_rows(none)] == [False, True]


def test_multiples_that_there_are_too_few_coordinates_for_are_left_out():
    assert [row[0] for row in ratios.index_rows(3, 8, 3, [1, 2, 4])] == [1, 2]
    assert [row[2] for row in ratios.index_rows(3, 8, 1, [1, 2, 8])] == [np.inf, 4, 1]
    with pytest.raises(DomainError, match="kept"):
        ratios.index_rows(3, 8, 0, [1])


def claims(**claimed):
    """Nine claims, each between 1 and 2."""
    keys = ["simple", *(f"{key}{of}" for of in ("", ":dense") for key in ("double", "subset", "topk", "full"))]
    return audit.Claims({key: Claim(key, claimed.get(key.replace(":", "_"), 3.0), 1.0, 2.0) for key in keys}, {})


def test_claims_are_told_with_their_verdicts():
    one, dense = audit.Round(100, 50, 1, 40, 1.0), audit.denser(audit.Round(100, 50, 1, 40, 1.0))
    words = told.claimed(one, dense, claims())
    assert words["sound_claims"] == "SS-Simple and SS-Double hold"
    assert words["margins"] == "1.5 for SS-Simple, 1.5 for SS-Double with 1 in 50 and 1.5 for SS-Double with 1 in 10"
    assert (words["subset_verdict"], words["overflow"]) == ("holds", "Overflow leaves the verdict as it is.")
    mixed = told.claimed(one, dense, claims(simple=1.5, double=0.5, full_dense=0.5, subset=1.5, topk_dense=1.5))
    assert mixed["sound_claims"] == "SS-Double with 1 in 10 holds; SS-Simple is open; SS-Double with 1 in 50 is refuted"
    assert (mixed["subset_verdict"], mixed["overflow"]) == ("stays open", "Overflow changes the verdict.")
    assert mixed["dense_verdict"] == "The budget of SS-Topk with one coordinate in 10 is open"
    zero = {**claims().claims, "simple": Claim("simple", 1.0, 0.0, 0.0)}
    margins = told.claimed(one, dense, audit.Claims(zero, {}))["margins"]
    assert margins.startswith("any number, where 0 is certified, for SS-Simple")


def test_a_denser_round_has_room_whatever_the_sizes():
    for n_users, dimension in ((2, 1), (3, 2), (1000, 7850), (7, 9)):
        one = audit.denser(audit.Round(n_users, dimension, 1, n_users + 1, 1.0))
        assert one.padded >= 2
        assert one.padded * dimension >= n_users * one.kept


@pytest.mark.parametrize(("claim", "words"), [(0.05, "is **refuted**"), (5.0, "is **not refuted**")])
def test_the_attack_is_told_with_its_claim(claim, words):
    found = attack.compute_attack(20, 30, 1.0, claim, repeats=200, seed=5)
    curve = attack.compute_attack_curve(found, 1e-3, 5)
    lower = float(attack.topk_lower(20, 30, 1.0, delta=1e-3))
    said = told.attacked(found, curve, Claim("", claim, lower, 2 * lower))
    assert words in said["attack_verdict"]
    assert said["attack_reach"] == "its yield is still 50 % of the certified upper bound"
    assert ("does not lie below" in said["curve_and_claim"]) == ("not" in words)
    assert (said["attacked_bags"], said["rounds_run"]) == ("20 bags", "200 rounds")
    inside = sum(low <= found.exact(at) <= high for at, low, high in zip(curve.at, curve.low, curve.high, strict=True))
    assert said["intervals"].startswith("The intervals" if inside == 6 else f"Of 6 intervals of the rounds {inside}")


def test_accounts_are_told_beside_the_mix():
    values = {
        "messages counted": 1.0,
        "printed: 2k with sampling, Lemma 3": 3.0,
        "hidden: d with sampling, Lemma 3": 6.0,
        "revealed: k without, Lemma 3": 9.0,
    }
    accounts = audit.Accounts([(name, value, "value") for name, value in values.items()], {})
    words = told.double_accounts(accounts, Claim("", 3.0, 1.0, 2.0))
    assert (words["sound_counts"], words["hidden_below"]) == ("3 times and 2 times", "falls below the mix")
    assert words["mix_survives"] == "survives"
    other = told.double_accounts(accounts, Claim("", 3.0, 4.0, 5.0))
    assert (other["hidden_below"], other["mix_survives"]) == ("does not fall below the mix", "fails")


def test_baselines_are_told():
    noise = as_published.compute_repeated_noise(20, 10, 0.5, 0.05, rounds=3, seed=4)
    half = as_published.compute_half_precision(20, 10, 1.0, 1e-3, 1.0, seed=3)
    gaussian = [(0.2, 1.0, 1e-9, 0.16), (20.0, 1.0, 1e-3, 26.0)]
    words = told.baselines(Claim("", 0.2, 1.0, 2.0), gaussian, half, noise)
    assert (words["asked"], words["dp_keeps"], words["dp_unsampled_keeps"]) == ("", "0.16", "26")
    assert words["lost"] == "At these values no sum is lost."
    assert "orders of magnitude" in words["stands_out"]
    lost, exact = dataclasses.replace(half, lost=1.0), dict.fromkeys(noise.differences, 0.0)
    words = told.baselines(Claim("", 0.0, 1.0, 2.0), gaussian, lost, dataclasses.replace(noise, differences=exact))
    assert "in every coordinate." in words["lost"]
    assert "no noise keeps" in words["asked"]
    assert words["stands_out"] == "without any error"
    drowned = dict.fromkeys(noise.differences, 10.0)
    words = told.baselines(Claim("", 1.0, 1.0, 2.0), gaussian, lost, dataclasses.replace(noise, differences=drowned))
    assert "rounding errors" in words["stands_out"]


def test_the_classical_formula_is_told_from_where_it_fails():
    x = np.array([1.0, 2.0, 4.0])
    fails = Curves("", "", x, {"exact": np.array([0.5, 2.5, 5.0])})
    assert told.classical(fails)["classical_alt"].endswith("above one from about 2 on.")
    keeps = Curves("", "", x, {"exact": x / 2})
    assert told.classical(keeps)["classical_alt"].endswith("below one throughout.")


def test_messages_of_many_users_are_drawn_for_some_coordinates(monkeypatch):
    monkeypatch.setattr(as_published, "MOST_MESSAGES", 100)
    assert as_published.compute_half_precision(20, 10, 0.1, 1e-3, 1.0, seed=3).messages == 100
