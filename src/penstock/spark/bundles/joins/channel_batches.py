"""The batches of a channel as a side of a join reads them, as long as its window needs them."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from penstock.channels.channel import Channel
from penstock.channels.durable import RESTORE
from penstock.channels.manifest import Manifest
from penstock.errors import RunError
from penstock.feeds.arrow import arrow_schema
from penstock.kernels.join_plan import PlannedSide
from penstock.model.expressions import columns_of
from penstock.spark.sources.channel_reader import check_file


@dataclass
class ChannelBatches:
    """Batches by their numbers in the channel; every manifest is opened once."""

    channel: Channel
    side: PlannedSide
    _known: dict[int, Manifest] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Other rows, or the same ones kept otherwise, have another name."""
        return f"{self.side.stream}_{self.side.digest}"

    def note(self, manifest: Manifest) -> None:
        """Takes note of a batch that somebody has opened."""
        self._known[manifest.sequence] = manifest

    def forget(self, before: int) -> None:
        """Forgets the batches before a number."""
        for number in [number for number in self._known if number < before]:
            del self._known[number]

    def manifest(self, number: int) -> Manifest:
        """What the channel says of a batch."""
        if number not in self._known:
            self._known[number] = self.channel.manifests(number, number + 1)[0]
        return self._known[number]

    def read(self, number: int) -> pa.Table:
        """What the side keeps of a batch's rows; damaged files are refused by their names."""
        rows = read_columns(self.channel, self.manifest(number), self.side)
        return self.side.project(rows)

    def latest_us(self, number: int) -> int | None:
        """No row of the batch is later; None if it has no rows."""
        manifest = self.manifest(number)
        if not manifest.rows:
            return None
        known = manifest.latest.get(self.side.event_time)
        return self._latest_read(manifest) if known is None else known

    def _latest_read(self, manifest: Manifest) -> int | None:
        """The latest time as the rows tell it: of a channel that does not keep it."""
        times = [
            self.channel.rows_of(file, [self.side.event_time]).column(0) for file in manifest.files
        ]
        latest: int | None = pc.max(pa.chunked_array(times).cast(pa.int64())).as_py()
        return latest

    def rows(self, first: int, stop: int) -> int:
        """How many rows lie in the batches of a window."""
        return sum(self.manifest(number).rows for number in range(first, stop))


def read_columns(channel: Channel, manifest: Manifest, side: PlannedSide) -> pa.Table:
    """The columns of a batch that are needed to compute what a side keeps."""
    needed = {name.lower() for value in side.expressions for name in columns_of(value)}
    schema = arrow_schema(side.schema)
    names = [name for name in schema.names if name.lower() in needed]
    wanted = pa.schema([schema.field(name) for name in names])
    tables = []
    for file in manifest.files:
        if not file.rows:
            continue
        if file.inside is None:
            check_file(channel, file)
        try:
            tables.append(channel.rows_of(file, names).cast(wanted))
        except (OSError, pa.ArrowException) as error:
            path = channel.data / file.name
            raise RunError(
                f"the channel file {path} cannot be read ({error})", hint=RESTORE
            ) from None
    return pa.concat_tables(tables) if tables else wanted.empty_table()
