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
from penstock.load.apportion import operator_shares
from penstock.load.costs import measured_costs
from penstock.model.beginnings import Begun, InputStart, Since
from penstock.model.canonical import canonical_streams, plan_signature, work_signature
from penstock.model.expressions import to_sql
from penstock.model.fragments import Fragment
from penstock.model.sharing import NOTHING_SHARED, Sharing
from penstock.place.pruning import needed_columns

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

    def fragment(self, name: str) -> Fragment:
        fragment = self.system.units[name].fragment
        assert fragment is not None
        return fragment

    def operators(self, name: str) -> list[str]:
        return [operator.name for operator in self.fragment(name).operators]


@pytest.fixture
def growing() -> Growing:
    made = Growing()
    assert made.add("sums", SUMS) == NOTHING_SHARED
    return made


def test_a_result_that_is_the_same_is_read(growing: Growing) -> None:
    sharing = growing.add("same", SAME)
    (read,) = sharing.reads
    assert (read.source, read.maker, read.tapped) == ("sums", "sums", False)
    (reading,) = read.operators
    assert reading.details == "`kwh` AS amount, `home` AS id, `since` AS at"
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
    assert sharing.saved == ("all_aggregate", "all")
    assert growing.system.units["sums"].taps == ("sums_aggregate",)
    assert growing.system.makers["sums_aggregate"].name == "sums"
    assert growing.operators("all") == ["all"]


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
        SUMS.replace("10 minutes", "15 minutes"),
        SUMS.replace("sum(kwh)", "max(kwh)"),
        SUMS.replace("FROM readings", "FROM readings WHERE kwh > 0"),
        SUMS.replace("SELECT home", "SELECT district AS home").replace("BY home", "BY district"),
        SUMS.replace("window.", "session_window.").replace("window(", "session_window("),
    ],
)
def test_what_is_not_the_same_is_not_shared(growing: Growing, other: str) -> None:
    assert growing.add("other", other) == NOTHING_SHARED


def test_a_stricter_filter_is_what_is_left(growing: Growing) -> None:
    stricter = SUMS.replace("kwh) > 9", "kwh) > 12").replace("home,", "home, home AS h,", 1)
    (read,) = growing.add("stricter", stricter).reads
    assert (read.source, read.tapped) == ("sums", False)
    assert growing.operators("stricter") == ["stricter_rest", "stricter"]
    assert read.rest is not None and to_sql(read.rest) == "(`kwh` > 12)"
    choice = choose_engine(growing.system.units["stricter"].network, growing.fragment("stricter"))
    assert choice.engine == "light"


def test_a_wider_filter_needs_what_is_inside(growing: Growing) -> None:
    (read,) = growing.add("wider", SUMS.replace("> 9", "> 3")).reads
    assert (read.source, read.tapped) == ("sums_aggregate", True)
    assert growing.operators("wider") == ["wider_rest", "wider"]


def test_some_groups_of_many(growing: Growing) -> None:
    """A filter on keys may come before or behind the windows."""
    (read,) = growing.add("one", SUMS.replace("GROUP", "WHERE home = 'h7' GROUP")).reads
    assert (read.source, read.tapped) == ("sums", False)
    assert read.rest is not None and to_sql(read.rest) == "(`home` = 'h7')"
    (other,) = growing.add("behind", SUMS + " AND home = 'h7'").reads
    assert (other.source, other.rest) == (read.source, read.rest)


def test_some_groups_of_other_windows(growing: Growing) -> None:
    hours = SUMS.replace("10 minutes", "1 hour").replace("GROUP", "WHERE home = 'h7' GROUP")
    (read,) = growing.add("hours", hours).reads
    assert (read.source, read.is_sliced) == ("sums_aggregate_slices", True)
    assert read.rest is not None and to_sql(read.rest) == "(`home` = 'h7')"
    assert growing.operators("hours")[:2] == ["hours_aggregate_rest", "hours_aggregate"]
    fragment = growing.fragment("sums")
    assert [operator.name for operator in fragment.operators][1] == "sums_aggregate_slices"
    assert fragment.taps == ("sums_aggregate_slices",)
    growing.add("all", ALL)
    assert growing.fragment("sums").taps == ("sums_aggregate", "sums_aggregate_slices")


