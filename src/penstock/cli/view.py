"""What a run looks like in the terminal: records in, lines of text out, nothing is printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from penstock.app.results import QueryRows
from penstock.app.snapshots import Snapshot
from penstock.app.words import count, moment, size
from penstock.cli.columns import MORE, TextColumn, natural_width, shortened, table
from penstock.feeds.set_aside import set_aside_text
from penstock.model.measurements import FragmentStatus

_BARS = "▁▂▃▄▅▆▇█"
_RATE = "rows/s in"
_WIDEST_VALUE = 40
_FEWEST_ROWS, _MOST_ROWS = 2, 5


def screen(snapshot: Snapshot, width: int, height: int) -> list[Text]:
    """The live view, at most ``width`` wide and ``height`` high."""
    foot = [*use_lines(snapshot, width), *set_aside_lines(snapshot, width)]
    tallest = max(2, height - len(foot) - 1)
    fragments = fragment_table(snapshot.statuses, width, tallest)
    room = height - len(fragments) - len(foot) - 1
    results = result_lines(snapshot.results, width, room)
    blank = [Text("")]
    return [*fragments, *foot, *(blank + results if results else [])][:height]


def fragment_table(
    statuses: Sequence[FragmentStatus],
    width: int,
    tallest: int | None = None,
    is_over: bool = False,
) -> list[Text]:
    """A line for each fragment; the running ones if not all fit.

    Of a run that ``is_over`` there are no rates.
    """
    shown = list(statuses)
    if tallest is not None and len(shown) + 1 > tallest:
        shown = sorted(shown, key=lambda status: status.is_finished)[: max(1, tallest - 2)]
    columns = _fragment_columns(shown)
    if is_over:
        columns = [column for column in columns if column.title != _RATE]
    lines = table(columns, width)
    hidden = [status for status in statuses if status not in shown]
    if hidden:
        finished = sum(status.is_finished for status in hidden)
        more = f" {MORE} and {len(hidden)} more, {finished} of them finished"
        lines.append(Text(shortened(more, width), "dim", no_wrap=True))
    return lines


def _fragment_columns(statuses: Sequence[FragmentStatus]) -> list[TextColumn]:
    def cells(text: Callable[[FragmentStatus], str]) -> tuple[str, ...]:
        return tuple(text(status) for status in statuses)

    return [
        TextColumn("query", cells(lambda status: status.fragment), 0, right=False, style="bold"),
        TextColumn(_RATE, cells(_rate), 2),
        TextColumn("rows in", cells(lambda status: count(status.rows_in)), 3),
        TextColumn("rows out", cells(lambda status: count(status.rows_out)), 0),
        TextColumn("batch ms", cells(_batch_ms), 4),
        TextColumn("state rows", cells(lambda status: count(status.state_rows)), 5),
        TextColumn("event time", cells(_event_time), 1, right=False, least=len(moment(0))),
        TextColumn("", cells(lambda status: "✓" if status.is_finished else " "), 0, style="green"),
    ]


def _rate(status: FragmentStatus) -> str:
    return "" if status.is_finished else count(status.rows_in_per_s)


def _event_time(status: FragmentStatus) -> str:
    return moment(status.watermark_ms)


def _batch_ms(status: FragmentStatus) -> str:
    return count(status.batch_ms) if status.batches else ""


def use_lines(snapshot: Snapshot, width: int) -> list[Text]:
    """What the node uses of the machine."""
    if snapshot.use is None:
        return []
    use = snapshot.use
    cpu = f" node  cpu {sparks(snapshot.cpu_history)} {use.cpu:4.0%}".replace("%", " %")
    memory = f"memory {size(use.memory_bytes)}"
    resident = f" (resident {size(use.resident_bytes)})"
    for line in (f"{cpu}   {memory}{resident}", f"{cpu}   {memory}"):
        if len(line) <= width:
            return [Text(line, no_wrap=True)]
    return [Text(shortened(f" {memory}", width), no_wrap=True)]


def sparks(shares: Sequence[float]) -> str:
    """Shares between 0 and 1 as a line of bars.

    >>> sparks([0.0, 0.5, 1.0, 1.7])
    '▁▅██'
    """
    return "".join(_BARS[min(7, max(0, int(share * 8)))] for share in shares)


def set_aside_lines(snapshot: Snapshot, width: int) -> list[Text]:
    """How many rows could not be used, if any, and where they are."""
    parts = [
        f"{stream}: {set_aside_text(kinds)}"
        for stream, kinds in snapshot.set_aside.items()
        if any(kinds.values())
    ]
    if not parts:
        return []
    whole = f" set aside  {'; '.join(parts)}; kept in {snapshot.dead_letters}"
    brief = f" set aside  {'; '.join(parts)}"
    chosen = whole if len(whole) <= width else shortened(brief, width)
    return [Text(chosen, "yellow", no_wrap=True)]


def result_lines(results: Sequence[QueryRows], width: int, room: int) -> list[Text]:
    """The newest rows of as many queries as have room; those with the newest rows go first."""
    count_shown = min(len(results), max(0, room // _FEWEST_ROWS))
    if not count_shown:
        return []
    shown = sorted(results[-count_shown:], key=lambda result: result.query)
    each = min(_MOST_ROWS + 1, room // count_shown)
    margin = max(len(result.query) for result in shown) + 3
    if margin > width // 3:
        return [line for result in shown for line in _stacked(result, width, each)]
    return [line for result in shown for line in _beside(result, width, each, margin)]


def _beside(rows: QueryRows, width: int, lines: int, margin: int) -> list[Text]:
    """The query's name, and to its right the names of its columns with the rows below."""
    body = table(_value_columns(rows, lines - 1, width - margin), width - margin, indent=0)
    name = Text(f" {rows.query}".ljust(margin), "cyan", no_wrap=True)
    blank = Text(" " * margin)
    joined = [(name if not at else blank) + line for at, line in enumerate(body)]
    for line in joined:
        line.no_wrap = True
    return joined


def _stacked(rows: QueryRows, width: int, lines: int) -> list[Text]:
    """The query's name on a line of its own, for narrow terminals and long names."""
    name = Text(shortened(f" {rows.query}", width), "cyan", no_wrap=True)
    if lines < 3:
        return [name, *table(_value_columns(rows, 1, width - 1), width)[1:]]
    return [name, *table(_value_columns(rows, lines - 2, width - 1), width)]


def _value_columns(rows: QueryRows, most: int, width: int) -> list[TextColumn]:
    newest = rows.rows[-max(1, most) :]
    columns = [
        TextColumn(
            shortened(title, _WIDEST_VALUE),
            tuple(shortened(row[at], _WIDEST_VALUE) for row in newest),
            at,
            right=rows.numeric[at],
        )
        for at, title in enumerate(rows.columns)
    ]
    if natural_width(columns) <= width:
        return columns
    # Says that there is more than fits.
    return [*columns, TextColumn(MORE, (MORE,) * len(newest), style="dim")]


def header(parts: Sequence[str], width: int) -> list[Text]:
    """Facts in a row, separated by dots, on as many lines as they need.

    >>> [line.plain for line in header(["penstock 0.1", "1 query"], 16)]
    ['penstock 0.1', '1 query']
    """
    lines: list[str] = []
    for part in parts:
        joined = f"{lines[-1]}  ·  {part}" if lines else part
        if lines and len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(part)
    return [Text(line) for line in lines]
