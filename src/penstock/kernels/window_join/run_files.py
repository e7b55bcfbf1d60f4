"""Runs as files: Arrow's format for memory maps, with a seal at the end that tells damage.

A file holds the rows and the index side by side. It is written under another name and renamed, so
that it is there whole or not at all; nothing is synced to disk, because a run that is lost or
damaged is made again from the batches it came from.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.kernels.window_join.runs import SortedRun

_SEAL = struct.Struct("<8sQI")
_MAGIC = b"psrun\x00\x00\x01"
_PLACE, _TIME, _ROW = "place\x00", "time\x00", "row\x00"  # no column of a user is called so
_INDEXED = b"indexed"


def write_run(run: SortedRun, path: Path) -> None:
    """Writes a run; whoever opens the path finds all of it or nothing."""
    sink = pa.BufferOutputStream()
    table = _as_batch(run)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_batch(table)
    content = sink.getvalue()
    seal = _SEAL.pack(_MAGIC, content.size, zlib.crc32(content))
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.write(seal)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def read_run(path: Path) -> SortedRun | None:
    """The run of a file, mapped into memory; None if there is none or what is there is damaged."""
    try:
        with pa.memory_map(str(path)) as file:
            whole = file.read_buffer()
    except (OSError, pa.ArrowInvalid):  # an empty file cannot be mapped
        return None
    if whole.size < _SEAL.size:
        return None
    content = whole.slice(0, whole.size - _SEAL.size)
    magic, size, check = _SEAL.unpack(whole.slice(content.size))
    if magic != _MAGIC or size != content.size or zlib.crc32(content) != check:
        return None
    return _of_batch(pa.ipc.open_file(pa.BufferReader(content)).get_batch(0))


def _as_batch(run: SortedRun) -> pa.RecordBatch:
    """Rows and index as columns of one batch; the index is padded to the number of rows."""
    missing = run.rows.num_rows - len(run.places)
    names = [*run.rows.schema.names, _PLACE, _TIME, _ROW]
    index = [np.pad(column, (0, missing)) for column in (run.places, run.times, run.row_numbers)]
    metadata = {_INDEXED: str(len(run.places)).encode()}
    columns = [*run.rows.columns, *map(pa.array, index)]
    fields = [*run.rows.schema, *(pa.field(name, column.type) for name, column in
                                  zip(names[-3:], columns[-3:], strict=True))]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, metadata))


def _of_batch(batch: pa.RecordBatch) -> SortedRun:
    indexed = int(batch.schema.metadata[_INDEXED])
    index = [batch.column(name).to_numpy()[:indexed] for name in (_PLACE, _TIME, _ROW)]
    names = batch.schema.names[:-3]
    return SortedRun(batch.select(names).replace_schema_metadata(None), *index)
