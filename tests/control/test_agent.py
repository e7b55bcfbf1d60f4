"""The agent: does what the catalog says, says what it does, and stops when it may not go on."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from control.made_up import AMI, submission
from control.toys import ToyWorker, TroubledCatalog, once, raising, started
from control.waiting import until
from penstock import __version__
from penstock.control import agent as module
from penstock.control.agent import Agent
from penstock.control.records import NodeRecord, UnitRecord
from penstock.errors import FullDiskError, RunError, UnreachableError

AWAY = UnreachableError("the catalog is away")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is looked at more often than in earnest."""
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(module, "_CHECK_EVERY_S", 0.0)
    monkeypatch.setattr(module, "_SAMPLE_EVERY_S", 0.02)
    monkeypatch.setattr(module, "_RENEW_EVERY_S", 0.05)


@pytest.fixture
def worker() -> ToyWorker:
    return ToyWorker()


@pytest.fixture
def make(catalog: TroubledCatalog, worker: ToyWorker) -> Callable[..., Agent]:
    """Makes agents of node a."""
    asked = submission()
    names = {"readings": "intake", "peaks": "fragment"}
    units = [UnitRecord(name, kind, 1) for name, kind in names.items()]  # type: ignore[arg-type]
    catalog.add(vars(asked), units)

    def agent(lease_s: float = 20.0, name: str = "a") -> Agent:
        return Agent(NodeRecord(name, 2, 1 << 30, pid=os.getpid()), catalog, worker, lease_s)

    return agent


def give(catalog: TroubledCatalog, name: str, node: str) -> None:
    assert catalog.assign(unit(catalog, name), node)


def unit(catalog: TroubledCatalog, name: str) -> UnitRecord:
    return next(one for one in catalog.units() if one.name == name)


def state(catalog: TroubledCatalog, name: str) -> str:
    """What the present owner says."""
    found = unit(catalog, name)
    return found.state if found.reported_epoch == found.epoch else ""


def node(catalog: TroubledCatalog, name: str = "a") -> NodeRecord | None:
    return next((one for one in catalog.nodes() if one.name == name), None)


def is_alive(catalog: TroubledCatalog, name: str = "a") -> bool:
    found = node(catalog, name)
    return found is not None and found.is_alive(time.time())


def alive_elsewhere(catalog: TroubledCatalog, name: str, for_s: float = 60.0) -> None:
    """Another node with a lease, whose process nobody sees."""
    catalog.join(NodeRecord(name, 1, 1, "other", lease_until_s=time.time() + for_s))


class Clock:
    """A clock that can be put forward."""

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def skip(self, seconds: float) -> None:
        self._ahead_s += seconds

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead_s

    def time(self) -> float:
        return time.time() + self._ahead_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The agent's clock; the catalog has its own."""
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def incarnation(catalog: TroubledCatalog) -> str:
    found = node(catalog)
    assert found is not None
    return found.incarnation


def counted(catalog: TroubledCatalog, asked: str, error: Exception | None = None) -> list[None]:
    """Grows with every time the catalog is asked, and lets that fail if an error is given."""
    times: list[None] = []

    def work() -> None:
        times.append(None)
        if error is not None:
            raise error

    catalog.before[asked] = work
    return times


