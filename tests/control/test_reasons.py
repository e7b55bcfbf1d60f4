"""The reasons of a balancer's move: what is stored, what the API gives, what people read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from control.asking import served
from control.made_up import AMI
from penstock.balance.deciding import decide
from penstock.balance.moves import reasons
from penstock.balance.situation import Situation
from penstock.cli.explaining_move import move_text
from penstock.control.answer_models import MoveAnswer
from penstock.control.records import MoveRecord
from penstock.model.moves import Move

NUMBERS = {
    "by": "balancer",
    "policy": "one-way",
    "load": 0.3,
    "score": 0.0,
    "source_correlation": 0.0,
    "target_correlation": 0.0,
    "loads_before": {"a": 0.7, "b": 0.0},
    "loads_after": {"a": 0.4, "b": 0.3},
    "considered": {"peaks": 0.3, "q": 0.2, "r": 0.2},
    "considered_count": 3,
    "moved_with_it": [],
}


def test_the_numbers_of_a_decision_with_names() -> None:
    situation = Situation.of([[0.3, 0.3], [0.2, 0.2], [0.2, 0.2]], [0, 0, 0], [1.0, 1.0])
    plan = decide("one-way", situation, np.random.default_rng(0))
    (move,) = plan.moves
    found = reasons(plan, move, ["peaks", "q", "r"], ["a", "b"])
    assert found == NUMBERS
    json.dumps(found, allow_nan=False)


def test_only_the_busiest_are_named() -> None:
    loads = [[0.5 + k / 1_000] * 2 for k in range(60)]
    situation = Situation.of(loads, [0] * 60, [1.0, 1.0])
    plan = decide("one-way", situation, np.random.default_rng(0))
    found = reasons(plan, plan.moves[0], [f"q{k}" for k in range(60)], ["a", "b"])
    assert found["considered_count"] == 60
    assert len(found["considered"]) == 50  # type: ignore[arg-type]
    assert next(iter(found["considered"])) == "q59"  # type: ignore[call-overload]


def test_they_are_kept_with_the_move(tmp_path: Path) -> None:
    with served(tmp_path) as api:
        api.controller.submit("ami", "yaml", AMI, ".")
        api.catalog.assign(api.catalog.units()[0], "a")
        api.catalog.report("peaks", 1, "running")
        wish = Move("peaks", "b", "too much on a", NUMBERS)
        (begun,) = api.controller.move([wish])
        answer = api.ask("GET", f"/api/moves/{begun.id}")
        assert answer.status_code == 200
        found = answer.json()
        assert (found["by"], found["numbers"]) == ("balancer", NUMBERS)
        missing = api.ask("GET", "/api/moves/99")
        assert missing.status_code == 400
        assert missing.json()["text"] == f"no move 99. The latest are {begun.id}."


def explained(**told: object) -> str:
    move = MoveRecord(
        3, "peaks", "a", "b", "done", True, 10.0, ended_s=12.5, pause_s=0.75, reason="asked for"
    )
    return move_text(MoveAnswer.of(move).model_copy(update=told))


def test_asked_for_by_people() -> None:
    assert explained() == (
        "move 3: peaks a → b, done\n"
        "  asked for by people\n"
        "  took 2.5 s\n"
        "  nobody worked on it for 0.75 s"
    )
    assert explained(state="failed", error="no room", pause_s=None).splitlines()[2] == (
        "  failed: no room"
    )


def test_decided_by_the_balancer() -> None:
    text = explained(by="balancer", reason="too much on a", numbers=NUMBERS)
    assert text.splitlines()[1:9] == [
        "  decided by the balancer: too much on a",
        "  policy one-way, score 0.00: correlation with the rest of a 0.00, with b 0.00",
        "  load of peaks: 0.30 cores",
        "  loads of nodes, as shares of their cores",
        "    a  0.70 → 0.40",
        "    b  0.00 → 0.30",
        "  considered: peaks 0.30, q 0.20, r 0.20",
        "  took 2.5 s",
    ]


def test_made_because_a_node_fell_silent() -> None:
    spent = {"silence_s": 5.0, "decision_s": 0.1, "take_over_s": 0.2, "start_s": 1.0}
    text = explained(
        by="failover", reason="node a fell silent", numbers={"by": "failover", "spent": spent}
    )
    assert text.splitlines()[1:] == [
        "  made because a node fell silent: node a fell silent",
        "  took 2.5 s",
        "  nobody worked on it for 0.75 s",
        "      5.00 s until the lease ended",
        "      0.10 s until another node was chosen",
        "      0.20 s until the checkpoint was taken over",
        "      1.00 s until the query was started",
    ]
