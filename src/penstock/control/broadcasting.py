"""The disseminator beside the controller: kept running where a deployment has devices."""

from __future__ import annotations

import fcntl
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.channels.durable import read_record
from penstock.control.home import Home
from penstock.control.system import System

_LOOK_EVERY_S = 0.3
_STOPS_WITHIN_S = 10.0

log = logging.getLogger(__name__)


def keep_broadcasting(home: Home, system: Callable[[], System], over: threading.Event) -> None:
    """Starts the disseminator where somebody needs it, and again when it has died."""
    running: subprocess.Popen[bytes] | None = None
    while not over.wait(_LOOK_EVERY_S):
        try:
            is_needed = any(deployment.devices for deployment in system().deployments.values())
        except Exception:
            log.exception("whether a disseminator is needed could not be found out")
            continue
        is_starting = running is not None and running.poll() is None
        # That of a controller that was killed goes on, and is enough.
        if is_needed and not is_starting and not is_broadcasting(home):
            running = _started(home)
    if running is not None and running.poll() is None:
        running.terminate()
        try:
            running.wait(_STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def is_broadcasting(home: Home) -> bool:
    """Whether a disseminator is running, whoever started it: it holds the lock."""
    try:
        with lock_path(home).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def lock_path(home: Home) -> Path:
    """What a disseminator keeps locked as long as it runs."""
    return home.broadcasts / "lock"


def _started(home: Home) -> subprocess.Popen[bytes]:
    log.info("starting the disseminator")
    with home.log("disseminator").open("ab") as out:
        command = [sys.executable, "-m", "penstock.device.disseminator", str(home.path)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)


def devices_answer(home: Home) -> list[dict[str, Any]]:
    """What the broadcasts of a system last told."""
    found = (read_record(path) for path in sorted(home.broadcasts.glob("*.status.json")))
    return [record for record in found if record]
