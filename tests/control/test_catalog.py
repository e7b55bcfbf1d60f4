"""The catalog: what is written is read, many write at once, and former owners are not heard."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from control.made_up import submission
from penstock import __version__
from penstock.control import catalog as catalog_module
from penstock.control import catalog_database, move_rows, node_rows
from penstock.control.catalog import Catalog
from penstock.control.records import NodeRecord, UnitRecord
from penstock.control.tables import VERSION, meta, metadata
from penstock.errors import InputError, PenstockError, UnreachableError
from penstock.model.measurements import NodeSample
from postgres import temporary_postgres


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with temporary_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.system)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    url: str = request.getfixturevalue("server")
    engine = sa.create_engine(url)
    metadata.drop_all(engine)
    engine.dispose()
    return url


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    made = Catalog(url)
    made.prepare()
    yield made
    made.close()


@pytest.fixture
def q(catalog: Catalog) -> UnitRecord:
    """A unit in the catalog."""
    catalog.add(vars(submission()), [UnitRecord("q", "fragment", 1)])
    return the(catalog, "q")


def the(catalog: Catalog, name: str) -> UnitRecord:
    return next(unit for unit in catalog.units() if unit.name == name)


def at_once(url: str, count: int, work: Callable[[Catalog, int], object]) -> list[object]:
    """Has work done by several at the same time, each with connections of its own."""
    barrier = threading.Barrier(count)

    def one(number: int) -> object:
        catalog = Catalog(url)
        try:
            barrier.wait(20)
            return work(catalog, number)
        finally:
            catalog.close()

    with ThreadPoolExecutor(count) as pool:
        return [done.result() for done in [pool.submit(one, k) for k in range(count)]]


class TestPreparing:
    def test_it_may_be_prepared_again(self, catalog: Catalog, q: UnitRecord) -> None:
        before = catalog.changes()
        catalog.prepare()
        assert catalog.units() == (q,)
        assert catalog.changes() == before

    def test_a_new_one_is_empty(self, catalog: Catalog) -> None:
        assert catalog.changes() == 0
        read = (catalog.submissions, catalog.nodes, catalog.units, catalog.moves, catalog.events)
        assert [one() for one in read] == [()] * 5
        assert catalog.samples("a") == ()

    def test_by_many_at_once(self, url: str) -> None:
        at_once(url, 6, lambda catalog, _: catalog.prepare())
        catalog = Catalog(url)
        assert catalog.changes() == 0
        catalog.close()

    @pytest.mark.system
    def test_by_several_processes_at_once(self, url: str, tmp_path: Path) -> None:
        program = (
            "import sys, time; from pathlib import Path\n"
            "from penstock.control.catalog import Catalog\n"
            "Path(sys.argv[2], f'ready-{sys.argv[3]}').touch()\n"
            "while len(list(Path(sys.argv[2]).glob('ready-*'))) < 3: time.sleep(0.001)\n"
            "catalog = Catalog(sys.argv[1]); catalog.prepare()\n"
            "for k in range(10): catalog.tell('test', sys.argv[3], str(k))\n"
        )
        command = [sys.executable, "-c", program, url, str(tmp_path)]
        processes = [
            subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in "abc"
        ]
        assert [process.communicate(timeout=60)[1] for process in processes] == [""] * 3
        catalog = Catalog(url)
        told = [(event.subject, event.text) for event in catalog.events()]
        for name in "abc":
            assert [text for subject, text in told if subject == name] == [*map(str, range(10))]
        catalog.close()

    def test_another_version_is_refused(self, catalog: Catalog, url: str) -> None:
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            told = sa.update(meta).where(meta.c.key == "version").values(value="0")
            connection.execute(told)
        engine.dispose()
        with pytest.raises(InputError) as refused:
            catalog.prepare()
        assert str(refused.value) == (
            f"the catalog {url} was made by penstock {__version__} "
            f"(tables 0, penstock {__version__} has {VERSION}). "
            "Use that version, or start a new system in another folder."
        )
        with pytest.raises(InputError, match="tables 0"):
            catalog.run_by()


class TestUnreachable:
    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path}/missing/catalog.db"
        with pytest.raises(UnreachableError) as failed:
            Catalog(url).prepare()
        assert str(failed.value) == (
            f"the catalog {url} cannot be used: unable to open database file. "
            "Check that its database runs and its disk has room."
        )
        assert failed.value.exit_code == 3

    def test_a_file_that_is_something_else(self, tmp_path: Path) -> None:
        (tmp_path / "catalog.db").write_text("once upon a time " * 100)
        with pytest.raises(UnreachableError, match="cannot be used: file is not a database"):
            Catalog(f"sqlite:///{tmp_path}/catalog.db").units()

    def test_a_server_that_does_not_run(self) -> None:
        """The password is not told."""
        with pytest.raises(UnreachableError) as failed:
            Catalog("postgresql+psycopg://me:secret@127.0.0.1:1/penstock").now_s()
        told = str(failed.value)
        begin = "the catalog postgresql+psycopg://me:***@127.0.0.1:1/penstock cannot be used: "
        assert told.startswith(begin)
        assert "refused" in told
        assert told.endswith("Check that its database runs and its disk has room.")
        assert "secret" not in told


class TestSubmissions:
    def test_what_is_added_is_read(self, catalog: Catalog) -> None:
        asked = replace(submission(folder="/home/ami"), max_latency_us=3_000_000)
        units = [UnitRecord("readings", "intake", 1), UnitRecord("q", "fragment", 1, pinned="b")]
        assert catalog.add(vars(asked), units) == 1
        assert catalog.submissions() == (asked,)
        assert catalog.units() == (units[1], units[0])

    def test_oldest_first(self, catalog: Catalog) -> None:
        for number, name in enumerate(("z", "y", "x"), 1):
            catalog.add(vars(submission(name, number=number)), [])
        assert [one.name for one in catalog.submissions()] == ["z", "y", "x"]

    def test_all_or_nothing(self, catalog: Catalog, q: UnitRecord) -> None:
        before = catalog.changes()
        with pytest.raises(PenstockError):
            catalog.add(vars(submission("other", number=2)), [q])
        assert [one.name for one in catalog.submissions()] == ["ami"]
        assert catalog.changes() == before

    def test_dropping_and_removing_leave_others_alone(
        self, catalog: Catalog, q: UnitRecord
    ) -> None:
        catalog.add(vars(submission("other", number=2)), [UnitRecord("r", "fragment", 2)])
        for name in "qr":
            catalog.add_moves([begun(name)])
        catalog.drop(2)
        assert [(unit.name, unit.is_dropped) for unit in catalog.units()] == [
            ("q", False),
            ("r", True),
        ]
        catalog.remove(2)
        assert [one.name for one in catalog.submissions()] == ["ami"]
        assert catalog.units() == (q,)
        assert [move.unit for move in catalog.moves()] == ["q"]


def begun(unit: str, **told: object) -> dict[str, object]:
    row = {"unit": unit, "source": "a", "target": "b", "state": "preparing", "created_s": 5.0}
    return {**row, **told}


class TestNodes:
    A = NodeRecord("a", 2, 1 << 31, "first", 123, "1.0", 70.0)

    def test_declaring_keeps_what_is_known(self, catalog: Catalog) -> None:
        catalog.declare(NodeRecord("a", 1, 1))
        catalog.join(self.A)
        catalog.declare(NodeRecord("a", 9, 9))
        assert catalog.nodes() == (self.A,)

    def test_one_that_was_not_declared_may_join(self, catalog: Catalog) -> None:
        catalog.join(NodeRecord("b", 1, 1))
        catalog.join(self.A)
        assert [node.name for node in catalog.nodes()] == ["a", "b"]

    def test_only_its_own_process_prolongs_a_lease(self, catalog: Catalog) -> None:
        until_s = catalog.now_s() + 60.0
        catalog.join(replace(self.A, lease_until_s=until_s))
        assert catalog.renew("a", "first", until_s + 1)
        assert not catalog.renew("a", "second", until_s + 2)
        assert not catalog.renew("b", "first", until_s + 2)
        assert catalog.nodes()[0].lease_until_s == pytest.approx(until_s + 1, abs=1e-3)

    def test_a_lease_that_has_run_out_is_not_prolonged(self, catalog: Catalog) -> None:
        """Others may have seen that, and work on what was its owner's."""
        catalog.join(replace(self.A, lease_until_s=catalog.now_s() - 1.0))
        assert not catalog.renew("a", "first", catalog.now_s() + 60.0)
        assert not catalog.nodes()[0].is_alive(catalog.now_s())

    def test_a_node_is_one_process_at_a_time(self, catalog: Catalog) -> None:
        first = replace(self.A, lease_until_s=catalog.now_s() + 60.0)
        second = replace(first, incarnation="second")
        assert catalog.join(first)
        assert not catalog.join(second)
        assert catalog.nodes()[0].incarnation == "first"
        assert catalog.join(second, former=["first"])
        assert catalog.renew("a", "second", 0.0)
        assert catalog.join(first)

    def test_a_process_that_is_not_the_node_any_more_releases_nothing(
        self, catalog: Catalog
    ) -> None:
        catalog.join(replace(self.A, incarnation="second"))
        catalog.add(vars(submission()), [UnitRecord("q", "fragment", 1)])
        catalog.assign(catalog.units()[0], "a")
        catalog.release("q", 1, by=("a", "first"))
        assert catalog.units()[0].released_epoch == 0
        catalog.release("q", 1, by=("a", "second"))
        assert catalog.units()[0].released_epoch == 1

    def test_a_lease_is_kept_to_the_millisecond(self, catalog: Catalog) -> None:
        until_s = 1_790_000_000.123
        catalog.join(replace(self.A, lease_until_s=until_s))
        assert catalog.nodes()[0].lease_until_s == pytest.approx(until_s, abs=1e-3)

    def test_a_node_is_forgotten_with_what_it_measured(self, catalog: Catalog) -> None:
        for name in "ab":
            catalog.declare(NodeRecord(name, 1, 1))
            catalog.sample(name, NodeSample(1.0))
        catalog.forget_node("a")
        assert [node.name for node in catalog.nodes()] == ["b"]
        assert catalog.samples("a") == ()
        assert catalog.samples("b") == (NodeSample(1.0),)

    def test_leases_go_by_a_clock_for_all(self, catalog: Catalog) -> None:
        before = catalog.now_s()
        assert before == pytest.approx(time.time(), abs=5)
        assert catalog.now_s() >= before


