"""The controller: takes in what people ask for, decides, and records its decisions."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from penstock.channels.channel import Channel
from penstock.channels.ingest.again import check_rereadable
from penstock.channels.layout import StateLayout
from penstock.control.answer_models import SubmitRequest
from penstock.control.answers import queries_answer
from penstock.control.beginning import decide_beginnings, newest, oldest
from penstock.control.catalog import Catalog
from penstock.control.cost_memory import COSTS, CostMemory
from penstock.control.deciding import DecisionLoop
from penstock.control.examining import Examiner, Proposal, refusal
from penstock.control.group_moves import BETWEEN, GroupMoves
from penstock.control.home import Home
from penstock.control.live_sharing import LiveSharing, check_staying, leaving
from penstock.control.live_tree import check_attached, tree_wiring
from penstock.control.notices import NOTED_EVERY_S, Notices
from penstock.control.placing import plan_nodes
from penstock.control.recorded_plans import plan_text, recorded_system
from penstock.control.records import (
    BalanceRecord,
    MoveRecord,
    Submission,
    SubmissionKind,
    UnitRecord,
)
from penstock.control.sharing_answers import graph_parts, kept_for, sharing_answer
from penstock.control.sharing_models import GraphAnswer, SharingAnswer
from penstock.control.spreading import whole_fragments
from penstock.control.system import System, Unit, extend, understand
from penstock.control.system_balance import balance_of_file, tell_of_file
from penstock.control.unit_data import UnitData
from penstock.control.unit_moves import begin_moves, no_node
from penstock.errors import InputError, PenstockError, RunError, listed, suggestion
from penstock.model.beginnings import Begun, StartKind
from penstock.model.durations import US_PER_S
from penstock.model.estimates import OperatorEstimate
from penstock.model.ids import PartId, reader_for
from penstock.model.moves import Move
from penstock.model.network import Deployment
from penstock.model.parts import node_of_part
from penstock.model.sharing import NOTHING_SHARED, SharedStream, Sharing
from penstock.place.tree_placing import place_in_tree

_STOPPING_AT_MOST_S = 30.0
_NAME = re.compile(r"\w[\w.-]{0,199}")
"""Names of submissions are parts of addresses."""

log = logging.getLogger(__name__)


class Controller:
    """Works on the catalog of one system; may be killed and replaced at any time.

    Assignments change one at a time, whoever asks: what is checked must still hold when it is
    recorded. Submitting and dropping take longer, and wait for each other only. ``began_s`` is when
    it begins to decide, by the catalog's clock; now if nothing is said.
    """

    def __init__(self, home: Home, catalog: Catalog, began_s: float | None = None) -> None:
        self._home = home
        self._catalog = catalog
        self._assembled: tuple[tuple[Submission, ...], System] = ((), System())
        self._asking = threading.Lock()
        self._assigning = threading.Lock()
        self._costs = CostMemory(home.path / COSTS)
        self._data = UnitData(StateLayout(home.state))
        self.groups = GroupMoves(catalog, home.state, self.system)
        self._examiner = Examiner(catalog)
        self._shared = LiveSharing(home.state, catalog, self.channel)
        self.notices = Notices(catalog, home.state, self.system)
        self._noted_s = 0.0
        began_s = catalog.now_s() if began_s is None else began_s
        self._decisions = DecisionLoop(catalog, self.groups, self.system, began_s)

    def system(self) -> System:
        """What the system is made of."""
        submissions = self._catalog.submissions()
        known, system = self._assembled
        if submissions != known:
            plans = self._catalog.plans()
            ids = [submission.id for submission in submissions]
            dropped = {submission.id for submission in submissions if submission.is_dropped}
            system = recorded_system({id: plans[id] for id in ids if id in plans}, dropped)
            self._assembled = (submissions, system)
        return system

    def submit(
        self,
        name: str,
        kind: SubmissionKind,
        text: str,
        folder: str,
        max_latency_us: int | None = None,
        start: StartKind = "now",
        replace: bool = False,
        share: bool = True,
    ) -> tuple[Unit, ...]:
        """Takes in a deployment or a query; the units it adds. Raises what is wrong with it.

        What it reads of others it counts from ``start`` on. What runs already is shared, unless
        it is not to ``share`` anything. With ``replace`` one of that name is stopped and forgotten
        first, but only if nothing is wrong with the new one.
        """
        return self.take_in(
            # Unchecked: what is wrong with it is said where it is looked at.
            SubmitRequest.model_construct(
                name=name,
                kind=kind,
                text=text,
                folder=folder,
                max_latency_us=max_latency_us,
                start=start,
                replace=replace,
                share=share,
            )
        )[0]

    def take_in(self, asked: SubmitRequest) -> tuple[tuple[Unit, ...], Proposal]:
        """The same, and what was known when it was decided.

        One that does not fit is refused, unless it is to be taken in by ``force``; with ``dry_run``
        nothing is done.
        """
        with self._asking:
            try:
                former, proposal = self._proposed(asked)
                if asked.dry_run:
                    return proposal.units, proposal
                if not proposal.impact.fits and not asked.force:
                    raise refusal(proposal)
                with self._tapped(former, proposal.asked) as (former, agreed):
                    units = self._taken_in(former, agreed, proposal.planned)
                    return units, proposal
            except PenstockError as error:
                self._catalog.tell("refused", asked.name[:200], error.what)
                raise

    def _proposed(self, wish: SubmitRequest) -> tuple[System, Proposal]:
        """The system, and what a submission comes to in it: shared if it fits so, else alone."""
        name = wish.name
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{name!r} cannot name a submission",
                hint="Use up to 200 letters, digits, -, . and _, "
                "starting with a letter or a digit.",
            )
        known = self._catalog.submissions()
        replaced = next((submission for submission in known if submission.name == name), None)
        if replaced is not None and (not wish.replace or replaced.is_dropped):
            raise self._taken(replaced)
        number = max((submission.id for submission in known), default=0) + 1
        written = (wish.kind, wish.text, wish.folder, wish.max_latency_us)
        asked = Submission(number, name, *written, Begun(wish.start))
        former = self.system() if replaced is None else self._without(replaced)
        # What gives way to it may be what it would share.
        deployment = understand(former, asked)
        records = {record.name: record for record in self._catalog.units()}
        sharing = NOTHING_SHARED
        if wish.share and replaced is None:
            sharing = self._sharing(former, asked, deployment, records)
        first = self._examined(former, replace(asked, sharing=sharing), deployment, records)
        if first.impact.fits or not sharing.reads:
            return former, first
        notes = (*sharing.notes, "what runs already comes too late for it")
        unshared = replace(asked, sharing=Sharing(notes=notes))
        alone = self._examined(former, unshared, deployment, records)
        is_better = alone.impact.fits or alone.impact.is_sooner_than(first.impact)
        return former, alone if is_better else first

    def _examined(
        self,
        former: System,
        asked: Submission,
        written: Deployment,
        records: Mapping[str, UnitRecord],
    ) -> Proposal:
        """What a submission comes to; raises what is wrong with it."""
        system = extend(former, asked, written)
        units = tuple(unit for unit in system.units.values() if unit.submission == asked.id)
        if not units:
            raise InputError(
                f"{asked.name} has no queries whose results go anywhere, and no streams for others",
                hint="Add a query, or give one that has to: none a destination.",
            )
        self._check_nodes(units)
        check_staying(system, asked.id, records.values())
        check_attached(self._catalog.nodes(), system, asked.id)
        _check_engines(units)
        deployment = system.deployments[asked.id]
        wished = {**self._planned(deployment, units), **self._parts_apart(units)}
        planned = self._kept_to_tree(system, units, wished)
        fragments = [unit.fragment for unit in units if unit.fragment is not None]
        return self._examiner.examined(
            asked,
            system,
            planned,
            self._costs.estimates(fragments),
            records,
            tree_wiring(self._catalog.nodes(), system) is None,
        )

    def _sharing(
        self,
        system: System,
        asked: Submission,
        deployment: Deployment,
        records: Mapping[str, UnitRecord],
    ) -> Sharing:
        """What a submission shares: nothing if it is to see what was there before it."""
        # What is cut for devices is put together anew with every cut.
        is_cut = asked.kind == "segment" or deployment.devices is not None
        if is_cut or not deployment.share or asked.begun.start != "now":
            return NOTHING_SHARED
        return self._shared.decide(system, deployment.network, records)

    @contextmanager
    def _tapped(self, former: System, asked: Submission) -> Iterator[tuple[System, Submission]]:
        """Gives out the streams inside fragments that a submission shares.

        Where a fragment does not do so in time nothing is shared; where the submission is not taken
        in, it is undone.
        """
        reads = asked.sharing.reads
        with self._assigning:
            system = self._shared.tap(former, reads)
        self._assembled = ((), System())
        if system is former:
            yield former, asked
            return
        try:
            if self._shared.await_tapped(reads):
                yield system, asked
                return
        except BaseException:
            self._untap(former, reads)
            raise
        self._untap(former, reads)
        notes = (*asked.sharing.notes, "what is to be shared could not be given out in time")
        yield former, replace(asked, sharing=replace(NOTHING_SHARED, notes=notes))

    def _untap(self, former: System, reads: Sequence[SharedStream]) -> None:
        with self._assigning:
            self._shared.untap(former, reads)
        self._assembled = ((), System())

    def _taken(self, submission: Submission) -> InputError:
        """Why no other can have the name of a submission."""
        name = submission.name
        if not submission.is_dropped:
            return InputError(
                f"{name} is already running",
                hint="Give it another name, drop the other first, or replace it: submit --replace.",
            )
        users = kept_for(self.system(), self._names()).get(submission.id, ())
        return InputError(
            f"{name} was dropped, and what others share of it still runs for {listed(users)}",
            hint="Give it another name.",
        )

    def _names(self) -> dict[int, str]:
        """The submissions that have not been dropped, by number."""
        known = self._catalog.submissions()
        return {submission.id: submission.name for submission in known if not submission.is_dropped}

    def _taken_in(
        self, former: System, asked: Submission, planned: Mapping[str, str]
    ) -> tuple[Unit, ...]:
        number, name = asked.id, asked.name
        system = extend(former, asked)
        balance = balance_of_file(self._catalog, name, system.deployments[number].balance)
        units = tuple(unit for unit in system.units.values() if unit.submission == number)
        made = [
            UnitRecord(
                unit.name,
                unit.kind,
                number,
                pinned=unit.on,
                planned=planned.get(unit.name),
                is_unread=unit.is_unread,
            )
            for unit in units
        ]
        if any(submission.name == name for submission in self._catalog.submissions()):
            self._dropped(name, _STOPPING_AT_MOST_S)
        whole = self._add(asked, former, system, made, asked.begun.start, balance).units.values()
        added = [unit for unit in whole if unit.submission == number]
        units_word = "unit" if len(added) == 1 else "units"
        self._catalog.tell("submit", name, f"submitted with {len(added)} {units_word}")
        if balance is not None:
            tell_of_file(self._catalog, balance)
        return tuple(added)

    def _without(self, submission: Submission) -> System:
        """The system as it is without a submission; raises if others use what that gives."""
        self._check_unread(submission)
        system = self.system()
        gone = {submission.id, *(segment.id for segment in self._segments_of(submission))}
        left = leaving(system, {*system.dropped, *gone}).system
        users = kept_for(left, self._names()).get(submission.id, ())
        if users:
            raise InputError(
                f"{submission.name} cannot be replaced: {listed(users)} shares what it computes",
                hint="Give the new one another name.",
            )
        return left

    def _check_unread(self, submission: Submission) -> None:
        segments = {segment.id for segment in self._segments_of(submission)}
        readers = self.system().readers(submission.id, segments)
        if readers:
            raise InputError(
                f"{submission.name} is read by {listed(readers)}",
                hint="Drop those that read it first.",
            )

    def _segments_of(self, submission: Submission) -> list[Submission]:
        """The segments of its queries: the disseminator submits them, and they go with it."""
        segments = [known for known in self._catalog.submissions() if known.kind == "segment"]
        if not segments:
            return []
        from penstock.device.segments import Segment

        return [
            segment for segment in segments if Segment.from_text(segment.text).of == submission.name
        ]

    def _add(
        self,
        asked: Submission,
        former: System,
        system: System,
        made: list[UnitRecord],
        start: StartKind,
        balance: BalanceRecord | None,
    ) -> System:
        """Records a submission with its beginning and its plan, all or nothing.

        The system as it is with it: ``system`` is that without what the beginning adds.
        """
        read = [
            (unit.reader, stream)
            for unit in (system.units[record.name] for record in made)
            for stream in unit.reads
        ]
        registered, begun = [], Begun(start)
        try:
            # Registered before anything runs: from now on nothing they will read is freed.
            for reader, stream in read:
                if self.channel(stream).register(reader):
                    registered.append((reader, stream))
            begun = self._begun(system, asked.id, start)
            asked = replace(asked, begun=begun)
            made += [
                UnitRecord(name, "intake", asked.id, pinned=system.units[again.stream].on)
                for name, again in begun.again.items()
            ]
            whole = extend(former, asked)
            plan, woken = plan_text(whole, asked.id), {stream for _, stream in read}
            with self._assigning:
                self._catalog.add(vars(asked), made, woken, plan, balance)
        except BaseException:
            for reader, stream in registered:
                self.channel(stream).forget(reader)
            for name in begun.again:
                self.channel(name).drop()
            raise
        return whole

    def _begun(self, system: System, submission: int, start: StartKind) -> Begun:
        """Since when the fragments of a submission count; nothing before is kept for them."""
        look = oldest if start == "oldest" else newest
        begun = decide_beginnings(system, submission, start, lambda name: look(self.channel(name)))
        for again in begun.again.values():
            stream = system.units[again.stream].stream
            assert stream is not None
            check_rereadable(stream, StateLayout(self._home.state).stream(stream.name), again)
        for name, beginning in begun.fragments.items():
            reader = reader_for(PartId(name))
            for stream_name, begin in beginning.inputs.items():
                self.channel(stream_name).advance(reader, begin.next)
                if begin.before is not None:
                    self.channel(begin.before).register(reader)
        return begun

    def _planned(self, deployment: Deployment, units: Sequence[Unit]) -> Mapping[str, str]:
        now_s = self._catalog.now_s()
        alive = [node for node in self._catalog.nodes() if node.is_alive(now_s)]
        fragments = whole_fragments(unit.fragment for unit in units)
        return plan_nodes(deployment, units, alive, self._costs.estimates(fragments))

    def _kept_to_tree(
        self, system: System, units: Sequence[Unit], planned: Mapping[str, str]
    ) -> Mapping[str, str]:
        """The plan with every fragment where all its inputs pass; raises where a pin is not."""
        wiring = tree_wiring(self._catalog.nodes(), system)
        if wiring is None:
            return planned
        places = {unit.name: unit.node for unit in self._catalog.units()}
        fragments = [unit for unit in units if unit.fragment is not None]
        pinned = {unit.name: unit.on for unit in fragments if unit.on is not None}
        return place_in_tree(
            wiring, [fragment.name for fragment in fragments], places, pinned, planned
        )

    def _parts_apart(self, units: Sequence[Unit]) -> Mapping[str, str]:
        """A node for every part of a join: each another one, as far as there are nodes."""
        now_s = self._catalog.now_s()
        alive = {node.name for node in self._catalog.nodes() if node.is_alive(now_s)}
        parts = [unit.fragment.part for unit in units if unit.fragment and unit.fragment.part]
        return {part.id: node_of_part(part, alive) for part in parts if alive}

    def estimates(self) -> Mapping[str, OperatorEstimate]:
        """What the fragments of the system have cost so far, as far as that is known."""
        units = self.system().units.values()
        return self._costs.estimates(whole_fragments(unit.fragment for unit in units))

    def note_costs(self, now_s: float) -> None:
        """Remembers now and then what fragments cost, for plans to come."""
        if now_s - self._noted_s < NOTED_EVERY_S:
            return
        self._noted_s = now_s
        units = self.system().units
        latest = [self._catalog.latest_sample(node.name) for node in self._catalog.nodes()]
        news = [
            self._costs.note(fragment, measured)
            for sample in latest
            for name, measured in ({} if sample is None else sample.fragments).items()
            if name in units
            and (fragment := units[name].fragment) is not None
            # What a part costs says little of the whole.
            and fragment.is_whole
        ]
        if any(news):
            self._costs.save()

    def _check_nodes(self, units: Iterable[Unit]) -> None:
        names = [node.name for node in self._catalog.nodes()]
        for unit in units:
            if unit.on is not None and unit.on not in names:
                raise no_node(unit.on, names)

    def channel(self, stream: str) -> Channel:
        """The channel that carries a stream."""
        return self._data.channel(stream)

    def drop(
        self, name: str, patience_s: float = _STOPPING_AT_MOST_S, keep_data: bool = False
    ) -> Path | None:
        """Stops a submission and forgets it with all its data; where that is, if it is kept."""
        with self._asking:
            return self._dropped(name, patience_s, keep_data)

    def _dropped(self, name: str, patience_s: float, keep_data: bool = False) -> Path | None:
        submission = self._submission(name)
        self._check_unread(submission)
        for segment in self._segments_of(submission):
            self._dropped(segment.name, patience_s)
        system = self.system()
        left = leaving(system, {*system.dropped, submission.id})
        names = [unit.name for unit in left.gone]
        is_whole = left.is_whole(submission.id, system)
        kept = self._home.kept(f"{name}-{submission.id}") if keep_data else None
        with self._assigning:
            if is_whole:
                self._catalog.drop(submission.id)
            else:
                self._catalog.replan(left.at_first(system), left.changed, names, submission.id)
        self._assembled = ((), System())
        self._await_release(names, patience_s)
        self._shared.await_up(left.changed, patience_s)
        # The data first: what is left of one that is not known any more nobody would ever delete,
        # and the next of that name would go on from there.
        for unit in left.gone:
            for stream in unit.reads:
                self.channel(stream).forget(unit.reader)
        for unit in left.gone:
            if kept is not None and unit.submission == submission.id:
                self._data.keep(unit, kept)
            self._data.forget(unit)
        for stream in left.untapped:
            self.channel(stream).drop()
        if is_whole:
            self._catalog.remove(submission.id)
        else:
            over = {*system.dropped, submission.id} - left.system.deployments.keys()
            self._catalog.remove_shared(names, left.plans(), over)
        self._assembled = ((), System())
        users = kept_for(left.system, self._names()).get(submission.id, ())
        told = "dropped" if kept is None else f"dropped, kept in {kept}"
        told += f"; what {listed(users)} shares of it is kept" if users else ""
        self._catalog.tell("drop", name, told)
        return kept

    def _submission(self, name: str) -> Submission:
        known = self._catalog.submissions()
        for other in known:
            if other.name == name and (not other.is_dropped or self._is_stopping(other)):
                return other
        owner = self.system().queries.get(name)
        names = [submission.name for submission in known if not submission.is_dropped]
        if owner is not None:
            part = next(submission.name for submission in known if submission.id == owner)
            raise InputError(f"{name} is part of {part}", hint=f"Drop {part} as a whole.")
        hint = f"There are {listed(names)}. {suggestion(name, names)}".strip()
        raise InputError(f"nothing called {name} is running", hint=hint)

    def sharing(self, name: str) -> SharingAnswer:
        """What a submission shares with others."""
        return self._sharing_told(self.system(), self._submission(name))

    def sharing_of(self, proposal: Proposal) -> SharingAnswer:
        """What a submission that has not been taken in would share."""
        return self._sharing_told(proposal.system, proposal.asked)

    def graph(self, name: str) -> GraphAnswer:
        """What a submission computes itself, what it reads of whom, and what was projected."""
        submission, system = self._submission(name), self.system()
        names = {other.id: other.name for other in self._catalog.submissions()}
        nodes = {unit.name: unit.node for unit in self._catalog.units()}
        own, others = graph_parts(system, submission.id, nodes, names)
        mine = [query for query in queries_answer(self._catalog, system) if query.name == name]
        limits = [
            query.max_latency_us for query in system.deployments[submission.id].network.queries
        ]
        known = [limit_us / US_PER_S for limit_us in limits if limit_us is not None]
        return GraphAnswer(
            name=name,
            own=own,
            others=others,
            sharing=self._sharing_told(system, submission),
            projected_s=submission.sharing.projected_s,
            measured_s=mine[0].measured_s if mine else None,
            limit_s=min(known, default=None),
        )

    def _sharing_told(self, system: System, submission: Submission) -> SharingAnswer:
        names = {other.id: other.name for other in self._catalog.submissions()}
        network = system.deployments[submission.id].network
        operators = {*submission.sharing.saved, *(operator.name for operator in network.operators)}
        return sharing_answer(system, submission, names, operators)

    def _is_stopping(self, submission: Submission) -> bool:
        """Whether some of its units were told to stop and are still there."""
        units = self._catalog.units()
        return any(unit.is_dropped for unit in units if unit.submission == submission.id)

    def _await_release(self, names: Sequence[str], patience_s: float) -> None:
        until_s = time.monotonic() + patience_s
        while True:
            now_s = self._catalog.now_s()
            alive = {node.name for node in self._catalog.nodes() if node.is_alive(now_s)}
            left = [
                unit.name
                for unit in self._catalog.units()
                if unit.name in names and unit.node in alive and unit.released_epoch < unit.epoch
            ]
            if not left:
                return
            if time.monotonic() > until_s:
                raise RunError(
                    f"{listed(left)} did not stop within {patience_s:g} s",
                    hint="Ask again; the logs of their nodes say what they are doing.",
                )
            time.sleep(0.05)

    def move(self, wishes: Sequence[Move]) -> tuple[MoveRecord, ...]:
        """Begins the moves of one plan; raises, and begins none, if one of them makes no sense."""
        of_groups = [wish for wish in wishes if BETWEEN in wish.unit]
        with self._assigning:
            plain = [wish for wish in wishes if wish not in of_groups]
            moved = begin_moves(self._catalog, self.system(), plain)
            given = (
                self.groups.begin(wish.unit, wish.target, wish.reason, wish.numbers)
                for wish in of_groups
            )
            return (*moved, *given)

    def tick(self) -> None:
        """Looks at the system and carries out what has to be decided now."""
        with self._assigning:
            self._decisions.carry_on()


def _check_engines(units: Sequence[Unit]) -> None:
    """Raises if a query asks for an engine that cannot run it."""
    asking = [
        (unit.network, unit.fragment)
        for unit in units
        if unit.fragment is not None
        and any(unit.network.query(name).engine == "light" for name in unit.fragment.queries)
    ]
    if asking:
        # Only now: what it needs is large, and few ask.
        from penstock.kernels.engine_choice import choose_engine

        for network, fragment in asking:
            choose_engine(network, fragment)


def tick_always(ticks: Sequence[Callable[[], None]], is_over: Callable[[float], bool]) -> None:
    """Ticks until it is over; what goes wrong in one tick is logged and tried again."""
    while not is_over(0.1):
        for tick in ticks:
            try:
                tick()
            except Exception:
                log.exception("a decision could not be made")
