"""Records of a topic as typed rows: JSON objects, block by block."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from confluent_kafka import Consumer, Message

from penstock.channels.kafka import records
from penstock.feeds.json_rows import json_rows
from penstock.feeds.partitions import Span
from penstock.feeds.pieces import Reject, RowForm
from penstock.model.sources import KafkaSource

_DECODED_TOGETHER = 4_000
"""Records decoded at a time: few cost as much as many, and partitions bring few each."""


@dataclass(frozen=True)
class KafkaBlock:
    """The rows in some consecutive records of a partition, and what could not be read of them."""

    partition: int
    rows: pa.Table
    rejects: tuple[Reject, ...]


def read_blocks(
    consumer: Consumer, source: KafkaSource, turns: Sequence[Span], form: RowForm
) -> list[KafkaBlock]:
    """A block for each of ``turns``, in their order; those of a partition follow each other.

    Records are decoded once a few turns are there: no more than that and a turn of each partition
    is in memory as it was written.
    """
    waiting: dict[int, deque[Span]] = {}
    for turn in turns:
        waiting.setdefault(turn.partition, deque()).append(turn)
    spans = [Span(partition, due[0].start, due[-1].stop) for partition, due in waiting.items()]
    gathered: dict[int, list[Message]] = {span.partition: [] for span in spans}
    decoding = _Decoding(source.topic, form)

    def end_turn(partition: int) -> None:
        decoding.add(waiting[partition].popleft(), gathered[partition])
        gathered[partition] = []

    for record in records(consumer, source.brokers, source.topic, spans):
        partition, offset = record.partition(), record.offset()
        assert partition is not None
        assert offset is not None
        while offset >= waiting[partition][0].stop:
            end_turn(partition)
        gathered[partition].append(record)
    for partition, due in waiting.items():
        while due:
            end_turn(partition)
    decoding.decode()
    return [decoding.blocks[turn] for turn in turns]


class _Decoding:
    """Decodes the records of several turns together; ``blocks`` are those that are done."""

    def __init__(self, topic: str, form: RowForm) -> None:
        self._topic = topic
        self._form = form
        self._waiting: list[tuple[Span, list[Message]]] = []
        self._count = 0
        self.blocks: dict[Span, KafkaBlock] = {}

    def add(self, turn: Span, given: list[Message]) -> None:
        """Takes the records of one more turn."""
        self._waiting.append((turn, given))
        self._count += len(given)
        if self._count >= _DECODED_TOGETHER:
            self.decode()

    def decode(self) -> None:
        """Decodes all that was taken so far."""
        values = [_value(record) for _, given in self._waiting for record in given]
        piece = json_rows(values, self._form, self._topic, 0)
        rejects = deque(piece.rejects)
        first, row = 0, 0
        for turn, given in self._waiting:
            bad = []
            # Every record is a row or a reject, and both are in the order of the records.
            while rejects and rejects[0].line < first + len(given):
                reject = rejects.popleft()
                offset = given[reject.line - first].offset()
                place = f"{self._topic}[{turn.partition}]"
                bad.append(replace(reject, file=place, line=offset or 0))
            rows = len(given) - len(bad)
            block = KafkaBlock(turn.partition, piece.rows.slice(row, rows), tuple(bad))
            self.blocks[turn] = block
            first, row = first + len(given), row + rows
        assert row == piece.rows.num_rows
        self._waiting, self._count = [], 0


def _value(record: Message) -> bytes:
    # A missing or blank value is no JSON object either, and is set aside as such.
    value = record.value()
    assert value is None or isinstance(value, bytes)
    return value if value and value.strip() else b"null"