class TestOwners:
    def test_every_owner_has_an_epoch(self, catalog: Catalog, q: UnitRecord) -> None:
        assert catalog.assign(q, "a")
        assert the(catalog, "q") == replace(q, node="a", epoch=1)
        assert catalog.assign(the(catalog, "q"), "b")
        assert the(catalog, "q") == replace(q, node="b", epoch=2, previous="a")

    def test_who_has_seen_an_older_state_gives_nothing(
        self, catalog: Catalog, q: UnitRecord
    ) -> None:
        assert catalog.assign(q, "a")
        assert not catalog.assign(q, "b")
        assert not catalog.assign(replace(q, epoch=7), "b")
        assert not catalog.assign(replace(q, name="unknown"), "b")
        assert the(catalog, "q") == replace(q, node="a", epoch=1)

    def test_of_many_who_give_it_at_once_one_succeeds(
        self, catalog: Catalog, q: UnitRecord, url: str
    ) -> None:
        given = at_once(url, 6, lambda one, k: one.assign(q, f"n{k}"))
        assert sorted(given, key=bool) == [False] * 5 + [True]
        assert the(catalog, "q").node == f"n{given.index(True)}"
        assert the(catalog, "q").epoch == 1

    def test_restarts_are_counted_with_it(self, catalog: Catalog, q: UnitRecord) -> None:
        assert catalog.assign(q, "a", is_restart=True)
        assert not catalog.assign(q, "a", is_restart=True)
        assert the(catalog, "q").restarts == 1
        assert catalog.assign(the(catalog, "q"), "b")
        assert the(catalog, "q").restarts == 1

    def test_only_the_owner_is_listened_to(self, catalog: Catalog, q: UnitRecord) -> None:
        catalog.assign(q, "a")
        catalog.report("q", 1, "running")
        catalog.assign(the(catalog, "q"), "b")
        now = the(catalog, "q")
        assert (now.state, now.reported_epoch, now.is_up) == ("running", 1, False)
        catalog.report("q", 1, "failed", "no room")
        catalog.report("q", 3, "failed", "no room")
        assert the(catalog, "q") == now
        catalog.report("q", 2, "failed", "no room")
        assert the(catalog, "q") == replace(now, state="failed", error="no room", reported_epoch=2)
        catalog.report("q", 2, "running")
        assert the(catalog, "q").error == ""
        assert the(catalog, "q").is_up

    def test_what_was_given_back_stays_so(self, catalog: Catalog, q: UnitRecord) -> None:
        for epoch, known in ((1, 1), (4, 4), (2, 4), (4, 4)):
            catalog.release("q", epoch)
            assert the(catalog, "q").released_epoch == known


