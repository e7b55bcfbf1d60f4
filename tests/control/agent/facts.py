"""What the catalog says of a node and its units, and what makes it say so."""

from __future__ import annotations

import time

from control.toys import TroubledCatalog
from penstock.control.records import NodeRecord, UnitRecord
from penstock.errors import UnreachableError

AWAY = UnreachableError("the catalog is away")


def give(catalog: TroubledCatalog, name: str, node: str) -> None:
    assert catalog.assign(unit(catalog, name), node)


def unit(catalog: TroubledCatalog, name: str) -> UnitRecord:
    return next(one for one in catalog.units() if one.name == name)


def state(catalog: TroubledCatalog, name: str) -> str:
    """What the present owner says."""
    found = unit(catalog, name)
    return found.state if found.reported_epoch == found.epoch else ""


def record(catalog: TroubledCatalog, name: str = "a") -> NodeRecord:
    return next(node for node in catalog.nodes() if node.name == name)


def is_alive(catalog: TroubledCatalog, name: str = "a") -> bool:
    return any(node.name == name and node.is_alive(time.time()) for node in catalog.nodes())


def alive_elsewhere(catalog: TroubledCatalog, name: str, for_s: float = 60.0) -> None:
    """Another process becomes the node, whoever was it before; nobody sees what it does."""
    known = [node.incarnation for node in catalog.nodes() if node.name == name]
    lease = NodeRecord(name, 1, 1, "other", lease_until_s=time.time() + for_s)
    assert catalog.join(lease, known)
