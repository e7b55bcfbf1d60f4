"""The manifest that makes one batch of a channel visible."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field

from penstock.errors import RunError
from penstock.spark.channels.durable import RESTORE, checksum


@dataclass(frozen=True)
class ChannelFile:
    """A Parquet file of a batch, by its name inside the channel's ``data`` folder.

    ``bytes`` is its size and ``check`` its checksum, by which a damaged one is noticed. A file that
    people gave us and may still write to has instead the time at which it was last written to.
    ``group`` is the partition group that all its rows are of, where rows are kept in groups.
    """

    name: str
    rows: int
    bytes: int
    check: int | None = None
    modified_ns: int | None = None
    group: int | None = None


@dataclass(frozen=True)
class Manifest:
    """One committed batch: what it holds, who wrote it, and how far the stream's time has come.

    ``sequence`` numbers the batches of a channel from 0 without gaps; ``batch_id`` is the
    writer's own number, by which a batch written again is recognised. ``watermark_us``: no row
    of a later batch has an event time before it. ``ended``: no later batch will come.
    ``arrived_s`` is the wall time at which the oldest of the rows it comes from entered the system.
    ``writer_state`` is whatever the writer needs to go on after a restart.
    """

    sequence: int
    epoch: int
    batch_id: int
    files: tuple[ChannelFile, ...] = ()
    watermark_us: int | None = None
    ended: bool = False
    arrived_s: float | None = None
    writer_state: Mapping[str, object] = field(default_factory=dict)

    def of_groups(self, groups: Collection[int] | None) -> tuple[ChannelFile, ...]:
        """The files with rows of these groups; all of them for None."""
        if groups is None:
            return self.files
        for file in self.files:
            if file.group is None:
                raise RunError(
                    f"batch {self.sequence} with the file {file.name} is not kept in groups",
                    hint="Read it without naming groups.",
                )
        return tuple(file for file in self.files if file.group in groups)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def to_json(self) -> str:
        """The manifest as the text kept on disk; :meth:`from_json` reads it back."""
        fields = asdict(self)
        return _text({**fields, "check": _check(fields)})

    @classmethod
    def from_json(cls, text: str, path: str) -> Manifest:
        """The manifest in ``text``; a damaged one is refused by the name of its file."""
        try:
            fields = json.loads(text)
            if fields.pop("check") != _check(fields):
                raise ValueError("its checksum is another")
            fields["files"] = tuple(ChannelFile(**one) for one in fields["files"])
            return cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise RunError(
                f"the manifest {path} is damaged ({error})",
                hint=RESTORE,
            ) from None


def _text(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, separators=(",", ":"))


def _check(fields: Mapping[str, object]) -> int:
    return checksum(_text(fields).encode())
