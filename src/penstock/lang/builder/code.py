"""Printing a deployment as the Python program that builds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from keyword import iskeyword

from penstock.lang.builder.end_code import sink_code, source_code, table_code
from penstock.lang.builder.method_code import Calls, method_calls
from penstock.lang.builder.writing import assigned, call, literal
from penstock.lang.deployment.ends import TableSink
from penstock.lang.deployment.grouping import Group, grouped, is_write, joined_tables, own_stream
from penstock.lang.deployment.outside import event_time_text
from penstock.lang.deployment.sizes import memory_text
from penstock.model.durations import duration_text
from penstock.model.network import Deployment, Network, Query
from penstock.model.operators import Operator, Switch
from penstock.model.parts import spread_settings
from penstock.model.settings import values_of
from penstock.model.sources import ConsoleSink, Stream


def python_code(deployment: Deployment) -> str:
    """A program whose ``deployment`` is this one, but for the texts queries were written as.

    Passwords in database URLs become environment variables to set.
    """
    network = deployment.network
    variables = Variables()
    lines = ["import penstock as ps", ""]
    lines += [_stream(stream, variables) for stream in network.streams]
    lines += [
        assigned(variables.table(joined_table.name), table_code(joined_table), [])
        for joined_table in joined_tables(network.operators)
    ]
    queries = {own_stream(query, network): query for query in network.queries}
    for group in _named_groups(network):
        lines += _GroupCode(group, queries.get(group.root.name), variables).lines()
    return "\n".join([*lines, _deployment(deployment, variables), ""])


class Variables:
    """The variables of the program: one for every stream and table, all different."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], str] = {}
        self._taken = {"ps", "deployment"}

    def flow(self, stream: str) -> str:
        """The text that stands for a stream."""
        return self._texts.get(("stream", stream)) or self._new("stream", stream)

    def table(self, name: str) -> str:
        """The text that stands for a table."""
        return self._texts.get(("table", name)) or self._new("table", name)

    def switch(self, switch: Switch) -> str:
        """A variable for all cases of a switch; the streams stand for its parts."""
        variable = self._new("switch", switch.name)
        for label, _ in switch.cases:
            text = f"{variable}[{literal(label)}]"
            self._texts["stream", f"{switch.name}_{label}"] = text
        return variable

    def _new(self, kind: str, name: str) -> str:
        variable = f"{name}_" if iskeyword(name) else name
        while variable in self._taken:
            variable += "_"
        self._taken.add(variable)
        self._texts[kind, name] = variable
        return variable


def _named_groups(network: Network) -> tuple[Group, ...]:
    """Groups inside which building gives every operator the name it has."""
    roots = {query.stream for query in network.queries}
    while True:
        groups = grouped(network, roots)
        odd = [name for group in groups for name in _misnamed(group)]
        if not odd:
            return groups
        roots.update(odd)


def _misnamed(group: Group) -> list[str]:
    """The operators that would get another name than they have."""
    counted: Counter[str] = Counter()
    odd = []
    for operator in _reading_order(group):
        if operator is group.root:
            continue
        wanted = f"{group.root.name}_{operator.kind}"
        counted[wanted] += 1
        expected = wanted if counted[wanted] == 1 else f"{wanted}_{counted[wanted]}"
        odd += [] if operator.name == expected else [operator.name]
    return odd


def _reading_order(group: Group) -> Iterator[Operator]:
    """The group's operators in the order in which a network is assembled from flows."""
    own = {operator.name: operator for operator in group.operators}
    waiting, done = [(group.root, False)], set[str]()
    while waiting:
        operator, complete = waiting.pop()
        if operator.name in done:
            continue
        if complete:
            done.add(operator.name)
            yield operator
            continue
        waiting.append((operator, True))
        reads = [own[stream.stream] for stream in operator.inputs if stream.stream in own]
        waiting += [(read, False) for read in reversed(reads)]


