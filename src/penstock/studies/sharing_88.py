"""Sharing streams and components on 88 nodes, against composing without it (figures 9-11, 15).

What the source leaves open is as follows: a fifth of every node is used by others, limits are 1.3
times what a plan takes alone, applications last 40 s, a shared stream's delay counts from its
source, and 300 plans are asked for with popularity n^-0.8. The source's own exponent, 1.6, over
whole plans is shown as well: then nearly everything is asked for again and again.
"""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np

from penstock.studies.figures import Figure
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
from penstock.studies.sharing_runs import ALGORITHMS, SharingWorkload, compose_all

_ZIPFS = (0.8, 1.6)


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """All algorithms over the same requests, at both popularities; synergy on fewer nodes too."""
    seeds, for_s = (1, 20.0) if quick else (3, 100.0)
    points = [
        (algorithm, zipf, 88, for_s, seed)
        for seed in range(seeds)
        for zipf in _ZIPFS
        for algorithm in ALGORITHMS
    ]
    points += [("synergy", 0.8, 44, for_s, seed) for seed in range(seeds)]
    table = gathered("sharing-88", run(measure, points, say))
    setup = (
        f"{seeds} overlays of 88 nodes, 20 operators x 5 components, plans of 2-4 operators, 9 "
        f"requests a second for {for_s:g} s, probing ratio 10 %; messages take 60 ms on average. "
        "Successful: admitted, and within its limit whenever looked at, once a second."
    )
    figures = (
        Figure("sharing-88-delay", "sharing-88", "algorithm", "mean_delay_s", kind="dots",
               title="Mean end-to-end delay", y_label="seconds"),
        Figure("sharing-88-successful", "sharing-88", "algorithm", "successful", kind="dots",
               title="Successful requests", y_label="requests"),
    )  # fmt: skip
    return StudyReport("sharing-88", tuple(_rows(table)), (table,), figures, setup)


def measure(point: tuple[str, float, int, float, int]) -> list[dict[str, Value]]:
    """One run."""
    algorithm, zipf, nodes, for_s, seed = point
    share = nodes / 88
    workload = replace(
        SharingWorkload(), nodes=nodes, zipf=zipf, for_s=for_s, requests_per_s=9.0 * share,
        operators=round(20 * share),
    )  # fmt: skip
    common: dict[str, Value] = {
        "algorithm": algorithm, "zipf": zipf, "nodes": nodes, "seed": seed
    }  # fmt: skip
    return [common | asdict(compose_all(workload, algorithm, seed))]


def _mean(table: ResultTable, column: str, **wanted: Value) -> float:
    return float(np.mean([float(str(value)) for value in table.where(**wanted).column(column)]))


def _change(table: ResultTable, column: str, rival: str, zipf: float) -> float:
    """By how many percent synergy differs from a rival."""
    ours = _mean(table, column, algorithm="synergy", zipf=zipf, nodes=88)
    return 100 * (ours / _mean(table, column, algorithm=rival, zipf=zipf) - 1)


def _rows(table: ResultTable) -> list[Row]:
    found = []
    for zipf in _ZIPFS:
        note = "" if zipf == 0.8 else "nearly everything is shared"
        for what, column, rival, source in (
            ("mean delay, % against random", "mean_delay_s", "random", -45),
            ("mean delay, % against composition", "mean_delay_s", "composition", -25),
            ("successful, % against random", "successful", "random", 37),
            ("successful, % against composition", "successful", "composition", 27),
        ):
            ours = _change(table, column, rival, zipf)
            low, high = (None, 0) if source < 0 else (0, None)
            found.append(within(f"{what}, Zipf {zipf:g}", source, ours, low, high, note))
    rivals = {"random": 4749, "composition": 4998, "synergy": 3384}
    for algorithm, source_ms in rivals.items():
        set_up_ms = 1e3 * _mean(table, "set_up_s", algorithm=algorithm, zipf=0.8, nodes=88)
        found.append(
            within(
                f"set-up, ms, {algorithm}",
                source_ms,
                set_up_ms,
                note="milliseconds of network only",
            )
        )
    faster = _change(table, "set_up_s", "composition", 0.8)
    found.append(within("set-up, % against composition", -32, faster, None, 0))
    each = [_mean(table, "probes", algorithm="synergy", zipf=0.8, nodes=n) for n in (44, 88)]
    found.append(
        within(
            "probes grow linearly: probes a request, 88 nodes over 44",
            1.0,
            each[1] / each[0],
            0.7,
            1.3,
        )
    )
    return found
