"""A deployment as its fragments run: what a row and a round of each cost, one operator for each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from penstock.load.bridge import check_placeable, tied_units
from penstock.load.costs import READING, CostTable
from penstock.load.estimate import estimate
from penstock.load.shared_rounds import SharedRounds
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.model.estimates import OperatorEstimate
from penstock.model.fragments import Fragment
from penstock.model.network import Network, NodeSpec


def batch_network(
    network: Network,
    fragments: Sequence[Fragment],
    nodes: Sequence[NodeSpec],
    costs: CostTable,
    rates_per_s: Mapping[str, float],
    rounds_s: Mapping[str, float],
    measured: Mapping[str, OperatorEstimate] | None = None,
    light: Collection[str] = (),
) -> AbstractNetwork:
    """The fragments as operators: cost of a row, and of a batch every round as their fixed load.

    Unlike in the network that planners are told about, every fragment is one operator and has its
    round, promised or not; light ones share what their bundle's rounds cost. Inside a fragment,
    rows behind an operator whose selectivity is not known are taken to be as many as before it; the
    selectivity of the whole is then not known.
    """
    check_placeable(fragments, nodes)
    known, units = estimate(network, rates_per_s, costs), tied_units(fragments)
    outside = {stream.name for stream in network.streams}
    names = {
        fragment.output: fragment.name
        if fragment.name not in outside
        else f"{fragment.name}/{fragment.name}"
        for fragment in fragments
    }
    shared = SharedRounds(costs, fragments, light, rounds_s)
    operators = []
    for fragment in fragments:
        found = (measured or {}).get(fragment.name) or _estimated(fragment, known, shared)
        batch_ms = shared.batch_ms(fragment) or 0.0
        wanted = [network.query(name).on for name in fragment.queries]
        operators.append(
            AbstractOperator(
                names[fragment.output],
                tuple(stream if stream in outside else names[stream] for stream in fragment.inputs),
                shared.measured_row_us(fragment, found) / 1e6,
                found.selectivity,
                unit=units[fragment.name],
                sticky=fragment.is_bound,
                node=next((node for node in wanted if node), ""),
                fixed_cpu=batch_ms / 1e3 / rounds_s[fragment.name],
            )
        )
    read = {name for operator in operators for name in operator.inputs}
    inputs = [stream.name for stream in network.streams if stream.name in read]
    return AbstractNetwork(
        tuple(AbstractInput(name, rates_per_s.get(name)) for name in inputs),
        tuple(operators),
        tuple(AbstractNode(node.name, float(node.cores)) for node in nodes),
        openings=shared.openings(
            {fragment.name: names[fragment.output] for fragment in fragments},
            lambda stream: stream if stream in outside else names[stream],
        ),
    )


def _estimated(
    fragment: Fragment, known: Mapping[str, OperatorEstimate], shared: SharedRounds
) -> OperatorEstimate:
    """What a row in costs all of a fragment, and how many rows come of it."""
    rows = dict.fromkeys(fragment.inputs, 1 / len(fragment.inputs))
    is_known = True
    light_us = shared.row_us(fragment)
    cost_us = (shared.costs.of(READING) or 0.0) if light_us is None else light_us
    for operator in fragment.operators:
        found = known[operator.name]
        came = sum(rows.get(input.stream, 0.0) for input in operator.inputs)
        cost_us += came * (found.cost_us or 0.0) if light_us is None else 0.0
        is_known = is_known and found.selectivity is not None
        rows |= dict.fromkeys(operator.outputs, came * (found.selectivity or 1.0))
    return OperatorEstimate(cost_us, selectivity=rows[fragment.output] if is_known else None)
