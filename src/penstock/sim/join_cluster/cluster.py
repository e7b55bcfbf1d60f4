"""The master and its workers: epochs, serial sending, moves of groups, tuning of their parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from penstock.balance.groups.deciding import decide_groups
from penstock.balance.groups.directory import SplitDirectory, tune
from penstock.balance.groups.reports import GroupMove, GroupOwners, WorkerReport
from penstock.load.arrays import Ints
from penstock.sim.join_cluster.arriving import GroupLogs
from penstock.sim.join_cluster.measuring import JoinMeasurements, Meter
from penstock.sim.join_cluster.serving import PRICES, TALLIES, GroupState, arrive, serve
from penstock.sim.join_cluster.settings import (
    CELL_BITS,
    JoinClusterSettings,
    JoinCosts,
    JoinWorkload,
)


class JoinCluster:
    """A join on a cluster in simulated time; the same arguments give the same run.

    Workers stop joining at the end of each distribution epoch to be sent their tuples, one worker
    after the other. At the end of a reorganisation epoch groups move, with their windows. ``logs``
    are the tuples that arrive until ``until_s``.
    """

    def __init__(
        self,
        workload: JoinWorkload,
        settings: JoinClusterSettings,
        logs: GroupLogs,
        until_s: float,
        seed: int = 0,
        costs: JoinCosts | None = None,
    ) -> None:
        self._workload, self._settings = workload, settings
        self._costs = costs or JoinCosts()
        self._until_s = until_s
        self._logs = logs
        self._state = _make_state(self._logs.starts)
        self._counts = np.zeros((2, workload.largest_key + 1), np.uint16)
        self._prices = self._list_prices()
        self._names = [f"w{at}" for at in range(settings.workers)]
        self._owners = GroupOwners.deal(workload.groups, self._names)
        self._directories = [SplitDirectory()] * workload.groups
        self._held_until_s = np.zeros(workload.groups)
        self._free_s = np.zeros(settings.workers)
        self._cursors = [0] * settings.workers
        self._occupancy: list[list[float]] = [[] for _ in self._names]
        self._rng = np.random.default_rng([seed, 3])
        self._all = np.arange(workload.groups)
        self.meter = Meter(settings.workers)
        self.moves = 0
        self.splits = 0

    def run(self, warm_s: float) -> JoinMeasurements:
        """Runs to the end; what was measured after ``warm_s``."""
        settings = self._settings
        epochs = round(self._until_s / settings.distribution_s)
        every = max(1, round(settings.reorganisation_s / settings.distribution_s))
        for epoch in range(1, epochs + 1):
            now = epoch * settings.distribution_s
            if now - settings.distribution_s < warm_s <= now:
                self.meter.reset()
            self._distribute(now)
            if settings.tuning is not None:
                self._tune()
            if epoch % every == 0:
                self._reorganise(now)
        end = epochs * settings.distribution_s
        for worker in range(settings.workers):
            self._work(worker, end)
        return self.meter.summarise(end - warm_s, self._settings.workers)

    def _distribute(self, epoch_s: float) -> None:
        """Sends every worker its tuples, in as many slots as there are sub-groups."""
        settings = self._settings
        active = [self._names.index(worker) for worker in self._owners.workers]
        for slot in range(settings.slots):
            begin = epoch_s + slot * settings.distribution_s / settings.slots
            master_free = begin
            served = [worker for at, worker in enumerate(active) if at % settings.slots == slot]
            for worker in served:
                master_free = self._send(worker, begin, master_free)

    def _send(self, worker: int, begin_s: float, master_free_s: float) -> float:
        """One worker gets what has arrived for it; when the master is done with that."""
        works_until = begin_s if self._settings.connects == "at once" else master_free_s
        self._work(worker, works_until)
        own = self._groups(worker)
        pending = int((self._state.sent - self._state.done)[own].sum())
        self._occupancy[worker].append(min(1.0, pending / self._costs.buffer_tuples))
        connected = max(self._free_s[worker], works_until)
        starts = max(connected, master_free_s)
        self.meter.note_waiting(int(arrive(self._logs, self._state, self._all, starts)))
        sent = self._hand_out(own, self._costs.buffer_tuples - pending, starts)
        ends = starts + self._costs.message_s + sent * self._bytes_s
        self._free_s[worker] = ends
        self.meter.note_communication(worker, ends - connected)
        return float(ends)

    def _work(self, worker: int, until_s: float) -> None:
        tally = np.zeros(TALLIES)
        free, self._cursors[worker] = serve(
            self._logs, self._state, self._counts, self._prices, self._groups(worker),
            self._cursors[worker], self._free_s[worker], until_s,
            self._settings.speed(worker), tally,
        )  # fmt: skip
        self._free_s[worker] = free
        self.meter.note_work(worker, tally)

    def _hand_out(self, groups: Ints, room: int, now_s: float) -> int:
        """Sends what fits, of all groups alike; groups on the move wait."""
        free = groups[self._held_until_s[groups] <= now_s]
        state = self._state
        waiting = (state.arrived - state.sent)[free]
        total = int(waiting.sum())
        if total > room:
            waiting = waiting * max(0, room) // total
        state.sent[free] += waiting
        return int(waiting.sum())

    def _tune(self) -> None:
        """Splits and merges the mini-partitions of groups that have grown or shrunk."""
        tuning = self._settings.tuning
        assert tuning is not None
        for group in range(self._workload.groups):
            cells = self._state.cells[group].sum(axis=0, dtype=np.int64) * self._costs.tuple_bytes
            if cells.sum() <= tuning.most and self._directories[group].depth == 0:
                continue
            tuned = tune(self._directories[group], cells, tuning)
            if tuned.splits or tuned.merges:
                self.splits += tuned.splits
                self._directories[group] = tuned.directory
                self._regroup(group, tuned.directory)

    def _regroup(self, group: int, directory: SplitDirectory) -> None:
        sizes = self._state.sizes[group]
        sizes[:] = 0
        for bucket in directory.buckets:
            cells = bucket.entries(CELL_BITS)
            self._state.buckets[group, cells.start : cells.stop] = cells.start
            held = self._state.cells[group, :, cells.start : cells.stop]
            sizes[:, cells.start] = held.sum(axis=1)

    def _reorganise(self, now_s: float) -> None:
        """Workers report, groups move with their windows, the number of workers is adjusted."""
        reports = [self._report(self._names.index(name)) for name in self._owners.workers]
        self._state.cpu_s[:] = 0
        self._occupancy = [[] for _ in self._names]
        self.meter.note_held(self._held_bytes())
        if not self._settings.moves:
            return
        decision = decide_groups(
            self._owners, reports, self._settings.groups, self._rng, self._names
        )
        for instruction in decision.instructions:
            if isinstance(instruction, GroupMove):
                self._move(instruction, now_s)
        self._owners = decision.after
        self.meter.note_workers(len(self._owners.workers))

    def _report(self, worker: int) -> WorkerReport:
        seen = self._occupancy[worker]
        loads = self._state.cpu_s / self._settings.reorganisation_s
        return WorkerReport(
            self._names[worker],
            float(np.mean(seen)) if seen else 0.0,
            {int(group): float(loads[group]) for group in self._groups(worker)},
        )

    def _move(self, move: GroupMove, now_s: float) -> None:
        """The windows and pending tuples of a group go from one worker to another."""
        tuples = int(self._state.sent[move.group] - self._state.heads[move.group])
        took_s = 2 * self._costs.message_s + tuples * self._bytes_s
        both = [self._names.index(name) for name in (move.source, move.target)]
        starts = max(now_s, *(float(self._free_s[worker]) for worker in both))
        self._held_until_s[move.group] = starts + took_s
        for worker in both:
            self.meter.note_communication(
                worker, starts + took_s - max(now_s, self._free_s[worker])
            )
            self._free_s[worker] = starts + took_s
        self._owners = replace(
            self._owners,
            owners=tuple(
                move.target if group == move.group else owner
                for group, owner in enumerate(self._owners.owners)
            ),
            workers=tuple(dict.fromkeys((*self._owners.workers, move.target))),
        )
        self.moves += 1

    def _groups(self, worker: int) -> Ints:
        return np.array(self._owners.of(self._names[worker]), np.int64)

    def _held_bytes(self) -> list[int]:
        tuples = self._state.sent - self._state.heads
        return [
            int(tuples[self._groups(worker)].sum()) * self._costs.tuple_bytes
            for worker in range(self._settings.workers)
        ]

    @property
    def _bytes_s(self) -> float:
        return self._costs.tuple_bytes * self._costs.byte_s

    def _list_prices(self) -> np.ndarray:
        costs = self._costs
        prices = np.array(
            [costs.comparison_s, costs.tuple_s, costs.result_s, costs.block_tuples,
             self._workload.window_s]
        )  # fmt: skip
        assert len(prices) == PRICES
        return prices


def _make_state(starts: Ints) -> GroupState:
    groups, cells = len(starts) - 1, 1 << CELL_BITS
    begin = starts[:-1]
    return GroupState(
        begin.copy(), begin.copy(), begin.copy(), begin.copy(),
        np.zeros((groups, 2, cells), np.int32), np.zeros((groups, cells), np.int32),
        np.zeros((groups, 2, cells), np.int32), np.zeros(groups),
    )  # fmt: skip
