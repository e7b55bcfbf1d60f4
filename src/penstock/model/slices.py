"""Slices: what windows keep of their rows, given out so that other windows are made of it.

The windows of an aggregate are made up of slices, stretches of time that no window divides. Of
every slice and group the aggregate keeps states, which can be merged to those of any longer
stretch. So whoever wants other windows over the same rows needs the slices only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import gcd
from typing import ClassVar

from penstock.errors import InputError
from penstock.model.canonical_stream import CanonicalStream
from penstock.model.expressions import Column, Expression, type_of
from penstock.model.operators import Aggregate, Input, Operator
from penstock.model.schema import Shape
from penstock.model.windows import Window


def slice_of(window: Window) -> Window:
    """The longest stretch of which all windows are made up whole, as a window of its own.

    >>> slice_of(Window(6 * 60, 4 * 60)).size_us
    120
    """
    return Window.of(gcd(window.size_us, window.slide_us))


def slices_name(aggregate: str) -> str:
    """The stream of an aggregate's slices.

    >>> slices_name("sums_aggregate")
    'sums_aggregate_slices'
    """
    return f"{aggregate}_slices"


@dataclass(frozen=True)
class SlicedStates:
    """What the slices of an aggregate look like as a stream.

    Its keys, the bounds, and ``states``: the columns of each of its functions, by result.
    """

    shape: Shape
    states: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Slices(Operator):
    """Gives the slices of an aggregate, each once the watermark has passed it.

    The aggregate runs in the same fragment: what it keeps of rows is given as it is. ``shape`` is
    that of the slices: keys, bounds, and the states of every aggregate function.
    """

    of: Aggregate
    shape: Shape
    kind: ClassVar[str] = "slices"
    stateful: ClassVar[bool] = True

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self.of.inputs

    @property
    def output(self) -> Shape:
        return self.shape

    @property
    def window(self) -> Window:
        """The slices as windows."""
        assert isinstance(self.of.window, Window), "sessions have no slices"
        return slice_of(self.of.window)

    @property
    def details(self) -> str:
        return f"of {self.of.name}, {self.window}"


@dataclass(frozen=True)
class FromSlices(Operator):
    """Puts the windows of an aggregate together from the slices of another one.

    ``whole`` is the aggregate it stands for, over the rows that the other one reads: what it gives
    is the same, row by row. ``keys`` are its keys over the columns of slices, ``states`` the
    columns that hold the states of each of its functions. ``meaning`` is its canonical form, which
    slices do not tell.
    """

    input: Input
    whole: Aggregate
    keys: tuple[tuple[str, Expression], ...]
    states: tuple[tuple[str, ...], ...]
    meaning: CanonicalStream
    kind: ClassVar[str] = "from_slices"
    stateful: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        schema = self.input.schema
        types = [(name, type_of(key, schema)) for name, key in self.keys]
        wanted = [(field.name, field.type) for field in self.whole.output.schema]
        fits = types == wanted[: len(types)] and len(types) == len(self.whole.keys)
        if not fits or len(self.states) != len(self.whole.aggregates):
            raise InputError(f"{self.name} cannot be put together from {self.input.stream}")

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (self.input,)

    @property
    def output(self) -> Shape:
        return self.whole.output

    @property
    def details(self) -> str:
        return f"{self.whole.details}, from {self.input.stream}"


def over_rows(aggregate: Aggregate) -> Callable[[Expression], Expression | None]:
    """What turns expressions over the keys of slices into such over the rows they are made of."""
    keys = {name.lower(): key for name, key in aggregate.keys}
    return lambda part: keys.get(part.name.lower()) if isinstance(part, Column) else None


def given_slices(operators: tuple[Operator, ...]) -> Mapping[str, Slices]:
    """The streams of slices that some operators give, by name."""
    return {step.name: step for step in operators if isinstance(step, Slices)}
