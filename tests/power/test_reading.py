"""Problem files: what they say, as YAML and as JSON, and errors that point at the place."""

import json
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.model.devices import Broadcast, DeviceProfile
from penstock.power.problem import ChainOperator, ChainQuery, ChainSource, PowerProblem
from penstock.power.reading import parse_power, read_power

TEXT = """\
broadcast: {organisation: indexed, bandwidth: 125000, cycle: 2, raw_cut: false, index_entry: 8}
sources:
  s1: {rate: 750, tuple_bytes: 3000}
devices:
  d1: {speed: 1.0e9, processing_power: 0.16, receiving_power: 1.0, battery: 20000}
queries:
  q1:
    source: s1
    devices: [d1]
    operators:
      - {cycles: 1.5e8, selectivity: 0.5, projectivity: 1.0}
      - {cycles: 1e7, name: profit, kind: aggregate}
"""
PROBLEM = PowerProblem(
    Broadcast("indexed", 125_000, cycle_s=2, raw_cut=False, index_entry_bytes=8),
    (ChainSource("s1", 750, 3000),),
    (DeviceProfile("d1", 1e9, 0.16, 1.0, 20_000),),
    (
        ChainQuery(
            "q1",
            "s1",
            ("d1",),
            (ChainOperator(1.5e8, 0.5, 1.0), ChainOperator(1e7, kind="aggregate", name="profit")),
        ),
    ),
)
RECORD = {
    "broadcast": {
        "organisation": "indexed",
        "bandwidth": 125000,
        "cycle": 2,
        "raw_cut": False,
        "index_entry": 8,
    },
    "sources": {"s1": {"rate": 750, "tuple_bytes": 3000}},
    "devices": {
        "d1": {"speed": 1e9, "processing_power": 0.16, "receiving_power": 1.0, "battery": 20000}
    },
    "queries": {
        "q1": {
            "source": "s1",
            "devices": ["d1"],
            "operators": [
                {"cycles": 1.5e8, "selectivity": 0.5, "projectivity": 1.0},
                {"cycles": 1e7, "name": "profit", "kind": "aggregate"},
            ],
        }
    },
}


@pytest.mark.parametrize("text", [TEXT, json.dumps(RECORD), "# not JSON\n" + json.dumps(RECORD)])
def test_all_that_can_be_said(text: str, tmp_path: Path) -> None:
    path = tmp_path / "power.yaml"
    path.write_text(text)
    assert read_power(path) == PROBLEM


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        ("speed: 1.0e9", "speed: 0", 5, "device d1 has the speed 0. Give more than zero."),
        ("receiving_power: 1.0, ", "", 5, "device d1 has no receiving_power. Add receiving"),
        ("bandwidth: 125000", "bandwidth: fast", 1, "bandwidth of the broadcast must be a number"),
        ("cycle: 2", "cylce: 2", 1, "no key cylce in the broadcast; the keys are organisation"),
        ("raw_cut: false", "raw_cut: 0", 1, "raw_cut of the broadcast must be true or false"),
        ("rate: 750", "rate: -1", 3, "source s1 has the rate -1. Give zero or more."),
        ("source: s1", "source: s2", 7, "query q1 names the source s2; there are s1"),
        ("[d1]", "[d1, d7]", 7, "query q1 names the device d7; there are d1"),
        ("[d1]", "{d1: 2}", 9, "devices of query q1 must be a list; it is a mapping"),
        ("selectivity: 0.5", "selectivity: -0.5", 11, "operator 1 of query q1 has the selectivity"),
        ("1e7, name", ".nan, name", 12, "cycles of operator 2 of query q1 must be a number; it is"),
        ("cycles: 1e7, ", "", 12, "operator 2 of query q1 has no cycles. Add cycles: …"),
        ("kind: aggregate", "kind: sort", 12, "operator 2 (profit) of query q1 is of kind sort; "),
        ("devices: [d1]", "devices: [d1]\n    cut: 5", 7, "query q1 has the cut 5 and 2 operators"),
        ("devices: [d1]", "devices: [d1]\n    cut: 1.5", 10, "cut of query q1 must be a whole num"),
    ],
)
def test_errors_point_at_the_place(old: str, new: str, line: int, text: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError) as caught:
        parse_power(TEXT.replace(old, new, 1), "p.yaml")
    said = str(caught.value)
    assert said.startswith(f"p.yaml, line {line}:"), said
    assert text in said


def test_json_has_the_same_errors() -> None:
    wrong = json.loads(json.dumps(RECORD))
    wrong["devices"]["d1"]["speed"] = 0
    with pytest.raises(InputError, match=r"(?s)p.json, line 1:.*device d1 has the speed 0"):
        parse_power(json.dumps(wrong), "p.json")


def test_what_is_no_problem() -> None:
    with pytest.raises(InputError, match=r"d\.yaml is a deployment without devices\. Add devices"):
        parse_power("streams: {}\nqueries: {}", "d.yaml")
    with pytest.raises(InputError, match=r"p\.yaml is empty\. penstock power takes a file with"):
        parse_power(" \n", "p.yaml")
    with pytest.raises(InputError, match=r"no queries\. Give at least one under queries"):
        parse_power(TEXT[: TEXT.index("queries")] + "queries: {}", "p.yaml")
    with pytest.raises(InputError, match=r"p\.yaml has no sources"):
        parse_power("broadcast: {organisation: sorted, bandwidth: 1}", "p.yaml")
