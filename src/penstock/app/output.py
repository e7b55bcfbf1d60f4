"""Standard output and error, kept for ourselves while others may print to them."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def own_copy(stream: IO[str]) -> IO[str]:
    """A stream to the same place that stays there when the descriptor is diverted."""
    try:
        descriptor = os.dup(stream.fileno())
    except (OSError, io.UnsupportedOperation):
        return stream  # not a real file, such as in tests: nothing else prints to it
    return os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")


@contextmanager
def diverted(descriptor: int, log: Path) -> Iterator[None]:
    """What is written to the descriptor inside goes to ``log``.

    Processes started inside inherit that for good, so what Java has to say can be kept away from
    a table or a JSON object.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(descriptor)
    with log.open("ab") as target:
        os.dup2(target.fileno(), descriptor)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, descriptor)
        os.close(kept)


@contextmanager
def quiet(log: Path) -> Iterator[None]:
    """What libraries have to say goes to ``log``: warnings, log lines, standard error."""
    handler = logging.FileHandler(log, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.captureWarnings(True)
    former, threading.excepthook = threading.excepthook, _log_failure
    try:
        with diverted(2, log):
            yield
    finally:
        threading.excepthook = former
        logging.captureWarnings(False)
        logging.getLogger().removeHandler(handler)
        handler.close()


def _log_failure(failed: threading.ExceptHookArgs) -> None:
    name = failed.thread.name if failed.thread else "?"
    logging.error("in thread %s", name, exc_info=failed.exc_value)
