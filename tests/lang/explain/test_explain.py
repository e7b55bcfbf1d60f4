"""Networks as text, flowcharts and JSON."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from laws import tried
from penstock.lang.explain import explain_dict, explain_mermaid, explain_text
from penstock.model.canonical import signatures
from penstock.model.estimates import OperatorEstimate
from penstock.model.network import Network

readings = ps.stream("readings", source=ps.generate.meters(homes=300, days=1), lateness="2 min")


def network() -> Network:
    heavy = (
        readings.window("6 hours", slide="30 minutes")
        .group_by("home", "district")
        .agg(kwh=ps.sum("kwh"))
        .filter("kwh > 9")
        .named("heavy_homes")
        .to(ps.sinks.table("heavy", "postgresql://ann:secret@db/ami"), max_latency="5 s")
    )
    cases = readings.switch("level", high="kwh > 9", low="kwh <= 9 AND home <> 'a\"b#c'")
    low = cases["low"].apply("cleaning:drop_spikes").named("low").to(None, on="a")
    return ps.deployment(heavy, low).network


def test_text() -> None:
    assert explain_text(network()) == TEXT


TEXT = """\
streams
  readings               generator meters: homes 300, days 1
                         ts timestamp, home string, district string, kwh double
                         event time ts, rows up to 2 minutes late

operators
  heavy_homes_aggregate  aggregate of readings; keeps state, movable
                         sum(kwh) AS kwh by home, district, 6 hours every 30 minutes
                         gives home string, district string, window_start timestamp,
                         window_end timestamp, kwh double
                         event time window_end, window_start up to 6 hours behind
  level                  switch of readings; no state, movable
                         high: (kwh > 9); low: ((kwh <= 9) AND (home <> 'a"b#c'))
                         level_high, level_low give ts timestamp, home string, district string,
                         kwh double
                         event time ts
  heavy_homes            filter of heavy_homes_aggregate; no state, movable
                         (kwh > 9)
                         gives home string, district string, window_start timestamp,
                         window_end timestamp, kwh double
                         event time window_end, window_start up to 6 hours behind
  low                    python of level_low; no state, movable, opaque
                         cleaning:drop_spikes
                         gives ts timestamp, home string, district string, kwh double
                         event time ts
  heavy_homes_write      sql_write of heavy_homes; no state, stays on its node
                         into heavy of postgresql://ann@db/ami
                         gives home string, district string, window_start timestamp,
                         window_end timestamp, kwh double
                         event time window_end, window_start up to 6 hours behind

queries
  heavy_homes            to table heavy of postgresql://ann@db/ami, within 5 seconds
  low                    read by others only, on node a
"""


def test_estimates() -> None:
    costs = {
        "heavy_homes": OperatorEstimate(1.25, 1_240, 0.333333, 0.00155),
        "level": OperatorEstimate(cost_us=0.5),
        "unknown": OperatorEstimate(),
    }
    text = explain_text(network(), costs)
    assert text.startswith(TEXT)
    assert text[len(TEXT) :] == (
        "\nestimates\n"
        "  operator     cost in us  rows in/s  rows out/in   load\n"
        "  level               0.5          ?            ?      ?\n"
        "  heavy_homes        1.25      1,240        0.333  0.002\n"
    )


def test_text_of_an_empty_network() -> None:
    assert explain_text(Network((), ())) == ""


def test_mermaid() -> None:
    assert explain_mermaid(network()) == MERMAID


MERMAID = """\
flowchart LR
  s0[("readings<br/>generator meters: homes 300, days 1")]
  o0[["heavy_homes_aggregate<br/>aggregate<br/>sum(kwh) AS kwh by home, district, 6 hours every 30 minutes"]]
  s0 --> o0
  o1["level<br/>switch<br/>high: (kwh #gt; 9); low: ((kwh #lt;= 9) AND (home #lt;#gt; 'a#quot;b#35;c'))"]
  s0 --> o1
  o2["heavy_homes<br/>filter<br/>(kwh #gt; 9)"]
  o0 --> o2
  o3["low<br/>python<br/>cleaning:drop_spikes"]
  o1 -->|"level_low"| o3
  o4["heavy_homes_write<br/>sql_write<br/>into heavy of postgresql://ann@db/ami"]
  o2 --> o4
  q0(["heavy_homes<br/>to table heavy of postgresql://ann@db/ami, within 5 seconds"])
  o2 --> q0
  q1(["low<br/>read by others only, on node a"])
  o3 --> q1
