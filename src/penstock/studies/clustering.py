"""What clustering gains where streams cost CPU or bandwidth (figures 6.8 to 6.11)."""

from __future__ import annotations

import numpy as np

from penstock.place.clustering import by_distance, clustered_rod
from penstock.place.rod import rod
from penstock.studies.figures import Figure
from penstock.studies.placement_runs import RIVALS, median_by, numbers, ratio
from penstock.studies.random_trees import Trees, tree_problem
from penstock.studies.report import (
    ResultTable,
    Row,
    Runner,
    Say,
    StudyReport,
    Value,
    records,
    within,
)
from penstock.studies.running import one_by_one
from penstock.studies.seeds import rng_of

SIZES = (50, 100, 200)
TRANSFER_RATIOS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
LINK_RATIOS = (0.2, 0.8, 1.0, 2.0, 10.0)
_RUNS = 5
COMMUNICATION, BANDWIDTH = "communication", "bandwidth"


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Clustered ROD over plain ROD and over connected load balancing."""
    graphs = 4 if quick else 20
    points = [
        (what, size, value, graph)
        for what, values in ((COMMUNICATION, TRANSFER_RATIOS), (BANDWIDTH, LINK_RATIOS))
        for size in SIZES
        for value in values
        for graph in range(graphs)
    ]
    found = run(measure, points, say)
    tables = tuple(
        records(f"clustering-{what}", [record for record in found if record["what"] == what])
        for what in (COMMUNICATION, BANDWIDTH)
    )
    labels = {
        COMMUNICATION: "cost of moving a tuple / cost of processing it",
        BANDWIDTH: "link share / CPU share of a single operator",
    }
    figures = tuple(
        Figure(
            f"clustering-{what}-{against.replace('_', '-')}", f"clustering-{what}", "value",
            against, by="operators", x_label=labels[what], log_x=what == BANDWIDTH, log_y=True,
            title=f"Clustered ROD over {name}", y_label="ratio of volumes",
        )
        for what in (COMMUNICATION, BANDWIDTH)
        for against, name in (("over_plain", "plain ROD"), ("over_connected", "connected"))
    )  # fmt: skip
    setup = (
        f"{graphs} random graphs per point, all operators alike, 10 equal nodes, 5 inputs; medians."
    )
    return StudyReport("clustering", tuple(_rows(*tables)), tables, figures, setup)


def measure(point: tuple[str, int, float, int]) -> dict[str, Value]:
    """The three volumes on one graph."""
    what, size, value, graph = point
    rng = rng_of(f"clustering-{what}", size, graph)
    by_transfer = what == COMMUNICATION
    trees = Trees(
        size,
        alike=True,
        transfer_ratio=value if by_transfer else 0.0,
        link_ratio=0.0 if by_transfer else value,
    )
    problem = tree_problem(trees, rng)
    plain, clustered = ratio(problem, rod(problem)), ratio(problem, clustered_rod(problem))
    by_rule = ratio(problem, clustered_rod(problem, by_distance))
    connected = float(
        np.mean([ratio(problem, RIVALS["connected"](problem, rng)) for _ in range(_RUNS)])
    )
    return {
        "what": what,
        "operators": size,
        "value": value,
        "graph": graph,
        "clustered": clustered,
        "by_source_rule": by_rule,
        "plain": plain,
        "connected": connected,
        "over_plain": clustered / plain,
        "over_connected": clustered / connected,
        "rule_over_plain": by_rule / plain,
        "rule_over_connected": by_rule / connected,
    }


def _rows(communication: ResultTable, bandwidth: ResultTable) -> list[Row]:
    rows = []
    for size in SIZES:
        gains = [
            median_by(communication, "over_plain", operators=size, value=value)
            for value in TRANSFER_RATIOS
        ]
        growth = float(np.min(np.diff(gains)))
        rows += [
            within(f"{size} operators, free streams: no gain", 1.0, gains[0], 0.999, 1.001),
            within(f"{size} operators, moving as dear as processing: gain", None, gains[-1], 1.1),
            within(
                f"{size} operators: least growth of the gain per step", None, growth, low=-0.05,
                note="the source: grows with the cost of moving",
            ),
        ]  # fmt: skip
        rows += _bandwidth_rows(bandwidth, size)
    for table in (communication, bandwidth):
        least = float(np.min(numbers(table.column("over_connected"))))
        won = float(np.mean(np.array(numbers(table.column("rule_over_connected"))) > 1))
        what = table.column("what")[0]
        note = "the source: always; it keeps the plan farthest away"
        rows += [
            within(f"{what}: clustered over connected, least of all", None, least, low=1.0),
            within(f"{what}: cases won by the source's rule", 1.0, won, low=0.9, note=note),
        ]
    return rows


def _bandwidth_rows(table: ResultTable, size: int) -> list[Row]:
    gains = {
        value: median_by(table, "over_plain", operators=size, value=value) for value in LINK_RATIOS
    }
    note = "the source: no gain"
    busy = f"{note}; but operators with three readers need more of a link than of a CPU"
    return [
        within(f"{size} operators, link ratio 0.2: gain", 1.0, gains[0.2], 0.999, 1.001, note),
        within(f"{size} operators, link ratio 0.8: gain", 1.0, gains[0.8], 0.999, 1.05, busy),
        within(f"{size} operators, link ratio 2: gain", None, gains[2.0], low=1.2),
        within(f"{size} operators, link ratio 10: gain", None, gains[10.0], low=gains[2.0]),
    ]
