"""What light fragments share: a round of their bundle, once for every node and stream it reads.

A round of a bundle costs what it costs to have Spark read what is new in a stream, however many
members read it; a member adds its share. So the first member of a stream on a node opens that
stream there, and planners count what opening costs once for the node (``AbstractOpening``). A join
of two streams has a job of its own in every round and shares it with nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.load.costs import (
    LIGHT,
    LIGHT_JOIN,
    LIGHT_READING,
    LIGHT_ROUND,
    PAIR,
    CostTable,
)
from penstock.model.abstract import AbstractOpening
from penstock.model.estimates import OperatorEstimate
from penstock.model.fragments import Fragment
from penstock.model.operators import WindowJoin


@dataclass(frozen=True)
class SharedRounds:
    """Rounds of fragments, and what of them is shared.

    ``light`` are the names of members of bundles; ``rounds_s`` says every how many seconds a
    fragment has a batch, where that is known.
    """

    costs: CostTable
    fragments: Sequence[Fragment]
    light: Collection[str]
    rounds_s: Mapping[str, float]

    def members(self, fragment: Fragment) -> tuple[Fragment, ...]:
        """Those that a fragment can share rounds with, itself included; none if it is not light."""
        return self._by_stream.get(fragment.inputs[0], ()) if self.shares(fragment) else ()

    def shares(self, fragment: Fragment) -> bool:
        """Whether a fragment is a member of a bundle that reads one stream, and joins nothing."""
        is_light = fragment.name in self.light
        return is_light and len(fragment.inputs) == 1 and not _joins(fragment)

    @cached_property
    def _by_stream(self) -> Mapping[str, tuple[Fragment, ...]]:
        found: dict[str, tuple[Fragment, ...]] = defaultdict(tuple)
        for fragment in self.fragments:
            if self.shares(fragment):
                found[fragment.inputs[0]] += (fragment,)
        return found

    def round_s(self, fragment: Fragment) -> float | None:
        """Every how many seconds it has a batch; members of a stream as the most hurried has."""
        given = (self.rounds_s.get(member.name) for member in self.members(fragment))
        known = [round_s for round_s in given if round_s is not None]
        return min(known) if known else self.rounds_s.get(fragment.name)

    def batch_ms(self, fragment: Fragment) -> float | None:
        """Milliseconds that a batch costs the fragment alone; None where none was measured."""
        alone_ms = self.costs.of_batch(fragment, self.light)
        if fragment.name in self.light and not self.shares(fragment):
            opening_ms = self.costs.batch_ms.get(LIGHT_ROUND)
            if alone_ms is not None and opening_ms is not None:
                return alone_ms + opening_ms
        return alone_ms

    def row_us(self, fragment: Fragment) -> float | None:
        """What a row costs a light fragment, whatever it does; None where nothing was measured."""
        if fragment.name in self.light and _joins(fragment):
            return self.costs.of(LIGHT_JOIN)
        if fragment.gathers is not None:
            return self.costs.of(LIGHT_READING)
        if not self.shares(fragment) or LIGHT_ROUND not in self.costs.batch_ms:
            return None
        return self.costs.of(LIGHT) or 0.0

    def pair_us(self, fragment: Fragment) -> float:
        """What a light join needs for a pair besides, with all that is behind the join."""
        is_known = _joins(fragment) and self.row_us(fragment) is not None
        return (self.costs.of(PAIR) or 0.0) if is_known else 0.0

    def measured_row_us(self, fragment: Fragment, measured: OperatorEstimate) -> float:
        """What a row costs a fragment that was measured, without its part of what is fixed.

        What members share is taken to have been shared by all of them: where they were spread
        over nodes, a little too much is left.
        """
        cost_us, sharing = measured.cost_us or 0.0, len(self.members(fragment))
        batch_ms = self.batch_ms(fragment)
        if batch_ms is None or not measured.rows_per_batch:
            return cost_us
        if sharing:
            batch_ms += self.costs.batch_ms.get(LIGHT_ROUND, 0.0) / sharing
            cost_us -= (self.costs.of(LIGHT_READING) or 0.0) / sharing
        return max(0.0, cost_us - 1e3 * batch_ms / measured.rows_per_batch)

    def openings(
        self, operators: Mapping[str, str], end_of: Callable[[str], str]
    ) -> tuple[AbstractOpening, ...]:
        """What nodes pay once; ``operators`` name one of each member that is to count.

        ``end_of`` says what a stream is called.
        """
        made = (
            self._opening(stream, members, operators, end_of(stream))
            for stream, members in self._by_stream.items()
        )
        return tuple(opening for opening in made if opening is not None)

    def _opening(
        self, stream: str, members: Sequence[Fragment], operators: Mapping[str, str], end: str
    ) -> AbstractOpening | None:
        named = tuple(operators[member.name] for member in members if member.name in operators)
        round_s = self.round_s(members[0])
        round_ms = self.costs.batch_ms.get(LIGHT_ROUND, 0.0)
        fixed_cpu = round_ms / 1e3 / round_s if round_s else 0.0
        reading_s = (self.costs.of(LIGHT_READING) or 0.0) / 1e6
        if not named or not (fixed_cpu or reading_s):
            return None
        return AbstractOpening(f"round over {stream}", named, end, fixed_cpu, reading_s)


def _joins(fragment: Fragment) -> bool:
    return any(isinstance(operator, WindowJoin) for operator in fragment.operators)
