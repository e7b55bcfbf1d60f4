"""What a study's queries have written into files, as a digest that can be compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import pyarrow.dataset as ds


def digest_results(out: Path, queries: Iterable[str]) -> tuple[int, str]:
    """How many rows came out, and a digest of all of them in any order."""
    whole = hashlib.sha256()
    count = 0
    for name in queries:
        rows = ds.dataset(out / name, format="parquet", exclude_invalid_files=True).to_table()
        ordered = rows.sort_by([(column, "ascending") for column in rows.column_names])
        count += ordered.num_rows
        whole.update(str(ordered.to_pydict()).encode())
    return count, whole.hexdigest()[:16]
