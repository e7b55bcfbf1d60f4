"""What stands behind a flow: operators whose final names are not known yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from penstock.model.operators import Input, Operator

if TYPE_CHECKING:
    from penstock.lang.builder.flow import Flow


@dataclass(frozen=True, eq=False)
class Step:
    """Operators that make one flow from others; two steps are the same only if they are one.

    The last operator is called ``label`` and gives the result, the names of the others begin with
    ``label``; all are names for the time being, replaced when a network is assembled. ``reads``
    are the flows behind the inputs, by the names the inputs use. ``base`` is the name of the
    nearest flow that has one, ``name`` what the user called this, ``sql`` the text it was written
    as.
    """

    operators: tuple[Operator, ...]
    reads: Mapping[str, Flow]
    base: str
    name: str | None = None
    sql: str = ""

    @property
    def label(self) -> str:
        return self.operators[-1].name

    def named(self, name: str) -> Step:
        """Another step that does the same under a name of its own."""
        unchanged = {alias: alias for alias in self.reads}
        return replace(self, operators=self.finished(name, unchanged), base=name, name=name)

    def finished(self, name: str, streams: Mapping[str, str]) -> tuple[Operator, ...]:
        """The operators called after ``name``, reading ``streams`` for the names in ``reads``."""
        names = {
            operator.name: name + operator.name[len(self.label) :] for operator in self.operators
        }
        outputs = {
            output: names[operator.name] + output[len(operator.name) :]
            for operator in self.operators
            for output in operator.outputs
        }
        return tuple(
            renamed(operator, names[operator.name], {**outputs, **streams})
            for operator in self.operators
        )


def renamed(operator: Operator, name: str, streams: Mapping[str, str]) -> Operator:
    """The operator under another name, reading other streams of the same shapes.

    >>> from penstock.model.operators import Union
    >>> from penstock.model.schema import Schema, Shape
    >>> one = Input("one", Shape(Schema.parse("kwh double")))
    >>> both = renamed(Union("both", (one, one)), "twice", {"one": "two"})
    >>> both.name, [input.stream for input in both.inputs]
    ('twice', ['two', 'two'])
    """
    changed: dict[str, Any] = {
        field.name: _moved(getattr(operator, field.name), streams) for field in fields(operator)
    }
    return replace(operator, **(changed | {"name": name}))


def _moved(value: object, streams: Mapping[str, str]) -> object:
    if isinstance(value, Input):
        return Input(streams.get(value.stream, value.stream), value.shape)
    if isinstance(value, tuple):
        return tuple(_moved(item, streams) for item in value)
    return value
