"""A deployment as its fragments run: what a row and a round of each cost, one operator for each."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.load.bridge import check_placeable, tied_units
from penstock.load.costs import READING, STATELESS, CostTable, batch_kind
from penstock.load.estimate import estimate
from penstock.load.shared_rounds import SharedRounds
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.model.binding import written_node
from penstock.model.durations import US_PER_S
from penstock.model.estimates import OperatorEstimate
from penstock.model.fragments import Fragment
from penstock.model.network import Network, NodeSpec
from penstock.model.operators import Aggregate, Operator, WindowJoin
from penstock.model.windows import SessionWindow, Window


@dataclass(frozen=True)
class BatchWork:
    """How a fragment works besides what its rows and batches cost.

    It looks for rows every ``round_s``. ``kind`` is that of its batches
    (:func:`~penstock.load.costs.batch_kind`), and ``keeps_s`` how long it remembers a row. Results
    of windows come when some window closes, every ``gives_every_s``; others with every batch.
    """

    round_s: float
    kind: str = STATELESS
    keeps_s: float = 0.0
    gives_every_s: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.round_s < math.inf:
            raise InputError(
                f"a fragment that looks for rows every {self.round_s:g} s",
                hint="Give more than zero.",
            )


@dataclass(frozen=True)
class BatchNetwork:
    """Fragments as operators of an abstract network, and how each of them works, by its name there.

    ``names`` are the operators by the names of the fragments.
    """

    network: AbstractNetwork
    work: Mapping[str, BatchWork]
    names: Mapping[str, str]


def batch_network(
    network: Network,
    fragments: Sequence[Fragment],
    nodes: Sequence[NodeSpec],
    costs: CostTable,
    rates_per_s: Mapping[str, float],
    rounds_s: Mapping[str, float],
    measured: Mapping[str, OperatorEstimate] | None = None,
    light: Collection[str] = (),
    paces: Mapping[str, float] | None = None,
) -> BatchNetwork:
    """The fragments as operators: cost of a row, and of a batch every round as their fixed load.

    Unlike in the network that planners are told about, every fragment is one operator and has its
    round, promised or not; light ones share what their bundle's rounds cost. Inside a fragment,
    rows behind an operator whose selectivity is not known are taken to be as many as before it; the
    selectivity of the whole is then not known. ``paces`` says how many seconds of event time pass
    in a second on outside streams, where that is known; others keep to the clock.
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
        operators.append(
            AbstractOperator(
                names[fragment.output],
                tuple(stream if stream in outside else names[stream] for stream in fragment.inputs),
                shared.measured_row_us(fragment, found) / 1e6,
                found.selectivity,
                unit=units[fragment.name],
                sticky=fragment.is_bound,
                node=written_node(network, fragment) or "",
                fixed_cpu=batch_ms / 1e3 / rounds_s[fragment.name],
            )
        )
    read = {name for operator in operators for name in operator.inputs}
    inputs = [stream.name for stream in network.streams if stream.name in read]
    abstract = AbstractNetwork(
        tuple(AbstractInput(name, rates_per_s.get(name)) for name in inputs),
        tuple(operators),
        tuple(AbstractNode(node.name, float(node.cores)) for node in nodes),
        openings=shared.openings(
            {fragment.name: names[fragment.output] for fragment in fragments},
            lambda stream: stream if stream in outside else names[stream],
        ),
    )
    paced = _paces(fragments, paces or {})
    work = {
        names[fragment.output]: _work(
            fragment, rounds_s[fragment.name], batch_kind(fragment, light), paced[fragment.output]
        )
        for fragment in fragments
    }
    return BatchNetwork(
        abstract, work, {fragment.name: names[fragment.output] for fragment in fragments}
    )


def _paces(fragments: Sequence[Fragment], outside: Mapping[str, float]) -> Mapping[str, float]:
    """How fast event time passes in what every fragment gives: like in its slowest input."""
    found = dict(outside)
    for fragment in fragments:
        found[fragment.output] = min(found.get(name, 1.0) for name in fragment.inputs)
    return found


def _work(fragment: Fragment, round_s: float, kind: str, pace: float) -> BatchWork:
    kept_us = max(map(_kept_us, fragment.operators), default=0)
    slides_us = [
        operator.window.slide_us
        for operator in fragment.operators
        if isinstance(operator, Aggregate) and isinstance(operator.window, Window)
    ]
    gives_every_s = max(slides_us) / US_PER_S / pace if slides_us else None
    return BatchWork(round_s, kind, kept_us / US_PER_S / pace, gives_every_s)


def _kept_us(operator: Operator) -> int:
    """How much event time passes until a row is forgotten; in a session at least its gap."""
    match operator:
        case Aggregate(window=Window(size_us=size_us)):
            return size_us
        case Aggregate(window=SessionWindow(gap_us=gap_us)):
            return gap_us
        case WindowJoin(bound=bound):
            return max(bound.upper_us, -bound.lower_us, bound.upper_us - bound.lower_us)
        case _:
            return 0


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
        if isinstance(operator, WindowJoin):
            cost_us += shared.pair_us(fragment) * came * (found.selectivity or 1.0)
    return OperatorEstimate(cost_us, selectivity=rows[fragment.output] if is_known else None)
