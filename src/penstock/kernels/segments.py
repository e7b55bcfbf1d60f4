"""Rows in groups: which rows belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.load.compiled import compiled

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Segments:
    """Rows by group: group g has the rows ``order[bounds[g]:bounds[g + 1]]``, earliest first."""

    order: Ints
    bounds: Ints

    @classmethod
    def whole(cls, rows: int) -> Segments:
        """All rows as one group; no group if there is no row."""
        bounds = [0, rows] if rows else [0]
        return cls(np.arange(rows, dtype=np.int64), np.array(bounds, np.int64))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def first_rows(self) -> Ints:
        """The first row of each group."""
        return self.order[self.bounds[:-1]]

    def sum(self, values: Ints) -> Ints:
        """The sum of each group's values."""
        return self._reduce(np.add, values)

    def min(self, values: Ints) -> Ints:
        """The least of each group's values."""
        return self._reduce(np.minimum, values)

    def max(self, values: Ints) -> Ints:
        """The greatest of each group's values."""
        return self._reduce(np.maximum, values)

    def spread(self, of_groups: Ints, rows: int) -> Ints:
        """What each group has, for each of ``rows`` rows; 0 for those that are in no group."""
        spread = np.zeros(rows, np.int64)
        spread[self.order] = np.repeat(of_groups, np.diff(self.bounds))
        return spread

    def _reduce(self, operation: np.ufunc, values: Ints) -> Ints:
        if not len(self):
            return values[:0]
        reduced: Ints = operation.reduceat(values[self.order], self.bounds[:-1])
        return reduced


def group_rows(keys: Sequence[pa.Array], rows: int) -> Segments:
    """Rows with equal keys together; null equals null, as in GROUP BY.

    Groups come in an order of their own. One pass over the rows.

    >>> found = group_rows([pa.array(["a", "b", "a", None])], 4)
    >>> found.order.tolist(), found.bounds.tolist()
    ([0, 2, 1, 3], [0, 2, 3, 4])
    """
    if not keys:
        return Segments.whole(rows)
    names = [f"k{at}" for at in range(len(keys))]
    columns = [*(_comparable(key) for key in keys), pa.array(np.arange(rows, dtype=np.int64))]
    table = pa.Table.from_arrays(columns, names=[*names, "row"])
    lists = table.group_by(names, use_threads=False).aggregate([("row", "list")])["row_list"]
    listed = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    bounds = listed.offsets.to_numpy().astype(np.int64)
    return Segments(listed.values.to_numpy(), bounds)


def join_touching(by_key: Segments, starts: Ints, ends: Ints) -> Segments:
    """The groups divided into pieces: rows whose stretches touch, directly or through others.

    A row's stretch goes from its start to its end, and has both. Pieces of a group come in the
    order of time, and so do the rows of a piece. Growth: that of sorting.

    >>> stretches = np.array([20, 0, 5]), np.array([25, 5, 10])
    >>> found = join_touching(Segments.whole(3), *stretches)
    >>> found.order.tolist(), found.bounds.tolist()
    ([1, 2, 0], [0, 2, 3])
    """
    groups = np.repeat(np.arange(len(by_key)), np.diff(by_key.bounds))
    order = by_key.order[np.lexsort((starts[by_key.order], groups))]
    return Segments(order, _piece_bounds(groups, starts[order], ends[order]))


@compiled
def _piece_bounds(groups: Ints, starts: Ints, ends: Ints) -> Ints:
    """Where pieces begin among rows ordered by group and start, and where the last one ends."""
    bounds = np.empty(len(groups) + 1, np.int64)
    pieces, reach = 0, 0
    for at in range(len(groups)):
        if at == 0 or groups[at] != groups[at - 1] or starts[at] > reach:
            bounds[pieces] = at
            pieces += 1
            reach = ends[at]
        else:
            reach = max(reach, ends[at])
    bounds[pieces] = len(groups)
    return bounds[: pieces + 1].copy()


def _comparable(key: pa.Array) -> pa.Array:
    """A key by whose bits values are told apart as Spark does: one NaN, one zero."""
    if not pa.types.is_floating(key.type):
        return key
    return normalize_doubles(key)


def normalize_doubles(values: pa.Array) -> pa.Array:
    """Doubles with one NaN and without a negative zero."""
    one_zero = pc.add(values, 0.0)
    return pc.if_else(pc.is_nan(one_zero), pa.scalar(float("nan")), one_zero)
