"""Deployment files and the records they become."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

from penstock.errors import InputError
from penstock.lang.deployment import parse_deployment, read_deployment
from penstock.model.durations import duration_us
from penstock.model.network import Deployment, Network, NodeSpec
from penstock.model.operators import (
    Aggregate,
    Filter,
    PythonOperator,
    SqlRead,
    SqlWrite,
    Switch,
    TableJoin,
)
from penstock.model.retime import Retime
from penstock.model.schema import Schema
from penstock.model.settings import values_of
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
    ReplaySource,
)
from penstock.place.fuse import fuse

FOLDER = Path("/data")
EXAMPLES = Path(__file__).parents[3] / "examples"


def parsed(text: str) -> Deployment:
    return parse_deployment(dedent(text).lstrip("\n"), "ami.yaml", FOLDER)


EXPERIENCE = (Path(__file__).parent / "samples" / "ami.yaml").read_text()


def test_the_example_of_the_experience_page() -> None:
    deployment = parsed(EXPERIENCE)
    network = deployment.network
    assert deployment.name == "ami"
    assert deployment.nodes == (NodeSpec("a", 1, 1 << 30), NodeSpec("b", 1, 1 << 30))
    assert deployment.placement == "rod"
    assert values_of(deployment.balance) == {"policy": "correlation", "every": "10s"}
    readings = network.stream("readings")
    assert readings.source == GeneratorSource(
        "meters", {"homes": 300, "every": "30min", "speedup": 600, "bursts": "evening"}
    )
    assert readings.lateness_us == duration_us("2min")
    heavy, load, suspicious = network.queries
    assert (heavy.sink, heavy.max_latency_us) == (ConsoleSink(), 5_000_000)
    assert (load.sink, suspicious.sink) == (None, ConsoleSink())
    assert str(network.shapes["heavy_homes"].schema) == (
        "home string, district string, since timestamp, kwh double"
    )
    assert suspicious.text.startswith("SELECT h.home") and suspicious.text.endswith("d.kwh")


def test_a_table_sink_is_a_side_branch() -> None:
    network = parsed(EXPERIENCE).network
    write = network.producers["district_load_write"]
    assert isinstance(write, SqlWrite)
    assert write.input.stream == "district_load"
    assert (write.database, write.table) == (Database("sqlite:////data/ami.db"), "district_load")
    assert network.query("district_load").stream == "district_load"


STREAM = "streams: {s: {source: SOURCE, schema: 'ts timestamp, kwh double'}}\n"


@pytest.mark.parametrize(
    ("written", "source"),
    [
        ("{directory: in, format: csv}", DirectorySource(FOLDER / "in", "csv")),
        (
            "{directory: /in, pattern: '*.parquet', finished: true}",
            DirectorySource(Path("/in"), "parquet", pattern="*.parquet", finished=True),
        ),
        (
            "{directory: in, format: CSV, delimiter: \\t, header: false, null: NA}",
            DirectorySource(FOLDER / "in", "csv", CsvLayout("\t", False, "NA")),
        ),
        ("{replay: ../day.csv.gz, speedup: max}", ReplaySource(Path("/day.csv.gz"), "csv")),
        (
            "{replay: ~/day.jsonl, speedup: 60}",
            ReplaySource(Path.home() / "day.jsonl", "json", speedup=60.0),
        ),
        ('{kafka: "h:9092", topic: t}', KafkaSource("h:9092", "t")),
        (
            '{kafka: "${BROKER}:9092", topic: t, finished: true}',
            KafkaSource("k1:9092", "t", True),
        ),
        (
            '{kafka: "h:9092", topic: t, client: login.properties}',
            KafkaSource("h:9092", "t", client=FOLDER / "login.properties"),
        ),
    ],
)
def test_sources(written: str, source: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER", "k1")
    network = parsed(STREAM.replace("SOURCE", written)).network
    assert network.stream("s").source == source


def test_generator_knows_its_schema_and_time() -> None:
    text = "streams: {s: {source: {generate: packets, seconds: 9, start: 2026-01-05}}}"
    stream = parsed(text).network.stream("s")
    assert stream.shape.event_time == "ts"
    assert not stream.shape.watermarked
    assert stream.source == GeneratorSource("packets", {"seconds": 9, "start": "2026-01-05"})


def test_stream_times() -> None:
    stream = parsed("""
        streams:
          s:
            source: {replay: a.csv}
            schema: at timestamp, kwh double
            event_time: at
            lateness: 0
            idle_timeout: 30s
            ahead: 1d
        """).network.stream("s")
    assert (stream.shape.event_time, stream.shape.watermarked) == ("at", True)
    assert (stream.lateness_us, stream.idle_timeout_us) == (0, 30_000_000)
    assert stream.ahead_us == 86_400_000_000


READINGS = "streams: {readings: {source: {generate: meters, days: 1}, lateness: 2min}}\n"


@pytest.mark.parametrize(
    ("written", "sink"),
    [
        ("console", ConsoleSink()),
        ("memory", MemorySink()),
        ("none", None),
        ("", None),
        ("{files: out}", FileSink(FOLDER / "out", "parquet")),
        ("{files: out, format: json}", FileSink(FOLDER / "out", "json")),
        ("{kafka: 'h:1', topic: t}", KafkaSink("h:1", "t")),
        (
            "{kafka: 'h:1', topic: t, client: /etc/login}",
            KafkaSink("h:1", "t", Path("/etc/login")),
        ),
    ],
)
def test_sinks(written: str, sink: object) -> None:
    text = f"{READINGS}queries: {{q: {{sql: SELECT home FROM readings, to: {written}}}}}"
    assert parsed(text).network.query("q").sink == sink


def test_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x y")
    network = parsed(
        READINGS
        + dedent("""
        tables:
          homes: {file: homes.csv, schema: "id string, size int"}
          tariffs:
            database: postgresql://ann:${SECRET}@db/ami
            table: prices
            schema: area string, price double
        queries:
          sized: SELECT r.home, h.size FROM readings r JOIN homes h ON r.home = h.id
          priced: SELECT r.home, t.price FROM readings r JOIN tariffs t ON r.district = t.area
        """)
    ).network
    sized = next(operator for operator in network.operators if type(operator) is TableJoin)
    priced = next(operator for operator in network.operators if isinstance(operator, SqlRead))
    assert (sized.table.path, sized.table.schema) == (
        FOLDER / "homes.csv",
        Schema.parse("id string, size int"),
    )
    assert priced.database == Database("postgresql://ann:x y@db/ami")
    assert priced.table.stored_name == "prices"


def test_insert_into_needs_no_sink() -> None:
    network = parsed(
        READINGS
        + dedent("""
        tables: {peaks: {database: "sqlite:///~/a.db", schema: "home string, kwh double"}}
        queries:
          q: INSERT INTO peaks SELECT home, kwh FROM readings WHERE kwh > 3
        """)
    ).network
    write = network.producers["q"]
    assert isinstance(write, SqlWrite)
    assert write.database.url == f"sqlite:///{Path.home()}/a.db"
    assert network.query("q").sink is None


def test_derived_streams_in_any_order() -> None:
    network = parsed("""
        queries:
          result: SELECT home, kwh FROM level_high
        streams:
          level: {from: clean, switch: {high: kwh > 9, low: kwh <= 9}}
          clean: {from: positive, python: "cleaning:drop_spikes"}
          renamed:
            from: POSITIVE
            python: cleaning:rename
            schema: ts timestamp, who string
          positive: {sql: SELECT * FROM readings WHERE kwh > 0}
          readings: {source: {generate: meters, days: 1}, lateness: 2min}
        """).network
    level, clean = network.producers["level_low"], network.producers["clean"]
    assert isinstance(level, Switch) and isinstance(clean, PythonOperator)
    assert isinstance(network.producers["positive"], Filter)
    assert [label for label, _ in level.cases] == ["high", "low"]
    assert clean.schema == network.shapes["readings"].schema
    assert str(network.shapes["renamed"]) == "ts timestamp, who string; event time ts"
    assert network.producers["renamed"].inputs[0].stream == "positive"
    assert [query.name for query in network.queries] == ["result"]


def test_aliases_and_nodes() -> None:
    deployment = parsed("""
        streams:
          a: &generated {source: {generate: meters, days: 1}}
          b: *generated
        nodes: {a: , b: {cores: 4}, c: {memory: 512m}}
        balance: {every: 10s, limits: [1, 2.5, yes, null], inner: {deep: true}}
        """)
    assert len(deployment.network.streams) == 2
    assert deployment.nodes == (
        NodeSpec("a"),
        NodeSpec("b", 4),
        NodeSpec("c", memory_bytes=512 << 20),
    )
    assert values_of(deployment.balance) == {
        "every": "10s",
        "limits": [1, 2.5, "yes", None],
        "inner": {"deep": True},
    }
    limits = deployment.balance["limits"]
    assert limits.place is not None and limits.key_place is not None
    assert (limits.place.line, limits.place.column) == (5, 31)
    assert (limits.key_place.line, limits.key_place.column) == (5, 23)


def test_query_settings() -> None:
    query = parsed(
        READINGS
        + dedent("""
        queries:
          q: {sql: SELECT home FROM readings, max_latency: 500ms, on: a}
        nodes: {a: }
        """)
    ).network.query("q")
    assert (query.max_latency_us, query.on) == (500_000, "a")


def test_flagship() -> None:
    deployment = read_deployment(EXAMPLES / "ami" / "ami.yaml")
    assert deployment.name == "ami"
    assert [query.name for query in deployment.network.queries] == [
        "heavy_homes",
        "district_load",
        "suspicious",
        "network_peak",
    ]
    aggregates = [
        operator for operator in deployment.network.operators if isinstance(operator, Aggregate)
    ]
    assert len(aggregates) == 3
    write = deployment.network.producers["district_load_write"]
    assert isinstance(write, SqlWrite)
    assert write.database.url == f"sqlite:///{EXAMPLES}/ami/.penstock/ami.db"


def test_folded_texts_are_read_as_one_line() -> None:
    folded = parse_deployment(
        """
