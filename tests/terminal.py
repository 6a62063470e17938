"""The command ``flamelib`` as it is typed, in this process: its exit status, and what stands on which stream."""

import contextlib
import io
import os
import pty
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TextIO
from unittest import mock

from flamelib import cli


class Done(NamedTuple):
    """What a process would leave."""

    returncode: int
    stdout: str
    stderr: str


def flamelib(*words: str, given: str = "") -> Done:
    """Run the command with these words, and this text on its input."""
    out = io.StringIO()
    status, err = _run(words, given, out)
    return Done(status, out.getvalue(), err)


def at_a_terminal(*words: str, given: str = "", columns: int = 1000) -> Done:
    """The same where standard output is a pseudo-terminal of so many columns."""
    near, far = pty.openpty()
    with ThreadPoolExecutor() as reader, mock.patch.dict(os.environ, {"COLUMNS": str(columns)}):
        shown = reader.submit(_read, near)  # beside it: a terminal that nobody reads holds the program up
        with open(far, "w", encoding="utf-8") as screen:
            status, err = _run(words, given, screen)
        return Done(status, shown.result(), err)


def _run(words: tuple[str, ...], given: str, out: TextIO) -> tuple[int, str]:
    err, inward = io.StringIO(), io.TextIOWrapper(io.BytesIO(given.encode()))
    streams = mock.patch.object(sys, "stdin", inward), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with contextlib.ExitStack() as stack:
        for stream in streams:
            stack.enter_context(stream)
        status = cli.main(list(words))
    return status, err.getvalue()


def _read(near: int) -> str:
    text = b""
    with open(near, "rb", buffering=0) as screen, contextlib.suppress(OSError):  # with which the other end closes
        while more := screen.read(4096):
            text += more
    return text.decode().replace("\r\n", "\n")
