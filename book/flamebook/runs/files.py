"""Files and folders that appear whole or not at all, and folders that one process at a time may use."""

import errno
import fcntl
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from flamebook.runs import tied
from flamelib.core.vocabulary import DomainError

ROOM = 2**20  # bytes that a disk must have to begin with: one run leaves about as much
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # what a system says of a disk, or a share of one, that is full
PATIENCE = 10.0  # seconds in which what a killed process started has ended as well
_STEP = 0.1  # seconds between two tries


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
def held(folder: Path, busy: Callable[[str], None]) -> Iterator[IO[str]]:
    """Hold a folder's lock; where somebody else does, ``busy`` is told who, and unless it raises, waited.

    The system frees the lock when its holders die, however that happens: a child that is given the file holds it too.
    Where the process that took it is dead and its children are about to end, that is waited for.
    """
    with (folder / ".lock").open("a+", encoding="utf-8") as lock:
        if not _taken(lock):
            busy(_holder(lock)[0])
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(f"{os.getpid()} {platform.node()}\n")
        lock.flush()
        yield lock


def _taken(lock: IO[str]) -> bool:
    """Take a lock that nobody holds, or only those that a dead process has left."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if _holder(lock)[1] or time.monotonic() > until:
                return False
            time.sleep(_STEP)
        else:
            return True


def _holder(lock: IO[str]) -> tuple[str, bool]:
    """Who took a lock, in words, and whether that process is alive, as far as it can be told from here."""
    lock.seek(0)
    pid, _, machine = lock.read().strip().partition(" ")
    here = machine == platform.node()
    words = f"process {pid}" + (f" on {machine}" if machine and not here else "") if pid else "another process"
    return words, not here or tied.alive(int(pid))


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Hold a folder while it is being filled, which tells it from one that a killed process has left."""
    desk = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network folders have no locks
            fcntl.flock(desk, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(desk)


def remove_left(folder: Path, patience: float = PATIENCE) -> bool:
    """Remove what a killed process has left of a folder; false where one that is alive still fills it."""
    until = time.monotonic() + patience
    while folder.is_dir():
        desk = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(desk, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(_STEP)
            continue
        except OSError:
            pass  # no locks here: as if it were nobody's
        finally:
            os.close(desk)
        shutil.rmtree(folder, ignore_errors=True)
        break
    return True


def unwritable(folder: Path, fault: OSError) -> DomainError:
    """The refusal of a folder that the system does not let us write."""
    return DomainError(f"output must be a folder that can be written, got {str(folder)!r} ({fault.strerror})")
