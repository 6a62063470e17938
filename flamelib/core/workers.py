"""Processes that share work, and end with the one that shares it out, however that ends."""

import os
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import parent_process


def pool(processes: int) -> ProcessPoolExecutor:
    """So many processes to share work out to; none of them outlives this one, even where it is killed."""
    return ProcessPoolExecutor(processes, initializer=_end_with_parent)


def _end_with_parent() -> None:
    threading.Thread(target=_wait_and_end, daemon=True).start()


def _wait_and_end() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
