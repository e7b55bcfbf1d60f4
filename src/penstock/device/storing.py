"""Final rows kept on a device as Parquet files, each row once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.channels.durable import read_record, write_whole
from penstock.device.heard import result_name


def store(folder: Path, state: Path | None = None) -> Callable[[pa.Table, str], None]:
    """Puts rows into a file of the given name; the same name again replaces it.

    A file beyond what ``state`` knows of was written by a device that died before it could say so:
    its rows are heard again, or have been missed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known = read_record(state / "state.json") if state is not None else None
    if known:
        origin = known.get("origin")
        reached = result_name(origin, known["plan"], known["next"] or 0)
        for path in folder.glob(f"{origin}-*.parquet"):
            if path.stem >= reached:
                path.unlink()

    def keep(rows: pa.Table, name: str) -> None:
        path = folder / f"{name}.parquet"
        write_whole(path, lambda temporary: pq.write_table(rows, temporary))

    return keep


def stored_rows(folder: Path) -> list[pa.Table]:
    """All rows that were kept, file by file."""
    return [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
