"""Workers of a pool end with the process that shares work out to them."""

import subprocess
import sys
import time

import psutil

WORK = """\
import os, time
from flamelib.core import workers
if __name__ == "__main__":
    with workers.pool(2) as pool:
        print(*pool.map(abs, [-1, -2]), flush=True)
        pool.submit(time.sleep, 600).result()
"""


def test_they_do_where_it_is_killed() -> None:
    process = subprocess.Popen([sys.executable, "-c", WORK], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "1 2\n"
    below = psutil.Process(process.pid).children()
    assert len(below) >= 2
    process.kill()
    process.communicate()
    until = time.monotonic() + 600
    while any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in below):
        assert time.monotonic() < until
        time.sleep(0.1)
