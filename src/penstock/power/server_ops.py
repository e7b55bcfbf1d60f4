"""ServerOps: everything on the server; the devices only listen."""

from __future__ import annotations

from penstock.load.arrays import Ints
from penstock.power.cuts import CutTable


def server_ops(table: CutTable) -> Ints:
    """The plan that broadcasts the result of every query."""
    return table.roots.copy()
