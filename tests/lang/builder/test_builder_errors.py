"""What people read when they build something that makes no sense, word for word."""

from collections.abc import Callable

import pytest

import penstock as ps
from penstock.errors import InputError
from penstock.lang.builder import Flow

readings = ps.stream("readings", source=ps.generate.meters(days=1), lateness="2 min")
timeless = ps.stream("timeless", source=ps.sources.replay("/a.csv"), schema="home string, n int")
homes = ps.table("homes", file="/data/homes.csv", schema="home int, size int")
heavy = readings.filter("kwh > 9").named("heavy")


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (
            lambda: readings.filter("kw > 1"),
            "filter of readings, line 1:\n    kw > 1\n    ^^\n"
            "no column kw in the input; it has ts, home, district, kwh. Did you mean kwh?",
        ),
        (
            lambda: readings.filter("kwh + 1"),
            "the condition (`kwh` + 1) is a double, not true or false. "
            "Compare it with something, for example … > 0.",
        ),
        (
            lambda: readings.filter(lambda row: row["kwh"] > 3),  # type: ignore[arg-type]
            "filter is given a lambda, and takes SQL as text. "
            'Write for example .filter("kwh > 3"). Python runs on batches of rows, by '
            '.apply("module:function").',
        ),
        (
            lambda: readings.with_columns(x=3),  # type: ignore[arg-type]
            "x is given 3, and takes SQL as text. "
            'Write for example .filter("kwh > 3"). Python runs on batches of rows, by '
            '.apply("module:function").',
        ),
        (
            lambda: readings.select(len),  # type: ignore[arg-type]
            "the function len is not the name of a column. "
            'Name columns as in .select("home"), and compute others as in x="2 * kwh".',
        ),
        (
            lambda: readings.window("1 hour").group_by(lambda row: row),  # type: ignore[arg-type]
            "a lambda is not the name of a column. "
            'Name columns as in .select("home"), and compute others as in x="2 * kwh".',
        ),
        (
            lambda: readings.apply(lambda batch: batch),  # type: ignore[arg-type]
            "apply is given a lambda, and takes the name of a function. "
            'Nodes import it by its name: write .apply("module:function"), with the function in a '
            "file that they can import.",
        ),
        (
            lambda: readings.apply(ps.deployment_yaml),  # type: ignore[arg-type]
            "apply is given the function deployment_yaml, and takes the name of a function. "
            "Nodes import it by its name: write "
            '.apply("penstock.lang.deployment.printing:deployment_yaml"), with the function in a '
            "file that they can import.",
        ),
        (
            lambda: readings.select("hom"),
            "no column hom. It has ts, home, district, kwh. Did you mean home?",
        ),
        (lambda: readings.select(), "a schema without columns. Name at least one column."),
        (
            lambda: readings.select("home", **{"a b": "kwh"}),
            "'a b' cannot name a column. "
            "Use letters, digits and underscores, starting with a letter.",
        ),
        (
            lambda: readings.union(timeless),
            "a union of readings (ts timestamp, home string, district string, kwh double) and "
            "timeless (home string, n int). "
            "Select as many columns of the same types on both sides.",
        ),
        (
            lambda: timeless.window("1 min").agg(n=ps.count()),
            "a window over timeless needs an event time, and timeless has none. "
            "Name a timestamp column with event_time in the stream, or keep the event-time column "
            "in the query it comes from.",
        ),
        (
            lambda: readings.window("1 min", slide="1 h"),
            "a window of 1 minute that slides by 1 hour would skip rows. "
            "Make the slide at most as long as the window.",
        ),
        (
            lambda: readings.window("soon"),
            "'soon' is not a duration. Write for example 500ms, 30 s, 2min, 6 hours or 1 day.",
        ),
        (
            lambda: readings.window(60).agg(x=ps.sum("home")),
            "sum takes a number; it got a string",
        ),
        (
            lambda: readings.window(60).agg(x=ps.sum("kw")),
            "argument of sum, line 1:\n    kw\n    ^^\n"
            "no column kw in the input; it has ts, home, district, kwh. Did you mean kwh?",
        ),
        (
            lambda: readings.window(60).group_by("hom"),
            "no column hom. It has ts, home, district, kwh. Did you mean home?",
        ),
        (
            lambda: readings.join(heavy, on="home"),
            "a join without a time bound would keep all rows for ever. "
            'Say how far apart the rows may be, for example within="5 min".',
        ),
        (
            lambda: readings.join(heavy, within=1, before=1),
            "a join with both within and before or after. "
            "within sets both before and after; give it alone.",
        ),
        (
            lambda: readings.join(heavy, before="-2 s", after="1 s"),
            "a time bound from 2 seconds to 1 second is empty. Swap the two ends.",
        ),
        (
            lambda: readings.join(heavy, on={"home": "id"}, within=1),
            "no column id. It has ts, home, district, kwh.",
        ),
        (
            lambda: readings.join_table(homes, on="home"),
            "a join compares home, a string, with home, a int. Cast one of them.",
        ),
        (
            lambda: readings.join(heavy, within=1, how="outer"),  # type: ignore[arg-type]
            "no join outer; there are inner, left",
        ),
        (
            lambda: readings.join_table(homes, on=[]),
            "the join with table homes compares no columns. "
            "Say which are equal: ON stream.column = table.column.",
        ),
        (
            lambda: readings.apply("f"),
            "'f' names no function. Write module:function, for example cleaning:drop_spikes.",
        ),
        (
            lambda: readings.switch(),
            "switch readings_switch has the cases none. "
            "Give at least one case, each with its own name.",
        ),
        (
            lambda: heavy.named("my query"),
            "'my query' cannot name a query. "
            "Use letters, digits and underscores, starting with a letter.",
        ),
        (
            lambda: ps.generate.metres(),
            "no generator 'metres'; there are meters, packets, trades, nexmark.persons, "
            "nexmark.auctions, nexmark.bids. Did you mean meters?",
        ),
        (
            lambda: ps.stream("s", source=ps.sources.kafka("h", "t")),
            "stream s has no schema. Name its columns: schema: ts timestamp, …",
        ),
        (
            lambda: ps.table("t", schema="a int"),
            "table t needs a file or a database. Give either file: PATH or database: URL.",
        ),
        (
            lambda: ps.sinks.files("/out", "xml"),
            "no file format xml. The formats are csv, json, parquet, text.",
        ),
        (
            lambda: ps.sql("SELECT hom FROM readings", readings=readings),
            "sql, line 1:\n    SELECT hom FROM readings\n           ^^^\n"
            "no column hom in readings; it has ts, home, district, kwh. Did you mean home?",
        ),
        (
            lambda: ps.sql("SELECT home FROM r", r=1),  # type: ignore[arg-type]
            "1 is not a flow. Give what ps.stream, ps.sql or one of their methods give.",
        ),
        (
            lambda: ps.deployment(readings.filter("kwh > 1")),
            'the query over readings_filter has no name. Give it one with .named("…").',
        ),
        (
            lambda: ps.deployment(readings),
            "stream readings is no query by itself. "
            'Give the query a name of its own with .named("…").',
        ),
        (
            lambda: ps.deployment(heavy.to(None, on="b"), nodes={"a": {}}),
            "query heavy is to run on b; the nodes are a",
        ),
        (
            lambda: ps.deployment(heavy, nodes={"a": {"core": 1}}),
            "node a is given core 1. A node has cores, a whole number, memory, for example 1g, "
            "and a parent in a tree.",
        ),
        (
            lambda: ps.deployment(heavy, readings.filter("kwh > 8").named("heavy")),
            "two different flows are called heavy. Rename one of them.",
        ),
        (
            lambda: ps.deployment(
                readings.write("t", "sqlite:////a.db").named("q").to(ps.sinks.memory())
            ),
            "query q already goes to table t. Remove .to(…), or .write(…).",
        ),
        (
            lambda: ps.deployment(heavy, heavy),
            "two of a query are called heavy. Rename one of them.",
        ),
        (
            lambda: ps.deployment(
                heavy.union(
                    ps.stream("readings", source=ps.generate.meters(days=2), lateness=9)
                ).named("both")
            ),
            "two different streams are called readings. Rename one of them.",
        ),
    ],
)
def test_errors(build: Callable[[], Flow], said: str) -> None:
    with pytest.raises(InputError) as caught:
        build()
    assert str(caught.value) == said


def test_unknown_attributes() -> None:
    with pytest.raises(AttributeError, match="module 'penstock' has no attribute 'strem'"):
        ps.strem  # noqa: B018


def test_a_generator_by_its_name_as_text() -> None:
    with pytest.raises(InputError) as refused:
        ps.generate("meters", homes=3)
    assert str(refused.value) == (
        "generate is called with 'meters'. "
        "Write ps.generate.meters(homes=300): its name, then its options by name."
    )
