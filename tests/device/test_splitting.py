"""Which parts of a query a device can run, and what is said where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.device.chain import chain_of
from penstock.device.measuring import measured_problem
from penstock.device.problem import given_problem
from penstock.device.splitting import first_cuts, served
from penstock.errors import InputError
from penstock.lang.deployment import deployment_yaml, parse_deployment
from penstock.place.fuse import fuse
from penstock.power.cuts import cut_table
from penstock.power.plan import compare

from device.air import deployment

pytestmark = pytest.mark.core

HEAD = """
broadcast: {organisation: indexed, bandwidth: 125000}
devices:
  anna: {speed: 1.0e9, processing_power: 0.5, receiving_power: 1.0, queries: [q]}
streams:
  readings: {source: {generate: meters, homes: 40, days: 1}, lateness: 2min}
  others: {source: {generate: meters, homes: 40, days: 1}, lateness: 2min}
tables:
  mine: {on: devices, schema: "home string, limit double"}
queries:
"""
JOINED = """
      SELECT a.home, a.kwh, a.ts FROM readings a JOIN others b
      ON a.home = b.home AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR WHERE a.kwh > 1
"""


def made(query: str, folder: Path) -> object:
    return served(parse_deployment(HEAD + query, "d.yaml", folder))


@pytest.mark.parametrize("cut", range(6))
def test_the_server_runs_what_is_before_the_cut(tmp_path: Path, cut: int) -> None:
    whole = deployment(tmp_path, cut)
    found = served(whole)
    chain = chain_of(whole.network, "usage")
    fragments = fuse(found.network)
    assert {fragment.output for fragment in fragments} == {
        query.stream for query in found.network.queries
    }
    running = {operator.name for fragment in fragments for operator in fragment.operators}
    assert {operator.name for operator in chain.operators[cut:]}.isdisjoint(running)
    assert {operator.name for operator in chain.operators[:cut]} <= running


def test_a_file_with_devices_reads_back(tmp_path: Path) -> None:
    whole = deployment(tmp_path, 2)
    assert parse_deployment(deployment_yaml(whole), "meters.yaml", tmp_path) == whole


def test_a_join_of_streams_stays_on_the_server(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        made(f"  q:\n    device: {{cut: 1}}\n    sql: |{JOINED}", tmp_path)
    assert "which ships operator" in str(error.value)
    assert "it joins another stream, which only the server has" in str(error.value)
    assert "join a table instead" in str(error.value)


def test_a_query_is_cut_behind_its_join(tmp_path: Path) -> None:
    whole = parse_deployment(f"{HEAD}  q:\n    sql: |{JOINED}", "d.yaml", tmp_path)
    chain = chain_of(whole.network, "q")
    problem, _ = given_problem(whole)
    kinds = [operator.kind for operator in problem.queries[0].operators]
    assert "join" in kinds
    assert problem.queries[0].least_cut == kinds.index("join") + 1
    assert first_cuts(whole) == {"q": len(chain.operators)}


def test_a_function_that_devices_lack_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        made("  q: {device: {cut: 0}, sql: SELECT upper(home) AS h FROM readings}", tmp_path)
    assert str(error.value) == (
        "query q has the cut 0, which ships operator 1 (q) of query q to a device, which cannot "
        "run it: DuckDB does not compute upper(`home`) exactly as Spark does: upper differs. "
        "Give a cut of at least 1, or write it in another way."
    )


def test_a_table_of_devices_is_joined_on_them(tmp_path: Path) -> None:
    sql = "SELECT r.home, r.kwh FROM readings r JOIN mine m ON r.home = m.home WHERE r.kwh > 1"
    found = first_cuts(parse_deployment(f"{HEAD}  q: {sql}", "d.yaml", tmp_path))
    assert found == {"q": 1}
    with pytest.raises(InputError) as error:
        made(f"  q: {{device: {{cut: 3}}, sql: '{sql}'}}", tmp_path)
    assert "its table is on the device" in str(error.value)


def test_a_query_without_devices_cannot_join_their_tables(tmp_path: Path) -> None:
    sql = "SELECT r.home FROM readings r JOIN mine m ON r.home = m.home"
    with pytest.raises(InputError) as error:
        made(f"  q: SELECT home FROM readings\n  other: {sql}", tmp_path)
    assert "query other joins table mine, which only devices have" in str(error.value)


def test_a_deployment_is_planned_with_what_a_sample_shows(tmp_path: Path) -> None:
    whole = deployment(tmp_path, 1)
    problem = measured_problem(whole, {})
    usage = problem.queries[0]
    assert 0.5 < usage.operators[0].selectivity < 0.8
    assert usage.operators[1].selectivity == pytest.approx(1.0, abs=0.05)
    assert 0 < usage.operators[2].selectivity < 1
    assert all(operator.cycles > 0 for operator in usage.operators)
    assert compare(cut_table(problem)).plan_of("bose").cuts["usage"] == 1


def test_a_cycle_lasts_real_time(tmp_path: Path) -> None:
    rates = []
    for speedup in (600, 1_200):
        text = HEAD.replace("days: 1", f"days: 1, speedup: {speedup}")
        found = parse_deployment(f"{text}  q: SELECT home FROM readings", "d.yaml", tmp_path)
        rates.append(measured_problem(found, {}).sources[0].rate_per_s)
    assert rates[1] == pytest.approx(2 * rates[0], rel=0.01)
    assert rates[0] == pytest.approx(600 * 40 / 1800, rel=0.05)


@pytest.mark.parametrize(
    ("changed", "to", "text"),
    [
        ("speed: 1.0e9", "speed: 0", "device anna has the speed 0. Give more than zero."),
        ("receiving_power: 1.0", "receiving_power: -1", "has the receiving_power -1. Give zero"),
        ("queries: [q]", "queries: [p]", "device anna hears p; the queries are q"),
        ("indexed", "index", "the broadcast has the organisation index; there are sorted"),
    ],
)
def test_nonsense_is_refused_where_it_is_written(
    tmp_path: Path, changed: str, to: str, text: str
) -> None:
    written = HEAD.replace(changed, to) + "  q: SELECT home FROM readings\n"
    with pytest.raises(InputError) as error:
        parse_deployment(written, "d.yaml", tmp_path)
    assert text in str(error.value)
    assert error.value.place is not None
