"""What the benchmark of decisions asks is what it says: ten operators, some of which run."""

from __future__ import annotations

from pathlib import Path

from penstock.bench.live_decision import STREAM, decisions_ms, long_query
from penstock.lang.deployment import parse_deployment


def test_ten_operators_are_asked_for() -> None:
    text = STREAM + f'queries:\n  q: {{sql: "{long_query(3)}"}}\n'
    assert len(parse_deployment(text, "q.yaml", Path()).network.operators) == 10


def test_decisions_are_timed_against_what_runs() -> None:
    taken = decisions_ms(queries=4, decisions=3)
    assert len(taken) == 3 and taken == sorted(taken) and taken[0] > 0
