"""The figure of ``penstock simulate``: load of the nodes and latency over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from penstock.app.simulating import Simulated
from penstock.cli.canvas import canvas_for

_MOST_LINES = 8
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")


def draw_simulation(found: Simulated, path: Path) -> None:
    """Draws utilisation above, latency and moved load below; the same run, the same bytes."""
    with canvas_for(path, (7.0, 5.0), font_size=9) as canvas:
        loads, latency = canvas.subplots(2, 1, sharex=True)
        _draw_loads(loads, found)
        _draw_latency(latency, found)


def _draw_loads(axes: Any, found: Simulated) -> None:
    line = found.system.timeline
    columns = [name for name in line.columns if name.startswith("node ")]
    if len(columns) <= _MOST_LINES:
        for name, colour in zip(columns, _COLOURS, strict=False):
            axes.plot(line.times_s, line.column(name), color=colour, linewidth=1.2, label=name[5:])
    else:
        every = np.array([line.column(name) for name in columns])
        low, high = every.min(axis=0), every.max(axis=0)
        axes.fill_between(line.times_s, low, high, color=_COLOURS[5], alpha=0.5, label="all nodes")
        axes.plot(line.times_s, every.mean(axis=0), color=_COLOURS[0], label="mean")
    axes.axhline(1.0, color="#555555", linewidth=0.8, linestyle=":")
    axes.set_ylabel("share of time busy")
    axes.set_ylim(bottom=0)
    _tidy(axes)
    axes.legend(frameon=False, fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.2))


def _draw_latency(axes: Any, found: Simulated) -> None:
    line = found.system.timeline
    latency_ms = 1_000 * line.column("latency_s")
    axes.plot(line.times_s, latency_ms, color=_COLOURS[0], linewidth=1.2)
    axes.set_ylabel("mean latency, ms", color=_COLOURS[0])
    axes.set_xlabel("simulated seconds")
    known = latency_ms[latency_ms > 0]
    if known.size and known.max() > 20 * known.min():
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    else:
        axes.set_ylim(bottom=0)
    _tidy(axes)
    if found.system.moved_load:
        moved = axes.twinx()
        moved.step(line.times_s, line.column("moved_load"), color=_COLOURS[1], where="post")
        moved.set_ylabel("load moved so far", color=_COLOURS[1])
        moved.set_ylim(bottom=0)
        moved.spines["top"].set_visible(False)


def _tidy(axes: Any) -> None:
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
