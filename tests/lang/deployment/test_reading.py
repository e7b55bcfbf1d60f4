"""Deployment files and the records they become."""

from pathlib import Path
from textwrap import dedent

import pytest

from penstock.lang.deployment import parse_deployment, read_deployment
from penstock.model.durations import duration_us
from penstock.model.network import Deployment, NodeSpec
from penstock.model.operators import (
    Aggregate,
    Filter,
    PythonOperator,
    SqlRead,
    SqlWrite,
    Switch,
    TableJoin,
)
from penstock.model.schema import Schema
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
    assert deployment.balance == {"policy": "correlation", "every": "10s"}
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
        """).network.stream("s")
    assert (stream.shape.event_time, stream.shape.watermarked) == ("at", True)
    assert (stream.lateness_us, stream.idle_timeout_us) == (0, 30_000_000)


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
    sized = next(one for one in network.operators if type(one) is TableJoin)
    priced = next(one for one in network.operators if isinstance(one, SqlRead))
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
    assert deployment.balance == {
        "every": "10s",
        "limits": [1, 2.5, "yes", None],
        "inner": {"deep": True},
    }


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
    aggregates = [one for one in deployment.network.operators if isinstance(one, Aggregate)]
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