class TestLife:
    def test_it_joins_with_a_lease_and_gives_it_back(
        self, catalog: TroubledCatalog, make: Callable[..., Agent]
    ) -> None:
        before_s = time.time()
        with started(make(lease_s=20.0)):
            until(lambda: is_alive(catalog))
            joined = node(catalog)
            assert joined is not None
            told = (joined.cores, joined.memory_bytes, joined.pid, joined.version)
            assert told == (2, 1 << 30, os.getpid(), __version__)
            assert before_s + 20 <= joined.lease_until_s <= time.time() + 20
            until(lambda: (node(catalog) or joined).lease_until_s > joined.lease_until_s)
        assert not is_alive(catalog)

    def test_what_is_measured_is_kept(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        worker.measured = {"utilisation": 0.5}
        with started(make()):
            until(lambda: catalog.samples("a"))
        assert catalog.samples("a")[0]["utilisation"] == 0.5

    def test_it_goes_on_when_measuring_fails(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        worker.before["measurements"] = raising(ZeroDivisionError())
        with started(make()):
            until(lambda: is_alive(catalog))
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")

    def test_on_leaving_everything_is_stopped_and_that_is_told(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            give(catalog, "readings", "a")
            until(lambda: len(worker.running) == 2)
        assert worker.running == {}
        assert sorted(worker.story[2:]) == ["stop peaks 1 patiently", "stop readings 1 patiently"]
        assert [one.released_epoch for one in catalog.units()] == [1, 1]

    def test_the_lease_is_held_until_everything_has_stopped(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        def slowly() -> None:
            before = node(catalog)
            until(lambda: node(catalog) != before)

        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            worker.before["release"] = slowly
        assert worker.running == {}

    def test_a_renewal_under_way_does_not_bring_the_lease_back(
        self, catalog: TroubledCatalog, make: Callable[..., Agent]
    ) -> None:
        began, go_on = threading.Event(), threading.Event()
        with started(make()) as running:
            catalog.before["renew"] = once(lambda: (began.set(), go_on.wait(10), None)[2])
            assert began.wait(10)
            running.agent.stop()
            threading.Timer(0.1, go_on.set).start()
        assert not is_alive(catalog)

    def test_a_start_under_way_is_waited_for_on_leaving(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        began, go_on = threading.Event(), threading.Event()
        worker.before["start"] = lambda: (began.set(), go_on.wait(10))  # type: ignore[return-value]
        with started(make()) as running:
            give(catalog, "peaks", "a")
            assert began.wait(10)
            running.agent.stop()
            go_on.set()
        assert worker.story == ["start peaks 1", "stop peaks 1 patiently"]
        assert unit(catalog, "peaks").released_epoch == 1

    def test_it_does_not_join_while_another_process_is_the_node(
        self, catalog: TroubledCatalog, make: Callable[..., Agent]
    ) -> None:
        alive_elsewhere(catalog, "a", for_s=0.3)
        former = node(catalog)
        assert former is not None
        with started(make()):
            until(lambda: node(catalog) != former)
            assert time.time() >= former.lease_until_s

    def test_it_need_not_join_to_be_stopped(
        self, catalog: TroubledCatalog, make: Callable[..., Agent]
    ) -> None:
        alive_elsewhere(catalog, "a")
        former = node(catalog)
        with started(make()):
            pass
        assert node(catalog) == former

    def test_an_unreachable_catalog_ends_it_before_it_begins(
        self, catalog: TroubledCatalog, make: Callable[..., Agent]
    ) -> None:
        catalog.before["join"] = raising(AWAY)
        with pytest.raises(UnreachableError, match="the catalog is away"):
            make().run()


class TestUnits:
    def test_what_is_given_to_the_node_is_started(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            assert worker.running == {"peaks": 1}
            assert worker.units["peaks"].kind == "fragment"
            give(catalog, "readings", "b")
            give(catalog, "readings", "a")
            until(lambda: state(catalog, "readings") == "running")
            assert worker.running == {"peaks": 1, "readings": 2}

    def test_what_is_given_away_is_stopped_and_that_is_told(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            give(catalog, "peaks", "b")
            until(lambda: unit(catalog, "peaks").released_epoch == 1)
            assert worker.story == ["start peaks 1", "stop peaks 1 patiently"]
            assert state(catalog, "peaks") == ""

    def test_a_new_epoch_is_a_new_start(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            for epoch in (1, 2, 3):
                give(catalog, "peaks", "a")
                until(lambda epoch=epoch: worker.running == {"peaks": epoch})  # type: ignore[misc]
        assert worker.story == [
            "start peaks 1",
            "stop peaks 1 patiently",
            "start peaks 2",
            "stop peaks 2 patiently",
            "start peaks 3",
            "stop peaks 3 patiently",
        ]

    def test_it_waits_for_the_former_owner_to_stop(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        alive_elsewhere(catalog, "b")
        give(catalog, "peaks", "b")
        give(catalog, "peaks", "a")
        with started(make()):
            give(catalog, "readings", "a")
            until(lambda: worker.running == {"readings": 1})
            assert state(catalog, "peaks") == ""
            catalog.release("peaks", 1)
            until(lambda: worker.running == {"readings": 1, "peaks": 2})

    def test_or_for_its_lease_to_run_out(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        alive_elsewhere(catalog, "b", for_s=0.3)
        give(catalog, "peaks", "b")
        give(catalog, "peaks", "a")
        with started(make()):
            until(lambda: worker.running == {"peaks": 2})
            assert not is_alive(catalog, "b")

    def test_what_never_came_to_start_is_given_back_too(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        alive_elsewhere(catalog, "b")
        give(catalog, "peaks", "b")
        give(catalog, "peaks", "a")
        with started(make()):
            give(catalog, "peaks", "c")
            until(lambda: unit(catalog, "peaks").released_epoch == 2)
        assert worker.story == []

    def test_so_is_what_ran_in_a_former_life(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        """A node that was killed and is back at once: the next owner waits for its word."""
        give(catalog, "peaks", "a")
        give(catalog, "peaks", "b")
        with started(make()):
            until(lambda: unit(catalog, "peaks").released_epoch == 1)
        assert worker.story == []

    def test_what_is_dropped_is_stopped(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        alive_elsewhere(catalog, "b")
        give(catalog, "readings", "b")
        give(catalog, "readings", "a")
        give(catalog, "peaks", "a")
        with started(make()):
            until(lambda: state(catalog, "peaks") == "running")
            catalog.drop(1)
            # One of them has never been started.
            until(lambda: [one.released_epoch for one in catalog.units()] == [1, 2])
            assert worker.running == {}

    def test_what_is_submitted_again_under_the_same_name_is_another(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            catalog.drop(1)
            until(lambda: unit(catalog, "peaks").released_epoch == 1)
            catalog.remove(1)
            again = submission(text=AMI.replace("kwh > 3", "kwh > 9"))
            catalog.add(vars(again), [UnitRecord("peaks", "fragment", 1)])
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
        assert "kwh > 9" in worker.units["peaks"].network.query("peaks").text

    def test_held_back_and_going_on(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            worker.held_back.add("peaks")
            until(lambda: state(catalog, "peaks") == "held back")
            worker.held_back.clear()
            until(lambda: state(catalog, "peaks") == "running")

    def test_what_has_finished_is_not_started_again(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        for _ in range(2):
            with started(make()):
                if not worker.story:
                    give(catalog, "peaks", "a")
                worker.finished.add("peaks")
                until(lambda: state(catalog, "peaks") == "finished")
                until(lambda: unit(catalog, "peaks").released_epoch == 1)
                give(catalog, "readings", "a")
                until(lambda: state(catalog, "readings") == "running")
        assert [line for line in worker.story if "peaks" in line] == [
            "start peaks 1",
            "stop peaks 1 at once",
        ]


class TestFailures:
    @pytest.mark.parametrize(
        ("error", "text"),
        [
            (RunError("no room", hint="Free some."), "no room. Free some."),
            (ValueError("odd"), "ValueError: odd"),
        ],
    )
    def test_what_does_not_start_is_given_back(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        error: Exception,
        text: str,
    ) -> None:
        """Otherwise the node it goes back to would wait for ever."""
        worker.before["start"] = once(raising(error))
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: unit(catalog, "peaks").released_epoch == 1)
            assert state(catalog, "peaks") == "failed"
            assert unit(catalog, "peaks").error == text
            give(catalog, "readings", "a")
            until(lambda: state(catalog, "readings") == "running")
            assert worker.running == {"readings": 1}
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            assert unit(catalog, "peaks").error == ""

    def test_what_fails_is_stopped_at_once(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            worker.failures["peaks"] = RunError("no room", hint="Free some.")
            until(lambda: unit(catalog, "peaks").released_epoch == 1)
            assert state(catalog, "peaks") == "failed"
            assert unit(catalog, "peaks").error == "no room. Free some."
        assert worker.story == ["start peaks 1", "stop peaks 1 at once"]

    @pytest.mark.parametrize("at", ["work", "start"])
    def test_what_has_no_room_on_the_disk_waits_for_some(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        at: str,
    ) -> None:
        full = FullDiskError("the disk is full")
        worker.room = False
        if at == "start":
            worker.before["start"] = once(raising(OSError(errno.ENOSPC, "the disk is full")))
        with started(make()):
            give(catalog, "peaks", "a")
            if at == "work":
                until(lambda: state(catalog, "peaks") == "running")
                worker.failures["peaks"] = full
            until(lambda: state(catalog, "peaks") == "held back")
            assert "the disk is full" in unit(catalog, "peaks").error
            give(catalog, "readings", "a")
            until(lambda: state(catalog, "readings") == "running")
            assert "peaks" not in worker.running
            worker.room = True
            until(lambda: state(catalog, "peaks") == "running")
            assert unit(catalog, "peaks").error == ""
        # It was the same owner all along: nobody was asked, nothing was counted.
        assert unit(catalog, "peaks").epoch == 1
        assert unit(catalog, "peaks").restarts == 0

    def test_what_waits_for_room_can_be_moved(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        worker.room = False
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            worker.failures["peaks"] = FullDiskError("the disk is full")
            until(lambda: state(catalog, "peaks") == "held back")
            give(catalog, "peaks", "b")
            until(lambda: unit(catalog, "peaks").released_epoch == 1)

    def test_what_has_failed_is_not_started_again_by_the_next_process(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        give(catalog, "peaks", "a")
        catalog.report("peaks", 1, "failed", "no room")
        catalog.release("peaks", 1)
        with started(make()):
            give(catalog, "readings", "a")
            until(lambda: state(catalog, "readings") == "running")
        assert not any("peaks" in line for line in worker.story)

    @pytest.mark.parametrize("asked", ["report", "release", "changes"])
    def test_what_could_not_be_told_is_told_later(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        asked: str,
    ) -> None:
        with started(make()):
            catalog.before[asked] = once(raising(AWAY))
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            catalog.before[asked] = once(raising(AWAY))
            worker.failures["peaks"] = RunError("no room")
            until(lambda: unit(catalog, "peaks").released_epoch == 1)
            assert state(catalog, "peaks") == "failed"
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            catalog.before[asked] = once(raising(AWAY))
            give(catalog, "peaks", "b")
            until(lambda: unit(catalog, "peaks").released_epoch == 2)

    def test_what_cannot_be_stopped_cleanly_is_let_go_all_the_same(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            worker.before["release"] = once(raising(OSError("stuck")))
            give(catalog, "peaks", "b")
            until(lambda: unit(catalog, "peaks").released_epoch == 1)


class TestPreparing:
    def begin(self, catalog: TroubledCatalog, **told: object) -> int:
        row = {
            "unit": "peaks",
            "source": "b",
            "target": "a",
            "state": "preparing",
            "created_s": 1.0,
        }
        return catalog.add_moves([{**row, **told}])[0]

    def test_the_target_of_a_move_gets_ready_once(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            self.begin(catalog)
            until(lambda: catalog.moves()[0].is_warm)
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
        assert worker.story[:2] == ["warm peaks 1", "start peaks 1"]

    def test_nobody_else_does(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            self.begin(catalog, target="c")
            self.begin(catalog, state="moving")
            self.begin(catalog, state="failed")
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
        assert not any("warm" in line for line in worker.story)

    @pytest.mark.parametrize(
        ("error", "text"), [(RunError("no room"), "no room"), (KeyError("x"), "KeyError: 'x'")]
    )
    def test_what_goes_wrong_is_told(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        error: Exception,
        text: str,
    ) -> None:
        worker.before["warm"] = raising(error)
        with started(make()):
            self.begin(catalog)
            until(lambda: catalog.moves()[0].error == text)
        assert not catalog.moves()[0].is_warm

    def test_every_move_is_prepared_also_after_others_were_removed(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            for _ in range(2):
                number = self.begin(catalog)
                until(lambda: catalog.moves()[0].is_warm)
                catalog.remove(1)
                catalog.add(vars(submission()), [UnitRecord("peaks", "fragment", 1)])
            assert [line for line in worker.story if "warm" in line] == ["warm peaks 1"] * 2
            assert number == 2

    def test_what_was_got_ready_in_vain_is_let_go(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            number = self.begin(catalog)
            until(lambda: catalog.moves()[0].is_warm)
            catalog.change_move(number, state="failed")
            until(lambda: "cool peaks" in worker.story)
            number = self.begin(catalog)
            until(lambda: catalog.moves()[1].is_warm)
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            catalog.change_move(number, state="done")
            give(catalog, "readings", "a")
            until(lambda: state(catalog, "readings") == "running")
            assert worker.story.count("cool peaks") == 1


def _wait(asked: str, waiting: list[str], go_on: threading.Event) -> None:
    waiting.append(asked)
    go_on.wait(20)


class TestLosingTheLease:
    def test_one_that_cannot_renew_it_stops_and_comes_back(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        clock: Clock,
    ) -> None:
        with started(make(lease_s=20.0)):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            former = incarnation(catalog)
            tries = counted(catalog, "renew", AWAY)
            clock.skip(10)
            until(lambda: len(tries) > 3)
            assert worker.running == {"peaks": 1}
            joins = counted(catalog, "join", AWAY)
            clock.skip(10)
            until(lambda: len(joins) > 3)
            assert worker.running == {}
            assert incarnation(catalog) == former
            assert unit(catalog, "peaks").released_epoch == 0
            catalog.before.clear()
            until(lambda: worker.running == {"peaks": 1})
            assert incarnation(catalog) != former
        assert worker.story[:3] == ["start peaks 1", "stop peaks 1 at once", "start peaks 1"]

    def test_one_that_waits_for_the_catalog_notices_the_time(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        clock: Clock,
    ) -> None:
        go_on, waiting = threading.Event(), list[str]()
        with started(make(lease_s=20.0)):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            former = incarnation(catalog)
            for asked in ("renew", "changes"):
                catalog.before[asked] = partial(_wait, asked, waiting, go_on)
            until(lambda: sorted(waiting) == ["changes", "renew"])
            clock.skip(20)
            until(lambda: not worker.running)
            go_on.set()
            until(lambda: worker.running == {"peaks": 1})
            assert incarnation(catalog) != former

    def test_a_renewal_that_comes_too_late_is_none(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        clock: Clock,
    ) -> None:
        """Others may have seen the lease run out in between, and have begun to work."""
        with started(make(lease_s=20.0)):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            former = incarnation(catalog)
            catalog.before["renew"] = once(lambda: clock.skip(20))
            until(lambda: "stop peaks 1 at once" in worker.story)
            until(lambda: worker.running == {"peaks": 1})
            assert incarnation(catalog) != former

    def test_a_start_under_way_ends_before_it_joins_again(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        clock: Clock,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        began, go_on = threading.Event(), threading.Event()
        worker.before["start"] = once(lambda: (began.set(), go_on.wait(20), None)[2])
        with started(make(lease_s=20.0)):
            give(catalog, "peaks", "a")
            assert began.wait(10)
            joins = counted(catalog, "join")
            clock.skip(20)
            until(lambda: "node a stops its units: its lease ran out" in caplog.text)
            give(catalog, "peaks", "b")
            assert joins == []
            go_on.set()
            until(lambda: len(joins) == 1)
            assert worker.story == ["start peaks 1", "stop peaks 1 at once"]
            until(lambda: unit(catalog, "peaks").released_epoch == 1)

    def test_one_whose_place_another_process_has_taken_stops_for_good(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()) as running:
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            alive_elsewhere(catalog, "a")
            taken = node(catalog)
            until(lambda: running.has_ended)
        assert worker.story == ["start peaks 1", "stop peaks 1 at once"]
        assert node(catalog) == taken
        # What the other process may be running already must not be given out to a third.
        assert unit(catalog, "peaks").released_epoch == 0
