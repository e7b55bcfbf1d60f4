"""Reading files: what is kept, what is set apart, and where it stood."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.feeds import files
from penstock.feeds.files import Piece, Reject, json_rows, read_pieces
from penstock.model.schema import Schema
from penstock.model.sources import CsvLayout, FileFormat

SCHEMA = Schema.parse("home string, kwh double")
DATA = Path(__file__).parents[3] / "shared" / "data"
PLAIN, NO_HEADER = CsvLayout(), CsvLayout(header=False)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> int:
    """Files of some kilobytes are read in several blocks."""
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1024)
    return 1024


class Reading:
    """A file read to its end."""

    def __init__(
        self,
        path: Path,
        format: FileFormat = "csv",
        layout: CsvLayout = PLAIN,
        schema: Schema = SCHEMA,
    ) -> None:
        self.pieces = list(read_pieces(path, format, layout, schema))
        self.rejects = [one for piece in self.pieces for one in piece.rejects]
        self.rows = [row for piece in self.pieces for row in piece.rows.to_pylist()]

    @property
    def tuples(self) -> list[tuple[object, ...]]:
        return [tuple(row.values()) for row in self.rows]

    @property
    def complaints(self) -> list[tuple[int, str]]:
        return [(one.line, one.reason) for one in self.rejects]


def written(folder: Path, content: bytes | str, name: str = "a.csv") -> Path:
    path = folder / name
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def refusal(path: Path, format: FileFormat = "csv", schema: Schema = SCHEMA) -> str:
    with pytest.raises(InputError) as caught:
        Reading(path, format, schema=schema)
    return str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        "home,kwh\na,1.5\nb,2\n",
        "home,kwh\na,1.5\nb,2",
        "home,kwh\r\na,1.5\r\nb,2\r\n",
        "\ufeffhome,kwh\na,1.5\nb,2\n",
        "\n\nhome,kwh\n\na,1.5\n\n\nb,2\n\n",
        '"home","kwh"\n"a","1.5"\n"b",2\n',
        "kwh,HOME\n1.5,a\n2,b\n",
        "extra,home,more,kwh\n9,a,x,1.5\n9,b,y,2\n",
        'x,"odd, name",home,kwh\n1,2,a,1.5\n1,2,b,2\n',
        b"caf\xe9,home,kwh\n1,a,1.5\n2,b,2\n",
    ],
)
def test_one_table_in_many_spellings(tmp_path: Path, content: str | bytes) -> None:
    reading = Reading(written(tmp_path, content))
    assert reading.tuples == [("a", 1.5), ("b", 2.0)]
    assert reading.rejects == []


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_gzipped_files_read_the_same(tmp_path: Path, name: str) -> None:
    content = "home,kwh\na,1.5\nb,x\n"
    reading = Reading(written(tmp_path, content, name))
    assert reading.tuples == [("a", 1.5)]
    assert reading.rejects == [Reject(name, 3, "kwh: 'x' is no double", "b,x")]


def test_quotes_protect_delimiters_quotes_and_line_ends(tmp_path: Path) -> None:
    content = 'home,kwh\n"a,b",1\n"say ""hi""",2\n"two\nlines",3\n5" pipe,4\n'
    names = [home for home, _ in Reading(written(tmp_path, content)).tuples]
    assert names == ["a,b", 'say "hi"', "two\nlines", '5" pipe']


def test_a_file_without_a_header_is_read_by_position(tmp_path: Path) -> None:
    reading = Reading(written(tmp_path, "a,1.5\nb\nc,2,3\n"), layout=NO_HEADER)
    assert reading.tuples == [("a", 1.5)]
    assert reading.rejects == [
        Reject("a.csv", 2, "1 column instead of 2", "b"),
        Reject("a.csv", 3, "3 columns instead of 2", "c,2,3"),
    ]


def test_another_delimiter_and_null(tmp_path: Path) -> None:
    path = written(tmp_path, "home\tkwh\n-\t1\na\t-\n\t2\n")
    assert Reading(path, layout=CsvLayout("\t", null="-")).tuples == [
        (None, 1.0),
        ("a", None),
        ("", 2.0),
    ]


def test_empty_fields_are_null_also_in_quotes(tmp_path: Path) -> None:
    path = written(tmp_path, 'home,kwh\n,1\n"",2\na,\n')
    assert Reading(path).tuples == [(None, 1.0), (None, 2.0), ("a", None)]


