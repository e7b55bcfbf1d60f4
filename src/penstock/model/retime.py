"""Another event time for the rows of a stream: judged anew, where the stream ends in a channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.errors import InputError
from penstock.model.durations import duration_text
from penstock.model.operators import (
    Filter,
    Input,
    Map,
    Operator,
    PythonOperator,
    SqlRead,
    SqlWrite,
    Switch,
    TableJoin,
)
from penstock.model.schema import Shape

_ORDERED = (Filter, Map, Switch, PythonOperator, TableJoin, SqlWrite)
"""What leaves rows in the order in which they came."""


@dataclass(frozen=True)
class Retime(Operator):
    """Rows with ``event_time`` as their event time, without those that come too late by it.

    A row is late if it is more than ``lateness_us`` behind the latest one before it; such rows, and
    those without a time, are set aside, as where rows come in from outside. ``is_copy`` says that
    this has been done before, by another of which this is a copy.
    """

    input: Input
    event_time: str
    lateness_us: int
    is_copy: bool = False
    kind: ClassVar[str] = "retime"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lateness_us < 0:
            raise InputError(f"the lateness of {self.name} is below zero", hint="Give 0s or more.")
        object.__setattr__(self, "event_time", self.output.event_time)

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (self.input,)

    @property
    def output(self) -> Shape:
        return Shape.timed(self.input.schema, self.event_time)

    @property
    def details(self) -> str:
        return f"by {self.event_time}, lateness {duration_text(self.lateness_us)}"


def keeps_order(operator: Operator) -> bool:
    """Whether rows leave an operator in the order in which they came."""
    # Rows looked up in a database come back in the order of their keys.
    return isinstance(operator, (*_ORDERED, Retime)) and not isinstance(operator, SqlRead)


def no_order(retime: str, source: str, what: str) -> InputError:
    """The error for a stream whose rows have no one order by which they could be late."""
    return InputError(
        f"{retime} has an event time of its own, and reads {source}, {what}: its rows have no one "
        "order by which they could be late",
        hint="Give event_time to a stream that comes from files or a generator by WHERE, columns, "
        "tables or python alone, and do the rest in a stream that reads that one. For a topic of "
        "Kafka give the expression to its source, which judges every partition by itself.",
    )
