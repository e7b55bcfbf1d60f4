"""Tables that only a device has, from files of its own."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from penstock.errors import InputError, UsageError


def own_table(written: str) -> tuple[str, pa.Table]:
    """The table written as ``NAME=FILE``: CSV, or Parquet where the file is called so."""
    name, equals, path = written.partition("=")
    if not equals:
        raise UsageError(f"--table {written} names no file", hint="Write --table NAME=FILE.")
    try:
        if path.endswith(".parquet"):
            return name, pyarrow.parquet.read_table(path)
        return name, pyarrow.csv.read_csv(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"table {name}: {path} cannot be read: {error}") from None