@pytest.mark.parametrize("content", ["", "\n", "home,kwh", "home,kwh\n", "home,kwh\r\n\r\n"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_file_without_rows_gives_none(tmp_path: Path, content: str, name: str) -> None:
    reading = Reading(written(tmp_path, content, name))
    assert reading.rows == []
    assert reading.rejects == []


def test_missing_columns_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, "hom,kw\na,1\n")
    assert refusal(path) == (
        f"{path} has no column home, kwh; it has hom, kw. "
        "Correct the schema of the stream, or the file."
    )
    assert refusal(written(tmp_path, "kwh\n")) == (
        f"{path} has no column home; it has kwh. Correct the schema of the stream, or the file."
    )


EVERY_TYPE = Schema.parse(
    "b boolean, i int, l bigint, d double, s string, t timestamp, day date, raw binary"
)
GOOD_ROW = "true,1,2,3.5,x,2024-02-29 10:00,2024-02-29,y"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("b", "yes"),
        ("i", "3000000000"),
        ("i", "1.5"),
        ("l", "99999999999999999999"),
        ("d", "1.5 kWh"),
        ("t", "yesterday"),
        ("t", "1521911720865"),
        ("day", "2024-02-30"),
    ],
)
def test_a_bad_value_of_every_type_sets_its_row_aside(
    tmp_path: Path, column: str, value: str
) -> None:
    fields = dict(zip(EVERY_TYPE.names, GOOD_ROW.split(","), strict=True))
    bad_row = ",".join((fields | {column: value}).values())
    content = f"{','.join(EVERY_TYPE.names)}\n{GOOD_ROW}\n{bad_row}\n{GOOD_ROW}\n"
    reading = Reading(written(tmp_path, content), schema=EVERY_TYPE)
    moment = datetime(2024, 2, 29, 10, tzinfo=UTC)
    wanted = (True, 1, 2, 3.5, "x", moment, date(2024, 2, 29), b"y")
    assert reading.tuples == [wanted, wanted]
    reason = f"{column}: {value!r} is no {EVERY_TYPE[column].type}"
    assert reading.rejects == [Reject("a.csv", 3, reason, bad_row)]


def test_all_forms_of_timestamps_may_be_mixed_in_a_column(tmp_path: Path) -> None:
    forms = ["2018-03-24T17:15:20Z", "1521911720", "2018-03-24 17:15:20", "2018-03-24 19:15:20+02"]
    path = written(tmp_path, "t\n" + "\n".join(forms) + "\nx\n")
    reading = Reading(path, schema=Schema.parse("t timestamp"))
    assert set(reading.tuples) == {(datetime(2018, 3, 24, 17, 15, 20, tzinfo=UTC),)}
    assert len(reading.rows) == 4
    assert reading.complaints == [(6, "t: 'x' is no timestamp")]


class TestBytesThatAreNotUtf8:
    def test_set_their_row_aside_and_nothing_else(self, tmp_path: Path) -> None:
        content = b"home,kwh\na,1\ncaf\xe9,2\nb,3\xff\n\xe4\xf6\xfc\nc,4\n"
        reading = Reading(written(tmp_path, content))
        assert reading.tuples == [("a", 1.0), ("c", 4.0)]
        assert reading.rejects == [
            Reject("a.csv", 3, "home: 'caf�' is not UTF-8", "caf�,2"),
            Reject("a.csv", 4, "kwh: '3�' is not UTF-8", "b,3�"),
            Reject("a.csv", 5, "1 column instead of 2", "���"),
        ]

    def test_do_not_matter_in_columns_that_are_not_read(self, tmp_path: Path) -> None:
        reading = Reading(written(tmp_path, b"home,x,kwh\na,caf\xe9,1\n"))
        assert reading.tuples == [("a", 1.0)]

    def test_are_found_wherever_blocks_are_cut(self, tmp_path: Path, small_blocks: int) -> None:
        # Two-byte characters everywhere, so that reads end in the middle of some.
        rows = [b"\xe9,1" if at % 97 == 0 else "ää,1".encode() for at in range(2_000)]
        reading = Reading(written(tmp_path, b"home,kwh\n" + b"\n".join(rows)))
        assert [one.line for one in reading.rejects] == [2 + at for at in range(0, 2_000, 97)]
        assert set(reading.tuples) == {("ää", 1.0)}

    def test_cut_off_at_the_end(self, tmp_path: Path) -> None:
        reading = Reading(written(tmp_path, "home,kwh\na,1\nä,2".encode()[:-3] + b"\xc3"))
        assert [one.line for one in reading.rejects] == [3]

    def test_are_rejected_in_binary_columns_too(self, tmp_path: Path) -> None:
        path = written(tmp_path, b"raw\n\xff\nok\n")
        reading = Reading(path, schema=Schema.parse("raw binary"))
        assert reading.tuples == [(b"ok",)]
        assert reading.complaints == [(2, "raw: '�' is not UTF-8")]


