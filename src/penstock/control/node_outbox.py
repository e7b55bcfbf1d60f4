"""What a node still has to say in the catalog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.control.node_instructions import Telling, TellMove


class Outbox:
    """Says one thing at a time about each unit and each move, in order, until it was said.

    >>> from itertools import count
    >>> from penstock.control.node_instructions import ReleaseUnit, ReportUnit
    >>> outbox = Outbox(count(1).__next__, again_after_s=0.5)
    >>> outbox.add(ReportUnit(0, "q", 3, "failed", "no memory"), ReleaseUnit(0, "q", 3, "life"))
    >>> [type(telling).__name__ for telling in outbox.take(0.0)]
    ['ReportUnit']
    >>> outbox.answer(1, False, 0.0).unit  # It has to be said again.
    'q'
    >>> [telling.number for at_s in (0.1, 0.6) for telling in outbox.take(at_s)]
    [2]
    >>> outbox.answer(2, True, 0.7).state
    'failed'
    >>> [type(telling).__name__ for telling in outbox.take(0.7)], "q" in outbox
    (['ReleaseUnit'], True)
    """

    def __init__(self, next_number: Callable[[], int], again_after_s: float) -> None:
        self._next_number = next_number
        self._again_after_s = again_after_s
        self._queues: dict[str, list[Telling]] = {}
        self._under_way: dict[int, str] = {}
        self._not_before_s: dict[str, float] = {}

    def add(self, *tellings: Telling) -> None:
        """Says these as well; what waits to be said already is not said twice."""
        for telling in tellings:
            queue = self._queues.setdefault(_subject(telling), [])
            if not any(replace(waiting, number=telling.number) == telling for waiting in queue):
                queue.append(telling)

    def take(self, now_s: float) -> list[Telling]:
        """What can be said now."""
        busy = {*self._under_way.values()}
        taken = []
        for subject, queue in self._queues.items():
            if subject not in busy and now_s >= self._not_before_s.get(subject, now_s):
                queue[0] = replace(queue[0], number=self._next_number())
                self._under_way[queue[0].number] = subject
                taken.append(queue[0])
        return taken

    def answer(
        self, number: int, is_said: bool, now_s: float, is_last_try: bool = False
    ) -> Telling | None:
        """Takes what came of saying something; what that was, or None if nobody waits for it."""
        subject = self._under_way.pop(number, None)
        if subject is None:
            return None
        queue = self._queues[subject]
        told = queue[0]
        self._not_before_s.pop(subject, None)
        if is_said:
            del queue[0]
        elif is_last_try:
            queue.clear()
        else:
            self._not_before_s[subject] = now_s + self._again_after_s
        if not queue:
            del self._queues[subject]
        return told

    def clear(self) -> None:
        """Forgets everything, and waits for no answer."""
        self._queues.clear()
        self._under_way.clear()
        self._not_before_s.clear()

    def __contains__(self, unit: str) -> bool:
        return f"unit {unit}" in self._queues

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))


def _subject(telling: Telling) -> str:
    return f"move {telling.move}" if isinstance(telling, TellMove) else f"unit {telling.unit}"
