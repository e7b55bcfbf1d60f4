"""Which supplier gives which group to which consumer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.balance.groups.reports import (
    GroupMove,
    GroupOwners,
    GroupSettings,
    WorkerReport,
)


def pair_moves(
    owners: GroupOwners,
    reports: Sequence[WorkerReport],
    settings: GroupSettings,
    rng: np.random.Generator,
) -> list[GroupMove]:
    """One group of each supplier for one consumer each: the fullest and the idlest first."""
    giving = [report for report in reports if settings.gives(report)]
    taking = [
        report
        for report in reports
        if settings.role(report) == "consumer" and not settings.gives(report)
    ]
    suppliers = sorted(giving, key=lambda busy: (-busy.occupancy, -busy.load, busy.worker))
    consumers = sorted(taking, key=lambda idle: (idle.load, idle.worker))
    moves = []
    for supplier, consumer in zip(suppliers, consumers, strict=False):
        group = choose_group(owners.of(supplier.worker), supplier, consumer, settings, rng)
        if group is not None:
            reason = (
                f"{supplier.worker} has {supplier.occupancy:.0%} of its buffer full and is "
                f"{supplier.load:.0%} busy, {consumer.worker} {consumer.occupancy:.0%} and "
                f"{consumer.load:.0%}; "
                f"the group takes {supplier.loads.get(group, 0.0):.3f} of a processor"
            )
            moves.append(GroupMove(group, supplier.worker, consumer.worker, reason))
    return moves


def choose_group(
    groups: Sequence[int],
    supplier: WorkerReport,
    consumer: WorkerReport,
    settings: GroupSettings,
    rng: np.random.Generator,
) -> int | None:
    """A group lighter than the difference of the two workers' loads, or None.

    A heavier one would only make the consumer the supplier of the next period. By load it is the
    one that comes closest to evening them out; at random it is any.
    """
    difference = supplier.load - consumer.load
    lighter = [group for group in groups if supplier.loads.get(group, 0.0) < difference]
    if not lighter:
        return None
    if settings.choice == "random":
        return int(rng.choice(lighter))
    return min(
        lighter, key=lambda group: (abs(supplier.loads.get(group, 0.0) - difference / 2), group)
    )
