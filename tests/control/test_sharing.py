"""What a submission shares with what runs, and what is left of those that are dropped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from control.made_up import submission
from penstock.control.beginning import Head, decide_beginnings
from penstock.control.live_sharing import leaving
from penstock.control.recorded_plans import plan_text, recorded_system
from penstock.control.records import Submission
from penstock.control.sharing import StreamIndex, can_be_tapped, decide_sharing
from penstock.control.sharing_answers import kept_for, sharing_answer
from penstock.control.system import System, Unit, assemble, extend, prune, understand
from penstock.errors import InputError
from penstock.kernels.engine_choice import choose_engine
from penstock.model.beginnings import InputStart, Since
from penstock.model.sharing import NOTHING_SHARED, Sharing

STREAMS = """
streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
"""
SUMS = (
    "SELECT home, window.start AS since, sum(kwh) AS kwh FROM readings "
    "GROUP BY home, window(ts, '10 minutes') HAVING sum(kwh) > 9"
)
ALL = (
    "SELECT sum(kwh) AS total, home AS h, window.end AS till FROM readings "
    "GROUP BY window(ts, '10 min'), home"
)
SAME = (
    "WITH w AS (SELECT home AS id, sum(kwh) AS s, window.start AS at FROM readings "
    "GROUP BY home, window(ts, '10 minutes')) SELECT s AS amount, id, at FROM w WHERE 9 < s"
)
FILTER = "SELECT ts, home FROM readings WHERE kwh > 3"


class Growing:
    """A system that grows by one submission after the other."""

    def __init__(self) -> None:
        self.submissions = [submission("base", STREAMS, 1)]
        self.system = assemble(self.submissions)
        self.obstacles: dict[str, str] = {}
        self._index = StreamIndex()

    def _obstacle(self, unit: Unit, is_inside: bool) -> str:
        if unit.name in self.obstacles:
            return self.obstacles[unit.name]
        return "" if not is_inside or can_be_tapped(unit) else f"{unit.name} is not cut"

    def add(self, name: str, query: str, share: bool = True, kind: str = "sql") -> Sharing:
        asked = Submission(len(self.submissions) + 1, name, kind, query, ".")  # type: ignore[arg-type]
        network = understand(self.system, asked).network
        sharing = NOTHING_SHARED
        if share:
            sharing = decide_sharing(self._index, self.system, network, self._obstacle)
        asked = replace(asked, sharing=sharing)
        self.system = extend(self.system, asked)
        self.submissions.append(asked)
        return sharing

    def operators(self, name: str) -> list[str]:
        fragment = self.system.units[name].fragment
        assert fragment is not None
        return [operator.name for operator in fragment.operators]


@pytest.fixture
def growing() -> Growing:
    made = Growing()
    assert made.add("sums", SUMS) == NOTHING_SHARED
    return made


def test_a_result_that_is_the_same_is_read(growing: Growing) -> None:
    sharing = growing.add("same", SAME)
    (read,) = sharing.reads
    assert (read.source, read.maker, read.tapped) == ("sums", "sums", False)
    assert read.columns == (("amount", "kwh"), ("id", "home"), ("at", "since"))
    assert len(sharing.saved) == 4
    unit = growing.system.units["same"]
    assert (unit.reads, unit.shares) == (("sums",), ("sums",))
    assert unit.fragment is not None
    choice = choose_engine(unit.network, unit.fragment)
    assert (choice.engine, choice.reason) == ("light", "rows of a stream that is shared")


def test_a_stream_inside_a_fragment_is_tapped(growing: Growing) -> None:
    sharing = growing.add("all", ALL)
    (read,) = sharing.reads
    assert (read.source, read.maker, read.tapped) == ("sums_aggregate", "sums", True)
    assert sharing.saved == ("all_aggregate",)
    assert growing.system.units["sums"].taps == ("sums_aggregate",)
    assert growing.system.makers["sums_aggregate"].name == "sums"
    assert growing.operators("all") == ["all_aggregate", "all"]


def test_the_rest_of_a_wider_query_is_shared_on(growing: Growing) -> None:
    """What is shared already can be shared again, from where it is computed."""
    growing.add("all", ALL)
    (read,) = growing.add("more", ALL.replace("h,", "home2,")).reads
    assert (read.source, read.maker, read.tapped) == ("sums_aggregate", "sums", True)


def test_cheap_work_is_repeated(growing: Growing) -> None:
    growing.add("filter", FILTER)
    assert growing.add("again", FILTER) == NOTHING_SHARED


@pytest.mark.parametrize(
    "other",
    [
        SUMS.replace("10 minutes", "20 minutes"),
        SUMS.replace("sum(kwh) AS", "avg(kwh) AS"),
        SUMS.replace("FROM readings", "FROM readings WHERE kwh > 0"),
        SUMS.replace("SELECT home", "SELECT district AS home").replace("BY home", "BY district"),
    ],
)
def test_what_is_not_the_same_is_not_shared(growing: Growing, other: str) -> None:
    assert growing.add("other", other) == NOTHING_SHARED


def test_why_something_equal_is_not_shared(growing: Growing) -> None:
    growing.obstacles["sums"] = "sums has failed"
    sharing = growing.add("other", SUMS)
    assert not sharing.reads
    assert sharing.notes == ("other is the same as sums, but sums has failed",)


def test_a_stream_of_its_own_begins_with_it(growing: Growing) -> None:
    own = STREAMS.replace("readings", "own")
    text = f'{own}queries:\n  own_sums: "{SUMS.replace("readings", "own")}"'
    assert growing.add("own", text, kind="yaml") == NOTHING_SHARED


def test_a_name_of_its_own_is_in_the_way(growing: Growing) -> None:
    text = f'queries:\n  sums_aggregate: "{FILTER}"\n  all: "{ALL}"'
    sharing = growing.add("two", text, kind="yaml")
    assert not sharing.reads
    assert sharing.notes == (
        "all_aggregate is the same as sums_aggregate, "
        "but sums_aggregate is the name of a stream of its own",
    )


def test_a_later_query_cannot_be_called_like_a_tap(growing: Growing) -> None:
    growing.add("all", ALL)
    with pytest.raises(InputError, match="sums_aggregate is already part of the running system"):
        growing.add("sums_aggregate", FILTER)


def test_a_tap_counts_by_its_own_event_time(growing: Growing) -> None:
    """From the windows on that begin after the newest row there is, as it would alone."""
    growing.add("all", ALL)
    head = Head(next=7, latest={"ts": 1_000_000})
    begun = decide_beginnings(growing.system, 3, "now", lambda name: head)
    since = Since(
        {"window_start": 1_000_000}, {"window_end": 601_000_000, "window_start": 1_000_000}
    )
    assert begun.fragments["all"].inputs == {"sums_aggregate": InputStart(7, since)}
    assert begun.fragments["all"].since_us == 1_000_000


def test_it_is_recorded(growing: Growing) -> None:
    growing.add("same", SAME)
    growing.add("all", ALL)
    system = growing.system
    assert assemble(growing.submissions) == system
    plans = {number: plan_text(system, number) for number in system.deployments}
    assert recorded_system(plans) == system


class TestDropping:
    @pytest.fixture
    def shared(self, growing: Growing) -> System:
        growing.add("all", ALL)
        growing.add("same", SAME)
        return growing.system

    def test_nothing_is_changed_by_nothing(self, shared: System) -> None:
        assert prune(shared, ()) == shared

    def test_what_others_share_stays(self, shared: System) -> None:
        left = leaving(shared, [2])
        assert (left.gone, left.untapped, left.changed) == ((), (), {"sums"})
        fragment = left.system.units["sums"].fragment
        assert fragment is not None
        assert (fragment.queries, fragment.has_tail) == ((), True), "its result is shared as well"
        assert "sums" not in left.system.streams and "sums" not in left.system.queries
        names = {3: "all", 4: "same"}
        assert kept_for(left.system, names) == {1: ("all", "same"), 2: ("all", "same")}

    def test_the_tail_that_nobody_reads_is_left_out(self, shared: System) -> None:
        left = leaving(shared, [2, 4])
        assert [unit.name for unit in left.gone] == ["same"]
        fragment = left.system.units["sums"].fragment
        assert fragment is not None
        assert (fragment.taps, fragment.has_tail) == (("sums_aggregate",), False)

    def test_a_tap_that_nobody_reads_is_closed(self, shared: System) -> None:
        left = leaving(shared, [3])
        assert [unit.name for unit in left.gone] == ["all"]
        assert (left.untapped, left.changed) == (("sums_aggregate",), {"sums"})
        assert left.system.units["sums"].taps == ()

    def test_with_the_last_reader_all_goes(self, shared: System) -> None:
        once = leaving(shared, [2])
        left = leaving(once.system, [2, 3, 4])
        assert {unit.name for unit in left.gone} == {"sums", "all", "same"}
        assert set(left.system.deployments) == {1}

    def test_it_is_the_same_from_the_texts(self, growing: Growing, shared: System) -> None:
        growing.submissions[1] = replace(growing.submissions[1], is_dropped=True)
        left = prune(shared, [2])
        assert assemble(growing.submissions) == left
        plans = {number: plan_text(left, number) for number in left.deployments}
        assert recorded_system(plans, [2]) == left

    def test_whoever_reads_by_name_is_told(self, shared: System) -> None:
        assert shared.readers(2) == ()
        assert set(shared.readers(1)) == {"sums"}


def test_what_is_said_of_it(growing: Growing) -> None:
    growing.add("all", ALL)
    growing.add("same", ALL.replace("total", "t2"))
    asked = growing.submissions[-1]
    names = {one.id: one.name for one in growing.submissions}
    said = sharing_answer(growing.system, asked, names, ["same_aggregate", "same"])
    (shared,) = said.shared
    assert (shared.source, shared.used_by, shared.tapped) == (
        "sums_aggregate",
        ["all", "sums"],
        True,
    )
    assert (said.saved, said.operators) == (["same_aggregate"], 2)
