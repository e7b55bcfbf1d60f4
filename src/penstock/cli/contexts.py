"""Systems on other machines under names of their own, in a file that only its owner can read."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from penstock.errors import InputError, UsageError, listed, suggestion

_NAME = re.compile(r"\w[\w.-]{0,99}")


@dataclass(frozen=True)
class Context:
    """Where a controller answers, and what it wants to be told."""

    url: str
    token: str

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UsageError(
                f"{self.url!r} is no address of a controller",
                hint="Write for example http://127.0.0.1:7400.",
            )
        if not self.token:
            raise UsageError(
                "the token is empty", hint="It is in the file token of the system's folder."
            )


def contexts_file() -> Path:
    """Where contexts are kept."""
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "penstock" / "contexts.json"


def contexts() -> dict[str, Context]:
    """All contexts by name."""
    path = contexts_file()
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return {name: Context(**record) for name, record in told.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} cannot be read: {error}", hint="Repair it, or remove it and add them again."
        ) from None


def context_called(name: str) -> Context:
    """The context of this name; raises if there is none."""
    known = contexts()
    if name not in known:
        hint = f"There are {listed(known)}. {suggestion(name, known)}".strip()
        raise UsageError(f"no context {name}", hint=hint)
    return known[name]


def keep_context(name: str, context: Context) -> None:
    """Keeps a context, instead of one that had its name."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a context", hint="Use letters, digits, -, . and _.")
    _write(contexts() | {name: context})


def forget_context(name: str) -> None:
    """Removes a context; raises if there is none."""
    context_called(name)
    _write({kept: context for kept, context in contexts().items() if kept != name})


def _write(kept: dict[str, Context]) -> None:
    path = contexts_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    growing = path.with_suffix(".new")
    growing.unlink(missing_ok=True)
    file = os.open(growing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as target:
        json.dump({name: asdict(context) for name, context in kept.items()}, target, indent=2)
    growing.replace(path)
