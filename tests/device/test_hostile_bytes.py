"""What a device does with a station, or a wire, that sends anything."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from penstock.device.chain import chain_of
from penstock.device.payload import AirKey, PayloadSpan, pack
from penstock.device.plans import OnAir, ShippedPlan
from penstock.device.station import Station
from penstock.errors import RunError
from penstock.feeds.generators import generator
from penstock.power.air.cycle import AirResult, CycleHead, encode_cycle
from waiting import until

from device.air import TOKEN, Device, deployment

pytestmark = pytest.mark.core

KEY, QUERY_KEY = b"k" * 32, AirKey(b"q" * 32)


class Hostile:
    """A station whose cycles the test makes."""

    def __init__(self, folder: Path) -> None:
        chain = chain_of(deployment(folder, 1).network, "peaks")
        plan = ShippedPlan.of(OnAir.first(1, chain, 0), chain).to_record()
        welcome = {
            "number": 1, "origin": "o", "key": KEY.hex(), "plan": plan,
            "query_key": QUERY_KEY.key.hex(),
            "bandwidth_per_s": 125_000.0, "cycle_s": 0.1, "power_up_j": 0.0,
            "profile": {}, "ended": False,
        }  # fmt: skip
        self.station = Station(0, lambda asked: (welcome, True))
        self.rows = generator("meters", {"homes": 40, "days": 1}).read(0, 1_000)
        self.device = Device(self.station.port, "peaks", token=TOKEN)
        until(lambda: self.pump() or self.station.tuned)

    def pump(self) -> None:
        self.station.pump(time.monotonic() + 0.01)

    def cycle(self, number: int, key: bytes = KEY, query_key: AirKey = QUERY_KEY) -> bytes:
        """Cycle ``number``, with a batch of a hundred rows; the tenth is the last."""
        rows = self.rows.slice((number - 1) * 100, 100)
        place = PayloadSpan(number - 1, (rows.num_rows,), None, 1_767_571_200_000_000, number == 10)
        payload = query_key.lock(pack(rows, place), 1, number)
        results = [AirResult(1, 1, payload), AirResult(2, 1, b"for another" * 50)]
        return encode_cycle(CycleHead("indexed", 1, number, 100, key), results).data

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.station.send(piece)
        self.pump()

    def end(self) -> Device:
        until(lambda: self.pump() or not self.device._thread.is_alive())
        self.station.close()
        return self.device

    def expected(self, cycles: set[int]) -> int:
        chosen = [self.rows.slice((cycle - 1) * 100, 100) for cycle in sorted(cycles)]
        return sum(value > 0.6 for table in chosen for value in table["kwh"].to_pylist())


def test_garbage_between_cycles_is_skipped(tmp_path: Path) -> None:
    hostile, random = Hostile(tmp_path), Random(1)
    for number in range(1, 11):
        hostile.send(random.randbytes(random.randrange(2_000)), hostile.cycle(number))
    device = hostile.end()
    assert device.given.total() == hostile.expected(set(range(1, 11)))
    assert device.heard.report.garbage_bytes > 0
    assert device.heard.report.gaps == []


def test_truncated_and_changed_cycles_are_gaps(tmp_path: Path) -> None:
    hostile = Hostile(tmp_path)
    broken = bytearray(hostile.cycle(5))
    broken[len(broken) // 2] ^= 1
    for number in range(1, 11):
        whole = hostile.cycle(number)
        hostile.send({3: whole[: len(whole) // 2], 5: bytes(broken)}.get(number, whole))
    device = hostile.end()
    report = device.heard.report
    assert device.given.total() < hostile.expected(set(range(1, 11)))
    assert device.given.total() >= hostile.expected(set(range(1, 11)) - {3, 4, 5, 6})
    assert report.gaps and report.lost_results + report.missed_cycles > 0


def test_replays_count_once(tmp_path: Path) -> None:
    hostile = Hostile(tmp_path)
    for number in range(1, 11):
        hostile.send(hostile.cycle(number), *(hostile.cycle(one) for one in range(1, number)))
        hostile.pump()
    device = hostile.end()
    assert device.given.total() == hostile.expected(set(range(1, 11)))
    assert device.heard.report.gaps == []


def test_cycles_of_who_has_no_key_are_not_heard(tmp_path: Path) -> None:
    hostile = Hostile(tmp_path)
    for number in range(1, 11):
        forged = hostile.cycle(number, key=b"guess")
        hostile.send(forged, hostile.cycle(number))
    device = hostile.end()
    assert device.given.total() == hostile.expected(set(range(1, 11)))


def test_rows_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    hostile = Hostile(tmp_path)
    hostile.send(hostile.cycle(1), hostile.cycle(2, query_key=AirKey(b"x" * 32)))
    other = pack(pa.table({"other": [1]}), PayloadSpan(2, (1,)))
    head = CycleHead("indexed", 1, 3, 100, KEY)
    hostile.send(encode_cycle(head, [AirResult(1, 1, QUERY_KEY.lock(other, 1, 3))]).data)
    for number in range(4, 11):
        hostile.send(hostile.cycle(number))
    device = hostile.end()
    assert device.heard.report.unreadable == 2
    assert device.given.total() == hostile.expected({1, *range(4, 11)})
    assert len(device.heard.report.gaps) == 1


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\n", b"[]\n", b'{"number": 1}\n'])
def test_what_is_no_station_is_said(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        device = Device(server.getsockname()[1])
        made, _ = server.accept()
        with made:
            assert json.loads(made.makefile().readline())["token"] == TOKEN
            made.sendall(answer)
            device.join()
    assert isinstance(device.error, RunError)
    assert "no station of Penstock" in str(device.error)
