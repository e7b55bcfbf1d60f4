"""Tables from files, as rows."""

from __future__ import annotations

import pyarrow as pa

from penstock.errors import InputError
from penstock.feeds.arrow import arrow_schema
from penstock.feeds.files import read_pieces
from penstock.model.sources import Table


def table_rows(table: Table) -> pa.Table:
    """The rows of a file table; a row that cannot be read is an error here, not set aside."""
    assert table.path is not None
    pieces = [arrow_schema(table.schema).empty_table()]
    for piece in read_pieces(table.path, table.format, table.layout, table.schema):
        if piece.rejects:
            first = piece.rejects[0]
            raise InputError(
                f"table {table.name}, {table.path} line {first.line}: {first.reason}",
                hint="Correct the row; a table must be whole.",
            )
        pieces.append(piece.rows)
    return pa.concat_tables(pieces)