class _GroupCode:
    """The statements that build one group."""

    def __init__(self, group: Group, query: Query | None, variables: Variables) -> None:
        self._group = group
        self._query = query
        self._variables = variables
        self._chained = _chained(group)
        self._built: dict[str, tuple[str, Calls]] = {}

    def lines(self) -> list[str]:
        """The statements, each after those it needs."""
        lines = []
        for operator in _reading_order(self._group):
            head, calls = self._calls(operator)
            if operator is self._group.root:
                calls = [*calls, *self._ending(operator)]
            if operator.name in self._chained:
                self._built[operator.name] = head, calls
            else:
                lines.append(assigned(self._variable(operator), head, calls))
        return lines

    def _calls(self, operator: Operator) -> tuple[str, Calls]:
        first = operator.inputs[0].stream
        made = method_calls(operator, self._variables.flow, self._variables.table)
        head, before = self._built.get(first) or (self._variables.flow(first), [])
        return head, [*before, *made]

    def _variable(self, operator: Operator) -> str:
        if isinstance(operator, Switch):
            return self._variables.switch(operator)
        return self._variables.flow(operator.name)

    def _ending(self, root: Operator) -> Calls:
        if isinstance(root, Switch):
            return []
        outlet = self._outlet(self._query) if self._query else []
        ending: Calls = [("to", outlet)] if outlet else []
        if self._query and self._query.groups:
            groups = self._query.groups
            ending.append(("in_groups", [literal(groups.count), *map(literal, groups.keys)]))
        return [("named", [literal(root.name)]), *ending]

    def _outlet(self, query: Query) -> list[str]:
        write = self._group.write
        sink = TableSink(write.table, write.database) if write else query.sink
        promises = []
        if query.max_latency_us is not None:
            promises.append(f"max_latency={literal(duration_text(query.max_latency_us))}")
        if query.on is not None:
            promises.append(f"on={literal(query.on)}")
        if query.engine is not None:
            promises.append(f"engine={literal(query.engine)}")
        if query.spread is not None:
            promises.append(f"join={literal(spread_settings(query.spread))}")
        elif query.join is not None:
            promises.append(f"join={literal(query.join)}")
        return [] if sink == ConsoleSink() and not promises else [sink_code(sink), *promises]


def _chained(group: Group) -> set[str]:
    """The operators that go on in one statement: read once, as somebody's first input."""
    inputs = [
        (operator.name, stream.stream) for operator in group.operators for stream in operator.inputs
    ]
    reads = Counter(stream for _, stream in inputs)
    firsts = {operator.inputs[0].stream for operator in group.operators}
    own = {operator.name for operator in group.operators} - {group.root.name}
    return {name for name in own if reads[name] == 1 and name in firsts}


def _stream(stream: Stream, variables: Variables) -> str:
    arguments = [literal(stream.name), f"source={source_code(stream.source)}"]
    arguments.append(f"schema={literal(str(stream.read_schema))}")
    if stream.parsing.columns:
        pairs = (f"{literal(name)}: {literal(column)}" for column, name in stream.parsing.columns)
        arguments.append(f"columns={{{', '.join(pairs)}}}")
    if stream.parsing.time_format:
        arguments.append(f"time_format={literal(stream.parsing.time_format)}")
    if stream.shape.event_time:
        arguments.append(f"event_time={literal(event_time_text(stream))}")
    for name in ("lateness", "idle_timeout", "ahead"):
        us = getattr(stream, f"{name}_us")
        if us is not None:
            arguments.append(f"{name}={literal(duration_text(us))}")
    if stream.on is not None:
        arguments.append(f"on={literal(stream.on)}")
    return assigned(variables.flow(stream.name), call("ps.stream", arguments), [])


def _deployment(deployment: Deployment, variables: Variables) -> str:
    network = deployment.network
    queries = [variables.flow(own_stream(query, network)) for query in network.queries]
    arguments = [*queries, f"name={literal(deployment.name)}"]
    streams = [variables.flow(name) for name in _extra_streams(network)]
    if streams:
        arguments.append(f"streams=[{', '.join(streams)}]")
    if deployment.nodes:
        nodes = {
            node.name: {"cores": node.cores, "memory": memory_text(node.memory_bytes)}
            | ({} if node.parent is None else {"parent": node.parent})
            for node in deployment.nodes
        }
        arguments.append(f"nodes={literal(nodes)}")
    if deployment.placement:
        arguments.append(f"placement={literal(deployment.placement)}")
    if deployment.balance:
        arguments.append(f"balance={literal(values_of(deployment.balance))}")
    if not deployment.share:
        arguments.append("share=False")
    return f"deployment = {call('ps.deployment', arguments)}"


def _extra_streams(network: Network) -> list[str]:
    """Streams to mention: those no query reads, and all from outside where their order matters."""
    read = network.upstream(query.stream for query in network.queries)
    outside = [stream.name for stream in network.streams]
    mentioned = outside if len(outside) > 1 else [name for name in outside if name not in read]
    unread = [name for name in _results(network) if name not in read]
    return [*mentioned, *unread]


def _results(network: Network) -> list[str]:
    """The streams of operators that no operator reads, queries' own writes left out."""
    producers = network.producers.items()
    ends = [(name, operator) for name, operator in producers if not network.readers[name]]
    return [name for name, operator in ends if not is_write(operator, network)]