"""  # noqa: E501


def test_dict() -> None:
    costs = {"level": OperatorEstimate(cost_us=0.5)}
    record = explain_dict(network(), costs)
    assert json.loads(json.dumps(record)) == record
    assert "secret" not in json.dumps(record)
    streams, operators, queries = record["streams"], record["operators"], record["queries"]
    assert isinstance(streams, list) and isinstance(operators, list) and isinstance(queries, list)
    signed = signatures(network())
    assert streams == [
        {
            "name": "readings",
            "signature": signed.streams["readings"],
            "source": {
                "kind": "generator",
                "generator": "meters",
                "options": {"homes": 300, "days": 1},
            },
            "schema": [
                {"name": "ts", "type": "timestamp"},
                {"name": "home", "type": "string"},
                {"name": "district", "type": "string"},
                {"name": "kwh", "type": "double"},
            ],
            "event_time": "ts",
            "watermarked": True,
            "lateness_us": 120_000_000,
            "idle_timeout_us": None,
            "ahead_us": None,
            "on": None,
        }
    ]
    by_name = {operator["name"]: operator for operator in operators}
    assert by_name["level"]["estimate"] == {
        "cost_us": 0.5,
        "rate_per_s": None,
        "selectivity": None,
        "load": None,
        "rows_per_batch": None,
    }
    assert [one["name"] for one in by_name["level"]["outputs"]] == ["level_high", "level_low"]
    assert [one["signature"] for one in by_name["level"]["outputs"]] == [
        signed.streams["level_high"],
        signed.streams["level_low"],
    ]
    assert {name: one["signature"] for name, one in by_name.items()} == signed.operators
    assert by_name["heavy_homes"]["estimate"] is None
    assert queries == [
        {
            "name": "heavy_homes",
            "signature": signed.queries["heavy_homes"],
            "stream": "heavy_homes",
            "sink": None,
            "max_latency_us": 5_000_000,
            "on": None,
            "groups": None,
            "engine": None,
            "join": None,
            "spread": None,
            "sql": "",
        },
        {
            "name": "low",
            "signature": signed.queries["low"],
            "stream": "low",
            "sink": None,
            "max_latency_us": None,
            "on": "a",
            "groups": None,
            "engine": None,
            "join": None,
            "spread": None,
            "sql": "",
        },
    ]


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,130}", fullmatch=True).filter(
    lambda name: name != "readings"
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=150)


@given(NAMES, TEXTS)
@tried(20)
def test_text_fits_and_repeats(name: str, literal: str) -> None:
    escaped = literal.replace("\\", "\\\\").replace("'", "\\'")
    flow = readings.filter(f"home = '{escaped}'").select("home", twice="2 * kwh").named(name)
    text = explain_text(flow.network(), {name: OperatorEstimate(1.0)})
    assert all(len(line) <= 100 for line in text.split("\n"))
    assert text == explain_text(flow.network(), {name: OperatorEstimate(1.0)})


@given(TEXTS)
@tried(20)
def test_mermaid_labels_cannot_be_left(literal: str) -> None:
    escaped = literal.replace("\\", "\\\\").replace("'", "\\'")
    chart = explain_mermaid(readings.filter(f"home = '{escaped}'").named("q").network())
    line = re.compile(
        r'  (s0\[\("[^"`]*"\)\]|o0\["[^"`]*"\]|q0\(\["[^"`]*"\]\)|s0 --> o0|o0 --> q0)'
    )
    lines = chart.rstrip("\n").split("\n")
    assert lines[0] == "flowchart LR"
    assert all(line.fullmatch(one) for one in lines[1:])
