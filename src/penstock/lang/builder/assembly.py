"""From flows to a network: every step gets its final name and every operator reads by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from penstock.errors import InputError
from penstock.lang.builder.flow import Flow
from penstock.lang.builder.steps import Step
from penstock.lang.deployment.drafts import table_write
from penstock.lang.deployment.ends import TableSink
from penstock.model.network import Network, Query
from penstock.model.operators import Input, Operator, SqlWrite
from penstock.model.sources import ConsoleSink, Sink, Stream


def assemble(flows: Sequence[Flow], more: Sequence[Flow] = ()) -> Network:
    """The network with ``flows`` as its queries, which must all have names, and with ``more``.

    A step without a name is called ``<query>_<kind>`` after the query it belongs to, the first if
    it belongs to several; a second one of the same name gets ``_2`` after it. A flow used twice
    becomes one operator read twice.
    """
    assembly = _Assembly()
    for flow in more:
        assembly.add_behind(flow)
    queries = tuple(assembly.query(flow) for flow in flows)
    return Network(tuple(assembly.streams.values()), tuple(assembly.operators.values()), queries)


class _Assembly:
    """The network so far."""

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        self.operators: dict[str, Operator] = {}
        self._names: dict[Step, str] = {}
        self._counted: Counter[str] = Counter()

    def query(self, flow: Flow) -> Query:
        """Adds all that ``flow`` needs; gives the query."""
        assert flow.name is not None
        self.add_behind(flow)
        name, outlet = self._stream(flow), flow.outlet
        for write in table_write(flow.name, Input(name, flow.shape), outlet.sink):
            self._add(write)
        sink = self._sink(flow)
        return Query(
            flow.name,
            name,
            sink,
            outlet.max_latency_us,
            outlet.on,
            self._text(flow),
            outlet.groups,
            outlet.engine,
            outlet.join,
            outlet.spread,
        )

    def _sink(self, flow: Flow) -> Sink | None:
        made = flow.made_by
        sink = flow.outlet.sink
        written = made.operators[-1] if isinstance(made, Step) else None
        if not isinstance(written, SqlWrite):
            return None if isinstance(sink, TableSink) else sink
        if sink not in (None, ConsoleSink()):
            raise InputError(
                f"query {flow.name} already goes to table {written.table}",
                hint="Remove .to(…), or .write(…).",
            )
        return None

    def add_behind(self, flow: Flow) -> None:
        """Adds the steps behind ``flow``, each after those it reads."""
        # Not by recursion: a chain of steps may be longer than the stack is deep.
        waiting: list[tuple[Flow, str, bool]] = [(flow, flow.name or flow.stream, False)]
        while waiting:
            one, group, complete = waiting.pop()
            made = one.made_by
            if isinstance(made, Stream):
                self._add_stream(made)
            elif complete:
                self._add_step(made, group)
            elif made not in self._names:
                inner = made.name or group
                waiting.append((one, group, True))
                waiting += [(read, inner, False) for read in reversed([*made.reads.values()])]

    def _add_stream(self, stream: Stream) -> None:
        if self.streams.setdefault(stream.name, stream) != stream:
            raise InputError(
                f"two different streams are called {stream.name}", hint="Rename one of them."
            )

    def _add_step(self, step: Step, group: str) -> None:
        if step in self._names:
            return
        self._names[step] = step.name or self._fresh(f"{group}_{step.operators[-1].kind}")
        streams = {name: self._stream(flow) for name, flow in step.reads.items()}
        for operator in step.finished(self._names[step], streams):
            self._add(operator)

    def _fresh(self, wanted: str) -> str:
        name = wanted
        while name in self.operators:
            self._counted[wanted] += 1
            name = f"{wanted}_{self._counted[wanted] + 1}"
        return name

    def _add(self, operator: Operator) -> None:
        if self.operators.setdefault(operator.name, operator) != operator:
            raise InputError(
                f"two different flows are called {operator.name}", hint="Rename one of them."
            )

    def _stream(self, flow: Flow) -> str:
        made = flow.made_by
        if isinstance(made, Stream):
            return made.name
        return self._names[made] + flow.stream[len(made.label) :]

    def _text(self, flow: Flow) -> str:
        """The SQL of a query that was written so, if it reads by the streams' own names."""
        made = flow.made_by
        if isinstance(made, Stream):
            return ""
        reads = made.reads.items()
        return made.sql if all(name == self._stream(read) for name, read in reads) else ""
