"""The numbers behind the audit of FLAME's budgets: the attack and its law, verdicts, accounts of SS-Double."""

import csv
import io
import math

import numpy as np
import pytest
from scipy.stats import beta, binom, ks_2samp

from flamebook.claims import flame as checks_flame
from flamebook.figures import present
from flamebook.figures.flame import attack as flame_attack
from flamebook.figures.flame import audit
from flamebook.figures.flame.audit import Claim, Claims, Round
from flamelib.accounting.coordinates.counting import topk_lower
from flamelib.core.divergences import hockey_stick
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame

SMALL = Round(40, 12, 2, 10, 1.0)


def rows(record):
    return list(csv.DictReader(io.StringIO(record.to_csv())))


def laws(kept, padded, epsilon0):
    """Both laws of the count by convolution."""
    above = 1 - math.exp(-epsilon0 / 2) / 2
    fair, mine = binom.pmf(np.arange(kept * (padded - 1) + 1), kept * (padded - 1), 0.5), np.arange(kept + 1)
    return [np.convolve(fair, binom.pmf(mine, kept, chance)) for chance in (above, 1 - above)]


@pytest.fixture(scope="module")
def attack():
    return flame_attack.compute_attack(20, 30, 1.0, 0.3, repeats=3000, seed=5)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3, 0.7])
def test_the_threshold_is_the_best_test_of_the_law(attack, epsilon):
    plus, minus = laws(20, 30, 1.0)
    assert attack.exact(epsilon) == pytest.approx(hockey_stick(plus, minus, epsilon), rel=1e-9)
    assert attack.exact(epsilon) == pytest.approx(topk_lower(20, 30, 1.0, epsilon=epsilon), rel=1e-6)
    gains = np.cumsum((plus - math.exp(epsilon) * minus)[::-1])[::-1]
    assert gains[attack.threshold(epsilon)] == pytest.approx(gains.max(), rel=1e-12)


def test_the_laws_that_are_drawn_are_those_of_the_count(attack):
    for drawn, law in zip(attack.laws, laws(20, 30, 1.0), strict=True):
        assert drawn == pytest.approx(law[attack.places], rel=1e-9, abs=1e-15)
        assert drawn.sum() == pytest.approx(1, abs=1e-3)


def test_rounds_follow_the_law(attack):
    for counts, law in zip((attack.plus, attack.minus), laws(20, 30, 1.0), strict=True):
        mean = law @ np.arange(law.size)
        std = math.sqrt(law @ (np.arange(law.size) - mean) ** 2)
        assert abs(counts.mean() - mean) < 4 * std / math.sqrt(3000)
        assert counts.std() == pytest.approx(std, rel=0.06)
    assert attack.seen(0.3) == pytest.approx(attack.exact(0.3), abs=0.05)


def whole_round(value, rng):
    """The count in a round with all its users and coordinates: the others' top coordinates lie elsewhere."""
    protocol = flame.FlameTopk(30, 16, 1.0, LaplaceNoise(2.0), kept=4, padded=8, multiples=1)
    updates = np.zeros((30, 16))
    updates[:, 4:] = rng.normal(size=(30, 12))
    updates[0] = np.where(np.arange(16) < 4, value, 0.0)
    reports = flame.user(protocol, updates, rng)
    assert (reports.places[reports.senders == 0] == np.arange(4)).all()
    return int((flame.shuffler(protocol, reports, rng).bags[:4] > 0.5).sum())


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_the_attacked_coordinates_alone_have_the_law_of_the_whole_round(value):
    rng = np.random.default_rng(8)
    whole = [whole_round(value, rng) for _ in range(1500)]
    part = flame_attack._counts(4, 8, LaplaceNoise(2.0), value, 1500, rng)
    assert ks_2samp(whole, part).pvalue > 0.001
    other = flame_attack._counts(4, 8, LaplaceNoise(2.0), -value, 1500, rng)
    assert ks_2samp(whole, other).pvalue < 1e-12, "the comparison has power"


