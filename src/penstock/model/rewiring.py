"""Operators put behind other streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.model.operators import (
    Aggregate,
    Filter,
    Input,
    Map,
    Operator,
    PythonOperator,
    SqlWrite,
    Switch,
    TableJoin,
    Union,
    WindowJoin,
)
from penstock.model.retime import Retime
from penstock.model.slices import FromSlices


def rewire(operator: Operator, inputs: tuple[Input, ...]) -> Operator:
    """The same operator reading ``inputs`` instead.

    >>> from penstock.model.schema import Schema, Shape
    >>> a, b, c = (Input(name, Shape(Schema.parse("n int"))) for name in "abc")
    >>> [one.stream for one in rewire(Union("all", (a, b)), (a, c)).inputs]
    ['a', 'c']
    """
    match operator:
        case WindowJoin():
            return replace(operator, left=inputs[0], right=inputs[1])
        case Union():
            return replace(operator, branches=inputs)
        case Filter() | Map() | Aggregate() | TableJoin() | SqlWrite() | Switch():
            return replace(operator, input=inputs[0])
        case PythonOperator() | Retime() | FromSlices():
            return replace(operator, input=inputs[0])
    raise TypeError(f"{operator.kind} cannot be rewired")


def read_under(operator: Operator, names: Mapping[str, str]) -> Operator:
    """The operator, reading streams under their new names; itself if it reads none of them."""
    inputs = tuple(
        Input(names.get(stream.stream, stream.stream), stream.shape) for stream in operator.inputs
    )
    return operator if inputs == operator.inputs else rewire(operator, inputs)


def copy_operator(operator: Operator, name: str) -> Operator:
    """The same operator under another name, for others that read it."""
    if isinstance(operator, Retime):
        return replace(operator, name=name, is_copy=True)
    return replace(operator, name=name)
