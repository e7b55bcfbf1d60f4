"""A topic brought in: each record once, in turns, at the pace of the partition furthest behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.channels import kafka, kafka_cluster
from penstock.channels.ingest import entrance, kafka_blocks, kafka_ingest
from penstock.channels.ingest.kafka_ingest import KafkaIngest
from penstock.channels.ingest.thread import IngestThread
from penstock.channels.manifest import END_OF_TIME_US
from penstock.errors import InputError, RunError, UnreachableError
from penstock.feeds.partitions import Span
from penstock.model.sources import KafkaSource
from waiting import until

from channels.disk import Died, dying_at
from channels.ingest.places import NO_LATENESS, Clock, S, run
from channels.ingest.topics import LATENESS_S, TopicPlace, topic_place
from mock_cluster import MockCluster

pytestmark = pytest.mark.core

_topics = count()
many = tried(25)


@pytest.fixture(scope="module")
def cluster() -> Iterator[MockCluster]:
    with MockCluster() as running:
        yield running


@pytest.fixture
def here(tmp_path: Path, cluster: MockCluster, topic: str) -> TopicPlace:
    return topic_place(tmp_path, cluster, topic)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(kafka_ingest, "time", made)
    monkeypatch.setattr(entrance, "time", made)
    return made


def bring_in(here: TopicPlace) -> KafkaIngest:
    """Brings in all that is there, as a new process would."""
    ingest = here.start()
    run(ingest)
    return ingest


# What a partition holds: event times close together, or something that is no row.
partitions = st.lists(st.lists(st.integers(0, 20) | st.none(), max_size=12), max_size=3)


def filled(root: Path, cluster: MockCluster, contents: list[list[int | None]]) -> TopicPlace:
    """A finished topic; rows are numbered by 100 times their partition and their offset."""
    here = topic_place(root, cluster, f"law{next(_topics)}", finished=True)
    cluster.produce(here.topic, [])
    Producer({"bootstrap.servers": cluster.address, "log_level": 2}).list_topics(here.topic)
    for partition, content in enumerate(contents):
        here.produce(partition, *((at, 100 * partition + k) for k, at in enumerate(content)))
    return here


def expected(contents: list[list[int | None]], block: int) -> tuple[list[int], list[int]]:
    """The rows in their order, and those that are late: by what came before in their partition."""
    kept, late = [], []
    for turn in range(0, 12, block):
        for partition, content in enumerate(contents):
            for k in range(turn, min(turn + block, len(content))):
                at = content[k]
                before = [one for one in content[:k] if one is not None]
                if at is not None:
                    is_late = at < max(before, default=0) - LATENESS_S
                    (late if is_late else kept).append(100 * partition + k)
    return kept, late


@many
@given(
    contents=partitions,
    block=st.integers(1, 5),
    most=st.integers(1, 20),
    death=st.integers(0, 60),
    after=st.booleans(),
)
def test_each_record_once_in_turns_whatever_is_cut_and_killed(
    cluster: MockCluster,
    contents: list[list[int | None]],
    block: int,
    most: int,
    death: int,
    after: bool,
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka_ingest, "_ROWS_PER_COMMIT", most)
        patch.setattr(kafka_ingest, "block_of", lambda partitions, most: block)
        here = filled(Path(folder), cluster, contents)
        try:
            with dying_at(death, after=after):
                bring_in(here).close()
        except Died:
            bring_in(here).close()
        kept, late = expected(contents, block)
        assert here.rows() == kept
        letters = [json.loads(line) for line in here.set_aside()]
        assert sorted(
            letter["row"]["n"] for letter in letters if letter["reason"] == "late"
        ) == sorted(late)
        untimed = sum(at is None for content in contents for at in content)
        assert sum(letter["reason"] == "no event time" for letter in letters) == untimed
        last = here.manifests()[-1]
        assert (last.ended, last.watermark_us) == (True, END_OF_TIME_US)


_DYING = """
import os, signal, sys
from pathlib import Path
from penstock.model.schema import Schema, Shape
from penstock.model.sources import KafkaSource, Stream
from penstock.channels.channel import Channel
from penstock.channels.writer import Writer
from penstock.channels.dead_letters import DeadLetters
from penstock.channels.ingest import kafka_ingest

