"""What people read when a deployment file is wrong, word for word."""

from pathlib import Path
from textwrap import dedent

import pytest

from penstock.errors import InputError
from penstock.lang.deployment import parse_deployment, read_deployment

STREAMS = """\
streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
"""


def message(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parse_deployment(dedent(text).lstrip("\n"), "ami.yaml", Path("/data"))
    return str(caught.value)


def told(text: str) -> str:
    return dedent(text).strip("\n")


def test_empty() -> None:
    assert message("") == "ami.yaml is empty. A deployment file has at least streams: …"
    assert message("# nothing\n") == "ami.yaml is empty. A deployment file has at least streams: …"
    assert message("{}") == "ami.yaml is empty. A deployment file has at least streams: …"


def test_not_a_mapping() -> None:
    assert message("- a\n") == told("""
        ami.yaml, line 1:
            - a
            ^
        ami.yaml must be a mapping of keys to values; it is a list
        """)
    assert message("SELECT 1") == told("""
        ami.yaml, line 1:
            SELECT 1
            ^^^^^^^^
        ami.yaml must be a mapping of keys to values; it is 'SELECT 1'
        """)


def test_malformed() -> None:
    assert message("streams:\n  a: [1\nqueries: {}\n") == told("""
        ami.yaml, line 3:
            queries: {}
                   ^
        this is not YAML: while parsing a flow sequence expected ',' or ']', but got ':'
        """)
    assert message("streams: a: b\n") == told("""
        ami.yaml, line 1:
            streams: a: b
                      ^
        this is not YAML: mapping values are not allowed here
        """)
    assert message("a: \x07").startswith("ami.yaml is not YAML: unacceptable character #x0007")
    assert message("[" * 600 + "]" * 600) == "ami.yaml is nested too deeply"


def test_duplicate_key() -> None:
    assert message("""
        streams:
          a: {sql: SELECT 1}
          a: {sql: SELECT 2}
        """) == told("""
        ami.yaml, line 3:
              a: {sql: SELECT 2}
              ^
        streams of ami.yaml has the key a twice. Remove one, or rename it.
        """)


def test_unknown_keys() -> None:
    assert message(STREAMS + "querys: {}\n") == told("""
        ami.yaml, line 3:
            querys: {}
            ^^^^^^
        no key querys in ami.yaml; the keys are streams, tables, queries, nodes, placement, \
balance, share, broadcast, devices. Did you mean queries?
        """)
    assert message("""
        streams:
          readings:
            source: {generate: meters, days: 1}
            latenes: 2min
        """) == told("""
        ami.yaml, line 4:
                latenes: 2min
                ^^^^^^^
        no key latenes in stream readings; the keys are source, schema, columns, \
time_format, event_time, lateness, idle_timeout, ahead, on. Did you mean lateness?
        """)
    assert message("""
        streams:
          readings: {source: {kafka: "h:1", topics: t}, schema: a int}
        """) == told("""
        ami.yaml, line 2:
              readings: {source: {kafka: "h:1", topics: t}, schema: a int}
                                                ^^^^^^
        no key topics in source of stream readings; the keys are kafka, topic, client, finished. \
Did you mean topic?
        """)
    assert message(STREAMS + "queries: {q: {sql: SELECT 1, too: none}}\n") == told("""
        ami.yaml, line 3:
            queries: {q: {sql: SELECT 1, too: none}}
                                         ^^^
        no key too in query q; the keys are sql, to, max_latency, on, groups, engine, join, \
device. Did you mean to?
        """)
    assert message("nodes: {a: {core: 1}}\n") == told("""
        ami.yaml, line 1:
            nodes: {a: {core: 1}}
                        ^^^^
        no key core in node a; the keys are cores, memory, parent. Did you mean cores?
        """)


def test_commas_inside_braces() -> None:
    assert message(STREAMS + "queries: {q: SELECT home, kwh FROM readings}\n") == told("""
        ami.yaml, line 3:
            queries: {q: SELECT home, kwh FROM readings}
                                      ^^^^^^^^^^^^^^^^^
        'kwh FROM readings' stands where a key should. \
Inside { } a comma ends the value before it; put that value in quotes.
        """)


def test_missing_keys() -> None:
    assert message("streams: {readings: {schema: a int}}\n") == told("""
        ami.yaml, line 1:
            streams: {readings: {schema: a int}}
                      ^^^^^^^^
        stream readings does not say where its rows come from. \
Give a source, or sql or from for one made from other streams.
        """)
    assert message("streams: {s: {source: {kafka: h}, schema: a int}}\n") == told("""
        ami.yaml, line 1:
            streams: {s: {source: {kafka: h}, schema: a int}}
                                  ^^^^^^^^^^
        source of stream s has no topic. Add topic: …
        """)
    assert message("streams: {s: {source: {speedup: 3}}}\n") == told("""
        ami.yaml, line 1:
            streams: {s: {source: {speedup: 3}}}
                                  ^^^^^^^^^^^^
        source of stream s has the keys speedup, none of which says what it is. \
Give one of generate, directory, replay, kafka.
        """)
    assert message("streams: {s: {source: {directory: in, format: csv}}}\n") == told("""
        ami.yaml, line 1:
            streams: {s: {source: {directory: in, format: csv}}}
                      ^
        stream s has no schema. Name its columns: schema: ts timestamp, …
        """)
    assert message("streams: {s: {source: {replay: day}, schema: a int}}\n") == told("""
        ami.yaml, line 1:
            streams: {s: {source: {replay: day}, schema: a int}}
                                  ^^^^^^^^^^^^^
        source of stream s does not say which format its files have. \
Add format: csv, json, parquet or text.
        """)
    assert message("tables: {t: {file: homes.csv}}\n") == told("""
        ami.yaml, line 1:
            tables: {t: {file: homes.csv}}
                     ^
        table t has no schema. Add schema: …
        """)


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        (
            "streams: {s: {source: {generate: meters, days: 1}, lateness: soon}}",
            "soon",
            "'soon' is not a duration. Write for example 500ms, 30 s, 2min, 6 hours or 1 day.",
        ),
        (
            "streams: {s: {source: {generate: meters, days: 1}, lateness: [1]}}",
            "[1]",
            "lateness of stream s must be a duration, such as 30 s; it is a list",
        ),
        (
            "streams: {s: {source: {directory: in, format: cvs}, schema: a int}}",
            "cvs",
            "no file format cvs. The formats are csv, json, parquet, text. Did you mean csv?",
        ),
        (
            "streams: {s: {source: {directory: in, format: csv, finished: 1}, schema: a int}}",
            "1",
            "finished of source of stream s must be true or false; it is '1'",
        ),
        (
            "streams: {s: {source: {replay: a.csv, speedup: fast}, schema: a int}}",
            "fast",
            "speedup of source of stream s must be a number; it is 'fast'",
        ),
        (
            "streams: {s: {source: {replay: a.csv, speedup: .inf}, schema: a int}}",
            ".inf",
            "speedup of source of stream s must be a number; it is '.inf'",
        ),
        (
            "streams: {s: {source: {replay: a.csv, speedup: 0}, schema: a int}}",
            "{replay: a.csv, speedup: 0}",
            "a replay 0.0 times as fast as recorded. Give a speedup above zero, or max.",
        ),
        (
            "streams: {s: {source: {replay: a.csv, delimiter: '||'}, schema: a int}}",
            "'||'",
            "the delimiter '||' has 2 characters. Give one character, for example ',' or '\\t'.",
        ),
        (
            "streams: {s: {source: {replay: a.json, delimiter: ';'}, schema: a int}}",
            "';'",
            "delimiter is about csv files; the format of source of stream s is json. "
            "Remove delimiter, or change the format.",
        ),
        (
            "streams: {s: {source: {directory: in, format: csv}, schema: kwh dubble}}",
            "kwh dubble",
            "no type dubble. The types are boolean, int, bigint, double, string, timestamp, date, "
            "binary. Did you mean double?",
        ),
        (
            "streams: {s: {source: {generate: meters, homes: [3]}}}",
            "[3]",
            "homes of source of stream s must be one value; it is a list",
        ),
        (
            "tables: {t: {database: homes.db, schema: a int}}",
            "homes.db",
            "'homes.db' is not a database URL. "
            "Write for example sqlite:///file.db or postgresql+psycopg://user@host/name.",
        ),
        (
            'tables: {t: {database: "postgresql://u:${NO_SUCH_THING}@h/d", schema: a int}}',
            '"postgresql://u:${NO_SUCH_THING}@h/d"',
            "the environment variable NO_SUCH_THING is not set. "
            "Set it before starting, for example export NO_SUCH_THING=….",
        ),
        (
            "queries: {q: {sql: SELECT 1, to: {files: ~nobody_at_all/out}}}",
            "~nobody_at_all/out",
            "~nobody_at_all/out has no home folder. Write the path from the root.",
        ),
        (
            "queries: {q: {sql: SELECT 1, to: {files: ''}}}",
            "''",
            "an empty path. Name a file or a folder.",
        ),
        (
            "queries: {q: {sql: SELECT 1, to: consol}}",
            "consol",
            "to of query q is 'consol'; it can be console, memory, none, {files: PATH}, "
            "{table: NAME, database: URL} or {kafka: BROKERS, topic: NAME}. "
            "Did you mean console?",
        ),
        (
            "queries: {q: [SELECT 1]}",
            "[SELECT 1]",
            "query q must be a mapping of keys to values; it is a list",
        ),
        ("queries: {q: }", "", "query q must be SQL or a mapping; it is empty"),
        (
            "queries: {q: {sql: SELECT 1, max_latency: 5q}}",
            "5q",
            "'5q' is not a duration. Write for example 500ms, 30 s, 2min, 6 hours or 1 day.",
        ),
        ("nodes: {a: {cores: two}}", "two", "cores of node a must be a whole number; it is 'two'"),
        (
            "nodes: {a: {memory: 12}}",
            "12",
            "an amount of memory of 12 has no unit. Did you mean 12g, or 12m?",
        ),
        (
            "nodes: {a: {memory: lots}}",
            "lots",
            "'lots' is not an amount of memory. Write for example 512m or 2g.",
        ),
        (
            "balance: rod",
            "rod",
            "balance of ami.yaml must be a mapping of keys to values; it is 'rod'",
        ),
        ("placement: [rod]", "[rod]", "placement of ami.yaml must be a text; it is a list"),
        (
            "balance: &a {b: *a}",
            "&a {b: *a}",
            "b of b of b of b of b of balance of ami.yaml "
            "must be nested less deeply; it is a mapping",
        ),
    ],
)
def test_values(text: str, value: str, said: str) -> None:
    shown = message(text + "\n").splitlines()
    assert shown[0] == "ami.yaml, line 1:"
    assert shown[1] == f"    {text}"
    if value:
        assert text[shown[2].index("^") - 4 :][: shown[2].count("^")] == value
    assert "\n".join(shown[3:]) == said


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        (
            "streams: {s: {source: {generate: metres}}}",
            "s",
            "no generator 'metres'; there are meters, packets, trades, nexmark.persons, "
            "nexmark.auctions, nexmark.bids. Did you mean meters?",
        ),
        (
            "streams: {s: {source: {generate: meters, home: 3}}}",
            "s",
            "generator meters has no option 'home'; there are homes, every, days, bursts, "
            "districts, seed, start, speedup, disorder. Did you mean homes?",
        ),
        (
            "streams: {s: {source: {generate: meters, days: 1}, schema: a int}}",
            "s",
            "stream s is declared as a int, but generator meters gives ts timestamp, home string, "
            "district string, kwh double. Leave the schema out, or rename columns in a query.",
        ),
        (
            "streams: {s: {source: {generate: meters, days: 1}, event_time: when}}",
            "s",
            "no column when. It has ts, home, district, kwh.",
        ),
        (
            "streams: {s: {source: {replay: a.csv}, schema: ts timestamp, lateness: 1s}}",
            "s",
            "stream s has a lateness but no event time. Name the timestamp column with event_time.",
        ),
        (
            "streams: {s: {source: {replay: a.csv}, schema: ts string, event_time: ts}}",
            "s",
            "event time ts is a string, not a timestamp. "
            "Declare the column as timestamp, or cast it in a query.",
        ),
        (
            "streams: {a-b: {sql: SELECT 1}}",
            "a-b",
            "'a-b' cannot name a stream. "
            "Use letters, digits and underscores, starting with a letter.",
        ),
        (
            "nodes: {a: {cores: 0}}",
            "{cores: 0}",
            "node a has 0 cores. Give at least one.",
        ),
        (
            "tables: {t: {database: 'sqlite://', table: a b, schema: a int}}",
            "t",
            "'a b' cannot name a database table. "
            "Use letters, digits and underscores, starting with a letter.",
        ),
    ],
)
def test_records(text: str, key: str, said: str) -> None:
    shown = message(text + "\n").splitlines()
    assert shown[1] == f"    {text}"
    assert text[shown[2].index("^") - 4 :][: shown[2].count("^")] == key
    assert "\n".join(shown[3:]) == said


