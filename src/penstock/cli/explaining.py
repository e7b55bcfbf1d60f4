"""Parts of explanations that are about running: which operators run together."""

from __future__ import annotations

import textwrap
from dataclasses import replace

from penstock.errors import listed
from penstock.model.fragments import Fragment
from penstock.model.network import Deployment, Network, Query
from penstock.model.operators import SqlWrite
from penstock.place.fuse import fuse

_WIDTH = 100
_WIDEST_NAME = 28


def only(deployment: Deployment, name: str) -> Deployment:
    """The deployment with one query and what it needs."""
    query = deployment.network.query(name)
    return replace(deployment, network=_needed(deployment.network, query))


def _needed(network: Network, query: Query) -> Network:
    needed = network.upstream([query.stream])
    writes = [one for one in network.operators if isinstance(one, SqlWrite)]
    own = {one.name for one in writes if one.input.stream == query.stream}
    return Network(
        tuple(one for one in network.streams if one.name in needed),
        tuple(
            one
            for one in network.operators
            if one.name in own or any(output in needed for output in one.outputs)
        ),
        (query,),
    )


def fragments_text(network: Network) -> str:
    """Which operators run together, as a section of text at most 100 columns wide."""
    fragments = fuse(network)
    if not fragments:
        return ""
    margin = 4 + max(
        (len(one.name) for one in fragments if len(one.name) <= _WIDEST_NAME), default=0
    )
    lines = ["fragments"]
    for fragment in fragments:
        head = f"  {fragment.name}"
        if len(head) + 2 > margin:
            lines.append(head)
            head = ""
        for line in _sentences(fragment, fragments):
            for part in textwrap.wrap(line, _WIDTH - margin):
                lines.append(f"{head:{margin}}{part}")
                head = ""
    return "\n".join([*lines, ""])


def _sentences(fragment: Fragment, fragments: tuple[Fragment, ...]) -> list[str]:
    names = [one.name for one in fragment.operators]
    together = " together" if len(names) > 1 else ""
    runs = f"runs {listed(names)}{together}" if names else "passes rows on"
    state = "keeps state" if fragment.stateful else "no state"
    readers = [one.name for one in fragments if fragment.output in one.inputs]
    written = [f"table {one.table} in {one.database.shown}" for one in fragment.writes]
    lines = [f"{runs}; reads {listed(fragment.inputs)}; {state}"]
    if readers:
        lines.append(f"read by {listed(readers)}")
    if written:
        lines.append(f"written to {listed(written)}")
    return lines


def fragment_records(network: Network) -> list[dict[str, object]]:
    """The fragments as plain values."""
    return [
        {
            "name": one.name,
            "inputs": list(one.inputs),
            "operators": [operator.name for operator in one.operators],
            "output": one.output,
            "queries": list(one.queries),
            "writes": [write.name for write in one.writes],
            "stateful": one.stateful,
            "is_read": one.is_read,
        }
        for one in fuse(network)
    ]


def queries_sql(network: Network) -> str:
    """The queries as SQL, each under its name."""
    from penstock.lang.sql import query_sql

    return "\n".join(
        f"-- {one.name}\n{(one.text or query_sql(network, one.stream)).strip()};\n"
        for one in network.queries
    )
