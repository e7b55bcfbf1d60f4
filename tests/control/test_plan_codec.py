"""Plans as text: whatever can be built reads back as what it was."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.made_up import AMI, submission
from laws import tried
from penstock.control.plan_codec import decode_plan, encode_plan
from penstock.control.recorded_plans import plan_text, recorded_system
from penstock.control.records import Submission
from penstock.control.system import assemble
from penstock.errors import RunError
from penstock.lang.deployment import parse_deployment
from penstock.model.aggregates import AggregateCall
from penstock.model.beginnings import Beginning, Begun, InputStart, Reread, Since
from penstock.model.canonical_stream import CanonicalStream
from penstock.model.expressions import Call, Case, Cast, Column, Expression, Literal
from penstock.model.fragments import Fragment
from penstock.model.functions import FUNCTIONS
from penstock.model.network import Deployment, Network, Query
from penstock.model.operators import (
    Aggregate,
    Filter,
    Input,
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
from penstock.model.partition_groups import PartitionGroups
from penstock.model.retime import Retime
from penstock.model.schema import Schema, Shape
from penstock.model.settings import values_of
from penstock.model.slices import FromSlices, Slices
from penstock.model.sources import (
    ConsoleSink,
    CsvLayout,
    Database,
    DirectorySource,
    FileSink,
    GeneratorSource,
    KafkaSink,
    KafkaSource,
    MemorySink,
    Parsing,
    ReplaySource,
    RunningSource,
    Sink,
    Source,
    Stream,
    Table,
)
from penstock.model.types import DataType
from penstock.model.windows import SessionWindow, TimeBound, Window
from penstock.place.fuse import fuse
from place.networks import networks

SHAPE = Shape.timed(Schema.parse("ts timestamp, home string, kwh double"), "ts")
READINGS = Input("readings", SHAPE)
OTHERS = Input("others", Shape.timed(Schema.parse("at timestamp, place string"), "at"))
HEAVY = Call(">", (Column("kwh"), Literal(3.0)))
HOMES = Table("homes", Schema.parse("home string, city string"), Path("/data/homes.csv"))
DATABASE = Database("sqlite:///a.db")
STORED = replace(HOMES, path=None, database=DATABASE, table="homes_now")
EQUAL, CITY = (("home", "home"),), (("city", "city"),)

WINDOWS = Aggregate("windows", READINGS, Window.of(60, 20), (), (("n", AggregateCall("count")),))
SLICES = Input(
    "slices",
    Shape.timed(
        Schema.parse("window_start timestamp, window_end timestamp, n bigint"), "window_end"
    ),
)
MEANING = CanonicalStream("rows", (HEAVY,), {"n": Column("count")}, ((Column("at"), 5),), True)

OPERATORS: tuple[Operator, ...] = (
    Filter("filter", READINGS, HEAVY),
    Switch("switch", READINGS, (("heavy", HEAVY), ("rest", Literal(True)))),
    Map("map", READINGS, (("ts", Column("ts")), ("double", Call("+", (Column("kwh"),) * 2)))),
    Union("union", (READINGS, READINGS)),
    Aggregate("session", READINGS, SessionWindow(5), (("home", Column("home")),), ()),
    Aggregate("windows", READINGS, Window.of(60, 20), (), ()),
    WindowJoin("join", READINGS, OTHERS, (("home", "place"),), TimeBound(-5, 7), HEAVY, "left"),
    WindowJoin("pairs", READINGS, OTHERS, (), TimeBound(0, 7)),
    TableJoin("table", READINGS, HOMES, EQUAL, CITY, "left"),
    SqlRead("look_up", READINGS, STORED, EQUAL, CITY),
    SqlWrite("write", READINGS, DATABASE, "results"),
    PythonOperator("python", READINGS, "cleaning:drop", SHAPE.schema, Path("/data")),
    Retime("retime", READINGS, "ts", 5, is_copy=True),
    Slices("slices", WINDOWS, SLICES.shape),
    FromSlices("hours", SLICES, WINDOWS, (), (("n",),), MEANING),
)
SOURCES: tuple[Source, ...] = (
    GeneratorSource("meters", {"days": 1, "from": date(2026, 1, 5), "shares": [0.5, {"a": 1}]}),
    DirectorySource(Path("/data"), "csv", CsvLayout(";", False, "-"), "*.csv", True),
    ReplaySource(Path("/data/a.json"), "json", speedup=2.5),
    KafkaSource("localhost:9092", "readings", True, Path("client.conf")),
    RunningSource(),
)
SINKS: tuple[Sink | None, ...] = (
    ConsoleSink(),
    FileSink(Path("/out"), "parquet"),
    KafkaSink("localhost:9092", "results"),
    MemorySink(),
    None,
)


def again(plan: object) -> object:
    """What reads back; as text it must not lose or gain anything either."""
    text = encode_plan(plan)
    found = decode_plan(text, type(plan))
    assert encode_plan(found) == text
    return found


def classes(kind: type) -> set[type]:
    return {kind} | {more for subclass in kind.__subclasses__() for more in classes(subclass)}


class TestEveryClass:
    def test_there_is_one_of_every_operator(self) -> None:
        ours = {class_ for class_ in classes(Operator) if class_.__module__.startswith("penstock.")}
        assert {type(one) for one in OPERATORS} == ours - {Operator}

    @pytest.mark.parametrize("operator", OPERATORS, ids=lambda one: one.name)
    def test_an_operator(self, operator: Operator) -> None:
        fragment = Fragment("f", ("readings", "others"), (operator,), operator.name)
        found = again(fragment)
        assert found == fragment
        assert isinstance(found, Fragment)
        assert type(found.operators[0]) is type(operator)
        assert vars(found.operators[0]).get("folder") == vars(operator).get("folder")

    @pytest.mark.parametrize("source", SOURCES, ids=lambda one: type(one).__name__)
    def test_a_source(self, source: Source) -> None:
        parsing = Parsing((("home", "$.home"),), "seconds")
        stream = Stream("readings", source, SHAPE, 5, 7, 9, parsing)
        assert again(stream) == stream

    @pytest.mark.parametrize("sink", SINKS, ids=lambda one: type(one).__name__)
    def test_a_query(self, sink: Sink | None) -> None:
        groups = PartitionGroups(("home",), 6)
        query = Query("q", "readings", sink, 5, "n1", "SELECT 1", groups, "light")
        assert again(query) == query

    def test_a_beginning(self) -> None:
        start = InputStart(3, Since({"ts": 5}, {"ts": 7}), "readings.2")
        beginning = Beginning("oldest", 5, {"readings": start}, True)
        fragment = Fragment("f", ("readings",), OPERATORS[:1], "filter", beginning=beginning)
        assert again(fragment) == fragment
        reread = Reread("readings", 2, 3, 4, True, ((1, 2, 3), (4, 5, 6)))
        assert again(reread) == reread


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.datetimes(timezones=st.sampled_from([None, UTC])).map(lambda one: one.replace(fold=0)),
    st.dates(),
    st.timedeltas(),
)
leaves = st.one_of(st.text().map(Column), scalars.map(Literal))


def branches(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(parts, max_size=3).map(tuple)
    pairs = st.lists(st.tuples(parts, parts), max_size=2).map(tuple)
    return st.one_of(
        st.builds(Call, st.sampled_from(sorted(FUNCTIONS)), several),
        st.builds(Cast, parts, st.sampled_from(DataType)),
        st.builds(Case, pairs, parts),
    )


@tried(100)
@given(st.recursive(leaves, branches, max_leaves=12))
def test_every_expression_reads_back(expression: Expression) -> None:
    parsing = Parsing(event_time=("ts", expression))
    found = again(parsing)
    # Equal is not enough: true equals 1, and 1 equals 1.0.
    assert repr(found) == repr(parsing)
    assert found == parsing


def test_numbers_that_json_has_no_word_for() -> None:
    for value in (math.inf, -math.inf, math.nan):
        found = again(Parsing(event_time=("ts", Literal(value))))
        assert repr(found) == repr(Parsing(event_time=("ts", Literal(value))))


@tried(100)
@given(networks())
def test_every_network_and_its_fragments_read_back(network: Network) -> None:
    assert again(network) == network
    for fragment in fuse(network):
        assert again(fragment) == fragment


FILES = sorted((Path(__file__).parents[1] / "lang/deployment/samples").glob("*.yaml"))
assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_sample_of_a_deployment_reads_back(file: Path) -> None:
    deployment = parse_deployment(file.read_text(), file.name, file.parent)
    found = again(deployment)
    assert isinstance(found, Deployment)
    assert (found, repr(found.network)) == (deployment, repr(deployment.network))


class TestSystems:
    LATER = (
        Submission(2, "top", "sql", "SELECT home FROM peaks", "."),
        Submission(3, "again", "sql", "SELECT home FROM peaks", ".", begun=Begun("start")),
        Submission(4, "more", "yaml", AMI.replace("peaks", "lows") + "balance: {every: 5s}\n", "."),
    )

    def test_a_system_of_several_submissions(self) -> None:
        submissions = (submission(), *self.LATER)
        system = assemble(submissions)
        plans = {one.id: plan_text(system, one.id) for one in submissions}
        found = recorded_system(plans)
        assert found == system
        assert [*found.units] == [*system.units]
        assert [*found.streams] == [*system.streams]
        assert values_of(found.deployments[4].balance) == {"every": "5s"}

    def test_one_that_is_damaged_is_refused(self) -> None:
        text = plan_text(assemble([submission()]), 1)
        for damaged in (text[:-9], "[]", text.replace('"Filter"', '"Filtre"'), "null"):
            with pytest.raises(RunError, match="a recorded plan cannot be read"):
                recorded_system({1: damaged})

    def test_fields_that_came_later_have_their_defaults(self) -> None:
        told = json.loads(encode_plan(Stream("readings", SOURCES[0], SHAPE, 5)))
        del told["ahead_us"], told["parsing"]
        told["of another version"] = 1
        found = decode_plan(json.dumps(told), Stream)
        assert found == Stream("readings", SOURCES[0], SHAPE, 5)


def test_a_long_time_is_exact() -> None:
    long = timedelta(days=999_999, microseconds=1)
    moment = datetime(9999, 12, 31, 23, 59, 59, 999_999)
    for value in (long, -long, moment):
        parsing = Parsing(event_time=("ts", Literal(value)))
        assert again(parsing) == parsing
