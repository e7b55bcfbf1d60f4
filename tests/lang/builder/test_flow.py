"""What each method of a flow builds."""

import sys
from pathlib import Path

import penstock as ps
from penstock.lang.builder import Flow
from penstock.model.aggregates import AggregateCall
from penstock.model.durations import duration_us
from penstock.model.expressions import Call, Column, Literal
from penstock.model.operators import (
    Aggregate,
    Filter,
    Map,
    Operator,
    PythonOperator,
    SqlRead,
    SqlWrite,
    Switch,
    TableJoin,
    Union,
    WindowJoin,
)
from penstock.model.schema import Schema
from penstock.model.sources import (
    CsvLayout,
    Database,
    DirectorySource,
    FileSink,
    KafkaSink,
    KafkaSource,
    MemorySink,
    ReplaySource,
)
from penstock.model.windows import SessionWindow, TimeBound, Window

readings = ps.stream("readings", source=ps.generate.meters(homes=300, days=1), lateness="2 min")
homes = ps.table("homes", file="/data/homes.csv", schema="home string, size int, kwh double")


def last(flow: Flow) -> Operator:
    network = flow.network()
    return network.producers[network.queries[0].stream]


def kinds(flow: Flow) -> list[str]:
    return [operator.kind for operator in flow.network().operators]


def test_stream() -> None:
    stream = readings.network().streams[0]
    assert (stream.name, stream.lateness_us) == ("readings", duration_us("2 min"))
    assert (readings.event_time, readings.name) == ("ts", "readings")
    assert str(readings) == (
        "readings: ts timestamp, home string, district string, kwh double; event time ts"
    )


def test_filter() -> None:
    flow = readings.filter("kwh > 1")
    assert flow.name is None
    operator = last(flow)
    assert isinstance(operator, Filter)
    assert operator.predicate == Call(">", (Column("kwh"), Literal(1)))
    assert operator.name == "result"


def test_select() -> None:
    operator = last(readings.select("HOME", since="ts", twice="2 * kwh"))
    assert isinstance(operator, Map)
    assert operator.columns == (
        ("home", Column("home")),
        ("since", Column("ts")),
        ("twice", Call("*", (Literal(2), Column("kwh")))),
    )
    assert operator.output.event_time == "since"


def test_with_columns_replaces_and_adds() -> None:
    flow = readings.with_columns(kwh="kwh / 2", hour="hour(ts)")
    assert str(flow.schema) == ("ts timestamp, home string, district string, kwh double, hour int")


def test_union() -> None:
    operator = last(readings.filter("kwh > 1").union(readings.filter("kwh < 0"), readings))
    assert isinstance(operator, Union)
    assert [branch.stream for branch in operator.branches] == [
        "result_filter",
        "result_filter_2",
        "readings",
    ]


def test_window() -> None:
    flow = (
        readings.window("6 hours", slide="30 minutes")
        .group_by("home", hour="hour(ts)")
        .agg(kwh=ps.sum("kwh"), n=ps.count(), most=ps.max_by("kwh", "ts"), mean="avg(kwh)")
    )
    operator = last(flow)
    assert isinstance(operator, Aggregate)
    assert operator.window == Window(duration_us("6 h"), duration_us("30 min"))
    assert operator.keys == (("home", Column("home")), ("hour", Call("hour", (Column("ts"),))))
    assert operator.aggregates == (
        ("kwh", AggregateCall("sum", (Column("kwh"),))),
        ("n", AggregateCall("count")),
        ("most", AggregateCall("max_by", (Column("kwh"), Column("ts")))),
        ("mean", AggregateCall("avg", (Column("kwh"),))),
    )


def test_all_aggregates() -> None:
    flow = readings.window(60).agg(
        a=ps.avg("kwh"),
        b=ps.stddev("kwh"),
        c=ps.variance("kwh"),
        d=ps.min("kwh"),
        e=ps.max("kwh"),
        f=ps.min_by("home", "kwh"),
        g=ps.approx_count_distinct("home"),
        h=ps.count_if("kwh > 1"),
        i=ps.count("home"),
    )
    assert [str(one.type) for one in flow.schema][2:] == [
        *["double"] * 5,
        "string",
        *["bigint"] * 3,
    ]