class TestMoves:
    def test_they_are_read_as_they_were_begun(self, catalog: Catalog, q: UnitRecord) -> None:
        row = begun("q", reason="asked for", numbers={"gain": 1.5, "why": ["hot", None]})
        assert catalog.add_moves([row]) == [1]
        (move,) = catalog.moves()
        assert (move.unit, move.source, move.target, move.state) == ("q", "a", "b", "preparing")
        assert (move.is_warm, move.created_s, move.ended_s) == (False, 5.0, None)
        assert (move.reason, move.numbers) == ("asked for", {"gain": 1.5, "why": ["hot", None]})

    def test_the_moves_of_a_plan_begin_together_or_not_at_all(self, catalog: Catalog) -> None:
        assert catalog.add_moves([begun("q"), begun("r")]) == [1, 2]
        with pytest.raises(PenstockError):
            catalog.add_moves([begun("s"), begun("t", source=None)])
        assert [move.unit for move in catalog.moves()] == ["q", "r"]

    def test_the_latest_oldest_first(self, catalog: Catalog) -> None:
        catalog.add_moves([begun(name) for name in "qrst"])
        assert [move.unit for move in catalog.moves(last=2)] == ["s", "t"]
        catalog.change_move(4, state="done")
        catalog.change_move(1, state="moving")
        assert [move.unit for move in catalog.moves(open_only=True)] == ["q", "r", "s"]

    def test_all_that_are_open_and_the_latest_of_the_others_are_kept(
        self, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(move_rows, "_KEPT_MOVES", 3)
        for number, name in enumerate("qrstuv", 1):
            catalog.add_moves([begun(name)])
            if name != "q":
                catalog.change_move(number, state="done")
        assert [move.unit for move in catalog.moves(last=9)] == ["q", "t", "u", "v"]
        assert [move.unit for move in catalog.moves(open_only=True, last=0)] == ["q"]

    def test_what_has_ended_does_not_change(self, catalog: Catalog) -> None:
        catalog.add_moves([begun("q")])
        assert catalog.change_move(1, is_warm=True)
        assert catalog.change_move(1, state="done", ended_s=7.0)
        done = catalog.moves()
        assert not catalog.change_move(1, state="moving")
        assert not catalog.change_move(9, state="moving")
        assert catalog.moves() == done

    def test_numbers_are_not_used_again(self, catalog: Catalog, q: UnitRecord) -> None:
        catalog.add_moves([begun("q")])
        catalog.remove(1)
        assert catalog.add_moves([begun("q")]) == [2]


class TestStories:
    def test_events_are_told_in_order(self, catalog: Catalog) -> None:
        for k in range(5):
            catalog.tell("move", "q", f"text {k}", rate=k)
        told = catalog.events()
        assert [(one.id, one.kind, one.subject, one.text) for one in told] == [
            (k + 1, "move", "q", f"text {k}") for k in range(5)
        ]
        assert told[3].numbers == {"rate": 3}
        assert told[0].at_s == pytest.approx(time.time(), abs=60)
        assert [event.id for event in catalog.events(after=3)] == [4, 5]
        assert [event.id for event in catalog.events(last=2)] == [4, 5]
        assert catalog.events(after=5) == ()

    def test_the_oldest_are_forgotten(
        self, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(catalog_module, "_KEPT_EVENTS", 3)
        for k in range(8):
            catalog.tell("move", "q", f"text {k}")
        assert [event.text for event in catalog.events()] == ["text 5", "text 6", "text 7"]

    def test_every_node_has_its_series(
        self, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(node_rows, "_KEPT_SAMPLES", 3)
        catalog.sample("b", NodeSample(0.0, cpu_cores=9))
        for k in range(8):
            catalog.sample("a", NodeSample(float(k), cpu_cores=k))
        assert [sample.cpu_cores for sample in catalog.samples("a", 10)] == [5, 6, 7]
        assert catalog.samples("a", 1) == (NodeSample(7.0, cpu_cores=7),)
        assert catalog.samples("b", 10) == (NodeSample(0.0, cpu_cores=9),)

    def test_of_a_series_what_is_new_and_one_before(self, catalog: Catalog) -> None:
        assert catalog.samples_since("a", 0.0) == ()
        for at_s in (2.0, 4.0, 6.0, 8.0):
            catalog.sample("a", NodeSample(at_s))
            catalog.sample("b", NodeSample(at_s))
        for since_s, times in ((0.0, [2, 4, 6, 8]), (4.0, [4, 6, 8]), (5.0, [4, 6, 8]), (9.0, [8])):
            found = catalog.samples_since("a", since_s)
            assert [sample.at_s for sample in found] == times


class TestChanges:
    def test_they_count_what_nodes_have_to_look_at(self, catalog: Catalog, q: UnitRecord) -> None:
        works: list[Callable[[], object]] = [
            lambda: catalog.add(vars(submission("other", number=2)), []),
            lambda: catalog.assign(q, "a"),
            lambda: catalog.release("q", 1),
            lambda: catalog.add_moves([begun("q")]),
            lambda: catalog.change_move(1, is_warm=True),
            lambda: catalog.drop(1),
            lambda: catalog.remove(1),
        ]
        for work in works:
            before = catalog.changes()
            work()
            assert catalog.changes() > before

    def test_and_nothing_else(self, catalog: Catalog, q: UnitRecord) -> None:
        catalog.join(TestNodes.A)
        before = catalog.changes()
        catalog.report("q", 0, "running")
        catalog.renew("a", "first", 9.0)
        catalog.tell("move", "q", "text")
        catalog.sample("a", NodeSample(1.0))
        assert catalog.changes() == before


class TestManyAtOnce:
    def test_nobody_is_turned_away(self, catalog: Catalog, q: UnitRecord, url: str) -> None:
        """Owners come and go, stop, report and measure all at the same time."""
        catalog.add(vars(submission("other", number=2)), [UnitRecord("r", "fragment", 2)])
        catalog.join(TestNodes.A)

        def work(mine: Catalog, number: int) -> int:
            given = 0
            for k in range(8):
                unit = the(mine, "qr"[k % 2])
                given += mine.assign(unit, f"n{number}")
                mine.release(unit.name, unit.epoch)
                mine.report(unit.name, unit.epoch + 1, "running")
                mine.tell("test", unit.name, str(k))
                mine.sample("a", NodeSample(float(k), cpu_cores=number))
                mine.renew("a", "first", float(k))
                (move,) = mine.add_moves([begun(unit.name)])
                mine.change_move(move, state="done")
            return given

        given = at_once(url, 4, work)
        assert sum(map(int, given)) == sum(unit.epoch for unit in catalog.units())  # type: ignore[call-overload]
        assert len(catalog.events()) == len(catalog.samples("a")) == 4 * 8
        assert len(catalog.moves()) == 4 * 8
        assert catalog.moves(open_only=True) == ()

    def test_giving_and_giving_back_do_not_wait_for_each_other(
        self, catalog: Catalog, q: UnitRecord, url: str
    ) -> None:
        def work(mine: Catalog, number: int) -> None:
            for k in range(1, 60):
                if number:
                    mine.release("q", k)
                else:
                    mine.assign(replace(q, epoch=k - 1), "a")

        at_once(url, 2, work)
        assert (the(catalog, "q").epoch, the(catalog, "q").released_epoch) == (59, 59)

    def test_a_writer_waits_its_turn(self, catalog: Catalog, q: UnitRecord, url: str) -> None:
        """Also if it has read before: it never has to begin again."""
        waiting, is_told = threading.Event(), threading.Event()

        def write() -> None:
            waiting.set()
            catalog.tell("test", "q", "second")
            is_told.set()

        other = Catalog(url)
        with other._begin() as connection:
            known = sa.select(meta.c.value).where(meta.c.key == "changes").with_for_update()
            connection.execute(known)
            catalog_database.count_change(connection)
            thread = threading.Thread(target=write)
            thread.start()
            assert waiting.wait(10)
            assert catalog.changes() == 1
        thread.join(20)
        assert is_told.is_set()
        assert catalog.changes() == 2
        other.close()


class TestTaken:
    """A name that another has is the asker's mistake, not the catalog's trouble."""

    def test_by_a_submission(self, catalog: Catalog) -> None:
        catalog.add(vars(submission()), [])
        with pytest.raises(InputError) as refused:
            catalog.add(vars(submission(number=2)), [])
        assert str(refused.value) == (
            "the name ami is taken by another submission. "
            "Give it another name, or drop the other first."
        )
        assert refused.value.exit_code == 1

    def test_by_a_part_of_one(self, catalog: Catalog) -> None:
        catalog.add(vars(submission()), [UnitRecord("peaks", "fragment", 1)])
        with pytest.raises(InputError) as refused:
            catalog.add(vars(submission("two", number=2)), [UnitRecord("peaks", "fragment", 2)])
        assert str(refused.value) == (
            "the name peaks is taken by a part of ami. "
            "Give it another name, or drop the other first."
        )
        assert [one.name for one in catalog.submissions()] == ["ami"]

    def test_by_one_that_came_at_the_same_moment(self, catalog: Catalog) -> None:
        catalog.add(vars(submission()), [])
        with pytest.raises(InputError) as refused:
            catalog.add(vars(submission("two", number=1)), [])
        assert str(refused.value) == (
            "another submission came at the same moment as two. Submit it again."
        )


class TestTimes:
    def test_since_when_a_unit_is_well(self, catalog: Catalog) -> None:
        catalog.add(vars(submission()), [UnitRecord("peaks", "fragment", 1)])
        catalog.assign(catalog.units()[0], "a")
        catalog.report("peaks", 1, "running")
        (first,) = catalog.units()
        assert first.since_s is not None
        assert first.assigned_s is not None
        time.sleep(0.02)
        catalog.report("peaks", 1, "held back")
        assert catalog.units()[0].since_s == first.since_s
        catalog.report("peaks", 1, "failed")
        failed_s = catalog.units()[0].since_s
        assert failed_s is not None
        assert failed_s > first.since_s

    def test_forgiving(self, catalog: Catalog) -> None:
        catalog.add(vars(submission()), [UnitRecord("peaks", "fragment", 1)])
        catalog.assign(catalog.units()[0], "a", is_restart=True)
        catalog.forgive("peaks", 2)
        assert catalog.units()[0].restarts == 1
        catalog.forgive("peaks", 1)
        assert catalog.units()[0].restarts == 0
