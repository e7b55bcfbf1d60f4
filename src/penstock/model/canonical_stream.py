"""The canonical form of one stream: the rows of a relation, and what its columns are of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock.model.canonical_expressions import describe, digest, substitute
from penstock.model.expressions import Expression

VERSION = 3
"""Changes whenever the same work would get another signature than before, or keep other state."""

Conditions = tuple[Expression, ...]
Columns = Mapping[str, Expression]


@dataclass(frozen=True)
class CanonicalStream:
    """What a stream is: the rows of a relation that fulfil conditions, and its columns over them.

    ``columns`` has lower-case names of the stream; ``times`` are its time columns, the event
    time first, with how far each lies behind the watermark.
    """

    relation: str
    conditions: Conditions
    columns: Columns
    times: tuple[tuple[Expression, int], ...]
    watermarked: bool

    @property
    def rows(self) -> str:
        """Names the rows, whatever columns are made of them."""
        return f"#{digest(as_text([self.relation, texts(self.conditions)]))}"

    @cached_property
    def expression(self) -> str:
        """The canonical expression: JSON that says all that decides about rows and times."""
        times = [[describe(time), behind_us] for time, behind_us in self.times]
        return as_text(
            {
                "from": self.relation,
                "where": texts(self.conditions),
                "columns": sorted(texts(self.columns.values())),
                "event_time": times[:1],
                "other_times": sorted(times[1:]),
                "watermarked": bool(times) and self.watermarked,
            }
        )

    @cached_property
    def signature(self) -> str:
        """Equal for equal data; begins with the version."""
        return signed(self.expression)

    def meaning(self, expression: Expression) -> Expression:
        """The expression over this stream's columns as one over its relation."""
        return substitute(expression, self.columns)

    def ordered_columns(self) -> tuple[str, ...]:
        """The stream's columns in the order of their meanings: alike for equal signatures."""
        return tuple(sorted(self.columns, key=lambda name: describe(self.columns[name])))


def texts(expressions: Iterable[Expression]) -> list[str]:
    """Each expression as text."""
    return [describe(expression) for expression in expressions]


def as_text(value: object) -> str:
    """Plain values as the one JSON text they have."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def signed(text: str) -> str:
    """The signature of a canonical text; begins with the version."""
    return f"{VERSION}:{digest(text)}"
