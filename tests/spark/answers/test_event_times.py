"""Event times computed where rows enter: as Spark computes them, and as queries need them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.feeds.event_times import event_times
from penstock.lang.sql import parse_expression
from penstock.model.expressions import to_sql
from penstock.model.schema import Schema

from answers.oracle import deployed, run

ROW = Schema.parse("text string, n bigint, x double")
PATTERNS = [
    "dd/MMM/yyyy:HH:mm:ss Z",
    "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "yyyyMMddHHmmss",
    "M/d/yy h:mm a",
    "MMMM d, yyyy hh:mm:ss a",
    "yyyy.MM.dd X",
    "yyyy.MM.dd xxx",
    "dd:HH:mm:ss",
]
_ODD = [*"0Z:/- .é٣", "2000", "0000", "13", "30", "-1", "+5", "Sept", "+1801", "PM", "24", "+12345"]


def _written(pattern: str, moment: datetime) -> str:
    """A time in a pattern, by Python's own names of the same parts."""
    zone = {"Z": "-0730", "X": "+05", "xxx": "+05:30", "XXX": "Z"}
    parts = {
        "yyyy": f"{moment.year:04d}",
        "yy": f"{moment.year % 100:02d}",
        "MMMM": moment.strftime("%B"),
        "MMM": moment.strftime("%b").upper(),
        "M": str(moment.month),
        "MM": f"{moment.month:02d}",
        "d": str(moment.day),
        "dd": f"{moment.day:02d}",
        "HH": f"{moment.hour:02d}",
        "h": str(moment.hour % 12 or 12),
        "hh": f"{moment.hour % 12 or 12:02d}",
        "a": moment.strftime("%p").lower(),
        "mm": f"{moment.minute:02d}",
        "ss": f"{moment.second:02d}",
        "SSS": f"{moment.microsecond // 1000:03d}",
        **zone,
    }
    text, at = "", 0
    while at < len(pattern):
        if pattern[at] == "'":
            end = pattern.index("'", at + 1)
            text, at = text + pattern[at + 1 : end], end + 1
            continue
        end = at + 1
        while end < len(pattern) and pattern[end] == pattern[at] and pattern[at].isalpha():
            end += 1
        text, at = text + parts.get(pattern[at:end], pattern[at:end]), end
    return text


def _texts(pattern: str, chance: random.Random) -> Iterator[str]:
    for _ in range(80):
        us = chance.randrange(-62_135_596_800 * 10**6, 253_402_300_800 * 10**6)
        moment = datetime(1970, 1, 1) + us * datetime.resolution
        text = _written(pattern, moment)
        yield text
        at = chance.randrange(len(text) + 1)
        yield text[:at] + chance.choice(_ODD) + text[at + chance.randrange(3) :]


def check_as_in_spark(session: SparkSession, expression: str, rows: pa.Table) -> int:
    """Compares both; how many rows have a time."""
    found = parse_expression(expression, ROW)
    ours = event_times(found, rows).cast(pa.int64()).to_pylist()
    frame = session.createDataFrame(rows)
    sql = f"unix_micros({to_sql(found, ROW)}) AS at"
    theirs = [row["at"] for row in frame.coalesce(1).selectExpr(sql).collect()]
    assert ours == theirs, expression
    return sum(one is not None for one in ours)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_times_in_a_pattern(session: SparkSession, pattern: str) -> None:
    texts = list(_texts(pattern, random.Random(pattern)))
    quoted = pattern.replace("'", "''")
    rows = pa.table({"text": pa.array([*texts, None])})
    read = check_as_in_spark(session, f"to_timestamp(text, '{quoted}')", rows)
    assert 80 <= read < len(texts)


def test_counts_since_1970(session: SparkSession) -> None:
    numbers: list[int | None] = [
        0,
        -1,
        1_500,
        10**12,
        10**15,
        -(10**14),
        10**18,
        2**63 - 1,
        -(2**63),
        None,
    ]
    doubles: list[float | None] = [0.5, -0.5, 1e9 + 0.123457, 1e300, float("nan"), float("-inf")]
    doubles += [-1e11, 2.5e11, 0.1, None]
    rows = pa.table({"n": pa.array(numbers, pa.int64()), "x": pa.array(doubles, pa.float64())})
    assert check_as_in_spark(session, "timestamp_millis(n)", rows) == 4
    assert check_as_in_spark(session, "timestamp_micros(n)", rows) == 6
    assert check_as_in_spark(session, "timestamp_seconds(x)", rows) == 5
    assert check_as_in_spark(session, "timestamp_seconds(n)", rows) == 3


@pytest.mark.parametrize(
    "part",
    [
        "regexp_extract(text, '(\\\\d+)')",
        "regexp_extract(text, 'a.?(\\\\d{4})')",
        "regexp_extract(text, '(\\\\w+)$')",
        "regexp_extract(text, '^[^0-9\\\\]]*([0-9]+)')",
        "regexp_extract(text, '(x|20)(2.)', 0)",
        "regexp_extract(text, '(\\\\S+?)(?:b|\\\\s|$)', 1)",
        "substring(text, -4, 4)",
        "substring(text, 2, 4)",
        "substring(text, 0, 4)",
        "substring(text, -9, 8)",
        "split_part(text, '|', 2)",
        "split_part(text, '|', -1)",
        "split_part(text, '', 1)",
        "trim(text)",
        "replace(text, 'a', '')",
        "replace(text, '', 'a')",
        "concat(text, '')",
        "coalesce(text, '2024')",
    ],
)
def test_parts_of_texts(session: SparkSession, part: str) -> None:
    """Compared as texts: every part is shown as the year it stands in."""
    texts = ["2024", "a2024", "x|2024|1999", " 2024 ", "2024\n", "2024\r\n", "2024\u0085", ""]
    texts += ["a\n2024", "a\r2024", "é2024", "2024b", "[2024]", "a202", "20\u00a024", "\t2024"]
    texts += ["٢٠٢٤", "2024\r", "|2024"]
    rows = pa.table({"text": pa.array([*texts, None])})
    check_as_in_spark(session, f"to_timestamp({part}, 'yyyy')", rows)


MANUAL = Path(__file__).parents[3] / "docs" / "language.md"


def blocks_of_the_manual(kind: str) -> list[str]:
    """The blocks of the manual that are marked as of this kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```", MANUAL.read_text(), re.DOTALL | re.MULTILINE)


def test_the_web_log_of_the_manual(session: SparkSession, tmp_path: Path) -> None:
    (log,) = blocks_of_the_manual("log")
    (web,) = (one for one in blocks_of_the_manual("yaml") if "access.log" in one)
    (answer,) = blocks_of_the_manual("csv")
    (tmp_path / "access.log").write_text(log)
    outcome = run(session, deployed(web, tmp_path), tmp_path / "state")
    lines = [",".join(map(str, row)) for row in sorted(outcome.rows("served"))]
    assert ["since,requests,missing", *lines] == answer.splitlines()
    assert outcome.set_aside["lines"] == {"malformed": 1, "late": 1}