def test_the_interval_is_that_of_two_exact_shares(attack):
    at, n = attack.threshold(0.3), 3000
    hits = [int((counts >= at).sum()) for counts in (attack.plus, attack.minus)]
    (low, high), (least, most) = (beta.ppf([0.0125, 0.9875], [h, h + 1], [n - h + 1, n - h]) for h in hits)
    found = attack.interval(0.3)
    assert found == pytest.approx((low - math.exp(0.3) * most, high - math.exp(0.3) * least), rel=1e-9)
    assert found[0] <= attack.seen(0.3) <= found[1]
    assert found[0] <= attack.exact(0.3) <= found[1]


def test_intervals_cover_the_exact_value():
    found = [flame_attack.compute_attack(5, 10, 1.0, 0.2, 100, seed) for seed in range(30)]
    covered = [one.interval(0.2)[0] <= one.exact(0.2) <= one.interval(0.2)[1] for one in found]
    assert np.mean(covered) >= 0.95


def test_rounds_alone_prove_a_budget_below_the_exact_one(attack):
    proven = attack.epsilon_at_least(1e-5)
    assert 0.3 < proven < topk_lower(20, 30, 1.0, delta=1e-5)
    assert attack.epsilon_at_least(0.9) == 0


def test_the_experiments_round_is_beyond_its_claim():
    one = Round(1000, 7850, 157, 333, 0.5)
    assert one.delta == pytest.approx(5.0118723e-6, rel=1e-7)
    claimed = one.account("topk", "withdrawn", "paper")
    assert claimed == pytest.approx(0.237927, abs=1e-6)
    found = flame_attack.compute_attack(157, 333, 0.5, claimed, repeats=20, seed=1)
    assert found.exact(claimed) == pytest.approx(0.04208, abs=1e-5)
    curve = flame_attack.compute_attack_curve(found, one.delta, 12)
    assert curve.claimed == (claimed, one.delta)
    assert (np.diff(curve.exact) < 0).all()
    assert curve.exact[0] > 0.1
    assert curve.exact[-1] < one.delta < curve.exact[-3]


def test_a_seed_fixes_the_rounds_and_a_batch_does_not_matter():
    one, again, other = (flame_attack.compute_attack(3, 5, 1.0, 0.1, 25, seed) for seed in (1, 1, 2))
    assert one.to_csv() == again.to_csv() != other.to_csv()
    assert len(one.plus) == len(one.minus) == 25
    table = rows(one)
    assert sum(int(row["rounds at +C"]) for row in table) == 25


@pytest.mark.parametrize(
    ("changed", "named"),
    [({"epsilon": 701}, "epsilon"),
     ({"kept": 2.5}, "kept"), ({"kept": 0}, "kept"), ({"padded": 1}, "padded"), ({"repeats": 0}, "repeats"),
     ({"epsilon": math.nan}, "epsilon"), ({"epsilon0": -1}, "epsilon0"), ({"seed": -1}, "seed")],
)  # fmt: skip
def test_a_bad_attack_is_refused(changed, named):
    given = {"kept": 3, "padded": 5, "epsilon0": 1.0, "epsilon": 0.1, "repeats": 5, "seed": 0}
    with pytest.raises(DomainError, match=f"^{named} "):
        flame_attack.compute_attack(**(given | changed))


@pytest.mark.parametrize("kept", [41, 2.5, 0])
def test_a_bad_round_is_refused(kept):
    with pytest.raises(DomainError, match=r"^kept "):
        Round(60, 40, kept, 20, 0.8)


@pytest.fixture(scope="module")
def claims():
    return Claims({"simple": audit._simple(SMALL), **audit._sampled(SMALL)}, {})


