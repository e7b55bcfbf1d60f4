"""Sums over a process and all below it."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil

from penstock.bench.processes import own_bytes, processor_s, resident_bytes, total
from waiting import until


def test_children_count() -> None:
    alone = total(os.getpid(), lambda _: 1)
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE):
        assert total(os.getpid(), lambda _: 1) == alone + 1
        assert total(os.getpid(), resident_bytes) >= total(os.getpid(), own_bytes) > 0
        assert total(os.getpid(), processor_s) > 0


FORKING = """
import os, sys
much = b"x" * (1 << 28)
child = os.fork()
if not child:
    print(flush=True)
    sys.stdin.readline()
    os.execvp("sleep", ["sleep", "60"])
os.wait()
"""


def test_a_process_just_forked_does_not_count_with_its_parents_memory() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        parent.stdout.readline()
        (child,) = psutil.Process(parent.pid).children()

        def become() -> None:
            assert parent.stdin is not None
            parent.stdin.write(b"\n")
            parent.stdin.flush()
            until(lambda: child.name() == "sleep")

        try:
            before = total(parent.pid, resident_bytes, settle=lambda: None)
            found = total(parent.pid, resident_bytes, settle=become)
        finally:
            child.kill()
            parent.kill()
    assert before > 2 * (1 << 28)
    assert (1 << 28) < found < 2 * (1 << 28)


def test_who_ends_meanwhile_does_not_count() -> None:
    def gone(process: psutil.Process) -> float:
        raise psutil.NoSuchProcess(process.pid)

    assert total(os.getpid(), gone) == 0
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert total(ended.pid, lambda _: 1) == 0
