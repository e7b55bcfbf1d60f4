"""One notion of *the same work*: the canonical expression of every stream, and its signature.

The rows of every stream are described as *the rows of a relation for which some conditions hold*,
and its columns as expressions over that relation. Filters and maps disappear into that
description, wherever they stood; only outside streams, groups, joins, unions and code make
relations of their own. Names of queries, operators, aliases and columns are nowhere in it.

Equal signature means: the same rows at the same event times, whatever the columns are called and
in whatever order they come. The reverse holds for the usual spellings, not for everything that
could be proved equal. A signature begins with the version of this description.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.model.aggregates import AggregateCall
from penstock.model.canonical_expressions import (
    conditions_of,
    describe,
    digest,
    in_order,
    normalise,
    over_columns,
    shorten,
    substitute,
)
from penstock.model.canonical_stream import (
    CanonicalStream,
    Columns,
    Conditions,
    as_text,
    signed,
    texts,
)
from penstock.model.encoding import Plain, encode, encode_fields
from penstock.model.expressions import (
    TRUE,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    transform,
)
from penstock.model.fragments import Fragment
from penstock.model.network import Network
from penstock.model.operators import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Filter,
    Input,
    Map,
    Operator,
    SqlWrite,
    Switch,
    TableJoin,
    Union,
    WindowJoin,
)
from penstock.model.schema import Shape
from penstock.model.slices import FromSlices, Slices
from penstock.model.sources import CsvLayout, RunningSource, Stream, Table
from penstock.model.types import DataType
from penstock.model.windows import AnyWindow


@dataclass(frozen=True)
class Signatures:
    """The signature of every stream (outside or made), operator and query, by name."""

    streams: Mapping[str, str]
    operators: Mapping[str, str]
    queries: Mapping[str, str]


def signatures(network: Network) -> Signatures:
    """The signatures of everything in a network; takes time linear in its operators."""
    canonical = canonical_streams(network)
    streams = {name: stream.signature for name, stream in canonical.items()}
    return Signatures(
        streams,
        {operator.name: _work(operator, canonical) for operator in network.operators},
        {query.name: streams[query.stream] for query in network.queries},
    )


def canonical_streams(
    network: Network, known: Mapping[str, CanonicalStream] | None = None
) -> dict[str, CanonicalStream]:
    """Every stream of a network, outside or made, in its canonical form.

    ``known`` says what some of its outside streams are: those that others make.
    """
    outside = {stream.name: _from_outside(stream) for stream in network.streams}
    return _derive(network.operators, outside | dict(known or {}))


def plan_signature(network: Network, fragment: Fragment) -> str:
    """Equal for fragments that can go on from each other's state.

    State holds columns by name and in order, so both count here, and which channels are read.
    """
    streams = {stream.name: stream for stream in network.streams}
    groups = network.groups(fragment.output)
    return signed(
        as_text(
            {
                "inputs": list(fragment.inputs),
                "sources": [_definition(streams[n]) for n in fragment.inputs if n in streams],
                # What it gives besides is no part of its state.
                "operators": _by_number(
                    [step for step in fragment.operators if not isinstance(step, Slices)]
                ),
                "output": fragment.output,
                **({} if groups is None else {"groups": encode(groups)}),
            }
        )
    )


def work_signature(fragment: Fragment) -> str:
    """Equal for fragments that do the same to streams of the same names, however fast they come."""
    made = _derive(fragment.operators, _known_by_name(fragment.operators))
    return signed(as_text(["work", made[fragment.output].signature, len(fragment.writes)]))


def same_operators(one: tuple[Operator, ...], other: tuple[Operator, ...]) -> bool:
    """Whether operators do the same and give the same columns in the same order.

    The last operator of each is its result; what is read from elsewhere must have the same name.
    """
    first, second = one[-1], other[-1]
    return _result_of(one) == _result_of(other) and first.output.schema == second.output.schema


def _result_of(operators: tuple[Operator, ...]) -> tuple[str, tuple[Expression, ...]]:
    made = _derive(operators, _known_by_name(operators))
    result = operators[-1]
    stream = made[next(iter(result.outputs))]
    in_place = tuple(stream.columns[name.lower()] for name in result.output.schema.names)
    return _work(result, made), in_place


def _work(operator: Operator, canonical: Mapping[str, CanonicalStream]) -> str:
    given = [canonical[name].signature for name in operator.outputs]
    if isinstance(operator, SqlWrite):
        written = encode_fields(operator, ("database", "table"))
        return signed(as_text(["write", written, given]))
    return given[0] if len(given) == 1 else signed(as_text(["outputs", given]))


def _derive(
    operators: Iterable[Operator], known: Mapping[str, CanonicalStream]
) -> dict[str, CanonicalStream]:
    """What is known and what the operators, each after all it reads, make of it."""
    found = dict(known)
    for operator in operators:
        found.update(_outputs(operator, [found[stream.stream] for stream in operator.inputs]))
    return found


def _outputs(operator: Operator, inputs: list[CanonicalStream]) -> dict[str, CanonicalStream]:
    if isinstance(operator, Switch):
        return _switched(operator, inputs[0])
    match operator:
        case Filter(predicate=predicate):
            stream = _filtered(inputs[0], inputs[0].meaning(predicate))
        case Map(columns=columns):
            stream = _mapped(inputs[0], operator, columns)
        case SqlWrite():
            stream = inputs[0]
        case Aggregate():
            stream = _grouped(operator, inputs[0])
        case FromSlices(meaning=meaning):
            stream = meaning
        case WindowJoin():
            stream = _joined(operator, *inputs)
        case TableJoin():
            stream = _enriched(operator, inputs[0])
        case Union():
            stream = _united(operator, inputs)
        case _:
            return _opaque(operator, inputs)
    return {operator.name: stream}


def _filtered(stream: CanonicalStream, condition: Expression) -> CanonicalStream:
    return replace(
        stream, conditions=in_order((*stream.conditions, *conditions_of(normalise(condition))))
    )


def _switched(operator: Switch, stream: CanonicalStream) -> dict[str, CanonicalStream]:
    """Each case is a filter: its condition is true, and none before it was."""
    found = {}
    for name, (_, condition) in zip(operator.outputs, operator.cases, strict=True):
        met = stream.meaning(condition)
        found[name] = _filtered(stream, met)
        stream = _filtered(stream, Call("not", (Call("<=>", (met, TRUE)),)))
    return found


def _mapped(
    stream: CanonicalStream, operator: Map, columns: tuple[tuple[str, Expression], ...]
) -> CanonicalStream:
    meanings = {name.lower(): _stored(stream.meaning(computed)) for name, computed in columns}
    return _shaped(stream.relation, stream.conditions, meanings, operator.output)


def _stored(meaning: Expression) -> Expression:
    """A column that is always null is kept as a string."""
    return Cast(meaning, DataType.STRING) if meaning == Literal(None) else meaning


@dataclass(frozen=True)
class GroupedRows:
    """An aggregate in canonical form, taken apart: the rows it groups, by what, what it computes.

    ``calls`` have the function and its arguments, as text, by the names of their results.
    """

    rows: CanonicalStream
    window: AnyWindow
    keys: Mapping[str, Expression]
    calls: Mapping[str, tuple[str, str]]


def grouped_rows(operator: Aggregate, stream: CanonicalStream) -> GroupedRows:
    """What an aggregate makes of a stream, taken apart."""
    return GroupedRows(
        stream,
        operator.window,
        {name: _stored(stream.meaning(key)) for name, key in operator.keys},
        {
            name: (call.function, as_text(_call(call, stream)[1:]))
            for name, call in operator.aggregates
        },
    )


def _grouped(operator: Aggregate, stream: CanonicalStream) -> CanonicalStream:
    """Groups of rows; conditions of keys hold for whole groups, so they are those of the result."""
    keys = {name.lower(): _stored(stream.meaning(key)) for name, key in operator.keys}
    of_groups = {name: Column(f"key {describe(key)}") for name, key in keys.items()}
    schema = operator.output.schema
    exact = {
        describe(key): of_groups[name]
        for name, key in keys.items()
        # Zeros of both signs are one group.
        if schema[name].type is not DataType.DOUBLE
    }
    moved = [(met, over_columns(met, exact)) for met in stream.conditions]
    rows = replace(stream, conditions=tuple(met for met, over in moved if over is None))
    relation = as_text(
        {
            "group": rows.rows,
            "time": describe(stream.times[0][0]),
            "window": encode(operator.window),
            "keys": texts(in_order(keys.values())),
        }
    )
    columns: dict[str, Expression] = dict(of_groups)
    columns |= {bound: Column(bound) for bound in (WINDOW_START, WINDOW_END)}
    for name, call in operator.aggregates:
        columns[name.lower()] = shorten(Column(as_text(_call(call, stream))))
    after = in_order(shorten(normalise(over)) for _, over in moved if over is not None)
    return _shaped(relation, after, columns, operator.output)


def _call(call: AggregateCall, stream: CanonicalStream) -> list[Plain]:
    """An aggregate over the stream's relation; counting a constant is counting rows."""
    arguments = [stream.meaning(argument) for argument in call.arguments]
    counted = call.function == "count" and len(arguments) == 1
    if counted and isinstance(arguments[0], Literal) and arguments[0].value is not None:
        arguments = []
    rest = encode_fields(call, leave_out=("function", "arguments"))
    return [call.function, texts(arguments), *([rest] if rest else [])]


