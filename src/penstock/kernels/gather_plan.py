"""The channels of a join's parts as one stream: nothing is computed, rows are put together."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.fragments import Fragment
from penstock.model.ids import PartId
from penstock.model.schema import Shape


@dataclass(frozen=True)
class GatherPlan:
    """Gives the rows of several channels as they come; its time is that of the slowest."""

    name: PartId
    streams: tuple[str, ...]
    output: Shape


def plan_gathering(fragment: Fragment) -> GatherPlan:
    """How a fragment gathers what the parts of a join give."""
    assert fragment.gathers is not None
    return GatherPlan(fragment.id, fragment.inputs, fragment.operators[-1].output)
