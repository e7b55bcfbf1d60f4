"""Deployments printed and read back."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
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


AMI = ""


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


def test_what_cannot_be_written() -> None:
    network = readings.network()
    renamed = Network(network.streams, (), (Query("q", "readings"),))
    with pytest.raises(InputError) as caught:
        deployment_yaml(Deployment("ami", renamed))
    assert str(caught.value) == (
        "query q is the stream readings under another name. "
        "Give the query an operator of its own."
    )


STEPS = st.lists(
    st.sampled_from(
        [
            lambda flow: flow.filter("kwh > 1"),
            lambda flow: flow.filter("home <> 'x'"),
            lambda flow: flow.select("ts", "home", kwh="2 * kwh"),
            lambda flow: flow.select("ts", "home", "kwh"),
            lambda flow: flow.named("inner"),
            lambda flow: flow.apply("module:function"),
            lambda flow: flow.union(flow),
            lambda flow: flow.union(readings.select("ts", "home", "kwh")),
            lambda flow: flow.switch(high="kwh > 3")["high"],
            lambda flow: (
                flow.window("1 min").group_by("home").agg(kwh=ps.sum("kwh")).select(
                    "home", "kwh", ts="window_end"
                )
            ),
            lambda flow: (
                flow.window("1 min").group_by("home").agg(kwh=ps.sum("kwh")).with_columns(
                    ts="window_end"
                )
            ),
            lambda flow: flow.join(
                readings.select(at="ts", id="home"), on={"home": "id"}, within="1 min"
            ),
            lambda flow: flow.join(flow, on="home", after="1 min").select("ts", "home", "kwh"),
        ]
    ),
    min_size=1,
    max_size=5,
    unique=True,
)


@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_whatever_is_built_reads_back(steps: list) -> None:  # type: ignore[type-arg]
    flow: Flow = readings
    for step in steps:
        flow = step(flow)
    deployment = ps.deployment(flow.named("q"), name="ami")
    assert untexted(read(deployment_yaml(deployment))) == deployment
