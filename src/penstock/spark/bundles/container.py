"""Several Arrow tables and a description of them in one file that is there whole or not at all."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from penstock.channels.durable import RESTORE, checksum
from penstock.errors import RunError

_MAGIC = b"penstock1\n"
_LENGTH = 8
# Numbers of members and slices repeat: half of the bytes, and less time than the disk would take.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def pack(header: Mapping[str, object], tables: Sequence[pa.Table]) -> list[bytes | pa.Buffer]:
    """The parts of such a file, in order."""
    bodies = [serialize(table, _COMPRESSED) for table in tables]
    sizes = [len(body) for body in bodies]
    checks = [checksum(memoryview(body)) for body in bodies]
    text = json.dumps({**header, "sizes": sizes, "checks": checks}, separators=(",", ":")).encode()
    front = len(text).to_bytes(_LENGTH, "little") + checksum(text).to_bytes(_LENGTH, "little")
    return [_MAGIC, front, text, *bodies]


def serialize(table: pa.Table, options: pa.ipc.IpcWriteOptions | None = None) -> pa.Buffer:
    """A table as the bytes of an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue()


def write_once(path: Path, parts: Sequence[bytes | pa.Buffer]) -> bool:
    """Makes the file unless it exists; whether it was made. Of several who try one succeeds."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    try:
        with temporary.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    return True


class Unpacked:
    """A file's header, and its tables, mapped into memory when they are asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with pa.memory_map(str(path)) as file:
                self._bytes = file.read_buffer()
        except OSError as error:
            raise RunError(f"the file {path} cannot be read ({error})", hint=RESTORE) from None
        self.header = self._read_header()

    def _read_header(self) -> dict[str, object]:
        begin = len(_MAGIC) + 2 * _LENGTH
        front = bytes(self._bytes[: min(begin, len(self._bytes))])
        length = int.from_bytes(front[len(_MAGIC) : len(_MAGIC) + _LENGTH], "little")
        if not front.startswith(_MAGIC) or begin + length > len(self._bytes):
            raise self._damaged("its beginning is not one of ours")
        text = bytes(self._bytes[begin : begin + length])
        if checksum(text) != int.from_bytes(front[len(_MAGIC) + _LENGTH :], "little"):
            raise self._damaged("the checksum of its description is another")
        header: dict[str, object] = json.loads(text)
        self._begin = begin + length
        self._sizes: list[int] = header.pop("sizes")  # type: ignore[assignment]
        self._checks: list[int] = header.pop("checks")  # type: ignore[assignment]
        return header

    def table(self, number: int) -> pa.Table:
        """One of the tables; a damaged one is refused by the name of the file."""
        begin = self._begin + sum(self._sizes[:number])
        if begin + self._sizes[number] > len(self._bytes):
            raise self._damaged("its end is missing")
        body = self._bytes[begin : begin + self._sizes[number]]
        if checksum(memoryview(body)) != self._checks[number]:
            raise self._damaged(f"the checksum of table {number} is another")
        return pa.ipc.open_stream(body).read_all()

    def _damaged(self, why: str) -> RunError:
        return RunError(f"the file {self.path} is damaged ({why})", hint=RESTORE)
