"""What is wrong with a system, the worst first, and what would help."""

from __future__ import annotations

from typing import Any

from penstock.control.decisions import silence_text
from penstock.control.troubles import Trouble, troubles

NOW_S = 1_000.0


def node(name: str, used: float = 0.1, state: str = "up", **told: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "utilisation": used, "runs": [], **told}


def fragment(name: str, on: str = "a", state: str = "running", **told: Any) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "fragment",
        "node": on,
        "state": state,
        "late": False,
        "notes": [],
        "error": "",
        "restarts": 0,
        "restarts_at_most": 3,
        "measured": {},
        **told,
    }


def found(**told: Any) -> list[Trouble]:
    known = {"nodes": [], "fragments": [], "set_aside": [], "events": [], **told}
    return troubles(known, {"slow": ["reader"]}, NOW_S)


def test_nothing_is_wrong() -> None:
    assert found(nodes=[node("a")], fragments=[fragment("q")]) == []


def test_a_node_that_is_gone() -> None:
    (one,) = found(nodes=[node("a", state="gone", runs=["q", "r"])])
    assert (one.kind, one.command) == ("node gone", "penstock logs a")
    assert one.text == (
        "node a has fallen silent: its lease has run out; 2 of its fragments wait for it"
    )


def test_a_node_that_was_gone_and_is_back_is_told_for_a_minute() -> None:
    def event(at_s: float, subject: str, node: str = "a") -> dict[str, Any]:
        return {"at_s": at_s, "kind": "assign", "subject": subject, "text": silence_text(node)}

    events = [event(300.0, "old"), event(950.0, "q"), event(950.0, "r"), event(950.0, "s", "b")]
    (silent,) = found(nodes=[node("a"), node("c")], events=events)
    assert (silent.kind, silent.subject, silent.command) == ("node gone", "a", "penstock logs a")
    assert silent.text == "node a had fallen silent and is back; others took over q, r"
    assert found(nodes=[node("a")], events=[event(930.0, "q")]) == []
    (gone,) = found(nodes=[node("a", state="gone")], events=events)
    assert "its lease has run out" in gone.text


def test_a_hot_node_and_where_there_is_room() -> None:
    busy = [
        fragment("big", measured={"cpu_ms": 900.0}),
        fragment("small", measured={"cpu_ms": 10.0}),
    ]
    (one,) = found(nodes=[node("a", 0.96), node("b", 0.3), node("c", 0.2)], fragments=busy)
    assert one.text == "node a uses 96% of its cores; big is most of it, and c has room"
    assert one.command == "penstock move big c"
    assert one.move is not None and (one.move.fragment, one.move.node) == ("big", "c")


def test_a_hot_node_where_a_move_would_not_help() -> None:
    alone = [fragment("big", measured={"cpu_ms": 900.0})]
    (one,) = found(nodes=[node("a", 0.96), node("b", 0.1)], fragments=alone)
    assert (one.command, one.move) == ("penstock up --nodes 3", None)
    full = [fragment("big"), fragment("small")]
    both = found(nodes=[node("a", 0.96), node("b", 0.9)], fragments=full)
    assert [one.move for one in both] == [None, None]


def test_what_comes_late() -> None:
    late = fragment("q", late=True, notes=["results take 9 s instead of 5 s: node a is overloaded"])
    (one,) = found(nodes=[node("a", 0.7), node("b", 0.2)], fragments=[late])
    assert one.text == "q: results take 9 s instead of 5 s: node a is overloaded"
    assert one.command == "penstock move q b"


def test_what_is_held_back_names_who_is_behind() -> None:
    (one,) = found(nodes=[node("a")], fragments=[fragment("slow", state="held back")])
    assert one.text == "slow waits until its rows are read: reader is behind"


def test_what_has_failed_for_good() -> None:
    tried = fragment("q", state="failed", error="no room", restarts=3)
    (one,) = found(nodes=[node("a")], fragments=[tried])
    assert (one.kind, one.command) == ("failed", "penstock logs a")
    assert one.text == "q failed 3 times; it is given up: no room"


def test_a_refusal_is_remembered_until_it_is_made_good() -> None:
    def event(at_s: float, kind: str) -> dict[str, Any]:
        return {"at_s": at_s, "kind": kind, "subject": "top", "text": "no column hom"}

    (one,) = found(events=[event(900.0, "refused")])
    assert one.text == "top was not taken in: no column hom"
    assert found(events=[event(300.0, "refused")]) == []
    assert found(events=[event(900.0, "refused"), event(950.0, "submit")]) == []


def test_the_worst_first() -> None:
    told = found(
        nodes=[node("a", 0.99), node("b", state="gone")],
        fragments=[fragment("q", state="failed"), fragment("slow", state="held back")],
        set_aside=[{"stream": "s", "text": "3 late"}],
    )
    kinds = [one.kind for one in told]
    assert kinds == ["node gone", "failed", "held back", "hot node", "set aside"]
    assert told[-1].command == "penstock rows s --dead-letters"


def test_a_disk_that_is_too_small_for_a_join() -> None:
    def told(*kinds: str, name: str = "pairs") -> list[Trouble]:
        events = [
            {"kind": kind, "subject": name, "text": kind, "at_s": at}
            for at, kind in enumerate(kinds)
        ]
        return found(fragments=[fragment("pairs")], events=events)

    (one,) = told("no room")
    assert (one.kind, one.subject, one.command) == ("no room", "pairs", "penstock doctor")
    assert told("no room", "room") == []
    assert [one.kind for one in told("no room", "room", "no room")] == ["no room"]
    assert told("no room", name="dropped") == []
