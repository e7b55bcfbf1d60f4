"""The two lower bounds of the volume on random weights (figures 4.5 and 4.7 of the source)."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

from penstock.load.arrays import Floats
from penstock.load.feasible import axis_product, plane_distance
from penstock.load.volume import ball_bound, polytope_volume
from penstock.studies.figures import Figure
from penstock.studies.placement_runs import numbers
from penstock.studies.report import (
    ResultTable,
    Row,
    Runner,
    Say,
    StudyReport,
    Value,
    gathered,
    within,
)
from penstock.studies.running import one_by_one
from penstock.studies.seeds import rng_of

NODES, INPUTS, MATRICES = 10, 3, 10_000
_ROUNDING = 1e-9
_PER_POINT = 500


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """10,000 random 10 x 3 weight matrices: volume ratio against g and against r/r*."""
    matrices = 2_000 if quick else MATRICES
    table = gathered("random-matrices", run(measure, range(matrices // _PER_POINT), say))
    figures = (
        Figure(
            "axis-bound", "random-matrices", "g", "ratio", bound="axis_bound",
            title="Volume against the product of least axis distances", x_label="g",
            kind="scatter", y_label="volume / ideal volume",
        ),
        Figure(
            "plane-bound", "random-matrices", "r", "ratio", bound="ball_bound",
            title="Volume against the least plane distance", x_label="r / r*",
            kind="scatter", y_label="volume / ideal volume",
        ),
    )  # fmt: skip
    setup = (
        f"{matrices} random weight matrices of {NODES} nodes and {INPUTS} inputs, exact volumes."
    )
    return StudyReport("random-matrices", tuple(_rows(table)), (table,), figures, setup)


def measure(part: int) -> list[dict[str, Value]]:
    """The numbers of some of the matrices."""
    rng = rng_of("random-matrices", part)
    found: list[dict[str, Value]] = []
    for _ in range(_PER_POINT):
        rows = _weights(rng)
        g, r = axis_product(rows), plane_distance(rows)
        bounds = {"axis_bound": g, "ball_bound": ball_bound(r, INPUTS)}
        found.append({"g": g, "r": r, "ratio": polytope_volume(rows), **bounds})
    return found


def _weights(rng: np.random.Generator) -> Floats:
    """Random shares of every input; from nearly even to very uneven ones."""
    shares = rng.random((NODES, INPUTS)) ** rng.uniform(0.05, 3.0)
    weights: Floats = NODES * shares / shares.sum(axis=0)
    return weights


def _rows(table: ResultTable) -> list[Row]:
    ratio = np.array(numbers(table.column("ratio")))
    rows = []
    for name, bound in (("g", "axis_bound"), ("r/r*", "ball_bound")):
        held = ratio >= np.array(numbers(table.column(bound))) - _ROUNDING
        rows.append(
            within(f"part of matrices that keep the bound by {name}", 1.0, float(held.mean()), 1.0)
        )
    for name, column in (("g", "g"), ("r/r*", "r")):
        trend = float(spearmanr(table.column(column), ratio).statistic)
        note = "the source: rises with it"
        rows.append(within(f"rank correlation of volume and {name}", None, trend, 0.8, note=note))
    return rows