@pytest.mark.parametrize(
    "other",
    [
        SUMS.replace("10 minutes", "20 minutes"),
        SUMS.replace("'10 minutes'", "'1 hour', '30 minutes'"),
        SUMS.replace("sum(kwh) AS", "avg(kwh) AS"),
        SUMS.replace("sum(kwh) AS", "count(kwh) AS"),
        "SELECT window.end AS at, sum(kwh) AS kwh FROM readings GROUP BY window(ts, '10 minutes')",
        SUMS.replace("home", "substring(home, 1, 1) AS h", 1).replace("BY home", "BY 1"),
    ],
)
def test_windows_are_put_together_from_slices(growing: Growing, other: str) -> None:
    (read,) = growing.add("other", other).reads
    assert (read.source, read.maker, read.tapped) == ("sums_aggregate_slices", "sums", True)
    fragment = growing.fragment("other")
    choice = choose_engine(growing.system.units["other"].network, fragment)
    assert choice.reason == "windows put together from slices that are shared"
    assert choose_engine(growing.system.units["other"].network, fragment, "native") == choice


def test_what_is_made_of_slices_is_shared_on(growing: Growing) -> None:
    """By its own meaning: whoever wants the same reads its result."""
    hour = SUMS.replace("10 minutes", "1 hour")
    growing.add("hour", hour)
    (read,) = growing.add("again", hour.replace("AS kwh", "AS total")).reads
    assert (read.source, read.maker, read.tapped) == ("hour", "hour", False)
    (read,) = growing.add("day", SUMS.replace("10 minutes", "1 day")).reads
    assert (read.source, read.maker) == ("sums_aggregate_slices", "sums")


def test_slices_have_a_place_wherever_operators_have(growing: Growing) -> None:
    growing.add("hour", SUMS.replace("10 minutes", "1 hour"))
    costs = measured_costs()
    for name, kinds in {
        "sums": ["aggregate", "slices", "filter", "map"],
        "hour": ["from_slices", "filter", "map"],
    }.items():
        fragment = growing.fragment(name)
        shares = operator_shares(fragment, 1_000, 10, 50.0, costs)
        assert [share.kind for share in shares] == kinds
        assert work_signature(fragment)
    read = needed_columns(growing.system.units["sums"].network, growing.fragment("sums"))
    assert read["readings"] == ("ts", "home", "kwh")


@pytest.mark.parametrize("only", ["", "WHERE home = 'h7' "])
def test_slices_are_not_repeated(growing: Growing, only: str) -> None:
    """Whoever wants rows from the start on computes all that is behind them anew, from rows."""
    hour = SUMS.replace("10 minutes", "1 hour").replace("GROUP", f"{only}GROUP")
    growing.add("hour", hour)
    growing.add("alone", hour, share=False)
    asked = Submission(9, "again", "sql", "SELECT * FROM hour", ".", begun=Begun("start"))
    network = extend(growing.system, asked).deployments[9].network
    kinds = [operator.kind for operator in network.operators]
    assert kinds == ["filter"] * bool(only) + ["aggregate", "filter", "map", "map"]
    signatures = canonical_streams(network)
    alone = canonical_streams(growing.system.deployments[4].network)["alone"]
    assert signatures["again"].signature == alone.signature


def test_a_native_query_does_not_read_slices(growing: Growing) -> None:
    hour = SUMS.replace("10 minutes", "1 hour")
    sharing = growing.add("d", f'queries:\n  hour: {{sql: "{hour}", engine: native}}', kind="yaml")
    assert not sharing.reads
    assert sharing.notes == (
        "hour is not run by kernels, and only they put windows together from slices",
    )


