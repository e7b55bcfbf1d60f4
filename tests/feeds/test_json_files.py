"""Reading files of JSON lines, and records of topics."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feeds.reading import SCHEMA, Reading, refusal, written
from penstock.feeds import files
from penstock.feeds import json_rows as json_rows_module
from penstock.feeds.json_rows import json_rows
from penstock.feeds.pieces import Piece, Reject, RowForm
from penstock.model.schema import Schema


def json_reading(folder: Path, *lines: str | bytes, schema: Schema = SCHEMA) -> Reading:
    raw = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    return Reading(written(folder, raw, "a.jsonl"), "json", schema=schema)


class TestJsonLines:
    def test_objects_are_rows(self, tmp_path: Path) -> None:
        reading = json_reading(
            tmp_path,
            '{"home": "a", "kwh": 1.5}',
            '{"KWH": 2, "Home": "b", "extra": [1]}',
            "",
            '{"home": null}',
            "{}",
            '{"home": "ä😀\\u00e4", "kwh": "3.5"}',
        )
        assert reading.tuples == [
            ("a", 1.5),
            ("b", 2.0),
            (None, None),
            (None, None),
            ("ä😀ä", 3.5),
        ]

    def test_nested_values_are_text(self, tmp_path: Path) -> None:
        reading = json_reading(
            tmp_path, '{"home": {"a": [1, null]}}', '{"home": [true]}', '{"home": 5}'
        )
        assert [home for home, _ in reading.tuples] == ['{"a": [1, null]}', "[true]", "5"]

    def test_what_is_no_object_or_has_a_bad_value_is_set_aside(self, tmp_path: Path) -> None:
        lines = [
            "oops",
            '{"kwh": {"a": 1}}',
            "[1]",
            '{"kwh": true}',
            '"text"',
            '{"kwh": 1}',
            '{"kwh": "x", "home": "b"}',
            '{"kwh": 1',
            '{"home": "\\ud800"}',
        ]
        reading = json_reading(tmp_path, *lines)
        assert reading.tuples == [(None, 1.0)]
        assert reading.complaints == [
            (1, "not a JSON object"),
            (2, "kwh: '{\"a\": 1}' is no double"),
            (3, "not a JSON object"),
            (4, "kwh: 'true' is no double"),
            (5, "not a JSON object"),
            (7, "kwh: 'x' is no double"),
            (8, "not a JSON object"),
            (9, "half a character: a surrogate without its other half"),
        ]
        assert [reject.row for reject in reading.rejects] == lines[:5] + lines[6:]

    def test_bytes_that_are_not_utf8_set_their_row_aside(self, tmp_path: Path) -> None:
        reading = json_reading(tmp_path, b'{"home": "caf\xe9"}', '{"home": "b"}')
        assert reading.tuples == [("b", None)]
        assert reading.rejects == [Reject("a.jsonl", 1, "not a JSON object", '{"home": "caf�"}')]

    def test_endless_nesting_is_no_object(self, tmp_path: Path) -> None:
        reading = json_reading(tmp_path, "[" * 100_000, '{"home": "b"}')
        assert reading.tuples == [("b", None)]
        assert reading.complaints == [(1, "not a JSON object")]

    def test_numbers_too_large_for_their_column_are_bad(self, tmp_path: Path) -> None:
        schema = Schema.parse("i int")
        reading = json_reading(tmp_path, '{"i": 1e3}', f'{{"i": {2**40}}}', schema=schema)
        assert reading.complaints == [
            (1, "i: '1000.0' is no int"),
            (2, "i: '1099511627776' is no int"),
        ]

    def test_times_are_text_or_seconds(self, tmp_path: Path) -> None:
        lines = ['{"t": 1521911720.5}', '{"t": "2018-03-24T17:15:20.5Z"}']
        reading = json_reading(tmp_path, *lines, schema=Schema.parse("t timestamp"))
        moment = datetime(2018, 3, 24, 17, 15, 20, 500_000, tzinfo=UTC)
        assert reading.tuples == [(moment,), (moment,)]

    def test_line_numbers_go_on_from_block_to_block(
        self, tmp_path: Path, small_blocks: int
    ) -> None:
        lines = ["oops" if at % 100 == 0 else '{"home": "a"}' for at in range(1_000)]
        reading = json_reading(tmp_path, *lines)
        assert len(reading.pieces) > 5
        assert [reject.line for reject in reading.rejects] == [
            1 + at for at in range(0, 1_000, 100)
        ]

    def test_a_line_without_an_end_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(files, "_LONGEST_LINE_BYTES", 1 << 20)
        path = written(tmp_path, b"[" + b"1," * (1 << 20), "a.json")
        assert refusal(path, "json") == (
            f"{path} cannot be read as json: a line of 1 MiB or more. "
            "Check that the file is whole and of that format."
        )

    def test_an_empty_file_gives_no_rows(self, tmp_path: Path) -> None:
        assert json_reading(tmp_path).rows == []

    def test_rows_of_a_topic_are_read_the_same_way(self) -> None:
        piece = json_rows([b"{}", b"", b"x"], RowForm(SCHEMA), "topic[0]", 10)
        assert isinstance(piece, Piece)
        assert [(reject.file, reject.line) for reject in piece.rejects] == [("topic[0]", 12)]


NUMBERS = st.one_of(
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from([-0.0, 1e400, 2**31, 2**63, -(2**63) - 1]),
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.text(max_size=5),
    st.sampled_from(
        ["2018-03-24", "2018-03-24T17:15:20.5Z", "1.5", " 7 ", "true", "-0", "9999-12-31T23:59Z"]
    ),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)
KEYS = ["flag", "small", "large", "real", "text", "at", "day", "raw"]
TYPED = Schema.parse(
    "flag boolean, small int, large bigint, real double, text string, at timestamp, day date, "
    "raw binary"
)
FITTING = {
    "flag": st.booleans(),
    "small": st.integers(-(2**31), 2**31 - 1),
    "large": st.integers(-(2**63), 2**63 - 1),
    "real": st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers()),
    "text": st.text(max_size=5),
    "at": st.sampled_from(["2018-03-24T17:15:20.5Z", "2018-03-24T17:15:20+01:00"]),
    "day": st.dates().map(str),
    "raw": st.text(max_size=5),
}
OBJECTS = st.one_of(
    st.fixed_dictionaries({}, optional=FITTING),
    st.fixed_dictionaries({"at": st.floats(0, 1e9)}),
    st.dictionaries(st.sampled_from([*KEYS, "Flag", "AT", "other"]), VALUES, max_size=4),
)
LINES = st.one_of(
    OBJECTS.map(lambda one: json.dumps(one).encode()),
    OBJECTS.map(lambda one: json.dumps(one, ensure_ascii=False).encode("utf-8", "replace")),
    st.sampled_from(
        [
            b"",
            b" \t",
            b"\x0c{}",
            b"{}{}",
            b'{"large": -0}',
            b'{"real": -0}',
            b'{"real": [ -0 ]}',
            b'{"large": 1, "large": 2}',
            b'{"text": "\\ud83d\\ude00"}',
            b'{"text": "\\ude00"}',
            b'{"text": "caf\xe9"}',
            b'{"t\\u0065xt": "escaped"}',
            b'{"text": "a\nb"}',
            b'{"large":\n1}',
            b"null",
            b"[1]",
            b'{"large": 1',
            b'}{"large": 1}',
        ]
    ),
)


class TestManyAtOnce:
    @given(st.lists(LINES, max_size=12))
    def test_lines_together_are_read_as_each_alone(self, lines: list[bytes]) -> None:
        together = json_rows(lines, RowForm(TYPED), "f", 1)
        alone = [json_reading_of(line, at) for at, line in enumerate(lines, 1)]
        assert repr(together.rows.to_pylist()) == repr(
            [row for piece in alone for row in piece.rows.to_pylist()]
        )
        assert together.rejects == tuple(reject for piece in alone for reject in piece.rejects)

    def test_a_few_bad_lines_among_many_good_ones(self) -> None:
        lines = [b'{"large": %d, "text": "home-0"}' % at for at in range(1_000)]
        lines[500], lines[777] = b"oops", b'{"LARGE": "5"}'
        piece = json_rows(lines, RowForm(TYPED), "f", 1)
        assert piece.rows["large"].to_pylist() == [
            5 if at == 777 else at for at in range(1_000) if at != 500
        ]
        assert [reject.line for reject in piece.rejects] == [501]

    def test_plain_lines_are_never_read_one_by_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(json_rows_module, "_one_by_one", None)
        lines = [b'{"large": 1, "at": 1521911720.5, "other": {"a": [null]}}', b'{"real": 2}']
        rows = json_rows(lines, RowForm(TYPED), "f", 1).rows.to_pylist()
        assert [(row["large"], row["real"]) for row in rows] == [(1, None), (None, 2.0)]


def json_reading_of(line: bytes, number: int) -> Piece:
    """One line read without Arrow's help."""
    return json_rows_module._one_by_one([line], RowForm(TYPED), "f", number)
