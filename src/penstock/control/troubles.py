"""What is wrong with a system now, the worst first, and what helps: decisions, pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from penstock.control.api_model import ApiModel
from penstock.control.decisions import silence_text
from penstock.errors import listed

Answer = Mapping[str, Any]
TroubleKind = Literal[
    "node gone", "failed", "unreadable", "late", "held back", "hot node", "waiting", "set aside",
    "no room", "refused",
]  # fmt: skip
ORDER: tuple[TroubleKind, ...] = TroubleKind.__args__  # type: ignore[attr-defined]
"""From the worst to the least."""

_HOT = 0.85
_COOLER = 0.2
"""A node that uses this much less of its cores is worth moving to."""
_REMEMBERED_S = 600.0
_SILENCE_REMEMBERED_S = 60.0
"""A node that dies is started again at once, and may be back before anybody has looked."""


class MoveHelp(ApiModel):
    """A move that would help."""

    fragment: str
    node: str


class Trouble(ApiModel):
    """Something that is wrong: what, since whom, why, and what to type or do about it."""

    kind: TroubleKind
    subject: str
    text: str
    command: str
    move: MoveHelp | None = None


def troubles(found: Answer, readers: Mapping[str, Collection[str]], now_s: float) -> list[Trouble]:
    """All troubles of a system as the API tells of it, the worst first.

    ``readers`` are the units that read what each gives. Linear in nodes, fragments and events.
    """
    nodes, fragments = found["nodes"], found["fragments"]
    told = [
        *_of_nodes(nodes, fragments),
        *_were_silent(nodes, found["events"], now_s),
        *(trouble for fragment in fragments for trouble in _of_fragment(fragment, nodes, readers)),
        *(_set_aside(trouble) for trouble in found["set_aside"]),
        *_without_room(found["events"], fragments),
        *_refused(found["events"], now_s),
    ]
    return sorted(told, key=lambda trouble: (ORDER.index(trouble.kind), trouble.subject))


def _of_nodes(nodes: Sequence[Answer], fragments: Sequence[Answer]) -> Iterable[Trouble]:
    for node in nodes:
        name, used = node["name"], node["utilisation"]
        if node["state"] == "gone":
            runs = len(node["runs"])
            waits = f"; {runs} of its fragments wait for it" if runs else ""
            yield Trouble(
                kind="node gone",
                subject=name,
                text=f"node {name} has fallen silent: its lease has run out{waits}",
                command=f"penstock logs {name}",
            )
        elif used >= _HOT:
            heaviest = _heaviest(name, fragments)
            text = f"node {name} uses {used:.0%} of its cores"
            helped = None if heaviest is None else _cooler(name, nodes)
            if heaviest is not None and helped is not None:
                yield Trouble(
                    kind="hot node",
                    subject=name,
                    text=f"{text}; {heaviest} is most of it, and {helped} has room",
                    command=f"penstock move {heaviest} {helped}",
                    move=MoveHelp(fragment=heaviest, node=helped),
                )
            else:
                command = f"penstock up --nodes {len(nodes) + 1}"
                yield Trouble(kind="hot node", subject=name, text=text, command=command)


def _were_silent(
    nodes: Iterable[Answer], events: Iterable[Answer], now_s: float
) -> Iterable[Trouble]:
    """Nodes that are back, but have just been silent for so long that others took over."""
    for node in nodes:
        name = node["name"]
        taken = [
            event["subject"]
            for event in events
            if event["kind"] == "assign"
            and event["text"] == silence_text(name)
            and now_s - event["at_s"] < _SILENCE_REMEMBERED_S
        ]
        if taken and node["state"] != "gone":
            yield Trouble(
                kind="node gone",
                subject=name,
                text=f"node {name} had fallen silent and is back; others took over {listed(taken)}",
                command=f"penstock logs {name}",
            )


def _heaviest(node: str, fragments: Iterable[Answer]) -> str | None:
    here = [
        (fragment["measured"].get("cpu_ms") or 0.0, fragment["name"])
        for fragment in fragments
        if fragment["node"] == node
        and fragment["kind"] == "fragment"
        and fragment["state"] == "running"
    ]
    return max(here)[1] if len(here) > 1 else None


def _cooler(node: str, nodes: Iterable[Answer]) -> str | None:
    """Where there is clearly more room than on a node, if anywhere."""
    used = {record["name"]: record["utilisation"] for record in nodes if record["state"] == "up"}
    here = used.pop(node, 1.0)
    coolest = min(used, key=lambda name: (used[name], name), default=None)
    return coolest if coolest is not None and used[coolest] <= here - _COOLER else None


def _of_fragment(
    fragment: Answer, nodes: Sequence[Answer], readers: Mapping[str, Collection[str]]
) -> Iterable[Trouble]:
    name, state = fragment["name"], fragment["state"]
    if state == "failed":
        given_up = fragment["restarts"] >= fragment["restarts_at_most"]
        tries = f" {fragment['restarts']} times; it is given up" if given_up else ""
        text = f"{name} failed{tries}: {fragment['error']}"
        yield Trouble(
            kind="failed", subject=name, text=text, command=f"penstock logs {fragment['node']}"
        )
    elif state == "unreadable":
        text = f"nothing of {name} could be read: {fragment['error']}"
        yield Trouble(kind="unreadable", subject=name, text=text, command="penstock status")
    elif fragment["late"]:
        yield _late(fragment, nodes)
    elif state == "held back":
        slow = ", ".join(sorted(readers.get(name, ()))) or "what reads it"
        text = fragment["error"] or f"{name} waits until its rows are read: {slow} is behind"
        yield Trouble(kind="held back", subject=name, text=text, command="penstock status")
    elif state == "waiting":
        text = "; ".join(fragment["notes"]) or "waits for a node"
        yield Trouble(kind="waiting", subject=name, text=f"{name} {text}", command="penstock nodes")


def _late(fragment: Answer, nodes: Sequence[Answer]) -> Trouble:
    name, target = fragment["name"], _cooler(fragment["node"], nodes)
    text = f"{name}: {fragment['notes'][-1]}"
    if fragment["kind"] != "fragment" or target is None or fragment["state"] != "running":
        command = f"penstock up --nodes {len(nodes) + 1}"
        return Trouble(kind="late", subject=name, text=text, command=command)
    helped = MoveHelp(fragment=name, node=target)
    command = f"penstock move {name} {target}"
    return Trouble(kind="late", subject=name, text=text, command=command, move=helped)


def _set_aside(record: Answer) -> Trouble:
    return Trouble(
        kind="set aside",
        subject=record["stream"],
        text=f"rows of {record['stream']} could not be used: {record['text']}",
        command=f"penstock rows {record['stream']} --dead-letters",
    )


def _without_room(events: Iterable[Answer], fragments: Iterable[Answer]) -> Iterable[Trouble]:
    names = {fragment["name"] for fragment in fragments}
    latest = {event["subject"]: event for event in events if event["kind"] in ("no room", "room")}
    for name, event in latest.items():
        if event["kind"] == "no room" and name in names:
            text, command = event["text"], "penstock doctor"
            yield Trouble(kind="no room", subject=name, text=text, command=command)


def _refused(events: Iterable[Answer], now_s: float) -> Iterable[Trouble]:
    recent = [event for event in events if now_s - event["at_s"] < _REMEMBERED_S]
    latest = {event["subject"]: event for event in recent if event["kind"] in ("refused", "submit")}
    for name, event in latest.items():
        if event["kind"] == "refused":
            text = f"{name} was not taken in: {event['text']}"
            yield Trouble(kind="refused", subject=name, text=text, command="penstock submit FILE")
