"""What happens to groups at the end of a period: owners and reports in, instructions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.balance.groups.declustering import add_worker, release_worker
from penstock.balance.groups.pairing import pair_moves
from penstock.balance.groups.reports import (
    GroupInstruction,
    GroupMove,
    GroupOwners,
    GroupSettings,
    WorkerAdded,
    WorkerReleased,
    WorkerReport,
)
from penstock.errors import InputError


@dataclass(frozen=True)
class GroupDecision:
    """What is to be done, in this order, and who owns what afterwards."""

    instructions: tuple[GroupInstruction, ...]
    after: GroupOwners


def decide_groups(
    owners: GroupOwners,
    reports: Sequence[WorkerReport],
    settings: GroupSettings,
    rng: np.random.Generator,
    spare: Sequence[str] = (),
) -> GroupDecision:
    """Moves groups from suppliers to consumers, or changes the number of workers.

    ``spare`` are workers that could take part. No group is lost or owned twice, at least one worker
    remains, and under a load that does not change the instructions come to an end.

    >>> owners = GroupOwners.deal(4, ["a", "b"])
    >>> loads = [WorkerReport("a", 0.9, {0: 0.6, 2: 0.4}), WorkerReport("b", 0.0, {1: 0.1, 3: 0.1})]
    >>> decision = decide_groups(owners, loads, GroupSettings(), np.random.default_rng(0))
    >>> [(move.group, move.target) for move in decision.instructions]
    [(2, 'b')]
    """
    reporting = sorted(report.worker for report in reports)
    if reporting != sorted(owners.workers):
        raise InputError(
            f"reports of {reporting}, workers {sorted(owners.workers)}",
            hint="Give one report of each worker that takes part.",
        )
    changes: list[GroupInstruction] = []
    if settings.adaptive and not owners.resting:
        changes = add_worker(owners, reports, settings, spare)
        changes = changes or release_worker(owners, reports, settings)
    resting = settings.rest_periods if changes else max(0, owners.resting - 1)
    instructions = changes or [*pair_moves(owners, reports, settings, rng)]
    return GroupDecision(
        tuple(instructions), replace(carry_out(owners, instructions), resting=resting)
    )


def carry_out(owners: GroupOwners, instructions: Sequence[GroupInstruction]) -> GroupOwners:
    """Who owns what once instructions are carried out."""
    owner, workers = list(owners.owners), list(owners.workers)
    for instruction in instructions:
        match instruction:
            case GroupMove():
                owner[instruction.group] = instruction.target
            case WorkerAdded():
                workers.append(instruction.worker)
            case WorkerReleased():
                workers.remove(instruction.worker)
    return replace(owners, owners=tuple(owner), workers=tuple(workers))
