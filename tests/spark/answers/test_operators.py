"""The operators that random pipelines leave out, and rows that are hard to take."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.errors import RunError
from penstock.lang.deployment import parse_deployment

from answers.oracle import Oracle, Outcome, check_answers, deployed, run

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)

DEPLOYMENT = """
streams:
  rows:
    source: {replay: rows.csv, delimiter: "|", null: NULL}
    schema: ts timestamp, k string, g int, v bigint
    event_time: ts
    lateness: 5s
  untimed:
    source: {replay: rows.csv, delimiter: "|", null: NULL}
    schema: ts timestamp, k string, g int, v bigint
  clean: {from: rows, python: "cleaning:without_spikes"}
  twice: {from: clean, python: "cleaning:doubled", schema: "k string, twice bigint, ts timestamp"}
  level:
    from: rows
    switch: {high: v > 50, odd: v % 2 = 1 OR v IS NULL, low: v <= 50}
tables:
  names: {file: names.csv, schema: "id bigint, name string, since date"}
  prices: {database: "sqlite:///prices.db", table: price_list, schema: "k string, price double, cheap boolean, since timestamp"}
  kinds: {database: "sqlite:///prices.db", schema: "g bigint, kind string"}
queries:
  every_row: SELECT ts, k, g, v FROM untimed
  never: SELECT k, window.end AS at, count(*) AS n FROM rows WHERE 1 > 2 GROUP BY k, window(ts, '10 seconds')
  paired_with_itself: |
    SELECT a.ts, a.v, b.v AS other FROM rows a LEFT JOIN rows b
      ON a.k = b.k AND b.ts = a.ts AND b.v = a.v WHERE a.v = 5 AND 1 < 2
  named: SELECT r.ts, r.g, n.name, n.since FROM rows r JOIN names n ON r.g = n.id
  perhaps_named: SELECT r.ts, r.g, n.name FROM rows r LEFT JOIN names n ON r.g = n.id WHERE r.v > 3
  priced: SELECT r.ts, r.k, r.v * p.price AS cost, p.cheap, p.since FROM rows r JOIN prices p ON r.k = p.k
  perhaps_priced: SELECT r.ts, r.k, p.price FROM rows r LEFT JOIN prices p ON r.k = p.k
  kinds_seen: |
    SELECT kinds.kind, window.end AS at, count(*) AS n
    FROM rows r JOIN kinds ON r.g = kinds.g GROUP BY kinds.kind, window(r.ts, '20 seconds')
  high: SELECT ts, v FROM level_high
  odd: SELECT ts, v FROM level_odd
  low: SELECT window.end AS at, count(*) AS n FROM level_low GROUP BY window(ts, '20 seconds')
  extremes: |
    SELECT ts, round(v, -1) AS tens, round(v * 0 + 9223372036854775807, -1) AS beyond,
      k LIKE concat(k, '\\\\') AS unlike, k LIKE concat(k, '%') AS alike FROM rows
  python_sums: SELECT k, window.end AS at, sum(twice) AS total FROM twice GROUP BY k, window(ts, '20 seconds')
