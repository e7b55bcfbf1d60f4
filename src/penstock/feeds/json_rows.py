"""JSON objects, one a line, to typed rows.

Arrow reads many lines at once, about ten times as fast as line by line; it is asked first. Where
it might read something differently, or cannot read it, line by line decides: what becomes of a row
depends on that row alone.
"""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from penstock.feeds.arrow import ARROW_TYPES, arrow_schema
from penstock.feeds.convert import convert_text, moments_of_seconds
from penstock.feeds.pieces import Piece, Reject, typed
from penstock.model.schema import Field, Schema
from penstock.model.types import DataType

_BLANK = b" \t\r\n"
_ONE_BY_ONE = 128
"""So few lines are not worth dividing further to find the ones that need a closer look."""

# Halves of characters, and a zero with a sign that an integer loses on the way. Each pattern
# begins with fixed letters, which are searched for fast.
_READ_DIFFERENTLY = (re.compile(rb"\\u[dD][89a-fA-F]"), re.compile(rb"-0[,}\]\s]"))
_AS_TEXT = (DataType.STRING, DataType.BINARY, DataType.DATE)


def json_rows(lines: list[bytes], schema: Schema, file: str, first_line: int) -> Piece:
    """Typed rows of JSON objects, one a line; what is no object or has bad values is set apart.

    >>> piece = json_rows([b'{"kwh": 1.5}', b'oops'], Schema.parse("kwh double"), "f", 1)
    >>> piece.rows.to_pylist(), piece.rejects[0].line
    ([{'kwh': 1.5}], 2)
    """
    rows = _all_at_once(lines, schema)
    if rows is not None:
        return Piece(rows)
    if len(lines) <= _ONE_BY_ONE:
        return _one_by_one(lines, schema, file, first_line)
    half = len(lines) // 2
    before = json_rows(lines[:half], schema, file, first_line)
    after = json_rows(lines[half:], schema, file, first_line + half)
    return Piece(pa.concat_tables([before.rows, after.rows]), before.rejects + after.rejects)


def _all_at_once(lines: list[bytes], schema: Schema) -> pa.Table | None:
    """The rows, if every line is surely read as it would be alone; None otherwise."""
    objects = [stripped for line in lines if (stripped := line.strip(_BLANK))]
    if not objects:
        return arrow_schema(schema).empty_table()
    raw = b"\n".join(objects)
    if not all(one.startswith(b"{") and one.endswith(b"}") for one in objects):
        return None
    if any(pattern.search(raw) for pattern in _READ_DIFFERENTLY) or not _is_utf8(raw):
        return None
    has_times = any(field.type is DataType.TIMESTAMP for field in schema)
    for moment in (pa.string(), pa.float64()) if has_times else (pa.string(),):
        rows = _rows(raw, len(objects), schema, moment)
        if rows is not None:
            return rows
    return None


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _rows(raw: bytes, count: int, schema: Schema, moment: pa.DataType) -> pa.Table | None:
    """The rows, with times written as texts or as numbers; None if not all can be read so."""
    try:
        found = _parsed(raw, schema, moment)
        if not _is_certain(found, count, schema):
            return None
        columns = [_converted(found[field.name], field) for field in schema]
        return pa.table(columns, schema=arrow_schema(schema))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None  # Line by line tells which of them cannot, and why.


def _parsed(raw: bytes, schema: Schema, moment: pa.DataType) -> pa.Table:
    """The objects as a table in which times are texts or numbers still."""
    kinds = {one: pa.string() for one in _AS_TEXT} | {DataType.TIMESTAMP: moment}
    wanted = [(one.name, kinds.get(one.type, ARROW_TYPES[one.type])) for one in schema]
    return pajson.read_json(
        pa.BufferReader(raw),
        # One block: objects never lie across the border of two.
        read_options=pajson.ReadOptions(use_threads=False, block_size=len(raw) + 1),
        parse_options=pajson.ParseOptions(
            explicit_schema=pa.schema(wanted), unexpected_field_behavior="infer"
        ),
    )


def _is_certain(found: pa.Table, rows: int, schema: Schema) -> bool:
    """Whether there is one row a line, every name is spelled as ours, and no number is endless."""
    names = {name.lower() for name in schema.names}
    others = found.column_names[len(schema.names) :]
    doubles = [found[one.name] for one in schema if one.type is DataType.DOUBLE]
    return (
        found.num_rows == rows
        and not any(name.lower() in names for name in others)
        and not any(pc.any(pc.is_inf(one)).as_py() for one in doubles)
    )


def _converted(column: pa.ChunkedArray, field: Field) -> pa.Array:
    """The column as ``field``'s type; raises where that cannot be done for all of it."""
    values = column.combine_chunks()
    if field.type is DataType.TIMESTAMP and pa.types.is_floating(values.type):
        return moments_of_seconds(values)
    if field.type not in (DataType.TIMESTAMP, *_AS_TEXT):
        return values
    converted = convert_text(values, field)
    if converted.bad.any():
        raise pa.ArrowInvalid("bad values among them")
    return converted.values


def _one_by_one(lines: list[bytes], schema: Schema, file: str, first_line: int) -> Piece:
    objects: list[dict[str, object]] = []
    places: list[int] = []
    wrong: dict[int, str] = {}
    for at, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            objects.append(_object(line))
            places.append(at)
        except ValueError as error:
            wrong[at] = str(error)
    written = [_column(objects, field.name.lower()) for field in schema]
    converted = [convert_text(text, field) for text, field in zip(written, schema, strict=True)]
    rows, faults = typed(converted, written, schema)
    wrong |= {places[at]: reason for at, reason in faults.items()}
    rejects = (
        Reject(file, first_line + at, wrong[at], lines[at].decode("utf-8", "replace").strip())
        for at in sorted(wrong)
    )
    return Piece(rows, tuple(rejects))


def _object(line: bytes) -> dict[str, object]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    if b"\\u" in line and not _is_text(value):
        raise ValueError("half a character: a surrogate without its other half")
    return {key.lower(): one for key, one in value.items()}


def _is_text(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _column(objects: list[dict[str, object]], name: str) -> pa.Array:
    return pa.array([_text(one.get(name)) for one in objects], pa.string())


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else json.dumps(value)