def test_names_are_given_once() -> None:
    assert message(STREAMS + "queries: {readings: SELECT * FROM readings}\n") == told("""
        ami.yaml, line 3:
            queries: {readings: SELECT * FROM readings}
                      ^^^^^^^^
        query readings is called like stream readings. Rename one of them.
        """)
    assert message(STREAMS + "tables: {Readings: {file: a.csv, schema: a int}}\n") == told("""
        ami.yaml, line 3:
            tables: {Readings: {file: a.csv, schema: a int}}
                     ^^^^^^^^
        table Readings is called like stream readings. Rename one of them.
        """)
    text = STREAMS + "  split: {from: readings, switch: {high: kwh > 1}}\n"
    assert message(text + "queries: {split_high: SELECT * FROM readings}\n") == told("""
        ami.yaml, line 4:
            queries: {split_high: SELECT * FROM readings}
                      ^^^^^^^^^^
        query split_high is called like stream split. Rename one of them.
        """)


def test_inner_names_are_given_once() -> None:
    assert message(
        STREAMS
        + dedent("""
        queries:
          q: {sql: SELECT home FROM readings, to: {table: t, database: 'sqlite:///a.db'}}
          q_write: SELECT ts FROM readings
        """).lstrip()
    ) == told("""
        ami.yaml, line 4:
              q: {sql: SELECT home FROM readings, to: {table: t, database: 'sqlite:///a.db'}}
              ^
        query q makes a stream q_write of its own, and query q_write is called so. \
Rename one of them.
        """)


