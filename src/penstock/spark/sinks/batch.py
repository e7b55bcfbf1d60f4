"""One micro-batch as a sink sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

Rows: TypeAlias = DataFrame | pa.Table
"""The rows of a batch: still to be computed by Spark, or computed."""


def collect(rows: Rows) -> pa.Table:
    """The rows as one table in this process."""
    return rows if isinstance(rows, pa.Table) else rows.toArrow()


@dataclass(frozen=True)
class Batch:
    """What is known about a micro-batch before its rows are computed.

    ``watermark_us``: no later batch has rows before it; None when no watermark is known.
    ``ended``: this is the last batch there will ever be. ``arrived_s``: when the oldest of the rows
    it is made from entered the system, by the wall clock.
    """

    id: int
    watermark_us: int | None = None
    ended: bool = False
    arrived_s: float | None = None


class BatchSink(Protocol):
    """A place for results.

    ``write`` must compute ``rows`` (that is what moves the fragment's state on) and must have the
    effect of one write when the same batch is offered again. It gives the number of rows.
    """

    def write(self, rows: Rows, batch: Batch) -> int:
        """Takes the batch."""
