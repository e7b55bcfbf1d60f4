"""Classes that other packages bring along, by entry points, beside our own."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import Any, TypeVar

from penstock.errors import InputError

Named = TypeVar("Named")


def with_brought(
    kind: type[Named], own: Iterable[type[Named]], brought: Iterable[EntryPoint]
) -> dict[str, type[Named]]:
    """Our classes of a kind and those that entry points name, by name; raises where one is unfit.

    >>> with_brought(object, [], [])
    {}
    """
    known = {_name(found): found for found in own}
    for entry in brought:
        found = _loaded(kind, entry)
        if _name(found) in known:
            raise InputError(
                f"two {_words(kind, many=True)} are called {_name(found)}; the second is "
                f"{entry.value}",
                hint="Rename it, or uninstall the package that brings it.",
            )
        known[_name(found)] = found
    return known


def _loaded(kind: type[Named], entry: EntryPoint) -> type[Named]:
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"the {_words(kind)} {entry.name} cannot be loaded from {entry.value}: {error}",
            hint="Mend or uninstall the package that brings it.",
        ) from None
    if not (isinstance(found, type) and issubclass(found, kind) and hasattr(found, "name")):
        raise InputError(
            f"the {_words(kind)} {entry.name} is {entry.value}, which is no named "
            f"{kind.__name__} class",
            hint=f"Subclass {kind.__module__}.{kind.__name__} and give it a name.",
        )
    return found


def _name(found: Any) -> str:
    return str(found.name)


def _words(kind: type[Named], many: bool = False) -> str:
    word = kind.__name__.lower()
    return f"{word.removesuffix('y')}ies" if many else word
