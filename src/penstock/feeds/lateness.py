"""Which rows come too late or are too far ahead: decided by arrival order, never by batches.

A row is late when it is more than the allowed lateness behind the latest row before it. Deciding
this where rows arrive, one after the other, makes every result a function of the input only.

One row far in the future would make everything after it late. Where a stream says how far ahead
rows may be, those beyond that of both the wall clock and the latest row before them are set aside
first. (By the latest row alone, a stream that pauses for longer would never come back; by the clock
alone, one whose time is simulated would never begin to be useful.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LOWEST = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Sifted:
    """Rows in time, rows too late, rows without a time, and the latest event time after them.

    ``late_after_us`` is the event time that the stream had come to when each late row came.
    """

    kept: pa.Table
    late: pa.Table
    late_after_us: list[int]
    high_water_us: int | None
    untimed: pa.Table


def sift(rows: pa.Table, event_time: str, lateness_us: int, high_water_us: int | None) -> Sifted:
    """Separates rows that cannot count from the others; linear in the rows.

    ``high_water_us`` is the latest event time before these rows. Rows without an event time belong
    to no window: they are neither in time nor late.

    >>> rows = pa.table({"ts": pa.array([10, 30, 12, 29], pa.timestamp("us", "UTC"))})
    >>> sift(rows, "ts", 5, None).kept["ts"].cast("int64").to_pylist()
    [10, 30, 29]
    """
    if rows.num_rows == 0:
        return Sifted(rows, rows, [], high_water_us, rows)
    times = _times_us(rows, event_time)
    floor = _LOWEST if high_water_us is None else high_water_us
    highest = np.maximum.accumulate(np.maximum(times, floor))
    known = times != _LOWEST
    in_time = known & (times >= np.where(known, highest - lateness_us, 0))
    reached = None if highest[-1] == _LOWEST else int(highest[-1])
    if in_time.all():
        return Sifted(rows, rows.slice(0, 0), [], reached, rows.slice(0, 0))
    is_late = known & ~in_time
    kept, late, untimed = (rows.filter(pa.array(mask)) for mask in (in_time, is_late, ~known))
    return Sifted(kept, late, highest[is_late].tolist(), reached, untimed)


def is_too_far_ahead(
    rows: pa.Table, event_time: str, ahead_us: int, clock_us: int, latest_us: int | None
) -> np.ndarray:
    """Which rows are more than ``ahead_us`` ahead of the clock and of the latest row before them.

    Rows that are too far ahead do not count as rows before others. Linear in the rows.

    >>> rows = pa.table({"ts": pa.array([10, 99, 15, 20], pa.timestamp("us", "UTC"))})
    >>> is_too_far_ahead(rows, "ts", 5, 5, None).tolist()
    [False, True, False, False]
    """
    times = _times_us(rows, event_time)
    floor_us = clock_us if latest_us is None else max(clock_us, latest_us)
    if not (times > _highest_before(times, floor_us) + ahead_us).any():
        return np.zeros(len(times), dtype=bool)
    # Now it matters which rows count. Those near the clock always do; the rest, mostly few, are
    # looked at one after the other.
    beyond = times > floor_us + ahead_us
    near_us = _highest_before(np.where(beyond, floor_us, times), floor_us)
    highest_us = floor_us
    for at in np.flatnonzero(beyond).tolist():
        highest_us = max(highest_us, int(near_us[at]))
        if times[at] <= highest_us + ahead_us:
            beyond[at] = False
            highest_us = max(highest_us, int(times[at]))
    return beyond


def _highest_before(times: np.ndarray, floor_us: int) -> np.ndarray:
    """For every row the highest of the floor and the times before it."""
    return np.maximum.accumulate(np.concatenate([[floor_us], times]))[: len(times)]


def _times_us(rows: pa.Table, event_time: str) -> np.ndarray:
    """The event times; the lowest number there is where a row has none."""
    column = rows[event_time].combine_chunks().cast(pa.int64())
    return np.asarray(pc.fill_null(column, _LOWEST))
