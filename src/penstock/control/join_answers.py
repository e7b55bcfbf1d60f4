"""What is said of joins in parts: where the parts run, what they own, hold and have left to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock.channels.disk_use import folder_bytes
from penstock.channels.layout import StateLayout
from penstock.control.answer_models import JoinAnswer, PartAnswer
from penstock.control.catalog import Catalog
from penstock.control.group_moves import GroupMoves, SpreadJoin
from penstock.model.measurements import FragmentStatus
from penstock.model.parts import Part, parts_of

FULL_ROWS = 250_000
"""A part that has so many rows left to read is full: a round takes no more."""
FULL_S = 10.0
"""So is one whose oldest row has been waiting for so long."""
ROUND_S = 2.0
"""The source's distribution epoch. Rows of one are on their way, not in a buffer."""


def joins_answer(moves: GroupMoves, catalog: Catalog, state: Path) -> list[JoinAnswer]:
    """All joins in parts."""
    latest = latest_statuses(catalog)
    layout = StateLayout(state)
    return [_join_answer(join, latest, layout) for join in moves.joins()]


def latest_statuses(catalog: Catalog) -> dict[str, FragmentStatus]:
    """What fragments' nodes measured last, by fragment."""
    found: dict[str, FragmentStatus] = {}
    owners = {unit.name: unit.node for unit in catalog.units()}
    for node in catalog.nodes():
        sample = catalog.latest_sample(node.name)
        measured = {} if sample is None else sample.fragments
        found |= {
            name: status for name, status in measured.items() if owners.get(name) == node.name
        }
    return found


def occupancy(status: FragmentStatus | None) -> float:
    """How full a part is of rows that it has not read: 0 to 1, by their number or their age.

    A part that keeps up reads rows in its next round: it is empty, however many come.

    >>> occupancy(FragmentStatus("pairs_part1", backlog_rows=25_000, waiting_s=4.0))
    0.4
    >>> occupancy(FragmentStatus("pairs_part1", backlog_rows=25_000, waiting_s=0.9))
    0.0
    """
    if status is None or (status.waiting_s or 0.0) <= ROUND_S:
        return 0.0
    by_rows, by_age = status.backlog_rows / FULL_ROWS, (status.waiting_s or 0.0) / FULL_S
    return round(min(1.0, max(by_rows, by_age)), 3)


def _join_answer(
    join: SpreadJoin, latest: Mapping[str, FragmentStatus], layout: StateLayout
) -> JoinAnswer:
    return JoinAnswer(
        name=join.name,
        spread=join.spread.parts or "auto",
        groups=join.spread.groups,
        moved=sum(epoch > 0 for epoch in join.table.epochs),
        parts=[
            _part_answer(join, part, latest.get(part.id), layout)
            for part in parts_of(join.name, join.spread)
        ],
    )


def _part_answer(
    join: SpreadJoin, part: Part, status: FragmentStatus | None, layout: StateLayout
) -> PartAnswer:
    return PartAnswer(
        fragment=part.id,
        node=join.nodes.get(part.number),
        groups=sorted(join.table.groups_of(part.number)),
        arriving=sorted(join.table.moving_to(part.number)),
        occupancy=occupancy(status),
        rows_in_per_s=0.0 if status is None else status.rows_in_per_s,
        rows_held=0 if status is None else status.state_rows,
        bytes_held=folder_bytes(layout.runs(part.id)),
        has_ended=part.number in join.table.closed,
    )
