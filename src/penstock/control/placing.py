"""Where the units of a new submission start: by the strategy its file names."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from penstock.control.records import NodeRecord
from penstock.control.spreading import whole_fragments
from penstock.control.system import Unit
from penstock.errors import PenstockError
from penstock.feeds.rates import known_rates
from penstock.load.costs import measured_costs
from penstock.model.estimates import OperatorEstimate
from penstock.model.network import Deployment, NodeSpec

DEFAULT = "rod"

log = logging.getLogger(__name__)


@cache
def _brought(group: str) -> tuple[EntryPoint, ...]:
    """What other packages bring along. To find it, all that is installed is gone through."""
    return tuple(entry_points(group=group))


def plan_nodes(
    deployment: Deployment,
    units: Sequence[Unit],
    nodes: Sequence[NodeRecord],
    measured: Mapping[str, OperatorEstimate],
) -> Mapping[str, str]:
    """A node for every fragment, by the strategy the deployment names; an unknown one is refused.

    ``measured`` is what fragments that do the same have cost before; the others are planned with
    the costs of their kinds. Where a strategy cannot say, nothing is said, and the controller
    spreads the units evenly.
    """
    if not deployment.placement and len(nodes) < 2:
        return {}
    # Only now: what compiles the planners takes seconds to load.
    from penstock.kernels.engine_choice import light_fragments
    from penstock.place.fragments import place_fragments
    from penstock.place.registry import GROUP, strategies, strategy_called

    name = deployment.placement or DEFAULT
    strategy = strategy_called(name, strategies(_brought(GROUP)))()
    fragments = whole_fragments(unit.fragment for unit in units)
    specs = [NodeSpec(node.name, node.cores, node.memory_bytes) for node in nodes]
    if len(specs) < 2:
        return {}
    network, rates = deployment.network, known_rates(deployment.network)
    try:
        costs, light = measured_costs(), light_fragments(network, fragments)
        return place_fragments(
            network, fragments, specs, strategy, costs, rates, measured, light=light
        )
    except PenstockError as error:
        log.warning("%s could not place %s: %s", name, deployment.name, error)
        return {}
