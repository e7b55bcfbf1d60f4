"""Files written and read in tests."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import InputError
from penstock.feeds.files import read_pieces
from penstock.model.schema import Schema
from penstock.model.sources import CsvLayout, FileFormat

SCHEMA = Schema.parse("home string, kwh double")
PLAIN, NO_HEADER = CsvLayout(), CsvLayout(header=False)


class Reading:
    """A file read to its end."""

    def __init__(
        self,
        path: Path,
        format: FileFormat = "csv",
        layout: CsvLayout = PLAIN,
        schema: Schema = SCHEMA,
    ) -> None:
        self.pieces = list(read_pieces(path, format, layout, schema))
        self.rejects = [reject for piece in self.pieces for reject in piece.rejects]
        self.rows = [row for piece in self.pieces for row in piece.rows.to_pylist()]

    @property
    def tuples(self) -> list[tuple[object, ...]]:
        return [tuple(row.values()) for row in self.rows]

    @property
    def complaints(self) -> list[tuple[int, str]]:
        return [(reject.line, reject.reason) for reject in self.rejects]


def written(folder: Path, content: bytes | str, name: str = "a.csv") -> Path:
    path = folder / name
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def refusal(path: Path, format: FileFormat = "csv", schema: Schema = SCHEMA) -> str:
    with pytest.raises(InputError) as caught:
        Reading(path, format, schema=schema)
    return str(caught.value)


def parquet(folder: Path, **columns: pa.Array) -> Path:
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path)
    return path
