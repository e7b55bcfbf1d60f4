"""Protocols with one thing wrong each; the tests have to notice every one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from penstock.balance.hierarchy import choosing, negotiation, settling
from penstock.balance.hierarchy.instructions import ChangeOwner
from penstock.balance.hierarchy.messages import MessageType, NegotiationMessage, Portion
from penstock.balance.hierarchy.negotiation import Hierarchy, NodeReaction
from penstock.balance.hierarchy.settings import HierarchySettings
from penstock.balance.hierarchy.state import Answering, Asking, NegotiatingNode, Settling
from penstock.model.protocol import Reaction


class NeverBusy(Hierarchy):
    """Takes part in several negotiations at once."""

    def _is_busy(self, state: NegotiatingNode, now_s: float) -> bool:
        return False


class SilentWhenBusy(Hierarchy):
    """Ignores messages while it negotiates, as the source does."""

    def _on_request(
        self, state: NegotiatingNode, message: NegotiationMessage, now_s: float
    ) -> NodeReaction:
        found = super()._on_request(state, message, now_s)
        is_busy = any(one.type is MessageType.BUSY for one in found.messages)
        return Reaction(state) if is_busy else found


class NoDeadline(Hierarchy):
    """Waits for ever."""

    def _expire(
        self, state: NegotiatingNode, now_s: float, rng: np.random.Generator
    ) -> NodeReaction:
        return Reaction(state)

    def wake_at_s(self, state: NegotiatingNode) -> float:
        return state.next_check_s


class ShortPromise(Hierarchy):
    """Frees the room it promised before the owner's time is up."""

    def _on_request(
        self, state: NegotiatingNode, message: NegotiationMessage, now_s: float
    ) -> NodeReaction:
        found = super()._on_request(state, message, now_s)
        answering = found.state.negotiation
        if isinstance(answering, Answering) and answering.until_s > now_s + 0.3:
            short = replace(answering, until_s=now_s + 0.3)
            return found._replace(state=replace(found.state, negotiation=short))
        return found


class DeploysBeforeConfirm(Hierarchy):
    """Takes what it was shown before the owner knows, as the source does."""

    def _settle(
        self, state: NegotiatingNode, asking: Asking, now_s: float, rng: np.random.Generator
    ) -> NodeReaction:
        found = super()._settle(state, asking, now_s, rng)
        settling = found.state.negotiation
        if asking.is_offer or not isinstance(settling, Settling):
            return found
        steps = tuple(
            ChangeOwner(
                asking.id,
                peer,
                state.name,
                portions,
                tuple((name, 0) for portion in portions for name in portion.operators),
                now_s + 1,
            )
            for peer, portions in settling.agreed
        )
        return found._replace(instructions=steps)


class DoesNotLookAgain(Hierarchy):
    """Takes what it once accepted, whatever has come since."""

    def _on_offer_transfer_request(
        self, state: NegotiatingNode, message: NegotiationMessage
    ) -> NodeReaction:
        empty = replace(state, view=replace(state.view, utilisation=0.0))
        found = super()._on_offer_transfer_request(empty, message)
        return found._replace(state=replace(found.state, view=state.view))


class Restless(Hierarchy):
    """Moves an operator again as soon as it has come."""

    def _observe(self, state: NegotiatingNode, view: Any, now_s: float) -> NegotiatingNode:
        return replace(state, view=view)


class ForgetsItsPromises(Hierarchy):
    """Negotiates at once after a crash, though it may have promised its room."""

    def begin(self, *arguments: Any, **named: Any) -> NegotiatingNode:
        return replace(super().begin(*arguments, **named), quiet_until_s=0.0)


class _Boundless(HierarchySettings):
    def room(self, utilisation: float, is_relay: bool = False) -> float:
        return 1e9


class FillsUp(Hierarchy):
    """Accepts whatever it is offered."""

    def __init__(self, settings: HierarchySettings) -> None:
        super().__init__(_Boundless(**vars(settings)))


def give_too_much(
    settings: HierarchySettings,
    node: NegotiatingNode,
    peer: str,
    portions: Iterable[Portion],
    on_its_way: float,
    now_s: float,
) -> tuple[Portion, ...]:
    """Like the real one, but all that was shown, together more than it can spare."""
    return choosing.choose_fitting(choosing.keep_free(node, peer, portions, now_s), 1e9)


def choose_with_shared(
    portions: Iterable[Portion], room: float, taken: Iterable[str] = ()
) -> tuple[Portion, ...]:
    """Like the real one, but an operator can be in several portions."""
    found, left = [], room
    for portion in portions:
        if 0 < portion.size <= left:
            found.append(portion)
            left = round(left - portion.size, 9)
    return tuple(found)


def stale_sizes(
    node: NegotiatingNode, peer: str, portions: Iterable[Portion], now_s: float
) -> tuple[Portion, ...]:
    """Like the real one, but with sizes as they were agreed."""
    free = {transfer.operators for transfer in node.view.transfers if transfer.to == peer}
    return tuple(portion for portion in portions if portion.operators in free)


SUBCLASSES: tuple[type[Hierarchy], ...] = (
    NeverBusy,
    SilentWhenBusy,
    NoDeadline,
    ShortPromise,
    DeploysBeforeConfirm,
    DoesNotLookAgain,
    Restless,
    FillsUp,
)
REPLACED: Mapping[str, Any] = {
    "choose_fitting": choose_with_shared,
    "choose_given": give_too_much,
    "keep_free": stale_sizes,
}


def replace_choice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the protocol choose in a way that is wrong."""
    for module in (choosing, negotiation, settling):
        monkeypatch.setattr(module, name, REPLACED[name], raising=False)
