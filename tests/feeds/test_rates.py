"""Rates: what generators and recordings say about theirs before anything runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.feeds.rates import known_rates
from penstock.lang.deployment import parse_deployment

START = datetime(2026, 1, 1, tzinfo=UTC)


def rates(folder: Path, source: str) -> dict[str, float]:
    text = (
        f"streams:\n  rows: {{source: {source}, schema: 'ts timestamp, n int', event_time: ts, "
        "lateness: 1s}\nqueries:\n  all: SELECT ts, n FROM rows\n"
    )
    return known_rates(parse_deployment(text, "test", folder).network)


def record(path: Path, times: pa.Array, **options: object) -> None:
    pq.write_table(
        pa.table({"ts": times, "n": pa.array(range(len(times)), pa.int32())}), path, **options
    )


@pytest.fixture
def times() -> pa.Array:
    """101 rows in 50 seconds."""
    made = [START + timedelta(seconds=at / 2) for at in range(101)]
    return pa.array(made, pa.timestamp("us", tz="UTC"))


def test_a_paced_recording_has_its_mean_rate(tmp_path: Path, times: pa.Array) -> None:
    record(tmp_path / "r.parquet", times, row_group_size=10)
    found = rates(tmp_path, "{replay: r.parquet, speedup: 3}")
    assert found == {"rows": pytest.approx(3 * 101 / 50)}


def test_one_played_at_once_has_none(tmp_path: Path, times: pa.Array) -> None:
    record(tmp_path / "r.parquet", times)
    assert rates(tmp_path, "{replay: r.parquet, speedup: max}") == {}


def test_one_that_does_not_say_has_none(tmp_path: Path, times: pa.Array) -> None:
    record(tmp_path / "r.parquet", times, write_statistics=False)
    assert rates(tmp_path, "{replay: r.parquet, speedup: 1}") == {}


def test_one_with_times_as_text_has_none(tmp_path: Path, times: pa.Array) -> None:
    record(tmp_path / "r.parquet", times.cast(pa.string()))
    assert rates(tmp_path, "{replay: r.parquet, speedup: 1}") == {}


def test_one_moment_has_none(tmp_path: Path, times: pa.Array) -> None:
    record(tmp_path / "r.parquet", times[:1])
    assert rates(tmp_path, "{replay: r.parquet, speedup: 1}") == {}


def test_a_broken_one_has_none(tmp_path: Path) -> None:
    (tmp_path / "r.parquet").write_bytes(b"PAR1")
    assert rates(tmp_path, "{replay: r.parquet, speedup: 1}") == {}
