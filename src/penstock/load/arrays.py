"""The array types of load models."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


def frozen(array: npt.NDArray[np.generic]) -> None:
    """Makes an array read-only, so that a record that holds it stays as it was built."""
    array.setflags(write=False)
