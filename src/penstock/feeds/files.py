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
from penstock.feeds.csv_rows import RowFinder, leading_rows, open_marked
from penstock.feeds.json_rows import json_rows
from penstock.feeds.pieces import Piece, Reject, typed, value_of
from penstock.feeds.utf8 import MARK, shown
from penstock.model.schema import Field, Schema
from penstock.model.sources import CsvLayout, FileFormat
from penstock.model.types import DataType

_BLOCK_BYTES = 4 << 20
_LONGEST_LINE_BYTES = 64 << 20
_ROWS_PER_BATCH = 1 << 17


def read_pieces(
    path: Path, format: FileFormat, layout: CsvLayout, schema: Schema
) -> Iterator[Piece]:
    """The rows of a file in file order, some thousands at a time.

    Files may be gzipped (``.gz``). Memory stays bounded by the size of a piece. The same file is
    always cut into the same pieces. A file that is missing, damaged or without a needed column
    raises :class:`InputError`.
    """
    readers = {"csv": _csv_pieces, "json": _json_pieces, "parquet": _parquet_pieces}
    try:
        yield from readers[format](path, layout, schema)
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


def _csv_pieces(path: Path, layout: CsvLayout, schema: Schema) -> Iterator[Piece]:
    names = _csv_columns(path, layout, schema)
    if names is None:
        return
    skipped: list[_Skipped] = []
    finder = RowFinder(path, layout)
    number = 2 if layout.header else 1

    def skip(row: pacsv.InvalidRow) -> str:
        columns = "1 column" if row.actual_columns == 1 else f"{row.actual_columns} columns"
        reason = f"{columns} instead of {row.expected_columns}"
        skipped.append(_Skipped(row.number, reason, shown(row.text)))
        return "skip"

    with _open_csv(path, layout, schema, names, skip) as blocks:
        for block in blocks:
            numbers = _row_numbers(number, block.num_rows, skipped)
            number = int(numbers[-1]) + 1 if block.num_rows else number
            rows, faults = typed(_csv_converted(block, schema), block.columns, schema)
            # The reader is ahead of the rows it gives: the others belong to later pieces.
            mine = [one for one in skipped if one.number < number]
            skipped = [one for one in skipped if one.number >= number]
            mine += [_Skipped(int(numbers[at]), reason, "") for at, reason in faults.items()]
            yield Piece(rows, _placed(mine, finder, path.name))
    if skipped:
        empty = arrow_schema(schema).empty_table()
        yield Piece(empty, _placed(skipped, finder, path.name))


def _csv_columns(path: Path, layout: CsvLayout, schema: Schema) -> list[str] | None:
    """The names of the file's columns; None if the file has no rows."""
    rows = leading_rows(path, layout, 2 if layout.header else 1)
    if not rows:
        return None
    if not layout.header:
        return list(schema.names)
    _check_columns(path, rows[0], schema)
    return rows[0] if len(rows) > 1 else None


@contextmanager
def _open_csv(
    path: Path,
    layout: CsvLayout,
    schema: Schema,
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
                include_columns=[_spelled(name, names) for name in schema.names],
                null_values=[layout.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        ) as blocks,
    ):
        yield blocks


def _row_numbers(first: int, count: int, skipped: Iterable[_Skipped]) -> np.ndarray:
    """The numbers in the file of ``count`` rows, the first of which is not before ``first``."""
    missing = np.array([one.number for one in skipped], np.int64)
    candidates = np.arange(first, first + count + len(missing))
    return candidates[~np.isin(candidates, missing)][:count]


def _placed(skipped: list[_Skipped], finder: RowFinder, file: str) -> tuple[Reject, ...]:
    rejects = []
    for one in sorted(skipped, key=lambda one: one.number):
        line, row = finder.find(one.number)
        rejects.append(Reject(file, line, one.reason, one.row or row))
    return tuple(rejects)


def _csv_converted(block: pa.RecordBatch, schema: Schema) -> list[Converted]:
    return [_marked_bad(text, field) for text, field in zip(block.columns, schema, strict=True)]


def _marked_bad(text: pa.Array, field: Field) -> Converted:
    converted = convert_text(text, field)
    if field.type not in (DataType.STRING, DataType.BINARY):
        return converted
    marked = pc.fill_null(pc.match_substring(text, MARK), False)
    return Converted(converted.values, marked.to_numpy(zero_copy_only=False))


def _spelled(name: str, columns: list[str]) -> str:
    return next(column for column in columns if column.lower() == name.lower())


def _check_columns(path: Path, columns: list[str], schema: Schema) -> None:
    there = {column.lower() for column in columns}
    missing = [name for name in schema.names if name.lower() not in there]
    if missing:
        raise InputError(
            f"{path} has no column {listed(missing)}; it has {shown(listed(columns))}",
            hint="Correct the schema of the stream, or the file.",
        )


def _json_pieces(path: Path, layout: CsvLayout, schema: Schema) -> Iterator[Piece]:
    with _open_bytes(path) as file:
        number = 1
        for block in _line_blocks(file):
            yield json_rows(block, schema, path.name, number)
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


def _parquet_pieces(path: Path, layout: CsvLayout, schema: Schema) -> Iterator[Piece]:
    with path.open("rb") as raw, pq.ParquetFile(raw) as file:
        columns = file.schema_arrow.names
        _check_columns(path, columns, schema)
        names = [_spelled(name, columns) for name in schema.names]
        number = 1
        for batch in file.iter_batches(batch_size=_ROWS_PER_BATCH, columns=names):
            written = [batch.column(name) for name in names]
            converted = [_cast(one, field) for one, field in zip(written, schema, strict=True)]
            rows, faults = typed(converted, written, schema)
            rejects = (
                Reject(path.name, number + at, reason, _shown_row(written, at))
                for at, reason in faults.items()
            )
            yield Piece(rows, tuple(rejects))
            number += batch.num_rows


def _cast(column: pa.Array, field: Field) -> Converted:
    """The column as ``field``'s type, by way of text where that cannot be done at once."""
    none_bad = np.zeros(len(column), dtype=bool)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    wanted = arrow_schema(Schema((field,))).types[0]
    try:
        if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(wanted):
            moments = pc.cast(column, wanted, safe=False)
            bad = outside_calendar(moments)
            return Converted(pc.if_else(pa.array(bad), None, moments), bad)
        if pa.types.is_timestamp(wanted) and _is_number(column.type):
            return Converted(moments_of_seconds(column.cast(pa.float64())), none_bad)
        if not _is_string(column.type) or pa.types.is_string(wanted):
            return Converted(column.cast(wanted), none_bad)
    except pa.ArrowInvalid:
        pass
    return convert_text(column.cast(pa.string()), field)


def _is_number(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type))


def _is_string(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def _shown_row(columns: list[pa.Array], at: int) -> str:
    values = (value_of(one[at]) for one in columns)
    return ",".join("" if one is None else str(one) for one in values)