def _joined(operator: WindowJoin, left: CanonicalStream, right: CanonicalStream) -> CanonicalStream:
    """An inner join is the same from either side: the one that comes first as text is taken."""
    forward = _join_of(operator, left, right, ("first.", "second."))
    if operator.join != "inner":
        return forward
    backward = _join_of(operator, left, right, ("second.", "first."))
    return min(forward, backward, key=lambda join: (join.relation, texts(join.conditions)))


def _join_of(
    operator: WindowJoin, left: CanonicalStream, right: CanonicalStream, marks: tuple[str, str]
) -> CanonicalStream:
    """The join with its sides in the order of ``marks``.

    Whether rows are checked before or after an inner join, or before a left join or by its ON where
    they are right ones, is the same: all conditions are listed in one place.
    """
    columns = _marked(left, marks[0]) | _marked(right, marks[1])
    on = operator.condition if operator.condition is not None else TRUE
    equal = [Call("=", (Column(one), Column(other))) for one, other in operator.equal]
    asked = [part for each in (*equal, on) for part in conditions_of(substitute(each, columns))]
    asked += _moved(right, marks[1])
    kept = _moved(left, marks[0])
    within, after = (asked, kept) if operator.join == "left" else ([], [*asked, *kept])
    bound = [operator.bound.lower_us, operator.bound.upper_us]
    sides = [_side(left), _side(right)]
    if marks[0] == "second.":
        sides.reverse()
        bound = [-bound[1], -bound[0]]
    known = ("left", "right", "equal", "bound", "condition")
    relation = {
        "join": sides,
        "bound": bound,
        "on": texts(in_order(within)),
        "rest": encode_fields(operator, leave_out=known),
    }
    return _shaped(as_text(relation), in_order(after), columns, operator.output)


