"""JSON objects, one a line, to typed rows.

Arrow reads many lines at once, about ten times as fast as line by line; it is asked first. Where
it might read something differently, or cannot read it, line by line decides: what becomes of a row
depends on that row alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from penstock.feeds.arrow import ARROW_TYPES, arrow_schema
from penstock.feeds.convert import convert_text, moments_of_seconds
from penstock.feeds.pieces import Piece, Reject, RowForm, typed
from penstock.model.schema import Field
from penstock.model.types import DataType

_BLANK = b" \t\r\n"
_ONE_BY_ONE = 128
"""So few lines are not worth dividing further to find the ones that need a closer look."""

# Halves of characters, and a zero with a sign that an integer loses on the way. Each pattern
# begins with fixed letters, which are searched for fast.
_READ_DIFFERENTLY = (re.compile(rb"\\u[dD][89a-fA-F]"), re.compile(rb"-0[,}\]\s]"))
_AS_TEXT = (DataType.STRING, DataType.BINARY, DataType.DATE)


def json_rows(lines: list[bytes], form: RowForm, file: str, first_line: int) -> Piece:
    """Typed rows of JSON objects, one a line; what is no object or has bad values is set apart.

    >>> from penstock.model.schema import Schema
    >>> form = RowForm(Schema.parse("kwh double"))
    >>> piece = json_rows([b'{"kwh": 1.5}', b'oops'], form, "f", 1)
    >>> piece.rows.to_pylist(), piece.rejects[0].line
    ([{'kwh': 1.5}], 2)
    """
    rows = None if _has_paths(form) else _all_at_once(lines, form)
    if rows is not None:
        return Piece(rows)
    if len(lines) <= _ONE_BY_ONE or _has_paths(form):
        return _one_by_one(lines, form, file, first_line)
    half = len(lines) // 2
    before = json_rows(lines[:half], form, file, first_line)
    after = json_rows(lines[half:], form, file, first_line + half)
    return Piece(pa.concat_tables([before.rows, after.rows]), before.rejects + after.rejects)


def _has_paths(form: RowForm) -> bool:
    """Whether a column may lie inside another value, where Arrow does not look for it."""
    return any("." in name for name in form.written_names)


def _all_at_once(lines: list[bytes], form: RowForm) -> pa.Table | None:
    """The rows, if every line is surely read as it would be alone; None otherwise."""
    objects = [stripped for line in lines if (stripped := line.strip(_BLANK))]
    if not objects:
        return form.no_rows()
    raw = b"\n".join(objects)
    if not all(text.startswith(b"{") and text.endswith(b"}") for text in objects):
        return None
    if any(pattern.search(raw) for pattern in _READ_DIFFERENTLY) or not _is_utf8(raw):
        return None
    has_times = any(field.type is DataType.TIMESTAMP for field in form.schema)
    as_number = pa.int64() if form.parsing.time_format else pa.float64()
    for moment in (pa.string(), as_number) if has_times else (pa.string(),):
        rows = _rows(raw, len(objects), form, moment)
        if rows is not None:
            return rows
    return None


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _rows(raw: bytes, count: int, form: RowForm, moment: pa.DataType) -> pa.Table | None:
    """The rows, with times written as texts or as numbers; None if not all can be read so."""
    try:
        found = _parsed(raw, form, moment)
        if not _is_certain(found, count, form):
            return None
        pairs = zip(form.written_names, form.schema, strict=True)
        columns = [_converted(found[name], field, form) for name, field in pairs]
        rows = form.timed(pa.table(columns, schema=arrow_schema(form.schema)))
        has_all_times = form.parsing.event_time is None or not rows.columns[-1].null_count
        return rows if has_all_times else None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None  # Line by line tells which of them cannot, and why.


def _parsed(raw: bytes, form: RowForm, moment: pa.DataType) -> pa.Table:
    """The objects as a table in which times are texts or numbers still."""
    kinds = {data_type: pa.string() for data_type in _AS_TEXT} | {DataType.TIMESTAMP: moment}
    pairs = zip(form.written_names, form.schema, strict=True)
    wanted = [(name, kinds.get(field.type, ARROW_TYPES[field.type])) for name, field in pairs]
    return pajson.read_json(
        pa.BufferReader(raw),
        # One block: objects never lie across the border of two.
        read_options=pajson.ReadOptions(use_threads=False, block_size=len(raw) + 1),
        parse_options=pajson.ParseOptions(
            explicit_schema=pa.schema(wanted), unexpected_field_behavior="infer"
        ),
    )


def _is_certain(found: pa.Table, rows: int, form: RowForm) -> bool:
    """Whether there is one row a line, every name is spelled as ours, and no number is endless."""
    names = {name.lower() for name in form.written_names}
    others = found.column_names[len(form.written_names) :]
    pairs = zip(form.written_names, form.schema, strict=True)
    doubles = [found[name] for name, field in pairs if field.type is DataType.DOUBLE]
    return (
        found.num_rows == rows
        and not any(name.lower() in names for name in others)
        and not any(pc.any(pc.is_inf(column)).as_py() for column in doubles)
    )


def _converted(column: pa.ChunkedArray, field: Field, form: RowForm) -> pa.Array:
    """The column as ``field``'s type; raises where that cannot be done for all of it."""
    values = column.combine_chunks()
    if field.type is DataType.TIMESTAMP and pa.types.is_floating(values.type):
        return moments_of_seconds(values)
    if field.type not in (DataType.TIMESTAMP, *_AS_TEXT):
        return values
    converted = convert_text(values.cast(pa.string()), field, form.parsing.time_format)
    if converted.bad.any():
        raise pa.ArrowInvalid("bad values among them")
    return converted.values


def _one_by_one(lines: list[bytes], form: RowForm, file: str, first_line: int) -> Piece:
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
    written = [_column(objects, name.lower()) for name in form.written_names]
    converted = [
        convert_text(text, field, form.parsing.time_format)
        for text, field in zip(written, form.schema, strict=True)
    ]
    rows, faults = typed(converted, written, form)
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
    return {key.lower(): item for key, item in value.items()}


def _is_text(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _column(objects: list[dict[str, object]], name: str) -> pa.Array:
    return pa.array([_text(_found(text, name)) for text in objects], pa.string())


def _found(value: Mapping[str, object], path: str) -> object:
    """What is called ``path``; where nothing is, what lies at that path.

    >>> _found({"user": {"Name": "ann"}}, "user.name")
    'ann'
    >>> _found({"user.name": "bob", "user": {"name": "ann"}}, "user.name")
    'bob'
    """
    found = value.get(path)
    if found is not None or "." not in path:
        return found
    for at in (place for place, letter in enumerate(path) if letter == "."):
        inner = value.get(path[:at])
        if isinstance(inner, dict):
            folded = {key.lower(): item for key, item in inner.items()}
            found = _found(folded, path[at + 1 :])
            if found is not None:
                return found
    return None


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else json.dumps(value)
