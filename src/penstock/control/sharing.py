"""What a submission shares with what runs: offers of the system, found by signature."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.control.system import System, Unit
from penstock.errors import listed
from penstock.lang.deployment import offered_streams
from penstock.model.canonical import CanonicalStream, canonical_streams
from penstock.model.network import Deployment, Network
from penstock.model.sharing import NOTHING_SHARED, Sharing
from penstock.model.sources import RunningSource
from penstock.place.fuse import fuse
from penstock.share.matching import OfferedStream, match_streams, settled_streams, shared_network

Obstacle = Callable[[Unit, bool], str]
"""Why nobody can share a unit's result, or, if that is asked, a stream inside it; else nothing."""


@dataclass
class _Known:
    """What the streams of one submission are."""

    deployment: Deployment
    canonical: Mapping[str, CanonicalStream]
    by_signature: Mapping[str, Sequence[str]]


@dataclass
class StreamIndex:
    """The canonical streams of everything that runs; what is known is not worked out again."""

    _known: dict[int, _Known] = field(default_factory=dict)

    def look(self, system: System) -> None:
        """Takes note of what has come and gone. Linear in what has come."""
        gone = self._known.keys() - system.deployments.keys()
        for number in gone:
            del self._known[number]
        for number, deployment in system.deployments.items():
            known = self._known.get(number)
            if known is None or known.deployment is not deployment:
                self._known[number] = self._worked_out(system, deployment)

    def _worked_out(self, system: System, deployment: Deployment) -> _Known:
        network = deployment.network
        canonical = canonical_streams(network, self.running(system, network))
        found: dict[str, list[str]] = defaultdict(list)
        for stream in sorted(settled_streams(network)):
            found[canonical[stream].signature].append(stream)
        return _Known(deployment, canonical, found)

    def running(self, system: System, network: Network) -> dict[str, CanonicalStream]:
        """What the running streams are that a network reads."""
        found = {}
        for stream in network.streams:
            maker = system.makers.get(stream.name)
            if isinstance(stream.source, RunningSource) and maker is not None:
                known = self._known.get(maker.submission)
                if known is not None and stream.name in known.canonical:
                    found[stream.name] = known.canonical[stream.name]
        return found

    def offers(self, system: System, obstacle: Obstacle, signature: str) -> list[OfferedStream]:
        """The streams that run with a signature, results first: they have channels already."""
        found = []
        for number, known in self._known.items():
            for stream in known.by_signature.get(signature, ()):
                for unit in system.units.values():
                    if unit.submission == number and _is_inside(unit, stream):
                        found.append(_offer(unit, stream, known.canonical[stream], obstacle))
        return sorted(found, key=lambda offer: (bool(offer.obstacle), offer.tapped))


def _is_inside(unit: Unit, stream: str) -> bool:
    fragment = unit.fragment
    return fragment is not None and any(
        stream in operator.outputs for operator in fragment.operators
    )


def _offer(
    unit: Unit, stream: str, canonical: CanonicalStream, obstacle: Obstacle
) -> OfferedStream:
    is_inside = stream != unit.gives
    source = offered_streams(unit.network, [stream])[0]
    return OfferedStream(source, canonical, unit.name, is_inside, obstacle(unit, is_inside))


def can_be_tapped(unit: Unit) -> bool:
    """Whether kernels that run a fragment can give streams inside it."""
    # Only now: what it needs is large, and few ask.
    from penstock.kernels.engine_choice import choose_engine
    from penstock.kernels.window_plan import WindowPlan

    assert unit.fragment is not None
    return isinstance(choose_engine(unit.network, unit.fragment).plan, WindowPlan)


def decide_sharing(
    index: StreamIndex, system: System, network: Network, obstacle: Obstacle
) -> Sharing:
    """What a network can share with a system, as far as that spares work.

    Where kernels could run a fragment, and not what is left of it, it is not worth it.
    """
    index.look(system)
    found = match_streams(
        network,
        index.running(system, network),
        lambda signature: index.offers(system, obstacle, signature),
    )
    if not found.reads:
        return found
    running = {
        read.source: offered_streams(system.units[read.maker].network, [read.source])[0]
        for read in found.reads
    }
    shared = shared_network(network, found.reads, running)
    dearer = _native_names(shared, set(running)) - _native_names(network, set())
    if dearer:
        note = f"{listed(sorted(dearer))} would have to be a query of its own to share anything"
        return replace(NOTHING_SHARED, notes=(*found.notes, note))
    return found


def _native_names(network: Network, shared: set[str]) -> set[str]:
    from penstock.kernels.engine_choice import light_fragments

    fragments = [
        replace(fragment, shared=tuple(name for name in fragment.inputs if name in shared))
        for fragment in fuse(network)
    ]
    return {fragment.name for fragment in fragments} - light_fragments(network, fragments)
