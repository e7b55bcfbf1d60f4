"""What takes seconds to load is loaded once it is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import penstock

pytestmark = pytest.mark.system
SOURCE = Path(penstock.__file__).parents[1]

PROGRAM = """
import sys
from pathlib import Path
import penstock.control.server
from penstock.control.balancing import LiveBalancing
from penstock.control.catalog import Catalog
from penstock.control.controller import Controller
from penstock.control.home import Home
home = Home(Path(sys.argv[1]))
home.prepare()
catalog = Catalog(home.catalog_url)
catalog.prepare()
controller = Controller(home, catalog)
controller.tick()
LiveBalancing(catalog, controller).tick(1e9)
print([name for name in ("numba", "pyspark", "matplotlib") if name in sys.modules])
"""


def test_a_controller_that_has_nothing_to_plan_loads_no_compiler(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": str(SOURCE), "PATH": ""},
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
