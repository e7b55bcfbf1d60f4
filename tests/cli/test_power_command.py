"""``penstock power``: the table, the stable form, the figure, what it refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from penstock.cli.power_text import joules, octets

EXAMPLE = Path(__file__).parents[2] / "examples" / "power" / "power.yaml"
ONE = """\
broadcast: {organisation: sorted, bandwidth: 1000}
sources: {s1: {rate: 10, tuple_bytes: 100}}
devices: {d1: {speed: 1000, processing_power: 0.5, receiving_power: 1}}
queries:
  q1: {source: s1, devices: [d1], operators: [{cycles: 4, selectivity: 3}, {cycles: 100}]}
"""


def power(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["power", *arguments])


@pytest.fixture
def one(tmp_path: Path) -> str:
    path = tmp_path / "one.yaml"
    path.write_text(ONE)
    return str(path)


def test_the_table(one: str) -> None:
    told = power(one)
    assert told.exit_code == 0, told.exception
    assert told.output.splitlines() == [
        "1 query of 2 operators, 1 device; sorted broadcast at 1.00 kB/s, cycles of 1.0 s",
        "",
        "  algorithm       energy   tuning   processing   over the bound     cycle",
        "  min-data-cut    2.52 J   1.00 J       1.52 J            0.0 %   1.00 kB",
        "  min-power-cut   2.52 J   1.00 J       1.52 J            0.0 %   1.00 kB",
        "> bose            2.52 J   1.00 J       1.52 J            0.0 %   1.00 kB",
        "  exhaustive      2.52 J   1.00 J       1.52 J            0.0 %   1.00 kB",
        "  server-ops      3.00 J   3.00 J          0 J           19.0 %   3.00 kB",
        "  lower bound     2.52 J",
        "",
        "what it means: with bose the devices use 16.0 % less than if the server ran everything; "
        "no plan needs less.",
        "",
        "bose, as it is on the air: operators on server and device, bytes a cycle",
        "  query   server   device    result     heard   ships",
        "  q1           0        2   1.00 kB   1.00 kB   1, 2",
        "note: 1 device cannot keep up; d1 would compute for 3.0 s in every 1.0 s",
    ]


def test_the_stable_form(one: str) -> None:
    told = json.loads(power(one, "--json").output)
    assert list(told) == ["plans"]
    assert [plan["algorithm"] for plan in told["plans"]] == [
        "server-ops",
        "min-data-cut",
        "min-power-cut",
        "bose",
        "exhaustive",
    ]
    assert told["plans"][0] == {
        "algorithm": "server-ops",
        "cuts": {"q1": 2},
        "tuning": 3.0,
        "processing": 0.0,
        "energy": 3.0,
        "cycle_bytes": 3000.0,
        "lower_bound": pytest.approx(2.52),
    }


def test_another_plan_in_full_and_an_overloaded_channel(one: str) -> None:
    lines = power(one, "--algorithm", "server-ops").output.splitlines()
    assert lines[7].startswith("> server-ops")
    assert lines[-1] == (
        "note: the channel is overloaded: 3.0 s on the air for what 1.0 s produce, 3 times as much "
        "as it carries"
    )
    assert "what it means: with server-ops the devices use 3.00 J a cycle; " in lines[10]


def test_batteries_and_better_organisations() -> None:
    told = power(str(EXAMPLE)).output
    assert "batteries last: cleo " in told
    assert "note: organisation: weighted would need " in told


def test_the_figure(tmp_path: Path) -> None:
    path = tmp_path / "power.svg"
    assert power(str(EXAMPLE), "--figure", str(path)).exit_code == 0
    text = path.read_text()
    for word in ("watchlist", "min-data-cut", "lower bound", "joules of all devices in one cycle"):
        assert word in text
    told = power(str(EXAMPLE), "--figure", str(tmp_path / "power.poem"))
    assert "Name a file that ends in .svg, .png or .pdf." in str(told.exception)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("speed: 1000", "speed: 0", "device d1 has the speed 0. Give more than zero."),
        ("power: 0.5", "power: -0.5", "device d1 has the processing_power -0.5. Give zero or"),
        ("[{cycles: 4", "[{cycles: -4", "operator 1 of query q1 has the cycles -4. Give zero"),
        ("devices: [d1]", "devices: [d1], cut: 1", ""),
        ("100}]", "100, kind: join}], cut: 1", "which ships operator 2 (join) of query q1 to a"),
    ],
)
def test_what_it_refuses(one: str, old: str, new: str, text: str) -> None:
    Path(one).write_text(ONE.replace(old, new, 1))
    told = power(one)
    assert told.exit_code == (1 if text else 0)
    assert text in str(told.exception)


def test_unknown_algorithms(one: str) -> None:
    told = power(one, "--algorithm", "boss")
    assert str(told.exception).startswith("no algorithm boss. There are server-ops, min-data-cut")


def test_energies_and_sizes_for_people() -> None:
    assert [joules(one) for one in (0.0, 9.999e-4, 0.9996, 999.6)] == [
        "0 J",
        "1.00 mJ",
        "1.00 J",
        "1.00 kJ",
    ]
    assert octets(999.7e3) == "1.00 MB"
