"""The command as a stranger types it: exit statuses, what stands on which stream, processes where they matter."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from terminal import flamelib

from flamelib import cli

HOEFFDING = ["evaluate", "blanket:lem-hoeffding", "randomizer=laplace", "epsilon0=0.5", "n_users=1000"]


class TestEvaluate:
    def test_one_object_and_nothing_else(self) -> None:
        command = [sys.executable, "-m", "flamelib.cli", *HOEFFDING, "epsilon=0.1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("\n") == 1
        reply = json.loads(done.stdout, parse_constant=pytest.fail)
        assert set(reply) == {"id", "value", "gives", "adjacency", "rests_on", "inputs", "source"}
        assert reply["id"] == "blanket:lem-hoeffding"
        assert 0 < reply["value"] < 1

    def test_a_fault_is_a_traceback_and_status_1(self) -> None:
        program = (
            "import sys; from flamelib import cli; from flamelib.core.statements import states\n"
            "states('blanket', 'try', item='i', gives='exact', rests_on='proven')(lambda n_users: [][n_users])\n"
            "sys.exit(cli.main(['evaluate', 'blanket:try', 'n_users=5']))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert "Traceback" in done.stderr
        assert "IndexError" in done.stderr

    def test_a_batch_is_answered_in_order(self) -> None:
        good = {"id": "blanket:lem-5.1", "inputs": {"randomizer": "laplace", "epsilon0": 1}}
        bad = {"id": "blanket:lem-5.1", "inputs": {"randomizer": "laplace", "epsilon0": 0}}
        done = flamelib(
            "evaluate", "--stdin", given="".join(json.dumps(request) + "\n" for request in (good, bad, good))
        )
        replies = [json.loads(line) for line in done.stdout.splitlines()]
        assert ["refused" in reply for reply in replies] == [False, True, False]
        assert "epsilon0" in replies[1]["refused"]
        assert (done.returncode, done.stderr) == (1, "")
        assert flamelib("evaluate", "--stdin", given=json.dumps(good)).returncode == 0
        assert flamelib("evaluate", "--stdin").stdout == ""

    def test_a_batch_answers_each_line_before_the_next_is_sent(self) -> None:
        request = '{"id": "blanket:lem-5.1", "inputs": {"randomizer": "laplace", "epsilon0": 1}}\n'
        command = [sys.executable, "-m", "flamelib.cli", "evaluate", "--stdin"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for _ in range(3):
                process.stdin.write(request)
                process.stdin.flush()
                assert "value" in json.loads(process.stdout.readline())
            process.stdin.close()
            assert process.wait(timeout=30) == 0

    def test_the_list_names_every_id(self) -> None:
        done = flamelib("evaluate", "--list")
        assert done.returncode == 0
        for key in ("blanket:thm-3.1", "shuffle:exact-binary", "clones:2021-closed", "flame:bennett-withdrawn"):
            assert key in done.stdout

    def test_a_reader_who_leaves_is_no_fault(self) -> None:
        command = f"{sys.executable} -m flamelib.cli evaluate --list | head -1"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "evaluate"), (["--help"], "sweep"), (["evaluate", "-h"], "--list"), (["compare", "--help"], "n_users=1e4"),
        (["run", "--help"], "-p"), (["sweep", "--help"], "--executor slurm"), (["record", "--help"], "--again"),
        (["data", "fetch", "--help"], "flamelib data fetch"), (["--version"], "flamelib"),
    ],
)  # fmt: skip
def test_help_everywhere(words: list[str], told: str) -> None:
    done = flamelib(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert told in done.stdout
    assert words == [] or words == ["--version"] or "xample" in done.stdout


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["evalute", "blanket:lem-5.1"], "evaluate"),
        (["evaluate", "blanket:lem-5.1", "randomizer=kary", "epsilon=1", "n_buckets=3"], "epsilon0"),
        (["compare", "n_users=100", "epsilon=1", "mechanism=blankets"], "blanket"),
        (["run", "crosing"], "crossing"),
        (["run", "crossing", "-p", "delta0=1e-6"], "delta"),
        (["check", "flame:thm-3/always-report"], "flame:thm-3/always-reported"),
        (["record", "legder"], "ledger"),
        (["data", "verify", "mnits"], "mnist"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(
    words: list[str], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert f": did you mean {near}?" in told.err


def test_json_may_be_asked_for_anywhere_after_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*HOEFFDING, "epsilon=0.1"]
    assert cli.main(words) == 0
    plain = capsys.readouterr().out
    for place in (1, 6):
        assert cli.main([*words[:place], "--json", *words[place:]]) == 0
        assert capsys.readouterr().out == plain
    assert cli.main(["compare", "--json", "n_users=1e3", "epsilon0=1e-9", "mechanism=local"]) == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["bogus"], "bogus"),
        (["evaluate"], "id"),
        ([*HOEFFDING, "epsilon=-1"], "epsilon must be a number of at least 0"),
        ([*HOEFFDING, "delta=1e-6", "delta=1e-6"], "delta is given twice"),
        ([*HOEFFDING, "delta"], "delta"),
        (["evaluate", "--bogus"], "--bogus"),
        (["evaluate", "--stdin", "blanket:lem-5.1"], "--stdin"),
        (["evaluate", "--list", "nothing"], "prefix"),
        (["compare"], "n_users is missing"),
        (["compare", "n_users=1e3"], "exactly one of epsilon and epsilon0"),
        (["compare", "n_users=1e3", "epsilon0=0.5,1"], "epsilon0 must be one number"),
        (["run"], "NOTEBOOK"),
        (["run", "bogus"], "notebook"),
        (["sweep", "bogus", "--jobs", "many"], "--jobs"),
        (["record", "bogus"], "name must be one of bench, benchmarks, beside, certified, "),
        (["record", "ledger/bogus"], "part must be one of blanket, flame, "),
        (["data"], "command"),
        (["data", "fetch", "bogus"], "mnist"),
    ],
)
def test_usage_faults_are_refusals(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = flamelib(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert told in done.stderr
    assert list(tmp_path.iterdir()) == []


class TestData:
    def test_list_tells_sizes_and_licences(self) -> None:
        done = flamelib("data", "list")
        assert done.returncode == 0
        assert "697,932" in done.stdout
        assert "licence" in done.stdout

    def test_verify_tells_missing_and_corrupt_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "mnist").mkdir()
        (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(b"cut")
        monkeypatch.setenv("FLAMELIB_DATA", str(tmp_path))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        done = flamelib("data", "verify", "mnist")
        assert done.returncode == 1
        assert "corrupt  mnist/t10k-labels-idx1-ubyte.gz" in done.stdout
        assert "missing  mnist/train-images-idx3-ubyte.gz" in done.stdout

    def test_fetch_without_a_network_says_so(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("FLAMELIB_DATA", raising=False)
        monkeypatch.setenv("FLAMELIB_OFFLINE", "1")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        done = flamelib("data", "fetch", "mnist")
        assert (done.returncode, done.stdout) == (1, "")
        assert "mnist" in done.stderr
        assert "Traceback" not in done.stderr


class TestCompare:
    def test_one_object_a_mechanism(self) -> None:
        done = flamelib("compare", "n_users=1e3", "epsilon0=1e-9")
        replies = [json.loads(line, parse_constant=pytest.fail) for line in done.stdout.splitlines()]
        assert (done.returncode, done.stderr) == (0, "")
        assert replies[0]["mechanism"] == "local"
        assert {"epsilon", "error", "trusted"} < set(replies[0])
        assert [one for one in replies if "reason" in one]

    def test_a_terminal_is_told_what_is_waited_for(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        assert cli.main(["compare", "n_users=1e3", "epsilon0=1e-9"]) == 0
        told = capsys.readouterr()
        shown = told.err.split("\r\x1b[K")
        assert shown[:2] == ["0 of 14 answered, waiting for local", "1 of 14 answered, waiting for blanket"]
        assert shown[-1] == "", "nothing of it stays"
        assert len(shown) == len(told.out.splitlines()) + 1 == 15
