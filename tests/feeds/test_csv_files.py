"""Reading CSV files: what is kept, what is set apart, and where it stood."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feeds.reading import NO_HEADER, Reading, refusal, written
from laws import tried
from penstock.feeds import csv_rows, files
from penstock.feeds.pieces import Reject
from penstock.model.schema import Schema
from penstock.model.sources import CsvLayout


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


def test_rejects_keep_their_quotes_and_can_be_read_again(tmp_path: Path) -> None:
    rows = ['"Ann, ""A""",x', '"two\r\nlines",y', "plain,z", "é,w"]
    content = "home,kwh\r\n" + "\r\n".join(["a,1", *rows]) + "\r\n"
    rejects = Reading(written(tmp_path, content)).rejects
    assert [reject.row for reject in rejects] == rows
    mended = "home,kwh\n" + "\n".join(reject.row[:-1] + "2" for reject in rejects)
    assert Reading(written(tmp_path, mended)).tuples == [
        ('Ann, "A"', 2.0),
        ("two\r\nlines", 2.0),
        ("plain", 2.0),
        ("é", 2.0),
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
        assert [reject.line for reject in reading.rejects] == [2 + at for at in range(0, 2_000, 97)]
        assert set(reading.tuples) == {("ää", 1.0)}

    def test_cut_off_at_the_end(self, tmp_path: Path) -> None:
        reading = Reading(written(tmp_path, "home,kwh\na,1\nä,2".encode()[:-3] + b"\xc3"))
        assert [reject.line for reject in reading.rejects] == [3]

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


@tried(50)
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
    assert [reject.line for reject in reading.rejects] == bad_lines


def test_rejects_come_with_the_piece_they_stood_in(tmp_path: Path, small_blocks: int) -> None:
    """The parser runs ahead of the rows it gives; a resumed reading must cut the same way."""
    lines = [f"h{at}" if at % 50 == 0 else f"h{at},{at}" for at in range(2_000)]
    pieces = Reading(written(tmp_path, "home,kwh\n" + "\n".join(lines))).pieces
    assert len(pieces) > 10
    last = 1
    for piece in pieces:
        rows_and_rejects = piece.rows.num_rows + len(piece.rejects)
        assert all(last < reject.line <= last + rows_and_rejects for reject in piece.rejects)
        last += rows_and_rejects
    assert last == 2_001


def test_a_file_is_always_cut_the_same_way(tmp_path: Path, small_blocks: int) -> None:
    lines = "".join(f"h{at},{'x' if at % 7 == 0 else at}\n" for at in range(1_000))
    path = written(tmp_path, "home,kwh\n" + lines, "a.csv.gz")
    one, other = Reading(path).pieces, Reading(path).pieces
    assert [piece.rejects for piece in one] == [piece.rejects for piece in other]
    assert [piece.rows.num_rows for piece in one] == [piece.rows.num_rows for piece in other]


def test_a_row_longer_than_a_block_is_an_error_of_that_file(
    tmp_path: Path, small_blocks: int
) -> None:
    path = written(tmp_path, f'home,kwh\n"{"x" * 10_000}",1\n')
    assert refusal(path).startswith(f"{path} cannot be read as csv: straddling object")


def test_an_open_quote_does_not_take_the_file_with_it_unnoticed(tmp_path: Path) -> None:
    reading = Reading(written(tmp_path, 'home,kwh\na,1\n"b,2\nc,3\n'))
    assert reading.tuples == [("a", 1.0)]
    assert reading.rejects == [Reject("a.csv", 3, "1 column instead of 2", '"b,2\nc,3')]


def test_a_long_field_is_read(tmp_path: Path) -> None:
    """Python's csv module, which finds lines, stops at 131,072 characters unless told otherwise."""
    long = "x" * 131_073
    reading = Reading(written(tmp_path, f"home,kwh\n{long},1\nb,x\nc,2\n"))
    assert reading.tuples == [(long, 1.0), ("c", 2.0)]
    assert reading.rejects == [Reject("a.csv", 3, "kwh: 'x' is no double", "b,x")]


def test_rows_longer_than_a_block_are_read_or_set_aside_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1_000)
    long = "x" * 5_000
    content = f'kwh,home\n1,a\n2,"{long}"\nx,b\n3\n4,\n5,é\n'
    reading = Reading(written(tmp_path, content))
    assert reading.tuples == [("a", 1.0), (long, 2.0), (None, 4.0), ("é", 5.0)]
    assert reading.complaints == [(4, "kwh: 'x' is no double"), (5, "1 column instead of 2")]


def test_a_field_beyond_all_limits_is_one_dead_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1_000)
    huge = "x" * (csv_rows.LONGEST_FIELD + 1)
    reading = Reading(written(tmp_path, f"home,kwh\na,1\n{huge},2\nb,3\n"))
    assert reading.tuples == [("a", 1.0), ("b", 3.0)]
    assert reading.complaints == [(3, "a field of more than 8 MiB")]


def test_a_quote_that_is_never_closed_does_not_take_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1_000)
    rest = "b,3\n" * (csv_rows.LONGEST_FIELD // 4 + 10)
    reading = Reading(written(tmp_path, f'home,kwh\na,1\n"open,2\n{rest}'))
    assert reading.complaints == [(3, "a field of more than 8 MiB")]
    assert reading.tuples[0] == ("a", 1.0)
    assert 0 < len(reading.tuples) - 1 < 20
