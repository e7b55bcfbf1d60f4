"""Rows on their way to the terminal."""

from datetime import UTC, datetime

import pyarrow as pa

from penstock.app.results import LatestRows, PendingRows

ROWS = pa.table(
    {
        "home": ["h1", "h2\n", None],
        "ts": pa.array([datetime(2026, 1, 5, 6, 30, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")),
        "kwh": [9.4213123, 1e9, 0.1],
        "n": [1, 2, 3],
        "ok": [True, False, None],
    }
)


def test_the_last_rows_stay_and_all_are_counted() -> None:
    latest = LatestRows(remembered=4)
    for _ in range(3):
        latest.add("heavy", ROWS)
    (shown,) = latest.snapshot()
    assert shown.total == 9
    assert [row[0] for row in shown.rows] == ["null", "h1", "h2\\n", "null"]
    assert shown.rows[1] == ("h1", "2026-01-05 06:30:00", "9.42131", "1", "true")
    assert shown.numeric == (False, False, True, True, False)


def test_the_query_with_the_newest_rows_is_last() -> None:
    latest = LatestRows()
    for query in ("a", "b", "a"):
        latest.add(query, ROWS)
    assert [one.query for one in latest.snapshot()] == ["b", "a"]


def test_pending_rows_are_given_once_one_line_each() -> None:
    pending = PendingRows()
    pending.add("heavy", ROWS)
    assert list(pending.lines()) == [
        "heavy  home=h1  ts=2026-01-05 06:30:00  kwh=9.42131  n=1  ok=true",
        "heavy  home=h2\\n  ts=2026-01-05 06:30:00  kwh=1e+09  n=2  ok=false",
        "heavy  home=null  ts=2026-01-05 06:30:00  kwh=0.1  n=3  ok=null",
    ]
    assert list(pending.lines()) == []
