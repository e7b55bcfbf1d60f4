"""Groups of joins move by themselves: what parts report, what is decided, the moves that follow."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.control.catalog import Catalog
from penstock.control.group_moves import GroupMoves, SpreadJoin
from penstock.control.join_answers import occupancy
from penstock.errors import PenstockError
from penstock.model.durations import US_PER_S
from penstock.model.measurements import FragmentStatus
from penstock.model.parts import SHORTEST_PERIOD_US, Part, parts_of

if TYPE_CHECKING:
    from penstock.balance.groups.reports import GroupInstruction, WorkerReport

BUSY_ABOVE = 0.9
"""A part that is busier than this gives, even if its buffer is nearly empty."""
_LEAST_SAMPLES = 2

log = logging.getLogger(__name__)


@dataclass
class GroupBalancer:
    """Looks at every join in parts once in its period, and has groups moved to even things out.

    The number of parts with groups follows the load where a join may have as many as it needs. What
    is kept here are periods of rest only; who owns what is read anew every time.
    """

    catalog: Catalog
    moves: GroupMoves
    _glanced_s: float = 0.0
    _looked_s: dict[str, float] = field(default_factory=dict)
    _resting: dict[str, int] = field(default_factory=dict)

    def tick(self, now_s: float) -> None:
        """Looks at the joins whose period is over."""
        if now_s - self._glanced_s < SHORTEST_PERIOD_US / US_PER_S:
            return
        self._glanced_s = now_s
        for join in self.moves.joins():
            if join.spread.moves == "off":
                continue
            if now_s - self._looked_s.get(join.name, 0.0) < join.spread.period_us / US_PER_S:
                continue
            self._looked_s[join.name] = now_s
            if not join.table.moving and not join.table.closed:
                self._look_at(join, now_s)

    def _look_at(self, join: SpreadJoin, now_s: float) -> None:
        # Only now: few systems have joins in parts.
        import numpy as np

        from penstock.balance.groups.deciding import decide_groups
        from penstock.balance.groups.reports import GroupOwners, GroupSettings

        reports = self._reports(join, now_s)
        if reports is None:
            return
        names = {part.number: str(part.id) for part in parts_of(join.name, join.spread)}
        workers = tuple(report.worker for report in reports)
        owners = GroupOwners(
            tuple(names[owner] for owner in join.table.owners),
            workers,
            self._resting.get(join.name, 0),
        )
        settings = GroupSettings(
            busy_above=BUSY_ABOVE,
            choice="random" if join.spread.moves == "random" else "load",
            adaptive=join.spread.parts is None,
        )
        rng = np.random.default_rng(join.table.number)
        decision = decide_groups(owners, reports, settings, rng, _spare(join, workers))
        self._resting[join.name] = decision.after.resting
        self._carry_out(join, decision.instructions, reports)

    def _reports(self, join: SpreadJoin, now_s: float) -> list[WorkerReport] | None:
        """What the parts with groups report, all parts where their number is fixed.

        None while one of them has not been measured for long enough.
        """
        found, began_s = [], now_s - join.spread.period_us / US_PER_S
        for part in parts_of(join.name, join.spread):
            groups = join.table.groups_of(part.number)
            if not groups and join.spread.parts is None:
                continue
            node = join.nodes.get(part.number)
            samples = () if node is None else self.catalog.samples_since(node, began_s)
            measured = [
                (sample.at_s, sample.fragments[part.id])
                for sample in samples
                if part.id in sample.fragments
            ]
            if len(measured) < _LEAST_SAMPLES:
                return None
            found.append(report_of(part, groups, measured))
        return found

    def _carry_out(
        self,
        join: SpreadJoin,
        instructions: Sequence[GroupInstruction],
        reports: Sequence[WorkerReport],
    ) -> None:
        from penstock.balance.groups.reports import GroupMove, WorkerAdded

        numbers = {part.id: part.number for part in parts_of(join.name, join.spread)}
        wanted: dict[tuple[int, str], list[int]] = {}
        for instruction in instructions:
            if isinstance(instruction, GroupMove):
                to = numbers[instruction.target]  # type: ignore[index]
                wanted.setdefault((to, instruction.reason), []).append(instruction.group)
            else:
                kind = "part added" if isinstance(instruction, WorkerAdded) else "part released"
                self.catalog.tell(kind, instruction.worker, instruction.reason)
        told = {
            report.worker: {
                "occupancy": round(report.occupancy, 3),
                "busy": round(report.load, 3),
                "groups": len(report.loads),
            }
            for report in reports
        }
        for (part, reason), groups in wanted.items():
            try:
                # Anew: the moves before have changed the table.
                now = self.moves.join(join.name)
                self.moves.give(now, groups, part, reason, {"by": "balancer", "parts": told})
            except PenstockError as error:
                log.warning("groups of %s could not be moved: %s", join.name, error)


def report_of(
    part: Part, groups: frozenset[int], measured: Sequence[tuple[float, FragmentStatus]]
) -> WorkerReport:
    """How a part fared, by what its node measured over a period, at these times.

    Its groups share its load by the rows that each had.

    >>> from penstock.model.ids import FragmentId
    >>> from penstock.model.parts import JoinSpread
    >>> first = FragmentStatus("j_part1", busy_ms=0, group_rows=(0, 0, 0))
    >>> later = FragmentStatus("j_part1", busy_ms=8_000, group_rows=(300, 0, 100))
    >>> part = Part(FragmentId("j"), 1, JoinSpread(2, 3))
    >>> report_of(part, frozenset({0, 2}), [(0.0, first), (10.0, later)]).loads
    {0: 0.6, 2: 0.2}
    """
    from penstock.balance.groups.reports import WorkerReport

    (began_s, first), (ended_s, last) = measured[0], measured[-1]
    passed_ms = max(1.0, 1_000 * (ended_s - began_s))
    # It was started again in between if it has been busy for less than before.
    busy = max(0, last.busy_ms - first.busy_ms) / passed_ms
    rows = _rows_since(first.group_rows, last.group_rows)
    total = sum(rows.get(group, 0) for group in groups)
    loads = {
        group: round(busy * (rows.get(group, 0) / total if total else 1 / len(groups)), 6)
        for group in sorted(groups)
    }
    full = [occupancy(status) for _, status in measured]
    return WorkerReport(part.id, sum(full) / len(full), loads)


def _rows_since(before: Sequence[int], after: Sequence[int]) -> Mapping[int, int]:
    known = dict(enumerate(before))
    return {group: max(0, rows - known.get(group, 0)) for group, rows in enumerate(after)}


def _spare(join: SpreadJoin, workers: Sequence[str]) -> list[str]:
    """Parts without groups that could get some: first those on nodes where no other has any."""
    parts = parts_of(join.name, join.spread)
    used = {join.nodes.get(part.number) for part in parts if join.table.groups_of(part.number)}
    free = [
        part
        for part in parts
        if not join.table.groups_of(part.number) and part.number in join.nodes
    ]
    apart = [part for part in free if join.nodes[part.number] not in used]
    return [str(part.id) for part in apart if part.id not in workers]
