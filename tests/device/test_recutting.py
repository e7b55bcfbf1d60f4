"""Cuts that change while devices listen: every row once, whatever the two cuts are."""

from __future__ import annotations

from pathlib import Path

import pytest

from waiting import until

from device.air import Device, Server, deployment, on_air

pytestmark = pytest.mark.core


# Among filters and joins, across the aggregate in both directions, behind it.
@pytest.mark.parametrize(
    ("old", "new"), [(0, 2), (2, 1), (1, 3), (0, 5), (3, 2), (5, 0), (3, 5), (5, 3)]
)
def test_no_row_is_lost_or_doubled(tmp_path: Path, old: int, new: int) -> None:
    server = Server(tmp_path, deployment(tmp_path, old))
    with on_air(server.broadcaster()) as broadcaster:
        device = Device(broadcaster.station.port)
        server.push(3)
        until(lambda: device.heard.next == 3)
        server.recut(broadcaster, "usage", new)
        server.push_all()
        device.join()
        assert broadcaster.on_air()["usage"].cut == new
    assert device.heard.plan == 2
    assert device.given == server.whole("usage")
    assert device.program.record()["gaps"] == []


def test_a_switch_that_is_planned_survives_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1))
    with on_air(server.broadcaster()) as first:
        device = Device(first.station.port)
        server.push(3)
        until(lambda: device.heard.next == 3)
        server.recut(first, "usage", 3)
    second = server.broadcaster()
    assert second.on_air()["usage"].until_us is not None
    with on_air(second):
        until(lambda: second.listeners("usage"))
        server.push_all()
        device.join()
    assert device.given == server.whole("usage")
    assert device.heard.plan == 2
