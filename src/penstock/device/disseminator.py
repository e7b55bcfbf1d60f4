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
from contextlib import closing
from pathlib import Path

from penstock.control.broadcasting import lock_path
from penstock.control.catalog import Catalog
from penstock.control.home import Home
from penstock.control.system import assemble
from penstock.device.broadcaster import Broadcaster
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


def disseminate(home: Home, over: threading.Event) -> None:
    """Broadcasts for every deployment with devices, a thread each."""
    threads: dict[str, tuple[threading.Thread, threading.Event]] = {}
    with closing(Catalog(home.catalog_url)) as catalog:
        while not over.is_set() and not home.is_stopped:
            try:
                found = _deployments(catalog)
            except PenstockError:
                log.exception("the catalog could not be read")
                found = None
            if found is not None:
                _keep_in_line(home, threads, found)
            over.wait(_LOOK_EVERY_S)
    over.set()
    for thread, done in threads.values():
        done.set()
        thread.join()


def _deployments(catalog: Catalog) -> dict[str, Deployment]:
    submissions = catalog.submissions()
    system = assemble(submissions)
    names = {submission.id: submission.name for submission in submissions}
    return {
        names[number]: deployment
        for number, deployment in system.deployments.items()
        if deployment.devices is not None and deployment.whole is not None
    }


def _keep_in_line(
    home: Home,
    threads: dict[str, tuple[threading.Thread, threading.Event]],
    found: dict[str, Deployment],
) -> None:
    for name in [running for running in threads if running not in found]:
        thread, done = threads.pop(name)
        done.set()
        thread.join()
        for path in home.broadcasts.glob(f"{name}*.json"):
            path.unlink(missing_ok=True)
    for name, deployment in found.items():
        if name in threads and threads[name][0].is_alive():
            continue
        done = threading.Event()
        thread = threading.Thread(target=_broadcast, args=(home, deployment, done), name=name)
        thread.start()
        threads[name] = (thread, done)


def _broadcast(home: Home, deployment: Deployment, done: threading.Event) -> None:
    try:
        channels = home.state / "channels"
        broadcaster = Broadcaster(deployment, home.broadcasts, channels, home.device_token())
        recutter = Recutter(home, broadcaster)
        broadcaster.run(done.is_set, recutter.tick)
    except Exception:
        log.exception("the broadcast of %s failed; it is begun again", deployment.name)
        done.wait(1.0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
