"""Measuring a tree of processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import psutil

from penstock.control.meter import NodeMeter, NodeUse


class MadeUpProcess:
    """A process that has worked as long as it is told."""

    def __init__(self, pid: int, worked_s: float, resident: int, own: int, gone: bool = False):
        self.pid, self.worked_s, self.resident, self.own = pid, worked_s, resident, own
        self.gone = gone

    @contextmanager
    def oneshot(self) -> Iterator[None]:
        yield

    def cpu_times(self) -> SimpleNamespace:
        if self.gone:
            raise psutil.NoSuchProcess(self.pid)
        return SimpleNamespace(user=self.worked_s, system=0.0)

    def memory_info(self) -> SimpleNamespace:
        return SimpleNamespace(rss=self.resident)

    def memory_full_info(self) -> SimpleNamespace:
        return SimpleNamespace(pss=self.own)


def test_use_is_that_since_the_last_sample(monkeypatch) -> None:
    monkeypatch.setattr(psutil, "LINUX", True)
    java, worker = MadeUpProcess(1, 10.0, 500, 400), MadeUpProcess(2, 1.0, 100, 50)
    tree, now = [java, worker], [0.0]
    meter = NodeMeter(2, lambda: tree, lambda: now[0])
    now[0] = 1.0
    assert meter.sample() == NodeUse(0.0, 450, 600), "work before the first sample does not count"
    java.worked_s, worker.worked_s, now[0] = 11.0, 1.5, 2.0
    assert meter.sample().cpu == 0.75
    worker.gone, now[0] = True, 3.0
    assert meter.sample() == NodeUse(0.0, 400, 500)


def test_memory_counts_from_the_second_look_at_a_process(monkeypatch) -> None:
    monkeypatch.setattr(psutil, "LINUX", True)
    java, forked = MadeUpProcess(1, 0.0, 500, 400), MadeUpProcess(2, 0.0, 500, 400)
    tree = [java]
    meter = NodeMeter(1, lambda: tree)
    assert meter.sample().memory_bytes == 400
    tree.append(forked)
    assert meter.sample().memory_bytes == 400, "what it has is its parent's"
    forked.resident, forked.own = 3, 2
    assert meter.sample().memory_bytes == 402


def test_without_proportional_memory_resident_memory_stands_in(monkeypatch) -> None:
    monkeypatch.setattr(psutil, "LINUX", False)
    meter = NodeMeter(1, lambda: [MadeUpProcess(1, 0.0, 500, 400)])
    assert meter.sample().memory_bytes == 500


def test_this_process_uses_memory() -> None:
    use = NodeMeter(1).sample()
    assert 1_000_000 < use.memory_bytes <= use.resident_bytes
