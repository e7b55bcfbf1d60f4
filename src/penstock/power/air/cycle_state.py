"""What a receiver knows of the cycle it is in, and of those it has left."""

from __future__ import annotations

from penstock.power.air.events import Absent, AirEvent, Lost, Missed
from penstock.power.air.packets import Descriptor, IndexEntry


class CycleState:
    """Cycles only go on: what belongs to one that was left, or to one before it, is a replay."""

    def __init__(self, queries: frozenset[int]) -> None:
        self._queries = queries
        self._left: tuple[int, int] | None = None
        self._current: tuple[int, int] | None = None
        self.wanted: set[int] = set()
        self.cycle_bytes = 0
        self._places: dict[int, int] = {}
        self._announced: set[int] = set()
        self._entries_seen = 0
        self._results_seen = 0
        self._is_complete = True

    @property
    def is_over(self) -> bool:
        """Whether the receiver is between two cycles."""
        return self._current is None

    def enter(self, broadcast: int, cycle: int, events: list[AirEvent]) -> bool:
        """Whether a packet of this cycle is of now; leaves the cycle before, where it is newer."""
        here = (broadcast, cycle)
        if here == self._current:
            return True
        if (self._current or self._left or (-1, 0)) >= here or here == self._left:
            return False
        self.leave(events, is_whole=False)
        self._note_gap(broadcast, cycle, events)
        self._current = here
        self.wanted = set(self._queries)
        self.cycle_bytes = 0
        self._places = {}
        self._announced = set()
        self._entries_seen = self._results_seen = 0
        self._is_complete = True
        return True

    def _note_gap(self, broadcast: int, cycle: int, events: list[AirEvent]) -> None:
        if self._left is None:
            return
        first = self._left[1] + 1 if self._left[0] == broadcast else 1
        if first < cycle:
            events.append(Missed(broadcast, first, cycle - 1))

    def leave(self, events: list[AirEvent], is_whole: bool = True) -> None:
        """Ends the cycle; what is still wanted was not in it, or is lost if that is not known."""
        if self._current is None:
            return
        for query in sorted(self.wanted):
            is_certain = is_whole and self._is_complete and query not in self._announced
            events.append((Absent if is_certain else Lost)(*self._current, query))
        self._left, self._current = self._current, None

    def note_entry(self, entry: IndexEntry, events: list[AirEvent]) -> None:
        """Keeps where one's own results are; at the end of a whole index the others are absent."""
        self._is_complete &= entry.position == self._entries_seen
        self._entries_seen = entry.position + 1
        self.cycle_bytes = entry.cycle_bytes
        self._announced.add(entry.query)
        if entry.query in self.wanted:
            self._places[entry.query] = entry.offset
        if entry.position == entry.count - 1 and self._is_complete:
            for query in sorted(self.wanted - self._places.keys()):
                events.append(Absent(entry.broadcast, entry.cycle, query))
                self.wanted.discard(query)

    def note_descriptor(self, found: Descriptor) -> None:
        """Notices by the numbers of results, or of index entries, whether one was not heard."""
        self._announced.add(found.query)
        if found.has_index:
            self._is_complete &= self._entries_seen == found.count
        else:
            self._is_complete &= found.position == self._results_seen
            self._results_seen = found.position + 1

    def next_place(self, at: int) -> int | None:
        """Where the next result of one's own begins, at ``at`` or behind it."""
        places = [self._places[query] for query in self.wanted if query in self._places]
        return min((place for place in places if place >= at), default=None)