def _side(stream: CanonicalStream) -> list[str]:
    """A side of a join before conditions are checked: its relation and the time it is joined by."""
    return [f"#{digest(stream.relation)}", describe(stream.times[0][0])]


def _marked(stream: CanonicalStream, mark: str) -> dict[str, Expression]:
    return {name: _mark(meaning, mark) for name, meaning in stream.columns.items()}


def _moved(stream: CanonicalStream, mark: str) -> list[Expression]:
    return [_mark(condition, mark) for condition in stream.conditions]


def _mark(expression: Expression, mark: str) -> Expression:
    """The expression over a relation in which ``mark`` leads to the columns it reads."""

    def named(part: Expression) -> Expression | None:
        return Column(f"{mark}{part.name}") if isinstance(part, Column) else None

    return shorten(normalise(transform(expression, named)))


def _enriched(operator: TableJoin, stream: CanonicalStream) -> CanonicalStream:
    own = _marked(stream, "row.")
    pairs = sorted([describe(own[name.lower()]), column] for name, column in operator.equal)
    relation = as_text(
        {
            operator.kind: f"#{digest(stream.relation)}",
            "table": _table(operator.table),
            "equal": [list(pair) for pair in pairs],
            "rest": encode_fields(operator, leave_out=("input", "table", "equal", "columns")),
        }
    )
    added = {name.lower(): Column(f"table.{column}") for name, column in operator.columns}
    return _shaped(relation, in_order(_moved(stream, "row.")), own | added, operator.output)


