"""Which operators run together as one fragment when they share a node.

Fusing saves a hop: a micro-batch's overhead and latency, and a copy of the rows on disk. It stops
where Spark cannot follow or where work would be done twice. Call a result *settled* if there is
state, opaque code or a change of the event-time column behind it in its fragment; fusing stops

- before an operator with state, if its input is settled: one streaming query then has one kind of
  state, and its watermark is exact;
- before a union of several settled results;
- after a settled result that is wanted more than once, and before a switch of which several cases
  are wanted if its input is settled: it is computed once and read by all;
- after the result of a query that is to run on one node, before what is to run on another;
- after a stream gets an event time of its own: rows are judged by it where they enter a channel.

Other stateless work read by several is repeated instead: that costs less than a hop. Operators
whose results nobody wants run nowhere.
"""

from __future__ import annotations

from collections import Counter

from penstock.model.expressions import is_column
from penstock.model.fragments import Fragment
from penstock.model.network import Network
from penstock.model.operators import Input, Map, Operator, SqlWrite, Union
from penstock.model.retime import Retime
from penstock.model.rewiring import rewire


def fuse(network: Network) -> tuple[Fragment, ...]:
    """The fragments of a network, each after those it reads; linear in the network."""
    return _Fusion(network).fragments()


class _Fusion:
    def __init__(self, network: Network) -> None:
        self._network = network
        self._writes = [
            operator for operator in network.operators if isinstance(operator, SqlWrite)
        ]
        self._passed_on = {write.name: write.input.stream for write in self._writes}
        self._wanted = self._wanted_results()
        alive = network.upstream(self._wanted)
        self._working = [
            self._without_writes(operator)
            for operator in network.operators
            if not isinstance(operator, SqlWrite) and not alive.isdisjoint(operator.outputs)
        ]
        self._producers = {
            name: operator for operator in self._working for name in operator.outputs
        }
        self._uses = Counter(self._wanted)
        self._uses.update(input.stream for operator in self._working for input in operator.inputs)
        self._settled = {stream.name: False for stream in network.streams}
        self._written = {
            self._real(query.stream): query.on for query in network.queries if query.on
        }
        self._behind: dict[str, set[str]] = {}
        self._cut: set[str] = set()

    def _real(self, stream: str) -> str:
        """The stream whose rows these are: a database write hands on what it reads."""
        while stream in self._passed_on:
            stream = self._passed_on[stream]
        return stream

    def _without_writes(self, operator: Operator) -> Operator:
        """The operator, reading past the database writes in front of it."""
        if all(self._real(input.stream) == input.stream for input in operator.inputs):
            return operator
        inputs = tuple(Input(self._real(stream.stream), stream.shape) for stream in operator.inputs)
        return rewire(operator, inputs)

    def _wanted_results(self) -> set[str]:
        sunk = {
            self._real(query.stream) for query in self._network.queries if query.sink is not None
        }
        return sunk | {self._real(write.input.stream) for write in self._writes}

    def fragments(self) -> tuple[Fragment, ...]:
        for operator in self._working:
            self._cut_before(operator)
            self._keep_to_nodes(operator)
            settled = (
                operator.stateful
                or operator.opaque
                or changes_event_time(operator)
                or bool(self._settled_inputs(operator))
            )
            for stream in operator.outputs:
                self._settled[stream] = settled
                if (settled and self._uses[stream] > 1) or isinstance(operator, Retime):
                    self._cut.add(stream)
        return tuple(self._fragment(stream) for stream in self._order())

    def _settled_inputs(self, operator: Operator) -> set[str]:
        streams = {input.stream for input in operator.inputs}
        return {stream for stream in streams if self._settled[stream] and stream not in self._cut}

    def _cut_before(self, operator: Operator) -> None:
        settled = self._settled_inputs(operator)
        merges = isinstance(operator, Union) and len(settled) > 1
        splits = sum(self._uses[stream] > 0 for stream in operator.outputs) > 1
        if operator.stateful or merges or splits:
            self._cut |= settled

    def _keep_to_nodes(self, operator: Operator) -> None:
        """Cuts behind an operator until all that has a node in its fragment has the same.

        ``_behind`` has the results with a node in the fragment that a result would be part of.
        """
        read = {source.stream for source in operator.inputs} - self._cut
        found = {name for stream in read for name in self._behind.get(stream, ())} - self._cut
        for stream in operator.outputs:
            own = self._written.get(stream)
            nodes = {self._written[name] for name in found} | ({own} if own else set())
            if len(nodes) > 1:
                self._cut |= {name for name in found if self._written[name] != own}
                found -= self._cut
            self._behind[stream] = found | ({stream} if own else set())

    def _order(self) -> list[str]:
        ends = self._wanted | self._cut
        produced = [name for operator in self._working for name in operator.outputs]
        outside = [stream.name for stream in self._network.streams]
        return [name for name in (*outside, *produced) if name in ends]

    def _fragment(self, output: str) -> Fragment:
        inputs, operators = self._cone(output)
        return Fragment(
            name=output,
            inputs=inputs,
            operators=operators,
            output=output,
            writes=tuple(
                sql_write
                for sql_write in self._writes
                if self._real(sql_write.input.stream) == output
            ),
            queries=tuple(
                query.name for query in self._network.queries if self._real(query.stream) == output
            ),
            is_read=output in self._cut,
        )

    def _cone(self, output: str) -> tuple[tuple[str, ...], tuple[Operator, ...]]:
        inputs: set[str] = set()
        inside: set[str] = set()
        waiting = [output]
        while waiting:
            stream = waiting.pop()
            if stream not in self._producers or (stream in self._cut and stream != output):
                inputs.add(stream)
            elif self._producers[stream].name not in inside:
                inside.add(self._producers[stream].name)
                waiting += [input.stream for input in self._producers[stream].inputs]
        operators = tuple(operator for operator in self._working if operator.name in inside)
        return tuple(sorted(inputs)), operators


def changes_event_time(operator: Operator) -> bool:
    """Whether Spark, which marks the event-time column at the reader, would lose sight of it."""
    if not isinstance(operator, Map) or operator.output.event_time is None:
        return False
    before = operator.input.shape.event_time
    assert before is not None
    return not is_column(dict(operator.columns)[operator.output.event_time], before)
