"""Reading the text of a file that somebody named."""

from __future__ import annotations

from pathlib import Path

from penstock.errors import InputError, suggestion


def text_of(path: Path) -> str:
    """The text of the file at ``path``; raises what is wrong with it in words."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"no file {path}", hint=_similar_file(path)) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text: {error.reason} at byte {error.start}",
            hint="Save it as UTF-8.",
        ) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{path} cannot be read: {reason.lower()}") from None


def _similar_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f"There is no folder {path.parent} either."
    return suggestion(path.name, sorted(neighbour.name for neighbour in path.parent.iterdir()))
