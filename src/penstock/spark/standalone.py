"""A Spark standalone cluster of this machine, from the installed package: a worker for each node.

Its processes outlive who started them, so that whoever comes next finds them at work; a file says
which they are. They take orders only from who knows the secret in the folder of settings.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from penstock.errors import RunError
from penstock.spark.archive import spark_home
from penstock.spark.heap import heap_bytes
from penstock.spark.java import find_java
from penstock.spark.masters import resource_of

_HOST = "127.0.0.1"
_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_STARTED_WITHIN_S = 60.0
_STOPPED_WITHIN_S = 20.0
_RESTART_PAUSE_S = 5.0
_LOOK_EVERY_S = 0.05
_DEPLOY = "org.apache.spark.deploy"
_SECRET = "spark.authenticate.secret"
MASTER = ".master"
"""What the master is called among the processes: no node can be called so."""


class StandaloneCluster:
    """The cluster kept in ``folder``; ``settings`` is where Spark's processes read theirs."""

    def __init__(self, folder: Path, settings: Path) -> None:
        self.folder = folder
        self.settings = settings
        self._started_s: dict[str, float] = {}

    def keep_up(self, nodes: Mapping[str, tuple[int, int]]) -> str:
        """Starts what does not run, with these cores and bytes of memory; the master's address.

        Workers register with the master by and by.
        """
        running = self.running()
        if MASTER not in running:
            self.stop()
            self._prepare()
            self._run(MASTER, f"{_DEPLOY}.master.Master", [], {})
        master = self._address()
        for node, (cores, memory_bytes) in nodes.items():
            is_due = time.monotonic() - self._started_s.get(node, -1e9) > _RESTART_PAUSE_S
            if node not in self.running() and is_due:
                self._start_worker(master, node, cores, memory_bytes)
        return master

    def stop(self) -> None:
        """Ends all processes; executors end with their workers."""
        processes = list(self.running().values())
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        for process in psutil.wait_procs(processes, _STOPPED_WITHIN_S)[1]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._known.unlink(missing_ok=True)

    def running(self) -> dict[str, psutil.Process]:
        """The processes at work: the master, and the worker of each node."""
        known = json.loads(self._known.read_text()) if self._known.exists() else {}
        found = {name: _process(pid, born_s) for name, (pid, born_s) in known.items()}
        return {name: process for name, process in found.items() if process is not None}

    def log(self, name: str) -> Path:
        """What the master, or the worker of a node, has printed."""
        return self.folder / f"{name}.log"

    def work(self, node: str) -> Path:
        """The folder in which the worker of a node runs executors."""
        return self.folder / node

    @property
    def _known(self) -> Path:
        return self.folder / "processes.json"

    def _prepare(self) -> None:
        """Lets nobody else on this machine give orders to the cluster."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.settings.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.settings / "spark-defaults.conf"
        written = path.read_text() if path.exists() else ""
        if _SECRET in written:
            return
        secret = f"spark.authenticate true\n{_SECRET} {secrets.token_urlsafe(32)}\n"
        growing = path.with_suffix(".new")
        growing.unlink(missing_ok=True)
        with os.fdopen(os.open(growing, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(written + "\n" * bool(written) + secret)
        growing.replace(path)

    def _start_worker(self, master: str, node: str, cores: int, memory_bytes: int) -> None:
        resource = resource_of(node)
        known = {"componentName": "spark.worker", "resourceName": resource}
        resources = self.folder / f"{node}.resources.json"
        resources.write_text(json.dumps([{"id": known, "addresses": ["0"]}]))
        options = [
            f"-Dspark.worker.resource.{resource}.amount=1",
            f"-Dspark.worker.resourcesFile={resources}",
        ]
        size = f"{max(memory_bytes, heap_bytes(memory_bytes)) >> 20}M"
        place = ["--cores", str(cores), "--memory", size, "--work-dir", str(self.work(node))]
        more = {"SPARK_WORKER_OPTS": shlex.join(options)}
        self._run(node, f"{_DEPLOY}.worker.Worker", [*place, master], more)

    def _run(
        self, name: str, program: str, arguments: Sequence[str], more: Mapping[str, str]
    ) -> None:
        environment = {
            **os.environ,
            "JAVA_HOME": str(find_java(os.environ).home),
            "SPARK_HOME": str(spark_home()),
            "SPARK_CONF_DIR": str(self.settings),
            "SPARK_LOCAL_IP": _HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            **more,
        }
        command = [str(spark_home() / "bin" / "spark-class"), program]
        place = ["--host", _HOST, "--port", "0", "--webui-port", "0"]
        with self.log(name).open("wb") as output:
            started = subprocess.Popen(
                [*command, *place, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._started_s[name] = time.monotonic()
        self._remember(name, started.pid)

    def _remember(self, name: str, pid: int) -> None:
        known = {
            entry: [process.pid, process.create_time()] for entry, process in self.running().items()
        }
        with suppress(psutil.NoSuchProcess):
            known[name] = [pid, psutil.Process(pid).create_time()]
        growing = self._known.with_suffix(".new")
        growing.write_text(json.dumps(known))
        growing.replace(self._known)

    def _address(self) -> str:
        """Where the master answers, which it says once it does; raises if it ends before."""
        log = self.log(MASTER)
        until_s = time.monotonic() + _STARTED_WITHIN_S
        while (found := _URL.search(log.read_text(errors="replace"))) is None:
            if MASTER not in self.running() or time.monotonic() > until_s:
                raise RunError("Spark's master did not start", hint=f"Details are in {log}.")
            time.sleep(_LOOK_EVERY_S)
        return found[1]


def _process(pid: int, born_s: float) -> psutil.Process | None:
    """The process with this number, if it is the one that was born then and is at work."""
    try:
        process = psutil.Process(pid)
        is_it = process.create_time() == born_s and process.status() != psutil.STATUS_ZOMBIE
        return process if is_it else None
    except psutil.NoSuchProcess:
        return None
