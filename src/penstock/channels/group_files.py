"""Groups of a join as they go from part to part: small files beside the join's data.

Layout of the folder::

    owners-N               the N-th table of who owns which group; the newest counts
    given/PART/NAME        a release to that part, until it is taken

A table's number can be taken once, so of several who would change it at once one succeeds, and the
others look again. What is in ``given`` follows from the logs of the parts: it can be written again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.channels.durable import create_once, numbered, read_record, sealed_record
from penstock.model.group_table import GroupTable
from penstock.model.parts import JoinSpread

_TABLE = "owners-"
_KEPT = 64


@dataclass(frozen=True)
class GroupFiles:
    """The tables and releases in ``folder``."""

    folder: Path

    def owners(self, spread: JoinSpread) -> GroupTable:
        """The newest table."""
        while True:
            tables = numbered(self.folder, _TABLE)
            if not tables:
                return GroupTable.first(spread)
            record = read_record(tables[max(tables)])
            # Tables that are long out of date go; then there is a newer one.
            if record is not None:
                return GroupTable(
                    record["number"],
                    tuple(record["owners"]),
                    tuple(record["epochs"]),
                    tuple(record["moving"]),
                    tuple(record["closed"]),
                    {int(group): s for group, s in record["pauses"].items()},
                )

    def propose(self, table: GroupTable) -> bool:
        """Makes a table the newest one; False if somebody else's came first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{_TABLE}{table.number}"
        known = numbered(self.folder, _TABLE)
        if max(known, default=0) >= table.number:
            return False
        if not create_once(path, sealed_record(asdict(table))):
            return False
        for number, outdated in known.items():
            if number <= table.number - _KEPT:
                outdated.unlink(missing_ok=True)
        return True

    def give(self, part: int, name: str, release: object) -> None:
        """Puts a release where its part finds it."""
        path = self._given(part) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        create_once(path, sealed_record(release))

    def given(self, part: int) -> list[Any]:
        """The releases to a part that are there, those by older tables first."""
        folder = self._given(part)
        paths = sorted(folder.iterdir()) if folder.exists() else []
        found = (read_record(path) for path in paths if not path.name.startswith("."))
        return [record for record in found if record is not None]

    def forget(self, part: int, name: str) -> None:
        """Removes a release that the part has taken."""
        (self._given(part) / name).unlink(missing_ok=True)

    def _given(self, part: int) -> Path:
        return self.folder / "given" / str(part)
