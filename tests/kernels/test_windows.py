"""Windows of many members at once against DuckDB, whatever the batches and the watermarks."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest

from penstock.feeds.arrow import arrow_schema
from penstock.kernels.batch_rows import BatchRows
from penstock.kernels.partials import compute_partials
from penstock.kernels.state_shape import StateShape
from penstock.kernels.window_plan import NotLight, WindowPlan, plan_windows
from penstock.kernels.window_results import give_results
from penstock.kernels.window_state import LONG_AGO_US, MemberTime, MemberWindows, WindowState
from penstock.lang.deployment import parse_deployment
from penstock.place.fuse import fuse

STREAM = """
streams:
  s:
    source: {directory: in, format: csv}
    schema: ts timestamp, k string, g int, v bigint, x double
    event_time: ts
    lateness: 0s
queries:
"""
QUERIES = {
    "tumbling": (
        "SELECT k, window.start AS at, count(*) AS n, sum(v) AS v FROM s GROUP BY k, window(ts, '10 seconds')",
        10, 10, "k", "k, count(*) n, sum(v)::BIGINT v", "TRUE", "TRUE",
    ),
    "sliding": (
        "SELECT window.end AS at, g % 3 AS g3, min(x) AS low, max(k) AS high FROM s WHERE v > 2 OR v IS NULL "
        "GROUP BY g % 3, window(ts, '12 seconds', '5 seconds')",
        12, 5, "g % 3", "g % 3 g3, min(x) low, max(k) high", "v > 2 OR v IS NULL", "TRUE",
    ),
    "having": (
        "SELECT window.start AS at, k, g, avg(v) AS mean, count(v) AS n FROM s "
        "GROUP BY k, g, window(ts, '8 seconds', '2 seconds') HAVING count(*) > 1",
        8, 2, "k, g", "k, g, avg(v) mean, count(v) n", "TRUE", "count(*) > 1",
    ),
    "alone": (
        "SELECT window.start AS at, count(*) AS n, count_if(v > 3) AS large, min_by(k, ts) AS first FROM s "
        "GROUP BY window(ts, '7 seconds')",
        7, 7, "", "count(*) n, count(*) FILTER (v > 3) large, arg_min_null(k, ts) AS first", "TRUE", "TRUE",
    ),
}  # fmt: skip


@cache
def _plans() -> dict[int, WindowPlan]:
    text = STREAM + "".join(f'  {name}: "{case[0]}"\n' for name, case in QUERIES.items())
    network = parse_deployment(text, "s.yaml", Path()).network
    plans = {}
    for number, fragment in enumerate(fuse(network)):
        plan = plan_windows(fragment)
        assert isinstance(plan, WindowPlan), plan
        plans[number] = plan
    return plans


def _rows(random: Random, count: int, begin: datetime) -> pa.Table:
    at = begin
    columns: dict[str, list[object]] = {"ts": [], "k": [], "g": [], "v": [], "x": []}
    for _ in range(count):
        # Times differ, so that no tie decides what min_by gives.
        at += timedelta(microseconds=random.choice([1, 1000, 400_000, 1_000_000, 3_000_000]))
        columns["ts"].append(at)
        columns["k"].append(random.choice([None, "a", "b", "é"]))
        columns["g"].append(random.randint(-5, 5))
        columns["v"].append(random.choice([None, *range(6)]))
        columns["x"].append(random.choice([None, random.random()]))
    plan = next(iter(_plans().values()))
    return pa.table(columns, schema=arrow_schema(plan.schema))


def _run(rows: pa.Table, plans: dict[int, WindowPlan], cuts: list[int]) -> dict[int, Counter]:
    states: dict[StateShape, WindowState] = {}
    before_us = LONG_AGO_US
    found: dict[int, Counter] = {member: Counter() for member in plans}
    times = rows.column("ts").cast(pa.int64()).to_numpy()
    for low, high in pairwise(cuts):
        batch = BatchRows(rows.slice(low, high - low), next(iter(plans.values())).schema)
        for shape, partials in compute_partials(batch, plans).items():
            states.setdefault(shape, WindowState(shape)).add(partials)
        reached_us = 2**62 if high == len(times) else int(times[high - 1]) + 1
        members = {
            member: MemberTime(plan.window, before_us, reached_us) for member, plan in plans.items()
        }
        windows = MemberWindows.of(members, len(plans))
        for shape, state in states.items():
            closed = state.close(windows)
            for member, result in give_results(shape, closed, plans) if closed is not None else ():
                found[member].update(map(tuple, (row.values() for row in result.to_pylist())))
        before_us = reached_us
    assert all(state.rows == 0 for state in states.values()), "the end of time closes everything"
    return found


def _by_duckdb(rows: pa.Table, name: str) -> Counter:
    _, size, slide, keys, selected, condition, having = QUERIES[name]
    at = (
        "window_start"
        if "window.start" in QUERIES[name][0]
        else "window_start + " + str(size * 10**6)
    )
    grouped = ", ".join(part for part in ("window_start", keys) if part)
    sql = f"""
        SELECT {selected}, {at} AS at FROM (
            SELECT *, unnest(range(
                before - (before % every + every) % every + every, at_us + 1, every)) AS window_start
            FROM (SELECT *, epoch_us(ts) AS at_us, at_us - {size} * 1000000 AS before,
                  {slide} * 1000000 AS every FROM rows)) WHERE {condition} GROUP BY {grouped} HAVING {having}"""
    found = duckdb.sql(sql)
    names = found.columns
    wanted = [name_ for name_, _ in _output(name)]
    rows_found = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    return Counter(
        tuple(
            datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row["at"])
            if column == "at"
            else row[column]
            for column in wanted
        )
        for row in rows_found
    )


def _output(name: str) -> list[tuple[str, object]]:
    plan = next(plan for plan in _plans().values() if plan.name == name)
    last = plan.after[-1]
    return [(field.name, field.type) for field in last.output.schema]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "begin", [datetime(2024, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 30, tzinfo=UTC)]
)
def test_windows_are_those_of_duckdb_however_batches_are_cut(seed: int, begin: datetime) -> None:
    random = Random(seed)
    rows = _rows(random, 300, begin)
    plans = _plans()
    cuts = sorted({0, 300, *(random.randint(0, 300) for _ in range(random.choice([0, 3, 40])))})
    found = _run(rows, plans, cuts)
    for member, plan in plans.items():
        assert found[member] == _by_duckdb(rows, plan.name), plan.name


def test_what_kernels_cannot_run_is_said() -> None:
    text = (
        STREAM
        + """
  shouted: "SELECT upper(k) AS k, count(*) AS n FROM s GROUP BY k, window(ts, '5 seconds')"
  distinct_keys: "SELECT approx_count_distinct(k) AS n FROM s GROUP BY window(ts, '5 seconds')"
  plain: "SELECT k FROM s WHERE v > 3"
"""
    )
    network = parse_deployment(text, "s.yaml", Path()).network
    reasons = {}
    for fragment in fuse(network):
        plan = plan_windows(fragment)
        assert isinstance(plan, NotLight)
        reasons[fragment.name] = plan.reason
    assert reasons == {
        "shouted": "kernels cannot compute upper(`k`)",
        "distinct_keys": "kernels cannot compute approx_count_distinct(`k`)",
        "plain": "it has no windowed aggregate",
    }
