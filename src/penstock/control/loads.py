"""How much of a node each of its fragments is: shares of processor time, and series of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.model.measurements import NodeSample


class Shares:
    """Processor time by fragment.

    Spark does not say what a query has cost: its tasks run in threads that all queries share, and
    its planning in others. What a node has used is known, what its intakes have used of that, and
    the time each batch took; what is left is shared out by that time. Fragments that wait for each
    other are charged alike for waiting, which is the error of this estimate; their sum is exact.
    """

    def __init__(self) -> None:
        self._busy_ms: dict[str, float] = {}
        self._spent_ms: dict[str, float] = {}
        self._intakes_ms: dict[str, float] = {}
        self._waiting_ms = 0.0

    def take(
        self,
        used_ms: float,
        busy_ms: Mapping[str, float],
        intakes_ms: Mapping[str, float] | None = None,
    ) -> Mapping[str, float]:
        """Shares out what was used since the last call; each fragment's time since it started.

        ``busy_ms`` is how long batches of each fragment have taken since it was started,
        ``intakes_ms`` what each intake has had itself. While no batch has ended, what was used
        waits for the next call.

        >>> shares = Shares()
        >>> shares.take(0.0, {"a": 0.0, "b": 0.0})
        {'a': 0.0, 'b': 0.0}
        >>> shares.take(400.0, {"a": 300.0, "b": 100.0})
        {'a': 300.0, 'b': 100.0}
        """
        grown = _growth(self._busy_ms, busy_ms)
        own_ms = sum(_growth(self._intakes_ms, intakes_ms or {}).values())
        self._intakes_ms = dict(intakes_ms or {})
        self._waiting_ms += max(0.0, used_ms - own_ms)
        whole_ms = sum(grown.values())
        if whole_ms > 0:
            for name, ms in grown.items():
                share_ms = self._waiting_ms * ms / whole_ms
                self._spent_ms[name] = self._spent_ms.get(name, 0.0) + share_ms
            self._waiting_ms = 0.0
        self._busy_ms = dict(busy_ms)
        self._spent_ms = {name: self._spent_ms.get(name, 0.0) for name in busy_ms}
        return dict(self._spent_ms)


def _growth(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {name: max(0.0, ms - before.get(name, 0.0)) for name, ms in after.items()}


def measured_loads(
    samples: Mapping[str, Sequence[NodeSample]],
    names: Sequence[str],
    periods: int,
    period_s: float,
    now_s: float,
) -> NDArray[np.float64]:
    """The load of every fragment over the last periods, in cores; NaN where nothing is known.

    A node's samples say what each fragment has spent since it was started there; the load of a
    period is what that has grown by between the last samples before the period's ends, over the
    time between them. Periods of which nothing is known at all are left out.
    """
    found = np.full((len(names), periods), np.nan)
    ends_s = [now_s - period_s * (periods - at) for at in range(periods + 1)]
    for kept in samples.values():
        times_s = [sample.at_s for sample in kept]
        places = [bisect_right(times_s, end_s) - 1 for end_s in ends_s]
        for at in range(periods):
            before, after = places[at], places[at + 1]
            if 0 <= before < after:
                _fill(found[:, at], kept[before], kept[after], names)
    return found[:, ~np.isnan(found).all(axis=0)]


def _fill(
    column: NDArray[np.float64], before: NodeSample, after: NodeSample, names: Sequence[str]
) -> None:
    span_ms = 1_000 * (after.at_s - before.at_s)
    then, now = before.fragments, after.fragments
    for row, name in enumerate(names):
        if name in then and name in now:
            grown_ms = now[name].cpu_ms - then[name].cpu_ms
            # One that was started afresh meanwhile counts from zero again.
            if grown_ms >= 0:
                column[row] = grown_ms / span_ms
