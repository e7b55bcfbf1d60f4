"""What a node knows during negotiations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from penstock.balance.hierarchy.messages import NegotiationId, NegotiationMessage, Portion
from penstock.balance.hierarchy.settings import Utilisation
from penstock.balance.hierarchy.transfers import Transfer, size_of


@dataclass(frozen=True)
class HeldOperator:
    """An operator of a node: what it takes, and the epoch in which the node owns it."""

    name: str
    size: float
    epoch: int


@dataclass(frozen=True)
class LocalView:
    """What a node sees of itself: its utilisation, its operators, and what may leave it."""

    utilisation: float
    operators: tuple[HeldOperator, ...]
    transfers: tuple[Transfer, ...]

    @cached_property
    def sizes(self) -> Mapping[str, float]:
        return {operator.name: operator.size for operator in self.operators}

    @cached_property
    def epochs(self) -> Mapping[str, int]:
        return {operator.name: operator.epoch for operator in self.operators}

    def portions(self, to: str) -> Iterator[Portion]:
        """What may move to a neighbour, with sizes of now."""
        for transfer in self.transfers:
            if transfer.to == to:
                yield Portion(transfer.operators, size_of(transfer.operators, self.sizes))


def measure_sizes(
    memory: Mapping[str, float], cpu: Mapping[str, float], what: Utilisation
) -> tuple[float, Mapping[str, float]]:
    """The utilisation of a node and the sizes of its operators, in percent of the node.

    With the larger of both, an operator counts with its own larger share: who takes it is never
    filled beyond what it agreed to, and who gives it away never gives too much.

    >>> measure_sizes({"a": 30, "b": 10}, {"a": 5, "b": 20}, Utilisation.MAX)
    (40.0, {'a': 30, 'b': 20})
    """
    if what is Utilisation.MAX:
        sizes = {name: max(memory[name], cpu[name]) for name in memory}
        return max(size_of(memory, memory), size_of(cpu, cpu)), sizes
    sizes = dict(memory if what is Utilisation.MEMORY else cpu)
    return size_of(sizes, sizes), sizes


@dataclass(frozen=True)
class Asking:
    """A negotiation of one's own: some neighbours have not answered yet."""

    id: NegotiationId
    is_offer: bool
    waiting: frozenset[str]
    answers_until_s: float
    until_s: float
    replies: tuple[NegotiationMessage, ...] = ()
    met_busy: bool = False


@dataclass(frozen=True)
class Settling:
    """A negotiation of one's own: what was agreed, by neighbour, is being transferred.

    ``recording`` are those whose change of owner is under way, with what they take.
    """

    id: NegotiationId
    is_offer: bool
    agreed: tuple[tuple[str, tuple[Portion, ...]], ...]
    until_s: float
    recording: tuple[tuple[str, float], ...] = ()

    def with_peer(self, peer: str) -> tuple[Portion, ...] | None:
        return dict(self.agreed).get(peer)


@dataclass(frozen=True)
class Answering:
    """A neighbour's negotiation in which this node has something to give or to take."""

    id: NegotiationId
    is_offer: bool
    portions: tuple[Portion, ...]
    until_s: float
    prepared: tuple[str, ...] = ()
    is_recording: bool = False
    is_relay: bool = False


@dataclass(frozen=True)
class NegotiatingNode:
    """The state of one node; everything in it can be compared and hashed."""

    name: str
    neighbours: tuple[str, ...]
    incarnation: int
    view: LocalView
    next_check_s: float
    quiet_until_s: float = 0.0
    number: int = 0
    negotiation: Asking | Settling | Answering | None = None
    resting: tuple[tuple[str, float], ...] = ()
    is_pressed: bool = False
    """Whether it was offered more than it had room for, since its last check."""

    def is_resting(self, portion: Portion, now_s: float) -> bool:
        """Whether one of the operators moved so recently that it stays."""
        return any(now_s < until_s and name in portion.operators for name, until_s in self.resting)

    def end_negotiation(self) -> NegotiatingNode:
        """The node free for another negotiation."""
        return replace(self, negotiation=None)

    def is_in(self, negotiation: NegotiationId) -> bool:
        """Whether it takes part in a negotiation now."""
        return self.negotiation is not None and self.negotiation.id == negotiation

    def settle_with(self, negotiation: NegotiationId, peer: str) -> NegotiatingNode:
        """The node with nothing more to settle with a neighbour; free if that was the last."""
        settling = self.negotiation
        if not isinstance(settling, Settling) or settling.id != negotiation:
            return self
        agreed = tuple(pair for pair in settling.agreed if pair[0] != peer)
        recording = tuple(pair for pair in settling.recording if pair[0] != peer)
        left = replace(settling, agreed=agreed, recording=recording)
        return replace(self, negotiation=left if agreed else None)
