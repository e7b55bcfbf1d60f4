"""The folder of one fragment: who owns it, where it has come to, what it has counted."""

from __future__ import annotations

import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from penstock.channels.durable import (
    RESTORE,
    claim,
    claimed,
    create_once,
    numbered,
    read_number,
    read_text,
    sealed,
    write_text,
)
from penstock.errors import RunError
from penstock.model.engines import ENGINES, EngineName
from penstock.spark.checkpoints import begin, forget_former, newest, replaced, take_over
from penstock.spark.tallies import add_to_tally, tally

_BEATS = "beats-"


@dataclass(frozen=True)
class FragmentFolder:
    """Where a fragment keeps its checkpoints, how it is run, and its mark of having finished."""

    path: Path

    @property
    def has_begun(self) -> bool:
        """Whether any owner has run the fragment."""
        return newest(self.path) is not None or any(self.claims.glob("*"))

    @property
    def claims(self) -> Path:
        """Where those who run it as a light fragment say so."""
        return self.path / "claims"

    @property
    def runs(self) -> Path:
        """Where the sorted runs of a join lie, all of which can be made again."""
        return self.path / "runs"

    @property
    def groups(self) -> Path:
        """Where the parts of a join say who owns which group."""
        return self.path / "groups"

    def engine(self, choice: EngineName) -> EngineName:
        """How the fragment is run: as it was when it first ran, now by ``choice`` if never."""
        path = self.path / "engine"
        if not path.exists():
            if newest(self.path) is not None:
                return "native"  # It ran before there was a choice.
            self.path.mkdir(parents=True, exist_ok=True)
            create_once(path, choice)
        found = read_text(path)
        if found not in ENGINES:
            raise RunError(f"the file {path} is damaged", hint=RESTORE)
        return found

    def claim(self, epoch: int) -> None:
        """Makes the owner with this epoch the only one whose batches count."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.check_owner(epoch)
        claim(self.path, epoch)
        self.check_owner(epoch)

    def check_owner(self, epoch: int) -> None:
        """Raises if a newer owner has claimed the fragment."""
        current = claimed(self.path)
        if current > epoch:
            raise replaced(self.path.name, current, epoch)

    def begin(self, epoch: int) -> bool:
        """Gets the checkpoint for a coming owner ready; whether there is anything to go on from."""
        return begin(self.path, epoch)

    def life(self) -> str:
        """A name that lasts until the fragment is dropped, and never comes again.

        Sinks outside the folder know by it whose batches they have: after a fresh start batch 0
        is a new batch, not the one they already took.
        """
        path = self.path / "life"
        if not path.exists() and self.has_begun:
            raise RunError(f"the file {path} is missing", hint=RESTORE)
        create_once(path, sealed(secrets.randbits(32)))
        return f"{read_number(path):08x}"

    def take_over(self, epoch: int) -> Path:
        """The checkpoint for the owner with this epoch."""
        return take_over(self.path, epoch)

    def forget_former(self, epoch: int) -> None:
        """Deletes what owners before the last one have left."""
        forget_former(self.path, epoch)
        for other, path in numbered(self.path, _BEATS).items():
            if other < epoch:
                shutil.rmtree(path, ignore_errors=True)

    def beats(self, stream: str, epoch: int) -> Path:
        """Where the heartbeats of an owner's input lie until they are read."""
        return self.path / f"{_BEATS}{epoch}" / stream

    @property
    def is_finished(self) -> bool:
        return (self.path / "finished").exists()

    def finish(self) -> None:
        """Marks that the fragment's inputs have ended and everything is out."""
        write_text(self.path / "finished", "")
        shutil.rmtree(self.runs, ignore_errors=True)

    def rows_in(self) -> dict[str, int]:
        """Rows read so far, by all its owners, and the last batch counted."""
        return tally(self.path / "rows_in")

    def add_rows_in(self, batch_id: int, rows: int) -> None:
        """Counts the rows a batch has read once, however often it is run."""
        add_to_tally(self.path / "rows_in", batch_id, rows)

    def rows_out(self) -> dict[str, int]:
        """Rows out by batch so far, as far as kept: the total and the last batch counted."""
        return tally(self.path / "rows_out")

    def add_rows_out(self, batch_id: int, rows: int) -> None:
        """Counts a batch's rows once, however often it is offered."""
        add_to_tally(self.path / "rows_out", batch_id, rows)