def test_claims_of_two_rounds_have_names_of_their_own(monkeypatch):
    monkeypatch.setattr(audit, "_simple", lambda one: Claim("simple", 1.0, one.epsilon0, 2.0))
    monkeypatch.setattr(audit, "_sampled", lambda one: {"topk": Claim("topk", 1.0, one.kept, 9.0)})
    found = audit.compute_claims(SMALL, Round(40, 12, 4, 20, 1.0))
    assert [(key, one.lower) for key, one in found.claims.items()] == [("simple", 1), ("topk", 2), ("topk:dense", 4)]
    assert (found.parameters["kept first"], found.parameters["kept second"]) == (2, 4)


def test_claims_stand_between_certified_bounds(claims):
    assert list(claims.claims) == ["simple", "double", "subset", "topk", "full"]
    for key, one in claims.claims.items():
        assert (one.lower > 0) == (key != "subset"), "of bags that may overflow nothing is claimed where a set is drawn"
        assert one.lower <= one.upper
    assert claims["double"].claimed == claims["topk"].claimed == claims["full"].claimed
    assert claims["topk"].lower <= claims["full"].lower
    assert claims["full"].upper > claims["topk"].upper
    assert [row["verdict"] for row in rows(claims)] == [one.verdict for one in claims.claims.values()]


def test_the_lower_bound_of_subsets_is_that_of_its_law():
    """All messages of 12 bags of 10, of which two are the victim's; every threshold tried."""
    one = Round(10, 12, 2, 10, 1.0)
    above = 1 - math.exp(-0.5) / 2
    fair, mine = binom.pmf(np.arange(119), 118, 0.5), np.arange(3)
    plus, minus = (np.convolve(fair, binom.pmf(mine, 2, chance)) for chance in (above, 1 - above))
    found, more, less = audit._sampled(one)["subset"].lower, plus[::-1].cumsum(), minus[::-1].cumsum()
    ratios = (more[more > one.delta] - one.delta) / less[more > one.delta]
    assert found == pytest.approx(math.log(ratios.max()), rel=1e-9)
    assert hockey_stick(plus, minus, found) >= one.delta * (1 - 1e-9)


def test_verdicts():
    assert [Claim("", claimed, 1.0, 2.0).verdict for claimed in (0.5, 1.0, 1.5, 2.0, 9.0)] == [
        "refuted", "open", "open", "holds", "holds",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def accounts(claims):
    return audit.compute_double_accounts(SMALL, claims["double"], claims["subset"])


def test_the_counts_of_lemma_3_agree_with_the_ledgers(accounts):
    given = {"dimension": 12, "kept": 2, "padded": 10, "epsilon0": 1.0, "delta": SMALL.delta}
    for name, route in (
        ("hidden: d with sampling, Lemma 3", "hidden"),
        ("revealed: k without, Lemma 3", "revealed"),
        ("printed: 2k with sampling, Lemma 3", "paper"),
    ):
        assert accounts[name] == pytest.approx(checks_flame.double_route(route, "blanket", **given), rel=1e-9)


def test_every_proven_account_is_above_what_is_given_away(accounts):
    lower = accounts["messages counted"]
    assert all(value > lower for _, value, kind in accounts.rows if kind == "upper")
    assert accounts["hidden: d with sampling, loss distributions"] < accounts["hidden: d with sampling, Lemma 3"]
    assert accounts["revealed: k without, loss distributions"] < accounts["revealed: k without, Lemma 3"]


def test_the_figures_are_drawn(attack, claims, accounts, tmp_path, monkeypatch):
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    settled = Claims({one: Claim(one, 1.0, 0.5, 0.8) for one in ("a", "b")}, {})
    for name, record, draw in (
        ("attack", attack, flame_attack.draw_attack),
        ("curve", flame_attack.compute_attack_curve(attack, 1e-4, 5), flame_attack.draw_attack_curve),
        ("claims", claims, audit.draw_claims),
        ("settled", settled, audit.draw_claims),
        ("accounts", accounts, audit.draw_accounts),
    ):
        present.show(record, draw, name=name, alt="A figure of the audit.")
        assert (tmp_path / "figures" / f"{name}.csv").read_text() == record.to_csv()
        assert (tmp_path / "figures" / f"{name}.svg").stat().st_size > 5000
