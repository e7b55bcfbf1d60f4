"""Broadcaster and receivers over real sockets and real channels, without Spark."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.channels.durable import write_record
from penstock.device.heard import result_name
from penstock.device.report import battery_lives
from penstock.device.station import Station
from penstock.device.storing import store, stored_rows
from penstock.errors import InputError
from penstock.model.devices import DeviceProfile
from waiting import until

from device.air import Device, Server, deployment, on_air

pytestmark = pytest.mark.core

LEVELS = 5


@pytest.mark.parametrize("cut", range(LEVELS + 1))
def test_devices_give_what_the_whole_query_gives_for_every_cut(tmp_path: Path, cut: int) -> None:
    server = Server(tmp_path, deployment(tmp_path, cut, listeners=2))
    with on_air(server.broadcaster()) as broadcaster:
        port = broadcaster.station.port
        devices = [Device(port, name="anna"), Device(port, name="ben")]
        other = Device(port, "peaks", "anna")
        server.push_all()
        for device in devices:
            device.join()
        other.stop()
    whole = server.whole("usage")
    assert whole.total() > 50
    for device in devices:
        assert device.given == whole
        assert device.heard.report.gaps == []
        assert device.heard.report.missed_cycles == 0
    assert not other.given - server.whole("peaks")


@pytest.mark.parametrize("organisation", ["sorted", "indexed", "weighted"])
def test_a_device_sleeps_over_what_is_for_others(tmp_path: Path, organisation: str) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1, organisation, listeners=1))
    server.push_all()
    broadcaster = server.broadcaster()
    with on_air(broadcaster):
        port = broadcaster.station.port
        first, second = Device(port, "peaks"), Device(port, "usage")
        first.join()
        second.join()
    # What one of them did not sleep over it had to hear.
    report = first.program.record()
    assert report["tuned_bytes"] > 0
    assert report["energy_j"] == pytest.approx(
        report["tuned_bytes"] / 125_000 + report["processed_s"] * 0.5
    )
    assert second.given == server.whole("usage")


def test_a_device_that_restarts_goes_on_and_knows_what_it_missed(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1))
    whole = server.whole("usage")
    with on_air(server.broadcaster()) as broadcaster:
        port, state = broadcaster.station.port, tmp_path / "anna"
        first = Device(port, state=state)
        server.push(2)
        until(lambda: first.heard.next == 2)
        first.stop()
        until(lambda: not broadcaster.listeners("usage"))
        server.push(2)
        until(lambda: broadcaster.status()["queries"]["usage"]["next"] == 4)
        second = Device(port, state=state)
        until(lambda: broadcaster.listeners("usage"))
        server.push_all()
        second.join()
    record = second.program.record()
    assert len(record["gaps"]) == 1
    touched = {window[1] for window in second.heard.touched()["usage_aggregate"]}
    wrong = (whole - (first.given + second.given)) + ((first.given + second.given) - whole)
    assert wrong, "nothing was missed"
    ends = {str(row[-1].isoformat()) for row in wrong}  # type: ignore[attr-defined]
    assert {end[:19] for end in ends} <= {end[:19] for end in touched}


def test_a_device_that_sleeps_through_nothing_loses_nothing(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 2))
    with on_air(server.broadcaster()) as broadcaster:
        port, state = broadcaster.station.port, tmp_path / "anna"
        first = Device(port, state=state)
        server.push(3)
        until(lambda: first.heard.next == 3)
        first.stop()
        second = Device(port, state=state)
        until(lambda: broadcaster.listeners("usage"))
        server.push_all()
        second.join()
    assert first.given + second.given == server.whole("usage")
    assert second.program.record()["gaps"] == []


def test_a_disseminator_that_restarts_loses_nothing(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1))
    first = server.broadcaster()
    port, before = first.station.port, first.status()["broadcast"]
    with on_air(first):
        device = Device(port)
        server.push(4)
        until(lambda: device.heard.next == 4)
    second = server.broadcaster()
    assert second.station.port == port
    assert second.status()["broadcast"] == before + 1
    server.push_all()  # It waits with these for who listened before.
    with on_air(second):
        device.join()
    assert device.given == server.whole("usage")
    assert device.program.record()["gaps"] == []


def test_a_profile_is_what_is_said_then_what_is_written(tmp_path: Path) -> None:
    made = deployment(tmp_path, 1)
    server = Server(tmp_path, made)
    with on_air(server.broadcaster()) as broadcaster:
        anna, eve = (Device(broadcaster.station.port, name=name) for name in ("anna", "eve"))
        until(lambda: len(broadcaster.listeners("usage")) == 2)
        profiles = {listener.name: listener for listener in broadcaster.listeners("usage")}
        until(lambda: "energy_j" in anna.program.record())
        anna.stop()
        eve.stop()
    assert made.devices is not None
    assert profiles["anna"] == replace(made.devices.devices[0], battery_j=500.0)
    assert profiles["eve"] == DeviceProfile("eve", 1e9, 0.16, 1.0, 500.0)


def test_what_devices_have_used_is_told_after_they_have_left(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1))
    with on_air(server.broadcaster()) as broadcaster:
        device = Device(broadcaster.station.port)
        server.push_all()
        device.join()
        until(lambda: not broadcaster.listeners("usage"))
        status = broadcaster.status()
    (told,) = status["devices"]
    assert (told["device"], told["query"], told["listening"]) == ("anna", "usage", False)
    assert told["energy_j"] == device.program.record()["energy_j"] > 0
    assert status["batteries"]["anna"] > 0


def test_reports_that_are_none_are_not_told(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1, open=True))
    said = {"ask": "tune", "query": "usage", "device": "eve", "profile": {}}
    with (
        on_air(server.broadcaster()) as broadcaster,
        socket.create_connection(("127.0.0.1", broadcaster.station.port)) as made,
    ):
        made.sendall(json.dumps(said).encode() + b"\n" + b'{"energy_j": "much"}\n')
        until(lambda: any(receiver.report for receiver in broadcaster.station.tuned))
        (told,) = broadcaster.status()["devices"]
    assert told["device"] == "eve" and told["energy_j"] is None


def test_a_device_that_comes_after_the_end_is_told(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1))
    with on_air(server.broadcaster()) as broadcaster:
        first = Device(broadcaster.station.port)
        server.push_all()
        first.join()
        late = Device(broadcaster.station.port, name="ben")
        late.join()
    assert late.given.total() == 0
    assert len(late.program.record()["gaps"]) == 1


def test_rows_that_are_sent_again_count_once(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1))
    first = server.broadcaster()
    port = first.station.port
    device = Device(port)
    until(lambda: (first.station.pump(0.0), first.listeners("usage"))[1])
    server.push(4)
    first.step()
    until(lambda: (first.station.pump(0.0), device.heard.next == 4)[1])
    # As if it were killed: what it sent is not noted anywhere.
    first.station.close()
    second = server.broadcaster()
    assert second.on_air()["usage"].has_begun
    server.push_all()  # The first cycle has rows that were heard, and others.
    with on_air(second):
        device.join()
    assert device.given == server.whole("usage")
    assert device.program.record()["gaps"] == []


def test_what_was_in_a_socket_when_a_process_died_is_sent_again(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1))
    first = server.broadcaster()
    device = Device(first.station.port)
    until(lambda: (first.station.pump(0.0), first.listeners("usage"))[1])
    for _ in range(3):
        server.push()
        first.step()
    until(lambda: (first.station.pump(0.0), device.heard.next == 3)[1])
    first.station.send = lambda data: None  # type: ignore[method-assign]
    server.push(2)
    assert first.step() > 0
    first.station.close()
    server.push_all()
    with on_air(server.broadcaster()):
        device.join()
    assert device.given == server.whole("usage")
    assert device.program.record()["gaps"] == []


def test_strangers_are_refused(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1))
    with on_air(server.broadcaster()) as broadcaster:
        stranger = Device(broadcaster.station.port, token="guess")
        stranger.join()
        assert isinstance(stranger.error, InputError)
        assert "the token is missing or wrong" in str(stranger.error)
        with socket.create_connection(("127.0.0.1", broadcaster.station.port)) as made:
            made.sendall(json.dumps({"ask": "tune", "query": "usage"}).encode() + b"\n")
            answer = json.loads(made.makefile().readline())
        assert "key" not in answer and "error" in answer
        assert broadcaster.listeners("usage") == []


def test_everybody_may_hear_an_open_broadcast(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1, open=True))
    with on_air(server.broadcaster()) as broadcaster:
        stranger = Device(broadcaster.station.port, token="")
        until(lambda: broadcaster.listeners("usage"))
        server.push_all()
        stranger.join()
    assert stranger.given == server.whole("usage")


def test_a_listener_of_one_query_cannot_read_another(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1))
    with on_air(server.broadcaster()) as broadcaster:
        port = broadcaster.station.port
        usage = Device(port, "usage")
        # It takes the number of the other query, with the key that it was given for its own.
        spy = Device(port, "peaks", "ben")
        until(lambda: broadcaster.listeners("peaks") and broadcaster.listeners("usage"))
        until(lambda: spy.program._welcome is not None and usage.program._welcome is not None)
        welcome = spy.program._welcome
        assert welcome is not None and usage.program._welcome is not None
        assert welcome.query_key != usage.program._welcome.query_key
        locked = usage.program._welcome.query_key.lock(b"rows", 1, 1)
        assert welcome.query_key.unlock(locked, 1, 1) is None
        usage.stop()
        spy.stop()


def test_nonsense_profiles_and_queries_are_refused_by_name(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1))
    with on_air(server.broadcaster()) as broadcaster:
        device = Device(broadcaster.station.port, "usages")
        device.join()
        assert "no query usages here; there are usage, peaks" in str(device.error)
        said = {"ask": "tune", "token": "sesame", "query": "usage", "device": "d"}
        profile = {"speed_per_s": 0, "processing_w": 1, "receiving_w": 1}
        with socket.create_connection(("127.0.0.1", broadcaster.station.port)) as made:
            made.sendall(json.dumps({**said, "profile": profile}).encode() + b"\n")
            answer = json.loads(made.makefile().readline())
    assert answer["error"] == "device d has the speed 0"


def test_garbage_on_the_port_ends_nobody_elses_connection(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1))
    with on_air(server.broadcaster()) as broadcaster:
        port = broadcaster.station.port
        device = Device(port)
        until(lambda: broadcaster.listeners("usage"))
        for garbage in (b"\x00" * 100_000, b"[1, 2]\n", b"{\n", b'{"ask": 1}\n'):
            with socket.create_connection(("127.0.0.1", port)) as made:
                try:
                    made.sendall(garbage)
                    made.recv(10)
                except ConnectionError:
                    pass
        server.push_all()
        device.join()
    assert device.given == server.whole("usage")


def test_who_reads_too_slowly_holds_up_nobody() -> None:
    station = Station(0, lambda asked: ({}, True))
    with socket.create_connection(("127.0.0.1", station.port)) as slow:
        slow.sendall(b"{}\n")
        until(lambda: (station.pump(0.0), station.tuned)[1])
        for _ in range(20):
            station.send(bytes(8 << 20))
            station.pump(0.0)
        assert station.tuned[0].missed_cycles > 5
        assert station.tuned[0].waiting_bytes <= (64 + 8) << 20
    until(lambda: (station.pump(0.0), not station.tuned)[1])
    station.close()


def test_time_and_energy_go_on_after_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path, deployment(tmp_path, 1))
    with on_air(server.broadcaster()) as broadcaster:
        port, state = broadcaster.station.port, tmp_path / "anna"
        first = Device(port, state=state)
        server.push(3)
        until(lambda: first.heard.next == 3)
        first.stop()
        before = first.heard.report
        second = Device(port, state=state)
        after = second.heard.report
        until(lambda: broadcaster.listeners("usage"))
        server.push_all()
        second.join()
    assert after.running_s > before.running_s > 0
    lived_s = battery_lives([{**second.program.record(), "device": "anna", "listening": True}])
    watts = second.program.record()["energy_j"] / after.running_s
    assert lived_s["anna"] == pytest.approx(500.0 / watts - after.running_s)


def test_what_a_device_knows_of_a_former_broadcast_does_not_count(tmp_path: Path) -> None:
    """The same query submitted again counts its batches from 0: its rows are not old ones."""
    state, memory = tmp_path / "anna", tmp_path / "broadcast"
    former, latter = (Server(tmp_path / name, deployment(tmp_path, 1)) for name in ("a", "b"))
    former.memory = latter.memory = memory
    with on_air(former.broadcaster(submission=1)) as broadcaster:
        first = Device(broadcaster.station.port, state=state)
        former.push(4)
        until(lambda: first.heard.next == 4)
        first.stop()
    with on_air(latter.broadcaster(submission=2)) as broadcaster:
        second = Device(broadcaster.station.port, state=state)
        until(lambda: broadcaster.listeners("usage"))
        latter.push_all()
        second.join()
    assert second.given == latter.whole("usage")
    assert second.heard.report.begun_anew == 1
    assert second.program.record()["gaps"] == []


def test_rows_that_are_stored_are_kept_whatever_comes_after(tmp_path: Path) -> None:
    """A file that the state does not know of is heard again; those of a former broadcast stay."""
    rows, state = pa.table({"home": ["h1"]}), tmp_path / "state"
    keep = store(tmp_path / "rows")
    for origin, start in (("a", 0), ("a", 4), ("b", 0), ("b", 2)):
        keep(rows, result_name(origin, 1, start))
    state.mkdir()
    write_record(state / "state.json", {"origin": "b", "plan": 1, "next": 2})
    store(tmp_path / "rows", state)
    assert len(stored_rows(tmp_path / "rows")) == 3


def test_a_device_that_had_heard_the_end_asks_again(tmp_path: Path) -> None:
    server, state = Server(tmp_path, deployment(tmp_path, 1)), tmp_path / "anna"
    with on_air(server.broadcaster()) as broadcaster:
        port = broadcaster.station.port
        first = Device(port, state=state)
        server.push_all()
        first.join()
        again = Device(port, state=state)
        again.join()
    assert again.heard.ended and again.given.total() == 0
    assert again.program.record()["gaps"] == []
    # Nobody is there any more: it has heard all there ever was.
    nobody = Device(port, state=state, patience_s=0.1)
    nobody.join()
    assert nobody.error is None
