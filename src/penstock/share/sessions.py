"""Sessions on a node: reservations become permanent, and end with the application."""

from __future__ import annotations

from penstock.share.discovery import component_key, stream_key
from penstock.share.messages import (
    Confirm,
    Confirmed,
    Measured,
    NewComponent,
    Reason,
    Register,
    Released,
    ReleaseSession,
    Unconfirmed,
    Unregister,
    request_of,
)
from penstock.share.node_book import Component
from penstock.share.turn import Turn


def on_confirm(turn: Turn, message: Confirm) -> None:
    """Runs what was reserved and serves the application; all or nothing, and only once."""
    state, request = turn.state, request_of(message.session)
    if message.session in state.closed:
        turn.send(message.composer, Unconfirmed(message.session, state.node, "release"))
        return
    if state.running.get(request) != message.session:
        missing = _missing(turn, message)
        if missing:
            turn.send(message.composer, Unconfirmed(message.session, state.node, missing))
            return
        _set_up(turn, message, request)
    turn.send(message.composer, Confirmed(message.session, state.node))


def _missing(turn: Turn, message: Confirm) -> Reason:
    """What cannot be confirmed: a reservation that has expired, a stream that has ended."""
    book, request = turn.state.book, request_of(message.session)
    own = {component.name for component in message.components}
    for name in message.uses:
        if name not in own and name not in book.components:
            return f"stream {name}"
    for component in message.components:
        held = [book.holds(request, component.operator)]
        held += [
            book.holds_link(request, (input, component.operator), upstream)
            for input, upstream, _ in component.links
        ]
        if not all(held):
            return f"node {book.node}"
    return ""


def _set_up(turn: Turn, message: Confirm, request: str) -> None:
    state = turn.state
    state.book.forget(request)
    for component in message.components:
        _run(turn, component)
    state.book.use(request, message.uses, message.limit_s, message.time_s)
    state.running[request] = message.session


def _run(turn: Turn, component: NewComponent) -> None:
    links = tuple((upstream, bandwidth) for _, upstream, bandwidth in component.links)
    turn.state.book.run(
        Component(
            component.name,
            component.stream,
            component.does,
            component.need,
            component.tau_s,
            component.time_s,
            component.lineage,
            links,
            component.is_new,
        )
    )
    turn.instructions.append(Register(stream_key(component.stream)))
    if component.is_new:
        turn.instructions.append(Register(component_key(component.does)))


def on_release(turn: Turn, message: ReleaseSession) -> None:
    """Ends the session here, once; says so every time it is asked."""
    state, request = turn.state, request_of(message.session)
    turn.remember(state.closed, message.session)
    if state.running.get(request) == message.session:
        del state.running[request]
        for component in state.book.leave(request):
            if not state.book.has_stream(component.stream):
                turn.instructions.append(Unregister(stream_key(component.stream)))
            if component.is_new and not state.book.offers(component.does):
                turn.instructions.append(Unregister(component_key(component.does)))
    turn.send(message.composer, Released(message.session, state.node))


def on_measured(turn: Turn, message: Measured) -> None:
    """The time of an application as its receiver measured it replaces what was projected."""
    turn.state.book.note_time(message.request, message.time_s)
