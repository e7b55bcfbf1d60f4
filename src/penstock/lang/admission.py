"""Reading a stated case of admission: nodes, links, applications, a request, candidate graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml.nodes import SequenceNode

from penstock.errors import InputError, listed, suggestion
from penstock.lang.deployment.yamlfile import Section, Value, YamlFile
from penstock.lang.files import text_of
from penstock.model.composition import PlanOperator, QueryPlan, RunningApp, RunningComponent

_SECTIONS = ("nodes", "links", "apps", "request", "graphs")
_NODE = ("load", "serves", "load_tau")
_APP = ("limit", "time", "components")
_OPERATOR = ("inputs", "need", "tau", "bandwidth", "sigma", "selectivity")
_SERVES = ("shared", "fcfs")


@dataclass(frozen=True)
class StatedNode:
    """A node as written: its load, how it serves, and the sum of load x tau on it."""

    load: float
    serves: str = "shared"
    load_tau_s: float = 0.0


@dataclass(frozen=True)
class AdmissionCase:
    """Everything an admission file says; ``links`` by their ends, with name and load."""

    nodes: Mapping[str, StatedNode]
    links: Mapping[frozenset[str], tuple[str, float]]
    apps: tuple[RunningApp, ...]
    plan: QueryPlan
    graphs: Mapping[str, Mapping[str, str]]


def read_admission(path: Path) -> AdmissionCase:
    """The case in the file at ``path``, YAML or JSON."""
    return parse_admission(text_of(path), str(path))


def parse_admission(text: str, origin: str) -> AdmissionCase:
    """The case that ``text`` states; ``origin`` is what errors call the text.

    >>> case = parse_admission('''
    ... nodes: {v1: {load: 0.4}, v2: {}}
    ... links: {v1-v2: {load: 0.1}}
    ... request: {limit: 1.5, operators: {o1: {need: 0.1, tau: 0.04}}}
    ... graphs: {g1: {o1: v1}}
    ... ''', "case.yaml")
    >>> case.nodes["v1"].load, case.plan.limit_s, dict(case.graphs["g1"])
    (0.4, 1.5, {'o1': 'v1'})
    """
    top = YamlFile(origin, text).root().section(_SECTIONS)
    nodes = {name: _node(name, value) for name, value in top["nodes"].entries().items()}
    links = _links(top, nodes)
    apps = tuple(_app(name, value, nodes) for name, value in _optional(top, "apps"))
    plan = _plan(top["request"])
    graphs = {
        name: _graph(name, value, plan, nodes) for name, value in top["graphs"].entries().items()
    }
    return AdmissionCase(nodes, links, apps, plan, graphs)


def _optional(top: Section, key: str) -> list[tuple[str, Value]]:
    return list(top[key].entries().items()) if key in top else []


def _node(name: str, value: Value) -> StatedNode:
    if value.is_nothing:
        return StatedNode(0.0)
    written = value.section(_NODE, f"node {name}")
    serves = written.text("serves", "shared")
    if serves not in _SERVES:
        raise InputError(
            f"node {name} serves {serves}",
            hint=f"The ways are {listed(_SERVES)}. {suggestion(serves, _SERVES)}".strip(),
            place=written["serves"].place,
        )
    if serves == "fcfs" and "load_tau" not in written:
        raise InputError(
            f"node {name} serves fcfs and has no load_tau",
            hint="Give the sum of load x tau over what runs on it.",
            place=value.place,
        )
    return StatedNode(_load(written, f"node {name}"), serves, _amount(written, "load_tau"))


def _load(written: Section, what: str) -> float:
    load = _amount(written, "load")
    if load > 1:
        raise InputError(
            f"{what} has a load of {load:g}",
            hint="Give the share of its capacity in use, at most 1.",
            place=written["load"].place,
        )
    return load


def _amount(written: Section, key: str) -> float:
    """A number of zero or more, zero if it is not given."""
    if key not in written:
        return 0.0
    value = written[key].number()
    if value < 0:
        raise InputError(
            f"{written.what} has a {key} of {value:g}",
            hint="Give zero or more.",
            place=written[key].place,
        )
    return float(value)


def _links(
    top: Section, nodes: Mapping[str, StatedNode]
) -> dict[frozenset[str], tuple[str, float]]:
    found: dict[frozenset[str], tuple[str, float]] = {}
    for name, value in _optional(top, "links"):
        with value.pointing():
            ends = _ends(name, nodes)
            if ends in found:
                raise InputError(
                    f"links {found[ends][0]} and {name} are the same",
                    hint="A link goes both ways; give it once.",
                )
        load = 0.0
        if not value.is_nothing:
            load = _load(value.section(("load",), f"link {name}"), f"link {name}")
        found[ends] = (name, load)
    return found


def _ends(name: str, nodes: Mapping[str, StatedNode]) -> frozenset[str]:
    """The nodes a link's name joins; names of nodes may have hyphens themselves."""
    parts = name.split("-")
    for at in range(1, len(parts)):
        one, other = "-".join(parts[:at]), "-".join(parts[at:])
        if one in nodes and other in nodes and one != other:
            return frozenset((one, other))
    raise InputError(
        f"link {name} joins no two nodes",
        hint=f"Write it as NODE-NODE. The nodes are {listed(nodes)}.",
    )


