"""Records by name: what is built and asked is what Python builds and asks, for every record and randomizer."""

import dataclasses
import inspect
import json
import re
from typing import Any

import pytest
from terminal import flamelib as typed

import flamelib
from flamelib import (
    Checkin,
    Cloak,
    FlameDouble,
    FlameSimple,
    FlameTopk,
    KaryResponse,
    LaplaceNoise,
    Participation,
    PolyaShare,
    Shuffled,
    Summed,
    TableRandomizer,
    account,
    bounds,
    calibrate,
)
from flamelib.answers import assignments
from flamelib.core.vocabulary import DomainError
from flamelib.front import by_name, questions
from flamelib.mechanisms.integers.noise import TruncatedLaplace

NOISY = Cloak(100, 10**9 + 1, 100, 12, "floor", PolyaShare(90, 0.9), 1.0, 10)
BESIDE = dataclasses.replace(NOISY, noise=TruncatedLaplace(10**9 + 1, 0.9), noise_rate=0.5)
OWN = "cloak n_users=100 modulus=1000000001 scale=100 n_messages=12 colluding=10"
# Words of a record, of which the last is the one that is sought, and the record.
WRITTEN: list[tuple[str, Any]] = [
    ("shuffled randomizer=kary n_buckets=3 n_users=200 epsilon0=1", Shuffled(KaryResponse(1.0, 3), 200)),
    ("shuffled randomizer=table table=[[.7,.3],[.3,.7]] n_users=2e2",
     Shuffled(TableRandomizer([[0.7, 0.3], [0.3, 0.7]]), 200)),
    ("checkin rate=.3 randomizer=laplace n_users=200 epsilon0=1", Checkin(Shuffled(LaplaceNoise(1.0), 200), 0.3)),
    ("checkin rate=.3 protocol=summed n_users=200 noise_std=1", Checkin(Summed(200, 1.0), 0.3)),
    ("participation participation_rate=.1 record_rate=.2 n_records=30 clip_norm=2 noise_std=1",
     Participation(0.1, 0.2, 30, 2, 1)),
    ("flame-simple n_users=50 dimension=1 randomizer=laplace epsilon0=.5", FlameSimple(50, 1, 1.0, LaplaceNoise(0.5))),
    ("flame-double n_users=50 dimension=2 clip=3 kept=.5 padded=50 inclusion=independent randomizer=laplace epsilon0=1",
     FlameDouble(50, 2, 3.0, LaplaceNoise(1.0), 0.5, 50, "independent")),
    ("flame-topk n_users=50 dimension=40 kept=1 padded=50 multiples=2 randomizer=laplace epsilon0=.5",
     FlameTopk(50, 40, 1.0, LaplaceNoise(0.5), 1, 50, 2)),
    (f"{OWN} rounding=grid decay=.9", dataclasses.replace(NOISY, rounding="grid")),
    (f"{OWN} noise_rate=.5 decay=.9", BESIDE),
    ("cloak n_users=100 error=5 colluding=1 epsilon=.5", Cloak.plan(100, 0.5, 1e-6, 5, 1)),
]  # fmt: skip


KEPT = {"delta": "1e-6", "rounds": "3"}


@pytest.mark.parametrize(("words", "protocol"), WRITTEN)
@pytest.mark.parametrize("question", by_name.QUESTIONS)
def test_words_make_the_record(question: str, words: str, protocol: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calibrates = question == "calibrate"
    like = getattr(questions, question)

    def heard(protocol: Any, **given: Any) -> Any:
        return protocol, given

    monkeypatch.setattr(heard, "__signature__", inspect.signature(like), raising=False)
    monkeypatch.setattr(questions, question, heard)
    record, *given = words.split()
    found = by_name.ask(question, record, assignments(given) | KEPT | ({"epsilon": "0.5"} if calibrates else {}))
    assert found == (protocol, {"delta": 1e-6, "rounds": 3} | ({"epsilon": 0.5} if calibrates else {}))


def _typed(question: str, *words: str) -> dict[str, Any]:
    done = typed(question, *words)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout, parse_constant=pytest.fail)
    return found