def test_sql_errors_point_into_the_query() -> None:
    assert message(
        STREAMS
        + dedent("""
        queries:
          heavy_homes:
            sql: |
              SELECT home, district, window.start AS since, sum(kwh) AS kwh
              FROM readings GROUP BY hom, district, window(ts, '6 hours', '30 minutes')
              HAVING sum(kwh) > 9
        """).lstrip()
    ) == told("""
        ami.yaml, query heavy_homes, line 2:
            FROM readings GROUP BY hom, district, window(ts, '6 hours', '30 minutes')
                                   ^^^
        no column hom in readings; it has ts, home, district, kwh. Did you mean home?
        """)


def test_unknown_streams_are_listed_with_all_there_are() -> None:
    assert message(
        STREAMS
        + dedent("""
        queries:
          a: SELECT home FROM heavi
          heavy: SELECT home FROM readings WHERE kwh > 1
        """).lstrip()
    ) == told("""
        ami.yaml, query a, line 1:
            SELECT home FROM heavi
                             ^^^^^
        no stream or table heavi; there are readings, heavy. Did you mean heavy?
        """)
    text = STREAMS + "  b: {from: redings, python: 'm:f'}\n"
    assert message(text) == told("""
        ami.yaml, line 3:
              b: {from: redings, python: 'm:f'}
                        ^^^^^^^
        no stream redings. There are readings. Did you mean readings?
        """)