def _united(operator: Union, inputs: list[CanonicalStream]) -> CanonicalStream:
    """Rows of all branches; a column is what it is in each branch, in the order of the branches."""
    names = [branch.schema.names for branch in operator.branches]
    branches = [
        (stream.rows, [describe(stream.columns[name.lower()]) for name in branch])
        for stream, branch in zip(inputs, names, strict=True)
    ]
    branches.sort(key=lambda branch: (branch[0], sorted(branch[1])))
    columns: dict[str, Expression] = {}
    for at, field in enumerate(operator.output.schema):
        meanings: list[Plain] = [texts[at] for _, texts in branches]
        columns[field.name.lower()] = shorten(Column(as_text([*meanings, str(field.type)])))
    rest = encode_fields(operator, leave_out=("branches",))
    relation = as_text({"union": [rows for rows, _ in branches], "rest": rest})
    return _shaped(relation, (), columns, operator.output)


def _opaque(operator: Operator, inputs: list[CanonicalStream]) -> dict[str, CanonicalStream]:
    """What code makes of rows; it may look at names and order of columns, so both count."""
    meanings: list[Plain] = [
        [
            stream.rows,
            [[name, describe(stream.columns[name.lower()])] for name in input.schema.names],
        ]
        for stream, input in zip(inputs, operator.inputs, strict=True)
    ]
    fields = encode_fields(operator, input_of=lambda _: None)
    found = {}
    for at, (name, shape) in enumerate(operator.outputs.items()):
        relation = as_text({operator.kind: meanings, "does": fields, "output": at})
        columns = {column.lower(): Column(column.lower()) for column in shape.schema.names}
        found[name] = _shaped(relation, (), columns, shape)
    return found


def _from_outside(stream: Stream) -> CanonicalStream:
    columns = {name.lower(): Column(name.lower()) for name in stream.shape.schema.names}
    return _shaped(as_text({"stream": _definition(stream)}), (), columns, stream.shape)


def _known_by_name(operators: tuple[Operator, ...]) -> dict[str, CanonicalStream]:
    """What operators read from elsewhere, known by name and shape alone."""
    own = {name for operator in operators for name in operator.outputs}
    outside = {
        input.stream: input
        for operator in operators
        for input in operator.inputs
        if input.stream not in own
    }
    return {name: _named(input) for name, input in outside.items()}


def _named(input: Input) -> CanonicalStream:
    columns = {name.lower(): Column(name.lower()) for name in input.schema.names}
    described = {"named": input.stream, "schema": encode(input.schema)}
    return _shaped(as_text(described), (), columns, input.shape)


def _definition(stream: Stream) -> Plain:
    """All of a stream but its name, which counts only where it is all there is."""
    schema = [[field.name, str(field.type)] for field in stream.shape.schema]
    layout = getattr(stream.source, "layout", CsvLayout())
    if layout.header:  # Columns are found by name, not by position.
        schema.sort()
    name = {"name": stream.name} if isinstance(stream.source, RunningSource) else {}
    return {
        **encode_fields(stream, leave_out=("name", "shape")),
        **name,
        "schema": [list(field) for field in schema],
        "event_time": stream.shape.event_time,
    }


def _table(table: Table) -> Plain:
    stored = {} if table.database is None else {"stored": table.stored_name}
    return {**encode_fields(table, leave_out=("name", "table")), **stored}


def _by_number(operators: Sequence[Operator]) -> list[Plain]:
    """Operators as plain values, with numbers for the names they have among themselves."""
    numbers = {
        name: f"{at}.{output}"
        for at, operator in enumerate(operators)
        for output, name in enumerate(operator.outputs)
    }

    def read(input: Input) -> Plain:
        return [numbers.get(input.stream, input.stream), encode(input.shape)]

    return [[operator.kind, encode_fields(operator, input_of=read)] for operator in operators]


def _shaped(
    relation: str, conditions: Conditions, columns: Columns, shape: Shape
) -> CanonicalStream:
    times: dict[Expression, int] = {}
    for time in shape.times:
        times.setdefault(columns[time.column.lower()], time.behind_us)
    return CanonicalStream(relation, conditions, columns, tuple(times.items()), shape.watermarked)
