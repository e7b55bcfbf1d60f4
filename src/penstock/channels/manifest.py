"""The manifest that makes one batch of a channel visible."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from penstock.channels.durable import RESTORE, checksum
from penstock.errors import RunError

END_OF_TIME_US = 45 * 146_097 * 86_400 * 1_000_000
"""The watermark of a stream that has ended: every window is closed. It is in the year 19970."""

UNNUMBERED = -1
"""The number of a manifest in a shared file: each channel has one of its own for it."""


def file_name(batch: int, epoch: int, part: int) -> str:
    """The name of a batch's file; no two writers ever give the same one."""
    return f"{batch:010d}-{epoch}-{part}.parquet"


@dataclass(frozen=True)
class ChannelFile:
    """A Parquet file of a batch, by its name inside the channel's ``data`` folder.

    ``bytes`` is its size and ``check`` its checksum, by which a damaged one is noticed. A file that
    people gave us and may still write to has instead the time at which it was last written to.
    ``group`` is the partition group that all its rows are of, where rows are kept in groups.
    ``inside`` is the number of the entry whose own file holds the rows; ``name`` is then where they
    come to lie for those who need Parquet, and size and checksum are those of the rows there.
    """

    name: str
    rows: int
    bytes: int
    check: int | None = None
    modified_ns: int | None = None
    group: int | None = None
    inside: int | None = None


@dataclass(frozen=True)
class Manifest:
    """One committed batch: what it holds, who wrote it, and how far the stream's time has come.

    ``sequence`` numbers the batches of a channel from 0 without gaps; ``batch_id`` is the
    writer's own number, by which a batch written again is recognised. ``watermark_us``: no row
    of a later batch has an event time before it. ``ended``: no later batch will come.
    ``arrived_s`` is the wall time at which the oldest of the rows it comes from entered the system.
    ``latest`` is the latest time, in microseconds, that each time column has had so far: in this
    batch or one before, or, of a stream from outside, where its time has moved on without rows.
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
    latest: Mapping[str, int] = field(default_factory=dict)

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
        # By hand: a general copy of everything inside would take as long as all the rest.
        fields = {**vars(self), "files": [_fields(file) for file in self.files]}
        return _text({**fields, "check": _check(fields)})

    def within(self, sequence: int) -> Manifest:
        """The manifest of a shared file as the entry with this number."""
        files = tuple(replace(file, inside=sequence) for file in self.files)
        return replace(self, sequence=sequence, files=files)

    @classmethod
    def from_json(cls, text: str, path: str) -> Manifest:
        """The manifest in ``text``; a damaged one is refused by the name of its file."""
        try:
            fields = json.loads(text)
            if fields.pop("check") != _check(fields):
                raise ValueError("its checksum is another")
            fields["files"] = tuple(ChannelFile(**record) for record in fields["files"])
            return cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise RunError(
                f"the manifest {path} is damaged ({error})",
                hint=RESTORE,
            ) from None


def _fields(file: ChannelFile) -> dict[str, object]:
    """What is kept of a file; where its entry lies is known to whoever reads it there."""
    return {name: value for name, value in vars(file).items() if name != "inside"}


def _text(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, separators=(",", ":"))


def _check(fields: Mapping[str, object]) -> int:
    return checksum(_text(fields).encode())
