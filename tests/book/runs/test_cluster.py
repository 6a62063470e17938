"""What the scheduler's accounts say of a job that left no message, from a log of Snakemake and a made-up ``sacct``."""

from pathlib import Path

import pytest

from flamebook.runs import cluster, schedule

LOG = """\
Job 53af has been submitted with SLURM jobid 5 (log: /s/.snakemake/slurm_logs/group_runs_point/5.log).
[Mon Nov 23 18:29:15 2026]
    message: Error in group runs
    log: /s/.snakemake/slurm_logs/group_runs_point/5.log (check log file(s) for error details)
    jobs:
        rule point:
            jobid: 2
            output: points/one/receipt.json
        rule point:
            jobid: 4
            output: points/two/receipt.json
    [Mon Nov 23 18:29:15 2026]
    Error in rule point:
        jobid: 2
        output: points/one/receipt.json
[Mon Nov 23 18:29:16 2026]
Error in rule point:
    message: SLURM-job '7' failed, SLURM status is: 'TIMEOUT'. Detailed failure reason unavailable
    jobid: 3
    output: points/three/receipt.json
    log: /s/.snakemake/slurm_logs/rule_point/three/7.log (check log file(s) for error details)
    external_jobid: 7
[Mon Nov 23 18:29:17 2026]
Error in rule point:
    jobid: 6
    output: points/four/receipt.json
    log: /s/.snakemake/slurm_logs/rule_point/four/8.log (check log file(s) for error details)
[Mon Nov 23 18:29:18 2026]
Error in rule point:
    output: points/five/receipt.json
    log: /s/.snakemake/slurm_logs/rule_point/five/9.log (check log file(s) for error details)
[Mon Nov 23 18:29:19 2026]
Finished jobid: 5 (Rule: point)
"""
SACCT = """\
#!/bin/sh
case "$*" in
  *--jobs=5*) echo "CANCELLED by 1000|0:0" ;;
  *--jobs=7*) echo 'TIMEOUT|0:15' ;;
  *--jobs=9*) echo 'FAILED|0:9' ;;
  *--jobs=8*) echo 'FAILED|1:0' ;;
esac
"""
CANCELLED = "cancelled: the scheduler ended job 5 (CANCELLED)"


@pytest.fixture
def accounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "sacct"
    program.parent.mkdir()
    program.write_text(SACCT)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


@pytest.mark.usefixtures("accounts")
def test_a_job_that_the_scheduler_ended_is_told_from_a_run_that_failed(tmp_path: Path) -> None:
    timeout = "out of time: the scheduler ended job 7 (TIMEOUT)"
    killed = "killed: job 9 of the scheduler ended by signal 9, as happens where memory runs out"
    assert cluster.endings(LOG) == {"one": CANCELLED, "two": CANCELLED, "three": timeout, "five": killed}
    assert [cluster.status(words) for words in (timeout, killed)] == ["out of time", "killed"]
    # What a run said itself comes first, and what is there is not missing.
    log = tmp_path / "snakemake.log"
    log.write_text(LOG)
    (tmp_path / ".failed").mkdir()
    (tmp_path / ".failed" / "two.txt").write_text("cell 3 raised ValueError\n")
    found = schedule.faults(tmp_path, ["one", "two", "four"], log)
    assert found == {"one": f"{CANCELLED}\n", "two": "cell 3 raised ValueError\n", "four": ""}
    assert [cluster.status(words) for words in found.values()] == ["cancelled", "failed", "failed"]


def test_short_runs_share_a_job_and_what_was_asked_for_stands() -> None:
    assert cluster.words(["--forceall"], due=9, jobs=2) == ["--forceall"]
    sent = cluster.words(["--executor", "slurm", "--resources", "mem_mb=9000"], due=500, jobs=2)
    assert sent[:2] == ["--group-components", f"runs={cluster.GROUP}"]
    assert sent[-3:] == ["--resources", "run=1", "mem_mb=9000"]
    assert "runs=1" in cluster.words(["--executor=slurm"], due=3, jobs=50)
