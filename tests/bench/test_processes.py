"""Sums over a process and all below it."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

import psutil

from penstock.bench.processes import own_bytes, processor_s, resident_bytes, total


def test_children_count() -> None:
    alone = total(os.getpid(), lambda _: 1)
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE):
        assert total(os.getpid(), lambda _: 1) == alone + 1
        assert total(os.getpid(), resident_bytes) >= total(os.getpid(), own_bytes) > 0
        assert total(os.getpid(), processor_s) > 0


FORKING = """
import os, time
much = b"x" * (1 << 28)
print(flush=True)
while True:
    if not os.fork():
        time.sleep(0.02)
        os.execvp("true", ["true"])
    os.wait()
"""


def test_a_process_just_forked_does_not_count_with_its_parents_memory() -> None:
    with subprocess.Popen([sys.executable, "-c", FORKING], stdout=subprocess.PIPE) as parent:
        try:
            assert parent.stdout is not None
            parent.stdout.readline()
            found = median(total(parent.pid, resident_bytes) for _ in range(21))
        finally:
            parent.kill()
    assert (1 << 28) < found < (1 << 29)


def test_who_ends_meanwhile_does_not_count() -> None:
    def gone(process: psutil.Process) -> float:
        raise psutil.NoSuchProcess(process.pid)

    assert total(os.getpid(), gone) == 0
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert total(ended.pid, lambda _: 1) == 0
