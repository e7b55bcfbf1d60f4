"""Sharing is invisible in rows: what is left of a query gives what the whole query would."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from control.made_up import submission
from penstock.control.beginning import Head, decide_beginnings
from penstock.control.records import Submission
from penstock.control.sharing import StreamIndex, can_be_tapped, decide_sharing
from penstock.control.system import System, assemble, extend, understand
from penstock.feeds.arrow import arrow_schema
from penstock.kernels.batch_rows import BatchRows
from penstock.kernels.partials import compute_partials
from penstock.kernels.planning import plan_fragment
from penstock.kernels.rows_plan import RowsPlan
from penstock.kernels.state_shape import StateShape
from penstock.kernels.window_plan import WindowPlan
from penstock.kernels.window_results import MemberResult, give_members
from penstock.kernels.window_state import LONG_AGO_US, MemberTime, MemberWindows, WindowState

STREAM = """
streams:
  s:
    source: {directory: in, format: csv}
    schema: ts timestamp, k string, v bigint
    event_time: ts
    lateness: 0s
"""
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BEGIN_US = int(BEGIN.timestamp() * 1e6)
COLUMNS = {"k": "k", "at": "window.start", "till": "window.end", "n": "count(*)", "v": "sum(v)"}


@st.composite
def queries(draw: st.DrawFn) -> str:
    """One of many ways to ask something of the same windows."""
    names = draw(st.permutations(list(COLUMNS)))
    kept = [name for name in names if name in ("k", "n", "v") or draw(st.booleans())]
    suffix = draw(st.sampled_from(["", "_x"]))
    selected = ", ".join(f"{COLUMNS[name]} AS {name}{suffix}" for name in kept)
    keys = draw(st.sampled_from(["k, window(ts, '8 seconds')", "window(ts, '8000 ms'), k"]))
    having = draw(
        st.sampled_from(["", " HAVING sum(v) > 4", " HAVING 4 < sum(v)", " HAVING count(*) > 1"])
    )
    return f"SELECT {selected} FROM s GROUP BY {keys}{having}"


def added(system: System, name: str, query: str, since_us: int | None, share: bool) -> System:
    """The system with one more query, that counts after a time if there is one."""
    number = max(system.deployments) + 1
    asked = Submission(number, name, "sql", query, ".")
    if share:
        network = understand(system, asked).network
        sharing = decide_sharing(
            StreamIndex(),
            system,
            network,
            lambda unit, inside: "" if not inside or can_be_tapped(unit) else "it is not cut",
        )
        assert sharing.reads, "windows of the same kind are shared"
        asked = replace(asked, sharing=sharing)
    if since_us is not None:
        head = Head(next=3, latest={"ts": since_us})
        asked = replace(
            asked, begun=decide_beginnings(extend(system, asked), number, "now", lambda _: head)
        )
    return extend(system, asked)


def plan_of(system: System, name: str) -> WindowPlan | RowsPlan:
    fragment = system.units[name].fragment
    assert fragment is not None
    plan = plan_fragment(fragment)
    assert isinstance(plan, WindowPlan | RowsPlan), plan
    return plan


def rounds(plan: WindowPlan, rows: pa.Table, cuts: list[int]) -> list[MemberResult]:
    """What a member gives, batch by batch."""
    state, before_us = WindowState(StateShape.of(plan)), LONG_AGO_US
    times = rows.column("ts").cast(pa.int64()).to_numpy()
    found: list[MemberResult] = []
    for low, high in pairwise(cuts):
        batch = BatchRows(rows.slice(low, high - low), plan.schema)
        for partials in compute_partials(batch, {0: plan}).values():
            state.add(partials)
        reached_us = 2**62 if high == len(times) else int(times[high - 1]) + 1
        windows = MemberWindows.of({0: MemberTime(plan.window, before_us, reached_us)}, 1)
        closed = state.close(windows)
        if closed is not None:
            found += [given for _, given in give_members(StateShape.of(plan), closed, {0: plan})]
        before_us = reached_us
    return found


def counted(tables: list[pa.Table]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())


@given(queries(), queries(), st.randoms(use_true_random=False), st.none() | st.integers(0, 90))
def test_what_is_left_gives_what_the_whole_would(
    first: str, second: str, random: Random, late_s: int | None
) -> None:
    since_us = None if late_s is None else BEGIN_US + late_s * 1_000_000
    base = added(assemble([submission("base", STREAM, 1)]), "first", first, None, share=False)
    alone = plan_of(added(base, "second", second, since_us, share=False), "second")
    system = added(base, "second", second, since_us, share=True)
    maker, rest = plan_of(system, "first"), plan_of(system, "second")
    assert isinstance(maker, WindowPlan) and isinstance(alone, WindowPlan)
    assert isinstance(rest, RowsPlan)

    rows = rows_of(random, 60, maker)
    cuts = [0, *sorted(random.sample(range(1, 60), 5)), 60]
    results = rounds(maker, rows, cuts)
    shared = [
        result.rows if rest.stream == "first" else result.tapped[rest.stream] for result in results
    ]
    expected = counted([result.rows for result in rounds(alone, rows, cuts)])
    assert counted([rest.give(table) for table in shared]) == expected

    # Without its tail the maker gives the tap, the same rows, and nothing else.
    if maker.taps:
        cut = rounds(replace(maker, has_tail=False), rows, cuts)
        assert counted([one.rows for one in cut]) == Counter()
        tapped = counted([one.tapped[rest.stream] for one in cut])
        assert tapped == counted([result.tapped[rest.stream] for result in results])


def rows_of(random: Random, count: int, plan: WindowPlan) -> pa.Table:
    at, columns = BEGIN, {"ts": list[object](), "k": list[object](), "v": list[object]()}
    for _ in range(count):
        at += timedelta(microseconds=random.choice([1, 300_000, 1_000_000, 4_000_000]))
        columns["ts"].append(at)
        columns["k"].append(random.choice([None, "a", "b"]))
        columns["v"].append(random.choice([None, 1, 2, 3]))
    names = plan.schema.names
    return pa.table({name: columns[name] for name in names}, schema=arrow_schema(plan.schema))
