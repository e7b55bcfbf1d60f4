"""Which system a command is about: a folder of this machine, an address, or a named context."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from penstock.cli.completion import context_names
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.control.client import Client
    from penstock.control.home import Home

_TOLD: ContextVar[Mapping[str, str]] = ContextVar("_TOLD", default=MappingProxyType({}))
"""What was said of the system beside its folder: url, token, context."""
_OPENED: ContextVar[ExitStack | None] = ContextVar("_OPENED", default=None)
"""What is given back when a command ends."""
_URL, _TOKEN, _CONTEXT = "PENSTOCK_URL", "PENSTOCK_TOKEN", "PENSTOCK_CONTEXT"


def anywhere(command: Callable[..., None]) -> Callable[..., None]:
    """The command with ``--url``, ``--token`` and ``--context``: its system may be anywhere."""

    @wraps(command)
    def asked(*, url: str | None, token: str | None, context: str | None, **given: object) -> None:
        told = {"url": url, "token": token, "context": context}
        former = _TOLD.set({name: value for name, value in told.items() if value is not None})
        with ExitStack() as opened:
            opened.callback(_TOLD.reset, former)
            opened.callback(_OPENED.reset, _OPENED.set(opened))
            command(**given)

    hints = get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in signature(command).parameters.items()
    ]
    more = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in _OPTIONS.items()
    ]
    asked.__signature__ = Signature([*own, *more])  # type: ignore[attr-defined]
    asked.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *more)}
    return asked


def _option(metavar: str, told: str, completed: Callable[[str], list[str]] | None = None) -> Any:
    option = typer.Option(
        metavar=metavar,
        help=told,
        show_default=False,
        autocompletion=completed,
        rich_help_panel="Another machine",
    )
    return Annotated[str | None, option]


_OPTIONS = {
    "url": _option("URL", f"The controller's address. [dim]default: ${_URL}[/dim]"),
    "token": _option("TEXT|@FILE", f"Its token, or @ and a file. [dim]default: ${_TOKEN}[/dim]"),
    "context": _option(
        "NAME", f"What penstock context keeps. [dim]default: ${_CONTEXT}[/dim]", context_names
    ),
}
HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help="The system's folder. [dim]default: $PENSTOCK_HOME, else .penstock/system[/dim]",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Target:
    """The system that was named: by its folder, or by its address and token."""

    home: Path | None = None
    url: str | None = None
    token: str | None = None


def chosen(home: Path | None, told: Mapping[str, str]) -> Target:
    """What was named, in this order: ``--home``, ``--url``, ``--context``, the environment."""
    if told and home is not None:
        raise UsageError(
            f"--home and --{next(iter(told))} name two systems", hint="Leave one of them out."
        )
    if home is not None:
        return Target(home)
    name = told.get("context") or (None if "url" in told else os.environ.get(_CONTEXT))
    if "url" in told and "context" in told:
        raise UsageError("--url and --context name two systems", hint="Leave one of them out.")
    if name and "url" not in told and (told.get("context") or _URL not in os.environ):
        from penstock.cli.contexts import context_called

        known = context_called(name)
        token = token_in(told["token"]) if "token" in told else known.token
        return Target(url=known.url, token=token)
    url = told.get("url") or os.environ.get(_URL)
    if url is None:
        if "token" in told:
            raise UsageError("--token goes with --url", hint="Give the address as well.")
        return Target()
    token = token_in(told.get("token") or os.environ.get(_TOKEN, ""))
    if not token:
        raise UsageError(
            f"there is no token for {url}",
            hint=f"Give --token, or set {_TOKEN}; it is in the file token of the system's folder.",
        )
    return Target(url=url.rstrip("/"), token=token)


def token_in(written: str) -> str:
    """A token as it was written, or what is in the file that was named."""
    if not written.startswith("@"):
        return written
    try:
        return Path(written[1:]).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the token in {written[1:]} cannot be read: {error}") from None


def system_home(home: Path | None) -> Home:
    """The folder of the system that a command is about."""
    from penstock.control.home import DEFAULT, Home

    written = home or Path(os.environ.get("PENSTOCK_HOME", str(DEFAULT)))
    return Home(written.absolute())


def connected(
    home: Path | None, patience_s: float = 60.0, told: Mapping[str, str] | None = None
) -> Client:
    """A client of the system that a command is about."""
    from penstock.control.client import Client

    target = chosen(home, _TOLD.get() if told is None else told)
    if target.url is None:
        made = Client.of(system_home(target.home), patience_s)
    else:
        made = Client(target.url, target.token or "", patience_s)
    opened = _OPENED.get()
    if opened is not None:
        opened.callback(made.close)
    return made
