"""Every registered statement at a middle and at an extreme point of its domains: 3 s of processor time, 1 GB at most.

``python -m pytest -o addopts= -s -q tests/speed/test_every_statement.py`` prints the table; it is no part of the test
suite.  The points are drawn from the domains with a seed for each statement, so that a new one turns up by itself.
"""

import sys
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
import harness

from flamelib import answers
from flamelib.core.vocabulary import DomainError

SECONDS, BYTES = 3.0, 2**30
TRIES = 40  # draws, of which the first that is not refused is asked


def point(key: str, wide: bool) -> tuple[harness.Inputs, float]:
    """Inputs that are answered, and how long it took."""
    generator = np.random.default_rng([zlib.crc32(key.encode()), wide])
    for _ in range(TRIES):
        inputs = harness.drawn(answers.statement(key), generator, {}, wide)
        try:
            return inputs, harness.ask(key, inputs).seconds
        except DomainError:
            continue
        except harness.TooLongError:
            return inputs, harness.LIMIT
    return {}, 0.0


@pytest.mark.parametrize("wide", [False, True], ids=["middle", "extreme"])
@pytest.mark.parametrize("key", answers.load_all())
def test_time_and_memory(key: str, wide: bool) -> None:
    inputs, seconds = point(key, wide)
    tracemalloc.start()
    if inputs and seconds < harness.LIMIT:
        harness.ask(key, inputs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    given = " ".join(f"{name}={value}" for name, value in inputs.items()) or f"refused {TRIES} times"
    print(f"{key:32} {seconds:7.3f} s {peak / 1e6:7.1f} MB  {given}")
    assert seconds <= SECONDS
    assert peak <= BYTES
