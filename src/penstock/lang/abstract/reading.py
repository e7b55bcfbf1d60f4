"""Reading an abstract network: text in, a checked network out, errors that point at the text."""

from __future__ import annotations

from pathlib import Path

from penstock.lang.abstract.quick import network_of_json
from penstock.lang.abstract.sections import PointingAtNames, each_entry
from penstock.lang.deployment.yamlfile import Section, Value, YamlFile
from penstock.lang.files import text_of
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator

_SECTIONS = ("inputs", "operators", "nodes", "network")
_INPUT = ("rate", "lower", "peak", "tuple_bytes")
_OPERATOR = (
    "kind",
    "inputs",
    "cost",
    "fixed",
    "selectivity",
    "window",
    "table",
    "unit",
    "varying",
    "sticky",
    "node",
    "tuple_bytes",
)
_NODE = ("cpu", "bandwidth")
_NETWORK = ("bandwidth", "transfer_cost")


def is_abstract(text: str, origin: str) -> bool:
    """Whether a text is meant as an abstract network rather than as a deployment.

    >>> is_abstract("operators: {}", "a.yaml"), is_abstract("streams: {}", "a.yaml")
    (True, False)
    """
    return "operators" in YamlFile(origin, text).root().entries()


def abstract_in(text: str, origin: str) -> AbstractNetwork | None:
    """The abstract network that ``text`` describes, or None if it is meant as a deployment.

    >>> abstract_in("streams: {}", "a.yaml") is None
    True
    """
    if (found := network_of_json(text)) is not None:
        return found
    root = YamlFile(origin, text).root()
    return _network(root) if "operators" in root.entries() else None


def read_abstract(path: Path) -> AbstractNetwork:
    """The abstract network in the file at ``path``, YAML or JSON."""
    return parse_abstract(text_of(path), str(path))


def parse_abstract(text: str, origin: str) -> AbstractNetwork:
    """The abstract network that ``text`` describes; ``origin`` is what errors call the text.

    >>> network = parse_abstract('''
    ... inputs: {I1: {rate: 100}, I2: {}}
    ... operators:
    ...   o1: {inputs: [I1], cost: 0.014}
    ...   j1: {kind: join, inputs: [o1, I2], cost: 0.00001, selectivity: 0.1, window: 10}
    ... nodes: {n1: {}, n2: {cpu: 2}}
    ... ''', "two.yaml")
    >>> [operator.name for operator in network.operators], network.nodes[1].cpu
    (['o1', 'j1'], 2)
    """
    return network_of_json(text) or _network(YamlFile(origin, text).root())


def _network(root: Value) -> AbstractNetwork:
    top = root.section(_SECTIONS)
    inputs = tuple(each_entry(top["inputs"], "input", _INPUT, _input))
    operators = tuple(each_entry(top["operators"], "operator", _OPERATOR, _operator))
    nodes = tuple(each_entry(top["nodes"], "node", _NODE, _node))
    shared = top["network"].section(_NETWORK, "the network") if "network" in top else None
    with PointingAtNames(top, ("operators", "inputs", "nodes")):
        return AbstractNetwork(
            inputs,
            operators,
            nodes,
            _number(shared, "bandwidth") if shared else None,
            _number_or(shared, "transfer_cost", 0.0) if shared else 0.0,
        )


def _input(name: str, section: Section) -> AbstractInput:
    return AbstractInput(
        name,
        _number(section, "rate"),
        _number_or(section, "lower", 0.0),
        _number(section, "peak"),
        _number_or(section, "tuple_bytes", 0.0),
    )


def _operator(name: str, section: Section) -> AbstractOperator:
    varies = "selectivity" in section and section.text("selectivity") == "varying"
    return AbstractOperator(
        name,
        _inputs(section["inputs"]),
        section["cost"].number(),
        None if varies else _number_or(section, "selectivity", 1.0),
        section.text("kind", "operator"),
        _number(section, "window"),
        section.text("table"),
        section.text("unit"),
        section.flag("varying", False),
        section.flag("sticky", False),
        section.text("node"),
        _number(section, "tuple_bytes"),
        _number_or(section, "fixed", 0.0),
    )


def _inputs(value: Value) -> tuple[str, ...]:
    given = value.plain()
    names = given if isinstance(given, list) else [given]
    if not all(isinstance(name, str) for name in names):
        raise value.unfit("a list of names")
    return tuple(names)


def _node(name: str, section: Section) -> AbstractNode:
    return AbstractNode(name, _number_or(section, "cpu", 1.0), _number(section, "bandwidth"))


def _number(section: Section, key: str) -> float | None:
    return section[key].number() if key in section else None


def _number_or(section: Section, key: str, default: float) -> float:
    return section[key].number() if key in section else default
