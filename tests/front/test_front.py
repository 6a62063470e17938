"""The front door: the contract's examples, both ends around the truth, refusals, lazy names."""

import ast
import functools
import itertools
import math
import pickle
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from oracles import tables as oracle

import flamelib
from flamebook.places import ROOT
from flamelib import (
    AnyRandomizer,
    Checkin,
    Cloak,
    DomainError,
    FlameDouble,
    FlameSimple,
    FlameTopk,
    GaussianNoise,
    KaryResponse,
    LaplaceNoise,
    OptimizedUnary,
    Participation,
    Rounds,
    Shuffled,
    Summed,
    TableRandomizer,
    account,
    audit,
    bounds,
    calibrate,
    evaluate,
    run,
)
from flamelib.core.guarantees import ARITHMETIC, CrossedEnds
from flamelib.front import questions
from flamelib.front.results import rounded
from flamelib.mechanisms.integers.noise import SkellamShare

SURVEY = Shuffled(KaryResponse(epsilon0=2.0, n_buckets=10), n_users=100_000)
TRAINING = Participation(participation_rate=0.1, record_rate=0.1, n_records=30, clip_norm=1, noise_std=1)
QUICK = [
    Shuffled(KaryResponse(1.0, 2), 50),
    Shuffled(LaplaceNoise(1.0), 50),
    Shuffled(AnyRandomizer(1.0), 50),
    Checkin(Shuffled(KaryResponse(1.0, 3), 50), 0.3),
    Checkin(Summed(50, 1.0), 0.3),
    TRAINING,
    Cloak.plan(100, 1.0, 1e-6, 3.0),
]
# A vector's account composes whole curves: seconds each, so these are asked less.
VECTORS = [
    FlameSimple(50, 1, 1.0, LaplaceNoise(0.5)),
    FlameDouble(50, 40, 1.0, LaplaceNoise(0.5), 1, 50),
    FlameDouble(50, 2, 1.0, LaplaceNoise(0.5), 1, 50, "independent"),
    FlameTopk(50, 40, 1.0, LaplaceNoise(0.5), 1, 50),
]


# --- the contract -----------------------------------------------------------------------------------


SENT, JOINED = {"n_users": 50, "delta": 1e-6}, {"n_users": 50, "checkin_rate": 0.3, "delta": 1e-6}
CLIENT = {"participation_rate": 0.1, "record_rate": 0.1, "n_records": 30, "clip_norm": 1, "noise_std": 1, "delta": 1e-6}
KARY = {"epsilon0": 1, "n_buckets": 3, "route": "kary", "rounds": 5}
TOPK = {"protocol": "topk", "dimension": 40, "kept": 1, "padded": 50, "bound": "blanket", "route": "sound"}


@pytest.mark.parametrize(
    ("protocol", "rounds", "statement", "inputs"),
    [
        (Shuffled(KaryResponse(1.0, 2), 50), 1, "shuffle:exact-binary", SENT | {"epsilon0": 1}),
        (Shuffled(KaryResponse(1.0, 2), 2000), 1, "shuffle:exact-binary", SENT | {"epsilon0": 1, "n_users": 2000}),
        (
            Shuffled(GaussianNoise(4.0), 50),
            1,
            "blanket:lem-reduction",
            SENT | {"randomizer": "gaussian", "noise_std": 4},
        ),
        (Shuffled(LaplaceNoise(1.0), 50), 1, "blanket:lem-reduction", SENT | {"randomizer": "laplace", "epsilon0": 1}),
        (Shuffled(AnyRandomizer(1.0), 50), 1, "shuffle:any", SENT | {"epsilon0": 1, "side": "upper"}),
        (Checkin(Shuffled(KaryResponse(1.0, 3), 50), 0.3), 5, "checkin:shuffled", JOINED | KARY),
        (
            Checkin(Summed(50, 1.0), 0.3),
            5,
            "checkin:distributed",
            JOINED | {"noise_std": 1, "rounds": 5, "route": "pld"},
        ),
        (TRAINING, 1, "participation:thm-4.1", CLIENT | {"reading": "outer"}),
        (VECTORS[3], 1, "flame:account", SENT | TOPK | {"epsilon0": 0.5}),
    ],
)
def test_a_protocol_and_its_statement_say_the_same(
    protocol: Any, rounds: int, statement: str, inputs: dict[str, Any]
) -> None:
    found, told = account(protocol, delta=1e-6, rounds=rounds), evaluate(statement, **inputs)
    assert (found.epsilon, found.rests_on) == (pytest.approx(told.value, rel=1e-9), told.rests_on)


