"""Reading recorded files piece by piece: typed rows, and what could not be read set apart."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from penstock.errors import InputError, listed
from penstock.feeds.arrow import arrow_schema
from penstock.feeds.convert import (
    Converted,
    convert_text,
    moments_of_seconds,
    outside_calendar,
)
from penstock.feeds.csv_rows import (
    LONGEST_FIELD,
    NumberedRow,
    RowFinder,
    leading_rows,
    open_marked,
    rows_from,
)
from penstock.feeds.json_rows import json_rows
from penstock.feeds.pieces import Piece, Reject, RowForm, typed, value_of
from penstock.feeds.utf8 import MARK, MARK_WRONG, shown
from penstock.model.schema import Field, Schema
from penstock.model.sources import PLAIN, CsvLayout, FileFormat, Parsing
from penstock.model.types import DataType

_BLOCK_BYTES = 4 << 20
_LONGEST_LINE_BYTES = 64 << 20
_ROWS_PER_BATCH = 1 << 17


def read_pieces(
    path: Path,
    format: FileFormat,
    layout: CsvLayout,
    schema: Schema,
    parsing: Parsing = PLAIN,
) -> Iterator[Piece]:
    """The rows of a file in file order, some thousands at a time.

    They have the columns of ``schema`` and, where ``parsing`` computes an event time, that after
    them.

    Files may be gzipped (``.gz``). Memory stays bounded by the size of a piece. The same file is
    always cut into the same pieces. A file that is missing, damaged or without a needed column
    raises :class:`InputError`.
    """
    readers = {
        "csv": _csv_pieces,
        "json": _json_pieces,
        "parquet": _parquet_pieces,
        "text": _text_pieces,
    }
    try:
        yield from readers[format](path, layout, RowForm(schema, parsing))
    except FileNotFoundError:
        raise InputError(f"no file {path}", hint="Check the path.") from None
    except (OSError, EOFError, zlib.error, csv.Error, pa.ArrowException) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path} cannot be read as {format}: {first_line}",
            hint="Check that the file is whole and of that format.",
        ) from None


@dataclass(frozen=True)
class _Skipped:
    number: int
    reason: str
    row: str


def _csv_pieces(path: Path, layout: CsvLayout, form: RowForm) -> Iterator[Piece]:
    names = _csv_columns(path, layout, form)
    if names is None:
        return
    skipped: list[_Skipped] = []
    finder = RowFinder(path, layout)
    number = 2 if layout.header else 1

    def skip(row: pacsv.InvalidRow) -> str:
        reason = _wrong_count(row.actual_columns, row.expected_columns)
        skipped.append(_Skipped(row.number, reason, shown(row.text)))
        return "skip"

    with _open_csv(path, layout, form, names, skip) as blocks:
        try:
            for block in blocks:
                numbers = _row_numbers(number, block.num_rows, skipped)
                number = int(numbers[-1]) + 1 if block.num_rows else number
                rows, faults = typed(_csv_converted(block.columns, form), block.columns, form)
                # The reader is ahead of the rows it gives: the others belong to later pieces.
                mine = [skip for skip in skipped if skip.number < number]
                skipped = [skip for skip in skipped if skip.number >= number]
                mine += [_Skipped(int(numbers[at]), reason, "") for at, reason in faults.items()]
                yield Piece(rows, _placed(mine, finder, path.name))
        except pa.ArrowInvalid as error:
            if "straddling object" not in str(error):
                raise
            # A row longer than Arrow can read.
            yield from _rest_of_csv(path, layout, form, names, number)
            return
    if skipped:
        yield Piece(form.no_rows(), _placed(skipped, finder, path.name))


def _rest_of_csv(
    path: Path, layout: CsvLayout, form: RowForm, names: list[str], number: int
) -> Iterator[Piece]:
    """The rows from ``number`` on, one by one: what is too long is one bad row like any other."""
    columns = [names.index(name) for name in _included(form, layout, names)]
    rest = rows_from(path, layout, number)
    while block := _taken(rest):
        rejects: dict[int, tuple[str, str]] = {}
        for line, row, text in block:
            if row is None:
                rejects[line] = (f"a field of more than {LONGEST_FIELD >> 20} MiB", "")
            elif len(row) != len(names):
                rejects[line] = (_wrong_count(len(row), len(names)), text)
        good = [(line, row, text) for line, row, text in block if row and line not in rejects]
        texts = [
            pa.array(
                [None if row[at] == layout.null else row[at] for _, row, _ in good], pa.string()
            )
            for at in columns
        ]
        rows, faults = typed(_csv_converted(texts, form), texts, form)
        rejects |= {good[at][0]: (reason, good[at][2]) for at, reason in faults.items()}
        letters = (
            Reject(path.name, line, reason, shown(text))
            for line, (reason, text) in sorted(rejects.items())
        )
        yield Piece(rows, tuple(letters))


def _taken(rows: Iterator[NumberedRow]) -> list[NumberedRow]:
    """The next rows, up to about a block."""
    taken: list[NumberedRow] = []
    size = 0
    for line, row, text in rows:
        taken.append((line, row, text))
        size += len(text) + 1
        if size >= _BLOCK_BYTES:
            break
    return taken


def _wrong_count(there: int, wanted: int) -> str:
    columns = "1 column" if there == 1 else f"{there} columns"
    return f"{columns} instead of {wanted}"


def _csv_columns(path: Path, layout: CsvLayout, form: RowForm) -> list[str] | None:
    """The names of the file's columns; None if the file has no rows."""
    rows = leading_rows(path, layout, 2 if layout.header else 1)
    if not rows:
        return None
    if not layout.header:
        return list(form.schema.names)
    _check_columns(path, rows[0], form)
    return rows[0] if len(rows) > 1 else None


