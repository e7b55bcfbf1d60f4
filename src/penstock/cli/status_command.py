"""How a system does: ``status`` with all it can show instead, and ``nodes``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.beginning_text import since_words
from penstock.cli.move_command import move_line
from penstock.cli.printing import JsonOption, print_json, print_line, print_table, watched
from penstock.cli.submitting_commands import NOTHING_RUNS
from penstock.cli.target import HomeOption, connected

if TYPE_CHECKING:
    from penstock.control.answer_models import FragmentAnswer
    from penstock.control.client import Client


def status(
    operators: Annotated[
        bool, typer.Option("--operators", help="Show operators instead, with estimated costs.")
    ] = False,
    devices: Annotated[
        bool, typer.Option("--devices", help="Show broadcasts and devices instead.")
    ] = False,
    tree: Annotated[
        bool, typer.Option("--tree", help="Draw the tree of nodes, with what they use and run.")
    ] = False,
    joins: Annotated[
        bool, typer.Option("--joins", help="Show the parts of joins and their groups instead.")
    ] = False,
    queries: Annotated[
        bool,
        typer.Option(
            "--queries", help="Show results against their limits and the clock, and what they cost."
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it anew every second, until Ctrl-C.")
    ] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Show how every fragment is doing, and the latest moves."""
    if watch:
        watched(lambda: status(operators, devices, tree, joins, queries, home=home, json=json))
        return
    if queries:
        _standing_status(connected(home), json)
        return
    if tree:
        _tree_status(connected(home), json)
        return
    if joins:
        _join_status(connected(home), json)
        return
    if devices:
        _device_status(connected(home), json)
        return
    if operators:
        _operator_status(connected(home), json)
        return
    found = connected(home).system()
    if json:
        print_json(found)
        return
    print_table(
        (
            "fragment",
            "on",
            "state",
            "rows/s",
            "rows in",
            "rows out",
            "unread",
            "µs/row",
            "batch ms",
            "p50",
            "p99",
            "counts since (UTC)",
        ),
        [_status_row(fragment) for fragment in found.fragments],
        NOTHING_RUNS,
    )
    for answer in found.fragments:
        for text in [answer.error] * bool(answer.error) + answer.notes:
            print_line(f"{answer.name}: {text}")
    for aside in found.set_aside:
        print_line(f"set aside of {aside.stream}: {aside.text}; in {aside.folder}")
    from penstock.cli.balance_command import balance_line

    print_line(balance_line(found.balance))
    for moved in found.moves:
        print_line(move_line(moved))


def _status_row(fragment: FragmentAnswer) -> tuple[str, ...]:
    # Of an intake nothing is known but what it costs.
    known = fragment.status
    cells: tuple[str, ...] = ("",) * 8
    if known is not None:
        latency = (known.latency_p50_s, known.latency_p99_s)
        cells = (
            f"{known.rows_in_per_s:,.0f}",
            f"{known.rows_in:,}",
            f"{known.rows_out:,}",
            f"{known.backlog_rows:,}",
            _number(known.cost_us),
            f"{known.batch_ms:,.0f}",
            *("" if value is None else f"{value:.1f} s" for value in latency),
        )
    since = since_words(fragment) if fragment.kind == "fragment" else ""
    return (fragment.name, fragment.node or "–", fragment.state, *cells, since)


def _standing_status(client: Client, json: bool) -> None:
    found = [fragment for fragment in client.fragments() if fragment.kind == "fragment"]
    if json:
        print_json(found)
        return
    rows = [
        (
            fragment.name,
            fragment.state,
            "" if fragment.limit_s is None else f"{fragment.limit_s:g} s",
            _percent(fragment.limit_share),
            "" if fragment.watermark_gap_s is None else f"{fragment.watermark_gap_s:,.1f} s",
            _percent(fragment.cpu_share),
            str(fragment.restarts),
        )
        for fragment in found
    ]
    heads = ("fragment", "state", "limit", "used", "watermark behind", "of all cpu", "restarts")
    print_table(heads, rows, NOTHING_RUNS)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _operator_status(client: Client, json: bool) -> None:
    found = client.operators()
    if json:
        print_json(found)
        return
    rows = [
        (
            operator.operator,
            operator.kind,
            operator.fragment,
            operator.node or "–",
            _number(operator.rows_in_per_s, 0),
            _number(operator.rows_out_per_s, 0),
            _number(operator.selectivity, 3),
            _number(operator.cost_us),
        )
        for operator in found
    ]
    heads = ("operator", "kind", "in", "on", "rows/s in", "rows/s out", "selectivity", "≈ µs/row")
    print_table(heads, rows, "nothing has been measured yet")


def _number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _device_status(client: Client, json: bool) -> None:
    from penstock.cli.device_text import device_lines

    found = [device.model_dump() for device in client.devices()]
    if json:
        print_json(found)
        return
    for text in device_lines(found):
        print_line(text)


def _tree_status(client: Client, json: bool) -> None:
    from penstock.cli.tree_text import tree_lines

    if json:
        print_json(client.nodes())
        return
    for text in tree_lines(client.nodes()):
        print(text)


def _join_status(client: Client, json: bool) -> None:
    from penstock.cli.join_text import join_lines

    found = client.joins()
    if json:
        print_json(found)
        return
    for text in join_lines(found):
        print_line(text)


def nodes(home: HomeOption = None, json: JsonOption = False) -> None:
    """List the nodes: what they have, what they use, what they run."""
    found = connected(home).nodes()
    if json:
        print_json(found)
        return
    rows = [
        (
            node.name,
            node.state,
            f"{node.utilisation:.0%} of {node.cores}",
            f"{node.memory_bytes / 2**20:,.0f} MB",
            _heard(node.heard),
            ", ".join(node.runs),
        )
        for node in found
    ]
    print_table(("node", "state", "cpu", "memory", "heard from", "runs"), rows, "no nodes")


def _heard(ages_s: Mapping[str, float]) -> str:
    """Of how many others a node knows the load, and how old the oldest word is."""
    if not ages_s:
        return "nobody"
    return f"{len(ages_s)}, up to {max(ages_s.values()):.1f} s ago"
