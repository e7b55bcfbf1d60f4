"""Signatures: equal for the same rows at the same event times, however they are asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from model.samples import counted, filtered, input_of, more, stream_of
from penstock.lang.deployment import parse_deployment
from penstock.model.canonical import (
    canonical_streams,
    plan_signature,
    same_operators,
    signatures,
    work_signature,
)
from penstock.model.canonical_expressions import describe, normalise
from penstock.model.canonical_stream import VERSION
from penstock.model.encoding import encode
from penstock.model.expressions import Call, Case, Column, Expression, Literal
from penstock.model.fragments import Fragment
from penstock.model.network import Network, Query
from penstock.model.operators import Map, Operator
from penstock.model.schema import Shape
from penstock.model.sources import RunningSource

pytestmark = pytest.mark.core

SOURCE = "generate: meters, days: 1, homes: 5"
STREAMS = """
streams:
  readings: {source: {generate: meters, days: 1, homes: 5}, lateness: 2min}
  again: {source: {homes: 5, generate: meters, days: 1}, lateness: 120 s}
  rates: {source: {replay: r.json}, schema: "at timestamp, district string, eur double, n int",
          event_time: at, lateness: 1min}
  two: {from: readings, switch: {high: "kwh > 9", low: "kwh <= 9"}}
  cleaned: {from: readings, python: "cleaning:drop", schema: "ts timestamp, kwh double"}
tables:
  homes: {file: homes.csv, schema: "home string, area string"}
  places: {file: homes.csv, schema: "home string, area string"}
