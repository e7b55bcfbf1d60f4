"""MinPowerCut: every query by itself, what its devices spend on listening and on computing."""

from __future__ import annotations

from penstock.load.arrays import Floats, Ints
from penstock.power.cuts import CutTable
from penstock.power.kernels.least import least_entries


def min_power_cut(table: CutTable) -> Ints:
    """The plan that cuts every query where its own result costs its listeners least.

    For the indexed broadcast no plan is better: nobody listens to the result of another query.
    """
    return least_entries(table.starts, own_energy_j(table))


def own_energy_j(table: CutTable) -> Floats:
    """What every entry costs its own listeners: receiving the result, and processing it."""
    watts = table.weights[table.owners]
    received: Floats = table.sizes * watts * table.seconds_per_byte + table.processing_j
    return received
