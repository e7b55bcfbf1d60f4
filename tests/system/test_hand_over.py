"""kill -9 of real processes at the very steps of a hand-over: source, target and controller."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.control.client import Client
from penstock.control.launch import CONTROLLER, bring_up, is_up
from system.test_exactly_once import HOMES, SPEEDUP, expected
from system.under_test import UnderTest
from waiting import until

DAYS = 12
DEPLOYMENT = f"""
streams:
  readings:
    source: {{generate: meters, homes: {HOMES}, every: 15min, days: {DAYS}, disorder: 10min,
             speedup: {SPEEDUP}}}
    lateness: 8min
queries:
  sliding:
    sql: |
      SELECT home, window.start AS since, sum(kwh) AS kwh, count(*) AS n
      FROM readings GROUP BY home, window(ts, '2 hours', '30 minutes')
"""
UNIT = "sliding"
# In the order of a hand-over; a node rehearses only what is new to it, so that comes first.
STEPS = [
    ("target", "rehearse"),
    ("target", "arm"),
    ("target", "armed"),
    ("controller", "assign"),
    ("controller", "change move"),
    ("source", "release"),
    ("source", "released"),
    ("target", "claim"),
    ("target", "take over"),
    ("target", "clean up"),
    ("target", "start"),
    ("target", "commit"),
    ("target", "committed"),
]


class Mortal(UnderTest):
    """A system whose processes kill themselves when a test says so."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self._controllers: list[subprocess.Popen[bytes]] = []
        super().__init__(folder, nodes)

    def _up(self) -> Client:
        self.home.prepare()
        (self.home.path / "mortal").mkdir(exist_ok=True)
        self.home.forget_address()
        command = [sys.executable, "-m", "system.mortal", "controller", str(self.home.path)]
        # By its last word the controller is known when it is stopped.
        command.append(CONTROLLER)
        with self.home.log("controller").open("ab") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=output, start_new_session=True
            )
        self._controllers.append(process)
        until(lambda: is_up(self.home), 60, "the controller answers")
        return bring_up(self.home, self._specs, patience_s=240)

    def has_died(self, step: str) -> bool:
        return not (self.home.path / "mortal" / step).exists()

    def die_at(self, step: str, who: str) -> None:
        (self.home.path / "mortal" / step).write_text(who)

    def idle_node(self) -> str:
        """A node that runs nothing, and lives."""
        used = {unit.node for unit in self.catalog.units()}
        now_s = self.catalog.now_s()
        alive = [node.name for node in self.catalog.nodes() if node.is_alive(now_s)]
        return next(name for name in alive if name not in used)

    def stop(self) -> None:
        super().stop()
        for process in self._controllers:
            process.kill()
            process.wait()


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mortal]:
    here = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
    made = Mortal(tmp_path, nodes=3)
    yield made
    made.stop()


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("steps", [STEPS[:7], STEPS[7:]], ids=["until released", "from the claim"])
def test_killed_at_every_step(system: Mortal, steps: list[tuple[str, str]]) -> None:
    system.submit("meters", DEPLOYMENT)
    until(lambda: system.count(UNIT) > 0, 120, "first results")
    for role, step in steps:
        assert system.fragments(), f"it was over before anybody could die at {step}"
        print(f"  {role} dies at: {step}", flush=True)
        strike(system, role, step)
    system.await_finished(900)
    found, wanted = system.rows(UNIT), expected(DAYS)[UNIT]
    assert found == wanted, f"{(wanted - found).total()} missing, {(found - wanted).total()} more"


def strike(system: Mortal, role: str, step: str) -> None:
    source, target = system.node_of(UNIT), system.idle_node()
    victim = {"source": source, "target": target}.get(role, role)
    former = 0 if role == "controller" else system.pid(victim)
    system.die_at(step, victim)
    assert system.begin_move(UNIT, target)
    until(lambda: system.has_died(step), 120, f"{role} comes to {step}")
    if role == "controller":
        until(lambda: not is_up(system.home), 20, "the controller is dead")
        system.restart_controller()
    else:
        until(lambda: system.pid(victim) != former, 120, f"node {victim} is back")
    until(lambda: not system.catalog.moves(open_only=True), 120, "the move has ended")
    until(lambda: system.is_up(UNIT), 120, f"{UNIT} runs")
    seen = len(system.channel(UNIT).sequences())
    until(
        lambda: len(system.channel(UNIT).sequences()) > seen or not system.fragments(),
        120,
        f"{UNIT} gives results",
    )
