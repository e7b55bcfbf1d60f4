"""The live view at several sizes."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console, Group
from rich.text import Text

from cli.made_up import status
from penstock.app.results import QueryRows
from penstock.app.snapshots import Snapshot
from penstock.cli.view import fragment_table, header, result_lines, screen
from penstock.control.meter import NodeUse

STATUSES = (
    status("heavy_homes", 161_200, 3_310, rate=1_240),
    status("load", 161_200, 96, rate=1_240, finished=True),
    replace(status("suspicious", batches=0), state_rows=0, watermark_ms=None),
)
HEAVY = QueryRows(
    "heavy_homes",
    ("home", "district", "since", "kwh"),
    (False, False, False, True),
    tuple((f"h{n:04}", f"d{n % 7}", "2026-01-05 06:30:00", f"{9 + n / 10:.1f}") for n in range(9)),
    3_310,
)
WIDE = QueryRows(
    "a_query_whose_name_is_rather_long_for_a_table",
    tuple(f"column_number_{n}" for n in range(30)),
    (True,) * 30,
    (tuple(str(n) * 9 for n in range(30)), ("東京" * 40,) * 30),
    2,
)
SNAPSHOT = Snapshot(
    STATUSES,
    (HEAVY, WIDE),
    NodeUse(0.61, 640_000_000, 812_000_000),
    (0.1, 0.3, 0.5, 0.8, 0.61),
    {"readings": {"malformed": 3, "late": 1_400}, "quiet": {"malformed": 0, "late": 0}},
    Path("/ami/dead_letters"),
)


def drawn(lines: list[Text], width: int) -> list[str]:
    """What a terminal of that width shows, without the spaces at the ends of lines."""
    out = StringIO()
    Console(file=out, width=width, height=50, legacy_windows=False).print(Group(*lines))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_at_120_columns_everything_is_shown() -> None:
    shown = drawn(screen(replace(SNAPSHOT, results=(HEAVY,)), 120, 16), 120)
    assert shown == [
        " query        rows/s in  rows in  rows out  batch ms  state rows  event time",
        " heavy_homes      1,240  161,200     3,310       120      14,210  2026-01-05 06:30:00",
        " load                    161,200        96       120      14,210  2026-01-05 06:30:00  ✓",
        " suspicious           0        0         0                     0",
        " node  cpu ▁▃▅▇▅  61 %   memory 640 MB (resident 812 MB)",
        " set aside  readings: 3 malformed, 1,400 late; kept in /ami/dead_letters",
        "",
        " heavy_homes  home   district  since                kwh",
        "              h0004  d4        2026-01-05 06:30:00  9.4",
        "              h0005  d5        2026-01-05 06:30:00  9.5",
        "              h0006  d6        2026-01-05 06:30:00  9.6",
        "              h0007  d0        2026-01-05 06:30:00  9.7",
        "              h0008  d1        2026-01-05 06:30:00  9.8",
    ]


def test_at_60_columns_the_least_important_is_left_out() -> None:
    shown = drawn(screen(replace(SNAPSHOT, results=(HEAVY,)), 60, 12), 60)
    assert shown == [
        " query        rows/s in  rows out  event time",
        " heavy_homes      1,240     3,310  2026-01-05 06:30:00",
        " load                          96  2026-01-05 06:30:00  ✓",
        " suspicious           0         0",
        " node  cpu ▁▃▅▇▅  61 %   memory 640 MB (resident 812 MB)",
        " set aside  readings: 3 malformed, 1,400 late",
        "",
        " heavy_homes  home   district  since                kwh",
        "              h0005  d5        2026-01-05 06:30:00  9.5",
        "              h0006  d6        2026-01-05 06:30:00  9.6",
        "              h0007  d0        2026-01-05 06:30:00  9.7",
        "              h0008  d1        2026-01-05 06:30:00  9.8",
    ]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
@pytest.mark.parametrize("height", [3, 10, 24, 60])
def test_never_wider_or_higher_than_the_terminal(width: int, height: int) -> None:
    lines = screen(SNAPSHOT, width, height)
    assert max(line.cell_len for line in lines) <= width
    assert len(drawn(lines, width)) <= height
    assert "query" in lines[0].plain


def test_more_columns_than_fit_end_in_an_ellipsis() -> None:
    lines = drawn(result_lines([WIDE], 80, 10), 80)
    assert lines[0].strip() == WIDE.query
    assert lines[1].endswith("…")
    assert lines[1].split()[0] == "column_number_0"


def test_with_little_room_the_queries_with_the_newest_rows_are_shown() -> None:
    lines = drawn(result_lines([HEAVY, WIDE], 120, 3), 120)
    assert len(lines) <= 3
    assert WIDE.query in lines[0]
    assert HEAVY.query not in "".join(lines)


def test_more_fragments_than_fit_are_counted() -> None:
    many = [status(f"q{n}", finished=n < 30) for n in range(40)]
    lines = drawn(fragment_table(many, 80, 12), 80)
    assert len(lines) == 12
    assert lines[1].split()[0] == "q30"
    assert lines[-1] == " … and 30 more, 30 of them finished"


def test_a_row_cannot_steer_the_terminal() -> None:
    rows = replace(HEAVY, rows=(("[red]x[/red]", "d", "t", "1"),))
    assert "[red]x[/red]" in "\n".join(drawn(result_lines([rows], 80, 5), 80))


def test_header_breaks_between_facts() -> None:
    facts = ["penstock 0.1.0", "3 queries, 7 operators in 4 fragments", "1 node, 2 cores"]
    assert drawn(header(facts, 80), 80) == [
        "penstock 0.1.0  ·  3 queries, 7 operators in 4 fragments  ·  1 node, 2 cores"
    ]
    assert drawn(header(facts, 60), 60) == [
        "penstock 0.1.0  ·  3 queries, 7 operators in 4 fragments",
        "1 node, 2 cores",
    ]
