"""How clients log in to Kafka: the settings file, and TLS with the mock cluster behind it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import KafkaException

sys.path.insert(0, str(Path(__file__).parent))

from kafka_topics import table, write
from tls_broker import Certificate, new_certificate, tls_before

from penstock.channels import kafka
from penstock.channels.channel import Channel
from penstock.channels.dead_letters import DeadLetters
from penstock.channels.ingest.kafka_ingest import KafkaIngest
from penstock.channels.kafka import partitions_of
from penstock.channels.kafka_cluster import KafkaCluster
from penstock.channels.writer import Writer
from penstock.errors import InputError, UnreachableError
from penstock.model.schema import Schema, Shape
from penstock.model.sources import KafkaSink, KafkaSource, Stream
from penstock.spark.sinks.kafka_sink import RecordSink

from mock_cluster import MockCluster


def settings_in(folder: Path, *lines: str) -> Path:
    path = folder / "client.properties"
    path.write_text("\n".join(lines))
    return path


class TestSettings:
    def test_are_names_and_values(self, tmp_path: Path) -> None:
        path = settings_in(
            tmp_path, "# login", "", " sasl.username = meters", "sasl.password=a=b#c "
        )
        assert KafkaCluster("h:1", path).settings() == {
            "sasl.username": "meters",
            "sasl.password": "a=b#c",
        }

    def test_reach_the_client(self, tmp_path: Path) -> None:
        lines = ["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", "sasl.username=meters"]
        with pytest.raises(InputError, match=r"sasl\.username and sasl\.password must be set"):
            KafkaCluster("h:1", settings_in(tmp_path, *lines)).consumer()

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("s3cret", "line 2 of {} is no setting. Write name=value"),
            ("=s3cret", "line 2 of {} is no setting. Write name=value"),
            ("group.id=x", "line 2 of {} sets group.id, which Penstock sets itself. Remove it"),
            ("tls=on", "Kafka's client refuses the settings in {}: No such configuration property"),
        ],
    )
    def test_mistakes_are_told_without_the_line(
        self, tmp_path: Path, line: str, message: str
    ) -> None:
        path = settings_in(tmp_path, "client.rack=a", line)
        with pytest.raises(InputError) as caught:
            KafkaCluster("h:1", path).consumer()
        assert str(caught.value).startswith(message.format(path))
        assert "s3cret" not in str(caught.value)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"none\.properties cannot be read: no such file"):
            KafkaCluster("h:1", tmp_path / "none.properties").settings()

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        path = tmp_path / "client.properties"
        path.write_bytes(b"\xff")
        with pytest.raises(InputError, match="cannot be read: it is no text"):
            KafkaCluster("h:1", path).settings()

    def test_a_mistake_of_ours_is_not_put_down_to_a_file(self) -> None:
        with pytest.raises(KafkaException):
            KafkaCluster("h:1").producer("w", {"no.such.setting": 1})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the broker's certificate, is not installed")
    return new_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def secured(certificate: Certificate) -> Iterator[str]:
    with MockCluster() as cluster, tls_before(cluster.address, certificate) as address:
        cluster.produce("t", ['{"kwh": 1.5}', '{"kwh": 2.5}'])
        yield address


class TestTls:
    def test_rows_come_and_go(self, secured: str, certificate: Certificate, tmp_path: Path) -> None:
        client = settings_in(
            tmp_path, "security.protocol=SSL", f"ssl.ca.location={certificate.certificate}"
        )
        write(RecordSink(KafkaSink(secured, "t", client), "w"), table(3.5), 0)
        source = KafkaSource(secured, "t", finished=True, client=client)
        stream = Stream("readings", source, Shape(Schema.parse("kwh double")))
        channel = Channel.open(tmp_path / "channel")
        ingest = KafkaIngest(stream, Writer(channel, 1), DeadLetters(tmp_path / "letters"))
        while not ingest.is_finished:
            ingest.step()
        ingest.close()
        files = [channel.path_of(file) for kept in channel.kept() for file in kept.files]
        rows = [row for path in files for row in pq.read_table(path)["kwh"].to_pylist()]
        assert sorted(rows) == [1.5, 2.5, 3.5]

    @pytest.mark.parametrize("line", ["security.protocol=SSL", "security.protocol=PLAINTEXT"])
    def test_a_broker_that_is_not_trusted_or_not_understood_is_out_of_reach(
        self, secured: str, tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kafka, "TIMEOUT_S", 1.0)
        consumer = KafkaCluster(secured, settings_in(tmp_path, line)).consumer()
        with pytest.raises(UnreachableError, match="if they want TLS or a login"):
            partitions_of(consumer, secured, "t")
        consumer.close()
