"""How joins are shared out: what people may write, and what parts are called."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.errors import InputError
from penstock.lang.builder.code import python_code
from penstock.lang.deployment import deployment_yaml, parse_deployment
from penstock.model.parts import JoinSpread, join_spread, parts_of

STREAMS = """
streams:
  asked: {source: {directory: in, format: csv}, schema: "ts timestamp, k string, x double", event_time: ts, lateness: 1s}
  given: {source: {directory: in, format: csv}, schema: "at timestamp, key string, y double", event_time: at, lateness: 1s}
queries:
  pairs:
    sql: SELECT a.ts, a.k FROM asked a JOIN given g ON a.k = g.key AND g.at BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS
    join: JOIN
"""  # noqa: E501


def spread_of(written: str) -> JoinSpread | None:
    text = STREAMS.replace("join: JOIN", f"join: {written}")
    return parse_deployment(text, "d.yaml", Path()).network.query("pairs").spread


def test_groups_are_dealt_out_and_each_part_has_a_channel() -> None:
    parts = parts_of("pairs", JoinSpread(3, 7))
    assert [sorted(part.first_groups) for part in parts] == [[0, 3, 6], [1, 4], [2, 5]]
    assert [part.channel for part in parts] == ["pairs_part1", "pairs_part2", "pairs_part3"]


def test_it_is_written_in_yaml_and_in_python() -> None:
    assert spread_of("{spread: 3, groups: 12}") == JoinSpread(3, 12)
    assert spread_of("{spread: auto}") == JoinSpread(None, 60)
    assert spread_of("{spread: 2, moves: off}") == JoinSpread(2, 60, "off")
    assert spread_of("{spread: auto, every: 5s}") == JoinSpread(None, 60, "load", 5_000_000)
    assert spread_of("partitioned") is None
    stream = ps.stream("readings", source=ps.generate.meters(days=1), lateness="2 min")
    flow = stream.filter("kwh > 3").named("peaks").to(None, join={"spread": 2, "groups": 8})
    assert flow.network().query("peaks").spread == JoinSpread(2, 8)
    often = stream.filter("kwh > 3").named("peaks").to(None, join={"spread": 2, "every": "5 s"})
    assert often.network().query("peaks").spread == JoinSpread(2, period_us=5_000_000)


@pytest.mark.parametrize("moves", ["load", "off", "random, every: 30s"])
def test_what_is_printed_says_the_same(moves: str) -> None:
    text = STREAMS.replace("join: JOIN", f"join: {{spread: 3, groups: 12, moves: {moves}}}")
    deployment = parse_deployment(text, "d.yaml", Path())
    printed = deployment_yaml(deployment)
    again = parse_deployment(printed, "d.yaml", Path())
    assert again.network.query("pairs").spread == deployment.network.query("pairs").spread
    assert '"spread": 3' in python_code(deployment)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{spread: 1}", "cannot be spread to 1 parts"),
        ("{spread: 99}", "cannot be spread to 99 parts"),
        ("{spread: wide}", "cannot be spread 'wide'"),
        ("{spread: 4, groups: 3}", "in 4 parts cannot have 3 groups"),
        ("{groups: 3}", "spread"),
        ("{spread: 2, parts: 3}", "parts"),
        ("{spread: 2, every: 1s}", "cannot be compared every 1 second"),
        ("{spread: 2, every: often}", "'often' is not a duration"),
        ("{spread: 2, moves: all}", "cannot be moved 'all'"),
    ],
)
def test_what_makes_no_sense_is_refused(written: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        spread_of(written)


def test_a_spread_read_from_text_is_checked() -> None:
    with pytest.raises(InputError, match="auto, or a number"):
        join_spread("-2")
