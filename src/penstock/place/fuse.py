"""Which operators run together as one fragment when they share a node.

Fusing saves a hop: a micro-batch's overhead and latency, and a copy of the rows on disk. It stops
where Spark cannot follow or where work would be done twice:

- before an operator with state, if there is state or opaque code upstream in the fragment: one
  streaming query then has one kind of state, and its watermark is exact;
- before a union of several results that each have state;
- after state or opaque code whose result is wanted more than once: it is computed once and read
  by all.

Stateless work read by several is repeated instead: that costs less than a hop.
"""

from __future__ import annotations

from penstock.model.fragments import Fragment
from penstock.model.network import Network
from penstock.model.operators import Operator, SqlWrite, Union


def fuse(network: Network) -> tuple[Fragment, ...]:
    """The fragments of a network, each after those it reads; linear in the network."""
    return _Fusion(network).fragments()


class _Fusion:
    def __init__(self, network: Network) -> None:
        self._network = network
        self._writes = [one for one in network.operators if isinstance(one, SqlWrite)]
        self._working = [one for one in network.operators if not isinstance(one, SqlWrite)]
        self._passed_on = {write.name: write.input.stream for write in self._writes}
        self._heavy: dict[str, bool] = {stream.name: False for stream in network.streams}
        self._cut: set[str] = set()

    def _real(self, stream: str) -> str:
        """The stream whose rows these are: a database write hands on what it reads."""
        while stream in self._passed_on:
            stream = self._passed_on[stream]
        return stream

    def _inputs(self, operator: Operator) -> list[str]:
        return [self._real(input.stream) for input in operator.inputs]

    def fragments(self) -> tuple[Fragment, ...]:
        wanted = self._wanted_results()
        readers = self._reader_counts()
        for operator in self._working:
            self._cut_before(operator)
            heavy = (
                operator.stateful
                or operator.opaque
                or any(self._heavy[one] and one not in self._cut for one in self._inputs(operator))
            )
            for stream in operator.outputs:
                self._heavy[stream] = heavy
                if heavy and readers.get(stream, 0) + (stream in wanted) > 1:
                    self._cut.add(stream)
        return tuple(self._fragment(stream) for stream in self._order(wanted))

    def _wanted_results(self) -> set[str]:
        sunk = {
            self._real(query.stream) for query in self._network.queries if query.sink is not None
        }
        return sunk | {self._real(write.input.stream) for write in self._writes}

    def _reader_counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for operator in self._working:
            for stream in self._inputs(operator):
                counts[stream] = counts.get(stream, 0) + 1
        return counts

    def _cut_before(self, operator: Operator) -> None:
        heavy = {
            one for one in self._inputs(operator) if self._heavy[one] and one not in self._cut
        }
        if operator.stateful or (isinstance(operator, Union) and len(heavy) > 1):
            self._cut |= heavy

    def _order(self, wanted: set[str]) -> list[str]:
        ends = wanted | self._cut
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
            writes=tuple(one for one in self._writes if self._real(one.input.stream) == output),
            queries=tuple(
                query.name
                for query in self._network.queries
                if self._real(query.stream) == output
            ),
            is_read=output in self._cut,
        )

    def _cone(self, output: str) -> tuple[tuple[str, ...], tuple[Operator, ...]]:
        producers = self._network.producers
        inputs: set[str] = set()
        inside: set[str] = set()
        waiting = [output]
        while waiting:
            stream = waiting.pop()
            if stream not in producers or (stream in self._cut and stream != output):
                inputs.add(stream)
            elif producers[stream].name not in inside:
                inside.add(producers[stream].name)
                waiting += self._inputs(producers[stream])
        operators = tuple(one for one in self._working if one.name in inside)
        return tuple(sorted(inputs)), operators
