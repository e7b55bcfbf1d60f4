"""Abstract networks: operators known by cost and selectivity alone, and the nodes to place them on.

This is what planners are told about a deployment, and what people write who want to study a
placement without queries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from penstock.errors import InputError, listed, suggestion

STICKY_KINDS = ("sql_read", "sql_write")
KINDS = (
    "operator",
    "filter",
    "switch",
    "map",
    "union",
    "aggregate",
    "join",
    "table_join",
    "python",
    "retime",
    *STICKY_KINDS,
)


@dataclass(frozen=True)
class AbstractInput:
    """A stream from outside.

    ``rate_per_s`` is typical and ``peak_per_s`` the most that was seen, None where not known;
    ``lower_per_s`` is never fallen below.
    """

    name: str
    rate_per_s: float | None = None
    lower_per_s: float = 0.0
    peak_per_s: float | None = None
    tuple_bytes: float = 0.0

    def __post_init__(self) -> None:
        what = f"input {self.name}"
        for key in ("rate_per_s", "peak_per_s"):
            if getattr(self, key) is not None:
                _at_least_zero(what, key, getattr(self, key))
        _at_least_zero(what, "lower_per_s", self.lower_per_s)
        _at_least_zero(what, "tuple_bytes", self.tuple_bytes)
        if self.rate_per_s is not None and self.rate_per_s < self.lower_per_s:
            raise InputError(
                f"{what} has a typical rate of {self.rate_per_s:g} below its lower bound of "
                f"{self.lower_per_s:g}",
                hint="Lower the bound or raise the rate.",
            )


@dataclass(frozen=True)
class AbstractOperator:
    """An operator by what it costs and lets through.

    ``cost_s`` is processor seconds per input tuple, for a join per pair of tuples that meet within
    ``window_s``; ``fixed_cpu`` is processor seconds per second whatever comes in. ``varying`` says
    that the selectivity is only typical, None that not even that is known. Operators of the same
    ``table`` or ``unit`` go to the same node; a sticky one stays where it was first put. ``node``
    settles where that is.

    >>> AbstractOperator("w1", ("o2",), cost_s=0.01, kind="sql_write", table="t1").is_sticky
    True
    """

    name: str
    inputs: tuple[str, ...]
    cost_s: float
    selectivity: float | None = 1.0
    kind: str = "operator"
    window_s: float | None = None
    table: str = ""
    unit: str = ""
    varying: bool = False
    sticky: bool = False
    node: str = ""
    tuple_bytes: float | None = None
    fixed_cpu: float = 0.0

    def __post_init__(self) -> None:
        what = f"operator {self.name}"
        if self.kind not in KINDS:
            raise InputError(
                f"{what} is of kind {self.kind}; the kinds are {listed(KINDS)}",
                hint=suggestion(self.kind, KINDS),
            )
        if not self.inputs:
            raise InputError(f"{what} reads nothing", hint="Name its inputs: inputs: [I1].")
        _at_least_zero(what, "cost", self.cost_s)
        _at_least_zero(what, "fixed load", self.fixed_cpu)
        if self.selectivity is not None:
            _at_least_zero(what, "selectivity", self.selectivity)
        if self.tuple_bytes is not None:
            _at_least_zero(what, "tuple_bytes", self.tuple_bytes)
        self._check_join(what)

    def _check_join(self, what: str) -> None:
        if self.kind != "join":
            if self.window_s is not None:
                raise InputError(
                    f"{what} has a window and is no join", hint="Remove it, or add kind: join."
                )
            return
        if len(self.inputs) != 2:
            raise InputError(
                f"join {self.name} reads {len(self.inputs)} streams", hint="Give it two."
            )
        if self.window_s is None or not 0 < self.window_s < math.inf:
            raise InputError(
                f"join {self.name} has the window {self.window_s}",
                hint="Give the seconds within which tuples meet: window: 10.",
            )

    @property
    def is_join(self) -> bool:
        return self.kind == "join"

    @property
    def is_sticky(self) -> bool:
        return self.sticky or self.kind in STICKY_KINDS

    @property
    def is_bound(self) -> bool:
        """Whether it stays on its node: it is sticky, or somebody has said where it runs."""
        return self.is_sticky or bool(self.node)

    @property
    def is_varying(self) -> bool:
        return self.varying or self.selectivity is None

    @property
    def group(self) -> str:
        """What it is placed with: operators of the same group are one unit."""
        return f"table {self.table}" if self.table else self.unit or self.name


@dataclass(frozen=True)
class AbstractOpening:
    """What a node has to do once, as soon as it has one of some operators, and however many.

    ``fixed_cpu`` is processor seconds per second whatever comes in, ``cost_s`` processor seconds
    per tuple of the stream ``input``.
    """

    name: str
    operators: tuple[str, ...]
    input: str
    fixed_cpu: float = 0.0
    cost_s: float = 0.0

    def __post_init__(self) -> None:
        what = f"opening {self.name}"
        if not self.operators:
            raise InputError(f"{what} is for no operator", hint="Name those that need it.")
        _at_least_zero(what, "cost", self.cost_s)
        _at_least_zero(what, "fixed load", self.fixed_cpu)


@dataclass(frozen=True)
class AbstractNode:
    """A node: processor seconds it can give in a second, and bytes it can send and receive."""

    name: str
    cpu: float = 1.0
    bandwidth_per_s: float | None = None

    def __post_init__(self) -> None:
        _above_zero(f"node {self.name}", "cpu", self.cpu)
        if self.bandwidth_per_s is not None:
            _above_zero(f"node {self.name}", "bandwidth", self.bandwidth_per_s)


@dataclass(frozen=True)
class AbstractNetwork:
    """Inputs, operators and nodes, checked: names differ, all that is read exists and is read.

    ``transfer_cost_s`` is processor time per tuple moved between nodes, half at either end.
    ``openings`` are paid by every node that has one of their operators, once. Operators are kept in
    an order in which each comes after all it reads.

    >>> network = AbstractNetwork(
    ...     (AbstractInput("I1"),),
    ...     (AbstractOperator("o2", ("o1",), 0.006), AbstractOperator("o1", ("I1",), 0.014)),
    ...     (AbstractNode("n1"), AbstractNode("n2")),
    ... )
    >>> [operator.name for operator in network.operators]
    ['o1', 'o2']
    """

    inputs: tuple[AbstractInput, ...]
    operators: tuple[AbstractOperator, ...]
    nodes: tuple[AbstractNode, ...]
    bandwidth_per_s: float | None = None
    transfer_cost_s: float = 0.0
    openings: tuple[AbstractOpening, ...] = ()

    def __post_init__(self) -> None:
        _check_filled(self)
        names = [
            *(stream.name for stream in self.inputs),
            *(operator.name for operator in self.operators),
        ]
        _check_differ(names, "inputs or operators")
        _check_differ([node.name for node in self.nodes], "nodes")
        _at_least_zero("the network", "transfer_cost", self.transfer_cost_s)
        if self.bandwidth_per_s is not None:
            _above_zero("the network", "bandwidth", self.bandwidth_per_s)
        object.__setattr__(self, "operators", _ordered(self.operators, names))
        self._check_read()
        self._check_nodes()
        self._check_openings()

    @cached_property
    def readers(self) -> Mapping[str, tuple[AbstractOperator, ...]]:
        """The operators that read each input and each operator's output; twice if they do."""
        readers: dict[str, list[AbstractOperator]] = {stream.name: [] for stream in self.inputs}
        readers |= {operator.name: [] for operator in self.operators}
        for operator in self.operators:
            for name in operator.inputs:
                readers[name].append(operator)
        return {name: tuple(found) for name, found in readers.items()}

    def _check_read(self) -> None:
        for stream in self.inputs:
            if not self.readers[stream.name]:
                raise InputError(
                    f"nobody reads input {stream.name}",
                    hint="Remove it, or let an operator read it.",
                )

    def _check_openings(self) -> None:
        _check_differ([opening.name for opening in self.openings], "openings")
        for opening in self.openings:
            operators = {operator.name for operator in self.operators}
            unknown = [name for name in opening.operators if name not in operators]
            if unknown or opening.input not in self.readers:
                missing = unknown[0] if unknown else opening.input
                raise InputError(
                    f"opening {opening.name} names {missing}, which is not there",
                    hint="Name operators of the network, and a stream of it.",
                )

    def _check_nodes(self) -> None:
        names = [node.name for node in self.nodes]
        wanted: dict[str, str] = {}
        for operator in self.operators:
            if operator.node and operator.node not in names:
                raise InputError(
                    f"operator {operator.name} is put on {operator.node}; "
                    f"the nodes are {listed(names)}",
                    hint=suggestion(operator.node, names),
                )
            if operator.node and wanted.setdefault(operator.group, operator.node) != operator.node:
                raise InputError(
                    f"operators of {operator.group} are put on {wanted[operator.group]} "
                    f"and on {operator.node}",
                    hint="They have to run on the same node.",
                )


