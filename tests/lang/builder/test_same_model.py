"""A deployment written in YAML, and the same one built in Python."""

from dataclasses import replace
from pathlib import Path

import penstock as ps
from penstock.lang.deployment import parse_deployment
from penstock.model.network import Deployment, NodeSpec

AMI = Path(__file__).parents[1] / "deployment" / "samples" / "ami.yaml"


def built() -> Deployment:
    source = ps.generate.meters(homes=300, every="30min", speedup=600, bursts="evening")
    readings = ps.stream("readings", source=source, event_time="ts", lateness="2 min")
    heavy = (
        readings.window("6 hours", slide="30 minutes")
        .group_by("home", "district")
        .agg(kwh=ps.sum("kwh"))
        .filter("kwh > 9")
        .select("home", "district", since="window_start", kwh="kwh")
        .named("heavy_homes")
        .to(ps.sinks.console(), max_latency="5 s")
    )
    load = (
        readings.window("1 hour")
        .group_by("district")
        .agg(kwh=ps.avg("kwh"))
        .select("district", at="window_end", kwh="kwh")
        .named("district_load")
        .to(ps.sinks.table("district_load", "sqlite:////data/ami.db"))
    )
    suspicious = (
        heavy.join(
            load.select(right_district="district", at="at", right_kwh="kwh"),
            on={"district": "right_district"},
            after="6 hours",
            where="kwh > 20 * right_kwh",
        )
        .select("home", "kwh", district_kwh="right_kwh")
        .named("suspicious")
    )
    return ps.deployment(
        heavy,
        load,
        suspicious,
        name="ami",
        nodes=[NodeSpec("a"), NodeSpec("b")],
        placement="rod",
        balance={"policy": "correlation", "every": "10s"},
    )


def untexted(deployment: Deployment) -> Deployment:
    network = deployment.network
    queries = tuple(replace(query, text="") for query in network.queries)
    return replace(deployment, network=replace(network, queries=queries))


def test_same_model() -> None:
    written = parse_deployment(AMI.read_text(), "ami.yaml", Path("/data"))
    assert untexted(written) == built()


def test_sql_in_python_is_the_same_too() -> None:
    readings = ps.stream("readings", source=ps.generate.meters(days=1), lateness="2 min")
    text = "SELECT home, kwh FROM readings WHERE kwh > 3"
    yaml = f"""
    streams: {{readings: {{source: {{generate: meters, days: 1}}, lateness: 2min}}}}
    queries: {{peaks: "{text}"}}
    """
    assert parse_deployment(yaml, "ami.yaml", Path()) == ps.deployment(
        ps.sql(text, readings=readings).named("peaks"), name="ami"
    )
