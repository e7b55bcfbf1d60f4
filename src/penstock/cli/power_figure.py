"""The figure of ``penstock power``: energy by algorithm, and the cycles as they go over the air."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.cli.canvas import canvas_for
from penstock.power.cuts import CutTable
from penstock.power.energy import air_order, index_bytes
from penstock.power.plan import PlanComparison, PowerPlan

_TUNING, _PROCESSING, _INDEX = "#0072B2", "#E69F00", "#555555"
_SHADES = ("#56B4E9", "#BBDFF5")
_CHOSEN_SHADES = ("#009E73", "#8FD3BF")
_LABEL_SHARE = 0.012
"""Part of the width that a letter takes; narrower results go without their name."""


def draw_power(found: PlanComparison, chosen: PowerPlan, path: Path) -> None:
    """Draws both panels; algorithms are in the order of their energy, the least on top."""
    plans = found.best_first[::-1]
    with canvas_for(path, (7.6, 1.6 + 0.62 * len(plans)), font_size=8) as canvas:
        energy, air = canvas.subplots(2, 1)
        _draw_energies(energy, plans, found.lower_bound_j)
        _draw_cycles(air, found.table, plans, chosen)
        for axis in (energy, air):
            axis.set_yticks(range(len(plans)), [plan.algorithm for plan in plans])
            for side in ("top", "right"):
                axis.spines[side].set_visible(False)


def _draw_energies(axis: Any, plans: list[PowerPlan], bound_j: float) -> None:
    tuning = [plan.energy.tuning_j for plan in plans]
    processing = [plan.energy.processing_j for plan in plans]
    rows = range(len(plans))
    axis.barh(rows, tuning, 0.6, color=_TUNING, label="tuning")
    axis.barh(rows, processing, 0.6, left=tuning, color=_PROCESSING, label="processing")
    axis.axvline(bound_j, color="#000000", linewidth=1, linestyle="--", label="lower bound")
    axis.set_xlim(0, 1.05 * max(plan.energy.total_j for plan in plans) or 1)
    axis.set_xlabel("joules of all devices in one cycle")
    # Above the bars: the longest may reach the right border, whichever it is.
    axis.legend(frameon=False, fontsize=8, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))


def _draw_cycles(axis: Any, table: CutTable, plans: list[PowerPlan], chosen: PowerPlan) -> None:
    longest_s = max(plan.cycle_bytes for plan in plans) * table.seconds_per_byte
    for row, plan in enumerate(plans):
        shades = _CHOSEN_SHADES if plan is chosen else _SHADES
        at_s = index_bytes(table, plan.entries) * table.seconds_per_byte
        axis.barh(row, at_s, 0.6, color=_INDEX)
        sizes = table.sizes[plan.entries] * table.seconds_per_byte
        for number, query in enumerate(air_order(table, plan.entries)):
            width_s = float(sizes[query])
            axis.barh(row, width_s, 0.6, left=at_s, color=shades[number % 2])
            name = table.names[query]
            if width_s > _LABEL_SHARE * len(name) * longest_s:
                axis.text(at_s + width_s / 2, row, name, ha="center", va="center", fontsize=7)
            at_s += width_s
    index = ", the index in grey" if index_bytes(table, chosen.entries) else ""
    axis.set_xlabel(f"seconds on the air, by query; {chosen.algorithm} in green{index}")
