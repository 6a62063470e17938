"""The command ``flamelib`` as it is typed, in this process: its exit status, and what stands on which stream."""

import contextlib
import io
import sys
from typing import NamedTuple
from unittest import mock

from flamelib import cli


class Done(NamedTuple):
    """What a process would leave."""

    returncode: int
    stdout: str
    stderr: str


def flamelib(*words: str, given: str = "") -> Done:
    """Run the command with these words, and this text on its input."""
    out, err, inward = io.StringIO(), io.StringIO(), io.TextIOWrapper(io.BytesIO(given.encode()))
    streams = mock.patch.object(sys, "stdin", inward), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with contextlib.ExitStack() as stack:
        for stream in streams:
            stack.enter_context(stream)
        status = cli.main(list(words))
    return Done(status, out.getvalue(), err.getvalue())
