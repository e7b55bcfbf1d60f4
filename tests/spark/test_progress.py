"""Spark's reports as measurements."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.model.measurements import BatchMeasurement, FragmentStatus
from penstock.spark.progress import ProgressLog, measurement

pytestmark = pytest.mark.core


def source(start: object, end: object, rows: int) -> dict[str, Any]:
    """One input, as Spark 4.3 reports a Python data source."""
    return {
        "description": "org.apache.spark.sql.execution.datasources.v2.python."
        "PythonMicroBatchStreamWithAdmissionControl@1dd54253",
        "startOffset": start,
        "endOffset": end,
        "latestOffset": None,
        "numInputRows": rows,
        "inputRowsPerSecond": 1.2,
        "processedRowsPerSecond": 0.6,
    }


TOLD = source('{"next":5,"watermark_us":17}', '{"next":6,"watermark_us":18}', 2)


def report(batch_id: int = 5, **other: Any) -> dict[str, Any]:
    """A batch of a join, as Spark 4.3 reports it; the numbers are from a real run."""
    return {
        "id": "e65d59da-9103-4b4a-9a90-54a274a9b548",
        "runId": "a33bbcc4-2f8d-4183-b62a-1184b9587606",
        "name": "j",
        "timestamp": "2026-11-15T21:05:16.267Z",
        "batchId": batch_id,
        "batchDuration": 3096,
        "durationMs": {
            "addBatch": 2398,
            "commitOffsets": 9,
            "getBatch": 0,
            "latestOffset": 11,
            "queryPlanning": 602,
            "triggerExecution": 3088,
            "walCommit": 37,
        },
        "eventTime": {
            "avg": "2523-09-02T09:59:59.999Z",
            "max": "3023-05-04T09:59:59.999Z",
            "min": "2024-01-01T10:00:00.000Z",
            "watermark": "6024-01-01T09:59:59.999Z",
        },
        "stateOperators": [
            {"operatorName": "symmetricHashJoin", "numRowsTotal": 12, "numRowsUpdated": 2}
        ],
        "sources": [TOLD, TOLD],
        "sink": {"description": "ForeachBatchSink", "numOutputRows": -1},
        "numInputRows": 4,
        "observedMetrics": {},
        **other,
    }


def idle(batch_id: int) -> dict[str, Any]:
    return report(batch_id, durationMs={"latestOffset": 1, "triggerExecution": 1}, numInputRows=0)


def test_a_report_is_a_measurement() -> None:
    assert measurement("j", report(), has_beats=True) == BatchMeasurement(
        fragment="j",
        batch_id=5,
        started_ms=1_794_776_716_267,
        rows_in=2,
        duration_ms=3088,
        state_rows=12,
        watermark_ms=1_704_103_199_999,
    )


def test_heartbeats_are_counted_only_where_they_are_sent() -> None:
    assert measurement("f", report(), has_beats=False).rows_in == 4
    assert measurement("f", report(), has_beats=True).rows_in == 2
    still = source('{"next":5,"watermark_us":17}', '{"next":5,"watermark_us":17}', 0)
    untold = source(None, '{"next":6}', 3)
    quiet = report(sources=[TOLD, still, untold], numInputRows=5)
    assert measurement("f", quiet, has_beats=True).rows_in == 4
    assert measurement("f", report(numInputRows=0), has_beats=True).rows_in == 0


def test_offsets_may_be_text_or_json() -> None:
    as_json = source({"next": 5, "watermark_us": 17}, {"next": 6, "watermark_us": 18}, 2)
    both = report(sources=[as_json, TOLD])
    assert measurement("f", both, has_beats=True).rows_in == 2


@pytest.mark.parametrize(
    ("event_time", "watermark_ms"),
    [
        ({}, None),
        ({"watermark": "1970-01-01T00:00:00.000Z"}, None),
        ({"watermark": "5600-02-29T00:00:00.000Z"}, -11_670_998_400_000),
        ({"watermark": "5970-01-01T00:00:00.000Z"}, 0),
        ({"watermark": "5970-01-01T00:00:10.000Z"}, 10_000),
        ({"watermark": "6018-03-24T17:15:20.865Z"}, 1_521_911_720_865),
        ({"watermark": "12999-12-31T23:59:59.999Z"}, 221_845_391_999_999),
        ({"watermark": "nonsense"}, None),
    ],
)
def test_watermarks(event_time: dict[str, str], watermark_ms: int | None) -> None:
    assert measurement("f", report(eventTime=event_time)).watermark_ms == watermark_ms


def test_every_millisecond_reads_back() -> None:
    for millis in range(1_000):
        text = f"2026-11-15T21:05:16.{millis:03d}Z"
        assert measurement("f", report(timestamp=text)).started_ms == 1_794_776_716_000 + millis


def test_a_report_without_state_or_time() -> None:
    plain = report(durationMs={"addBatch": 1})
    del plain["stateOperators"], plain["eventTime"]
    found = measurement("f", plain)
    assert (found.state_rows, found.watermark_ms, found.duration_ms) == (0, None, 0)


def test_nothing_has_happened_yet() -> None:
    assert ProgressLog("f", True).status(0, 0, False) == FragmentStatus(
        "f", 0, 0, 0.0, 0, 0.0, 0, None, False
    )


def test_reports_are_taken_once() -> None:
    log = ProgressLog("f", True)
    log.take([report(0), report(1)])
    log.take([report(0), report(1), report(2), idle(3)])
    log.take([idle(3), report(3)])
    status = log.status(rows_in=8, rows_out=7, is_finished=True)
    assert (status.batches, status.rows_in, status.rows_out) == (4, 8, 7)
    assert (status.state_rows, status.watermark_ms) == (12, 1_704_103_199_999)
    assert status.is_finished


def test_rows_that_are_known_otherwise_are_not_asked_of_spark() -> None:
    log = ProgressLog("f", False)
    taken = log.take([at_second(0, 100, 20), at_second(1, 100, 30)], {0: 10})
    assert [one.rows_in for one in taken] == [10, 30]
    assert log.take([at_second(1, 100, 30)]) == []


def test_a_batch_too_quick_to_measure_is_a_batch() -> None:
    log = ProgressLog("f", False)
    log.take([report(0, durationMs={"addBatch": 0, "triggerExecution": 0})])
    assert log.status(0, 0, False).batches == 1


def at_second(batch_id: int, duration_ms: int, rows: int) -> dict[str, Any]:
    return report(
        batch_id,
        timestamp=f"2026-11-15T21:{batch_id // 60:02d}:{batch_id % 60:02d}.000Z",
        durationMs={"addBatch": duration_ms, "triggerExecution": duration_ms},
        numInputRows=rows,
    )


def test_rates_are_rows_over_the_time_they_took() -> None:
    log = ProgressLog("f", False)
    log.take([at_second(0, 100, 1_000), at_second(1, 300, 2_000), at_second(2, 500, 3_000)])
    status = log.status(0, 0, False)
    assert status.rows_in_per_s == 6_000 / 2.5
    assert status.batch_ms == 300


def test_the_account_is_bounded_and_its_counts_are_not() -> None:
    log = ProgressLog("f", False)
    rows = 0
    for batch_id in range(1_000):
        rows += sum(one.rows_in for one in log.take([at_second(batch_id, 100, 10)]))
    status = log.status(rows, 0, False)
    assert (status.batches, status.rows_in) == (1_000, 10_000)
    assert status.rows_in_per_s == pytest.approx(200 / 19.1)