@pytest.mark.parametrize(("words", "protocol"), [WRITTEN[i] for i in (0, 3, 4, 5, 8, 10)])
def test_answers_are_those_of_python(words: str, protocol: Any) -> None:
    given, delta = words.split(), "delta=1e-6"
    kept, pair = account(protocol, delta=1e-6), bounds(protocol, delta=1e-6)
    same = {"adjacency": kept.adjacency, "rests_on": kept.rests_on, "assumes": kept.assumes}
    assert _typed("account", *given, delta) == {"epsilon": kept.epsilon, "delta": 1e-6} | same
    both = {"lower": pair.lower, "upper": pair.upper, "asked": "epsilon"}
    assert _typed("bounds", *given, delta) == both | same
    found = calibrate(protocol, epsilon=0.5, delta=1e-6)
    budget = [delta] if "epsilon=.5" in given else [delta, "epsilon=.5"]
    # The parameter that is sought may be left out.
    told = _typed("calibrate", *(word for word in given if word.split("=")[0] != found.parameter), *budget)
    assert told == {found.parameter: found.value, "epsilon": found.guarantee.epsilon, "delta": 1e-6} | same


def test_the_other_way_round_and_a_crowd_and_no_noise() -> None:
    summed = ["checkin", "protocol=summed", "rate=.3", "noise_std=1"]
    found = account(Checkin(Summed(200, 1.0), 0.3), epsilon=0.25, rounds=2)
    assert _typed("account", *summed, "n_users=200", "epsilon=.25", "rounds=2")["delta"] == found.delta
    crowd = calibrate(Checkin(Summed(2, 1.0), 0.3), epsilon=0.25, delta=1e-6, over="n_users")
    assert _typed("calibrate", *summed, "epsilon=.25", "delta=1e-6", "over=n_users")["n_users"] == crowd.value
    assert _typed("account", *OWN.split(), "delta=1e-6")["adjacency"] == "sum-preserving"


def test_a_budget_without_end_is_a_text() -> None:
    words = f"{OWN} decay=.9 delta=1e-300".split()
    assert _typed("account", *words)["epsilon"] == "inf"


@pytest.mark.parametrize("kind", by_name.WORDS["randomizer"])
def test_every_randomizer_has_its_words(kind: str) -> None:
    values = {"epsilon0": 1.0, "n_buckets": 4, "noise_std": 4.0, "table": ((0.7, 0.3), (0.3, 0.7))}
    made = getattr(flamelib, by_name.WORDS["randomizer"][kind])
    own = {name: values[name] for name in inspect.signature(made).parameters}
    assert made.kind == kind
    found = by_name.ask("account", "shuffled", {"randomizer": kind, "n_users": 50, "delta": 1e-3} | own)
    assert found == account(Shuffled(made(**own), 50), delta=1e-3)


@dataclasses.dataclass(frozen=True)
class Inner:
    n_users: int
    rate: float = 1.0
    colluding: int = 0
    dropout: float = 0.0


@dataclasses.dataclass(frozen=True)
class Outer:
    protocol: Inner
    rate: float
    colluding: int = 0
    dropout: float = 0.0


def test_fields_are_found_and_a_shared_name_belongs_to_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in (Inner, Outer):
        monkeypatch.setattr(flamelib, one.__name__, one, raising=False)
    monkeypatch.setitem(by_name.WORDS["record"], "checkin", "Outer")
    monkeypatch.setitem(by_name.WORDS["protocol"], "shuffled", "Inner")
    asked = {"rate": "0.1", "n_users": "10", "delta": "0"}
    with pytest.raises(DomainError, match=re.escape(repr(Outer(Inner(10), 0.1, 3, 0.25)))):
        by_name.ask("account", "checkin", asked | {"colluding": "3", "dropout": "0.25"})
    with pytest.raises(DomainError, match=re.escape(repr(Outer(Inner(10), 0.1)))):
        by_name.ask("account", "checkin", asked)
    assert by_name.described()[0]["checkin"] == "[protocol] rate [colluding] [dropout] n_users"


