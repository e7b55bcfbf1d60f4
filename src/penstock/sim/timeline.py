"""What happened over time, in bounded memory: the longer it lasts, the coarser it is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from penstock.load.arrays import Floats


@dataclass
class Timeline:
    """Rows of numbers by time; from ``most`` to twice as many; beyond, neighbours are
    averaged.

    >>> line = Timeline(("load",), most=2)
    >>> for second in range(8):
    ...     line.add(second + 1.0, [float(second)])
    >>> line.times_s, line.column("load")
    (array([4., 8.]), array([1.5, 5.5]))
    """

    columns: tuple[str, ...]
    most: int = 500
    _every: int = field(default=1, init=False)
    _times_s: list[float] = field(default_factory=list, init=False, repr=False)
    _rows: list[Floats] = field(default_factory=list, init=False, repr=False)
    _open: list[Floats] = field(default_factory=list, init=False, repr=False)

    def add(self, time_s: float, values: list[float]) -> None:
        """Takes the row of one more period, that ended at ``time_s``."""
        self._open.append(np.array(values))
        if len(self._open) < self._every:
            return
        self._times_s.append(time_s)
        self._rows.append(_mean(self._open))
        self._open = []
        if len(self._rows) == 2 * self.most:
            self._thin()

    @property
    def times_s(self) -> Floats:
        return np.array(self._times_s)

    def column(self, name: str) -> Floats:
        """One of the columns over time; periods without a value are NaN."""
        at = self.columns.index(name)
        return np.array([row[at] for row in self._rows])

    def _thin(self) -> None:
        """Joins neighbours; there is always an even number of them."""
        self._rows = [_mean(self._rows[at : at + 2]) for at in range(0, len(self._rows), 2)]
        self._times_s = self._times_s[1::2]
        self._every *= 2


def _mean(rows: list[Floats]) -> Floats:
    table = np.array(rows)
    known = ~np.isnan(table)
    counts = known.sum(axis=0)
    sums = np.where(known, table, 0.0).sum(axis=0)
    nothing = np.full(table.shape[1], np.nan)
    means: Floats = np.divide(sums, counts, out=nothing, where=counts > 0)
    return means
