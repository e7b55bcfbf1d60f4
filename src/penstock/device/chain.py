"""The chain of operators behind a query, and what of it a device can run."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.device.steps import DeviceStep, step_of
from penstock.errors import InputError
from penstock.model.devices import DeviceQuery, GivenCost
from penstock.model.network import Network
from penstock.model.operators import (
    Aggregate,
    Filter,
    Map,
    Operator,
    SqlRead,
    TableJoin,
    WindowJoin,
)
from penstock.model.schema import Shape
from penstock.power.problem import (
    DEVICE_TABLE,
    SERVER_ONLY,
    STREAM_JOIN,
    ChainOperator,
    ChainQuery,
)


@dataclass(frozen=True)
class Chain:
    """Operators from a stream to the root of a query; ``steps`` as devices run them.

    Where a device cannot run an operator, its step is what is wrong with it.
    """

    query: str
    source: str
    source_shape: Shape
    operators: tuple[Operator, ...]
    steps: tuple[DeviceStep | InputError, ...]

    def shape_at(self, cut: int) -> Shape:
        """What is broadcast with this cut."""
        return self.operators[cut - 1].output if cut else self.source_shape

    def stream_at(self, cut: int) -> str:
        """The stream that is broadcast with this cut."""
        return self.operators[cut - 1].name if cut else self.source

    def shipped(self, cut: int) -> tuple[DeviceStep, ...]:
        """The steps of a device with this cut; raises where one of them is none of its."""
        found = []
        for operator, step in zip(self.operators[cut:], self.steps[cut:], strict=True):
            if isinstance(step, InputError):
                raise InputError(
                    f"{operator.name} of query {self.query} cannot be shipped: {step.what}",
                    hint=step.hint,
                )
            found.append(step)
        return tuple(found)

    def as_query(
        self, asked: DeviceQuery, costs: tuple[GivenCost, ...] | None = None
    ) -> ChainQuery:
        """The chain for planners; what is not known costs nothing and changes nothing."""
        known = costs or tuple(
            asked.costs.get(operator.name, GivenCost()) for operator in self.operators
        )
        operators = (
            self._planned(at, cost, asked.costs.get(self.operators[at].name, GivenCost()))
            for at, cost in enumerate(known)
        )
        return ChainQuery(self.query, self.source, asked.devices, tuple(operators), asked.cut)

    def _planned(self, at: int, cost: GivenCost, given: GivenCost) -> ChainOperator:
        values = {}
        for key in ("cycles", "selectivity", "projectivity"):
            written, measured = getattr(given, key), getattr(cost, key)
            values[key] = written if written is not None else measured
        step = self.steps[at]
        why = step.what if isinstance(step, InputError) else ""
        return ChainOperator(
            0.0 if values["cycles"] is None else values["cycles"],
            1.0 if values["selectivity"] is None else values["selectivity"],
            1.0 if values["projectivity"] is None else values["projectivity"],
            self.kind(at),
            self.operators[at].name,
            why,
        )

    def kind(self, at: int) -> str:
        """What planners call the operator at this place."""
        operator = self.operators[at]
        if isinstance(operator, WindowJoin):
            return STREAM_JOIN
        if isinstance(operator, TableJoin) and operator.table.on_devices:
            return DEVICE_TABLE
        if isinstance(self.steps[at], InputError):
            return SERVER_ONLY
        kinds = ((Filter, "select"), (Map, "project"), (Aggregate, "aggregate"))
        found = (kind for type, kind in kinds if isinstance(operator, type))
        return next(found, "join-table")


def chain_of(network: Network, query: str) -> Chain:
    """The chain behind a query: where an operator reads several streams, along the first."""
    stream, operators = network.query(query).stream, list[Operator]()
    while (producer := network.producers.get(stream)) is not None:
        operators.insert(0, producer)
        stream = producer.inputs[0].stream
    steps = tuple(map(_step, operators))
    return Chain(query, stream, network.shapes[stream], tuple(operators), steps)


def _step(operator: Operator) -> DeviceStep | InputError:
    if not isinstance(operator, Filter | Map | Aggregate | TableJoin) or isinstance(
        operator, SqlRead
    ):
        return InputError(
            f"a {operator.kind} runs on the server only",
            hint="Cut the query behind it, or write it in another way.",
        )
    try:
        return step_of(operator)
    except InputError as error:
        return error
