"""A node that has less of its core: its processes are stopped and let go many times a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

PERIOD_S = 0.1


@contextmanager
def braked(pid: int, share: float) -> Iterator[None]:
    """Keeps a process and its children stopped for this share of the time."""
    over = threading.Event()

    def brake() -> None:
        while not over.is_set():
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                stopped = [process, *process.children(recursive=True)]
                _tell_all(stopped, "suspend")
                time.sleep(share * PERIOD_S)
                _tell_all(stopped, "resume")
            over.wait((1 - share) * PERIOD_S)

    thread = threading.Thread(target=brake, daemon=True, name="brake")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _tell_all(processes: list[psutil.Process], what: str) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            getattr(process, what)()