@pytest.mark.parametrize(("variance", "ground"), [(4e4, "proven"), (4e10, "cited")])
def test_large_skellam_noise_rests_on_a_cited_divergence(variance: float, ground: str) -> None:
    noise = SkellamShare(100, variance)
    assert account(Cloak(100, 2**40, 100, 12, "floor", noise), delta=1e-6).rests_on == ground


def test_runs_and_audits() -> None:
    counts = run(SURVEY, np.arange(100_000) % 10, np.random.default_rng(0))
    assert counts.sum() == pytest.approx(100_000)
    assert abs(counts - 10_000).max() < 2000
    small = Shuffled(KaryResponse(2.0, 2), 5)
    tried = audit(small, ([0] * 5, [1] + [0] * 4), np.sum, trials=4000)
    assert tried.refutes(0.03)
    assert not tried.refutes(account(small, delta=0.0).epsilon)


# --- both ends --------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", QUICK, ids=lambda one: type(one).__name__)
def test_the_truth_has_room_between_the_ends_and_answers_agree(protocol: Any) -> None:
    rounds = 3
    found = bounds(protocol, delta=1e-3, rounds=rounds)
    assert 0 <= found.lower <= found.upper < math.inf
    back = account(protocol, epsilon=found.upper, rounds=rounds)
    assert back.delta <= 1e-3 * 1.02, "the way back does not lose what the way there had"
    assert account(protocol, delta=1e-4, rounds=rounds).epsilon >= found.upper * (1 - 1e-9)
    assert repr(found)
    assert "<table" in back._repr_html_()


@pytest.mark.parametrize("protocol", VECTORS[::2], ids=lambda one: type(one).__name__)
def test_the_truth_of_vectors_has_room_between_the_ends(protocol: Any) -> None:
    found = bounds(protocol, delta=1e-3)
    assert 0 <= found.lower <= found.upper < math.inf
    assert account(protocol, delta=1e-3, rounds=2).epsilon >= found.upper * (1 - 1e-9)


def test_the_vectors_of_the_paper_have_their_account() -> None:
    drawn = FlameDouble(1000, 7850, 1.0, LaplaceNoise(0.5), kept=157, padded=333)
    found = bounds(drawn, delta=5.0118723e-6)
    assert (found.lower, found.upper) == (pytest.approx(0.14355, abs=1e-5), pytest.approx(0.15732, abs=1e-4))


def test_rounds_that_differ() -> None:
    survey = Shuffled(KaryResponse(2.0, 3), 20_000)
    mean = Checkin(Shuffled(KaryResponse(1.0, 3), 20_000), rate=0.1)
    parts = [(survey, 30), (mean, 100)]
    both = bounds(Rounds(parts), delta=1e-8)
    alone = [bounds(part, delta=1e-8, rounds=rounds) for part, rounds in parts]
    assert max(one.lower for one in alone) < both.lower < both.upper < sum(one.upper for one in alone)
    assert both.upper < 1.02 * both.lower
    assert account(Rounds([(survey, 30)]), delta=1e-8, rounds=2) == account(survey, delta=1e-8, rounds=60)
    alike = TableRandomizer([[0.5, 0.5], [0.5, 0.5]])
    table = TableRandomizer([[0.7, 0.3], [0.3, 0.7]])
    mixed = Rounds([(Shuffled(one, 500), 2) for one in (alike, table, AnyRandomizer(0.5), GaussianNoise(2.0))])
    found = bounds(mixed, epsilon=0.1)
    assert 0 < found.lower < found.upper < 1
    assert found.rests_on == "proven"


@pytest.mark.parametrize("protocol", [QUICK[0], *QUICK[3:]], ids=lambda one: type(one).__name__)
def test_what_is_calibrated_keeps_the_budget(protocol: Any) -> None:
    found = calibrate(protocol, epsilon=0.4, delta=1e-3)
    assert getattr(found, found.parameter) == found.value
    assert found.guarantee.epsilon == account(found.protocol, delta=1e-3).epsilon <= 0.4


