"""Members that are about to come: what they bring is put together before their turn.

That is done in the thread of whoever waits for the member, as far as possible while its former
owner still works. The rounds of others do not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import pyarrow as pa

from penstock.kernels.member_state import MemberState, open_state
from penstock.kernels.planning import LightPlan
from penstock.kernels.state_shape import MEMBER, StateShape
from penstock.kernels.window_plan import WindowPlan
from penstock.kernels.window_state import MemberTime, MemberWindows
from penstock.spark.bundles.bundle_log import Given, Handed, rows_of
from penstock.spark.bundles.running import Running


@dataclass(frozen=True)
class Arrival:
    """A member that is about to come: where it begins, and the state it brings.

    ``states`` are the tables that ``state`` is made of, for the log. ``last`` is what its former
    owner gave last and may not have delivered.
    """

    running: Running
    state: MemberState | None = None
    states: tuple[pa.Table, ...] = ()
    last: Given | None = None


@dataclass(frozen=True)
class _Ahead:
    """The state of a member as far as these tables of its former owner's log tell it."""

    former: int
    number: int
    tables: tuple[pa.Table, ...]
    state: MemberState

    def is_beginning_of(self, handed: Handed) -> bool:
        """Whether the log has only grown since."""
        kept = handed.tables[: len(self.tables)]
        is_same = len(kept) == len(self.tables) and all(map(_is, kept, self.tables))
        return is_same and handed.member.number == self.former


class Arrivals:
    """Gives members their numbers, and puts together what they bring."""

    def __init__(self) -> None:
        self._numbers = count()
        self._ahead: dict[str, _Ahead] = {}

    def read_ahead(self, plan: LightPlan, handed: Handed) -> None:
        """Puts together what a member that is to come would bring by now."""
        if isinstance(plan, WindowPlan):
            self._ahead[plan.name] = self._begin(plan, handed)

    def forget(self) -> None:
        """Lets go of what was put together for members that did not come."""
        self._ahead.clear()

    def first(self, running: Running) -> Arrival:
        """The arrival of a member that nobody has run before."""
        return Arrival(_numbered(running, next(self._numbers)))

    def arrive(self, handed: Handed, running: Running) -> Arrival:
        """The arrival of a member that somebody else has run."""
        plan = running.plan
        running = replace(running, member=replace(handed.member, epoch=running.member.epoch))
        if handed.place is not None:
            running = running.at(handed.place)
        if not isinstance(plan, WindowPlan):
            return Arrival(_numbered(running, next(self._numbers)), last=handed.last)
        ahead = self._ahead.pop(plan.name, None)
        if ahead is None or not ahead.is_beginning_of(handed):
            ahead = self._begin(plan, replace(handed, tables=()))
        state = ahead.state
        _add(state, ahead, handed.tables[len(ahead.tables) :])
        _let_go_of_closed(state, plan, ahead.number, running.watermark_us)
        kept = state.dump()
        states = () if kept is None else (kept,)
        return Arrival(_numbered(running, ahead.number), state, states, handed.last)

    def _begin(self, plan: WindowPlan, handed: Handed) -> _Ahead:
        state = open_state(StateShape.of(plan))
        ahead = _Ahead(handed.member.number, next(self._numbers), handed.tables, state)
        _add(state, ahead, handed.tables)
        return ahead


def _add(state: MemberState, ahead: _Ahead, tables: Sequence[pa.Table]) -> None:
    own = [table for table in (rows_of(ahead.former, rows) for rows in tables) if table.num_rows]
    if own:
        state.add(_renumbered(pa.concat_tables(own), ahead.number))


def _let_go_of_closed(state: MemberState, plan: WindowPlan, number: int, watermark_us: int) -> None:
    """Logs hold what has closed until the next snapshot; nobody needs to bring that."""
    time = MemberTime(plan.window, watermark_us, watermark_us)
    state.close(MemberWindows.of({number: time}, number + 1))


def _numbered(running: Running, number: int) -> Running:
    return replace(running, member=replace(running.member, number=number))


def _renumbered(table: pa.Table, number: int) -> pa.Table:
    numbers = pa.array(np.full(table.num_rows, number, np.int32))
    return table.set_column(table.schema.get_field_index(MEMBER), MEMBER, numbers)


def _is(one: pa.Table, other: pa.Table) -> bool:
    return one is other
