"""The study of the window join: its points, its rows, its figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from matplotlib.figure import Figure as Canvas

from penstock.sim.join_cluster.measuring import JoinMeasurements
from penstock.studies import figures, window_join_runs, writing
from penstock.studies.figures import Figure
from penstock.studies.report import ResultTable, Say, StudyReport, Value
from penstock.studies.window_join import study
from penstock.studies.window_join_runs import PLAIN, JoinPoint, _columns, _named, measure

LIMITS = {(4, PLAIN): 3_800.0}


def as_in_the_source(point: JoinPoint) -> dict[str, Value]:
    """What the source measured, roughly: delays explode at a rate, communication adds up."""
    kind, rate, workers, tuning, distribution_s, _ = point
    limit = LIMITS.get((workers, tuning), 1_550.0 * workers)
    delay_s = distribution_s * 0.9 if rate < limit else 48.0
    if kind.startswith("one "):
        delay_s = 40.0 if tuning == "never" else 2.0
    share = 1 if kind == "adaptive" else workers
    communication = [rate * (at + 1) / workers / 500 / distribution_s for at in range(share)]
    predicted = _named(point).get("predicted", 1)
    assert isinstance(predicted, int | float)
    found = JoinMeasurements(
        600.0, delay_s, 2 * delay_s, 1_000,
        tuple((150 if tuning == PLAIN else 100) * rate / 1_000 for _ in communication),
        tuple(communication), round(predicted), 1_000_000, workers,
    )  # fmt: skip
    return {**_named(point), **_columns(found), "moves_made": 0}


def reported(quick: bool) -> StudyReport:
    def run(
        function: Callable[[JoinPoint], object], points: Sequence[JoinPoint], say: Say
    ) -> list[dict[str, Value]]:
        assert function is measure and len(set(points)) == len(points)
        return [as_in_the_source(point) for point in points]

    return study(quick, lambda what: None, run)  # type: ignore[arg-type]


@pytest.mark.parametrize("quick", [True, False])
def test_what_agrees_with_the_source_is_said_to_agree(quick: bool) -> None:
    rows = {row.quantity: row for row in reported(quick).rows}
    delay = rows["untuned, 4,000/s: delay in s (fig. 8)"]
    assert (delay.source, delay.ours, delay.agrees) == (48, 48.0, True)
    wrong = [name for name, row in rows.items() if not row.agrees and "idle" not in name]
    assert wrong == []


def test_every_figure_is_drawn_from_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is drawn but not laid out, which takes long and is tested elsewhere."""

    def fill(figure: Figure, table: ResultTable, path: Path) -> None:
        axes = Canvas().add_subplot()
        figures._fill(axes, figure, table)
        assert axes.has_data(), figure.name

    monkeypatch.setattr(writing, "draw", fill)
    report = reported(quick=False)
    names = {path.name for path in writing.write(report, tmp_path)}
    assert {f"{figure.name}.svg" for figure in report.figures} <= names
    assert {"summary.csv", "window-join-rates.csv"} <= names
    assert len(report.figures) == 12


def test_one_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_join_runs, "UNTIL_S", 8.0)
    monkeypatch.setattr(window_join_runs, "WARM_S", 4.0)
    found = measure(("rates", 100.0, 2, "tuned", 2.0, 1))
    assert found["workers"] == 2 and found["tuning"] == "tuned"
    assert 0 < float(found["cpu_s"]) < 4  # type: ignore[arg-type]
