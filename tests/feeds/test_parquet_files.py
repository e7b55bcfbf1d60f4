"""Reading Parquet files: columns found by name, types cast, rows that do not fit set apart."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from feeds.reading import Reading, parquet, refusal
from penstock.feeds import files
from penstock.feeds.pieces import Reject
from penstock.model.schema import Schema


class TestParquet:
    def test_columns_are_found_in_any_order_and_case(self, tmp_path: Path) -> None:
        path = parquet(tmp_path, KWH=pa.array([1.5]), x=pa.array([1]), home=pa.array(["a"]))
        assert Reading(path, "parquet").tuples == [("a", 1.5)]

    @pytest.mark.parametrize(
        ("given", "wanted", "values"),
        [
            (pa.array([1, None], pa.int8()), "int", [1, None]),
            (pa.array([1, 2], pa.int64()), "int", [1, 2]),
            (pa.array([1, 2], pa.int32()), "double", [1.0, 2.0]),
            (pa.array([1.0, 2.0]), "bigint", [1, 2]),
            (pa.array(["1", "2"]), "int", [1, 2]),
            (pa.array(["a", "b"], pa.large_string()), "string", ["a", "b"]),
            (pa.array(["a", "a"]).dictionary_encode(), "string", ["a", "a"]),
            (pa.array(["1.5", "2"]).dictionary_encode(), "double", [1.5, 2.0]),
            (pa.array([b"a", b"b"]), "string", ["a", "b"]),
            (pa.array([True, False]), "string", ["true", "false"]),
            (pa.array([1, 2]), "string", ["1", "2"]),
            (pa.array(["1.25"]).cast(pa.decimal128(5, 2)), "double", [1.25]),
        ],
    )
    def test_other_types_are_cast(
        self, tmp_path: Path, given: pa.Array, wanted: str, values: list[object]
    ) -> None:
        path = parquet(tmp_path, x=given)
        reading = Reading(path, "parquet", schema=Schema.parse(f"x {wanted}"))
        assert [row["x"] for row in reading.rows] == values
        assert reading.rejects == []

    @pytest.mark.parametrize(
        "given",
        [
            pa.array([1_500_000_123], pa.timestamp("ns")),
            pa.array([1_500], pa.timestamp("ms", tz="Europe/Berlin")),
            pa.array([1.5]),
            pa.array(["1970-01-01T00:00:01.5Z"]),
            pa.array(["1.5"]),
        ],
    )
    def test_times_are_read_as_in_text(self, tmp_path: Path, given: pa.Array) -> None:
        reading = Reading(parquet(tmp_path, t=given), "parquet", schema=Schema.parse("t timestamp"))
        assert reading.tuples == [(datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),)]

    def test_whole_numbers_are_seconds_as_in_text(self, tmp_path: Path) -> None:
        path = parquet(tmp_path, t=pa.array([1521911720]))
        reading = Reading(path, "parquet", schema=Schema.parse("t timestamp"))
        assert reading.tuples == [(datetime(2018, 3, 24, 17, 15, 20, tzinfo=UTC),)]

    def test_rows_that_do_not_fit_are_set_aside(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(files, "_ROWS_PER_BATCH", 2)
        path = parquet(tmp_path, a=pa.array([1, 2**40, 3, None]), b=pa.array(["1", "2", "x", "4"]))
        reading = Reading(path, "parquet", schema=Schema.parse("a int, b double"))
        assert reading.tuples == [(1, 1.0), (None, 4.0)]
        assert reading.rejects == [
            Reject("a.parquet", 2, "a: 1099511627776 is no int", "1099511627776,2"),
            Reject("a.parquet", 3, "b: 'x' is no double", "3,x"),
        ]

    def test_times_beyond_the_calendar_are_set_aside(self, tmp_path: Path) -> None:
        path = parquet(tmp_path, t=pa.array([1_000_000, 10**18], pa.timestamp("us", "UTC")))
        assert pq.read_table(path)["t"].cast(pa.int64()).to_pylist() == [1_000_000, 10**18]
        reading = Reading(path, "parquet", schema=Schema.parse("t timestamp"))
        assert len(reading.rows) == 1
        assert reading.complaints == [(2, "t: 1000000000000000000 is no timestamp")]

    def test_missing_columns_are_named(self, tmp_path: Path) -> None:
        path = parquet(tmp_path, home=pa.array(["a"]))
        assert refusal(path, "parquet") == (
            f"{path} has no column kwh; it has home. Correct the schema of the stream, or the file."
        )

    def test_types_that_cannot_be_cast_are_an_error_of_the_file(self, tmp_path: Path) -> None:
        path = parquet(tmp_path, home=pa.array([[1, 2]]), kwh=pa.array([1.0]))
        assert refusal(path, "parquet").startswith(f"{path} cannot be read as parquet: ")

    def test_no_rows(self, tmp_path: Path) -> None:
        path = parquet(tmp_path, home=pa.array([], pa.string()), kwh=pa.array([], pa.float64()))
        assert Reading(path, "parquet").rows == []
