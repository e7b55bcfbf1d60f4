"""Spark's progress reports as our measurements."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.model.measurements import BatchMeasurement, FragmentStatus
from penstock.spark.sources.beats import event_time_us

_REMEMBERED = 20


def selectivity(rows_out: int, rows_in: int) -> float | None:
    """Rows out for each row in; None as long as none has come in."""
    return round(rows_out / rows_in, 6) if rows_in else None


class ProgressLog:
    """The running account of one fragment, bounded however long it runs."""

    def __init__(self, fragment: str, has_beats: bool) -> None:
        self._fragment = fragment
        self._has_beats = has_beats
        self._recent: deque[BatchMeasurement] = deque(maxlen=_REMEMBERED)
        self._last_id = -1
        self._batches = 0
        self._busy_ms = 0

    def take(
        self, reports: Iterable[Mapping[str, Any]], rows_in: Mapping[int, int] | None = None
    ) -> list[BatchMeasurement]:
        """Adds the reports not seen yet, and gives them.

        ``rows_in`` are the rows of batches where they are known: Spark counts those of an input
        that is read twice twice.
        """
        new = []
        for report in reports:
            if report["batchId"] > self._last_id and "addBatch" in report.get("durationMs", {}):
                measured = measurement(self._fragment, report, self._has_beats)
                rows = (rows_in or {}).get(measured.batch_id, measured.rows_in)
                measured = replace(measured, rows_in=rows)
                new.append(measured)
                self._recent.append(measured)
                self._last_id = measured.batch_id
                self._batches += 1
                self._busy_ms += measured.duration_ms
        return new

    def status(self, rows_in: int, rows_out: int, is_finished: bool) -> FragmentStatus:
        """The account so far."""
        recent = list(self._recent)
        durations = sorted(batch.duration_ms for batch in recent)
        last = recent[-1] if recent else None
        return FragmentStatus(
            fragment=self._fragment,
            rows_in=rows_in,
            rows_out=rows_out,
            rows_in_per_s=_rate(recent),
            batches=self._batches,
            batch_ms=float(durations[len(durations) // 2]) if durations else 0.0,
            state_rows=last.state_rows if last else 0,
            state_bytes=last.state_bytes if last else 0,
            watermark_ms=last.watermark_ms if last else None,
            is_finished=is_finished,
            busy_ms=self._busy_ms,
        )


def _rate(recent: list[BatchMeasurement]) -> float:
    if not recent:
        return 0.0
    ended_ms = recent[-1].started_ms + recent[-1].duration_ms
    span_ms = ended_ms - recent[0].started_ms
    return 1_000 * sum(batch.rows_in for batch in recent) / span_ms if span_ms > 0 else 0.0


def measurement(
    fragment: str, report: Mapping[str, Any], has_beats: bool = False
) -> BatchMeasurement:
    """One of Spark's reports as a measurement; heartbeats are not counted as rows.

    ``has_beats`` says that the fragment's readers send heartbeats, as those of state do.
    """
    beats = sum(1 for source in report["sources"] if has_beats and _has_beat(source))
    operators = report.get("stateOperators", [])
    return BatchMeasurement(
        fragment=fragment,
        batch_id=report["batchId"],
        started_ms=_millis(report["timestamp"]),
        rows_in=max(0, report["numInputRows"] - beats),
        duration_ms=report["durationMs"].get("triggerExecution", 0),
        state_rows=sum(operator["numRowsTotal"] for operator in operators),
        state_bytes=sum(operator.get("memoryUsedBytes", 0) for operator in operators),
        watermark_ms=_watermark_ms(report.get("eventTime", {}).get("watermark")),
    )


def _has_beat(source: Mapping[str, Any]) -> bool:
    start, end = source.get("startOffset"), source.get("endOffset")
    return start != end and "watermark_us" in (end or "")


def _watermark_ms(text: str | None) -> int | None:
    if not text or not text[:4].isdigit():
        return None
    watermark_us = event_time_us(_millis(text))
    return None if watermark_us is None else watermark_us // 1_000


def _millis(text: str) -> int:
    # Python's own dates end with the year 9999, Spark's do not.
    return int(np.datetime64(text.removesuffix("Z"), "ms").astype(np.int64))