"""

ANSWERS = {
    "every_row": "SELECT ts, k, g, v FROM rows_arrivals",
    "extremes": """
        SELECT ts, CAST(round(v, -1) AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BOOLEAN),
          starts_with(k, k) FROM rows
    """,
    "never": "SELECT NULL, NULL, NULL WHERE false",
    "paired_with_itself": """
        SELECT a.ts, a.v, b.v FROM rows a LEFT JOIN rows b ON a.k = b.k AND b.ts = a.ts AND b.v = a.v
        WHERE a.v = 5
        """,
    "named": "SELECT ts, g, name, since FROM rows JOIN names ON g = id",
    "perhaps_named": "SELECT ts, g, name FROM rows LEFT JOIN names ON g = id WHERE v > 3",
    "priced": "SELECT ts, k, v * price, cheap, since FROM rows JOIN prices USING (k)",
    "perhaps_priced": "SELECT ts, k, price FROM rows LEFT JOIN prices USING (k)",
    "kinds_seen": """
        SELECT kind, time_bucket(INTERVAL 20 SECOND, ts) + INTERVAL 20 SECOND, count(*)
        FROM rows JOIN kinds USING (g) GROUP BY 1, 2
        """,
    "high": "SELECT ts, v FROM rows WHERE v > 50",
    "odd": "SELECT ts, v FROM rows WHERE v IS NULL OR (v <= 50 AND v % 2 = 1)",
    "low": """
        SELECT time_bucket(INTERVAL 20 SECOND, ts) + INTERVAL 20 SECOND, count(*) FROM rows
        WHERE v <= 50 AND v % 2 <> 1 GROUP BY 1
        """,
    "python_sums": """
        SELECT k, time_bucket(INTERVAL 20 SECOND, ts) + INTERVAL 20 SECOND, 4 * sum(v)
        FROM rows WHERE v < 100 GROUP BY 1, 2
        """,
}

PRICES = (("a", 1.5, 1, "2026-01-01 00:00:00"), ("a", 2.0, 0, None), ("b", None, None, None))
NAMES = ((1, "one", "2020-02-29"), (2, "two", None), (2, "zwei", "1999-12-31"), (9, "nine", None))
MALFORMED = (
    "yesterday|a|1|1",
    "2026-05-01 12:00:00|a|one|1",
    "2026-05-01 12:00:00|a|1",
    "2026-05-01 12:00:00|a|1|9223372036854775808",
    "2026-05-01 12:00:00|a|1|1|1",
)


def rows() -> pa.Table:
    """Rows a second apart, some out of order, some too late, with and without values."""
    moments = [NOON + timedelta(seconds=at - (at % 7) * (at % 3)) for at in range(120)]
    return pa.table(
        {
            "ts": pa.array(moments, pa.timestamp("us", "UTC")),
            "k": [("a", "b", "c", None)[at % 4] for at in range(120)],
            "g": pa.array([(1, 2, 3, None, 9)[at % 5] for at in range(120)], pa.int32()),
            "v": pa.array([None if at % 17 == 0 else at * 7 % 131 for at in range(120)]),
        }
    )


def write_rows(table: pa.Table, path: Path) -> None:
    """As a file with rows among them that cannot be read."""
    lines = ["ts|k|g|v"]
    for at, row in enumerate(table.to_pylist()):
        shown = ["NULL" if one is None else str(one) for one in row.values()]
        lines.append("|".join(shown))
        if at % 30 == 0:
            lines.append(MALFORMED[at // 30])
    lines.append(MALFORMED[4])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    made = Oracle()
    made.arrivals("rows", rows(), "ts", 5_000_000)
    made.execute("CREATE TABLE names (id INT, name VARCHAR, since DATE)")
    made.execute("CREATE TABLE prices (k VARCHAR, price DOUBLE, cheap BOOLEAN, since TIMESTAMP)")
    made.execute(
        "CREATE TABLE kinds AS FROM (VALUES (1, 'good'), (3, 'bad'), (3, 'ugly')) t(g, kind)"
    )
    for table, values in (("names", NAMES), ("prices", PRICES)):
        for value in values:
            shown = ", ".join("NULL" if part is None else repr(part) for part in value)
            made.execute(f"INSERT INTO {table} VALUES ({shown})")
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("operators")
    write_rows(rows(), made / "rows.csv")
    names = "".join(f"{id},{name},{since or ''}\n" for id, name, since in NAMES)
    (made / "names.csv").write_text(f"id,name,since\n{names}", encoding="utf-8")
    with sqlite3.connect(made / "prices.db") as database:
        database.execute(
            "CREATE TABLE price_list (k TEXT, price REAL, cheap BOOLEAN, since TIMESTAMP)"
        )
        database.executemany("INSERT INTO price_list VALUES (?, ?, ?, ?)", PRICES)
        database.execute("CREATE TABLE kinds (g INTEGER, kind TEXT)")
        kinds = [(1, "good"), (3, "bad"), (3, "ugly")]
        database.executemany("INSERT INTO kinds VALUES (?, ?)", kinds)
    return made


@pytest.fixture(scope="module")
def outcome(session: SparkSession, folder: Path) -> Outcome:
    # Modules of users must be where workers find them.
    session.sparkContext.addPyFile(str(Path(__file__).parent / "cleaning.py"))
    return run(session, deployed(DEPLOYMENT, folder), folder / "state", max_rows_per_batch=25)


def test_every_query_is_asked() -> None:
    network = parse_deployment(DEPLOYMENT, "operators.yaml", Path()).network
    assert {query.name for query in network.queries} == set(ANSWERS)


@pytest.mark.parametrize("query", ANSWERS)
def test_answer(query: str, outcome: Outcome, oracle: Oracle) -> None:
    assert (outcome.tables[query].num_rows == 0) == (query == "never")
    check_answers(outcome, oracle, {query: ANSWERS[query]})


def test_rows_that_cannot_be_read_are_set_aside(outcome: Outcome, folder: Path) -> None:
    assert outcome.set_aside["rows"]["malformed"] == len(MALFORMED)
    letters = (folder / "state" / "dead_letters" / "rows").glob("*.malformed-*.jsonl")
    kept = [json.loads(line) for letter in letters for line in letter.read_text().splitlines()]
    lines = (folder / "rows.csv").read_text().splitlines()
    assert sorted(one["line"] for one in kept) == [
        at for at, line in enumerate(lines, 1) if line in MALFORMED
    ]
    reasons = " ".join(one["reason"] for one in kept)
    assert "'yesterday' is no timestamp" in reasons
    assert "3 columns instead of 4" in reasons


def test_rows_that_come_late_are_set_aside(outcome: Outcome, oracle: Oracle, folder: Path) -> None:
    assert outcome.late("rows") == oracle.late["rows"] > 0
    letters = (folder / "state" / "dead_letters" / "rows").glob("*.late-*.jsonl")
    kept = [
        json.loads(line)["row"] for letter in letters for line in letter.read_text().splitlines()
    ]
    late = oracle.rows(
        "SELECT v, ts FROM rows_arrivals WHERE arrival NOT IN (SELECT arrival FROM rows)"
    )
    assert sorted(one["ts"][:19] for one in kept) == sorted(str(ts) for _, ts in late)


BESIDE = """
streams:
  rows: {source: {replay: rows.json}, schema: "ts timestamp, v bigint", event_time: ts, lateness: 5s}
  made: {from: rows, python: "beside_the_file:FUNCTION"}
queries:
  sums: SELECT window.start AS since, sum(v) AS v FROM made GROUP BY window(ts, '10 seconds')
"""
MODULE = """
import pyarrow as pa
import pyarrow.compute as pc


def doubled(batch):
    return batch.set_column(1, "v", pc.multiply(batch["v"], 2))


def shifted(batch):
    hour = pa.scalar(3_600_000_000, pa.duration("us"))
    return batch.set_column(0, "ts", pc.add(batch["ts"], hour))
"""


def test_a_python_operator_beside_its_file(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(
        '{"ts": 1, "v": 1}\n{"ts": 2, "v": 2}\n{"ts": 11, "v": 3}\n'
    )
    (tmp_path / "beside_the_file.py").write_text(MODULE)
    network = deployed(BESIDE.replace("FUNCTION", "doubled"), tmp_path)
    outcome = run(session, network, tmp_path / "state")
    since = datetime(1970, 1, 1)
    assert sorted(outcome.rows("sums")) == [(since, 6), (since + timedelta(seconds=10), 6)]
    shifting = deployed(BESIDE.replace("FUNCTION", "shifted"), tmp_path)
    with pytest.raises(RunError, match="beside_the_file:shifted gives a row the event time"):
        run(session, shifting, tmp_path / "other")