def test_derived_streams() -> None:
    assert message(STREAMS + "  b: {from: readings, python: f}\n") == told("""
        ami.yaml, line 3:
              b: {from: readings, python: f}
                                          ^
        'f' names no function. Write module:function, for example cleaning:drop_spikes.
        """)
    assert message(STREAMS + "  b: {from: readings, switch: {}}\n") == told("""
        ami.yaml, line 3:
              b: {from: readings, switch: {}}
              ^
        switch b has the cases none. Give at least one case, each with its own name.
        """)
    assert message(STREAMS + "  b: {from: readings, switch: {high: kw > 1}}\n") == told("""
        ami.yaml, stream b, case high, line 1:
            kw > 1
            ^^
        no column kw in the input; it has ts, home, district, kwh. Did you mean kwh?
        """)
    assert message(STREAMS + "  b: {sql: SELECT 1, from: readings}\n") == told("""
        ami.yaml, line 3:
              b: {sql: SELECT 1, from: readings}
                                 ^^^^
        no key from in stream b; the keys are sql
        """)


def test_circles() -> None:
    assert message(
        STREAMS
        + dedent("""
        queries:
          a: SELECT home FROM c
          b: SELECT home FROM a
          c: SELECT home FROM b
        """).lstrip()
    ) == told("""
        ami.yaml, line 4:
              a: SELECT home FROM c
              ^
        these read each other in a circle: a -> b -> c -> a. \
Break it by reading from a stream instead.
        """)


