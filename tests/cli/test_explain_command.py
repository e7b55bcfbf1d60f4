"""What explain prints."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from penstock.errors import InputError, UsageError

FILE = """\
streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
  alarms: {source: {generate: packets, rate: 10, seconds: 60}, lateness: 1s}
queries:
  peaks: SELECT home, kwh FROM readings WHERE kwh > 2
  hourly:
    sql: |
      SELECT district, window.end AS at, sum(kwh) AS kwh
      FROM readings GROUP BY district, window(ts, '1 hour')
    to: {table: hourly, database: "sqlite:///ami.db"}
  high:
    sql: |
      SELECT district, window.end AS at, max(kwh) AS kwh
      FROM hourly GROUP BY district, window(at, '1 day')
    to: {files: out, format: csv}
  loud: SELECT src FROM alarms WHERE bytes > 100
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ami.yaml"
    path.write_text(FILE)
    return path


def explained(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments], catch_exceptions=True)


def test_text_has_fragments_and_ends_with_a_hint(file: Path) -> None:
    told = explained(str(file))
    assert told.exit_code == 0, told.exception
    for section in ("streams", "operators", "queries", "fragments"):
        assert f"\n{section}\n" in f"\n{told.output}"
    assert told.output.rstrip().splitlines()[-1] == (
        f"as a flowchart: penstock explain {file} --format mermaid"
    )
    assert all(
        len(line) <= 100 for line in told.output.splitlines()[:-1] if str(file.parent) not in line
    )


def test_fragments_say_what_runs_together(file: Path) -> None:
    shown = explained(str(file)).output
    fragments = shown[shown.index("fragments\n") :]
    assert "runs peaks_filter, peaks together; reads readings; no state" in fragments
    assert "read by high" in fragments
    assert "written to table hourly in sqlite:///" in fragments


def test_one_query_brings_only_what_it_needs(file: Path) -> None:
    told = explained(str(file), "--query", "high", "--format", "json")
    record = json.loads(told.output)
    assert [one["name"] for one in record["streams"]] == ["readings"]
    assert [one["name"] for one in record["queries"]] == ["high"]
    assert not any("peaks" in one["name"] for one in record["operators"])


def test_an_unknown_query(file: Path) -> None:
    told = explained(str(file), "--query", "hihg")
    assert isinstance(told.exception, InputError)
    assert str(told.exception) == (
        "no query hihg. There are peaks, hourly, high, loud. Did you mean high?"
    )


def test_json_has_fragments(file: Path) -> None:
    record = json.loads(explained(str(file), "--format", "json").output)
    assert record["deployment"] == "ami"
    assert {one["name"]: one["is_read"] for one in record["fragments"]} == {
        "peaks": False,
        "hourly": True,
        "high": False,
        "loud": False,
    }


def test_other_forms(file: Path) -> None:
    assert explained(str(file), "--format", "mermaid").output.startswith("flowchart")
    assert (
        "-- peaks\nSELECT home, kwh FROM readings WHERE kwh > 2;\n"
        in explained(str(file), "--format", "sql").output
    )
    assert explained(str(file), "--format", "yaml").output.startswith("streams:")
    assert explained(str(file), "--format", "python").output.startswith("import penstock as ps")


def test_yaml_of_one_query_reads_back(file: Path) -> None:
    told = explained(str(file), "--query", "hourly", "--format", "yaml")
    other = file.with_name("hourly.yaml")
    other.write_text(told.output)
    again = explained(str(other), "--format", "json")
    assert again.exit_code == 0, again.exception
    assert [query["name"] for query in json.loads(again.output)["queries"]] == ["hourly"]


PARTS = """\
streams:
  readings:
    source: {replay: gone.csv}
    schema: ts timestamp, home string
    event_time: ts
    lateness: 1s
  arriving: {source: {directory: nowhere, format: csv}, schema: home string}
  clean: {from: readings, python: "cleaning:wash"}
  other: {from: readings, python: "no_such_module:wash"}
tables:
  homes: {file: homes.csv, schema: home string}
queries:
  a: SELECT home FROM clean
  b: SELECT home FROM other
  c: SELECT arriving.home FROM arriving JOIN homes ON arriving.home = homes.home
"""


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    file = tmp_path / "parts.yaml"
    file.write_text(PARTS)
    told = explained(str(file))
    assert "operators" in told.output
    assert isinstance(told.exception, InputError)
    assert told.exception.what == (
        f"{file} names what is not there: no file {tmp_path}/gone.csv for stream readings; "
        f"no folder {tmp_path}/nowhere for stream arriving; "
        f"no file {tmp_path}/homes.csv for table homes; "
        f"no module cleaning in {tmp_path} nor among those installed for the Python operator "
        "cleaning:wash; "
        f"no module no_such_module in {tmp_path} nor among those installed for the Python operator "
        "no_such_module:wash"
    )
    for name in ("gone.csv", "homes.csv"):
        (tmp_path / name).touch()
    (tmp_path / "nowhere").mkdir()
    (tmp_path / "cleaning.py").write_text("def rinse(batch): return batch\n")
    (tmp_path / "no_such_module.py").write_text("def wash(batch): return batch\n")
    record = json.loads(explained(str(file), "--format", "json").output)
    assert record["missing"] == [
        f"no function wash in {tmp_path}/cleaning.py for the Python operator cleaning:wash"
    ]
    (tmp_path / "cleaning.py").write_text("wash = print\n")
    assert explained(str(file)).exit_code == 0


def test_one_query_over_the_streams_of_a_file(file: Path) -> None:
    sql = file.with_name("top.sql")
    sql.write_text("SELECT district, kwh FROM hourly WHERE kwh > 9")
    told = explained(str(sql), "--over", str(file))
    assert told.exit_code == 0, told.exception
    assert "gives district string, kwh double" in told.output
    alone = explained(str(sql))
    assert isinstance(alone.exception, UsageError)
    assert str(alone.exception).startswith(f"{sql} does not say what its streams are.")
    sql.write_text("SELECT district FROM nothing")
    assert isinstance(explained(str(sql), "--over", str(file)).exception, InputError)
    namesake = file.with_name("hourly.sql")
    namesake.write_text("SELECT district FROM hourly")
    refused = explained(str(namesake), "--over", str(file)).exception
    assert str(refused) == (
        f"query hourly is called like hourly of {file.name}. Rename one of them."
    )


def test_what_is_for_devices() -> None:
    """Who hears a query, and what the server runs of it."""
    file = Path(__file__).parents[2] / "examples" / "portfolio" / "portfolio.yaml"
    told = CliRunner().invoke(app, ["explain", str(file)])
    assert "profit             to devices anna, ben" in told.stdout
    assert "profit_t  runs profit_t_filter, profit_t together" in told.stdout