streams:
  readings:
    source: {generate: meters, homes: 3, days: 1}
queries:
  usage:
    sql: >-
      SELECT home,
      kwh
      FROM readings
""",
        "folded.yaml",
        Path(),
    )
    assert folded.network.query("usage").text == "SELECT home, kwh FROM readings"


def test_event_times_names_and_formats_of_a_source() -> None:
    sample = Path(__file__).parent / "samples" / "as_it_comes.yaml"
    network = parse_deployment(sample.read_text(), "as_it_comes.yaml", Path("/data")).network
    lines, orders, clicks = (network.stream(name) for name in ("lines", "orders", "clicks"))
    assert str(lines.shape) == "line string, at timestamp; event time at"
    assert str(lines.read_schema) == "line string"
    assert orders.parsing.columns == (("ts", "@timestamp"), ("order_id", "Order ID"))
    assert orders.parsing.time_format == "dd/MM/yyyy HH:mm"
    assert str(clicks.shape.schema) == "ms bigint, user string, event_time timestamp"
    assert clicks.shape.event_time == "event_time"
    assert clicks.parsing.written("user") == "user.name"


@pytest.mark.parametrize(
    ("stream", "what"),
    [
        (
            "{source: {replay: a.csv}, schema: a string, event_time: \"to_timestamp(b, 'yyyy')\"}",
            "no column b in the input; it has a",
        ),
        (
            "{source: {replay: a.csv}, schema: a string, event_time: upper(a)}",
            "the event time upper(a) is a string, not a timestamp",
        ),
        (
            "{source: {replay: a.csv}, schema: a string, event_time: \"to_timestamp(a, 'EEE')\"}",
            "EEE in the time pattern 'EEE' is not supported",
        ),
        (
            "{source: {replay: a.csv}, schema: a string, event_time: CAST(a AS timestamp)}",
            "an event time cannot be computed with TRY_CAST(`a` AS timestamp) where rows enter",
        ),
        (
            "{source: {replay: a.csv}, schema: ts timestamp, time_format: EEE}",
            "EEE in the time pattern 'EEE' is not supported",
        ),
        (
            "{source: {replay: a.csv}, schema: a string, columns: {A: b}}",
            "no column b",
        ),
        (
            "{source: {replay: a.csv}, schema: a string, columns: {A: a, B: a}}",
            "two names mean the column a",
        ),
        (
            "{source: {replay: a.csv, header: false}, schema: a string, columns: {A: a}}",
            "stream s has columns and files without a header",
        ),
        (
            "{source: {replay: a.log}, schema: 'a string, b int'}",
            "stream s has text files and the columns a string, b int",
        ),
        (
            "{source: {generate: meters, days: 1}, columns: {A: home}}",
            "stream s is made by a generator, which has its own columns and times",
        ),
    ],
)
def test_what_a_source_cannot_be_read_as(stream: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_deployment(f"streams: {{s: {stream}}}", "a.yaml", Path("/data"))
    assert caught.value.what == what


def test_an_expression_points_at_what_is_wrong_with_it() -> None:
    text = "streams: {s: {source: {replay: a.log}, event_time: \"to_timestamp(lin, 'yyyy')\"}}"
    with pytest.raises(InputError) as caught:
        parse_deployment(text, "a.yaml", Path("/data"))
    assert str(caught.value).splitlines()[:3] == [
        "event_time of stream s, line 1:",
        "    to_timestamp(lin, 'yyyy')",
        "                 ^^^",
    ]


def test_results_are_no_text_files() -> None:
    text = "streams: {s: {source: {generate: meters, days: 1}}}\n"
    text += "queries: {q: {sql: SELECT home FROM s, to: {files: out, format: text}}}"
    with pytest.raises(InputError, match="results have columns, and text files only lines"):
        parse_deployment(text, "a.yaml", Path("/data"))


OWN = "streams:\n  s: {source: {generate: meters, days: 1}}\n  made: {MADE}\n"
OWN += "queries: {q: SELECT home FROM made}"


def own_time(made: str) -> Network:
    return parse_deployment(OWN.replace("MADE", made), "a.yaml", Path("/data")).network


@pytest.mark.parametrize(
    ("made", "operators"),
    [
        ("from: s, event_time: ts, lateness: 2s", ["made"]),
        ("sql: SELECT * FROM s, event_time: ts, lateness: 2s", ["made_untimed", "made"]),
        ("from: s, python: 'm:f', event_time: ts, lateness: 2s", ["made_untimed", "made"]),
        (
            "from: s, event_time: ts + INTERVAL 1 HOUR AS at, lateness: 2s",
            ["made_computed", "made"],
        ),
    ],
)
def test_an_event_time_of_its_own(made: str, operators: list[str]) -> None:
    network = own_time(made)
    shape = network.shapes["made"]
    assert shape.watermarked
    assert shape.event_time == ("at" if "AS at" in made else "ts")
    assert [
        operator.name for operator in network.operators if operator.name.startswith("made")
    ] == operators
    (retime,) = (operator for operator in network.operators if isinstance(operator, Retime))
    assert retime.lateness_us == 2_000_000
    assert "s" in network.judged and "made" in network.judged
    # It ends in a channel, whoever reads it.
    assert [one.name for one in fuse(network)] == ["made", "q"]


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("from: s, event_time: ts", "stream made has event_time and no lateness"),
        ("from: s, lateness: 1s", "stream made has lateness and no event_time"),
        (
            "from: s, event_time: ts, lateness: 1s, ahead: 1d",
            "stream made has ahead, which is decided by the clock",
        ),
        (
            "from: s, switch: {a: kwh > 1}, event_time: ts",
            "stream made has event_time, but a switch has the time of what it reads",
        ),
        (
            "from: s, event_time: kwh, lateness: 1s",
            "event time kwh is a double, not a timestamp",
        ),
        (
            "from: s, event_time: kwh + 1, lateness: 1s",
            "the event time kwh + 1 is a double, not a timestamp",
        ),
        (
            "sql: SELECT * FROM s UNION ALL SELECT * FROM s, event_time: ts, lateness: 1s",
            "made has an event time of its own, and reads made_untimed, a union: its rows have no "
            "one order by which they could be late",
        ),
    ],
)
def test_an_event_time_that_cannot_be(made: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        own_time(made)
    assert caught.value.what == told


def test_rows_from_kafka_have_no_order() -> None:
    text = "streams:\n  s: {source: {kafka: 'h:1', topic: t}, schema: 'ts timestamp'}\n"
    text += "  made: {from: s, event_time: ts, lateness: 1s}\nqueries: {q: SELECT ts FROM made}"
    with pytest.raises(InputError, match="made has an event time of its own, and reads s, which"):
        parse_deployment(text, "a.yaml", Path("/data"))


TREE = """
streams:
  m: {source: {generate: meters, days: 1}, on: b}
queries:
  q: SELECT home FROM m
nodes: {a: {}, b: {parent: a, cores: 2}}
"""


def test_nodes_of_a_tree() -> None:
    deployment = parsed(TREE)
    assert [(node.name, node.parent) for node in deployment.nodes] == [("a", None), ("b", "a")]
    assert deployment.network.streams[0].on == "b"


@pytest.mark.parametrize(
    ("nodes", "on", "text"),
    [
        ("a: {parent: b}, b: {parent: a}", ", on: b", "node a is its own ancestor: a -> b -> a"),
        ("a: {}, b: {}, c: {parent: a}", ", on: b", "2 nodes have no parent: a, b"),
        ("a: {}, b: {parent: z}", ", on: b", "node b has the parent z, which does not exist"),
        ("a: {}, b: {parent: a}", "", "stream m is attached to no node of the tree"),
        ("a: {}, b: {parent: a}", ", on: c", "on of stream m is c; the nodes are a, b"),
    ],
)
def test_what_makes_no_tree(nodes: str, on: str, text: str) -> None:
    written = TREE.replace(", on: b", on).replace("a: {}, b: {parent: a, cores: 2}", nodes)
    with pytest.raises(InputError, match=re.escape(text)):
        parsed(written)