def test_session() -> None:
    operator = last(readings.session("10 min").group_by("home").agg(n=ps.count()))
    assert isinstance(operator, Aggregate)
    assert operator.window == SessionWindow(duration_us("10 min"))


def test_join_renames_and_drops() -> None:
    other = readings.filter("kwh > 3")
    flow = readings.join(other, on="home", before="5 min", after="10 min")
    assert flow.schema.names == (
        "ts", "home", "district", "kwh", "right_ts", "right_district", "right_kwh",
    )  # fmt: skip
    assert kinds(flow) == ["filter", "map", "join", "map"]
    join = next(
        operator for operator in flow.network().operators if isinstance(operator, WindowJoin)
    )
    assert join.bound == TimeBound(-duration_us("5 min"), duration_us("10 min"))
    assert join.equal == (("home", "right_home"),)


def test_join_of_different_columns_is_one_operator() -> None:
    other = readings.select(id="home", at="ts", much="kwh")
    flow = readings.join(other, on={"home": "id"}, within="5 min", where="much > kwh", how="left")
    assert kinds(flow) == ["map", "join"]
    join = last(flow)
    assert isinstance(join, WindowJoin)
    assert (join.bound.lower_us, join.bound.upper_us) == (-300_000_000, 300_000_000)
    assert (join.join, join.condition) == ("left", Call(">", (Column("much"), Column("kwh"))))


def test_join_may_lie_wholly_after() -> None:
    flow = readings.join(readings.select(at="ts", id="home"), before="-5 min", after="10 min")
    join = last(flow)
    assert isinstance(join, WindowJoin)
    assert join.bound == TimeBound(duration_us("5 min"), duration_us("10 min"))


def test_self_join() -> None:
    flow = readings.join(readings, on="home", within="1 min")
    assert kinds(flow) == ["map", "join", "map"]


def test_join_table() -> None:
    operator = last(readings.join_table(homes, on="home"))
    assert type(operator) is TableJoin
    assert operator.equal == (("home", "home"),)
    assert operator.columns == (("size", "size"), ("right_kwh", "kwh"))


def test_join_table_columns() -> None:
    renamed = last(readings.join_table(homes, on={"home": "home"}, columns={"area": "size"}))
    listed = last(readings.join_table(homes, on="home", columns=["kwh"], prefix="home_"))
    assert isinstance(renamed, TableJoin) and isinstance(listed, TableJoin)
    assert renamed.columns == (("area", "size"),)
    assert listed.columns == (("home_kwh", "kwh"),)


def test_join_database_table() -> None:
    prices = ps.table("prices", database="sqlite:////a.db", schema="area string, price double")
    operator = last(readings.join_table(prices, on={"district": "area"}, how="left"))
    assert isinstance(operator, SqlRead)
    assert (operator.columns, operator.join) == ((("price", "price"),), "left")


def test_apply() -> None:
    same = last(readings.apply("cleaning:drop_spikes"))
    other = last(readings.apply("cleaning:count", schema="n int"))
    assert isinstance(same, PythonOperator) and isinstance(other, PythonOperator)
    assert same.schema == readings.schema
    assert other.schema == Schema.parse("n int")


def test_switch() -> None:
    cases = readings.switch("level", high="kwh > 9", low="kwh <= 9")
    assert list(cases) == ["high", "low"]
    assert cases["high"].name == "level_high"
    network = cases["low"].filter("kwh > 0").named("q").network()
    switch = network.producers["level_low"]
    assert isinstance(switch, Switch)
    assert network.producers["q"].inputs[0].stream == "level_low"


def test_unnamed_switch_is_called_after_the_query() -> None:
    cases = readings.switch(high="kwh > 9")
    network = cases["high"].filter("kwh < 99").named("q").network()
    assert set(network.producers) == {"q_switch_high", "q"}


def test_write_passes_rows_on() -> None:
    operator = last(readings.write("t", "sqlite:////a.db"))
    assert isinstance(operator, SqlWrite)
    assert (operator.table, operator.database) == ("t", Database("sqlite:////a.db"))


