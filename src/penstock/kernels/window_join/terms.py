"""What is joined with what: keys, times, bound, condition; and how far a join has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Literal, TypeAlias

import pyarrow as pa

from penstock.errors import InputError, listed, suggestion
from penstock.kernels.window_join.hashing import comparable_type
from penstock.model.partition_groups import PartitionGroups
from penstock.model.windows import TimeBound

Residual: TypeAlias = Callable[[pa.Table], pa.Array]
"""Which of the joined rows of a table count: true, or else false or null."""

_GROUPABLE = (pa.string(), pa.int32(), pa.int64(), pa.bool_())
"""Types of which equal keys have equal texts, and so the same group."""

_NAME_BYTES = 10


@dataclass(frozen=True)
class JoinSide:
    """One side's rows, its key columns in order, its event time, and what of it is wanted."""

    schema: pa.Schema
    keys: tuple[str, ...]
    time: str
    wanted: tuple[str, ...] | None = None
    """The columns of the result; None means all."""

    def __post_init__(self) -> None:
        for name in (*self.keys, self.time, *(self.wanted or ())):
            if name not in self.schema.names:
                raise InputError(
                    f"no column {name} to join; there are {listed(self.schema.names)}",
                    hint=suggestion(name, self.schema.names),
                )
        if not pa.types.is_timestamp(self.schema.field(self.time).type):
            found = self.schema.field(self.time).type
            raise InputError(
                f"the event time {self.time} of a join is of type {found}",
                hint="Name a column of timestamps.",
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the result that come from this side."""
        return tuple(self.schema.names) if self.wanted is None else self.wanted

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that a window of this side holds."""
        return tuple(dict.fromkeys((*self.columns, *self.keys, self.time)))


@dataclass(frozen=True)
class RunLayout:
    """How runs of a side are made: of which columns, sorted by what."""

    columns: tuple[str, ...]
    keys: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    time: str
    groups: int

    @cached_property
    def digest(self) -> str:
        """A name for the layout: runs of different layouts never pass for each other."""
        text = repr((self.columns, self.keys, list(map(str, self.types)), self.time, self.groups))
        return blake2b(text.encode(), digest_size=_NAME_BYTES).hexdigest()


@dataclass(frozen=True)
class JoinTerms:
    """Joins left and right rows with equal keys whose times lie within a bound.

    ``kind`` left also gives left rows without a partner, with nulls, once the right watermark says
    that none can come. ``residual`` further limits which pairs count. ``groups`` is the number of
    partition groups by which runs are ordered; 1 means that rows are not shared out.

    >>> at = pa.timestamp("us", "UTC")
    >>> terms = JoinTerms(
    ...     JoinSide(pa.schema([("ts", at), ("k", pa.int32())]), ("k",), "ts"),
    ...     JoinSide(pa.schema([("at", at), ("key", pa.int64())]), ("key",), "at"),
    ...     TimeBound(-60_000_000, 60_000_000),
    ... )
    >>> terms.schema.names
    ['ts', 'k', 'at', 'key']
    """

    left: JoinSide
    right: JoinSide
    bound: TimeBound
    kind: Literal["inner", "left"] = "inner"
    residual: Residual | None = None
    groups: int = 1

    def __post_init__(self) -> None:
        if len(self.left.keys) != len(self.right.keys):
            raise InputError(
                f"{len(self.left.keys)} keys are joined with {len(self.right.keys)}",
                hint="Give both sides equally many keys, in the same order.",
            )
        twice = sorted(set(self.left.columns) & set(self.right.columns))
        if twice:
            raise InputError(
                f"both sides of a join have {listed(twice)}", hint="Rename the columns of one."
            )
        self.key_types  # noqa: B018 - finding them is the check
        if self.groups != 1:
            self._check_groups()

    def _check_groups(self) -> None:
        PartitionGroups(self.left.keys, self.groups)
        for key, type in zip(self.left.keys, self.key_types, strict=True):
            if type not in _GROUPABLE:
                raise InputError(
                    f"rows cannot be grouped by {key}, which is {type}",
                    hint="Join by strings, integers or booleans, or without groups.",
                )

    @cached_property
    def key_types(self) -> tuple[pa.DataType, ...]:
        """As what each pair of keys is compared."""
        sides = zip(self.left.keys, self.right.keys, strict=True)
        left, right = self.left.schema, self.right.schema
        return tuple(
            comparable_type(left.field(left_key).type, right.field(right_key).type)
            for left_key, right_key in sides
        )

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        sides = (self.left, self.right)
        return pa.schema([side.schema.field(name) for side in sides for name in side.columns])

    def layout(self, side: JoinSide) -> RunLayout:
        """How runs of one of the sides are made."""
        return RunLayout(side.kept, side.keys, self.key_types, side.time, self.groups)


@dataclass(frozen=True)
class SideOffset:
    """How far one side is read: batches below ``stop`` are; the window begins with ``first``.

    Rows that come later are not older than ``watermark_us``; None: nothing is known yet.
    """

    first: int = 0
    stop: int = 0
    watermark_us: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.stop:
            raise InputError(
                f"a window of batches {self.first} to {self.stop}",
                hint="Batches count from 0, and a window ends where its side is read to.",
            )


@dataclass(frozen=True)
class JoinOffset:
    """How far a join has come: what is recorded with each of its batches."""

    left: SideOffset = SideOffset()
    right: SideOffset = SideOffset()
