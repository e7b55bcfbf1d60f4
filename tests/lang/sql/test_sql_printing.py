"""Operators back to SQL: the text, and that reading it gives the same operators."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sql_samples import CATALOG, DISTRICTS, NEXMARK, blocks, network, operators, told

from laws import tried
from penstock.errors import InputError
from penstock.lang.sql import KnownNames, query_sql
from penstock.lang.sql.graph import identity
from penstock.lang.sql.query_text import _behind, _SqlPrinter
from penstock.model.aggregates import AggregateCall
from penstock.model.canonical import same_operators
from penstock.model.expressions import Call, Column, Literal
from penstock.model.network import Network, Query
from penstock.model.operators import (
    Aggregate,
    Filter,
    Input,
    Map,
    Operator,
    PythonOperator,
    Switch,
    TableJoin,
    Union,
    WindowJoin,
)
from penstock.model.schema import Schema
from penstock.model.windows import TimeBound, Window

QUERIES = blocks("printed.txt")
EXAMPLES = [path.read_text() for path in sorted(NEXMARK.glob("*.sql"))]


@pytest.mark.parametrize("text", [*QUERIES, *EXAMPLES])
@pytest.mark.parametrize("folding", [True, False], ids=["folded", "plain"])
def test_what_is_printed_reads_back(text: str, folding: bool) -> None:
    first = operators(text)
    printed = _SqlPrinter(_behind(network(first), "q"), "q", folding=folding).text()
    assert same_operators(operators(printed), first)
    if folding:
        assert query_sql(network(first), "q") == printed  # so it is what people get to see


@pytest.mark.parametrize(
    "text",
    [
        """
        SELECT home, district, window.start AS since, sum(kwh) AS kwh
        FROM readings
        GROUP BY home, district, window(ts, '6 hours', '30 minutes')
        HAVING sum(kwh) > 9
        """,
        """
        SELECT persons.name, auctions.id
        FROM persons
        JOIN auctions ON persons.id = auctions.seller AND
          auctions.ts BETWEEN persons.ts AND persons.ts + INTERVAL '1' HOUR
        WHERE persons.state IN ('OR', 'ID') AND auctions.category = 10
        """,
        """
        WITH counts AS (
          SELECT auction, count(*) AS num, window.end AS endtime
          FROM bids
          GROUP BY auction, window(ts, '10 seconds', '2 seconds')
        ), most AS (
          SELECT max(num) AS num, window.start AS endtime
          FROM counts
          GROUP BY window(endtime, '2 seconds')
        )
        SELECT counts.auction, counts.num, counts.endtime
        FROM counts
        JOIN most ON most.endtime = counts.endtime AND counts.num >= most.num
        """,
        """
        SELECT readings.home, readings_2.kwh
        FROM readings
        LEFT JOIN readings AS readings_2 ON readings.home = readings_2.home AND
          readings_2.ts > readings.ts AND readings_2.ts <= readings.ts + INTERVAL '1' HOUR AND
          readings_2.kwh > 3
        """,
        """
        SELECT home, ts
        FROM readings
        WHERE kwh > 3
        UNION ALL
        SELECT url AS home, ts
        FROM bids
        """,
        """
        INSERT INTO totals (home, kwh)
        SELECT home, kwh
        FROM readings
        """,
    ],
)
def test_text(text: str) -> None:
    assert query_sql(network(operators(told(text))), "q") == told(text)


def test_other_queries_are_read_by_name() -> None:
    large = operators("SELECT home, ts FROM readings WHERE kwh > 3", "large")
    known = KnownNames({**CATALOG.shapes, "large": large[-1].output})
    few = operators("SELECT home FROM large WHERE home < 'c'", "few", known)
    queries = (Query("large", "large"), Query("few", "few"))
    whole = Network(network(large).streams, (*large, *few), queries)
    assert query_sql(whole, "few") == "SELECT home\nFROM large\nWHERE home < 'c'"
    assert query_sql(whole, "readings") == "SELECT *\nFROM readings"
    with pytest.raises(InputError, match="no stream lage"):
        query_sql(whole, "lage")


def test_what_sql_cannot_express_is_read_by_name() -> None:
    switch = Switch("sides", READINGS, (("high", Call(">", (Column("kwh"), Literal(3)))),))
    clean = PythonOperator("clean", READINGS, "m:f", Schema.parse("home string"))
    some = Filter("some", Input("sides_high", switch.output), Call("is_null", (Column("kwh"),)))
    renamed = Map("q", Input("clean", clean.output), (("h", Column("home")),))
    whole = network((switch, clean, some, renamed))
    assert query_sql(whole, "some") == "SELECT *\nFROM sides_high\nWHERE kwh IS NULL"
    assert query_sql(whole, "q") == "SELECT home AS h\nFROM clean"
    with pytest.raises(InputError) as caught:
        query_sql(whole, "clean")
    assert str(caught.value) == (
        "clean comes from a python operator, which SQL cannot express. "
        "Ask for a query that reads it."
    )


READINGS = Input("readings", CATALOG.shapes["readings"])
BIDS = Input("bids", CATALOG.shapes["bids"])

Step = Callable[[str, Input], tuple[Operator, ...]]


def kept(name: str, input: Input) -> tuple[Operator, ...]:
    return (Filter(name, input, Call("is_null", (Column(input.schema.names[0]),))),)


def renamed(name: str, input: Input) -> tuple[Operator, ...]:
    columns = tuple((f"x_{one}", Column(one)) for one in input.schema.names)
    return (Map(name, input, columns),)


def extended(name: str, input: Input) -> tuple[Operator, ...]:
    one_more = (f"n_{name}", Call("coalesce", (Literal(1), Literal(2))))
    return (Map(name, input, (*identity(input), one_more)),)


def grouped(name: str, input: Input) -> tuple[Operator, ...]:
    keys = ((f"key_{name}", Column(input.schema.names[-1])),)
    calls = ((f"total_{name}", AggregateCall("count")),)
    return (Aggregate(name, input, Window.of(1_000_000), keys, calls),)


def doubled(name: str, input: Input) -> tuple[Operator, ...]:
    return (Union(name, (input, input)),)


def paired(name: str, input: Input) -> tuple[Operator, ...]:
    columns = ((f"price_{name}", Column("price")), (f"time_{name}", Column("ts")))
    right = Map(f"{name}_bids", BIDS, columns)
    bound = TimeBound(-5, 7_000_000)
    return (right, WindowJoin(name, input, Input(right.name, right.output), (), bound))


def looked_up(name: str, input: Input) -> tuple[Operator, ...]:
    first = Map(f"{name}_key", input, (*identity(input), (f"key_{name}", Literal("a"))))
    equal, columns = ((f"key_{name}", "district"),), ((f"city_{name}", "city"),)
    return (first, TableJoin(name, Input(first.name, first.output), DISTRICTS, equal, columns))


@tried(25)
@given(
    st.lists(
        st.sampled_from([kept, renamed, extended, grouped, doubled, paired, looked_up]),
        min_size=1,
        max_size=5,
    )
)
def test_whatever_is_built_reads_back(steps: list[Step]) -> None:
    built: tuple[Operator, ...] = ()
    input = READINGS
    for at, step in enumerate(steps):
        name = "q" if at == len(steps) - 1 else f"step_{at}"
        built = (*built, *step(name, input))
        input = Input(name, built[-1].output)
    text = query_sql(network(built), "q")
    assert same_operators(operators(text), built)