def _check_filled(network: AbstractNetwork) -> None:
    for section in ("inputs", "operators", "nodes"):
        if not getattr(network, section):
            raise InputError(f"an abstract network without {section}", hint="Give at least one.")


def _check_differ(names: list[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"two {what} are called {name}", hint="Rename one of them.")
        seen.add(name)


def _ordered(
    operators: tuple[AbstractOperator, ...], names: list[str]
) -> tuple[AbstractOperator, ...]:
    """Operators behind what they read; as they were given, where that already holds."""
    by_name = {operator.name: operator for operator in operators}
    known, in_order = set(names), True
    seen = known - by_name.keys()
    for operator in operators:
        for name in operator.inputs:
            if name not in known:
                raise InputError(
                    f"operator {operator.name} reads {name}, which does not exist",
                    hint=suggestion(name, names),
                )
        in_order = in_order and seen.issuperset(operator.inputs)
        seen.add(operator.name)
    return operators if in_order else _sorted(by_name)


def _sorted(by_name: Mapping[str, AbstractOperator]) -> tuple[AbstractOperator, ...]:
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for operator in by_name.values():
        sorter.add(operator.name, *(name for name in operator.inputs if name in by_name))
    try:
        return tuple(by_name[name] for name in sorter.static_order())
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise InputError(f"these read each other in a circle: {circle}", hint="Break it.") from None


def _at_least_zero(what: str, name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise InputError(f"{what} has the {name} {value:g}", hint="Give zero or more.")


def _above_zero(what: str, name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError(f"{what} has the {name} {value:g}", hint="Give more than zero.")
