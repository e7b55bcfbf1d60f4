"""What is done to a catalog and a controller, and what they say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from control.toys import TroubledCatalog
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.control.records import UnitRecord
from penstock.errors import PenstockError


def run(catalog: TroubledCatalog, unit: UnitRecord, node: str) -> None:
    catalog.assign(unit, node)
    catalog.report(unit.name, unit.epoch + 1, "running")


def the(catalog: TroubledCatalog, name: str) -> UnitRecord:
    return next(unit for unit in catalog.units() if unit.name == name)


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(PenstockError) as error:
        work()
    return str(error.value)


def story(catalog: TroubledCatalog) -> list[str]:
    return [f"{event.kind} {event.subject}: {event.text}" for event in catalog.events()]


def readers(controller: Controller, stream: str) -> list[str]:
    return sorted(path.name for path in (controller.channel(stream).folder / "readers").iterdir())


def files(home: Home) -> list[str]:
    return sorted(str(path.relative_to(home.state)) for path in home.state.rglob("*"))
