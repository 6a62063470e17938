"""The command as a stranger types it: exit statuses, what stands on which stream, processes where they matter."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from terminal import at_a_terminal, flamelib

from flamelib import answers, cli

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
        (["account", "--help"], "flame-topk"), (["bounds", "shuffled", "-h"], "[0.7,0.3]"),
        (["calibrate", "-h"], "over="), (["completion", "--help"], ".bashrc"),
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
        (["acount", "shuffled"], "account"),
        (["bounds", "flame-topp"], "flame-topk"),
        (["account", "checkin", "rat=0.1", "randomizer=any", "epsilon0=1", "n_users=9", "delta=0"], "rate"),
        (["evaluate", "shuffle:any", "side=uper", "epsilon0=1", "n_users=9", "delta=0"], "upper"),
        (["deployment", "-", "n_user=3"], "n_users"),
        (["completion", "bsh"], "bash"),
        (["evaluate", "blanket:lem-5.1", "randomizer=kary", "epsilon=1", "n_buckets=3"], "epsilon0"),
        (["compare", "n_users=100", "epsilon=1", "mechanism=blankets"], "blanket"),
        (["run", "crosing"], "crossing"),
        (["run", "crossing", "-p", "delta0=1e-6"], "delta"),
        (["check", "flame:thm-3/always-report"], "flame:thm-3/always-reported"),
        (["record", "legder"], "ledger"),
        (["data", "verify", "mnits"], "mnist"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(words: list[str], near: str) -> None:
    done = flamelib(*words, given='{"unit": "one report"}')
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f": did you mean {near}?" in done.stderr


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


SURVEY = ["shuffled", "randomizer=kary", "epsilon0=2", "n_buckets=10", "n_users=1e5", "delta=1e-8"]
SUMMED = ["checkin", "protocol=summed", "rate=0.1", "n_users=1000", "delta=1e-6"]
CARD = """\
mechanism: kary
epsilon0: 2
n_buckets: 10
n_users: 1000
delta: 1e-8
trust: shuffler
unit: one answer
rounds: 1
"""


def test_the_example_of_the_contract() -> None:
    done = flamelib("account", *SURVEY, "--json")
    assert done[::2] == (0, "")
    reply = json.loads(done.stdout)
    assert set(reply) == {"epsilon", "delta", "adjacency", "rests_on", "assumes"}
    assert 0.0307 < reply["epsilon"] < 0.0308


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ([*HOEFFDING, "epsilon=0.1"], ""),
        (["evaluate", "cloak:plan", "n_users=1000", "epsilon=1", "delta=1e-6", "error=1.5"], ""),
        (["compare", "n_users=1e3", "epsilon0=1e-9"], ""),
        (["deployment", "-"], CARD),
        (["account", *SURVEY], ""),
        (["bounds", *SURVEY], ""),
        (["calibrate", *SUMMED, "epsilon=0.1"], ""),
    ],
)
def test_a_terminal_is_for_people_and_json_for_those_who_ask(words: list[str], given: str) -> None:
    piped, shown = flamelib(*words, given=given), at_a_terminal(*words, given=given)
    assert [done[::2] for done in (piped, shown)] == [(0, "")] * 2
    for line in piped.stdout.splitlines():
        assert answers.dumps(json.loads(line)) == line
    if words[0] == "evaluate":
        assert piped.stdout == answers.dumps(answers.answer(words[1], answers.assignments(words[2:]))) + "\n"
    with pytest.raises(json.JSONDecodeError):
        json.loads(shown.stdout.splitlines()[0])
    for place in (1, len(words)):
        assert at_a_terminal(*words[:place], "--json", *words[place:], given=given) == piped
        assert flamelib(*words[:place], "--json", *words[place:], given=given) == piped


class TestPeople:
    def test_one_sentence_of_a_statement_rounded_to_its_safe_side(self) -> None:
        upper = [*HOEFFDING, "epsilon=0.1"]
        shown = at_a_terminal(*upper).stdout
        assert shown.startswith("delta 8.673e-10, an upper bound, replace-one; proven (blanket:lem-hoeffding: Balle, ")
        assert json.loads(flamelib(*upper).stdout)["value"] <= 8.673e-10
        lower = ["evaluate", "shuffle:lower", "randomizer=laplace", "epsilon0=0.5", "n_users=1000", "delta=1e-6"]
        shown = at_a_terminal(*lower).stdout
        assert shown.startswith("epsilon 0.05257, a lower bound, replace-one; proven, assuming IEEE doubles, ")
        assert json.loads(flamelib(*lower).stdout)["value"] >= 0.05257
        assert shown.count("\n") == 1

    def test_what_is_no_bound_keeps_its_digits(self) -> None:
        printed = ["evaluate", "flame:thm-4", "kept=157", "epsilon=0.0022", "delta=1e-8"]
        value = json.loads(flamelib(*printed).stdout)["value"]
        told = (
            f"epsilon = {value['epsilon']}, delta = {value['delta']}, a value, no guarantee, replace-one (flame:thm-4: "
        )
        assert at_a_terminal(*printed).stdout.startswith(told)
        mass = at_a_terminal("evaluate", "blanket:lem-5.1", "randomizer=kary", "epsilon0=1", "n_buckets=10").stdout
        assert mass.startswith("0.8533674259065845, exact; proven (")
        plans = at_a_terminal("evaluate", "cloak:plan", "n_users=1000", "epsilon=1", "delta=1e-6", "error=1.5").stdout
        assert plans.splitlines()[1].startswith("  theorem = cloak:own-6, adjacency = replace-one, n_messages = 6, ")

    def test_a_guarantee_in_plain_words(self) -> None:
        first, second, third = at_a_terminal("account", *SURVEY).stdout.splitlines()
        assert first == "(0.03074, 1e-08)-DP, replace-one; proven"
        assert second == "Replacing one user's data makes any event at most 1.032 times as probable, plus 1e-08."
        assert third.startswith("Assumed: IEEE doubles, ")
        large = at_a_terminal("account", "shuffled", "randomizer=any", "epsilon0=600", "n_users=2", "delta=0").stdout
        assert "any event at most 3.774e+260 times" in large
        noise = ["participation", "participation_rate=1", "record_rate=1", "n_records=1", "clip_norm=1", "noise_std=1"]
        assert "\nAdding or removing one record makes " in at_a_terminal("account", *noise, "delta=1e-6").stdout
        shares = ["cloak", "n_users=100", "modulus=1e9", "scale=100", "n_messages=3", "delta=1e-60"]
        assert "\nThis promises nothing.\n" in at_a_terminal("account", *shares).stdout

    def test_both_ends_and_what_is_sought(self) -> None:
        first, second, _ = at_a_terminal("bounds", *SUMMED, "noise_std=1", "rounds=100").stdout.splitlines()
        told = json.loads(flamelib("bounds", *SUMMED, "noise_std=1", "rounds=100").stdout)
        assert first == "epsilon between 0.8758 and 0.9107, replace-one; proven"
        assert second == "Some neighbouring data sets have epsilon 0.8758 or more; none have more than 0.9107."
        assert 0.8758 <= told["lower"] <= told["upper"] <= 0.9107
        shown = at_a_terminal("calibrate", *SUMMED, "epsilon=0.1").stdout
        assert shown.startswith("noise_std = 1.01162: (0.09998, 1e-06)-DP, replace-one; proven\nReplacing one ")

    def test_mechanisms_by_their_error_with_those_who_must_be_trusted_and_reasons_last(self) -> None:
        lines = at_a_terminal("compare", "n_users=1e3", "epsilon0=1").stdout.splitlines()
        rows = [json.loads(line) for line in flamelib("compare", "n_users=1e3", "epsilon0=1").stdout.splitlines()]
        found = sorted((row for row in rows if "error" in row), key=lambda row: row["error"])
        reasons = [row for row in rows if "reason" in row]
        assert lines[0].split() == ["mechanism", "error", "epsilon", "bits", "who", "must", "be", "trusted"]
        assert len(lines) == 1 + len(found) + len(reasons)
        for line, row in zip(lines[1:], found, strict=False):
            assert line.startswith(row["mechanism"])
            assert line.endswith(row["trusted"])
        for line, row in zip(lines[1 + len(found) :], reasons, strict=True):
            assert line.startswith(row["mechanism"])
            assert line.endswith(f"no answer: {row['reason']}")

    def test_budgets_that_cannot_be_compared_say_so(self) -> None:
        words = ["compare", "n_users=1e3", "epsilon=1", "mechanism=random participation"]
        _, row, note = at_a_terminal(*words).stdout.splitlines()
        assert row.split("  ")[0] == "random participation"
        assert note.startswith("random participation  add-remove; proven; hides that one record is there at all")

    def test_a_deployment_with_its_range_and_what_it_leaves_open(self) -> None:
        lines = at_a_terminal("deployment", "-", "name=Poll", "epsilon=1.5", given=CARD).stdout.splitlines()
        told = json.loads(flamelib("deployment", "-", "name=Poll", "epsilon=1.5", given=CARD).stdout)
        ends, low, high = lines[0].partition(": epsilon ")[0], *lines[0].split()[2:5:2]
        assert ends == "Poll"
        assert told["lower"] - 1e-3 < float(low) <= told["lower"] < told["upper"] <= float(high) < told["upper"] + 1e-3
        assert lines[1] == "protects: one answer; adjacency: replace-one"
        assert lines[4] == "trusted: shuffler; without that trust epsilon is at most 2 at delta 0"
        assert lines[5:] == ["published: epsilon 1.5", *(f"left open: {question}" for question in told["unstated"])]
        stated = '{"mechanism": "stated", "epsilon": 2, "trust": "curator", "unit": "a person", "rounds": 1}'
        shown = at_a_terminal("deployment", "-", given=stated).stdout
        assert shown.startswith("deployment: epsilon at most 2 at delta 0\n")
        bare = at_a_terminal("deployment", "-", given="mechanism: kary\n")
        assert (bare.returncode, bare.stdout) == (2, "")
        assert "unit is unstated: whose data does the guarantee protect" in bare.stderr

    def test_a_description_that_the_book_reads_is_answered_alike(self, tmp_path: Path) -> None:
        card = tmp_path / "card.yaml"
        card.write_text(CARD.replace("mechanism: kary", "mechanism: 'kary'"))  # in quotes: more than plain lines
        shown = at_a_terminal("deployment", str(card))
        assert shown[::2] == (0, "")
        assert shown.stdout.startswith("deployment: epsilon ")
        assert at_a_terminal("deployment", str(card), "--json") == flamelib("deployment", str(card))

    def test_a_batch_is_for_programs(self) -> None:
        request = '{"id": "blanket:lem-5.1", "inputs": {"randomizer": "laplace", "epsilon0": 1}}'
        assert at_a_terminal("evaluate", "--stdin", given=request) == flamelib("evaluate", "--stdin", given=request)

    def test_lines_keep_to_the_screen_and_names_stay_whole(self) -> None:
        shown = at_a_terminal(*HOEFFDING, "epsilon=0.1", columns=40).stdout.splitlines()
        assert max(map(len, shown)) <= 40
        assert all(line.startswith("    ") for line in shown[1:])
        assert "blanket:lem-hoeffding" in " ".join(shown)
