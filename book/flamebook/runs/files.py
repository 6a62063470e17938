"""Files and folders that appear whole or not at all, and folders that one process at a time may use."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from flamelib.core.vocabulary import DomainError

ROOM = 2**20  # bytes that a disk must have to begin with: one run leaves about as much


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A hidden file beside ``path`` to fill; it takes the path's place at the end, or vanishes."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all, its folder made if need be; refuses where the system does."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise unwritable(path.parent, fault) from None


def make_room(folder: Path, size: int = ROOM) -> None:
    """Make a folder, and see that so many bytes can be written into it; refuses where the system does."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(size))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as fault:
        raise unwritable(folder, fault) from None


def put_in_place(made: Path, folder: Path) -> None:
    """Rename a finished folder to its name; what had the name before is gone only when the new one stands there."""
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    made.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def held(folder: Path, busy: Callable[[], None]) -> Iterator[IO[str]]:
    """Hold a folder's lock; where somebody else does, ``busy`` is called, and unless it raises, waited.

    The system frees the lock when its holders die, however that happens: a child that is given the file holds it too.
    """
    with (folder / ".lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            busy()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def unwritable(folder: Path, fault: OSError) -> DomainError:
    """The refusal of a folder that the system does not let us write."""
    return DomainError(f"output must be a folder that can be written, got {str(folder)!r} ({fault.strerror})")
