"""A node as a process: how it ends, and what it says then."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from penstock.control import node_process
from penstock.errors import RunError


def test_what_goes_wrong_in_the_thread_of_the_agent_is_raised() -> None:
    def work() -> None:
        raise OSError("no room\nleft")

    with pytest.raises(OSError, match="no room"):
        node_process._run_apart(work)


def test_it_ends_with_a_code_and_the_reason_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def run(home: object, name: str, master: str | None) -> None:
        raise OSError("no room\nleft")

    caplog.set_level(logging.INFO)
    monkeypatch.setattr(node_process, "_run", run)
    assert node_process.main([str(tmp_path), "a"]) == RunError.exit_code
    last = caplog.records[-1]
    assert (last.levelname, last.getMessage()) == ("ERROR", "node a ends: OSError: no room left")
    assert last.exc_info is None
    assert caplog.records[-2].exc_info


def test_a_mistake_has_its_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def run(home: object, name: str, master: str | None) -> None:
        raise RunError("it broke", hint="Mend it.")

    monkeypatch.setattr(node_process, "_run", run)
    assert node_process.main([str(tmp_path), "a"]) == 4
    assert caplog.messages == ["it broke. Mend it."]
