"""Which rows come too late: decided by arrival order alone, never by how rows are batched.

A row is late when it is more than the allowed lateness behind the latest row before it. Deciding
this where rows arrive, one after the other, makes every result a function of the input only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Sifted:
    """Rows in time, rows too late, and the latest event time seen after all of them."""

    kept: pa.Table
    late: pa.Table
    high_water_us: int | None


def sift(rows: pa.Table, event_time: str, lateness_us: int, high_water_us: int | None) -> Sifted:
    """Separates late rows from the others; linear in the rows.

    ``high_water_us`` is the latest event time before these rows. Rows without an event time
    belong to no window and are counted as late.

    >>> rows = pa.table({"ts": pa.array([10, 30, 12, 29], pa.timestamp("us", "UTC"))})
    >>> sift(rows, "ts", 5, None).kept["ts"].cast("int64").to_pylist()
    [10, 30, 29]
    """
    if rows.num_rows == 0:
        return Sifted(rows, rows, high_water_us)
    column = rows[event_time].combine_chunks()
    lowest = np.iinfo(np.int64).min
    times = pc.fill_null(column.cast(pa.int64()), lowest).to_numpy(zero_copy_only=False)
    floor = lowest if high_water_us is None else high_water_us
    highest = np.maximum.accumulate(np.maximum(times, floor))
    known = times != lowest
    in_time = known & (times >= np.where(known, highest - lateness_us, 0))
    after = int(highest[-1])
    reached = None if after == lowest else after
    if in_time.all():
        return Sifted(rows, rows.slice(0, 0), reached)
    mask = pa.array(in_time)
    return Sifted(rows.filter(mask), rows.filter(pc.invert(mask)), reached)
