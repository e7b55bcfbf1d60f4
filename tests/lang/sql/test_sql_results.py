"""DuckDB runs a query as it was written, and as the operators it became: the rows are the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta

import duckdb
import pytest
import sqlglot
from sql_samples import blocks, operators

from penstock.model.expressions import Expression, to_sql
from penstock.model.operators import Filter, Map, Operator, TableJoin, Union, WindowJoin

QUERIES = blocks("results.txt")


def duckdb_sql(spark: str) -> str:
    return sqlglot.transpile(spark, read="spark", write="duckdb")[0]


def expression(one: Expression) -> str:
    return duckdb_sql(to_sql(one))


def as_query(operator: Operator) -> str:
    """What an operator does, as a query over tables called like its inputs."""
    match operator:
        case Filter(input=input, predicate=predicate):
            return f"SELECT * FROM {input.stream} WHERE {expression(predicate)}"
        case Map(input=input, columns=columns):
            items = ", ".join(f"{expression(one)} AS {name}" for name, one in columns)
            return f"SELECT {items} FROM {input.stream}"
        case Union(branches=branches):
            return " UNION ALL ".join(f"SELECT * FROM {branch.stream}" for branch in branches)
        case WindowJoin():
            return _as_join(operator)
        case TableJoin(input=input, equal=equal, columns=columns, table=table, join=join):
            on = " AND ".join(f"i.{one} = t.{other}" for one, other in equal)
            added = "".join(f", t.{column} AS {name}" for name, column in columns)
            return f"SELECT i.*{added} FROM {input.stream} i {join} JOIN {table.name} t ON {on}"
    raise AssertionError(operator.kind)


def _as_join(operator: WindowJoin) -> str:
    left, right = operator.left.shape.event_time, operator.right.shape.event_time
    on = [f"l.{one} = r.{other}" for one, other in operator.equal]
    on += [
        f"r.{right} >= l.{left} + INTERVAL ({operator.bound.lower_us}) MICROSECOND",
        f"r.{right} <= l.{left} + INTERVAL ({operator.bound.upper_us}) MICROSECOND",
    ]
    on += [expression(operator.condition)] if operator.condition is not None else []
    sides = f"{operator.left.stream} l {operator.join} JOIN {operator.right.stream} r"
    return f"SELECT * FROM {sides} ON {' AND '.join(on)}"


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    rng = random.Random(7)
    start = datetime(2024, 1, 1)
    places = ["a", "b", "c", "A", None]

    def moment() -> datetime:
        return start + timedelta(seconds=30 * rng.randrange(60))

    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE readings (ts TIMESTAMP, home VARCHAR, district VARCHAR, kwh DOUBLE);"
            "CREATE TABLE bids (auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, "
            "url VARCHAR, ts TIMESTAMP);"
            "CREATE TABLE districts (district VARCHAR, city VARCHAR, people INT)"
        )
        connection.executemany(
            "INSERT INTO readings VALUES (?, ?, ?, ?)",
            [
                (moment(), rng.choice(places), rng.choice(places), rng.randrange(6))
                for _ in range(60)
            ],
        )
        connection.executemany(
            "INSERT INTO bids VALUES (?, ?, ?, ?, ?, ?)",
            [(1, 2, rng.randrange(6), "x", rng.choice(places), moment()) for _ in range(60)],
        )
        connection.executemany(
            "INSERT INTO districts VALUES (?, ?, ?)", [("a", "x", 1), ("b", "y", 3), ("b", "z", 5)]
        )
        yield connection


@pytest.mark.parametrize("text", QUERIES)
def test_same_rows(text: str, database: duckdb.DuckDBPyConnection) -> None:
    parsed = operators(text)
    steps = ", ".join(f"{one.name} AS ({as_query(one)})" for one in parsed)
    written = database.execute(duckdb_sql(text)).fetchall()
    became = database.execute(f"WITH {steps} SELECT * FROM q").fetchall()
    assert written and sorted(became, key=str) == sorted(written, key=str)
