"""The folder of a system: what is in it, who can read it, and what is missing."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.control.catalog import Catalog
from penstock.control.home import Address, Home
from penstock.errors import InputError, UnreachableError

HINT = "Start one with penstock up, or name its folder with --home."


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "deep" / "system")
    made.prepare()
    return made


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_its_parts(home: Home) -> None:
    assert home.state.is_dir()
    assert home.logs.is_dir()
    assert home.log("a") == home.path / "logs" / "a.log"
    assert str(home.catalog_url) == f"sqlite:///{home.path}/catalog.db"


def test_only_its_owner_can_look_inside(home: Home) -> None:
    assert mode(home.path) == 0o700
    assert mode(home.path / "token") == 0o600


def test_the_address_of_a_database_may_hold_a_password(tmp_path: Path) -> None:
    home = Home(tmp_path / "system")
    home.prepare("postgresql+psycopg://me:secret@db/penstock")
    url = home.catalog_url.render_as_string(hide_password=False)
    assert url == "postgresql+psycopg://me:secret@db/penstock"
    assert mode(home.path / "catalog.url") == 0o600


def test_a_token_is_long_and_new_for_every_system(tmp_path: Path) -> None:
    tokens = set()
    for name in "abc":
        home = Home(tmp_path / name)
        home.prepare()
        tokens.add(home.token())
    assert len(tokens) == 3
    assert min(map(len, tokens)) >= 40


def test_preparing_again_changes_nothing(home: Home) -> None:
    token, url = home.token(), home.catalog_url
    home.prepare()
    assert (home.token(), home.catalog_url) == (token, url)


def test_a_chosen_database_stays_chosen(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.prepare("sqlite:////elsewhere.db")
    home.prepare()
    assert str(home.catalog_url) == "sqlite:////elsewhere.db"


@pytest.mark.parametrize("name", ["my system", "50% done", "größe", "a+b&c=d", "why?", "#1"])
def test_the_catalog_is_found_wherever_the_folder_is(tmp_path: Path, name: str) -> None:
    home = Home(tmp_path / name)
    home.prepare()
    catalog = Catalog(home.catalog_url)
    catalog.prepare()
    catalog.close()
    assert (home.path / "catalog.db").exists()


def test_a_folder_that_others_could_look_into_is_closed(tmp_path: Path) -> None:
    home = Home(tmp_path / "system")
    home.path.mkdir(mode=0o755)
    home.prepare()
    assert mode(home.path) == 0o700


def test_those_who_prepare_at_once_have_one_token(tmp_path: Path) -> None:
    home = Home(tmp_path / "system")
    home.path.mkdir()
    with ThreadPoolExecutor(8) as pool:
        found = {one.result() for one in [pool.submit(_token_after, home) for _ in range(32)]}
    assert found == {home.token()}
    assert sorted(path.name for path in home.path.iterdir()) == ["host", "logs", "state", "token"]


def _token_after(home: Home) -> str:
    home.prepare()
    return home.token()


def test_only_one_starts_a_system(tmp_path: Path) -> None:
    home = Home(tmp_path / "system")
    with home.starting(), pytest.raises(InputError) as error, home.starting():
        pass
    assert str(error.value) == (
        f"another penstock up is starting the system in {home.path}. "
        "Wait until it is done; penstock nodes shows how far it is."
    )
    assert error.value.exit_code == 1
    with home.starting():
        pass


def test_the_address_of_the_controller(home: Home) -> None:
    home.tell_address(Address("http://127.0.0.1:7400", 12))
    assert home.address() == Address("http://127.0.0.1:7400", 12)
    home.tell_address(Address("http://127.0.0.1:7401", 13))
    assert home.address().pid == 13
    home.forget_address()
    home.forget_address()
    with pytest.raises(UnreachableError) as error:
        home.address()
    assert str(error.value) == (
        f"there is no system in {home.path}: no controller has been started. {HINT}"
    )


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '{"url": "x"}', '{"host": 1, "pid": 2}'])
def test_a_damaged_address_is_none(home: Home, text: str) -> None:
    (home.path / "address").write_text(text)
    with pytest.raises(UnreachableError, match="no controller has been started"):
        home.address()


def test_a_folder_without_a_system(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError) as error:
        Home(tmp_path).token()
    assert str(error.value) == (
        f"there is no system in {tmp_path}: "
        f"its token cannot be read: No such file or directory. {HINT}"
    )
    assert error.value.exit_code == 3


@pytest.mark.parametrize("text", ["", "\n", "  \n"])
def test_an_empty_token_lets_nobody_in(home: Home, text: str) -> None:
    (home.path / "token").write_text(text)
    with pytest.raises(UnreachableError) as error:
        home.token()
    assert str(error.value) == f"there is no system in {home.path}: its token is empty. {HINT}"


@pytest.mark.parametrize("work", [Home.prepare, lambda home: home.starting().__enter__()])
def test_a_folder_that_cannot_be_written(tmp_path: Path, work: Callable[[Home], object]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as error:
        work(Home(tmp_path / "file" / "system"))
    assert str(error.value) == (
        f"the system's folder {tmp_path}/file/system cannot be written: Not a directory. "
        "Choose another with --home, or make room or rights for this one."
    )


def test_the_port_is_kept(home: Home) -> None:
    assert home.port is None
    home.keep_port(7_401)
    assert home.port == 7_401


def test_whether_somebody_has_stopped_it(home: Home) -> None:
    assert not home.is_stopped
    home.tell_stopped(True)
    assert home.is_stopped
    with pytest.raises(UnreachableError) as error:
        home.address()
    assert str(error.value) == (
        f"the system in {home.path} has been stopped. penstock up goes on where it stopped."
    )
    home.tell_stopped(False)
    assert not home.is_stopped
