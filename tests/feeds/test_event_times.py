"""Event times computed where rows enter."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from feeds.reading import written
from penstock.errors import InputError
from penstock.feeds.event_times import check_event_time, event_times
from penstock.feeds.files import read_pieces
from penstock.feeds.pieces import Piece, Reject
from penstock.lang.sql import parse_expression
from penstock.model.schema import Schema
from penstock.model.sources import CsvLayout, FileFormat, Parsing

ROW = Schema.parse("text string, n bigint, x double, ts timestamp")


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc]


def computed(expression: str, **row: object) -> datetime | None:
    table = pa.table({name: pa.array([value]) for name, value in row.items()})
    found = parse_expression(expression, ROW)
    check_event_time(found)
    (moment,) = event_times(found, table).to_pylist()
    return moment


@pytest.mark.parametrize(
    ("expression", "row", "moment"),
    [
        ("timestamp_millis(n)", {"n": 1_500}, utc(1970, 1, 1, 0, 0, 1, 500_000)),
        ("timestamp_micros(n)", {"n": -1}, utc(1969, 12, 31, 23, 59, 59, 999_999)),
        ("timestamp_seconds(x)", {"x": 1.5}, utc(1970, 1, 1, 0, 0, 1, 500_000)),
        ("timestamp_millis(n)", {"n": 10**18}, None),
        ("timestamp_seconds(x)", {"x": float("nan")}, None),
        ("to_timestamp(text, 'dd.MM.yyyy')", {"text": "29.02.2024"}, utc(2024, 2, 29)),
        ("to_timestamp(text, 'dd.MM.yyyy')", {"text": "29.02.2023"}, None),
        (
            "to_timestamp(concat('1995-08-', regexp_extract(text, '\\\\[(.*?)\\\\]')), "
            "'yyyy-MM-dd:HH:mm:ss') + INTERVAL 4 HOURS",
            {"text": 'host [29:23:53:25] "GET / HTTP/1.0" 200 1'},
            utc(1995, 8, 30, 3, 53, 25),
        ),
        (
            "coalesce(timestamp_millis(n), timestamp_seconds(x))",
            {"n": None, "x": 1.0},
            utc(1970, 1, 1, 0, 0, 1),
        ),
        ("to_timestamp(substring(text, -4, 4), 'yyyy')", {"text": "in 2024"}, utc(2024, 1, 1)),
        ("to_timestamp(split_part(text, '|', 2), 'yyyy')", {"text": "a|2024|b"}, utc(2024, 1, 1)),
        (
            "to_timestamp(trim(replace(text, 'x', '')), 'yyyy')",
            {"text": " x2024x "},
            utc(2024, 1, 1),
        ),
        ("ts - INTERVAL 1 DAY", {"ts": utc(2024, 1, 2)}, utc(2024, 1, 1)),
    ],
)
def test_values(expression: str, row: dict[str, object], moment: datetime | None) -> None:
    assert computed(expression, **row) == moment


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("timestamp_seconds(round(x))", "round"),
        ("timestamp_millis(n + 1)", "+ of anything but a time and an INTERVAL"),
        ("CAST(text AS timestamp)", "TRY_CAST(`text` AS timestamp)"),
        ("if(n > 0, ts, ts)", "if"),
    ],
)
def test_what_cannot_be_computed_where_rows_enter(expression: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        check_event_time(parse_expression(expression, ROW))
    assert caught.value.what == f"an event time cannot be computed with {what} where rows enter"


@pytest.mark.parametrize(
    "pattern", [r"\\bx", "(?i)x", "[a&&b]", r"\\p{Lu}", "(?<n>x)", r"\\1", "[[a]]"]
)
def test_patterns_that_java_and_python_may_read_differently(pattern: str) -> None:
    with pytest.raises(InputError, match="cannot be used in an event time"):
        check_event_time(
            parse_expression(f"to_timestamp(regexp_extract(text, '{pattern}', 0), 'yyyy')", ROW)
        )


def pieces(path: Path, format: FileFormat, schema: str, parsing: Parsing) -> Piece:
    (piece,) = read_pieces(path, format, CsvLayout(), Schema.parse(schema), parsing)
    return piece


def timed(expression: str, schema: str) -> Parsing:
    return Parsing(event_time=("at", parse_expression(expression, Schema.parse(schema))))


def test_rows_without_an_event_time_are_set_aside_with_the_reason(tmp_path: Path) -> None:
    path = written(tmp_path, "time,n\n01/2024,1\nsoon,2\n,3\n02/2024,x\n03/2024,4\n")
    schema = "time string, n int"
    piece = pieces(path, "csv", schema, timed("to_timestamp(time, 'MM/yyyy')", schema))
    assert [(row["n"], row["at"].month) for row in piece.rows.to_pylist()] == [(1, 1), (4, 3)]
    call = "event time: to_timestamp(`time`, 'MM/yyyy') is null"
    assert piece.rejects == (
        Reject("a.csv", 3, f"{call} for 'soon'", "soon,2"),
        Reject("a.csv", 4, f"{call} for None", ",3"),
        Reject("a.csv", 5, "n: 'x' is no int", "02/2024,x"),
    )


@pytest.mark.parametrize("extra", ["", '{"ms": "x"}\n'])
def test_json_lines_together_and_one_by_one(tmp_path: Path, extra: str) -> None:
    path = written(tmp_path, '{"ms": 1000}\n{}\n{"ms": 2000}\n' + extra, "a.json")
    piece = pieces(path, "json", "ms bigint", timed("timestamp_millis(ms)", "ms bigint"))
    assert piece.rows["at"].cast("int64").to_pylist() == [1_000_000, 2_000_000]
    assert piece.rejects[0] == Reject(
        "a.json", 2, "event time: timestamp_millis(`ms`) is null for None", "{}"
    )


def test_lines_of_text(tmp_path: Path) -> None:
    content = b"[2024] a\r\ncaf\xe9\n\n[2025] \xc3\xa9"
    path = written(tmp_path, content, "a.log")
    taken = "to_timestamp(regexp_extract(line, '([0-9]{4})'), 'yyyy')"
    piece = pieces(path, "text", "line string", timed(taken, "line string"))
    assert [row["line"] for row in piece.rows.to_pylist()] == ["[2024] a", "[2025] é"]
    assert [(reject.line, reject.reason.split(" is ")[-1]) for reject in piece.rejects] == [
        (2, "not UTF-8"),
        (3, "null for ''"),
    ]
    plain = pieces(path, "text", "line string", Parsing())
    assert plain.rows["line"].to_pylist() == ["[2024] a", "", "[2025] é"]


@pytest.mark.parametrize(
    ("time_format", "texts", "seconds", "bad"),
    [
        ("dd/MM/yyyy HH:mm", ["02/01/1970 00:00", "1970-01-02", None], [86_400, None, None], 1),
        ("milliseconds", ["86400000", "1e3", "x"], [86_400, 1, None], 1),
        ("microseconds", ["-1000000", "0", "9" * 18], [-1, 0, None], 1),
        ("seconds", ["1.5", "2024-01-01", "1"], [1.5, None, 1], 1),
    ],
)
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_times_in_a_format_of_their_own(
    tmp_path: Path,
    format: FileFormat,
    time_format: str,
    texts: list[str | None],
    seconds: list[float | None],
    bad: int,
) -> None:
    path = tmp_path / f"a.{format}"
    if format == "csv":
        path.write_text("n,at\n" + "".join(f"1,{text or ''}\n" for text in texts))
    elif format == "json":
        path.write_text("".join(json.dumps({"n": 1, "at": text}) + "\n" for text in texts))
    else:
        pq.write_table(pa.table({"n": pa.array([1] * 3, pa.int32()), "at": texts}), path)
    piece = pieces(path, format, "n int, at timestamp", Parsing(time_format=time_format))
    kept = [None if one is None else one.timestamp() for one in piece.rows["at"].to_pylist()]
    readable = [
        one for one, text in zip(seconds, texts, strict=True) if one is not None or not text
    ]
    assert kept == readable
    assert len(piece.rejects) == bad


def test_counts_in_json_are_read_as_the_whole_numbers_they_are(tmp_path: Path) -> None:
    path = written(tmp_path, '{"at": 253402300799999999}\n{"at": 1}\n', "a.json")
    piece = pieces(path, "json", "at timestamp", Parsing(time_format="microseconds"))
    assert piece.rows["at"].cast("int64").to_pylist() == [253_402_300_799_999_999, 1]


def test_columns_have_other_names_in_the_source(tmp_path: Path) -> None:
    parsing = Parsing((("ts", "@timestamp"), ("order_id", "Order ID")))
    csv = written(tmp_path, '@timestamp,"Order ID",n\n2024-01-01,7,1\n')
    lines = written(tmp_path, '{"@timestamp": "2024-01-01", "Order ID": 7, "n": 1}\n', "a.json")
    for path, format in ((csv, "csv"), (lines, "json")):
        piece = pieces(path, format, "ts timestamp, order_id int, n int", parsing)  # type: ignore[arg-type]
        assert [tuple(row.values()) for row in piece.rows.to_pylist()] == [(utc(2024, 1, 1), 7, 1)]
    with pytest.raises(InputError, match="has no column @timestamp; it has ts, Order ID, n"):
        pieces(
            written(tmp_path, "ts,Order ID,n\n1,2,3\n"),
            "csv",
            "ts timestamp, order_id int",
            parsing,
        )


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('{"user": {"name": "ann"}}', "ann"),
        ('{"User": {"NAME": "ann"}}', "ann"),
        ('{"user.name": "bob", "user": {"name": "ann"}}', "bob"),
        ('{"user.name": null, "user": {"name": "ann"}}', "ann"),
        ('{"user": {"name": {"first": "ann"}}}', '{"first": "ann"}'),
        ('{"user": "ann"}', None),
        ('{"user": [{"name": "ann"}]}', None),
        ("{}", None),
    ],
)
def test_a_path_into_json(tmp_path: Path, line: str, value: str | None) -> None:
    path = written(tmp_path, line + "\n", "a.json")
    piece = pieces(path, "json", "who string", Parsing((("who", "user.name"),)))
    assert piece.rows["who"].to_pylist() == [value]
