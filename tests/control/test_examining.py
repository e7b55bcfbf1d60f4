"""What measurements say of nodes and of what new work costs."""

from __future__ import annotations

import pytest

from penstock.control.examining import _as_dear_as_others, _node
from penstock.control.records import NodeRecord
from penstock.model.measurements import MeasuredUse
from penstock.share.impact import MeasuredFragment, MeasuredSystem, NewWork

NODE = NodeRecord("a", 2, 1 << 30, "a-1")


def test_what_came_meanwhile_counts_as_far_as_it_is_not_in_the_mean() -> None:
    loads = [MeasuredUse(float(at), 0.2) for at in range(10)]
    assert _node(NODE, loads, []).load == pytest.approx(0.2)
    # Three of ten samples were taken before it was there; a core is half of the node.
    assert _node(NODE, loads, [(2.5, 1.0)]).load == pytest.approx(0.2 + 0.3 * 0.5)
    assert _node(NODE, loads, [(-1.0, 1.0)]).load == pytest.approx(0.2)
    assert _node(NODE, loads[:4], []).load is None, "too little was measured"


def test_a_light_one_is_not_dearer_than_those_it_shares_rounds_with() -> None:
    beside = tuple(
        MeasuredFragment(name, name, "a", cores=0.12, streams=("s",), round_s=1.0)
        for name in ("first", "second")
    )
    situation = MeasuredSystem((), beside)

    def cores(**told: object) -> float | None:
        work = NewWork("new", "a", 0.5, **{"streams": ("s",), "is_light": True, **told})  # type: ignore[arg-type]
        return _as_dear_as_others(work, situation).cores

    assert cores() == pytest.approx(0.24 / 3)
    assert cores(streams=("other",)) == cores(is_light=False) == 0.5
    cheap = NewWork("new", "a", 0.01, streams=("s",), is_light=True)
    assert _as_dear_as_others(cheap, situation).cores == 0.01
