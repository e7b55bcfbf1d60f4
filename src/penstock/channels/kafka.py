"""What the Kafka intake and sink share: exact reading and error text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from penstock.errors import (
    InputError,
    PenstockError,
    RunError,
    UnreachableError,
    listed,
    suggestion,
)
from penstock.feeds.partitions import Span

TIMEOUT_S = 10.0
"""How long a broker may stay silent before that is an error."""

_CONSUME_AT_ONCE = 10_000
_CONSUME_WAIT_S = 0.1

_PASSING = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT}
_OUT_OF_REACH = _PASSING | {KafkaError._RESOLVE, KafkaError._AUTHENTICATION, KafkaError._SSL}


@dataclass(frozen=True)
class Marks:
    """The first offset a partition still has, and the one after its last decided record."""

    low: int
    high: int


def partitions_of(consumer: Consumer, brokers: str, topic: str) -> list[int]:
    """The partitions of a topic; raises with the topics there are when there is no such one."""
    try:
        found = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
        if found.error is None:
            return sorted(found.partitions)
        if found.error.code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            raise KafkaException(found.error)
        topics = consumer.list_topics(timeout=TIMEOUT_S).topics
    except KafkaException as error:
        raise trouble(error, brokers, f"cannot tell the partitions of {topic}") from None
    names = sorted(name for name in topics if not name.startswith("__"))
    hint = f"The topics are {listed(names)}. {suggestion(topic, names)}".strip()
    raise InputError(f"no Kafka topic {topic} at {brokers}", hint=hint)


def marks_of(
    consumer: Consumer, brokers: str, topic: str, partitions: list[int]
) -> dict[int, Marks]:
    """What each of the partitions holds now: two requests to every broker."""

    def ask(which: int) -> list[int]:
        wanted = [TopicPartition(topic, partition, which) for partition in partitions]
        found = consumer.offsets_for_times(wanted, timeout=TIMEOUT_S)
        for partition in found:
            if partition.error is not None:
                raise KafkaException(partition.error)
        return [partition.offset for partition in found]

    try:
        # Ends first: a beginning that has moved since is noticed, not taken for an end.
        highs, lows = ask(OFFSET_END), ask(OFFSET_BEGINNING)
    except KafkaException as error:
        raise trouble(error, brokers, f"cannot tell the offsets of {topic}") from None
    found = zip(partitions, lows, highs, strict=True)
    return {partition: Marks(low, max(low, high)) for partition, low, high in found}


def records(
    consumer: Consumer, brokers: str, topic: str, spans: Sequence[Span]
) -> Iterator[Message]:
    """Exactly the records of ``spans``, those of each partition in order; one span a partition.

    Offsets may hold no record (transaction markers, aborted or compacted records), so the end is
    where the consumer has come past it, not a number of records.
    """
    consumer.assign([TopicPartition(topic, span.partition, span.start) for span in spans])
    left = {span.partition: [span.start, span.stop] for span in spans if span.size}
    moved_s = time.monotonic()
    while left:
        wanted = min(sum(stop - at for at, stop in left.values()), _CONSUME_AT_ONCE)
        for message in consumer.consume(wanted, _CONSUME_WAIT_S):
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                _check(error, consumer, brokers, topic, left)
                continue
            partition, reached = _place(message)
            # At the end of a partition the client tells the offset that comes next.
            reached += error is None
            at, stop = left.get(partition, (reached, reached))
            if reached <= at:
                continue
            if error is None and reached <= stop:
                yield message
            left[partition][0], moved_s = reached, time.monotonic()
            if reached >= stop:
                del left[partition]
        if left and time.monotonic() - moved_s > TIMEOUT_S:
            partition, (at, _) = min(left.items())
            raise UnreachableError(
                f"nothing came from {topic}, partition {partition}, offset {at} at {brokers} for "
                f"{TIMEOUT_S:g} s",
                hint="Check that the brokers run; the stream goes on where it was.",
            )
    consumer.unassign()


def _place(message: Message) -> tuple[int, int]:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset


def _check(
    error: KafkaError,
    consumer: Consumer,
    brokers: str,
    topic: str,
    left: Mapping[int, Sequence[int]],
) -> None:
    """Raises what the client says is wrong, unless that may pass."""
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        marks = marks_of(consumer, brokers, topic, sorted(left))
        for partition, (at, stop) in sorted(left.items()):
            if marks[partition].low > at or marks[partition].high < stop:
                raise lost(topic, Span(partition, at, stop), marks[partition])
    if error.code() not in _PASSING:
        raise trouble(KafkaException(error), brokers, f"cannot read {topic}")


def lost(topic: str, needed: Span, marks: Marks) -> RunError:
    """The error for records that are needed and no longer there."""
    if marks.low > needed.start:
        return RunError(
            f"Kafka has deleted records that were not read yet: topic {topic}, partition "
            f"{needed.partition} starts at offset {marks.low}, needed from {needed.start}",
            hint="Lengthen the topic's retention; start afresh with --fresh to go on without them.",
        )
    return RunError(
        f"Kafka has lost records: topic {topic}, partition {needed.partition} ends at offset "
        f"{marks.high}, but was known to reach {needed.stop}",
        hint="Was the topic made anew? Start afresh with --fresh.",
    )


def trouble(error: KafkaException, brokers: str, what: str) -> PenstockError:
    """What a client reported, as an error of ours."""
    reported: KafkaError = error.args[0]
    if reported.code() in _OUT_OF_REACH:
        return UnreachableError(
            f"no Kafka broker answers at {brokers} ({reported.str()})",
            hint="Check the address, that the brokers run, and if they want TLS or a login.",
        )
    return RunError(
        f"Kafka at {brokers} {what}: {reported.str()}",
        hint="Check the topic, and what this client is allowed to do.",
    )


def insisting(call: Callable[[], object], tries: int = 3) -> None:
    """Calls again what the client says may be called again."""
    for left in reversed(range(tries)):
        try:
            call()
            return
        except KafkaException as error:
            if not left or not error.args[0].retriable():
                raise
