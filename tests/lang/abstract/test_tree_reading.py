"""Reading tree files, and errors that point at the text."""

import json

import pytest

from penstock.errors import InputError
from penstock.lang.abstract import parse_tree, tree_in

TREE = """\
nodes:     {root: {}, a: {parent: root}, b: {parent: root}}
inputs:    {m1: {node: a}, m2: {node: b}}
operators:
  f: {inputs: [m1], size: 3.5, node: a}
  g: {inputs: [f, m2], size: 2, node: root}
"""


def test_yaml_and_json_give_the_same_tree() -> None:
    text = json.dumps(
        {
            "nodes": {"root": {}, "a": {"parent": "root"}, "b": {"parent": "root"}},
            "inputs": {"m1": {"node": "a"}, "m2": {"node": "b"}},
            "operators": {
                "f": {"inputs": ["m1"], "size": 3.5, "node": "a"},
                "g": {"inputs": ["f", "m2"], "size": 2, "node": "root"},
            },
        }
    )
    assert parse_tree(text, "t.json") == parse_tree(TREE, "t.yaml") == tree_in(text, "t.json")


def test_kinds_of_files_are_told_apart() -> None:
    assert tree_in(TREE, "t.yaml") is not None
    abstract = "inputs: {I1: {}}\noperators: {o: {inputs: [I1], cost: 1}}\nnodes: {n1: {}}\n"
    assert tree_in(abstract, "a.yaml") is None
    assert tree_in("streams: {a: {}}\nnodes: {a: {cores: 1}}", "ami.yaml") is None
    assert tree_in('{"operators": {"o": {"cost": 1}}, "nodes": {"n": {}}}', "a.json") is None


def test_names_may_look_like_numbers_and_sections_may_be_empty() -> None:
    tree = parse_tree("nodes: {1: {}, 2: {parent: 1}}\ninputs: {7: {node: 2}}", "t.yaml")
    assert tree.nodes.parents == {"1": None, "2": "1"} and tree.operators == ()
    tree = parse_tree(
        "nodes: {1: }\ninputs: {7: {node: 1}}\noperators: {o: {inputs: 7, size: 1, node: 1}}",
        "t.yaml",
    )
    assert tree.operators[0].inputs == ("7",)


def _refused(old: str, new: str) -> str:
    assert old in TREE
    with pytest.raises(InputError) as raised:
        parse_tree(TREE.replace(old, new, 1), "t.yaml")
    return str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        ("[f, m2]", "[f, m3]", 5, "operator g reads m3, which does not exist"),
        ("3.5, node: a", "3.5, node: b", 4, "operator f is on b, where its input m1 from a does"),
        ("a: {parent: root}", "a: {parent: c}", 1, "node a has the parent c, which does not"),
        ("a: {parent: root}", "a: {}", 1, "2 nodes have no parent: root, a."),
        ("root: {}", "root: {parent: a}", 1, "is its own ancestor: root -> a -> root."),
        ("b: {parent", "a: {parent", 1, "nodes of t.yaml has the key a twice."),
        ("m2: {node", "m1: {node", 2, "inputs of t.yaml has the key m1 twice."),
        ("  g: {", "  m2: {", 5, "two inputs or operators are called m2."),
        ("{inputs: [m1],", "{inputs: [g],", 4, "operator f is on a, where its input g from root"),
        ("[m1], size: 3.5", "[m1], size: big", 4, "size of operator f must be a number; it is"),
        ("[m1], size: 3.5,", "[m1],", 4, "operator f has no size. Add size: …"),
        ("[m1]", "[]", 4, "operator f reads nothing."),
        ("{node: a}", "{nod: a}", 2, "no key nod in input m1; the keys are node. Did you mean"),
        ("nodes: ", "noodles: ", 1, "no key noodles in t.yaml; the keys are nodes, inputs,"),
    ],
)
def test_errors_point_at_the_text(old: str, new: str, line: int, text: str) -> None:
    told = _refused(old, new)
    assert text in told and f"t.yaml, line {line}:" in told, told


def test_errors_in_json_point_at_the_text_as_well() -> None:
    text = '{"nodes": {"r": {}},\n "operators": {"f": {"inputs": ["x"], "size": 1, "node": "r"}}}'
    with pytest.raises(InputError, match="operator f reads x, which does not exist") as raised:
        parse_tree(text, "t.json")
    assert "t.json, line 2:" in str(raised.value)
