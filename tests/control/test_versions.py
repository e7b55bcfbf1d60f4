"""One version of Penstock at a time: who is refused, with what words, and with what exit code."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from control.stepped import Clock, SteppedNode
from control.toys import ToyWorker, TroubledCatalog
from penstock import __version__
from penstock.control import launch, node_process
from penstock.control.agent import Agent
from penstock.control.catalog import Catalog
from penstock.control.home import Home
from penstock.control.records import NodeRecord
from penstock.control.server import main
from penstock.control.tables import meta
from penstock.control.versions import check_controller, check_nodes, check_system
from penstock.errors import InputError

HOW = (
    "Use penstock 9.9; or, to go on with this version, "
    "stop the system with that one's penstock down, then start it with penstock up."
)


def run_by(catalog: Catalog, version: str) -> None:
    engine = sa.create_engine(catalog.url)
    with engine.begin() as connection:
        connection.execute(sa.update(meta).where(meta.c.key == "penstock").values(value=version))
    engine.dispose()


def test_a_new_system_is_run_by_this_version(catalog: TroubledCatalog) -> None:
    assert catalog.run_by() == __version__
    check_system(catalog, "a")


def test_a_node_of_another_version_does_not_join(catalog: TroubledCatalog) -> None:
    run_by(catalog, "9.9")
    agent = Agent(NodeRecord("a", 1, 1), catalog, ToyWorker())
    with pytest.raises(InputError) as error:
        agent.run()
    assert str(error.value) == (
        f"node a is penstock {__version__}, its system is run by penstock 9.9. "
        "Stop the system with penstock down and start it again with penstock up."
    )
    assert error.value.exit_code == 1
    assert catalog.nodes() == ()


def test_a_node_that_comes_back_too_late_ends(catalog: TroubledCatalog) -> None:
    """Its lease ran out, and meanwhile the system was started by another version."""
    clock = Clock()
    node = SteppedNode(Agent(NodeRecord("a", 1, 1), catalog, ToyWorker(), 20.0, clock=clock), clock)
    node.settle(0.5)
    run_by(catalog, "9.9")
    node.lose_lease()
    node.settle()
    assert node.agent.state.has_failed
    with pytest.raises(InputError, match=r"its system is run by penstock 9\.9"):
        node.agent.run()


def test_the_process_of_a_node_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = Home(tmp_path)
    home.prepare()
    catalog = Catalog(home.catalog_url)
    catalog.prepare()
    run_by(catalog, "9.9")
    catalog.close()
    assert node_process.main([str(tmp_path), "a"]) == 1
    assert "its system is run by penstock 9.9" in caplog.text


def test_nodes_of_another_version_at_work(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = Home(tmp_path)
    home.prepare()
    catalog = Catalog(home.catalog_url)
    catalog.prepare()
    at_work = NodeRecord("a", 1, 1, "a-1", version="9.9", lease_until_s=time.time() + 60)
    catalog.join(at_work)
    said = f"node a runs penstock 9.9, this is penstock {__version__}. {HOW}"
    with pytest.raises(InputError) as error:
        launch.bring_up(home, [])
    assert str(error.value) == said
    assert main([str(tmp_path), "0"]) == 1
    assert said in caplog.text
    catalog.renew("a", "a-1", time.time() - 1)
    check_nodes(catalog)
    catalog.close()


def test_a_controller_of_another_version() -> None:
    check_controller(__version__)
    with pytest.raises(InputError) as error:
        check_controller("9.9")
    assert str(error.value) == (
        f"the system is running penstock 9.9, this is penstock {__version__}. {HOW}"
    )


def test_a_system_that_is_down_is_taken_over(catalog: TroubledCatalog) -> None:
    run_by(catalog, "0.0.1")
    catalog.adopt()
    assert catalog.run_by() == __version__


def test_tables_of_another_version(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.prepare()
    catalog = Catalog(home.catalog_url)
    catalog.prepare()
    engine = sa.create_engine(home.catalog_url)
    with engine.begin() as connection:
        connection.execute(sa.update(meta).where(meta.c.key == "version").values(value="1"))
        connection.execute(sa.delete(meta).where(meta.c.key == "penstock"))
    engine.dispose()
    catalog.close()
    with pytest.raises(InputError, match=r"made by another version of Penstock \(tables 1, "):
        launch.bring_up(home, [])