# A row of a file with what is expected of it: its text, and its values or None.
good_rows = st.tuples(st.text("ab", max_size=3).map(lambda one: one or "x"), st.integers(0, 9)).map(
    lambda one: (f"{one[0]},{one[1]}", (one[0], float(one[1])))
)
quoted_rows = st.lists(st.sampled_from(["a", '""', ",", "\n", "é"]), min_size=1, max_size=5).map(
    lambda parts: (f'"{"".join(parts)}",1', ("".join(parts).replace('""', '"'), 1.0))
)
bad_rows = st.sampled_from(["a,x", "a", "a,1,2", "a,\udcff", '"two\nlines",oops', "  "])
rows_of_files = st.lists(
    st.one_of(
        good_rows,
        quoted_rows,
        bad_rows.map(lambda text: (text, None)),
        st.just(("", "empty")),
    ),
    max_size=40,
)


@settings(database=None, deadline=None, max_examples=80)
@given(rows=rows_of_files, ending=st.sampled_from(["\n", "\r\n"]), header=st.booleans())
def test_lines_of_rejects_are_exact(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, object]],
    ending: str,
    header: bool,
) -> None:
    lines, wanted, bad_lines, line = [], [], [], 1
    for text, values in [("home,kwh", "empty"), *rows] if header else rows:
        lines.append(text)
        if values is None:
            bad_lines.append(line)
        elif values != "empty":
            wanted.append(values)
        line += 1 + text.count("\n")
    content = "".join(one + ending for one in lines).encode("utf-8", "surrogateescape")
    path = written(tmp_path_factory.mktemp("rows"), content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_BLOCK_BYTES", 64)
        reading = Reading(path, layout=CsvLayout(header=header))
    assert reading.tuples == wanted
    assert [one.line for one in reading.rejects] == bad_lines


def test_rejects_come_with_the_piece_they_stood_in(tmp_path: Path, small_blocks: int) -> None:
    """The parser runs ahead of the rows it gives; a resumed reading must cut the same way."""
    lines = [f"h{at}" if at % 50 == 0 else f"h{at},{at}" for at in range(2_000)]
    pieces = Reading(written(tmp_path, "home,kwh\n" + "\n".join(lines))).pieces
    assert len(pieces) > 10
    last = 1
    for piece in pieces:
        rows_and_rejects = piece.rows.num_rows + len(piece.rejects)
        assert all(last < one.line <= last + rows_and_rejects for one in piece.rejects)
        last += rows_and_rejects
    assert last == 2_001


def test_a_file_is_always_cut_the_same_way(tmp_path: Path, small_blocks: int) -> None:
    lines = "".join(f"h{at},{'x' if at % 7 == 0 else at}\n" for at in range(1_000))
    path = written(tmp_path, "home,kwh\n" + lines, "a.csv.gz")
    one, other = Reading(path).pieces, Reading(path).pieces
    assert [piece.rejects for piece in one] == [piece.rejects for piece in other]
    assert [piece.rows.num_rows for piece in one] == [piece.rows.num_rows for piece in other]


def most_bytes_at_once(path: Path, format: FileFormat) -> int:
    before, most = pa.total_allocated_bytes(), 0
    for piece in read_pieces(path, format, PLAIN, SCHEMA):
        most = max(most, pa.total_allocated_bytes() - before)
        assert piece.rows.num_rows < 1_000
    return most


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.jsonl.gz"])
def test_memory_is_bounded_by_a_piece(tmp_path: Path, small_blocks: int, name: str) -> None:
    """Twenty times as much to read takes no more at a time."""
    format: FileFormat = "json" if "json" in name else "csv"
    head, row = ("", '{"home": "a"}\n') if format == "json" else ("home,kwh\n", "a,1.5\n")
    small, large = (
        most_bytes_at_once(written(tmp_path, head + row * count, name), format)
        for count in (1_000, 20_000)
    )
    assert large < small + 32 * small_blocks


def test_a_row_longer_than_a_block_is_an_error_of_that_file(
    tmp_path: Path, small_blocks: int
) -> None:
    path = written(tmp_path, f'home,kwh\n"{"x" * 10_000}",1\n')
    assert refusal(path).startswith(f"{path} cannot be read as csv: straddling object")


def test_an_open_quote_does_not_take_the_file_with_it_unnoticed(tmp_path: Path) -> None:
    reading = Reading(written(tmp_path, 'home,kwh\na,1\n"b,2\nc,3\n'))
    assert reading.tuples == [("a", 1.0)]
    assert reading.rejects == [Reject("a.csv", 3, "1 column instead of 2", '"b,2\nc,3')]


def json_reading(folder: Path, *lines: str | bytes, schema: Schema = SCHEMA) -> Reading:
    raw = b"".join((one.encode() if isinstance(one, str) else one) + b"\n" for one in lines)
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
        assert [one.row for one in reading.rejects] == lines[:5] + lines[6:]

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
        assert [one.line for one in reading.rejects] == [1 + at for at in range(0, 1_000, 100)]

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
        piece = json_rows([b"{}", b"", b"x"], SCHEMA, "topic[0]", 10)
        assert isinstance(piece, Piece)
        assert [(one.file, one.line) for one in piece.rejects] == [("topic[0]", 12)]


def parquet(folder: Path, **columns: pa.Array) -> Path:
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path)
    return path


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


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_a_file_that_is_not_there(tmp_path: Path, format: FileFormat) -> None:
    path = tmp_path / "a.csv"
    assert refusal(path, format) == f"no file {path}. Check the path."


