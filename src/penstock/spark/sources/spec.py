"""What a reader is told, as plain JSON: it crosses into other processes as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from penstock.model.schema import Schema


@dataclass(frozen=True)
class ReaderSpec:
    """One reader of one Kafka stream.

    ``columns`` are the columns the fragment needs, ``event_time`` is set when it also needs the
    watermark. ``origin`` says where rows come from: brokers, topic, and whether it is finished.
    ``known_time`` is the file in which tasks keep how far the stream's time has come.
    """

    stream: str
    schema: str
    columns: tuple[str, ...]
    event_time: str | None
    origin: Mapping[str, object]
    lateness_us: int | None = None
    idle_timeout_us: int | None = None
    max_rows: int = 250_000
    parallelism: int = 2
    reader: str = ""
    dead_letters: str = ""
    known_time: str = ""
    source_options: Mapping[str, object] = field(default_factory=dict)

    @property
    def read_schema(self) -> Schema:
        """The columns that are read."""
        return Schema.parse(self.schema).select(self.columns)

    def to_json(self) -> str:
        """The text form; :meth:`from_json` reads it back."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ReaderSpec:
        """The spec in ``text``."""
        fields = json.loads(text)
        fields["columns"] = tuple(fields["columns"])
        return cls(**fields)
