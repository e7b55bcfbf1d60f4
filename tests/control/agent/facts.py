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


def node(catalog: TroubledCatalog, name: str = "a") -> NodeRecord | None:
    return next((one for one in catalog.nodes() if one.name == name), None)


def is_alive(catalog: TroubledCatalog, name: str = "a") -> bool:
    found = node(catalog, name)
    return found is not None and found.is_alive(time.time())


def alive_elsewhere(catalog: TroubledCatalog, name: str, for_s: float = 60.0) -> None:
    """Another node with a lease, whose process nobody sees."""
    catalog.join(NodeRecord(name, 1, 1, "other", lease_until_s=time.time() + for_s))


class Clock:
    """A clock that can be put forward."""

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def skip(self, seconds: float) -> None:
        self._ahead_s += seconds

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead_s

    def time(self) -> float:
        return time.time() + self._ahead_s


def incarnation(catalog: TroubledCatalog) -> str:
    found = node(catalog)
    assert found is not None
    return found.incarnation


def counted(catalog: TroubledCatalog, asked: str, error: Exception | None = None) -> list[None]:
    """Grows with every time the catalog is asked, and lets that fail if an error is given."""
    times: list[None] = []

    def work() -> None:
        times.append(None)
        if error is not None:
            raise error

    catalog.before[asked] = work
    return times