def test_sinks() -> None:
    def sink(flow: Flow) -> object:
        return flow.named("q").network().queries[0].sink

    assert sink(readings.to(ps.sinks.files("/out", "json"))) is not None
    peaks = readings.filter("kwh > 3").named("peaks")
    assert peaks.to(ps.sinks.files("/out", "json")).network().queries[0].sink == FileSink(
        Path("/out"), "json"
    )
    assert peaks.to(ps.sinks.memory()).network().queries[0].sink == MemorySink()
    assert peaks.to(ps.sinks.none()).network().queries[0].sink is None
    assert peaks.to(ps.sinks.kafka("h:1", "t")).network().queries[0].sink == KafkaSink("h:1", "t")
    query = peaks.to(ps.sinks.console(), max_latency="5 s", on="a").network().queries[0]
    assert (query.max_latency_us, query.on) == (5_000_000, "a")


def test_table_sink_is_a_side_branch() -> None:
    peaks = readings.filter("kwh > 3").named("peaks")
    network = peaks.to(ps.sinks.table("t", "sqlite:////a.db")).network()
    write = network.producers["peaks_write"]
    assert isinstance(write, SqlWrite)
    assert write.input.stream == "peaks"
    assert (network.queries[0].stream, network.queries[0].sink) == ("peaks", None)


def test_sources(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    assert ps.sources.directory("in", "csv", delimiter=";", null="-") == DirectorySource(
        tmp_path / "in", "csv", CsvLayout(";", True, "-")
    )
    assert ps.sources.replay("day.parquet", speedup=60) == ReplaySource(
        tmp_path / "day.parquet", "parquet", speedup=60
    )
    assert ps.sources.kafka("h:1", "t", finished=True) == KafkaSource("h:1", "t", True)
    assert ps.sources.kafka("h:1", "t", client="/etc/login").client == Path("/etc/login")
    stream = ps.stream(
        "s",
        source=ps.sources.replay("day.csv"),
        schema="at timestamp, x int",
        event_time="at",
        lateness=0,
        idle_timeout="30 s",
        ahead="1 d",
    )
    assert stream.network().streams[0].idle_timeout_us == 30_000_000
    assert stream.network().streams[0].ahead_us == 86_400_000_000


def test_sql() -> None:
    heavy = ps.sql(
        "SELECT home, window.end AS at, sum(kwh) AS kwh FROM r GROUP BY home, window(ts, '1 hour')",
        r=readings.filter("kwh > 0"),
    )
    network = heavy.filter("kwh > 9").named("heavy").network()
    assert network.producers["heavy"].kind == "filter"
    assert {operator.kind for operator in network.operators} >= {"filter", "aggregate"}
    assert network.queries[0].text == ""


def test_sql_keeps_its_text_when_the_names_are_those_of_the_streams() -> None:
    text = "SELECT home FROM readings WHERE kwh > 3"
    flow = ps.sql(text, readings=readings).named("peaks")
    assert flow.network().queries[0].text == text
    assert (
        ps.sql(text.replace("readings", "r"), r=readings).named("p").network().queries[0].text == ""
    )


def test_sql_with_tables() -> None:
    text = "SELECT r.home, h.size FROM r JOIN h ON r.home = h.home"
    flow = ps.sql(text, r=readings, h=homes)
    assert str(flow.schema) == "home string, size int"
    assert flow.named("q").network().queries[0].text == ""
    flow = ps.sql(
        "SELECT r.home FROM readings r JOIN h ON r.home = h.home", readings=readings, h=homes
    )
    assert flow.named("q").network().queries[0].text == ""


def test_flow_prints_its_sql_and_its_graph() -> None:
    heavy = readings.filter("kwh > 9").named("heavy")
    again = ps.sql(heavy.sql(), readings=readings).named("heavy")
    assert again.network().operators == heavy.network().operators
    assert "heavy" in heavy.explain()


def test_importing_is_cheap() -> None:
    import subprocess

    program = (
        "import sys, penstock; assert not {'pyspark', 'pyarrow', 'sqlglot', 'numpy'} & "
        "set(sys.modules), 'heavy'; penstock.stream; assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_a_shell_shows_is_short() -> None:
    readings = ps.stream("readings", source=ps.generate.meters(days=1), lateness="2 min")
    big = readings.filter("kwh > 3").select("home", "kwh").named("big")
    assert repr(big) == "<Flow big: home string, kwh double>"
    assert len(repr(readings.window("1 hour").group_by("home"))) < 100
    assert repr(ps.deployment(big, name="ami")) == "<Deployment ami: big>"
