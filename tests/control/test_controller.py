"""The controller: takes in, moves and drops what people ask for, and says clearly why not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from control.made_up import AMI
from control.toys import TroubledCatalog, empty_catalog, once, raising
from penstock.control.controller import Controller, MoveRequest, tick_always
from penstock.control.home import Home
from penstock.control.records import NodeRecord, UnitRecord
from penstock.errors import PenstockError, RunError, UnreachableError
from penstock.model.estimates import OperatorEstimate
from waiting import until


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "system")
    made.prepare()
    return made


@pytest.fixture
def controller(home: Home, catalog: TroubledCatalog) -> Controller:
    """With two living nodes, and one that has died."""
    for name, for_s in (("a", 600.0), ("b", 600.0), ("z", -1.0)):
        until_s = time.time() + for_s
        catalog.join(NodeRecord(name, 1, 1 << 30, f"{name}-1", lease_until_s=until_s))
    return Controller(home, catalog)


@pytest.fixture
def ami(controller: Controller, catalog: TroubledCatalog) -> Controller:
    """A deployment whose units both run on node a."""
    controller.submit("ami", "yaml", AMI, ".")
    for unit in catalog.units():
        run(catalog, unit, "a")
    return controller


def run(catalog: TroubledCatalog, unit: UnitRecord, node: str) -> None:
    catalog.assign(unit, node)
    catalog.report(unit.name, unit.epoch + 1, "running")


def the(catalog: TroubledCatalog, name: str) -> UnitRecord:
    return next(one for one in catalog.units() if one.name == name)


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(PenstockError) as error:
        work()
    return str(error.value)


def story(catalog: TroubledCatalog) -> list[str]:
    return [f"{one.kind} {one.subject}: {one.text}" for one in catalog.events()]


class TestSubmitting:
    def test_the_units_are_recorded(self, controller: Controller, catalog: TroubledCatalog) -> None:
        units = controller.submit("ami", "yaml", AMI, "/data", 5_000_000)
        assert [unit.name for unit in units] == ["readings", "peaks"]
        assert catalog.units() == (
            UnitRecord("peaks", "fragment", 1, planned="a"),
            UnitRecord("readings", "intake", 1),
        )
        (asked,) = catalog.submissions()
        assert (asked.id, asked.name, asked.kind) == (1, "ami", "yaml")
        assert (asked.text, asked.folder, asked.max_latency_us) == (AMI, "/data", 5_000_000)
        assert story(catalog) == ["submit ami: submitted with 2 units"]

    def test_what_they_will_read_is_kept_from_now_on(self, ami: Controller) -> None:
        ami.submit("q", "sql", "SELECT home FROM peaks", ".")
        assert readers(ami, "readings") == ["peaks"]
        assert readers(ami, "peaks") == ["q"]

    def test_where_they_are_written_to_run(
        self, controller: Controller, catalog: TroubledCatalog
    ) -> None:
        text = AMI.replace("SELECT ts, home, kwh FROM readings WHERE kwh > 3", "{PEAKS}")
        pinned = text.replace("{PEAKS}", "{sql: SELECT ts FROM readings, on: b}")
        controller.submit("ami", "yaml", pinned, ".")
        assert the(catalog, "peaks").pinned == "b"
        assert (
            refused(
                lambda: controller.submit(
                    "two", "yaml", "queries:\n  q: {sql: SELECT ts FROM peaks, on: bb}", "."
                )
            )
            == "no node bb. There are a, b, z. Did you mean b?"
        )

    def test_the_same_name_again(self, ami: Controller, catalog: TroubledCatalog) -> None:
        before = catalog.changes()
        assert refused(lambda: ami.submit("ami", "sql", "SELECT home FROM peaks", ".")) == (
            "ami is already running. Give it another name, or drop the other first."
        )
        assert catalog.changes() == before

    def test_nothing_to_do(self, controller: Controller) -> None:
        controller.submit("ami", "yaml", AMI, ".")
        nowhere = "queries:\n  q: {sql: SELECT home FROM peaks, to: none}\n"
        assert refused(lambda: controller.submit("two", "yaml", nowhere, ".")) == (
            "two has no queries whose results go anywhere, and no streams for others. "
            "Add a query, or give one that has to: none a destination. "
            "Streams from Kafka are named in every file that reads them."
        )

    def test_streams_alone_wait_until_something_reads_them(
        self, controller: Controller, catalog: TroubledCatalog
    ) -> None:
        (readings,) = controller.submit("ami", "yaml", AMI[: AMI.index("queries:")], ".")
        assert (readings.name, readings.is_unread) == ("readings", True)
        controller.tick()
        assert (the(catalog, "readings").node, the(catalog, "readings").is_unread) == (None, True)
        controller.submit("q", "sql", "SELECT home FROM readings", ".")
        assert readers(controller, "readings") == ["q"]
        assert not the(catalog, "readings").is_unread
        controller.tick()
        assert the(catalog, "readings").node in ("a", "b")
        assert refused(lambda: controller.drop("ami")) == (
            "ami is read by q. Drop those that read it first."
        )

    def test_readers_are_forgotten_if_it_cannot_be_recorded(
        self, ami: Controller, catalog: TroubledCatalog
    ) -> None:
        catalog.before["add"] = raising(UnreachableError("the catalog is away"))
        query = "SELECT home FROM peaks"
        assert refused(lambda: ami.submit("q", "sql", query, ".")) == "the catalog is away"
        assert readers(ami, "peaks") == []
        assert readers(ami, "readings") == ["peaks"]

    def test_names_that_cannot_be_part_of_an_address(self, controller: Controller) -> None:
        for name in ("", "../x", "a/b", ".hidden", "a b", "a\0b", "a\n", "x" * 201):
            assert refused(lambda name=name: controller.submit(name, "yaml", AMI, ".")) == (  # type: ignore[misc]
                f"{name!r} cannot name a submission. "
                "Use up to 200 letters, digits, -, . and _, starting with a letter or a digit."
            )

    def test_names_that_can(self, ami: Controller) -> None:
        for k, name in enumerate(("ami-2", "v1.2", "größe", "7", "x" * 200)):
            query = f"queries:\n  q{k}: SELECT home FROM peaks\n"
            assert ami.submit(name, "yaml", query, ".")

    def test_what_is_wrong_with_it_is_told_and_nothing_is_kept(
        self, controller: Controller, catalog: TroubledCatalog, home: Home
    ) -> None:
        for wrong, text in (
            (AMI.replace("kwh > 3", "khw > 3"), "no column khw"),
            (f"{AMI}placement: nowhere", "no placement strategy nowhere"),
            (f"{AMI}balance: {{policy: chaos}}", "no balancing policy chaos"),
            (f"{AMI}balance: {{pace: 1}}", "balance has no setting pace"),
            (f"{AMI}balance: {{samples: some}}", "samples of balance is some. Give a number."),
            (f"{AMI}balance: {{samples: 0}}", "is 0. Give a whole number above zero."),
            (f"{AMI}balance: {{every: soon}}", "soon"),
            (f"{AMI}balance: {{most_load: high}}", "most_load of balance is high. Give a number."),
        ):
            assert text in refused(lambda wrong=wrong: controller.submit("ami", "yaml", wrong, "."))  # type: ignore[misc]
        assert catalog.submissions() == ()
        assert files(home) == []


def readers(controller: Controller, stream: str) -> list[str]:
    return sorted(path.name for path in (controller.channel(stream).folder / "readers").iterdir())


def files(home: Home) -> list[str]:
    return sorted(str(path.relative_to(home.state)) for path in home.state.rglob("*"))


class TestTurns:
    """Assignments change one at a time, whoever asks."""

    @pytest.mark.parametrize("work", ["move", "tick", "submit"])
    def test_others_wait(self, ami: Controller, catalog: TroubledCatalog, work: str) -> None:
        def move() -> None:
            ami.move([MoveRequest("peaks", "b")])

        def submit() -> None:
            ami.submit("q", "sql", "SELECT home FROM peaks", ".")

        works = {"move": move, "tick": ami.tick, "submit": submit}
        ended: list[None] = []
        before = catalog.changes()

        def run_it() -> None:
            works[work]()
            ended.append(None)

        other = threading.Thread(target=run_it)
        with ami._assigning:
            other.start()
            other.join(0.2)
            assert not ended
            assert catalog.changes() == before
        other.join(20)
        assert ended

    def test_a_drop_that_takes_its_time_holds_up_no_decision(
        self, ami: Controller, catalog: TroubledCatalog
    ) -> None:
        dropping = threading.Thread(target=lambda: refused(lambda: ami.drop("ami", 0.5)))
        dropping.start()
        until(lambda: the(catalog, "peaks").is_dropped)
        ami.tick()
        assert dropping.is_alive()
        dropping.join()


class TestMoving:
    def test_a_move_begins(self, ami: Controller, catalog: TroubledCatalog) -> None:
        wish = MoveRequest("peaks", "b", "too hot", {"gain": 2})
        (move,) = ami.move([wish])
        assert (move.unit, move.source, move.target, move.state) == ("peaks", "a", "b", "preparing")
        assert (move.reason, move.numbers, move.is_warm) == ("too hot", {"gain": 2}, False)
        assert move.created_s == pytest.approx(time.time(), abs=60)
        assert catalog.moves(open_only=True) == (move,)

    def test_several_begin_as_one_plan(self, ami: Controller) -> None:
        moves = ami.move([MoveRequest("peaks", "b"), MoveRequest("readings", "b")])
        assert [move.unit for move in moves] == ["peaks", "readings"]

    def test_if_one_makes_no_sense_none_begins(
        self, ami: Controller, catalog: TroubledCatalog
    ) -> None:
        wishes = [MoveRequest("peaks", "b"), MoveRequest("readings", "a")]
        assert refused(lambda: ami.move(wishes)) == (
            "readings already runs on a. Nothing needs to be done."
        )
        assert catalog.moves() == ()

    def test_refusals(self, ami: Controller) -> None:
        for fragment, node, text in (
            ("peak", "b", "no fragment peak. There are peaks, readings. Did you mean peaks?"),
            ("../x", "b", "no fragment ../x. There are peaks, readings."),
            ("peaks", "c", "no node c. There are a, b."),
            ("peaks", "A", "no node A. There are a, b. Did you mean a?"),
            ("peaks", "z", "node z is not alive. Those that are: a, b."),
            ("peaks", "a", "peaks already runs on a. Nothing needs to be done."),
        ):
            wish = MoveRequest(fragment, node)
            assert refused(lambda wish=wish: ami.move([wish])) == text  # type: ignore[misc]

    def test_what_is_being_moved_stays_so(self, ami: Controller) -> None:
        wish, text = (
            MoveRequest("peaks", "b"),
            "peaks is being moved already. Wait until it is done.",
        )
        assert refused(lambda: ami.move([wish, wish])) == text
        ami.move([wish])
        assert refused(lambda: ami.move([wish])) == text

    def test_only_what_runs_can_be_moved(self, ami: Controller, catalog: TroubledCatalog) -> None:
        text = "{} is not running. Only what runs can be moved."
        ami.submit("q", "sql", "SELECT home FROM peaks", ".")
        assert refused(lambda: ami.move([MoveRequest("q", "b")])) == text.format("q")
        catalog.report("readings", 1, "finished")
        assert refused(lambda: ami.move([MoveRequest("readings", "b")])) == text.format("readings")
        catalog.drop(1)
        assert refused(lambda: ami.move([MoveRequest("peaks", "b")])) == text.format("peaks")

    def test_a_move_goes_its_way(self, ami: Controller, catalog: TroubledCatalog) -> None:
        (begun,) = ami.move([MoveRequest("peaks", "b", "too hot", {"gain": 2})])
        ami.tick()
        assert the(catalog, "peaks").node == "a"
        catalog.change_move(begun.id, is_warm=True)
        ami.tick()
        assert (the(catalog, "peaks").node, the(catalog, "peaks").epoch) == ("b", 2)
        assert catalog.moves()[0].state == "moving"
        ami.tick()
        assert catalog.moves()[0].state == "moving"
        catalog.release("peaks", 1)
        catalog.report("peaks", 2, "running")
        for _ in range(2):
            ami.tick()
        (done,) = catalog.moves()
        assert (done.state, done.error) == ("done", "")
        assert done.ended_s is not None
        assert done.ended_s >= begun.created_s
        assigned, moved = catalog.events()[-2:]
        assert (assigned.text, assigned.numbers) == (
            "too hot",
            {"epoch": 2, "from": "a", "to": "b"},
        )
        assert moved.text.startswith("a → b done in 0.")
        assert moved.numbers == {"gain": 2, "move": begun.id}

    def test_a_move_that_fails_is_told_once(
        self, ami: Controller, catalog: TroubledCatalog, home: Home
    ) -> None:
        (begun,) = ami.move([MoveRequest("peaks", "b")])
        catalog.change_move(begun.id, error="no memory")
        for _ in range(2):
            ami.tick()
        assert story(catalog)[1:] == ["move peaks: a → b failed: no memory"]
        assert (the(catalog, "peaks").node, the(catalog, "peaks").epoch) == ("a", 1)

    def test_a_controller_that_dies_in_between_is_replaced(
        self, ami: Controller, catalog: TroubledCatalog, home: Home
    ) -> None:
        (begun,) = ami.move([MoveRequest("peaks", "b")])
        catalog.change_move(begun.id, is_warm=True)
        catalog.assign(the(catalog, "peaks"), "b")
        catalog.release("peaks", 1)
        catalog.report("peaks", 2, "running")
        for state in ("moving", "done"):
            Controller(home, catalog).tick()
            assert catalog.moves()[0].state == state
        assert (the(catalog, "peaks").node, the(catalog, "peaks").epoch) == ("b", 2)


class TestDeciding:
    def test_new_units_are_given_to_nodes(
        self, controller: Controller, catalog: TroubledCatalog
    ) -> None:
        controller.submit("ami", "yaml", AMI, ".")
        controller.tick()
        assert {unit.name: unit.node for unit in catalog.units()} == {"peaks": "a", "readings": "b"}
        assert story(catalog)[1:] == ["assign peaks: new", "assign readings: new"]
        controller.tick()
        assert len(story(catalog)) == 3

    def test_two_who_decide_at_once_do_no_harm(
        self, controller: Controller, catalog: TroubledCatalog, home: Home
    ) -> None:
        controller.submit("ami", "yaml", AMI, ".")
        for unit in catalog.units():
            run(catalog, unit, "z")
        both = [controller, Controller(home, catalog)]
        barrier = threading.Barrier(2)

        def decide(one: Controller) -> None:
            barrier.wait(10)
            one.tick()

        threads = [threading.Thread(target=decide, args=(one,)) for one in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert [unit.epoch for unit in catalog.units()] == [2, 2]
        assert story(catalog).count("assign peaks: node z fell silent") == 1

    def test_a_failed_unit_is_started_again_three_times(
        self, ami: Controller, catalog: TroubledCatalog
    ) -> None:
        for _ in range(6):
            epoch = the(catalog, "peaks").epoch
            catalog.report("peaks", epoch, "failed", "no room")
            catalog.release("peaks", epoch)
            ami.tick()
        assert (the(catalog, "peaks").restarts, the(catalog, "peaks").epoch) == (3, 4)

    def test_trouble_in_one_tick_does_not_end_them(
        self, controller: Controller, catalog: TroubledCatalog, caplog: pytest.LogCaptureFixture
    ) -> None:
        controller.submit("ami", "yaml", AMI, ".")
        rounds = iter([False, False, True])
        trouble = once(raising(UnreachableError("the catalog is away")))
        tick_always([trouble, controller.tick], lambda _: next(rounds))
        assert "a decision could not be made" in caplog.text
        assert all(unit.node for unit in catalog.units())


class TestDropping:
    @pytest.fixture
    def stopped(self, ami: Controller, catalog: TroubledCatalog) -> Controller:
        """Everything that runs has stopped, as it would when it is dropped."""
        for name in ("peaks", "readings"):
            catalog.release(name, 1)
        return ami

    def test_refusals(self, stopped: Controller, catalog: TroubledCatalog) -> None:
        stopped.submit("q", "sql", "SELECT home FROM peaks", ".")
        before = (catalog.units(), catalog.submissions())
        for name, text in (
            ("amy", "nothing called amy is running. There are ami, q. Did you mean ami?"),
            ("../x", "nothing called ../x is running. There are ami, q."),
            ("peaks", "peaks is part of ami. Drop ami as a whole."),
            ("ami", "ami is read by q. Drop those that read it first."),
        ):
            assert refused(lambda name=name: stopped.drop(name)) == text  # type: ignore[misc]
        assert (catalog.units(), catalog.submissions()) == before

    def test_nothing_at_all(self, controller: Controller) -> None:
        assert refused(lambda: controller.drop("ami")) == (
            "nothing called ami is running. There are none."
        )

    def test_nothing_is_left(
        self, stopped: Controller, catalog: TroubledCatalog, home: Home
    ) -> None:
        for part in ("fragments/peaks", "streams/readings", "channels/peaks", "channels/other"):
            (home.state / part / "deep").mkdir(parents=True)
        stopped.move([MoveRequest("peaks", "b")])
        stopped.drop("ami", patience_s=5)
        assert (catalog.units(), catalog.submissions(), catalog.moves()) == ((), (), ())
        assert [one for one in files(home) if "ami" in one or "s/peaks" in one] == []
        assert files(home) == [
            "channels",
            "channels/other",
            "channels/other/deep",
            "fragments",
            "streams",
        ]
        assert story(catalog)[-1] == "drop ami: dropped"
        assert stopped.submit("ami", "yaml", AMI, ".")

    def test_what_it_read_of_others_is_freed(
        self, stopped: Controller, catalog: TroubledCatalog, home: Home
    ) -> None:
        stopped.submit("q", "sql", "SELECT home FROM peaks", ".")
        stopped.submit("r", "sql", "SELECT home FROM peaks", ".")
        stopped.drop("q", patience_s=5)
        assert readers(stopped, "peaks") == ["r"]
        assert [unit.name for unit in catalog.units()] == ["peaks", "r", "readings"]

    def test_it_waits_for_the_units_to_stop(
        self, ami: Controller, catalog: TroubledCatalog, home: Home
    ) -> None:
        (home.state / "fragments" / "peaks").mkdir(parents=True)
        dropping = threading.Thread(target=ami.drop, args=("ami",))
        dropping.start()
        until(lambda: all(unit.is_dropped for unit in catalog.units()))
        catalog.release("peaks", 1)
        assert (home.state / "fragments" / "peaks").exists()
        catalog.release("readings", 1)
        dropping.join(20)
        assert catalog.units() == ()

    def test_but_not_for_ever(self, ami: Controller, catalog: TroubledCatalog) -> None:
        catalog.release("peaks", 1)
        with pytest.raises(RunError) as error:
            ami.drop("ami", patience_s=0)
        assert str(error.value) == (
            "readings did not stop within 0 s. "
            "Ask again; the logs of their nodes say what they are doing."
        )
        catalog.release("readings", 1)
        ami.drop("ami", patience_s=5)
        assert catalog.submissions() == ()

    def test_nor_for_nodes_that_are_dead(
        self, controller: Controller, catalog: TroubledCatalog
    ) -> None:
        controller.submit("ami", "yaml", AMI, ".")
        run(catalog, the(catalog, "peaks"), "z")
        controller.drop("ami", patience_s=0)
        assert catalog.submissions() == ()

    def test_what_is_being_dropped_is_given_to_nobody(
        self, controller: Controller, catalog: TroubledCatalog
    ) -> None:
        controller.submit("ami", "yaml", AMI, ".")
        seen = the(catalog, "peaks")
        catalog.drop(1)
        assert not catalog.assign(seen, "a")
        controller.tick()
        assert the(catalog, "peaks").node is None

    def test_one_that_was_interrupted_can_be_repeated(
        self, stopped: Controller, catalog: TroubledCatalog, home: Home
    ) -> None:
        """And leaves nothing behind that the next of that name would take for its own."""
        (home.state / "fragments" / "peaks").mkdir(parents=True)
        catalog.before["remove"] = once(raising(UnreachableError("the catalog is away")))
        assert refused(lambda: stopped.drop("ami", patience_s=5)) == "the catalog is away"
        assert [one.name for one in catalog.submissions()] == ["ami"]
        assert not (home.state / "fragments" / "peaks").exists()
        stopped.drop("ami", patience_s=5)
        assert catalog.submissions() == ()


class TestCosts:
    """What was measured is known to later plans."""

    @staticmethod
    def measured(cost_us: float) -> dict[str, object]:
        found = {"rows_in": 20_000, "cost_us": cost_us, "selectivity": 0.5}
        return {"fragments": {"peaks": found, "unknown": found}}

    def test_the_same_work_is_planned_with_them(
        self,
        ami: Controller,
        catalog: TroubledCatalog,
        home: Home,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        catalog.sample("a", time.time(), self.measured(9.0))
        ami.note_costs(100.0)
        given: list[object] = []
        monkeypatch.setattr(
            "penstock.control.controller.planned_nodes", lambda *told: given.append(told[-1]) or {}
        )
        others = AMI.replace("peaks:", "tops:").replace("readings", "others")
        with closing(empty_catalog(tmp_path / "later.db")) as later:
            controller = Controller(home, later)
            controller.submit("again", "yaml", AMI, ".")
            controller.submit("others", "yaml", others, ".")
        assert given == [{"peaks": OperatorEstimate(cost_us=9.0, selectivity=0.5)}, {}]

    def test_they_are_noted_now_and_then(
        self, ami: Controller, catalog: TroubledCatalog, home: Home
    ) -> None:
        ami.note_costs(100.0)
        catalog.sample("a", time.time(), self.measured(9.0))
        ami.note_costs(105.0)
        assert not (home.path / "costs.json").exists()
        ami.note_costs(111.0)
        assert (home.path / "costs.json").exists()
