"""Results of a running system, read from their channels."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.channels.channel import Channel
from penstock.errors import RunError

_LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class Results:
    """Rows of a stream, the number of the batch to ask for next, and whether that was all."""

    rows: pa.Table | None
    next: int
    ended: bool


def read_results(
    channel: Channel,
    columns: Sequence[str],
    after: int | None,
    most_rows: int,
    wait_s: float,
    sleep: Callable[[float], None],
    groups: Collection[int] | None = None,
) -> Results:
    """The rows from batch ``after`` on, or from the oldest that is kept; of ``groups`` only.

    Waits up to ``wait_s`` for something to come. Whole batches are given, at least one. What is
    freed while it is being read is passed over, like what was freed before.
    """
    until_s = time.monotonic() + wait_s
    while True:
        start = max(channel.oldest(), after or 0)
        try:
            found = _awaited(channel, start, until_s, sleep)
            return found or _read(channel, list(columns), start, most_rows, groups)
        except (FileNotFoundError, RunError) as error:
            if max(channel.oldest(), after or 0) == start:
                raise (error if isinstance(error, RunError) else _lost(channel, start)) from None


def _lost(channel: Channel, start: int) -> RunError:
    return RunError(
        f"rows of {channel.folder.name} are missing from batch {start} on",
        hint=f"Somebody has deleted files in {channel.data}.",
    )


def _awaited(
    channel: Channel, start: int, until_s: float, sleep: Callable[[float], None]
) -> Results | None:
    """Waits for something to come; the answer if nothing ever will."""
    before = channel.manifest(start - 1)
    if before is not None and before.ended:
        return Results(None, start, True)
    while channel.manifest(start) is None and time.monotonic() < until_s:
        if start <= channel.head():
            break  # Freed just now: there is nothing to wait for.
        sleep(_LOOK_EVERY_S)
    return None


def _read(
    channel: Channel,
    columns: list[str],
    start: int,
    most_rows: int,
    groups: Collection[int] | None,
) -> Results:
    tables: list[pa.Table] = []
    count, at, ended = 0, start, False
    for manifest in channel.newer(start):
        if count and count + manifest.rows > most_rows:
            break
        # Files that people gave may have more columns, in another order.
        tables += [channel.rows_of(file, columns) for file in manifest.of_groups(groups)]
        count, at, ended = count + manifest.rows, manifest.sequence + 1, manifest.ended
    return Results(pa.concat_tables(tables) if tables else None, at, ended)
