"""Spark's progress reports as our measurements."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.model.measurements import BatchMeasurement, FragmentStatus

_REMEMBERED = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ProgressLog:
    """The running account of one fragment, bounded however long it runs."""

    def __init__(self, fragment: str, has_beats: bool) -> None:
        self._fragment = fragment
        self._has_beats = has_beats
        self._recent: deque[BatchMeasurement] = deque(maxlen=_REMEMBERED)
        self._last_id = -1
        self._rows_in = 0
        self._batches = 0
        self._busy_ms = 0

    def take(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Adds the reports not seen yet."""
        for report in reports:
            if report["batchId"] > self._last_id and "addBatch" in report.get("durationMs", {}):
                measured = measurement(self._fragment, report, self._has_beats)
                self._recent.append(measured)
                self._last_id = measured.batch_id
                self._rows_in += measured.rows_in
                self._batches += 1
                self._busy_ms += measured.duration_ms

    def status(self, rows_out: int, is_finished: bool) -> FragmentStatus:
        """The account so far."""
        recent = list(self._recent)
        durations = sorted(one.duration_ms for one in recent)
        last = recent[-1] if recent else None
        return FragmentStatus(
            fragment=self._fragment,
            rows_in=self._rows_in,
            rows_out=rows_out,
            rows_in_per_s=_rate(recent),
            batches=self._batches,
            batch_ms=float(durations[len(durations) // 2]) if durations else 0.0,
            state_rows=last.state_rows if last else 0,
            watermark_ms=last.watermark_ms if last else None,
            is_finished=is_finished,
            busy_ms=self._busy_ms,
        )


def _rate(recent: list[BatchMeasurement]) -> float:
    if not recent:
        return 0.0
    ended_ms = recent[-1].started_ms + recent[-1].duration_ms
    span_ms = ended_ms - recent[0].started_ms
    return 1_000 * sum(one.rows_in for one in recent) / span_ms if span_ms > 0 else 0.0


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
        state_rows=sum(one["numRowsTotal"] for one in operators),
        watermark_ms=_watermark_ms(report.get("eventTime", {}).get("watermark")),
    )


def _has_beat(source: Mapping[str, Any]) -> bool:
    start, end = source.get("startOffset"), source.get("endOffset")
    # Spark gives the offsets of a Python source as text, those of others as JSON.
    return start != end and "watermark_us" in (end or "")


def _watermark_ms(text: str | None) -> int | None:
    # Before the first heartbeat Spark's watermark is 0.
    return (_millis(text) or None) if text and text[:4].isdigit() else None


def _millis(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(milliseconds=1)
