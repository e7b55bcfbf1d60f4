"""What a network will cost before it has run: rates followed from the sources down.

Rates come from the streams that say theirs; selectivities of filters and joins are unknown until
measured, and are then left open rather than made up: an operator behind one has no rate.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.load.costs import CostTable
from penstock.model.estimates import OperatorEstimate
from penstock.model.network import Network
from penstock.model.operators import Aggregate, Map, Operator, SqlWrite, Union


def estimate(
    network: Network, rates_per_s: Mapping[str, float], costs: CostTable
) -> Mapping[str, OperatorEstimate]:
    """The estimated cost, rate and load of every operator; linear in the network.

    ``rates_per_s`` are the rates of outside streams, where known.
    """
    rates: dict[str, float | None] = {
        stream.name: rates_per_s.get(stream.name) for stream in network.streams
    }
    estimates = {}
    for operator in network.operators:
        rate = _sum([rates[input.stream] for input in operator.inputs])
        selectivity = _selectivity(operator)
        estimates[operator.name] = _estimate(operator, rate, selectivity, costs)
        out = rate * selectivity if rate is not None and selectivity is not None else None
        rates |= dict.fromkeys(operator.outputs, out)
    return estimates


def _sum(rates: list[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) else None


def _selectivity(operator: Operator) -> float | None:
    """Output rows per input row where the operator itself settles it."""
    return 1.0 if isinstance(operator, Map | Union | SqlWrite) else None


def _estimate(
    operator: Operator, rate: float | None, selectivity: float | None, costs: CostTable
) -> OperatorEstimate:
    cost = costs.of(operator.kind)
    if cost is not None and isinstance(operator, Aggregate):
        cost *= operator.window.copies_per_row
    load = cost * rate / 1e6 if cost is not None and rate is not None else None
    return OperatorEstimate(cost, rate, selectivity, load)
