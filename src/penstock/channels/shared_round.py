"""Small batches of many channels in one file.

Whoever commits to hundreds of channels at once would make a Parquet file and a manifest for each.
Here all of them lie in one file, and a hard link to it in a channel's log *is* that channel's
manifest: the cost of a round grows with its rows. The file goes when the last channel has freed
its batch. Layout::

    "penstock shared 1\\n"  count, checksum of the index  index  (name, manifest, rows) …

The index is sorted by a checksum of the channels' names, so a reader finds its own batch in the
time of a binary search, however many others there are.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from penstock.channels.durable import RESTORE, checksum
from penstock.errors import RunError

_MAGIC = b"penstock shared 1\n"
_FRONT = struct.Struct("<II")
_INDEX = np.dtype(
    [("name", "<u4"), ("name_bytes", "<u4"), ("manifest_bytes", "<u4"), ("rows_bytes", "<u4")]
)
# Numbers and times of a result repeat little, and there are few of them.
_PLAIN = pa.ipc.IpcWriteOptions()


@dataclass(frozen=True)
class SharedBatch:
    """The batch of one channel: its manifest as text, and its rows as an Arrow stream."""

    channel: str
    manifest: str
    rows: pa.Buffer


def pack_rows(rows: pa.Table) -> pa.Buffer:
    """Rows as they lie in such a file."""
    made = pa.BufferOutputStream()
    with pa.ipc.new_stream(made, rows.schema, options=_PLAIN) as stream:
        stream.write_table(rows.combine_chunks())
    return made.getvalue()


def write_shared(path: Path, batches: Sequence[SharedBatch]) -> None:
    """Writes the file for good; nothing of it counts before it is linked into a channel."""
    index = np.empty(len(batches), _INDEX)
    parts: list[bytes | pa.Buffer] = []
    for at, batch in enumerate(sorted(batches, key=lambda batch: _number(batch.channel))):
        texts = batch.channel.encode(), batch.manifest.encode()
        index[at] = (_number(batch.channel), *map(len, texts), len(batch.rows))
        parts += [*texts, batch.rows]
    body = index.tobytes()
    with path.open("wb") as file:
        file.writelines([_MAGIC, _FRONT.pack(len(index), checksum(body)), body, *parts])
        file.flush()
        os.fsync(file.fileno())


def link_once(path: Path, entry: Path) -> bool:
    """Makes the file an entry of a channel's log unless there is one; whether it was made."""
    try:
        os.link(path, entry)
    except FileExistsError:
        return False
    return True


def read_entry(path: Path, channel: str) -> tuple[str, bool] | None:
    """A manifest's text, and whether its rows lie beside it; None when there is no such file."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
            if start == _MAGIC:
                text, _ = _find(file, path, channel)
                return text.decode(), True
            return (start + file.read()).decode(), False
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise _damaged(path, "it holds no text") from None


def read_shared_rows(path: Path, channel: str, check: int | None) -> pa.Table:
    """The rows of a channel in such a file; raises if they are damaged or it is gone."""
    with path.open("rb") as file:
        file.seek(len(_MAGIC))
        _, size = _find(file, path, channel)
        body = file.read(size)
    if len(body) != size or check != checksum(body):
        raise _damaged(path, f"the rows of {channel} have another checksum")
    return pa.ipc.open_stream(body).read_all()


def _number(channel: str) -> int:
    return checksum(channel.encode())


def _find(file: BinaryIO, path: Path, channel: str) -> tuple[bytes, int]:
    """The manifest of a channel, and how many bytes of rows come now in the file."""
    index = _read_index(file, path)
    begin = file.tell()
    sizes = index["name_bytes"].astype(np.int64) + index["manifest_bytes"] + index["rows_bytes"]
    places = np.concatenate(([0], np.cumsum(sizes))) + begin
    number = _number(channel)
    first, last = np.searchsorted(index["name"], [number, number + 1])
    for at in range(int(first), int(last)):
        file.seek(int(places[at]))
        if file.read(int(index["name_bytes"][at])) == channel.encode():
            return file.read(int(index["manifest_bytes"][at])), int(index["rows_bytes"][at])
    raise _damaged(path, f"it holds nothing of {channel}")


def _read_index(file: BinaryIO, path: Path) -> np.ndarray:
    front = file.read(_FRONT.size)
    if len(front) < _FRONT.size:
        raise _damaged(path, "its beginning is missing")
    count, check = _FRONT.unpack(front)
    body = file.read(count * _INDEX.itemsize)
    if checksum(body) != check:
        raise _damaged(path, "its index has another checksum")
    return np.frombuffer(body, _INDEX)


def _damaged(path: Path, why: str) -> RunError:
    return RunError(f"the file {path} is damaged ({why})", hint=RESTORE)
