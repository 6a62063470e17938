"""Completion in a shell: what the command offers, and what bash makes of it."""

import os
import subprocess
import sys

import pytest
from terminal import flamelib

from flamelib import completion

# The function of bash is called with what bash sets before it calls it; the command that it asks is the one under test.
BASH = """
flamelib() { "$PYTHON" -m flamelib.cli "$@"; }
eval "$(flamelib completion bash)"
complete -p flamelib
for COMP_LINE in "$@"; do
    COMP_POINT=${#COMP_LINE} COMPREPLY=()
    _flamelib
    printf '%s|' "${COMPREPLY[@]}"
    echo
done
"""


def offered(*words: str) -> list[str]:
    done = flamelib("completion", "--words", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "some", "others"),
    [
        ([""], ["account", "evaluate", "completion", "run", "data"], ["blanket"]),
        (["c"], ["calibrate", "compare", "completion", "check"], ["account"]),
        (["account", ""], ["shuffled", "flame-topk", "cloak"], ["evaluate"]),
        (["bounds", "flame-"], ["flame-simple", "flame-double", "flame-topk"], ["cloak"]),
        (["evaluate", "cloak:own"], ["cloak:own-1", "cloak:own-6"], ["cloak:plan"]),
        (["evaluate", "--json", "clones:2021", "n"], ["n_users="], ["epsilon0="]),
        (["evaluate", "blanket:lem-hoeffding", "randomizer=kary", ""], ["n_buckets=", "delta="], ["randomizer="]),
        (["evaluate", "blanket:lem-hoeffding", "randomizer="], ["randomizer=kary"], ["randomizer=gaussian"]),
        (["evaluate", "flame:account", "protocol=t"], ["protocol=topk"], ["protocol=simple"]),
        (["calibrate", "shuffled", "randomizer=gaussian", ""], ["noise_std=", "over=", "rounds="], ["epsilon0="]),
        (["calibrate", "shuffled", "over="], ["over=n_users"], ["over="]),
        (["checkin", "protocol=summed", ""], [], ["noise_std="]),
        (["account", "checkin", "protocol=summed", ""], ["noise_std=", "rate="], ["randomizer="]),
        (["compare", "n"], ["n_users="], ["dimension="]),
        (["completion", ""], ["bash", "zsh", "fish"], ["account"]),
        (["deployment", ""], [], ["account"]),
        (["evaluate", "bogus:id", ""], [], ["epsilon="]),
        (["account", "bogus", ""], [], ["epsilon="]),
        (["account", "shuffled", "randomizer=bogus", ""], [], ["epsilon="]),
        ([], ["account"], []),
    ],
)
def test_what_the_word_may_become(words: list[str], some: list[str], others: list[str]) -> None:
    found = offered(*words)
    assert set(some) <= set(found)
    assert not set(others) & set(found)
    assert all(one.startswith(words[-1] if words else "") for one in found)
    assert some or not found


def test_bash_completes_a_line() -> None:
    """An id and a parameter are cut where bash cuts its words; where nothing is offered, bash offers files."""
    lines = ["flamelib ev", "flamelib evaluate blanket:lem-h", "flamelib account shuffled  randomizer=lap",
             "flamelib account flame-topk n_users=10 kep", "flamelib deployment my"]  # fmt: skip
    command = ["bash", "-c", BASH, "bash", *lines]
    done = subprocess.run(
        command, env=os.environ | {"PYTHON": sys.executable}, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    first, *rest = done.stdout.splitlines()
    assert first == "complete -o default -F _flamelib flamelib"
    assert rest == ["evaluate|", "lem-hoeffding|", "laplace|", "kept=|", "|"]


@pytest.mark.parametrize("shell", completion.SCRIPTS)
def test_every_script_asks_the_command(shell: str) -> None:
    done = flamelib("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert "completion --words" in done.stdout


@pytest.mark.parametrize("words", [[], ["csh"], ["bash", "zsh"]])
def test_other_shells_are_refused(words: list[str]) -> None:
    done = flamelib("completion", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("shell must be one of bash, zsh, fish, got ")
