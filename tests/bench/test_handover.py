"""The bench of moves: what it feeds, what keeps nodes busy, what it makes of what it saw."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import numpy as np
import pyarrow.parquet as pq
import pytest

from penstock.bench.flow import flowing
from penstock.bench.handover import MovesSeen, SeenMove, ours_of
from penstock.bench.handover_load import BESIDE, MOVED, RATE_PER_S, Burden, Readings, deployment
from penstock.kernels.window_plan import WindowPlan, plan_windows
from penstock.lang.deployment import parse_deployment
from penstock.place.fuse import fuse


def test_as_many_sessions_are_open_as_wanted(tmp_path: Path) -> None:
    readings = Readings(tmp_path, sessions=4_000)
    readings.fill()
    for _ in range(9):
        readings.give(0.25)
    rows = pq.read_table(tmp_path)
    at_us = rows["ts"].cast("int64").to_numpy()
    assert at_us.max() - at_us.min() == (rows.num_rows - 1) * 1_000_000 // RATE_PER_S
    lasts_us = at_us.max() - readings.gap_s * 1e6
    is_open = at_us > lasts_us
    assert len(np.unique(rows["home"].to_numpy()[is_open])) == is_open.sum() == 4_000
    ended = np.unique(rows["home"].to_numpy()[~is_open])
    assert len(ended) == rows.num_rows - 4_000, "a session that ends gives a result of its own"


def test_what_moves_is_light_and_what_stays_is_pinned(tmp_path: Path) -> None:
    network = parse_deployment(deployment(tmp_path, 25.0), "d.yaml", tmp_path).network
    plans = {fragment.name: plan_windows(fragment) for fragment in fuse(network)}
    assert isinstance(plans[MOVED], WindowPlan)
    assert network.query(MOVED).on is None
    assert [network.query(name).on for name in BESIDE] == ["n1", "n2"]
    assert [network.query(f"burden_{node}").on for node in ("n1", "n2")] == ["n1", "n2"]


def test_a_burden_is_steered_to_where_a_node_is_as_busy_as_wanted(tmp_path: Path) -> None:
    burden = Burden({"a": tmp_path / "a", "b": tmp_path / "b"}, wanted=0.8)
    row_s = {"a": 1e-4, "b": 2e-6}
    for _ in range(40):
        used = {node: min(1.0, rate * row_s[node]) for node, rate in burden.rate_per_s.items()}
        if burden.is_reached(used):
            break
        burden.steer(used)
    assert {node: rate * row_s[node] for node, rate in burden.rate_per_s.items()} == {
        "a": pytest.approx(0.8, abs=0.11),
        "b": pytest.approx(0.8, abs=0.11),
    }


def _seen() -> MovesSeen:
    moves = [SeenMove(10.0, 10.4, 0.1, 5), SeenMove(13.0, 13.5, None, 6)]
    moved = [(9.0, 4), (9.5, 4), (10.0, 4), (10.7, 5), (11.2, 5), (12.7, 5), (13.1, 5), (13.6, 6)]
    return MovesSeen(moves, moved, [[9.0, 10.0, 11.0, 12.0, 13.0, 14.0], [9.5, 10.5, 13.2, 15.0]])


def test_silence_is_from_the_last_result_there_to_the_first_here() -> None:
    seen = _seen()
    assert [seen.silence_s(move) for move in seen.moves] == [
        pytest.approx(0.7),
        pytest.approx(0.5),
    ]
    assert seen.usual_s() == pytest.approx(0.5)
    assert seen.beside_s(10.0, 10.4) == pytest.approx(1.0)
    assert seen.beside_resting_s() == [pytest.approx(2.7), pytest.approx(1.8)]


def test_goals_are_for_states_of_up_to_200_000_rows() -> None:
    cases = {case.case: case for case in ours_of("idle, 2 rows", 2, _seen())}
    assert cases["idle, 2 rows, whole move longest"].value == 0.5
    assert cases["idle, 2 rows, nobody's p50"].goal == "<= 0.2"
    large = {case.case: case.goal for case in ours_of("idle", 2_000_000, _seen())}
    assert large["idle, nobody's p50"] is None
    assert large["idle, whole move longest"] == "<= 1"


def test_a_flow_that_fails_is_not_silent() -> None:
    called = Event()

    def give(seconds: float) -> None:
        called.set()
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"), flowing(give):
        assert called.wait(10)
