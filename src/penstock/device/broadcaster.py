"""The broadcaster of one deployment: cycles from channels, sent to all who registered.

What it needs after a restart is on disk: plans, the number of its last start, and in every channel
how far it has come. The place in a channel stays some cycles behind what was sent, because what is
in a socket when a process dies may be lost: rows that are sent again are known by the numbers of
their batches, and counted once.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from penstock.channels.channel import Channel
from penstock.channels.durable import read_number, write_record
from penstock.control.broadcast_models import DeviceAnswer
from penstock.device.chain import Chain, chain_of
from penstock.device.following import Followed, follow
from penstock.device.memory import BroadcastMemory
from penstock.device.payload import AirKey, pack
from penstock.device.plans import OnAir, ShippedPlan
from penstock.device.profiles import merge_profile
from penstock.device.report import battery_lives
from penstock.device.splitting import first_cuts
from penstock.device.station import Answer, Station
from penstock.errors import InputError, RunError, listed, suggestion
from penstock.model.devices import DeviceProfile, DeviceSection
from penstock.model.ids import ReaderId
from penstock.model.network import Deployment
from penstock.power.air.cycle import AirResult, CycleHead, encode_cycle

_KEY_BYTES = 32
_LAGGING_CYCLES = 2
_RETURN_S = 10.0
"""How long a disseminator that has been restarted waits for those who listened before."""

log = logging.getLogger(__name__)


@dataclass
class _Query:
    """A query of the deployment: its chain, its plan, and how far it has been sent."""

    chain: Chain
    on_air: OnAir
    next: int = 0
    key: AirKey = field(default_factory=AirKey)
    sent_rows: int = 0
    sent_bytes: int = 0
    ended: bool = False
    latest_us: int | None = None
    awaited: int = 0


class Broadcaster:
    """Broadcasts the queries of ``deployment``, whose network is the whole one.

    ``folder`` is where it remembers, ``channels`` where the system keeps its channels, ``token``
    what devices have to know, ``submission`` the number under which the deployment runs.
    """

    def __init__(
        self,
        deployment: Deployment,
        folder: Path,
        channels: Path,
        token: str,
        submission: int = 0,
    ) -> None:
        assert deployment.devices is not None and deployment.whole is not None
        self.deployment = deployment
        self.section: DeviceSection = deployment.devices
        self._folder, self._channels, self._token = folder, channels, token
        folder.mkdir(parents=True, exist_ok=True)
        self._memory_path = memory_path(folder, deployment.name)
        self._memory = BroadcastMemory.recall(self._memory_path, submission).started()
        self._cycle = 0
        self._key = b"" if self.section.is_open else secrets.token_bytes(_KEY_BYTES)
        self._queries = self._known_queries(self._memory.plans)
        self.station = Station(self._memory.port, self._answer)
        self._lagging: deque[dict[str, int]] = deque()
        self._cycle_bytes = 0
        self.began_s = time.monotonic()
        self._remember()

    @property
    def _broadcast(self) -> int:
        return self._memory.starts

    def _known_queries(self, known: Mapping[str, OnAir]) -> dict[str, _Query]:
        whole = self.deployment.whole
        assert whole is not None
        cuts = first_cuts(replace(self.deployment, network=whole))
        found = {}
        for at, query in enumerate(self.section.queries):
            chain = chain_of(whole, query.name)
            first = OnAir.first(at + 1, chain, cuts[query.name])
            on_air = known.get(query.name, first)
            key = b"" if self.section.is_open else secrets.token_bytes(_KEY_BYTES)
            found[query.name] = _Query(chain, on_air, key=AirKey(key), awaited=on_air.listeners)
            self._enter(found[query.name])
        return found

    def _enter(self, query: _Query) -> None:
        """Takes its place in the channel that a plan follows."""
        channel = self._channel(query.on_air.stream)
        channel.register(self._reader(query))
        place = read_number(channel.folder / "readers" / self._reader(query)) or 0
        query.next = max(place, channel.oldest() if place == 0 else place)

    def _reader(self, query: _Query) -> ReaderId:
        return ReaderId(f"devices_{query.chain.query}")

    def _channel(self, stream: str) -> Channel:
        return Channel.open(self._channels / stream)

    def _remember(self) -> None:
        self._memory = replace(self._memory, port=self.station.port, plans=self.on_air())
        self._memory.keep(self._memory_path)

    def run(
        self, is_over: Callable[[], bool], after_cycle: Callable[[], None] = lambda: None
    ) -> None:
        """Sends cycle after cycle until it is over."""
        period_s = self.section.broadcast.cycle_s
        due_s, told_s = time.monotonic(), 0.0
        while not is_over():
            due_s = max(due_s + period_s, time.monotonic())
            self.step()
            after_cycle()
            if time.monotonic() - told_s >= 1.0:
                told_s = time.monotonic()
                self.tell()
            while time.monotonic() < due_s and not is_over():
                self.station.pump(min(due_s, time.monotonic() + 0.2))
        self._settle()

    def _settle(self) -> None:
        """Sends what is on its way, and keeps the place behind it."""
        until_s = time.monotonic() + 2.0
        while not self.station.is_drained and time.monotonic() < until_s:
            self.station.pump(time.monotonic() + 0.05)
        if self.station.is_drained:
            while self._lagging:
                self._advance(self._lagging.popleft())
        self.tell()
        self.station.close()

    def step(self) -> int:
        """Sends one cycle; how many bytes it has, 0 if there is nothing to send."""
        results: list[AirResult] = []
        news: list[tuple[_Query, Followed]] = []
        for query in self._queries.values():
            found = self._news(query)
            if found is not None:
                news.append((query, found))
        if news:
            self._cycle += 1
        for query, found in news:
            payload = query.key.lock(pack(found.rows, found.place), self._broadcast, self._cycle)
            on_air = query.on_air
            results.append(AirResult(on_air.number, on_air.plan, payload, self._watts(query)))
            query.next, query.ended = found.place.next, found.place.ended
            query.latest_us = found.latest_us
            query.sent_rows += found.rows.num_rows
            query.sent_bytes += len(payload)
        if results:
            self._send(results)
        self._lagging.append({name: query.next for name, query in self._queries.items()})
        if len(self._lagging) > _LAGGING_CYCLES:
            self._advance(self._lagging.popleft())
        for query, found in news:
            self._switch_if_due(query, found)
        return self._cycle_bytes if results else 0

    def _send(self, results: list[AirResult]) -> None:
        broadcast = self.section.broadcast
        period_ms = round(broadcast.cycle_s * 1000)
        head = CycleHead(broadcast.organisation, self._broadcast, self._cycle, period_ms, self._key)
        made = encode_cycle(head, results)
        self._cycle_bytes = len(made.data)
        self.station.send(made.data)

    def _news(self, query: _Query) -> Followed | None:
        if not query.on_air.has_begun:
            if len(self.listeners(query.chain.query)) < self.section.listeners:
                return None
            query.on_air = replace(query.on_air, has_begun=True)
            self._remember()
        if self._are_returning(query):
            return None
        on_air = query.on_air
        shape = query.chain.shape_at(on_air.cut)
        channel = self._channel(on_air.stream)
        try:
            return follow(channel, shape, query.next, on_air.until_us)
        except (FileNotFoundError, RunError):
            oldest = channel.oldest()
            if oldest <= query.next:
                raise
            log.warning("%s: batches %s to %s are gone", on_air.stream, query.next, oldest - 1)
            query.next = oldest
            return None

    def _are_returning(self, query: _Query) -> bool:
        """Whether some who listened before a restart may still come back; notes who is there."""
        count = len(self.listeners(query.chain.query))
        is_early = time.monotonic() - self.began_s < _RETURN_S
        if is_early and count < query.awaited:
            return True
        query.awaited = 0
        if count != query.on_air.listeners:
            query.on_air = replace(query.on_air, listeners=count)
            self._remember()
        return False

    def _advance(self, places: Mapping[str, int]) -> None:
        for name, place in places.items():
            query = self._queries[name]
            if place <= query.next:  # Of the plan before, otherwise.
                # One batch before it is kept: it tells how far time had come.
                channel = self._channel(query.on_air.stream)
                channel.advance(self._reader(query), max(0, place - 1))

    def _switch_if_due(self, query: _Query, found: Followed) -> None:
        """Goes over to the next plan once the present one has been sent up to its end."""
        on_air, reached_us = query.on_air, found.place.watermark_us
        if on_air.until_us is None or reached_us is None or reached_us < on_air.until_us:
            return
        self._channel(on_air.stream).forget(self._reader(query))
        query.on_air, query.next = on_air.following(), 0
        self._lagging.clear()
        self._remember()
        self._enter(query)
        log.info("%s is cut at %s from now on", query.chain.query, query.on_air.cut)

    def on_air(self) -> dict[str, OnAir]:
        """The present plan of every query."""
        return {name: query.on_air for name, query in self._queries.items()}

    def chains(self) -> dict[str, Chain]:
        """The chain of every query."""
        return {name: query.chain for name, query in self._queries.items()}

    def plan_switch(self, name: str, then: Mapping[str, Any], until_us: int) -> None:
        """Has a query go over to another plan at a moment of its stream."""
        query = self._queries[name]
        query.on_air = replace(query.on_air, until_us=until_us, then=dict(then))
        self._channel(str(then["stream"])).register(self._reader(query))
        self._remember()

    def listeners(self, query: str) -> list[DeviceProfile]:
        """Those who listen to a query now."""
        return [
            self._profile(receiver.asked)
            for receiver in self.station.tuned
            if receiver.asked.get("query") == query
        ]

    def _watts(self, query: _Query) -> float:
        return sum(device.receiving_w for device in self.listeners(query.chain.query)) or 1e-9

    def _answer(self, asked: Mapping[str, Any]) -> tuple[Answer, bool]:
        self._check_token(asked)
        name = asked.get("query")
        if name not in self._queries:
            hint = suggestion(str(name), self._queries)
            raise InputError(f"no query {name} here; there are {listed(self._queries)}", hint=hint)
        query = self._queries[str(name)]
        plan = ShippedPlan.of(query.on_air, query.chain).to_record()
        if asked.get("ask") == "plan":
            return {"plan": plan}, False
        profile = self._profile(asked)
        broadcast = self.section.broadcast
        answer = {
            "number": query.on_air.number,
            "origin": self._memory.origin,
            "key": self._key.hex(),
            "query_key": query.key.key.hex(),
            "organisation": broadcast.organisation,
            "bandwidth_per_s": broadcast.bandwidth_per_s,
            "cycle_s": broadcast.cycle_s,
            "power_up_j": broadcast.power_up_j,
            "profile": profile.to_record(),
            "plan": plan,
            "ended": query.ended,
            "next": query.next,
            "latest_us": query.latest_us,
        }
        return answer, True

    def _profile(self, asked: Mapping[str, Any]) -> DeviceProfile:
        said, name = asked.get("profile"), asked.get("device")
        if not isinstance(said, dict) or not isinstance(name, str):
            raise InputError("a device registers with its name and its profile")
        known = next((device for device in self.section.devices if device.name == name), None)
        return merge_profile(name, said, known)

    def _check_token(self, asked: Mapping[str, Any]) -> None:
        given = str(asked.get("token", ""))
        if self.section.is_open or secrets.compare_digest(given.encode(), self._token.encode()):
            return
        raise InputError(
            "the token is missing or wrong",
            hint="It is in the file device-token of the system's folder.",
        )

    def status(self) -> dict[str, Any]:
        """What is on the air, and what devices say of themselves."""
        broadcast, devices = self.section.broadcast, self._devices()
        airtime = self._cycle_bytes / broadcast.bandwidth_per_s
        return {
            "deployment": self.deployment.name,
            "pid": os.getpid(),
            "port": self.station.port,
            "broadcast": self._broadcast,
            "cycle": self._cycle,
            "organisation": broadcast.organisation,
            "open": self.section.is_open,
            "airtime_s": airtime,
            "cycle_s": broadcast.cycle_s,
            "overloaded": airtime > broadcast.cycle_s,
            "queries": {name: self._query_status(query) for name, query in self._queries.items()},
            "devices": devices,
            "batteries": battery_lives(devices),
        }

    def _devices(self) -> list[dict[str, Any]]:
        """The last reports of all who listen, and of those who did."""
        found = {}
        for is_listening, receivers in ((False, self.station.left), (True, self.station.tuned)):
            for receiver in receivers:
                who = {key: receiver.asked.get(key) for key in ("device", "query")}
                who["listening"] = is_listening
                found[who["device"], who["query"]] = _checked(receiver.report, who)
        return list(found.values())

    def _query_status(self, query: _Query) -> dict[str, Any]:
        on_air = query.on_air
        return {
            "cut": on_air.cut,
            "operators": len(query.chain.operators),
            "plan": on_air.plan,
            "stream": on_air.stream,
            "ships": [operator.name for operator in query.chain.operators[on_air.cut :]],
            "listeners": len(self.listeners(query.chain.query)),
            "next": query.next,
            "rows": query.sent_rows,
            "bytes": query.sent_bytes,
            "ended": query.ended,
            "switches": on_air.until_us is not None,
        }

    def tell(self) -> None:
        """Writes the status where others look for it."""
        write_record(status_path(self._folder, self.deployment.name), self.status())


def memory_path(folder: Path, deployment: str) -> Path:
    """Where the broadcast of a deployment is remembered."""
    return folder / f"{deployment}.json"


def status_path(folder: Path, deployment: str) -> Path:
    """Where others find what a broadcast tells of itself."""
    return folder / f"{deployment}.status.json"


def _checked(report: Mapping[str, Any], who: dict[str, Any]) -> dict[str, Any]:
    """What a device says of itself; nothing if it is no such report."""
    try:
        return DeviceAnswer(**{**report, **who}).model_dump(mode="json")
    except ValidationError:
        return DeviceAnswer(**who).model_dump(mode="json")
