"""Where benchmarks hook in."""

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from penstock.bench.peers.flink_density import VARIABLE
from penstock.cli import bench_command
from penstock.cli.bench_command import benches, chosen, report_lines
from penstock.cli.main import app
from penstock.errors import InputError, UsageError

CASE = {
    "case": "rows per second",
    "value": 850_000.0,
    "unit": "rows/s",
    "baseline": 2_900_000.0,
    "ratio": 0.293,
    "goal": ">= 0.25",
    "ok": True,
}


def made_up(name: str, ok: bool = True) -> bench_command.Bench:
    case = {**CASE, "ok": ok}

    def measure(quick: bool, only: str, peer: str) -> bench_command.Report:
        told = {"bench": name, "machine": {}, "cases": [case], "ok": ok}
        return told | {"quick": quick, "only": only, "peer": peer}

    return measure


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bench_command.Bench]]:
    known = {"channels": made_up("channels"), "start": made_up("start", ok=False)}
    monkeypatch.setattr(bench_command, "benches", lambda: known)
    yield known


def test_one_as_json(registry: object) -> None:
    told = CliRunner().invoke(
        app, ["bench", "channels", "--json", "--quick", "--only", "600 s", "--peer", "flink"]
    )
    assert told.exit_code == 0
    assert json.loads(told.output) == made_up("channels")(True, "600 s", "flink")


def test_a_missed_goal_exits_with_4(registry: object) -> None:
    told = CliRunner().invoke(app, ["bench"])
    assert told.exit_code == 4
    assert "channels\n ✓  rows per second" in told.output
    assert "start\n ✗  rows per second" in told.output


def test_a_report_as_lines() -> None:
    assert report_lines(made_up("channels")(False, "", "")) == [
        "channels",
        " ✓  rows per second  850,000 rows/s  0.293 of 2,900,000  goal >= 0.25",
    ]


def test_a_figure_without_a_goal_is_only_told() -> None:
    case = {**CASE, "baseline": None, "ratio": None, "goal": None}
    assert report_lines({"bench": "start", "cases": [case]}) == [
        "start",
        " ✓  rows per second  850,000 rows/s",
    ]


def test_an_unknown_one_lists_those_there_are(registry: dict[str, bench_command.Bench]) -> None:
    with pytest.raises(InputError) as raised:
        chosen("chanels", registry)
    assert str(raised.value) == (
        "no benchmark chanels. There are channels, start, all. Did you mean channels?"
    )


def test_every_benchmark_is_found() -> None:
    assert {"overhead", "handover", "placement", "simulator"} <= set(benches())


def test_cases_can_be_chosen_by_their_names() -> None:
    with pytest.raises(InputError, match="no case is called 600 s") as raised:
        benches()["join"](True, "600 s", "")
    assert raised.value.hint == "There are: 5,000 rows/s, 6 s, b = 0.7, batches of 20,000."


def test_cases_of_overhead_can_be_chosen() -> None:
    with pytest.raises(InputError, match="no case is called density") as raised:
        benches()["overhead"](False, "density", "")
    assert raised.value.hint == (
        "There are: throughput, filter and map; throughput, strings; throughput, tumbling "
        "aggregate; throughput, sliding aggregate; throughput, stream join; overhead, stateless "
        "batch; overhead, aggregate batch; flagship."
    )


def test_cases_that_belong_together_are_measured_together() -> None:
    with pytest.raises(InputError, match="measured together") as raised:
        benches()["placement"](True, "rows", "")
    assert raised.value.hint == (
        "Cases can be chosen in density, handover, join, join-moves, overhead."
    )


def test_a_peer_belongs_to_density_and_has_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="has its own peers"):
        benches()["handover"](True, "", "flink")
    with pytest.raises(InputError, match="--peer storm: no such peer"):
        benches()["density"](True, "", "storm")
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(UsageError, match="no Flink is known here") as raised:
        benches()["density"](True, "", "flink")
    assert VARIABLE in str(raised.value.hint)
