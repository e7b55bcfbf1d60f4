"""The disseminator beside the controller: one for a system, whoever started it."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.control import broadcasting
from penstock.control.broadcasting import is_broadcasting, keep_broadcasting, lock_path
from penstock.control.home import Home
from waiting import until

pytestmark = pytest.mark.core


def test_a_disseminator_is_known_by_its_lock(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert not is_broadcasting(home)
    home.broadcasts.mkdir()
    with lock_path(home).open("w") as lock:
        assert not is_broadcasting(home)
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert is_broadcasting(home)
    assert not is_broadcasting(home)


def test_that_of_a_killed_controller_is_not_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, over, looks, started = Home(tmp_path), threading.Event(), [0], list[Home]()
    home.broadcasts.mkdir()
    process: Any = SimpleNamespace(poll=lambda: 0)
    monkeypatch.setattr(broadcasting, "_started", lambda home: started.append(home) or process)
    deployment = SimpleNamespace(devices=True)

    def system() -> Any:
        looks[0] += 1
        return SimpleNamespace(deployments={1: deployment})

    thread = threading.Thread(target=keep_broadcasting, args=(home, system, over))
    with lock_path(home).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread.start()
        until(lambda: looks[0] >= 3)
        assert started == []
    until(lambda: started)
    over.set()
    thread.join()