def _app(name: str, value: Value, nodes: Mapping[str, StatedNode]) -> RunningApp:
    written = value.section(_APP, f"application {name}")
    components = [_component(entry, name, nodes) for entry in _listed(written, "components")]
    with value.pointing():
        return RunningApp(
            name, written["limit"].number(), written["time"].number(), tuple(components)
        )


def _component(value: Value, app: str, nodes: Mapping[str, StatedNode]) -> RunningComponent:
    written = value.section(("node", "tau"), f"a component of application {app}")
    return RunningComponent(_known(written["node"], "node", nodes), _amount(written, "tau"))


def _known(value: Value, what: str, names: Mapping[str, object]) -> str:
    name = value.text()
    if name not in names:
        hint = f"There are {listed(names)}. {suggestion(name, names)}".strip()
        raise InputError(f"no {what} {name}", hint=hint, place=value.place)
    return name


def _listed(written: Section, key: str) -> Iterator[Value]:
    if key not in written:
        return
    value = written[key]
    if not isinstance(value.node, SequenceNode):
        raise value.unfit("a list")
    for node in value.node.value:
        yield Value(value.file, node, f"one of the {key} of {written.what}")


def _plan(value: Value) -> QueryPlan:
    written = value.section(("limit", "operators"), "the request")
    operators = tuple(
        _operator(name, entry) for name, entry in written["operators"].entries().items()
    )
    with _pointing_at_request(written):
        return QueryPlan(operators, written["limit"].number())


@contextmanager
def _pointing_at_request(written: Section) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        key = "limit" if "limit" in error.what else "operators"
        raise error.at(written[key].place) from None


def _operator(name: str, value: Value) -> PlanOperator:
    written = value.section(_OPERATOR, f"operator {name}")
    return PlanOperator(
        name,
        tuple(entry.text() for entry in _listed(written, "inputs")),
        _amount(written, "need"),
        _amount(written, "tau"),
        _amount(written, "bandwidth"),
        _amount(written, "sigma"),
        _amount(written, "selectivity") if "selectivity" in written else 1.0,
    )


def _graph(
    name: str, value: Value, plan: QueryPlan, nodes: Mapping[str, StatedNode]
) -> dict[str, str]:
    found = {}
    for operator, node in value.entries().items():
        if operator not in plan.by_name:
            hint = f"There are {listed(plan.by_name)}. {suggestion(operator, plan.by_name)}".strip()
            raise InputError(
                f"graph {name} places {operator}, which the request has not",
                hint=hint,
                place=node.place,
            )
        found[operator] = _known(node, "node", nodes)
    missing = [operator.name for operator in plan.operators if operator.name not in found]
    if missing:
        raise InputError(
            f"graph {name} says no node for {listed(missing)}",
            hint="Give one for every operator.",
            place=value.place,
        )
    return found
