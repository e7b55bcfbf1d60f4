"""A controller with two living nodes, and a deployment that runs on one of them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from control.controller.facts import run
from control.made_up import AMI
from control.toys import TroubledCatalog
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.control.records import NodeRecord


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "system")
    made.prepare()
    return made


@pytest.fixture
def controller(home: Home, catalog: TroubledCatalog) -> Controller:
    """With two living nodes, and one that has died."""
    for name, for_s in (("a", 600.0), ("b", 600.0), ("z", -1.0)):
        until_s = time.time() + for_s
        catalog.join(NodeRecord(name, 1, 1 << 30, f"{name}-1", lease_until_s=until_s))
    return Controller(home, catalog, began_s=0.0)


@pytest.fixture
def ami(controller: Controller, catalog: TroubledCatalog) -> Controller:
    """A deployment whose units both run on node a."""
    controller.submit("ami", "yaml", AMI, ".")
    for unit in catalog.units():
        run(catalog, unit, "a")
    return controller
