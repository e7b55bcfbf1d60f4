"""What the SQL front end is given and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.model.operators import Operator
from penstock.model.schema import Shape
from penstock.model.sources import Table


@dataclass(frozen=True)
class KnownNames:
    """What the names in a query mean: streams and other queries, and tables."""

    shapes: Mapping[str, Shape]
    tables: Mapping[str, Table] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All names a query may read, streams first."""
        return (*self.shapes, *self.tables)


@dataclass(frozen=True)
class ParsedQuery:
    """The operators of one query, each after what it reads, and the name of its result."""

    operators: tuple[Operator, ...]
    stream: str
