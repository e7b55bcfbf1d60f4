"""How many rows of each partition group a batch brings: what its groups' load is told by."""

from __future__ import annotations

import numpy as np

from penstock.kernels.window_join.run_cache import RunCache
from penstock.kernels.window_join.runs import group_bits
from penstock.kernels.window_join.terms import JoinOffset, JoinTerms
from penstock.kernels.window_join.window import SideBatches, SideWindow
from penstock.load.arrays import Ints


def count_groups(
    terms: JoinTerms,
    left: SideBatches,
    right: SideBatches,
    before: JoinOffset,
    after: JoinOffset,
    cache: RunCache,
) -> Ints:
    """Rows that can have partners, by group, of the batches between two offsets.

    Their runs are there already when the batch has been joined.
    """
    found = np.zeros(terms.groups, np.int64)
    sides = (
        (left, terms.left, before.left.stop, after.left.stop),
        (right, terms.right, before.right.stop, after.right.stop),
    )
    for batches, side, first, stop in sides:
        for run in SideWindow(batches, terms.layout(side), cache).exact_runs(first, stop):
            shift = np.uint64(64 - group_bits(terms.groups))
            numbers = (run.places >> shift).astype(np.int64)
            found += np.bincount(numbers, minlength=terms.groups)
    return found
