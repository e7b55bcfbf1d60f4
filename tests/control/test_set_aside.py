"""Of which streams of a system rows can be set aside."""

from __future__ import annotations

from penstock.control.records import Submission
from penstock.control.set_aside import outside_streams
from penstock.control.system import assemble

TOPIC = """
streams:
  readings:
    source: {kafka: "127.0.0.1:9092", topic: ami}
    schema: ts timestamp, home string
    event_time: ts
    lateness: 2s
  lines: {source: {generate: meters, days: 1}, lateness: 2min}
  own: {from: lines, event_time: ts, lateness: 1min}
queries:
  homes: SELECT home FROM readings
  seen: SELECT home FROM own
"""


def test_those_that_later_submissions_read_stay_among_them() -> None:
    first = Submission(1, "ami", "yaml", TOPIC, ".")
    assert outside_streams(assemble([first])) == ["lines", "own", "readings"]
    texts = ["SELECT home FROM readings", "SELECT home FROM own", "SELECT home FROM homes"]
    later = [Submission(k, f"s{k}", "sql", text, ".") for k, text in enumerate(texts, 2)]
    assert outside_streams(assemble([first, *later])) == ["lines", "own", "readings"]
