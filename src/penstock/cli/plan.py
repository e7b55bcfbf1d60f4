"""What is to be run, and whether it can be: everything that is known before Spark starts."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.pace import Speed, at_speed
from penstock.cli.ports import check_port
from penstock.errors import InputError
from penstock.model.fragments import Fragment
from penstock.model.network import Deployment, Network
from penstock.place.fuse import fuse

if TYPE_CHECKING:
    from penstock.spark.state import StateFolder

AS_WRITTEN = "as written"


@dataclass(frozen=True)
class RunRequest:
    """What was asked for on the command line."""

    file: Path
    state: Path | None = None
    fresh: bool = False
    for_us: int | None = None
    speed: Speed | None = None
    ui_port: int | None = None
    cores: int | None = None


@dataclass(frozen=True)
class RunPlan:
    """What will be run: the network at its speed, where it keeps its state, what it may use."""

    deployment: Deployment
    fragments: tuple[Fragment, ...]
    folder: Path
    cores: int
    memory_bytes: int

    @property
    def network(self) -> Network:
        return self.deployment.network


def planned(request: RunRequest) -> RunPlan:
    """The plan for a request; raises what is wrong with the file or the request."""
    from penstock.lang.deployment import read_deployment

    deployment = read_deployment(request.file)
    if request.speed is not None:
        deployment = replace(deployment, network=at_speed(deployment.network, request.speed))
    fragments = fuse(deployment.network)
    if not fragments:
        raise InputError(
            f"{request.file} has no queries whose results go anywhere",
            hint="Add one under queries:, or give one that has to: none a destination.",
        )
    if request.ui_port is not None:
        check_port(request.ui_port, "--spark-ui")
    beside = request.file.parent / ".penstock" / deployment.name
    folder = (request.state or beside).absolute()
    return RunPlan(deployment, fragments, folder, _cores(request, deployment), _memory(deployment))


def _cores(request: RunRequest, deployment: Deployment) -> int:
    wanted = sum(node.cores for node in deployment.nodes) or 2
    # More threads than processors would only take turns.
    return request.cores or max(1, min(wanted, os.cpu_count() or 1))


def _memory(deployment: Deployment) -> int:
    return sum(node.memory_bytes for node in deployment.nodes) or 1 << 30


def prepared_state(plan: RunPlan, request: RunRequest) -> StateFolder:
    """The state folder, made, emptied if that was asked for, and known to fit the plan.

    Raises if another process uses it, if it cannot be written, or if it was written by something
    else than this plan.
    """
    from penstock.spark.failures import explained
    from penstock.spark.state import StateFolder, StateLock

    state = StateFolder(plan.folder)
    state.prepare()
    try:
        lock = StateLock(state)
        try:
            _fit(plan, request, state)
        finally:
            lock.release()
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise explained(error, plan.deployment.name, state.log) from error
        raise InputError(
            f"the state folder {plan.folder} cannot be written: {error.strerror}",
            hint="Choose another with --state.",
        ) from error
    return state


def _fit(plan: RunPlan, request: RunRequest, state: StateFolder) -> None:
    mark = state.path / "speed"
    if request.fresh:
        state.clear()
        mark.unlink(missing_ok=True)
    speed = str(request.speed or AS_WRITTEN)
    _check_speed(mark, speed, request)
    for fragment in plan.fragments:
        state.check_plan(plan.network, fragment)
    mark.write_text(speed, encoding="utf-8")


def _check_speed(mark: Path, speed: str, request: RunRequest) -> None:
    former = mark.read_text(encoding="utf-8") if mark.is_file() else speed
    if former != speed:
        again = "without --speed" if former == AS_WRITTEN else f"with --speed {former}"
        raise InputError(
            f"the state in {mark.parent} is that of a run {again}",
            hint=f"Run {again} to go on, or with --fresh to start over.",
        )


def is_finished(plan: RunPlan, state: StateFolder) -> bool:
    """Whether an earlier run has finished all of it."""
    return all(state.fragment(one.name).is_finished for one in plan.fragments)


def has_begun(plan: RunPlan, state: StateFolder) -> bool:
    """Whether there is something to go on from."""
    return any(state.fragment(one.name).has_begun for one in plan.fragments)
