"""Reports on disk: a CSV file for every table, an SVG file for every figure, one of the rows."""

from __future__ import annotations

import csv
from pathlib import Path

from penstock.errors import InputError
from penstock.studies.figures import draw
from penstock.studies.report import ResultTable, StudyReport, Value

_ROW_COLUMNS = ("quantity", "source", "ours", "low", "high", "agrees", "note")


def write(report: StudyReport, folder: Path) -> tuple[Path, ...]:
    """Writes everything into ``folder``, which is made; the paths, rows first."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return tuple(_written(report, folder))
    except OSError as error:
        raise InputError(
            f"{error.filename or folder} cannot be written: {error.strerror}",
            hint="Choose another folder with --out.",
        ) from None


def _written(report: StudyReport, folder: Path) -> list[Path]:
    rows = tuple(tuple(getattr(row, name) for name in _ROW_COLUMNS) for row in report.rows)
    paths = [_write_csv(ResultTable("summary", _ROW_COLUMNS, rows), folder)]
    paths += [_write_csv(table, folder) for table in report.tables]
    for figure in report.figures:
        path = folder / f"{figure.name}.svg"
        draw(figure, report.table(figure.table), path)
        paths.append(path)
    return paths


def _write_csv(table: ResultTable, folder: Path) -> Path:
    path = folder / f"{table.name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows([_text(value) for value in row] for row in table.rows)
    return path


def _text(value: Value) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
