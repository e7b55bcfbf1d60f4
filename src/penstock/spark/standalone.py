"""A Spark standalone cluster of this machine, from the installed package: a worker for each node.

Its processes outlive who started them, so that whoever comes next finds them at work; a file says
which they are. They take orders only from who knows the secret in the folder of settings.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from penstock.errors import RunError
from penstock.spark.archive import spark_home
from penstock.spark.java import find_java
from penstock.spark.masters import resource_of

_HOST = "127.0.0.1"
_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"(Successfully registered) with master")
_STARTED_WITHIN_S = 60.0
_STOPPED_WITHIN_S = 20.0
_LOOK_EVERY_S = 0.05
_DEPLOY = "org.apache.spark.deploy"
_MASTER = "master"


@dataclass(frozen=True)
class StandaloneCluster:
    """The cluster kept in ``folder``; ``settings`` is where Spark's processes read theirs."""

    folder: Path
    settings: Path

    def keep_up(self, nodes: Mapping[str, tuple[int, int]]) -> str:
        """Starts what does not run, with these cores and bytes of memory; the master's address."""
        running = self._running()
        if _MASTER not in running:
            self.stop()
            self._write_secret()
            started = self._run(_MASTER, f"{_DEPLOY}.master.Master", [], {})
            running = {_MASTER: started.pid}
            self._remember(running)
        master = self._said(_MASTER, running[_MASTER], _URL)
        for node, (cores, memory_bytes) in nodes.items():
            if node not in running:
                running[node] = self._start_worker(master, node, cores, memory_bytes)
                self._remember(running)
        return master

    def stop(self) -> None:
        """Ends all processes; executors end with their workers."""
        processes = [psutil.Process(pid) for pid in self._running().values()]
        for process in processes:
            process.terminate()
        _, left = psutil.wait_procs(processes, _STOPPED_WITHIN_S)
        for process in left:
            process.kill()
        self._known.unlink(missing_ok=True)

    def log(self, name: str) -> Path:
        """What the master, or the worker of a node, has printed."""
        return self.folder / f"{name}.log"

    def work(self, node: str) -> Path:
        """The folder in which the worker of a node runs executors."""
        return self.folder / node

    @property
    def _known(self) -> Path:
        return self.folder / "processes.json"

    def _running(self) -> dict[str, int]:
        known = json.loads(self._known.read_text()) if self._known.exists() else {}
        return {name: pid for name, pid in known.items() if _is_ours(pid)}

    def _remember(self, running: Mapping[str, int]) -> None:
        growing = self._known.with_suffix(".new")
        growing.write_text(json.dumps(dict(running)))
        growing.replace(self._known)

    def _write_secret(self) -> None:
        """Lets nobody else on this machine give orders to the cluster."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.settings.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.settings / "spark-defaults.conf"
        if not path.exists():
            with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
                file.write("spark.authenticate true\n")
                file.write(f"spark.authenticate.secret {secrets.token_urlsafe(32)}\n")

    def _start_worker(self, master: str, node: str, cores: int, memory_bytes: int) -> int:
        resource = resource_of(node)
        known = {"componentName": "spark.worker", "resourceName": resource}
        resources = self.folder / f"{node}.resources.json"
        resources.write_text(json.dumps([{"id": known, "addresses": ["0"]}]))
        options = (
            f"-Dspark.worker.resource.{resource}.amount=1 -Dspark.worker.resourcesFile={resources}"
        )
        size = f"{memory_bytes >> 20}M"
        place = ["--cores", str(cores), "--memory", size, "--work-dir", str(self.work(node))]
        process = self._run(
            node,
            f"{_DEPLOY}.worker.Worker",
            [*place, master],
            {"SPARK_WORKER_OPTS": options},
        )
        self._said(node, process.pid, _REGISTERED)
        return process.pid

    def _run(
        self, name: str, program: str, arguments: Sequence[str], more: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
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
            return subprocess.Popen(
                [*command, *place, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _said(self, name: str, pid: int, what: re.Pattern[str]) -> str:
        """What a process says once it works; raises if it ends before."""
        log = self.log(name)
        until_s = time.monotonic() + _STARTED_WITHIN_S
        while (found := what.search(log.read_text(errors="replace"))) is None:
            if not _is_ours(pid) or time.monotonic() > until_s:
                raise RunError(f"Spark's {name} did not start", hint=f"Details are in {log}.")
            time.sleep(_LOOK_EVERY_S)
        return found[1]


def _is_ours(pid: int) -> bool:
    """Whether a process is one of a Spark cluster and at work."""
    try:
        process = psutil.Process(pid)
        is_alive = process.status() != psutil.STATUS_ZOMBIE
        # Before it is Spark's own program it is the script that starts it.
        return is_alive and any("spark" in part for part in process.cmdline())
    except psutil.Error:
        return False
