"""Deployments printed as Python programs, and the programs run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.lang.deployment import parse_deployment
from penstock.model.network import Deployment

SAMPLES = sorted((Path(__file__).parents[1] / "deployment" / "samples").glob("*.yaml"))


def read(sample: Path) -> Deployment:
    return parse_deployment(sample.read_text(), "ami.yaml", Path("/data"))


def untexted(deployment: Deployment) -> Deployment:
    network = deployment.network
    queries = tuple(replace(query, text="") for query in network.queries)
    return replace(deployment, network=replace(network, queries=queries))


def run(program: str) -> Deployment:
    names: dict[str, object] = {}
    exec(program, names)
    deployment = names["deployment"]
    assert isinstance(deployment, Deployment)
    return deployment


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_samples(sample: Path) -> None:
    deployment = read(sample)
    program = ps.python_code(deployment)
    assert run(program) == untexted(deployment)
    assert all(len(line) <= 100 for line in program.splitlines())


def test_text() -> None:
    sample = next(one for one in SAMPLES if one.stem == "ami")
    assert ps.python_code(read(sample)) == AMI


AMI = """\
import penstock as ps

readings = ps.stream(
    "readings",
    source=ps.generate.meters(homes=300, every="30min", speedup=600, bursts="evening"),
    schema="ts timestamp, home string, district string, kwh double",
    event_time="ts",
    lateness="2 minutes",
)
district_load = (
    readings
    .window("1 hour")
    .group_by("district")
    .agg(kwh=ps.avg("kwh"))
    .select("district", at="window_end", kwh="kwh")
    .named("district_load")
    .to(ps.sinks.table("district_load", "sqlite:////data/ami.db"))
)
heavy_homes = (
    readings
    .window("6 hours", slide="30 minutes")
    .group_by("home", "district")
    .agg(kwh=ps.sum("kwh"))
    .filter("kwh > 9")
    .select("home", "district", since="window_start", kwh="kwh")
    .named("heavy_homes")
    .to(ps.sinks.console(), max_latency="5 seconds")
)
suspicious_map = district_load.select(right_district="district", at="at", right_kwh="kwh")
suspicious = (
    heavy_homes
    .join(
        suspicious_map,
        on={"district": "right_district"},
        after="6 hours",
        where="kwh > 20 * right_kwh",
    )
    .select("home", "kwh", district_kwh="right_kwh")
    .named("suspicious")
)
deployment = ps.deployment(
    heavy_homes,
    district_load,
    suspicious,
    name="ami",
    nodes={"a": {"cores": 1, "memory": "1g"}, "b": {"cores": 1, "memory": "1g"}},
    placement="rod",
    balance={"policy": "correlation", "every": "10s"},
)
"""


readings = ps.stream("readings", source=ps.generate.meters(days=1), lateness="2 min")


def check(*queries: ps.Flow) -> str:
    deployment = ps.deployment(*queries)
    program = ps.python_code(deployment)
    assert run(program) == untexted(deployment)
    return program


def test_odd_names() -> None:
    odd = readings.select(**{"class": "home", "self": "kwh", "if": "ts"}).named("ps")
    more = odd.filter("`if` IS NOT NULL").named("lambda")
    program = check(odd, more, readings.filter("kwh > 1").named("deployment"))
    assert 'select(**{"class": "home", "self": "kwh", "if": "ts"})' in program


def test_shared_and_nested_flows() -> None:
    shared = readings.filter("kwh > 0")
    joined = shared.join(shared.select(at="ts", id="home"), on={"home": "id"}, before="1 min")
    check(joined.named("one"), shared.select("home").named("two"))


def test_names_that_building_would_not_give() -> None:
    first = readings.filter("kwh > 0").named("q_filter_7")
    check(first.filter("kwh > 1").filter("kwh > 2").named("q"))


def test_passwords_become_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANN_PASSWORD", "secret")
    prices = ps.table("prices", database="postgresql://ann:secret@db/ami", schema="home string")
    sink = ps.sinks.table("t", "postgresql://ann:secret@db/ami")
    program = check(readings.join_table(prices, on="home").named("q").to(sink))
    assert "secret" not in program


def test_every_bound() -> None:
    other = readings.select(at="ts", id="home")
    bounds: list[dict[str, Any]] = [
        {"within": "5 min"},
        {"before": "5 min"},
        {"after": "5 min"},
        {"before": "1 s", "after": "5 min"},
        {"before": "-1 s", "after": "5 min"},
        {"before": "5 s", "after": "-1 ms"},
        {"before": 0},
    ]
    for bound in bounds:
        check(readings.join(other, **bound).named("q"))
    check(readings.join(other, on=[("home", "id"), ("home", "id")], within=1).named("q"))
