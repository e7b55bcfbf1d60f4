"""Joins in parts and moves of their groups, as people see them."""

from __future__ import annotations

from penstock.cli.explaining_move import move_text
from penstock.cli.join_text import join_lines
from penstock.control.answer_models import JoinAnswer, MoveAnswer, PartAnswer
from penstock.control.records import MoveRecord


def part(number: int, groups: list[int], **more: object) -> PartAnswer:
    told = {
        "fragment": f"pairs_part{number}",
        "node": "ab"[number - 1],
        "groups": groups,
        "arriving": [],
        "occupancy": 0.25,
        "rows_in_per_s": 1234.5,
        "rows_held": 20_000,
        "bytes_held": 3_400_000,
        "has_ended": False,
    }
    return PartAnswer.model_validate({**told, **more})


def test_parts_are_shown_with_their_groups() -> None:
    parts = [part(1, [0, 1, 2, 5]), part(2, [3, 4], arriving=[4], has_ended=True)]
    join = JoinAnswer(name="pairs", spread="auto", groups=6, moved=2, parts=parts)
    assert list(join_lines([join])) == [
        "pairs: 6 groups, spread auto, 2 moved so far",
        "  pairs_part1 on a: 4 groups (0-2,5), 25% full, 1,234 rows/s, 20,000 rows and 3.4 MB held",
        "  pairs_part2 on b: 2 groups (3-4), 25% full, 1,234 rows/s, "
        "20,000 rows and 3.4 MB held, 4 arriving, ended",
    ]


def test_where_no_join_is_in_parts_it_says_how() -> None:
    (text,) = join_lines([])
    assert "join: {spread: 2}" in text


def test_a_move_of_groups_is_explained() -> None:
    numbers = {
        "by": "balancer",
        "join": "pairs",
        "groups": [3, 7],
        "part": 2,
        "table": 4,
        "parts": {"pairs_part1": {"occupancy": 0.8, "busy": 0.9, "groups": 4}},
    }
    move = MoveRecord(
        5, "pairs:3,7", "a", "b", "done", False, 10.0, 11.5, 0.4, "a is full", numbers
    )
    assert move_text(MoveAnswer.of(move)).splitlines() == [
        "move 5: pairs:3,7 a → b, done",
        "  decided by the balancer: a is full",
        "  groups 3, 7 of the join pairs, to its part 2",
        "    pairs_part1  80% full, 90% busy, 4 groups",
        "  took 1.5 s",
        "  nobody worked on it for 0.40 s",
    ]
