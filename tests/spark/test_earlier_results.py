"""What earlier runs have written is removed when a deployment starts over, and nothing else."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from penstock.channels.durable import write_number
from penstock.errors import InputError
from penstock.lang.deployment import parse_deployment
from penstock.model.network import Network
from penstock.spark.earlier_results import earlier_results
from penstock.spark.tallies import add_to_tally

pytestmark = pytest.mark.core

DEPLOYMENT = """
streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
queries:
  high:
    sql: SELECT ts, home FROM readings WHERE kwh > 3
    to: {files: out/high, format: json}
  low:
    sql: SELECT ts, home FROM readings WHERE kwh < 1
    to: {table: low, database: "sqlite:///out/low.db"}
"""


class Earlier:
    """A deployment whose fragments have run with these names."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder, folder / "state"
        (folder / "out" / "high").mkdir(parents=True)
        self.network: Network = parse_deployment(DEPLOYMENT, "d.yaml", folder).network
        self.database = sqlite3.connect(folder / "out" / "low.db")
        for name, life in (("high", 0xABC), ("low", 0xDEF)):
            (self.state / "fragments" / name).mkdir(parents=True)
            write_number(self.state / "fragments" / name / "life", life)
        self.database.execute("CREATE TABLE penstock_commits (writer, batch_id, epoch)")
        self.database.execute("CREATE TABLE low (ts, home)")
        (write,) = (
            operator.name for operator in self.network.operators if operator.kind == "sql_write"
        )
        self.database.execute(f"INSERT INTO penstock_commits VALUES ('{write}-00000def', 4, 1)")
        self.database.execute("INSERT INTO penstock_commits VALUES ('other-00000123', 4, 1)")
        self.database.commit()

    def wrote_file(self, name: str) -> Path:
        path = self.folder / "out" / "high" / name
        path.mkdir()
        (path / "part-0.json").write_text("{}\n")
        return path

    def wrote_rows(self, count: int, counted: int) -> None:
        self.database.executemany("INSERT INTO low VALUES (?, ?)", [(k, "h") for k in range(count)])
        self.database.commit()
        add_to_tally(self.state / "fragments" / "low" / "rows_out", 4, counted)

    def rows(self) -> int:
        ((count,),) = self.database.execute("SELECT count(*) FROM low").fetchall()
        return int(count)


@pytest.fixture
def earlier(tmp_path: Path) -> Earlier:
    return Earlier(tmp_path)


def test_batches_by_their_names(earlier: Earlier) -> None:
    ours = [earlier.wrote_file(f"batch=high-00000abc-0000000{k}") for k in range(2)]
    theirs = [earlier.wrote_file(name) for name in ("batch=other-00000abc-00000001", "mine")]
    found = earlier_results(earlier.state, earlier.network)
    assert found.words() == [f"--fresh removes 2 batches in {ours[0].parent}"]
    found.remove()
    assert not any(path.exists() for path in ours)
    assert all(path.exists() for path in theirs)
    assert earlier_results(earlier.state, earlier.network).words() == []


def test_batches_of_runs_that_are_not_known(earlier: Earlier) -> None:
    path = earlier.wrote_file("batch=high-00000fff-00000003")
    with pytest.raises(InputError, match="holds 1 batch of high from runs that are not known here"):
        earlier_results(earlier.state, earlier.network)
    assert path.exists()


def test_rows_of_a_table_that_are_all_ours(earlier: Earlier) -> None:
    earlier.wrote_rows(12, counted=12)
    found = earlier_results(earlier.state, earlier.network)
    (line,) = found.words()
    assert line.startswith("--fresh removes 12 rows of table low in sqlite:///")
    found.remove()
    assert earlier.rows() == 0
    left = earlier.database.execute("SELECT writer FROM penstock_commits").fetchall()
    assert left == [("other-00000123",)]


def test_rows_that_cannot_be_told_apart(earlier: Earlier) -> None:
    earlier.wrote_rows(15, counted=12)
    with pytest.raises(InputError, match="holds 15 rows, and earlier runs have written 12"):
        earlier_results(earlier.state, earlier.network)
    assert earlier.rows() == 15


def test_rows_that_come_meanwhile_keep_all_of_them(earlier: Earlier) -> None:
    earlier.wrote_rows(12, counted=12)
    found = earlier_results(earlier.state, earlier.network)
    earlier.wrote_rows(1, counted=0)
    with pytest.raises(InputError, match="has changed just now"):
        found.remove()
    assert earlier.rows() == 13


def test_a_table_that_was_emptied_or_is_gone(earlier: Earlier) -> None:
    earlier.wrote_rows(0, counted=12)
    assert earlier_results(earlier.state, earlier.network).words() == []
    earlier.database.execute("DROP TABLE low")
    assert earlier_results(earlier.state, earlier.network).words() == []


def test_where_nothing_has_run(tmp_path: Path) -> None:
    network = parse_deployment(DEPLOYMENT, "d.yaml", tmp_path).network
    assert earlier_results(tmp_path / "state", network).words() == []