CALIBRATED = [[KaryResponse(1.0, 20), 0.05, 300], [AnyRandomizer(1.0), 5.0, 30], [OptimizedUnary(1.0, 8), 0.3, 900]]


@pytest.mark.parametrize(("randomizer", "epsilon", "n_users"), CALIBRATED)
def test_what_is_calibrated_is_certified_to_the_last_digit(randomizer: Any, epsilon: float, n_users: int) -> None:
    for delta in (1e-3, 1e-7):
        found = calibrate(Shuffled(randomizer, n_users), epsilon=epsilon, delta=delta)
        assert found.guarantee.epsilon == account(found.protocol, delta=delta).epsilon <= epsilon
        assert found.guarantee.epsilon > epsilon * (1 - 1e-6) or found.value == 30


def test_ends_that_cross_are_an_error_here_and_a_wide_bracket_for_users(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = Shuffled(KaryResponse(1.0, 3), 100)
    most = account(protocol, delta=1e-3)
    monkeypatch.setitem(questions._ANSWERS[Shuffled], "lower", lambda *_: most.epsilon * (1 + 1e-9))
    with pytest.raises(CrossedEnds, match="one of them is wrong; please report it"):
        bounds(protocol, delta=1e-3)  # warnings are errors in tests
    with pytest.warns(CrossedEnds):
        found = bounds(protocol, delta=1e-3)
    assert (found.lower, found.upper) == (most.epsilon - most.uncertainty, most.epsilon * (1 + 1e-9) + most.uncertainty)
    assert (found.rests_on, found.assumes) == ("estimated", "one of both ends is nearly right: as certified they cross")
    monkeypatch.setitem(questions._ANSWERS[Shuffled], "lower", lambda *_: math.nextafter(most.epsilon, 1))
    found = bounds(protocol, delta=1e-3)
    assert (found.lower, found.upper) == (most.epsilon, math.nextafter(most.epsilon, 1))
    assert found.rests_on == "proven"


def test_what_is_proven_names_what_it_assumes() -> None:
    assert account(SURVEY, delta=1e-8, rounds=100).assumes == ARITHMETIC
    assert bounds(SURVEY, delta=1e-8).assumes == ARITHMETIC
    assert account(Shuffled(GaussianNoise(4.0), 50), delta=1e-3).assumes == ARITHMETIC
    found = account(VECTORS[3], delta=1e-3)
    assert found.assumes == f"no coordinate has more messages than the padded number; {ARITHMETIC}"
    assert repr(found).endswith("; proven, if no coordinate has more messages than the padded number")
    assert ARITHMETIC in found._repr_html_()


def test_the_smallest_crowd_is_the_smallest() -> None:
    found = calibrate(Shuffled(LaplaceNoise(1.0), 10), epsilon=0.2, delta=1e-4, over="n_users")
    assert account(found.protocol, delta=1e-4).epsilon <= 0.2
    assert account(Shuffled(LaplaceNoise(1.0), found.n_users - 1), delta=1e-4).epsilon > 0.2


# --- tables -----------------------------------------------------------------------------


def test_a_table_of_kary_response_is_kary_response() -> None:
    kept, other = math.e / (math.e + 2), 1 / (math.e + 2)
    table = TableRandomizer([[kept, other, other], [other, kept, other], [other, other, kept]])
    assert table.epsilon0 == pytest.approx(1.0)
    found = account(Shuffled(table, 10_000), delta=1e-6)
    assert found.epsilon == pytest.approx(account(Shuffled(KaryResponse(1.0, 3), 10_000), delta=1e-6).epsilon, rel=1e-6)
    drawn = table.sample(np.zeros(100_000, dtype=int), np.random.default_rng(0))
    assert np.bincount(drawn) / 1e5 == pytest.approx(np.array(table.table[0]), abs=0.006)


# --- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda: account(SURVEY), "exactly one of epsilon and delta"),
        (lambda: account(SURVEY, delta=2), "delta must be"),
        (lambda: account("topk", delta=0.1), "protocol must be one of Shuffled"),
        (lambda: bounds(None, delta=0.1), "protocol must be"),
        (lambda: calibrate(SURVEY, epsilon=0, delta=0.1), "epsilon must be above 0"),
        (lambda: calibrate(SURVEY, epsilon=1, delta=1e-6, over="noise_std"), "over must be"),
        (lambda: Shuffled(2.0, 10), "randomizer must be"),
        (lambda: Checkin(TRAINING, rate=0.5), "protocol must be Shuffled or Summed"),
        (lambda: account(FlameSimple(50, 4, 1.0, KaryResponse(1.0, 2)), delta=0.1), "randomizer must be"),
        (lambda: TableRandomizer([[0.5, 0.6], [0.5, 0.5]]), "table must have rows that sum to 1"),
        (lambda: TableRandomizer([[1.0, 0.0], [0.5, 0.5]]), "table must not have a message"),
        (lambda: run(Shuffled(AnyRandomizer(1.0), 3), [0, 1, 0], np.random.default_rng(0)), "randomizer must be one"),
        (lambda: run(SURVEY, [0, 1], np.random.default_rng(0)), "values must have shape"),
        (lambda: run(SURVEY, np.ma.array([0, 1], mask=[0, 1]), 0), "values must be numbers, got masked entries"),
        (lambda: Cloak.plan(n_users=10, epsilon=1, delta=1e-6, error=1e-9), "error must be"),
        (lambda: Rounds([]), "parts must be 1 to 64 pairs"),
        (lambda: Rounds([SURVEY]), "parts must be pairs"),
        (lambda: Rounds([(SURVEY, 0)]), "rounds must be"),
        (lambda: Rounds([(TRAINING, 3)]), "parts must hold Shuffled"),
        (lambda: run(Rounds([(SURVEY, 2)]), [0], np.random.default_rng(0)), "protocol must be one of"),
        (lambda: evaluate("flame:none"), "id must be"),
    ],
)
def test_a_refusal_names_the_argument(ask: Any, told: str) -> None:
    with pytest.raises(DomainError, match=told):
        ask()