root, address, topic, epoch, commits, after = Path(sys.argv[1]), *sys.argv[2:]
link, links = os.link, []

def linked(*given, **named):
    links.append("json" in str(given[1]))
    dies = sum(links) == int(commits) and links[-1]
    if not dies or after == "True":
        link(*given, **named)
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)

kafka_ingest._ROWS_PER_COMMIT, kafka_ingest.block_of = 60, lambda partitions, most: 20
shape = Shape.timed(Schema.parse("ts timestamp, n int"), "ts")
stream = Stream("readings", KafkaSource(address, topic, True), shape, 5_000_000)
ingest = kafka_ingest.KafkaIngest(
    stream, Writer(Channel.open(root / "channel"), int(epoch)), DeadLetters(root / "letters")
)
os.link = linked
while not ingest.is_finished:
    ingest.step()
"""


@pytest.mark.spark
def test_kill_9_in_the_middle_of_a_commit(
    here: TopicPlace, cluster: MockCluster, tmp_path: Path
) -> None:
    """Just before, and just after, the link that makes a batch visible."""
    for partition in range(3):
        here.produce(partition, *((k, 1_000 * partition + k) for k in range(100)))
    here.produce(0, (1, -1))
    deaths = [(1, False), (2, True), (1, True), (99, True)]
    for epoch, (commits, after) in enumerate(deaths, 1):
        given = [tmp_path, cluster.address, here.topic, epoch, commits, after]
        ended = subprocess.run(
            [sys.executable, "-c", _DYING, *map(str, given)],
            env=os.environ | {"PYTHONPATH": str(Path(kafka.__file__).parents[2])},
            timeout=120,
        )
        assert ended.returncode == (0 if commits == 99 else -signal.SIGKILL)
    assert sorted(here.rows()) == [1_000 * p + k for p in range(3) for k in range(100)]
    (letter,) = map(json.loads, here.set_aside())
    assert letter["row"]["n"] == -1


class TestTime:
    def test_the_partition_furthest_behind_tells_it(self, here: TopicPlace) -> None:
        here.produce(0, (100, 0), (200, 1))
        for partition in (2, 3):
            here.produce(partition, (200, 10 * partition))
        here.produce(1, (20, 2))
        ingest = bring_in(here)
        assert here.high_s() == 20
        here.produce(1, (17, 3), (30, 4), (24, 5), (90, 6))
        run(ingest)
        # Nothing of partition 1 is late by partition 0, which is far ahead; only by itself.
        assert sorted(here.rows()) == [0, 1, 2, 3, 4, 6, 20, 30]
        (letter,) = map(json.loads, here.set_aside())
        assert (letter["reason"], letter["row"]["n"]) == ("late", 5)
        assert letter["at"] == "1970-01-01T00:00:30.000000Z"
        assert here.watermarks_s() == [20 - LATENESS_S, 90 - LATENESS_S]
        # A query that begins now counts after all rows that it misses.
        assert here.manifests()[-1].latest == {"ts": 200 * S}

    def test_times_before_1970_count_as_others_do(self, here: TopicPlace) -> None:
        for partition in range(4):
            here.produce(partition, (-100, partition))
        ingest = bring_in(here)
        assert here.high_s() == -100
        for partition in range(4):
            here.produce(partition, (0, 10 + partition), (-6, 20), (-5, 30 + partition))
        run(ingest)
        assert here.high_s() == 0
        assert sorted(here.rows()) == [*range(4), *range(10, 14), *range(30, 34)]

    def test_a_partition_that_brings_nothing_is_waited_for_a_while(
        self, here: TopicPlace, clock: Clock
    ) -> None:
        for partition in range(3):
            here.produce(partition, (50 + partition, partition))
        ingest = bring_in(here)
        assert here.high_s() is None, "partition 3 may bring rows of any time"
        clock.now_s += 9.9
        here.produce(0, (70, 4))
        run(ingest)
        assert here.high_s() is None
        clock.now_s += 0.2
        assert run(ingest) == 1
        # 1, 2 and 3 have brought nothing for ten seconds: 0 alone tells the time.
        assert here.high_s() == 70
        assert run(ingest) == 0

    def test_one_that_comes_back_is_judged_by_the_time_that_has_passed_and_waited_for_again(
        self, here: TopicPlace, clock: Clock
    ) -> None:
        here.produce(1, (10, 0))
        ingest = bring_in(here)
        clock.now_s += 11
        here.produce(0, (100, 1))
        run(ingest)
        assert here.high_s() == 100
        here.produce(1, (94, 2), (95, 3), (99, 4))
        here.produce(0, (150, 5))
        run(ingest)
        assert sorted(here.rows()) == [0, 1, 3, 4, 5]
        assert [json.loads(line)["row"]["n"] for line in here.set_aside()] == [2]
        assert here.high_s() == 100, "partition 1 is waited for, and was there already"
        here.produce(1, (120, 6))
        run(ingest)
        assert here.high_s() == 120

    def test_late_rows_alone_do_not_make_the_others_wait(
        self, here: TopicPlace, clock: Clock
    ) -> None:
        here.produce(1, (10, 0))
        ingest = bring_in(here)
        clock.now_s += 11
        here.produce(0, (100, 1))
        run(ingest)
        here.produce(1, (20, 2))
        here.produce(0, (200, 3))
        run(ingest)
        assert here.rows() == [0, 1, 3]
        assert here.high_s() == 200

    def test_who_is_not_waited_for_is_known_after_a_restart(
        self, here: TopicPlace, clock: Clock
    ) -> None:
        here.produce(0, (10, 0))
        ingest = bring_in(here)
        clock.now_s += 11
        here.produce(0, (20, 1))
        run(ingest)
        assert here.high_s() == 20
        ingest.close()
        here.produce(0, (30, 2))
        bring_in(here)
        assert here.high_s() == 30

    def test_an_idle_timeout_holds_for_partitions_and_for_the_stream(
        self, here: TopicPlace, clock: Clock
    ) -> None:
        here = here.with_stream(idle_timeout_us=30 * S)
        here.produce(0, (100, 0))
        ingest = bring_in(here)
        clock.now_s += 29
        here.produce(0, (120, 1))
        run(ingest)
        assert here.high_s() is None
        clock.now_s += 1.5
        run(ingest)
        assert here.high_s() == 120
        clock.now_s += 30
        run(ingest)
        assert here.high_s() == 150
        here.produce(0, (144, 2), (145, 3))
        run(ingest)
        assert here.rows() == [0, 1, 3]

    def test_rows_too_far_ahead_are_judged_by_the_clock_and_their_partition(
        self, here: TopicPlace, clock: Clock
    ) -> None:
        here = here.with_stream(ahead_us=60 * S)
        here.produce(0, (160, 0), (200, 1))
        here.produce(1, (161, 2), (120, 3))
        ingest = bring_in(here)
        # 2 is too far ahead of the clock, at 100, though not of the rows of another partition.
        assert sorted(here.rows()) == [0, 1, 3]
        here.produce(0, (261, 4), (260, 5))
        here.produce(1, (181, 6), (180, 7))
        run(ingest)
        assert sorted(here.rows()) == [0, 1, 3, 5, 7]
        assert here.letters.counts()["ahead"] == 3

    def test_a_stream_without_lateness_has_no_time(self, here: TopicPlace, clock: Clock) -> None:
        here = here.with_stream(lateness_us=None, shape=NO_LATENESS)
        here.produce(0, (100, 0), (1, 1), (None, 2))
        ingest = bring_in(here)
        clock.now_s += 100
        run(ingest)
        assert here.rows() == [0, 1, 2]
        assert here.watermarks_s() == [None]
        assert here.manifests()[-1].latest == {}


class TestPartitions:
    def test_new_ones_join_from_their_beginning(
        self, here: TopicPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for partition in range(4):
            here.produce(partition, (10, partition))
        with monkeypatch.context() as patch:
            patch.setattr(kafka_ingest, "partitions_of", lambda *_: [0, 1])
            ingest = bring_in(here)
        assert here.rows() == [0, 1]
        run(ingest)
        assert here.rows() == [0, 1, 2, 3]
        offsets = here.manifests()[-1].writer_state["offsets"]
        assert offsets == {"0": 1, "1": 1, "2": 1, "3": 1}

    def test_a_finished_topic_ends_where_it_ended_at_first(
        self, here: TopicPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kafka_ingest, "_ROWS_PER_COMMIT", 2)
        here = here.with_stream(source=replace(here.stream.source, finished=True))
        here.produce(0, *((at, at) for at in range(6)))
        here.start().step()
        here.produce(0, (7, 7))
        here.produce(1, (8, 8))
        ingest = bring_in(here)
        assert here.rows() == [0, 1, 2, 3, 4, 5]
        assert ingest.is_finished
        assert here.manifests()[-1].watermark_us == END_OF_TIME_US

    def test_offsets_without_records_are_passed(
        self, here: TopicPlace, cluster: MockCluster
    ) -> None:
        producer = Producer(
            {"bootstrap.servers": cluster.address, "transactional.id": here.topic, "log_level": 2}
        )
        producer.init_transactions(10)
        for at in range(0, 30, 10):
            producer.begin_transaction()
            for k in range(at, at + 10):
                producer.produce(here.topic, json.dumps({"ts": k, "n": k}), partition=0)
            producer.commit_transaction(10)
        bring_in(here)
        assert here.rows() == list(range(30))
        assert here.manifests()[-1].writer_state["offsets"]["0"] == 33  # type: ignore[index]

    def test_what_cannot_be_read_is_set_aside_by_its_offset(
        self, here: TopicPlace, cluster: MockCluster
    ) -> None:
        here.produce(1, (1, 1))
        cluster.produce(here.topic, ["oops", '{"n": "many"}', "[1]", None, " "], 1)
        bring_in(here)
        letters = [json.loads(line) for line in here.set_aside()]
        assert {letter["file"] for letter in letters} == {f"{here.topic}[1]"}
        assert sorted(letter["line"] for letter in letters) == [1, 2, 3, 4, 5]
        assert here.letters.counts() == {"malformed": 5, "late": 0}

    @pytest.mark.parametrize("together", [1, 3, 1_000])
    def test_what_is_decoded_together_stays_apart(
        self,
        here: TopicPlace,
        cluster: MockCluster,
        monkeypatch: pytest.MonkeyPatch,
        together: int,
    ) -> None:
        monkeypatch.setattr(kafka_blocks, "_DECODED_TOGETHER", together)
        monkeypatch.setattr(kafka_ingest, "block_of", lambda partitions, most: 2)
        for partition in range(2):
            here.produce(partition, (1, 10 * partition))
            cluster.produce(here.topic, ["oops"], partition)
            here.produce(partition, (0, 10 * partition + 2), (2, 10 * partition + 3))
        bring_in(here)
        assert here.rows() == [0, 10, 2, 3, 12, 13]
        places = {(one["file"], one["line"]) for one in map(json.loads, here.set_aside())}
        assert places == {(f"{here.topic}[{partition}]", 1) for partition in range(2)}


class TestOwners:
    def test_one_that_was_replaced_is_refused(self, here: TopicPlace) -> None:
        here.produce(0, (1, 1))
        former = bring_in(here)
        here.produce(0, (2, 2))
        bring_in(here)
        here.produce(0, (3, 3))
        with pytest.raises(RunError, match="belongs to a newer writer"):
            former.step()
        assert here.rows() == [1, 2]

    def test_one_that_was_a_moment_quicker_counts(
        self, here: TopicPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It was allowed to commit, and did so just after its successor had looked."""
        monkeypatch.setattr(kafka_ingest, "_ROWS_PER_COMMIT", 2)
        former = here.start()
        here.produce(0, *((at, at) for at in range(5)))
        successor = here.start()
        monkeypatch.setattr(former._entrance.writer, "check_owner", lambda: None)
        former.step()
        run(successor)
        assert here.rows() == [0, 1, 2, 3, 4]

    def test_the_client_is_closed_with_the_thread(self, here: TopicPlace) -> None:
        here.produce(0, (1, 1))
        ingest = here.start()
        thread = IngestThread(ingest, "readings", 0.01)
        thread.start()
        until(lambda: here.rows() == [1], 30, here.rows)
        assert ingest._consumer is not None
        thread.stop()
        assert ingest._consumer is None

    def test_nothing_is_taken_while_readers_are_far_behind(
        self, here: TopicPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        here.produce(0, (1, 1))
        ingest = here.start()
        monkeypatch.setattr(entrance.Entrance, "is_held_back", True)
        assert not ingest.step()
        assert ingest.is_held_back
        monkeypatch.setattr(entrance.Entrance, "is_held_back", False)
        assert ingest.step()


class TestFailures:
    def test_records_deleted_before_they_were_read(
        self, here: TopicPlace, cluster: MockCluster
    ) -> None:
        here.produce(0, (1, 1))
        ingest = bring_in(here)
        filler = "x" * 100_000
        cluster.produce(here.topic, (json.dumps({"ts": 2, "x": filler}) for _ in range(80)))
        text = rf"deleted records .* topic {here.topic}, partition 0 starts at offset \d+, needed"
        with pytest.raises(RunError, match=text):
            ingest.step()

    def test_records_deleted_while_they_are_read(
        self, here: TopicPlace, cluster: MockCluster
    ) -> None:
        filler = "x" * 100_000
        cluster.produce(here.topic, (json.dumps({"ts": 2, "x": filler}) for _ in range(80)))
        consumer = kafka_cluster.KafkaCluster(cluster.address).consumer()
        with pytest.raises(RunError, match=r"partition 0 starts at offset \d+, needed from 0"):
            list(kafka.records(consumer, cluster.address, here.topic, [Span(0, 0, 80)]))
        consumer.close()

    def test_a_topic_made_anew(self, here: TopicPlace, cluster: MockCluster) -> None:
        here.produce(0, *((at, at) for at in range(11)))
        bring_in(here)
        assert isinstance(here.stream.source, KafkaSource)
        other = replace(here.stream.source, topic=f"{here.topic}-anew")
        anew = here.with_stream(source=other)
        anew.produce(0, *((at, at) for at in range(10)))
        with pytest.raises(RunError, match=r"ends at offset 10, but was known to reach 11\. Was"):
            anew.start().step()

    def test_a_partition_that_is_gone(
        self, here: TopicPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        here.produce(0, (1, 1))
        ingest = bring_in(here)
        monkeypatch.setattr(kafka_ingest, "partitions_of", lambda *_: [0, 1, 2])
        with pytest.raises(
            RunError, match=r"no longer has a partition 3\. Was the topic made anew"
        ):
            ingest.step()

    def test_a_topic_that_is_not_there(self, here: TopicPlace, cluster: MockCluster) -> None:
        cluster.produce("readings", ["{}"])
        misspelt = KafkaSource(cluster.address, "readngs")
        with pytest.raises(InputError, match=r"no Kafka topic readngs .*Did you mean readings\?"):
            here.with_stream(source=misspelt).start().step()

    def test_brokers_that_do_not_answer(
        self, here: TopicPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kafka, "TIMEOUT_S", 0.5)
        nowhere = KafkaSource("127.0.0.1:1", "t")
        with pytest.raises(UnreachableError, match=r"no Kafka broker answers at 127\.0\.0\.1:1"):
            here.with_stream(source=nowhere).start().step()
