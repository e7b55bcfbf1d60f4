"""Rows on their way into a channel, as Parquet files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.channels.durable import checksum
from penstock.channels.manifest import ChannelFile, file_name
from penstock.channels.writer import Writer

# Several files let several tasks read a batch at once, if there is enough in it for several.
_ROWS_PER_FILE = 50_000
_FILES_AT_MOST = 4
_READ_BYTES = 1 << 20


def write_files(rows: pa.Table, writer: Writer, batch: int) -> list[ChannelFile]:
    """Writes the rows into the channel's folder, not yet visible."""
    parts = max(1, min(_FILES_AT_MOST, rows.num_rows // _ROWS_PER_FILE))
    edges = [rows.num_rows * k // parts for k in range(parts + 1)]
    files = []
    for part, (low, high) in enumerate(pairwise(edges)):
        if high > low:
            path = writer.channel.data / file_name(batch, writer.epoch, part)
            files.append(_write_parquet(rows.slice(low, high - low), path))
    return files


def described(path: Path, rows: int, group: int | None = None) -> ChannelFile:
    """A file of a channel, with what tells later whether it is still the same."""
    return ChannelFile(path.name, rows, path.stat().st_size, check_of(path), group=group)


def check_of(path: Path) -> int:
    """The checksum of a file; about a millisecond for each megabyte."""
    check = 0
    with path.open("rb") as file:
        while part := file.read(_READ_BYTES):
            check = checksum(part, check)
    return check


def _write_parquet(rows: pa.Table, path: Path) -> ChannelFile:
    made = pa.BufferOutputStream()
    pq.write_table(rows, made, compression="lz4")
    body = made.getvalue()
    try:
        path.write_bytes(body)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return ChannelFile(path.name, rows.num_rows, body.size, checksum(memoryview(body)))
