"""Parts of explanations that are about running: which operators run together."""

from __future__ import annotations

import textwrap
from dataclasses import replace

from penstock.errors import listed
from penstock.kernels.engine_choice import choose_engine
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
    writes = [operator for operator in network.operators if isinstance(operator, SqlWrite)]
    own = {write.name for write in writes if write.input.stream == query.stream}
    return Network(
        tuple(stream for stream in network.streams if stream.name in needed),
        tuple(
            operator
            for operator in network.operators
            if operator.name in own or any(output in needed for output in operator.outputs)
        ),
        (query,),
    )


def fragments_text(network: Network) -> str:
    """Which operators run together, as a section of text at most 100 columns wide."""
    fragments = fuse(network)
    if not fragments:
        return ""
    margin = 4 + max(
        (len(fragment.name) for fragment in fragments if len(fragment.name) <= _WIDEST_NAME),
        default=0,
    )
    lines = ["fragments"]
    for fragment in fragments:
        head = f"  {fragment.name}"
        if len(head) + 2 > margin:
            lines.append(head)
            head = ""
        engine = choose_engine(network, fragment)
        for line in [*_sentences(fragment, fragments), f"{engine.engine}: {engine.reason}"]:
            for part in textwrap.wrap(line, _WIDTH - margin):
                lines.append(f"{head:{margin}}{part}")
                head = ""
    return "\n".join([*lines, ""])


def _sentences(fragment: Fragment, fragments: tuple[Fragment, ...]) -> list[str]:
    names = [operator.name for operator in fragment.operators]
    together = " together" if len(names) > 1 else ""
    runs = f"runs {listed(names)}{together}" if names else "passes rows on"
    state = "keeps state" if fragment.stateful else "no state"
    readers = [reader.name for reader in fragments if fragment.output in reader.inputs]
    written = [f"table {write.table} in {write.database.shown}" for write in fragment.writes]
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
            "name": fragment.name,
            "inputs": list(fragment.inputs),
            "operators": [operator.name for operator in fragment.operators],
            "output": fragment.output,
            "queries": list(fragment.queries),
            "writes": [write.name for write in fragment.writes],
            "stateful": fragment.stateful,
            "is_read": fragment.is_read,
            "engine": engine.engine,
            "engine_reason": engine.reason,
        }
        for fragment in fuse(network)
        for engine in [choose_engine(network, fragment)]
    ]


def queries_sql(network: Network) -> str:
    """The queries as SQL, each under its name."""
    from penstock.lang.sql import query_sql

    return "\n".join(
        f"-- {query.name}\n{(query.text or query_sql(network, query.stream)).strip()};\n"
        for query in network.queries
    )
