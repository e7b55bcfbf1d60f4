"""A system of real processes under test: started, disturbed, and its results read from disk."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow.parquet as pq

from penstock.channels.channel import Channel
from penstock.control.catalog import Catalog
from penstock.control.client import Client
from penstock.control.home import Home
from penstock.control.launch import bring_down, bring_up
from penstock.errors import PenstockError
from penstock.model.beginnings import StartKind
from penstock.model.network import NodeSpec
from waiting import until

Rows = Counter[tuple[object, ...]]
# A mean of 112 readings in thousandths can lie half-way between two numbers of six digits, and then
# the order of additions decides how it is rounded; half-way between two of nine it cannot.
_DIGITS = 9


class UnderTest:
    """One system and the ways to disturb it."""

    def __init__(
        self,
        folder: Path,
        nodes: int,
        host: str | None = None,
        parents: Mapping[str, str | None] | None = None,
    ) -> None:
        self._host = host
        self.home = Home(folder / "home")
        named = parents or dict.fromkeys("abcdef"[:nodes])
        self._specs = [NodeSpec(name, 1, 1 << 29, parent) for name, parent in named.items()]
        self.client = self._up()
        self.catalog = Catalog(self.home.catalog_url)

    def _up(self) -> Client:
        return bring_up(self.home, self._specs, patience_s=240, host=self._host)

    def submit(self, name: str, text: str, start: StartKind = "now") -> None:
        """Submits a deployment; everything it gives is kept for the test."""
        self.client.submit(name, "yaml", text, str(self.home.path.parent), start=start)
        for unit in self.catalog.units():
            self.channel(unit.name).register("outside_test")

    def channel(self, stream: str) -> Channel:
        return Channel.open(self.home.state / "channels" / stream)

    def rows(self, stream: str) -> Rows:
        """Every row of a result, as values that can be compared."""
        channel, found = self.channel(stream), Rows()
        for manifest in channel.newer(0):
            for file in manifest.files:
                table = pq.read_table(channel.path_of(file))
                found.update(map(_comparable, table.to_pylist()))
        return found

    def count(self, stream: str) -> int:
        """How many rows of a stream are out."""
        return sum(manifest.rows for manifest in self.channel(stream).newer(0))

    def batches(self) -> int:
        """How many batches all fragments together have given."""
        channels = (self.home.state / "channels").iterdir()
        return sum(len(Channel(folder).sequences()) for folder in channels)

    def node_of(self, unit: str) -> str:
        return next(one.node or "" for one in self.catalog.units() if one.name == unit)

    def epoch_of(self, unit: str) -> int:
        return next(one.epoch for one in self.catalog.units() if one.name == unit)

    def is_up(self, unit: str) -> bool:
        """Whether its present owner has said that it runs."""
        return next(one.is_up for one in self.catalog.units() if one.name == unit)

    def pid(self, node: str) -> int:
        return next(one.pid for one in self.catalog.nodes() if one.name == node)

    def fragments(self) -> list[str]:
        """Those that can be moved now."""
        return [
            unit.name
            for unit in self.catalog.units()
            if unit.kind == "fragment" and unit.state != "finished" and unit.node
        ]

    def move(self, unit: str, node: str) -> str:
        """Moves a unit and waits for what comes of it: ``done``, ``failed`` or why it cannot."""
        try:
            begun = self.client.move(unit, node)
        except PenstockError as error:
            return str(error)
        return str(self.client.await_move(begun.id, 120).state)

    def begin_move(self, unit: str, node: str) -> bool:
        """Asks for a move and does not wait for it; whether there was one to be made."""
        try:
            self.client.move(unit, node)
        except PenstockError:
            return False
        return True

    def move_some(self, rng: random.Random) -> str:
        """Moves a random fragment to a random other node."""
        movable = self.fragments()
        if not movable:
            return "nothing left to move"
        unit = rng.choice(movable)
        others = [spec.name for spec in self._specs if spec.name != self.node_of(unit)]
        return self.move(unit, rng.choice(others))

    def kill_node(self, node: str) -> None:
        """kill -9 of everything a node consists of."""
        process = psutil.Process(self.pid(node))
        for child in [process, *process.children(recursive=True)]:
            child.kill()
        psutil.wait_procs([process], timeout=10)

    def kill_node_until(
        self, node: str, condition: Callable[[], object], what: str, patience_s: float = 60.0
    ) -> None:
        """kill -9 of a node, and of whatever is started in its place, until the condition holds.

        A node that is back before its lease has ended goes on with its units; this one is not.
        """
        self.kill_node(node)
        until(condition, patience_s, what, check=lambda: self._kill_successor(node))

    def _kill_successor(self, node: str) -> None:
        words = ["penstock.control.node_process", str(self.home.path), node]
        for process in psutil.process_iter(["cmdline"]):
            if all(word in (process.info["cmdline"] or ()) for word in words):
                with suppress(psutil.NoSuchProcess):
                    process.kill()

    def pause_node(self, node: str) -> list[psutil.Process]:
        """SIGSTOP of everything a node consists of."""
        process = psutil.Process(self.pid(node))
        stopped = [process, *process.children(recursive=True)]
        for one in stopped:
            one.suspend()
        return stopped

    def stand_still(self, seconds: float) -> None:
        """SIGSTOP of everything that the system consists of, as if the machine were suspended."""
        controller = psutil.Process(self.home.address().pid)
        stopped = [controller, *controller.children(recursive=True)]
        for process in stopped:
            process.suspend()
        stopped += [one for node in self._specs for one in self.pause_node(node.name)]
        time.sleep(seconds)
        for process in stopped:
            with suppress(psutil.NoSuchProcess):
                process.resume()

    def pause_in_batch(
        self, units: list[str], limit_s: float = 30.0
    ) -> tuple[str, list[psutil.Process]]:
        """SIGSTOP of the owner of one of the units while it writes a batch of it; which, and whom.

        Nobody if none was seen to.
        """
        until_s = time.monotonic() + limit_s
        while time.monotonic() < until_s:
            unit = next(filter(self._is_writing, units), None)
            if unit is not None:
                stopped = self.pause_node(self.node_of(unit))
                if self._is_writing(unit):
                    return unit, stopped
                for process in stopped:
                    process.resume()
            time.sleep(0.002)
        return "", []

    def _is_writing(self, unit: str) -> bool:
        # Of other owners, killed ones leave theirs behind.
        return any(self.channel(unit).data.glob(f".staging-{self.epoch_of(unit)}-*"))

    def kill_controller(self) -> int:
        """kill -9 of the controller; its process."""
        pid = self.home.address().pid
        os.kill(pid, signal.SIGKILL)
        until(lambda: not _is_alive(pid), 10, "the controller is dead")
        return pid

    def restart_controller(self) -> None:
        self.client.close()
        self.client = self._up()

    def await_finished(self, limit_s: float) -> None:
        """Waits until every unit has given all it will ever give."""

        def states() -> list[tuple[str, str, str]]:
            units = self.catalog.units()
            return [
                (unit.name, unit.state, unit.error) for unit in units if unit.state != "finished"
            ]

        until(lambda: not states(), limit_s, states)

    def log(self, name: str) -> str:
        """What the controller or a node has said so far."""
        path = self.home.log(name)
        return path.read_text(errors="replace") if path.exists() else ""

    def stop(self) -> None:
        """Ends it, one way or another."""
        self.client.close()
        pids = [node.pid for node in self.catalog.nodes() if node.pid]
        try:
            bring_down(self.home)
        except PenstockError:
            pids.append(self.home.address().pid)
        for pid in filter(_is_alive, pids):
            os.kill(pid, signal.SIGCONT)
            os.killpg(pid, signal.SIGKILL)
        self.catalog.close()


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _comparable(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(
        round(value, _DIGITS) if isinstance(value, float) else str(value) for value in row.values()
    )
