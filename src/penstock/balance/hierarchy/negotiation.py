"""The part of one node in the negotiations of a tree.

An overloaded node offers, an underloaded one asks; neighbours answer, and what is agreed changes
its owner in one recorded step, for which the owner alone asks. Why that is safe:

- A node is in one negotiation at a time, its own or a neighbour's; meanwhile it answers *busy*.
- What a neighbour agreed to holds for ``hold_s`` from its answer. The owner asks for the step
  within ``hold_s`` from its request (an offer), or from its own answer (a demand), which was
  earlier in both cases: room that was promised is there when operators come. Clocks need not agree
  for this, only to run at one pace.
- A node that began again does not remember what it agreed to, so it is busy for ``hold_s`` first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from penstock.balance.hierarchy.choosing import (
    choose_acceptable,
    choose_fitting,
    choose_given,
    choose_spare,
    find_free,
    sum_sizes,
)
from penstock.balance.hierarchy.composing import (
    ask_for_change,
    drop_prepared,
    keep_promised,
    write_answer,
    write_message,
)
from penstock.balance.hierarchy.instructions import (
    ChangeRecorded,
    Instruction,
    NegotiationEvent,
    Observed,
    Prepare,
    Refuse,
)
from penstock.balance.hierarchy.messages import (
    MessageType,
    NegotiationMessage,
    Urgency,
)
from penstock.balance.hierarchy.settings import HierarchySettings
from penstock.balance.hierarchy.settling import begin_asking, choose_among
from penstock.balance.hierarchy.state import (
    Answering,
    Asking,
    LocalView,
    NegotiatingNode,
    Settling,
)
from penstock.model.protocol import Protocol, Reaction, Tick

NodeReaction = Reaction[NegotiatingNode, NegotiationMessage, Instruction]


class Hierarchy(
    Protocol[
        NegotiatingNode, NegotiationEvent, NegotiationMessage, Instruction, np.random.Generator
    ]
):
    """Neighbours in a tree that negotiate; the source's protocol made safe."""

    name = "hierarchy"

    def __init__(self, settings: HierarchySettings | None = None) -> None:
        self.settings = settings or HierarchySettings()

    def begin(
        self,
        name: str,
        neighbours: tuple[str, ...],
        view: LocalView,
        now_s: float,
        rng: np.random.Generator,
        incarnation: int = 0,
    ) -> NegotiatingNode:
        """A node that starts, for the ``incarnation``-th time after the first.

        Nodes check at different times of the period, so that neighbours rarely ask at once.
        """
        quiet_s = self.settings.hold_s if incarnation else 0.0
        first_s = now_s + rng.random() * self.settings.period_s
        return NegotiatingNode(name, neighbours, incarnation, view, first_s, now_s + quiet_s)

    def wake_at_s(self, state: NegotiatingNode) -> float:
        """The next check, or the next deadline of the negotiation if that comes first."""
        match state.negotiation:
            case Asking(answers_until_s=until_s):
                return min(state.next_check_s, until_s)
            case Settling(until_s=until_s) | Answering(until_s=until_s):
                return min(state.next_check_s, until_s)
            case _:
                return state.next_check_s

    def handle(
        self,
        state: NegotiatingNode,
        event: NegotiationEvent | NegotiationMessage | Tick,
        now_s: float,
        rng: np.random.Generator,
    ) -> NodeReaction:
        match event:
            case Observed(view):
                return Reaction(self._observe(state, view, now_s))
            case ChangeRecorded():
                return self._on_recorded(state, event)
            case _:
                first = self._expire(state, now_s, rng)
                then = (
                    self._on_message(first.state, event, now_s, rng)
                    if isinstance(event, NegotiationMessage)
                    else self._on_check(first.state, now_s)
                )
                return Reaction(
                    then.state,
                    (*first.messages, *then.messages),
                    (*first.instructions, *then.instructions),
                )

    def _observe(self, state: NegotiatingNode, view: LocalView, now_s: float) -> NegotiatingNode:
        """The node with a new view of itself; operators that just came begin to rest."""
        rest_s = self.settings.rest_periods * self.settings.period_s
        resting = {name: until_s for name, until_s in state.resting if now_s < until_s}
        if rest_s > 0:
            new = view.sizes.keys() - state.view.sizes.keys()
            resting |= dict.fromkeys(sorted(new), now_s + rest_s)
        return replace(state, view=view, resting=tuple(resting.items()))

    # A check of one's own load.

    def _on_check(self, state: NegotiatingNode, now_s: float) -> NodeReaction:
        if now_s < state.next_check_s:
            return Reaction(state)
        next_s = state.next_check_s + self.settings.period_s
        state = replace(
            state, next_check_s=next_s if next_s > now_s else now_s + self.settings.period_s
        )
        used = state.view.utilisation
        if self._is_busy(state, now_s) or not state.neighbours:
            return Reaction(state)
        was_pressed, state = state.is_pressed, replace(state, is_pressed=False)
        if used > self.settings.upper:
            return self._offer(state, now_s, Urgency.UNSET)
        if used < self.settings.lower:
            return self._demand(state, now_s)
        if was_pressed and used > self.settings.target:
            return self._offer(state, now_s, Urgency.NORMAL)
        return Reaction(state)

    def _offer(self, state: NegotiatingNode, now_s: float, urgency: Urgency) -> NodeReaction:
        """Offers every neighbour what may move to it and is not more than the excess.

        Normal urgency marks a relay: who offers is not overloaded, and others need not fill up.
        """
        excess = round(state.view.utilisation - self.settings.target, 9)
        state = begin_asking(self.settings, state, now_s, is_offer=True)
        messages = tuple(
            replace(
                write_message(state, peer, MessageType.OFFER_REQUEST, portions=offered),
                urgent=urgency,
            )
            for peer in state.neighbours
            for offered in (find_free(self.settings, state, peer, excess, now_s),)
        )
        return Reaction(state, messages)

    def _demand(self, state: NegotiatingNode, now_s: float) -> NodeReaction:
        """Asks every neighbour for as much as is missing to the target."""
        missing = round(self.settings.target - state.view.utilisation, 9)
        state = begin_asking(self.settings, state, now_s, is_offer=False)
        messages = tuple(
            replace(write_message(state, peer, MessageType.DEMAND_REQUEST), size=missing)
            for peer in state.neighbours
        )
        return Reaction(state, messages)

    # Messages.

    def _on_message(
        self,
        state: NegotiatingNode,
        message: NegotiationMessage,
        now_s: float,
        rng: np.random.Generator,
    ) -> NodeReaction:
        if message.sender not in state.neighbours or message.receiver != state.name:
            reason = f"{message.sender} is no neighbour of {state.name}"
            return Reaction(state, (), (Refuse(message, reason),))
        match message.type:
            case MessageType.OFFER_REQUEST | MessageType.DEMAND_REQUEST:
                return self._on_request(state, message, now_s)
            case MessageType.OFFER_REPLY | MessageType.DEMAND_REPLY | MessageType.BUSY:
                return self._on_reply(state, message, now_s, rng)
            case MessageType.OFFER_TRANSFER_REQUEST:
                return self._on_offer_transfer_request(state, message)
            case MessageType.OFFER_TRANSFER_REPLY:
                return self._on_offer_transfer_reply(state, message, now_s)
            case MessageType.DEMAND_TRANSFER_REQUEST:
                return self._on_demand_transfer_request(state, message, now_s)
            case MessageType.DEMAND_TRANSFER_REPLY:
                return Reaction(state.settle_with(message.negotiation, message.sender))
            case MessageType.CLEAR:
                return self._on_clear(state, message)

    def _is_busy(self, state: NegotiatingNode, now_s: float) -> bool:
        return state.negotiation is not None or now_s < state.quiet_until_s

    def _on_request(
        self, state: NegotiatingNode, message: NegotiationMessage, now_s: float
    ) -> NodeReaction:
        if state.is_in(message.negotiation):
            return Reaction(state)  # the same request again
        if self._is_busy(state, now_s):
            return Reaction(state, (write_answer(message, MessageType.BUSY),))
        is_offer = message.type is MessageType.OFFER_REQUEST
        urgency, portions = (
            choose_acceptable(self.settings, state, message)
            if is_offer
            else choose_spare(self.settings, state, message, now_s)
        )
        kind = MessageType.OFFER_REPLY if is_offer else MessageType.DEMAND_REPLY
        is_relay = is_offer and message.urgent is Urgency.NORMAL
        if self.settings.relay and is_offer and not is_relay and not portions:
            state = replace(state, is_pressed=bool(message.transfers) or state.is_pressed)
        if portions:
            until_s = now_s + self.settings.hold_s
            answering = Answering(
                message.negotiation, is_offer, portions, until_s, is_relay=is_relay
            )
            state = replace(state, negotiation=answering)
        return Reaction(state, (write_answer(message, kind, portions, urgency),))

    def _on_reply(
        self,
        state: NegotiatingNode,
        message: NegotiationMessage,
        now_s: float,
        rng: np.random.Generator,
    ) -> NodeReaction:
        asking = state.negotiation
        if not isinstance(asking, Asking) or asking.id != message.negotiation:
            return Reaction(state, self._clear_for_late(state, message))
        if message.sender not in asking.waiting:
            return Reaction(state)
        is_busy = message.type is MessageType.BUSY
        asking = replace(
            asking,
            waiting=asking.waiting - {message.sender},
            replies=asking.replies if is_busy else (*asking.replies, message),
            met_busy=asking.met_busy or is_busy,
        )
        state = replace(state, negotiation=asking)
        return Reaction(state) if asking.waiting else self._settle(state, asking, now_s, rng)

    def _clear_for_late(
        self, state: NegotiatingNode, message: NegotiationMessage
    ) -> tuple[NegotiationMessage, ...]:
        """Who answers after all is over need not wait for the end of its deadline."""
        settling = state.negotiation
        agreed = (
            isinstance(settling, Settling)
            and settling.id == message.negotiation
            and settling.with_peer(message.sender) is not None
        )
        return (
            () if agreed or not message.transfers else (write_answer(message, MessageType.CLEAR),)
        )

    def _settle(
        self, state: NegotiatingNode, asking: Asking, now_s: float, rng: np.random.Generator
    ) -> NodeReaction:
        """Chooses among the replies and answers all of them."""
        settling, messages = choose_among(self.settings, state, asking, now_s)
        state = replace(state, negotiation=settling)
        if asking.met_busy:
            # They may ask in step: it checks at another time.
            wait_s = (0.5 + rng.random()) * self.settings.period_s
            state = replace(state, next_check_s=now_s + wait_s)
        return Reaction(state, messages)

    # What was agreed is transferred.

    def _on_offer_transfer_request(
        self, state: NegotiatingNode, message: NegotiationMessage
    ) -> NodeReaction:
        """The taker looks again whether there is room, and gets ready."""
        answering = state.negotiation
        if not isinstance(answering, Answering) or answering.id != message.negotiation:
            return Reaction(state, (write_answer(message, MessageType.OFFER_TRANSFER_REPLY),))
        if answering.prepared:
            return Reaction(state)  # the same request again
        agreed = keep_promised(message, answering.portions)
        room = self.settings.room(state.view.utilisation, answering.is_relay)
        chosen = choose_fitting(agreed, room, taken=state.view.sizes)
        reply = write_answer(message, MessageType.OFFER_TRANSFER_REPLY, chosen)
        if not chosen:
            return Reaction(state.end_negotiation(), (reply,))
        names = tuple(name for portion in chosen for name in portion.operators)
        state = replace(state, negotiation=replace(answering, prepared=names))
        return Reaction(state, (reply,), (Prepare(answering.id, message.sender, names),))

    def _on_offer_transfer_reply(
        self, state: NegotiatingNode, message: NegotiationMessage, now_s: float
    ) -> NodeReaction:
        """The owner looks again what its operators take, and gives them away."""
        settling, peer = state.negotiation, message.sender
        if not isinstance(settling, Settling) or settling.id != message.negotiation:
            return Reaction(state)
        agreed = settling.with_peer(peer)
        if not settling.is_offer or agreed is None or peer in dict(settling.recording):
            return Reaction(state)
        promised = keep_promised(message, agreed)
        on_its_way = sum(size for _, size in settling.recording)
        chosen = choose_given(self.settings, state, peer, promised, on_its_way, now_s)
        if not chosen:
            state = state.settle_with(settling.id, peer)
            return Reaction(state, (write_answer(message, MessageType.CLEAR),))
        recording = (*settling.recording, (peer, sum_sizes(chosen)))
        state = replace(state, negotiation=replace(settling, recording=recording))
        step = ask_for_change(state, settling.id, peer, chosen, settling.until_s)
        return Reaction(state, (), (step,))

    def _on_demand_transfer_request(
        self, state: NegotiatingNode, message: NegotiationMessage, now_s: float
    ) -> NodeReaction:
        """The owner confirms: it looks again, and gives no more than it can spare in all."""
        answering, peer = state.negotiation, message.sender
        nothing = write_answer(message, MessageType.DEMAND_TRANSFER_REPLY)
        if not isinstance(answering, Answering) or answering.id != message.negotiation:
            return Reaction(state, (nothing,))
        if answering.is_recording:
            return Reaction(state)
        promised = keep_promised(message, answering.portions)
        chosen = choose_given(self.settings, state, peer, promised, 0.0, now_s)
        if not chosen:
            return Reaction(state.end_negotiation(), (nothing,))
        state = replace(state, negotiation=replace(answering, is_recording=True))
        return Reaction(
            state, (), (ask_for_change(state, answering.id, peer, chosen, answering.until_s),)
        )

    def _on_recorded(self, state: NegotiatingNode, event: ChangeRecorded) -> NodeReaction:
        is_own = event.negotiation.initiator == state.name
        kind = MessageType.CLEAR if is_own else MessageType.DEMAND_TRANSFER_REPLY
        told = NegotiationMessage(
            state.name,
            event.target,
            kind,
            event.negotiation,
            size=sum_sizes(event.portions),
            transfers=event.portions,
        )
        if is_own:
            return Reaction(state.settle_with(event.negotiation, event.target), (told,))
        return Reaction(
            state.end_negotiation() if state.is_in(event.negotiation) else state, (told,)
        )

    # Ends.

    def _on_clear(self, state: NegotiatingNode, message: NegotiationMessage) -> NodeReaction:
        answering = state.negotiation
        if not isinstance(answering, Answering) or answering.id != message.negotiation:
            return Reaction(state)
        return Reaction(state.end_negotiation(), (), drop_prepared(state, answering))

    def _expire(
        self, state: NegotiatingNode, now_s: float, rng: np.random.Generator
    ) -> NodeReaction:
        """Ends what has lasted too long; goes on without answers that did not come."""
        match state.negotiation:
            case Asking() as asking if now_s >= asking.until_s:
                messages = (
                    write_message(state, peer, MessageType.CLEAR) for peer in state.neighbours
                )
                return Reaction(state.end_negotiation(), tuple(messages))
            case Asking() as asking if now_s >= asking.answers_until_s:
                return self._settle(state, asking, now_s, rng)
            case Settling() as settling if now_s >= settling.until_s:
                messages = (
                    write_message(state, peer, MessageType.CLEAR) for peer, _ in settling.agreed
                )
                return Reaction(
                    state.end_negotiation(), tuple(messages) if settling.is_offer else ()
                )
            case Answering() as answering if now_s >= answering.until_s:
                return Reaction(state.end_negotiation(), (), drop_prepared(state, answering))
            case _:
                return Reaction(state)
