"""Streams of a Kafka topic, and all that bringing them in keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.channels.ingest.kafka_ingest import KafkaIngest
from penstock.channels.writer import Writer
from penstock.model.sources import KafkaSource, Stream

from channels.ingest.places import SHAPE, Place
from mock_cluster import MockCluster

LATENESS_S = 5


@dataclass
class TopicPlace(Place):
    """A stream of a topic, and all that bringing it in keeps."""

    cluster: MockCluster | None = None

    @property
    def topic(self) -> str:
        assert isinstance(self.stream.source, KafkaSource)
        return self.stream.source.topic

    def start(self) -> KafkaIngest:  # type: ignore[override]
        self.epoch += 1
        return KafkaIngest(self.stream, Writer(self.channel, self.epoch), self.letters)

    def produce(self, partition: int, *rows: tuple[object, int]) -> None:
        """Appends records of an event time, in seconds, and a number each."""
        assert self.cluster is not None
        values = [json.dumps({"ts": at, "n": number}) for at, number in rows]
        self.cluster.produce(self.topic, values, partition)

    def watermarks_s(self) -> list[float | None]:
        """The watermark of every batch, in seconds."""
        told = [manifest.watermark_us for manifest in self.manifests()]
        return [None if us is None else us / 1e6 for us in told]

    def high_s(self) -> float | None:
        """How far the stream's time has come by the newest batch."""
        last = self.channel.last()
        high_us = None if last is None else last.writer_state["high_water_us"]
        return None if high_us is None else int(str(high_us)) / 1e6

    def with_stream(self, **changed: object) -> TopicPlace:
        return replace(self, stream=replace(self.stream, **changed))  # type: ignore[arg-type]


def topic_place(root: Path, cluster: MockCluster, topic: str, finished: bool = False) -> TopicPlace:
    source = KafkaSource(cluster.address, topic, finished)
    stream = Stream("readings", source, SHAPE, LATENESS_S * 1_000_000)
    return TopicPlace(root, stream, cluster=cluster)
