"""Load series: the last samples of every operator's load, and what is done about gaps in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from penstock.errors import InputError
from penstock.load.arrays import Floats, Ints

# The heaviest sample is cut into 2**18 quanta: finer than any measurement, and coarse enough for
# the covariances of nodes with dozens of such operators over ten samples to be exact in 53 bits.
_QUANTA_BITS = 18


@dataclass(frozen=True, eq=False)
class LoadSeries:
    """Load samples of operators, without gaps, as whole numbers of a small quantum.

    ``quanta`` has a row per operator and a column per period, oldest first; the load is
    ``quanta * quantum``, in shares of one unit of capacity. Because the quanta are whole numbers,
    sums of them are exact: a node's series does not depend on the order in which its operators
    were added and removed, and equal loads are equal. ``known`` is the share of an operator's
    samples that was measured; the rest was filled in.

    >>> series = load_series([[0.25, 0.5, 0.75], [0.5, float("nan"), 0.5]])
    >>> series.means
    array([0.5, 0.5])
    >>> series.known
    array([1.        , 0.66666667])
    """

    quanta: Floats
    quantum: float
    known: Floats

    @property
    def operators(self) -> int:
        return int(self.quanta.shape[0])

    @property
    def samples(self) -> int:
        return int(self.quanta.shape[1])

    @cached_property
    def loads(self) -> Floats:
        """The samples as loads."""
        return self.quanta * self.quantum

    @cached_property
    def means(self) -> Floats:
        """The mean load of every operator."""
        means: Floats = self.quanta.sum(axis=1) / self.samples * self.quantum
        return means

    def totals(self, assignment: Ints, nodes: int) -> Floats:
        """The load series of every node: the sum of its operators'. Homeless ones count nowhere."""
        totals = np.zeros((nodes, self.samples))
        at_home = assignment >= 0
        np.add.at(totals, assignment[at_home], self.quanta[at_home])
        totals *= self.quantum
        return totals


def load_series(samples: ArrayLike, quantum: float | None = None) -> LoadSeries:
    """Samples (operators x periods) as a load series; what cannot be a load counts as missing.

    Missing are NaN, infinities and negative numbers: a faulty node must not steer a plan. A gap is
    filled with the operator's mean, which leaves that mean as it is and adds no correlation with
    anybody. An operator without any known sample counts as load 0.
    """
    given = np.array(samples, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] == 0:
        raise InputError(
            f"load samples in an array of shape {given.shape}",
            hint="Give a row per operator and a column per period, at least one.",
        )
    measured = np.isfinite(given) & (given >= 0)
    counts = measured.sum(axis=1)
    sums = np.where(measured, given, 0.0).sum(axis=1)
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    filled = np.where(measured, given, means[:, None])
    step = _quantum(filled) if quantum is None else quantum
    return LoadSeries(np.rint(filled / step), step, counts / given.shape[1])


def _quantum(loads: Floats) -> float:
    """A power of two, small beside the heaviest operator's heaviest sample."""
    heaviest = float(loads.max(initial=0.0))
    if heaviest < np.finfo(np.float64).tiny:  # no load at all, or too little to be divided
        return 1.0
    return float(2.0 ** (np.ceil(np.log2(heaviest)) - _QUANTA_BITS))


@dataclass
class SeriesWindow:
    """The last ``samples`` periods of whatever operators reported, by name.

    Operators come and go: one that is new has gaps before its first report, one that did not
    report has a gap, one that is not asked for any more is forgotten with its last period.

    >>> window = SeriesWindow(samples=2)
    >>> for loads in ({"a": 0.1}, {"a": 0.2, "b": 0.4}, {"a": 0.3}):
    ...     window.add(loads)
    >>> window.samples_of(["a", "b"])
    array([[0.2, 0.3],
           [0.4, nan]])
    """

    samples: int
    _periods: deque[dict[str, float]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise InputError(
                f"a statistics window of {self.samples} samples", hint="Give at least one."
            )
        self._periods = deque(maxlen=self.samples)

    def __len__(self) -> int:
        return len(self._periods)

    @property
    def is_full(self) -> bool:
        return len(self._periods) == self.samples

    def add(self, loads: Mapping[str, float]) -> None:
        """Takes the loads of one more period; the oldest period leaves when the window is full."""
        self._periods.append(dict(loads))

    def samples_of(self, names: Sequence[str]) -> Floats:
        """One row per name, one column per period held; NaN where there was no report."""
        nan = float("nan")
        rows = [[period.get(name, nan) for period in self._periods] for name in names]
        return np.array(rows, dtype=np.float64).reshape(len(names), len(self._periods))
