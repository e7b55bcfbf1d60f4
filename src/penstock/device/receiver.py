"""The receiver: registers, tunes in, sleeps over what is not for it, and goes on after a break."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.device.heard import HeardResults
from penstock.device.payload import AirKey, unpack
from penstock.device.plans import ShippedPlan
from penstock.device.profiles import merge_profile
from penstock.errors import InputError, PenstockError, RunError, UnreachableError
from penstock.model.devices import DeviceProfile
from penstock.power.air.events import AirEvent, Heard, Lost, Missed
from penstock.power.air.tuner import Tuner

_RECEIVE_BYTES = 1 << 18
_LONGEST_ANSWER = 256 << 20
_REPORT_EVERY_S = 1.0
_RETRY_S = 0.3

Address = tuple[str, int]


@dataclass(frozen=True)
class Registration:
    """What a device says when it registers: for which query, who it is, and what it knows of
    itself; the station answers with the whole profile.

    ``token`` is asked for whenever the device connects.
    """

    query: str
    device: str
    profile: Mapping[str, float] = field(default_factory=dict)
    token: Callable[[], str] = str

    def __post_init__(self) -> None:
        merge_profile(self.device, self.profile)

    def message(self, ask: str) -> bytes:
        """The line it sends."""
        said = {"ask": ask, "token": self.token(), "query": self.query, "device": self.device}
        return json.dumps({**said, "profile": dict(self.profile)}).encode() + b"\n"


@dataclass(frozen=True)
class Welcome:
    """What the station answers; ``end`` is the last place of a query that has ended already."""

    number: int
    origin: str
    key: bytes
    query_key: AirKey
    bandwidth_per_s: float
    cycle_s: float
    power_up_j: float
    profile: DeviceProfile
    plan: ShippedPlan
    end: tuple[int, int | None] | None = None

    @classmethod
    def of(cls, answer: dict[str, Any], device: str) -> Welcome:
        try:
            return cls(
                int(answer["number"]),
                str(answer["origin"]),
                bytes.fromhex(answer["key"]),
                AirKey(bytes.fromhex(answer["query_key"])),
                float(answer["bandwidth_per_s"]),
                float(answer["cycle_s"]),
                float(answer["power_up_j"]),
                merge_profile(device, answer["profile"]),
                ShippedPlan.from_record(answer["plan"]),
                (int(answer["next"]), answer["latest_us"]) if answer["ended"] else None,
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise RunError("what answers there is no station of Penstock") from None


class ReceiverProgram:
    """One device that hears one query, until that ends or somebody says so."""

    def __init__(
        self,
        address: Callable[[], Address],
        registration: Registration,
        heard: HeardResults,
    ) -> None:
        self._address, self._registration = address, registration
        self.heard = heard
        self._welcome: Welcome | None = None

    def run(self, is_over: Callable[[], bool], patience_s: float = 30.0) -> None:
        """Listens until the query has ended or it is over; who does not answer is asked again.

        That it had ended when this device last ran is no reason not to ask: it may have been
        submitted again.
        """
        heard_s = time.monotonic()
        while not is_over() and not (self.heard.ended and self._welcome is not None):
            try:
                with socket.create_connection(self._address(), timeout=5.0) as made:
                    self._listen(made, is_over)
                heard_s = time.monotonic()
            except (UnreachableError, OSError) as error:
                if time.monotonic() - heard_s > patience_s:
                    if self.heard.ended:
                        return
                    raise _unreachable(error) from None
            time.sleep(_RETRY_S)

    def _listen(self, made: socket.socket, is_over: Callable[[], bool]) -> None:
        made.sendall(self._registration.message("tune"))
        answer, rest = _answer(made)
        self._welcome = welcome = Welcome.of(answer, self._registration.device)
        self.heard.begin(welcome.origin)
        if welcome.end is not None:
            self.heard.end_at(*welcome.end)
        tuner = Tuner({welcome.number}, welcome.key)
        made.settimeout(0.2)
        told_s, plan, seen_s = 0.0, welcome.plan, time.monotonic()
        counted = dict.fromkeys(vars(tuner.tuning), 0)
        while not is_over() and not self.heard.ended:
            data = rest or self._receive(made, tuner)
            if data is None:
                break
            rest = b""
            for event in tuner.feed(data):
                plan = self._on_event(event, welcome, plan)
            counted = self._count(tuner, counted)
            now_s = time.monotonic()
            self.heard.report.running_s += now_s - seen_s
            seen_s = now_s
            if now_s - told_s >= _REPORT_EVERY_S:
                told_s = now_s
                self._tell(made)
        self.heard.save()
        self._tell(made)

    def _receive(self, made: socket.socket, tuner: Tuner) -> bytes | None:
        """Bytes to be heard; those to be slept over are thrown away by the system, unread."""
        try:
            if tuner.asleep_bytes:
                count = min(tuner.asleep_bytes, _RECEIVE_BYTES)
                slept = made.recv_into(bytearray(count), count, getattr(socket, "MSG_TRUNC", 0))
                tuner.sleep(slept)
                return b"" if slept else None
            return made.recv(_RECEIVE_BYTES) or None
        except TimeoutError:
            return b""

    def _on_event(self, event: AirEvent, welcome: Welcome, plan: ShippedPlan) -> ShippedPlan:
        report = self.heard.report
        match event:
            case Missed(first=first, last=last):
                report.missed_cycles += last - first + 1
            case Lost():
                report.lost_results += 1
            case Heard(broadcast, cycle, _, number, payload):
                report.cycles += 1
                if number != plan.plan:
                    plan = self._asked_plan()
                opened = welcome.query_key.unlock(payload, broadcast, cycle)
                found = None if opened is None else unpack(opened)
                if found is None or number != plan.plan:
                    report.unreadable += 1
                else:
                    self._take(*found, plan)
        return plan

    def _take(self, rows: pa.Table, place: Any, plan: ShippedPlan) -> None:
        try:
            self.heard.take(rows, place, plan)
        except (pa.ArrowException, KeyError):
            self.heard.report.unreadable += 1

    def _asked_plan(self) -> ShippedPlan:
        """The present plan of the query, asked for beside the broadcast."""
        with socket.create_connection(self._address(), timeout=5.0) as made:
            made.sendall(self._registration.message("plan"))
            answer, _ = _answer(made)
        return ShippedPlan.from_record(answer["plan"])

    def _count(self, tuner: Tuner, before: dict[str, int]) -> dict[str, int]:
        now = dict(vars(tuner.tuning))
        for name, value in now.items():
            total = getattr(self.heard.report, name) + value - before[name]
            setattr(self.heard.report, name, total)
        return now

    def record(self) -> dict[str, Any]:
        """What the device has done, for the station and for people."""
        report, welcome = self.heard.report, self._welcome
        counts = {key: value for key, value in report.to_record().items() if key != "gaps"}
        record = {"plan": self.heard.plan, "next": self.heard.next, **counts}
        if welcome is not None:
            record["tuned_s"] = report.tuned_s(welcome.bandwidth_per_s)
            record["energy_j"] = report.energy_j(
                welcome.profile, welcome.bandwidth_per_s, welcome.power_up_j
            )
            record["battery_j"] = welcome.profile.battery_j
        record["gaps"] = [gap.text() for gap in report.gaps[-20:]]
        record["touched_windows"] = {
            name: windows[-10:] for name, windows in self.heard.touched().items()
        }
        record["steps"] = self.heard.steps()
        return record

    def _tell(self, made: socket.socket) -> None:
        try:
            made.sendall(json.dumps(self.record()).encode() + b"\n")
        except OSError:
            return  # It is told again once there is a connection.


def _unreachable(error: UnreachableError | OSError) -> UnreachableError:
    if isinstance(error, UnreachableError):
        return error
    return UnreachableError(
        f"the station does not answer ({error})",
        hint="Is the system up? penstock status --devices shows its stations.",
    )


def _answer(made: socket.socket) -> tuple[dict[str, Any], bytes]:
    """The line that is answered, and what came behind it; raises what is refused."""
    found = bytearray()
    while b"\n" not in found:
        data = made.recv(_RECEIVE_BYTES)
        if not data:
            raise UnreachableError("the station hung up")
        found += data
        if len(found) > _LONGEST_ANSWER:
            raise RunError("what answers there is no station of Penstock")
    line, _, rest = bytes(found).partition(b"\n")
    try:
        answer = json.loads(line)
    except ValueError:
        raise RunError("what answers there is no station of Penstock") from None
    if not isinstance(answer, dict):
        raise RunError("what answers there is no station of Penstock")
    if "error" in answer:
        error: PenstockError = InputError(str(answer["error"]), hint=str(answer.get("hint", "")))
        raise error
    return answer, rest
