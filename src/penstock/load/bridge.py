"""From a deployment to an abstract network: what planners are told about real queries.

The units are the fragments, because that is what runs on a node as one. Costs and selectivities
are the measured ones; what has not been measured is not made up:

- an operator whose cost could not be told apart from reading counts as free;
- an operator whose selectivity is not known gives a stream whose rate is a variable of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.errors import InputError, listed
from penstock.load.costs import READING, TRANSFER, CostTable
from penstock.load.estimate import estimate
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.model.estimates import OperatorEstimate
from penstock.model.fragments import Fragment
from penstock.model.network import Network, NodeSpec
from penstock.model.operators import Operator, SqlRead


def abstract_network(
    network: Network,
    fragments: Sequence[Fragment],
    nodes: Sequence[NodeSpec],
    costs: CostTable,
    rates_per_s: Mapping[str, float],
    measured: Mapping[str, OperatorEstimate] | None = None,
) -> AbstractNetwork:
    """The fragments as operators with cost and selectivity, on the nodes of the deployment.

    ``rates_per_s`` are those of outside streams, where known. ``measured`` are costs and
    selectivities of whole fragments as they were in a run, per row in; a fragment that has them is
    one operator, whatever the table says about its parts.
    """
    if not nodes:
        raise InputError(
            "the deployment names no nodes to place anything on",
            hint="Add some: nodes: {a: {cores: 1}, b: {cores: 1}}.",
        )
    if not fragments:
        raise InputError(
            "the deployment has no queries whose results go anywhere",
            hint="Add one under queries:, or give one that has to: none a destination.",
        )
    known = estimate(network, rates_per_s, costs)
    repeated = _repeated(network, fragments)
    bridge = _Bridge(network, known, measured or {}, costs.of(READING) or 0.0, repeated)
    units = tied_units(fragments)
    operators = tuple(
        one for fragment in fragments for one in bridge.operators(fragment, units[fragment.name])
    )
    read = {name for one in operators for name in one.inputs}
    return AbstractNetwork(
        tuple(
            AbstractInput(stream.name, rates_per_s.get(stream.name))
            for stream in network.streams
            if stream.name in read
        ),
        operators,
        tuple(AbstractNode(node.name, float(node.cores)) for node in nodes),
        transfer_cost_s=(costs.of(TRANSFER) or 0.0) / 1e6,
    )


def unmeasured_kinds(fragments: Iterable[Fragment], costs: CostTable) -> tuple[str, ...]:
    """What to say about kinds of operators that count as free, if there are any."""
    kinds = sorted({one.kind for part in fragments for one in part.operators})
    free = [kind for kind in kinds if costs.of(kind) is None]
    note = f"too cheap to be told apart from reading, and counted as free: {listed(free)}"
    return (note,) if free else ()


@dataclass(frozen=True)
class _Bridge:
    """What is needed to say what the operators of a fragment are."""

    network: Network
    known: Mapping[str, OperatorEstimate]
    measured: Mapping[str, OperatorEstimate]
    reading_us: float
    repeated: frozenset[str]

    def operators(self, fragment: Fragment, unit: str) -> list[AbstractOperator]:
        """Those of one fragment, named for it: what several fragments repeat runs in each."""
        node = self._pinned(fragment)
        if fragment.name in self.measured:
            return [replace(self._whole(fragment, unit), node=node)]
        names = {name: self._end(name) for name in fragment.inputs}
        made = []
        if self.reading_us:
            names = {name: f"{fragment.name}/{name}/read" for name in fragment.inputs}
            made = [
                AbstractOperator(names[name], (self._end(name),), self.reading_us / 1e6, unit=unit)
                for name in fragment.inputs
            ]
        for operator in fragment.operators:
            inputs = tuple(names[input.stream] for input in operator.inputs)
            for at, output in enumerate(operator.outputs):
                names[output] = self._name(fragment, output)
                made.append(self._operator(names[output], operator, inputs, unit, at == 0))
        if not fragment.operators:
            inputs = (names[fragment.output],)
            name = self._name(fragment, fragment.output)
            made.append(AbstractOperator(name, inputs, 0.0, unit=unit))
        return [replace(one, node=node) for one in made]

    def _whole(self, fragment: Fragment, unit: str) -> AbstractOperator:
        """A fragment as one operator, as it was in a run."""
        measured = self.measured[fragment.name]
        return AbstractOperator(
            self._name(fragment, fragment.output),
            tuple(self._end(name) for name in fragment.inputs),
            (measured.cost_us or 0.0) / 1e6,
            measured.selectivity,
            unit=unit,
            sticky=not all(operator.movable for operator in fragment.operators),
        )

    def _operator(
        self, name: str, operator: Operator, inputs: tuple[str, ...], unit: str, first: bool
    ) -> AbstractOperator:
        """One output of an operator; the work is counted with the first."""
        estimate = self.known[operator.name]
        return AbstractOperator(
            name,
            inputs,
            (estimate.cost_us or 0.0) / 1e6 if first else 0.0,
            estimate.selectivity,
            unit=unit,
            sticky=not operator.movable,
        )

    def _end(self, stream: str) -> str:
        """What a stream between fragments is called: outside ones by their own name."""
        outside = any(one.name == stream for one in self.network.streams)
        # A fragment is called like the stream it gives.
        repeated = stream in self.repeated and not outside
        return f"{stream}/{stream}" if repeated else stream

    def _name(self, fragment: Fragment, stream: str) -> str:
        """A stream inside a fragment: by its own name, unless several fragments make it."""
        return f"{fragment.name}/{stream}" if stream in self.repeated else stream

    def _pinned(self, fragment: Fragment) -> str:
        """The node that a query of the fragment asks for."""
        wanted = [self.network.query(name).on for name in fragment.queries]
        return next((one for one in wanted if one), "")


def _repeated(network: Network, fragments: Sequence[Fragment]) -> frozenset[str]:
    """Streams that cannot go by their own name: several fragments make them, or the outside."""
    made = Counter(name for part in fragments for one in part.operators for name in one.outputs)
    outside = {stream.name for stream in network.streams}
    return frozenset(name for name, count in made.items() if count > 1) | outside


def tied_units(fragments: Sequence[Fragment]) -> Mapping[str, str]:
    """The unit of every fragment: those that use the same database table are one."""
    units = {fragment.name: fragment.name for fragment in fragments}
    users: dict[tuple[str, str], str] = {}
    for fragment in fragments:
        for table in _tables(fragment):
            first = users.setdefault(table, units[fragment.name])
            if units[fragment.name] != first:
                joined = f"{first} + {units[fragment.name]}"
                old = {first, units[fragment.name]}
                units = {name: joined if unit in old else unit for name, unit in units.items()}
                users = {one: joined if unit in old else unit for one, unit in users.items()}
    return units


def _tables(fragment: Fragment) -> set[tuple[str, str]]:
    written = {(one.database.url, one.table) for one in fragment.writes}
    read = {
        (one.database.url, one.table.stored_name)
        for one in fragment.operators
        if isinstance(one, SqlRead)
    }
    return written | read
