"""Costs of joins: what is measured for them, and what is made of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as ds
import pytest

from penstock.bench.join_costs import JoinRun, join_costs, write_sides


def test_what_is_not_more_costs_nothing() -> None:
    found = join_costs(JoinRun(100, 0, 1.0), JoinRun(200, 0, 0.9), JoinRun(200, 0, 0.8))
    assert (found.row_us, found.pair_us) == (0.0, 0.0)
    assert found.cost_us == {"light_join": 0.0, "pair": 0.0}


@pytest.mark.parametrize("keys", [7, 1 << 40])
def test_both_sides_have_as_many_rows_and_batches(tmp_path: Path, keys: int) -> None:
    write_sides(tmp_path, 2_000, keys)
    for side in ("l", "r"):
        assert len(list((tmp_path / side).iterdir())) == 20
        rows = ds.dataset(tmp_path / side).to_table()
        assert rows.num_rows == 2_000
        drawn = set(rows[f"{side}_key"].to_pylist())
        assert len(drawn) == (7 if keys == 7 else 2_000)
        times = rows[f"{side}_ts"].to_pylist()
        assert (times[-1] - times[0]).total_seconds() == pytest.approx(199.9)
