"""Reading abstract networks, and errors that point at the text."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from penstock.errors import InputError
from penstock.lang.abstract import abstract_in, parse_abstract, read_abstract
from penstock.lang.abstract.quick import network_of_json

FULL = """\
inputs: {I1: {rate: 100, lower: 5, peak: 300, tuple_bytes: 60}, I2: {}}
operators:
  o1: {inputs: [I1], cost: 0.014, selectivity: 1.0}
  o4: {inputs: I2, cost: 0.01, selectivity: varying}
  j1: {kind: join, inputs: [o1, o4], cost: 0.00001, selectivity: 0.1, window: 10}
  w1: {kind: sql_write, inputs: [o1], cost: 0.01, fixed: 0.05, table: t1, node: n2}
nodes: {n1: {cpu: 1.0, bandwidth: 12500000}, n2: {}}
network: {bandwidth: 125000000, transfer_cost: 0.0005}
"""


def test_everything() -> None:
    network = parse_abstract(FULL, "full.yaml")
    first, second = network.inputs
    assert (first.rate_per_s, first.lower_per_s, first.peak_per_s) == (100, 5, 300)
    assert second.rate_per_s is None
    o1, o4, j1, w1 = network.operators
    assert (o1.fixed_cpu, w1.fixed_cpu) == (0.0, 0.05)
    assert o1.selectivity == 1.0 and o4.is_varying and o4.inputs == ("I2",)
    assert j1.is_join and j1.window_s == 10
    assert w1.is_sticky and w1.group == "table t1" and w1.node == "n2"
    assert network.nodes[0].bandwidth_per_s == 12_500_000
    assert (network.bandwidth_per_s, network.transfer_cost_s) == (125_000_000, 0.0005)


def test_json_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        '{"inputs": {"I1": {"rate": 1e2}}, "operators": {"o": {"inputs": ["I1"], "cost": 1e-5}}, '
        '"nodes": {"n1": {"cpu": 1}}}'
    )
    assert read_abstract(path).operators[0].cost_s == 1e-5


def test_the_two_kinds_of_files_are_told_apart() -> None:
    assert abstract_in(FULL, "full.yaml") == parse_abstract(FULL, "full.yaml")
    assert abstract_in("streams: {a: {}}\n", "ami.yaml") is None
    assert abstract_in('{"streams": {"a": {}}}', "ami.json") is None


def test_json_and_yaml_give_the_same_network() -> None:
    plain = YAML(typ="safe", pure=True).load(FULL)
    plain["operators"]["o4"]["inputs"] = ["I2"]
    quick = network_of_json(json.dumps(plain))
    slow = parse_abstract(FULL, "full.yaml")
    assert quick is not None
    assert quick.operators[1].is_varying and slow.operators[1].is_varying
    assert replace(quick, operators=slow.operators) == slow
    assert [operator.name for operator in quick.operators] == [
        operator.name for operator in slow.operators
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"inputs": {"I": {}}, "operators": {"o": {"inputs": ["I"], "cost": -1}}, '
         '"nodes": {"n": {}}}', "operator o has the cost -1. Give zero or more."),
        ('{"inputs": {"I": {}}, "operators": {"o": {"inputs": ["I"], "cost": "1"}}, '
         '"nodes": {"n": {}}}', "cost of operator o must be a number; it is '1'"),
        ('{"inputs": {"I": {}, "I": {}}, "operators": {}, "nodes": {}}', "has the key I twice"),
        ('{"inputs": {"I": {}}, "operators": {"o": {"inputs": ["I"], "cost": 1, "x": 2}}, '
         '"nodes": {"n": {}}}', "no key x in operator o; the keys are kind, inputs"),
    ],
)  # fmt: skip
def test_odd_json_gets_the_errors_of_yaml(text: str, error: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_abstract(text, "a.json")
    assert error in str(raised.value)
    assert str(raised.value).startswith("a.json, line 1:")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (
            "cost: 0.014",
            "cost: -1",
            "full.yaml, line 3:\n      o1: {inputs: [I1], cost: -1, selectivity: 1.0}\n      ^^\n"
            "operator o1 has the cost -1. Give zero or more.",
        ),
        (
            "cpu: 1.0",
            "cpu: 0",
            "full.yaml, line 7:\n    nodes: {n1: {cpu: 0, bandwidth: 12500000}, n2: {}}\n"
            "            ^^\nnode n1 has the cpu 0. Give more than zero.",
        ),
        (
            "inputs: [I1], cost: 0.014",
            "inputs: [I3], cost: 0.014",
            "full.yaml, line 3:\n      o1: {inputs: [I3], cost: 0.014, selectivity: 1.0}\n"
            "      ^^\n"
            "operator o1 reads I3, which does not exist",
        ),
        (
            "I2: {}}",
            "I2: {}, I9: {}}",
            "full.yaml, line 1:\n"
            "    inputs: {I1: {rate: 100, lower: 5, peak: 300, tuple_bytes: 60}, I2: {}, I9: {}}\n"
            "                                                                            ^^\n"
            "nobody reads input I9. Remove it, or let an operator read it.",
        ),
        (
            ", window: 10",
            "",
            "full.yaml, line 5:\n      j1: {kind: join, inputs: [o1, o4], cost: 0.00001, "
            "selectivity: 0.1}\n      ^^\njoin j1 has the window None. "
            "Give the seconds within which tuples meet: window: 10.",
        ),
        (
            "kind: join",
            "kind: joint",
            "full.yaml, line 5:\n      j1: {kind: joint, inputs: [o1, o4], cost: 0.00001, "
            "selectivity: 0.1, window: 10}\n      ^^\noperator j1 is of kind joint; the kinds are "
            "operator, filter, switch, map, union, aggregate, join, table_join, python, retime, "
            "sql_read, sql_write. Did you mean join?",
        ),
        (
            "node: n2",
            "node: n3",
            "full.yaml, line 6:\n      w1: {kind: sql_write, inputs: [o1], cost: 0.01, fixed: "
            "0.05, table: t1, node: n3}\n      ^^\noperator w1 is put on n3; the nodes are n1, n2",
        ),
        (
            "selectivity: varying",
            "selectivty: 1",
            "full.yaml, line 4:\n      o4: {inputs: I2, cost: 0.01, selectivty: 1}\n"
            "                                   ^^^^^^^^^^\n"
            "no key selectivty in operator o4; the keys are kind, inputs, cost, fixed, "
            "selectivity, window, table, unit, varying, sticky, node, tuple_bytes. Did you mean "
            "selectivity?",
        ),
        (
            "fixed: 0.05",
            "fixed: -1",
            "full.yaml, line 6:\n      w1: {kind: sql_write, inputs: [o1], cost: 0.01, fixed: -1, "
            "table: t1, node: n2}\n      ^^\n"
            "operator w1 has the fixed load -1. Give zero or more.",
        ),
        (
            "inputs: [I1], cost: 0.014",
            "inputs: [j1], cost: 0.014",
            "full.yaml, line 3:\n      o1: {inputs: [j1], cost: 0.014, selectivity: 1.0}\n"
            "      ^^\nthese read each other in a circle: o1 -> j1 -> o1. Break it.",
        ),
    ],
)
def test_errors_point_at_the_text(old: str, new: str, text: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_abstract(FULL.replace(old, new), "full.yaml")
    assert str(raised.value) == text
