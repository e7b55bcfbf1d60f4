"""The bench of moving groups: what it feeds, and what it makes of what it heard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.bench import join_moves
from penstock.bench.flow import longest_gap_s
from penstock.bench.join_moves import GroupMoved, ResultTimes, Sides, numbers_of
from penstock.bench.registry import BENCHES
from penstock.lang.deployment import parse_deployment
from penstock.model.parts import JoinSpread


def test_a_quarter_of_the_window_is_of_one_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_moves, "_KEYS", 60_000)
    sides = Sides(tmp_path, window_s=60, rows=12_000)
    sides.fill()
    sides.give(0.25)
    for stream, at in (("calls", "ts"), ("taps", "at")):
        rows = pa.concat_tables([pq.read_table(path) for path in sorted(tmp_path.glob(f"{stream}/*.parquet"))])  # fmt: skip # noqa: E501
        assert rows.num_rows == 12_050
        times = rows[at].cast(pa.int64()).to_numpy()
        assert (np.diff(times) >= 0).all()
        assert times[-1] - times[0] == pytest.approx(60.25e6, rel=0.001)
        counts = np.bincount(numbers_of(rows["k"].to_numpy()), minlength=join_moves.GROUPS)
        assert counts[join_moves.HOT_GROUP] == pytest.approx(3_000, rel=0.1)


def test_groups_of_its_join_move_by_hand_only(tmp_path: Path) -> None:
    text = join_moves.deployment(tmp_path, 600)
    network = parse_deployment(text, "d.yaml", tmp_path).network
    assert network.query("pairs").spread == JoinSpread(2, join_moves.GROUPS, "off")
    assert "join-moves" in BENCHES


def test_a_pause_is_from_the_last_results_here_to_the_first_there() -> None:
    moves = [
        GroupMoved(10.0, 10.8, "pairs_part2", 0.2),
        GroupMoved(20.0, 20.5, "pairs_part1", None),
    ]
    hot = {"pairs_part1": [9.0, 10.2, 20.9], "pairs_part2": [10.6, 11.0, 19.0, 20.4]}
    others = {"pairs_part1": [9.5, 10.5, 11.5, 12.5], "pairs_part2": [9.4, 11.2, 11.3, 12.0, 12.5]}
    heard = ResultTimes(moves, hot, others)
    assert [heard.pause_s(move) for move in moves] == [pytest.approx(0.4), pytest.approx(0.5)]
    assert heard.others_gap_s(10.0, 10.8) == pytest.approx(1.8)
    assert heard.resting_gaps_s() == [pytest.approx(1.0)]


def test_gaps_that_only_touch_a_stretch_count() -> None:
    assert longest_gap_s([1.0, 4.0, 5.0], 2.0, 3.0) == 3.0
    assert longest_gap_s([1.0, 4.0, 5.0], 4.5, 4.6) == 1.0
    assert longest_gap_s([1.0], 0.0, 9.0) == 0.0