def test_a_key_that_is_a_double_is_taken_as_it_is(growing: Growing) -> None:
    """Zeros of both signs are one group, and behind it nobody knows which they were."""
    grouped = (
        "SELECT kwh, window.end AS at, count(*) AS n "
        "FROM readings {} GROUP BY kwh, window(ts, '{}')"
    )
    growing.add("fine", grouped.format("", "1 minute"))
    assert growing.add("coarse", grouped.format("", "1 hour")).reads
    assert not growing.add("some", grouped.format("WHERE 1 / kwh > 0", "1 minute")).reads


def test_a_stricter_filter_behind_a_join(growing: Growing) -> None:
    """A join is not cut while it runs; what it gives is shared, in part as well."""
    pairs = (
        "SELECT a.ts, a.home, a.kwh, b.kwh AS later FROM readings a JOIN readings b "
        "ON a.home = b.home AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 MINUTES WHERE a.kwh > 1"
    )
    growing.add("pairs", pairs)
    (read,) = growing.add("fewer", pairs.replace("> 1", "> 2") + " AND b.kwh < 1").reads
    assert (read.source, read.tapped) == ("pairs", False)
    assert read.rest is not None
    assert to_sql(read.rest) == "((`kwh` > 2) AND (`later` < 1))"
    sharing = growing.add("more", pairs.replace("> 1", "> 0"))
    assert not sharing.reads


def test_windows_over_another_time_of_the_same_rows(growing: Growing) -> None:
    pairs = (
        "WITH p AS (SELECT a.ts AS one, b.ts AS other, a.home FROM readings a JOIN readings b "
        "ON a.home = b.home AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 MINUTES), "
        "q AS (SELECT {}, home FROM p) SELECT home, window.end AS at, count(*) AS n FROM q "
        "GROUP BY home, window({}, '{}')"
    )
    growing.add("first", pairs.format("one", "one", "10 minutes"))
    (read,) = growing.add("longer", pairs.format("one", "one", "1 hour")).reads
    assert read.is_sliced
    others = growing.add("others", pairs.format("other", "other", "1 hour")).reads
    assert not any(read.is_sliced for read in others)


def test_rows_that_do_not_say_when_they_were(growing: Growing) -> None:
    """Those of windows that began before the new query do not count; so they must be known."""
    timeless = SUMS.replace("window.start AS since, ", "")
    growing.add("timeless", timeless, share=False)
    (read,) = growing.add("again", timeless).reads
    assert read.source == "sums"


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
    assert [read.source for read in sharing.reads] == ["sums_aggregate_slices"]
    assert sharing.notes == (
        "all is part of sums_aggregate, but sums_aggregate is the name of a stream of its own",
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

    def test_slices_that_nobody_reads_are_not_given(self, growing: Growing) -> None:
        before = growing.system.units["sums"]
        growing.add("hour", SUMS.replace("10 minutes", "1 hour"))
        given = growing.system.units["sums"]
        assert given.taps == ("sums_aggregate_slices",)
        assert plan_signature(given.network, growing.fragment("sums")) == plan_signature(
            before.network, before.fragment or growing.fragment("sums")
        ), "its state stays"
        left = leaving(growing.system, [3])
        assert left.untapped == ("sums_aggregate_slices",)
        assert left.system.units["sums"] == before

    def test_a_tail_that_is_read_again_is_given_again(
        self, growing: Growing, shared: System
    ) -> None:
        growing.system = leaving(shared, [2, 4]).system
        assert not growing.fragment("sums").has_tail
        (read,) = growing.add("later", SUMS).reads
        assert (read.source, read.tapped) == ("sums", False)
        assert growing.fragment("sums").has_tail

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
    assert (said.saved, said.operators) == (["same_aggregate", "same"], 2)
    assert (shared.is_sliced, shared.rest) == (False, None)


def test_what_is_left_to_check_is_said_as_people_write_it(growing: Growing) -> None:
    growing.add("stricter", SUMS.replace("kwh) > 9", "kwh) > 12.5"))
    asked = growing.submissions[-1]
    names = {one.id: one.name for one in growing.submissions}
    (shared,) = sharing_answer(growing.system, asked, names, []).shared
    assert shared.rest == "kwh > 12.5"
