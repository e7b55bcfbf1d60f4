"""A bundle: the light fragments of a node, run together in rounds.

A round reads what is new in the channels with one Spark job for all members that stand at the
same place, merges the partial aggregates into the open windows, closes windows, commits everything
by one entry of the log, and delivers what each member gives. Members come and go between two
rounds; nothing is started or stopped for that. What is in memory can be rebuilt from the log at any
time, and is, whenever a commit fails. A member that cannot be computed fails alone: the others go
on without it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from penstock.channels.channel import Channel
from penstock.feeds.arrow import arrow_schema
from penstock.kernels.gather_plan import GatherPlan
from penstock.kernels.join_plan import JoinPlan
from penstock.kernels.member_state import MemberState, open_state
from penstock.kernels.planning import LightPlan
from penstock.kernels.rows_plan import RowsPlan
from penstock.kernels.slices import give_slices
from penstock.kernels.state_shape import MEMBER, StateShape
from penstock.kernels.window_plan import WindowPlan
from penstock.kernels.window_results import MemberResult, give_members
from penstock.kernels.window_state import MemberTime, MemberWindows
from penstock.model.beginnings import InputStart
from penstock.model.ids import FragmentId, PartId, reader_for
from penstock.spark.bundles.arrivals import Arrival, Arrivals
from penstock.spark.bundles.bundle_log import BundleLog, Entry, Given, Member
from penstock.spark.bundles.gather_rounds import GatherRounds
from penstock.spark.bundles.joins.join_rounds import JoinRounds
from penstock.spark.bundles.membership import Claim, FormerLogs, Membership
from penstock.spark.bundles.round_reading import OnStep, Round, RoundReader, RoundWork, Where
from penstock.spark.bundles.row_rounds import RowRounds
from penstock.spark.bundles.running import InputPosition, Running, begin_running, places_of
from penstock.spark.sources.channel_reader import let_go_of

_SMALLEST_SNAPSHOT = 4 << 20
NOWHERE: Mapping[str, InputStart] = MappingProxyType({})


def _no_step(name: str) -> None:
    return None


@dataclass(frozen=True)
class Delivery:
    """What a member gives by a round: the rows, and how far its time has come."""

    running: Running
    given: Given

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that get something."""
        return (self.running.plan.name, *self.given.tapped)


Deliver = Callable[[Sequence[Delivery]], Mapping[int, BaseException]]
"""Takes what members give together; says what went wrong, by the numbers of members."""


def _nowhere(deliveries: Sequence[Delivery]) -> Mapping[int, BaseException]:
    return {}