def test_nodes_exist() -> None:
    text = STREAMS + "queries: {q: {sql: SELECT home FROM readings, on: b}}\nnodes: {a: }\n"
    assert message(text) == told("""
        ami.yaml, line 3:
            queries: {q: {sql: SELECT home FROM readings, on: b}}
                                                              ^
        on of query q is b; the nodes are a
        """)


def test_insert_has_no_other_sink() -> None:
    text = dedent("""
        tables: {t: {database: 'sqlite:///a.db', schema: home string}}
        queries:
          q: {sql: INSERT INTO t SELECT home FROM readings, to: console}
        """).lstrip()
    assert message(STREAMS + text) == told("""
        ami.yaml, line 5:
              q: {sql: INSERT INTO t SELECT home FROM readings, to: console}
                                                                    ^^^^^^^
        query q already goes to table t by its INSERT INTO. Remove to, or the INSERT INTO.
        """)


def test_files(tmp_path: Path) -> None:
    def reading(path: Path) -> str:
        with pytest.raises(InputError) as caught:
            read_deployment(path)
        return str(caught.value)

    (tmp_path / "ami.yaml").write_bytes(b"streams: \xff")
    assert reading(tmp_path / "amy.yaml") == f"no file {tmp_path}/amy.yaml. Did you mean ami.yaml?"
    assert reading(tmp_path / "x" / "ami.yaml") == (
        f"no file {tmp_path}/x/ami.yaml. There is no folder {tmp_path}/x either."
    )
    assert reading(tmp_path / "ami.yaml") == (
        f"{tmp_path}/ami.yaml is not UTF-8 text: invalid start byte at byte 9. Save it as UTF-8."
    )
    assert reading(tmp_path) == f"{tmp_path} cannot be read: is a directory"
