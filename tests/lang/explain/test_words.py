"""What is said about the parts of a deployment."""

from penstock.lang.explain.words import stream_time_words
from penstock.model.schema import Schema, Shape
from penstock.model.sources import GeneratorSource, RunningSource, Stream

SHAPE = Shape.timed(Schema.parse("ts timestamp"), "ts")


def test_how_late_rows_of_a_running_stream_may_be_is_not_known_here() -> None:
    brought_in = Stream("s", GeneratorSource("meters"), SHAPE, 60_000_000)
    assert stream_time_words(brought_in) == "event time ts, rows up to 1 minute late"
    running = Stream("s", RunningSource(), SHAPE, 0)
    assert stream_time_words(running) == "event time ts"
