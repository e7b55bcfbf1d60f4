"""The disseminator as a process: ``python -m penstock.device.disseminator HOME``.

It broadcasts what deployments with devices give, until the system is stopped. There is one for a
system: a second one leaves at once.
"""

from __future__ import annotations

import fcntl
import logging
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from penstock.control.broadcasting import lock_path
from penstock.control.catalog import Catalog
from penstock.control.home import Home
from penstock.control.system import assemble
from penstock.device.broadcaster import Broadcaster, memory_path, status_path
from penstock.device.recutting import Recutter
from penstock.errors import PenstockError
from penstock.model.network import Deployment

_LOOK_EVERY_S = 0.5

log = logging.getLogger(__name__)


def main(arguments: list[str]) -> int:
    """Runs the disseminator until it is told to stop."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout
    )
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    home = Home(Path(arguments[0]))
    home.broadcasts.mkdir(exist_ok=True)
    with lock_path(home).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("another disseminator is running")
            time.sleep(_LOOK_EVERY_S)
            return 0
        disseminate(home, over)
    return 0


@dataclass(frozen=True)
class _OnAirThread:
    """A broadcast in a thread of its own, of the submission of this number."""

    submission: int
    thread: threading.Thread
    done: threading.Event

    def end(self) -> None:
        self.done.set()
        self.thread.join()


def disseminate(home: Home, over: threading.Event) -> None:
    """Broadcasts for every deployment with devices, a thread each."""
    running: dict[str, _OnAirThread] = {}
    with closing(Catalog(home.catalog_url)) as catalog:
        while not over.is_set() and not home.is_stopped:
            try:
                found = _deployments(catalog)
            except PenstockError:
                log.exception("the catalog could not be read")
                found = None
            if found is not None:
                _keep_in_line(home, running, found)
            over.wait(_LOOK_EVERY_S)
    over.set()
    for broadcast in running.values():
        broadcast.end()


def _deployments(catalog: Catalog) -> dict[str, tuple[int, Deployment]]:
    """The deployments with devices by name, with their numbers."""
    submissions = catalog.submissions()
    system = assemble(submissions)
    names = {submission.id: submission.name for submission in submissions}
    return {
        names[number]: (number, deployment)
        for number, deployment in system.deployments.items()
        if deployment.devices is not None and deployment.whole is not None
    }


def _keep_in_line(
    home: Home, running: dict[str, _OnAirThread], found: Mapping[str, tuple[int, Deployment]]
) -> None:
    for name, broadcast in list(running.items()):
        number = found[name][0] if name in found else None
        if number != broadcast.submission:  # Dropped, or replaced by another of that name.
            running.pop(name).end()
            status_path(home.broadcasts, name).unlink(missing_ok=True)
            if number is None:
                memory_path(home.broadcasts, name).unlink(missing_ok=True)
    for name, (number, deployment) in found.items():
        if name in running and running[name].thread.is_alive():
            continue
        done = threading.Event()
        given = (home, deployment, number, done)
        thread = threading.Thread(target=_broadcast, args=given, name=name)
        thread.start()
        running[name] = _OnAirThread(number, thread, done)


def _broadcast(home: Home, deployment: Deployment, number: int, done: threading.Event) -> None:
    try:
        broadcaster = Broadcaster(
            deployment, home.broadcasts, home.state / "channels", home.device_token(), number
        )
        recutter = Recutter(home, broadcaster)
        broadcaster.run(done.is_set, recutter.tick)
    except Exception:
        log.exception("the broadcast of %s failed; it is begun again", deployment.name)
        done.wait(1.0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
