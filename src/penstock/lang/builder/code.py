"""Printing a deployment as the Python program that builds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from keyword import iskeyword

from penstock.lang.builder.ends import sink_code, source_code, table_code
from penstock.lang.builder.methods import Calls, method_calls
from penstock.lang.builder.writing import assigned, call, literal
from penstock.lang.deployment.grouping import Group, grouped, is_write, tables_of
from penstock.lang.deployment.sizes import memory_text
from penstock.model.durations import duration_text
from penstock.model.network import Deployment, Network, Query
from penstock.model.operators import Operator, Switch
from penstock.model.sources import ConsoleSink, Stream


def python_code(deployment: Deployment) -> str:
    """A program whose ``deployment`` is this one, but for the texts queries were written as.

    Passwords in database URLs become environment variables to set.
    """
    network = deployment.network
    names = _Variables(network)
    parts = [
        *(_stream(one, names) for one in network.streams),
        *(f"{names.table(one.name)} = {table_code(one)}" for one in tables_of(network, False)),
        *(text for one in named_groups(network) for text in _GroupCode(one, names).lines()),
        *(_outlet(one, network, names) for one in network.queries),
        _deployment(deployment, names),
    ]
    return "\n".join(["import penstock as ps", "", *(part for part in parts if part)]) + "\n"
