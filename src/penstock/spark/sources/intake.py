"""What every kind of reader does: plan offsets, cut slices, read one slice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

Offset = dict[str, object]


@dataclass(frozen=True)
class Slice:
    """A part of a batch that one task reads; ``watermark_us`` is sent along after its rows."""

    body: Mapping[str, object] = field(default_factory=dict)
    watermark_us: int | None = None


class Intake(Protocol):
    """Where a reader's rows come from.

    An offset is a JSON object; ``watermark_us`` and ``ended`` in it are what is known about the
    stream at that point, so that whoever reads Spark's offset log knows it too.
    """

    def first(self) -> Offset:
        """The offset before all rows."""

    def latest(self, start: Offset, max_rows: int | None) -> Offset:
        """The offset to read up to from ``start``, at most ``max_rows`` further."""

    def slices(self, start: Offset, end: Offset) -> list[Slice]:
        """The parts of a batch, to be read in parallel; reading them again gives the same rows."""

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        """The rows of one part."""

    def commit(self, end: Offset) -> None:
        """Takes note that nothing before ``end`` will be read again."""
