"""How a run is shown, start to end, without a run."""

import json
from io import StringIO
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from cli.made_up import network, plan, status
from penstock.app.outcome import Outcome
from penstock.app.snapshots import Presenter, Snapshot
from penstock.cli.presenters import JsonPresenter, LivePresenter, PlainPresenter
from penstock.model.sources import ConsoleSink, FileSink

OUTCOME = Outcome(
    plan(network(("heavy", ConsoleSink()), ("load", FileSink(Path("/out"), "csv")))),
    "finished",
    12.0,
    (status("heavy", 90, 2, finished=True), status("load", 90, 4, finished=True)),
    {"readings": {"malformed": 1, "late": 0}},
)
SNAPSHOT = Snapshot((status("heavy", 40, 1, rate=8), status("load", 40)))
ROWS = pa.table({"home": ["h1", "h2"], "kwh": [9.5, 10.25]})


def console(terminal: bool, width: int = 80) -> tuple[Console, StringIO]:
    out = StringIO()
    shown = Console(
        file=out, width=width, height=24, force_terminal=terminal, highlight=False, _environ={}
    )
    return shown, out


def play(presenter: Presenter) -> None:
    presenter.begin(["penstock 0.1.0", "2 queries"], ["going on"])
    with presenter.working("starting Spark…"):
        pass
    presenter.update(SNAPSHOT, 0.1)
    presenter.rows("heavy", ROWS)
    presenter.update(SNAPSHOT, 6.0)
    presenter.update(SNAPSHOT, 7.0)
    presenter.close()
    presenter.end(OUTCOME)


def test_plain_has_rows_on_one_stream_and_the_rest_on_the_other() -> None:
    (out, out_text), (err, err_text) = console(False), console(False)
    play(PlainPresenter(out, err))
    assert out_text.getvalue().splitlines() == [
        "heavy  home=h1  kwh=9.5",
        "heavy  home=h2  kwh=10.25",
    ]
    assert err_text.getvalue().splitlines() == [
        "penstock 0.1.0 · 2 queries",
        "going on",
        "starting Spark…",
        "6.0 s: 8 rows/s read, 80 rows read, 1 written, 0 of 2 finished",
        " query  rows in  rows out  batch ms  state rows  event time",
        " heavy       90         2       120      14,210  2026-01-05 06:30:00  ✓",
        " load        90         4       120      14,210  2026-01-05 06:30:00  ✓",
        " set aside  readings: 1 malformed; kept in /state/dead_letters",
        " load to csv files in /out",
        "finished after 12 s: 90 rows in, 6 out, 1 set aside",
    ]


def test_json_is_one_object_and_nothing_else() -> None:
    out, text = console(False)
    play(JsonPresenter(out))
    record = json.loads(text.getvalue())
    assert (record["finished"], record["rows_in"], record["rows_out"]) == (True, 90, 6)


def test_live_leaves_a_summary_with_the_last_rows() -> None:
    out, text = console(True)
    play(LivePresenter(out))
    shown = text.getvalue()
    assert "starting Spark…" in shown
    end = shown[shown.rindex("query") :]
    assert "load to csv files in /out" in end
    assert "10.25" in end
    assert "finished after 12 s: 90 rows in, 6 out, 1 set aside" in end


def test_live_draws_everything_anew_when_the_terminal_changes() -> None:
    out, text = console(True)
    presenter = LivePresenter(out)
    presenter.begin(["penstock 0.1.0"], [])
    presenter.update(SNAPSHOT, 0.1)
    out.size = (60, 20)  # type: ignore[assignment]
    presenter.update(SNAPSHOT, 0.2)
    presenter.close()
    assert text.getvalue().count("penstock 0.1.0") == 2


def test_finished_before_is_one_sentence() -> None:
    out, text = console(True, 200)
    finished = Outcome(OUTCOME.plan, "finished before", 0.0, OUTCOME.statuses, {})
    LivePresenter(out).end(finished)
    assert text.getvalue().strip().startswith("\x1b[1mami has already finished")
    assert "query" not in text.getvalue()