SURVEY = "shuffled randomizer=kary epsilon0=1 n_buckets=3 n_users=50 delta=1e-6"
REFUSED = [
    ("", "record must be one of shuffled, checkin, "),
    ("shufled delta=0", "did you mean shuffled?"),
    ("--bogus", "record must be one of"),
    (f"{SURVEY} --bogus", "'--bogus' must be written name=value"),
    (f"{SURVEY} bucket=3", "bucket is not a parameter of QUESTION shuffled, which takes randomizer, n_users, "),
    (f"{SURVEY} n_bucket=3", "did you mean n_buckets?"),
    (f"{SURVEY} rate=0.1", "rate is not a parameter"),
    (f"{SURVEY} noise_std=1", "noise_std is not a parameter"),
    (f"{SURVEY} delta=0", "delta is given twice"),
    (f"{SURVEY} rounds=0", "rounds must be a whole number"),
    ("shuffled epsilon0=1 n_users=50 delta=0", "randomizer is missing for QUESTION shuffled: one of kary, "),
    ("shuffled randomizer=lapace epsilon0=1 n_users=5 delta=0", "did you mean laplace?"),
    ("shuffled randomizer=table table=1 n_users=5 delta=0", "table must be rows"),
    ("shuffled randomizer=kary n_buckets=1 epsilon0=1 n_users=5 delta=0", "n_buckets must be a whole number"),
    ("shuffled randomizer=kary n_buckets=nan epsilon0=1 n_users=5 delta=0", "n_buckets must be a whole number"),
    ("checkin randomizer=any epsilon0=1 n_users=5 delta=0", "rate is missing for QUESTION checkin"),
    ("checkin randomizer=any epsilon0=1 n_users=5 rate=2 delta=0", "rate must be 0, or a number in"),
    ("checkin protocol=sumed n_users=5 rate=1 delta=0", "did you mean summed?"),
    ("checkin protocol=summed n_users=5 rate=1 randomizer=any delta=0", "randomizer is not a parameter"),
    ("cloak n_users=50 epsilon=1 delta=1e-6", "error is missing for QUESTION cloak: a number above 0"),
    ("cloak n_users=50 modulus=1e6 scale=9 delta=1e-6", "n_messages is missing"),
    (f"{OWN} decay=2 delta=1e-6", "decay must be a number in (0, 1)"),
    (f"{OWN} decay=.9 colluding=99 delta=1e-6".replace(" colluding=10", ""), "colluding must be a whole number in"),
    (f"{OWN} rounding=flor delta=1e-6", "did you mean floor?"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "told"), REFUSED)
@pytest.mark.parametrize("question", by_name.QUESTIONS)
def test_what_is_no_request_is_refused_in_one_sentence(question: str, words: str, told: str) -> None:
    budget = ["epsilon=1"] if question == "calibrate" and words and "epsilon=" not in words else []
    done = typed(question, *words.split(), *budget)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert told.replace("QUESTION", question) in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (f"account {SURVEY} epsilon=1", "exactly one of epsilon and delta"),
        (f"account {SURVEY}".replace("delta=1e-6", ""), "exactly one of epsilon and delta"),
        (f"account {SURVEY} over=n_users", "over is not a parameter"),
        (f"calibrate {SURVEY}", "epsilon is missing for calibrate shuffled"),
        (f"calibrate {SURVEY} epsilon=1 over=n_user", "did you mean n_users?"),
        ("calibrate shuffled randomizer=any delta=1e-6 epsilon=1", "n_users is missing"),
        ("calibrate flame-topk dimension=9 kept=1 padded=5 randomizer=laplace epsilon0=1 epsilon=1 delta=1e-6"
         " over=n_users", "over must be epsilon0"),
    ],
)  # fmt: skip
def test_a_question_has_inputs_of_its_own(words: str, told: str) -> None:
    done = typed(*words.split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert told in done.stderr
