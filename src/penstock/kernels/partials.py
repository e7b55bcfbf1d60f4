"""Rows of a batch to partial aggregates of many members at once, inside a task."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from penstock.kernels.batch_rows import BatchRows
from penstock.kernels.shared_work import SharedWork
from penstock.kernels.state_shape import StateShape
from penstock.kernels.window_plan import WindowPlan


def compute_partials(
    batch: BatchRows, plans: Mapping[int, WindowPlan]
) -> dict[StateShape, pa.Table]:
    """What all members keep of a batch's rows, in one table for each shape of state.

    Whoever has many batches keeps the :class:`SharedWork` of the plans instead.
    """
    return SharedWork(plans).compute(batch)
