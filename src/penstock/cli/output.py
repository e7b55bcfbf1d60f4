"""Standard output and error, kept for ourselves while others may print to them."""

from __future__ import annotations

import io
import os
import sys
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
def diverted(log: Path) -> Iterator[None]:
    """Gives processes started inside ``log`` as their standard output: they inherit it for good.

    What Java itself has to say goes there, where it would spoil a table or a JSON object.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    with log.open("ab") as target:
        os.dup2(target.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
