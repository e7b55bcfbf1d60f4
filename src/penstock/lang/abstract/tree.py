"""Reading a tree file: nodes with parents, sources and operators on them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ruamel.yaml.nodes import MappingNode, SequenceNode

from penstock.errors import InputError
from penstock.lang.abstract.sections import PointingAtNames, each_entry
from penstock.lang.deployment.yamlfile import Section, Value, YamlFile
from penstock.lang.files import text_of
from penstock.model.node_tree import NodeTree
from penstock.model.tree_network import TreeInput, TreeNetwork, TreeOperator

_SECTIONS = ("nodes", "inputs", "operators")

_T = TypeVar("_T")


def read_tree(path: Path) -> TreeNetwork:
    """The tree in the file at ``path``, YAML or JSON."""
    return parse_tree(text_of(path), str(path))


def parse_tree(text: str, origin: str) -> TreeNetwork:
    """The tree that ``text`` describes; ``origin`` is what errors call the text.

    >>> tree = parse_tree('''
    ... nodes:     {root: {}, a: {parent: root}, b: {parent: root}}
    ... inputs:    {m1: {node: a}, m2: {node: b}}
    ... operators:
    ...   f: {inputs: [m1], size: 3.5, node: a}
    ...   g: {inputs: [f, m2], size: 2, node: root}
    ... ''', "two.yaml")
    >>> tree.nodes.root, tree.origins["g"]
    ('root', 'root')
    """
    return _tree_of_json(text) or _tree(YamlFile(origin, text).root())


def tree_in(text: str, origin: str) -> TreeNetwork | None:
    """The tree that ``text`` describes, or None if it is meant as another kind of file.

    >>> tree_in("operators: {}\\nnodes: {n1: {cpu: 1}}", "a.yaml") is None
    True
    """
    return parse_tree(text, origin) if is_tree(text, origin) else None


_DEPLOYED = {"streams", "queries"}
"""Sections that only deployment files have."""


def is_tree(text: str, origin: str) -> bool:
    """Whether some node has a parent, or some operator a size, and it is no deployment file.

    >>> is_tree("nodes: {a: {}, b: {parent: a}}", "a.yaml"), is_tree("nodes: {a: {}}", "a.yaml")
    (True, False)
    """
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        root = YamlFile(origin, text).root()
        if _DEPLOYED & root.entries().keys():
            return False
        return _has(root, "nodes", "parent") or _has(root, "operators", "size")
    if isinstance(record, dict) and _DEPLOYED & record.keys():
        return False
    return _has_in(record, "nodes", "parent") or _has_in(record, "operators", "size")


def _has_in(record: object, section: str, key: str) -> bool:
    whole = record.get(section) if isinstance(record, dict) else None
    entries = whole.values() if isinstance(whole, dict) else ()
    return any(isinstance(entry, dict) and key in entry for entry in entries)


def _has(root: Value, section: str, key: str) -> bool:
    whole = root.entries().get(section)
    if whole is None or not isinstance(whole.node, MappingNode):
        return False
    entries = whole.entries().values()
    return any(isinstance(entry.node, MappingNode) and key in entry.entries() for entry in entries)


def _tree(root: Value) -> TreeNetwork:
    top = root.section(_SECTIONS)
    parents = dict(each_entry(top["nodes"], "node", ("parent",), _parent))
    inputs = tuple(_read(top, "inputs", "input", ("node",), _input))
    operators = tuple(_read(top, "operators", "operator", ("inputs", "size", "node"), _operator))
    with PointingAtNames(top, ("nodes",)):
        nodes = NodeTree(parents)
    with PointingAtNames(top, ("operators", "inputs", "nodes")):
        return TreeNetwork(nodes, inputs, operators)


def _read(
    top: Section,
    section: str,
    kind: str,
    allowed: Sequence[str],
    read: Callable[[str, Section], _T],
) -> Iterator[_T]:
    """The entries of a section that may be left out or empty."""
    return each_entry(top[section], kind, allowed, read) if section in top else iter(())


def _parent(name: str, section: Section) -> tuple[str, str | None]:
    return name, section.text("parent") or None


def _input(name: str, section: Section) -> TreeInput:
    return TreeInput(name, section["node"].text("the name of a node"))


def _operator(name: str, section: Section) -> TreeOperator:
    return TreeOperator(
        name,
        _names(section["inputs"]),
        section["size"].number(),
        section["node"].text("the name of a node"),
    )


def _names(value: Value) -> tuple[str, ...]:
    if not isinstance(value.node, SequenceNode):
        return (value.text("a list of names"),)
    return tuple(
        Value(value.file, node, f"an entry of {value.what}").text("a name")
        for node in value.node.value
    )


def _tree_of_json(text: str) -> TreeNetwork | None:
    """The quick way, for large trees that programs write; None where anything is odd.

    What is odd is left to the slow way, which says where it is wrong.
    """
    if not text.lstrip().startswith("{"):
        return None
    try:
        return _tree_of(json.loads(text, object_pairs_hook=_unique))
    except (AttributeError, InputError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _tree_of(record: dict[str, Any]) -> TreeNetwork:
    if not {"nodes", "operators"} <= record.keys() <= set(_SECTIONS):
        raise ValueError
    return TreeNetwork(
        NodeTree({name: _parent_of(node) for name, node in record["nodes"].items()}),
        tuple(_input_of(name, written) for name, written in record.get("inputs", {}).items()),
        tuple(_operator_of(name, written) for name, written in record["operators"].items()),
    )


def _parent_of(record: dict[str, Any]) -> str | None:
    if record.keys() - {"parent"}:
        raise ValueError
    return _text(record["parent"]) if "parent" in record else None


def _input_of(name: str, record: dict[str, Any]) -> TreeInput:
    if record.keys() != {"node"}:
        raise ValueError
    return TreeInput(name, _text(record["node"]))


def _operator_of(name: str, record: dict[str, Any]) -> TreeOperator:
    size, inputs = record["size"], record["inputs"]
    if record.keys() != {"inputs", "size", "node"} or not isinstance(inputs, list):
        raise ValueError
    if isinstance(size, bool) or not isinstance(size, int | float):
        raise ValueError
    return TreeOperator(name, tuple(map(_text, inputs)), size, _text(record["node"]))


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError
    return record
