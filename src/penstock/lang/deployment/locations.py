"""Paths, database addresses and brokers as people write them, made complete."""

from __future__ import annotations

import os
import re
from pathlib import Path

from penstock.errors import InputError
from penstock.model.sources import (
    FILE_FORMATS,
    Database,
    FileFormat,
    checked_format,
)

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_SQLITE_FILE = re.compile(r"(sqlite(?:\+\w+)?:///)([^?]+)(.*)")
_LOGIN = re.compile(r"(?P<head>[^:/@]+://(?P<user>[^:/@]*):)(?P<password>[^@]*)(?P<rest>@.*)")


def expanded(written: str) -> str:
    """The text with every ``${NAME}`` replaced by that environment variable.

    >>> os.environ["METER_HOST"] = "m1"
    >>> expanded("${METER_HOST}:9092")
    'm1:9092'
    """
    return _VARIABLE.sub(_value_of, written)


def _value_of(found: re.Match[str]) -> str:
    name = found.group(1)
    if name not in os.environ:
        raise InputError(
            f"the environment variable {name} is not set",
            hint=f"Set it before starting, for example export {name}=….",
        )
    return os.environ[name]


def complete_path(written: str, folder: Path) -> Path:
    """The path from the root; a relative one starts at ``folder``, ``~`` is the home folder.

    >>> complete_path("in/../homes.csv", Path("/data")).as_posix()
    '/data/homes.csv'
    """
    path = expanded(written)
    if not path.strip():
        raise InputError("an empty path", hint="Name a file or a folder.")
    try:
        whole = folder / Path(path).expanduser()
    except RuntimeError:
        raise InputError(
            f"{written} has no home folder", hint="Write the path from the root."
        ) from None
    # Not resolve(): a link stays the name that was given.
    return Path(os.path.abspath(whole))  # noqa: PTH100


def client_file(written: str | Path | None) -> Path | None:
    """The path of a file with settings of a client, from the working directory if relative."""
    return None if written is None else complete_path(str(written), Path.cwd())


def complete_database(written: str, folder: Path) -> Database:
    """The database; the file of an SQLite database is completed like any path.

    >>> complete_database("sqlite:///ami.db", Path("/data")).url
    'sqlite:////data/ami.db'
    """
    url = expanded(written)
    file = _SQLITE_FILE.fullmatch(url)
    if file and file.group(2) != ":memory:":
        url = f"{file.group(1)}{complete_path(file.group(2), folder)}{file.group(3)}"
    return Database(url)


def hidden_password(url: str) -> str:
    """The URL with its password replaced by an environment variable to set.

    >>> hidden_password("postgresql://ann:secret@db/ami")
    'postgresql://ann:${ANN_PASSWORD}@db/ami'
    >>> hidden_password("sqlite:///ami.db")
    'sqlite:///ami.db'
    """
    login = _LOGIN.fullmatch(url)
    if not login or not login["password"]:
        return url
    name = re.sub(r"\W", "_", login["user"]).upper() or "DATABASE"
    return f"{login['head']}${{{name}_PASSWORD}}{login['rest']}"


def file_format(written: str, path: str, what: str) -> FileFormat:
    """The format as written, or else the one that the path's ending says.

    >>> file_format("", "readings.csv.gz", "replay"), file_format("JSON", "a.txt", "replay")
    ('csv', 'json')
    """
    if written:
        return checked_format(written)
    ending = path.removesuffix(".gz").rpartition(".")[2].lower()
    if ending in ("txt", "log"):
        return "text"
    for known in FILE_FORMATS:
        if ending in (known, f"{known}l"):
            return known
    raise InputError(
        f"{what} does not say which format its files have",
        hint="Add format: csv, json, parquet or text.",
    )
