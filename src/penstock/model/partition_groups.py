"""Partition groups: how the rows of a result are shared out by key, so that readers can share them.

The group of a row depends on its keys alone, and is the same in every process, every version and
every engine: the checksum of the keys as text, modulo the number of groups.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import InputError, listed
from penstock.model.schema import Schema
from penstock.model.types import DataType

GROUPS_AT_MOST = 1_024
_RANGE = re.compile(r"(\d{1,6})(?:\s*-\s*(\d{1,6}))?")
BETWEEN, NOTHING = "\x1f", "\x00"
"""What stands between two keys, and for a key that is null."""

_AS_TEXT = (DataType.STRING, DataType.INT, DataType.BIGINT, DataType.BOOLEAN)
"""Types whose text is the same wherever it is made; a double's is not."""


@dataclass(frozen=True)
class PartitionGroups:
    """Rows with the same ``keys`` are in the same one of ``count`` groups, numbered from 0.

    >>> PartitionGroups(("home",), 60)
    PartitionGroups(keys=('home',), count=60)
    """

    keys: tuple[str, ...]
    count: int

    def __post_init__(self) -> None:
        if not self.keys:
            raise InputError("groups need a column to be made by", hint="Write by: COLUMN.")
        if not 1 <= self.count <= GROUPS_AT_MOST:
            raise InputError(
                f"there cannot be {self.count} groups",
                hint=f"Give a number from 1 to {GROUPS_AT_MOST}.",
            )

    def named(self, written: str) -> frozenset[int]:
        """The groups that somebody names, by numbers and ranges.

        >>> sorted(PartitionGroups(("home",), 60).named("0-2, 7"))
        [0, 1, 2, 7]
        """
        found: set[int] = set()
        for part in written.split(","):
            read = _RANGE.fullmatch(part.strip())
            first, last = (int(read[1]), int(read[2] or read[1])) if read else (1, 0)
            if first > last or last >= self.count:
                raise InputError(
                    f"{part.strip() or 'nothing'} names no groups",
                    hint=f"There are groups 0 to {self.count - 1}. Write for example 0-2,7.",
                )
            found.update(range(first, last + 1))
        return frozenset(found)

    def over(self, schema: Schema) -> PartitionGroups:
        """The same with the columns called as ``schema`` calls them, in whatever case written."""
        return PartitionGroups(tuple(schema[key].name for key in self.keys), self.count)

    def check(self, schema: Schema) -> None:
        """Raises if rows of ``schema`` cannot be shared out like this."""
        for key in self.keys:
            type = schema[key].type
            if type not in _AS_TEXT:
                raise InputError(
                    f"rows cannot be grouped by {key}, which is {type}",
                    hint=f"Columns to group by are of type {listed(map(str, _AS_TEXT))}.",
                )
