"""``penstock simulate``: what it prints, draws and refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from penstock.app.simulating import SimulationRequest, subject_of
from penstock.cli.main import app
from penstock.errors import InputError, UsageError

EXAMPLES = Path(__file__).parents[2] / "examples"
ABSTRACT = str(EXAMPLES / "abstract" / "abstract.yaml")

NETWORK = """
inputs: {I0: {rate: 200}, I1: {rate: 200}}
operators:
  a0: {inputs: [I0], cost: 0.002}
  a1: {inputs: [a0], cost: 0.002}
  b0: {inputs: [I1], cost: 0.002}
  b1: {inputs: [b0], cost: 0.002}
nodes: {n1: {}, n2: {}}
"""


@pytest.fixture
def network(tmp_path: Path) -> str:
    path = tmp_path / "two.yaml"
    path.write_text(NETWORK, encoding="utf-8")
    return str(path)


def _told(*arguments: str) -> str:
    told = CliRunner().invoke(app, ["simulate", *arguments])
    if told.exception is not None and told.exit_code == 1:
        raise told.exception
    assert told.exit_code == 0, told.output
    return told.output


def _record(*arguments: str) -> dict:  # type: ignore[type-arg]
    found: dict = json.loads(_told(*arguments, "--json"))  # type: ignore[type-arg]
    return found


def test_a_summary_people_can_read() -> None:
    told = _told(ABSTRACT, "--for", "20s")
    assert "10 operators on 3 nodes, placement rod, balancing off" in told
    assert "20 s simulated in" in told
    assert "times the processing time" in told
    for node in ("n1", "n2", "n3"):
        assert f"\n{node} " in told


def test_the_same_seed_gives_the_same_record(network: str) -> None:
    first, again, other = (
        _record(network, "--seed", seed, "--for", "10s") for seed in ("1", "1", "2")
    )
    for one in (first, again, other):
        del one["seconds"]
    assert first == again
    assert first["latency_s"] != other["latency_s"]


def test_everything_arrives_somewhere(network: str) -> None:
    found = _record(network, "--arrivals", "periodic", "--for", "10s", "--placement", "connected")
    assert found["results"] == pytest.approx(2 * 2_000, abs=4)
    assert found["latency_s"]["mean"] >= 0.004
    assert found["nodes"]["n1"]["utilisation"] == pytest.approx(0.8, abs=0.02)
    assert set(found["assignment"]) == {"a0", "a1", "b0", "b1"}


def test_balancing_by_correlation_cuts_chains_that_burst_in_turn(network: str) -> None:
    latency = {}
    for policy in ("off", "correlation"):
        found = _record(
            network, "--placement", "connected", "--arrivals", "alternating", "--balance", policy,
            "--for", "2min",
        )  # fmt: skip
        latency[policy] = found["latency_s"]["mean"]
    assert latency["correlation"] < 0.6 * latency["off"]
    move = found["moves"][0]
    assert move["correlation_with_old"] > move["correlation_with_new"]
    assert move["score"] == pytest.approx(
        (move["correlation_with_old"] - move["correlation_with_new"]) / 2
    )


def test_suggestions_say_what_would_move(network: str) -> None:
    told = _told(
        network, "--placement", "connected", "--arrivals", "alternating", "--balance",
        "correlation", "--suggest", "--for", "30s",
    )  # fmt: skip
    assert "would move" in told
    assert "correlation with the rest of n" in told


def test_a_deployment_is_simulated_by_its_fragments() -> None:
    found = _record(str(EXAMPLES / "ami" / "ami.yaml"), "--nodes", "2", "--for", "5s")
    assert len(set(found["nodes"])) == 2
    assert found["fragments"]["heavy_homes"] == {
        "kind": "light", "round_s": 0.2, "gives_every_s": pytest.approx(1_800 / 8_640),
        "keeps_s": 2.5, "bound": False,
    }  # fmt: skip
    bound = {name for name, told in found["fragments"].items() if told["bound"]}
    assert bound == {"district_load"}
    assert any("selectivity not known and taken as 1" in note for note in found["notes"])


def test_a_deployment_is_balanced_as_it_says(tmp_path: Path) -> None:
    text = (EXAMPLES / "ami" / "ami.yaml").read_text(encoding="utf-8")
    path = tmp_path / "ami.yaml"
    path.write_text(f"{text}\nbalance: {{policy: one-way, every: 5s, samples: 4, sample: 2s}}\n")
    balancing = subject_of(SimulationRequest(path, nodes=2, suggest=True)).balancing
    assert (balancing.policy, balancing.suggest) == ("one-way", True)
    assert (balancing.every_s, balancing.sample_s, balancing.samples) == (5.0, 2.0, 4)
    assert subject_of(SimulationRequest(path, nodes=2, policy="global")).policy == "global"


def test_recorded_arrivals(network: str, tmp_path: Path) -> None:
    trace = tmp_path / "times.txt"
    trace.write_text("\n".join(map(str, np.linspace(3, 8, 51))), encoding="utf-8")
    found = _record(network, "--trace", f"I0={trace}", "--rate", "I1=0", "--for", "20s")
    assert found["results"] == 51


@pytest.mark.parametrize("name", ["run.svg", "run.png"])
def test_figures(network: str, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    _told(network, "--for", "20s", "--arrivals", "alternating", "--figure", str(path))
    first = path.read_bytes()
    _told(network, "--for", "20s", "--arrivals", "alternating", "--figure", str(path))
    assert path.read_bytes() == first
    assert len(first) > 5_000


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--arrivals", "posson"], UsageError, "Did you mean poisson?"),
        (["--balance", "corelation"], InputError, "Did you mean correlation?"),
        (["--placement", "rodd"], InputError, "no placement strategy rodd"),
        (["--rate", "I7=3"], UsageError, "no input I7; there are I0, I1"),
        (["--rate", "I0"], UsageError, "--rate I0 names no input. Write --rate I1=…"),
        (["--rate", "I0=x"], UsageError, "--rate I0=x is not a number. Give tuples a second."),
        (["--for", "soon"], UsageError, "--for soon:"),
        (["--discipline", "lifo"], InputError, "There are fcfs, round-robin."),
        (["--figure", "x.what"], InputError, "Name a file that ends in .svg, .png or .pdf."),
    ],
)
def test_what_is_refused(
    network: str, arguments: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as found:
        _told(network, "--for", "2s", *arguments)
    assert message in str(found.value)


def test_an_unknown_rate_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "open.yaml"
    path.write_text(NETWORK.replace("I0: {rate: 200}", "I0: {}"), encoding="utf-8")
    with pytest.raises(InputError) as error:
        _told(str(path))
    assert str(error.value) == (
        "the rate of input I0 is not known. Give it in the file, or here: --rate I0=100."
    )
