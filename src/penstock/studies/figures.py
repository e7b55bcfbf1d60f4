"""Figures of studies, described by the columns they show and drawn from a table alone.

Colours are told apart by people with any colour vision, and lines also by their markers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from penstock.studies.report import ResultTable

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
_MANY = 500
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True)
class Figure:
    """A figure of one table: ``y`` over ``x``, a line or a cloud for every value of ``by``.

    Lines show the mean of the rows with the same x, and with ``spread`` the band between the 10th
    and 90th percentile; scatters show every row. Dots do so side by side for every value of ``x``,
    which are names then, with a bar for their mean. ``bound`` names a column drawn as a grey line.
    """

    name: str
    table: str
    x: str
    y: str
    by: str = ""
    kind: Literal["lines", "scatter", "dots"] = "lines"
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    spread: bool = False
    bound: str = ""


def draw(figure: Figure, table: ResultTable, path: Path) -> None:
    """Writes the figure to ``path``, in the format of its suffix; the same data, the same bytes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Canvas

    with rc_context({"svg.hashsalt": "penstock", "svg.fonttype": "none", "font.size": 9}):
        canvas = Canvas(figsize=(6.0, 3.8), layout="constrained")
        axes = canvas.add_subplot()
        _fill(axes, figure, table)
        metadata = {"Date": None} if path.suffix == ".svg" else None
        canvas.savefig(path, metadata=metadata, dpi=150)


def _fill(axes: Any, figure: Figure, table: ResultTable) -> None:
    if figure.kind == "dots":
        _dots(axes, figure, table)
        _label(axes, figure, legend=False)
        return
    groups = list(dict.fromkeys(table.column(figure.by))) if figure.by else [None]
    for number, group in enumerate(groups):
        rows = table.where(**{figure.by: group}) if figure.by else table
        style = {"color": COLOURS[number % len(COLOURS)], "label": None if group is None else group}
        if figure.kind == "scatter":
            _cloud(axes, rows.column(figure.x), rows.column(figure.y), style)
        else:
            _line(axes, figure, rows, MARKERS[number % len(MARKERS)], style)
    if figure.bound:
        pairs = sorted(zip(table.column(figure.x), table.column(figure.bound), strict=True))
        axes.plot(*zip(*pairs, strict=True), color="#555555", linewidth=1, label="lower bound")
    _label(axes, figure, len(groups) > 1 or bool(figure.bound))


def _dots(axes: Any, figure: Figure, table: ResultTable) -> None:
    import numpy as np

    names = list(dict.fromkeys(table.column(figure.x)))
    for number, name in enumerate(names):
        ys: list[Any] = table.where(**{figure.x: name}).column(figure.y)
        colour = COLOURS[number % len(COLOURS)]
        axes.bar(number, np.mean(ys), 0.5, color=colour, alpha=0.25)
        xs = number + np.linspace(-0.15, 0.15, len(ys)) if len(ys) > 1 else [number]
        axes.scatter(xs, ys, s=16, color=colour)
    axes.set_xticks(range(len(names)), [str(name) for name in names])


def _cloud(axes: Any, xs: list[Any], ys: list[Any], style: dict[str, Any]) -> None:
    # Thousands of circles make a file that no browser likes; an image of them is as good.
    many = len(xs) > _MANY
    axes.scatter(xs, ys, s=4, alpha=0.4, linewidths=0, rasterized=many, **style)


def _line(axes: Any, figure: Figure, rows: ResultTable, marker: str, style: dict[str, Any]) -> None:
    import numpy as np

    points: dict[Any, list[Any]] = {}
    for x, y in zip(rows.column(figure.x), rows.column(figure.y), strict=True):
        points.setdefault(x, []).append(y)
    xs = sorted(points)
    axes.plot(xs, [np.mean(points[x]) for x in xs], marker=marker, markersize=4, **style)
    if figure.spread:
        low, high = ([np.percentile(points[x], percent) for x in xs] for percent in (10, 90))
        axes.fill_between(xs, low, high, color=style["color"], alpha=0.15, linewidth=0)


def _label(axes: Any, figure: Figure, legend: bool) -> None:
    axes.set_title(figure.title or figure.name, fontsize=10)
    axes.set_xlabel(figure.x_label or figure.x)
    axes.set_ylabel(figure.y_label or figure.y)
    if figure.log_x:
        axes.set_xscale("log")
    if figure.log_y:
        axes.set_yscale("log")
        _plain_ticks(axes.yaxis, axes.get_ylim())
    else:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if legend:
        # Said, although it is the default: unsaid, it warns on a busy machine that it took long.
        axes.legend(
            loc="best", frameon=False, fontsize=8, title=figure.by or None, title_fontsize=8
        )


def _plain_ticks(axis: Any, limits: tuple[float, float]) -> None:
    """Numbers instead of powers of ten; between those of ten only where there are few."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    axis.set_major_formatter(plain)
    axis.set_minor_formatter(plain if limits[1] < 10 * limits[0] else NullFormatter())
