"""Hosts of nodes: how they are written, and that a system keeps to its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from penstock.control.home import Home
from penstock.control.hosts import _is_running, checked_host
from penstock.control.node_process import _end_without_executor
from penstock.control.records import NodeRecord
from penstock.errors import InputError, UsageError
from waiting import until


@pytest.mark.parametrize(
    "written",
    ["processes", "inline", "cluster", "spark://m:7077", "spark://a:1,b:2", "k8s://https://x"],
)
def test_hosts_there_are(written: str) -> None:
    assert checked_host(written) == written


@pytest.mark.parametrize("written", ["", "threads", "spark://m", "local[2]", "k8s://", "yarn"])
def test_hosts_there_are_not(written: str) -> None:
    with pytest.raises(UsageError, match=r"nodes cannot run on .*There are processes, inline"):
        checked_host(written)


def test_a_system_keeps_to_its_host(tmp_path: Path) -> None:
    home = Home(tmp_path / "system")
    home.prepare(host="inline")
    home.prepare()
    home.prepare(host="inline")
    assert home.host == "inline"
    with pytest.raises(InputError, match=r"are inline, not cluster\. Leave --on out"):
        home.prepare(host="cluster")
    assert home.host == "inline"


def test_without_a_word_nodes_are_processes(tmp_path: Path) -> None:
    home = Home(tmp_path / "system")
    home.prepare()
    with pytest.raises(InputError, match="are processes, not inline"):
        home.prepare(host="inline")


def test_another_systems_node_with_our_number_is_not_ours(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; sys.stdin.read()",
        "penstock.control.node_process",
    ]
    with subprocess.Popen([*command, str(tmp_path / "b"), "n1"], stdin=subprocess.PIPE) as process:
        until(lambda: "n1" in psutil.Process(process.pid).cmdline())
        node = NodeRecord("n1", 1, 1 << 30, pid=process.pid)
        assert _is_running(Home(tmp_path / "b"), node)
        assert not _is_running(Home(tmp_path / "a"), node)
        assert not _is_running(Home(tmp_path / "b"), replace(node, name="n2"))
        process.communicate(b"")


def test_a_node_ends_when_its_executor_is_gone_for_good() -> None:
    known = iter([True, *[False] * 9, True, *[False] * 10])
    slept: list[float] = []
    stopped: list[int] = []
    _end_without_executor(lambda: next(known), lambda: stopped.append(len(slept)), slept.append)
    assert stopped == [21], "one that comes back in time is waited for"
    assert next(known, None) is None