class Bundle:
    """All light fragments of one node.

    ``logs`` is shared by all nodes and holds every node's log; ``name`` is that of this node's,
    which no other process may ever write. ``claims_of`` says where the claims on a member lie,
    ``runs_of`` where the sorted runs of a join do, ``groups_of`` where the parts of a join say who
    owns what, and ``channel_of`` where a stream does.
    ``deliver`` takes what members give after it is committed; one for which that goes wrong does
    not go on until it is resumed. ``on_step`` is called after every step by which something becomes
    visible on disk. Not for several threads at once.
    """

    def __init__(
        self,
        session: SparkSession,
        logs: Path,
        name: str,
        claims_of: Callable[[PartId], Path],
        channel_of: Callable[[str], Channel],
        runs_of: Callable[[PartId], Path],
        groups_of: Callable[[FragmentId], Path],
        max_rows: int = 250_000,
        deliver: Deliver = _nowhere,
        on_step: OnStep = _no_step,
    ) -> None:
        self._name = name
        self._claims_of = claims_of
        self._channel_of = channel_of
        self._reader = RoundReader(session, channel_of, max_rows, on_step)
        self._joins = JoinRounds(session, channel_of, runs_of, groups_of, max_rows, on_step)
        self._gathering = GatherRounds(channel_of, max_rows, on_step)
        self._handing_on = RowRounds(channel_of, max_rows)
        self._deliver = deliver
        self._on_step = on_step
        self._logs = FormerLogs(logs)
        self._log = BundleLog.open(logs / name)
        self._lock = os.open(self._log.folder / "owner", os.O_CREAT | os.O_RDWR)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._sequence, known = self._log.load()
        assert not known.members, "a node's log begins empty: each process has one of its own"
        self._running: dict[int, Running] = {}
        self._states: dict[StateShape, MemberState] = {}
        self._adopting: dict[int, Arrival] = {}
        self._releasing: set[int] = set()
        self._resting: set[int] = set()
        self._undelivered: dict[int, Delivery] = {}
        self._handed: list[Member] = []
        self._arrivals = Arrivals()
        self._numbers = 0
        self._bytes_since_snapshot = 0
        self._snapshot_bytes = _SMALLEST_SNAPSHOT
        self._told: dict[int, tuple[InputPosition, ...]] = {}
        self._fed: frozenset[str] = frozenset()
        self._called: frozenset[int] | None = None
        self.failed: dict[PartId, BaseException] = {}
        """What went wrong with members that rest because of it."""

    @property
    def members(self) -> dict[PartId, Running]:
        """The members at work, by name."""
        return {running.member.name: running for running in self._running.values()}

    @property
    def state_rows(self) -> dict[PartId, int]:
        """How many partial aggregates, or rows of windows, each member keeps, if any."""
        counts = np.zeros(max(1, self._numbers), np.int64)
        for state in self._states.values():
            state.count_members(counts)
        kept = {
            running.member.name: int(counts[number])
            for number, running in self._running.items()
            if counts[number]
        }
        return kept | self._joins.window_rows(self._running)

    @property
    def state_bytes(self) -> dict[PartId, int]:
        """The memory that what each member keeps takes: its part of the tables it shares."""
        taken = np.zeros(max(1, self._numbers))
        for state in self._states.values():
            counts = np.zeros(len(taken), np.int64)
            state.count_members(counts)
            taken += counts * (state.size_bytes / max(1, state.rows))
        return {
            running.member.name: round(taken[number]) for number, running in self._running.items()
        }

    @property
    def group_rows(self) -> dict[PartId, tuple[int, ...]]:
        """How many rows of each group have been new to each part of a join here."""
        return self._joins.group_rows()

    def arrive(
        self, plan: LightPlan, epoch: int, begins: Mapping[str, InputStart] = NOWHERE
    ) -> Arrival:
        """Takes a member from its former owner, for :meth:`admit`; others may go on meanwhile.

        One that nobody has run begins where ``begins`` says for each stream, with the oldest batch
        kept if it says nothing.
        """
        membership = self.membership(plan.name)
        number = membership.claim(epoch, self._name)
        self._on_step("claimed")
        handed = membership.take_from_former(number)
        self._on_step("taken")
        begun = begin_running(Member(-1, plan.name, epoch), plan, begins, self._channel_of)
        arrivals = self._arrivals
        return arrivals.first(begun) if handed is None else arrivals.arrive(handed, begun)

    def read_ahead(self, plan: LightPlan) -> None:
        """Reads the state of a member that is to come; taking it over then reads the rest only."""
        so_far = self.membership(plan.name).look_ahead()
        if so_far is not None:
            self._arrivals.read_ahead(plan, so_far)

    def admit(self, arrival: Arrival) -> None:
        """Runs a member from the next round on."""
        running = arrival.running
        number = running.member.number
        self._numbers = max(self._numbers, number + 1)
        for stream in running.plan.streams:
            self._channel_of(stream).register(reader_for(running.plan.name))
        # One that left and comes back is waited for no longer.
        self._handed = [member for member in self._handed if member.name != running.member.name]
        self._running[number] = running
        self._adopting[number] = arrival
        if arrival.state is not None:
            self._state_of(_shape_of(running)).absorb(arrival.state)
        if arrival.last is not None:
            self._hand_out([Delivery(running, arrival.last)])

    def add(self, plan: LightPlan, epoch: int, begins: Mapping[str, InputStart] = NOWHERE) -> None:
        """Takes a member in from the next round on, where its former owner left off."""
        self.admit(self.arrive(plan, epoch, begins))

    def release(self, name: PartId) -> None:
        """Leaves a member out after the next round; its state then lies in the log for others."""
        self._releasing.add(self.members[name].member.number)

    def abandon(self, name: PartId) -> None:
        """Forgets a member at once, without a word in the log: whoever comes next fences it."""
        self._drop([self.members[name].member.number], RoundWork({}), {})

    def rest(self, names: Iterable[PartId]) -> None:
        """Lets these members, and no others, take no part in rounds until further notice."""
        numbers = {name: running.member.number for name, running in self.members.items()}
        self._resting = {numbers[name] for name in names if name in numbers}

    def resume(self, name: PartId) -> None:
        """Tries again with a member that has failed."""
        self.failed.pop(name, None)
        number = self.members[name].member.number
        if number in self._undelivered:
            self._hand_out([self._undelivered.pop(number)])

    def round(self) -> Round:
        """One round of all members: reads what is new, commits what follows from it."""
        self._called = None
        return self._go_round()

    @property
    def has_followers(self) -> bool:
        """Whether members read what the last round has given."""
        return bool(self._followers())

    def follow(self) -> Round:
        """A round of those only that read what the last round has given.

        So the links of a chain come one after the other, as soon as there is something to read.
        """
        self._called = self._followers()
        return self._go_round()

    @property
    def has_parts(self) -> bool:
        """Whether parts of joins are at work here."""
        return self._joins.has_parts

    @property
    def has_receivers(self) -> bool:
        """Whether groups have been given to parts here that these have not taken yet."""
        return bool(self._receivers())

    def receive(self) -> Round:
        """A round of those parts only to which groups have been given.

        Nobody joins these groups meanwhile, so they do not wait until the next round is due.
        """
        self._called = self._receivers()
        return self._go_round()

    def _receivers(self) -> frozenset[int]:
        return frozenset(
            number
            for number in self._joins.receivers(self._running)
            if not self._running[number].ended and not self._rests(number, self._running[number])
        )

    def _followers(self) -> frozenset[int]:
        return frozenset(
            number
            for number, running in self._running.items()
            if not self._fed.isdisjoint(running.reads())
            and not running.ended
            and not self._rests(number, running)
        )

    def _go_round(self) -> Round:
        began_s = time.perf_counter()
        self._fed = frozenset()
        work = RoundWork(dict(self._running))
        follows = self._called is not None
        for (channel, start), numbers in self._places().items():
            self._fail(self._reader.read(work, channel, start, numbers, is_given_here=follows))
        self._fail(self._joins.read(work, self._at_work(JoinPlan)))
        self._fail(self._gathering.read(work, self._at_work(GatherPlan)))
        self._fail(self._handing_on.read(work, self._at_work(RowsPlan)))
        self._complete(work)
        self._share_time(work, 1_000 * (time.perf_counter() - began_s))
        return work.report

    def settle(self) -> None:
        """Commits who comes and who goes, without reading anything."""
        self._complete(RoundWork(dict(self._running)))

    def _complete(self, work: RoundWork) -> None:
        # Parts of a join may have come further without reading anything.
        is_still = work.reached == self._running and not work.given
        if is_still and not self._adopting and not self._releasing:
            return
        try:
            self._finish(work)
        except BaseException:
            self._reload()
            raise

    def _places(self) -> dict[Where, list[int]]:
        """Members that read one stream, by the channel and the batch they need next."""
        found: dict[Where, list[int]] = defaultdict(list)
        for number, running in self._running.items():
            if isinstance(running.plan, WindowPlan) and self._takes_part(number, running):
                position = running.inputs[0]
                found[position.channel, position.next].append(number)
        return found

    def _at_work(self, kind: type[JoinPlan | GatherPlan | RowsPlan]) -> list[int]:
        """Members with such plans."""
        return [
            number
            for number, running in self._running.items()
            if isinstance(running.plan, kind) and self._takes_part(number, running)
        ]

    def _takes_part(self, number: int, running: Running) -> bool:
        is_called = self._called is None or number in self._called
        return is_called and not running.ended and not self._rests(number, running)

    def _rests(self, number: int, running: Running) -> bool:
        return number in self._resting or running.member.name in self.failed

    def _fail(self, errors: Mapping[int, BaseException]) -> None:
        self.failed |= {
            self._running[number].member.name: error for number, error in errors.items()
        }

    def _state_of(self, shape: StateShape) -> MemberState:
        if shape not in self._states:
            self._states[shape] = open_state(shape)
        return self._states[shape]

    def _finish(self, work: RoundWork) -> None:
        for shape, tables in work.partials.items():
            self._state_of(shape).add(pa.concat_tables(tables))
        results = self._close(work)
        self._commit(work, results)
        self._snapshot_if_due()

    def _close(self, work: RoundWork) -> dict[int, MemberResult]:
        windows = self._windows(work.reached)
        plans = {
            number: running.plan
            for number, running in self._running.items()
            if isinstance(running.plan, WindowPlan)
        }
        results = {number: MemberResult(rows) for number, rows in work.given.items()}
        times = {
            number: (self._running[number].watermark_us, reached.watermark_us)
            for number, reached in work.reached.items()
        }
        slices = give_slices(self._states, plans, times, self._numbers)
        for shape, state in self._states.items():
            closed = state.close(windows)
            if closed is not None:
                results.update(self._give(shape, closed, plans))
        for number, rows in slices.items():
            given = results.get(number) or MemberResult(_no_rows(plans[number]))
            results[number] = given.giving(plans[number], rows)
        for number, reached in work.reached.items():
            if reached.ended and not self._running[number].ended and number not in results:
                # Whoever takes over must be able to tell that the end was delivered.
                results[number] = MemberResult(_no_rows(reached.plan))
        return results

    def _give(
        self, shape: StateShape, closed: pa.Table, plans: Mapping[int, WindowPlan]
    ) -> dict[int, MemberResult]:
        try:
            return dict(give_members(shape, closed, plans))
        except Exception:
            self._find_failing(shape, closed, plans)
            raise

    def _find_failing(
        self, shape: StateShape, closed: pa.Table, plans: Mapping[int, WindowPlan]
    ) -> None:
        for number in pc.unique(closed.column(MEMBER)).to_pylist():
            own = closed.filter(pc.equal(closed.column(MEMBER), number))
            try:
                dict(give_members(shape, own, plans))
            except Exception as error:
                self._fail({number: error})

    def _windows(self, reached: Mapping[int, Running]) -> MemberWindows:
        members = {
            number: MemberTime(
                running.plan.window, running.watermark_us, reached[number].watermark_us
            )
            for number, running in self._running.items()
            if isinstance(running.plan, WindowPlan)
        }
        return MemberWindows.of(members, self._numbers)

    def _commit(self, work: RoundWork, results: dict[int, MemberResult]) -> None:
        """Commits the round of all members that are still ours, and delivers what they give."""
        while True:
            entry = self._entry(work, results)
            self._on_step("composed")
            size = self._log.append(self._sequence, entry)
            if size is not None:
                break
            self._drop(self._fenced(), work, results)
        sequence, self._sequence = self._sequence, self._sequence + 1
        self._bytes_since_snapshot += size
        self._on_step("committed")
        adopted, self._adopting = tuple(self._adopting), {}
        for number in adopted:
            self.membership(self._running[number].member.name).forget_former(self._name)
        self._move_on(work, results, sequence)
        released, self._releasing = tuple(self._releasing), set()
        self._handed += [self._running[number].member for number in released]
        self._drop(released, work, results)

    def _move_on(self, work: RoundWork, results: Mapping[int, MemberResult], sequence: int) -> None:
        deliveries = []
        for number, reached in work.reached.items():
            before = self._running[number]
            result = results.get(number)
            self._running[number] = reached.counted(0 if result is None else result.rows.num_rows)
            if result is None and reached.watermark_us == before.watermark_us:
                continue
            given = Given(
                reached.member.batch_id(sequence),
                _no_rows(reached.plan) if result is None else result.rows,
                work.report.arrived_s,
                {} if result is None else result.tapped,
            )
            deliveries.append(Delivery(self._running[number], given))
        self._hand_out(deliveries)
        self._on_step("delivered")
        self._joins.publish(self._running)

    def _hand_out(self, deliveries: Sequence[Delivery]) -> None:
        try:
            failed = self._deliver(deliveries)
        except Exception as error:
            failed = {delivery.running.member.number: error for delivery in deliveries}
        given = {delivery.running.member.number: delivery for delivery in deliveries}
        self._undelivered |= {number: given[number] for number in failed}
        self._fail(failed)
        told = (delivery for number, delivery in given.items() if number not in failed)
        self._fed |= {stream for delivery in told for stream in delivery.streams}

    def _entry(self, work: RoundWork, results: Mapping[int, MemberResult]) -> Entry:
        adopted = tuple(self._running[number].member for number in self._adopting)
        # What a member brought along is state as well; whoever reads the log needs nothing else.
        brought = [table for arrival in self._adopting.values() for table in arrival.states]
        partials = [table for tables in work.partials.values() for table in tables]
        tapped = [
            ((number, stream), rows)
            for number, result in results.items()
            for stream, rows in result.tapped.items()
        ]
        return Entry(
            places=places_of(work.reached.values()),
            adopted=adopted,
            released=tuple(sorted(self._releasing)),
            gives=tuple(results),
            results=tuple(result.rows for result in results.values()),
            states=tuple(_merge_alike([*brought, *partials])),
            arrived_s=work.report.arrived_s,
            tapped=tuple(tap for tap, _ in tapped),
            tap_rows=tuple(rows for _, rows in tapped),
        )

    def _fenced(self) -> tuple[int, ...]:
        """The members that somebody else has taken from this log; the number is used up."""
        entry = self._log.entry(self._sequence)
        assert entry is not None, "the number was taken"
        self._sequence += 1
        self._handed += [
            self._running[number].member for number in entry.released if number in self._running
        ]
        return entry.released

    def _drop(
        self, numbers: Iterable[int], work: RoundWork, results: dict[int, MemberResult]
    ) -> None:
        for number in numbers:
            running = self._running.pop(number, None)
            if running is not None:
                self.failed.pop(running.member.name, None)
            work.reached.pop(number, None)
            results.pop(number, None)
            self._adopting.pop(number, None)
            self._undelivered.pop(number, None)
            self._told.pop(number, None)
            self._releasing.discard(number)
        gone = pa.array(list(numbers), pa.int32())
        for shape, tables in work.partials.items():
            work.partials[shape] = [
                table.filter(pc.invert(pc.is_in(table.column(MEMBER), gone))) for table in tables
            ]

    def _snapshot_if_due(self) -> None:
        """Writes the whole state now and then; entries before that go."""
        # Writing state whole when the changes since have become as large costs a share of them.
        # What may not be delivered yet must stay in the log.
        is_time = self._bytes_since_snapshot >= self._snapshot_bytes and not self._undelivered
        if is_time and self._nobody_waits():
            self._snapshot()

    def advance(self) -> None:
        """Tells the channels what members do not need any more."""
        for number, running in self._running.items():
            if self._told.get(number) == running.inputs:
                continue
            self._told[number] = running.inputs
            reader = reader_for(running.member.name)
            if isinstance(running.plan, JoinPlan):
                # First: what was read may be freed as soon as that is known.
                for channel, first in running.needs().items():
                    self._channel_of(channel).keep_window(reader, first)
            for channel, following in running.reads().items():
                self._channel_of(channel).advance(reader, following)
            for position in running.inputs:
                begin = position.begin
                if begin is not None and begin.before is not None and not position.before:
                    let_go_of(self._channel_of(begin.before), reader)

    def _nobody_waits(self) -> bool:
        """Whether every member that left has begun elsewhere: its state may then go."""
        self._handed = [
            member
            for member in self._handed
            if not self.membership(member.name).is_over(Claim(member.epoch, self._name))
        ]
        return not self._handed

    def _snapshot(self) -> None:
        dumps = (state.dump() for state in self._states.values())
        entry = Entry(
            places=places_of(self._running.values()),
            adopted=tuple(running.member for running in self._running.values()),
            states=tuple(table for table in dumps if table is not None),
        )
        size = self._log.snapshot(self._sequence - 1, entry)
        self._on_step("snapshotted")
        self._snapshot_bytes, self._bytes_since_snapshot = max(size, _SMALLEST_SNAPSHOT), 0
        self._log.free(self._sequence)

    def _reload(self) -> None:
        """Forgets everything in memory and reads it again from the log."""
        self._joins.tell_again()
        self._sequence, known = self._log.load()
        former, self._running, self._states = self._running, {}, {}
        for number, member in known.members.items():
            if number not in former:
                continue  # abandoned: the log still has it, until whoever comes next fences it
            running = replace(former[number], member=member)
            place = known.places.get(number)
            self._running[number] = running if place is None else running.at(place)
        for table in known.states:
            for number in pc.unique(table.column(MEMBER)).to_pylist():
                if number in self._running:
                    own = table.filter(pc.equal(table.column(MEMBER), number))
                    self._state_of(_shape_of(former[number])).add(own)
        for number, arrival in self._adopting.items():
            self._running[number] = arrival.running
            for table in arrival.states:
                self._state_of(_shape_of(arrival.running)).add(table)
        # The last round may be committed and not delivered; twice does no harm.
        last = known.given.items()
        self._hand_out(
            [
                Delivery(self._running[number], given)
                for number, given in last
                if number in self._running
            ]
        )

    def _share_time(self, work: RoundWork, spent_ms: float) -> None:
        """Shares the time of a round out: that of a job to its members, the rest to all."""
        names = {
            number: running.member.name
            for number, running in self._running.items()
            if self._called is None or number in self._called
        }
        if not names:
            return
        rest_ms = max(0.0, spent_ms - sum(work.job_ms.values())) / len(names)
        work.report.busy_ms = {
            name: rest_ms + work.job_ms.get(number, 0.0) for number, name in names.items()
        }

    def close(self) -> None:
        """Lets go of the log; what is in it stays for whoever goes on."""
        self._reader.close()
        self._joins.close()
        os.close(self._lock)

    def forget_former_logs(self) -> None:
        """Frees the memory that the logs of former owners take up here."""
        self._logs.forget()
        self._arrivals.forget()

    def membership(self, name: PartId) -> Membership:
        """The claims on a member."""
        return Membership(name, self._claims_of(name), self._logs)


def _shape_of(running: Running) -> StateShape:
    assert isinstance(running.plan, WindowPlan), "what a join keeps lies in channels"
    return StateShape.of(running.plan)


def _no_rows(plan: LightPlan) -> pa.Table:
    return arrow_schema(plan.output.schema).empty_table()


def _merge_alike(tables: Iterable[pa.Table]) -> list[pa.Table]:
    """Tables with the same columns put together."""
    found: dict[pa.Schema, list[pa.Table]] = defaultdict(list)
    for table in tables:
        if table.num_rows:
            found[table.schema].append(table)
    return [pa.concat_tables(alike) for alike in found.values()]
