"""MinDataCut: the shortest broadcast, whatever the devices have to compute."""

from __future__ import annotations

from penstock.load.arrays import Ints
from penstock.power.cuts import CutTable
from penstock.power.kernels.least import least_entries


def min_data_cut(table: CutTable) -> Ints:
    """The plan that cuts every query where least data passes."""
    return least_entries(table.starts, table.sizes)
