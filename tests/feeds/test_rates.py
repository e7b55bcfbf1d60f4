"""Rates: what generators and recordings say about theirs before anything runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.feeds.rates import event_rates, known_rates
from penstock.lang.deployment import parse_deployment
from penstock.model.network import Network

START = datetime(2026, 1, 1, tzinfo=UTC)


def rates(folder: Path, source: str) -> dict[str, float]:
    return known_rates(network_of(folder, source))


def network_of(folder: Path, source: str) -> Network:
    schema = "" if "generate" in source else "schema: 'ts timestamp, n int', event_time: ts, "
    text = (
        f"streams:\n  rows: {{source: {source}, {schema}lateness: 1s}}\n"
        "queries:\n  all: SELECT ts FROM rows\n"
    )
    return parse_deployment(text, "test", folder).network


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


def test_a_stream_s_own_seconds_pass_however_fast_it_is_played(
    tmp_path: Path, times: pa.Array
) -> None:
    record(tmp_path / "r.parquet", times)
    for speedup in ("", ", speedup: 10"):
        text = f"{{replay: r.parquet, format: parquet{speedup}}}"
        assert event_rates(network_of(tmp_path, text)) == {"rows": pytest.approx(101 / 50)}
    for speedup in (1, 600, "max"):
        made = f"{{generate: meters, homes: 300, every: 30min, days: 30, speedup: {speedup}}}"
        assert event_rates(network_of(tmp_path, made)) == {"rows": pytest.approx(1 / 6, rel=0.1)}
