"""Reading recorded files piece by piece: typed rows, and what could not be read set apart."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from penstock.errors import InputError, listed
from penstock.feeds.arrow import arrow_schema
from penstock.feeds.convert import convert_text
from penstock.model.schema import Schema
from penstock.model.sources import CsvLayout, FileFormat

_BLOCK_BYTES = 4 << 20
_LINES_AT_ONCE = 20_000


@dataclass(frozen=True)
class Reject:
    """A row that could not be read: where it stood, why, and what it said."""

    file: str
    line: int
    reason: str
    row: str

    def to_json(self) -> str:
        """The reject as one line of a dead-letter file."""
        return json.dumps(
            {"file": self.file, "line": self.line, "reason": self.reason, "row": self.row}
        )


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a file and the rejects among them."""

    rows: pa.Table
    rejects: tuple[Reject, ...] = ()


def read_pieces(
    path: Path, format: FileFormat, layout: CsvLayout, schema: Schema
) -> Iterator[Piece]:
    """The rows of a file in file order, some thousands at a time.

    Files may be gzipped (``.gz``). Memory stays bounded by the size of a piece. A file that is
    missing, damaged or without a needed column raises :class:`InputError`.
    """
    readers = {"csv": _csv_pieces, "json": _json_pieces, "parquet": _parquet_pieces}
    try:
        yield from readers[format](path, layout, schema)
    except FileNotFoundError:
        raise InputError(f"no file {path}", hint="Check the path.") from None
    except (OSError, EOFError, pa.ArrowException, UnicodeDecodeError) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path} cannot be read as {format}: {first_line}",
            hint="Check that the file is whole and of that format.",
        ) from None


def _csv_pieces(path: Path, layout: CsvLayout, schema: Schema) -> Iterator[Piece]:
    rejects: list[Reject] = []
    line = 2 if layout.header else 1

    def reject(row: pacsv.InvalidRow) -> str:
        reason = f"{row.actual_columns} columns instead of {row.expected_columns}"
        rejects.append(Reject(path.name, row.number or 0, reason, row.text))
        return "skip"

    with _open_csv(path, layout, schema, reject) as blocks:
        for block in blocks:
            table = pa.Table.from_batches([block])
            piece = _typed_text(table, schema, path.name, line)
            line += table.num_rows
            yield Piece(piece.rows, (*piece.rejects, *rejects))
            rejects.clear()
    if rejects:
        yield Piece(arrow_schema(schema).empty_table(), tuple(rejects))


def _open_csv(path, layout, schema, reject):  # type: ignore[no-untyped-def]
    names = None if layout.header else list(schema.names)
    columns = _csv_columns(path, layout) if layout.header else names
    assert columns is not None
    _check_columns(path, columns, schema)
    return pacsv.open_csv(
        pa.input_stream(str(path), compression="detect"),
        # One thread keeps line numbers of bad rows and file order exact.
        read_options=pacsv.ReadOptions(
            column_names=names, block_size=_BLOCK_BYTES, use_threads=False
        ),
        parse_options=pacsv.ParseOptions(
            delimiter=layout.delimiter, invalid_row_handler=reject, quote_char='"'
        ),
        convert_options=pacsv.ConvertOptions(
            column_types={name: pa.string() for name in columns},
            include_columns=[_spelled(name, columns) for name in schema.names],
            null_values=[layout.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    )


def _csv_columns(path: Path, layout: CsvLayout) -> list[str]:
    with pa.input_stream(str(path), compression="detect") as stream:
        head = stream.read(1 << 16).split(b"\n", 1)[0]
    fields = head.decode("utf-8-sig").rstrip("\r").split(layout.delimiter)
    return [field.strip('"') for field in fields]


def _spelled(name: str, columns: list[str]) -> str:
    return next(column for column in columns if column.lower() == name.lower())


def _check_columns(path: Path, columns: list[str], schema: Schema) -> None:
    there = {column.lower() for column in columns}
    missing = [name for name in schema.names if name.lower() not in there]
    if missing:
        raise InputError(
            f"{path} has no column {listed(missing)}; it has {listed(columns)}",
            hint="Correct the schema of the stream, or the file.",
        )


def _typed_text(table: pa.Table, schema: Schema, file: str, first_line: int) -> Piece:
    converted = [
        convert_text(table.column(at).combine_chunks(), field) for at, field in enumerate(schema)
    ]
    bad = np.logical_or.reduce([one.bad for one in converted])
    rows = pa.table([one.values for one in converted], schema=arrow_schema(schema))
    if not bad.any():
        return Piece(rows)
    rejects = []
    for at in np.flatnonzero(bad).tolist():
        wrong = next(i for i, one in enumerate(converted) if one.bad[at])
        text = [column[at].as_py() for column in table.columns]
        reason = f"{schema.fields[wrong].name}: {text[wrong]!r} is no {schema.fields[wrong].type}"
        row = ",".join("" if one is None else one for one in text)
        rejects.append(Reject(file, first_line + at, reason, row))
    return Piece(rows.filter(pa.array(~bad)), tuple(rejects))


def _json_pieces(path: Path, layout: CsvLayout, schema: Schema) -> Iterator[Piece]:
    with _open_text(path) as lines:
        number = 1
        while block := list(islice(lines, _LINES_AT_ONCE)):
            yield json_rows(block, schema, path.name, number)
            number += len(block)


def _open_text(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def json_rows(lines: list[bytes], schema: Schema, file: str, first_line: int) -> Piece:
    """Typed rows of JSON objects, one a line; what is no object or has bad values is set apart.

    >>> piece = json_rows([b'{"kwh": 1.5}', b'oops'], Schema.parse("kwh double"), "f", 1)
    >>> piece.rows.to_pylist(), piece.rejects[0].line
    ([{'kwh': 1.5}], 2)
    """
    objects: list[dict[str, object]] = []
    numbers: list[int] = []
    rejects: list[Reject] = []
    for number, line in enumerate(lines, first_line):
        if not line.strip():
            continue
        found = _json_object(line)
        if found is None:
            shown = line.decode("utf-8", "replace").rstrip("\r\n")
            rejects.append(Reject(file, number, "not a JSON object", shown))
        else:
            objects.append({key.lower(): value for key, value in found.items()})
            numbers.append(number)
    columns = [_json_column(objects, field.name.lower()) for field in schema]
    piece = _typed_text(pa.table(columns, names=list(schema.names)), schema, file, 0)
    placed = [
        Reject(file, numbers[one.line], one.reason, json.dumps(objects[one.line]))
        for one in piece.rejects
    ]
    return Piece(piece.rows, (*rejects, *placed))


def _json_object(line: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _json_column(objects: list[dict[str, object]], name: str) -> pa.Array:
    return pa.array([_json_text(one.get(name)) for one in objects], pa.string())


def _json_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else json.dumps(value)


def _parquet_pieces(path: Path, layout: CsvLayout, schema: Schema) -> Iterator[Piece]:
    wanted = arrow_schema(schema)
    with pq.ParquetFile(path) as file:
        columns = file.schema_arrow.names
        _check_columns(path, columns, schema)
        names = [_spelled(name, columns) for name in schema.names]
        for batch in file.iter_batches(batch_size=1 << 17, columns=names):
            table = pa.Table.from_batches([batch]).select(names)
            yield Piece(pa.table([_cast(one, to) for one, to in zip(table.columns, wanted)],
                                 schema=wanted))


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(field.type):
        return pc.cast(column, field.type, safe=False)
    return column.cast(field.type)