# --- names ------------------------------------------------------------------------------------------


def test_names_are_few_resolve_and_have_examples() -> None:
    assert len(flamelib.__all__) <= 40
    assert sorted(flamelib.__all__) == sorted(flamelib._HOMES)
    for name in flamelib.__all__:
        found = getattr(flamelib, name)
        assert found.__doc__, name
    stub = ast.parse((ROOT / "flamelib" / "__init__.pyi").read_text(encoding="utf-8"))
    imported = [alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    given = [ast.unparse(node.targets[0]) for node in stub.body if isinstance(node, ast.Assign)]
    assert sorted(name for name in [*imported, *given] if name) == sorted(flamelib.__all__)


def _examples(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_first_example_of_the_readme_runs_and_says_what_it_promises() -> None:
    first, second = _examples("README.md")[:2]
    assert _kept(first) == 5
    names = {node.id for node in ast.walk(ast.parse(second)) if isinstance(node, ast.Name)}
    assert names - {"vectors", "training"} <= set(flamelib.__all__)


def _kept(example: str) -> int:
    """How many lines of an example promise an answer, all of which are kept."""
    given: dict[str, Any] = {}
    promised = []
    for line in example.splitlines():
        code, _, told = line.partition("#")
        if not told:
            exec(line, given)
            continue
        found = eval(code.strip(), given)
        shown = repr(found) if not isinstance(found, float) else f"{found:.3g}"
        promised.append((shown, told.strip()))
    for shown, told in promised:
        assert told.split(":")[0].split(", replace")[0] in shown or shown in told, (shown, told)
    return len(promised)


# --- what a hostile reader found --------------------------------------------------------------------


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_pairs_of_a_table_that_nearly_agree_are_told_apart(order: tuple[int, ...]) -> None:
    rare, apart = 1e-8, 4e-6
    rows = [[rare * (1 + apart), 1 - rare * (1 + apart)], [rare, 1 - rare], [1 - 3 * rare, 3 * rare]]
    table = TableRandomizer([rows[i] for i in order])
    epsilon = math.log((1 - 3 * rare) / rare) - 2e-6
    worst = float(oracle.worst(oracle.neighbours(oracle.normed(table.table), 2), epsilon))
    assert account(Shuffled(table, 2), epsilon=epsilon).delta >= worst * (1 - 1e-6)


def test_a_budget_out_of_reach_is_refused_and_not_promised() -> None:
    with pytest.raises(DomainError, match="epsilon must be"):
        calibrate(Shuffled(GaussianNoise(1.0), 2), epsilon=1e-8, delta=1e-12)


@pytest.mark.parametrize(("n_users", "dimension", "kept", "padded"), [(100, 1, 0.02, 2), (12, 3, 1.5, 7)])
def test_bags_that_overflow_lose_reports_from_below_as_well(
    n_users: int, dimension: int, kept: float, padded: int
) -> None:
    """The lower end is what a count of messages shows in rounds that are played with `run`'s own parties."""
    crowded = FlameDouble(n_users, dimension, 1.0, LaplaceNoise(1.0), kept, padded, inclusion="independent")
    found, above = bounds(crowded, epsilon=0.0), 1 - math.exp(-0.5) / 2
    assert 0 < found.lower <= found.upper
    rate = kept / dimension
    others = [math.comb(n_users - 1, m) * rate**m * (1 - rate) ** (n_users - 1 - m) for m in range(n_users)]
    seen = rate * sum(chance * min(1.0, padded / (m + 1)) for m, chance in enumerate(others)) * (above - 0.5)
    updates = np.zeros((n_users, dimension))
    updates[0] = 1.0
    rng, trials = np.random.default_rng(5), 1500
    counts = [(questions.view(crowded, updates, rng) > 0.5).sum() for _ in range(trials)]
    excess = np.mean(counts) - dimension * padded / 2
    assert abs(excess - dimension * seen) < 5 * math.sqrt(dimension * padded / 4 / trials)
    bag = [np.convolve(_fair(padded - 1), [0.5 - shift, 0.5 + shift]) for shift in (seen, -seen)]
    one, two = (functools.reduce(np.convolve, [part] * dimension) for part in bag)
    assert found.lower == pytest.approx(np.maximum(one - two, 0).sum(), rel=1e-8)


def _fair(count: int) -> np.ndarray[Any, Any]:
    return np.array([math.comb(count, hits) / 2**count for hits in range(count + 1)])


@pytest.mark.parametrize("padded", [333, 160])
def test_both_ends_of_the_paper_round_with_independent_coordinates(padded: int) -> None:
    drawn = FlameDouble(1000, 7850, 1.0, LaplaceNoise(0.5), 157, padded, inclusion="independent")
    found = bounds(drawn, delta=5.0118723e-6)
    assert 0.1435 < found.lower <= found.upper < 0.26


def test_a_record_from_another_process_is_known() -> None:
    program = (
        "import pickle, sys; record = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "from flamelib import account; print(account(record, delta=1e-3).epsilon < 20)"
    )
    told = pickle.dumps(TRAINING).hex()
    done = subprocess.run([sys.executable, "-c", program, told], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("True", "")


def test_no_guarantee_is_an_infinite_one_and_rare_failures_are_finite() -> None:
    assert account(Shuffled(GaussianNoise(1.0), 10), delta=0).epsilon == math.inf
    assert account(Cloak.plan(100, 1.0, 1e-6, 3.0), delta=1e-300).epsilon == math.inf
    assert account(Cloak.plan(100, 1.0, 1e-6, 3.0), delta=1).epsilon == 0
    assert math.isfinite(account(TRAINING, delta=1e-300, rounds=7).epsilon)
    assert account(Shuffled(TableRandomizer([[0.5, 0.5], [0.5, 0.5]]), 10), delta=1e-9, rounds=5).epsilon == 0


def test_printed_numbers_err_to_their_side() -> None:
    rng = np.random.default_rng(0)
    for value in [*np.exp(rng.uniform(-300, 300, 2000)), 5e-324, 1.0, 0.0, 1e300]:
        for digits in range(1, 13):
            low, high = (float(rounded(value, up=up, digits=digits)) for up in (False, True))
            assert low <= value <= high
            assert high - low <= 1.001 * 10.0 ** (1 - digits) * value + 5e-324
