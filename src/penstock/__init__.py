"""Penstock places, balances, shares and runs continuous queries over many Spark nodes.

What a program needs is here, loaded when it is first used: importing ``penstock`` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.control.program import connect, local
    from penstock.errors import InputError, PenstockError
    from penstock.lang.builder import (
        Flow,
        approx_count_distinct,
        avg,
        count,
        count_if,
        deployment,
        generate,
        max,
        max_by,
        min,
        min_by,
        python_code,
        sinks,
        sources,
        sql,
        stddev,
        stream,
        sum,
        table,
        variance,
    )
    from penstock.lang.deployment import deployment_yaml, parse_deployment, read_deployment
    from penstock.lang.explain import explain_dict, explain_mermaid, explain_text

__version__ = "0.1.0"

_NAMES = {
    "penstock.control.program": "connect local",
    "penstock.errors": "InputError PenstockError",
    "penstock.lang.builder": "Flow approx_count_distinct avg count count_if deployment generate "
    "max max_by min min_by python_code sinks sources sql stddev stream sum table variance",
    "penstock.lang.deployment": "deployment_yaml parse_deployment read_deployment",
    "penstock.lang.explain": "explain_dict explain_mermaid explain_text",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Flow",
    "InputError",
    "PenstockError",
    "__version__",
    "approx_count_distinct",
    "avg",
    "connect",
    "count",
    "count_if",
    "deployment",
    "deployment_yaml",
    "explain_dict",
    "explain_mermaid",
    "explain_text",
    "generate",
    "local",
    "max",
    "max_by",
    "min",
    "min_by",
    "parse_deployment",
    "python_code",
    "read_deployment",
    "sinks",
    "sources",
    "sql",
    "stddev",
    "stream",
    "sum",
    "table",
    "variance",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
