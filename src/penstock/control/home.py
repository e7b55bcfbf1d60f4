"""The folder of a system: where its catalog, its state, its logs and its token are."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import UnreachableError

DEFAULT = Path(".penstock") / "system"


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

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def log(self, name: str) -> Path:
        """What the controller or a node has printed."""
        return self.logs / f"{name}.log"

    @property
    def catalog_url(self) -> str:
        """The catalog's database: SQLite in this folder, unless another was chosen."""
        chosen = self.path / "catalog.url"
        return chosen.read_text().strip() if chosen.exists() else self._embedded

    @property
    def _embedded(self) -> str:
        return f"sqlite:///{self.path / 'catalog.db'}"

    def prepare(self, catalog_url: str | None = None) -> None:
        """Makes the folder and its token; only its owner can read them."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.logs.mkdir(exist_ok=True)
        self.state.mkdir(exist_ok=True)
        if catalog_url is not None:
            _write_secret(self.path / "catalog.url", catalog_url)
        if not self._token.exists():
            _write_secret(self._token, secrets.token_urlsafe(32))

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

    def address(self) -> Address:
        """Where the controller answers; raises if no system was started here."""
        try:
            return Address(**json.loads((self.path / "address").read_text()))
        except (OSError, ValueError, TypeError):
            raise self._no_system("no controller has been started") from None

    def tell_address(self, address: Address) -> None:
        """Lets others find the controller."""
        growing = self.path / ".address"
        growing.write_text(json.dumps(vars(address)))
        growing.replace(self.path / "address")

    def forget_address(self) -> None:
        """Says that there is no controller any more."""
        (self.path / "address").unlink(missing_ok=True)

    def _no_system(self, why: str) -> UnreachableError:
        return UnreachableError(
            f"there is no system in {self.path}: {why}",
            hint="Start one with penstock up, or name its folder with --home.",
        )


def _write_secret(path: Path, text: str) -> None:
    growing = path.with_name(f".{path.name}")
    growing.unlink(missing_ok=True)
    file = os.open(growing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w") as target:
        target.write(text)
    growing.replace(path)
