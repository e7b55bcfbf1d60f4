"""Running a deployment with devices: a system of its own, and a station that devices tune in to."""

from __future__ import annotations

import json as json_text
import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.app.pace import at_speed
from penstock.app.run_plan import SYSTEM
from penstock.cli.device_text import device_lines
from penstock.errors import RunError

if TYPE_CHECKING:
    from penstock.app.run_plan import RunRequest
    from penstock.app.signals import StopRequest
    from penstock.control.client import Client
    from penstock.model.network import Deployment

_LOOK_EVERY_S = 0.5
_OVER = ("finished", "unread", "unreadable")


def run_for_devices(
    request: RunRequest, deployment: Deployment, stop: StopRequest, json: bool
) -> None:
    """Runs it until everything has been broadcast, its time is up, or somebody asks."""
    from penstock.control.home import Home
    from penstock.control.launch import bring_down, bring_up
    from penstock.device.splitting import served
    from penstock.model.network import NodeSpec

    served(deployment)  # What cannot be cut is refused before anything is started.
    beside = request.file.parent / ".penstock" / deployment.name
    home = Home((request.state or beside).absolute() / SYSTEM)
    if request.fresh:
        shutil.rmtree(home.path, ignore_errors=True)
    client = bring_up(home, deployment.nodes or (NodeSpec("n1", request.cores or 1),))
    try:
        _submit(client, request, deployment)
        _say(f"devices register with the token in {home.path / 'device-token'}", json)
        found = _follow(client, request, stop, json)
    finally:
        client.close()
        bring_down(home)
    print(json_text.dumps(found) if json else "\n".join(device_lines(found)))


def _submit(client: Client, request: RunRequest, deployment: Deployment) -> None:
    from penstock.lang.deployment import deployment_yaml

    if any(known.name == deployment.name for known in client.system().queries):
        return  # It goes on.
    if request.speed is not None:
        deployment = replace(deployment, network=at_speed(deployment.network, request.speed))
    text = deployment_yaml(deployment, show_passwords=True)
    client.submit(deployment.name, "yaml", text, str(request.file.absolute().parent))


def _follow(
    client: Client, request: RunRequest, stop: StopRequest, json: bool
) -> list[dict[str, Any]]:
    began_s, told = time.monotonic(), 0
    found: list[dict[str, Any]] = []
    while not stop.wait(_LOOK_EVERY_S):
        found = [station.model_dump() for station in client.devices()]
        fragments = client.system().fragments
        for fragment in fragments:
            if fragment.state == "failed" and fragment.restarts >= fragment.restarts_at_most:
                raise RunError(fragment.error, hint="penstock logs says more.")
        for station in found[told:]:
            names = ", ".join(station["queries"])
            _say(f"station 127.0.0.1:{station['port']} broadcasts {names}", json)
        told = len(found)
        queries = [query for station in found for query in station["queries"].values()]
        is_sent = bool(queries) and all(query["ended"] for query in queries)
        if is_sent and all(fragment.state in _OVER for fragment in fragments):
            break
        if request.for_us is not None and time.monotonic() - began_s >= request.for_us / 1e6:
            break
    return found


def _say(text: str, json: bool) -> None:
    if not json:
        print(text, flush=True)
