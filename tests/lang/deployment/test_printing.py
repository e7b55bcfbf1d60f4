"""Deployments printed and read back."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from laws import tried
from penstock.errors import InputError
from penstock.lang.builder import Flow
from penstock.lang.deployment import deployment_yaml, parse_deployment
from penstock.model.network import Deployment, Network, Query

FOLDER = Path("/data")
SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.yaml"))


def read(text: str, name: str = "ami") -> Deployment:
    return parse_deployment(text, f"{name}.yaml", FOLDER)


def untexted(deployment: Deployment) -> Deployment:
    network = deployment.network
    queries = tuple(replace(query, text="") for query in network.queries)
    return replace(deployment, network=replace(network, queries=queries))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_samples_read_back(sample: Path) -> None:
    deployment = read(sample.read_text())
    printed = deployment_yaml(deployment)
    assert read(printed) == deployment
    assert deployment_yaml(read(printed)) == printed


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_samples_read_back_without_their_texts(sample: Path) -> None:
    deployment = untexted(read(sample.read_text()))
    assert untexted(read(deployment_yaml(deployment))) == deployment


def test_text() -> None:
    sample = next(one for one in SAMPLES if one.stem == "ami")
    assert deployment_yaml(read(sample.read_text()), FOLDER) == AMI


AMI = """\
streams:
  readings:
    source: {generate: meters, homes: 300, every: 30min, speedup: 600, bursts: evening}
    schema: ts timestamp, home string, district string, kwh double
    event_time: ts
    lateness: 2 minutes

queries:
  heavy_homes:
    sql: |
      SELECT home, district, window.start AS since, sum(kwh) AS kwh
      FROM readings GROUP BY home, district, window(ts, '6 hours', '30 minutes')
      HAVING sum(kwh) > 9
    max_latency: 5 seconds
  district_load:
    sql: |
      SELECT district, window.end AS at, avg(kwh) AS kwh
      FROM readings GROUP BY district, window(ts, '1 hour')
    to: {table: district_load, database: sqlite:///ami.db}
  suspicious:
    sql: |
      SELECT h.home, h.kwh, d.kwh AS district_kwh
      FROM heavy_homes h JOIN district_load d
        ON h.district = d.district AND d.at BETWEEN h.since AND h.since + INTERVAL 6 HOURS
      WHERE h.kwh > 20 * d.kwh

nodes:
  a: {cores: 1, memory: 1g}
  b: {cores: 1, memory: 1g}

placement: rod

balance: {policy: correlation, every: 10s}
"""


readings = ps.stream("readings", source=ps.generate.meters(days=1), lateness="2 min")


def test_passwords_become_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = ps.sinks.table("t", "postgresql://ann:secret@db/ami")
    deployment = ps.deployment(readings.select("home").named("q").to(sink), name="ami")
    printed = deployment_yaml(deployment)
    assert "secret" not in printed
    assert "postgresql://ann:${ANN_PASSWORD}@db/ami" in printed
    monkeypatch.setenv("ANN_PASSWORD", "secret")
    assert untexted(read(printed)) == deployment
    assert "ann:secret@" in deployment_yaml(deployment, show_passwords=True)


@pytest.mark.parametrize("name", ["q", "readings"])
def test_what_cannot_be_written(name: str) -> None:
    network = Network(readings.network().streams, (), (Query(name, "readings"),))
    for write in (deployment_yaml, ps.python_code):
        with pytest.raises(InputError) as caught:
            write(Deployment("ami", network))
        assert str(caught.value) == (
            f"query {name} is no more than the stream readings. "
            "Give the query an operator of its own."
        )


homes = ps.table("homes", file="/data/homes.csv", schema="home string, size int")

Step = Callable[[Flow], Flow]
STEPS: list[Step] = [
    lambda flow: flow.filter("kwh > 1"),
    lambda flow: flow.filter("home <> 'x'"),
    lambda flow: flow.select("ts", "home", kwh="2 * kwh"),
    lambda flow: flow.select("ts", "home", "kwh"),
    lambda flow: flow.named(f"{flow.stream}_inner"),
    lambda flow: flow.apply("module:function"),
    lambda flow: flow.union(flow),
    lambda flow: flow.union(readings),
    lambda flow: flow.switch(high="kwh > 3")["high"],
    lambda flow: flow.window("1 min").group_by("home").agg(kwh=ps.sum("kwh")),
    lambda flow: flow.select("home", "kwh", ts="window_end"),
    lambda flow: flow.join(readings.select(at="ts", id="home"), on={"home": "id"}, within="1 s"),
    lambda flow: flow.join(flow, on="home", after="1 min"),
    lambda flow: flow.join_table(homes, on="home"),
    lambda flow: flow.write("stored", "sqlite:////a.db"),
]


def built(steps: list[Step]) -> Deployment:
    """A query of those steps that are possible."""
    flow = readings
    for step in steps:
        with suppress(InputError):
            flow = step(flow)
    return ps.deployment(flow.named("q"), name="ami")


def test_renamed_table_columns_read_back_as_the_same_rows() -> None:
    flow = readings.join_table(homes, on="home", columns={"area": "size"}).named("q")
    deployment = ps.deployment(flow, name="ami")
    again = read(deployment_yaml(deployment))
    assert again.network.shapes["q"] == deployment.network.shapes["q"]


def test_two_tables_of_one_name() -> None:
    one = readings.write("t", "sqlite:////a.db").named("one")
    two = readings.write("t", "sqlite:////b.db").named("two")
    with pytest.raises(InputError, match=r"two different tables are called t\. Rename one of them"):
        deployment_yaml(ps.deployment(one, two))


def test_texts_may_spell_names_as_they_like() -> None:
    text = """
    streams:
      readings: {source: {generate: meters, days: 1}}
      clean: {sql: SELECT * FROM readings WHERE kwh > 0}
    tables: {t: {database: "sqlite:////a.db", table: stored, schema: home string}}
    queries:
      clean_homes: SELECT home FROM CLEAN
      written: "-- into the table\\ninsert into T select home from clean"
    """
    assert read(deployment_yaml(read(text))) == read(text)


def test_queries_may_write_different_columns_of_one_table() -> None:
    text = """
    streams: {readings: {source: {generate: meters, days: 1}}}
    tables: {t: {database: "sqlite:////a.db", schema: "home string, kwh double, ts timestamp"}}
    queries:
      a: INSERT INTO t (home, kwh) SELECT home, kwh FROM readings
      b: INSERT INTO t (ts, home) SELECT ts, home FROM readings
    """
    assert read(deployment_yaml(read(text))) == read(text)


@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=5))
@tried(15)
def test_whatever_is_built_reads_back(steps: list[Step]) -> None:
    deployment = built(steps)
    assert untexted(read(deployment_yaml(deployment))) == deployment
    names: dict[str, Any] = {}
    exec(ps.python_code(deployment), names)
    assert names["deployment"] == deployment