def _included(form: RowForm, layout: CsvLayout, names: list[str]) -> list[str]:
    """The file's names of the columns that are read."""
    if not layout.header:
        return names
    return [_spelled(name, names) for name in form.written_names]


@contextmanager
def _open_csv(
    path: Path,
    layout: CsvLayout,
    form: RowForm,
    names: list[str],
    skip: Callable[[pacsv.InvalidRow], str],
) -> Iterator[pacsv.CSVStreamingReader]:
    with (
        open_marked(path) as stream,
        pacsv.open_csv(
            stream,
            # One thread keeps the numbers of rows and the file's order exact.
            read_options=pacsv.ReadOptions(
                column_names=None if layout.header else names,
                block_size=_BLOCK_BYTES,
                use_threads=False,
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=layout.delimiter,
                quote_char='"',
                newlines_in_values=True,
                invalid_row_handler=skip,
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=_included(form, layout, names),
                null_values=[layout.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        ) as blocks,
    ):
        yield blocks


def _row_numbers(first: int, count: int, skipped: Iterable[_Skipped]) -> np.ndarray:
    """The numbers in the file of ``count`` rows, the first of which is not before ``first``."""
    missing = np.array([skip.number for skip in skipped], np.int64)
    candidates = np.arange(first, first + count + len(missing))
    return candidates[~np.isin(candidates, missing)][:count]


def _placed(skipped: list[_Skipped], finder: RowFinder, file: str) -> tuple[Reject, ...]:
    rejects = []
    for skip in sorted(skipped, key=lambda skip: skip.number):
        line, row = finder.find(skip.number)
        rejects.append(Reject(file, line, skip.reason, skip.row or row))
    return tuple(rejects)


def _csv_converted(texts: list[pa.Array], form: RowForm) -> list[Converted]:
    return [_marked_bad(text, field, form) for text, field in zip(texts, form.schema, strict=True)]


def _marked_bad(text: pa.Array, field: Field, form: RowForm) -> Converted:
    converted = convert_text(text, field, form.parsing.time_format)
    if field.type not in (DataType.STRING, DataType.BINARY):
        return converted
    marked = pc.fill_null(pc.match_substring(text, MARK), False)
    return Converted(converted.values, marked.to_numpy(zero_copy_only=False))


def _spelled(name: str, columns: list[str]) -> str:
    return next(column for column in columns if column.lower() == name.lower())


def _check_columns(path: Path, columns: list[str], form: RowForm) -> None:
    there = {column.lower() for column in columns}
    missing = [name for name in form.written_names if name.lower() not in there]
    if missing:
        raise InputError(
            f"{path} has no column {listed(missing)}; it has {shown(listed(columns))}",
            hint="Correct the schema of the stream, or the file.",
        )


def _json_pieces(path: Path, layout: CsvLayout, form: RowForm) -> Iterator[Piece]:
    with _open_bytes(path) as file:
        number = 1
        for block in _line_blocks(file):
            yield json_rows(block, form, path.name, number)
            number += len(block)


def _text_pieces(path: Path, layout: CsvLayout, form: RowForm) -> Iterator[Piece]:
    """Every line as one string, without its line end."""
    with _open_bytes(path) as file:
        number = 1
        for block in _line_blocks(file):
            lines = [line.removesuffix(b"\n").removesuffix(b"\r") for line in block]
            text = pa.array([line.decode("utf-8", MARK_WRONG) for line in lines], pa.string())
            rows, faults = typed(_csv_converted([text], form), [text], form)
            rejects = (
                Reject(path.name, number + at, reason, lines[at].decode("utf-8", "replace"))
                for at, reason in faults.items()
            )
            yield Piece(rows, tuple(rejects))
            number += len(block)


def _open_bytes(path: Path) -> BufferedIOBase:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _line_blocks(file: BufferedIOBase) -> Iterator[list[bytes]]:
    block: list[bytes] = []
    size = 0
    while line := file.readline(_LONGEST_LINE_BYTES):
        if len(line) == _LONGEST_LINE_BYTES:
            raise OSError(f"a line of {_LONGEST_LINE_BYTES >> 20} MiB or more")
        block.append(line)
        size += len(line)
        if size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def _parquet_pieces(path: Path, layout: CsvLayout, form: RowForm) -> Iterator[Piece]:
    with path.open("rb") as raw, pq.ParquetFile(raw) as file:
        columns = file.schema_arrow.names
        _check_columns(path, columns, form)
        names = [_spelled(name, columns) for name in form.written_names]
        number = 1
        for batch in file.iter_batches(batch_size=_ROWS_PER_BATCH, columns=names):
            written = [batch.column(name) for name in names]
            pairs = zip(written, form.schema, strict=True)
            converted = [_cast(column, field, form.parsing.time_format) for column, field in pairs]
            rows, faults = typed(converted, written, form)
            rejects = (
                Reject(path.name, number + at, reason, _shown_row(written, at))
                for at, reason in faults.items()
            )
            yield Piece(rows, tuple(rejects))
            number += batch.num_rows


def _cast(column: pa.Array, field: Field, time_format: str) -> Converted:
    """The column as ``field``'s type, by way of text where that cannot be done at once."""
    none_bad = np.zeros(len(column), dtype=bool)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    wanted = arrow_schema(Schema((field,))).types[0]
    try:
        if _same_kind_of_time(column.type, wanted):
            moments = pc.cast(column, wanted, safe=False)
            bad = outside_calendar(moments)
            return Converted(pc.if_else(pa.array(bad), None, moments), bad)
        if pa.types.is_timestamp(wanted) and _is_number(column.type) and not time_format:
            return Converted(moments_of_seconds(column.cast(pa.float64())), none_bad)
        is_written = pa.types.is_timestamp(wanted) and bool(time_format)
        if (not _is_string(column.type) and not is_written) or pa.types.is_string(wanted):
            return Converted(column.cast(wanted), none_bad)
    except pa.ArrowInvalid:
        pass
    return convert_text(column.cast(pa.string()), field, time_format)


def _same_kind_of_time(type: pa.DataType, other: pa.DataType) -> bool:
    kinds = (pa.types.is_timestamp, pa.types.is_date)
    return any(kind(type) and kind(other) for kind in kinds)


def _is_number(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type))


def _is_string(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def _shown_row(columns: list[pa.Array], at: int) -> str:
    values = (value_of(column[at]) for column in columns)
    return ",".join("" if value is None else str(value) for value in values)
