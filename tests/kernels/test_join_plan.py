"""Joins of streams as kernels run them: what is kept of each side, what is left to Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import InputError
from penstock.kernels.engine_choice import EngineChoice, choose_engine
from penstock.kernels.join_plan import JoinPlan, PlannedSide
from penstock.lang.deployment import parse_deployment
from penstock.model.expressions import to_sql
from penstock.model.windows import TimeBound
from penstock.place.fuse import fuse

pytestmark = pytest.mark.core

DEPLOYMENT = """
streams:
  s: {source: {directory: in, format: csv}, schema: "ts timestamp, k string, v bigint, d date, x double", event_time: ts, lateness: 0s}
  t: {source: {kafka: "h:1", topic: t}, schema: "at timestamp, k string, w int, b binary", event_time: at, lateness: 0s}
queries:
  q: {sql: "SQL", ASKED}
"""  # noqa: E501
ON = "s.k = t.k AND t.at BETWEEN s.ts - INTERVAL 5 SECONDS AND s.ts + INTERVAL 2 SECONDS"


def chosen(sql: str, asked: str = "to: console") -> EngineChoice:
    text = DEPLOYMENT.replace("SQL", sql).replace("ASKED", asked)
    network = parse_deployment(text, "d.yaml", Path()).network
    (fragment,) = fuse(network)
    return choose_engine(network, fragment)


def planned(sql: str) -> JoinPlan:
    choice = chosen(sql)
    assert isinstance(choice.plan, JoinPlan), choice.reason
    assert (choice.engine, choice.reason) == ("light", "a join of two streams")
    return choice.plan


def kept(side: PlannedSide) -> list[str]:
    return [column.name for column in side.columns]


def test_of_each_side_only_what_is_needed_is_kept() -> None:
    plan = planned(f"SELECT s.v, t.w FROM s JOIN t ON {ON}")
    assert (plan.left.stream, plan.right.stream) == ("s", "t")
    assert (len(plan.left.columns), len(plan.right.columns)) == (3, 3)
    assert plan.left.given and set(plan.left.given) < set(kept(plan.left))
    assert plan.bound == TimeBound(-5_000_000, 2_000_000)
    assert plan.kind == "inner" and not plan.is_finished_by_spark


def test_filters_and_maps_before_the_join_become_expressions_over_the_stream() -> None:
    plan = planned(
        "SELECT a.ts, a.u FROM (SELECT ts, k, v + 1 AS u FROM s WHERE v > 3) a JOIN t "
        f"ON {ON.replace('s.', 'a.')}"
    )
    assert [to_sql(condition) for condition in plan.left.conditions] == ["(`v` > 3)"]
    assert "(`v` + 1)" in [to_sql(column.value) for column in plan.left.columns]
    rows = pa.table(
        {
            "ts": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
            "k": ["a", "b", "c"],
            "v": pa.array([9, 3, None], pa.int64()),
        }
    )
    assert plan.left.project(rows).column(2).to_pylist() == [10]


def test_what_arrow_cannot_compute_is_left_to_spark() -> None:
    plan = planned(
        "SELECT a.ts, upper(a.k) AS loud FROM (SELECT ts, k, v FROM s WHERE length(k) < 3) a "
        f"JOIN t ON a.v < t.w AND {ON.replace('s.', 'a.')}"
    )
    assert len(plan.left.left_to_spark) == 1 and not plan.right.left_to_spark
    assert plan.is_finished_by_spark
    assert plan.terms.residual is None and len(plan.after) == 2


def test_sides_that_are_kept_otherwise_have_other_names() -> None:
    plain = planned(f"SELECT s.v FROM s JOIN t ON {ON}")
    more = planned(f"SELECT s.v, s.x FROM s JOIN t ON {ON}")
    assert plain.left.digest != more.left.digest and plain.right.digest == more.right.digest


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            f"SELECT s.v FROM s LEFT JOIN t ON length(s.k) < t.w AND {ON}",
            "kernels cannot compute (length(",
        ),
        (
            f"SELECT s.v FROM s JOIN t ON s.d = t.at AND {ON}",
            "rows cannot be joined by a key of type date32[day] and one of type timestamp",
        ),
    ],
)
def test_what_kernels_cannot_join_is_native_and_partitioned_is_refused(
    sql: str, reason: str
) -> None:
    choice = chosen(sql)
    assert choice.engine == "native" and choice.reason.startswith(reason)
    with pytest.raises(InputError, match="query q asks for a partitioned join") as refused:
        chosen(sql, "join: partitioned")
    assert str(refused.value).endswith("Leave join out, or say join: native.")


def test_a_query_may_ask_for_sparks_own_join() -> None:
    sql = f"SELECT s.v FROM s JOIN t ON {ON}"
    choice = chosen(sql, "join: native")
    assert (choice.engine, choice.reason) == ("native", "q asks for Spark's own join")
    assert chosen(sql, "join: partitioned").engine == "light"
    assert chosen(sql, "engine: native").reason == "q asks for it"
    with pytest.raises(InputError, match="Say partitioned or native"):
        chosen(sql, "join: quick")
