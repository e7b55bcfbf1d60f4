"""How many workers share a join: the degree of declustering, with hysteresis."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.balance.groups.reports import (
    GroupInstruction,
    GroupMove,
    GroupOwners,
    GroupSettings,
    WorkerAdded,
    WorkerReleased,
    WorkerReport,
)


def add_worker(
    owners: GroupOwners,
    reports: Sequence[WorkerReport],
    settings: GroupSettings,
    spare: Sequence[str],
) -> list[GroupInstruction]:
    """One more worker, with its share of the load at once; nothing if none is needed or left.

    The source gives a new worker one group a period, which leaves it idle for minutes while the
    others are overloaded. Here it gets the mean load of all from those that have most.
    """
    roles = [settings.role(report) for report in reports]
    suppliers, consumers = roles.count("supplier"), roles.count("consumer")
    free = [worker for worker in spare if worker not in owners.workers]
    if suppliers <= settings.beta * consumers or not free or len(owners.owners) <= len(reports):
        return []
    reason = f"{suppliers} suppliers for {consumers} consumers"
    share = sum(report.load for report in reports) / (len(reports) + 1)
    moves = _take_share(owners, reports, free[0], share)
    return [WorkerAdded(free[0], reason), *moves] if moves else []


def _take_share(
    owners: GroupOwners, reports: Sequence[WorkerReport], target: str, share: float
) -> list[GroupMove]:
    """Groups that add up to a share: always the heaviest that fits, of whoever has most left."""
    left = {report.worker: report.load for report in reports}
    loads = {group: load for report in reports for group, load in report.loads.items()}
    own = {worker: list(owners.of(worker)) for worker in left}
    moves: list[GroupMove] = []
    wanted = share
    while wanted > 0:
        giver = max(left, key=lambda worker: (left[worker], worker))
        fitting = [group for group in own[giver] if 0 < loads.get(group, 0.0) <= wanted]
        if not fitting or len(own[giver]) == 1:
            break
        group = max(fitting, key=lambda group: (loads[group], -group))
        moves.append(GroupMove(group, giver, target, f"a share for {target}"))
        own[giver].remove(group)
        left[giver] -= loads[group]
        wanted -= loads[group]
    return moves


def release_worker(
    owners: GroupOwners, reports: Sequence[WorkerReport], settings: GroupSettings
) -> list[GroupInstruction]:
    """The least loaded worker goes and its groups to the others, the idlest first; or nothing."""
    if len(reports) < 2 or any(settings.role(report) == "supplier" for report in reports):
        return []
    left = {report.worker: report.load for report in reports}
    busy_after = sum(left.values()) / (len(left) - 1)
    if busy_after > settings.release_below:
        return []
    leaving = min(reports, key=lambda report: (report.load, report.worker))
    del left[leaving.worker]
    moves: list[GroupInstruction] = []
    heaviest_first = sorted(
        owners.of(leaving.worker), key=lambda group: (-leaving.loads.get(group, 0.0), group)
    )
    for group in heaviest_first:
        target = min(left, key=lambda worker: (left[worker], worker))
        left[target] += leaving.loads.get(group, 0.0)
        moves.append(GroupMove(group, leaving.worker, target, f"{leaving.worker} is released"))
    reason = f"no supplier; {len(left)} workers would be {busy_after:.0%} busy"
    return [*moves, WorkerReleased(leaving.worker, reason)]
