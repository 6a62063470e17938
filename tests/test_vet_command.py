"""``flamelib vet`` as a stranger types it: what stands on which stream, and exit statuses."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from terminal import Done, flamelib

from flamelib import cli
from flamelib.core.profiles import BUCKETED
from flamelib.uses import vetting
from flamelib.vet_command import program

SOURCE = """
import math
print("a module that talks")

def wrong(epsilon0, n_users, delta):
    print("a function that talks")
    return epsilon0 / math.sqrt(n_users)

def safe(epsilon0, n_users, delta):
    return epsilon0

def nan(epsilon0, n_users, delta):
    return math.nan

def rounds(epsilon0, n_users, delta, rounds):
    return 0.9 * rounds * epsilon0

def two(epsilon0, n_users):
    return epsilon0
"""
INPUTS = "{epsilon0} {n_users} {delta}"


@pytest.fixture(autouse=True)
def one_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """No clock decides, and every test is short."""
    search = vetting.vet
    monkeypatch.setattr(vetting, "vet", lambda *words, seconds, seed: search(*words, seconds=None, probes=1, seed=seed))


@pytest.fixture
def accountant(tmp_path: Path) -> str:
    path = tmp_path / "accountant.py"
    path.write_text(SOURCE)
    return str(path)


def replied(done: Done) -> dict[str, Any]:
    assert done.stdout.count("\n") == 1, done
    return json.loads(done.stdout, parse_constant=pytest.fail)


class TestFunction:
    def test_a_counterexample_is_status_1_and_what_a_function_prints_is_elsewhere(self, accountant: str) -> None:
        done = flamelib("vet", f"{accountant}:wrong", "--json")
        assert done.returncode == 1
        reply = replied(done)
        assert list(reply) == ["inputs", "claimed", "at_least", "ratio", "command"]
        assert list(reply["inputs"]) == ["epsilon0", "n_users", "delta"]
        assert reply["claimed"] < reply["at_least"]
        assert "a module that talks\na function that talks\n" in done.stderr

    def test_nothing_found_is_status_0(self, accountant: str) -> None:
        done = flamelib("vet", f"{accountant}:safe", "--seed=3", "--randomizer=kary:10")
        assert done.returncode == 0
        reply = replied(done)
        assert list(reply) == ["found", "tried", "range", "largest_ratio"]
        assert reply["found"] == 0
        assert reply["tried"] >= 1
        assert 0 < reply["largest_ratio"] <= 1
        assert set(reply["range"]) == {"epsilon0", "n_users", "delta"}

    def test_an_answer_that_is_no_epsilon_is_status_1(self, accountant: str) -> None:
        done = flamelib("vet", f"{accountant}:nan")
        assert (done.returncode, replied(done)["claimed"]) == (1, "nan")

    def test_rounds_are_passed(self, accountant: str) -> None:
        done = flamelib("vet", f"{accountant}:rounds")
        assert (done.returncode, list(replied(done)["inputs"])[-1]) == (1, "rounds")

    def test_a_person_reads_sentences(
        self, accountant: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        assert cli.main(["vet", f"{accountant}:wrong"]) == 1
        assert capsys.readouterr().out.startswith("Too small: 0.000379473 at epsilon0 = 12.0, n_users = 10000")
        assert cli.main(["vet", f"{accountant}:safe"]) == 0
        assert capsys.readouterr().out.startswith("No counterexample among 1 inputs, epsilon0 from ")
        assert cli.main(["vet", f"{accountant}:safe", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["found"] == 0


class TestProgram:
    def test_it_is_given_the_inputs_and_its_number_is_the_claim(self) -> None:
        claim = program('sh -c "expr $1 + $2" name {n_users} {delta} {epsilon0}', 60)
        assert claim(0.5, 40, 2) == 42
        done = flamelib("vet", "--command", f'sh -c "echo 0.25" {INPUTS}')
        assert (done.returncode, replied(done)["claimed"]) == (1, 0.25)

    def test_a_word_is_no_number(self) -> None:
        done = flamelib("vet", "--command", f"echo {INPUTS}")
        assert (done.returncode, replied(done)["fault"]) == (1, "not a number")

    @pytest.mark.parametrize(("start", "told"), [("false", "status 1"), ("flamelib-no-such", "FileNotFoundError")])
    def test_one_that_fails_everywhere_cannot_be_asked(self, start: str, told: str) -> None:
        done = flamelib("vet", "--command", f"{start} {INPUTS}")
        assert (done.returncode, done.stdout) == (2, "")
        assert told in done.stderr
        assert "everywhere" in done.stderr

    def test_one_that_does_not_end_is_stopped(self) -> None:
        with pytest.raises(subprocess.TimeoutExpired):
            program(f'sh -c "sleep 60" {INPUTS}', 0.05)(1.0, 2, 0.1)


class TestClaims:
    def judged(self, tmp_path: Path, *lines: str) -> Done:
        (tmp_path / "printed.csv").write_text("\n".join(lines) + "\n")
        return flamelib("vet", "--claims", str(tmp_path / "printed.csv"))

    def test_every_row_is_judged_and_the_worst_is_told(self, tmp_path: Path) -> None:
        rows = ("8,1e6,1e-6,0.0297,,,", "2,1e5,1e-8,0.031,1,kary,10", "1,1e4,1e-6,1.5,10,laplace,", "1,10,0.1,inf,,,")
        done = self.judged(tmp_path, "epsilon0,n_users,delta,epsilon,rounds,randomizer,n_buckets", *rows)
        assert done.returncode == 1
        reply = replied(done)
        assert reply["inputs"] == {"epsilon0": 8.0, "n_users": 10**6, "delta": 1e-6, "rounds": 1}
        assert (reply["claimed"], round(reply["at_least"], 4)) == (0.0297, 0.3036)
        rest = self.judged(tmp_path, "epsilon0,n_users,delta,epsilon,rounds,randomizer,n_buckets", *rows[1:])
        assert (rest.returncode, replied(rest)["tried"]) == (0, 3)

    def test_a_row_is_judged_for_its_own_randomizer(self, tmp_path: Path) -> None:
        header, row = "epsilon0,n_users,delta,epsilon,randomizer", "8,1e6,1e-6,0.25,"
        assert self.judged(tmp_path, header, row + "laplace").returncode == 0
        assert self.judged(tmp_path, header, row + "kary:10").returncode == 1
        assert self.judged(tmp_path, header, row).returncode == 1

    def test_the_command_has_every_digit(self, tmp_path: Path) -> None:
        done = self.judged(tmp_path, "epsilon0,n_users,delta,epsilon", "1.2345678901234567,30,1.2345678901234567e-2,0")
        reply = replied(done)
        assert reply["ratio"] == "inf"
        assert replied(flamelib(*reply["command"].split()[1:]))["value"] == reply["at_least"]

    def test_a_claim_that_is_no_epsilon_is_a_fault(self, tmp_path: Path) -> None:
        done = self.judged(tmp_path, "epsilon0,n_users,delta,epsilon", "1,10,0.1,nan")
        assert (done.returncode, replied(done)["fault"]) == (1, "not a number")

    @pytest.mark.parametrize(
        ("lines", "told"),
        [
            (["epsilon0,n_users,delta", "1,10,0.1"], "epsilon is missing"),
            (["epsilon0,n_users,delta,epsilon,n_user", "1,10,0.1,1,2"], "did you mean n_users?"),
            (["epsilon0,n_users,delta,epsilon", "1,10,0.1,2", "1,1,0.1,2"], "line 3 of"),
            (["epsilon0,n_users,delta,epsilon", "1,10"], "delta must be a number in [0, 1], got ''"),
            (["epsilon0,n_users,delta,epsilon,randomizer", "1,10,.1,1,kary"], "line 2 of"),
            (["epsilon0,n_users,delta,epsilon"], "must have a row"),
            ([], "epsilon0 is missing"),
        ],
    )
    def test_a_table_that_cannot_be_read_is_refused(self, tmp_path: Path, lines: list[str], told: str) -> None:
        done = self.judged(tmp_path, *lines)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert told in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "claim must be given once"),
        (["nothing.py:f"], "FILE.py:FUNCTION"),
        (["{file}"], "FILE.py:FUNCTION"),
        (["{file}:wrnog"], "did you mean wrong?"),
        (["{file}:math"], "claim must be a function"),
        (["{file}:two"], "takes 2 positional arguments"),
        (["{file}:safe", "--claims", "x.csv"], "claim must be given once"),
        (["{file}:safe", "--second", "5"], "did you mean seconds?"),
        (["{file}:safe", "--seconds", "-1"], "seconds must be a number above 0"),
        (["{file}:safe", "--seed"], "seed must be"),
        (["{file}:safe", "--randomizer", "gaussian"], "randomizer must be one of any, laplace, kary:N"),
        (["--command", "echo {epsilon0}"], "{delta}"),
        (["--claims", "no.csv"], "no.csv"),
    ],
)
def test_usage_faults_are_refusals_of_one_sentence(
    words: list[str], told: str, accountant: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    done = flamelib("vet", *(word.replace("{file}", accountant) for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr.splitlines()[-1]


def test_a_file_that_cannot_be_imported_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module_at_all\n")
    done = flamelib("vet", f"{tmp_path}/broken.py:f")
    assert (done.returncode, "no_such_module_at_all" in done.stderr) == (2, True)


def test_help_names_every_option() -> None:
    done = flamelib("vet", "--help")
    assert done.returncode == 0
    assert all(f"--{name}" in done.stdout for name in ("command", "claims", "randomizer", "seconds", "seed", "json"))
    assert all(kind in done.stdout for kind in BUCKETED)
    assert "Examples:\n" in done.stdout
