"""Sharing is invisible in rows: what is left of a query gives what the whole query would."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from math import isnan, nan
from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from control.made_up import submission
from laws import tried
from penstock.control.beginning import Head, decide_beginnings
from penstock.control.records import Submission
from penstock.control.sharing import StreamIndex, can_be_tapped, decide_sharing
from penstock.control.system import System, assemble, extend, understand
from penstock.feeds.arrow import arrow_schema
from penstock.feeds.lateness import sift
from penstock.kernels.batch_rows import BatchRows
from penstock.kernels.partials import compute_partials
from penstock.kernels.planning import plan_fragment
from penstock.kernels.rows_plan import RowsPlan
from penstock.kernels.slices import give_slices
from penstock.kernels.state_shape import StateShape
from penstock.kernels.window_plan import WindowPlan
from penstock.kernels.window_results import MemberResult, give_members
from penstock.kernels.window_state import LONG_AGO_US, MemberTime, MemberWindows, WindowState

LATENESS_US = 3_000_000
STREAM = """
streams:
  s:
    source: {directory: in, format: csv}
    schema: ts timestamp, k string, j int, v bigint, x double
    event_time: ts
    lateness: 3s
"""
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BEGIN_US = int(BEGIN.timestamp() * 1e6)
AFTER_ALL_US = 2**62
COLUMNS = {"k": "k", "at": "window.start", "till": "window.end", "n": "count(*)", "v": "sum(v)"}
HAVINGS = ["", " HAVING sum(v) > 4", " HAVING 4 < sum(v)", " HAVING count(*) > 1"]
STRICTER = [*HAVINGS, " HAVING sum(v) > 4 AND k = 'a'", " HAVING sum(v) >= 6 AND count(*) < 9"]


@st.composite
def queries(draw: st.DrawFn, havings: list[str]) -> str:
    """One of many ways to ask something of the same windows."""
    names = draw(st.permutations(list(COLUMNS)))
    kept = [name for name in names if name in ("k", "n", "v") or draw(st.booleans())]
    suffix = draw(st.sampled_from(["", "_x"]))
    selected = ", ".join(f"{COLUMNS[name]} AS {name}{suffix}" for name in kept)
    keys = draw(st.sampled_from(["k, window(ts, '8 seconds')", "window(ts, '8000 ms'), k"]))
    where = draw(st.sampled_from(["", "WHERE k IN ('a', 'b') "])) if havings is STRICTER else ""
    return f"SELECT {selected} FROM s {where}GROUP BY {keys}{draw(st.sampled_from(havings))}"


@dataclass(frozen=True)
class Windows:
    """A query over sliding windows, so that it can be computed plainly as well."""

    size_s: int
    slide_s: int
    keys: tuple[str, ...]
    calls: tuple[str, ...]
    only: str = ""

    @property
    def sql(self) -> str:
        names = [f"c{at}" for at in range(len(self.calls))]
        calls = [f"{call} AS {name}" for call, name in zip(self.calls, names, strict=True)]
        selected = ", ".join([*self.keys, "window.start AS at", *calls])
        grouped = ", ".join([*self.keys, f"window(ts, '{self.size_s} s', '{self.slide_s} s')"])
        where = f"WHERE {self.only} " if self.only else ""
        return f"SELECT {selected} FROM s {where}GROUP BY {grouped}"


CALLS = ("count(*)", "count(x)", "sum(v)", "avg(v)", "sum(x)", "avg(x)", "stddev(x)", "min(x)")
CALLS += ("max(v)", "min_by(k, v)", "max_by(v, x)")
SAME_STATES = {"avg(v)": "sum(v)", "sum(x)": "avg(x)", "count(x)": "sum(x)"}
ONLY = {"k": "k = 'a'", "j": "j > 0"}


@st.composite
def overlapping(draw: st.DrawFn) -> tuple[Windows, Windows]:
    """Two queries of which one can be put together from slices of the other."""
    slice_s = draw(st.sampled_from([2, 3]))
    times = draw(st.sampled_from([(1, 1), (3, 2), (4, 3), (5, 1)]))
    calls = tuple(draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=5, unique=True)))
    keys = tuple(draw(st.permutations(["k", "j", "x"]))[: draw(st.integers(0, 3))])
    only = draw(st.sampled_from(["", "v > 1"]))
    first = Windows(times[0] * slice_s, times[1] * slice_s, keys, calls, only)
    slide = draw(st.integers(1, 4))
    size = slide * draw(st.integers(1, 3)) + draw(st.integers(0, 2))
    kept = tuple(key for key in keys if draw(st.booleans()))
    wanted = {call: draw(st.booleans()) for call in calls}
    others = tuple(call for call in calls if wanted[call])
    others += tuple(call for call, kept_as in SAME_STATES.items() if kept_as in calls)
    checks = [only, *(ONLY[key] for key in keys if key in ONLY and draw(st.booleans()))]
    where = " AND ".join(check for check in checks if check)
    second = Windows(size * slice_s, slide * slice_s, kept, others or calls[:1], where)
    return first, second


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
        assert sharing.reads, "it overlaps with what runs"
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


Batches = list[tuple[pa.Table, int]]
"""Rows, and how far time has come behind them."""


def brought_in(rows: pa.Table, cuts: list[int]) -> Batches:
    """What gets past the entrance of a stream, in batches, each with its watermark."""
    batches, high_us = Batches(), None
    for low, high in pairwise(cuts):
        sifted = sift(rows.slice(low, high - low), "ts", LATENESS_US, high_us)
        high_us = sifted.high_water_us
        assert high_us is not None
        is_last = high == rows.num_rows
        batches.append((sifted.kept, AFTER_ALL_US if is_last else high_us - LATENESS_US))
    return batches


def rounds(plan: WindowPlan, batches: Batches) -> list[MemberResult]:
    """What a member gives, batch by batch."""
    shape, before_us = StateShape.of(plan), LONG_AGO_US
    state, found = WindowState(shape), []
    nothing = MemberResult(arrow_schema(plan.output.schema).empty_table())
    for rows, reached_us in batches:
        schema = arrow_schema(plan.schema)
        batch = BatchRows(rows.select(schema.names).cast(schema).combine_chunks(), plan.schema)
        for partials in compute_partials(batch, {0: plan}).values() if rows.num_rows else ():
            state.add(partials)
        slices = give_slices({shape: state}, {0: plan}, {0: (before_us, reached_us)}, 1)
        windows = MemberWindows.of({0: MemberTime(plan.window, before_us, reached_us)}, 1)
        closed = state.close(windows)
        results = {} if closed is None else dict(give_members(shape, closed, {0: plan}))
        result = results.get(0, nothing)
        found.append(result.giving(plan, slices[0]) if 0 in slices else result)
        before_us = reached_us
    return found


def rows_given(plan: WindowPlan | RowsPlan, source: list[MemberResult], batches: Batches) -> Rows:
    """What is given of the stream that a maker gives batch by batch."""
    given: list[pa.Table] = []
    read: Batches = []
    for result, (_, reached_us) in zip(source, batches, strict=True):
        rows = result.rows if plan.stream == "first" else result.tapped.get(plan.stream)
        if rows is None:
            rows = arrow_schema(plan.schema).empty_table()
        read.append((rows, reached_us))
    if isinstance(plan, RowsPlan):
        given = [plan.give(rows) for rows, _ in read]
    else:
        given = [result.rows for result in rounds(plan, read)]
    return counted(given)


Rows = Counter[tuple[object, ...]]


def counted(tables: list[pa.Table]) -> Rows:
    return Counter(
        tuple("NaN" if isinstance(value, float) and isnan(value) else value for value in row)
        for table in tables
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
    )


def plans_of(
    first: str, second: str, since_us: int | None
) -> tuple[WindowPlan, WindowPlan, WindowPlan | RowsPlan]:
    """What runs, the whole of a second query, and what is left of that if it shares."""
    base = added(assemble([submission("base", STREAM, 1)]), "first", first, None, share=False)
    alone = plan_of(added(base, "second", second, since_us, share=False), "second")
    system = added(base, "second", second, since_us, share=True)
    maker, rest = plan_of(system, "first"), plan_of(system, "second")
    assert isinstance(maker, WindowPlan) and isinstance(alone, WindowPlan)
    return maker, alone, rest


def late(late_s: int | None) -> int | None:
    return None if late_s is None else BEGIN_US + late_s * 1_000_000


LATE = st.none() | st.integers(0, 90)
RANDOM = st.randoms(use_true_random=False)


@given(queries(HAVINGS), queries(STRICTER), RANDOM, LATE)
@tried(40)
def test_what_is_left_gives_what_the_whole_would(
    first: str, second: str, random: Random, late_s: int | None
) -> None:
    maker, alone, rest = plans_of(first, second, late(late_s))
    assert isinstance(rest, RowsPlan)
    batches = brought_in(rows_of(random, 60), cuts_of(random, 60))
    results = rounds(maker, batches)
    expected = counted([result.rows for result in rounds(alone, batches)])
    assert rows_given(rest, results, batches) == expected

    # Without its tail the maker gives the tap, the same rows, and nothing else.
    if maker.taps:
        cut = rounds(replace(maker, has_tail=False), batches)
        assert counted([one.rows for one in cut]) == Counter()
        assert rows_given(rest, cut, batches) == expected


@given(overlapping(), RANDOM, LATE)
@tried(50)
def test_windows_of_slices_are_those_of_the_rows(
    asked: tuple[Windows, Windows], random: Random, late_s: int | None
) -> None:
    first, second = asked
    maker, alone, rest = plans_of(first.sql, second.sql, late(late_s))
    batches = brought_in(rows_of(random, 60), cuts_of(random, 60))
    given = rows_given(rest, rounds(maker, batches), batches)
    assert given == counted([result.rows for result in rounds(alone, batches)])
    assert given == plainly(second, batches, late(late_s))
    if maker.slices is not None:
        cut = rounds(replace(maker, has_tail=False), batches)
        assert rows_given(rest, cut, batches) == given


def cuts_of(random: Random, count: int) -> list[int]:
    return [0, *sorted(random.sample(range(1, count), 5)), count]


def rows_of(random: Random, count: int) -> pa.Table:
    """Rows out of order, some of them too late, with nulls, NaN, both zeros and ties."""
    at, columns = BEGIN, defaultdict(list)
    for _ in range(count):
        at += timedelta(microseconds=random.choice([0, 1, 300_000, 1_000_000, 4_000_000]))
        columns["ts"].append(at - timedelta(seconds=random.choice([0, 0, 0, 1, 3, 9])))
        columns["k"].append(random.choice([None, "a", "b"]))
        columns["j"].append(random.choice([None, 0, 1, 2]))
        columns["v"].append(random.choice([None, 1, 2, 3, 2**62]))
        columns["x"].append(random.choice([None, nan, 0.0, -0.0, 0.1, 1e17, -1e17]))
    schema = arrow_schema(assemble([submission("base", STREAM, 1)]).streams["s"].shape.schema)
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


def plainly(query: Windows, batches: Batches, since_us: int | None) -> Rows:
    """What a query means, row by row and window by window."""
    rows = [row for table, _ in batches for row in table.to_pylist()]
    groups: dict[tuple[object, ...], list[dict[str, object]]] = defaultdict(list)
    for row in rows:
        ts_us = (row["ts"] - BEGIN) // timedelta(microseconds=1) + BEGIN_US
        if not _meets(query.only, row):
            continue
        slide_us, size_us = query.slide_s * 1_000_000, query.size_s * 1_000_000
        start_us = ts_us // slide_us * slide_us
        while start_us > ts_us - size_us:
            if since_us is None or start_us > since_us:
                keys = tuple(_group(row[key]) for key in query.keys)
                at = BEGIN + timedelta(microseconds=start_us - BEGIN_US)
                groups[*keys, at].append(row)
            start_us -= slide_us
    return Counter((*key, *(_call(call, of) for call in query.calls)) for key, of in groups.items())


def _meets(only: str, row: dict[str, object]) -> bool:
    checks = {
        "v > 1": lambda: row["v"] is not None and row["v"] > 1,  # type: ignore[operator]
        "k = 'a'": lambda: row["k"] == "a",
        "j > 0": lambda: row["j"] is not None and row["j"] > 0,  # type: ignore[operator]
    }
    return all(checks[check]() for check in only.split(" AND ") if check)


def _group(value: object) -> object:
    """Zeros of both signs are one group, and all NaN."""
    if isinstance(value, float):
        return "NaN" if isnan(value) else value + 0.0
    return value


def _call(call: str, rows: list[dict[str, object]]) -> object:
    """An aggregate of some rows, by the words of the manual."""
    if call == "count(*)":
        return len(rows)
    function, names = call.rstrip(")").split("(")
    name, *by = names.split(", ")
    if by:
        return _extreme_by(function, name, by[0], rows)
    values = [row[name] for row in rows if row[name] is not None]
    if function == "count":
        return len(values)
    if not values:
        return None
    if function in ("min", "max"):
        best = (min if function == "min" else max)(values, key=_place)
        return "NaN" if isinstance(best, float) and isnan(best) else best
    if any(isinstance(value, float) and isnan(value) for value in values):
        return None if function == "stddev" and len(values) < 2 else "NaN"
    total, count = sum(map(Fraction, values)), len(values)  # type: ignore[arg-type]
    if function == "sum":
        if name == "v":
            return int(total) if total < 2**63 else None
        return float(total)
    if function == "avg":
        return float(total / count)
    if count < 2:
        return None
    squares = sum(Fraction(value) ** 2 for value in values)  # type: ignore[arg-type]
    variance = float((count * squares - total * total) / (count * (count - 1)))
    return variance**0.5


def _place(value: object) -> tuple[bool, float, bool]:
    """NaN is greater than every number, and the negative zero comes before zero."""
    assert isinstance(value, int | float)
    if value != value:
        return True, 0.0, False
    return False, value, str(value) != "-0.0"


def _extreme_by(function: str, name: str, by: str, rows: list[dict[str, object]]) -> object:
    known = [row for row in rows if row[by] is not None]
    if not known:
        return None
    order = [_place(row[by])[:2] for row in known]
    best = (min if function == "min_by" else max)(order)
    tied = [row[name] for row, place in zip(known, order, strict=True) if place == best]
    return min((value for value in tied if value is not None), default=None)