queries:
"""


def network_of(*texts: str, streams: str = STREAMS) -> Network:
    """What queries of these texts, called q, q1, q2 and so on, come to."""
    written = "".join(
        f"  q{at or ''}:\n    sql: |\n      {text}\n    to: none\n" for at, text in enumerate(texts)
    )
    return parse_deployment(streams + written, "test", Path("/data")).network


def signature(text: str, streams: str = STREAMS) -> str:
    return signatures(network_of(text, streams=streams)).queries["q"]


GROUPED = (
    "SELECT home, window.end AS at, sum(kwh) AS s FROM readings "
    "GROUP BY home, window(ts, '6 hours', '30 minutes')"
)
JOINED = (
    "SELECT r.ts, r.kwh, p.eur FROM readings r JOIN rates p "
    "ON r.district = p.district AND p.at BETWEEN r.ts AND r.ts + INTERVAL 1 HOUR"
)

EQUAL = {
    "aliases": (
        "SELECT r.ts, r.kwh AS a FROM readings r",
        "SELECT x.ts AS t, x.kwh FROM readings x",
    ),
    "order of columns": ("SELECT ts, kwh FROM readings", "SELECT kwh, ts FROM readings"),
    "the names of streams": ("SELECT ts, kwh FROM readings", "SELECT ts, kwh FROM again"),
    "upper case": (
        "SELECT ts FROM readings WHERE kwh > 1",
        "SELECT TS FROM readings WHERE KWH > 1",
    ),
    "a common table expression": (
        "SELECT ts, kwh * 2 AS d FROM readings WHERE kwh > 1 AND home = 'a'",
        "WITH w AS (SELECT * FROM readings WHERE home = 'a'), "
        "v AS (SELECT ts AS t, kwh AS k FROM w) SELECT t, 2 * k AS e FROM v WHERE k > 1",
    ),
    "a subquery": (
        "SELECT ts, home FROM readings WHERE kwh > 1",
        "SELECT ts, home FROM (SELECT ts, home, kwh AS k FROM readings) AS x WHERE k > 1",
    ),
    "order of conjuncts": (
        "SELECT ts FROM readings WHERE kwh > 1 AND home = 'a' AND district = 'b'",
        "SELECT ts FROM readings WHERE district = 'b' AND (home = 'a' AND kwh > 1)",
    ),
    "a conjunct twice": (
        "SELECT ts FROM readings WHERE kwh > 1",
        "SELECT ts FROM readings WHERE kwh > 1 AND 1 < kwh",
    ),
    "order of disjuncts": (
        "SELECT ts FROM readings WHERE kwh > 1 OR home = 'a'",
        "SELECT ts FROM readings WHERE 'a' = home OR kwh > 1",
    ),
    "commutative operands": (
        "SELECT ts, kwh * 2 + 1 AS x FROM readings",
        "SELECT ts, 1 + 2 * kwh AS x FROM readings",
    ),
    "comparisons turned round": (
        "SELECT ts FROM readings WHERE kwh >= 1",
        "SELECT ts FROM readings WHERE 1 <= kwh",
    ),
    "between": (
        "SELECT ts FROM readings WHERE kwh BETWEEN 1 AND 2",
        "SELECT ts FROM readings WHERE kwh <= 2 AND kwh >= 1",
    ),
    "not between": (
        "SELECT ts FROM readings WHERE kwh NOT BETWEEN 1 AND 2",
        "SELECT ts FROM readings WHERE kwh > 2 OR kwh < 1",
    ),
    "not": (
        "SELECT ts FROM readings WHERE NOT (kwh > 1 OR home = 'a')",
        "SELECT ts FROM readings WHERE home <> 'a' AND kwh <= 1",
    ),
    "if and case": (
        "SELECT ts, if(kwh > 1, 1, 2) AS x FROM readings",
        "SELECT ts, CASE WHEN 1 < kwh THEN 1 ELSE 2 END AS x FROM readings",
    ),
    "order of a list": (
        "SELECT ts FROM readings WHERE home IN ('a', 'b', 'a')",
        "SELECT ts FROM readings WHERE home IN ('b', 'a')",
    ),
    "spelling of a window": (GROUPED, GROUPED.replace("6 hours", "360 minutes")),
    "interval for a window": (
        GROUPED,
        GROUPED.replace("'6 hours', '30 minutes'", "INTERVAL 6 HOURS, INTERVAL '1800' SECONDS"),
    ),
    "a slide as long as the window": (
        GROUPED.replace("'6 hours', '30 minutes'", "'1 hour'"),
        GROUPED.replace("'6 hours', '30 minutes'", "'1 hour', '60 minutes'"),
    ),
    "order of keys and aggregates": (
        "SELECT home, district, window.end AS e, sum(kwh) AS s, count(*) AS n FROM readings "
        "GROUP BY home, district, window(ts, '1 hour')",
        "SELECT count(1) AS a, sum(kwh) AS b, window.end AS c, district AS d, home AS f "
        "FROM readings GROUP BY window(ts, '1 hour'), district, home",
    ),
    "a condition on a key before or behind the groups": (
        GROUPED.replace("GROUP BY", "WHERE home = 'a' AND kwh > 1 GROUP BY"),
        f"{GROUPED.replace('GROUP BY', 'WHERE kwh > 1 GROUP BY')} HAVING home = 'a'",
    ),
    "having and an outer where": (
        f"{GROUPED} HAVING sum(kwh) > 9",
        f"SELECT * FROM ({GROUPED}) AS g WHERE s > 9",
    ),
    "either side of an inner join": (
        JOINED,
        "SELECT p.eur, r.kwh, r.ts FROM rates p JOIN readings r "
        "ON p.district = r.district AND p.at >= r.ts AND r.ts + INTERVAL 60 MINUTES >= p.at",
    ),
    "a condition before or after a join": (
        f"{JOINED} WHERE p.eur > 1 AND r.kwh > 2",
        "WITH p AS (SELECT * FROM rates WHERE eur > 1) SELECT r.ts, r.kwh, p.eur "
        "FROM (SELECT * FROM readings WHERE kwh > 2) AS r JOIN p "
        "ON r.district = p.district AND p.at BETWEEN r.ts AND r.ts + INTERVAL 1 HOUR",
    ),
    "a right condition of a left join": (
        JOINED.replace("JOIN", "LEFT JOIN") + " AND p.eur > 1",
        JOINED.replace("JOIN", "LEFT JOIN").replace(
            "rates p", "(SELECT * FROM rates WHERE eur > 1) AS p"
        ),
    ),
    "the name of a table": (
        "SELECT r.ts, h.area FROM readings r JOIN homes h ON r.home = h.home",
        "SELECT r.ts, h.area FROM readings r JOIN places h ON h.home = r.home",
    ),
    "branches of a union": (
        "SELECT ts, kwh FROM readings UNION ALL SELECT at, eur FROM rates",
        "SELECT at AS a, eur AS b FROM rates UNION ALL SELECT ts, kwh FROM again",
    ),
    "columns of all branches": (
        "SELECT ts, kwh FROM readings UNION ALL SELECT at, eur FROM rates",
        "SELECT kwh, ts FROM readings UNION ALL SELECT eur, at FROM rates",
    ),
    "the first case of a switch": (
        "SELECT * FROM two_high",
        "SELECT * FROM readings WHERE kwh > 9",
    ),
    "null twice": (
        "SELECT ts FROM readings WHERE home IS NULL",
        "SELECT ts FROM readings WHERE home <=> NULL",
    ),
}


@pytest.mark.parametrize("why", EQUAL)
def test_does_not_matter(why: str) -> None:
    found = signatures(network_of(*EQUAL[why])).queries
    assert found["q"] == found["q1"]


DIFFERENT = [
    "SELECT ts FROM readings",
    "SELECT ts, ts AS again FROM readings",
    "SELECT ts, kwh FROM readings",
    "SELECT ts, kwh FROM cleaned",
    "SELECT ts, CAST(kwh AS string) AS kwh FROM readings",
    "SELECT ts, kwh + 1 AS x FROM readings",
    "SELECT ts, kwh - 1 AS x FROM readings",
    "SELECT ts, 1 - kwh AS x FROM readings",
    "SELECT ts, (kwh + 1) + 2 AS x FROM readings",
    "SELECT ts, kwh + (1 + 2) AS x FROM readings",
    "SELECT ts, 1 AS x FROM readings",
    "SELECT ts, 1.0 AS x FROM readings",
    "SELECT ts, '1' AS x FROM readings",
    "SELECT ts, true AS x FROM readings",
    "SELECT ts, NULL AS x FROM readings",
    "SELECT ts, CAST(NULL AS int) AS x FROM readings",
    "SELECT ts, coalesce(home, district) AS x FROM readings",
    "SELECT ts, coalesce(district, home) AS x FROM readings",
    "SELECT ts FROM readings WHERE kwh > 1",
    "SELECT ts FROM readings WHERE kwh >= 1",
    "SELECT ts FROM readings WHERE kwh < 1",
    "SELECT ts FROM readings WHERE kwh > 1.5",
    "SELECT ts FROM readings WHERE home = 'a'",
    "SELECT ts FROM readings WHERE home <> 'a'",
    "SELECT ts FROM readings WHERE home <=> 'a'",
    "SELECT ts FROM readings WHERE NOT home <=> 'a'",
    "SELECT ts FROM readings WHERE home IS NULL",
    "SELECT ts FROM readings WHERE home IS NOT NULL",
    "SELECT ts FROM readings WHERE home IN ('a', 'b')",
    "SELECT ts FROM readings WHERE home IN ('a', 'b', NULL)",
    "SELECT ts FROM readings WHERE home = 'a' OR kwh > 1",
    "SELECT ts FROM readings WHERE home = 'a' AND kwh > 1",
    GROUPED,
    GROUPED.replace("6 hours", "7 hours"),
    GROUPED.replace("30 minutes", "20 minutes"),
    GROUPED.replace("'6 hours', '30 minutes'", "'6 hours'"),
    GROUPED.replace("window.end", "window.start"),
    GROUPED.replace("sum(kwh)", "avg(kwh)"),
    GROUPED.replace("sum(kwh)", "count(kwh)"),
    GROUPED.replace("sum(kwh)", "count(*)"),
    GROUPED.replace("sum(kwh)", "approx_count_distinct(kwh)"),
    GROUPED.replace("home", "district"),
    f"{GROUPED} HAVING sum(kwh) > 9",
    GROUPED.replace("GROUP BY", "WHERE kwh > 9 GROUP BY"),
    GROUPED.replace("GROUP BY", "WHERE home = 'a' GROUP BY"),
    GROUPED.replace("home", "kwh").replace("GROUP BY", "WHERE 1 / kwh > 0 GROUP BY"),
    f"{GROUPED.replace('home', 'kwh')} HAVING 1 / kwh > 0",
    GROUPED.replace("SELECT home, ", "SELECT "),
    GROUPED.replace("SELECT home, ", "SELECT ").replace("BY home, ", "BY "),
    GROUPED.replace("window", "session_window").replace(", '30 minutes'", ""),
    JOINED,
    JOINED.replace("JOIN", "LEFT JOIN"),
    JOINED.replace("1 HOUR", "2 HOURS"),
    JOINED.replace("BETWEEN r.ts AND r.ts +", "BETWEEN r.ts - INTERVAL 1 MINUTE AND r.ts +"),
    JOINED.replace("p.at BETWEEN r.ts AND", "p.at > r.ts AND p.at <="),
    JOINED.replace("r.ts, r.kwh", "p.at, r.kwh"),
    JOINED + " AND p.eur > 1",
    JOINED.replace("JOIN", "LEFT JOIN") + " AND p.eur > 1",
    JOINED.replace("JOIN", "LEFT JOIN") + " AND r.kwh > 1",
    JOINED.replace("JOIN", "LEFT JOIN") + " WHERE r.kwh > 1",
    JOINED.replace("JOIN", "LEFT JOIN") + " WHERE p.eur > 1",
    "SELECT r.ts, h.area FROM readings r JOIN homes h ON r.home = h.home",
    "SELECT r.ts, h.area FROM readings r LEFT JOIN homes h ON r.home = h.home",
    "SELECT r.ts, h.area FROM readings r JOIN homes h ON r.district = h.home",
    "SELECT ts, kwh FROM readings UNION ALL SELECT at, eur FROM rates",
    "SELECT ts, kwh FROM readings UNION ALL SELECT ts, kwh FROM again",
    "SELECT ts, home, district FROM readings UNION ALL SELECT ts, home, district FROM again",
    "SELECT ts, home, district FROM readings UNION ALL SELECT ts, district, home FROM again",
    "SELECT * FROM two_high",
    "SELECT * FROM two_low",
    "SELECT * FROM readings WHERE kwh <= 9",
]


def test_everything_else_matters() -> None:
    found = signatures(network_of(*DIFFERENT)).queries
    by_signature: dict[str, str] = {}
    for at, text in enumerate(DIFFERENT):
        other = by_signature.setdefault(found[f"q{at or ''}"], text)
        assert other == text, f"{text}\nhas the signature of\n{other}"


@pytest.mark.parametrize(
    "other",
    [
        STREAMS.replace("days: 1, homes: 5}, lateness: 2min", "days: 1, homes: 6}, lateness: 2min"),
        STREAMS.replace("2min", "3min"),
        STREAMS.replace("lateness: 2min", "lateness: 2min, idle_timeout: 30s"),
    ],
)
def test_the_definition_of_a_stream_matters(other: str) -> None:
    text = "SELECT ts, kwh FROM readings"
    assert other != STREAMS
    assert signature(text, other) != signature(text)


def test_schema_event_time_and_options_of_files_matter() -> None:
    def of(definition: str) -> str:
        text = f"streams:\n  s: {{{definition}}}\nqueries:\n"
        return signature("SELECT kwh FROM s", text)

    plain = 'source: {replay: r.csv}, schema: "a timestamp, b timestamp, kwh double"'
    definitions = [
        plain,
        plain.replace("r.csv", "s.csv"),
        plain.replace("kwh double", "kwh int"),
        plain.replace("{replay: r.csv}", "{replay: r.csv, delimiter: ';'}"),
        plain.replace("{replay: r.csv}", "{replay: r.csv, header: false}"),
        plain.replace("{replay: r.csv}", "{replay: r.csv, header: false}").replace(
            "a timestamp, b timestamp", "b timestamp, a timestamp"
        ),
        plain.replace("{replay: r.csv}", "{replay: r.csv, speedup: 2}"),
        plain.replace("replay: r.csv", "directory: r.csv, format: csv"),
        plain + ", event_time: a",
        plain + ", event_time: b",
        plain + ", event_time: a, lateness: 0s",
    ]
    for one, other in combinations(definitions, 2):
        assert of(one) != of(other)
    assert of(plain) == of(plain.replace("a timestamp, b timestamp", "b timestamp, a timestamp"))


def test_streams_of_a_running_system_are_known_by_name() -> None:
    one = replace(stream_of("one"), source=RunningSource())
    other = replace(one, name="other")
    signed = signatures(Network((one, other), ()))
    assert signed.streams["one"] != signed.streams["other"]


def test_writing_is_work_but_changes_no_rows(tmp_path: Path) -> None:
    text = (
        STREAMS + "  q: {sql: 'SELECT ts, kwh FROM readings', to: none}\n"
        "  w: {sql: 'SELECT ts, kwh FROM readings', to: {table: t, database: 'sqlite:///a.db'}}\n"
    )
    network = parse_deployment(text, "test", tmp_path).network
    signed = signatures(network)
    assert signed.queries["q"] == signed.queries["w"]
    (write,) = [operator for operator in network.operators if operator.kind == "sql_write"]
    assert signed.operators[write.name] not in signed.streams.values()


def test_equal_signatures_have_their_columns_in_one_order() -> None:
    one = network_of("SELECT ts, home AS x, kwh FROM readings")
    other = network_of("SELECT kwh AS a, ts AS b, home AS c FROM readings")
    assert canonical_streams(one)["q"].ordered_columns() == ("x", "kwh", "ts")
    assert canonical_streams(other)["q"].ordered_columns() == ("c", "a", "b")


def test_signatures_carry_their_version() -> None:
    assert signature("SELECT ts FROM readings").startswith(f"{VERSION}:")


def test_columns_used_twice_at_every_step_stay_short() -> None:
    readings = stream_of("readings")
    input, operators = input_of(readings), []
    for at in range(60):
        doubled = Call("+", (Column("kwh"), Column("kwh")))
        operators.append(Map(f"m{at}", input, (("ts", Column("ts")), ("kwh", doubled))))
        input = input_of(operators[-1])
    signed = signatures(Network((readings,), tuple(operators)))
    assert len(set(signed.operators.values())) == 60


def plain_fragment(name: str = "high", least: float = 1.0, stream: str = "readings") -> Fragment:
    operator = filtered(name, input_of(stream_of(stream)), more("kwh", least))
    return Fragment(name, (stream,), (operator,), name)


def test_work_is_known_whatever_it_is_called() -> None:
    assert work_signature(plain_fragment("a")) == work_signature(plain_fragment("b"))
    assert work_signature(plain_fragment()) != work_signature(plain_fragment(least=2.0))
    assert work_signature(plain_fragment()) != work_signature(plain_fragment(stream="other"))


def test_state_belongs_to_columns_in_their_order() -> None:
    readings = stream_of("readings")

    def plan(*columns: str, inner: str = "inner") -> str:
        first = Map(inner, input_of(readings), tuple((name, Column(name)) for name in columns))
        last = counted("q", input_of(first))
        network = Network((readings,), (first, last), (Query("q", "q"),))
        return plan_signature(network, Fragment("q", ("readings",), (first, last), "q"))

    assert plan("ts", "kwh") == plan("ts", "kwh", inner="other")
    assert plan("ts", "kwh") != plan("kwh", "ts")


def test_same_operators_give_the_same_columns_in_the_same_order() -> None:
    def operators(text: str) -> tuple[Operator, ...]:
        return tuple(
            operator for operator in network_of(text).operators if operator.name.startswith("q")
        )

    plain = operators("SELECT ts, kwh FROM readings WHERE kwh > 1 AND home = 'a'")
    assert same_operators(
        plain, operators("SELECT ts, kwh FROM readings WHERE home = 'a' AND 1 < kwh")
    )
    assert not same_operators(
        plain, operators("SELECT kwh, ts FROM readings WHERE home = 'a' AND 1 < kwh")
    )
    assert not same_operators(
        plain, operators("SELECT ts, kwh AS k FROM readings WHERE home = 'a' AND 1 < kwh")
    )
    swapped = operators("SELECT ts, home AS a, district AS b FROM readings")
    turned = operators("SELECT ts, district AS a, home AS b FROM readings")
    assert not same_operators(swapped, turned)


@dataclass(frozen=True)
class Later:
    """A record that got a field after something was written down."""

    size: int
    added: float = 1.0


def test_a_field_at_its_default_is_left_out() -> None:
    assert encode(Later(3)) == encode(Later(3, 1.0)) == {"record": "Later", "size": 3}
    assert encode(Later(3, 2.0)) == {"record": "Later", "size": 3, "added": {"double": "2.0"}}
    with pytest.raises(TypeError, match="a object has no plain form"):
        encode(object())


# Random expressions over booleans, with a plain evaluator in three-valued logic as the judge.

VALUES = (None, -1, 0, 1)
NAMES = ("a", "b", "c")
Row = dict[str, int | None]


def numbers() -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.sampled_from([Column(name) for name in NAMES]),
        st.sampled_from([Literal(v) for v in VALUES]),
    )


def compared() -> st.SearchStrategy[Expression]:
    pairs = st.tuples(numbers(), numbers())
    comparisons = st.sampled_from(("=", "<>", "<", "<=", ">", ">=", "<=>"))
    lists = st.lists(numbers(), min_size=2, max_size=4).map(lambda all: Call("in", tuple(all)))
    return st.one_of(st.builds(Call, comparisons, pairs), lists, st.builds(Literal, st.booleans()))


CONDITIONS = st.recursive(
    compared(),
    lambda inner: st.one_of(
        st.builds(Call, st.sampled_from(("and", "or")), st.tuples(inner, inner)),
        inner.map(lambda one: Call("not", (one,))),
        inner.map(lambda one: Call("is_null", (one,))),
        st.tuples(inner, inner, inner).map(lambda three: Call("if", three)),
    ),
    max_leaves=8,
)


def value(expression: Expression, row: Row) -> bool | int | None:
    match expression:
        case Column(name):
            return row[name]
        case Literal(known):
            return known  # type: ignore[return-value]
        case Case(branches, otherwise):
            taken = (then for when, then in branches if value(when, row) is True)
            return value(next(taken, otherwise), row)
        case Call("if", (when, then, otherwise)):
            return value(then if value(when, row) is True else otherwise, row)
        case Call(function, arguments):
            return called(function, [value(argument, row) for argument in arguments])
    raise TypeError(expression)


def called(function: str, given: list[bool | int | None]) -> bool | None:
    match function:
        case "and":
            return False if False in given else None if None in given else True
        case "or":
            return True if True in given else None if None in given else False
        case "not":
            return None if given[0] is None else not given[0]
        case "is_null":
            return given[0] is None
        case "<=>":
            return given[0] == given[1]
        case "in":
            found = [called("=", [given[0], other]) for other in given[1:]]
            return called("or", found)  # type: ignore[arg-type]
    one, other = given
    if one is None or other is None:
        return None
    results = {"=": one == other, "<>": one != other, "<": one < other, "<=": one <= other}
    return {**results, ">": one > other, ">=": one >= other}[function]


ROWS = [{"a": a, "b": b, "c": c} for a in VALUES for b in VALUES for c in VALUES]


@given(CONDITIONS)
@tried(60)
def test_the_one_spelling_has_the_same_value_for_every_row(condition: Expression) -> None:
    normal = normalise(condition)
    assert [value(normal, row) for row in ROWS] == [value(condition, row) for row in ROWS]
    assert normalise(normal) == normal


def respelled(expression: Expression, choose: st.DataObject) -> Expression:
    """Another spelling of the same condition."""
    turned = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "=": "=", "<>": "<>", "<=>": "<=>"}
    match expression:
        case Call("and" | "or" as function, (one, other)):
            parts = [respelled(one, choose), respelled(other, choose)]
            if choose.draw(st.booleans()):
                dual = {"and": "or", "or": "and"}[function]
                return Call("not", (Call(dual, tuple(Call("not", (part,)) for part in parts)),))
            return Call(function, tuple(choose.draw(st.permutations(parts))))
        case Call("not", (inner,)):
            return Call("not", (respelled(inner, choose),))
        case Call("in", (one, *members)):
            return Call("in", (one, *choose.draw(st.permutations(members))))
        case Call(function, (one, other)) if function in turned and choose.draw(st.booleans()):
            return Call(turned[function], (other, one))
    return expression


@given(CONDITIONS, st.data())
@tried(60)
def test_rewrites_keep_the_spelling(condition: Expression, data: st.DataObject) -> None:
    assert describe(normalise(respelled(condition, data))) == describe(normalise(condition))


def test_what_says_nothing_is_left_out() -> None:
    true, false, unknown = Literal(True), Literal(False), Column("b")
    assert normalise(Call("or", (true, Call("not", (true,))))) == true
    assert normalise(Call("or", (false, unknown))) == normalise(Call("and", (true, unknown)))


@given(CONDITIONS, CONDITIONS)
@tried(60)
def test_conditions_that_differ_in_a_row_are_spelled_differently(
    one: Expression, other: Expression
) -> None:
    if describe(normalise(one)) == describe(normalise(other)):
        assert [value(one, row) for row in ROWS] == [value(other, row) for row in ROWS]


def test_shapes_encode_whole() -> None:
    shape = stream_of("readings").shape
    assert isinstance(shape, Shape) and encode(shape) != encode(replace(shape, times=()))