def _truncated(raw: bytes) -> bytes:
    return raw[: len(raw) // 2]


def _flipped(raw: bytes) -> bytes:
    middle = len(raw) // 2
    return raw[:middle] + bytes([raw[middle] ^ 0xFF]) * 8 + raw[middle + 8 :]


@pytest.mark.parametrize("damage", [_truncated, _flipped])
@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "a.parquet"])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, name: str, damage: object) -> None:
    rows = [f"home{at},{at}" for at in range(5_000)]
    if name == "a.parquet":
        path = parquet(tmp_path, home=pa.array(rows), kwh=pa.array([1.0] * len(rows)))
    else:
        as_json = [json.dumps({"home": one}) for one in rows]
        head = ["home,kwh"] if "csv" in name else []
        path = written(tmp_path, "\n".join(head + (rows if head else as_json)), name)
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    format: FileFormat = "csv" if "csv" in name else "json" if "json" in name else "parquet"
    message = refusal(path, format)
    assert message.startswith(f"{path} cannot be read as {format}: ")
    assert message.endswith(". Check that the file is whole and of that format.")
    assert "\n" not in message


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "home,kwh\na,1\n", "a.parquet")
    assert refusal(path, "parquet").startswith(f"{path} cannot be read as parquet: ")


def test_a_reject_is_one_line_of_json() -> None:
    reject = Reject("a.csv", 3, "kwh: 'x' is no double", '"two\nlines",x')
    assert json.loads(reject.to_json()) == {
        "file": "a.csv",
        "line": 3,
        "reason": "kwh: 'x' is no double",
        "row": '"two\nlines",x',
    }
    assert "\n" not in reject.to_json()


RECORDINGS = [
    (
        "net_wrccdc2018_zeek_dns.tsv.gz",
        CsvLayout("\t", null="-"),
        "ts timestamp, uid string, rtt double, query string",
        53_615,
        0,
    ),
    (
        "net_wrccdc2018_zeek_weird.tsv.gz",
        CsvLayout("\t", null="-"),
        "ts timestamp, uid string, name string",
        24_202,
        0,
    ),
    (
        "http_worldcup98_per_minute.csv.gz",
        CsvLayout(),
        "timestamp timestamp, num_request bigint",
        125_300,
        0,
    ),
    (
        # A log, not a table: some requests have blanks too many, some bytes are Latin-1.
        "http_epa1995_full.log.gz",
        CsvLayout(" ", header=False, null="-"),
        "host string, at string, request string, status int, bytes int",
        47_748,
        21,
    ),
]


@pytest.mark.skipif(not DATA.is_dir(), reason="the recordings beside the project are not there")
@pytest.mark.parametrize(("name", "layout", "columns", "rows", "rejects"), RECORDINGS)
def test_real_recordings(
    name: str, layout: CsvLayout, columns: str, rows: int, rejects: int
) -> None:
    pieces = list(read_pieces(DATA / name, "csv", layout, Schema.parse(columns)))
    assert sum(piece.rows.num_rows + len(piece.rejects) for piece in pieces) == rows
    assert sum(len(piece.rejects) for piece in pieces) == rejects
