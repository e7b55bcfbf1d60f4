"""The folder of a system: where its catalog, its state, its logs and its token are."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import InputError, UnreachableError

if TYPE_CHECKING:
    from sqlalchemy import URL

DEFAULT = Path(".penstock") / "system"
PROCESSES, INLINE, CLUSTER = "processes", "inline", "cluster"


@dataclass(frozen=True)
class Address:
    """Where the controller of a system answers, and the process behind it."""

    url: str
    pid: int


@dataclass(frozen=True)
class Home:
    """A system's folder."""

    path: Path

    @property
    def state(self) -> Path:
        """Checkpoints, channels and dead letters, the same path on every node."""
        return self.path / "state"

    def kept(self, name: str) -> Path:
        """What is left of a submission that was dropped and whose data was to be kept."""
        return self.path / "kept" / name

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def log(self, name: str) -> Path:
        """What the controller or a node has printed."""
        return self.logs / f"{name}.log"

    @property
    def catalog_url(self) -> URL:
        """The catalog's database: SQLite in this folder, unless another was chosen."""
        from sqlalchemy import URL, make_url

        chosen = self.path / "catalog.url"
        if chosen.exists():
            return make_url(chosen.read_text().strip())
        # Not written as text: a folder may have any character in its name.
        return URL.create("sqlite", database=str(self.path / "catalog.db"))

    @property
    def host(self) -> str:
        """Where nodes run, as was written when the system was first started."""
        chosen = self.path / "host"
        return chosen.read_text().strip() if chosen.exists() else PROCESSES

    @property
    def port(self) -> int | None:
        """The port that was asked for when the system was last started; None if none was."""
        try:
            return int((self.path / "port").read_text())
        except (OSError, ValueError):
            return None

    def keep_port(self, port: int) -> None:
        """Has the next start use the same port."""
        (self.path / "port").write_text(str(port))

    @property
    def is_stopped(self) -> bool:
        """Whether somebody has stopped the system, and nobody started it since."""
        return (self.path / "stopped").exists()

    def tell_stopped(self, is_stopped: bool) -> None:
        """Lets those who ask in vain know why."""
        mark = self.path / "stopped"
        mark.touch() if is_stopped else mark.unlink(missing_ok=True)

    @property
    def spark_settings(self) -> Path:
        """A folder whose ``spark-defaults.conf`` all of the system's Spark processes read."""
        return self.path / "spark"

    def prepare(self, catalog_url: str | None = None, host: str | None = None) -> None:
        """Makes the folder and its token; only its owner can read them."""
        with self._writing():
            self._prepare(catalog_url, host)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(
                f"the system's folder {self.path} cannot be written: {error.strerror}",
                hint="Choose another with --home, or make room or rights for this one.",
            ) from None

    def _prepare(self, catalog_url: str | None, host: str | None) -> None:
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.path.stat().st_mode & 0o077:
            self.path.chmod(0o700)
        self.logs.mkdir(exist_ok=True)
        self.state.mkdir(exist_ok=True)
        if catalog_url is not None:
            with _written_secret(self.path / "catalog.url", catalog_url) as written:
                written.replace(self.path / "catalog.url")
        self._settle_host(host)
        if not self._token.exists():
            # Whoever comes first; all others take theirs.
            made = _written_secret(self._token, secrets.token_urlsafe(32))
            with made as written, suppress(FileExistsError):
                os.link(written, self._token)

    def _settle_host(self, host: str | None) -> None:
        """Keeps where nodes run, once and for all: nodes of another kind would be left behind."""
        path = self.path / "host"
        if not path.exists():
            path.write_text(host or PROCESSES)
        elif host is not None and host != self.host:
            raise InputError(
                f"the nodes of the system in {self.path} are {self.host}, not {host}",
                hint="Leave --on out, or start another system with --home.",
            )

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Nobody else starts this system meanwhile; raises if somebody is about to."""
        with self._writing():
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock_file = (self.path / "up.lock").open("w")
        with lock_file as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"another penstock up is starting the system in {self.path}",
                    hint="Wait until it is done; penstock nodes shows how far it is.",
                ) from None
            yield

    @property
    def _token(self) -> Path:
        return self.path / "token"

    def token(self) -> str:
        """What every request must carry."""
        try:
            token = self._token.read_text().strip()
        except OSError as error:
            raise self._no_system(f"its token cannot be read: {error.strerror}") from None
        if not token:
            # Everybody knows this one.
            raise self._no_system("its token is empty")
        return token

    @property
    def broadcasts(self) -> Path:
        """What the disseminator remembers, and what it tells."""
        return self.path / "broadcast"

    def device_token(self) -> str:
        """What devices must know to register; it opens nothing else. Made when first asked for."""
        path = self.path / "device-token"
        if not path.exists():
            made = _written_secret(path, secrets.token_urlsafe(32))
            with made as written, suppress(FileExistsError):
                os.link(written, path)
        return path.read_text().strip()

    def address(self) -> Address:
        """Where the controller answers; raises if no system was started here, or it was stopped."""
        try:
            return Address(**json.loads((self.path / "address").read_text()))
        except (OSError, ValueError, TypeError):
            if self.is_stopped:
                raise self.stopped() from None
            raise self._no_system("no controller has been started") from None

    def tell_address(self, address: Address) -> None:
        """Lets others find the controller."""
        growing = self.path / ".address"
        growing.write_text(json.dumps(vars(address)))
        growing.replace(self.path / "address")

    def forget_address(self) -> None:
        """Says that there is no controller any more."""
        (self.path / "address").unlink(missing_ok=True)

    def stopped(self) -> UnreachableError:
        """What those are told who ask for a system that somebody has stopped."""
        return UnreachableError(
            f"the system in {self.path} has been stopped",
            hint="penstock up goes on where it stopped.",
        )

    def _no_system(self, why: str) -> UnreachableError:
        return UnreachableError(
            f"there is no system in {self.path}: {why}",
            hint="Start one with penstock up, or name its folder with --home.",
        )


@contextmanager
def _written_secret(path: Path, text: str) -> Iterator[Path]:
    """A file of its own beside ``path`` that only its owner can read, to be put there."""
    file, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    written = Path(name)
    try:
        with os.fdopen(file, "w") as target:
            target.write(text)
        yield written
    finally:
        written.unlink(missing_ok=True)
