"""``penstock transfers``: which operators of a tree may move to which neighbour."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.app.words import counted

if TYPE_CHECKING:
    from penstock.balance.hierarchy.transfers import Transfer
    from penstock.model.tree_network import TreeNetwork

TRANSFERS_EXAMPLES = """\
[bold]Examples[/bold]

penstock transfers tree.yaml           what may move, node by node

penstock transfers tree.yaml --wide    operators with several inputs may go down, too

penstock transfers tree.json --json    for scripts

[bold]A tree file[/bold]

nodes: {root: {}, a: {parent: root}}

inputs: {m1: {node: a}}

operators: {f: {inputs: \\[m1], size: 3.5, node: a}}
"""


def transfers(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A tree of nodes with operators on them.", show_default=False
        ),
    ],
    wide: Annotated[
        bool,
        typer.Option(
            "--wide",
            help="Let operators with several inputs go down, if all come through one child.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List what may move: operators that go together, and the neighbour they may go to."""
    from penstock.balance.hierarchy.transfers import DownRule, feasible_transfers
    from penstock.lang.abstract import read_tree

    tree = read_tree(file)
    found = feasible_transfers(tree, DownRule.WIDE if wide else DownRule.NARROW)
    if json:
        typer.echo(json_text.dumps(transfers_record(tree, found), indent=2))
    else:
        typer.echo("\n".join(transfer_lines(tree, found)))


def transfers_record(tree: TreeNetwork, found: tuple[Transfer, ...]) -> dict[str, object]:
    """The stable form that ``--json`` prints."""
    from penstock.balance.hierarchy.transfers import size_of

    sizes = {operator.name: operator.size for operator in tree.operators}
    return {
        "transfers": [
            {
                "node": transfer.node,
                "to": transfer.to,
                "operators": list(transfer.operators),
                "size": size_of(transfer.operators, sizes),
            }
            for transfer in found
        ]
    }


def transfer_lines(tree: TreeNetwork, found: tuple[Transfer, ...]) -> list[str]:
    """The transfers as people read them: every node with its load, and what may leave it."""
    from penstock.balance.hierarchy.transfers import size_of

    sizes = {operator.name: operator.size for operator in tree.operators}
    own: dict[str, list[str]] = {node: [] for node in tree.nodes.parents}
    for operator in tree.operators:
        own[operator.node].append(operator.name)
    leaving: dict[str, list[str]] = {node: [] for node in own}
    for transfer in found:
        way = "up" if transfer.to == tree.nodes.parents[transfer.node] else "down"
        size = size_of(transfer.operators, sizes)
        line = f"  {way:4} to {transfer.to}: {', '.join(transfer.operators)} ({size:g} %)"
        leaving[transfer.node].append(line)
    lines = [
        f"{counted(len(own), 'node')}, {counted(len(sizes), 'operator')}, "
        f"{counted(len(found), 'feasible transfer')}"
    ]
    for node, names in own.items():
        head = f"{node}: {counted(len(names), 'operator')}, {size_of(names, sizes):g} %"
        lines += ["", head, *(leaving[node] or (["  nothing may move"] if names else []))]
    return lines
