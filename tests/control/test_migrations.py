"""Catalogs of older versions: a system that was stopped is taken over with all that it knows.

The files in ``catalogs`` hold what Penstock wrote when tables had that version.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

import penstock
from penstock.control.catalog import Catalog
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.control.recorded_plans import keep_plans, recorded_unit
from penstock.control.system import assemble
from penstock.control.system_balance import keep_balance, read_balance, set_balance
from penstock.control.tables import VERSION, meta, metadata, nodes, submissions
from penstock.errors import InputError
from penstock.model.measurements import FragmentStatus, IntakeSample, NodeSample
from penstock.model.settings import settings_of
from postgres import temporary_postgres

KEPT = Path(__file__).parent / "catalogs"
VERSIONS = sorted({file.name.partition(".")[0] for file in KEPT.glob("*.sql")})


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with temporary_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.system)])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=VERSIONS)
def url(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> str:
    """A database as an older version has left it."""
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path}/catalog.db"
    else:
        url = request.getfixturevalue("server")
    engine = sa.create_engine(url)
    metadata.drop_all(engine)
    written = (KEPT / f"{request.param}.{kind}.sql").read_text()
    with engine.begin() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.executescript(written) if kind == "sqlite" else driver.execute(written)
    engine.dispose()
    return url


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    made = Catalog(url)
    yield made
    made.close()


def change(url: str, statement: sa.Update) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(statement)
    engine.dispose()


def is_migrated(url: str) -> bool:
    engine = sa.create_engine(url)
    columns = {column["name"] for column in sa.inspect(engine).get_columns(submissions.name)}
    engine.dispose()
    return "is_dropped" in columns


def test_everything_is_still_known(catalog: Catalog) -> None:
    catalog.prepare()
    assert [(submission.name, submission.kind) for submission in catalog.submissions()] == [
        ("ami", "yaml"),
        ("top", "sql"),
    ]
    assert [node.name for node in catalog.nodes()] == ["a", "b"]
    units = {unit.name: unit for unit in catalog.units()}
    assert [*units] == ["hourly", "peaks", "readings", "top"]
    last = FragmentStatus("hourly", 7, 3, 1.5, 4, 20.0, 2, None, True)
    assert (units["hourly"].measured, units["peaks"].measured) == (last, None)
    assert (units["peaks"].node, units["peaks"].epoch, units["peaks"].state) == ("a", 1, "running")
    (move,) = catalog.moves()
    assert (move.unit, move.state, move.by, move.is_warm) == ("peaks", "done", "people", True)
    assert catalog.samples("a") == (
        NodeSample(950.0, 0.5, 0.25, 700, {"readings": IntakeSample(3.0)}, {"peaks": last}),
    )
    assert [event.kind for event in catalog.events()] == ["submit", "submit"]


def test_the_tables_are_those_of_a_new_catalog(catalog: Catalog, url: str) -> None:
    catalog.prepare()
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_the_system_goes_on(catalog: Catalog, tmp_path: Path) -> None:
    """The controller works out plans of what was submitted, nodes find them, and more can come."""
    catalog.prepare()
    keep_plans(catalog)
    for unit in catalog.units():
        assert recorded_unit(catalog, unit).name == unit.name
    home = Home(tmp_path / "system")
    home.prepare()
    controller = Controller(home, catalog)
    assert controller.system() == assemble(catalog.submissions())
    keep_balance(catalog, controller.system())
    (added,) = controller.submit("next", "sql", "SELECT home FROM hourly", ".")
    assert added.name == "next"
    catalog.sample("a", NodeSample(1.0))
    (begun,) = catalog.add_moves(
        [{"unit": "next", "source": "a", "target": "b", "state": "preparing", "created_s": 1.0}]
    )
    assert begun == 2


def test_it_is_balanced_as_before(catalog: Catalog, tmp_path: Path) -> None:
    """Which was said by the newest file that said anything; from now on the catalog knows."""
    catalog.prepare()
    keep_plans(catalog)
    system = assemble(catalog.submissions())
    says = any(deployment.balance for deployment in system.deployments.values())
    for _ in range(2):
        keep_balance(catalog, system)
        now = read_balance(catalog)
        assert (now.set_by, now.submission) == (("file", "ami") if says else ("nobody", None))
        assert now.settings == ({"policy": "correlation", "every": "20s"} if says else {})
    set_balance(catalog, settings_of({"policy": "off"}))
    keep_balance(catalog, system)
    assert read_balance(catalog).set_by == "command"


def test_it_is_done_once(catalog: Catalog) -> None:
    for _ in range(2):
        catalog.prepare()
        catalog.run_by()
    assert len(catalog.submissions()) == 2


def test_not_while_a_node_works_with_it(catalog: Catalog, url: str) -> None:
    change(url, sa.update(nodes).where(nodes.c.name == "b").values(lease_until_s=time.time() + 60))
    with pytest.raises(InputError) as refused:
        catalog.prepare()
    assert str(refused.value) == (
        f"the catalog {url} is of an older version, and in use by node b, penstock 0.1.0. "
        "Stop the system with that version's penstock down; "
        "then penstock up goes on with this one."
    )
    assert not is_migrated(url)


@pytest.mark.parametrize("version", ["3", str(VERSION + 1), "x"])
def test_one_that_is_not_known_is_refused(catalog: Catalog, url: str, version: str) -> None:
    change(url, sa.update(meta).where(meta.c.key == "version").values(value=version))
    with pytest.raises(InputError, match=rf"was made by penstock 0\.1\.0 \(tables {version}, "):
        catalog.prepare()


def test_trouble_halfway_changes_nothing(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("struck")

    with monkeypatch.context() as patched:
        patched.setattr(sa, "update", fail)
        with pytest.raises(RuntimeError, match="struck"):
            catalog.prepare()
    assert not is_migrated(url)
    test_everything_is_still_known(catalog)


def test_nothing_of_it_is_loaded_where_versions_match(tmp_path: Path) -> None:
    program = (
        "import sys; from penstock.control.catalog import Catalog\n"
        f"catalog = Catalog('sqlite:///{tmp_path}/catalog.db')\n"
        "catalog.prepare(); catalog.prepare(); catalog.close()\n"
        "print('alembic' in sys.modules)\n"
    )
    source = str(Path(penstock.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": source, "PATH": ""},
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_every_version_before_this_one_has_its_catalog_here() -> None:
    assert [str(version) for version in range(4, VERSION)] == VERSIONS
