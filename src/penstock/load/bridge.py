"""From a deployment to an abstract network: what planners are told about real queries.

The units are the fragments, because that is what runs on a node as one. Costs and selectivities
are the measured ones; what has not been measured is not made up:

- an operator whose cost could not be told apart from reading counts as free;
- an operator whose selectivity is not known gives a stream whose rate is a variable of its own.

A batch costs the same however few rows it has. So a fragment has a fixed load: the cost of a batch
for every round that a plan must leave room for.

A light fragment is one of the members of its node's bundle, and pays for its share of a round and
of a row; what a round costs all of them is an opening (:mod:`penstock.load.shared_rounds`).

A join costs what its rows cost, which is counted where it reads them, and what the pairs cost that
it gives; how many these are is a variable of its own. Where it is in parts, every part reads all
rows, on the node where it will begin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.errors import InputError, listed
from penstock.load.costs import LIGHT, LIGHT_ROUND, READING, TRANSFER, CostTable, batch_kind
from penstock.load.estimate import estimate
from penstock.load.shared_rounds import SharedRounds
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.model.binding import written_node
from penstock.model.estimates import OperatorEstimate
from penstock.model.fragments import Fragment
from penstock.model.network import Network, NodeSpec
from penstock.model.operators import Operator, SqlRead, WindowJoin
from penstock.model.parts import node_of_part


def abstract_network(
    network: Network,
    fragments: Sequence[Fragment],
    nodes: Sequence[NodeSpec],
    costs: CostTable,
    rates_per_s: Mapping[str, float],
    measured: Mapping[str, OperatorEstimate] | None = None,
    rounds_s: Mapping[str, float] | None = None,
    light: Collection[str] = (),
) -> AbstractNetwork:
    """The fragments as operators with cost and selectivity, on the nodes of the deployment.

    ``rates_per_s`` are those of outside streams, where known. ``measured`` are costs and
    selectivities of whole fragments as they were in a run, per row in; a fragment that has them is
    one operator, whatever the table says about its parts. ``rounds_s`` says every how many seconds
    a fragment must have a batch; one that is not in it has no fixed load. ``light`` are the
    fragments that are members of bundles instead of queries of their own.
    """
    check_placeable(fragments, nodes)
    known = estimate(network, rates_per_s, costs)
    shared = SharedRounds(costs, fragments, light, rounds_s or {})
    names = frozenset(node.name for node in nodes)
    repeated, given_by = _repeated(network, fragments), _given_by_parts(fragments)
    bridge = _Bridge(network, known, measured or {}, costs, repeated, shared, given_by, names)
    units = tied_units(fragments)
    made = {
        fragment.name: bridge.operators(fragment, units[fragment.name]) for fragment in fragments
    }
    operators = tuple(operator for parts in made.values() for operator in parts)
    opening = {name: parts[0].name for name, parts in made.items() if not bridge.is_whole(name)}
    read = {name for operator in operators for name in operator.inputs}
    return AbstractNetwork(
        tuple(
            AbstractInput(stream.name, rates_per_s.get(stream.name))
            for stream in network.streams
            if stream.name in read
        ),
        operators,
        tuple(AbstractNode(node.name, float(node.cores)) for node in nodes),
        transfer_cost_s=(costs.of(TRANSFER) or 0.0) / 1e6,
        openings=shared.openings(opening, bridge.end),
    )


def check_placeable(fragments: Sequence[Fragment], nodes: Sequence[NodeSpec]) -> None:
    """Raises where there is nothing to place, or nothing to place it on."""
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


def unmeasured_batches(
    fragments: Iterable[Fragment], costs: CostTable, light: Collection[str] = ()
) -> tuple[str, ...]:
    """What to say about batches that count as free, if there are any."""
    kinds = {batch_kind(fragment, light) for fragment in fragments}
    if LIGHT in kinds:
        kinds.add(LIGHT_ROUND)
    unknown = sorted(kind for kind in kinds if kind not in costs.batch_ms)
    note = f"what a batch costs has not been measured, and counts as nothing: {listed(unknown)}"
    return (note,) if unknown else ()


def unmeasured_kinds(fragments: Iterable[Fragment], costs: CostTable) -> tuple[str, ...]:
    """What to say about kinds of operators that count as free, if there are any."""
    kinds = sorted({operator.kind for part in fragments for operator in part.operators})
    free = [kind for kind in kinds if costs.of(kind) is None]
    note = f"too cheap to be told apart from reading, and counted as free: {listed(free)}"
    return (note,) if free else ()


_GATHERED = OperatorEstimate(None, selectivity=1.0)


@dataclass(frozen=True)
class _Bridge:
    """What is needed to say what the operators of a fragment are."""

    network: Network
    known: Mapping[str, OperatorEstimate]
    measured: Mapping[str, OperatorEstimate]
    costs: CostTable
    repeated: frozenset[str]
    shared: SharedRounds
    given_by_parts: Mapping[str, str]
    nodes: frozenset[str]

    def is_whole(self, fragment: str) -> bool:
        """Whether all that a fragment costs is counted with its rows."""
        measured = self.measured.get(fragment)
        return measured is not None and not measured.rows_per_batch

    def operators(self, fragment: Fragment, unit: str) -> list[AbstractOperator]:
        """Those of one fragment, named for it: what several fragments repeat runs in each."""
        is_measured = fragment.name in self.measured
        made = [self._whole(fragment)] if is_measured else self._parts(fragment)
        made[0] = replace(made[0], fixed_cpu=self._fixed_cpu(fragment))
        node = written_node(self.network, fragment) or ""
        if fragment.part is not None:
            node = node_of_part(fragment.part, self.nodes)
        return [
            replace(operator, unit=unit, node=node, sticky=fragment.is_bound) for operator in made
        ]

    def _parts(self, fragment: Fragment) -> list[AbstractOperator]:
        names = {name: self.end(name) for name in fragment.inputs}
        made = []
        light_us = self.shared.row_us(fragment)
        reading_us = (self.costs.of(READING) or 0.0) if light_us is None else light_us
        if reading_us:
            names = {name: f"{fragment.name}/{name}/read" for name in fragment.inputs}
            made = [
                AbstractOperator(names[name], (self.end(name),), reading_us / 1e6)
                for name in fragment.inputs
            ]
        for operator in fragment.operators:
            inputs = tuple(names[input.stream] for input in operator.inputs)
            names |= {output: self._name(fragment, output) for output in operator.outputs}
            outputs = [names[output] for output in operator.outputs]
            known = _GATHERED if fragment.gathers is not None else self.known[operator.name]
            parts = _operators(operator, known, inputs, outputs)
            # What a row costs a light fragment is known as a whole.
            made += parts if light_us is None else [replace(part, cost_s=0.0) for part in parts]
            if isinstance(operator, WindowJoin):
                made[-1:] = _given(made[-1], self.shared.pair_us(fragment) / 1e6)
        if not fragment.operators:
            name = self._name(fragment, fragment.output)
            made.append(AbstractOperator(name, (names[fragment.output],), 0.0))
        return made

    def _whole(self, fragment: Fragment) -> AbstractOperator:
        """A fragment as one operator, as it was in a run."""
        measured = self.measured[fragment.name]
        return AbstractOperator(
            self._name(fragment, fragment.output),
            tuple(self.end(name) for name in fragment.inputs),
            self.shared.measured_row_us(fragment, measured) / 1e6,
            measured.selectivity,
        )

    def _fixed_cpu(self, fragment: Fragment) -> float:
        """A batch for every round, as a part of a core."""
        round_s = self.shared.round_s(fragment)
        # Where it is not known how many rows shared a batch, its cost is that of the rows.
        if round_s is None or self.is_whole(fragment.name):
            return 0.0
        return (self.shared.batch_ms(fragment) or 0.0) / 1e3 / round_s

    def end(self, stream: str) -> str:
        """What a stream between fragments is called: outside ones by their own name."""
        if stream in self.given_by_parts:
            return self.given_by_parts[stream]
        outside = any(known.name == stream for known in self.network.streams)
        # A fragment is called like the stream it gives.
        repeated = stream in self.repeated and not outside
        return f"{stream}/{stream}" if repeated else stream

    def _name(self, fragment: Fragment, stream: str) -> str:
        """A stream inside a fragment: by its own name, unless several fragments make it."""
        return f"{fragment.name}/{stream}" if stream in self.repeated else stream


def _operators(
    operator: Operator,
    estimate: OperatorEstimate,
    inputs: tuple[str, ...],
    outputs: Sequence[str],
) -> list[AbstractOperator]:
    """An operator by its outputs; the work is counted with the first, or before a join."""
    cost_s, selectivity = (estimate.cost_us or 0.0) / 1e6, estimate.selectivity
    window_s = _window_s(operator)
    if window_s is not None:
        sides = [
            AbstractOperator(f"{outputs[0]}/{side}", (input,), cost_s)
            for side, input in zip(("left", "right"), inputs, strict=True)
        ]
        names = tuple(side.name for side in sides)
        pairs = AbstractOperator(
            outputs[0], names, 0.0, selectivity, operator.kind, window_s=window_s
        )
        return [*sides, pairs]
    kind = "operator" if isinstance(operator, WindowJoin) else operator.kind
    return [
        AbstractOperator(name, inputs, cost_s if not at else 0.0, selectivity, kind)
        for at, name in enumerate(outputs)
    ]


def _given_by_parts(fragments: Sequence[Fragment]) -> Mapping[str, str]:
    """What the parts of joins give, by their channels."""
    return {
        fragment.channel: f"{fragment.name}/{fragment.output}"
        for fragment in fragments
        if fragment.part is not None
    }


def _given(join: AbstractOperator, pair_s: float) -> list[AbstractOperator]:
    """A join, and behind it what each pair costs that it gives."""
    if not pair_s:
        return [join]
    found = replace(join, name=f"{join.name}/found")
    return [found, AbstractOperator(join.name, (found.name,), pair_s)]


def _window_s(operator: Operator) -> float | None:
    """Within how many seconds of event time rows of two streams meet, if they are joined so."""
    if not isinstance(operator, WindowJoin):
        return None
    return (operator.bound.upper_us - operator.bound.lower_us) / 1e6 or None


def _repeated(network: Network, fragments: Sequence[Fragment]) -> frozenset[str]:
    """Streams that cannot go by their own name: several fragments make them, or the outside."""
    made = Counter(
        name for part in fragments for operator in part.operators for name in operator.outputs
    )
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
                users = {pair: joined if unit in old else unit for pair, unit in users.items()}
    return units


def _tables(fragment: Fragment) -> set[tuple[str, str]]:
    written = {(sql_write.database.url, sql_write.table) for sql_write in fragment.writes}
    read = {
        (operator.database.url, operator.table.stored_name)
        for operator in fragment.operators
        if isinstance(operator, SqlRead)
    }
    return written | read
