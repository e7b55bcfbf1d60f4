"""What is known before Spark starts."""

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.app.pace import Speed
from penstock.app.run_plan import (
    RunPlan,
    RunRequest,
    has_begun,
    is_finished,
    plan_run,
    prepared_state,
    room_warnings,
)
from penstock.control import disk_room
from penstock.errors import InputError, RunError, UnreachableError, UsageError
from penstock.spark.state import StateFolder, StateLock

TINY = """\
streams:
  readings:
    source: {generate: meters, homes: 10, days: 1, speedup: 600}
    lateness: 2min
queries:
  peaks: SELECT home, kwh FROM readings WHERE kwh > 2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


def test_the_state_is_beside_the_file(file: Path) -> None:
    plan = plan_run(RunRequest(file))
    assert plan.folder == file.parent / ".penstock" / "tiny"
    assert [fragment.name for fragment in plan.fragments] == ["peaks"]
    assert plan_run(RunRequest(file, state=Path("/elsewhere"))).folder == Path("/elsewhere")


def test_nodes_say_what_may_be_used(file: Path) -> None:
    file.write_text(TINY + "nodes: {a: {cores: 1, memory: 1g}, b: {cores: 1, memory: 2g}}\n")
    plan = plan_run(RunRequest(file))
    assert plan.cores == min(2, os.cpu_count() or 1)
    assert plan.memory_bytes == 3 << 30
    assert plan_run(RunRequest(file, cores=7)).cores == 7


def test_the_speed_is_part_of_the_plan(file: Path) -> None:
    assert "'speedup': 'max'" in repr(plan_run(RunRequest(file, speed=Speed(None))).network)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        plan_run(RunRequest(tmp_path / "none.yaml"))
    assert str(raised.value).startswith(f"no file {tmp_path / 'none.yaml'}")


def test_nothing_to_run(file: Path) -> None:
    file.write_text(TINY.split("queries")[0])
    with pytest.raises(InputError) as raised:
        plan_run(RunRequest(file))
    assert str(raised.value) == (
        f"{file} has no queries whose results go anywhere. "
        "Add one under queries:, or give one that has to: none a destination."
    )


def test_a_port_in_use(file: Path) -> None:
    taken = r"port \d+ for --spark-ui cannot be used"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(UnreachableError, match=taken),
    ):
        plan_run(RunRequest(file, ui_port=server.getsockname()[1]))
    with pytest.raises(UsageError, match="--spark-ui 70000 is not a port"):
        plan_run(RunRequest(file, ui_port=70_000))


def prepared(request: RunRequest) -> tuple[RunPlan, StateFolder]:
    plan = plan_run(request)
    return plan, prepared_state(plan, request)


def test_a_new_state_has_nothing_to_go_on_from(file: Path) -> None:
    plan, state = prepared(RunRequest(file))
    assert not has_begun(plan, state)
    assert not is_finished(plan, state)


def test_a_finished_state_is_forgotten_when_fresh(file: Path) -> None:
    plan, state = prepared(RunRequest(file))
    state.fragment("peaks").take_over(1)
    state.fragment("peaks").finish()
    assert has_begun(plan, state)
    assert is_finished(*prepared(RunRequest(file)))
    assert not is_finished(*prepared(RunRequest(file, fresh=True)))


def test_a_locked_state(file: Path) -> None:
    _, state = prepared(RunRequest(file))
    lock = StateLock(state)
    with pytest.raises(RunError) as raised:
        prepared(RunRequest(file))
    lock.release()
    assert str(raised.value) == (
        f"the state in {state.path} is in use by process {os.getpid()}. "
        "Stop that process first, or choose another folder with --state."
    )


def test_a_changed_query(file: Path) -> None:
    _, state = prepared(RunRequest(file))
    file.write_text(TINY.replace("> 2", "> 3"))
    with pytest.raises(InputError) as raised:
        prepared(RunRequest(file))
    assert str(raised.value).startswith(
        f"peaks has changed since its state in {state.path} was written. Run with --fresh"
    )
    prepared(RunRequest(file, fresh=True))


def test_another_speed(file: Path) -> None:
    _, state = prepared(RunRequest(file))
    fast = RunRequest(file, speed=Speed(None))
    with pytest.raises(InputError) as raised:
        prepared(fast)
    assert str(raised.value) == (
        f"the state in {state.path} is that of a run without --speed. "
        "Run without --speed to go on, or with --fresh to start over."
    )
    prepared(replace(fast, fresh=True))
    prepared(fast)
    with pytest.raises(InputError) as raised:
        prepared(RunRequest(file))
    assert str(raised.value) == (
        f"the state in {state.path} is that of a run with --speed max. "
        "Run with --speed max to go on, or with --fresh to start over."
    )


def test_a_folder_that_cannot_be_made(file: Path) -> None:
    (file.parent / ".penstock").write_text("a file")
    with pytest.raises(InputError) as raised:
        prepared(RunRequest(file))
    assert str(raised.value) == (
        f"the state folder {file.parent / '.penstock' / 'tiny'} cannot be made: Not a directory. "
        "Choose another with --state."
    )


def test_a_folder_that_cannot_be_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(state: StateFolder) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("penstock.spark.state.StateLock", refused)
    with pytest.raises(InputError) as raised:
        prepared(RunRequest(file))
    assert str(raised.value) == (
        f"the state folder {file.parent / '.penstock' / 'tiny'} cannot be written: "
        "Permission denied. Choose another with --state."
    )


def test_a_full_disk(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(state: StateFolder) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("penstock.spark.state.StateLock", full)
    with pytest.raises(RunError, match=r"is full\. Free some space and run the same command again"):
        prepared(RunRequest(file))


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ("    on: b\n", "query peaks is to run on b; the file names no nodes"),
        ("placement: rood\n", "no placement strategy rood"),
    ],
)
def test_unknown_nodes_and_strategies_are_refused(file: Path, more: str, what: str) -> None:
    query = "  peaks:\n    sql: SELECT home, kwh FROM readings\n"
    file.write_text(TINY[: TINY.index("  peaks")] + query + more)
    with pytest.raises(InputError) as caught:
        plan_run(RunRequest(file))
    assert caught.value.what == what


def test_a_disk_that_is_too_small_is_warned_of(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paced = TINY.replace("days: 1, ", "")
    joined = "SELECT a.ts FROM readings a JOIN readings b ON a.home = b.home AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 DAY"  # noqa: E501
    file.write_text(f"{paced}  pairs: {joined}\n")
    monkeypatch.setattr(disk_room, "free_bytes", lambda folder: 100)
    (warning,) = room_warnings(plan_run(RunRequest(file)))
    assert warning.startswith("warning: the windows of pairs need ")
    monkeypatch.setattr(disk_room, "free_bytes", lambda folder: 10**12)
    assert room_warnings(plan_run(RunRequest(file))) == []
