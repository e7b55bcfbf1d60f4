"""Mini-partitions of a group as slices of runs: a directory is applied, nothing is copied."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.balance.groups.directory import Bucket
from penstock.kernels.window_join.runs import SortedRun, group_bits
from penstock.load.arrays import Ints


def places_of(bucket: Bucket, group: int, groups: int) -> tuple[int, int]:
    """The first place of a mini-partition of a group, and the first one after it.

    >>> [f"{place:017x}" for place in places_of(Bucket(1, 1), group=2, groups=4)]
    ['0a000000000000000', '0c000000000000000']
    """
    bits = group_bits(groups) + bucket.depth
    prefix = (group << bucket.depth) | bucket.prefix
    return prefix << (64 - bits), (prefix + 1) << (64 - bits)


def slice_of(run: SortedRun, bucket: Bucket, group: int, groups: int) -> SortedRun:
    """The part of a run that belongs to a mini-partition; shares the run's memory."""
    return run.part(run.place_range(*places_of(bucket, group, groups)))


def cell_rows(runs: Sequence[SortedRun], group: int, groups: int, bits: int) -> Ints:
    """The rows of a group in each of its ``2**bits`` finest parts, all runs together.

    Costs a binary search per cell and run: what :func:`penstock.balance.groups.directory.tune`
    needs to know, without looking at a row.
    """
    cells = [places_of(Bucket(prefix, bits), group, groups)[0] for prefix in range(1 << bits)]
    end = places_of(Bucket(), group, groups)[1]
    edges = np.array(cells, np.uint64)
    found = np.zeros(len(cells), np.int64)
    for run in runs:
        last = len(run.places) if end >> 64 else np.searchsorted(run.places, np.uint64(end))
        found += np.diff(np.searchsorted(run.places, edges), append=last)
    return found
