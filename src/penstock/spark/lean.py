"""Keeping the many small processes of a node small."""

from __future__ import annotations

import sys

import pyarrow as pa


def leave_pandas_out() -> None:
    """Keeps pyarrow from loading pandas in this process until somebody asks for it.

    The first array pyarrow makes looks for pandas and thereby loads it: 50 MB and half a second
    in every reader and worker, for nothing. Told once that it is not there, pyarrow looks again
    only when really needed, as in ``to_pandas()``.
    """
    if "pandas" in sys.modules:
        return
    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        pa.nulls(1)
    finally:
        del sys.modules["pandas"]
