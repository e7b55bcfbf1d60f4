"""What is to be run, and whether it can be: everything that is known before Spark starts."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.app.pace import Speed, at_speed
from penstock.app.ports import check_port
from penstock.errors import InputError, listed
from penstock.model.fragments import Fragment
from penstock.model.network import Deployment, Network
from penstock.place.fuse import fuse
from penstock.place.growing import grown
from penstock.spark.generations import forget, generations, remember

if TYPE_CHECKING:
    from penstock.spark.state import StateFolder

AS_WRITTEN = "as written"
SYSTEM = "system"
"""Where in the folder of a run the system is that runs it on several nodes."""


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
    generations: Mapping[str, int] = field(default_factory=dict)

    @property
    def network(self) -> Network:
        return self.deployment.network


def plan_run(request: RunRequest) -> RunPlan:
    """The plan for a request; raises what is wrong with the file or the request."""
    from penstock.lang.deployment import read_deployment

    deployment = read_deployment(request.file)
    _check_placing(deployment)
    if request.speed is not None:
        deployment = replace(deployment, network=at_speed(deployment.network, request.speed))
    beside = request.file.parent / ".penstock" / deployment.name
    folder = (request.state or beside).absolute()
    state = folder / SYSTEM / "state" if is_on_nodes(deployment, request) else folder
    known = _generations(state, deployment.network, request.fresh)
    deployment = replace(deployment, network=grown(deployment.network, known))
    fragments = fuse(deployment.network)
    if not fragments:
        raise InputError(
            f"{request.file} has no queries whose results go anywhere",
            hint="Add one under queries:, or give one that has to: none a destination.",
        )
    if request.ui_port is not None:
        check_port(request.ui_port, "--spark-ui")
    cores, memory = _cores(request, deployment), _memory(deployment)
    return RunPlan(deployment, fragments, folder, cores, memory, known)


def is_on_nodes(deployment: Deployment, request: RunRequest) -> bool:
    """Whether it runs on several nodes, each a process of its own, or else in this process."""
    return len(deployment.nodes) > 1 and request.cores is None


def _generations(folder: Path, network: Network, are_first: bool) -> dict[str, int]:
    """When each query was added, by the state in a folder."""
    names = [query.name for query in network.queries]
    try:
        return dict.fromkeys(names, 0) if are_first else generations(folder, names)
    except OSError:
        # What is wrong with the folder is said when it is made.
        return dict.fromkeys(names, 0)


def _check_placing(deployment: Deployment) -> None:
    """Raises where the file names a node or a strategy that there is not."""
    names = [node.name for node in deployment.nodes]
    for query in deployment.network.queries:
        if query.on is not None and query.on not in names:
            raise InputError(
                f"query {query.name} is to run on {query.on}; the file names "
                f"{f'the nodes {listed(names)}' if names else 'no nodes'}",
                hint=f"Name it under nodes, for example nodes: {{{query.on}: {{cores: 2}}}}, "
                "or remove on.",
            )
    if deployment.placement:
        # Only now: what compiles the planners takes seconds to load.
        from penstock.place.registry import GROUP, strategies, strategy_called

        strategy_called(deployment.placement, strategies(entry_points(group=GROUP)))


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
    if request.fresh:
        remove_earlier(plan.network, state.path)
        state.clear()
        _speed_mark(state.path).unlink(missing_ok=True)
        forget(state.path)
    check_speed(state.path, request)
    for fragment in plan.fragments:
        state.check_plan(plan.network, fragment)
    remember_run(plan, request, state.path)


def room_warnings(plan: RunPlan) -> list[str]:
    """What to say before a run about joins for whose windows there is no room on the disk."""
    # Only now: what it needs is large.
    from penstock.control.disk_room import expected_shortages

    found = expected_shortages(plan.network, plan.fragments, plan.folder)
    return [f"warning: {shortage}" for shortage in found]


def remember_run(plan: RunPlan, request: RunRequest, state: Path) -> None:
    """Keeps which queries there are by now, and at what speed streams are played."""
    remember(state, dict(plan.generations))
    _speed_mark(state).write_text(_speed(request), encoding="utf-8")


def _speed_mark(state: Path) -> Path:
    return state / "speed"


def _speed(request: RunRequest) -> str:
    return str(request.speed or AS_WRITTEN)


def remove_earlier(network: Network, state: Path) -> None:
    """Says what earlier runs have written to files and tables, and removes it, or refuses to."""
    from penstock.spark.earlier_results import earlier_results

    found = earlier_results(state, network)
    for line in found.words():
        print(line, file=sys.stderr, flush=True)
    found.remove()


def check_speed(state: Path, request: RunRequest) -> None:
    """Raises if streams were played at another speed before."""
    mark, speed = _speed_mark(state), _speed(request)
    former = mark.read_text(encoding="utf-8") if mark.is_file() else speed
    if former != speed:
        again = "without --speed" if former == AS_WRITTEN else f"with --speed {former}"
        raise InputError(
            f"the state in {mark.parent} is that of a run {again}",
            hint=f"Run {again} to go on, or with --fresh to start over.",
        )


def is_finished(plan: RunPlan, state: StateFolder) -> bool:
    """Whether an earlier run has finished all of it."""
    return all(state.fragment(fragment.id).is_finished for fragment in plan.fragments)


def has_begun(plan: RunPlan, state: StateFolder) -> bool:
    """Whether there is something to go on from."""
    return any(state.fragment(fragment.id).has_begun for fragment in plan.fragments)
