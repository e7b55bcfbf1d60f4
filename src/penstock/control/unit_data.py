"""What units have written into the state folder of their system."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from penstock.channels.channel import Channel
from penstock.channels.layout import StateLayout
from penstock.control.system import Unit
from penstock.model.ids import channel_for


@dataclass(frozen=True)
class UnitData:
    """The data of units, in one state folder."""

    layout: StateLayout

    def channel(self, stream: str) -> Channel:
        """The channel that carries a stream."""
        return Channel.open(self.layout.channel(channel_for(stream)))

    def keep(self, unit: Unit, folder: Path) -> None:
        """Puts what a unit has written aside, under the same names as in the state folder."""
        layout = self.layout
        for part in (layout.channel(unit.gives), *layout.of_unit(unit.id)):
            if part.exists():
                target = folder / part.relative_to(layout.path)
                target.parent.mkdir(parents=True, exist_ok=True)
                part.rename(target)

    def forget(self, unit: Unit) -> None:
        """Deletes all that a unit has written."""
        self.channel(unit.gives).drop()
        for folder in self.layout.of_unit(unit.id):
            shutil.rmtree(folder, ignore_errors=True)
