"""The figure of ``penstock plan``: feasible sets side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from penstock.cli.canvas import canvas_for
from penstock.load.feasible import rooms, weights
from penstock.load.problem import Problem
from penstock.load.slices import Slice, plan_slice, slice_point
from penstock.place.plan import Plan

_ACROSS = 3
_MOST = 6
_LEGEND = (
    "\nfilled: what the plan can take; black: what all nodes together could; "
    "blue: the limit of each"
)
_FILL, _LINE, _IDEAL = "#56B4E9", "#0072B2", "#000000"


def draw_plans(
    problem: Problem, plans: list[Plan], chosen: str, axes: tuple[int, int], path: Path
) -> None:
    """Draws the feasible sets of the plan chosen and of the first few others, in the ideal one.

    Algorithms that share the work out in the same way share a panel.
    """
    shown = _groups(problem, sorted(plans, key=lambda plan: plan.algorithm != chosen))[:_MOST]
    down = -(-len(shown) // _ACROSS)
    across = min(_ACROSS, len(shown))
    with canvas_for(path, (2.6 * across + 0.4, 2.6 * down + 0.5), font_size=8) as canvas:
        grid = canvas.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
        for axis in grid[len(shown) :]:
            axis.set_visible(False)
        for axis, group in zip(grid, shown, strict=False):
            _panel(axis, group, plan_slice(problem, group[0].assignment, axes))
        canvas.supxlabel(f"{problem.variables[axes[0]]} per second{_LEGEND}", fontsize=9)
        canvas.supylabel(f"{problem.variables[axes[1]]} per second", fontsize=9)
        held = _held(problem, axes)
        if held:
            canvas.suptitle(held, fontsize=8)


def _groups(problem: Problem, plans: list[Plan]) -> list[list[Plan]]:
    """Plans with the same limits together, whichever node has which of them."""
    groups: dict[object, list[Plan]] = {}
    for plan in plans:
        where = plan.assignment
        limits = np.column_stack((weights(problem, where), rooms(problem, where)))
        rows = sorted(map(tuple, limits.round(9).tolist()))
        groups.setdefault(tuple(rows), []).append(plan)
    return list(groups.values())


def _title(group: list[Plan]) -> str:
    names = [plan.algorithm for plan in group]
    name = ", ".join(names[:2]) + (f" + {len(names) - 2}" if names[2:] else "")
    found = group[0].quality.volume
    return name if found is None else f"{name}: {found.ratio:.2f}"


def _panel(axis: Any, group: list[Plan], part: Slice) -> None:
    axis.fill(*part.feasible.T, color=_FILL, alpha=0.6, linewidth=0)
    axis.plot(*_closed(part.ideal).T, color=_IDEAL, linewidth=1.2)
    x_most, y_most = part.ideal.max(axis=0)
    for a, b, c in part.lines:
        if a > 0 or b > 0:
            ends = _ends(a, b, c, x_most, y_most)
            axis.plot(*zip(*ends, strict=True), color=_LINE, linewidth=0.6, alpha=0.7)
    x_least, y_least = part.ideal.min(axis=0)
    axis.set_xlim(x_least, x_least + 1.05 * (x_most - x_least))
    axis.set_ylim(y_least, y_least + 1.05 * (y_most - y_least))
    axis.set_title(_title(group), fontsize=9)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _closed(corners: Any) -> Any:
    return np.vstack((corners, corners[:1]))


def _ends(
    a: float, b: float, c: float, x_most: float, y_most: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Two points of a x + b y = c that reach across the panel."""
    far_x, far_y = 2 * x_most, 2 * y_most
    start = (0.0, c / b) if b > 0 else (c / a, 0.0)
    end = (c / a, 0.0) if a > 0 else (far_x, c / b)
    return start, end if b > 0 else (c / a, far_y)


def _held(problem: Problem, axes: tuple[int, int]) -> str:
    """At which rates the other variables are held."""
    rates = slice_point(problem, axes) * problem.capacity / problem.totals
    parts = [
        f"{name} {rates[at]:.3g}/s" for at, name in enumerate(problem.variables) if at not in axes
    ]
    more = f" and {len(parts) - 4} more" if len(parts) > 4 else ""
    return f"a slice, with {', '.join(parts[:4])}{more}" if parts else ""
