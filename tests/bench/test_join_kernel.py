"""The bench of the join's kernel: all sides join the same pairs."""

from __future__ import annotations

import pytest

from penstock.bench.join_kernel import JoinCase, duckdb_join, kernel_join, pandas_join
from penstock.bench.registry import BENCHES

CASE = JoinCase(rate_per_s=1_000, window_s=1, b=0.7, batch_rows=500, rows=4_000)


def test_it_is_known() -> None:
    assert "join-kernel" in BENCHES


@pytest.mark.parametrize("peer", [pandas_join, duckdb_join])
def test_both_sides_join_the_same_pairs(peer: object) -> None:
    ours, theirs = kernel_join(CASE, only_last=4), peer(CASE)  # type: ignore[operator]
    assert (ours.pairs, ours.digest, ours.rows) == (theirs.pairs, theirs.digest, theirs.rows)
    assert ours.pairs > 0 and kernel_join(CASE).rows == 4_000
