"""One version of Penstock runs a system at a time: its controller and all its nodes."""

from __future__ import annotations

from penstock import __version__
from penstock.control.catalog import Catalog
from penstock.errors import InputError


def check_nodes(catalog: Catalog) -> None:
    """Raises if a node of another version is at work."""
    now_s = catalog.now_s()
    for node in catalog.nodes():
        if node.is_alive(now_s) and node.version not in ("", __version__):
            raise InputError(
                f"node {node.name} runs penstock {node.version}, this is penstock {__version__}",
                hint=_change_over(node.version),
            )


def check_controller(version: str) -> None:
    """Raises if the controller that answers has another version."""
    if version != __version__:
        raise InputError(
            f"the system is running penstock {version}, this is penstock {__version__}",
            hint=_change_over(version),
        )


def check_system(catalog: Catalog, node: str) -> None:
    """Raises if a node of this version may not join the system."""
    version = catalog.run_by()
    if version != __version__:
        raise InputError(
            f"node {node} is penstock {__version__}, its system is run by penstock {version}",
            hint="Stop the system with penstock down and start it again with penstock up.",
        )


def _change_over(version: str) -> str:
    return (
        f"Use penstock {version}; or, to go on with this version, "
        "stop the system with that one's penstock down, then start it with penstock up."
    )
