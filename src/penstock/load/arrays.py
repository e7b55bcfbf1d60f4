"""The array types of load models."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


def sums_by(groups: Ints, values: Floats, count: int) -> Floats:
    """The sum of the values of every group, of ``count`` groups.

    >>> sums_by(np.array([1, 1]), np.array([0.5, 1.0]), 3)
    array([0. , 1.5, 0. ])
    """
    sums = np.zeros(count)
    np.add.at(sums, groups, values)
    return sums


def frozen(array: npt.NDArray[np.generic]) -> None:
    """Makes an array read-only, so that a record that holds it stays as it was built."""
    array.setflags(write=False)
