"""What became of a negotiation, as who began it saw it: who offered what, and why it was taken."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.balance.hierarchy.messages import (
    MessageType,
    NegotiationId,
    NegotiationMessage,
    Portion,
    Urgency,
)

NEGOTIATION = "negotiation"
"""The kind of event by which negotiations are told."""
_ASKING = (MessageType.OFFER_REQUEST, MessageType.DEMAND_REQUEST)
_ANSWERS = (MessageType.OFFER_REPLY, MessageType.DEMAND_REPLY, MessageType.BUSY)
_TAKING = (MessageType.OFFER_TRANSFER_REQUEST, MessageType.DEMAND_TRANSFER_REQUEST)
Shown = tuple[tuple[str, ...], float]


@dataclass(frozen=True)
class PeerStory:
    """One neighbour's part: what it was offered or asked for, what it answered, what was chosen.

    Fragments that go together, with what they take of a node in percent. ``moved`` are those that
    changed hands; ``why`` says in words what became of it.
    """

    node: str
    offered: tuple[Shown, ...] = ()
    size: float = 0.0
    answer: str = "no answer"
    urgency: str = "Unset"
    agreed: tuple[Shown, ...] = ()
    chosen: tuple[Shown, ...] = ()
    moved: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class NegotiationRecord:
    """A negotiation: ``kind`` is ``offer`` or ``demand``; loads are percent of the node."""

    name: str
    node: str
    kind: str
    at_s: float
    utilisation: float
    lower: float
    upper: float
    peers: tuple[PeerStory, ...] = field(default_factory=tuple)
    id: int = 0

    @property
    def is_worth_telling(self) -> bool:
        """Whether somebody had something to give."""
        return any(peer.offered or peer.agreed for peer in self.peers)

    @property
    def has_moved(self) -> bool:
        """Whether something has changed hands."""
        return any(peer.moved for peer in self.peers)

    @property
    def outcome(self) -> tuple[str, ...]:
        """What came of it, so that the same is not told again and again."""
        return self.kind, *sorted(f"{peer.node}: {peer.why}" for peer in self.peers)


class StoryTeller:
    """Follows the messages of a node's own negotiations."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._open: dict[NegotiationId, NegotiationRecord] = {}

    def begin(
        self, name: NegotiationId, at_s: float, utilisation: float, lower: float, upper: float
    ) -> None:
        """A negotiation of the node begins."""
        kind = "offer" if utilisation > (lower + upper) / 2 else "demand"
        self._open[name] = NegotiationRecord(
            str(name), self._node, kind, round(at_s, 3), round(utilisation, 2), lower, upper
        )

    def note_sent(self, message: NegotiationMessage) -> None:
        """The node says something."""
        shown = _shown(message.transfers)
        if message.type in _ASKING:
            self._change(message.negotiation, message.receiver, offered=shown, size=message.size)
        elif message.type in _TAKING:
            self._change(message.negotiation, message.receiver, chosen=shown)

    def note_heard(self, message: NegotiationMessage) -> None:
        """A neighbour says something."""
        name, peer = message.negotiation, message.sender
        if message.type in _ANSWERS:
            answer = "busy" if message.type is MessageType.BUSY else "answered"
            self._change(
                name,
                peer,
                answer=answer,
                urgency=message.urgent.value,
                agreed=_shown(message.transfers),
            )
        elif message.type is MessageType.DEMAND_TRANSFER_REPLY:
            moved = tuple(unit for portion in message.transfers for unit in portion.operators)
            self._change(name, peer, moved=moved)

    def note_moved(self, name: NegotiationId, peer: str, moved: tuple[str, ...], why: str) -> None:
        """What was to be given has changed hands, or has not, and why."""
        self._change(name, peer, moved=moved, why=why)

    def end(self, still: NegotiationId | None) -> list[NegotiationRecord]:
        """The negotiations that are over, all but one that goes on."""
        over = [name for name in self._open if name != still]
        return [_explained(self._open.pop(name)) for name in over]

    def _change(self, name: NegotiationId, node: str, **told: object) -> None:
        record = self._open.get(name)
        if record is None:
            return
        peers = {peer.node: peer for peer in record.peers}
        peers[node] = replace(peers.get(node, PeerStory(node)), **told)  # type: ignore[arg-type]
        self._open[name] = replace(record, peers=tuple(peers.values()))


def _shown(portions: tuple[Portion, ...]) -> tuple[Shown, ...]:
    return tuple((portion.operators, round(portion.size, 2)) for portion in portions)


def _explained(record: NegotiationRecord) -> NegotiationRecord:
    return replace(record, peers=tuple(_with_reason(record, peer) for peer in record.peers))


def _with_reason(record: NegotiationRecord, peer: PeerStory) -> PeerStory:
    """The part of a neighbour with the reason in words, if it has none yet."""
    return peer if peer.why else replace(peer, why=_reason(record, peer))


def _reason(record: NegotiationRecord, peer: PeerStory) -> str:
    is_offer = record.kind == "offer"
    if peer.moved:
        wish = " and wanted it most" if peer.urgency == Urgency.HIGH else ""
        return f"fitted{wish}"
    if peer.answer == "busy":
        return "it was in another negotiation"
    if peer.answer == "no answer":
        return "it did not answer in time"
    if peer.chosen:
        return "it came too late, or had changed meanwhile"
    if peer.agreed:
        return "others came first, or it was more than needed"
    if is_offer and not peer.offered:
        return "nothing could go there"
    if is_offer:
        full = peer.urgency == Urgency.UNSET
        return "it was itself above its upper threshold" if full else "it had no room"
    full = peer.urgency == Urgency.UNSET
    return "it was at or below its own target" if full else "it had nothing that fits"
