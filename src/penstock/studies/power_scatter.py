"""How far apart sets of 15 runs lie with an index, where eight sets do not tell it.

With an index every query is cut by itself, and what shipping saves comes from the few chains of a
set whose data shrink and then grow a lot. A product of twenty random factors has a long tail: many
sets save little, and some a lot.
"""

from __future__ import annotations

import numpy as np

from penstock.model.devices import INDEXED
from penstock.studies.placement_runs import numbers
from penstock.studies.power_runs import LIMIT, PowerWorkload, mean_energies, saved_percent
from penstock.studies.report import ResultTable, Row, Value, near

MANY_SETS, QUICK_SETS = 200, 24
_EIGHT = 8
_PUBLISHED = {0.01: 53.0, 0.2: 7.0}


def scatter_of(number: int) -> list[dict[str, Value]]:
    """One set: by how many percent BOSe is under ServerOps, at both ends."""
    workload = PowerWorkload()
    energies = mean_energies("power-scatter", number, workload, INDEXED, tuple(_PUBLISHED))
    return [
        {"set": number, "ratio": ratio, "saved": saved_percent(by_rival, "BOSe", "ServerOps")}
        for ratio, by_rival in energies.items()
    ]


def scatter_rows(table: ResultTable) -> list[Row]:
    """Whether the source's set is one as they occur, and how far means of eight sets differ."""
    rows = []
    for ratio, source in _PUBLISHED.items():
        saved = np.array(numbers(table.where(ratio=ratio).column("saved")))
        deviation = float(saved.std(ddof=1))
        eights = saved.reshape(-1, _EIGHT).mean(axis=1)
        note = (
            f"± {deviation:.2g}; {100 * (saved >= source).mean():.0f} % of {len(saved)} sets reach "
            f"the source's number; means of {_EIGHT} lie from {eights.min():.3g} to "
            f"{eights.max():.3g}"
        )
        what = f"indexed, ratio {ratio:g}: BOSe under ServerOps, many sets, %"
        rows.append(near(what, source, float(saved.mean()), LIMIT * deviation, note))
    return rows
